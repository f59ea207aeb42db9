//! Speeds of earlier runs, in a file of the user's.
//!
//! They are kept by host, CPU, the cores that may be used, PEs of the node and of those that run beside it, executable, and
//! application kernel with what it depends on, because any of these changes what a PE reaches. Nothing in the file is
//! believed unless it is complete, recent and possible; a file or folder that other users may write is not read.

use super::SpeedQuery;
use crate::folders;
use crate::replacement::Replacement;
use runtime::monitor::wire::NodeInfo;
use runtime::ownership::{others_may_write, place_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The longest file that is taken for one.
const MAX_BYTES: u64 = 4 << 20;
/// How long measured speeds are believed.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// Speeds of all PEs of a run, as an earlier one has measured them.
#[derive(Debug, PartialEq)]
pub(super) struct Earlier {
    /// Units of work per second of each PE.
    pub(super) rates: Vec<f64>,
    /// For how long they were measured.
    pub(super) measured: Duration,
    /// How long ago that was.
    pub(super) age: Duration,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    speeds: BTreeMap<String, Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    rates: Vec<f64>,
    measured_ms: u64,
    unix_s: u64,
}

impl Kept {
    fn age(&self, now: u64) -> Option<Duration> {
        // What claims to be of the future is not believed: it would never expire.
        now.checked_sub(self.unix_s).map(Duration::from_secs).filter(|age| *age <= KEPT)
    }
}

/// What is known of all PEs of the run.
pub(super) fn recall(query: &SpeedQuery<'_>) -> Option<Earlier> {
    recall_from(&load(&path()?), query, now_s())
}

/// What the cache knows of all PEs of the run, if all of it is there, recent and possible.
fn recall_from(cache: &Cache, query: &SpeedQuery<'_>, now: u64) -> Option<Earlier> {
    let mut all = Earlier { rates: Vec::new(), measured: Duration::MAX, age: Duration::ZERO };
    for node in &query.info.nodes {
        let kept = cache.speeds.get(&key(query, node))?;
        if kept.rates.len() != node.pe_count as usize {
            return None;
        }
        all.age = all.age.max(kept.age(now)?);
        all.measured = all.measured.min(Duration::from_millis(kept.measured_ms));
        all.rates.extend(&kept.rates);
    }
    let is_sane = all.rates.iter().all(|rate| rate.is_finite() && *rate > 0.0);
    is_sane.then_some(all)
}

/// Keeps what was measured for so long. A file that cannot be written is only a cache.
pub(super) fn store(query: &SpeedQuery<'_>, rates: &[f64], measured: Duration) {
    let Some(path) = path() else { return };
    let mut cache = load(&path);
    let unix_s = now_s();
    cache.speeds.retain(|_, kept| kept.age(unix_s).is_some());
    for node in &query.info.nodes {
        let Some(rates) = rates.get(node.pes()) else { return };
        let measured_ms = u64::try_from(measured.as_millis()).unwrap_or(u64::MAX);
        cache.speeds.insert(key(query, node), Kept { rates: rates.to_vec(), measured_ms, unix_s });
    }
    if let Err(error) = write(&path, &cache) {
        tracing::warn!("measured speeds are not kept in {path:?}: {error}");
    }
}

fn write(path: &Path, cache: &Cache) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    check(&fs::metadata(place_of(folder)?)?).map_err(io::Error::other)?;
    let new = Replacement::create(path)?;
    new.file().set_permissions(Permissions::from_mode(0o600))?;
    new.file().write_all(&serde_json::to_vec_pretty(cache)?)?;
    new.commit()
}

/// Whether nobody else can have written it.
fn check(data: &Metadata) -> Result<(), &'static str> {
    if others_may_write(data) {
        Err("another user owns it or its folder, or may write there")
    } else {
        Ok(())
    }
}

fn key(query: &SpeedQuery<'_>, node: &NodeInfo) -> String {
    // A PE with a part of its core is slower, and leaves more to those beside it.
    let of = |node: &NodeInfo| {
        let config = query.config.nodes.iter().find(|n| n.name == node.name);
        format!("{} PEs of {}", node.pe_count, config.and_then(|n| n.cpu_share).unwrap_or(1.0))
    };
    let is_beside = |other: &&NodeInfo| other.host == node.host && other.node != node.node;
    let beside: Vec<String> = query.info.nodes.iter().filter(is_beside).map(of).collect();
    format!(
        "{}|{}|{}|{} of cores {}|{}|beside {}|{}|{}",
        node.host,
        node.name,
        node.cpu,
        node.cores,
        node.allowed_cores,
        of(node),
        beside.join(", "),
        query.program,
        query.kernel.key
    )
}

/// The cache of earlier runs; empty if there is none, or none that can be used.
fn load(path: &Path) -> Cache {
    read(path).unwrap_or_else(|reason| {
        tracing::warn!("the measured speeds in {path:?} are not used: {reason}");
        Cache::default()
    })
}

/// The cache in that file; an empty one if there is no file.
fn read(path: &Path) -> Result<Cache, String> {
    let sentence = |e: io::Error| e.to_string();
    let place = place_of(path).map_err(sentence)?;
    let data = match fs::metadata(&place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Cache::default()),
        data => data.map_err(sentence)?,
    };
    check(&fs::metadata(place.parent().unwrap_or(&place)).map_err(sentence)?)?;
    check(&data)?;
    if !data.is_file() {
        return Err("it is no file".into());
    }
    parse(File::open(place).map_err(sentence)?)
}

fn parse(file: impl Read) -> Result<Cache, String> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("the file has more than {MAX_BYTES} bytes"));
    }
    serde_json::from_slice(&bytes).map_err(|e| e.to_string())
}

/// Where the file is; `None` for a user without a home, whose speeds are not kept.
fn path() -> Option<PathBuf> {
    Some(folders::of_user("XDG_CACHE_HOME", ".cache")?.join("speeds.json"))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
