//! `nodes speed`: measures the nodes with the kernel of one application, or of each.

use super::options::{NodesOptions, SpeedSource};
use super::rate::rate;
use super::speeds::{self, PeSpeeds, SpeedQuery};
use super::{copies, say};
use crate::app::Started;
use crate::command_line::CommandLine;
use chares::{Driver, RunError, Timeline};
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches as _};
use runtime::config::ClusterConfig;
use runtime::failure::{Failure, Kind};
use runtime::job::{Job, JobPlan};
use runtime::monitor::Detail;
use runtime::monitor::wire::{NodeInfo, RunInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Of the JSON.
const SCHEMA: &str = "metachare-speeds/1";

/// The command: with an application's name, its arguments too.
pub(crate) fn command(program: &CommandLine) -> Command {
    let about = "Measure the nodes with the kernel of each application, or of one with its arguments";
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).global(true).help("As JSON");
    let all = NodesOptions::augment_args(Command::new("speed").about(about)).arg(json);
    let apps = program.apps.iter().filter(|app| app.kernel.is_some());
    apps.fold(all.args_conflicts_with_subcommands(true), |all, app| {
        all.subcommand(NodesOptions::augment_args(app.command.clone()))
    })
}

/// An application that is measured.
struct MeasuredApp {
    name: &'static str,
    started: Started,
}

/// Measures and prints a table; the exit code.
pub(crate) fn speed(program: CommandLine, matches: &ArgMatches, started_at: Instant) -> Result<u8, Failure> {
    let (only, matches) = match matches.subcommand() {
        Some((name, of_app)) => (Some(name), of_app),
        None => (None, matches),
    };
    let options = NodesOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    let config = options.load()?;
    options.say_which(&config);
    let mut apps = Vec::new();
    for app in program.apps.iter().filter(|app| app.kernel.is_some() && only.is_none_or(|n| n == app.name)) {
        let started = match only {
            Some(_) => (app.start)(matches),
            None => {
                let defaults = app.command.clone().try_get_matches_from([app.name]);
                let needs = |_| RunError::Input(format!("it needs arguments: `nodes speed {} …`", app.name));
                defaults.map_err(needs).and_then(|defaults| (app.start)(&defaults))
            }
        };
        let started = started.map_err(|e| Failure::new(e.kind(), format!("{}: {e}", app.name)))?;
        apps.push(MeasuredApp { name: app.name, started });
    }
    if apps.is_empty() {
        return Err(Failure::new(
            Kind::Usage,
            format!("no application of {} has a kernel to measure", program.name),
        ));
    }
    let mut plan = JobPlan {
        name: None,
        app: only.unwrap_or(program.name).into(),
        program: Arc::new(program.program.into_table()),
        arguments: Vec::new(),
        kernel_arguments: Vec::new(),
        launch: options.launch(&config)?,
        config: config.clone(),
        always_pup: false,
        wander: None,
        detail: Detail::default(),
        begun: Vec::new(),
        balance: None,
        keeps_loads: false,
        timeout: None,
    };
    let job = copies::shown(true, |copies| {
        plan.launch.copies = copies;
        Job::start(plan)
    });
    let mut job = job.map_err(Failure::from)?;
    let events = job.take_events().ok_or_else(|| Failure::new(Kind::Failed, "the run has no driver"))?;
    let info = job.hub().info();
    let mut main = Driver::new(job.node(), events, Timeline::new(started_at));
    let found = measure(&mut main, &apps, &info, &config);
    let failure = job.finish();
    let found = found.map_err(|e| failure.unwrap_or_else(|| e.into()))?;
    // An application may have an option of this name that is something else.
    if matches.try_get_one("json").is_ok_and(|json| json == Some(&true)) {
        let speeds = Speeds::of(&info, &apps, &found);
        let text = serde_json::to_string_pretty(&speeds).map_err(|e| Failure::new(Kind::Failed, e))?;
        say(&(text + "\n"))?;
    } else {
        say(&table(&info, &apps, &found))?;
    }
    Ok(0)
}

/// What was measured, as `--json` has it and `plan --speeds` reads it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Speeds {
    schema: String,
    #[serde(skip)]
    source: String,
    nodes: Vec<NodeSpeeds>,
}

