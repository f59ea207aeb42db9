//! `compare`: which nodes help, for which program. Runs an application on several mixes of nodes, or reads the reports
//! of such runs, and shows what each mix is worth and where its time goes.

mod figure;
mod lost;
mod model;
mod options;
mod predict;
mod runner;
mod saved;
mod spread;
mod table;
mod verdict;

pub(crate) use model::Comparison;
pub(crate) use options::{Files, MixOptions, all_of, checked, chosen, settled, with_apps};
pub(crate) use predict::{PlannedWork, Predictor};
pub(crate) use runner::{Progress, Starts, end_child, end_with_parent, report_in, rounds};

use super::network::Network;
use super::{output, say};
use crate::app::AppEntry;
use crate::command_line::CommandLine;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use options::CompareOptions;
use runner::{Turn, Warnings};
use runtime::failure::{Failure, Kind};
use runtime::monitor::text::clean_lines;
use saved::Run;
use std::path::{Path, PathBuf};

/// Among the reports that are kept, that of the network.
const NETWORK_REPORT: &str = "00-network.json";

/// The command.
pub(crate) fn command(program: &CommandLine) -> Command {
    let about = "Run an application on several mixes of nodes and show which nodes are worth having";
    let long = format!(
        "{about}\n\nWith reports of earlier runs instead of an application it compares these. Options of `compare` come \
         before the application's name, options of the application after it."
    );
    let command = CompareOptions::augment_args(Command::new("compare").about(about).long_about(long));
    with_apps(command.arg_required_else_help(true), program, |_| true)
}

/// Compares, prints and writes; the exit code.
pub(crate) fn compare(program: &CommandLine, matches: &ArgMatches) -> Result<u8, Failure> {
    let mut options = CompareOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    options.is_speed_given = matches.value_source("speed") == Some(ValueSource::CommandLine);
    let given = options.network.as_deref().map(Network::load).transpose()?;
    let mut remarks = Vec::new();
    let (network, runs) = match matches.subcommand_name() {
        Some(name) if !options.saved.is_empty() => {
            let sentence = format!("give either reports or the application {name}, not both");
            return Err(Failure::new(Kind::Usage, sentence));
        }
        Some(_) => {
            let (app, words) = chosen(program, matches)?;
            let Some(started) = checked(app, &words)? else { return Ok(0) };
            let words = settled(words, &started.settled);
            let config = options.mixes.nodes.load()?;
            options
                .files
                .check([started.files, options.inputs(), vec![output::nodes_file(&config)]].concat())?;
            options.mixes.nodes.say_which(&config);
            let mixes = options.mixes.of(&config)?;
            make_folder(&options)?;
            let network = match given {
                Some(network) => network,
                None => measured(program, app, &all_of(&mixes, &config), &options)?,
            };
            (network, run_all(program, (app, words), mixes, &options)?)
        }
        None if options.saved.is_empty() => {
            let sentence =
                format!("say what to compare: an application ({}), or reports of runs", names(program));
            return Err(Failure::new(Kind::Usage, sentence));
        }
        None => {
            options.files.check(options.inputs())?;
            let (network, runs) = load(program, &options.saved)?;
            let (runs, twice) = Run::once_each(runs);
            remarks = twice;
            (given.or(network).unwrap_or_default(), runs)
        }
    };
    let of_app = program.apps.iter().find(|app| Some(app.name) == runs.first().map(|run| run.app.as_str()));
    let mut comparison = Comparison::of(&runs, of_app.map_or(&[], |app| app.aside))?;
    remarks.into_iter().for_each(|remark| comparison.warn(remark));
    if let Some(model) = of_app.and_then(|app| app.cost.as_ref()) {
        Predictor { model, network: &network }.add_to(&mut comparison, &runs);
    }
    show(&comparison, &options.files)?;
    Ok(0)
}

/// The runs that files tell of, and the network, if the report of a run that measured it is among them.
fn load(program: &CommandLine, files: &[PathBuf]) -> Result<(Option<Network>, Vec<Run>), Failure> {
    let load = |path: &PathBuf| {
        Run::load(path).map_err(|failure| match failure.kind {
            // Who has mistyped an application's name is not helped by the name of a file.
            Kind::NoInput if path.extension().is_none() && !path.exists() => {
                let (name, names) = (path.display(), names(program));
                Failure::new(
                    Kind::Usage,
                    format!("there is neither an application ({names}) nor a report {name}"),
                )
            }
            _ => failure,
        })
    };
    let mut runs = files.iter().map(load).collect::<Result<Vec<Run>, Failure>>()?;
    let is_network = |run: &Run| program.network.is_some_and(|preset| preset.app == run.app);
    if runs.iter().all(is_network) {
        return Ok((None, runs));
    }
    let network = runs.iter().find(|run| is_network(run));
    let network = network.map(|run| Network::of_links(&run.facts["links"], &run.source)).transpose()?;
    runs.retain(|run| !is_network(run));
    Ok((network, runs))
}

