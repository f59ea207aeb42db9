//! Runs every mix in turn, each run a process of its own: it goes the way that it goes for any user.

use super::model;
use super::saved::Run;
use crate::terminal::print_error;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::{Pid, getppid};
use runtime::failure::{Failure, Kind};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// How a report begins; what the application printed stands before it.
const REPORT: &str = "{\n  \"schema\": ";

/// In a run's environment: the process that started it, and without which it shall not go on.
const PARENT: &str = "METACHARE_PARENT";

/// The process that runs, while one does.
static CHILD: Mutex<Option<Pid>> = Mutex::new(None);

/// Tells the run under way to end in good order, when this process has to.
pub(crate) fn end_child() {
    if let Some(child) = CHILD.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // One that has ended by itself needs no order.
        let _ = kill(child, Signal::SIGTERM);
    }
}

/// In a run that a comparison has started: from now on the run ends in good order when that is gone, killed without a
/// chance to say so.
pub(crate) fn end_with_parent() {
    let parent = std::env::var(PARENT).ok().and_then(|number| number.parse().ok());
    let Some(parent) = parent.map(Pid::from_raw) else { return };
    // A system that cannot do this lets the run go on, which harms nobody.
    let _ = set_pdeathsig(Signal::SIGTERM);
    if getppid() != parent {
        let _ = raise(Signal::SIGTERM);
    }
}

/// How a run of some nodes is started: `program words… --only NODES options…`.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    /// Words before those of the run, such as `run matmul`.
    pub(crate) command: Vec<String>,
    /// Where nodes and speeds come from.
    pub(crate) options: Vec<String>,
    /// The application's own.
    pub(crate) words: Vec<String>,
}

/// What a run that went well has written.
pub(crate) struct Written {
    pub(crate) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl Starts {
    /// Runs it on these nodes; `name` is for sentences.
    ///
    /// # Errors
    /// Its exit code and last words.
    pub(crate) fn run(&self, nodes: &[String], name: &str) -> Result<Written, Failure> {
        let said =
            |error: std::io::Error| Failure::new(Kind::Failed, format!("{name} cannot be run: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(said)?);
        command.args(&self.command).args(["--only", &nodes.join(",")]).args(&self.options);
        command.args(&self.words).env(PARENT, std::process::id().to_string());
        let output = output(command).map_err(said)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(Written { stdout: output.stdout, stderr });
        }
        let wordless = match output.status.signal() {
            Some(signal) => format!("it was killed by signal {signal}"),
            None => "it ended without a word".into(),
        };
        let last = stderr.lines().last().unwrap_or(&wordless);
        Err(Failure::new(
            Kind::of_program(output.status.code()),
            format!("{name}: {}", last.trim_start_matches("error: ")),
        ))
    }
}

fn output(mut command: Command) -> std::io::Result<Output> {
    let (stdin, piped) = (Stdio::null(), Stdio::piped);
    let child = command.stdin(stdin).stdout(piped()).stderr(piped()).spawn()?;
    let pid = i32::try_from(child.id()).ok().map(Pid::from_raw);
    *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = pid;
    let output = child.wait_with_output();
    *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = None;
    output
}

/// The report at the end of what a run printed.
pub(crate) fn report_in(stdout: &[u8]) -> Option<&[u8]> {
    let text = std::str::from_utf8(stdout).ok()?;
    Some(&stdout[text.rfind(REPORT)?..])
}

/// Says what goes on, and how far it is, if anybody looks.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(runs: usize) -> Self {
        let is_seen = std::io::stderr().is_terminal();
        let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(runs as u64), target);
        if let Ok(style) = ProgressStyle::with_template("run {pos} of {len} [{bar:20}] {eta} left, now {msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    pub(super) fn begin(&self, name: &str) {
        self.0.set_message(name.to_string());
        self.0.tick();
    }

    pub(super) fn done(&self) {
        self.0.inc(1);
    }

    fn more(&self, runs: usize) {
        self.0.inc_length(runs as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// One run in the order of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Which mix.
    pub(super) mix: usize,
    /// Which of its runs, from 1.
    pub(super) repeat: usize,
}

/// Runs all mixes so many times, round after round, each round beginning with another mix. The fastest node alone is
/// added if it is missing, as soon as the first round has shown which it is, or all of them that it is another one.
///
/// # Errors
/// Of the first run that fails.
pub(crate) fn rounds(
    mixes: &mut Vec<Vec<String>>,
    repeats: usize,
    progress: &Progress,
    mut run: impl FnMut(&[String], Turn) -> Result<Run, Failure>,
) -> Result<Vec<Run>, Failure> {
    let (mut turns, mut runs) = (Vec::new(), Vec::new());
    let mut take = |nodes: &[String], turn: Turn, runs: &mut Vec<Run>| -> Result<(), Failure> {
        progress.begin(&nodes.join(","));
        runs.push(run(nodes, turn)?);
        turns.push((turn.mix, turn.repeat));
        progress.done();
        Ok(())
    };
    for repeat in 1..=repeats {
        let count = mixes.len();
        for mix in (0..count).map(|at| (at + repeat - 1) % count) {
            take(&mixes[mix], Turn { mix, repeat }, &mut runs)?;
        }
        let alone = [model::speediest(&runs)?];
        if repeat == 1 && mixes.iter().all(|mix| *mix != alone) {
            take(&alone, Turn { mix: count, repeat }, &mut runs)?;
            mixes.push(alone.to_vec());
            progress.more(repeats);
        }
    }
    // The first round may have been mistaken about the fastest node.
    while let Some(alone) = model::unmeasured(&runs)? {
        progress.more(repeats);
        mixes.push(vec![alone]);
        for repeat in 1..=repeats {
            take(&mixes[mixes.len() - 1], Turn { mix: mixes.len() - 1, repeat }, &mut runs)?;
        }
    }
    let mut sorted: Vec<((usize, usize), Run)> = turns.into_iter().zip(runs).collect();
    sorted.sort_by_key(|(turn, _)| *turn);
    Ok(sorted.into_iter().map(|(_, run)| run).collect())
}

/// Passes on warnings that runs wrote, each once.
#[derive(Debug, Default)]
pub(super) struct Warnings(BTreeSet<String>);

impl Warnings {
    pub(super) fn pass_on(&mut self, stderr: &str) {
        for line in stderr.lines().filter(|line| line.starts_with("warning: ")) {
            if self.0.insert(line.to_string()) {
                print_error(&format!("{line}\n"));
            }
        }
    }
}
