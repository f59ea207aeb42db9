//! What a run measured of itself: when its parts began and ended, what each node did meanwhile, and what
//! the application says of its result. Reports are made of this.

use loadbalance::efficiency;
use runtime::monitor::BalancingCost;
use runtime::monitor::wire::{NodeSnapshot, PeSnapshot};
use runtime::size::Size;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// Speeds that an earlier run has measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierSpeeds {
    /// How long ago.
    pub age: Duration,
    /// By which part of itself the machine that has changed most has become faster or slower since, where that was looked
    /// at.
    pub drift: Option<f64>,
}

impl fmt::Display for EarlierSpeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = match self.age.as_secs() {
            seconds @ ..60 => (seconds, "s"),
            seconds @ 60..3600 => (seconds / 60, "min"),
            seconds => (seconds / 3600, "h"),
        };
        write!(f, "those of an earlier run, {count} {unit} ago")?;
        match self.drift {
            Some(drift) => write!(f, ", drift {:.0}%", 100.0 * drift),
            None => Ok(()),
        }
    }
}

/// A checkpoint that has been taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Kept {
    /// Its number among those in its place.
    pub number: u32,
    /// Bytes of all its records.
    pub bytes: u64,
    /// Bytes that had to be written for it.
    pub new_bytes: u64,
    /// How many of them nodes have written themselves.
    pub by_nodes_bytes: u64,
    /// How long PEs stood still for it; for a snapshot, the one that took longest to pack what it had.
    pub paused: Duration,
    /// How long it took until it was complete.
    pub took: Duration,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, fresh, seconds) = (Size(self.bytes), Size(self.new_bytes), self.took.as_secs_f64());
        write!(f, "checkpoint {}: {bytes}, {fresh} written, in {seconds:.2} s", self.number)
    }
}

/// How PEs came by what was saved of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Restored {
    /// Bytes of all that was saved of PEs and their chares.
    pub bytes: u64,
    /// How many of them nodes have read themselves; the launcher has sent the rest.
    pub read_by_nodes: u64,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, bytes, seconds) = (Size(self.read_by_nodes), Size(self.bytes), self.took.as_secs_f64());
        write!(f, "read by the nodes themselves: {read} of {bytes}, in {seconds:.2} s")
    }
}

/// The parts of a run and its outcome.
#[derive(Debug)]
pub struct Timeline {
    /// When the command began.
    pub command: Instant,
    /// When the application's driver began.
    pub driven: Option<Instant>,
    /// When it ended.
    pub finished: Option<Instant>,
    /// When initialisation was over and the timed part began.
    pub init_over: Option<Instant>,
    /// When the timed part was over.
    pub timed_over: Option<Instant>,
    /// When only the check of the result was left.
    pub checked_from: Option<Instant>,
    /// Counters when the driver began.
    pub start: Vec<NodeSnapshot>,
    /// Counters when the timed part began.
    pub before: Vec<NodeSnapshot>,
    /// Counters when the timed part was over.
    pub after: Vec<NodeSnapshot>,
    /// Counters when the driver has ended; empty if the run failed.
    pub end: Vec<NodeSnapshot>,
    /// How long finding the speeds took.
    pub speeds: Duration,
    /// Where the speeds came from.
    pub speed_source: Option<&'static str>,
    /// The earlier run that they are of, if they are.
    pub earlier_speeds: Option<EarlierSpeeds>,
    /// The part of the cores' time that others took while speeds were measured, where they were.
    pub speeds_taken: Option<f64>,
    /// How fast the PEs worked in the timed part while they had something to do, over what `rates` promised. Where that is
    /// more than 1, `rates` have been corrected by it. `None` where it is not known.
    pub pace: Option<f64>,
    /// The part of what `rates` promise for all of the timed part that fell into times in which PEs had something to do.
    pub busy: Option<f64>,
    /// Units of work per second of each PE with the application's kernel; empty if not measured.
    pub rates: Vec<f64>,
    /// Since when PEs of nodes are there that have joined, and their rates, in the order of their numbers.
    pub joined: Vec<(Instant, f64)>,
    /// Since when nodes are gone that have left, and the rates of what they had.
    pub left: Vec<(Instant, f64)>,
    /// Whether the driver placed chares by speed.
    pub is_by_speed: bool,
    /// Units of work of the timed part.
    pub work: Option<f64>,
    /// Share of the data of each PE, 0 to 1 each.
    pub shares: Vec<f64>,
    /// What each node holds, for people.
    pub holdings: Vec<String>,
    /// Whether the result was found right; `None` if it was not checked.
    pub verified: Option<bool>,
    /// Largest relative error of the result.
    pub max_error: Option<f64>,
    /// What the check measured, in words.
    pub measured: Option<String>,
    /// What the application says of the run.
    pub facts: Map<String, Value>,
    /// The checkpoint from which the run goes on, in words.
    pub from_checkpoint: Option<String>,
    /// How PEs came by what was saved of them, if it goes on from one.
    pub restored: Option<Restored>,
    /// The checkpoints that were taken.
    pub checkpoints: Vec<Kept>,
    /// Sentences for whoever reads the table or the report.
    pub remarks: Vec<String>,
    /// What balancing has cost, if anybody balanced.
    pub balancing: Option<BalancingCost>,
    /// Text that is printed to standard output at the end.
    pub printed: String,
}

