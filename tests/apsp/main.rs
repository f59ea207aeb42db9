//! Shortest paths as their users have them found: right ones on any mix of nodes, statistics, what is refused and how.
//! `tests/against_scipy` compares many more graphs with scipy's.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{Done, local_nodes, start, write};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
const ALGORITHMS: [&str; 2] = ["dijkstra", "floyd-warshall"];
/// 1 -> 2 -> 3 -> 1, 3 -> 4 by two arcs, a loop, and 5 by itself.
const GRAPH: &str = "c a test\np sp 5 6\na 1 2 3\na 2 3 0\na 3 1 4\na 3 4 9\na 3 4 2\na 4 4 1\n";

/// Runs the program in a folder that also holds its cache.
fn run(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    command.args(["run", "apsp", "--report", "run.json"]).args(words).current_dir(folder);
    start(command.env("XDG_CACHE_HOME", folder).env_remove("METACHARE_NODES")).done()
}

/// Runs it to a good end; the report.
fn report(folder: &Path, words: &[&str]) -> Value {
    let done = run(folder, words);
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap()
}

/// What a run that cannot end well says, and its exit code.
fn refused(folder: &Path, words: &[&str]) -> (i32, String) {
    let done = run(folder, words);
    assert!(done.code != 0 && !done.stderr.contains("panicked"), "{words:?}: {done:?}");
    (done.code, done.last_error().to_string())
}

#[test]
fn distances_of_a_file_are_the_same_on_any_mix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write(path, "g.gr", GRAPH);
    let far = i32::MAX;
    let expected = [
        [0, 3, 3, 5, far],
        [4, 0, 0, 2, far],
        [4, 7, 0, 2, far],
        [far, far, far, 0, far],
        [far, far, far, far, 0],
    ];
    let bytes: Vec<u8> = expected.iter().flatten().flat_map(|d: &i32| d.to_le_bytes()).collect();
    let mut files = Vec::new();
    for (algorithm, pes) in [
        ("dijkstra", &[1][..]),
        ("dijkstra", &[2, 1, 1]),
        ("floyd-warshall", &[1]),
        ("floyd-warshall", &[1, 2]),
    ] {
        local_nodes(path, pes);
        let block: &[&str] = if algorithm == "dijkstra" { &[] } else { &["--block", "2"] };
        let words = [
            "--graph",
            "g.gr",
            "--algorithm",
            algorithm,
            "--out",
            "d.npy",
            "--predecessors",
            "p.npy",
            "--verify",
        ];
        let report = report(path, &[&words[..], &["--speed", "equal"], block].concat());
        let facts = &report["facts"];
        assert_eq!(
            (&report["verified"], &facts["verified_rows"], &facts["algorithm"]),
            (&true.into(), &5.into(), &algorithm.into())
        );
        assert_eq!(
            (&facts["diameter"], &facts["radius"], &facts["unreachable_pairs"]),
            (&7.0.into(), &0.0.into(), &11.into())
        );
        let file = std::fs::read(path.join("d.npy")).unwrap();
        assert_eq!(&file[file.len() - 100..], bytes, "{algorithm} {pes:?}");
        files.push((file, std::fs::read(path.join("p.npy")).unwrap()));
    }
    assert!(files.windows(2).all(|two| two[0] == two[1]), "there is one shortest path between each two");
}

#[test]
fn generated_graphs_are_found_right_by_nodes_that_measure_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write(
        path,
        "nodes.toml",
        "[[node]]\nname = \"a\"\npes = 2\n\n[[node]]\nname = \"b\"\npes = 1\ncpu_share = 0.3\n",
    );
    let report_of = |words: &[&str]| report(path, &[&["--verify", "--statistics", "s.csv"], words].concat());
    let dijkstra = report_of(&["--n", "3000", "--weights", "float"]);
    let done: Vec<u64> = serde_json::from_value(dijkstra["facts"]["sources_done"].clone()).unwrap();
    assert_eq!((done.len(), done.iter().sum::<u64>()), (3, 3000));
    assert!(done[2] < done[0] + done[1], "{done:?}");
    assert!(dijkstra["ideal_s"].as_f64().unwrap() > 0.0 && dijkstra["efficiency"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read_to_string(path.join("s.csv")).unwrap().lines().count(), 3001);
    let floyd = report_of(&["--algorithm", "floyd-warshall", "--n", "500"]);
    assert_eq!((&floyd["facts"]["dtype"], &floyd["facts"]["block"]), (&"i32".into(), &64.into()));
    let some = report_of(&["--n", "3000", "--sources", "7..12", "--out", "d.npy"]);
    assert_eq!(some["facts"]["sources"], 5);
    assert_eq!(std::fs::read(path.join("d.npy")).unwrap().len(), 128 + 5 * 3000 * 4);
}

