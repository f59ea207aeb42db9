//! The speeds of a run's PEs: measured, of an earlier run, or as they are given.

pub(crate) mod choice;
mod kept;

use super::options::SpeedSource;
use crate::app::AppKernel;
use chares::{Cx, Driver, EarlierSpeeds, RunError};
use choice::{Budget, Host, LOOK, TAKEN_MIN, USUAL};
use loadbalance::machines::relative;
use runtime::config::{ClusterConfig, NodeConfig};
use runtime::monitor::hosts::hosts;
use runtime::monitor::wire::{NodeInfo, RunInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Which speeds are asked for: those of a run's nodes, with the kernel of an application.
#[derive(Debug)]
pub(crate) struct SpeedQuery<'a> {
    info: &'a RunInfo,
    config: &'a ClusterConfig,
    kernel: &'a AppKernel,
    /// Which build of which program.
    program: String,
}

impl<'a> SpeedQuery<'a> {
    /// The speeds of these nodes with this kernel of this program.
    pub(crate) fn new(info: &'a RunInfo, config: &'a ClusterConfig, kernel: &'a AppKernel) -> Self {
        Self { info, config, kernel, program: runtime::launch::own_stamp() }
    }

    /// How long the work takes at these rates, where it is known how much that is.
    fn expected_s(&self, rates: &[f64]) -> Option<f64> {
        let seconds = self.kernel.work / rates.iter().sum::<f64>();
        (seconds > 0.0).then_some(seconds)
    }

    /// The PEs of each host, and how many cores these may use.
    fn hosts(&self) -> Vec<Host> {
        let pes = |node: &NodeInfo| node.pes().map(|pe| (pe, node.cpu_share)).collect::<Vec<_>>();
        let hosts = hosts(&self.info.nodes).into_iter().map(|host| Host {
            cores: f64::from(host.cores),
            pes: host.nodes.into_iter().flat_map(pes).collect(),
        });
        hosts.collect()
    }

    /// The PEs that share cores, as far as is known: those of a host that has fewer cores than PEs. Each other one is a part
    /// by itself.
    fn parts(&self) -> Vec<Vec<usize>> {
        let parts = self.hosts().into_iter().flat_map(|host| {
            let pes: Vec<usize> = host.pes.iter().map(|(pe, _)| *pe).collect();
            let at_once = if host.is_crowded() { pes.len() } else { 1 };
            pes.chunks(at_once).map(<[usize]>::to_vec).collect::<Vec<_>>()
        });
        parts.collect()
    }

    /// Which PEs have the whole of a core to themselves, as far as this run is concerned.
    pub(crate) fn own_cores(&self) -> Vec<bool> {
        let mut own = BTreeMap::new();
        for host in self.hosts() {
            own.extend(host.pes.iter().map(|(pe, share)| (*pe, *share >= 1.0 && !host.is_crowded())));
        }
        own.into_values().collect()
    }
}

/// Speeds of all PEs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PeSpeeds {
    /// Where they really came from.
    pub(crate) source: SpeedSource,
    /// Units of work per second of each PE; empty if the source knows only relative speeds.
    pub(crate) rates: Vec<f64>,
    /// Relative to the fastest PE.
    pub(crate) relative: Vec<f64>,
    /// The earlier run that they are of.
    pub(crate) earlier: Option<EarlierSpeeds>,
    /// The part of the cores' time that others took while they were measured.
    pub(crate) taken: Option<f64>,
    /// For how long they are to be measured again when the work is done.
    pub(crate) again: Option<Duration>,
}

impl PeSpeeds {
    fn of(source: SpeedSource, rates: Vec<f64>) -> Self {
        Self { source, relative: relative(&rates), rates, earlier: None, taken: None, again: None }
    }

    /// Where they come from, for people; `None` if they were not measured.
    pub(crate) fn origin(&self, took: Duration) -> Option<String> {
        match (self.source, &self.earlier) {
            (SpeedSource::Cached, Some(earlier)) => Some(format!("speeds are {earlier}")),
            (SpeedSource::Measured, _) => {
                let beside = self.taken.filter(|taken| *taken >= TAKEN_MIN);
                let beside = beside.map_or_else(String::new, |taken| format!(", {}", choice::beside(taken)));
                Some(format!("speeds were measured in {:.2} s{beside}", took.as_secs_f64()))
            }
            _ => None,
        }
    }
}

/// The speeds from `source`.
pub(crate) fn find(
    main: &mut Driver,
    source: SpeedSource,
    query: &SpeedQuery<'_>,
) -> Result<PeSpeeds, RunError> {
    let _span = tracing::info_span!("balance", speeds = source.name(), kernel = query.kernel.key).entered();
    let found = look(main, source, query)?;
    tracing::info!("{} speeds, relative to the fastest PE: {:.3?}", found.source.name(), found.relative);
    Ok(found)
}

fn look(main: &mut Driver, source: SpeedSource, query: &SpeedQuery<'_>) -> Result<PeSpeeds, RunError> {
    let kernel = match (source, query.kernel.number) {
        (SpeedSource::File, _) => {
            let relative = relative(&given(query, |node| node.speed.unwrap_or(1.0)));
            return Ok(PeSpeeds { relative, ..PeSpeeds::of(source, Vec::new()) });
        }
        (SpeedSource::Equal, _) | (_, None) => {
            let relative = relative(&given(query, |_| 1.0));
            return Ok(PeSpeeds { relative, ..PeSpeeds::of(SpeedSource::Equal, Vec::new()) });
        }
        (_, Some(kernel)) => kernel,
    };
    if source == SpeedSource::Cached
        && let Some(kept) = kept::recall(query)
    {
        let earlier = Some(EarlierSpeeds { age: kept.age, drift: None });
        return Ok(PeSpeeds { earlier, ..PeSpeeds::of(source, kept.rates) });
    }
    main.prepare_kernel(kernel, &query.kernel.arguments)?;
    let found = if source == SpeedSource::Measured { measured(main, query) } else { by_itself(main, query) };
    main.drop_kernel();
    found
}

