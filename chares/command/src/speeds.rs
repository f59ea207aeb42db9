//! Measured speeds, and those of earlier runs.
//!
//! They are kept by host, CPU, PEs, executable and application kernel with what it depends on, for a week,
//! because any of these changes what a PE reaches.

use super::options::SpeedSource;
use crate::app::AppKernel;
use crate::replacement::Replacement;
use chares::{Cx, Driver, RunError};
use runtime::config::ClusterConfig;
use runtime::monitor::wire::{NodeInfo, RunInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long the kernel runs on every PE: long enough that a quota of CPU time, which is given out every 10 to
/// 100 ms, looks like a slower CPU in each of the stretches that this is measured in.
const BUDGET: Duration = Duration::from_millis(1800);
/// Long runs are measured for this part of the time that they will take, and no longer than that: clocks and other
/// users' load drift by several percent from second to second.
const LONGER: f64 = 0.05;
const BUDGET_MAX: Duration = Duration::from_secs(6);
/// The longest file that is taken for one.
const CACHE_MAX_BYTES: u64 = 4 << 20;
/// How long measured speeds are believed.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

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
        Self { info, config, kernel, program: runtime::launch::hello_line() }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    speeds: BTreeMap<String, Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    rates: Vec<f64>,
    unix_s: u64,
}

impl Kept {
    /// What claims to be of the future is not believed: it would never expire.
    fn is_recent(&self, now: u64) -> bool {
        now.checked_sub(self.unix_s).is_some_and(|age| age <= KEPT.as_secs())
    }
}

/// Speeds of all PEs.
#[derive(Debug)]
pub(crate) struct PeSpeeds {
    /// Where they really came from.
    pub(crate) source: SpeedSource,
    /// Units of work per second of each PE; empty if the source knows only relative speeds.
    pub(crate) rates: Vec<f64>,
    /// Relative to the fastest PE.
    pub(crate) relative: Vec<f64>,
}

/// The speeds from `source`; measured ones where the cache does not have them.
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
    let pes = query.info.nodes.iter().map(|n| n.pe_count as usize).sum();
    let kernel = match (source, query.kernel.number) {
        (SpeedSource::File, _) => {
            let relative = relative(&from_file(query));
            return Ok(PeSpeeds { source, rates: Vec::new(), relative });
        }
        (SpeedSource::Equal, _) | (_, None) => {
            return Ok(PeSpeeds { source: SpeedSource::Equal, rates: Vec::new(), relative: vec![1.0; pes] });
        }
        (_, Some(kernel)) => kernel,
    };
    if source == SpeedSource::Cached
        && let Some(rates) = recall(query)
    {
        return Ok(PeSpeeds { source, relative: relative(&rates), rates });
    }
    let mut rates = main.measure(kernel, &query.kernel.arguments, BUDGET)?;
    if let Some(budget) = longer_budget(query.kernel.work / rates.iter().sum::<f64>()) {
        let more = main.measure(kernel, &query.kernel.arguments, budget)?;
        let weight = budget.as_secs_f64() / (budget + BUDGET).as_secs_f64();
        rates.iter_mut().zip(more).for_each(|(rate, more)| *rate += weight * (more - *rate));
    }
    store(query, &rates);
    Ok(PeSpeeds { source: SpeedSource::Measured, relative: relative(&rates), rates })
}

/// Measures a long run's nodes once more when its work is done, for the report: what a node reached alone before the
/// run and after it, on the average, is what the run is compared with. Not where memory is limited, as the work's is
/// still taken.
pub(crate) fn confirm(main: &mut Driver, query: &SpeedQuery<'_>) -> Result<(), RunError> {
    let total: f64 = main.outcome().rates.iter().sum();
    let is_limited = query.config.nodes.iter().any(|node| node.memory_bytes.is_some());
    let (Some(kernel), Some(budget), false) =
        (query.kernel.number, longer_budget(query.kernel.work / total), is_limited)
    else {
        return Ok(());
    };
    main.phase("measuring speeds again", 0, 0);
    let after = main.measure(kernel, &query.kernel.arguments, budget)?;
    main.outcome().rates.iter_mut().zip(after).for_each(|(rate, after)| *rate = (*rate + after) / 2.0);
    Ok(())
}

