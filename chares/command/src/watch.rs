//! `watch`: attach the window to a running job from another terminal.

use super::{Ended, NO_INPUT, UNAVAILABLE, say};
use clap::{Arg, ArgAction, ArgMatches, Command};
use runtime::monitor::socket;
use runtime::monitor::wire::MonitorEvent;
use std::time::{Duration, Instant};
use tui::{Left, WindowOptions};

/// Exit code when the terminal was closed: that of a program which SIGHUP ends.
pub(crate) const HUNG_UP: u8 = 129;
/// How long `--once` gathers before it draws.
const GATHER: Duration = Duration::from_millis(1200);

pub(crate) fn command() -> Command {
    Command::new("watch")
        .about("Watch a running job; leaving does it no harm")
        .arg(Arg::new("job").value_name("JOB").help("The job's name; not needed if only one runs"))
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["job", "once"])
                .help("List the running jobs"),
        )
        .arg(Arg::new("once").long("once").action(ArgAction::SetTrue).help("Print the window once, as text"))
}

pub(crate) fn watch(matches: &ArgMatches) -> Result<u8, Ended> {
    if matches.get_flag("list") {
        let jobs = socket::jobs().map_err(|e| Ended::new(UNAVAILABLE, e))?;
        say(&jobs.iter().map(|job| format!("{job}\n")).collect::<String>())?;
        return Ok(0);
    }
    let name = matches.get_one::<String>("job").map(String::as_str);
    let events = socket::watch(name).map_err(|e| Ended::new(NO_INPUT, e))?;
    let options = WindowOptions::from_env();
    if matches.get_flag("once") {
        let (mut gathered, until) = (Vec::new(), Instant::now() + GATHER);
        while let Ok(event) = events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            let is_last = matches!(event, MonitorEvent::Ended { .. });
            gathered.push(event);
            if is_last {
                break;
            }
        }
        say(&tui::render_text(&gathered, 100, 30, &options))?;
        return Ok(0);
    }
    match tui::run(&events, &options).map_err(unshown)? {
        Left::HungUp => Ok(HUNG_UP),
        Left::Ended | Left::Detached | Left::Interrupted => Ok(0),
    }
}

pub(crate) fn unshown(error: tui::TuiError) -> Ended {
    Ended::new(UNAVAILABLE, format!("{error}; `--once` prints it as text"))
}
