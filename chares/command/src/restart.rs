//! `restart`: goes on with a run from its last checkpoint, on whatever nodes there are now.

use super::checkpoint::folder;
use super::options::{RunOptions, cores};
use super::prepare::{Asked, is_same};
use super::run;
use super::{command, keeping, log, note, run_of};
use crate::command_line::CommandLine;
use chares::checkpoint::{GoOn, Mapping, pe_counts};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches as _, value_parser};
use runtime::checkpoint::{Foreign, Saved, Store, TakenIn};
use runtime::config::{ClusterConfig, LaunchMethod};
use runtime::failure::{Failure, Kind};
use runtime::monitor::wire::RunInfo;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The command.
pub(crate) fn command_of() -> Command {
    let number = Arg::new("generation").long("generation").value_name("N").value_parser(value_parser!(u32));
    RunOptions::augment_args(
        Command::new("restart")
            .about("Go on with a run from a checkpoint, on the same nodes or others")
            .arg(folder("dir", "DIR", "The folder that `--checkpoint` named"))
            .arg(number.help("Which checkpoint of the folder; the last if not given"))
            .arg(map()),
    )
}

/// Where chares go.
pub(crate) fn map() -> Arg {
    let map = Arg::new("map").long("map").value_name("HOW").value_parser(value_parser!(Mapping));
    map.help(
        "Where chares go: keep (where they were), block, cyclic, or comm (by who talks to whom). On the same nodes \
         they stay if not given; on others they are placed by what they cost and the speeds that PEs have now",
    )
}

/// What to say to who names an option of the application of a run that is to go on: it was saved with the run.
pub(crate) fn about_saved_option(
    program: &CommandLine,
    line: &[OsString],
    error: &clap::Error,
) -> Option<String> {
    let goes_on = matches!(line.get(1)?.to_str()?, "restart" | "migrate");
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidArg) else { return None };
    let long = name.strip_prefix("--")?;
    let mut arguments = program.apps.iter().flat_map(|app| app.command.get_arguments());
    let is_saved = goes_on && arguments.any(|argument| argument.get_long() == Some(long));
    is_saved.then(|| {
        format!(
            "{name} is saved with the run and stays what it was; `{} help checkpoint` tells what can be said anew",
            program.name
        )
    })
}

/// What a run goes on from.
pub(crate) struct Origin {
    pub(crate) go_on: GoOn,
    /// The checkpoint itself, and its folder.
    saved: Arc<Saved>,
    dir: PathBuf,
    /// What it is, in words.
    pub(crate) name: String,
    /// Counts of PEs of the nodes, launcher first, when the run began.
    pub(crate) began: Vec<u32>,
    /// Count of PEs when it was saved.
    pub(crate) pes: u32,
    /// Names of the nodes and their PEs when it was saved.
    nodes: Vec<(String, u32)>,
    /// Whether it was said who balances.
    has_balancer: bool,
    /// How chares are placed, if that was said.
    pub(crate) mapping: Option<Mapping>,
    /// Since when it has been away, if it was under way until now.
    pub(crate) away: Option<Away>,
}

/// A run that has been ended to go on elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away {
    /// When it was asked to be saved and to end.
    pub(crate) asked: Instant,
    /// When it had been saved.
    pub(crate) saved: Instant,
    /// When it had ended.
    pub(crate) ended: Instant,
}

impl Away {
    /// What took how long, of a run whose nodes had `started` and that has just been given all that was saved.
    pub(crate) fn told(&self, started: Instant) -> String {
        let now = Instant::now();
        let parts =
            [(self.asked, self.saved), (self.saved, self.ended), (self.ended, started), (started, now)];
        let [saving, ending, starting, restoring] =
            parts.map(|(from, to)| to.saturating_duration_since(from).as_secs_f64());
        let away = now.saturating_duration_since(self.asked).as_secs_f64();
        format!(
            "the run was away for {away:.2} s: saved in {saving:.2} s, ended in {ending:.2} s, other nodes ready after \
             {starting:.2} s, restored in {restoring:.2} s"
        )
    }
}

impl Origin {
    /// The folder, and the checkpoint in it.
    pub(crate) fn place(&self) -> (PathBuf, u32) {
        (self.dir.clone(), self.saved.generation())
    }

    /// Whether chares are placed anew: if that was said, or the nodes are others.
    pub(crate) fn places_anew(&self, config: &ClusterConfig) -> bool {
        let now = config.nodes.iter().map(|node| (node.name.as_str(), node.pes.unwrap_or_default()));
        match self.mapping {
            Some(mapping) => mapping != Mapping::Keep,
            None => !now.eq(self.nodes.iter().map(|(name, pes)| (name.as_str(), *pes))),
        }
    }

    /// Whether all nodes have room for all numbers of all chares, wherever these go: known when nodes have been started, and
    /// said before they are given anything.
    ///
    /// # Errors
    /// The first number that is too big for one of them; or if the checkpoint cannot be read.
    pub(crate) fn fits_on(&self, info: &RunInfo) -> Result<(), Failure> {
        fits_on(&self.saved, &self.dir, info)
    }

