//! The JSON report of real runs: complete, as documented, and its sums hold.

use super::{METACHARE, nodes_of_speed, report, run};
use harness::{json, write};
use serde_json::Value;
use std::process::Command;

const SCHEMA: &str = include_str!("../../chares/command/src/report/schema.md");

fn is_as_documented(report: &Value, empty: &[&str]) {
    // Applications choose what is below some, and where nothing moved, was slow or was saved, nothing is in the list of that.
    let found = json::keys(
        report,
        &["arguments", "facts", "command_line", "remarks", "balanced", "slowdowns", "checkpoints"],
    );
    let documented = json::documented(SCHEMA);
    assert!(documented.len() > 60, "{documented:?}");
    let missing = documented.difference(&found).filter(|key| !empty.iter().any(|list| key.starts_with(list)));
    let missing: Vec<_> = missing.collect();
    let secret: Vec<_> = found.difference(&documented).collect();
    assert!(missing.is_empty() && secret.is_empty(), "missing: {missing:?}, not documented: {secret:?}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn sum<'a>(parts: impl IntoIterator<Item = &'a Value>, key: &str) -> f64 {
    parts.into_iter().map(|part| number(&part[key])).sum()
}

fn assert_near(a: f64, b: f64, slack: f64, what: &str) {
    assert!((a - b).abs() <= slack, "{what}: {a} and {b}");
}

#[test]
fn every_documented_key_is_there_and_the_sums_hold() {
    let folder = tempfile::tempdir().unwrap();
    nodes_of_speed(folder.path(), &[(2, 1.0), (1, 0.5), (1, 0.25)]);
    for algorithm in ["conventional", "cannon"] {
        let words = ["--algorithm", algorithm, "--n", "300", "--q", "6", "--verify", "--speed", "cached"];
        let report = report(folder.path(), &words);
        is_as_documented(&report, &[]);
        parts_add_up(&report);
        pes_add_up_to_nodes(&report);
        what_was_sent_has_arrived(&report);
        assert_eq!(report["verified"], true);
        assert_eq!((number(&report["exit_code"]), &report["error"]), (0.0, &Value::Null));
        assert_eq!(
            list(&report["nodes"]).iter().map(|n| list(&n["pes"]).len()).collect::<Vec<_>>(),
            [2, 1, 1]
        );
        assert_eq!(
            (&report["facts"]["algorithm"], &report["arguments"]["dtype"]),
            (&algorithm.into(), &"f64".into())
        );
        assert_eq!(number(&report["arguments"]["n"]), 300.0);
    }
}

/// The parts of the run add up to the whole, the times of a PE to the parts, and the figures follow.
fn parts_add_up(report: &Value) {
    let parts = ["startup_s", "distribution_s", "timed_s", "collection_s", "check_s", "ending_s"];
    let total = number(&report["total_s"]);
    assert_near(parts.iter().map(|part| number(&report[part])).sum(), total, 1e-6, "parts and total");
    assert!(number(&report["speeds_s"]) <= number(&report["startup_s"]));
    let (timed, ideal) = (number(&report["timed_s"]), number(&report["ideal_s"]));
    assert_near(number(&report["efficiency"]), ideal / timed, 1e-9, "efficiency");
    let nodes = list(&report["nodes"]);
    assert_near(ideal, number(&report["work"]) / sum(nodes, "rate"), 1e-9, "ideal time");
    let (equivalents, speeds) = (number(&report["equivalents"]), sum(nodes, "speed"));
    let pes: usize = nodes.iter().map(|node| list(&node["pes"]).len()).sum();
    if std::thread::available_parallelism().unwrap().get() >= pes {
        assert_near(speeds, equivalents, 1e-9, "equivalents");
    }
    // PEs that share cores are not worth more than these.
    assert!(equivalents > 0.0 && equivalents <= speeds + 1e-9, "{equivalents}");
    let fastest = nodes.iter().map(|node| number(&node["speed"])).fold(0.0, f64::max);
    assert_near(fastest, 1.0, 1e-9, "the fastest node");
    for pe in nodes.iter().flat_map(|node| list(&node["pes"])) {
        // Counters are read just before the timed part begins and just after it ends.
        let states = ["compute_s", "idle_s", "overhead_s", "core_wait_s", "quota_s", "throttled_s"];
        let states: f64 = states.iter().map(|state| number(&pe[state])).sum();
        let around = timed + number(&report["distribution_s"]) + number(&report["collection_s"]);
        assert!((0.99 * timed - 0.01..=around).contains(&states), "{states} of {timed}: {pe}");
        let (whole, states) = (
            &pe["whole"],
            ["compute_s", "idle_s", "init_s", "overhead_s", "core_wait_s", "quota_s", "throttled_s"],
        );
        let age = number(&whole["total_s"]);
        let states: f64 = states.iter().map(|state| number(&whole[state])).sum();
        assert_near(states, age, 0.01 + 0.01 * age, "the whole life of a PE");
        assert!(age <= total && age >= timed, "{age}");
        assert!(number(&pe["compute_s"]) > 0.0 && number(&pe["init_s"]) > 0.0, "{pe}");
        assert!(number(&pe["compute_s"]) <= number(&whole["compute_s"]));
    }
}

fn pes_add_up_to_nodes(report: &Value) {
    let nodes = list(&report["nodes"]);
    assert_near(sum(nodes, "share"), 1.0, 1e-9, "shares");
    for node in nodes {
        let pes = list(&node["pes"]);
        for key in
            ["share", "compute_s", "idle_s", "overhead_s", "init_s", "chares", "entries", "messages", "bytes"]
        {
            assert_near(sum(pes, key), number(&node[key]), 1e-9, key);
        }
        assert!(number(&node["bytes"]) <= number(&node["sent_bytes"]), "{node}");
        for key in ["chares", "entries", "messages"] {
            assert!(pes.iter().all(|pe| number(&pe[key]) >= 1.0), "{key}: {node}");
        }
    }
    // Block by block, from a PE to another node's.
    assert!(report["facts"]["algorithm"] != "cannon" || sum(nodes, "bytes") > 8.0 * 300.0 * 50.0);
}

fn what_was_sent_has_arrived(report: &Value) {
    let nodes = list(&report["nodes"]).iter().map(|node| &node["whole"]);
    let all: Vec<&Value> = nodes.chain([&report["launcher"]]).collect();
    for (sent, received) in [("sent_messages", "received_messages"), ("sent_bytes", "received_bytes")] {
        assert_eq!(sum(all.iter().copied(), sent), sum(all.iter().copied(), received), "{sent}: {all:?}");
        assert!(all.iter().all(|end| number(&end[sent]) > 0.0), "{all:?}");
    }
}

#[test]
fn a_report_says_what_ran_where_and_when() {
    let folder = tempfile::tempdir().unwrap();
    nodes_of_speed(folder.path(), &[(1, 1.0)]);
    let report = report(folder.path(), &["--n", "20", "--speed", "equal"]);
    let text = |key: &str| report[key].as_str().unwrap().to_string();
    assert_eq!(
        (text("schema"), text("program"), text("app")),
        words("metachare-run/1", "metachare", "matmul")
    );
    assert_eq!(text("version"), env!("CARGO_PKG_VERSION"));
    let commit = text("commit");
    match head() {
        Some(head) => assert_eq!(commit, head),
        None => assert!(commit == "unknown" || commit.len() == 40, "{commit}"),
    }
    let digits = text("executable");
    assert!(digits.len() == 64 && digits.chars().all(|c| c.is_ascii_hexdigit()), "{digits}");
    let line: Vec<&str> = list(&report["command_line"]).iter().filter_map(Value::as_str).collect();
    assert_eq!(line[..3], [METACHARE, "run", "matmul"]);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert_near(number(&report["started_unix_ms"]) / 1e3, now, 120.0, "start");
    assert!(text("started").starts_with("20") && text("started").ends_with('Z'));
    let node = &report["nodes"][0];
    assert_eq!((&node["name"], &node["host"]), (&"n0".into(), &"localhost".into()));
    assert!(!node["cpu"].as_str().unwrap().is_empty());
    assert!(!report["launcher"]["host"].as_str().unwrap().is_empty());
}

fn words(schema: &str, program: &str, app: &str) -> (String, String, String) {
    (schema.into(), program.into(), app.into())
}

/// The commit that this repository is at, where git and its repository are there.
fn head() -> Option<String> {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let is_ours =
        std::path::Path::new(&git(&["rev-parse", "--show-toplevel"])?).join("chares/build.rs").exists();
    is_ours.then(|| git(&["rev-parse", "HEAD"])).flatten()
}

#[test]
fn a_run_that_fails_is_reported_as_far_as_it_got() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "nodes.toml", "[[node]]\nname = \"tiny\"\npes = 1\nmemory = \"16MiB\"\n");
    let words = ["run", "matmul", "--n", "1000", "--speed", "equal", "--report", "run.json"];
    let done = run(folder.path(), &words);
    assert_eq!(done.code, 65, "{done:?}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    // Nothing ran, and nothing was sent.
    is_as_documented(&report, &["entries[]", "nodes[].sent_to[]"]);
    let sentence = report["error"].as_str().unwrap();
    assert!(sentence.contains("tiny") && done.last_error().contains(sentence), "{sentence}: {done:?}");
    assert_eq!((&report["exit_code"], &report["verified"]), (&65.into(), &Value::Null));
}
