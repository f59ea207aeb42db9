//! Jacobi's method as its users run it: the same bits on any mix of nodes, systems from files, and plain words where it
//! cannot work. `tests/against_scipy` compares many more solutions with scipy's.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{Done, local_nodes, start, write};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");

/// Runs the program in a folder that also holds its cache.
fn run(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    command.args(["run", "jacobi", "--report", "run.json"]).args(words);
    command.current_dir(folder).env("XDG_CACHE_HOME", folder).env_remove("METACHARE_NODES");
    start(&mut command).done()
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap()
}

/// A run that has to succeed; its report.
fn solved(folder: &Path, words: &[&str]) -> Value {
    let done = run(folder, words);
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    report(folder)
}

/// A run that has to fail with one sentence; its exit code and the sentence.
fn refused(folder: &Path, words: &[&str]) -> (i32, String) {
    let done = run(folder, words);
    assert_eq!(done.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{done:?}");
    assert!(!done.stderr.contains("panicked"), "{done:?}");
    (done.code, done.last_error().to_owned())
}

#[test]
fn any_mix_of_nodes_gives_the_same_bits_and_a_report() {
    let systems: [&[&str]; 4] = [
        &["--n", "1200", "--rhs", "2"],
        &["--n", "2500", "--generate", "laplace2d"],
        &["--n", "2500", "--generate", "laplace3d", "--dtype", "f32"],
        &["--n", "2500", "--generate", "random"],
    ];
    for words in systems {
        let mut first: Option<(Vec<u8>, Value)> = None;
        // Measuring takes seconds; shares of unlike sizes come from it.
        let speed = if words.contains(&"--rhs") { "measured" } else { "equal" };
        for mix in [&[1][..], &[2, 1], &[1, 1, 2, 1]] {
            let folder = tempfile::tempdir().unwrap();
            local_nodes(folder.path(), mix);
            let report =
                solved(folder.path(), &[words, &["--verify", "--out", "x.npy", "--speed", speed]].concat());
            assert_eq!(report["verified"], true);
            let facts = &report["facts"];
            assert_eq!(
                (&facts["converged"], &facts["rows_not_dominant"]),
                (&Value::from(true), &Value::from(0))
            );
            assert!(facts["last_change"].as_f64().unwrap() <= facts["tolerance"].as_f64().unwrap());
            for key in ["residual", "backward_error"] {
                let found = facts[key].as_f64().unwrap();
                assert!(found > 0.0 && found < 1e-4, "{facts}");
            }
            let measured = format!("backward error {:.2e}", facts["backward_error"].as_f64().unwrap());
            assert_eq!((&report["measured"], &report["max_error"]), (&measured.into(), &Value::Null));
            let shares =
                report["nodes"].as_array().unwrap().iter().map(|node| node["share"].as_f64().unwrap());
            assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
            let made = (std::fs::read(folder.path().join("x.npy")).unwrap(), facts["iterations"].clone());
            assert!(made.1.as_u64().unwrap() > 10);
            assert!(*first.get_or_insert_with(|| made.clone()) == made, "{words:?} on {mix:?}");
        }
    }
}

/// A tridiagonal system whose solution is 1, 2, 3, …, as a list of entries.
fn tridiagonal(folder: &Path, n: usize) {
    let entry = |i: usize, j: usize| if i == j { 4.0 } else { -1.0 };
    let near = |i: usize| (i.saturating_sub(1)..=(i + 1).min(n - 1)).map(move |j| (i, j));
    let entries: Vec<(usize, usize)> = (0..n).flat_map(near).collect();
    let lines = entries.iter().map(|&(i, j)| format!("{} {} {}\n", i + 1, j + 1, entry(i, j)));
    let head = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n", entries.len());
    write(folder, "a.mtx", &(head + &lines.collect::<String>()));
    let right = |i: usize| near(i).map(|(i, j)| entry(i, j) * (j + 1) as f64).sum::<f64>();
    let head = format!("%%MatrixMarket matrix array real general\n{n} 1\n");
    write(folder, "b.mtx", &(head + &(0..n).map(|i| format!("{}\n", right(i))).collect::<String>()));
}

#[test]
fn a_sparse_file_is_solved_row_shares_follow_speeds() {
    let folder = tempfile::tempdir().unwrap();
    tridiagonal(folder.path(), 400);
    let nodes =
        "[[node]]\nname = \"fast\"\npes = 1\nspeed = 1.0\n[[node]]\nname = \"slow\"\npes = 1\nspeed = 0.25\n";
    write(folder.path(), "nodes.toml", nodes);
    let words = [
        "--a",
        "a.mtx",
        "--b",
        "b.mtx",
        "--out",
        "x.npy",
        "--speed",
        "file",
        "--verify",
        "--tolerance",
        "1e-12",
    ];
    let report = solved(folder.path(), &words);
    assert_eq!(report["facts"]["storage"], "sparse");
    let share = report["nodes"][1]["share"].as_f64().unwrap();
    assert!((share - 0.2).abs() < 0.01, "{share}");
    let bytes = std::fs::read(folder.path().join("x.npy")).unwrap();
    let numbers = &bytes[bytes.len() - 400 * 8..];
    for (i, number) in numbers.as_chunks::<8>().0.iter().enumerate() {
        assert!((f64::from_le_bytes(*number) - (i + 1) as f64).abs() < 1e-8, "x[{i}]");
    }
}

#[test]
fn where_it_cannot_work_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 2]);
    let say = |words: &[&str]| refused(folder.path(), &[&["--speed", "equal"], words].concat());
    let (code, said) = say(&["--n", "500", "--dominance", "0.8"]);
    assert!(code == 1 && said.contains("runs away from the solution of this system: in iteration"), "{said}");
    assert!(said.contains("500 of 500 rows are not dominated by their diagonal"), "{said}");
    assert_eq!(report(folder.path())["facts"]["converged"], false);
    // Nothing that did not converge is called right, whether it is looked at or not.
    for (words, verified) in [(&["--verify"][..], Value::from(false)), (&[], Value::Null)] {
        let (code, said) = say(&[&["--n", "500", "--max-iterations", "5", "--out", "x.npy"], words].concat());
        assert!(
            code == 1 && said.contains("no convergence in 5 iterations (x.npy has what it came to)"),
            "{said}"
        );
        assert!(folder.path().join("x.npy").exists() && !said.contains("verified"), "{said}");
        let report = report(folder.path());
        assert_eq!((&report["verified"], &report["exit_code"]), (&verified, &1.into()), "{report}");
    }
    let zero = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2\n2 1 1\n2 3 1\n3 3 2\n";
    write(folder.path(), "zero.mtx", zero);
    write(folder.path(), "b.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n");
    let (code, said) = say(&["--a", "zero.mtx", "--b", "b.mtx"]);
    assert!(
        code == 65 && said.contains("row 1 of the matrix, counted from 0, has 0 on the diagonal"),
        "{said}"
    );
    write(folder.path(), "bad.mtx", &zero.replace("2 3 1", "2 9 1"));
    let (code, said) = say(&["--a", "bad.mtx", "--b", "b.mtx"]);
    assert!(code == 65 && said.contains("bad.mtx:5: position (2, 9) is outside the 3 x 3 matrix"), "{said}");
    write(
        folder.path(),
        "few.mtx",
        "%%MatrixMarket matrix coordinate real general\n900000 900000 1\n1 1 1\n",
    );
    let (code, said) = say(&["--a", "few.mtx", "--b", "few.mtx"]);
    assert!(code == 65 && said.contains("both must have") || said.contains("some row has none"), "{said}");
    let (code, said) = say(&["--n", "1000000"]);
    assert!(
        code == 65
            && said.contains("a dense system of 1000000 unknowns with one right-hand side in f64 needs"),
        "{said}"
    );
    assert_eq!(say(&["--tolerance", "-1"]).0, 64);
}