impl Timeline {
    /// Begins with the command.
    #[must_use]
    pub fn new(command: Instant) -> Self {
        Self {
            command,
            driven: None,
            finished: None,
            init_over: None,
            timed_over: None,
            checked_from: None,
            start: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            end: Vec::new(),
            speeds: Duration::ZERO,
            speed_source: None,
            earlier_speeds: None,
            speeds_taken: None,
            pace: None,
            busy: None,
            rates: Vec::new(),
            joined: Vec::new(),
            left: Vec::new(),
            is_by_speed: false,
            work: None,
            shares: Vec::new(),
            holdings: Vec::new(),
            verified: None,
            max_error: None,
            measured: None,
            facts: Map::new(),
            from_checkpoint: None,
            restored: None,
            checkpoints: Vec::new(),
            remarks: Vec::new(),
            balancing: None,
            printed: String::new(),
        }
    }

    /// States how many units of work the timed part does, in the unit of the kernel that speeds are
    /// measured with. The ideal time follows from it.
    pub fn work(&mut self, units: f64) {
        self.work = Some(units);
    }

    /// States which share of the data each PE got, 0 to 1 each.
    pub fn shares(&mut self, shares: Vec<f64>) {
        self.shares = shares;
    }

    /// States what each node holds, in a few words for the window, such as `24 blocks, 98k atoms`; to be said with
    /// [`shares`](Self::shares).
    pub fn holdings(&mut self, holdings: Vec<String>) {
        self.holdings = holdings;
    }

    /// States that the result has been collected and written, and that only its check follows.
    pub fn collected(&mut self) {
        self.checked_from = Some(Instant::now());
    }

    /// States whether the result was checked and found right, and its largest relative error.
    pub fn verified(&mut self, is_right: bool, max_error: f64) {
        self.verified_by(is_right, format!("largest relative error {max_error:.2e}"));
        self.max_error = Some(max_error);
    }

    /// States whether the result was checked and found right by something else than its relative error, and what that
    /// is, in a few words such as `backward error 2.10e-16`. Its numbers belong among the facts, too.
    pub fn verified_by(&mut self, is_right: bool, measured: String) {
        (self.verified, self.measured) = (Some(is_right), Some(measured));
    }

    /// Adds a fact to the report, e.g. the algorithm and its parameters.
    pub fn fact(&mut self, key: &str, value: impl Into<Value>) {
        self.facts.insert(key.into(), value.into());
    }

    /// Adds text that goes to standard output when the run is over and its window closed, before the table of the run and
    /// also without that: the result of a run whose result is text.
    pub fn print(&mut self, text: &str) {
        self.printed += text;
    }

    /// Adds a sentence that whoever reads the table or the report should know.
    pub fn remark(&mut self, sentence: &str) {
        self.remarks.push(sentence.into());
    }

    /// Seconds of the timed part, once it is over.
    #[must_use]
    pub fn timed(&self) -> Option<Duration> {
        Some(self.timed_over?.duration_since(self.init_over?))
    }

    /// The same where it was all of the timed part, for what is said per second of it: what chares have counted in a run that goes
    /// on from a checkpoint is of its earlier parts, too, whose time is not known.
    #[must_use]
    pub fn all_timed(&self) -> Option<Duration> {
        self.timed().filter(|_| self.from_checkpoint.is_none())
    }

