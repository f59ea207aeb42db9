//! Bookkeeping of reductions: who has contributed, in whatever order contributions arrive.
//!
//! A place (a PE, then its node, then the nodes above) merges partials of the same reduction until it holds
//! as many elements as live below it, and then passes one partial on. In the ordered kind values are kept
//! apart, sorted by the element's position, and only the root combines them, in that order.

use super::ProtocolError;
use rustc_hash::FxHashMap;

/// Some elements' contributions to one reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial<V> {
    /// Elements contained.
    pub count: u64,
    /// Their values.
    pub value: PartialValue<V>,
}

/// Values of a partial.
#[derive(Clone, Debug, PartialEq)]
pub enum PartialValue<V> {
    /// Combined as they came.
    Combined(V),
    /// Kept apart, ascending by position.
    Ordered(Vec<(u64, V)>),
}

/// The unfinished reductions of one place, by collection or section and sequence number.
#[derive(Debug)]
pub struct Reductions<V> {
    open: FxHashMap<(u64, u32), Partial<V>>,
}

impl<V> Default for Reductions<V> {
    fn default() -> Self {
        Self { open: FxHashMap::default() }
    }
}

impl<V> Reductions<V> {
    /// Takes a partial of reduction `sequence` of `key`; gives back all of it once `expected` elements are
    /// contained, and forgets it.
    ///
    /// # Errors
    /// If more elements contribute than expected, one twice, or some ordered and some not.
    pub fn contribute(
        &mut self,
        key: u64,
        sequence: u32,
        expected: u64,
        partial: Partial<V>,
        combine: &mut dyn FnMut(&mut V, V),
    ) -> Result<Option<Partial<V>>, ProtocolError> {
        let wrong = |what: String| {
            Err(ProtocolError(format!("in reduction {sequence} of collection {key:x} {what}")))
        };
        let merged = match self.open.remove(&(key, sequence)) {
            None => partial,
            Some(held) => {
                let count = held.count.saturating_add(partial.count);
                let value = match (held.value, partial.value) {
                    (PartialValue::Combined(mut a), PartialValue::Combined(b)) => {
                        combine(&mut a, b);
                        PartialValue::Combined(a)
                    }
                    (PartialValue::Ordered(a), PartialValue::Ordered(b)) => match merge(a, b) {
                        Ok(all) => PartialValue::Ordered(all),
                        Err(twice) => return wrong(format!("element {twice} contributed twice")),
                    },
                    _ => return wrong("some contributions are ordered and some are not".into()),
                };
                Partial { count, value }
            }
        };
        if let PartialValue::Ordered(values) = &merged.value
            && values.len() as u64 != merged.count
        {
            return wrong(format!("{} values stand for {} elements", values.len(), merged.count));
        }
        if merged.count > expected {
            return wrong(format!("{} elements contributed where {expected} exist", merged.count));
        }
        if merged.count == expected {
            return Ok(Some(merged));
        }
        self.open.insert((key, sequence), merged);
        Ok(None)
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
}

/// Merges two ascending lists; the position that stands in both, if one does.
fn merge<V>(a: Vec<(u64, V)>, b: Vec<(u64, V)>) -> Result<Vec<(u64, V)>, u64> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let from_a = match (a.peek(), b.peek()) {
            (Some((x, _)), Some((y, _))) if x == y => return Err(*x),
            (Some((x, _)), Some((y, _))) => x < y,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return Ok(all),
        };
        all.extend(if from_a { a.next() } else { b.next() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(position: u64, is_ordered: bool) -> Partial<Vec<u64>> {
        let value = vec![position];
        let value = if is_ordered {
            PartialValue::Ordered(vec![(position, value)])
        } else {
            PartialValue::Combined(value)
        };
        Partial { count: 1, value }
    }

    proptest! {
        /// Any order and any grouping over two levels gives all values, in index order if asked.
        #[test]
        fn all_arrive_in_any_order(
            order in Just((0u64..40).collect::<Vec<_>>()).prop_shuffle(),
            groups in 1u64..8, is_ordered: bool,
        ) {
            let mut combine = |a: &mut Vec<u64>, b: Vec<u64>| a.extend(b);
            let mut low: Vec<Reductions<Vec<u64>>> = (0..groups).map(|_| Reductions::default()).collect();
            let (mut top, mut result) = (Reductions::default(), None);
            for position in order {
                let group = position % groups;
                let size = (0..40).filter(|p| p % groups == group).count() as u64;
                let place = &mut low[usize::try_from(group).unwrap()];
                let done = place.contribute(9, 3, size, one(position, is_ordered), &mut combine).unwrap();
                if let Some(partial) = done {
                    result = top.contribute(9, 3, 40, partial, &mut combine).unwrap();
                }
            }
            prop_assert!(top.is_empty() && low.iter().all(Reductions::is_empty));
            match result.unwrap().value {
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

    #[test]
    fn nonsense_is_named() {
        let mut combine = |a: &mut Vec<u64>, b: Vec<u64>| a.extend(b);
        let mut place = Reductions::default();
        place.contribute(1, 0, 3, one(5, true), &mut combine).unwrap();
        let twice = place.contribute(1, 0, 3, one(5, true), &mut combine).unwrap_err();
        assert!(twice.0.contains("element 5 contributed twice"), "{twice}");
        place.contribute(1, 1, 3, one(5, true), &mut combine).unwrap();
        assert!(place.contribute(1, 1, 3, one(6, false), &mut combine).is_err());
        let many = Partial { count: 4, value: PartialValue::Combined(vec![]) };
        assert!(place.contribute(1, 2, 3, many, &mut combine).is_err());
        let liar = Partial { count: 2, value: PartialValue::Ordered(vec![(0, vec![])]) };
        assert!(place.contribute(1, 3, 3, liar, &mut combine).is_err());
    }

    #[test]
    fn reductions_of_different_sequence_do_not_mix() {
        let mut combine = |a: &mut Vec<u64>, b: Vec<u64>| a.extend(b);
        let mut place = Reductions::default();
        assert!(place.contribute(1, 0, 2, one(0, false), &mut combine).unwrap().is_none());
        assert!(place.contribute(1, 1, 2, one(0, false), &mut combine).unwrap().is_none());
        assert!(place.contribute(2, 0, 2, one(0, false), &mut combine).unwrap().is_none());
        assert_eq!(place.len(), 3);
        assert_eq!(place.contribute(1, 0, 2, one(1, false), &mut combine).unwrap().unwrap().count, 2);
    }
}
