//! `nodes`: list, check and measure the nodes.

use super::options::{NodesOptions, SpeedSource};
use super::{Ended, UNAVAILABLE, say, speeds};
use crate::driver::Driver;
use crate::program::Program;
use crate::timeline::Timeline;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use runtime::job::{Job, JobPlan};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn command(program: &Program) -> Command {
    let list =
        NodesOptions::augment_args(Command::new("list").about("Show which nodes would be used, and how"));
    let check = NodesOptions::augment_args(
        Command::new("check").about("Go through all nodes and say what is wrong and how to mend it"),
    );
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON");
    let mut speed = Command::new("speed").about("Measure the nodes with the kernel of each application");
    let apps = program.apps.iter().filter(|app| app.kernel.is_some());
    speed = apps.fold(speed.subcommand_required(true).arg_required_else_help(true), |speed, app| {
        speed.subcommand(NodesOptions::augment_args(app.command.clone()))
    });
    Command::new("nodes")
        .about("List, check and measure the nodes")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(list.arg(json.clone()))
        .subcommand(check.arg(json))
        .subcommand(speed)
}

pub(crate) fn nodes(program: Program, matches: &ArgMatches, started: Instant) -> Result<u8, Ended> {
    let options =
        |matches: &ArgMatches| NodesOptions::from_arg_matches(matches).map_err(|e| Ended::new(64, e));
    match matches.subcommand() {
        Some(("list", matches)) => {
            let config = options(matches)?.load()?;
            if matches.get_flag("json") {
                let text = serde_json::to_string_pretty(&config).map_err(|e| Ended::new(70, e))?;
                say(&(text + "\n"))?;
            } else {
                say(&config.table())?;
            }
            Ok(0)
        }
        Some(("check", matches)) => check(&options(matches)?, matches.get_flag("json")),
        Some(("speed", matches)) => match matches.subcommand() {
            Some((app, matches)) => speed(program, app, &options(matches)?, matches, started),
            None => Err(Ended::new(64, "name the application")),
        },
        _ => Err(Ended::new(64, "say `list`, `check` or `speed`")),
    }
}

fn check(options: &NodesOptions, is_json: bool) -> Result<u8, Ended> {
    let config = options.load()?;
    let results = runtime::launch::check_nodes(&config.nodes, &options.launch(&config)?)
        .map_err(|e| Ended::new(UNAVAILABLE, e))?;
    let failed = results.iter().filter(|r| r.outcome.is_err()).count();
    if is_json {
        let text = serde_json::to_string_pretty(&results).map_err(|e| Ended::new(70, e))?;
        say(&(text + "\n"))?;
    } else {
        let mut text = String::new();
        for result in &results {
            let _ = match &result.outcome {
                Ok(facts) => writeln!(text, "{:<12} ok    {facts}", result.name),
                Err(problem) => {
                    writeln!(
                        text,
                        "{:<12} FAIL  {}\n{:18} mend: {}",
                        result.name, problem.reason, "", problem.mend
                    )
                }
            };
        }
        say(&text)?;
    }
    if failed == 0 {
        return Ok(0);
    }
    Err(Ended::new(UNAVAILABLE, format!("{failed} of {} nodes cannot be used", results.len())))
}

fn speed(
    program: Program,
    name: &str,
    options: &NodesOptions,
    matches: &ArgMatches,
    started_at: Instant,
) -> Result<u8, Ended> {
    let config = options.load()?;
    let app = program.apps.iter().find(|app| app.name == name);
    let app = app.ok_or_else(|| Ended::new(64, format!("there is no application {name}")))?;
    let started = (app.start)(matches).map_err(|e| Ended::new(e.exit_code(), e))?;
    let plan = JobPlan {
        program: Arc::new(program.table),
        app: name.into(),
        arguments: Vec::new(),
        kernel_arguments: started.packed.clone(),
        launch: options.launch(&config)?,
        config: config.clone(),
        always_pup: false,
        timeout: None,
    };
    let mut job = Job::start(plan).map_err(|e| Ended::new(e.exit_code(), e))?;
    let events = job.take_events().ok_or_else(|| Ended::new(70, "the run has no driver"))?;
    let info = job.hub().info();
    let hash = runtime::launch::hello_line();
    let subject = speeds::Subject {
        info: &info,
        config: &config,
        kernel: started.kernel,
        arguments: &started.packed,
        program_hash: &hash,
    };
    let mut main = Driver::new(job.node(), events, Timeline::new(started_at));
    let found = speeds::find(&mut main, SpeedSource::Measured, &subject);
    let failure = job.finish();
    let (rates, relative) = found.map_err(|e| match failure {
        Some(failure) => Ended::new(failure.exit_code, failure),
        None => Ended::new(e.exit_code(), e),
    })?;
    let mut text =
        format!("{:<12} {:>4} {:>14} {:>14} {:>8}\n", "node", "PEs", "rate per PE", "rate of node", "speed");
    for node in &info.nodes {
        let range = node.first_pe as usize..(node.first_pe + node.pe_count) as usize;
        let rate: f64 = rates.get(range.clone()).map_or(0.0, |r| r.iter().sum());
        let speed: f64 = relative.get(range).map_or(0.0, |r| r.iter().sum());
        let each = rate / f64::from(node.pe_count.max(1));
        let _ =
            writeln!(text, "{:<12} {:>4} {each:>14.4e} {rate:>14.4e} {speed:>8.3}", node.name, node.pe_count);
    }
    text.push_str("rates are units of the application's work per second; speed 1.0 is the fastest PE\n");
    say(&text)?;
    Ok(0)
}
