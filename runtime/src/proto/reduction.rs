//! Bookkeeping of reductions: who has contributed, in whatever order contributions arrive.
//!
//! A place (a PE, then its node, then the nodes above) merges partials of the same reduction until it holds
//! as many elements as live below it, and then passes one partial on. In the ordered kind values are kept
//! apart and only the root combines them, by the element's position, so that the result depends neither on
//! the mix of nodes nor on the order of arrival.
//!
//! A finished reduction is remembered, in a few bytes for each collection, so that a late contribution is
//! refused instead of opening it again.
//!
//! Elements may be destroyed, and inserted again, while reductions are under way: how many take part is then
//! [altered](Reductions::alter) from one reduction on, which may be what one was waiting for.

use super::ProtocolError;
use super::head_count::HeadCount;
use super::number_set::NumberSet;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;

/// Some elements' contributions to one reduction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partial<V> {
    /// Elements contained; at least one.
    pub count: u64,
    /// A number that is equal for contributions that agree on how values combine and on who gets the result. Different
    /// numbers mean that elements contribute to several reductions in different orders.
    pub terms: u64,
    /// Their values.
    pub value: PartialValue<V>,
}

/// Values of a partial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartialValue<V> {
    /// Combined as they came.
    Combined(V),
    /// Kept apart, ascending by position, one for each element.
    Ordered(Vec<(u64, V)>),
}

/// The unfinished reductions of one place, by collection or section and sequence number.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reductions<V> {
    open: FxHashMap<(u64, u32), Open<V>>,
    finished: FxHashMap<u64, NumberSet>,
    /// Where not as many take part as to begin with. Saved apart, since older checkpoints have none.
    #[serde(skip)]
    changes: FxHashMap<u64, HeadCount>,
}

/// What has come of a reduction, and how many elements will contribute.
#[derive(Debug, Serialize, Deserialize)]
struct Open<V> {
    partial: Partial<V>,
    expected: u64,
}

impl<V> Default for Reductions<V> {
    fn default() -> Self {
        Self { open: FxHashMap::default(), finished: FxHashMap::default(), changes: FxHashMap::default() }
    }
}

impl<V> Partial<V> {
    /// The same with each value made into something else.
    ///
    /// # Errors
    /// The first of `make`.
    pub fn try_map<W, E>(&self, make: &mut impl FnMut(&V) -> Result<W, E>) -> Result<Partial<W>, E> {
        let value = match &self.value {
            PartialValue::Combined(value) => PartialValue::Combined(make(value)?),
            PartialValue::Ordered(values) => {
                let made = values.iter().map(|(position, value)| Ok((*position, make(value)?)));
                PartialValue::Ordered(made.collect::<Result<_, E>>()?)
            }
        };
        Ok(Partial { count: self.count, terms: self.terms, value })
    }
}

impl<V> Reductions<V> {
    /// The same with each value made into something else.
    ///
    /// # Errors
    /// The first of `make`.
    pub fn try_map<W, E>(&self, make: &mut impl FnMut(&V) -> Result<W, E>) -> Result<Reductions<W>, E> {
        let open = self.open.iter().map(|(key, Open { partial, expected })| {
            Ok((*key, Open { partial: partial.try_map(make)?, expected: *expected }))
        });
        let (finished, changes) = (self.finished.clone(), self.changes.clone());
        Ok(Reductions { open: open.collect::<Result<_, E>>()?, finished, changes })
    }

