//! The matrix product as its users run it: right products of files on any mix of nodes, reports that add up,
//! and speeds from every source. `tests/against_numpy` compares many more products with numpy's.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod lending;
mod memory;
mod products;
mod reports;
mod speeds;

use harness::{Done, start};
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
const ALGORITHMS: [&str; 4] = ["conventional", "cannon", "fox", "fox-hey-otto"];

/// Runs the program in a folder that also holds its cache.
fn run(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    command.args(words).current_dir(folder).env("XDG_CACHE_HOME", folder).env_remove("METACHARE_NODES");
    start(&mut command).done()
}

/// Runs a product that has to succeed, with a report; the report.
fn report(folder: &Path, words: &[&str]) -> serde_json::Value {
    let done = run(folder, &[&["run", "matmul", "--report", "run.json"], words].concat());
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    let text = std::fs::read(folder.join("run.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// A nodes file with local nodes of so many PEs and such a speed each.
fn nodes_of_speed(folder: &Path, nodes: &[(u32, f64)]) {
    let node = |(at, (pes, speed)): (usize, &(u32, f64))| {
        format!("[[node]]\nname = \"n{at}\"\npes = {pes}\nspeed = {speed:?}\n")
    };
    harness::write(folder, "nodes.toml", &nodes.iter().enumerate().map(node).collect::<String>());
}
