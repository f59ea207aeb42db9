//! Chares that are made where there is least to do: PEs that have nothing to do ask others for them.
//!
//! Such a chare, a *seed*, is like every other, and goes to who asked as any chare moves. Only programs that make seeds pay for
//! this: a PE that has never seen one does not ask.

use super::Pe;
use super::scheduler::Scheduler;
use crate::envelope::{CollectionId, ElementId, ElementIndex, Packed, Payload};
use crate::ids::PeId;
use crate::moving::Moving;
use loadbalance::balance::random::Random;
use loadbalance::balance::seeds::{Tokens, Worth, asked_by, at_random};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// What a PE knows of seeds.
pub(super) struct Seeds {
    random: Random,
    /// PEs that wait for some.
    tokens: Tokens,
    /// That there are any is known here.
    are_used: bool,
    /// Others have not been asked since the last came.
    may_ask: bool,
    worth: Worth,
    /// Messages that are processed before the next look for some that may go.
    next_look: u64,
    /// Entry methods that had been run at the last look, and the time for which the PE had been busy.
    seen: (u64, u64),
}

impl Seeds {
    pub(super) fn new(me: PeId) -> Self {
        Self {
            random: Random::of(0, u64::from(me.0)),
            tokens: Tokens::default(),
            are_used: false,
            may_ask: false,
            worth: Worth::default(),
            next_look: 0,
            seen: (0, 0),
        }
    }

    /// Whether others should be asked if there is nothing to do.
    #[inline]
    pub(super) fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// Whether somebody waits for some.
    pub(super) fn are_awaited(&self) -> bool {
        !self.tokens.is_empty()
    }
}

impl Pe {
    /// A PE at random, the more often the faster it is.
    pub fn any_by_speed(&mut self) -> PeId {
        PeId(at_random(&self.node.speeds(), &mut self.seeds.random))
    }

    /// A seed has been made here. Of the first others hear; who hears of it asks others, who so hear of it too.
    pub(super) fn seed_made(&mut self) {
        if !self.seeds.are_used {
            self.say_to_some(|_| Moving::MayAsk);
        }
        self.may_ask_for_seeds();
    }

    /// A seed is here that was made elsewhere, or before the run went on from a checkpoint: nothing of what was known of seeds is
    /// in that.
    pub(super) fn seed_came(&mut self) {
        if !self.seeds.are_used {
            self.seed_made();
        }
    }

    /// There are seeds, or all have come that are to come for now.
    pub(super) fn may_ask_for_seeds(&mut self) {
        (self.seeds.are_used, self.seeds.may_ask) = (true, true);
    }

    /// Another PE has nothing to do.
    pub(super) fn asked_for_seeds(&mut self, by: PeId) {
        if !self.seeds.are_used {
            self.may_ask_for_seeds();
        }
        // It may have been there before the run went on elsewhere.
        if by != self.id && by.0 < self.node.topology().pe_count() {
            self.seeds.tokens.idle(by.0);
            self.look_for_seeds();
        }
    }

    /// When the present message has been dealt with, seeds go to those who wait.
    fn look_for_seeds(&mut self) {
        self.seeds.next_look = 0;
        self.has_more_to_do = true;
    }

    /// Takes note of how long entry methods have run.
    fn watch_seeds(&mut self) {
        let (computed_ns, overhead_ns) = self.account.busy_ns();
        let now = (self.account.entries(), computed_ns + overhead_ns);
        let (entries, busy_ns) = std::mem::replace(&mut self.seeds.seen, now);
        let seconds = now.1.saturating_sub(busy_ns) as f64 * 1e-9;
        self.seeds.worth.ran(seconds, now.0.saturating_sub(entries));
    }

    /// Asks others for seeds: once, until some have come.
    #[cold]
    pub(super) fn ask_for_seeds(&mut self) {
        self.seeds.may_ask = false;
        self.say_to_some(|pe| Moving::Ask { pe });
    }

    fn say_to_some(&mut self, what: impl Fn(PeId) -> Moving) {
        for pe in asked_by(self.id.0, self.node.topology().pe_count(), &mut self.seeds.random) {
            self.say_of_seeds(PeId(pe), what(self.id));
        }
    }

    fn say_of_seeds(&mut self, to: PeId, what: Moving) {
        self.account().created(1);
        self.say(to, what, Payload::packed(Packed::default()));
    }
}

impl Scheduler {
    /// Lets seeds go to those who have asked, if there are more than one that have something to do, and that pays.
    pub(super) fn give_seeds(&mut self, running: (Option<CollectionId>, Option<ElementIndex>)) {
        let processed = self.pe.account.counts().processed;
        if processed < self.pe.seeds.next_look {
            return self.leave(running);
        }
        // All that waits is looked through, so that should not be done for each message.
        self.pe.seeds.next_look = processed + (self.pe.queue.len() / 8) as u64 + 1;
        self.pe.watch_seeds();
        let most = self.pe.seeds.worth.most();
        let begun_ns = self.pe.node.now_ns();
        let mut waiting = if most > 0 { self.pe.queue.receivers() } else { Vec::new() };
        let mut seen = FxHashSet::default();
        waiting.retain(|element| is_seed(*element) && seen.insert(*element) && self.is_here(*element));
        let count = waiting.len().min(most);
        let going = self.pe.seeds.tokens.divide(self.pe.id.0, count, &self.pe.node.speeds());
        going.iter().for_each(|&(at, to)| self.pe.will_leave(waiting[at], PeId(to)));
        self.leave(running);
        self.say_given(going.iter().map(|(_, to)| *to).collect());
        let seconds = self.pe.node.now_ns().saturating_sub(begun_ns) as f64 * 1e-9;
        self.pe.seeds.worth.gave(seconds, going.len());
    }

    /// Says to PEs, behind the seeds that went there, that they may ask again.
    fn say_given(&mut self, to: BTreeSet<u32>) {
        to.into_iter().for_each(|pe| self.pe.say_of_seeds(PeId(pe), Moving::MayAsk));
    }
}

/// Whether an element is a chare that may go to who asks.
pub(super) fn is_seed(element: ElementId) -> bool {
    element.collection.as_singles().is_some() && element.index.is_seed()
}
