//! What is computed, as every chare, the check and the plan know it.
//!
//! Chares stand in a ring. In each step a chare walks a chain ([`chain`]) as long as its load of that step says. The chain
//! begins with a number made of the one that the chare had, those that its two neighbours had, and a word of its state; its
//! end is the chare's new number and becomes that word. So a message that is lost, doubled or late, or state that does not
//! arrive, gives other numbers everywhere.

use super::arguments::{Imbalance, Loads};
use super::chain;
use crate::matrix::generate::hash;
use chares::loadbalance::balance::patterns::{Course, Pattern, Task};
use serde::{Deserialize, Serialize};

/// The work of all chares.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    loads: Loads,
    /// How many chares.
    pub chares: u32,
    /// Steps of each.
    pub steps: u32,
    /// Units of work of a chare in a step, in the mean.
    work: u64,
    /// Words of a chare's state.
    pub words: usize,
    seed: u64,
    /// Steps from one sum to the next.
    pub reduce_every: u32,
    /// Whether chares wait for the sums.
    pub barrier: bool,
}

/// What chares of neighbouring numbers had before a step.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// The chare itself.
    pub own: u64,
    /// The one before it in the ring.
    pub before: u64,
    /// The one after it.
    pub after: u64,
}

impl Problem {
    /// What the arguments say, once they are completed.
    #[must_use]
    pub fn of(imbalance: &Imbalance) -> Self {
        let &Imbalance { pattern, chares, steps, state, seed, reduce_every, barrier, .. } = imbalance;
        Self {
            loads: pattern,
            chares,
            steps,
            work: imbalance.work.unwrap_or(1),
            words: usize::try_from(state / size_of::<u64>() as u64).unwrap_or(usize::MAX),
            seed,
            reduce_every,
            barrier,
        }
    }

    /// The loads of a chare from a step on.
    #[must_use]
    pub fn course(&self, chare: u32, step: u32) -> Course {
        let mut course = Pattern::from(self.loads).course(chare, self.chares, self.seed);
        if let Some(last) = step.checked_sub(1) {
            course.nth(last as usize);
        }
        course
    }

    /// What a chare is a task of, if that limits where it may go.
    #[must_use]
    pub fn task(&self, chare: u32) -> Option<Task> {
        (self.loads == Loads::Slots).then(|| Task::of(chare, self.seed))
    }

    /// The chares that stand in the grid where the points of a chare end, on both sides: whose PEs have them in the rims of
    /// their parts. That is half of what a PE has on average.
    #[must_use]
    pub fn reach(&self, chare: u32, pe_count: u32) -> [u32; 2] {
        let half = (self.chares / pe_count.saturating_mul(2).max(1)).max(1);
        [chare.saturating_sub(half), chare.saturating_add(half).min(self.chares - 1)]
    }

    /// Links of the chain that a chare walks in its next step.
    #[must_use]
    pub fn units(&self, course: &mut Course) -> u64 {
        course.next().map_or(0, |load| (load * self.work as f64).round() as u64)
    }

    /// The number that a chare begins with.
    #[must_use]
    pub fn first(&self, chare: u32) -> u64 {
        hash(self.seed, u64::from(chare), 0) % chain::PRIME
    }

    /// A word of the state that a chare begins with.
    #[must_use]
    pub fn word(&self, chare: u32, word: usize) -> u64 {
        hash(self.seed, u64::from(chare), word as u64 + 1) % chain::PRIME
    }

    /// Which word of the state a step is about, if there is any.
    #[must_use]
    pub fn word_of_step(&self, step: u32) -> Option<usize> {
        (step as usize).checked_rem(self.words)
    }

    /// The number that the chain of a step begins with.
    #[must_use]
    pub fn begin(step: u32, numbers: Numbers, word: u64) -> u64 {
        chain::mixed([u64::from(step), numbers.own, numbers.before, numbers.after, word])
    }

    /// The number that a chare ends with: its last one, and its state.
    #[must_use]
    pub fn end(last: u64, words: impl IntoIterator<Item = u64>) -> u64 {
        chain::mixed(std::iter::once(last).chain(words))
    }

    /// Whether all numbers are added up before this step.
    #[must_use]
    pub fn adds_before(&self, step: u32) -> bool {
        step > 0 && step < self.steps && step.is_multiple_of(self.reduce_every)
    }

    /// The chare before and the chare after one in the ring.
    #[must_use]
    pub fn neighbours(&self, chare: u32) -> [u32; 2] {
        let last = self.chares - 1;
        [chare.checked_sub(1).unwrap_or(last), if chare == last { 0 } else { chare + 1 }]
    }
}
