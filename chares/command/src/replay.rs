//! `replay`: a recorded run in the load window, as a picture and as a trace for other viewers.

mod chart;
mod clocks;
mod collectives;
mod sampled;
mod series;
#[cfg(test)]
mod tests;
mod trace;

use super::watch::{exit_code, unshown};
use super::{output, still, warn};
use crate::named_file::NamedFile;
use clap::{Arg, ArgMatches, Command, value_parser};
use collectives::Sum;
use runtime::failure::{Failure, Kind};
use runtime::monitor::critical_path::{Link, Path as CriticalPath};
use runtime::monitor::gaps::Gaps;
use runtime::monitor::recording::{Broken, Recording, RecordingError};
use runtime::monitor::ways::{self, Way};
use sampled::Sampled;
use series::Series;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tui::{PlayOptions, Still};

/// One PE that has so much of what PEs do on a path is what others wait for.
const OF_ONE: f64 = 0.8;

pub(crate) fn command() -> Command {
    Command::new("replay")
        .about("Show a recorded run (`run --record FILE`) in the load window")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The recording"),
        )
        .arg(
            Arg::new("speed")
                .long("speed")
                .value_name("X")
                .default_value("1")
                .value_parser(speed)
                .allow_negative_numbers(true)
                .help("Seconds of the run per second; < and > change it"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("SECONDS")
                .value_parser(moment)
                .allow_negative_numbers(true)
                .help("Begin there [default: the start; with --once and --picture the end]"),
        )
        .arg(to_file("svg").help("Write a picture of the three bars of each PE, and show no window"))
        .arg(
            to_file("trace")
                .help("Write a trace for Perfetto or Chrome, all nodes on one clock, and show no window"),
        )
        .args(still::options())
}

/// An option for a file that is written of the whole recording.
fn to_file(name: &'static str) -> Arg {
    let arg = Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf));
    arg.conflicts_with_all(["speed", "from", "once", "picture"])
}

pub(crate) fn replay(matches: &ArgMatches) -> Result<u8, Failure> {
    let file = matches.get_one::<PathBuf>("file").map_or(Path::new(""), PathBuf::as_path);
    let written = ["svg", "trace"]
        .into_iter()
        .filter_map(|name| Some(NamedFile::written(&format!("--{name}"), matches.get_one::<PathBuf>(name)?)));
    output::check_files(
        &written
            .chain(still::file(matches))
            .chain([NamedFile::read("the recording", file)])
            .collect::<Vec<_>>(),
    )?;
    let recording = open(file)?;
    warn_if_broken(&recording, file);
    let is_exported = export(&recording, matches)?;
    let from = matches.get_one::<Duration>("from").copied();
    let options = still::window_options(matches);
    if still::is_wanted(matches) {
        let at = from.unwrap_or(recording.duration());
        still::show(Still::of_moment(recording, at, &options), matches)?;
        return Ok(0);
    }
    if is_exported {
        return Ok(0);
    }
    let speed = matches.get_one::<f64>("speed").copied().unwrap_or(1.0);
    let play = PlayOptions { from: from.unwrap_or_default(), speed };
    tui::replay(recording, &options, &play).map(exit_code).map_err(unshown)
}

/// Says that a file is not what was written, where that is so.
pub(crate) fn warn_if_broken(recording: &Recording, file: &Path) {
    if let Some(broken @ (Broken::Cut(_) | Broken::Damaged(_))) = &recording.broken {
        warn(&format!("{}: {broken}", file.display()));
    }
}

/// Writes the files that are asked for; whether any was.
fn export(recording: &Recording, matches: &ArgMatches) -> Result<bool, Failure> {
    let [svg, trace] = ["svg", "trace"].map(|name| matches.get_one::<PathBuf>(name));
    if svg.is_none() && trace.is_none() {
        return Ok(false);
    }
    let series = Series::of(recording);
    if let Some(path) = svg {
        output::write("picture", path, chart::drawing(&series).svg())?;
    }
    if let Some(path) = trace {
        output::write("trace", path, trace::written(&series))?;
    }
    Ok(true)
}

/// The three bars of each PE of a recording, as SVG.
pub(crate) fn chart_of(recording: &Recording) -> String {
    chart::drawing(&Series::of(recording)).svg()
}

