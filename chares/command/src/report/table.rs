//! The table that ends every run, for people.

use super::{CheckpointReport, NodeReport, PeReport, Report};
use crate::speeds::choice::{TAKEN_MIN, beside};
use runtime::monitor::wire::Balanced;
use runtime::size::Size;
use std::fmt::Write as _;

/// Speeds are known no better than this: they drift by as much from second to second.
const FASTER_MIN: f64 = 1.02;
/// A pace that is higher than this is that of the speeds measured, as well as these are known.
const SLOWER_MAX: f64 = 0.9;
/// Slowdowns that are named, the worst.
const SLOWDOWNS: usize = 3;
/// A smaller part of the time that PEs could not work is not worth a line.
const NOT_ON_CORE: f64 = 0.05;

impl Report {
    /// The table that ends every run.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        // A launcher that is alone has nothing to compare.
        let has_nodes = !self.nodes.is_empty();
        if has_nodes {
            let _ = writeln!(
                out,
                "{:<10} {:>4} {:>5} {:>6} {:>9} {:>7} {:>7} {:>7} {:>8} {:>8}",
                "node",
                "PEs",
                "speed",
                "share",
                "compute s",
                "idle s",
                "init s",
                "over. s",
                "entries",
                "MB sent"
            );
        }
        for node in &self.nodes {
            let sum = |of: fn(&PeReport) -> f64| {
                node.pes.iter().map(of).sum::<f64>() / node.pes.len().max(1) as f64
            };
            let _ = writeln!(
                out,
                "{:<10.10} {:>4} {:>5} {:>6} {:>9} {:>7} {:>7} {:>7} {:>8} {:>8}",
                node.name,
                node.pes.len(),
                fitting(node.speed, 2, 5),
                percent(node.share),
                fitting(sum(|p| p.compute_s), 2, 9),
                fitting(sum(|p| p.idle_s), 2, 7),
                fitting(sum(|p| p.init_s), 2, 7),
                fitting(sum(|p| p.overhead_s), 2, 7),
                fitting(node.entries as f64, 0, 8),
                fitting(node.traffic.sent_bytes as f64 / 1e6, 1, 8),
            );
        }
        let _ = writeln!(
            out,
            "start-up {:.3} s, distribution {} s, timed {} s\ncollection {} s, check {} s, total {:.3} s",
            self.startup_s,
            seconds(self.distribution_s),
            seconds(self.timed_s),
            seconds(self.collection_s),
            seconds(self.check_s),
            self.total_s
        );
        if has_nodes {
            out += &self.worth();
        }
        let origin = self.earlier_speeds.map(|earlier| format!("speeds are {earlier}\n"));
        out += &origin.unwrap_or_default();
        let measured = self.measured.as_ref().map_or_else(String::new, |measured| format!(" ({measured})"));
        let _ = match self.verified {
            Some(true) => writeln!(out, "result verified{measured}"),
            Some(false) => writeln!(out, "RESULT IS WRONG{measured}"),
            None => writeln!(out, "result not checked"),
        };
        self.remarked().for_each(|line| out += &(line + "\n"));
        out
    }

    /// What kept PEs from working, what was moved, and whatever else there is to say.
    fn remarked(&self) -> impl Iterator<Item = String> {
        let kept = self.nodes.iter().filter_map(not_on_core);
        let mut slow: Vec<_> = self.slowdowns.iter().collect();
        slow.sort_by(|one, other| one.delivered.total_cmp(&other.delivered));
        let more = slow.len().saturating_sub(SLOWDOWNS);
        let more = (more > 0).then(|| format!("and {more} times more a node was slower than its speed"));
        let slow = slow.into_iter().take(SLOWDOWNS).map(|one| one.sentence.clone()).chain(more);
        let moved = self.balance.iter().map(|balance| moved(balance, &self.balanced));
        let origin =
            self.from_checkpoint.iter().map(|origin| format!("gone on from {origin}: times are from there"));
        let origin = origin.chain(self.restored.iter().map(|restored| restored.sentence.clone()));
        let saved = saved(&self.checkpoints, self.total_s);
        kept.chain(slow).chain(moved).chain(origin).chain(saved).chain(self.remarks.iter().cloned())
    }

    /// What the nodes are worth, and how much of that the run realised.
    fn worth(&self) -> String {
        format!(
            "equivalents {:.2}, ideal {} s, mixed-node efficiency {}{}\n{}{}",
            self.equivalents,
            seconds(self.ideal_s),
            if self.faster_than_measured.is_some() { "at most " } else { "" },
            percent(self.efficiency),
            self.correction().unwrap_or_default(),
            self.slower().unwrap_or_default()
        )
    }

    /// What the ideal time and the efficiency are by, where that is not what the machine can do.
    fn correction(&self) -> Option<String> {
        let factor = self.faster_than_measured.filter(|factor| *factor >= FASTER_MIN);
        let beside = self.speeds_taken.filter(|taken| *taken >= TAKEN_MIN).map(beside);
        match (factor, beside) {
            (Some(factor), Some(beside)) => Some(format!("by speeds {factor:.2}x those measured {beside}\n")),
            (Some(factor), None) => Some(format!("by speeds {factor:.2}x those measured\n")),
            (None, Some(beside)) => Some(format!("by speeds measured {beside}\n")),
            (None, None) => None,
        }
    }

    /// That PEs worked slower than their speeds promise, so that not all that is missing was lost in waiting.
    fn slower(&self) -> Option<String> {
        let (pace, busy) = (self.pace.filter(|pace| *pace < SLOWER_MAX)?, self.busy?);
        Some(format!(
            "PEs had something to do for {} of the time, and did it at {pace:.2}x the speeds measured\n",
            percent(Some(busy))
        ))
    }
}

