//! What a run reports of itself, as JSON; [`table`] makes the short table for people of it.
#![doc = include_str!("report/schema.md")]

mod advice;
mod profile;
mod table;

pub(crate) use table::fitting;

use crate::options::this_host;
use chares::checkpoint::{Kept, Restored};
use chares::{EarlierSpeeds, Timeline};
use profile::{EntryReport, SentReport};
use runtime::monitor::BalancingCost;
use runtime::monitor::hosts::{Host, equivalents, hosts, node_speed};
use runtime::monitor::wire::{Balanced, NodeInfo, NodeSnapshot, PeSnapshot, Remark, RunInfo, Slowdown};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::time::{Instant, SystemTime};
use time::{OffsetDateTime, PrimitiveDateTime};

/// Everything that a run reports; the fields are the JSON keys, explained above.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    program: String,
    version: String,
    commit: &'static str,
    executable: Executable,
    run_id: String,
    app: String,
    command_line: Vec<String>,
    arguments: Value,
    started: String,
    started_unix_ms: u64,
    exit_code: u8,
    error: Option<String>,
    verified: Option<bool>,
    max_error: Option<f64>,
    measured: Option<String>,
    startup_s: f64,
    speeds_s: f64,
    distribution_s: Option<f64>,
    timed_s: Option<f64>,
    collection_s: Option<f64>,
    check_s: Option<f64>,
    ending_s: f64,
    total_s: f64,
    speed_source: Option<&'static str>,
    speeds_age_s: Option<u64>,
    speeds_drift: Option<f64>,
    speeds_taken: Option<f64>,
    faster_than_measured: Option<f64>,
    pace: Option<f64>,
    busy: Option<f64>,
    #[serde(skip)]
    earlier_speeds: Option<EarlierSpeeds>,
    equivalents: f64,
    work: Option<f64>,
    ideal_s: Option<f64>,
    efficiency: Option<f64>,
    facts: Map<String, Value>,
    balance: Option<String>,
    balanced: Vec<Balanced>,
    balancing: Option<BalancingCost>,
    from_checkpoint: Option<String>,
    restored: Option<RestoredReport>,
    checkpoints: Vec<CheckpointReport>,
    slowdowns: Vec<SlowdownReport>,
    remarks: Vec<String>,
    /// How many of the remarks, the last ones, are what could be done better.
    #[serde(skip)]
    advice: usize,
    entries: Vec<EntryReport>,
    launcher: LauncherReport,
    hosts: Vec<HostReport>,
    nodes: Vec<NodeReport>,
}

/// Written as the hash of the executable, which takes a moment to compute and only the file needs.
#[derive(Debug)]
struct Executable;

impl Serialize for Executable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(runtime::launch::own_hash())
    }
}

/// A checkpoint that was taken.
#[derive(Debug, Serialize)]
struct CheckpointReport {
    number: u32,
    bytes: u64,
    new_bytes: u64,
    written_by_nodes: u64,
    paused_s: f64,
    took_s: f64,
}

impl CheckpointReport {
    fn of(kept: &Kept) -> Self {
        Self {
            number: kept.number,
            bytes: kept.bytes,
            new_bytes: kept.new_bytes,
            written_by_nodes: kept.by_nodes_bytes,
            paused_s: kept.paused.as_secs_f64(),
            took_s: kept.took.as_secs_f64(),
        }
    }
}

/// How PEs came by what was saved of them.
#[derive(Debug, Serialize)]
struct RestoredReport {
    bytes: u64,
    read_by_nodes: u64,
    took_s: f64,
    #[serde(skip)]
    sentence: String,
}

impl RestoredReport {
    fn of(restored: Restored) -> Self {
        let Restored { bytes, read_by_nodes, took } = restored;
        Self { bytes, read_by_nodes, took_s: took.as_secs_f64(), sentence: restored.to_string() }
    }
}

/// A time in which a node delivered less than its speed.
#[derive(Debug, Serialize)]
struct SlowdownReport {
    node: String,
    since_s: f64,
    until_s: Option<f64>,
    delivered: f64,
    of: &'static str,
    by: &'static str,
    sentence: String,
}

/// A host, and what of the run was there.
#[derive(Debug, Serialize)]
struct HostReport {
    name: String,
    nodes: Vec<String>,
    pes: u32,
    cores: Option<u32>,
}

impl HostReport {
    /// The hosts of those nodes that are there.
    fn of_all(info: &RunInfo) -> Vec<Self> {
        hosts(info.nodes.iter().filter(|node| node.left.is_none())).iter().map(Self::of).collect()
    }

