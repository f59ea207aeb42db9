//! Who talks to whom in a run, as PEs have told it.

use crate::ids::ElementId;
use crate::loads::{Amount, Traffic};
use crate::pe::traffic::RECEIVERS_MAX;
use loadbalance::balance::Edge;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Of each pair of chares what they sent each other in the span of the loads, both ways together.
#[derive(Debug, Default)]
pub(super) struct Graph {
    of: FxHashMap<(ElementId, ElementId), (f64, f64)>,
    /// What has been told since the span was last gone on with.
    told: FxHashMap<(ElementId, ElementId), Amount>,
}

/// A pair that sent each other fewer messages in the span does not talk any more.
const MESSAGES_MIN: f64 = 0.05;

impl Graph {
    pub(super) fn take(&mut self, traffic: Vec<Traffic>) {
        for Traffic { from, to, amount } in traffic {
            if from != to {
                *self.told.entry((from.min(to), from.max(to))).or_default() += amount;
            }
        }
    }

    /// The span goes on: of what was in it this part stays. Chares that nobody knows have ended, or cannot move.
    pub(super) fn add(&mut self, kept: f64, is_known: impl Fn(&ElementId) -> bool) {
        for (messages, bytes) in self.of.values_mut() {
            (*messages, *bytes) = (*messages * kept, *bytes * kept);
        }
        for (pair, amount) in self.told.drain() {
            let (messages, bytes) = self.of.entry(pair).or_default();
            (*messages, *bytes) = (*messages + amount.messages as f64, *bytes + amount.bytes as f64);
        }
        self.of.retain(|(one, other), (messages, _)| {
            *messages >= MESSAGES_MIN && is_known(one) && is_known(other)
        });
        self.keep_most();
    }

    /// Forgets pairs that are, for both, not among those that say most to each other.
    fn keep_most(&mut self) {
        let mut count_of: FxHashMap<ElementId, usize> = FxHashMap::default();
        for (one, other) in self.of.keys() {
            [one, other].into_iter().for_each(|end| *count_of.entry(*end).or_default() += 1);
        }
        if count_of.values().all(|count| *count <= RECEIVERS_MAX) {
            return;
        }
        let mut all: Vec<_> = self.of.drain().collect();
        all.sort_unstable_by_key(|(pair, (messages, _))| (Reverse(messages.to_bits()), *pair));
        count_of.clear();
        all.retain(|((one, other), _)| {
            let counts = [one, other].map(|end| {
                let count = count_of.entry(*end).or_default();
                *count += 1;
                *count
            });
            counts.into_iter().any(|count| count <= RECEIVERS_MAX)
        });
        self.of.extend(all);
    }

    /// All pairs, in order, with what they sent each other.
    pub(super) fn pairs(&self) -> Vec<(ElementId, ElementId, Amount)> {
        let whole = |part: f64| part.round() as u64;
        let pair = |(&(one, other), &(messages, bytes)): (&(ElementId, ElementId), &(f64, f64))| {
            (one, other, Amount { messages: whole(messages).max(1), bytes: whole(bytes) })
        };
        let mut all: Vec<_> = self.of.iter().map(pair).collect();
        all.sort_unstable_by_key(|(one, other, _)| (*one, *other));
        all
    }
}

/// Pairs as a balancer sees them: by the numbers of the chares that have one.
pub(super) fn edges(
    pairs: &[(ElementId, ElementId, Amount)],
    number: impl Fn(&ElementId) -> Option<u32>,
) -> Vec<Edge> {
    let edge = |(one, other, amount): &(ElementId, ElementId, Amount)| {
        let (one, other) = (number(one)?, number(other)?);
        Some(Edge { one, other, bytes: amount.bytes, messages: amount.messages })
    };
    pairs.iter().filter_map(edge).collect()
}

/// Where elements of arrays lie in space: where their index says, in an array that is as long as 1 on its longest side, so
/// that arrays of one shape lie in each other. Single chares lie in a row.
pub(super) fn places(elements: &[ElementId]) -> Vec<[f64; 3]> {
    let mut sides: FxHashMap<_, u32> = FxHashMap::default();
    for element in elements {
        let longest = sides.entry(element.collection).or_default();
        *longest = element.index.0.iter().fold(*longest, |longest, at| longest.max(*at));
    }
    let place = |(number, element): (usize, &ElementId)| {
        if element.collection.as_singles().is_some() {
            return [number as f64 / elements.len() as f64, 0.0, 0.0];
        }
        let side = sides.get(&element.collection).map_or(1.0, |longest| f64::from(*longest) + 1.0);
        element.index.0.map(|at| f64::from(at) / side)
    };
    elements.iter().enumerate().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex, PeId};

    fn element(at: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), 1), index: ElementIndex([at, 0, 0]) }
    }

    fn traffic(from: u32, to: u32, messages: u64) -> Traffic {
        let amount = Amount { messages, bytes: 10 * messages };
        Traffic { from: element(from), to: element(to), amount }
    }

    #[test]
    fn both_directions_are_one_pair_and_old_words_fade() {
        let mut graph = Graph::default();
        graph.take(vec![traffic(0, 1, 4), traffic(1, 0, 2), traffic(2, 2, 9), traffic(1, 7, 3)]);
        graph.add(0.5, |one| *one != element(7));
        let amount = |messages| Amount { messages, bytes: 10 * messages };
        assert_eq!(graph.pairs(), [(element(0), element(1), amount(6))]);
        graph.take(vec![traffic(0, 1, 1)]);
        graph.add(0.5, |_| true);
        assert_eq!(graph.pairs(), [(element(0), element(1), amount(4))]);
        let edge = Edge { one: 5, other: 6, bytes: 40, messages: 4 };
        assert_eq!(edges(&graph.pairs(), |one| Some(one.index.0[0] + 5)), [edge]);
        (0..10).for_each(|_| graph.add(0.5, |_| true));
        assert!(graph.pairs().is_empty());
    }

    #[test]
    fn of_a_chare_that_talks_to_all_those_pairs_are_known_that_say_most() {
        let mut graph = Graph::default();
        let count = 4 * RECEIVERS_MAX as u32;
        // All talk to the first, and each to the next.
        graph.take((1..count).map(|at| traffic(at, 0, u64::from(at))).collect());
        graph.take((1..count - 1).map(|at| traffic(at, at + 1, 1000)).collect());
        graph.add(1.0, |_| true);
        // For each of the others the first is one of few.
        assert_eq!(graph.pairs().len() as u32, 2 * count - 3);
        graph.take((1..count).flat_map(|at| (at + 1..count).map(move |to| traffic(at, to, 2000))).collect());
        graph.add(1.0, |_| true);
        assert!(graph.pairs().len() <= count as usize * RECEIVERS_MAX);
    }

    #[test]
    fn elements_lie_where_their_index_says() {
        let array = |serial, index| ElementId {
            collection: CollectionId::made_by(PeId(0), serial),
            index: ElementIndex(index),
        };
        let elements = [array(1, [0, 0, 0]), array(1, [1, 3, 0]), array(2, [4, 7, 0]), array(2, [3, 0, 0])];
        let places = places(&elements);
        assert_eq!(places, [[0.0; 3], [0.25, 0.75, 0.0], [0.5, 0.875, 0.0], [0.375, 0.0, 0.0]]);
    }
}
