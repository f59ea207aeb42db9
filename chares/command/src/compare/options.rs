//! What `compare` and `plan` are asked for.

use crate::app::{AppEntry, Started};
use crate::command_line::CommandLine;
use crate::named_file::NamedFile;
use crate::options::{NodesOptions, SpeedSource, seconds};
use crate::{output, said, sentence_of};
use clap::{Arg, ArgMatches, Args, Command, ValueEnum};
use runtime::config::ClusterConfig;
use runtime::failure::{Failure, Kind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the words after an application's name are kept.
const WORDS: &str = "words";
/// More repeats than anybody waits for.
const REPEATS_MAX: usize = 1000;

// Documentation here would become that of the command.
#[derive(Args, Clone, Debug)]
pub(super) struct CompareOptions {
    #[command(flatten)]
    pub(super) mixes: MixOptions,
    /// Run each mix so many times
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = repeats)]
    pub(super) repeats: usize,
    /// Where the speeds of PEs come from
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) speed: SpeedSource,
    /// Whether that was said on the command line.
    #[arg(skip)]
    pub(super) is_speed_given: bool,
    /// End with an error when a run takes longer than so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(super) timeout: Option<Duration>,
    /// Keep the report of every run in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) reports: Option<PathBuf>,
    /// What `netbench --json` has measured between the nodes, for the prediction, instead of measuring it now
    #[arg(long, value_name = "FILE")]
    pub(super) network: Option<PathBuf>,
    #[command(flatten)]
    pub(super) files: Files,
    /// Reports of earlier runs, instead of an application to run
    #[arg(value_name = "REPORT", conflicts_with_all = ["mix", "mixes", "nodes", "built_in_nodes", "only", "reports"])]
    pub(super) saved: Vec<PathBuf>,
}

// Which mixes of which nodes.
#[derive(Args, Clone, Debug)]
pub(crate) struct MixOptions {
    /// Nodes that run together; once for each mix, and a mix that is named twice counts once
    #[arg(long, value_name = "NAME,…", conflicts_with = "mixes")]
    mix: Vec<String>,
    /// Which mixes, unless they are named by --mix
    #[arg(long, value_enum, default_value = "all-prefixes")]
    mixes: Choice,
    #[command(flatten)]
    pub(crate) nodes: NodesOptions,
}

// Where the result goes besides the terminal.
#[derive(Args, Clone, Debug)]
pub(crate) struct Files {
    /// Write the table as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// Draw speedup against equivalents as SVG
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Draw the same as PNG
    #[arg(long, value_name = "FILE")]
    pub(super) png: Option<PathBuf>,
}

/// Which mixes of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The first node, the first two, and so on to all
    AllPrefixes,
    /// Each node alone, then all together
    Singles,
}

impl CompareOptions {
    /// The files that are read here, whatever runs.
    pub(super) fn inputs(&self) -> Vec<NamedFile> {
        let network = self.network.iter().map(|file| NamedFile::read("--network", file));
        network.chain(self.saved.iter().map(|file| NamedFile::read("a report of before", file))).collect()
    }
}

impl MixOptions {
    /// The names of the nodes of each mix, in the order of the nodes file.
    pub(crate) fn of(&self, config: &ClusterConfig) -> Result<Vec<Vec<String>>, Failure> {
        let all: Vec<String> = config.nodes.iter().map(|node| node.name.clone()).collect();
        let mut mixes = match self.mixes {
            _ if !self.mix.is_empty() => {
                self.mix.iter().map(|mix| named(mix, config)).collect::<Result<Vec<_>, _>>()?
            }
            Choice::AllPrefixes => (1..=all.len()).map(|count| all[..count].to_vec()).collect(),
            Choice::Singles => all.iter().map(|name| vec![name.clone()]).chain([all.clone()]).collect(),
        };
        let mut seen = Vec::new();
        mixes.retain(|mix| {
            !seen.contains(mix) && {
                seen.push(mix.clone());
                true
            }
        });
        Ok(mixes)
    }
}

/// The nodes that are in some of these mixes, in the order of the nodes file.
pub(crate) fn all_of(mixes: &[Vec<String>], config: &ClusterConfig) -> Vec<String> {
    let names = config.nodes.iter().map(|node| &node.name);
    names.filter(|name| mixes.iter().flatten().any(|other| other == *name)).cloned().collect()
}

/// The nodes of a mix as the user names them, in the order of the file.
fn named(mix: &str, config: &ClusterConfig) -> Result<Vec<String>, Failure> {
    let names: Vec<String> =
        mix.split(',').map(str::trim).filter(|name| !name.is_empty()).map(ToString::to_string).collect();
    if names.is_empty() {
        return Err(Failure::new(
            Kind::Usage,
            "--mix names no node; give names of the nodes file with commas between",
        ));
    }
    let chosen =
        config.clone().select(&names).map_err(|e| Failure::new(Kind::Usage, format!("--mix {mix}: {e}")))?;
    Ok(chosen.nodes.into_iter().map(|node| node.name).collect())
}

impl Files {
    /// Every file with its option and with what it is.
    fn all(&self) -> impl Iterator<Item = (&'static str, &Path, &'static str)> {
        let files = [
            ("--csv", &self.csv, "table"),
            ("--json", &self.json, "comparison"),
            ("--markdown", &self.markdown, "table"),
            ("--svg", &self.svg, "picture"),
            ("--png", &self.png, "picture"),
        ];
        files.into_iter().filter_map(|(option, path, what)| Some((option, path.as_deref()?, what)))
    }