    fn of(host: &Host<'_>) -> Self {
        Self {
            name: host.name.into(),
            nodes: host.nodes.iter().map(|node| node.name.clone()).collect(),
            pes: host.pes,
            cores: Some(host.cores).filter(|cores| *cores > 0),
        }
    }
}

/// The node where the command was typed; it has no PEs.
#[derive(Debug, Serialize)]
struct LauncherReport {
    host: String,
    #[serde(flatten)]
    traffic: Traffic,
}

#[derive(Debug, Serialize)]
struct NodeReport {
    name: String,
    host: String,
    cpu: String,
    clock_mhz: Option<u32>,
    speed: f64,
    rate: Option<f64>,
    share: Option<f64>,
    memory_bytes: u64,
    memory_limit_bytes: Option<u64>,
    joined_s: Option<f64>,
    left_s: Option<f64>,
    spins: bool,
    shares_memory_with: Vec<String>,
    compute_s: f64,
    idle_s: f64,
    overhead_s: f64,
    core_wait_s: f64,
    quota_s: f64,
    throttled_s: f64,
    init_s: f64,
    chares: u64,
    entries: u64,
    messages: u64,
    bytes: u64,
    #[serde(flatten)]
    traffic: Traffic,
    whole: Traffic,
    sent_to: Vec<SentReport>,
    pes: Vec<PeReport>,
}

/// What a node exchanged with others.
#[derive(Debug, Serialize)]
struct Traffic {
    sent_messages: u64,
    sent_bytes: u64,
    received_messages: u64,
    received_bytes: u64,
}

#[derive(Debug, Serialize)]
struct PeReport {
    pe: u32,
    speed: f64,
    share: Option<f64>,
    compute_s: f64,
    idle_s: f64,
    overhead_s: f64,
    core_wait_s: f64,
    quota_s: f64,
    throttled_s: f64,
    init_s: f64,
    chares: u64,
    entries: u64,
    messages: u64,
    bytes: u64,
    whole: PeWhole,
}

/// A PE from the start of its process to the end of the driver.
#[derive(Debug, Serialize)]
struct PeWhole {
    compute_s: f64,
    idle_s: f64,
    init_s: f64,
    overhead_s: f64,
    core_wait_s: f64,
    quota_s: f64,
    throttled_s: f64,
    total_s: f64,
    entries: u64,
    migrations: u64,
    messages: u64,
    bytes: u64,
}

/// What a report is made of besides the timeline.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) info: &'a RunInfo,
    pub(crate) version: &'a str,
    pub(crate) arguments: Value,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<String>,
}

impl Report {
    pub(crate) fn new(sources: Sources<'_>, timeline: &Timeline) -> Self {
        let Sources { info, version, arguments, exit_code, error } = sources;
        let now = Instant::now();
        let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
        let between = |from: Option<Instant>, to: Option<Instant>| Some(seconds(from?, to?));
        let finished = timeline.finished.unwrap_or(now);
        let moments = Moments::of(timeline);
        let advice: Vec<String> = advice::advice(info, timeline, moments.after)
            .filter(|sentence| !timeline.remarks.contains(sentence))
            .collect();
        Self {
            schema: "metachare-run/1",
            program: info.program.clone(),
            version: version.into(),
            commit: crate::COMMIT,
            executable: Executable,
            run_id: info.run_id.clone(),
            app: info.app.clone(),
            command_line: info.arguments.clone(),
            arguments,
            started: utc(info.started_unix_ms / 1000),
            started_unix_ms: info.started_unix_ms,
            exit_code,
            error,
            verified: timeline.verified,
            max_error: timeline.max_error,
            measured: timeline.measured.clone(),
            startup_s: seconds(timeline.command, timeline.driven.unwrap_or(finished)),
            speeds_s: timeline.speeds.as_secs_f64(),
            distribution_s: between(timeline.driven, timeline.init_over),
            timed_s: timeline.timed().map(|t| t.as_secs_f64()),
            collection_s: between(timeline.timed_over, Some(timeline.checked_from.unwrap_or(finished))),
            check_s: between(timeline.checked_from, Some(finished)),
            ending_s: seconds(finished, now),
            total_s: seconds(timeline.command, now),
            speed_source: timeline.speed_source,
            speeds_age_s: timeline.earlier_speeds.map(|earlier| earlier.age.as_secs()),
            speeds_drift: timeline.earlier_speeds.and_then(|earlier| earlier.drift),
            speeds_taken: timeline.speeds_taken,
            faster_than_measured: timeline.faster_than_measured(),
            pace: timeline.pace,
            busy: timeline.busy,
            earlier_speeds: timeline.earlier_speeds,
            equivalents: equivalents(info.nodes.iter().filter(|node| node.left.is_none())).unwrap_or(0.0),
            work: timeline.work,
            ideal_s: timeline.ideal_seconds(),
            efficiency: timeline.efficiency(),
            facts: timeline.facts.clone(),
            balance: (!info.balance.is_empty()).then(|| info.balance.clone()),
            balanced: info.balanced.clone(),
            balancing: timeline.balancing,
            from_checkpoint: timeline.from_checkpoint.clone(),
            restored: timeline.restored.map(RestoredReport::of),
            checkpoints: timeline.checkpoints.iter().map(CheckpointReport::of).collect(),
            slowdowns: info.slowdowns.iter().map(|one| SlowdownReport::of(one, &info.nodes)).collect(),
            advice: advice.len(),
            remarks: timeline.remarks.iter().cloned().chain(advice).collect(),
            entries: profile::entries(moments.end, &info.entry_names),
            launcher: LauncherReport { host: this_host(), traffic: moments.whole_traffic(0) },
            hosts: HostReport::of_all(info),
            nodes: NodeReport::of_all(info, timeline, &moments),
        }
    }
}

