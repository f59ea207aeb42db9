//! One node and its PEs as the viewer knows them: the last snapshot, rates and history. Counters are compared with
//! those of the last snapshot that came, so that missing ones cost resolution but never correctness.

use std::collections::VecDeque;
use std::time::Duration;

use runtime::monitor::gaps::{Span, Spent};
use runtime::monitor::heavy::{HeavyChare, OF_PE_MAX};
use runtime::monitor::profile::Profile;
use runtime::monitor::wire::{NodeInfo, NodeSnapshot, PeSnapshot, Processors};
use runtime::monitor::{hosts, text};

use super::history::{History, SECOND, Times};
use super::profile::ELEMENT_MAX;
use super::slowest::Slowest;

/// Times beyond this (ten years) are nonsense and are cut off; keeps all sums of times within `i64`.
const TIME_MAX: u64 = 315_360_000_000_000_000;
/// Rates are taken over the last two seconds.
const RATE_SPAN: i64 = 2 * SECOND;
/// Snapshots remembered for rates; more than `RATE_SPAN` needs at ten a second.
const MARKS: usize = 64;
/// A viewer that sees a node this young also knows what the node did before its first snapshot.
const YOUNG: i64 = 3 * SECOND;

/// Per second, between this node and the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) sent_messages: f64,
    pub(crate) sent_bytes: f64,
    pub(crate) received_messages: f64,
    pub(crate) received_bytes: f64,
}

/// Why and when a node was lost, on the viewer's clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    pub(crate) at: Duration,
    pub(crate) reason: String,
    /// It left in good order, and the run goes on without it.
    pub(crate) is_meant: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pe {
    pub(crate) last: PeSnapshot,
    pub(crate) history: History,
    marks: VecDeque<(i64, u64, u64)>,
}

impl Pe {
    /// All its time so far, by state.
    pub(crate) fn lifetime(&self) -> Times {
        times(&self.last)
    }

    /// What it did in that time, as far as it is remembered. What stopped it is divided as it was in all its life.
    pub(crate) fn span(&self, from: i64, to: i64) -> Span {
        let times = self.history.between(from, to);
        let stopped = self.last.throttled_ns.saturating_add(self.last.quota_ns).max(1);
        let quota = (times.throttled as f64 * (self.last.quota_ns as f64 / stopped as f64)).round() as u64;
        let ns = |micros: u64| micros.saturating_mul(1000);
        let spent = Spent {
            worked: ns(times.working().saturating_add(times.overhead)),
            no_core: ns(times.core_wait),
            quota: ns(quota),
            throttled: ns(times.throttled.saturating_sub(quota)),
            idle: ns(times.idle),
        };
        Span { from, to, spent }
    }

    /// Entries run and messages sent per second.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let (Some(old), Some(new)) = (self.marks.front(), self.marks.back()) else { return (0.0, 0.0) };
        let span = new.0 - old.0;
        (per_second(old.1, new.1, span), per_second(old.2, new.2, span))
    }

    fn apply(&mut self, snapshot: PeSnapshot, from: i64, to: i64, uptime: i64, known: bool) {
        if known {
            self.history.add(from, to, times(&snapshot).since(self.lifetime()));
        }
        push_mark(&mut self.marks, (uptime, snapshot.entries, snapshot.sent_messages), |mark| mark.0);
        let entry = text::clean_line(&snapshot.entry, 80);
        self.last = PeSnapshot { entry, ..snapshot };
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) info: NodeInfo,
    /// The last snapshot, without its PEs.
    pub(crate) last: NodeSnapshot,
    pub(crate) pes: Vec<Pe>,
    pub(crate) loss: Option<Loss>,
    /// When the last snapshot came, on the viewer's clock; `None` before the first.
    pub(crate) heard: Option<Duration>,
    /// Viewer's time minus the node's.
    pub(crate) offset: i64,
    marks: VecDeque<(i64, [u64; 4])>,
    /// The last two that differ.
    processors: [Processors; 2],
    /// Those of the last seconds.
    profiles: VecDeque<Profile>,
    pub(crate) slowest: Slowest,
    /// Chares that keep its PEs busy, where that is measured.
    pub(crate) heaviest: Vec<HeavyChare>,
}

impl Node {
    pub(crate) fn name(&self) -> String {
        if self.info.name.is_empty() { format!("node{}", self.last.node) } else { self.info.name.clone() }
    }

    /// What it said last of its entry methods and receivers, and what some seconds before that.
    pub(crate) fn profiles(&self) -> Option<(&Profile, &Profile)> {
        Some((self.profiles.front()?, self.profiles.back()?))
    }

    /// Whether it has left in good order, and the run goes on without it.
    pub(crate) fn has_left(&self) -> bool {
        self.loss.as_ref().is_some_and(|loss| loss.is_meant)
    }

    /// Sum of the speeds of its PEs; 0 until measured.
    pub(crate) fn speed(&self) -> f64 {
        hosts::node_speed(&self.info)
    }

    pub(crate) fn rates(&self) -> Rates {
        let (Some(old), Some(new)) = (self.marks.front(), self.marks.back()) else { return Rates::default() };
        let rate = |which: usize| per_second(old.1[which], new.1[which], new.0 - old.0);
        Rates {
            sent_messages: rate(0),
            sent_bytes: rate(1),
            received_messages: rate(2),
            received_bytes: rate(3),
        }
    }

