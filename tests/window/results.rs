//! What a run leaves behind: its table, its report and its result, also when it fails.

use crate::inside;
use apps::matrix::{Matrix, npy};
use harness::{Done, local_nodes, start, write};
use std::fs;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");

/// A product that takes longer than it may.
const LONG: [&str; 6] = ["--n", "2000", "--kernel", "plain", "--timeout", "2"];

fn matmul(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    inside(folder, command.args(["run", "matmul", "--speed", "equal"]).args(words));
    start(&mut command).done()
}

fn report(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    // Sockets and speeds are kept in a folder of their own.
    names.retain(|name| name != "metachare");
    names.sort();
    names
}

#[test]
fn a_nan_in_a_factor_is_in_the_product_and_the_run_says_so() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let mut a = Matrix::from_vec(6, 5, (0..30).map(f64::from).collect()).unwrap();
    let b = Matrix::from_vec(5, 4, (0..20).map(f64::from).collect()).unwrap();
    a.values_mut()[2 * 5 + 1] = f64::NAN;
    npy::write(folder.path().join("a.npy"), &a).unwrap();
    npy::write(folder.path().join("b.npy"), &b).unwrap();
    for algorithm in ["conventional", "cannon", "fox", "fox-hey-otto"] {
        let files = ["--a", "a.npy", "--b", "b.npy", "--out", "c.npy", "--verify", "--report", "run.json"];
        let done = matmul(folder.path(), &[&files[..], &["--q", "2", "--algorithm", algorithm]].concat());
        assert_eq!(done.code, 0, "{algorithm}: {done:?}");
        let sentence = "4 of 24 elements of the product are NaN or infinite, as the factors make them";
        assert!(done.stdout.contains("result verified") && done.stdout.contains(sentence), "{done:?}");
        assert_eq!(report(folder.path())["remarks"][0], sentence);
        let c: Matrix<f64> = npy::read(folder.path().join("c.npy")).unwrap();
        let nan: Vec<usize> = (0..24).filter(|&at| c.values()[at].is_nan()).collect();
        assert_eq!(nan, [8, 9, 10, 11], "{algorithm}");
    }
}

#[test]
fn a_run_that_fails_shows_no_table_and_reports_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    local_nodes(path, &[1, 1]);
    write(path, "gone.toml", "[[node]]\nname = \"a\"\nbinary = \"/no/such/program\"\n");
    let cases: [(&[&str], i32, &str); 2] =
        [(&LONG, 110, "time limit"), (&["--nodes", "gone.toml"], 69, "was not started")];
    for (words, code, sentence) in cases {
        write(path, "run.json", "an old report");
        let done = matmul(path, &[words, &["--report", "run.json"]].concat());
        assert!(done.code == code && done.last_error().contains(sentence), "{done:?}");
        assert_eq!(done.stdout, "");
        let report = report(path);
        assert_eq!((&report["exit_code"], &report["app"]), (&code.into(), &"matmul".into()));
        assert!(report["error"].as_str().unwrap().contains(sentence), "{report}");
        assert_eq!(names(path), ["gone.toml", "nodes.toml", "run.json"]);
    }
}

