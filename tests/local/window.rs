//! The load window in a real terminal: it comes, it goes, and the terminal is as it was on every way out.

use crate::{END, LONG, MISBEHAVING, STENCIL, command, run};
use harness::terminal::Terminal;
use harness::{Running, is_alive, local_nodes, signal, start, wait_for, wait_for_work};
use std::path::Path;
use std::time::Instant;

/// A program that works in a folder with two nodes, with its window in a terminal.
struct Shown {
    folder: tempfile::TempDir,
    terminal: Terminal,
}

impl Shown {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        local_nodes(folder.path(), &[1, 1]);
        Self { folder, terminal: Terminal::new() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn start(&self, program: &str, words: &[&str]) -> Running {
        self.terminal.start(&command(program, self.path(), words))
    }

    /// A run that goes on until it is ended, its window, and its nodes.
    fn long(&self) -> (Running, Vec<i32>) {
        let running = self.start(STENCIL, &["run", "--steps", "10000000", "--cells", "32", "--watch"]);
        self.terminal.wait_for_window("stencil2d");
        let nodes = running.nodes(2);
        (running, nodes)
    }
}

fn wait_until_gone(nodes: &[i32]) {
    wait_for("the nodes to end", || nodes.iter().all(|&node| !is_alive(node)).then_some(()));
}

#[test]
fn the_window_stays_with_the_result_until_a_key_and_the_table_follows_it() {
    let shown = Shown::new();
    let report = shown.path().join("report.json");
    let words = ["run", "--steps", "300", "--cells", "16", "--watch", "--report", "report.json"];
    let running = shown.start(STENCIL, &words);
    shown.terminal.wait_for_window("ENDED: finished");
    // Beside the load there may be no room for its first lines.
    shown.terminal.keys("r");
    shown.terminal.wait_for_window("node        PEs speed");
    wait_for("the report", || {
        std::fs::read_to_string(&report).ok().filter(|text| text.contains("exit_code"))
    });
    assert!(is_alive(running.pid()));
    shown.terminal.keys("x");
    assert_eq!(running.done().code, 0, "{}", shown.terminal.shown());
    let after = shown.terminal.after_the_window();
    assert!(after.contains("node        PEs speed"), "{after:?}");
}

#[test]
fn a_signal_ends_a_window_that_stays() {
    let shown = Shown::new();
    let running = shown.start(STENCIL, &["run", "--steps", "10", "--cells", "16", "--watch"]);
    shown.terminal.wait_for_window("ENDED: finished");
    signal(running.pid(), "TERM");
    assert_eq!(running.done().code, 143);
    shown.terminal.wait_for_leaving();
}

#[test]
fn leaving_the_window_leaves_the_run_alone() {
    let shown = Shown::new();
    let (running, nodes) = shown.long();
    shown.terminal.keys("q");
    shown.terminal.wait_for_leaving();
    assert!(is_alive(running.pid()) && nodes.iter().all(|&node| is_alive(node)));
    // The terminal is in its usual mode again, in which this key is a signal.
    shown.terminal.keys("\x03");
    assert_eq!(running.done().code, 130);
    assert!(shown.terminal.after_the_window().contains("error: interrupted"));
    wait_until_gone(&nodes);
}

#[test]
fn ctrl_c_in_the_window_ends_the_run() {
    let shown = Shown::new();
    let (running, nodes) = shown.long();
    shown.terminal.keys("\x03");
    let told = Instant::now();
    assert_eq!(running.done().code, 130);
    assert!(told.elapsed() < END, "{:?}", told.elapsed());
    assert!(shown.terminal.after_the_window().contains("error: interrupted"));
    wait_until_gone(&nodes);
}

#[test]
fn a_run_that_fails_behind_its_window_says_why_on_the_normal_screen() {
    for (name, code, words) in
        [("TERM", 143, "error: ended by SIGTERM"), ("KILL", 69, "was killed by signal 9")]
    {
        let shown = Shown::new();
        let (running, nodes) = shown.long();
        signal(if name == "KILL" { nodes[0] } else { running.pid() }, name);
        assert_eq!(running.done().code, code);
        let after = shown.terminal.after_the_window();
        assert!(after.trim_end().lines().last().is_some_and(|line| line.contains(words)), "{after:?}");
        wait_until_gone(&nodes);
    }
}

#[test]
fn an_end_at_once_gives_the_terminal_back() {
    let shown = Shown::new();
    let running = shown.start(MISBEHAVING, &["run", "stubborn", "--watch"]);
    shown.terminal.wait_for_window("stubborn");
    let nodes = running.nodes(2);
    signal(running.pid(), "TERM");
    signal(running.pid(), "TERM");
    assert_eq!(running.done().code, 143);
    assert!(shown.terminal.after_the_window().contains("error: ended by SIGTERM"));
    wait_until_gone(&nodes);
}

#[test]
fn a_panic_behind_the_window_is_readable() {
    let shown = Shown::new();
    let running = shown.start(MISBEHAVING, &["run", "panicking", "--watch"]);
    assert_eq!(running.done().code, 70, "{}", shown.terminal.shown());
    let after = shown.terminal.after_the_window();
    assert!(after.contains("panicked at") && after.contains("error: the driver panicked"), "{after:?}");
}

#[test]
fn another_terminal_watches_and_leaves() {
    let shown = Shown::new();
    let running = start(&mut command(STENCIL, shown.path(), &LONG));
    wait_for_work(shown.path());
    let viewer = shown.start(STENCIL, &["watch"]);
    shown.terminal.wait_for_window("stencil2d-");
    shown.terminal.keys("q");
    assert_eq!(viewer.done().code, 0);
    assert_eq!(shown.terminal.after_the_window(), "");
    assert!(is_alive(running.pid()));
    // The next one stays until the run is over.
    let second = Terminal::new();
    let viewer = second.start(&command(STENCIL, shown.path(), &["watch"]));
    second.wait_for_window("stencil2d-");
    signal(running.pid(), "INT");
    assert_eq!(running.done().code, 130);
    second.wait_for_window("interrupted");
    second.keys("q");
    assert_eq!(viewer.done().code, 0);
    assert_eq!(second.after_the_window(), "");
}

#[test]
fn a_window_without_a_terminal_is_refused_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let done = run(STENCIL, folder.path(), &["run", "--steps", "20", "--watch"]);
    assert!(done.code == 0 && done.stdout.contains("step 20: "), "{done:?}");
    assert!(done.stderr.contains("the load window cannot be shown"), "{done:?}");
}
