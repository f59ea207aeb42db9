//! Runs that measure nothing of themselves.

use crate::{METACHARE, command, run};
use harness::{local_nodes, start, wait_for_work};

/// With `--no-measuring` a run computes the same, and its report tells of no entry methods; a balancer cannot do without.
#[test]
fn a_run_that_measures_nothing_computes_the_same_and_cannot_balance() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    let words = ["run", "jacobi", "--n", "200", "--speed", "equal", "--quiet"];
    let run = |more: &[&str]| {
        let report = ["--report", "run.json"];
        start(&mut command(METACHARE, folder.path(), &[&words[..], &report, more].concat())).done()
    };
    let report = || -> serde_json::Value {
        let report = std::fs::read(folder.path().join("run.json")).unwrap();
        serde_json::from_slice(&report).unwrap()
    };
    let kinds = |report: &serde_json::Value| report["entries"].as_array().map_or(0, Vec::len);
    let done = run(&["--out", "measured.npy"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(kinds(&report()) > 0, "{}", report());
    let done = run(&["--no-measuring", "--out", "plain.npy"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(kinds(&report()), 0, "{}", report());
    assert!(report()["nodes"][0]["entries"].as_u64() > Some(0), "messages are counted: {}", report());
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(bytes("measured.npy"), bytes("plain.npy"));
    let done = run(&["--no-measuring", "--balance", "greedy", "--checkpoint", "saved"]);
    assert_eq!(done.code, 64, "{done:?}");
    assert!(done.last_error().starts_with("error: --no-measuring: a balancer has to know"), "{done:?}");
    assert!(!folder.path().join("saved").exists(), "nothing is left of a run that was refused");
}

/// Whether anything is on its way is known by counting, and that is not measuring.
#[test]
fn a_run_that_measures_nothing_can_be_saved_and_nodes_leave_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    let words = "run imbalance --chares 24 --steps 1000000 --work 20000 --reduce-every 3 --speed equal --no-measuring";
    let words: Vec<&str> = words.split(' ').chain(["--checkpoint", "saved"]).collect();
    let running = start(&mut command(METACHARE, folder, &words));
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let drained = run(METACHARE, folder, &["nodes", "drain", name.trim(), "b"]);
    assert_eq!(drained.code, 0, "{drained:?}");
    let saved = run(METACHARE, folder, &["checkpoint", name.trim(), "--stop"]);
    assert_eq!(saved.code, 0, "{saved:?}");
    assert_eq!(running.done().code, 0);
}
