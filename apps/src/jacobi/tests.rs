//! Whole runs inside one process, everything packed.

use super::arguments::{self, Jacobi};
use super::{add_to, drive};
use crate::matrix::{Matrix, market, npy};
use chares::{InProcess, Program, RunError};
use clap::{Command, FromArgMatches as _};
use command::CommandLine;
use std::path::Path;

fn of(words: &[&str]) -> Jacobi {
    let command = <Jacobi as clap::Args>::augment_args(Command::new("jacobi"));
    let parsed = Jacobi::from_arg_matches(&command.get_matches_from([&["jacobi"], words].concat())).unwrap();
    arguments::check(&parsed).unwrap();
    parsed.completed()
}

fn run(mix: &InProcess, words: &[&str]) -> Result<(), RunError> {
    let jacobi = of(words);
    add_to(CommandLine::new(Program::new("test", "1")))
        .into_program()
        .run_in_process(mix, |main| drive::drive(main, jacobi))
}

/// The solution that a run writes, after it has been checked.
fn solved(mix: &InProcess, words: &[&str]) -> Matrix<f64> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.npy");
    run(mix, &[words, &["--verify", "--out", &out.display().to_string()]].concat()).unwrap();
    npy::read(&out).unwrap()
}

fn mixes() -> [InProcess; 4] {
    [
        InProcess::new(&[1]),
        InProcess::new(&[2, 1]).always_pup(),
        InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.01]).always_pup(),
        InProcess::new(&[3, 3, 2]).speeds(&[1.0, 0.9, 0.8, 0.2, 0.2, 0.2, 1.0, 0.5]),
    ]
}

/// Some blocks on each PE.
const MORE: &[&str] = &["--blocks-per-pe", "5"];

/// Whatever the machines, whatever comes first: each number is the same to the last bit.
#[test]
fn every_mix_gives_the_same_bits() {
    let systems: [&[&str]; 8] = [
        &["--n", "1"],
        &["--n", "2"],
        &["--n", "7", "--rhs", "3"],
        &["--n", "800", "--dominance", "2"],
        &["--n", "700", "--dtype", "f32", "--rhs", "2"],
        &["--n", "900", "--generate", "laplace2d", "--rhs", "2"],
        &["--n", "1001", "--generate", "laplace3d", "--dtype", "f32"],
        &["--n", "1500", "--generate", "random"],
    ];
    for words in systems {
        let [first, others @ ..] = mixes().map(|mix| solved(&mix, words));
        assert!(others.into_iter().all(|other| other == first), "{words:?}");
        let in_more = [&mixes()[1], &InProcess::new(&[2, 1, 1]).wander(7)];
        assert!(in_more.into_iter().all(|mix| solved(mix, &[words, MORE].concat()) == first), "{words:?}");
    }
}

/// Gaussian elimination of a small dense system, for comparison.
fn eliminated(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            let pivot = a[k].clone();
            a[i].iter_mut().zip(&pivot).for_each(|(to, from)| *to -= factor * from);
            b[i] -= factor * b[k];
        }
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    b
}

fn write(path: &Path, text: &str) -> String {
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

#[test]
fn files_dense_and_sparse_give_the_solution_of_elimination() {
    let folder = tempfile::tempdir().unwrap();
    let n = 40;
    let element = |i: usize, j: usize| match (i * 7 + j * 13) % 5 {
        _ if i == j => 9.0 + i as f64 / 8.0,
        0 => -0.5 + (i + j) as f64 / 100.0,
        _ => 0.0,
    };
    let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| element(i, j)).collect()).collect();
    let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
    let a = Matrix::from_vec(n, n, rows.concat()).unwrap();
    let [npy_a, npy_b] = ["a.npy", "b.npy"].map(|name| folder.path().join(name));
    npy::write(&npy_a, &a).unwrap();
    npy::write(&npy_b, &Matrix::from_vec(n, 1, b.clone()).unwrap()).unwrap();
    let listed: Vec<String> = (0..n * n)
        .filter(|at| element(at / n, at % n) != 0.0)
        .map(|at| format!("{} {} {}", at / n + 1, at % n + 1, element(at / n, at % n)))
        .collect();
    let text = format!(
        "%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n{}\n",
        listed.len(),
        listed.join("\n")
    );
    let sparse = write(&folder.path().join("a.mtx"), &text);
    let dense = folder.path().join("dense.mtx");
    market::write(&dense, &a).unwrap();
    let expected = eliminated(rows, b.clone());
    let files = [npy_a.display().to_string(), sparse, dense.display().to_string()];
    // In any unit of b, with and without a tolerance.
    for (a, unit) in files.iter().flat_map(|a| [1.0, 1e-11, 1e100].map(|unit| (a, unit))) {
        let scaled = b.iter().map(|b| b * unit).collect();
        npy::write(&npy_b, &Matrix::from_vec(n, 1, scaled).unwrap()).unwrap();
        let b = npy_b.display().to_string();
        for (words, allowed) in [(&["--tolerance", "1e-13"][..], 1e-12), (&[], 1e-9)] {
            let x = solved(&mixes()[2], &[&["--a", a, "--b", &b], words, MORE].concat());
            let errors = x.values().iter().zip(&expected).map(|(x, e)| (x / unit - e).abs());
            let error = errors.fold(0.0, f64::max);
            assert!(error < allowed, "{a}, {unit}: {error}");
        }
    }
}

