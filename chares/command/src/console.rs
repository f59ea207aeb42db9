//! What a run shows without the window: output lines of the nodes, and progress.

use super::options::RunOptions;
use super::{Ended, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use runtime::monitor::wire::{MonitorEvent, Phase, RunInfo};
use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::Receiver;

/// Shows events until the run ends. Output of nodes is tagged with their names.
///
/// # Errors
/// If standard output could not be written, other than because its reader has gone.
pub(crate) fn show(events: &Receiver<MonitorEvent>, options: &RunOptions) -> Result<(), Ended> {
    let mut shown = Ok(());
    let has_progress = std::io::stderr().is_terminal() && !options.quiet;
    let bar = ProgressBar::with_draw_target(
        None,
        if has_progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
    );
    let (mut info, mut before) = (RunInfo::default(), Phase::default());
    for event in events {
        match event {
            MonitorEvent::Run(now) => info = now,
            MonitorEvent::Output(line) => {
                let name = info.nodes.iter().find(|n| n.node == line.node).map_or("launcher", |n| &n.name);
                let text = format!("[{name}] {}\n", line.text);
                bar.suspend(|| {
                    if line.is_error {
                        // There is no other place to say that it cannot be said.
                        let _ = std::io::stderr().lock().write_all(text.as_bytes());
                    } else if shown.is_ok() {
                        shown = say(&text);
                    }
                });
            }
            MonitorEvent::Phase(phase) => {
                advance(&bar, &before, &phase);
                before = phase;
            }
            MonitorEvent::Ended { .. } => break,
            MonitorEvent::Snapshot(_)
            | MonitorEvent::NodeLost { .. }
            | MonitorEvent::Clocks(_)
            | MonitorEvent::Dropped(_) => {}
        }
    }
    bar.finish_and_clear();
    shown
}

fn advance(bar: &ProgressBar, before: &Phase, phase: &Phase) {
    let is_other = before.name != phase.name;
    if is_other {
        bar.reset();
    }
    if is_other || before.detail != phase.detail {
        let detail = if phase.detail.is_empty() { String::new() } else { format!(", {}", phase.detail) };
        bar.set_message(format!("{}{detail}", phase.name));
    }
    if is_other || (before.total > 0) != (phase.total > 0) {
        let template = if phase.total > 0 { "{msg} [{bar:30}] {pos}/{len} {eta}" } else { "{msg} {spinner}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
    }
    if phase.total > 0 {
        bar.set_length(phase.total);
        bar.set_position(phase.done);
    } else {
        bar.tick();
    }
}