impl Report {
    /// The remarks, for whoever watches.
    pub(crate) fn told(&self) -> impl Iterator<Item = Remark> {
        let results = self.remarks.len() - self.advice;
        let told =
            move |(at, text): (usize, &String)| Remark { is_advice: at >= results, text: text.clone() };
        self.remarks.iter().enumerate().map(told)
    }
}

/// The counters that differences are taken of. Where a run did not get as far as a moment, or has not got
/// it, the one before stands for it.
#[derive(Clone, Copy)]
struct Moments<'a> {
    start: &'a [NodeSnapshot],
    before: &'a [NodeSnapshot],
    after: &'a [NodeSnapshot],
    end: &'a [NodeSnapshot],
}

impl<'a> Moments<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        let or =
            |one: &'a [NodeSnapshot], other: &'a [NodeSnapshot]| if one.is_empty() { other } else { one };
        let start = &timeline.start;
        let before = or(&timeline.before, start);
        let after = or(&timeline.after, or(&timeline.end, before));
        Self { start, before, after, end: or(&timeline.end, after) }
    }

    fn whole_traffic(&self, node: u16) -> Traffic {
        Traffic::between(&NodeSnapshot::default(), &of_node(self.end, node))
    }
}

impl Traffic {
    fn between(before: &NodeSnapshot, after: &NodeSnapshot) -> Self {
        Self {
            sent_messages: after.sent_messages.saturating_sub(before.sent_messages),
            sent_bytes: after.sent_bytes.saturating_sub(before.sent_bytes),
            received_messages: after.received_messages.saturating_sub(before.received_messages),
            received_bytes: after.received_bytes.saturating_sub(before.received_bytes),
        }
    }
}

impl SlowdownReport {
    fn of(slowdown: &Slowdown, nodes: &[NodeInfo]) -> Self {
        let node = nodes.iter().find(|node| node.node == slowdown.node).map_or("", |node| &node.name);
        Self {
            node: node.into(),
            since_s: slowdown.since_s,
            until_s: slowdown.until_s,
            delivered: slowdown.delivered,
            of: if slowdown.is_of_speed { "speed" } else { "cores" },
            by: if slowdown.is_by_quota { "quota" } else { "cores" },
            sentence: slowdown.sentence(node),
        }
    }
}

/// Names of the nodes that one shares memory with.
fn sharers(node: &NodeSnapshot, nodes: &[NodeInfo]) -> Vec<String> {
    node.shares_memory_with.iter().map(|id| name_of(*id, nodes)).collect()
}

/// The name of a node, or of the launcher.
fn name_of(id: u16, nodes: &[NodeInfo]) -> String {
    nodes.iter().find(|node| node.node == id).map_or_else(|| "launcher".into(), |node| node.name.clone())
}

impl NodeReport {
    fn of_all(info: &RunInfo, timeline: &Timeline, moments: &Moments<'_>) -> Vec<Self> {
        let fastest = info.nodes.iter().map(node_speed).fold(0.0, f64::max);
        let relative = |speed: f64| if fastest > 0.0 { speed / fastest } else { 0.0 };
        let of = |node: &NodeInfo| Self {
            shares_memory_with: sharers(&of_node(moments.after, node.node), &info.nodes),
            sent_to: profile::sent_to(&of_node(moments.end, node.node), &info.nodes),
            ..Self::new(node, timeline, moments, relative(node_speed(node)))
        };
        info.nodes.iter().map(of).collect()
    }

