//! The critical path of the last seconds, of the single entry methods and messages that nodes tell of.

use std::collections::{BTreeMap, HashMap, VecDeque};

use runtime::monitor::critical_path::{Call, Path, UNDER_WAY};
use runtime::monitor::gaps::{Gaps, Span, Spent};
use runtime::monitor::samples::Samples;
use runtime::monitor::ways::{self, Way};
use runtime::monitor::wire::PeState;

use super::Model;
use super::history::{FINE, SECOND};
use super::node::nanos;
use super::waits::Waits;

/// What is older than the newest by so much is forgotten.
const KEPT: i64 = 8 * SECOND;
/// Calls, or messages, kept.
const KEPT_MAX: usize = 1 << 16;
/// All nodes of a run that goes on have told of what was so long ago.
const TOLD: i64 = SECOND / 2;
/// What has run for so long is on the path though it has not ended.
const LONG_NS: u64 = 500_000_000;

/// Calls and messages by when they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recent {
    calls: VecDeque<Call>,
    sent: VecDeque<((u32, u32), i64)>,
}

impl Recent {
    /// Takes in what a node tells whose clock has to be put forward by so much.
    pub(crate) fn apply(&mut self, samples: Samples, offset: i64) {
        let clock = |age_ns: u64| nanos(age_ns) + offset;
        self.calls.extend(samples.ran.iter().map(|ran| Call::of(ran, clock)));
        self.sent.extend(samples.sent.iter().map(|one| ((one.pe, one.number), clock(one.at_ns))));
        let newest = self.calls.back().map_or(0, |call| call.to);
        let is_old = |at: i64| at < newest - KEPT;
        while self.calls.len() > KEPT_MAX || self.calls.front().is_some_and(|call| is_old(call.to)) {
            self.calls.pop_front();
        }
        while self.sent.len() > KEPT_MAX || self.sent.front().is_some_and(|(_, at)| is_old(*at)) {
            self.sent.pop_front();
        }
    }
}

impl Model {
    /// What ended the waiting of PEs since then.
    pub(crate) fn waits(&self, since: i64) -> Waits {
        Waits::of_calls(self.recent.calls.iter().filter(|call| call.to >= since))
    }

    /// The path through so much of the past.
    pub(crate) fn path(&self, recent: i64) -> Path {
        let mut calls: Vec<Call> = self.recent.calls.iter().copied().collect();
        if calls.is_empty() {
            return Path::default();
        }
        let edge = self.edge();
        let mut until = if self.end.is_some() { edge } else { edge - TOLD };
        for node in self.nodes.values().filter(|node| node.loss.is_none()) {
            let Some(now) = node.newest() else { continue };
            for pe in node.pes.iter().map(|pe| &pe.last) {
                let runs = matches!(pe.state, PeState::Compute | PeState::Init) && pe.in_state_ns >= LONG_NS;
                let name = self.run.entry_names.iter().position(|name| *name == pe.entry);
                if let (true, Some(name)) = (runs, name.and_then(|name| u16::try_from(name).ok())) {
                    let from = now - nanos(pe.in_state_ns);
                    calls.push(Call { pe: pe.pe, name, from, to: now, ..Call::default() });
                    until = edge;
                }
            }
        }
        calls.sort_by_key(|call| (call.pe, call.from));
        let gaps = Gaps::of(self.spans(until - recent, until), &calls);
        let sent = self.recent.sent.iter().copied().collect();
        Path::of(&calls, &sent, (until - recent, until)).divided(|pe, time| gaps.did(pe, time))
    }

    /// What PEs did in that time.
    fn spans(&self, from: i64, to: i64) -> impl Iterator<Item = (u32, Vec<Span>)> {
        let first = from.div_euclid(FINE) * FINE;
        let begins = move || (first..to).step_by(FINE.unsigned_abs() as usize);
        let pes = self.nodes.values().flat_map(|node| &node.pes);
        pes.map(move |pe| {
            (
                pe.last.pe,
                begins()
                    .map(|from| pe.span(from, from + FINE))
                    .filter(|span| span.spent != Spent::default())
                    .collect(),
            )
        })
    }

    /// How long messages are on their way between nodes, of the last ones, the slowest first.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let node_of = self.nodes_of_pes();
        let node = |pe: u32| node_of.get(&pe).copied();
        ways::ways(&self.recent.calls, &self.recent.sent.iter().copied().collect(), node)
    }

    /// The same in words, if that is a good part of a path.
    pub(crate) fn network_words(&self, path: &Path) -> Option<String> {
        let is_it = path.under_way(|pe| self.node_of(pe)) >= UNDER_WAY;
        is_it.then(|| ways::told(&self.ways(), |node| self.name_of(node))).flatten()
    }

    /// The part of the waiting of each PE since then in which what ended it was on its way from another node, where anything is
    /// known of it.
    pub(crate) fn parts_on_way(&self, since: i64) -> BTreeMap<u32, f64> {
        let calls = self.recent.calls.iter().filter(|call| call.to >= since);
        let node_of = self.nodes_of_pes();
        ways::parts_on_way(calls, &self.ways(), |pe| node_of.get(&pe).copied())
    }

    /// The node of each PE, for those who ask of thousands.
    fn nodes_of_pes(&self) -> HashMap<u32, u16> {
        let mut all = HashMap::new();
        // Where several nodes tell of a PE, the first counts, as for `pe`.
        for node in self.nodes.values().rev() {
            all.extend(node.pes.iter().map(|pe| (pe.last.pe, node.last.node)));
        }
        all
    }

    fn node_of(&self, pe: u32) -> Option<u16> {
        self.pe(pe).map(|(node, _)| node.last.node)
    }

    /// What is on it, the largest part first, for people.
    pub(crate) fn path_words(&self, path: &Path) -> Vec<(f64, String)> {
        path.told(&self.run.entry_names, |number| self.pe(number).map(|(node, _)| node.name()))
    }
}
