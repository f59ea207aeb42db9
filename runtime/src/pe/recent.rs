//! A table by collection in which what was looked up last is found at once: messages come in runs for the same one.

use crate::envelope::CollectionId;
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Values that are never removed.
#[derive(Debug)]
pub(crate) struct Recent<V> {
    entries: Vec<(CollectionId, V)>,
    places: FxHashMap<CollectionId, usize>,
    last: Cell<usize>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: FxHashMap::default(), last: Cell::new(0) }
    }
}

impl<V> Recent<V> {
    #[inline]
    pub(crate) fn get(&self, id: CollectionId) -> Option<&V> {
        self.place(id).map(|place| &self.entries[place].1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: CollectionId) -> Option<&mut V> {
        self.place(id).map(|place| &mut self.entries[place].1)
    }

    /// Adds a value, or puts it in the place of the one with that id.
    pub(crate) fn insert(&mut self, id: CollectionId, value: V) -> &mut V {
        let place = self.place(id).unwrap_or(self.entries.len());
        if place == self.entries.len() {
            self.places.insert(id, place);
            self.entries.push((id, value));
        } else {
            self.entries[place].1 = value;
        }
        &mut self.entries[place].1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CollectionId, &V)> {
        self.entries.iter().map(|(id, value)| (*id, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (CollectionId, &mut V)> {
        self.entries.iter_mut().map(|(id, value)| (*id, value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    #[inline]
    fn place(&self, id: CollectionId) -> Option<usize> {
        let last = self.last.get();
        if self.entries.get(last).is_some_and(|(found, _)| *found == id) {
            return Some(last);
        }
        let place = *self.places.get(&id)?;
        self.last.set(place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finds_its_own_in_whatever_order_they_are_asked_for() {
        let mut recent = Recent::default();
        for n in [5, 1, 9, 7] {
            assert_eq!(*recent.insert(CollectionId(n), n * 10), n * 10);
        }
        for n in [1, 1, 5, 9, 2, 9, 7, 7, 5] {
            assert_eq!(recent.get(CollectionId(n)).copied(), (n != 2).then_some(n * 10));
        }
        *recent.get_mut(CollectionId(9)).unwrap() += 1;
        recent.insert(CollectionId(1), 3);
        assert_eq!(recent.values().copied().collect::<Vec<_>>(), [50, 3, 91, 70]);
    }
}
