//! Exchange: one chare at a time goes to another PE, or two change places, for as long as the PE that ends last ends sooner
//! for it. It counts whole chares, not what would be even if they could be cut, so it is for few and large ones.

use super::view::{Checked, Mobility, Times, key};
use super::{Balancer, Wanted};
use std::collections::BTreeSet;

/// From the latest PE, the chare that helps most goes to a PE that ends early, alone or for another one.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// What moves must bring at least, as a part of the ideal time.
    pub tolerance: f64,
}

impl Balancer for Exchange {
    fn name(&self) -> &'static str {
        "exchange"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut exchanging = Exchanging::new(view);
        let least = view.times.level() * self.tolerance;
        let mut best = (view.times.longest(), view.owners());
        // Each step makes the latest PE earlier, but those that are as late have to follow before the run ends sooner.
        for _ in 0..view.chares.len() {
            let Some(step) = exchanging.step(view.times.level() * FINEST) else { break };
            exchanging.carry_out(&step);
            let longest = exchanging.longest();
            if longest < best.0 - least {
                best = (longest, exchanging.owners.clone());
            }
        }
        best.1.into()
    }
}

/// No step is made that brings less than this part of the ideal time.
const FINEST: f64 = 1e-4;
/// Of the PEs that end early so many are asked for each chare.
const ASKED: usize = 8;

struct Exchanging<'a> {
    view: &'a Checked<'a>,
    owners: Vec<u32>,
    times: Times,
    /// PEs, the earliest first.
    order: BTreeSet<(u64, u32)>,
    /// The chares of each PE that may move and do something, the lightest first.
    of_pe: Vec<Vec<(u64, u32)>>,
}

/// A chare goes from one PE to another, and perhaps one comes back for it.
struct Step {
    from: u32,
    to: u32,
    goes: u32,
    comes: Option<u32>,
}

impl<'a> Exchanging<'a> {
    fn new(view: &'a Checked<'a>) -> Self {
        let times = view.times.clone();
        let mut of_pe = vec![Vec::new(); times.work.len()];
        for (chare, told) in (0..).zip(&view.chares) {
            if told.mobility != Mobility::Pinned && told.load > 0.0 {
                of_pe[told.pe as usize].push((key(told.load), chare));
            }
        }
        of_pe.iter_mut().for_each(|chares| chares.sort_unstable());
        let order = (0..times.work.len() as u32).map(|pe| (key(times.seconds(pe)), pe)).collect();
        Self { view, owners: view.owners(), times, order, of_pe }
    }

    fn longest(&self) -> f64 {
        self.order.last().map_or(0.0, |(seconds, _)| f64::from_bits(*seconds))
    }

    /// The step after which the later of its two PEs ends soonest, if the latest PE ends at least so much sooner for it.
    fn step(&self, least: f64) -> Option<Step> {
        let (seconds, from) = *self.order.last()?;
        let mut best = (f64::from_bits(seconds) - least, None);
        let others = self.order.iter().map(|(_, pe)| *pe).filter(|pe| *pe != from);
        let others: Vec<u32> = others.take(ASKED).collect();
        for &(_, goes) in &self.of_pe[from as usize] {
            for &to in others.iter().filter(|to| self.view.may_live(goes, **to)) {
                let partners = self.partners(goes, from, to).map(Some);
                for comes in std::iter::once(None).chain(partners) {
                    let later = self.later_after(from, to, goes, comes);
                    if later < best.0 {
                        best = (later, Some(Step { from, to, goes, comes }));
                    }
                }
            }
        }
        best.1
    }

    /// Chares on the other PE for which this one could go: those whose loads are nearest to what would make both end
    /// together.
    fn partners(&self, goes: u32, from: u32, to: u32) -> impl Iterator<Item = u32> {
        let (from, to) = (from as usize, to as usize);
        let Times { work, speed } = &self.times;
        let even = (work[from] * speed[to] - work[to] * speed[from]) / (speed[from] + speed[to]);
        let wanted = (self.load(goes) - even).max(0.0);
        let chares = &self.of_pe[to];
        let at = chares.partition_point(|(load, _)| *load < key(wanted));
        let may_come = move |chare: &u32| self.view.may_live(*chare, from as u32);
        let near = at.saturating_sub(1)..(at + 1).min(chares.len());
        near.map(|at| chares[at].1).filter(may_come)
    }

    /// Seconds of the later of the two PEs after such a step.
    fn later_after(&self, from: u32, to: u32, goes: u32, comes: Option<u32>) -> f64 {
        let change = self.load(goes) - comes.map_or(0.0, |chare| self.load(chare));
        self.times.seconds_with(from, -change).max(self.times.seconds_with(to, change))
    }

    fn load(&self, chare: u32) -> f64 {
        self.view.chares[chare as usize].load
    }

    fn carry_out(&mut self, step: &Step) {
        self.go(step.goes, step.from, step.to);
        if let Some(chare) = step.comes {
            self.go(chare, step.to, step.from);
        }
    }

    fn go(&mut self, chare: u32, from: u32, to: u32) {
        for pe in [from, to] {
            self.order.remove(&(key(self.times.seconds(pe)), pe));
        }
        self.times.shift(self.load(chare), from, to);
        for pe in [from, to] {
            self.order.insert((key(self.times.seconds(pe)), pe));
        }
        let entry = (key(self.load(chare)), chare);
        self.of_pe[from as usize].retain(|one| *one != entry);
        let there = &mut self.of_pe[to as usize];
        there.insert(there.partition_point(|one| *one < entry), entry);
        self.owners[chare as usize] = to;
    }
}
