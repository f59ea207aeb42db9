//! What was measured, as JSON and as a table for people.
#![doc = include_str!("schema.md")]

use super::catalogue::{Operation, Setup};
use super::peers::{Compared, Peers, Source};
use crate::statistics::{figure, median};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::SystemTime;

/// All of it; the fields are the JSON keys, explained above.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    schema: &'static str,
    version: &'static str,
    commit: &'static str,
    host: String,
    cpu: String,
    cores: usize,
    started_unix_ms: u64,
    command_line: Vec<String>,
    brief: bool,
    operations: Vec<Measured>,
}

/// An operation with its figures.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    key: String,
    name: String,
    setup: String,
    unit: &'static str,
    better: &'static str,
    median: f64,
    min: f64,
    max: f64,
    stretches: Vec<f64>,
    limit: &'static str,
    peers: Vec<Compared>,
}

impl Results {
    pub(super) fn new(is_brief: bool) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpus = read("/proc/cpuinfo");
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            schema: "metachare-bench/1",
            version: env!("CARGO_PKG_VERSION"),
            commit: command::COMMIT,
            host: read("/proc/sys/kernel/hostname").trim().into(),
            cpu: model.map_or("unknown", |(_, name)| name.trim()).into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            started_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            command_line: std::env::args().collect(),
            brief: is_brief,
            operations: Vec::new(),
        }
    }

    /// What the table begins with.
    pub(super) fn heading(&self) -> String {
        let Self { version, commit, cpu, cores, .. } = self;
        let commit = &commit[..commit.len().min(10)];
        let brief = if self.brief { "; --brief: gone through once, these are no measurements" } else { "" };
        format!(
            "metachare {version} ({commit}) on {cores} x {cpu}{brief}\n\
             peers: `measured` just now (--peers), `recorded` at another moment on a machine that may be another\n"
        )
    }

    /// Takes up the operations of a set-up; their part of the table.
    pub(super) fn add(&mut self, measured: Vec<Measured>) -> String {
        let rows = measured.iter().map(Measured::row).collect();
        self.operations.extend(measured);
        rows
    }
}

impl Measured {
    /// `None` without a figure.
    pub(super) fn new(operation: &Operation, stretches: Vec<f64>, peers: &Peers) -> Option<Self> {
        let mut sorted = stretches.clone();
        sorted.sort_by(f64::total_cmp);
        let median = median(&sorted)?;
        Some(Self {
            key: operation.key.clone(),
            name: operation.name.clone(),
            setup: operation.setup.to_string(),
            unit: operation.unit.name(),
            better: if operation.unit.is_gain() { "more" } else { "less" },
            median,
            min: *sorted.first()?,
            max: *sorted.last()?,
            stretches,
            limit: operation.limit,
            peers: peers.compare(operation, median),
        })
    }

    fn row(&self) -> String {
        let Self { key, name, unit, limit, .. } = self;
        let [median, min, max] = [self.median, self.min, self.max].map(figure);
        let mut row = format!("  {key:<24} {median:>10} {unit:<9}  {min:>9} .. {max:<9} ");
        for (at, peer) in self.peers.iter().enumerate() {
            if at > 0 {
                let _ = write!(row, "\n{:71}", "");
            }
            row += &peer.sentence(unit);
        }
        // Where there is no peer the range ends the line.
        format!("{}\n      {name}\n      limited by {limit}\n", row.trim_end())
    }
}

impl Compared {
    fn sentence(&self, unit: &str) -> String {
        let Self { peer, value, source, ratio, is_better } = self;
        let verdict = if *is_better { "better" } else { "worse" };
        let source = match source {
            Source::Measured => "measured",
            Source::Recorded => "recorded",
        };
        format!("{:>6} x {peer}, {} {unit} {source}: {verdict}", figure(*ratio), figure(*value))
    }
}

/// The head of a set-up's part of the table.
pub(super) fn head(setup: Setup) -> String {
    let setup = setup.to_string();
    format!("\n{setup:<26} {:>10} {:<9}  {:>9}    {:<9}  ours : peer\n", "median", "", "least", "most")
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::*;

    #[test]
    fn a_row_says_median_range_peers_and_limit() {
        let all = catalogue::all();
        let peers = Peers::load(None, false, &all).unwrap();
        let operation = all.iter().find(|operation| operation.key == "pe/broadcast").unwrap();
        assert!(Measured::new(operation, Vec::new(), &peers).is_none());
        let measured = Measured::new(operation, vec![90.0, 35.0, 30.25], &peers).unwrap();
        assert_eq!((measured.median, measured.min, measured.max), (35.0, 30.25, 90.0));
        let row = measured.row();
        for part in
            ["35.0 ns", "30.2 .. 90.0", "0.500 x Charm++ 8.0.1, 70.0 ns recorded: better", "limited by "]
        {
            assert!(row.contains(part), "{part} is not in {row}");
        }
    }
}