    /// Takes a partial of reduction `sequence` of `key`; gives back all of it once as many elements are contained as take
    /// part, of `base` to begin with, and forgets its values. `combine` merges the second value into the first; ordered values
    /// are never combined here.
    ///
    /// # Errors
    /// If more elements contribute than expected, one twice, some ordered and some not, or some after the
    /// end. The reduction cannot be finished then.
    pub fn contribute(
        &mut self,
        key: u64,
        sequence: u32,
        base: u64,
        partial: Partial<V>,
        combine: &mut dyn FnMut(&mut V, V),
    ) -> Result<Option<Partial<V>>, ProtocolError> {
        let wrong = |what: String| wrong(key, sequence, &what);
        check(&partial).map_err(wrong)?;
        let expected = self.changes.get(&key).map_or(base, |changes| changes.of(base, sequence));
        let too_many = |count: u64| wrong(too_many(count, expected));
        let merged = match self.open.entry((key, sequence)) {
            Entry::Vacant(_) if self.finished.get(&key).is_some_and(|f| f.contains(u64::from(sequence))) => {
                return Err(wrong("an element contributed after all had".into()));
            }
            Entry::Vacant(_) if partial.count > expected => return Err(too_many(partial.count)),
            Entry::Vacant(_) if partial.count == expected => partial,
            Entry::Vacant(place) => {
                place.insert(Open { partial, expected });
                return Ok(None);
            }
            Entry::Occupied(mut place) => {
                let held = &mut place.get_mut().partial;
                if held.terms == UNKNOWN_TERMS {
                    held.terms = partial.terms;
                }
                if held.terms != partial.terms {
                    return Err(wrong(
                        "elements contribute values of different types or for different receivers: all must \
                         contribute to the same reductions in the same order"
                            .into(),
                    ));
                }
                let count = held.count.saturating_add(partial.count);
                if count > expected {
                    return Err(too_many(count));
                }
                match (&mut held.value, partial.value) {
                    (PartialValue::Combined(a), PartialValue::Combined(b)) => combine(a, b),
                    (PartialValue::Ordered(a), PartialValue::Ordered(b)) => a.extend(b),
                    _ => return Err(wrong("some contributions are ordered and some are not".into())),
                }
                held.count = count;
                if count < expected {
                    return Ok(None);
                }
                place.remove().partial
            }
        };
        self.finish(key, sequence, merged).map(Some)
    }

