//! Communication-aware refinement: after any balancer, chares go to where those are that they talk to, as long as no PE
//! ends later for it.

use super::view::{Checked, Mobility, Times};
use super::{Balancer, Wanted};
use std::collections::BTreeSet;

/// What `first` wants, changed so that less crosses between nodes, and between PEs of a node.
#[derive(Debug)]
pub struct Communication {
    /// Balances the loads.
    pub first: Box<dyn Balancer>,
    /// A PE may end so much later than the ideal for the sake of communication, as a part of it; never later than the
    /// latest does without.
    pub tolerance: f64,
    /// How often all chares are looked at.
    pub rounds: u32,
}

impl Default for Communication {
    fn default() -> Self {
        Self { first: Box::new(super::Stay), tolerance: 0.02, rounds: 4 }
    }
}

impl Balancer for Communication {
    fn name(&self) -> &'static str {
        self.first.name()
    }

    fn uses_edges(&self) -> bool {
        true
    }

    fn uses_places(&self) -> bool {
        self.first.uses_places()
    }

    fn doubt(&self, pes: u32) -> Option<String> {
        self.first.doubt(pes)
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut wanted = self.first.wanted(view);
        if view.edges.is_empty() {
            return wanted;
        }
        let mut refining = Refining::new(view, &wanted.owners, self.tolerance);
        for _ in 0..self.rounds {
            if !refining.round() {
                break;
            }
        }
        wanted.owners = refining.owners;
        wanted
    }
}

/// What crosses between PEs of a node, and between nodes, counts so much.
const INSIDE: i64 = 1;
const BETWEEN: i64 = 16;
/// Besides those that its neighbours talk to, a chare looks at so many others to change places with.
const OTHERS: usize = 4;

struct Refining<'a> {
    view: &'a Checked<'a>,
    node_of: Vec<usize>,
    talks: Talks,
    owners: Vec<u32>,
    /// The chares of each PE when the present round began.
    by_pe: Vec<Vec<u32>>,
    times: Times,
    /// No PE may take longer.
    longest: f64,
}

impl<'a> Refining<'a> {
    fn new(view: &'a Checked<'a>, owners: &[u32], tolerance: f64) -> Self {
        let talks = Talks::of(view);
        let times = Times::with(view, owners);
        let in_time = times.level() * (1.0 + tolerance);
        let longest = times.longest().max(in_time.min(view.times.longest()));
        Self {
            view,
            node_of: view.nodes(),
            talks,
            owners: owners.to_vec(),
            by_pe: Vec::new(),
            times,
            longest,
        }
    }

    /// Each chare in turn moves, or changes places with another, if less crosses then. Whether any did.
    fn round(&mut self) -> bool {
        let mut has_moved = false;
        self.by_pe = self.view.by_pe(&self.owners);
        for chare in 0..self.owners.len() as u32 {
            has_moved |= self.improve(chare);
        }
        has_moved
    }

    fn improve(&mut self, chare: u32) -> bool {
        let here = self.owners[chare as usize];
        let is_away = |(other, _): &(u32, i64)| self.owners[*other as usize] != here;
        let is_pinned = self.view.chares[chare as usize].mobility == Mobility::Pinned;
        if is_pinned || !self.talks_of(chare).iter().any(is_away) {
            return false;
        }
        let mut better: Vec<(i64, u32)> = self
            .talks_of(chare)
            .iter()
            .map(|(other, _)| self.owners[*other as usize])
            .filter(|pe| *pe != here && self.view.may_live(chare, *pe))
            .collect::<BTreeSet<u32>>()
            .into_iter()
            .map(|pe| (self.saved(chare, pe), pe))
            .filter(|(saved, _)| *saved > 0)
            .collect();
        better.sort_by_key(|(saved, pe)| (-saved, *pe));
        better.into_iter().any(|(saved, pe)| self.go(chare, here, pe) || self.swap(chare, here, pe, saved))
    }

    /// Moves the chare if its new PE still ends in time.
    fn go(&mut self, chare: u32, here: u32, there: u32) -> bool {
        let load = self.view.chares[chare as usize].load;
        let fits = self.times.seconds_with(there, load) <= self.longest;
        if fits {
            self.times.shift(load, here, there);
            self.owners[chare as usize] = there;
        }
        fits
    }