/// What checkpoints were taken, in a line.
fn saved(all: &[CheckpointReport], total_s: f64) -> Option<String> {
    let last = all.last()?;
    let paused_s: f64 = all.iter().map(|one| one.paused_s).sum();
    let (bytes, times) =
        (Size(last.bytes), if all.len() == 1 { "once".into() } else { format!("{} times", all.len()) });
    let took_s: f64 = all.iter().map(|one| one.took_s).sum();
    let [paused, took] = [paused_s, took_s].map(|s| 100.0 * s / total_s.max(f64::MIN_POSITIVE));
    let (number, last_s) = (last.number, last.took_s);
    Some(format!(
        "saved {times}, last as checkpoint {number} ({bytes} in {last_s:.2} s); that went on for {took:.1}% of the run, and PEs stood \
         still {paused_s:.2} s for it, {paused:.1}%"
    ))
}

/// How long the PEs of a node could not work although they had something to do, if that is worth a line.
fn not_on_core(node: &NodeReport) -> Option<String> {
    let all =
        [node.compute_s, node.idle_s, node.overhead_s, node.core_wait_s, node.quota_s, node.throttled_s];
    let total: f64 = all.iter().sum();
    let part = |seconds: f64, what: &str| {
        let share = seconds / total;
        (share >= NOT_ON_CORE).then(|| format!("{:.0}% of the timed part {what}", 100.0 * share))
    };
    let parts: Vec<String> = [
        part(node.core_wait_s, "waiting for a core"),
        part(node.quota_s, "stopped by a quota"),
        part(node.throttled_s, "asleep for their cpu_share"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("PEs of {}: {}", node.name, parts.join(", ")))
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".into(), |seconds| format!("{seconds:.3}"))
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".into(), |part| format!("{:.1}%", 100.0 * part))
}

/// What a balancer did, in a line.
fn moved(balance: &str, decisions: &[Balanced]) -> String {
    let (Some(first), Some(last)) = (decisions.first(), decisions.last()) else {
        return format!("balancing by {balance}: nothing moved");
    };
    let chares: u64 = decisions.iter().map(|one| one.moves).sum();
    let bytes: u64 = decisions.iter().map(|one| one.bytes).sum();
    let times =
        if decisions.len() == 1 { "once".into() } else { format!("in {} decisions", decisions.len()) };
    let (before, after) = (first.before, last.after.unwrap_or(last.expected));
    let size = Size(bytes);
    format!(
        "balancing by {balance}: {chares} chares moved {times}, {size}; imbalance {before:.2} before, {after:.2} after"
    )
}

/// A number in at most `width` characters, with as many of its decimals as there is room for.
pub(crate) fn fitting(value: f64, decimals: usize, width: usize) -> String {
    let texts = (0..=decimals).rev().map(|decimals| format!("{value:.decimals$}"));
    texts.into_iter().find(|text| text.len() <= width).unwrap_or_else(|| format!("{value:.0e}"))
}
