//! What a run shows without the window: output lines of the nodes, and progress.

use super::live::status::Status;
use super::options::RunOptions;
use super::{log, note, say, warn};
use crate::terminal::print_error;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use runtime::failure::Failure;
use runtime::monitor::hub::Hub;
use runtime::monitor::text::clean_line;
use runtime::monitor::wire::{MonitorEvent, OutputLine, Phase, RunInfo};
use std::io::IsTerminal as _;
use std::sync::mpsc::Receiver;

/// Characters of a line that are shown; no terminal is so wide.
const LINE_MAX: usize = 64 << 10;
/// Characters of what a phase is called.
const NAME_MAX: usize = 200;

/// Shows events of `hub` until the run ends. Output of nodes is tagged with their names. Where there is no terminal for bars
/// of progress, a line now and then says where the run is.
///
/// # Errors
/// If standard output could not be written, other than because its reader has gone.
pub(crate) fn show(events: &Receiver<MonitorEvent>, hub: &Hub, options: &RunOptions) -> Result<(), Failure> {
    let mut shown = Ok(());
    let is_terminal = std::io::stderr().is_terminal();
    let has_progress = is_terminal && !options.quiet && !log::is_json();
    let mut status = Status::default();
    let target = || if has_progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let mut progress = Progress::new(target);
    let mut info = RunInfo::default();
    for event in events {
        match event {
            MonitorEvent::Run(now) => info = now,
            MonitorEvent::Output(line) => progress.bar.suspend(|| {
                if line.node == 0 {
                    if line.is_error { warn(&line.text) } else { note(&line.text) }
                } else if line.is_error && log::is_json() {
                    print_error(&format!("{}\n", log::of_node(name_of(&info, line.node), &line.text)));
                } else if line.is_error {
                    print_error(&tagged(&info, &line));
                } else if shown.is_ok() {
                    shown = say(&tagged(&info, &line));
                }
            }),
            MonitorEvent::Phase(phase) => {
                status.enters(phase.clone(), hub.now());
                progress.advance(phase);
            }
            MonitorEvent::Ended { .. } => break,
            MonitorEvent::Snapshot(snapshot) => {
                status.hears(&snapshot);
                if !is_terminal && !options.quiet {
                    status.due(hub.now(), &info).iter().for_each(|line| note(line));
                }
            }
            MonitorEvent::NodeLost { .. }
            | MonitorEvent::Clocks(_)
            | MonitorEvent::Dropped(_)
            | MonitorEvent::Samples(_)
            | MonitorEvent::At(_)
            | MonitorEvent::Result(_)
            | MonitorEvent::Map(_)
            | MonitorEvent::Remark(_)
            | MonitorEvent::Heaviest(_)
            | MonitorEvent::Saving(_)
            | MonitorEvent::Collectives(_)
            | MonitorEvent::NotSaved(_) => {}
        }
    }
    progress.bar.finish_and_clear();
    shown
}

/// A line with the name of the node that wrote it.
fn tagged(info: &RunInfo, line: &OutputLine) -> String {
    let name = clean_line(name_of(info, line.node), NAME_MAX);
    format!("[{name}] {}\n", clean_line(&line.text, LINE_MAX))
}

fn name_of(info: &RunInfo, node: u16) -> &str {
    info.nodes.iter().find(|n| n.node == node).map_or("launcher", |n| &n.name)
}

/// How far the run is: a bar for each phase, which is right from its first picture on.
struct Progress<T> {
    target: T,
    bar: ProgressBar,
    phase: Phase,
}

impl<T: Fn() -> ProgressDrawTarget> Progress<T> {
    fn new(target: T) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { target, bar, phase: Phase::default() }
    }

    fn advance(&mut self, phase: Phase) {
        let before = std::mem::replace(&mut self.phase, phase);
        let phase = &self.phase;
        if before.name != phase.name || (before.total > 0) != (phase.total > 0) {
            self.bar.finish_and_clear();
            self.bar = bar_of(phase, (self.target)());
            self.bar.tick();
            return;
        }
        if before.detail != phase.detail {
            self.bar.set_message(message(phase));
        }
        if phase.total > 0 {
            self.bar.set_length(phase.total);
            self.bar.set_position(phase.done);
        } else {
            self.bar.tick();
        }
    }
}

fn message(phase: &Phase) -> String {
    let detail = if phase.detail.is_empty() { String::new() } else { format!(", {}", phase.detail) };
    clean_line(&format!("{}{detail}", phase.name), NAME_MAX)
}

fn bar_of(phase: &Phase, target: ProgressDrawTarget) -> ProgressBar {
    let total = Some(phase.total).filter(|total| *total > 0);
    let template = if total.is_some() { "{msg} [{bar:30}] {pos}/{len} {eta}" } else { "{msg} {spinner}" };
    let bar = ProgressBar::with_draw_target(total, target).with_message(message(phase));
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")).with_position(phase.done),
        Err(_) => bar.with_position(phase.done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use runtime::monitor::wire::NodeInfo;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal that keeps what is written to it.
    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl TermLike for Kept {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(text.trim_end().to_string());
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_picture_of_a_phase_has_its_own_numbers() {
        let kept = Kept::default();
        let terminal = kept.clone();
        let mut progress =
            Progress::new(move || ProgressDrawTarget::term_like_with_hz(Box::new(terminal.clone()), 255));
        let phase = |name: &str, done, total| Phase { name: name.into(), done, total, ..Phase::default() };
        progress.advance(phase("reading", 0, 0));
        progress.advance(phase("column", 0, 9));
        progress.advance(phase("row", 3, 7));
        let lines = kept.0.lock().unwrap().clone();
        assert!(lines.iter().any(|line| line.starts_with("reading")), "{lines:?}");
        let first = |name: &str| lines.iter().find(|line| line.contains(name)).cloned().unwrap_or_default();
        assert!(first("column [").contains("] 0/9"), "{lines:?}");
        assert!(first("row [").contains("] 3/7"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("0/0")), "{lines:?}");
    }

    #[test]
    fn lines_of_nodes_have_their_names_and_no_escape_sequences() {
        let node = NodeInfo { node: 1, name: "fa\u{1b}[2Jst".into(), ..NodeInfo::default() };
        let info = RunInfo { nodes: vec![node], ..RunInfo::default() };
        let line = |node, text: &str| OutputLine { node, is_error: true, text: text.into() };
        assert_eq!(tagged(&info, &line(1, "\u{1b}]0;owned\u{7}hel\u{8}lo\rthere")), "[fast] hellothere\n");
        assert_eq!(tagged(&info, &line(0, "x\u{9b}31my")), "[launcher] x31my\n");
        let phase = Phase { name: "a\u{1b}[1m".into(), detail: "b\u{1b}c".into(), ..Phase::default() };
        assert_eq!(message(&phase), "a, b");
    }
}