    /// All of a reduction is here.
    fn finish(
        &mut self,
        key: u64,
        sequence: u32,
        mut merged: Partial<V>,
    ) -> Result<Partial<V>, ProtocolError> {
        if let PartialValue::Ordered(values) = &mut merged.value {
            // The values came as ascending runs, which this sort finds and merges.
            values.sort_by_key(|(position, _)| *position);
            if let Some(twice) = values.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(wrong(key, sequence, &format!("element {} contributed twice", twice[0].0)));
            }
        }
        self.finished.entry(key).or_default().insert(u64::from(sequence));
        Ok(merged)
    }

    /// So many more elements take part in reductions of `key` from number `from` on, or fewer. Gives back those that had
    /// waited for no others, in order.
    ///
    /// # Errors
    /// If more have contributed to one than take part.
    pub fn alter(&mut self, key: u64, from: u32, by: i64) -> Result<Vec<(u32, Partial<V>)>, ProtocolError> {
        let over = self.finished.get(&key).map_or(0, NumberSet::first_missing);
        self.changes.entry(key).or_default().add(from, by, over);
        let mut full = Vec::new();
        for ((of, sequence), Open { partial, expected }) in &mut self.open {
            if (*of, *sequence >= from) == (key, true) {
                *expected = expected.saturating_add_signed(by);
                if partial.count > *expected {
                    return Err(wrong(key, *sequence, &too_many(partial.count, *expected)));
                }
                if partial.count == *expected {
                    full.push(*sequence);
                }
            }
        }
        full.sort_unstable();
        let close = |sequence| {
            let open = self.open.remove(&(key, sequence))?;
            Some(self.finish(key, sequence, open.partial).map(|partial| (sequence, partial)))
        };
        full.into_iter().filter_map(close).collect()
    }

    /// The first reduction of `key` that has not begun here: nobody has contributed to it or a later one.
    #[must_use]
    pub fn first_not_begun(&self, key: u64) -> u32 {
        let open = self.open.keys().filter(|(of, _)| *of == key).map(|(_, sequence)| u64::from(*sequence));
        let last = open.chain(self.finished.get(&key).and_then(NumberSet::last)).max();
        last.map_or(0, |last| u32::try_from(last.saturating_add(1)).unwrap_or(u32::MAX))
    }

    /// Where not as many take part as to begin with.
    #[must_use]
    pub fn changes(&self) -> &FxHashMap<u64, HeadCount> {
        &self.changes
    }

    /// Takes over where not as many take part as to begin with.
    pub fn set_changes(&mut self, changes: FxHashMap<u64, HeadCount>) {
        self.changes = changes;
    }

    /// Adds the value of one element to a reduction where that is all there is to do: it is under way on the same
    /// `terms`, values combine as they come, and the element is not the last. False where it is not so, with nothing
    /// done: what the contribution means is for [`contribute`](Self::contribute) to say.
    #[inline]
    pub fn join(&mut self, key: u64, sequence: u32, terms: u64, add: impl FnOnce(&mut V)) -> bool {
        let Some(Open { partial, expected }) = self.open.get_mut(&(key, sequence)) else { return false };
        let PartialValue::Combined(value) = &mut partial.value else { return false };
        if partial.terms != terms || partial.count.saturating_add(1) >= *expected {
            return false;
        }
        partial.count += 1;
        add(value);
        true
    }

    /// Whether all reductions of `key` up to that number are finished, in which any take part of `base` to begin with.
    #[must_use]
    pub fn is_next(&mut self, key: u64, base: u64, sequence: u32) -> bool {
        let Some(finished) = self.finished.get_mut(&key) else { return false };
        while !finished.contains_all_to(u64::from(sequence)) {
            let first = u32::try_from(finished.first_missing()).unwrap_or(u32::MAX);
            match self.changes.get(&key).and_then(|changes| changes.nobody_until(base, first)) {
                Some(until) => finished.fill_to(until),
                None => return false,
            }
        }
        true
    }

    /// Takes over what another process held: how it numbered the terms depends on its machine and its libraries.
    pub fn forget_terms(&mut self) {
        self.open.values_mut().for_each(|open| open.partial.terms = UNKNOWN_TERMS);
    }

    /// What unfinished reductions are of, once for each of them.
    pub fn open(&self) -> impl Iterator<Item = u64> {
        self.open.keys().map(|(key, _)| *key)
    }

    /// Count of unfinished reductions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is unfinished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// What it holds, bytes, without what values hold themselves.
    #[cfg(test)]
    pub(super) fn state_bytes(&self) -> usize {
        let open = self.open.capacity() * size_of::<((u64, u32), Partial<V>)>();
        let finished = self.finished.capacity() * size_of::<(u64, NumberSet)>();
        let early = self.finished.values().map(|set| set.out_of_order() * size_of::<u64>()).sum::<usize>();
        size_of::<Self>() + open + finished + early
    }
}

/// The next contribution says on what terms the reduction is.
const UNKNOWN_TERMS: u64 = u64::MAX;

fn wrong(key: u64, sequence: u32, what: &str) -> ProtocolError {
    ProtocolError(format!("in reduction {sequence} of collection {key:x} {what}"))
}

fn too_many(count: u64, expected: u64) -> String {
    format!("{count} elements contributed where {expected} exist")
}

