//! A comparison as data: what runs of the same work on several mixes of nodes say about the mixes.
#![doc = include_str!("schema.md")]

use super::lost::Lost;
use super::predict::Predictor;
use super::saved::Run;
use super::spread;
use super::verdict::{self, Addition};
use crate::statistics;
use loadbalance::efficiency::mixed_node_efficiency;
use runtime::failure::{Failure, Kind};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// All of it; the fields are the JSON keys, explained above.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(super) schema: &'static str,
    pub(super) is_predicted: bool,
    /// Whether predicted seconds rest on a guess.
    pub(super) is_guess: bool,
    pub(super) program: String,
    pub(super) version: String,
    pub(super) commit: String,
    pub(super) app: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) work: Option<f64>,
    pub(super) reference: Reference,
    pub(super) nodes: Vec<NodeWorth>,
    pub(super) mixes: Vec<Mix>,
    pub(super) steps: Vec<Addition>,
    pub(super) verdict: String,
    pub(super) model: Option<Model>,
    pub(super) warnings: Vec<String>,
}

/// What predictions rest on, in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Model {
    pub(super) statement: String,
    pub(super) network: String,
}

/// What mixes are compared with: the fastest node alone.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Reference {
    pub(super) node: String,
    pub(super) seconds: f64,
    pub(super) is_measured: bool,
}

/// A node.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NodeWorth {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) cpu: String,
    pub(super) pes: usize,
    pub(super) equivalents: f64,
}

/// What the runs on the same nodes have given.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Mix {
    pub(super) nodes: Vec<String>,
    pub(super) pes: usize,
    pub(super) equivalents: f64,
    pub(super) runs: Vec<f64>,
    pub(super) sources: Vec<String>,
    pub(super) seconds: f64,
    pub(super) spread: Option<f64>,
    pub(super) speedup: f64,
    pub(super) efficiency: f64,
    pub(super) efficiency_spread: Option<f64>,
    pub(super) lost: Lost,
    pub(super) predicted: Option<Prediction>,
}

/// What a cost model says of a mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Prediction {
    pub(super) seconds: f64,
    pub(super) error: f64,
}

impl Comparison {
    /// Compares runs; arguments named in `aside` may differ. Mixes are in the order in which they come first.
    ///
    /// # Errors
    /// One sentence, if they are not of the same work or it cannot be said what a mix is worth.
    pub(super) fn of(runs: &[Run], aside: &[&str]) -> Result<Self, Failure> {
        Self::made(runs, aside, None)
    }

    /// The same for runs that were not made but predicted.
    ///
    /// # Errors
    /// One sentence, if it cannot be said what a mix is worth.
    pub(crate) fn of_predictions(runs: &[Run], predictor: &Predictor<'_>) -> Result<Self, Failure> {
        Self::made(runs, &[], Some(predictor.described()))
    }

