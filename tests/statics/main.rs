//! Molecular statics as its users run it: the same bits on any mix of processes and by any mode, figures that add up,
//! and refusals in one sentence.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{Done, start};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");

/// Nodes as (PEs, speed).
const MIXES: [&[(u32, f64)]; 4] = [
    &[(2, 1.0), (1, 0.3)],
    &[(1, 0.25), (2, 1.0), (1, 0.55)],
    &[(1, 1.0), (1, 0.5), (1, 0.5), (1, 0.2), (1, 0.9)],
    &[(1, 1.0), (1, 0.55), (2, 0.25), (1, 0.8), (1, 0.37), (2, 0.1), (1, 0.63)],
];

/// A copper crystal with a vacancy, in 12 blocks.
const CRYSTAL: [&str; 12] = [
    "--size",
    "9,8,8",
    "--block",
    "200",
    "--vacancy",
    "100",
    "--shake",
    "0.05",
    "--max-force",
    "1e-4",
    "--evaluations",
    "30",
];

fn run(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    command.args(words).current_dir(folder).env("XDG_CACHE_HOME", folder).env_remove("METACHARE_NODES");
    start(&mut command).done()
}

fn nodes(folder: &Path, nodes: &[(u32, f64)], more: &str) {
    let node = |(at, (pes, speed)): (usize, &(u32, f64))| {
        format!("[[node]]\nname = \"n{at}\"\npes = {pes}\nspeed = {speed:?}\n{more}\n")
    };
    harness::write(folder, "nodes.toml", &nodes.iter().enumerate().map(node).collect::<String>());
}

fn relaxed(folder: &Path, words: &[&str]) -> Value {
    let words =
        [&["run", "statics", "--speed", "file", "--report", "run.json"], &CRYSTAL[..], words].concat();
    let done = run(folder, &words);
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap()
}

/// What must not depend on the nodes.
fn result(report: &Value) -> [Value; 5] {
    let facts = &report["facts"];
    ["digest", "energy_ev", "max_force_ev_per_a", "evaluations", "stop"].map(|key| facts[key].clone())
}

#[test]
fn any_mix_and_any_mode_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0)], "");
    let expected = relaxed(folder.path(), &["--mode", "serial"]);
    assert_eq!(expected["facts"]["atoms"], 2303, "{expected}");
    assert!(expected["facts"]["evaluations"].as_u64().unwrap() > 3, "{expected}");
    for mix in MIXES {
        nodes(folder.path(), mix, "");
        for mode in ["cblocks", "replicated"] {
            let report = relaxed(folder.path(), &["--mode", mode]);
            assert_eq!(result(&report), result(&expected), "{mode} on {mix:?}");
        }
    }
}

#[test]
fn figures_of_the_nodes_add_up() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(2, 1.0), (1, 0.5)], "");
    let report = relaxed(folder.path(), &[]);
    let tables = &report["facts"]["tables"];
    let nodes = tables["nodes"].as_array().unwrap();
    let sum = |key: &str| nodes.iter().map(|node| node[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("owned"), &tables["atoms"]), (2303, &2303.into()), "{tables}");
    assert_eq!(report["facts"]["blocks"], sum("blocks"), "{report}");
    assert_eq!(sum("total"), sum("owned") + sum("needed"));
    assert!(nodes.iter().all(|node| node["needed"].as_u64() > Some(0)), "{tables}");
    // Unlike speeds are given in the nodes file: the shares follow them.
    assert!(nodes[0]["owned"].as_u64() > nodes[1]["owned"].as_u64(), "{tables}");
    let number = |key: &str| tables[key].as_f64().unwrap();
    assert!(number("symmetry_loss_percent") > 5.0 && number("bytes_per_atom") > 100.0, "{tables}");
    assert!(number("unbalanced_seconds") >= number("balanced_seconds"), "{tables}");
    // A place is 24 bytes and a slope 8, for each ghost and evaluation; and there is little else.
    let evaluations = report["facts"]["evaluations"].as_u64().unwrap();
    let least = sum("received") * 32 * (evaluations - 1);
    let sent: f64 =
        report["nodes"].as_array().unwrap().iter().map(|node| node["sent_bytes"].as_f64().unwrap()).sum();
    assert!(sent > least as f64 && sent < 1.6 * least as f64 + 3e5, "{sent} bytes, at least {least}");
}

#[test]
fn what_does_not_fit_or_makes_no_sense_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0), (1, 1.0)], "");
    harness::write(folder.path(), "bad.eam.alloy", "a\nb\nc\n1 Cu\n5 x\n");
    let cases: [(&[&str], &str); 8] = [
        (&["--size", "2000"], "a crystal of 32000000000 atoms needs"),
        (&["--size", "3,4"], "give one number of cells, or three"),
        (&["--size", "0"], "each axis takes 1 to 1000000"),
        (&["--element", "Xx"], "no built-in Sutton-Chen parameters for Xx"),
        (&["--vacancy", "4000"], "ids run from 0 to 3999"),
        (&["--skin", "NaN"], "give 0 to 10 A"),
        (&["--ends", "xq"], "'q' is no axis"),
        (&["--potential", "bad.eam.alloy"], "bad.eam.alloy, line "),
    ];
    for (words, sentence) in cases {
        let done = run(folder.path(), &[&["run", "statics", "--speed", "equal"], words].concat());
        assert_eq!(done.code, 65, "{words:?}: {done:?}");
        assert_eq!(done.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{done:?}");
        assert!(done.last_error().contains(sentence), "{words:?}: {done:?}");
        assert!(!done.stderr.contains("panicked"), "{done:?}");
    }
}

/// A limit on a node makes its share smaller, and the others take over; the result stays.
#[test]
fn memory_is_stated_before_the_start_and_limits_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0), (1, 1.0)], "");
    let free = relaxed(folder.path(), &[]);
    let planned = |report: &Value| -> Vec<u64> {
        let planned = report["facts"]["planned_memory_bytes"].as_array().unwrap();
        planned.iter().map(|bytes| bytes.as_u64().unwrap()).collect()
    };
    let held =
        |report: &Value, node: usize| report["facts"]["tables"]["nodes"][node]["bytes"].as_u64().unwrap();
    let plan = planned(&free);
    assert!((0..2).all(|node| plan[node] > held(&free, node)), "{plan:?}: {free}");
    let done = run(folder.path(), &["run", "statics", "--size", "2000", "--speed", "equal"]);
    assert!(done.last_error().contains("GiB on") || done.last_error().contains("TiB on"), "{done:?}");
}
