//! A run that is recorded, and its recording in the window and as text.

use crate::{LONG, METACHARE, STENCIL, inside};
use harness::terminal::Terminal;
use harness::{Done, local_nodes, signal, start, wait_for};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) fn stencil(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(STENCIL);
    inside(folder, command.args(words).env("LC_ALL", "C.UTF-8"));
    start(&mut command).done()
}

/// A recording of 25 blocks and 100 steps on two nodes.
pub(crate) fn recorded(folder: &Path) -> Done {
    local_nodes(folder, &[2, 1]);
    let words = ["run", "--steps", "100", "--cells", "400", "--blocks", "5", "--record", "run.mcr"];
    stencil(folder, &[&words[..], &["--load", "load.csv"]].concat())
}

#[test]
fn a_recorded_run_is_shown_as_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let done = recorded(folder.path());
    assert_eq!(done.code, 0, "{done:?}");
    let shown = stencil(folder.path(), &["replay", "run.mcr", "--once"]);
    assert!(shown.code == 0 && shown.stderr.is_empty(), "{shown:?}");
    for part in
        [" stencil2d ", " stepping 2500 of 2500 ", " 3 PEs on 2 nodes ", " at end ", " ENDED: finished "]
    {
        assert!(shown.stdout.contains(part), "{part:?} is not in\n{}", shown.stdout);
    }
    let begun = stencil(folder.path(), &["replay", "run.mcr", "--once", "--from", "0"]);
    assert!(begun.code == 0 && begun.stdout.contains(" 0:00.0 of "), "{begun:?}");
}

/// What a program shows is in the recording, and is computed the same if nobody records it.
#[test]
fn what_a_program_shows_is_in_its_recording_and_changes_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    let metachare = |words: &[&str]| {
        let mut command = Command::new(METACHARE);
        inside(folder.path(), command.args(words).env("LC_ALL", "C.UTF-8"));
        start(&mut command).done()
    };
    let digest = |words: &[&str]| {
        let plasma = ["run", "pic", "--particles", "20000", "--cells", "32x8", "--steps", "60"];
        let done =
            metachare(&[&plasma[..], &["--speed", "equal", "--report", "report.json"], words].concat());
        assert_eq!(done.code, 0, "{done:?}");
        let report = fs::read_to_string(folder.path().join("report.json")).unwrap();
        let line = report.lines().find(|line| line.contains("\"digest\"")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no digest in\n{report}"))
    };
    assert_eq!(digest(&[]), digest(&["--record", "run.mcr", "--events", "events"]));
    let events = fs::read_to_string(folder.path().join("events")).unwrap();
    assert!(events.lines().filter(|line| line.contains("\"event\":\"map\"")).count() >= 2, "{events}");
    let shown = metachare(&["replay", "run.mcr", "--once", "--screen", "maps", "--size", "120x40"]);
    for part in ["density, relative to the mean", "particles by x and v_x"] {
        assert!(shown.stdout.contains(part), "{part:?} is not in\n{shown:?}");
    }
}

#[test]
fn a_recording_is_paused_sought_and_left_in_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(recorded(folder.path()).code, 0);
    let mut command = Command::new(STENCIL);
    inside(folder.path(), command.args(["replay", "run.mcr", "--speed", "0.5"]).env("LC_ALL", "C.UTF-8"));
    let terminal = Terminal::new();
    let replay = terminal.start(&command);
    terminal.wait_for_words("playing");
    terminal.keys(" ");
    terminal.wait_for_words("aused");
    terminal.keys("\x1b[F");
    terminal.wait_for_words("ENDED:");
    terminal.keys("q");
    assert_eq!(replay.done().code, 0);
}

#[test]
fn a_run_that_was_killed_leaves_a_recording_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let mut command = Command::new(STENCIL);
    inside(folder.path(), command.args(&LONG[..7]).args(["--record", "run.mcr"]));
    let running = start(&mut command);
    let file = folder.path().join("run.mcr");
    wait_for("something to be recorded", || {
        fs::metadata(&file).is_ok_and(|file| file.len() > 4000).then_some(())
    });
    signal(running.pid(), "KILL");
    let _ = running.done();
    let shown = stencil(folder.path(), &["replay", "run.mcr", "--once"]);
    assert!(shown.code == 0 && shown.stdout.contains("stepping"), "{shown:?}");
    assert!(shown.stdout.contains(" ENDED: the "), "{shown:?}");
}

#[test]
fn a_run_that_failed_is_recorded_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let words = [&LONG[..7], &["--timeout", "1", "--record", "run.mcr"]].concat();
    assert_eq!(stencil(folder.path(), &words).code, 110);
    let shown = stencil(folder.path(), &["replay", "run.mcr", "--once"]);
    assert!(shown.stdout.contains(" ENDED with code 110: ") && shown.stdout.contains("FAILED"), "{shown:?}");
}