/// What is wrong with a partial by itself.
fn check<V>(partial: &Partial<V>) -> Result<(), String> {
    if partial.count == 0 {
        return Err("a contribution stands for no element".into());
    }
    match &partial.value {
        PartialValue::Ordered(values) if values.len() as u64 != partial.count => {
            Err(format!("{} values stand for {} elements", values.len(), partial.count))
        }
        PartialValue::Ordered(values) => match values.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            Some(pair) if pair[0].0 == pair[1].0 => Err(format!("element {} contributed twice", pair[0].0)),
            Some(pair) => Err(format!("element {} stands behind element {}", pair[1].0, pair[0].0)),
            None => Ok(()),
        },
        PartialValue::Combined(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Lists = Reductions<Vec<u64>>;

    fn join(a: &mut Vec<u64>, b: Vec<u64>) {
        a.extend(b);
    }

    fn one(position: u64, is_ordered: bool) -> Partial<Vec<u64>> {
        let value = vec![position];
        let value = if is_ordered {
            PartialValue::Ordered(vec![(position, value)])
        } else {
            PartialValue::Combined(value)
        };
        Partial { count: 1, terms: 0, value }
    }

    fn ordered(count: u64, positions: &[u64]) -> Partial<Vec<u64>> {
        Partial {
            count,
            terms: 0,
            value: PartialValue::Ordered(positions.iter().map(|&p| (p, vec![])).collect()),
        }
    }

    proptest! {
        /// Any order and any grouping over two levels gives all values, in index order if asked; reductions
        /// of two sequences and two collections are under way at once.
        #[test]
        fn all_arrive_in_any_order(
            order in Just((0u64..120).collect::<Vec<_>>()).prop_shuffle(),
            groups in 1u64..8, is_ordered: bool, joins: bool,
        ) {
            let mut low: Vec<Lists> = (0..groups).map(|_| Reductions::default()).collect();
            let (mut top, mut results) = (Lists::default(), Vec::new());
            for (which, position) in order.into_iter().map(|n| (n / 40, n % 40)) {
                let (key, sequence) = [(9, 3), (9, 4), (8, 3)][usize::try_from(which).unwrap()];
                let group = position % groups;
                let size = (0..40).filter(|p| p % groups == group).count() as u64;
                let place = &mut low[usize::try_from(group).unwrap()];
                if joins && place.join(key, sequence, 0, |values| values.push(position)) {
                    continue;
                }
                let done = place.contribute(key, sequence, size, one(position, is_ordered), &mut join).unwrap();
                if let Some(partial) = done {
                    results.extend(top.contribute(key, sequence, 40, partial, &mut join).unwrap());
                }
            }
            prop_assert!(top.is_empty() && low.iter().all(Reductions::is_empty));
            prop_assert_eq!(results.len(), 3);
            for result in results {
                match result.value {
                    PartialValue::Ordered(values) => {
                        prop_assert!(is_ordered);
                        prop_assert_eq!(values, (0..40).map(|p| (p, vec![p])).collect::<Vec<_>>());
                    }
                    PartialValue::Combined(mut values) => {
                        values.sort_unstable();
                        prop_assert_eq!(values, (0..40).collect::<Vec<_>>());
                    }
                }
            }
        }

        /// Whatever comes, nothing panics, and what completes holds exactly the expected elements.
        #[test]
        fn nonsense_never_completes(
            inputs in prop::collection::vec((0u64..2, 0u32..3, 0u64..5, 0u64..5, 0u64..4, 0..3), 1..300),
        ) {
            let mut place = Lists::default();
            let mut completed = BTreeSet::new();
            for (key, sequence, expected, first, count, kind) in inputs {
                let positions: Vec<u64> = (first..first + count).collect();
                let partial = match kind {
                    0 => ordered(count, &positions),
                    1 => ordered(count + 1, &positions),
                    _ => Partial { count, terms: 0, value: PartialValue::Combined(vec![]) },
                };
                if let Ok(Some(whole)) = place.contribute(key, sequence, expected, partial, &mut join) {
                    prop_assert_eq!(whole.count, expected);
                    prop_assert!(completed.insert((key, sequence)), "completed twice");
                    if let PartialValue::Ordered(values) = whole.value {
                        prop_assert!(values.is_sorted_by(|a, b| a.0 < b.0));
                        prop_assert_eq!(values.len() as u64, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn nonsense_is_named() {
        let mut place = Lists::default();
        let mut refused = |sequence, expected, partial| {
            place.contribute(1, sequence, expected, partial, &mut join).unwrap_err().0
        };
        assert!(refused(3, 3, ordered(2, &[0])).contains("1 values stand for 2 elements"));
        assert!(refused(4, 3, ordered(0, &[])).contains("no element"));
        assert!(refused(5, 3, ordered(2, &[7, 6])).contains("element 6 stands behind element 7"));
        let many = Partial { count: 4, terms: 0, value: PartialValue::Combined(vec![]) };
        assert_eq!(
            refused(2, 3, many),
            "in reduction 2 of collection 1 4 elements contributed where 3 exist"
        );
        place.contribute(1, 0, 2, one(5, true), &mut join).unwrap();
        let twice = place.contribute(1, 0, 2, one(5, true), &mut join).unwrap_err();
        assert!(twice.0.contains("element 5 contributed twice"), "{twice}");
        place.contribute(1, 1, 3, one(5, true), &mut join).unwrap();
        assert!(place.contribute(1, 1, 3, one(6, false), &mut join).unwrap_err().0.contains("ordered"));
        let other = Partial { terms: 1, ..one(6, true) };
        assert!(place.contribute(1, 1, 3, other, &mut join).unwrap_err().0.contains("different types"));
    }

    #[test]
    fn the_first_contribution_after_a_restart_says_on_what_terms_a_reduction_is() {
        let mut place = Lists::default();
        place.contribute(1, 0, 4, one(0, false), &mut join).unwrap();
        place.forget_terms();
        assert!(!place.join(1, 0, 5, |_| unreachable!()), "nobody has said them yet");
        let on = |element, terms| Partial { terms, ..one(element, false) };
        assert_eq!(place.contribute(1, 0, 4, on(1, 5), &mut join), Ok(None));
        assert!(place.join(1, 0, 5, |all| all.push(2)));
        assert!(place.contribute(1, 0, 4, on(3, 6), &mut join).unwrap_err().0.contains("different types"));
        let whole = place.contribute(1, 0, 4, on(3, 5), &mut join).unwrap().unwrap();
        assert_eq!((whole.count, whole.value), (4, PartialValue::Combined(vec![0, 1, 2, 3])));
    }

    #[test]
    fn only_what_goes_without_saying_joins() {
        let mut place = Lists::default();
        let joins = |place: &mut Lists, sequence, terms| place.join(1, sequence, terms, |all| all.push(9));
        assert!(!joins(&mut place, 0, 0), "the first opens the reduction");
        place.contribute(1, 0, 3, one(0, false), &mut join).unwrap();
        place.contribute(1, 1, 3, one(0, true), &mut join).unwrap();
        assert!(!joins(&mut place, 0, 1), "it is another reduction that the element means");
        assert!(!joins(&mut place, 1, 0), "ordered values need a position");
        assert!(joins(&mut place, 0, 0));
        assert!(!joins(&mut place, 0, 0), "the last one ends it");
        let whole = place.contribute(1, 0, 3, one(2, false), &mut join).unwrap().unwrap();
        assert_eq!((whole.count, whole.value), (3, PartialValue::Combined(vec![0, 9, 2])));
    }

    #[test]
    fn late_contribution_is_refused_and_opens_nothing() {
        let mut place = Lists::default();
        for sequence in [0, 2, 1] {
            assert!(place.contribute(1, sequence, 1, one(0, false), &mut join).unwrap().is_some());
        }
        for sequence in 0..3 {
            let late = place.contribute(1, sequence, 1, one(0, false), &mut join).unwrap_err();
            assert!(late.0.contains("after all had"), "{late}");
        }
        assert!(place.is_empty());
        assert!(place.contribute(1, u32::MAX, 1, one(0, false), &mut join).unwrap().is_some());
    }

    #[test]
    fn reductions_of_different_sequence_do_not_mix() {
        let mut place = Lists::default();
        assert!(place.contribute(1, 0, 2, one(0, false), &mut join).unwrap().is_none());
        assert!(place.contribute(1, 1, 2, one(0, false), &mut join).unwrap().is_none());
        assert!(place.contribute(2, 0, 2, one(0, false), &mut join).unwrap().is_none());
        assert_eq!(place.len(), 3);
        assert_eq!(place.contribute(1, 0, 2, one(1, false), &mut join).unwrap().unwrap().count, 2);
    }
}