/// How long a run of that many seconds is measured once more, if it is worth it.
fn longer_budget(expected_s: f64) -> Option<Duration> {
    let budget_s = expected_s * LONGER;
    (budget_s >= BUDGET.as_secs_f64())
        .then(|| Duration::from_secs_f64(budget_s.min(BUDGET_MAX.as_secs_f64())))
}

fn relative(rates: &[f64]) -> Vec<f64> {
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    rates.iter().map(|rate| if fastest > 0.0 { (rate / fastest).max(1e-6) } else { 1.0 }).collect()
}

/// The nodes file gives the speed of a PE of each node; 1.0 where it gives none.
fn from_file(query: &SpeedQuery<'_>) -> Vec<f64> {
    let of_node = |node: &NodeInfo| {
        let speed = query.config.nodes.iter().find(|n| n.name == node.name).and_then(|n| n.speed);
        vec![speed.unwrap_or(1.0); node.pe_count as usize]
    };
    query.info.nodes.iter().flat_map(of_node).collect()
}

fn recall(query: &SpeedQuery<'_>) -> Option<Vec<f64>> {
    recall_from(&load(), query, now_s())
}

/// What the cache knows of all PEs of the run, if all of it is there, recent and possible.
fn recall_from(cache: &Cache, query: &SpeedQuery<'_>, now: u64) -> Option<Vec<f64>> {
    let mut rates: Vec<f64> = Vec::new();
    for node in &query.info.nodes {
        let kept = cache.speeds.get(&key(query, node))?;
        if !kept.is_recent(now) || kept.rates.len() != node.pe_count as usize {
            return None;
        }
        rates.extend(&kept.rates);
    }
    let is_sane = rates.iter().all(|r| r.is_finite() && *r > 0.0);
    is_sane.then_some(rates)
}

/// Keeps what was measured. A cache that cannot be written is only a cache.
fn store(query: &SpeedQuery<'_>, rates: &[f64]) {
    let Some(path) = path() else { return };
    let mut cache = load();
    let now = now_s();
    cache.speeds.retain(|_, kept| kept.is_recent(now));
    for node in &query.info.nodes {
        let range = node.first_pe as usize..(node.first_pe + node.pe_count) as usize;
        let Some(rates) = rates.get(range) else { return };
        cache.speeds.insert(key(query, node), Kept { rates: rates.to_vec(), unix_s: now });
    }
    let written = serde_json::to_vec_pretty(&cache).map_err(std::io::Error::other).and_then(|bytes| {
        std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
        Replacement::write(&path, |out| out.write_all(&bytes))
    });
    if let Err(error) = written {
        tracing::debug!("measured speeds are not kept: {error}");
    }
}

fn key(query: &SpeedQuery<'_>, node: &NodeInfo) -> String {
    let config = query.config.nodes.iter().find(|n| n.name == node.name);
    let share = config.and_then(|n| n.cpu_share).unwrap_or(1.0);
    format!(
        "{}|{}|{}|{} PEs|{share}|{}|{}",
        node.host, node.name, node.cpu, node.pe_count, query.program, query.kernel.key
    )
}

/// The cache of earlier runs; empty if there is none, or none that can be used.
fn load() -> Cache {
    let Some(path) = path() else { return Cache::default() };
    read(&path).unwrap_or_else(|reason| {
        tracing::warn!("the measured speeds in {path:?} are not used: {reason}");
        Cache::default()
    })
}

/// The cache in that file; an empty one if there is no file.
fn read(path: &Path) -> Result<Cache, String> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Cache::default()),
        opened => parse(opened.map_err(|e| e.to_string())?),
    }
}

fn parse(file: impl Read) -> Result<Cache, String> {
    let mut bytes = Vec::new();
    file.take(CACHE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > CACHE_MAX_BYTES {
        return Err(format!("the file has more than {CACHE_MAX_BYTES} bytes"));
    }
    serde_json::from_slice(&bytes).map_err(|e| e.to_string())
}

fn path() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("metachare").join("speeds.json"))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