/// What the PEs of a recorded run waited for.
#[derive(Default)]
pub(crate) struct Waits {
    /// What the critical path went through, the largest part first: parts of its length and what they are.
    pub(crate) path: Vec<(f64, String)>,
    /// The part of the path in which a message was on its way between nodes.
    pub(crate) under_way: f64,
    /// The part of it that is the driver.
    pub(crate) driver: f64,
    /// The part of it in which PEs had something to do one after the other, where it is not one that had nearly all of that.
    pub(crate) in_turn: f64,
    /// How long messages are on their way between two nodes, the slowest first.
    pub(crate) ways: Vec<([String; 2], Way)>,
    /// What is to be said of these, if any is known.
    pub(crate) said: Option<String>,
    /// Reductions over the same elements, exchanges and broadcasts, those first that took longest.
    pub(crate) collectives: Vec<Collectives>,
    /// The part of the waiting of PEs in which what ended it was on its way from another node, of those of which it is known.
    pub(crate) on_way: BTreeMap<u32, f64>,
}

/// What is known of reductions over the same elements, or of exchanges or broadcasts to the same entry method, one by one.
pub(crate) struct Collectives {
    /// What they are, and of whom.
    pub(crate) what: String,
    /// How many are known.
    pub(crate) told: usize,
    /// How long they took on average from the first contribution to the result, from the first who sent until all had their
    /// parts, or until all PEs had the message, seconds.
    pub(crate) mean_s: f64,
    pub(crate) most_s: f64,
    /// The PE that was last most often with its node, in how many, and of how many that is known.
    pub(crate) last: Option<(u32, String, [usize; 2])>,
}

pub(crate) fn waits_of(recording: &Recording) -> Waits {
    let series = Series::of(recording);
    let Sampled { calls, sent } = &series.sampled;
    let gaps = Gaps::of(series.spans(), calls);
    let path = CriticalPath::of(calls, sent, (0, series.end_ns)).divided(|pe, time| gaps.did(pe, time));
    let node_of = |number: u32| series.nodes.iter().find(|node| node.pes.iter().any(|pe| pe.pe == number));
    let number_of = |pe: u32| node_of(pe).map(|node| node.node);
    let ways = ways::ways(calls, sent, number_of);
    let name = |number: u16| {
        let node = series.nodes.iter().find(|node| node.node == number);
        node.map_or_else(|| "?".into(), |node| node.name.clone())
    };
    let busy = path.part(|link| link.busy().is_some());
    let is_of_many = path.most().is_some_and(|(_, most)| most < OF_ONE * busy);
    let collectives = Sum::all(&series.collectives).into_iter().map(|sum| Collectives {
        what: sum.of.told(&series.run),
        told: sum.told,
        mean_s: sum.ns as f64 / 1e9 / sum.told.max(1) as f64,
        most_s: sum.most_ns as f64 / 1e9,
        last: sum.last.map(|(pe, last, of)| (pe, number_of(pe).map_or_else(|| "?".into(), name), [last, of])),
    });
    Waits {
        collectives: collectives.collect(),
        driver: path.part(|link| matches!(link, Link::Driver)),
        in_turn: if is_of_many { busy } else { 0.0 },
        path: path.told(&series.run.entry_names, |pe| node_of(pe).map(|node| node.name.clone())),
        under_way: path.under_way(number_of),
        on_way: ways::parts_on_way(calls, &ways, number_of),
        said: ways::told(&ways, name),
        ways: ways.into_iter().map(|way| ([name(way.nodes.0), name(way.nodes.1)], way)).collect(),
    }
}

fn open(path: &Path) -> Result<Recording, Failure> {
    let unopened =
        |error| Failure::new(Kind::NoInput, format!("{} cannot be opened: {error}", path.display()));
    let file = File::open(path).map_err(unopened)?;
    Recording::read(&mut BufReader::new(file)).map_err(|error| {
        let kind = if matches!(error, RecordingError::Read(_)) { Kind::NoInput } else { Kind::Input };
        Failure::new(kind, format!("{} cannot be replayed: {error}", path.display()))
    })
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.trim().parse().ok().filter(|speed| (0.01..=10_000.0).contains(speed));
    speed.ok_or_else(|| "give a number from 0.01 to 10000".into())
}

fn moment(text: &str) -> Result<Duration, String> {
    let moment = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    moment.ok_or_else(|| "give seconds from the start of the recording, 0 or more".into())
}
