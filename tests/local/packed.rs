//! Chares whose state is packed and unpacked between any two of their entry methods, as if they moved each time; and
//! chares that do move.

use super::{METACHARE, run};
use harness::local_nodes;
use serde_json::Value;
use std::path::Path;

/// Applications, each with what it writes, and whether it has chares that move: those of a group stay.
pub(super) const ALL: [(&str, &str, &str, bool); 20] = [
    ("matmul --n 70 --algorithm cannon --deterministic", "--out", "c.npy", true),
    ("matmul --n 70 --algorithm fox --deterministic", "--out", "c.npy", true),
    ("matmul --n 70 --algorithm fox-hey-otto --deterministic", "--out", "c.npy", true),
    ("matmul --n 70 --algorithm conventional --deterministic", "--out", "c.npy", true),
    ("gauss --n 90 --algorithm blocked --block 8", "--out", "x.npy", true),
    ("gauss --n 50 --algorithm columns", "--out", "x.npy", true),
    ("jacobi --n 90 --blocks-per-pe 3", "--out", "x.npy", true),
    ("jacobi --n 90 --generate laplace2d --blocks-per-pe 3", "--out", "x.npy", true),
    ("apsp --n 60 --algorithm dijkstra", "--out", "d.npy", false),
    ("apsp --n 60 --algorithm floyd-warshall", "--out", "d.npy", true),
    ("statics --size 4 --shake 0.05 --max-force 1e-3 --mode cblocks", "--xyz", "end.xyz", true),
    ("statics --size 4 --shake 0.05 --max-force 1e-3 --mode replicated", "--xyz", "end.xyz", false),
    (
        "statics --size 3 --shake 0.05 --max-force 1e-2 --box xyz --max-pressure 0.5 --mode cblocks",
        "--xyz",
        "end.xyz",
        true,
    ),
    ("fem --physics swelling --elements 8 --steps 2", "--out", "u.npy", true),
    ("fem --elements 12 --subdomains 6 --coarsest 40 --verify", "--out", "u.npy", true),
    ("mis --vertices 150 --density 0.2 --deterministic --verify", "--out", "set.txt", true),
    (
        "mis --vertices 150 --density 0.2 --lim 3,2,1 --adjacency partitioned --deterministic --verify",
        "--out",
        "set.txt",
        true,
    ),
    (
        "pic --particles 2000 --cells 24x6 --steps 40 --thermal 0.02 --scheme regions --regions 3 --verify",
        "--out",
        "end.npy",
        true,
    ),
    (
        "pic --particles 2000 --cells 24x6 --steps 40 --thermal 0.02 --grid distributed --regions 2 --verify",
        "--out",
        "end.npy",
        true,
    ),
    ("imbalance --chares 24 --steps 60 --work 2000 --reduce-every 3 --verify", "--out", "ends.npy", true),
];

#[test]
fn applications_give_the_same_bits_though_their_chares_travel() {
    for (words, option, name, moves) in ALL {
        let mut moved = 0;
        let results = [&[][..], &["--always-pup"], &["--wander", "1"], &["--wander", "2"]].map(|packed| {
            let folder = tempfile::tempdir().unwrap();
            local_nodes(folder.path(), &[2, 1]);
            let words: Vec<&str> = ["run"].into_iter().chain(words.split(' ')).collect();
            let how = ["--speed", "equal", "--quiet", "--report", "report.json", option, name];
            let done = run(METACHARE, folder.path(), &[&words, &how[..], packed].concat());
            assert_eq!(done.code, 0, "{words:?}, {packed:?}: {done:?}");
            moved += migrations(&folder.path().join("report.json"));
            assert!(packed.first() == Some(&"--wander") || moved == 0, "{words:?}: {moved} chares moved");
            std::fs::read(folder.path().join(name)).unwrap()
        });
        assert_eq!(moved > 0, moves, "{words}: {moved} chares moved");
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
