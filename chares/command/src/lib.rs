//! The command line that every program on chares may have: `run`, `compare`, `plan`, `nodes`, `watch`, `replay`,
//! `report`, `checkpoint`, `cache`, `completions`, `man`, `help`.
//!
//! A program lists its chare types, its applications, and calls [`CommandLine::main`]. What a chare is, and all that
//! applications do with it, is in the crate `chares`, which knows nothing of this one.

mod app;
mod cache;
mod changes;
mod checkpoint;
mod command_line;
mod compare;
mod console;
mod copies;
mod demo;
mod driving;
mod folders;
mod keeping;
mod live;
mod log;
mod manual;
mod migrate;
mod named_file;
mod network;
mod nodes;
pub mod npy;
mod options;
mod output;
mod plan;
pub mod plot;
mod prepare;
mod rate;
mod record;
mod replacement;
mod replay;
mod report;
mod request;
mod restart;
mod run;
mod shell;
mod speed;
mod speeds;
pub mod statistics;
mod still;
mod summary;
pub mod terminal;
mod unstarted;
mod viewers;
mod watch;

pub use app::App;
pub use clap;
pub use command_line::{CommandLine, WithApps};
pub use named_file::NamedFile;
pub use replacement::{Replacement, can_be_written};

/// What nearly every program with a command line needs: `use command::prelude::*`.
pub mod prelude {
    pub use crate::{App, CommandLine, WithApps};
    pub use chares::prelude::*;
    pub use clap;
}

/// The README's program is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct ReadmeDoctests;

/// The commit of Metachare that this was built from; `unknown` if it was built outside its repository.
pub const COMMIT: &str = env!("METACHARE_COMMIT");

use clap::{ArgMatches, Args, Command};
use command_line::Execute;
use options::RunOptions;
use replacement::abandon_all;
use runtime::failure::{Failure, Kind};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

impl CommandLine {
    /// Runs the command line of this process and says how it ended. Call it from `main`.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let command_started = Instant::now();
        let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
        match arguments.get(1).and_then(|a| a.to_str()) {
            Some("__node") => {
                log::begin();
                return runtime::job::node_process(self.program.into_table());
            }
            Some("__check") => {
                log::begin();
                runtime::launch::answer_check(self.program.table());
                return ExitCode::SUCCESS;
            }
            Some(checkpoint::OTHER_END) => {
                log::begin();
                return checkpoint::answer();
            }
            _ => {}
        }
        log::choose_format(&arguments);
        let matches = match command(&self).try_get_matches_from(&arguments) {
            Ok(matches) => matches,
            Err(error) => {
                // Help and version are answers, not errors.
                if error.use_stderr() {
                    if log::is_json() {
                        complain(&sentence_of(&error));
                    } else {
                        let _ = error.print();
                    }
                    restart::about_saved_option(&self, &arguments, &error).iter().for_each(|said| note(said));
                    unstarted::report_usage(&self, &arguments, &error, command_started);
                    return ExitCode::from(Kind::Usage.exit_code());
                }
                return match said(error.print()) {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(failure) => complain_of(&failure),
                };
            }
        };
        runtime::job::before_exit_at_once(leave);
        if let Err(sentence) = runtime::job::prepare_for_limits() {
            return complain_of(&Failure::new(Kind::Failed, sentence));
        }
        if let Err(error) = runtime::job::hear_signals() {
            return complain_of(&Failure::new(
                Kind::Unavailable,
                format!("signals cannot be heard: {error}"),
            ));
        }
        compare::end_with_parent();
        let line: Vec<String> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let done = dispatch(self, &matches, line, command_started);
        // A driver that took no notice of the end of its run may be writing still.
        abandon_all();
        match done {
            Ok(code) => ExitCode::from(code),
            Err(failure) => complain_of(&failure),
        }
    }
}

/// What a shell or a script has to know beside the options.
const SURROUNDINGS: &str = "\
Environment:
  METACHARE_NODES  the nodes file, where no option names one
  METACHARE_SSH    another ssh, with its first arguments
  NO_COLOR         no colours
  RUST_LOG         what the log tells, where no option says so
  XDG_CACHE_HOME   holds measured speeds and, on nodes, the executable; ~/.cache if not set
  XDG_CONFIG_HOME  holds metachare/nodes.toml; ~/.config if not set
  XDG_RUNTIME_DIR  holds the sockets by which runs are watched

Exit codes (all of them: `help exit-codes`):
  0   it is done                        73   an output cannot be written
  1   the result is wrong               78   the nodes file is wrong
  64  the command line makes no sense   110  the time limit has passed
  65  an input is wrong                 129, 130, 143
  69  a node was not reached or lost         ended by hang-up, ctrl-C, SIGTERM
  70  a chare or the runtime failed";

/// What has to be done before the process ends at once.
fn leave() {
    compare::end_child();
    tui::restore_terminal();
    abandon_all();
}

