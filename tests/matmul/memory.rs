//! Products that do not fit: refused before anything is allocated, or divided by what fits.

use super::{ALGORITHMS, report, run};
use serde_json::Value;
use std::path::Path;

/// A nodes file with local nodes of one PE, each with the keys that are given.
fn nodes(folder: &Path, keys: &[&str]) {
    let node = |(at, keys): (usize, &&str)| format!("[[node]]\nname = \"n{at}\"\npes = 1\n{keys}\n");
    harness::write(folder, "nodes.toml", &keys.iter().enumerate().map(node).collect::<String>());
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn a_product_that_fits_nowhere_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &["", ""]);
    for algorithm in ALGORITHMS {
        let words = ["run", "matmul", "--algorithm", algorithm, "--n", "1000000", "--speed", "equal"];
        let done = run(folder.path(), &words);
        assert_eq!(done.code, 65, "{done:?}");
        assert_eq!(done.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{done:?}");
        let sentence = done.last_error();
        assert!(sentence.contains("1000000 x 1000000 product in f64 needs"), "{sentence}");
        assert!(sentence.contains("on host \"localhost\" (with \"n0\""), "{sentence}");
        assert!(!done.stderr.contains("panicked"), "{done:?}");
    }
}

#[test]
fn a_file_of_a_few_entries_that_asks_for_a_huge_matrix_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[""]);
    let text = "%%MatrixMarket matrix coordinate real general\n1000000 1000000 1\n1 1 1\n";
    harness::write(folder.path(), "a.mtx", text);
    let done = run(folder.path(), &["run", "matmul", "--a", "a.mtx", "--b", "a.mtx", "--speed", "equal"]);
    assert_eq!(done.code, 65, "{done:?}");
    assert!(done.last_error().contains("1000000 x 1000000 product in f64 needs"), "{done:?}");
}

#[test]
fn a_node_with_a_limit_gets_a_share_that_fits_and_names_itself_if_none_does() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &["", "memory = \"88MiB\""]);
    for algorithm in ALGORITHMS {
        let words = ["--algorithm", algorithm, "--n", "2400", "--verify", "--speed", "equal"];
        let report = report(folder.path(), &words);
        let share = report["nodes"][1]["share"].as_f64().unwrap();
        assert!(share > 0.05 && share < 0.45, "{algorithm}: {share}");
        assert_eq!(report["verified"], true);
        assert_eq!(report["nodes"][0]["speed"], report["nodes"][1]["speed"]);
        let planned = numbers(&report["facts"]["planned_memory_bytes"]);
        assert!(planned[1] < 66 << 20, "{algorithm}: {planned:?}");
        let held = report["nodes"][1]["memory_bytes"].as_u64().unwrap();
        assert!(held < 82 << 20, "{algorithm}: {held} of {planned:?}");
    }
    let words = ["run", "matmul", "--algorithm", "conventional", "--n", "3600", "--speed", "equal"];
    let done = run(folder.path(), &words);
    assert_eq!(done.code, 65, "{done:?}");
    let sentence = done.last_error();
    assert!(sentence.contains("on node \"n1\", which may take 88 MiB: "), "{sentence}");
    assert!(sentence.ends_with("or raise its `memory` in the nodes file"), "{sentence}");
}

#[test]
fn no_node_holds_much_more_than_was_planned() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &["speed = 1.0", "speed = 0.5", "speed = 0.25"]);
    for algorithm in ALGORITHMS {
        let words = ["--algorithm", algorithm, "--n", "1600", "--q", "16", "--speed", "file"];
        let report = report(folder.path(), &words);
        let planned = numbers(&report["facts"]["planned_memory_bytes"]);
        for (node, planned) in report["nodes"].as_array().unwrap().iter().zip(planned) {
            let held = node["memory_bytes"].as_u64().unwrap();
            // Code, stacks and buffers of the network are no part of the plan.
            assert!(held < planned + (48 << 20), "{algorithm}: {held} where {planned} was planned: {node}");
        }
    }
}
