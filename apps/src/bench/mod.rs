//! `metachare bench`: measures whole paths of the runtime, as an application meets them, and compares them with other
//! systems.
//!
//! The command starts runs of its own executable, one PE, two PEs, two and more nodes, with an application that it
//! alone knows; these put their figures into their reports. Every operation is measured over several stretches in
//! several runs, each long enough that the clock does not matter, after others that find the length and warm the way;
//! median and range are printed. Another system is called better or worse only if it was measured in the same hour on
//! this machine (`--peers`), and a limit is named only if another operation of the same run shows it.
#![doc = include_str!("README.md")]

mod catalogue;
mod conductor;
mod kernel;
mod measure;
mod memory;
mod mill;
mod peers;
mod player;
mod results;
mod runs;

use crate::output::{check_writable, say, write_json};
use catalogue::{Arrangement, Operation};
use chares::RunError;
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use command::{App, CommandLine};
use peers::Peers;
use results::{Measured, Results};
use std::path::PathBuf;

/// Of the command, and of the application that it runs.
const NAME: &str = "bench";

// What to measure. Documentation here would become that of the command.
#[derive(Args, Clone, Debug)]
struct Options {
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Figures for each operation
    #[arg(long, default_value = "9", value_parser = repeats)]
    repeats: usize,
    /// Only operations with this in their key
    #[arg(long, value_name = "TEXT", value_parser = part_of_keys)]
    only: Option<String>,
    /// Only go through every operation once; what comes out are no measurements
    #[arg(long)]
    brief: bool,
    /// Compare with figures of other systems that were just measured
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// Measure only what is between two nodes, between the first and the last PE of those in a nodes file
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,
    /// Show what would be measured
    #[arg(long)]
    list: bool,
}

/// Adds the command, its application and chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    let about = "Measure what messages, starts and kernels cost here, and compare with other systems";
    program
        .chare::<player::Player>()
        .chare::<conductor::Conductor>()
        .chare::<conductor::Idler>()
        .chare::<mill::Mill>()
        .app(App::new(NAME, "What `bench` runs", measure::drive).check(measure::check).hidden())
        .command(Options::augment_args(Command::new(NAME).about(about)), bench)
}

fn bench(matches: &ArgMatches) -> Result<(), RunError> {
    let options = Options::from_arg_matches(matches).map_err(|e| RunError::Input(e.to_string()))?;
    let all = catalogue::all();
    let peers = Peers::load(options.peers.as_deref(), options.nodes.is_some(), &all, &results::cpu_model())?;
    let is_chosen = |operation: &&Operation| {
        options.only.as_ref().is_none_or(|part| operation.key.contains(part))
            && (options.nodes.is_none() || operation.setup == Arrangement::TwoNodes)
    };
    let chosen: Vec<&Operation> = all.iter().filter(is_chosen).collect();
    if options.list {
        let line = |o: &&Operation| format!("{:<24} {:<10} {}\n", o.key, o.unit.name(), o.name);
        return say(&chosen.iter().map(line).collect::<String>());
    }
    if let Some(path) = &options.json {
        check_writable(path)?;
    }
    let mut results = Results::new(options.brief);
    say(&results.heading())?;
    for setup in Arrangement::ALL {
        let operations: Vec<&Operation> = chosen.iter().copied().filter(|o| o.setup == setup).collect();
        if operations.is_empty() {
            continue;
        }
        // What the hosts of a nodes file have to spare is not known here.
        let room = if options.nodes.is_some() { None } else { setup.room(runs::cores()) };
        say(&results::head(setup, room))?;
        let (mut figures, link) = runs::measure(setup, &operations, &options)?;
        let measured = operations.iter().map(|operation| {
            let stretches = figures.remove(&operation.key).unwrap_or_default();
            Measured::new(operation, room, link, stretches, &peers)
                .ok_or_else(|| RunError::Failed(format!("{} was not measured", operation.key)))
        });
        let measured = measured.collect::<Result<_, _>>()?;
        say(&results.add(measured))?;
    }
    match &options.json {
        Some(path) => write_json(path, &results),
        None => Ok(()),
    }
}

fn repeats(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
    count.ok_or_else(|| "give a number from 1 to 1000".into())
}

fn part_of_keys(text: &str) -> Result<String, String> {
    if catalogue::all().iter().any(|operation| operation.key.contains(text)) {
        return Ok(text.into());
    }
    Err("no operation has this in its key; `--list` shows them".into())
}
