//! `run imbalance` as its users run it: what it reports, and plain words where it cannot work.

use super::{METACHARE, run};
use harness::local_nodes;
use serde_json::Value;

#[test]
fn a_ring_of_uneven_work_is_verified_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    let mut results = Vec::new();
    for pattern in ["linear", "hot-spot", "wave", "walk", "slots", "even"] {
        let words = ["run", "imbalance", "--chares", "30", "--steps", "40", "--work", "5000", "--verify"];
        let how = ["--pattern", pattern, "--quiet", "--speed", "equal", "--report", "run.json"];
        let done = run(METACHARE, folder.path(), &[&words[..], &how[..]].concat());
        assert_eq!(done.code, 0, "{done:?}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
        let facts = &report["facts"];
        assert_eq!((&report["verified"], &facts["pattern"]), (&true.into(), &pattern.into()), "{report}");
        assert_eq!((&facts["chares"], &facts["units_of_chare_and_step"]), (&30.into(), &5000.into()));
        let work = report["work"].as_f64().unwrap();
        assert!((work / (30.0 * 40.0 * 5000.0) - 1.0).abs() < 0.2, "{pattern}: {work}");
        assert!(facts["step_s"].as_f64().unwrap() > 0.0 && facts["planned_memory_bytes"].is_array());
        let kinds = ["anywhere", "near", "pinned"].map(|kind| facts[kind].as_u64());
        let all = kinds.iter().copied().sum::<Option<u64>>();
        assert_eq!(all, (pattern == "slots").then_some(30), "{pattern}: {kinds:?}");
        results.push(facts["result"].clone());
    }
    results.sort_by_key(Value::to_string);
    results.dedup();
    assert_eq!(results.len(), 6, "other loads give other numbers: {results:?}");
}

#[test]
fn what_is_no_work_is_refused_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--chares", "0"], 65, "--chares 0: give at least 1"),
        (&["--steps", "0"], 65, "--steps 0: give at least 1"),
        (&["--work", "0"], 65, "--work 0: give 1 to "),
        (&["--work", "7", "--seconds", "3"], 64, "'--work <UNITS>' cannot be used with '--seconds <S>'"),
        (&["--state", "9GiB"], 64, "give bytes up to 4GiB, such as "),
        (&["--pattern", "hill"], 64, "'hill'"),
        (
            &["--chares", "1000000", "--state", "1GiB", "--work", "1"],
            65,
            "a ring of 1000000 chares with 1 GiB",
        ),
    ];
    for (words, code, part) in cases {
        let done =
            run(METACHARE, folder.path(), &[&["run", "imbalance", "--speed", "equal"], words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{words:?}: {done:?}");
        assert!(done.stderr.contains(part) && !done.stderr.contains("panicked"), "{words:?}: {done:?}");
    }
}

/// Without a limit half of the chares would go there, which have as much as the node may take.
#[test]
fn no_balancer_gives_a_node_more_than_it_has_memory_for() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = "[[node]]\nname = \"a\"\npes = 1\n[[node]]\nname = \"b\"\npes = 1\nmemory = \"160 MiB\"\n";
    std::fs::write(folder.path().join("nodes.toml"), nodes).unwrap();
    let words =
        ["run", "imbalance", "--pattern", "walk", "--chares", "40", "--state", "8MiB", "--seconds", "6"];
    let how =
        ["--balance", "greedy-refine", "--verify", "--speed", "equal", "--quiet", "--report", "run.json"];
    let done = run(METACHARE, folder.path(), &[&words[..], &how[..]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    let decisions = report["balanced"].as_array().unwrap();
    let (moved, cost) =
        (decisions.iter().filter_map(|one| one["moves"].as_u64()).sum::<u64>(), &report["balancing"]);
    assert!(moved > 0, "{report}");
    assert!(cost["looks"].as_u64() >= Some(decisions.len() as u64), "{cost}");
    let (seconds, longest) = (cost["seconds"].as_f64().unwrap(), cost["longest_s"].as_f64().unwrap());
    assert!(
        0.0 < longest && longest <= seconds && cost["messages"].as_u64() > cost["looks"].as_u64(),
        "{cost}"
    );
    assert!(cost["bytes"].as_u64() > Some(0), "{cost}");
}
