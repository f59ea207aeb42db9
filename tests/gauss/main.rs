//! Gaussian elimination as its users run it: systems from files and by seed on any mix of nodes, and plain words where there
//! is no solution. `tests/against_scipy gauss` compares many more solutions with LAPACK's.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{Done, local_nodes, start, write};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
const ALGORITHMS: [&str; 2] = ["columns", "blocked"];
const MIXES: [&[u32]; 3] = [&[1], &[2, 1], &[1, 1, 2, 1]];

/// Runs the program in a folder that also holds its cache.
fn run(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    command.args(["run", "gauss", "--report", "run.json", "--speed", "equal"]).args(words);
    command.current_dir(folder).env("XDG_CACHE_HOME", folder).env_remove("METACHARE_NODES");
    start(&mut command).done()
}

/// A run that has to succeed; its report.
fn solved(folder: &Path, words: &[&str]) -> Value {
    let done = run(folder, words);
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let sentence = format!("result verified ({})\n", report["measured"].as_str().unwrap());
    assert!(done.stderr.contains(&sentence) || done.stdout.contains(&sentence), "{sentence} {done:?}");
    report
}

/// The 64-bit numbers of a `.npy` file.
fn numbers(file: &Path) -> Vec<f64> {
    let bytes = std::fs::read(file).unwrap();
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let body = &bytes[10 + length..];
    body.chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Writes a matrix as MatrixMarket has it.
fn market(folder: &Path, name: &str, rows: usize, cols: usize, element: impl Fn(usize, usize) -> f64) {
    let mut text = format!("%%MatrixMarket matrix array real general\n{rows} {cols}\n");
    for j in 0..cols {
        (0..rows).for_each(|i| writeln!(text, "{:e}", element(i, j)).unwrap());
    }
    write(folder, name, &text);
}

/// Integers without a pattern, zero on the diagonal of the first half.
fn coefficient(i: usize, j: usize) -> f64 {
    let bits = (i as u64 * 64 + j as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    if i == j && i < 20 { 0.0 } else { (bits % 23) as f64 - 11.0 }
}

#[test]
fn systems_by_seed_are_solved_on_any_mix() {
    let mut determinants = Vec::new();
    for algorithm in ALGORITHMS {
        for (mix, dtype) in MIXES.into_iter().zip(["f64", "f32", "f64"]) {
            let folder = tempfile::tempdir().unwrap();
            local_nodes(folder.path(), mix);
            let words = ["--algorithm", algorithm, "--n", "500", "--rhs", "3", "--dtype", dtype, "--verify"];
            let report = solved(folder.path(), &words);
            let facts = &report["facts"];
            assert_eq!(
                (&report["verified"], &facts["n"], &facts["rhs"]),
                (&true.into(), &500.into(), &3.into())
            );
            let [residual, by_row] =
                ["scaled_residual", "scaled_residual_by_row"].map(|key| facts[key].as_f64().unwrap());
            assert!(residual > 0.0 && residual < 16.0 && by_row > 0.0 && by_row < 16.0, "{facts}");
            // It is no error of x, and nobody calls it so.
            let measured = format!("scaled residual {residual:.2e}, by row {by_row:.2e}; below 16 is right");
            assert_eq!((&report["measured"], &report["max_error"]), (&measured.into(), &Value::Null));
            let [growth, log10] = ["growth", "log10_det"].map(|key| facts[key].as_f64().unwrap());
            assert!(growth > 1.0 && growth < 500.0, "{facts}");
            determinants.push((log10, facts["sign_det"].as_i64().unwrap()));
            let nodes = report["nodes"].as_array().unwrap();
            let shares: f64 = nodes.iter().map(|node| node["share"].as_f64().unwrap()).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        }
    }
    let (log10, sign) = determinants[0];
    let is_same = |(other, of): &(f64, i64)| (other - log10).abs() < 0.01 && *of == sign;
    assert!(determinants.iter().all(is_same), "{determinants:?}");
}

#[test]
fn systems_from_files_have_their_known_solution() {
    let folder = tempfile::tempdir().unwrap();
    let n = 61;
    // The unknowns of the first column are 1, 2, 3, …, those of the second 1, 0, -1, ….
    let x = |i: usize, c: usize| if c == 0 { i as f64 + 1.0 } else { 1.0 - i as f64 };
    market(folder.path(), "a.mtx", n, n, coefficient);
    market(folder.path(), "b.mtx", n, 2, |i, c| (0..n).map(|j| coefficient(i, j) * x(j, c)).sum());
    for (algorithm, mix) in ALGORITHMS.into_iter().flat_map(|algorithm| MIXES.map(|mix| (algorithm, mix))) {
        local_nodes(folder.path(), mix);
        let files = ["--a", "a.mtx", "--b", "b.mtx", "--out", "x.npy"];
        solved(folder.path(), &[&files[..], &["--verify", "--algorithm", algorithm]].concat());
        let found = numbers(&folder.path().join("x.npy"));
        assert_eq!(found.len(), 2 * n);
        for (at, value) in found.iter().enumerate() {
            let due = x(at / 2, at % 2);
            assert!(
                (value - due).abs() < 1e-8,
                "{algorithm} on {mix:?}: unknown {at} is {value}, {due} is due"
            );
        }
        std::fs::remove_file(folder.path().join("x.npy")).unwrap();
    }
    let report = solved(folder.path(), &["--a", "a.mtx", "--b", "b.mtx", "--out", "x.mtx"]);
    let residual = report["facts"]["scaled_residual"].as_f64().unwrap();
    assert_eq!(report["measured"], format!("scaled residual {residual:.2e}; below 16 is right"));
    let text = std::fs::read_to_string(folder.path().join("x.mtx")).unwrap();
    assert!(text.starts_with("%%MatrixMarket matrix array real general\n61 2\n"), "{text}");
}

#[test]
fn what_has_no_solution_ends_with_one_sentence_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 2]);
    let n = 40;
    market(folder.path(), "b.mtx", n, 1, |_, _| 1.0);
    market(folder.path(), "copied.mtx", n, n, |i, j| coefficient(i, if j == 33 { 3 } else { j }));
    market(folder.path(), "zeros.mtx", n, n, |i, j| if i == 8 { 0.0 } else { coefficient(i, j) });
    market(folder.path(), "wide.mtx", n, n + 1, coefficient);
    market(folder.path(), "tiny.mtx", n, n, |i, j| 1e-310 * coefficient(i, j));
    market(folder.path(), "long.mtx", n + 1, 1, |_, _| 1.0);
    let cases = [
        ("copied.mtx", "b.mtx", "no pivot is left in column 33, counted from 0"),
        ("zeros.mtx", "b.mtx", "row 8, counted from 0, has nothing but zeros"),
        ("wide.mtx", "b.mtx", "the coefficients of a system must be square"),
        ("tiny.mtx", "b.mtx", "is beyond the range of f64: scale the system"),
        ("copied.mtx", "long.mtx", "both must have as many rows"),
    ];
    for ((a, b, words), algorithm) in
        cases.into_iter().flat_map(|case| ALGORITHMS.map(|algorithm| (case, algorithm)))
    {
        let done = run(folder.path(), &["--a", a, "--b", b, "--out", "x.npy", "--algorithm", algorithm]);
        assert!(done.code == 65 && done.last_error().contains(words), "{done:?}");
        assert_eq!(done.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{done:?}");
        assert!(!folder.path().join("x.npy").exists());
    }
    let nodes = "[[node]]\nname = \"small\"\nmemory = \"100 MiB\"\n";
    write(folder.path(), "nodes.toml", nodes);
    let done = run(folder.path(), &["--n", "8000"]);
    let words = "a system of 8000 unknowns with one right-hand side in f64 needs";
    assert!(done.code == 65 && done.last_error().contains(words), "{done:?}");
}