/// Measures for as long as the run is worth, unless a short one finds speeds of an earlier run that still hold.
fn by_itself(main: &mut Driver, query: &SpeedQuery<'_>) -> Result<PeSpeeds, RunError> {
    let now = main.measure(LOOK)?;
    let kept = kept::recall(query);
    let budget = Budget::for_run_of(query.expected_s(kept.as_ref().map_or(&now, |kept| &kept.rates)));
    if let Some(kept) = kept {
        let drift = choice::drift(&kept.rates, &now, &query.parts());
        if budget.takes(kept.measured, drift) {
            let earlier = Some(EarlierSpeeds { age: kept.age, drift: Some(drift) });
            return Ok(PeSpeeds { earlier, ..PeSpeeds::of(SpeedSource::Cached, kept.rates) });
        }
        tracing::info!(
            "speeds of {:?} ago, measured for {:?}, have drifted by {drift:.3}",
            kept.age,
            kept.measured
        );
    }
    let (rates, taken) = measure(main, query, budget.before)?;
    kept::store(query, &rates, budget.before);
    Ok(PeSpeeds { taken, again: budget.after, ..PeSpeeds::of(SpeedSource::Measured, rates) })
}

/// The rates of all PEs, and the part of the cores' time that others took meanwhile.
fn measure(
    main: &mut Driver,
    query: &SpeedQuery<'_>,
    budget: Duration,
) -> Result<(Vec<f64>, Option<f64>), RunError> {
    let (rates, hosts) = (main.measure(budget)?, query.hosts());
    let cpu_rates = main.cpu_rates().unwrap_or_default();
    Ok((choice::in_turns(&rates, &cpu_rates, &hosts), choice::taken(&rates, &cpu_rates, &hosts)))
}

/// Measures for as long as it takes to be exact, whatever the run is worth.
fn measured(main: &mut Driver, query: &SpeedQuery<'_>) -> Result<PeSpeeds, RunError> {
    let (mut rates, taken) = measure(main, query, USUAL)?;
    let again = choice::once_more(query.expected_s(&rates));
    if let Some(budget) = again {
        let (more, _) = measure(main, query, budget)?;
        let weight = budget.as_secs_f64() / (budget + USUAL).as_secs_f64();
        rates.iter_mut().zip(more).for_each(|(rate, more)| *rate += weight * (more - *rate));
    }
    kept::store(query, &rates, USUAL + again.unwrap_or_default());
    Ok(PeSpeeds { taken, again, ..PeSpeeds::of(SpeedSource::Measured, rates) })
}

/// Measures a long run's nodes once more when its work is done, for the report: what a node reached alone before the
/// run and after it, on the average, is what the run is compared with. Not where memory is limited, as the work's is
/// still taken.
pub(crate) fn confirm(main: &mut Driver, query: &SpeedQuery<'_>, again: Duration) -> Result<(), RunError> {
    let is_limited = query.config.nodes.iter().any(|node| node.memory_bytes.is_some());
    let (Some(kernel), false) = (query.kernel.number, is_limited) else { return Ok(()) };
    main.phase("measuring speeds again", 0, 0);
    main.prepare_kernel(kernel, &query.kernel.arguments)?;
    let (after, _) = measure(main, query, again)?;
    main.drop_kernel();
    main.outcome().rates.iter_mut().zip(after).for_each(|(rate, after)| *rate = (*rate + after) / 2.0);
    Ok(())
}

/// Corrects speeds that were measured too low by what the PEs did in the timed part, and keeps them for later runs.
pub(crate) fn correct(main: &mut Driver, query: &SpeedQuery<'_>) {
    main.outcome().correct_rates(&query.own_cores());
    let (rates, timed) = (main.outcome().rates.clone(), main.outcome().timed());
    if let (Some(_), Some(timed)) = (main.outcome().faster_than_measured(), timed) {
        kept::store(query, &rates, timed);
    }
}

/// The speed of the fastest PEs, as the nodes file says: 1.0 where it says nothing.
pub(crate) fn fastest_declared(config: &ClusterConfig) -> f64 {
    let speed = |node: &NodeConfig| node.speed.unwrap_or(1.0) * pe_part(config, node);
    config.nodes.iter().map(speed).fold(f64::MIN_POSITIVE, f64::max)
}

/// The speeds of all PEs, where it is given for each node what one of its own is worth.
fn given(query: &SpeedQuery<'_>, of_own: impl Fn(&NodeConfig) -> f64) -> Vec<f64> {
    let of_node = |node: &NodeInfo| {
        let config = query.config.nodes.iter().find(|n| n.name == node.name);
        let speed = config.map_or(1.0, |config| of_own(config) * pe_part(query.config, config));
        vec![speed; node.pe_count as usize]
    };
    query.info.nodes.iter().flat_map(of_node).collect()
}

/// What a PE of that node is worth of one of its own: those that a run brings along share what its own would have.
fn pe_part(config: &ClusterConfig, node: &NodeConfig) -> f64 {
    config.pe_parts.get(&node.name).copied().unwrap_or(1.0)
}
