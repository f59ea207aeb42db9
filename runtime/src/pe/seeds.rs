//! Chares that are made where there is least to do: PEs that have nothing to do ask others for them.
//!
//! Such a chare, a *seed*, is like every other, and goes to who asked as any chare moves. Only programs that make seeds pay for
//! this: a PE that has never seen one does not ask.

use super::Pe;
use super::scheduler::Scheduler;
use crate::envelope::{ElementId, Packed, Payload};
use crate::ids::PeId;
use crate::moving::Moving;
use loadbalance::balance::random::Random;
use loadbalance::balance::seeds::{Tokens, asked_by, at_random};
use rustc_hash::FxHashSet;

/// What a PE knows of seeds.
pub(super) struct Seeds {
    random: Random,
    /// How many have been made from here, as far as that matters.
    made: u32,
    /// PEs that wait for some.
    tokens: Tokens,
    /// One has come since others were asked.
    may_ask: bool,
    /// Some may be there for those who wait.
    is_due: bool,
}

impl Seeds {
    pub(super) fn new(me: PeId) -> Self {
        let random = Random::of(0, u64::from(me.0));
        Self { random, made: 0, tokens: Tokens::default(), may_ask: false, is_due: false }
    }

    /// Whether others should be asked if there is nothing to do.
    #[inline]
    pub(super) fn may_ask(&self) -> bool {
        self.may_ask
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }
}

impl Pe {
    /// Where the next seed is made: the first few go round, so that all PEs have some, as often to each as its speed earns. Those
    /// after them stay here until somebody asks; the driver's never stay.
    pub fn place_of_seed(&mut self) -> PeId {
        let is_spread = self.id == PeId::DRIVER || self.seeds.made < self.node.topology().begun().pe_count();
        if !is_spread {
            return self.id;
        }
        self.seeds.made = self.seeds.made.saturating_add(1);
        self.next_by_speed()
    }

    /// A PE at random, the more often the faster it is.
    pub fn any_by_speed(&mut self) -> PeId {
        PeId(at_random(&self.node.speeds(), &mut self.seeds.random))
    }

    /// A seed is here now.
    pub(super) fn seed_came(&mut self) {
        self.seeds.may_ask = true;
        self.look_for_seeds();
    }

    /// Another PE has nothing to do.
    pub(super) fn asked_for_seeds(&mut self, by: PeId) {
        // It may have been there before the run went on elsewhere.
        if by != self.id && by.0 < self.node.topology().pe_count() {
            self.seeds.tokens.idle(by.0);
            self.look_for_seeds();
        }
    }

    fn look_for_seeds(&mut self) {
        if !self.seeds.tokens.is_empty() {
            self.seeds.is_due = true;
            self.has_more_to_do = true;
        }
    }

    /// Asks others for seeds: once, until one has come.
    #[cold]
    pub(super) fn ask_for_seeds(&mut self) {
        self.seeds.may_ask = false;
        for pe in asked_by(self.id.0, self.node.topology().pe_count(), &mut self.seeds.random) {
            self.account().created(1);
            self.say(PeId(pe), Moving::Ask { pe: self.id }, Payload::packed(Packed::default()));
        }
    }
}

impl Scheduler {
    /// Lets seeds go to those who have asked, if there are more than one that have something to do.
    pub(super) fn give_seeds(&mut self) {
        self.pe.seeds.is_due = false;
        let mut seen = FxHashSet::default();
        let mut waiting = self.pe.queue.receivers();
        waiting.retain(|element| is_seed(*element) && seen.insert(*element) && self.is_here(*element));
        let me = self.pe.id;
        let going = self.pe.seeds.tokens.divide(me.0, waiting.len(), &self.pe.node.speeds());
        going.into_iter().for_each(|(at, to)| self.pe.will_leave(waiting[at], PeId(to)));
    }
}

/// Whether an element is a chare that may go to who asks.
pub(super) fn is_seed(element: ElementId) -> bool {
    element.collection.as_singles().is_some() && element.index.is_seed()
}
