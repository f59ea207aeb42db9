//! A node that leaves a run, which goes on without it.

use super::{METACHARE, command, run};
use harness::{is_alive, local_nodes, start, wait_for_work};
use std::fs;

#[test]
fn a_node_leaves_and_the_result_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 2, 1]);
    let words =
        "run imbalance --chares 24 --steps 400 --work 20000 --reduce-every 3 --speed equal --out ends.npy";
    let words: Vec<&str> = words.split(' ').chain(["--report", "run.json"]).collect();
    assert_eq!(run(METACHARE, folder, &words).code, 0);
    let whole = fs::read(folder.join("ends.npy")).unwrap();
    fs::remove_file(folder.join("ends.npy")).unwrap();
    let running = start(&mut command(METACHARE, folder, &words));
    let nodes = running.nodes(3);
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let drain = |node: &str| run(METACHARE, folder, &["nodes", "drain", name.trim(), node]);
    let unknown = drain("x");
    assert_eq!(
        unknown.last_error(),
        "error: no node of this run is called \"x\"; there are a, b, c",
        "{unknown:?}"
    );
    assert!(drain("launcher").last_error().starts_with("error: the launcher stays until the run ends"));
    let drained = drain("b");
    assert_eq!(drained.code, 0, "{drained:?}");
    assert!(drained.stdout.starts_with("b has left: its PEs went on (1 to a, 1 to c) with "), "{drained:?}");
    assert!(drained.stdout.ends_with("; its process has ended\n"), "{drained:?}");
    let alive = nodes.iter().filter(|node| is_alive(**node)).count();
    assert_eq!((drain("b").last_error(), alive), ("error: b has left; there are a, c", 2));
    let done = running.done();
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fs::read(folder.join("ends.npy")).unwrap() == whole, "other bits after a node has left");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    let nodes = report["nodes"].as_array().unwrap();
    let left: Vec<bool> = nodes.iter().map(|node| node["left_s"].is_number()).collect();
    assert_eq!(left, [false, true, false]);
    let pes: Vec<usize> = nodes.iter().map(|node| node["pes"].as_array().unwrap().len()).collect();
    assert_eq!(pes, [2, 2, 2], "{report}");
    assert!(done.stdout.contains("b has left: "), "the table says so: {done:?}");
}
