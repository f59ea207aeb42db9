//! `compare`: which nodes help, for which program. Runs an application on several mixes of nodes, or reads the reports
//! of such runs, and shows what each mix is worth and where its time goes.

mod figure;
mod lost;
mod model;
mod options;
mod png;
mod runner;
mod saved;
mod spread;
mod table;
mod verdict;

pub(crate) use runner::end_child;

use super::{Ended, NO_INPUT, USAGE, output, say};
use crate::program::{AppEntry, Program};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use model::Comparison;
use options::{CompareOptions, Files};
use runner::{Progress, Starts, Turn, Warnings};
use saved::Run;
use std::path::Path;

/// The command.
pub(crate) fn command(program: &Program) -> Command {
    let about = "Run an application on several mixes of nodes and show which nodes are worth having";
    let long = format!(
        "{about}. With reports of earlier runs instead of an application it compares these. Options of `compare` come \
         before the application's name, options of the application after it."
    );
    let command = CompareOptions::augment_args(Command::new("compare").about(about).long_about(long));
    options::with_apps(command.arg_required_else_help(true), program)
}

/// Compares, prints and writes; the exit code.
pub(crate) fn compare(program: &Program, matches: &ArgMatches) -> Result<u8, Ended> {
    let options = CompareOptions::from_arg_matches(matches).map_err(|e| Ended::new(USAGE, e))?;
    options.files.check()?;
    let runs = match matches.subcommand() {
        Some((name, of_app)) => {
            if !options.saved.is_empty() {
                let sentence = format!("give either reports or the application {name}, not both");
                return Err(Ended::new(USAGE, sentence));
            }
            let (app, words) = (app(program, name)?, options::words(of_app));
            if !is_fit(app, &words)? {
                return Ok(0);
            }
            run_all(program, app, words, &options)?
        }
        None if options.saved.is_empty() => {
            let names: Vec<&str> = visible(program).map(|app| app.name).collect();
            let sentence = format!(
                "say what to compare: an application with its options ({}), or reports of runs",
                names.join(", ")
            );
            return Err(Ended::new(USAGE, sentence));
        }
        None => load(program, &options.saved)?,
    };
    let of_app = program.apps.iter().find(|app| Some(app.name) == runs.first().map(|run| run.app.as_str()));
    let comparison = Comparison::of(&runs, of_app.map_or(&[], |app| app.aside))?;
    say(&comparison.text())?;
    write(&comparison, &options.files)?;
    Ok(0)
}

fn load(program: &Program, files: &[std::path::PathBuf]) -> Result<Vec<Run>, Ended> {
    let load = |path: &std::path::PathBuf| {
        Run::load(path).map_err(|ended| match ended.code {
            // Who has mistyped an application's name is not helped by the name of a file.
            NO_INPUT if path.extension().is_none() && !path.exists() => {
                let names: Vec<&str> = visible(program).map(|app| app.name).collect();
                let (name, names) = (path.display(), names.join(", "));
                Ended::new(USAGE, format!("there is neither an application ({names}) nor a report {name}"))
            }
            _ => ended,
        })
    };
    files.iter().map(load).collect()
}

/// Runs the application on every mix.
fn run_all(
    program: &Program,
    app: &AppEntry,
    words: Vec<String>,
    options: &CompareOptions,
) -> Result<Vec<Run>, Ended> {
    let mut mixes = options.mixes.load()?;
    if let Some(folder) = &options.reports {
        std::fs::create_dir_all(folder).map_err(|e| {
            Ended::new(super::NO_OUTPUT, format!("the folder {} cannot be made: {e}", folder.display()))
        })?;
    }
    let mut of_run = options.mixes.as_words();
    of_run.extend(["--quiet", "--report", "/dev/stdout"].map(ToString::to_string));
    if let Some(limit) = options.timeout {
        of_run.extend(["--timeout".into(), limit.as_secs_f64().to_string()]);
    }
    let starts = Starts { command: run_command(program, app), options: of_run, words };
    let progress = Progress::new(mixes.len() * options.repeats);
    let mut warnings = Warnings::default();
    runner::rounds(&mut mixes, options.repeats, &progress, |nodes, Turn { mix, repeat }| {
        let name = format!("{} on {}, run {repeat}", app.name, nodes.join(","));
        let done = starts.run(nodes, &name)?;
        warnings.pass_on(&done.stderr);
        let report = runner::report_in(&done.stdout)
            .ok_or_else(|| Ended::new(70, format!("{name}: it has written no report")))?;
        if let Some(folder) = &options.reports {
            output::write("report", &folder.join(file_name(mix, nodes, repeat)), report)?;
        }
        Run::parse(report, &name)
    })
}

/// What stands before the options of a run of this application.
fn run_command(program: &Program, app: &AppEntry) -> Vec<String> {
    if program.is_single() { vec!["run".into()] } else { vec!["run".into(), app.name.into()] }
}

/// A name for the report of a run, whatever nodes are called.
fn file_name(mix: usize, nodes: &[String], repeat: usize) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let names: Vec<String> = nodes.iter().map(|name| name.chars().map(plain).collect()).collect();
    let names: String = names.join("+").chars().take(80).collect();
    format!("{:02}-{names}-{repeat}.json", mix + 1)
}

/// Checks the application's arguments here, once, before the first of many runs would; `false` if only its help was
/// asked for, which has been printed then.
fn is_fit(app: &AppEntry, words: &[String]) -> Result<bool, Ended> {
    let line = std::iter::once(app.name).chain(words.iter().map(String::as_str));
    match app.command.clone().try_get_matches_from(line) {
        Ok(matches) => (app.start)(&matches).map(|_| true).map_err(|e| Ended::new(e.exit_code(), e)),
        Err(help) if !help.use_stderr() => super::said(help.print()).map(|()| false),
        // Its first line is the sentence; the rest is about a usage that is not this one.
        Err(error) => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Err(Ended::new(USAGE, format!("{}: {line}", app.name)))
        }
    }
}

fn visible(program: &Program) -> impl Iterator<Item = &AppEntry> {
    program.apps.iter().filter(|app| !app.command.is_hide_set())
}

fn app<'a>(program: &'a Program, name: &str) -> Result<&'a AppEntry, Ended> {
    let app = program.apps.iter().find(|app| app.name == name);
    app.ok_or_else(|| Ended::new(USAGE, format!("there is no application {name}")))
}

/// Writes what was asked for besides the terminal.
fn write(comparison: &Comparison, files: &Files) -> Result<(), Ended> {
    let text = |path: &Option<std::path::PathBuf>, what, text: &dyn Fn() -> String| {
        path.as_deref().map_or(Ok(()), |path: &Path| output::write(what, path, text()))
    };
    let json = || serde_json::to_string_pretty(comparison).unwrap_or_default() + "\n";
    text(&files.csv, "table", &|| comparison.csv())?;
    text(&files.json, "comparison", &json)?;
    text(&files.markdown, "table", &|| comparison.markdown())?;
    text(&files.svg, "picture", &|| comparison.figure().to_svg())?;
    let Some(path) = &files.png else { return Ok(()) };
    let picture = png::written(&comparison.figure().drawing())
        .map_err(|e| Ended::new(70, format!("the picture cannot be drawn: {e}")))?;
    output::write("picture", path, picture)
}

#[cfg(test)]
mod tests;
