//! The report of a run: a short table for people, JSON for programs.
//!
//! The JSON schema is `metachare-run/1`. Times are seconds, sizes bytes, shares fractions of one. Keys are
//! only ever added within a version. `chares/src/cli/report.rs` lists them all.

use crate::timeline::Timeline;
use runtime::monitor::wire::{NodeInfo, NodeSnapshot, PeSnapshot, RunInfo};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::time::Instant;

/// Everything that a run reports; the fields are the JSON keys.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `metachare-run/1`.
    pub(crate) schema: &'static str,
    /// Program, its version, and the commit it was built from if known.
    pub(crate) program: String,
    pub(crate) version: String,
    pub(crate) commit: Option<&'static str>,
    pub(crate) run_id: String,
    /// Application, the command line, and the application's arguments with their defaults.
    pub(crate) app: String,
    pub(crate) command_line: Vec<String>,
    pub(crate) arguments: Value,
    /// Start of the run, milliseconds since 1970 UTC.
    pub(crate) started_unix_ms: u64,
    pub(crate) exit_code: u8,
    /// The sentence that says why the run failed, if it did.
    pub(crate) error: Option<String>,
    /// Whether the result was checked and right; absent if it was not checked.
    pub(crate) verified: Option<bool>,
    /// Largest relative error found by the check.
    pub(crate) max_error: Option<f64>,
    /// From the command to the first line of the driver: launch, connections, speeds.
    pub(crate) startup_s: f64,
    /// From there to `init_over`: distribution of the data.
    pub(crate) distribution_s: Option<f64>,
    /// From `init_over`, with all data in place, to the last result computed.
    pub(crate) timed_s: Option<f64>,
    /// From there to the driver's end: collection and verification of the result.
    pub(crate) collection_s: Option<f64>,
    /// From the command to this report.
    pub(crate) total_s: f64,
    /// Sum of the nodes' speeds, relative to the fastest node.
    pub(crate) equivalents: f64,
    /// Seconds that the timed part would take at the measured rates without any loss.
    pub(crate) ideal_s: Option<f64>,
    /// Mixed-node efficiency: `ideal_s / timed_s`.
    pub(crate) efficiency: Option<f64>,
    /// Work of the timed part, in units of the application's kernel.
    pub(crate) work: Option<f64>,
    /// Facts that the application adds.
    pub(crate) facts: Map<String, Value>,
    pub(crate) nodes: Vec<NodeReport>,
}

/// One node of the report.
#[derive(Debug, Serialize)]
pub(crate) struct NodeReport {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) cpu: String,
    /// Sum of its PEs' speeds, relative to the fastest node.
    pub(crate) speed: f64,
    /// Units of work per second that its PEs reached together with the kernel.
    pub(crate) rate: Option<f64>,
    /// Share of the data.
    pub(crate) share: Option<f64>,
    pub(crate) memory_bytes: u64,
    pub(crate) sent_messages: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_messages: u64,
    pub(crate) received_bytes: u64,
    pub(crate) pes: Vec<PeReport>,
}