    fn made(runs: &[Run], aside: &[&str], model: Option<Model>) -> Result<Self, Failure> {
        let first = runs.first().ok_or_else(|| Failure::new(Kind::Input, "there are no runs to compare"))?;
        for run in runs {
            same_work(first, run, aside)?;
            same_nodes(runs, run)?;
        }
        let worths = Worths::of(runs)?;
        let groups = grouped(runs);
        let reference = worths.reference(&groups, first.work)?;
        let repeats: Vec<Vec<f64>> =
            groups.iter().map(|group| group.iter().map(|run| run.seconds()).collect()).collect();
        let spreads = match &model {
            Some(_) => vec![Some(spread::OF_PREDICTION); groups.len()],
            None => spread::of_medians(&repeats.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        };
        let alone = groups.iter().position(|group| group[0].mix() == BTreeSet::from([worths.fastest]));
        let (spent, spread_of_one) = match alone {
            Some(at) => (Lost::spent(middle(&groups[at]), &[1.0]), spreads[at]),
            None => (Lost::all_work(), Some(0.0)),
        };
        let mixes = groups.iter().zip(&spreads).enumerate().map(|(at, (group, spread))| {
            let relative =
                if Some(at) == alone { Some(0.0) } else { spread::of_ratio(*spread, spread_of_one) };
            Mix::of(group, *spread, relative, &worths, (reference.seconds, &spent))
        });
        let mixes: Vec<Mix> = mixes.collect::<Result<_, _>>()?;
        let steps = verdict::steps(&mixes, model.is_some());
        Ok(Self {
            schema: "metachare-compare/2",
            is_predicted: model.is_some(),
            is_guess: runs.iter().any(|run| run.is_guess),
            program: first.program.clone(),
            version: first.version.clone(),
            commit: first.commit.clone(),
            app: first.app.clone(),
            arguments: first.arguments_of_work(aside),
            work: first.work,
            verdict: verdict::verdict(&steps),
            nodes: worths.nodes(runs),
            warnings: warnings(runs).into_iter().chain(worths.remark(runs)).collect(),
            model,
            reference,
            mixes,
            steps,
        })
    }

    /// Adds what a cost model predicts for each mix, in their order.
    pub(super) fn predict(&mut self, model: Model, seconds: impl IntoIterator<Item = Option<f64>>) {
        for (mix, seconds) in self.mixes.iter_mut().zip(seconds) {
            mix.predicted = seconds.map(|seconds| Prediction { seconds, error: seconds / mix.seconds - 1.0 });
        }
        self.model = Some(model);
    }

    /// Adds what whoever reads the comparison should know.
    pub(super) fn warn(&mut self, sentence: String) {
        self.warnings.push(sentence);
    }
}

impl Mix {
    fn of(
        group: &[&Run],
        spread: Option<f64>,
        relative: Option<f64>,
        worths: &Worths<'_>,
        (one, spent): (f64, &Lost),
    ) -> Result<Self, Failure> {
        let run = middle(group);
        let speeds: Vec<f64> = run.nodes.iter().map(|node| worths.of_node(&node.name)).collect();
        let equivalents = speeds.iter().sum();
        let seconds = run.seconds();
        let efficiency = mixed_node_efficiency(one, seconds, equivalents)
            .ok_or_else(|| Failure::new(Kind::Input, format!("{} has times beyond reckoning", run.source)))?;
        Ok(Self {
            nodes: run.nodes.iter().map(|node| node.name.clone()).collect(),
            pes: run.nodes.iter().map(|node| node.pes.len()).sum(),
            equivalents,
            runs: group.iter().map(|run| run.seconds()).collect(),
            sources: group.iter().map(|run| run.source.clone()).collect(),
            seconds,
            spread,
            speedup: one / seconds,
            efficiency,
            efficiency_spread: relative,
            lost: Lost::of(run, &speeds, spent, efficiency),
            predicted: None,
        })
    }
}

/// The run of median time; of an even number, the faster one in the middle. A real run, so that its parts add up.
pub(super) fn middle<'a>(group: &[&'a Run]) -> &'a Run {
    let mut sorted = group.to_vec();
    sorted.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    sorted[(sorted.len() - 1) / 2]
}

/// The runs of each mix, in the order in which mixes come first.
pub(super) fn grouped(runs: &[Run]) -> Vec<Vec<&Run>> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| group[0].mix() == run.mix()) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

fn same_work(first: &Run, run: &Run, aside: &[&str]) -> Result<(), Failure> {
    let (a, b) = (&first.source, &run.source);
    let differ = |what: &str, of_a: &dyn std::fmt::Display, of_b: &dyn std::fmt::Display| {
        let sentence = format!(
            "{a} and {b} are not of the same work: the {what} is {of_a} in the one and {of_b} in the other"
        );
        Err(Failure::new(Kind::Input, sentence))
    };
    if first.program != run.program {
        return differ("program", &first.program, &run.program);
    }
    if first.app != run.app {
        return differ("application", &first.app, &run.app);
    }
    let (one, other) = (first.arguments_of_work(aside), run.arguments_of_work(aside));
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    if let Some(name) = names.into_iter().find(|name| one.get(*name) != other.get(*name)) {
        let value = |of: &Map<String, Value>| of.get(name).unwrap_or(&Value::Null).to_string();
        return differ(&format!("argument {name}"), &value(&one), &value(&other));
    }
    let text = |work: Option<f64>| work.map_or_else(|| "not stated".into(), |work| work.to_string());
    if first.work != run.work {
        return differ("amount of work", &text(first.work), &text(run.work));
    }
    Ok(())
}

