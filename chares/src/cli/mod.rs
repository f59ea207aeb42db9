//! The command line that every program on chares has: `run`, `compare`, `plan`, `nodes`, `watch`, `replay`.

mod compare;
mod console;
mod copies;
mod demo;
mod driving;
mod network;
mod nodes;
mod options;
mod output;
mod plan;
mod record;
mod replay;
mod report;
mod run;
mod speed;
mod speeds;
mod watch;

use crate::program::{Execute, Program};
use crate::replacement::abandon_all;
use clap::{ArgMatches, Args, Command};
use options::RunOptions;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

/// What ends a command early: a sentence, and the exit code that says what kind it is.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: u8,
    pub(crate) sentence: String,
}

impl Ended {
    pub(crate) fn new(code: u8, sentence: impl ToString) -> Self {
        Self { code, sentence: sentence.to_string() }
    }
}

/// Exit code for a wrong command line.
const USAGE: u8 = 64;
/// Exit code for a wrong nodes file.
pub(crate) const CONFIG: u8 = 78;
/// Exit code for an input that is not what it should be.
pub(crate) const BAD_INPUT: u8 = 65;
/// Exit code for an input that cannot be opened or a job that is not there.
pub(crate) const NO_INPUT: u8 = 66;
/// Exit code for an output that cannot be written.
pub(crate) const NO_OUTPUT: u8 = 73;
/// Exit code for nodes that are not reached.
pub(crate) const UNAVAILABLE: u8 = 69;

impl Program {
    /// Runs the command line of this process and says how it ended. Call it from `main`.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let command_started = Instant::now();
        log_to_stderr();
        let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
        match arguments.get(1).and_then(|a| a.to_str()) {
            Some("__node") => return runtime::job::node_process(self.table),
            Some("__check") => {
                runtime::launch::answer_check(&self.table);
                return ExitCode::SUCCESS;
            }
            _ => {}
        }
        let matches = match command(&self).try_get_matches_from(&arguments) {
            Ok(matches) => matches,
            Err(error) => {
                // Help and version are answers, not errors.
                if error.use_stderr() {
                    let _ = error.print();
                    return ExitCode::from(USAGE);
                }
                return match said(error.print()) {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(ended) => complain_of(&ended),
                };
            }
        };
        runtime::job::before_exit_at_once(leave);
        if let Err(sentence) = runtime::job::prepare_for_limits() {
            return complain_of(&Ended::new(70, sentence));
        }
        if let Err(error) = runtime::job::hear_signals() {
            return complain_of(&Ended::new(UNAVAILABLE, format!("signals cannot be heard: {error}")));
        }
        compare::end_with_parent();
        let line: Vec<String> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let done = dispatch(self, &matches, line, command_started);
        // A driver that took no notice of the end of its run may be writing still.
        abandon_all();
        match done {
            Ok(code) => ExitCode::from(code),
            Err(ended) => complain_of(&ended),
        }
    }
}

/// What has to be done before the process ends at once.
fn leave() {
    compare::end_child();
    tui::restore_terminal();
    abandon_all();
}

fn complain_of(ended: &Ended) -> ExitCode {
    complain(&ended.sentence);
    ExitCode::from(ended.code)
}

fn dispatch(
    program: Program,
    matches: &ArgMatches,
    line: Vec<String>,
    command_started: Instant,
) -> Result<u8, Ended> {
    match matches.subcommand() {
        Some(("run", matches)) => {
            let (name, matches) = match matches.subcommand() {
                Some((name, matches)) => (name, matches),
                None => (program.apps[0].name, matches),
            };
            let name = name.to_string();
            run::run(program, &name, matches, line, command_started)
        }
        Some(("demo", matches)) => {
            let name = program.demo.map_or(program.name, |demo| demo.app);
            run::run(program, name, matches, line, command_started)
        }
        Some(("nodes", matches)) => nodes::nodes(program, matches, command_started),
        Some(("compare", matches)) => compare::compare(&program, matches),
        Some(("plan", matches)) => plan::plan(&program, matches),
        Some(("watch", matches)) => watch::watch(matches),
        Some(("replay", matches)) => replay::replay(matches),
        Some((name, matches)) if let Some(execute) = own(&program, name) => match execute(matches) {
            Ok(()) => Ok(0),
            Err(error) => Err(Ended::new(error.exit_code(), error)),
        },
        _ => Err(Ended::new(USAGE, "a command is missing; `--help` lists them")),
    }
}

/// What a command of the program's own does.
fn own(program: &Program, name: &str) -> Option<Execute> {
    program.commands.iter().find(|(command, _)| command.get_name() == name).map(|&(_, execute)| execute)
}

/// The whole command line. An application with its program's own name takes its arguments right after `run`.
fn command(program: &Program) -> Command {
    let run = Command::new("run").about("Run an application on the nodes");
    let run = match program.apps.as_slice() {
        [only] if program.is_single() => RunOptions::augment_args(only.command.clone().name("run")),
        several => {
            several.iter().fold(run.subcommand_required(true).arg_required_else_help(true), |run, app| {
                run.subcommand(RunOptions::augment_args(app.command.clone()))
            })
        }
    };
    let all = Command::new(program.name)
        .version(program.version)
        .about(program.about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run)
        .subcommand(compare::command(program))
        .subcommands(program.apps.iter().any(|app| app.cost.is_some()).then(|| plan::command(program)))
        .subcommand(nodes::command(program))
        .subcommand(watch::command())
        .subcommand(replay::command());
    all.subcommands(demo::command(program)).subcommands(program.commands.iter().map(|(command, _)| command))
}

/// Warnings and errors of the runtime go to standard error; `RUST_LOG` asks for more.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

/// Writes to standard output. Whoever closed it does not want it; any other failure is one.
pub(crate) fn say(text: &str) -> Result<(), Ended> {
    let mut out = std::io::stdout().lock();
    said(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What became of a write to standard output.
pub(crate) fn said(written: std::io::Result<()>) -> Result<(), Ended> {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Ended::new(NO_OUTPUT, format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one line to standard error about something that the run goes on without.
pub(crate) fn warn(sentence: &str) {
    let _ = writeln!(std::io::stderr().lock(), "warning: {sentence}");
}

/// Writes one line to standard error.
pub(crate) fn complain(sentence: &str) {
    let _ = writeln!(std::io::stderr().lock(), "error: {sentence}");
}
