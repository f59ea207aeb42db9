//! What a run needs before it begins: its arguments, nodes, files, balancer and name, found to be there or named as missing.

use super::live::metrics;
use super::log::NodeLogs;
use super::options::RunOptions;
use super::output;
use super::restart::{self, Origin};
use super::unstarted::Unstarted;
use super::viewers::kept;
use super::warn;
use crate::app::Started;
use crate::command_line::CommandLine;
use crate::named_file::NamedFile;
use crate::replacement::can_be_written;
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use loadbalance::balance::Choice;
use runtime::checkpoint::{Store, WriteError};
use runtime::config::ClusterConfig;
use runtime::failure::{Failure, Kind};
use runtime::job::SaveOrders;
use runtime::launch::LaunchOptions;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A run that a command line asks for.
pub(crate) struct Asked {
    /// Name of the application.
    pub(crate) name: String,
    /// What its arguments are.
    pub(crate) matches: ArgMatches,
    pub(crate) options: RunOptions,
    /// The words that began the run.
    pub(crate) line: Vec<String>,
    /// What it goes on from, if it does not begin.
    pub(crate) from: Option<Origin>,
}

impl Asked {
    /// A run that begins.
    ///
    /// # Errors
    /// If its options are not those of a run.
    pub(crate) fn new(name: &str, matches: &ArgMatches, line: Vec<String>) -> Result<Self, Failure> {
        let options = RunOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
        let is_said = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let said = ["checkpoint_every", "checkpoint_protocol", "checkpoint_keep"].into_iter().find(is_said);
        if let Some(said) = said.filter(|_| options.checkpoint.is_none()) {
            let option = said.replace('_', "-");
            let sentence = format!("--{option}: say where the run is to be saved, too: --checkpoint DIR");
            return Err(Failure::new(Kind::Usage, sentence));
        }
        Ok(Self { name: name.into(), matches: matches.clone(), options, line, from: None })
    }
}

/// All that a run needs beside its checkpoint, found to be there.
pub(crate) struct Prepared {
    pub(crate) ready: Ready,
    pub(crate) unstarted: Unstarted,
    pub(crate) balance: Option<(Choice, String)>,
    pub(crate) metrics: Option<TcpListener>,
    /// The run's name, if one was asked for.
    pub(crate) name: Option<String>,
    /// Where it is saved, once that is open.
    pub(crate) store: Option<Saves>,
}

impl Prepared {
    /// The nodes.
    pub(crate) fn config(&self) -> &ClusterConfig {
        &self.ready.config
    }

    /// Writes the report of a run that has not begun, if one is wanted.
    pub(crate) fn report(&self, options: &RunOptions, why: &Failure) {
        options.report.iter().for_each(|report| report_unstarted(&self.unstarted, report, why));
    }
}

/// Where a run is saved, and what asks for that.
pub(crate) type Saves = (Store, Arc<SaveOrders>);

/// Finds all that a run needs. Into the folder `held` a run writes that is to go on as this one: it is opened later.
///
/// # Errors
/// What makes no sense, or is not to be had.
pub(crate) fn prepare(
    program: &CommandLine,
    asked: &Asked,
    held: Option<&Path>,
    command_started: Instant,
) -> Result<Prepared, Failure> {
    let Asked { name, matches, options, line, from } = asked;
    let unstarted = Unstarted::new(program, name, line.clone(), command_started);
    let ready = ready_or_reported(program, name, (matches, from.as_ref()), options, &unstarted)?;
    let balance = match from {
        Some(from) => from.balance(&ready.config, &options.balance),
        None => options.balance.clone(),
    };
    let dir = options.checkpoint.as_deref().filter(|dir| !held.is_some_and(|held| is_same(dir, held)));
    Ok(Prepared {
        balance: options.balancer(&balance)?,
        metrics: options.metrics.map(metrics::listen).transpose()?,
        name: options.free_name()?,
        store: dir.map(|dir| store_in(dir, options.checkpoint_keep as usize)).transpose()?,
        ready,
        unstarted,
    })
}

/// Whether two paths lead to one folder.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

/// Writes why a run has not begun; where that cannot be written, a line says so.
fn report_unstarted(unstarted: &Unstarted, report: &Path, why: &Failure) {
    if let Err(unwritten) = unstarted.report(report, why) {
        warn(&unwritten.sentence);
    }
}

