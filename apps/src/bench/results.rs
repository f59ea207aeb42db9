//! What was measured, as JSON and as a table for people.
#![doc = include_str!("schema.md")]

use super::catalogue::{Arrangement, Operation, PartOf, Room, Unit};
use super::peers::{Compared, Peers};
use crate::statistics::{figure, median};
use serde::Serialize;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
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
    room: Option<&'static str>,
    link: Option<&'static str>,
    #[serde(serialize_with = "unit_name")]
    unit: Unit,
    better: &'static str,
    median: f64,
    min: f64,
    max: f64,
    stretches: Vec<f64>,
    limit: Option<String>,
    peers: Vec<Compared>,
    #[serde(skip)]
    part: Option<PartOf>,
}

/// An operation is limited by what takes this part of its time: half of it or more. What seems to take more than all of
/// it, beyond what medians differ by, went another way when it was measured by itself, and says nothing.
const MOST: RangeInclusive<f64> = 0.5..=1.1;

impl Results {
    pub(super) fn new(is_brief: bool) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            schema: "metachare-bench/2",
            version: env!("CARGO_PKG_VERSION"),
            commit: command::COMMIT,
            host: host.trim().into(),
            cpu: cpu_model(),
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
             peers: `measured` just now on this machine (--peers FILE), with ours : theirs; `recorded` at another time\n\
             on another machine, which is no comparison\n"
        )
    }

    /// Takes up the operations of a set-up; their part of the table.
    pub(super) fn add(&mut self, measured: Vec<Measured>) -> String {
        let before = self.operations.len();
        self.operations.extend(measured);
        let limits: Vec<_> = self.operations[before..].iter().map(|one| self.limit(one)).collect();
        let fresh = &mut self.operations[before..];
        fresh.iter_mut().zip(limits).for_each(|(one, limit)| one.limit = limit);
        fresh.iter().map(Measured::row).collect()
    }

    /// What takes most of an operation's time, if another operation of this run shows it.
    fn limit(&self, one: &Measured) -> Option<String> {
        let PartOf { key, amount, what } = one.part.as_ref().filter(|_| !self.brief)?;
        let other = self.operations.iter().find(|other| other.key == *key)?;
        let part = other.unit.ns(other.median, *amount)? / one.unit.ns(one.median, 1.0)?;
        let percent = 100.0 * part.min(1.0);
        MOST.contains(&part).then(|| format!("{what}: {key} explains {percent:.0} % of it"))
    }
}

/// The model of this machine's processor as the system names it, `unknown` if it does not.
pub(super) fn cpu_model() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("unknown", |(_, name)| name.trim()).into()
}

fn unit_name<S: serde::Serializer>(unit: &Unit, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(unit.name())
}

impl Measured {
    /// `None` without a figure.
    pub(super) fn new(
        operation: &Operation,
        room: Option<Room>,
        link: Option<&'static str>,
        stretches: Vec<f64>,
        peers: &Peers,
    ) -> Option<Self> {
        let mut sorted = stretches.clone();
        sorted.sort_by(f64::total_cmp);
        let median = median(&sorted)?;
        Some(Self {
            key: operation.key.clone(),
            name: operation.name.clone(),
            setup: operation.setup.to_string(),
            room: room.map(Room::name),
            link,
            unit: operation.unit,
            better: if operation.unit.is_gain() { "more" } else { "less" },
            median,
            min: *sorted.first()?,
            max: *sorted.last()?,
            stretches,
            limit: None,
            peers: peers.compare(operation, median),
            part: operation.part.clone(),
        })
    }

    fn row(&self) -> String {
        let Self { key, name, limit, .. } = self;
        let unit = self.unit.name();
        let [median, min, max] = [self.median, self.min, self.max].map(figure);
        let mut row = format!("  {key:<24} {median:>10} {unit:<9}  {min:>9} .. {max:<9} ");
        for (at, peer) in self.peers.iter().enumerate() {
            if at > 0 {
                let _ = write!(row, "\n{:71}", "");
            }
            row += &peer.sentence(unit);
        }
        // Where there is no peer the range ends the line.
        let limit = limit.as_ref().map_or_else(String::new, |limit| format!("      limited by {limit}\n"));
        let link = self.link.map_or_else(String::new, |link| format!(" ({link})"));
        format!("{}\n      {name}{link}\n{limit}", row.trim_end())
    }
}

impl Compared {
    fn sentence(&self, unit: &str) -> String {
        let Self { peer, value, .. } = self;
        let value = figure(*value);
        match (self.ratio, self.is_better) {
            (Some(ratio), Some(is_better)) => {
                let verdict = if is_better { "better" } else { "worse" };
                format!("{:>6} x {peer}, {value} {unit} measured: {verdict}", figure(ratio))
            }
            _ => format!("{:>8} {peer}, {value} {unit} recorded", ""),
        }
    }
}

/// The head of a set-up's part of the table.
pub(super) fn head(setup: Arrangement, room: Option<Room>) -> String {
    let (setup, room) =
        (setup.to_string(), room.map_or_else(String::new, |room| format!("({})\n", room.name())));
    format!("\n{setup:<26} {:>10} {:<9}  {:>9}    {:<9}  ours : peer\n{room}", "median", "", "least", "most")
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::*;

    fn measured(key: &str, stretches: Vec<f64>) -> Option<Measured> {
        let all = catalogue::all();
        let peers = Peers::load(None, false, &all, "CPU").unwrap();
        let operation = all.iter().find(|operation| operation.key == key).unwrap();
        Measured::new(operation, Some(Room::All), None, stretches, &peers)
    }

    #[test]
    fn a_row_says_median_range_and_peers() {
        assert!(measured("pe/broadcast", Vec::new()).is_none());
        let mut measured = measured("pe/broadcast", vec![90.0, 35.0, 30.25]).unwrap();
        assert_eq!((measured.median, measured.min, measured.max), (35.0, 30.25, 90.0));
        let row = measured.row();
        for part in ["35.0 ns", "30.2 .. 90.0", "Charm++ 8.0.1, 70.0 ns recorded\n"] {
            assert!(row.contains(part), "{part} is not in {row}");
        }
        let peer = &mut measured.peers[0];
        (peer.ratio, peer.is_better) = (Some(0.5), Some(true));
        let row = measured.row();
        assert!(row.contains("0.500 x Charm++ 8.0.1, 70.0 ns measured: better"), "{row}");
    }

    #[test]
    fn a_limit_is_named_only_if_this_run_shows_it() {
        let trip = || measured("link/round-trip/1MiB", vec![1000.0]).unwrap();
        let mut alone = Results::new(false);
        assert!(!alone.add(vec![trip()]).contains("limited by"));
        let limit = "limited by the bandwidth one way: link/flood/1MiB explains 70 % of it";
        // Twice a mebibyte at so many GB/s. At 1 they would take twice as long as they did.
        for (rate, is_brief, limit) in
            [(3.0, false, Some(limit)), (8.0, false, None), (1.0, false, None), (3.0, true, None)]
        {
            let mut results = Results::new(is_brief);
            let rows = results.add(vec![trip(), measured("link/flood/1MiB", vec![rate]).unwrap()]);
            assert_eq!(limit.is_some(), rows.contains("limited by"), "{rows}");
            assert!(limit.is_none_or(|limit| rows.contains(limit)), "{rows}");
        }
    }
}
