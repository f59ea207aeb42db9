//! `migrate`: has a run that is under way go on on other nodes.

use super::options::RunOptions;
use super::prepare::prepare;
use super::restart::{self, Away};
use super::run;
use super::{copies, log, note, request};
use crate::command_line::CommandLine;
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches as _};
use runtime::checkpoint::Store;
use runtime::config::ClusterConfig;
use runtime::failure::{Failure, Kind};
use runtime::monitor::requests::{Request, SavedIn};
use std::time::{Duration, Instant};

/// How long a run that has been saved may take to end.
const ENDING_MAX: Duration = Duration::from_secs(60);
/// How often its end is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// The command.
pub(crate) fn command_of() -> Command {
    let run = Arg::new("run").value_name("RUN").required(true);
    RunOptions::augment_args(
        Command::new("migrate")
            .about("Have a run that is under way go on on other nodes: save it, end it, and go on here")
            .arg(run.help("The name of a run with `--checkpoint`; `watch --list` lists them"))
            .arg(restart::map()),
    )
}

/// Moves a run; the exit code of the rest of it. Whatever can be known to be wrong beforehand is said while it works on, and it
/// is saved as it works, so that only what has changed since has to be saved while it stands still.
///
/// # Errors
/// What was wrong, and whether the run is still where it was; or as a run.
pub(crate) fn migrate(
    program: CommandLine,
    matches: &ArgMatches,
    command_started: Instant,
) -> Result<u8, Failure> {
    let run = matches.get_one::<String>("run").map_or("", String::as_str);
    // What makes no sense by itself is said before the run is troubled.
    let options = RunOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    options.nodes.load()?;
    let saved = request::ask(run, &Request::Checkpoint { stop: false })?.saved;
    let stays = |why: Failure| Failure::new(why.kind, format!("{run} stays where it is: {}", why.sentence));
    let unsaid = || Failure::new(Kind::Unavailable, "it does not say where it is saved");
    let place = saved.ok_or_else(|| stays(unsaid()))?;
    check_place(&program, &place).map_err(stays)?;
    let dir = place.dir.as_path();
    let prepared = restart::open(dir, None).and_then(|saved| {
        let asked = restart::asked(&program, matches, (dir, saved), None)?;
        let prepared = prepare(&program, &asked, Some(dir), command_started)?;
        let checked = check_nodes(&program, &options, prepared.config());
        checked.inspect_err(|why| prepared.report(&options, why))?;
        Ok(prepared)
    });
    let mut prepared = prepared.map_err(stays)?;
    let asked = Instant::now();
    let stopped = request::ask(run, &Request::Checkpoint { stop: true }).map_err(|why| match why.kind {
        // It was there when it was saved first.
        Kind::NoInput => ended(run, &place.restart_command()),
        Kind::Other(code) if code == Kind::Unavailable.exit_code() => ended(run, &place.restart_command()),
        _ => stays(why),
    });
    stopped.inspect_err(|why| prepared.report(&options, why))?;
    let saved = Instant::now();
    wait_for_end(&place)?;
    // It keeps its name, which is free now, unless it was given another.
    prepared.name.get_or_insert_with(|| run.into());
    let away = Away { asked, saved, ended: Instant::now() };
    let asked = restart::open(dir, None)
        .and_then(|newest| restart::asked(&program, matches, (dir, newest), Some(away)))
        .inspect_err(|_| note(&format!("{run} has ended; `{}` goes on with it", place.restart_command())))?;
    restart::say_from(&asked);
    run::go(program, asked, prepared)
}

/// The run that is to be moved has ended by itself, or failed.
fn ended(run: &str, restart: &str) -> Failure {
    let sentence = format!(
        "{run} is not there any more: it was done, or has been ended or moved by others; `watch --list` names the runs that there \
         are, and `{restart}` goes on from when it was saved, if nobody does so already"
    );
    Failure::new(Kind::Unavailable, sentence)
}

/// Whether this program can go on from there, and finds the files of the run by the names that it was given.
fn check_place(program: &CommandLine, place: &SavedIn) -> Result<(), Failure> {
    if place.program != program.name {
        let (theirs, own) = (&place.program, program.name);
        return Err(Failure::new(
            Kind::Usage,
            format!("it is a run of {theirs}, and this is {own}; use that program"),
        ));
    }
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let there = place.started_in.canonicalize();
    if matches!((here, there), (Ok(here), Ok(there)) if here == there) {
        return Ok(());
    }
    let sentence = format!(
        "its files are named from the folder in which it was started; go there: cd {}",
        place.started_in.display()
    );
    Err(Failure::new(Kind::Usage, sentence))
}

/// Whether all nodes can be used; the program is with them then.
fn check_nodes(program: &CommandLine, options: &RunOptions, config: &ClusterConfig) -> Result<(), Failure> {
    let mut launch = options.nodes.launch(config)?;
    let checked = copies::shown(!options.quiet && !log::is_json(), |copies| {
        launch.copies = copies;
        runtime::job::check_nodes(program.program.table(), config, launch)
    });
    let checked = checked.map_err(Failure::from)?;
    let faults = checked.nodes.iter().filter_map(|node| Some((&node.name, node.outcome.as_ref().err()?)));
    let faults: Vec<String> =
        faults.map(|(name, problem)| format!("{name}: {}; mend: {}", problem.reason, problem.mend)).collect();
    match faults.split_last() {
        None => Ok(()),
        Some((last, others)) => {
            others.iter().for_each(|fault| note(fault));
            Err(Failure::new(Kind::Unavailable, last))
        }
    }
}

/// Waits until nobody writes into the folder of a run any more.
fn wait_for_end(place: &SavedIn) -> Result<(), Failure> {
    let since = Instant::now();
    while let Err(why) = Store::create(&place.dir) {
        if since.elapsed() > ENDING_MAX {
            let why = Failure::from(why).sentence;
            let sentence = format!(
                "the run has been saved and does not end: {why}; `{}` goes on when it has",
                place.restart_command()
            );
            return Err(Failure::new(Kind::Unavailable, sentence));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