    /// Who balances: where there are more PEs than before somebody has to, or they have nothing to do.
    pub(crate) fn balance(&self, config: &ClusterConfig, chosen: &str) -> String {
        let pes: u32 = config.nodes.iter().filter_map(|node| node.pes).sum();
        if pes <= self.pes || self.has_balancer || self.places_anew(config) {
            return chosen.into();
        }
        let new = match pes - self.pes {
            1 => "1 PE is new, and has".into(),
            several => format!("{several} PEs are new, and have"),
        };
        note(&format!("{new} nothing to do yet: --balance auto moves chares there"));
        "auto".into()
    }
}

/// Goes on; the exit code.
pub(crate) fn restart(
    program: CommandLine,
    matches: &ArgMatches,
    command_started: Instant,
) -> Result<u8, Failure> {
    let dir: &PathBuf =
        matches.get_one("dir").ok_or_else(|| Failure::new(Kind::Usage, "say which folder: restart DIR"))?;
    let saved = open(dir, matches.get_one("generation").copied())?;
    let asked = asked(&program, matches, (dir, saved), None)?;
    say_from(&asked);
    run::run(program, asked, command_started)
}

/// What is asked for by who goes on from a checkpoint of a folder, by the options of a run that are given.
pub(crate) fn asked(
    program: &CommandLine,
    matches: &ArgMatches,
    (dir, saved): (&Path, Arc<Saved>),
    away: Option<Away>,
) -> Result<Asked, Failure> {
    let mut options = RunOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    let wrong = |what: String| Failure::new(Kind::Input, format!("{} holds {what}", dir.display()));
    let about = saved.about();
    if about.program != program.name {
        return Err(wrong(format!("a run of {}, and this is {}", about.program, program.name)));
    }
    let line = about.arguments.clone();
    let then = command(program).try_get_matches_from(&line);
    let then = then.map_err(|error| {
        wrong(format!("a run that this version does not know: {}", super::sentence_of(&error)))
    })?;
    let (name, then) = run_of(program, &then).ok_or_else(|| wrong("no run".into()))?;
    if options.checkpoint.as_ref().is_none_or(|to| is_same(to, dir)) {
        keep_saving(&mut options, dir, (matches, then));
    }
    let origin = format!("checkpoint {} of {}", saved.generation(), dir.display());
    let nodes = about.nodes.iter().map(|node| (node.name.clone(), node.pes)).collect();
    let taken_in = taken_in(program, &saved, dir)?;
    let is_shown = !options.quiet && !options.shows_window() && !log::is_json();
    let go_on = keeping::go_on(taken_in, is_shown)?;
    let (began, pes) = pe_counts(&go_on.driver)?;
    let from = Some(Origin {
        go_on,
        saved,
        dir: dir.into(),
        name: origin,
        began,
        pes,
        nodes,
        has_balancer: matches.value_source("balance") == Some(ValueSource::CommandLine),
        mapping: matches.get_one("map").copied(),
        away,
    });
    Ok(Asked { name, matches: then.clone(), options, line, from })
}

/// Says what a run goes on from.
pub(crate) fn say_from(Asked { options, line, from, .. }: &Asked) {
    if let (Some(from), false) = (from, options.quiet) {
        note(&format!("going on from {}: {}", from.name, line.get(1..).unwrap_or_default().join(" ")));
    }
}

/// Saves a run further in the same folder, as often as before where nothing else is said.
fn keep_saving(options: &mut RunOptions, dir: &Path, (matches, then): (&ArgMatches, &ArgMatches)) {
    options.checkpoint = Some(dir.into());
    let is_said = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    if let Ok(before) = RunOptions::from_arg_matches(then) {
        if !is_said("checkpoint_every") {
            options.checkpoint_every = before.checkpoint_every;
        }
        if !is_said("checkpoint_protocol") {
            options.checkpoint_protocol = before.checkpoint_protocol;
        }
        if !is_said("checkpoint_keep") {
            options.checkpoint_keep = before.checkpoint_keep;
        }
    }
}

/// A checkpoint, as far as this program and this machine understand it.
fn taken_in(program: &CommandLine, saved: &Arc<Saved>, dir: &Path) -> Result<TakenIn, Failure> {
    let refused = |why| foreign(saved, dir, why);
    let taken_in = TakenIn::new(Arc::clone(saved), program.program.table()).map_err(refused)?;
    saved.fits(usize::BITS).map_err(refused)?;
    Ok(taken_in)
}

/// Whether all nodes have room for all numbers of a checkpoint.
pub(crate) fn fits_on(saved: &Saved, dir: &Path, info: &RunInfo) -> Result<(), Failure> {
    // The launcher's own width has been looked at before.
    let narrowest = info.nodes.iter().map(|node| node.architecture.pointer_bits).min();
    match narrowest {
        Some(bits) if bits < usize::BITS => saved.fits(bits).map_err(|why| foreign(saved, dir, why)),
        _ => Ok(()),
    }
}

