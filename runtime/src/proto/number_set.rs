//! Sets of numbers 0, 1, 2 …, which take a few bytes as long as the numbers are added nearly in order.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A set of numbers that fills up from below.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NumberSet {
    /// All numbers below this one are in the set.
    below: u64,
    /// The other numbers that are in the set.
    beyond: BTreeSet<u64>,
}

impl NumberSet {
    /// Whether `number` is in the set.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        number < self.below || self.beyond.contains(&number)
    }

    /// Whether `number` and all below it are in the set.
    #[must_use]
    pub fn contains_all_to(&self, number: u64) -> bool {
        number < self.below
    }

    /// Adds `number` to the set.
    pub fn insert(&mut self, number: u64) {
        if number < self.below {
            return;
        }
        if number == self.below && self.beyond.is_empty() {
            // Nearly all numbers come in order.
            self.below = self.below.saturating_add(1);
            return;
        }
        self.beyond.insert(number);
        while self.beyond.remove(&self.below) {
            self.below = self.below.saturating_add(1);
        }
    }

    /// The smallest number that is not in the set.
    #[must_use]
    pub fn first_missing(&self) -> u64 {
        self.below
    }

    /// The largest number in the set.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.beyond.last().copied().or_else(|| self.below.checked_sub(1))
    }

    /// Adds all numbers below `number` to the set.
    pub fn fill_to(&mut self, number: u64) {
        self.below = self.below.max(number);
        self.beyond = self.beyond.split_off(&self.below);
        while self.beyond.remove(&self.below) {
            self.below = self.below.saturating_add(1);
        }
    }

    /// Count of numbers that are remembered one by one: those that came before a smaller one.
    #[must_use]
    pub fn out_of_order(&self) -> usize {
        self.beyond.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn holds_what_was_inserted_and_no_more(
            numbers in prop::collection::vec((0u64..40, prop::bool::weighted(0.1)), 0..60),
        ) {
            let (mut set, mut all) = (NumberSet::default(), BTreeSet::new());
            for (number, fills) in numbers {
                if fills {
                    set.fill_to(number);
                    all.extend(0..number);
                } else {
                    set.insert(number);
                    all.insert(number);
                }
                prop_assert_eq!(set.last(), all.last().copied());
                prop_assert_eq!(set.first_missing(), (0..).find(|n| !all.contains(n)).unwrap());
                prop_assert!((0..45).all(|n| set.contains(n) == all.contains(&n)));
                prop_assert!((0..45).all(|n| set.contains_all_to(n) == (0..=n).all(|n| all.contains(&n))));
            }
        }
    }

    #[test]
    fn what_came_in_order_in_the_end_takes_no_room() {
        let mut set = NumberSet::default();
        for at in (0..100_000).step_by(4) {
            [at + 2, at, at + 3, at + 1].into_iter().for_each(|number| set.insert(number));
        }
        assert_eq!((set.out_of_order(), set.contains(99_999), set.contains(100_000)), (0, true, false));
        set.insert(u64::MAX);
        set.insert(7);
        assert_eq!(set.out_of_order(), 1);
    }
}