#[test]
fn every_run_that_fails_before_it_begins_leaves_its_own_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    local_nodes(path, &[1]);
    write(path, "wrong.npy", "no matrix");
    write(path, "wrong.toml", "[[node]\n");
    write(path, "statics.toml", "[crystal]\nlattice = \"fcc\"\na = \"long\"\n");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["matmul", "--a", "wrong.npy", "--b", "wrong.npy"], 65, "wrong.npy"),
        (&["matmul", "--n", "0"], 65, "sides must be 1 to"),
        (&["matmul", "--n", "many"], 64, "invalid value 'many'"),
        (&["matmul", "--bogus"], 64, "unexpected argument '--bogus'"),
        (&["matmul", "--n", "8", "--speed", "file"], 64, "no node of nodes.toml has a `speed`"),
        (&["matmul", "--n", "8", "--record", "no/such/folder/r"], 73, "the recording no/such/folder/r"),
        (&["matmul", "--n", "8", "--nodes", "wrong.toml"], 78, "wrong.toml:1"),
        (&["statics", "statics.toml"], 65, "statics.toml"),
    ];
    let run = |words: &[&str], report: &[&str]| {
        let mut command = Command::new(METACHARE);
        inside(path, command.arg("run").args(words).args(report));
        start(&mut command).done()
    };
    for (words, code, sentence) in cases {
        for old in [Some(r#"{ "schema": "metachare-run/1", "verified": true }"#), None] {
            match old {
                Some(old) => drop(write(path, "run.json", old)),
                None => fs::remove_file(path.join("run.json")).unwrap(),
            }
            let done = run(words, &["--report", "run.json"]);
            assert!(done.code == code && done.stderr.contains(sentence), "{words:?}: {done:?}");
            let report = report(path);
            assert_eq!((&report["exit_code"], &report["verified"]), (&code.into(), &serde_json::Value::Null));
            assert_eq!(
                (&report["app"], report["error"].as_str().unwrap().contains(sentence)),
                (&words[0].into(), true)
            );
        }
        let done = run(words, &["--report=/dev/stdout"]);
        let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!((done.code, &report["exit_code"]), (code, &code.into()), "{words:?}");
        let done = run(words, &["--report", "no/such/folder/run.json"]);
        let unwritten = done.stderr.contains("the report no/such/folder/run.json cannot be written");
        assert!(done.code == code && done.stderr.contains(sentence) && unwritten, "{words:?}: {done:?}");
    }
    let done = run(&["matmul", "--a", "wrong.npy", "--b", "wrong.npy"], &["--report", "wrong.npy"]);
    assert_eq!((done.code, fs::read_to_string(path.join("wrong.npy")).unwrap()), (65, "no matrix".into()));
    assert!(done.stderr.contains("another file is there, which is no report"), "{done:?}");
}

#[test]
fn a_run_that_is_killed_leaves_no_report_of_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    local_nodes(path, &[1]);
    write(path, "run.json", r#"{ "schema": "metachare-run/1", "verified": true }"#);
    let mut command = Command::new(METACHARE);
    let words = [&["run", "matmul", "--report", "run.json", "--speed", "equal"], &LONG[..4]].concat();
    inside(path, command.args(words));
    let running = start(&mut command);
    let _ = running.nodes(1);
    harness::signal(running.pid(), "KILL");
    assert_eq!(running.done().code, 137);
    let report = report(path);
    assert_eq!((&report["exit_code"], &report["verified"]), (&70.into(), &serde_json::Value::Null));
    assert!(report["error"].as_str().unwrap().contains("it was killed"), "{report}");
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_any_node_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // A node that started would be the complaint.
    write(path, "nodes.toml", "[[node]]\nname = \"a\"\nbinary = \"/no/such/program\"\n");
    fs::create_dir(path.join("folder")).unwrap();
    for option in ["--out", "--report"] {
        for target in ["no/such/folder/file", "folder", "nodes.toml/file"] {
            let done = matmul(path, &["--n", "16", option, target]);
            assert!(done.code == 73 && done.last_error().contains(target), "{option}: {done:?}");
        }
    }
    assert_eq!(names(path), ["folder", "nodes.toml"]);
}

#[test]
fn a_report_that_can_no_longer_be_written_does_not_hide_why_the_run_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    local_nodes(path, &[1]);
    fs::create_dir(path.join("into")).unwrap();
    let mut command = Command::new(METACHARE);
    let words = [&["run", "matmul", "--report", "into/run.json"], &LONG[..]].concat();
    inside(path, command.args(words));
    let running = start(&mut command);
    let _ = running.nodes(1);
    fs::remove_dir(path.join("into")).unwrap();
    let done = running.done();
    assert!(done.code == 110 && done.last_error().contains("time limit"), "{done:?}");
    assert!(done.stderr.contains("warning: the report into/run.json cannot be written"), "{done:?}");
}