    fn new(info: &NodeInfo, timeline: &Timeline, moments: &Moments<'_>, speed: f64) -> Self {
        let (before, after) = (of_node(moments.before, info.node), of_node(moments.after, info.node));
        let pick = |all: &[f64]| all.get(info.pes()).map(|part| part.iter().sum::<f64>());
        let numbers = info.first_pe..info.first_pe + info.pe_count;
        let came = after.pes.iter().map(|pe| pe.pe).filter(|pe| !numbers.contains(pe));
        let numbers = numbers.clone().chain(came);
        let speeds = info.pe_speeds.iter().copied().chain(std::iter::repeat(0.0));
        let pes: Vec<PeReport> = numbers
            .zip(speeds)
            .map(|(pe, speed)| {
                let is_own = info.pes().contains(&(pe as usize));
                let share = timeline.shares.get(pe as usize).copied().filter(|_| is_own);
                PeReport { speed, share, ..PeReport::new(pe, info.node, moments) }
            })
            .collect();
        Self {
            name: info.name.clone(),
            host: info.host.clone(),
            cpu: info.cpu.clone(),
            clock_mhz: Some(after.clock_mhz).filter(|mhz| *mhz > 0),
            speed,
            rate: pick(&timeline.rates),
            share: pick(&timeline.shares),
            memory_bytes: after.memory_bytes,
            memory_limit_bytes: info.memory_limit_bytes,
            joined_s: info.joined_s,
            left_s: info.left.as_ref().map(|left| left.at_s),
            spins: after.spins,
            shares_memory_with: Vec::new(),
            sent_to: Vec::new(),
            compute_s: pes.iter().map(|p| p.compute_s).sum(),
            idle_s: pes.iter().map(|p| p.idle_s).sum(),
            overhead_s: pes.iter().map(|p| p.overhead_s).sum(),
            core_wait_s: pes.iter().map(|p| p.core_wait_s).sum(),
            quota_s: pes.iter().map(|p| p.quota_s).sum(),
            throttled_s: pes.iter().map(|p| p.throttled_s).sum(),
            init_s: pes.iter().map(|p| p.init_s).sum(),
            chares: total(pes.iter().map(|p| p.chares)),
            entries: total(pes.iter().map(|p| p.entries)),
            messages: total(pes.iter().map(|p| p.messages)),
            bytes: total(pes.iter().map(|p| p.bytes)),
            traffic: Traffic::between(&before, &after),
            whole: moments.whole_traffic(info.node),
            pes,
        }
    }
}

impl PeReport {
    fn new(pe: u32, node: u16, moments: &Moments<'_>) -> Self {
        let at = |moment: &[NodeSnapshot]| {
            of_node(moment, node).pes.into_iter().find(|p| p.pe == pe).unwrap_or_default()
        };
        let [start, before, after, end] = [moments.start, moments.before, moments.after, moments.end].map(at);
        let timed = |of: fn(&PeSnapshot) -> u64| of(&after).saturating_sub(of(&before));
        Self {
            pe,
            speed: 0.0,
            share: None,
            compute_s: seconds(timed(|p| p.compute_ns)),
            idle_s: seconds(timed(|p| p.idle_ns)),
            overhead_s: seconds(timed(|p| p.overhead_ns)),
            core_wait_s: seconds(timed(|p| p.core_wait_ns)),
            quota_s: seconds(timed(|p| p.quota_ns)),
            throttled_s: seconds(timed(|p| p.throttled_ns)),
            init_s: seconds(after.init_ns.saturating_sub(start.init_ns)),
            chares: after.chares,
            entries: timed(|p| p.entries),
            messages: timed(|p| p.sent_messages),
            bytes: timed(|p| p.sent_bytes),
            whole: PeWhole {
                compute_s: seconds(end.compute_ns),
                idle_s: seconds(end.idle_ns),
                init_s: seconds(end.init_ns),
                overhead_s: seconds(end.overhead_ns),
                core_wait_s: seconds(end.core_wait_ns),
                quota_s: seconds(end.quota_ns),
                throttled_s: seconds(end.throttled_ns),
                total_s: seconds(of_node(moments.end, node).uptime_ns),
                entries: end.entries,
                migrations: end.migrations,
                messages: end.sent_messages,
                bytes: end.sent_bytes,
            },
        }
    }
}

fn of_node(all: &[NodeSnapshot], node: u16) -> NodeSnapshot {
    all.iter().find(|s| s.node == node).cloned().unwrap_or_default()
}

/// The sum of what nodes say of themselves, which may be anything.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Milliseconds since 1970, by the clock of this host.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Seconds since 1970 as `2026-01-31T23:59:59Z`, or the last moment before the year 10,000.
pub(crate) fn utc(unix_s: u64) -> String {
    let latest = PrimitiveDateTime::MAX.assume_utc();
    let at = i64::try_from(unix_s).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
    let at = at.unwrap_or(latest);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", u8::from(month))
}

#[cfg(test)]
mod tests;
