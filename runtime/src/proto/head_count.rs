//! How many elements take part in each reduction of a collection, where elements are destroyed and inserted again.
//!
//! An element takes part in the reductions of its collection from one number on, and up to the one to which it has
//! contributed last. So how many take part at a place is a number that changes from reduction to reduction: those that
//! were there to begin with, and what has been added or taken away from each number on.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What has been added to how many elements take part at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadCount(BTreeMap<u32, i64>);

impl HeadCount {
    /// So many more take part from reduction `from` on. All reductions below `finished` are over, and what changes before
    /// is no longer kept apart.
    pub fn add(&mut self, from: u32, by: i64, finished: u64) {
        let sum = self.0.entry(from).or_default();
        *sum = sum.saturating_add(by);
        let before: Vec<u32> = self.0.keys().copied().take_while(|at| u64::from(*at) <= finished).collect();
        if let Some((last, others)) = before.split_last() {
            let over: i64 = others.iter().filter_map(|at| self.0.remove(at)).fold(0, i64::saturating_add);
            let sum = self.0.entry(*last).or_default();
            *sum = sum.saturating_add(over);
        }
        self.0.retain(|_, sum| *sum != 0);
    }

    /// How many take part in a reduction, of so many to begin with.
    #[must_use]
    pub fn of(&self, base: u64, sequence: u32) -> u64 {
        let sum = self.0.range(..=sequence).map(|(_, by)| *by).fold(0, i64::saturating_add);
        base.saturating_add_signed(sum)
    }

    /// If nobody takes part in a reduction: the first after it for which that may be otherwise.
    #[must_use]
    pub fn nobody_until(&self, base: u64, sequence: u32) -> Option<u64> {
        let next = || self.0.range(sequence.checked_add(1)?..).next().map(|(at, _)| u64::from(*at));
        (self.of(base, sequence) == 0).then(|| next().unwrap_or(1 << 32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is no longer kept apart, each reduction that is not over has as many as were added.
        #[test]
        fn of_reductions_that_are_not_over_all_changes_count(
            changes in prop::collection::vec((0u32..30, -3i64..4, 0u64..30), 0..30),
        ) {
            let (mut kept, mut all, mut over) = (HeadCount::default(), Vec::new(), 0);
            for (from, by, finished) in changes {
                over = over.max(finished);
                kept.add(from, by, over);
                all.push((from, by));
                for sequence in u32::try_from(over).unwrap()..40 {
                    let sum: i64 = all.iter().filter(|(from, _)| *from <= sequence).map(|(_, by)| by).sum();
                    let expected = 5u64.saturating_add_signed(sum);
                    prop_assert_eq!(kept.of(5, sequence), expected);
                    let nobody = kept.nobody_until(5, sequence);
                    prop_assert_eq!(nobody.is_some(), expected == 0);
                    if let Some(until) = nobody {
                        prop_assert!(until > u64::from(sequence));
                        let until = u32::try_from(until.min(40)).unwrap();
                        prop_assert!((sequence..until).all(|at| kept.of(5, at) == 0));
                    }
                }
            }
            prop_assert!(kept.0.keys().filter(|at| u64::from(**at) <= over).count() <= 1);
        }
    }
}
