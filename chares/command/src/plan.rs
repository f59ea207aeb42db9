//! `plan`: the table of `compare`, predicted from measured speeds and the application's cost model. Nothing of the
//! application runs but its kernel, and what its cost model tries here in one thread.

use super::compare::{self, Comparison, Files, MixOptions, PlannedWork, Predictor, Progress, Starts};
use super::network::Network;
use super::output;
use super::speed::Speeds;
use crate::command_line::CommandLine;
use crate::named_file::NamedFile;
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use loadbalance::machines::Machine;
use runtime::failure::{Failure, Kind};
use std::path::PathBuf;

// Documentation here would become that of the command.
#[derive(Args, Clone, Debug)]
struct PlanOptions {
    #[command(flatten)]
    mixes: MixOptions,
    /// Speeds that `nodes speed APP --json` has written, instead of measuring each mix now
    #[arg(long, value_name = "FILE")]
    speeds: Option<PathBuf>,
    /// What `netbench --json` has measured between the nodes, instead of measuring it now
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
}

impl PlanOptions {
    /// The files that are read here.
    fn inputs(&self) -> Vec<NamedFile> {
        let files = [("--speeds", &self.speeds), ("--network", &self.network)];
        files.into_iter().filter_map(|(name, path)| Some(NamedFile::read(name, path.as_ref()?))).collect()
    }
}

/// The command.
pub(crate) fn command(program: &CommandLine) -> Command {
    let about = "Predict what `compare` would show, from measured speeds, without running the application";
    let command = PlanOptions::augment_args(Command::new("plan").about(about));
    let has_model = |app: &crate::app::AppEntry| app.cost.is_some();
    compare::with_apps(command.subcommand_required(true).arg_required_else_help(true), program, has_model)
}

/// Predicts, prints and writes; the exit code.
pub(crate) fn plan(program: &CommandLine, matches: &ArgMatches) -> Result<u8, Failure> {
    let options = PlanOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    let (app, words) = compare::chosen(program, matches)?;
    let Some(model) = &app.cost else {
        return Err(Failure::new(Kind::Usage, format!("{} has no cost model to predict with", app.name)));
    };
    let Some(mut started) = compare::checked(app, &words)? else { return Ok(0) };
    let config = options.mixes.nodes.load()?;
    let files = [std::mem::take(&mut started.files), options.inputs(), vec![output::nodes_file(&config)]];
    options.files.check(files.concat())?;
    options.mixes.nodes.say_which(&config);
    let mut mixes = options.mixes.of(&config)?;
    let saved = options.speeds.as_deref().map(Speeds::load).transpose()?;
    let network = match &options.network {
        Some(file) => Network::load(file)?,
        // Where speeds are known nodes need not be there.
        None if saved.is_some() => Network::default(),
        None => {
            let nodes = compare::all_of(&mixes, &config);
            Network::of_report(Network::measure(program, &nodes, &options.mixes.nodes)?)?
        }
    };
    let predictor = Predictor { model, network: &network };
    let command = ["nodes", "speed", app.name, "--json"].map(ToString::to_string).to_vec();
    let starts = Starts { command, options: options.mixes.nodes.as_words(), words };
    let progress = Progress::new(mixes.len());
    let amount = Some(started.kernel.work).filter(|work| *work > 0.0);
    let work = PlannedWork { program, app: app.name, arguments: &started.arguments, work: amount };
    let planned = compare::rounds(&mut mixes, 1, &progress, |nodes, _| {
        let name = format!("{} on {}", app.name, nodes.join(","));
        let measured;
        let speeds = match &saved {
            Some(speeds) => speeds,
            None => {
                measured = Speeds::parse(&starts.run(nodes, &name)?.stdout, &name)?;
                &measured
            }
        };
        predictor.run(&name, &work, machines(speeds, nodes, &started.kernel.key)?)
    })?;
    drop(progress);
    let comparison = Comparison::of_predictions(&planned, &predictor)?;
    compare::show(&comparison, &options.files)?;
    Ok(0)
}

/// The nodes of a mix, with their CPUs.
fn machines(speeds: &Speeds, nodes: &[String], kernel: &str) -> Result<Vec<(Machine, String)>, Failure> {
    let machine = |name: &String| {
        let (node, rates) = speeds.of_node(name, kernel)?;
        let (host, rates) = (node.host.clone(), rates.to_vec());
        let machine = Machine { name: name.clone(), host, rates, ..Machine::default() };
        Ok((machine, node.cpu.clone()))
    };
    nodes.iter().map(machine).collect()
}