/// The network between all nodes, if anything can be predicted with it; its report is kept with those of the runs.
fn measured(
    program: &CommandLine,
    app: &AppEntry,
    nodes: &[String],
    options: &CompareOptions,
) -> Result<Network, Failure> {
    if app.cost.is_none() || !options.speed.is_measured() {
        return Ok(Network::default());
    }
    let report = Network::measure(program, nodes, &options.mixes.nodes)?;
    if let (Some(folder), Some(report)) = (&options.reports, &report) {
        output::write("report", &folder.join(NETWORK_REPORT), report)?;
    }
    Network::of_report(report)
}

fn make_folder(options: &CompareOptions) -> Result<(), Failure> {
    let Some(folder) = &options.reports else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|e| {
        Failure::new(Kind::Output, format!("the folder {} cannot be made: {e}", folder.display()))
    })
}

/// Runs the application on every mix.
fn run_all(
    program: &CommandLine,
    (app, words): (&AppEntry, Vec<String>),
    mut mixes: Vec<Vec<String>>,
    options: &CompareOptions,
) -> Result<Vec<Run>, Failure> {
    let mut of_run = options.mixes.nodes.as_words();
    of_run.extend(["--quiet", "--report", "/dev/stdout"].map(ToString::to_string));
    // What was not asked for cannot be refused.
    if options.is_speed_given {
        of_run.extend(["--speed".into(), options.speed.name().into()]);
    }
    if let Some(limit) = options.timeout {
        of_run.extend(["--timeout".into(), limit.as_secs_f64().to_string()]);
    }
    let starts = Starts { command: run_command(program, app), options: of_run, words };
    let progress = Progress::new(mixes.len() * options.repeats);
    let mut warnings = Warnings::default();
    rounds(&mut mixes, options.repeats, &progress, |nodes, Turn { mix, repeat }| {
        let name = format!("{} on {}, run {repeat}", app.name, nodes.join(","));
        let done = starts.run(nodes, &name)?;
        warnings.pass_on(&done.stderr);
        let report = report_in(&done.stdout)
            .ok_or_else(|| Failure::new(Kind::Failed, format!("{name}: it has written no report")))?;
        if let Some(folder) = &options.reports {
            output::write("report", &folder.join(file_name(mix, nodes, repeat)), report)?;
        }
        Run::parse(report, &name)
    })
}

/// What stands before the options of a run of this application.
fn run_command(program: &CommandLine, app: &AppEntry) -> Vec<String> {
    if program.is_single() { vec!["run".into()] } else { vec!["run".into(), app.name.into()] }
}

/// A name for the report of a run, whatever nodes are called.
fn file_name(mix: usize, nodes: &[String], repeat: usize) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let names: Vec<String> = nodes.iter().map(|name| name.chars().map(plain).collect()).collect();
    let names: String = names.join("+").chars().take(80).collect();
    format!("{:02}-{names}-{repeat}.json", mix + 1)
}

/// The applications, for people.
fn names(program: &CommandLine) -> String {
    let visible = program.apps.iter().filter(|app| !app.command.is_hide_set());
    visible.map(|app| app.name).collect::<Vec<_>>().join(", ")
}

/// Prints a comparison, and writes what was asked for besides.
pub(crate) fn show(comparison: &Comparison, files: &Files) -> Result<(), Failure> {
    say(&comparison.text())?;
    write(comparison, files)
}

/// Writes what was asked for besides the terminal.
fn write(comparison: &Comparison, files: &Files) -> Result<(), Failure> {
    let text = |path: &Option<PathBuf>, what, text: &dyn Fn() -> String| {
        path.as_deref()
            .map_or(Ok(()), |path: &Path| output::write(what, path, clean_lines(&text()).as_bytes()))
    };
    let json = || serde_json::to_string_pretty(comparison).unwrap_or_default() + "\n";
    text(&files.csv, "table", &|| comparison.csv())?;
    text(&files.json, "comparison", &json)?;
    text(&files.markdown, "table", &|| comparison.markdown())?;
    text(&files.svg, "picture", &|| comparison.figure().to_svg())?;
    let Some(path) = &files.png else { return Ok(()) };
    let picture = comparison.figure().to_png();
    let picture =
        picture.map_err(|e| Failure::new(Kind::Failed, format!("the picture cannot be drawn: {e}")))?;
    output::write("picture", path, picture)
}

#[cfg(test)]
mod tests;
