//! The log of a run: lines of JSON with their spans, and a file for each node, also for one on another host.

use crate::remote::Bed;
use crate::{METACHARE, MISBEHAVING, STENCIL, command, run};
use harness::{Done, local_nodes, start, write};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const STEPS: [&str; 5] = ["run", "--nodes", "nodes.toml", "--steps", "3"];

/// The lines of a text, all of which are objects with a level and a time.
fn objects(text: &str) -> Vec<Value> {
    let object = |line: &str| {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(object["level"].is_string() && object["timestamp"].is_string(), "{line}");
        object
    };
    text.lines().map(object).collect()
}

/// The names of all spans in which something happened.
fn spans(lines: &[Value]) -> BTreeSet<&str> {
    let around = lines.iter().flat_map(|line| line["spans"].as_array().into_iter().flatten());
    around.chain(lines.iter().map(|line| &line["span"])).filter_map(|span| span["name"].as_str()).collect()
}

fn logs(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder).expect("the folder of the log");
    files.flatten().filter_map(|file| file.file_name().into_string().ok()).collect()
}

#[test]
fn every_line_of_a_log_in_json_is_an_object_and_spans_say_what_went_on() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let words = ["run", "matmul", "--nodes", "nodes.toml", "--n", "64", "--quiet", "--log-format", "json"];
    let done = start(command(METACHARE, folder.path(), &words).env("RUST_LOG", "info")).done();
    assert_eq!(done.code, 0, "{done:?}");
    let lines = objects(&done.stderr);
    let found = spans(&lines);
    for name in
        ["start", "launch", "join", "connection", "balance", "measure", "phase", "initialisation", "timed"]
    {
        assert!(found.contains(name), "{name} is not among {found:?}");
    }
    // The start is over when it is, not with the connections that it has made.
    let first = |wanted: &dyn Fn(&Value) -> bool| lines.iter().position(wanted).unwrap();
    let is_started = first(&|line| line["span"]["name"] == "start" && line["fields"]["message"] == "close");
    assert!(is_started < first(&|line| line["span"]["name"] == "measure"), "{lines:#?}");
    let connects =
        |name: &str| lines.iter().any(|line| line["node"] == name && line["span"]["name"] == "connection");
    assert!(connects("a") && connects("b"), "{lines:#?}");
}

#[test]
fn sentences_for_people_and_other_lines_of_nodes_are_objects_too() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let words = ["run", "talking", "--escapes", "--nodes", "nodes.toml", "--log-format", "json"];
    let done = run(MISBEHAVING, folder.path(), &words);
    let lines = objects(&done.stderr);
    let said = |line: &Value| line["node"].is_string() && line["fields"]["message"] == "error 01m";
    assert_eq!((done.code, lines.iter().filter(|line| said(line)).count()), (0, 2), "{done:?}");
    let done = run(
        MISBEHAVING,
        folder.path(),
        &["run", "panicking", "--log-format", "json", "--nodes", "none.toml"],
    );
    let lines = objects(&done.stderr);
    assert_eq!((done.code, lines.len(), &lines[0]["level"]), (78, 1, &"ERROR".into()), "{done:?}");
    assert!(lines[0]["fields"]["message"].as_str().unwrap().contains("none.toml"), "{done:?}");
    let wrong = ["run", "--bogus", "--log-format", "json"];
    let done = run(STENCIL, folder.path(), &wrong);
    let lines = objects(&done.stderr);
    assert_eq!((done.code, lines.len(), &lines[0]["level"]), (64, 1, &"ERROR".into()), "{done:?}");
    assert!(lines[0]["fields"]["message"].as_str().unwrap().contains("--bogus"), "{done:?}");
}

#[test]
fn each_node_and_the_launcher_have_a_file_and_the_terminal_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    let run = |format: &[&str]| -> (Done, [String; 3]) {
        let done = run(STENCIL, folder.path(), &[&STEPS[..], &["--log-dir", "logs"], format].concat());
        let expected = ["a.log", "b.log", "launcher.log"];
        assert_eq!(logs(&folder.path().join("logs")), expected.map(String::from).into(), "{done:?}");
        let read = |name| std::fs::read_to_string(folder.path().join("logs").join(name)).unwrap();
        (done, expected.map(read))
    };
    let (done, [a, b, launcher]) = run(&[]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert!(a.contains("has joined with 2 PEs") && !a.contains("has joined with 1 PEs"), "{a}");
    assert!(b.contains("has joined with 1 PEs") && b.contains("connection"), "{b}");
    assert!(launcher.contains("launch") && !launcher.contains("has joined"), "{launcher}");
    // The next run begins its files anew, here in the other format.
    let (_, texts) = run(&["--log-format", "json"]);
    for (text, span) in texts.iter().zip(["connection", "connection", "launch"]) {
        assert!(spans(&objects(text)).contains(span), "{text}");
    }
}

#[test]
fn the_log_of_a_node_on_another_host_comes_to_the_launcher() {
    let bed = Bed::new();
    write(bed.path(), "nodes.toml", &bed.node("noisy", ""));
    let done = bed.run(STENCIL, &[&STEPS[..], &["--log-dir", "logs"]].concat());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    let log = std::fs::read_to_string(bed.path().join("logs/noisy.log")).unwrap();
    assert!(log.contains("has joined") && !log.contains("reboot on Sunday"), "{log}");
    bed.assert_nothing_left();
}

#[test]
fn a_failed_start_leaves_its_reason_in_the_log() {
    let bed = Bed::new();
    write(bed.path(), "nodes.toml", &[bed.node("well", ""), bed.node("refused", "")].concat());
    let done = bed.run(STENCIL, &[&STEPS[..], &["--log-dir", "logs"]].concat());
    assert_eq!((done.code, done.stderr.lines().count()), (69, 1), "{done:?}");
    let log = std::fs::read_to_string(bed.path().join("logs/launcher.log")).unwrap();
    assert!(log.contains(done.last_error().trim_start_matches("error: ")), "{log}");
    assert!(bed.path().join("logs/well.log").exists());
    bed.assert_nothing_left();
}

#[test]
fn a_log_that_cannot_be_written_is_told_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    write(folder.path(), "file", "no folder");
    let refused = |words: &[&str], code, sentence: &str| {
        let done = run(STENCIL, folder.path(), &[&STEPS[..], words].concat());
        assert_eq!((done.code, done.stderr.lines().count()), (code, 1), "{done:?}");
        assert!(done.stderr.contains(sentence), "{done:?}");
    };
    refused(&["--log-dir", "file/logs"], 73, "the folder of the log file/logs cannot be written");
    std::fs::create_dir_all(folder.path().join("logs/a.log")).unwrap();
    refused(&["--log-dir", "logs"], 73, "the log logs/a.log cannot be written");
    std::fs::create_dir(folder.path().join("there")).unwrap();
    refused(&["--log-dir", "there", "--report", "there/launcher.log"], 64, "the launcher's log");
    write(folder.path(), "nodes.toml", "[[node]]\nname = \"launcher\"\n");
    refused(&["--log-dir", "there"], 64, "the log of node \"launcher\" and the launcher's log are both");
}
