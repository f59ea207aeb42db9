//! Chares whose state is packed and unpacked between any two of their entry methods, as if they moved each time; and
//! chares that do move.

use super::{METACHARE, run};
use harness::local_nodes;
use serde_json::Value;
use std::path::Path;

/// Applications, each with what it writes.
const ALL: [(&str, &str, &str); 11] = [
    ("matmul --n 70 --algorithm cannon --deterministic", "--out", "c.npy"),
    ("matmul --n 70 --algorithm fox --deterministic", "--out", "c.npy"),
    ("matmul --n 70 --algorithm fox-hey-otto --deterministic", "--out", "c.npy"),
    ("matmul --n 70 --algorithm conventional --deterministic", "--out", "c.npy"),
    ("gauss --n 90 --algorithm blocked", "--out", "x.npy"),
    ("gauss --n 50 --algorithm columns", "--out", "x.npy"),
    ("jacobi --n 90", "--out", "x.npy"),
    ("apsp --n 60 --algorithm dijkstra", "--out", "d.npy"),
    ("apsp --n 60 --algorithm floyd-warshall", "--out", "d.npy"),
    ("statics --size 4 --shake 0.05 --max-force 1e-3 --mode cblocks", "--xyz", "end.xyz"),
    ("statics --size 4 --shake 0.05 --max-force 1e-3 --mode replicated", "--xyz", "end.xyz"),
];

#[test]
fn applications_give_the_same_bits_though_their_chares_travel() {
    for (words, option, name) in ALL {
        let results = [&[][..], &["--always-pup"], &["--wander", "1"], &["--wander", "2"]].map(|packed| {
            let folder = tempfile::tempdir().unwrap();
            local_nodes(folder.path(), &[2, 1]);
            let words: Vec<&str> = ["run"].into_iter().chain(words.split(' ')).collect();
            let how = ["--speed", "equal", "--quiet", "--report", "report.json", option, name];
            let done = run(METACHARE, folder.path(), &[&words, &how[..], packed].concat());
            assert_eq!(done.code, 0, "{words:?}, {packed:?}: {done:?}");
            let moved = migrations(&folder.path().join("report.json"));
            let wanders = packed.first() == Some(&"--wander");
            assert!(if wanders { moved > 10 } else { moved == 0 }, "{words:?}: {moved} chares moved");
            std::fs::read(folder.path().join(name)).unwrap()
        });
        assert!(results[0].len() > 100, "{words}: {} bytes", results[0].len());
        assert!(results.iter().all(|result| *result == results[0]), "{words} gives other bits");
    }
}

/// How many chares have moved in a run.
fn migrations(report: &Path) -> u64 {
    let text = std::fs::read(report).expect("a run that ended well has written its report");
    let report: Value = serde_json::from_slice(&text).expect("a report is JSON");
    let nodes = report["nodes"].as_array().into_iter().flatten();
    let pes = nodes.flat_map(|node| node["pes"].as_array().into_iter().flatten());
    pes.filter_map(|pe| pe["whole"]["migrations"].as_u64()).sum()
}
