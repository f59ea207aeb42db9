//! `checkpoint RUN`: has a run saved that is under way.

use crate::request::ask;
use crate::say;
use clap::{Arg, ArgAction, ArgMatches, Command};
use runtime::failure::Failure;
use runtime::monitor::requests::Request;

/// Adds what says which run, and whether it is to end.
pub(super) fn arguments(command: Command) -> Command {
    let run = Arg::new("run").value_name("RUN").required(true);
    let stop = Arg::new("stop").long("stop").action(ArgAction::SetTrue);
    command
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .arg(run.help("The name of a run that is under way, as `watch --list` prints it: save it now"))
        .arg(stop.help("End the run once it is saved; `restart` goes on with it"))
}

/// Waits until the run has been saved, and says how it was.
pub(super) fn save(matches: &ArgMatches) -> Result<u8, Failure> {
    let name = matches.get_one::<String>("run").map_or("", String::as_str);
    let request = Request::Checkpoint { stop: matches.get_flag("stop") };
    say(&(ask(name, &request)?.sentence + "\n")).map(|()| 0)
}
