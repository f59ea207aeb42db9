//! How long runs measure speeds, and when they take those of an earlier run.

use crate::{MISBEHAVING, command};
use harness::{Done, local_nodes, start};
use serde_json::Value;
use std::path::Path;

/// A time of some milliseconds as a multiple of ten.
fn rounded(time: &str) -> String {
    let millis = time.strip_suffix("ms").and_then(|number| number.parse::<f64>().ok());
    millis.map_or_else(|| time.into(), |millis| format!("{:.0}ms", 10.0 * (millis / 10.0).round()))
}

/// What a run with two PEs of a steady pace says, and for how long it measured, each time that it did.
fn measured(
    folder: &Path,
    words: &[&str],
    change: fn(&mut std::process::Command),
) -> (Done, Vec<String>, Value) {
    let run = [
        "run",
        "steady",
        "--nodes",
        "nodes.toml",
        "--log-dir",
        "logs",
        "--log-format",
        "json",
        "--report",
        "run.json",
    ];
    let mut command = command(MISBEHAVING, folder, &[&run, words].concat());
    change(&mut command);
    let done = start(&mut command).done();
    assert_eq!(done.code, 0, "{done:?}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of the run");
    let log: Vec<Value> =
        read("logs/launcher.log").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ended = |line: &&Value| line["span"]["name"] == "measure" && line["fields"]["message"] == "close";
    let budgets =
        log.iter().filter(ended).map(|line| rounded(line["span"]["budget"].as_str().expect("a time")));
    (done, budgets.collect(), serde_json::from_str(&read("run.json")).expect("JSON"))
}

#[test]
fn short_runs_take_speeds_of_an_earlier_one_that_still_hold_and_others_measure_for_a_twentieth_of_their_time()
{
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let run = |words: &[&str]| measured(folder.path(), words, |_| ());
    let is_taken = |words: &[&str]| {
        let (done, budgets, report) = run(words);
        assert_eq!(
            (budgets, &report["speed_source"]),
            (vec!["20ms".to_string()], &Value::from("cached")),
            "{words:?}"
        );
        assert!(
            report["speeds_age_s"].is_u64() && report["speeds_drift"].as_f64().unwrap() < 0.2,
            "{report}"
        );
        assert!(done.stderr.contains("speeds are those of an earlier run, "), "{done:?}");
        assert!(done.stdout.contains("speeds are those of an earlier run, "), "{done:?}");
    };
    let is_measured = |words: &[&str], wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        let (done, budgets, report) = run(words);
        assert_eq!((budgets, &report["speed_source"]), (wanted, &Value::from("measured")));
        assert_eq!((&report["speeds_age_s"], &report["speeds_drift"]), (&Value::Null, &Value::Null));
        assert!(done.stderr.contains("speeds were measured in "), "{done:?}");
    };
    is_measured(&[], &["20ms", "100ms"]);
    is_taken(&[]);
    // Ten seconds for two PEs.
    is_measured(&["--work", "20"], &["20ms", "500ms"]);
    is_taken(&["--work", "20"]);
    is_taken(&[]);
    is_measured(&["--pace", "3"], &["20ms", "100ms"]);
    is_measured(&["--speed", "measured"], &["1.8s"]);
    is_taken(&[]);
}

#[test]
fn a_run_without_a_home_or_with_a_damaged_file_measures() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let both = ["20ms", "100ms"];
    for _ in 0..2 {
        let (_, budgets, _) = measured(folder.path(), &["--quiet"], |command| {
            command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
        });
        assert_eq!(budgets, both, "nothing can be kept");
    }
    let kept = folder.path().join("metachare/speeds.json");
    std::fs::create_dir_all(folder.path().join("metachare")).unwrap();
    harness::write(folder.path(), "metachare/speeds.json", "{ half of a file");
    let (done, budgets, _) = measured(folder.path(), &["--quiet"], |_| ());
    assert_eq!(budgets, both);
    assert!(done.stderr.contains("are not used") && !done.stderr.contains("measured in"), "{done:?}");
    assert!(std::fs::read_to_string(kept).unwrap().contains("steady"), "it is written anew");
    let (done, budgets, _) = measured(folder.path(), &["--quiet"], |_| ());
    assert!(budgets == ["20ms"] && done.stderr.is_empty(), "{done:?}");
}