/// Makes a run ready, or reports why it cannot be.
fn ready_or_reported(
    program: &CommandLine,
    name: &str,
    from: (&ArgMatches, Option<&Origin>),
    options: &RunOptions,
    unstarted: &Unstarted,
) -> Result<Ready, Failure> {
    let Some(report) = &options.report else { return ready(program, name, from, options) };
    unstarted.begin(report);
    let ready = ready(program, name, from, options);
    let ready = ready.inspect_err(|why| report_unstarted(unstarted, report, why))?;
    let mut files = files(&ready.started, options, &ready.config);
    files.push(NamedFile::written("--report", report));
    if let Err(why) = output::check_files(&files) {
        // Where the file is none yet it is not only for the report; another file stays as it is.
        if report.exists() {
            let _ = unstarted.report(report, &why);
        }
        return Err(why);
    }
    output::check("report", report)?;
    Ok(ready)
}

/// What a run is made of: the application with its arguments, the nodes, how they are started, and their logs.
pub(crate) struct Ready {
    pub(crate) started: Started,
    pub(crate) config: ClusterConfig,
    pub(crate) launch: LaunchOptions,
    pub(crate) logs: Option<NodeLogs>,
}

/// The folder in which a run is saved. A signal that asks for that does not end the run from here on, however early it comes.
pub(crate) fn store_in(dir: &Path, kept: usize) -> Result<Saves, Failure> {
    let orders = runtime::job::hear_checkpoint_orders()
        .map_err(|e| Failure::new(Kind::Unavailable, format!("signals cannot be heard: {e}")))?;
    let store = Store::create_keeping(dir, kept).map_err(|error| {
        let mend = match error {
            WriteError::Io { .. } => "; name a folder that is there or can be made, and that may be written",
            _ => "",
        };
        let Failure { kind, sentence, .. } = Failure::from(error);
        Failure::new(kind, format!("--checkpoint: {sentence}{mend}"))
    });
    Ok((store?, orders))
}

fn ready(
    program: &CommandLine,
    name: &str,
    (matches, from): (&ArgMatches, Option<&Origin>),
    options: &RunOptions,
) -> Result<Ready, Failure> {
    let config = options.nodes.load()?;
    let app = program.apps.iter().find(|app| app.name == name);
    let app = app.ok_or_else(|| Failure::new(Kind::Usage, format!("there is no application {name}")))?;
    let started = (app.start)(matches);
    // A run that goes on was begun by a version that took what it was given.
    let started = if from.is_none() { started.and_then(Started::without_unused) } else { started };
    let started = started.map_err(Failure::from)?;
    output::check_files(&files(&started, options, &config))?;
    let is_asked_for = matches.value_source("speed") == Some(ValueSource::CommandLine);
    let mut config = taken(config, &started, options, is_asked_for)?;
    if let Some(from) = from {
        restart::deal_pes(&mut config, from.pes)?;
    }
    if !config.nodes.is_empty() && !options.quiet {
        options.nodes.say_which(&config);
    }
    let mut launch = options.nodes.launch(&config)?;
    for (path, form) in kept(options) {
        can_be_written(path).map_err(|e| output::unwritable(form.name(), path, &e))?;
    }
    let logs = options.log.begin(&mut config)?;
    launch.log = logs.as_ref().map(NodeLogs::lines);
    Ok(Ready { started, config, launch, logs })
}

/// All files of a run but its report.
fn files(started: &Started, options: &RunOptions, config: &ClusterConfig) -> Vec<NamedFile> {
    let recording = kept(options).map(|(path, form)| NamedFile::written(form.option(), path));
    let logs = options.log.files(config);
    started.files.iter().cloned().chain([output::nodes_file(config)]).chain(recording).chain(logs).collect()
}

/// The nodes that a run takes: none where the driver makes all by itself.
fn taken(
    config: ClusterConfig,
    started: &Started,
    options: &RunOptions,
    is_asked_for: bool,
) -> Result<ClusterConfig, Failure> {
    if started.is_alone {
        return Ok(ClusterConfig { nodes: Vec::new(), ..config });
    }
    options.check_speed(is_asked_for, started.kernel.number.is_some(), &config)?;
    Ok(config)
}
