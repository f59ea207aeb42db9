//! Which part of an iteration can be computed: each unit of work as soon as all that it needs of x is here.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The units of work of an iteration, and what they wait for. A *source* is a part of x that comes in one message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rounds {
    /// Units that need each source.
    needed_by: Vec<Vec<u32>>,
    /// Sources that each unit needs.
    need_counts: Vec<u32>,
    /// Sources that each unit still waits for.
    missing: Vec<u32>,
    arrived: Vec<bool>,
    ready: VecDeque<u32>,
    left: u32,
}

impl Rounds {
    /// For units that need these of so many sources each.
    pub(super) fn new(source_count: usize, units: &[Vec<u32>]) -> Self {
        let mut needed_by = vec![Vec::new(); source_count];
        for (unit, needs) in (0..).zip(units) {
            needs.iter().for_each(|&source| needed_by[source as usize].push(unit));
        }
        let count = |needs: &Vec<u32>| u32::try_from(needs.len()).expect("fewer sources than 2^32");
        let mut rounds = Self {
            needed_by,
            need_counts: units.iter().map(count).collect(),
            missing: Vec::new(),
            arrived: Vec::new(),
            ready: VecDeque::new(),
            left: 0,
        };
        rounds.begin();
        rounds
    }

    /// Begins an iteration: nothing is here, nothing computed.
    pub(super) fn begin(&mut self) {
        self.missing.clone_from(&self.need_counts);
        self.arrived = vec![false; self.needed_by.len()];
        self.ready =
            (0..).zip(&self.missing).filter(|(_, missing)| **missing == 0).map(|(unit, _)| unit).collect();
        self.left = u32::try_from(self.missing.len()).expect("fewer units than 2^32");
    }

    /// A source is here. One that comes twice counts once.
    pub(super) fn arrive(&mut self, source: usize) {
        if std::mem::replace(&mut self.arrived[source], true) {
            return;
        }
        for &unit in &self.needed_by[source] {
            let missing = &mut self.missing[unit as usize];
            *missing -= 1;
            if *missing == 0 {
                self.ready.push_back(unit);
            }
        }
    }

    /// A unit that can be computed; each is given once in an iteration.
    pub(super) fn next(&mut self) -> Option<usize> {
        let unit = self.ready.pop_front()?;
        self.left -= 1;
        Some(unit as usize)
    }

    /// The units that have been given in this iteration, ascending.
    pub(super) fn given(&self) -> impl Iterator<Item = usize> {
        let units = (0..).zip(&self.missing);
        units
            .filter(|(unit, missing)| **missing == 0 && !self.ready.contains(unit))
            .map(|(unit, _)| unit as usize)
    }

    /// Whether a unit can be computed now.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether all units have been given.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_unit_is_ready_when_its_last_source_is_here_and_what_is_here_goes_first() {
        let mut rounds = Rounds::new(3, &[vec![0, 1], vec![], vec![2], vec![1]]);
        for _ in 0..2 {
            rounds.begin();
            assert_eq!((rounds.next(), rounds.next()), (Some(1), None));
            rounds.arrive(1);
            rounds.arrive(1);
            assert_eq!((rounds.next(), rounds.next()), (Some(3), None));
            assert!(!rounds.is_over());
            rounds.arrive(0);
            rounds.arrive(2);
            assert!(rounds.is_ready());
            assert_eq!((rounds.next(), rounds.next(), rounds.next()), (Some(0), Some(2), None));
            assert!(rounds.is_over());
        }
    }

    proptest! {
        #[test]
        fn every_unit_comes_once_and_never_before_its_sources(
            units in prop::collection::vec(prop::collection::btree_set(0u32..6, 0..6), 1..20),
            order in Just((0usize..6).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let units: Vec<Vec<u32>> = units.into_iter().map(|needs| needs.into_iter().collect()).collect();
            let mut rounds = Rounds::new(6, &units);
            let (mut here, mut given) = (Vec::new(), Vec::new());
            for source in order {
                rounds.arrive(source);
                here.push(source as u32);
                while let Some(unit) = rounds.next() {
                    prop_assert!(units[unit].iter().all(|need| here.contains(need)));
                    given.push(unit);
                }
            }
            given.sort_unstable();
            prop_assert_eq!(given, (0..units.len()).collect::<Vec<_>>());
            prop_assert!(rounds.is_over());
        }
    }
}