    /// How many cores everybody used on its host between the last two looks, and how many its process did; `None` before the
    /// second look.
    pub(crate) fn processors_used(&self) -> Option<(f64, f64)> {
        let [then, now] = self.processors;
        let span_ns = now.uptime_ns.checked_sub(then.uptime_ns).filter(|ns| *ns > 0 && then.uptime_ns > 0)?;
        let used = |now: u64, then: u64| now.saturating_sub(then) as f64 / span_ns as f64;
        Some((used(now.busy_ns, then.busy_ns), used(now.own_ns, then.own_ns)))
    }

    pub(crate) fn lifetime(&self) -> Times {
        self.pes.iter().fold(Times::default(), |sum, pe| sum.plus(pe.lifetime()))
    }

    pub(crate) fn between(&self, from: i64, to: i64) -> Times {
        self.pes.iter().fold(Times::default(), |sum, pe| sum.plus(pe.history.between(from, to)))
    }

    pub(crate) fn entries(&self) -> u64 {
        self.pes.iter().fold(0, |sum, pe| sum.saturating_add(pe.last.entries))
    }

    pub(crate) fn queue(&self) -> u64 {
        self.pes.iter().fold(0, |sum, pe| sum.saturating_add(pe.last.queue_messages))
    }

    pub(crate) fn queue_bytes(&self) -> u64 {
        self.pes.iter().fold(0, |sum, pe| sum.saturating_add(pe.last.queue_bytes))
    }

    /// End of what is known about it, on the viewer's time axis.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.heard.map(|_| nanos(self.last.uptime_ns) + self.offset)
    }

    /// Age of the node process when last heard of, nanoseconds.
    pub(crate) fn uptime(&self) -> i64 {
        nanos(self.last.uptime_ns)
    }

    /// Takes in what its heaviest chares are now.
    pub(crate) fn take_heaviest(&mut self, chares: Vec<HeavyChare>) {
        let most = self.pes.len().saturating_mul(OF_PE_MAX);
        let can_be = chares.into_iter().filter(|one| one.part.is_finite()).take(most);
        let clean =
            |one: HeavyChare| HeavyChare { element: text::clean_line(&one.element, ELEMENT_MAX), ..one };
        self.heaviest = can_be.map(clean).collect();
    }

    /// Takes a snapshot in; one that is older than the last is ignored, a node that began anew begins anew here.
    pub(crate) fn apply(&mut self, snapshot: NodeSnapshot, now: Duration, pes_allowed: usize) {
        let uptime = nanos(snapshot.uptime_ns);
        let before = nanos(self.last.uptime_ns);
        let first = self.heard.is_none();
        let restarted = !first && uptime < before;
        if restarted && snapshot.sequence > self.last.sequence {
            return; // a clock that runs backwards tells nothing
        }
        if restarted && before - uptime < 10 * SECOND {
            return; // overtaken by a later one
        }
        if first || restarted {
            self.offset = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4) - uptime;
            self.marks.clear();
            self.processors = Default::default();
            self.profiles.clear();
            self.slowest = Slowest::default();
            self.heaviest.clear();
            self.pes.clear();
        }
        let known = !first || uptime <= YOUNG;
        let from = if first || restarted { 0 } else { before } + self.offset;
        let to = uptime + self.offset;
        let NodeSnapshot { pes, .. } = snapshot;
        // Those of another node may have come to it, or gone.
        let mut before = std::mem::take(&mut self.pes);
        for pe in pes.into_iter().take(pes_allowed) {
            let place = before.iter().position(|other| other.last.pe == pe.pe);
            let mut known_pe = place.map_or_else(Pe::default, |place| before.swap_remove(place));
            known_pe.apply(pe, from, to, uptime, known);
            self.pes.push(known_pe);
        }
        let counters = [
            snapshot.sent_messages,
            snapshot.sent_bytes,
            snapshot.received_messages,
            snapshot.received_bytes,
        ];
        push_mark(&mut self.marks, (uptime, counters), |mark| mark.0);
        if snapshot.processors.uptime_ns > self.processors[1].uptime_ns {
            self.processors = [self.processors[1], snapshot.processors];
        }
        if let Some(profile) = snapshot.profile {
            self.slowest.take_profile(&profile);
            push_mark(&mut self.profiles, profile, |one| nanos(one.at_ns));
        }
        self.last = NodeSnapshot { pes: Vec::new(), profile: None, ..snapshot };
        self.heard = Some(now);
    }
}

fn push_mark<T>(marks: &mut VecDeque<T>, mark: T, time: impl Fn(&T) -> i64) {
    let newest = time(&mark);
    marks.push_back(mark);
    while marks.len() > MARKS
        || (marks.len() > 2 && marks.get(1).is_some_and(|old| newest - time(old) >= RATE_SPAN))
    {
        marks.pop_front();
    }
}

fn per_second(old: u64, new: u64, span_ns: i64) -> f64 {
    if span_ns <= 0 {
        return 0.0;
    }
    new.saturating_sub(old) as f64 * SECOND as f64 / span_ns as f64
}

fn times(pe: &PeSnapshot) -> Times {
    Times {
        compute: pe.compute_ns / 1000,
        idle: pe.idle_ns / 1000,
        init: pe.init_ns / 1000,
        overhead: pe.overhead_ns / 1000,
        core_wait: pe.core_wait_ns / 1000,
        throttled: pe.throttled_ns.saturating_add(pe.quota_ns) / 1000,
    }
}

pub(crate) fn nanos(time: u64) -> i64 {
    i64::try_from(time.min(TIME_MAX)).expect("cut off below i64::MAX")
}