fn sentence(words: &[&str]) -> (u8, String) {
    let error = run(&mixes()[1], words).unwrap_err();
    (error.exit_code(), error.to_string())
}

#[test]
fn what_runs_away_is_found_and_the_worst_row_named() {
    for kind in ["dense", "laplace2d", "random"] {
        let (code, said) = sentence(&["--n", "300", "--generate", kind, "--dominance", "0.5"]);
        assert!(
            code == 1 && said.contains("runs away from the solution of this system: in iteration"),
            "{said}"
        );
        assert!(said.contains("of 300 rows are not dominated by their diagonal (the worst is row"), "{said}");
    }
}

#[test]
fn the_cap_leaves_the_last_x_and_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.npy");
    let words = ["--n", "50", "--max-iterations", "3", "--verify", "--out", &out.display().to_string()];
    let (code, said) = sentence(&words);
    assert!(code == 1 && said.starts_with("no convergence in 3 iterations ("), "{said}");
    assert!(said.contains("x.npy has what it came to"), "{said}");
    assert_eq!(npy::read::<f64>(&out).unwrap().shape(), (50, 1));
    assert!(said.contains("raise --max-iterations or --tolerance"), "{said}");
    let (_, said) = sentence(&["--n", "60", "--max-iterations", "1000", "--tolerance", "1e-30"]);
    assert!(said.ends_with("raise --tolerance, for rounding in f64 leaves no smaller changes"), "{said}");
}

#[test]
fn a_zero_on_the_diagonal_is_named_by_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let b = write(&folder.path().join("b.mtx"), "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n");
    let missing = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2\n2 1 1\n2 3 1\n3 3 2\n";
    let zero = "%%MatrixMarket matrix array real general\n3 3\n2\n0\n0\n0\n0\n0\n0\n0\n2\n";
    for text in [missing, zero] {
        let a = write(&folder.path().join("a.mtx"), text);
        let (code, said) = sentence(&["--a", &a, "--b", &b]);
        assert!(
            code == 65 && said.starts_with("row 1 of the matrix, counted from 0, has 0 on the diagonal"),
            "{said}"
        );
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let refused = |words: &[&str]| {
        let command = <Jacobi as clap::Args>::augment_args(Command::new("jacobi"));
        let matches = command.get_matches_from([&["jacobi"], words].concat());
        arguments::check(&Jacobi::from_arg_matches(&matches).unwrap()).unwrap_err().to_string()
    };
    for tolerance in ["0", "1", "NaN"] {
        let said = refused(&["--tolerance", tolerance]);
        assert!(
            said.starts_with(&format!("--tolerance {tolerance}: give a number between 0 and 1")),
            "{said}"
        );
    }
    assert!(refused(&["--max-iterations", "0"]).starts_with("--max-iterations 0"));
    assert!(refused(&["--dominance", "NaN"]).starts_with("--dominance NaN"));
    assert_eq!(refused(&["--blocks-per-pe", "0"]), "--blocks-per-pe 0: give 1 to 1024");
    let folder = tempfile::tempdir().unwrap();
    let a =
        write(&folder.path().join("a.mtx"), "%%MatrixMarket matrix coordinate real general\n9 9 1\n1 1 2\n");
    let b =
        write(&folder.path().join("b.mtx"), "%%MatrixMarket matrix coordinate real general\n9 1 1\n1 1 2\n");
    let said = refused(&["--a", &a, "--b", &b]);
    assert!(said.contains("has 9 rows and only 1 entries: some row has none"), "{said}");
}
/// The question for the residual comes to some PEs before they have made the iteration that tells it.
#[test]
fn the_residual_is_told_by_pes_that_are_late() {
    for _ in 0..10 {
        run(&InProcess::new(&[2, 1, 1]), &["--n", "2500", "--max-iterations", "4", "--tolerance", "0.5"])
            .unwrap();
    }
}