fn foreign(saved: &Saved, dir: &Path, why: Foreign) -> Failure {
    match Failure::from(why) {
        Failure { kind: Kind::Input, sentence } => {
            let (dir, number) = (dir.display(), saved.generation());
            let what = format!("{dir} holds checkpoint {number}, which is not of this program: {sentence}");
            Failure::new(Kind::Input, what)
        }
        other => other,
    }
}

pub(crate) fn open(dir: &Path, generation: Option<u32>) -> Result<Arc<Saved>, Failure> {
    let store = Store::open(dir)?;
    let saved = match generation {
        Some(number) => store.generation(number)?,
        None => store.latest()?,
    };
    Ok(Arc::new(saved))
}

/// Deals the PEs of a run that goes on to the nodes that there are now. Nodes that have at least as many themselves keep their
/// own. Else each gets some in proportion to what its own would be worth, the rest to those that come off worst.
///
/// # Errors
/// If there is no node, or it is not known how many cores one has.
pub(crate) fn deal_pes(config: &mut ClusterConfig, pe_count: u32) -> Result<(), Failure> {
    let cores = cores();
    let (mut worth, mut own) = (Vec::new(), Vec::new());
    for node in &config.nodes {
        let pes = match (node.pes, node.launch) {
            (Some(pes), _) => pes,
            (None, LaunchMethod::Local) => cores,
            (None, LaunchMethod::Ssh) => {
                let sentence = format!(
                    "it is not known how many of the {pe_count} PEs of the run suit node {}: say `pes = N` of it in {}",
                    node.name, config.source
                );
                return Err(Failure::new(Kind::Config, sentence));
            }
        };
        own.push(pes);
        worth.push(f64::from(pes) * node.cpu_share.unwrap_or(1.0) * node.speed.unwrap_or(1.0));
    }
    let dealt = if own.iter().sum::<u32>() >= pe_count { own.clone() } else { deal(&worth, pe_count) };
    for ((node, own), count) in config.nodes.iter_mut().zip(own).zip(dealt) {
        let part = f64::from(own) / f64::from(count.max(1));
        // The node gives as much of its cores as it would to its own PEs.
        node.cpu_share = node.cpu_share.map(|share| (share * part).min(1.0));
        node.pes = Some(count);
        if part < 1.0 {
            config.pe_parts.insert(node.name.clone(), part);
        }
    }
    config.nodes.retain(|node| node.pes > Some(0));
    if config.nodes.is_empty() && pe_count > 0 {
        return Err(Failure::new(Kind::Config, format!("{} has no nodes to go on with", config.source)));
    }
    Ok(())
}

/// `count` things for parts that are worth so much, of which there are no more: one for each, and each next one to whom it
/// leaves with the least for what it is worth.
fn deal(worth: &[f64], count: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..worth.len()).collect();
    order.sort_by(|a, b| worth[*b].total_cmp(&worth[*a]));
    let mut dealt = vec![0u32; worth.len()];
    let first = order.iter().take(count as usize).map(|&at| dealt[at] = 1).count();
    for _ in first..count as usize {
        let load = |at: &usize| f64::from(dealt[*at] + 1) / worth[*at].max(f64::MIN_POSITIVE);
        let next = order.iter().copied().min_by(|a, b| load(a).total_cmp(&load(b)));
        if let Some(next) = next {
            dealt[next] += 1;
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_are_dealt_by_worth_and_each_node_gets_one_while_there_are_enough() {
        assert_eq!(deal(&[1.0, 1.0, 2.0, 0.5], 144), [32, 32, 64, 16]);
        assert_eq!(deal(&[4.0, 2.0, 2.0], 8), [4, 2, 2]);
        assert_eq!(deal(&[100.0, 1.0], 2), [1, 1]);
        assert_eq!(deal(&[1.0], 8), [8]);
        assert!(deal(&[], 3).is_empty());
    }

    #[test]
    fn nodes_get_the_pes_of_the_run_and_give_no_more_of_their_cores_than_before() {
        let text = "[[node]]\nname = \"a\"\npes = 2\ncpu_share = 0.5\n[[node]]\nname = \"b\"\npes = 1\n";
        let mut config = ClusterConfig::parse(text, "nodes").unwrap();
        deal_pes(&mut config, 8).unwrap();
        let dealt: Vec<_> = config.nodes.iter().map(|node| (node.pes, node.cpu_share)).collect();
        assert_eq!(dealt, [(Some(4), Some(0.25)), (Some(4), None)]);
        assert_eq!(config.pe_parts, [("a".into(), 0.5), ("b".into(), 0.25)].into());
        deal_pes(&mut config, 1).unwrap();
        let kept: Vec<_> = config.nodes.iter().map(|node| node.pes).collect();
        assert_eq!(kept, [Some(4), Some(4)], "who has enough keeps them");
        let ssh = "[[node]]\nname = \"far\"\nhost = \"far\"\n";
        let mut config = ClusterConfig::parse(ssh, "my.toml").unwrap();
        let refused = deal_pes(&mut config, 2).unwrap_err().sentence;
        assert!(refused.contains("node far: say `pes = N` of it in my.toml"), "{refused}");
    }
}