    /// Exchanges the chare with the one of some on the other PE that makes least cross then, if both PEs end in time: those
    /// that its neighbours talk to, and a few others.
    fn swap(&mut self, chare: u32, here: u32, there: u32, saved: i64) -> bool {
        let load = self.view.chares[chare as usize].load;
        let mut candidates: BTreeSet<u32> = BTreeSet::new();
        for (near, _) in self.talks_of(chare) {
            for (other, _) in self.talks_of(*near) {
                if *other != chare && self.owners[*other as usize] == there && self.may_go(*other, here) {
                    candidates.insert(*other);
                }
            }
        }
        let others = &self.by_pe[there as usize];
        let few = (0..others.len().min(OTHERS)).map(|at| others[(chare as usize + at) % others.len()]);
        candidates
            .extend(few.filter(|other| self.owners[*other as usize] == there && self.may_go(*other, here)));
        let between = |other: u32| {
            let talk = self.talks_of(chare).iter().filter(|(near, _)| *near == other);
            talk.map(|(_, cost)| cost).sum::<i64>() * self.weight(here, there)
        };
        let gain = |other: u32| saved + self.saved(other, here) - 2 * between(other);
        let fits = |other: u32| {
            let change = load - self.view.chares[other as usize].load;
            self.times.seconds_with(there, change) <= self.longest
                && self.times.seconds_with(here, -change) <= self.longest
        };
        let best = candidates
            .into_iter()
            .filter(|other| fits(*other))
            .map(|other| (gain(other), other))
            .filter(|(gain, _)| *gain > 0)
            .min_by_key(|(gain, other)| (-gain, *other));
        let Some((_, other)) = best else { return false };
        self.times.shift(load, here, there);
        self.times.shift(self.view.chares[other as usize].load, there, here);
        self.owners[chare as usize] = there;
        self.owners[other as usize] = here;
        true
    }

    fn talks_of(&self, chare: u32) -> &[(u32, i64)] {
        self.talks.of_chare(chare)
    }

    fn may_go(&self, chare: u32, pe: u32) -> bool {
        self.view.chares[chare as usize].mobility != Mobility::Pinned && self.view.may_live(chare, pe)
    }

    /// How much less a chare's messages would cost if it were there.
    fn saved(&self, chare: u32, there: u32) -> i64 {
        let here = self.owners[chare as usize];
        let cost = |pe: u32| {
            let talks = self.talks_of(chare).iter();
            talks.map(|(other, cost)| cost * self.weight(pe, self.owners[*other as usize])).sum::<i64>()
        };
        cost(here) - cost(there)
    }

    fn weight(&self, one: u32, other: u32) -> i64 {
        if one == other {
            0
        } else if self.node_of[one as usize] == self.node_of[other as usize] {
            INSIDE
        } else {
            BETWEEN
        }
    }
}

/// Whom each chare talks to.
pub(super) struct Talks {
    /// One chare after the other: who it is, and what it costs if they are on two PEs.
    all: Vec<(u32, i64)>,
    /// Where the first of each chare is.
    begins: Vec<usize>,
}

/// All costs together have at most so many bits, so that their sums and small multiples are exact.
const COST_BITS: u32 = 56;

impl Talks {
    pub(super) fn of(view: &Checked<'_>) -> Self {
        let edges = || view.edges.iter().filter(|edge| edge.one != edge.other);
        let total: u128 = edges().map(|edge| u128::from(edge.cost())).sum();
        let shift = (u128::BITS - total.leading_zeros()).saturating_sub(COST_BITS);
        let mut begins = vec![0; view.chares.len() + 1];
        for edge in edges() {
            begins[edge.one as usize + 1] += 1;
            begins[edge.other as usize + 1] += 1;
        }
        for chare in 0..view.chares.len() {
            begins[chare + 1] += begins[chare];
        }
        let mut next = begins.clone();
        let mut all = vec![(0, 0); begins[view.chares.len()]];
        for edge in edges() {
            for (chare, other) in [(edge.one, edge.other), (edge.other, edge.one)] {
                all[next[chare as usize]] = (other, (edge.cost() >> shift) as i64);
                next[chare as usize] += 1;
            }
        }
        Self { all, begins }
    }

    pub(super) fn of_chare(&self, chare: u32) -> &[(u32, i64)] {
        &self.all[self.begins[chare as usize]..self.begins[chare as usize + 1]]
    }
}
