//! What the system does not give: file sizes, descriptors, memory. Each lack is told in one sentence, and nothing half
//! is left.

use crate::{METACHARE, MISBEHAVING, STENCIL, command, run};
use harness::{Done, local_nodes, signal, start, wait_for, write, write_program};
use std::path::{Path, PathBuf};

/// Runs the program under a limit of the shell.
fn limited(limit: &str, folder: &Path, words: &str) -> Done {
    let line = format!("ulimit {limit}; exec {words}");
    start(&mut command("sh", folder, &["-c", &line])).done()
}

/// The new files in a folder that have not taken the places of old ones.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder of the test").flatten().map(|file| file.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "part")).collect()
}

#[test]
fn a_file_that_may_not_grow_is_an_output_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let words = format!("{METACHARE} run matmul --n 200 --speed equal --quiet --out c.npy --report run.json");
    // So many blocks of 512 bytes: enough for the report.
    let done = limited("-f 200", folder.path(), &words);
    assert_eq!((done.code, done.stderr.lines().count()), (73, 1), "{done:?}");
    assert!(done.stderr.contains("c.npy") && done.stderr.contains("File too large"), "{done:?}");
    assert_eq!(parts(folder.path()), [] as [PathBuf; 0]);
    let report = std::fs::read(folder.path().join("run.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["exit_code"], 73, "{report}");
}

#[test]
fn a_recording_that_could_not_be_written_is_told_where_the_run_failed_too() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let words = "run --steps 10000000 --cells 32 --quiet --timeout 2 --record run.mcr";
    let done = limited("-f 1", folder.path(), &format!("{STENCIL} {words}"));
    assert_eq!(done.code, 110, "{done:?}");
    assert!(
        done.stderr.starts_with("warning: the recording run.mcr cannot be written: File too large"),
        "{done:?}"
    );
    assert_eq!(done.last_error(), "error: the time limit of 2 s is over");
}

#[test]
fn limits_that_permit_no_run_are_told_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let words = format!("{METACHARE} run matmul --n 20 --speed equal --quiet");
    // The program itself is to have room: unoptimised it takes 40 MB.
    for (limit, mend) in [("-n 6", "`ulimit -n 4096`"), ("-v 60000", "`ulimit -v unlimited`")] {
        let done = limited(limit, folder.path(), &words);
        assert_eq!((done.code, done.stderr.lines().count()), (70, 1), "{limit}: {done:?}");
        assert!(
            done.stderr.starts_with("error: this process may have ") && done.stderr.contains(mend),
            "{done:?}"
        );
    }
}

#[test]
fn a_node_that_gets_no_more_memory_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // Each node would have to hold about 190 MB. The launcher has no such limit: it would end first if it met one.
    let script = format!("#!/bin/sh\nulimit -v 150000\nexec {METACHARE} \"$@\"\n");
    let program = write_program(folder.path(), "limited", script);
    let node = |name: &str| format!("[[node]]\nname = \"{name}\"\npes = 1\nbinary = {program:?}\n");
    write(folder.path(), "nodes.toml", &[node("a"), node("b")].concat());
    let words = ["run", "matmul", "--n", "4000", "--speed", "equal", "--quiet"];
    let done = run(METACHARE, folder.path(), &words);
    assert_eq!(done.code, 69, "{done:?}");
    let said = done.last_error();
    let reason = " ran out of memory: the system refused it ";
    assert!(
        said.starts_with("error: node ") && said.contains(reason) && said.contains("ulimit -v"),
        "{done:?}"
    );
    assert!(!done.stderr.contains("panicked"), "{done:?}");
}

#[test]
fn what_a_killed_launcher_was_writing_the_next_one_removes() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let begin = || {
        let running = start(&mut command(MISBEHAVING, folder.path(), &["run", "stubborn", "--quiet"]));
        let own = format!(".results.txt.{}-", running.pid());
        let is_own = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&own);
        wait_for("its file", || parts(folder.path()).iter().any(is_own).then_some(()));
        running
    };
    let killed = begin();
    signal(killed.pid(), "KILL");
    assert_eq!(killed.done().code, 137);
    assert_eq!(parts(folder.path()).len(), 1, "nobody was left to remove it");
    let next = begin();
    assert_eq!(parts(folder.path()).len(), 1, "there is only the next one's");
    // Whoever is still writing keeps what it has.
    let third = begin();
    assert_eq!(parts(folder.path()).len(), 2);
    for running in [next, third] {
        signal(running.pid(), "INT");
        assert_eq!(running.done().code, 130);
    }
    assert_eq!(parts(folder.path()), [] as [PathBuf; 0]);
}
