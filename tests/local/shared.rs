//! Nodes of this machine send each other their messages through shared memory: that they do, that they can do without,
//! and what becomes of it when a node is killed or frozen.

use crate::{END, LONG, METACHARE, STENCIL, command};
use harness::{Done, is_alive, local_nodes, signal, start, wait_for, wait_for_work};
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

const STEPS: &str = "run --steps 400 --cells 64 --quiet --report run.json";

/// Runs a line of the shell; the run and its report.
fn reported(folder: &Path, line: &str) -> (Done, Value) {
    let done = start(&mut command("sh", folder, &["-c", line])).done();
    assert_eq!(done.code, 0, "{line}: {done:?}");
    let report = std::fs::read(folder.join("run.json")).expect("a report");
    (done, serde_json::from_slice(&report).expect("a report in JSON"))
}

/// Names of those that each node shares memory with, sorted.
fn sharers(report: &Value) -> Vec<Vec<&str>> {
    let nodes = report["nodes"].as_array().expect("a list").iter();
    nodes
        .map(|node| {
            let names = node["shares_memory_with"].as_array().expect("a list").iter();
            let mut names: Vec<&str> = names.map(|name| name.as_str().expect("a name")).collect();
            names.sort_unstable();
            names
        })
        .collect()
}

/// How many mappings of shared memory a process has.
fn mappings(pid: i32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter(|line| line.contains("/memfd:metachare")).count()
}

#[test]
fn local_nodes_share_memory_unless_told_otherwise_and_results_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 2, 1]);
    let (shared, report) = reported(folder.path(), &format!("exec {STENCIL} {STEPS}"));
    let all = [&["b", "c", "launcher"][..], &["a", "c", "launcher"], &["a", "b", "launcher"]];
    // Who never talks to another has no connection to it, but the launcher talks to all.
    for (sharers, all) in sharers(&report).iter().zip(all) {
        assert!(sharers.contains(&"launcher") && sharers.iter().all(|name| all.contains(name)), "{report}");
    }
    assert!(sharers(&report).concat().iter().any(|name| *name != "launcher"), "{report}");
    let (by_option, report) = reported(folder.path(), &format!("exec {STENCIL} {STEPS} --transport quic"));
    assert_eq!(sharers(&report), [[""; 0]; 3]);
    let file = folder.path().join("nodes.toml");
    let nodes = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("[network]\ntransport = \"quic\"\n{nodes}")).unwrap();
    let (by_file, report) = reported(folder.path(), &format!("exec {STENCIL} {STEPS}"));
    assert_eq!(sharers(&report), [[""; 0]; 3]);
    assert_eq!((&shared.stdout, &shared.stdout), (&by_option.stdout, &by_file.stdout));
}

#[test]
fn big_messages_come_whole_and_the_same_by_either_way() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1, 1, 1]);
    let products = ["auto", "quic"].map(|transport| {
        let line = format!(
            "exec {METACHARE} run matmul --n 1200 --algorithm cannon --deterministic --verify --out c.npy --speed equal \
             --quiet --report run.json --transport {transport}"
        );
        let (_, report) = reported(folder.path(), &line);
        assert_eq!((&report["verified"], sharers(&report).concat().is_empty()), (&true.into(), transport == "quic"));
        std::fs::read(folder.path().join("c.npy")).unwrap()
    });
    assert!(products[0] == products[1], "products differ");
}

#[test]
fn where_the_memory_cannot_be_had_messages_go_by_quic() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let line = |limit| format!("ulimit {limit}; RUST_LOG=info exec {STENCIL} {STEPS}");
    // Of all limits this one concerns nothing else in such a run.
    let (limited, report) = reported(folder.path(), &line("-f 2000"));
    assert_eq!(sharers(&report), [[""; 0]; 2], "{report}");
    assert!(limited.stderr.contains("go by QUIC: no memory is shared with it"), "{limited:?}");
}

#[test]
fn a_node_that_is_killed_or_frozen_is_found_and_no_memory_stays() {
    let is_ours = |file: std::fs::DirEntry| file.file_name().to_string_lossy().contains("metachare");
    let is_left = || std::fs::read_dir("/dev/shm").is_ok_and(|all| all.flatten().any(is_ours));
    for (name, code) in [("KILL", 69), ("STOP", 69)] {
        let folder = tempfile::tempdir().unwrap();
        local_nodes(folder.path(), &[1, 1, 1]);
        let running = start(&mut command(STENCIL, folder.path(), &LONG));
        wait_for_work(folder.path());
        let nodes = running.nodes(3);
        wait_for("nodes that share memory", || nodes.iter().all(|&node| mappings(node) > 1).then_some(()));
        signal(nodes[1], name);
        let told = Instant::now();
        let done = running.done();
        assert!(told.elapsed() < END, "{name}: {:?}", told.elapsed());
        assert_eq!(done.code, code, "{name}: {done:?}");
        assert!(["\"a\"", "\"b\"", "\"c\""].iter().any(|node| done.last_error().contains(node)), "{done:?}");
        wait_for("the nodes to end", || nodes.iter().all(|&node| !is_alive(node)).then_some(()));
    }
    assert!(!is_left(), "something is left in /dev/shm");
}