/// One PE of the report. Times and counts are those of the timed part, except `init_s` and `chares`.
#[derive(Debug, Serialize)]
pub(crate) struct PeReport {
    pub(crate) pe: u32,
    /// Relative to the fastest PE.
    pub(crate) speed: f64,
    pub(crate) share: Option<f64>,
    pub(crate) compute_s: f64,
    pub(crate) idle_s: f64,
    pub(crate) overhead_s: f64,
    /// Time in entry methods before `init_over`.
    pub(crate) init_s: f64,
    pub(crate) chares: u64,
    /// Entry methods run.
    pub(crate) entries: u64,
    pub(crate) messages: u64,
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
        let between = |from: Option<Instant>, to: Option<Instant>| {
            Some(to?.saturating_duration_since(from?).as_secs_f64())
        };
        let finished = timeline.finished.unwrap_or(now);
        let node_speed = |n: &NodeInfo| n.pe_speeds.iter().sum::<f64>();
        let fastest = info.nodes.iter().map(node_speed).fold(0.0, f64::max);
        let relative = |speed: f64| if fastest > 0.0 { speed / fastest } else { 0.0 };
        Self {
            schema: "metachare-run/1",
            program: info.program.clone(),
            version: version.into(),
            commit: option_env!("METACHARE_COMMIT"),
            run_id: info.run_id.clone(),
            app: info.app.clone(),
            command_line: info.arguments.clone(),
            arguments,
            started_unix_ms: info.started_unix_ms,
            exit_code,
            error,
            verified: timeline.verified,
            max_error: timeline.max_error,
            startup_s: between(Some(timeline.command), timeline.driven.or(Some(now))).unwrap_or_default(),
            distribution_s: between(timeline.driven, timeline.init_over),
            timed_s: timeline.timed().map(|t| t.as_secs_f64()),
            collection_s: between(timeline.timed_over, Some(finished)),
            total_s: now.saturating_duration_since(timeline.command).as_secs_f64(),
            equivalents: info.nodes.iter().map(|n| relative(node_speed(n))).sum(),
            ideal_s: timeline.ideal_seconds(),
            efficiency: timeline.efficiency(),
            work: timeline.work,
            facts: timeline.facts.clone(),
            nodes: info.nodes.iter().map(|n| NodeReport::new(n, timeline, relative(node_speed(n)))).collect(),
        }
    }

    /// The table that ends every run.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        let seconds = |s: Option<f64>| s.map_or_else(|| "-".into(), |s| format!("{s:.3}"));
        let percent = |p: Option<f64>| p.map_or_else(|| "-".into(), |p| format!("{:.1}%", 100.0 * p));
        let _ = writeln!(
            out,
            "{:<10} {:>4} {:>5} {:>6} {:>9} {:>7} {:>7} {:>7} {:>8} {:>8}",
            "node", "PEs", "speed", "share", "compute s", "idle s", "init s", "over. s", "entries", "MB sent"
        );
        for node in &self.nodes {
            let sum = |of: fn(&PeReport) -> f64| node.pes.iter().map(of).sum::<f64>() / node.pes.len() as f64;
            let _ = writeln!(
                out,
                "{:<10} {:>4} {:>5.2} {:>6} {:>9.2} {:>7.2} {:>7.2} {:>7.2} {:>8} {:>8.1}",
                node.name,
                node.pes.len(),
                node.speed,
                percent(node.share),
                sum(|p| p.compute_s),
                sum(|p| p.idle_s),
                sum(|p| p.init_s),
                sum(|p| p.overhead_s),
                node.pes.iter().map(|p| p.entries).sum::<u64>(),
                node.sent_bytes as f64 / 1e6,
            );
        }
        let _ = writeln!(
            out,
            "start-up {:.3} s, distribution {} s, timed {} s, collection {} s, total {:.3} s",
            self.startup_s,
            seconds(self.distribution_s),
            seconds(self.timed_s),
            seconds(self.collection_s),
            self.total_s
        );
        let _ = writeln!(
            out,
            "equivalents {:.2}, ideal {} s, mixed-node efficiency {}",
            self.equivalents,
            seconds(self.ideal_s),
            percent(self.efficiency)
        );
        let error = self.max_error.map_or_else(String::new, |e| format!(" (largest relative error {e:.2e})"));
        let _ = match self.verified {
            Some(true) => writeln!(out, "result verified{error}"),
            Some(false) => writeln!(out, "RESULT IS WRONG{error}"),
            None => writeln!(out, "result not checked"),
        };
        out
    }
}

impl NodeReport {
    fn new(info: &NodeInfo, timeline: &Timeline, speed: f64) -> Self {
        let of_node = |all: &[NodeSnapshot]| all.iter().find(|s| s.node == info.node).cloned();
        let before = of_node(&timeline.before).unwrap_or_default();
        let after = of_node(&timeline.after).unwrap_or_else(|| before.clone());
        let range = info.first_pe as usize..(info.first_pe + info.pe_count) as usize;
        let pick = |all: &[f64]| all.get(range.clone()).map(|part| part.iter().sum::<f64>());
        let pes = after
            .pes
            .iter()
            .enumerate()
            .map(|(rank, pe)| PeReport::new(pe, before.pes.get(rank), info.pe_speeds.get(rank), timeline))
            .collect();
        Self {
            name: info.name.clone(),
            host: info.host.clone(),
            cpu: info.cpu.clone(),
            speed,
            rate: pick(&timeline.rates),
            share: pick(&timeline.shares),
            memory_bytes: after.memory_bytes,
            sent_messages: after.sent_messages.saturating_sub(before.sent_messages),
            sent_bytes: after.sent_bytes.saturating_sub(before.sent_bytes),
            received_messages: after.received_messages.saturating_sub(before.received_messages),
            received_bytes: after.received_bytes.saturating_sub(before.received_bytes),
            pes,
        }
    }
}

impl PeReport {
    fn new(
        after: &PeSnapshot,
        before: Option<&PeSnapshot>,
        speed: Option<&f64>,
        timeline: &Timeline,
    ) -> Self {
        let zero = PeSnapshot::default();
        let before = before.unwrap_or(&zero);
        let seconds = |of: fn(&PeSnapshot) -> u64| of(after).saturating_sub(of(before)) as f64 / 1e9;
        Self {
            pe: after.pe,
            speed: speed.copied().unwrap_or(1.0),
            share: timeline.shares.get(after.pe as usize).copied(),
            compute_s: seconds(|p| p.compute_ns),
            idle_s: seconds(|p| p.idle_ns),
            overhead_s: seconds(|p| p.overhead_ns),
            init_s: after.init_ns as f64 / 1e9,
            chares: after.chares,
            entries: after.entries.saturating_sub(before.entries),
            messages: after.sent_messages.saturating_sub(before.sent_messages),
        }
    }
}
