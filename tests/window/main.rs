//! What a user sees of a run: the load window in a terminal, and what is left when the run is over.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod browser;
mod help;
mod replay;
mod results;

use harness::terminal::Terminal;
use harness::{is_alive, local_nodes, signal, start, wait_for};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const STENCIL: &str = env!("CARGO_BIN_EXE_stencil2d");
const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
/// A run whose terminal is closed has ended within this.
const END: Duration = Duration::from_secs(5);

/// A run with the window that goes on until it is ended.
const LONG: [&str; 8] = ["run", "--nodes", "nodes.toml", "--steps", "10000000", "--cells", "32", "--watch"];

fn inside(folder: &Path, command: &mut Command) {
    command
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env_remove("METACHARE_NODES");
}

fn sockets(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder.join("metachare")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "sock")).count()
}

#[test]
fn closing_the_terminal_ends_the_run_and_leaves_nothing() {
    // The kernel sends SIGHUP, or the window must notice by itself.
    for start in [Terminal::start, Terminal::start_without_signals] {
        let folder = tempfile::tempdir().unwrap();
        local_nodes(folder.path(), &[1, 1]);
        let mut command = Command::new(STENCIL);
        inside(folder.path(), command.args(LONG));
        let terminal = Terminal::new();
        let running = start(&terminal, &command);
        let nodes = running.nodes(2);
        terminal.wait_for_window("computing");
        assert_eq!(sockets(folder.path()), 1);
        let closed = Instant::now();
        drop(terminal);
        assert_eq!(running.done().code, 129);
        assert!(closed.elapsed() < END, "{:?}", closed.elapsed());
        assert!(nodes.iter().all(|&node| !is_alive(node)));
        assert_eq!(sockets(folder.path()), 0);
    }
}

#[test]
fn a_window_of_another_terminal_closes_with_it_and_does_the_run_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let mut command = Command::new(STENCIL);
    inside(folder.path(), command.args(&LONG[..7]));
    let running = start(&mut command);
    wait_for("the run to be there", || (sockets(folder.path()) == 1).then_some(()));
    let mut viewer = Command::new(STENCIL);
    inside(folder.path(), viewer.arg("watch"));
    let terminal = Terminal::new();
    let viewer = terminal.start_without_signals(&viewer);
    terminal.wait_for_window("computing");
    drop(terminal);
    assert_eq!(viewer.done().code, 129);
    assert!(is_alive(running.pid()));
    signal(running.pid(), "INT");
    assert_eq!(running.done().code, 130);
    assert_eq!(sockets(folder.path()), 0);
}

#[test]
fn the_progress_bar_shows_what_all_nodes_have_done() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let words = ["run", "--steps", "100", "--cells", "400", "--blocks", "5"];
    for window in [true, false] {
        let mut command = Command::new(STENCIL);
        inside(folder.path(), command.args(words).args(window.then_some("--watch")));
        let terminal = Terminal::new();
        let running = terminal.start(&command);
        // 25 blocks, 100 steps.
        terminal.wait_for_words(if window { "2500" } else { "/2500" });
        if window {
            terminal.wait_for_window("ENDED: finished");
            terminal.keys("q");
        }
        assert_eq!(running.done().code, 0, "{}", terminal.shown());
        assert!(terminal.shown().contains("stepping"), "{}", terminal.shown());
    }
}

#[test]
fn signals_end_a_run_with_its_window_and_leave_nothing() {
    for (signals, codes) in [(&["TERM"][..], &[143][..]), (&["INT", "TERM"], &[130, 143])] {
        let folder = tempfile::tempdir().unwrap();
        local_nodes(folder.path(), &[1, 1]);
        let mut command = Command::new(STENCIL);
        inside(folder.path(), command.args(LONG));
        let terminal = Terminal::new();
        let running = terminal.start(&command);
        let nodes = running.nodes(2);
        terminal.wait_for_window("computing");
        signals.iter().for_each(|name| signal(running.pid(), name));
        let code = running.done().code;
        assert!(codes.contains(&code), "{signals:?}: {code}");
        // A second signal ends the launcher at once; its nodes see that, and end.
        wait_for("the nodes to end", || nodes.iter().all(|&node| !is_alive(node)).then_some(()));
        assert_eq!(sockets(folder.path()), 0, "{signals:?}");
        let after = terminal.after_the_window();
        assert!(after.contains("error: "), "{signals:?}: {after}");
    }
}

#[test]
fn without_a_terminal_the_run_goes_on_without_the_window() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let mut command = Command::new("setsid");
    let words = ["--wait", STENCIL, "run", "--steps", "5", "--cells", "16", "--watch"];
    inside(folder.path(), command.args(words));
    let done = start(&mut command).done();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.nodes, "note: on the nodes of nodes.toml: a");
    let warning = "warning: the load window cannot be shown: there is no terminal";
    assert!(done.stderr.starts_with(warning) && done.stderr.lines().count() == 1, "{done:?}");
    assert!(done.stdout.contains("step 5: ") && !done.stdout.contains('\x1b'), "{done:?}");
}
