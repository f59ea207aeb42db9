//! The command `bench`, gone through once: every operation comes out with figures, as documented.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{Done, is_alive, json, parent, processes_with, signal, start, wait_for, write};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
const SCHEMA: &str = include_str!("../../apps/src/bench/schema.md");

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(METACHARE);
    command.arg("bench").args(words).current_dir(folder).env_remove("METACHARE_NODES");
    command.env("XDG_CACHE_HOME", folder).env("XDG_RUNTIME_DIR", folder);
    command
}

fn bench(folder: &Path, words: &[&str]) -> Done {
    start(&mut command(folder, words)).done()
}

fn results(folder: &Path, words: &[&str]) -> (Done, Value) {
    let done = bench(folder, &[&["--brief", "--json", "bench.json"], words].concat());
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    let text = std::fs::read(folder.join("bench.json")).unwrap();
    (done, serde_json::from_slice(&text).unwrap())
}

fn operations(results: &Value) -> &[Value] {
    results["operations"].as_array().unwrap()
}

#[test]
fn every_operation_has_figures_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let (done, results) = results(folder.path(), &[]);
    let listed = bench(folder.path(), &["--list"]).stdout;
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let measured: Vec<&str> = operations(&results).iter().map(|o| o["key"].as_str().unwrap()).collect();
    assert!(measured.len() > 40 && measured == listed, "{measured:?} and {listed:?}");
    for operation in operations(&results) {
        for key in ["median", "min", "max"] {
            assert!(operation[key].as_f64().unwrap() > 0.0, "{operation}");
        }
        for key in ["name", "setup", "unit", "better"] {
            assert!(!operation[key].as_str().unwrap().is_empty(), "{operation}");
        }
        assert_eq!(operation["stretches"].as_array().unwrap().len(), 1, "{operation}");
        // Nobody measured other systems in this run.
        let peers = operation["peers"].as_array().unwrap();
        assert!(peers.iter().all(|p| p["ratio"].is_null() && p["is_better"].is_null()), "{operation}");
        let row = format!("\n  {} ", operation["key"].as_str().unwrap());
        assert!(done.stdout.contains(&row), "{row} is not in {}", done.stdout);
    }
    let mut found = json::keys(&results, &["command_line", "operations[].stretches"]);
    // That an operation may have none is no reason to leave the list undocumented.
    found.insert("operations[].peers".into());
    assert_eq!(found, json::documented(SCHEMA));
    assert_eq!((&results["schema"], &results["brief"]), (&"metachare-bench/2".into(), &true.into()));
}

#[test]
fn what_is_chosen_is_measured_between_any_nodes_and_compared_with_any_peer() {
    let folder = tempfile::tempdir().unwrap();
    harness::local_nodes(folder.path(), &[1, 2]);
    let peers = r#"{ "schema": 1, "peers": [ { "peer": "Snail 2", "operation": "link/round-trip/64B", "value": 1e6,
        "unit": "ms", "source": "measured" } ] }"#;
    write(folder.path(), "peers.json", peers);
    let words = ["--only", "link/round-trip/6", "--nodes", "nodes.toml", "--peers", "peers.json"];
    let (done, results) = results(folder.path(), &words);
    let keys: Vec<&str> = operations(&results).iter().map(|o| o["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["link/round-trip/64B", "link/round-trip/64KiB"]);
    let operation = &operations(&results)[0];
    let peer = &operation["peers"][0];
    assert_eq!((&peer["peer"], &peer["value"]), (&"Snail 2".into(), &1e9.into()));
    assert_eq!((&peer["is_better"], &peer["source"]), (&true.into(), &"measured".into()));
    let ratio = operation["median"].as_f64().unwrap() / 1e9;
    assert!((peer["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9, "{operation}");
    assert!(done.stdout.contains("x Snail 2, 1000000000 µs measured: better"), "{}", done.stdout);
}

#[test]
fn what_cannot_be_meant_is_refused_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "peers.json", r#"{ "schema": 7, "peers": [] }"#);
    for (words, code, part) in [
        (&["--only", "no/such"][..], 64, "no operation has this in its key"),
        (&["--repeats", "0"], 64, "from 1 to 1000"),
        (&["--peers", "none.json"], 65, "none.json"),
        (&["--peers", "peers.json"], 65, "its schema is 7"),
        (&["--json", "no/such/folder/bench.json"], 73, "bench.json cannot be written"),
        (&["--brief", "--only", "link/rate", "--nodes", "none.toml"], 78, "none.toml"),
    ] {
        let done = bench(folder.path(), words);
        assert_eq!(done.code, code, "{words:?}: {done:?}");
        assert!(done.stderr.starts_with("error: ") && done.stderr.contains(part), "{words:?}: {done:?}");
        assert!(code == 64 || done.stderr.lines().count() == 1, "{words:?}: {done:?}");
    }
    assert!(!folder.path().join("bench.json").exists());
}

#[test]
fn nothing_goes_on_when_whoever_measures_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&mut command(folder.path(), &["--only", "link/", "--repeats", "1000"]));
    let launcher_of = |node: i32| Some(parent(node)).filter(|&launcher| parent(launcher) == running.pid());
    let all: Vec<i32> = wait_for("a run with two nodes", || {
        let nodes: Vec<i32> =
            processes_with("__node").into_iter().filter(|&node| launcher_of(node).is_some()).collect();
        (nodes.len() == 2)
            .then(|| nodes.iter().filter_map(|&node| launcher_of(node)).chain(nodes.clone()).collect())
    });
    signal(running.pid(), "KILL");
    wait_for("the run to end", || all.iter().all(|&pid| !is_alive(pid)).then_some(()));
}