#[test]
fn what_cannot_be_is_refused_by_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    local_nodes(path, &[1, 1]);
    write(path, "g.gr", &GRAPH.replace("a 2 3 0", "a 2 3 -2"));
    let all = |algorithm| {
        refused(path, &["--graph", "g.gr", "--algorithm", algorithm, "--speed", "equal", "--out", "d.npy"])
    };
    let (code, sentence) = all("dijkstra");
    assert!(code == 65 && sentence.contains("g.gr:4: the weight -2 is negative"), "{sentence}");
    report(path, &["--graph", "g.gr", "--algorithm", "floyd-warshall", "--speed", "equal", "--verify"]);
    for algorithm in ALGORITHMS {
        write(path, "g.gr", &GRAPH.replace("a 3 1 4", "a 3 6 4"));
        let (code, sentence) = all(algorithm);
        assert!(code == 65 && sentence.contains("g.gr:5: vertex 6 is not one of 1 to 5"), "{sentence}");
        // A few bytes may ask for any number of vertices.
        write(path, "g.gr", "p sp 1000000000 1\na 1 2 3\n");
        let (code, sentence) = all(algorithm);
        assert!(code == 65 && sentence.contains("1000000000") && sentence.contains("needs"), "{sentence}");
    }
    assert!(!path.join("d.npy").exists());
    let (code, sentence) = refused(path, &["--out", "no/d.npy"]);
    assert!(code == 73 && sentence.contains("--out no/d.npy: it cannot be written there"), "{sentence}");
}

#[test]
fn a_negative_cycle_ends_the_run_and_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    write(folder.path(), "g.txt", "0 1 5\n1 2 -3\n2 0 -3\n2 3 1\n");
    let words = ["--graph", "g.txt", "--algorithm", "floyd-warshall", "--block", "1", "--speed", "equal"];
    let (code, sentence) = refused(folder.path(), &words);
    assert!(code == 65 && sentence.contains("(vertices counted from 0), -1 in all"), "{sentence}");
}

#[test]
fn a_node_without_memory_for_the_graph_is_named_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "nodes.toml",
        "[[node]]\nname = \"a\"\npes = 1\n\n[[node]]\nname = \"b\"\npes = 1\nmemory = \"100MiB\"\n",
    );
    for (algorithm, n) in [("dijkstra", "3000000"), ("floyd-warshall", "60000")] {
        let words = ["--algorithm", algorithm, "--n", n, "--speed", "equal"];
        let (code, sentence) = refused(folder.path(), &words);
        assert!(code == 65 && sentence.contains("on node \"b\", which may take 100 MiB"), "{sentence}");
    }
}

/// The program may not take more than 3 GB here, and a list of these arcs has 16.
#[test]
fn a_graph_that_does_not_fit_is_refused_before_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "nodes.toml", "[[node]]\nname = \"a\"\npes = 1\nmemory = \"100MiB\"\n");
    for algorithm in ALGORITHMS {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 3000000 && exec \"$0\" \"$@\"", METACHARE, "run", "apsp"]);
        command.args([
            "--speed",
            "equal",
            "--generate",
            "road",
            "--n",
            "400000000",
            "--algorithm",
            algorithm,
        ]);
        command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path()).env_remove("METACHARE_NODES");
        let done = start(&mut command).done();
        let is_refused = done.code == 65 && done.last_error().contains("which may take");
        assert!(is_refused, "{algorithm}: {done:?}");
    }
}