/// A name stands for the same node in all runs.
fn same_nodes(runs: &[Run], run: &Run) -> Result<(), Failure> {
    for node in &run.nodes {
        let others = runs.iter().flat_map(|other| other.nodes.iter().map(move |node| (other, node)));
        let unlike = others.filter(|(_, other)| other.name == node.name).find(|(_, other)| {
            (&other.host, &other.cpu, other.pes.len()) != (&node.host, &node.cpu, node.pes.len())
        });
        if let Some((other, _)) = unlike {
            return Err(Failure::new(
                Kind::Input,
                format!(
                    "the node {} of {} is another one than in {}: host, CPU or PEs differ",
                    node.name, run.source, other.source
                ),
            ));
        }
    }
    Ok(())
}

/// What may make runs of the same work unlike, though they can be compared.
fn warnings(runs: &[Run]) -> Vec<String> {
    let unlike = |of: &dyn Fn(&Run) -> &str| runs.iter().map(of).collect::<BTreeSet<_>>().len() > 1;
    let mut warnings = Vec::new();
    if unlike(&|run| &run.version) || unlike(&|run| &run.commit) {
        warnings.push("the runs are of several versions of the program".into());
    } else if unlike(&|run| &run.executable) {
        warnings.push("the runs are of several builds of the same version".into());
    }
    if unlike(&|run| run.speed_source.as_deref().unwrap_or("unknown")) {
        warnings.push("the runs have their speeds from several sources (`speed_source`)".into());
    }
    warnings
}

/// Measured speeds that differ by less are the same: clocks and other users' load drift by as much from second to second.
const DRIFT: f64 = 0.05;

/// What each node is worth, in equivalents of the fastest one.
struct Worths<'a> {
    fastest: &'a str,
    /// The node of the highest speed, and that in units of the fastest one: they may differ.
    speediest: (&'a str, f64),
    /// Units of work per second of the fastest.
    rate: Option<f64>,
    of: BTreeMap<&'a str, f64>,
}

impl<'a> Worths<'a> {
    fn of(runs: &'a [Run]) -> Result<Self, Failure> {
        let nodes: BTreeSet<&str> = runs.iter().flat_map(|run| run.mix()).collect();
        let rates: BTreeMap<&str, Option<f64>> =
            nodes.iter().map(|name| (*name, median(values(runs, name, |node| node.rate)))).collect();
        let fastest = match rates.values().copied().collect::<Option<Vec<f64>>>() {
            Some(_) => rates.iter().max_by(|a, b| a.1.unwrap_or(0.0).total_cmp(&b.1.unwrap_or(0.0))),
            None => None,
        };
        // Without rates the fastest node of the biggest mix leads.
        let fastest = fastest.map(|(name, _)| *name).or_else(|| fastest_of_biggest(runs));
        let fastest = fastest.ok_or_else(|| Failure::new(Kind::Input, "the runs have no nodes"))?;
        let rate = rates.get(fastest).copied().flatten();
        let mut of: BTreeMap<&str, f64> = BTreeMap::new();
        for name in nodes {
            let beside = median(ratios(runs, name, fastest));
            let apart = || Some(rates.get(name).copied().flatten()? / rate?);
            let worth = beside.or_else(apart).filter(|worth| worth.is_finite() && *worth > 0.0);
            let unknown = || {
                let sentence = format!(
                    "it is not known what {name} is worth: no run has both {name} and {fastest}, the fastest \
                     node, and speeds were not measured"
                );
                Failure::new(Kind::Input, sentence)
            };
            of.insert(name, worth.ok_or_else(unknown)?);
        }
        // Beside each other in a run, nodes may compare otherwise than over all runs.
        let speediest = of
            .iter()
            .fold((fastest, 1.0), |best, node| if *node.1 > best.1 { (*node.0, *node.1) } else { best });
        let fastest = fastest_alone(runs, &of, speediest.1).unwrap_or(speediest.0);
        let unit = of.get(fastest).copied().unwrap_or(1.0);
        // None is worth more than the one that needs the least time.
        of.values_mut().for_each(|worth| *worth = (*worth / unit).min(1.0));
        let rate = rates.get(fastest).copied().flatten();
        Ok(Self { fastest, speediest: (speediest.0, speediest.1 / unit), rate, of })
    }

    /// What there is to say where the fastest node is not that of the highest speed.
    fn remark(&self, runs: &[Run]) -> Option<String> {
        let (name, speed) = self.speediest;
        let is_told = speed > 1.0 + DRIFT && median_alone(runs, name).is_some();
        is_told.then(|| {
            format!(
                "{name} has {speed:.2} times the measured speed of {one}, but takes longer alone: {one} is the fastest \
                 node, and {name} counts as much",
                one = self.fastest
            )
        })
    }