    /// Says before anything is run whether all can be written, and none over another or over one of the `others`.
    pub(crate) fn check(&self, others: Vec<NamedFile>) -> Result<(), Failure> {
        let mut files = others;
        files.extend(self.all().map(|(option, path, _)| NamedFile::written(option, path)));
        output::check_files(&files)?;
        self.all().try_for_each(|(_, path, what)| output::check(what, path))
    }
}

/// Adds the applications, and hides those that do not suit: what follows a name is its own, checked when the command is
/// carried out.
pub(crate) fn with_apps(
    command: Command,
    program: &CommandLine,
    suits: impl Fn(&AppEntry) -> bool,
) -> Command {
    let apps = program.apps.iter().filter(|app| !app.command.is_hide_set());
    let of_app = |app: &AppEntry| {
        let about = app.command.get_about().cloned().unwrap_or_default();
        let words = Arg::new(WORDS).num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        Command::new(app.name).about(about).disable_help_flag(true).arg(words).hide(!suits(app))
    };
    command
        .subcommand_precedence_over_arg(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("APP [OPTIONS OF APP]")
        .subcommands(apps.map(of_app))
}

/// The application that was named, and the words after its name.
pub(crate) fn chosen<'a>(
    program: &'a CommandLine,
    matches: &ArgMatches,
) -> Result<(&'a AppEntry, Vec<String>), Failure> {
    let missing = || Failure::new(Kind::Usage, "say which application; `--help` lists them");
    let (name, of_app) = matches.subcommand().ok_or_else(missing)?;
    let app = program.apps.iter().find(|app| app.name == name).ok_or_else(missing)?;
    Ok((app, of_app.get_many::<String>(WORDS).unwrap_or_default().cloned().collect()))
}

/// The application with its arguments, checked here once before the first of many runs would; `None` if only its help
/// was asked for, which has been printed then.
pub(crate) fn checked(app: &AppEntry, words: &[String]) -> Result<Option<Started>, Failure> {
    let line = std::iter::once(app.name).chain(words.iter().map(String::as_str));
    match app.command.clone().try_get_matches_from(line) {
        Ok(matches) => {
            let started = (app.start)(&matches).and_then(Started::without_unused);
            started.map(Some).map_err(Failure::from)
        }
        Err(help) if !help.use_stderr() => said(help.print()).map(|()| None),
        Err(error) => Err(Failure::new(Kind::Usage, format!("{}: {}", app.name, sentence_of(&error)))),
    }
}

/// The words of an application with what a trial has found out for them, so that all runs do the same work: each option that
/// is settled gives way to its value.
pub(crate) fn settled(words: Vec<String>, by: &[(&str, Option<String>)]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let name = word
            .strip_prefix("--")
            .map(|rest| rest.split_once('=').map_or((rest, false), |(name, _)| (name, true)));
        match name.filter(|(name, _)| by.iter().any(|(option, _)| option == name)) {
            Some((_, has_value)) => drop(if has_value { None } else { words.next() }),
            None => kept.push(word),
        }
    }
    let values = by.iter().filter_map(|(option, value)| Some([format!("--{option}"), value.clone()?]));
    kept.extend(values.flatten());
    kept
}

fn repeats(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=REPEATS_MAX).contains(count));
    count.ok_or_else(|| format!("give a number from 1 to {REPEATS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;

    #[test]
    fn what_a_trial_has_found_is_in_the_place_of_what_asked_for_it() {
        let settled = |words: &str, by: &[(&str, Option<String>)]| {
            settled(words.split(' ').map(String::from).collect(), by).join(" ")
        };
        let by = [("seconds", None), ("work", Some("75".to_string()))];
        for words in ["--seconds 0.5 --barrier", "--barrier --seconds=0.5", "--work 9 --barrier", "--barrier"]
        {
            assert_eq!(settled(words, &by), "--barrier --work 75");
        }
        assert_eq!(settled("--n 9 --seconds 2", &[]), "--n 9 --seconds 2");
        assert_eq!(settled("--n 9 --seconds 2", &by[..1]), "--n 9");
    }

    fn mixes(words: &[&str]) -> Result<Vec<String>, String> {
        let command = CompareOptions::augment_args(Command::new("compare"));
        let words = [&["compare", "--built-in-nodes"], words].concat();
        let matches = command.try_get_matches_from(words).map_err(|e| e.to_string())?;
        let options = CompareOptions::from_arg_matches(&matches).map_err(|e| e.to_string())?;
        let mixes = options
            .mixes
            .nodes
            .load()
            .and_then(|config| options.mixes.of(&config))
            .map_err(|e| e.sentence)?;
        Ok(mixes.iter().map(|mix| mix.join(",")).collect())
    }

    #[test]
    fn mixes_are_those_named_in_the_order_of_the_file_each_once() {
        assert_eq!(mixes(&[]).unwrap(), ["large", "large,medium", "large,medium,small"]);
        assert_eq!(
            mixes(&["--mixes", "singles"]).unwrap(),
            ["large", "medium", "small", "large,medium,small"]
        );
        let named = ["--mix", "small,large", "--mix", "medium", "--mix", " large , small"];
        assert_eq!(mixes(&named).unwrap(), ["large,small", "medium"]);
        assert_eq!(mixes(&["--only", "small,medium"]).unwrap(), ["medium", "medium,small"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_sentence() {
        assert!(mixes(&["--mix", "large,huge"]).unwrap_err().contains("no node \"huge\""));
        assert!(mixes(&["--mix", ","]).unwrap_err().contains("names no node"));
        assert!(mixes(&["--repeats", "0"]).unwrap_err().contains("from 1 to 1000"));
        assert!(mixes(&["a.json", "--mix", "large"]).unwrap_err().contains("cannot be used with"));
    }
}
