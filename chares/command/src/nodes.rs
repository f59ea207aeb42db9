//! `nodes`: list and check the nodes.

use super::options::{NodesChoice, NodesOptions};
use super::{copies, say, speed};
use crate::command_line::CommandLine;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use runtime::failure::{Failure, Kind};
use runtime::launch::Problem;
use runtime::monitor::requests::{self, Request};
use std::fmt::Write as _;
use std::time::Instant;

pub(crate) fn command(program: &CommandLine) -> Command {
    let list =
        NodesChoice::augment_args(Command::new("list").about("Show which nodes would be used, and how"));
    let check = NodesOptions::augment_args(
        Command::new("check").about("Go through all nodes and say what is wrong and how to mend it"),
    );
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON");
    Command::new("nodes")
        .about("List, check and measure the nodes, and have some leave a run or join it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(list.arg(json.clone()))
        .subcommand(check.arg(json))
        .subcommand(speed::command(program))
        .subcommand(
            Command::new("drain")
                .about("Have a node leave a run, which goes on without it: its chares go to the other nodes")
                .arg(
                    Arg::new("run")
                        .value_name("RUN")
                        .required(true)
                        .help("The run's name; `watch --list` lists them"),
                )
                .arg(Arg::new("node").value_name("NODE").required(true).help("The node's name")),
        )
        .subcommand(NodesChoice::augment_args(
            Command::new("add")
                .about("Have nodes join a run that balances its load: chares go there")
                .arg(
                    Arg::new("run")
                        .value_name("RUN")
                        .required(true)
                        .help("The run's name; `watch --list` lists them"),
                )
                .arg(
                    Arg::new("node")
                        .value_name("NODE")
                        .action(ArgAction::Append)
                        .help("Names in the nodes file; not needed with --hosts or --hostfile"),
                ),
        ))
}

pub(crate) fn nodes(program: CommandLine, matches: &ArgMatches, started: Instant) -> Result<u8, Failure> {
    let options = |matches: &ArgMatches| {
        NodesOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))
    };
    match matches.subcommand() {
        Some(("list", matches)) => {
            let choice = NodesChoice::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
            let config = choice.load()?;
            if matches.get_flag("json") {
                let text =
                    serde_json::to_string_pretty(&config).map_err(|e| Failure::new(Kind::Failed, e))?;
                say(&(text + "\n"))?;
            } else {
                say(&config.table())?;
            }
            Ok(0)
        }
        Some(("check", matches)) => check(&program, &options(matches)?, matches.get_flag("json")),
        Some(("speed", matches)) => speed::speed(program, matches, started),
        Some(("drain", matches)) => drain(matches),
        Some(("add", matches)) => add(matches),
        _ => Err(Failure::new(Kind::Usage, "say `list`, `check`, `speed`, `drain` or `add`")),
    }
}

fn drain(matches: &ArgMatches) -> Result<u8, Failure> {
    let word = |name| matches.get_one::<String>(name).cloned().unwrap_or_default();
    ask(&word("run"), &Request::Drain { node: word("node") }).map(|()| 0)
}

fn add(matches: &ArgMatches) -> Result<u8, Failure> {
    let choice = NodesChoice::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    let run = matches.get_one::<String>("run").cloned().unwrap_or_default();
    let wanted: Vec<&String> = matches.get_many("node").into_iter().flatten().collect();
    if wanted.is_empty() && !choice.names_hosts() {
        let sentence =
            "say which nodes of the nodes file are to join, or name hosts with --hosts or --hostfile";
        return Err(Failure::new(Kind::Usage, sentence));
    }
    let config = choice.load()?;
    let known = || config.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut nodes = Vec::new();
    for name in wanted {
        let node = config.nodes.iter().find(|node| node.name == *name).ok_or_else(|| {
            Failure::new(
                Kind::Usage,
                format!("{} has no node {name:?}; there are {}", config.source, known()),
            )
        })?;
        nodes.push(node.clone());
    }
    if nodes.is_empty() {
        nodes = config.nodes;
    }
    nodes.into_iter().try_for_each(|node| ask(&run, &Request::Add { node: Box::new(node) }))?;
    Ok(0)
}

/// Asks a run for something, and says what became of it.
fn ask(run: &str, request: &Request) -> Result<(), Failure> {
    match requests::ask(run, request).map_err(|error| Failure::new(Kind::NoInput, error))? {
        Ok(done) => say(&(done + "\n")),
        Err(refused) => Err(Failure::new(Kind::Other(refused.code), refused.sentence)),
    }
}

fn check(program: &CommandLine, options: &NodesOptions, is_json: bool) -> Result<u8, Failure> {
    let config = options.load()?;
    options.say_if_left_open(&config);
    let mut launch = options.launch(&config)?;
    let results = copies::shown(!is_json, |copies| {
        launch.copies = copies;
        runtime::job::check_nodes(program.program.table(), &config, launch)
    });
    let results = results.map_err(Failure::from)?;
    let failed = results.iter().filter(|r| r.outcome.is_err()).count();
    if is_json {
        let text = serde_json::to_string_pretty(&results).map_err(|e| Failure::new(Kind::Failed, e))?;
        say(&(text + "\n"))?;
    } else {
        let mut text = String::new();
        for result in &results {
            let _ = match &result.outcome {
                Ok(facts) => writeln!(text, "{:<12} ok    {facts}", result.name),
                Err(problem) => {
                    let (name, reason, mend) = (&result.name, &problem.reason, &problem.mend);
                    writeln!(text, "{name:<12} FAIL  {reason}\n{:18} mend: {mend}", "")
                }
            };
            for Problem { reason, mend } in &result.warnings {
                let _ = writeln!(text, "{:12} warn  {reason}\n{:18} mend: {mend}", "", "");
            }
        }
        say(&text)?;
    }
    if failed == 0 {
        return Ok(0);
    }
    Err(Failure::new(Kind::Unavailable, format!("{failed} of {} nodes cannot be used", results.len())))
}