/// What a node reaches.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NodeSpeeds {
    name: String,
    pub(crate) host: String,
    pub(crate) cpu: String,
    /// Units of work per second of each PE, by the kernel and what it depends on.
    rates: BTreeMap<String, Vec<f64>>,
}

impl Speeds {
    fn of(info: &RunInfo, apps: &[MeasuredApp], found: &[PeSpeeds]) -> Self {
        let of_node = |node: &NodeInfo| {
            let rates = apps.iter().zip(found).filter_map(|(app, found)| {
                Some((app.started.kernel.key.clone(), found.rates.get(node.pes())?.to_vec()))
            });
            NodeSpeeds {
                name: node.name.clone(),
                host: node.host.clone(),
                cpu: node.cpu.clone(),
                rates: rates.collect(),
            }
        };
        let nodes = info.nodes.iter().map(of_node).collect();
        Self { schema: SCHEMA.into(), source: String::new(), nodes }
    }

    /// Those in a file.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|e| Failure::new(Kind::NoInput, format!("the speeds {name} cannot be read: {e}")))?;
        Self::parse(&bytes, &name)
    }

    /// Understands what `--json` has written; `source` names it in sentences.
    pub(crate) fn parse(bytes: &[u8], source: &str) -> Result<Self, Failure> {
        let refused = |why: String| {
            let sentence = format!("{source} has no speeds: {why}; `nodes speed APP --json` writes them");
            Failure::new(Kind::Input, sentence)
        };
        let speeds: Self = serde_json::from_slice(bytes).map_err(|e| refused(e.to_string()))?;
        if speeds.schema != SCHEMA {
            return Err(refused(format!("its schema is {:?}, not {SCHEMA}", speeds.schema)));
        }
        let all = speeds.nodes.iter().flat_map(|node| node.rates.values());
        if all.clone().any(Vec::is_empty) || all.flatten().any(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return Err(refused("a node has no PEs, or a rate that is not above 0".into()));
        }
        Ok(Self { source: source.into(), ..speeds })
    }

    /// A node, and what its PEs reach with this kernel.
    pub(crate) fn of_node(&self, name: &str, kernel: &str) -> Result<(&NodeSpeeds, &[f64]), Failure> {
        let refused = |why: String| Failure::new(Kind::Input, format!("{} {why}", self.source));
        let node = self.nodes.iter().find(|node| node.name == name);
        let node = node.ok_or_else(|| refused(format!("has no speeds of the node {name}")))?;
        let rates = node.rates.get(kernel).ok_or_else(|| {
            let known: Vec<&str> = node.rates.keys().map(String::as_str).collect();
            refused(format!("has no speeds of {name} for `{kernel}`, only for `{}`", known.join("`, `")))
        })?;
        Ok((node, rates))
    }
}

/// One after the other, on the same nodes.
fn measure(
    main: &mut Driver,
    apps: &[MeasuredApp],
    info: &RunInfo,
    config: &ClusterConfig,
) -> Result<Vec<PeSpeeds>, RunError> {
    let found = apps.iter().map(|MeasuredApp { started, .. }| {
        speeds::find(main, SpeedSource::Measured, &SpeedQuery::new(info, config, &started.kernel))
    });
    found.collect()
}

/// A line for each application on each node: those of one application stand together, as their units are the same.
fn table(info: &RunInfo, apps: &[MeasuredApp], found: &[PeSpeeds]) -> String {
    let line = |cells: [&str; 6]| {
        let [app, node, pes, each, all, speed] = cells;
        let line = format!("{app:<10} {node:<12} {pes:>4} {each:>19} {all:>19} {speed:>6}");
        line.trim_end().to_string() + "\n"
    };
    let mut text = line(["", "node", "PEs", "each PE", "the node", "speed"]);
    for (MeasuredApp { name, started }, found) in apps.iter().zip(found) {
        let unit = started.kernel.unit;
        for node in &info.nodes {
            let sum = |of: &[f64]| of.get(node.pes()).map_or(0.0, |part| part.iter().sum::<f64>());
            let (all, speed) = (sum(&found.rates), format!("{:.3}", sum(&found.relative)));
            let each = rate(all / f64::from(node.pe_count.max(1)), unit);
            let cells = [*name, &node.name, &node.pe_count.to_string(), &each, &rate(all, unit), &speed];
            text += &line(cells);
        }
    }
    text + "a node's speed is the sum of those of its PEs, of which the fastest has 1.0\n"
}