fn complain_of(failure: &Failure) -> ExitCode {
    complain(&failure.sentence);
    ExitCode::from(failure.exit_code())
}

fn dispatch(
    program: CommandLine,
    matches: &ArgMatches,
    line: Vec<String>,
    command_started: Instant,
) -> Result<u8, Failure> {
    // A run begins its log as its options say.
    if !matches!(matches.subcommand_name(), Some("run" | "demo" | "restart" | "migrate")) {
        log::begin();
    }
    match matches.subcommand() {
        Some(("run" | "demo", _)) => match run_of(&program, matches) {
            Some((name, matches)) => {
                let asked = prepare::Asked::new(&name, matches, line)?;
                run::run(program, asked, command_started)
            }
            None => Err(Failure::new(Kind::Usage, "an application is missing; `run --help` lists them")),
        },
        Some(("restart", matches)) => restart::restart(program, matches, command_started),
        Some(("migrate", matches)) => migrate::migrate(program, matches, command_started),
        Some(("nodes", matches)) => nodes::nodes(program, matches, command_started),
        Some(("compare", matches)) => compare::compare(&program, matches),
        Some(("plan", matches)) => plan::plan(&program, matches),
        Some(("watch", matches)) => watch::watch(matches),
        Some(("replay", matches)) => replay::replay(matches),
        Some(("report", matches)) => summary::report(matches),
        Some(("checkpoint", matches)) => checkpoint::checkpoint(&program, matches),
        Some(("cache", matches)) => cache::cache(matches),
        Some(("completions", matches)) => shell::completions(&program, matches),
        Some(("man", matches)) => shell::man(&program, matches),
        Some(("help", matches)) => manual::help(&program, matches),
        Some((name, matches)) if let Some(execute) = own(&program, name) => match execute(matches) {
            Ok(()) => Ok(0),
            Err(error) => Err(Failure::from(error)),
        },
        _ => Err(Failure::new(Kind::Usage, "a command is missing; `--help` lists them")),
    }
}

/// The application of a command line that runs one, and its arguments.
pub(crate) fn run_of<'a>(program: &CommandLine, matches: &'a ArgMatches) -> Option<(String, &'a ArgMatches)> {
    match matches.subcommand()? {
        ("run", matches) => Some(match matches.subcommand() {
            Some((name, matches)) => (name.to_string(), matches),
            None => (program.apps.first()?.name.to_string(), matches),
        }),
        ("demo", matches) => Some((program.demo.map_or(program.name, |demo| demo.app).to_string(), matches)),
        _ => None,
    }
}

/// What a command of the program's own does.
fn own(program: &CommandLine, name: &str) -> Option<Execute> {
    program.commands.iter().find(|(command, _)| command.get_name() == name).map(|&(_, execute)| execute)
}

/// The version of the program, with the commit that it was built from.
fn version(program: &CommandLine) -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| match COMMIT.get(..9) {
        Some(commit) => format!("{} ({commit})", program.version),
        None => program.version.into(),
    })
}

/// The whole command line. An application with its program's own name takes its arguments right after `run`.
fn command(program: &CommandLine) -> Command {
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
        .version(version(program))
        .about(program.about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .after_help(manual::list(program))
        .after_long_help(format!("{SURROUNDINGS}\n\n{}", manual::list(program)))
        .subcommand(run)
        .subcommand(compare::command(program))
        .subcommands(program.apps.iter().any(|app| app.cost.is_some()).then(|| plan::command(program)))
        .subcommand(nodes::command(program))
        .subcommand(cache::command())
        .subcommand(watch::command())
        .subcommand(restart::command_of())
        .subcommand(migrate::command_of())
        .subcommand(replay::command())
        .subcommand(summary::command())
        .subcommand(checkpoint::command());
    let all = all.subcommands(demo::command(program));
    all.subcommands(program.commands.iter().map(|(command, _)| command))
        .subcommands(shell::commands())
        .subcommand(manual::command(program))
}

/// Writes to standard output. Whoever closed it does not want it; any other failure is one.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    said(terminal::print(text))
}

/// What is wrong with a command line, without the usage that follows it.
pub(crate) fn sentence_of(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_string()
}

/// What became of a write to standard output.
pub(crate) fn said(written: std::io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Output, format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one line to standard error about something that the run goes on without.
pub(crate) fn warn(sentence: &str) {
    terminal::print_error(&log::sentence(log::Weight::Warning, sentence));
}

/// Writes one line to standard error about what was taken because nothing else was said.
pub(crate) fn note(sentence: &str) {
    terminal::print_error(&log::sentence(log::Weight::Note, sentence));
}

/// Writes one line to standard error.
pub(crate) fn complain(sentence: &str) {
    terminal::print_error(&log::sentence(log::Weight::Error, sentence));
}
