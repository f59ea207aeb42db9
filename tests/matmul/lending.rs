//! Speeds that are quite wrong: late PEs hand work over while it goes on, and nothing is lost or done twice.

use super::report;
use harness::write;
use std::path::Path;

/// Three nodes, of which one has a fifth of its core, whatever its speed is said to be.
const UNLIKE: &str = "[[node]]\nname = \"n0\"\npes = 1\n\n[[node]]\nname = \"n1\"\npes = 1\ncpu_share = 0.2\n\n\
                      [[node]]\nname = \"n2\"\npes = 1\n";
const ONE: &str = "[[node]]\nname = \"n0\"\npes = 1\n";

fn product(folder: &Path, nodes: &str, out: &str) -> serde_json::Value {
    write(folder, "nodes.toml", nodes);
    let words = ["--algorithm", "conventional", "--rows", "1111", "--inner", "900", "--n", "1001", "--speed"];
    report(folder, &[&words[..], &["equal", "--deterministic", "--verify", "--out", out]].concat())
}

#[test]
fn rows_are_lent_by_whom_speeds_promise_too_much_and_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let lent = product(folder.path(), UNLIKE, "lent.npy");
    let done: Vec<u64> = serde_json::from_value(lent["facts"]["units_done"].clone()).unwrap();
    assert_eq!(done.iter().sum::<u64>(), 3 * 16 * 8, "chares of three PEs, and stripes");
    assert!(done[1] < 16 * 8 && done[0] + done[2] > 2 * 16 * 8, "{done:?}");
    let alone = product(folder.path(), ONE, "alone.npy");
    assert_eq!(
        alone["facts"]["units_done"],
        serde_json::json!([3 * 8]),
        "inside a node chares have up to 500 rows"
    );
    let bits = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(bits("lent.npy") == bits("alone.npy"));
}

#[test]
fn factors_from_files_are_lent_as_generated_ones_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    product(path, ONE, "a.npy");
    report(path, &["--rows", "1001", "--inner", "800", "--n", "777", "--out", "b.npy"]);
    write(path, "nodes.toml", UNLIKE);
    let words =
        ["--algorithm", "conventional", "--a", "a.npy", "--b", "b.npy", "--kernel", "plain", "--verify"];
    let lent = report(path, &[&words[..], &["--speed", "equal"]].concat());
    let done: Vec<u64> = serde_json::from_value(lent["facts"]["units_done"].clone()).unwrap();
    assert!(done.iter().sum::<u64>() == 3 * 16 * 8 && done[1] < 16 * 8, "{done:?}");
}