    /// Finds how fast the PEs worked, and corrects the rates where they did more in the timed part than these explain. PEs with
    /// `own_cores` were busy for as long as they had something to do, as what others take of their cores is in their rates, too;
    /// others may have left their core to those beside them, so all of the time counts.
    pub fn correct_rates(&mut self, own_cores: &[bool]) {
        let (Some(work), Some(timed)) = (self.work, self.timed()) else { return };
        let busy_ns = |pe: &PeSnapshot| {
            let parts = [pe.compute_ns, pe.core_wait_ns, pe.quota_ns, pe.throttled_ns];
            parts.into_iter().fold(0, u64::saturating_add)
        };
        let of_pes = |moment: &[NodeSnapshot]| -> BTreeMap<u32, u64> {
            moment.iter().flat_map(|node| &node.pes).map(|pe| (pe.pe, busy_ns(pe))).collect()
        };
        let (before, after) = (of_pes(&self.before), of_pes(&self.after));
        let busy = |pe: u32| Some(after.get(&pe)?.saturating_sub(*before.get(&pe)?) as f64 / 1e9);
        let timed_s = timed.as_secs_f64();
        let busy_s: Vec<f64> = (0..)
            .zip(own_cores)
            .map(|(pe, has_own_core)| busy(pe).filter(|_| *has_own_core).unwrap_or(timed_s).min(timed_s))
            .collect();
        let pace = efficiency::pace(work, &self.rates, &busy_s);
        let factor = pace.unwrap_or(1.0).max(1.0);
        let is_known = own_cores.iter().all(|has_own_core| *has_own_core);
        self.pace = pace.filter(|pace| is_known || *pace > 1.0);
        // What PEs that take turns on a core left to one another nobody knows.
        self.busy = efficiency::ideal_seconds(work, &self.rates)
            .and_then(|ideal_s| Some(ideal_s / timed_s / pace?))
            .filter(|_| is_known);
        self.rates.iter_mut().for_each(|rate| *rate *= factor);
    }

    /// Seconds that the timed part would have taken had every PE worked at its measured rate for as long as its node was there.
    #[must_use]
    pub fn ideal_seconds(&self) -> Option<f64> {
        let there = |since: Instant| {
            let (begun, over) = (self.init_over?, self.timed_over?);
            Some(over.saturating_duration_since(since.max(begun)).as_secs_f64() / self.timed()?.as_secs_f64())
        };
        let since = |of: &[(Instant, f64)]| {
            of.iter().map(|(since, rate)| rate * there(*since).unwrap_or_default()).sum::<f64>()
        };
        // Of a run that has gone on elsewhere only the rates of those are known that have come since.
        if self.rates.is_empty() {
            return None;
        }
        let rate = self.rates.iter().sum::<f64>() + since(&self.joined) - since(&self.left);
        self.work.filter(|_| rate > 0.0).map(|work| work / rate)
    }

    /// Mixed-node efficiency of the timed part: ideal over elapsed time.
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        Some(self.ideal_seconds()? / self.timed()?.as_secs_f64())
    }

    /// How many times as fast as measured the PEs were in the timed part, at least, where they did more than their speeds explained;
    /// `rates` have been corrected by it.
    #[must_use]
    pub fn faster_than_measured(&self) -> Option<f64> {
        self.pace.filter(|pace| *pace > 1.0)
    }

    /// The timed part begins now, with these counters.
    pub fn begin_timed(&mut self, before: Vec<NodeSnapshot>) {
        self.before = before;
        self.timed_over = None;
        self.init_over = Some(Instant::now());
    }

    /// The run goes on from a checkpoint now, with these counters: what is measured is measured from here.
    pub fn gone_on(&mut self, now: Vec<NodeSnapshot>) {
        if self.init_over.is_some() {
            self.init_over = Some(Instant::now());
            self.before.clone_from(&now);
        }
        // Rates were those of other machines.
        (self.rates, self.joined, self.left) = Default::default();
        self.start = now;
    }

    /// The timed part is over.
    pub fn end_timed(&mut self) {
        self.timed_over = Some(Instant::now());
    }

    /// Counters when the timed part was over.
    pub fn set_after(&mut self, after: Vec<NodeSnapshot>) {
        self.after = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_count_for_as_long_as_their_nodes_are_there() {
        let mut timeline = Timeline::new(Instant::now());
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        (timeline.init_over, timeline.timed_over) = (Some(begun), Some(begun + 10 * second));
        (timeline.work, timeline.rates) = (Some(30.0), vec![1.0, 1.0]);
        assert_eq!(timeline.efficiency(), Some(1.5));
        timeline.joined = vec![(begun + 5 * second, 1.0), (begun + 5 * second, 1.0)];
        assert_eq!(timeline.efficiency(), Some(1.0));
        timeline.joined.push((begun + 20 * second, 7.0));
        assert_eq!(timeline.ideal_seconds(), Some(10.0), "who came when all was done changes nothing");
        timeline.left = vec![(begun + 5 * second, 2.0)];
        assert_eq!(timeline.ideal_seconds(), Some(15.0), "who has left counts no more");
    }
}