    fn of_node(&self, name: &str) -> f64 {
        self.of.get(name).copied().unwrap_or(0.0)
    }

    /// The fastest node alone, reckoned from its rate if no run shows it.
    fn reference(&self, groups: &[Vec<&Run>], work: Option<f64>) -> Result<Reference, Failure> {
        let node = self.fastest.to_string();
        if let Some(alone) = groups.iter().find(|group| group[0].mix() == BTreeSet::from([self.fastest])) {
            return Ok(Reference { node, seconds: middle(alone).seconds(), is_measured: true });
        }
        let reckoned = work.zip(self.rate).map(|(work, rate)| work / rate);
        match reckoned.filter(|seconds| seconds.is_finite() && *seconds > 0.0) {
            Some(seconds) => Ok(Reference { node, seconds, is_measured: false }),
            None => Err(Failure::new(
                Kind::Input,
                format!(
                    "none of the runs is of {node}, the fastest node, alone, and how long it takes cannot be \
                     reckoned without measured speeds: add a run with `--only {node}`"
                ),
            )),
        }
    }

    fn nodes(&self, runs: &[Run]) -> Vec<NodeWorth> {
        let mut nodes: Vec<NodeWorth> = Vec::new();
        for node in runs.iter().flat_map(|run| &run.nodes) {
            if nodes.iter().all(|known| known.name != node.name) {
                nodes.push(NodeWorth {
                    name: node.name.clone(),
                    host: node.host.clone(),
                    cpu: node.cpu.clone(),
                    pes: node.pes.len(),
                    equivalents: self.of_node(&node.name),
                });
            }
        }
        nodes
    }
}

/// The name of the node of the highest speed as far as these runs know.
pub(super) fn speediest(runs: &[Run]) -> Result<String, Failure> {
    Ok(Worths::of(runs)?.speediest.0.to_string())
}

/// The name of the fastest node, if none of these runs is of it alone.
pub(super) fn unmeasured(runs: &[Run]) -> Result<Option<String>, Failure> {
    let fastest = Worths::of(runs)?.fastest;
    Ok(Some(fastest).filter(|name| median_alone(runs, name).is_none()).map(ToString::to_string))
}

/// The node that takes the least time alone, if one of the highest speed, or as good as that, was tried so.
fn fastest_alone<'a>(runs: &'a [Run], worths: &BTreeMap<&'a str, f64>, highest: f64) -> Option<&'a str> {
    let tried: Vec<(&str, f64)> =
        worths.keys().filter_map(|name| Some((*name, median_alone(runs, name)?))).collect();
    let is_among_the_fastest = |(name, _): &(&str, f64)| worths.get(name) >= Some(&(highest * (1.0 - DRIFT)));
    if !tried.iter().any(is_among_the_fastest) {
        return None;
    }
    tried.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

/// How long a node takes alone, if that was tried.
fn median_alone(runs: &[Run], name: &str) -> Option<f64> {
    let alone = runs.iter().filter(|run| run.mix() == BTreeSet::from([name])).collect::<Vec<_>>();
    (!alone.is_empty()).then(|| middle(&alone).seconds())
}

fn fastest_of_biggest(runs: &[Run]) -> Option<&str> {
    let biggest = runs.iter().max_by_key(|run| run.nodes.len())?;
    let fastest = biggest.nodes.iter().max_by(|a, b| a.speed.total_cmp(&b.speed))?;
    Some(&fastest.name)
}

/// What is known of a node in the runs where it is.
fn values<'a>(
    runs: &'a [Run],
    name: &'a str,
    of: impl Fn(&super::saved::Node) -> Option<f64> + 'a,
) -> impl Iterator<Item = f64> + 'a {
    runs.iter().flat_map(|run| &run.nodes).filter(move |node| node.name == name).filter_map(of)
}

/// How fast a node is in units of another one, in the runs that have both.
fn ratios<'a>(runs: &'a [Run], name: &'a str, of: &'a str) -> impl Iterator<Item = f64> + 'a {
    runs.iter().filter_map(move |run| {
        let find = |name: &str| run.nodes.iter().find(|node| node.name == name);
        let (one, other) = (find(name)?, find(of)?);
        match (one.rate, other.rate) {
            (Some(one), Some(other)) => Some(one / other),
            _ => Some(one.speed / other.speed),
        }
    })
}

/// The middle of some numbers; `None` of none.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    statistics::median(&sorted)
}