#[test]
fn a_recording_becomes_a_picture_and_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert_eq!(recorded(path).code, 0);
    let done = stencil(path, &["replay", "run.mcr", "--svg", "run.svg", "--trace", "run.json"]);
    assert!(done.code == 0 && done.stdout.is_empty() && done.stderr.is_empty(), "{done:?}");
    let picture = fs::read_to_string(path.join("run.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains(": 3 PEs on 2 nodes, finished<"), "{picture}");
    let trace: serde_json::Value = serde_json::from_slice(&fs::read(path.join("run.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let threads: Vec<_> = named("thread_name").iter().map(|event| &event["args"]["name"]).collect();
    let names = ["phases", "PE 0", "PE 1", "PE 2"];
    assert_eq!(threads[..4], names);
    assert_eq!(threads[4..], ["PE 0 entry methods", "PE 1 entry methods", "PE 2 entry methods"]);
    // Edges go from block to block, some of them to another node.
    let arrows = events.iter().filter(|event| event["ph"] == "f");
    assert!(arrows.filter(|event| event["args"]["bytes"].as_u64() > Some(0)).count() > 0, "{events:?}");
    // 25 blocks, 100 steps; the last phase has the counters of the end.
    assert_eq!(named("stepping").last().unwrap()["args"]["done"], 2500);
    // Both nodes answered the launcher.
    for node in ["a", "b"] {
        assert!(trace["otherData"]["clock_precision_us"][node].as_f64().unwrap() > 0.0, "{trace}");
    }
    // The same as a page, one screen of the window as a picture, and what was written second by second.
    let done = stencil(path, &["report", "run.mcr", "--html", "run.html"]);
    assert!(done.code == 0 && done.stdout.is_empty(), "{done:?}");
    let page = fs::read_to_string(path.join("run.html")).unwrap();
    assert!(page.contains("3 PEs on 2 nodes") && page.contains("Block") && page.contains("<svg "), "{page}");
    let still = ["replay", "run.mcr", "--picture", "work.svg", "--screen", "work", "--size", "90x20"];
    let done = stencil(path, &still);
    assert!(done.code == 0 && done.stdout.is_empty(), "{done:?}");
    assert!(fs::read_to_string(path.join("work.svg")).unwrap().contains(">Block<"));
    let load = fs::read_to_string(path.join("load.csv")).unwrap();
    assert!(
        load.starts_with("at_s,node,pe,compute,") && load.lines().all(|line| line.split(',').count() == 15)
    );
    let unwritable = stencil(path, &["replay", "run.mcr", "--svg", "no/such/folder/run.svg"]);
    assert!(
        unwritable.code == 73 && unwritable.last_error().contains("the picture no/such"),
        "{unwritable:?}"
    );
}

#[test]
fn what_cannot_be_replayed_gets_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let done = recorded(path);
    assert_eq!(done.code, 0, "{done:?}");
    let good = fs::read(path.join("run.mcr")).unwrap();
    let mut future = good.clone();
    future[8] = 77;
    for (name, bytes) in
        [("empty", &[][..]), ("other", b"a report"), ("future", &future), ("head", &good[..12])]
    {
        fs::write(path.join(name), bytes).unwrap();
    }
    for (name, code, sentence) in [
        ("missing", 66, "missing cannot be opened: "),
        (".", 66, ". cannot be replayed: it cannot be read: "),
        ("empty", 65, "empty cannot be replayed: it is empty"),
        ("other", 65, "other cannot be replayed: it is not a recording"),
        (
            "future",
            65,
            "future cannot be replayed: it was made by another version of this program (recording 77,",
        ),
        ("head", 65, "head cannot be replayed: its run was killed before anything was recorded"),
    ] {
        let done = stencil(path, &["replay", name, "--once"]);
        assert!(done.code == code && done.last_error().contains(sentence), "{name}: {done:?}");
        assert!(done.stdout.is_empty() && done.stderr.lines().count() == 1, "{name}: {done:?}");
    }
    fs::write(path.join("cut"), &good[..good.len() - 5]).unwrap();
    let cut = stencil(path, &["replay", "cut", "--once"]);
    assert!(cut.code == 0 && cut.stderr.starts_with("warning: cut: the file is cut off at byte "), "{cut:?}");
    assert!(cut.stdout.contains(" ENDED: the file is cut off at byte "), "{cut:?}");
    let report = stencil(path, &["report", "cut", "--html", "page.html"]);
    assert!(report.code == 0 && report.stderr == cut.stderr, "{report:?}");
    let page = fs::read_to_string(path.join("page.html")).unwrap();
    let report = stencil(path, &["report", "cut"]);
    for said in [&page, &report.stdout] {
        assert!(said.contains("incomplete: the file is cut off at byte "), "{said}");
    }
}

#[test]
fn a_recording_that_cannot_be_written_is_refused_before_any_node_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    harness::write(path, "nodes.toml", "[[node]]\nname = \"a\"\nbinary = \"/no/such/program\"\n");
    for target in ["no/such/folder/file", "nodes.toml/file", "."] {
        let done = stencil(path, &["run", "--steps", "1", "--record", target]);
        assert!(done.code == 73 && done.last_error().contains("the recording "), "{target}: {done:?}");
    }
}
