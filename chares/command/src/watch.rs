//! `watch`: attach the window to a run from another terminal.

use super::{output, say, still};
use clap::{Arg, ArgAction, ArgMatches, Command};
use runtime::failure::{Failure, Interruption, Kind};
use runtime::monitor::socket;
use runtime::monitor::wire::MonitorEvent;
use std::time::{Duration, Instant};
use tui::{Left, Still};

/// How long events are gathered for one picture.
const GATHER: Duration = Duration::from_millis(1200);

pub(crate) fn command() -> Command {
    Command::new("watch")
        .about("Watch a run that is under way; leaving does it no harm")
        .arg(Arg::new("run").value_name("RUN").help("The run's name; not needed if there is only one"))
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["run", "once", "picture"])
                .help("List the runs that are under way"),
        )
        .args(still::options())
}

pub(crate) fn watch(matches: &ArgMatches) -> Result<u8, Failure> {
    if matches.get_flag("list") {
        let runs = socket::runs().map_err(|e| Failure::new(Kind::Unavailable, e))?;
        say(&runs.iter().map(|run| format!("{run}\n")).collect::<String>())?;
        return Ok(0);
    }
    let name = matches.get_one::<String>("run").map(String::as_str);
    let events = socket::watch(name).map_err(|e| Failure::new(Kind::NoInput, e))?;
    let options = still::window_options(matches);
    output::check_files(&still::file(matches).into_iter().collect::<Vec<_>>())?;
    if still::is_wanted(matches) {
        let (mut gathered, until) = (Vec::new(), Instant::now() + GATHER);
        while let Ok(event) = events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            let is_last = matches!(event, MonitorEvent::Ended { .. });
            gathered.push(event);
            if is_last {
                break;
            }
        }
        still::show(Still::after(&gathered, &options), matches)?;
        return Ok(0);
    }
    tui::run(&events, &options).map(exit_code).map_err(unshown)
}

/// The exit code of a viewer that was left in this way; where its terminal was closed nobody reads a sentence.
pub(crate) fn exit_code(left: Left) -> u8 {
    match left {
        Left::HungUp => Kind::Interrupted(Interruption::HangUp).exit_code(),
        Left::Ended | Left::Detached | Left::Interrupted => 0,
    }
}

pub(crate) fn unshown(error: tui::TuiError) -> Failure {
    Failure::new(Kind::Unavailable, format!("{error}; `--once` prints it as text"))
}
