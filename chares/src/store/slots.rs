//! Places for the elements of a collection on one PE.

/// Numbered places, some of which are empty. What is in one stays where it is in memory while more are added: of a million single
/// chares nobody copies those that are there as their number grows.
pub(super) struct Slots<T> {
    /// The first `room` places.
    first: Vec<Option<T>>,
    room: usize,
    /// The others; all stretches but the last have all of their places.
    rest: Vec<Vec<Option<T>>>,
}

impl<T> Slots<T> {
    /// Few elements shall not take a whole stretch.
    const ROOM_LEAST: usize = 64;
    /// Places of a stretch: about 128 KiB.
    const STRETCH: usize = {
        let places = (128 << 10) / (size_of::<Option<T>>() + 1);
        if places < 16 { 16 } else { 1 << places.ilog2() }
    };

    /// None yet, with room for so many beside each other.
    pub(super) fn with_room(places: usize) -> Self {
        Self { first: Vec::with_capacity(places), room: places.max(Self::ROOM_LEAST), rest: Vec::new() }
    }

    /// How many places there are, empty ones included.
    pub(super) fn len(&self) -> usize {
        match self.rest.split_last() {
            None => self.first.len(),
            Some((last, full)) => self.room + full.len() * Self::STRETCH + last.len(),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, place: usize) -> Option<&T> {
        if let Some(slot) = self.first.get(place) {
            return slot.as_ref();
        }
        self.behind(place)?.as_ref()
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.slot(place)?.as_mut()
    }

    /// Empties a place.
    pub(super) fn take(&mut self, place: usize) -> Option<T> {
        self.slot(place)?.take()
    }

    /// Fills a place. Those before it are there from then on, too.
    #[inline(always)]
    pub(super) fn put(&mut self, place: usize, value: T) {
        while self.len() < place {
            self.push(None);
        }
        if place == self.len() {
            self.push(Some(value));
        } else if let Some(slot) = self.slot(place) {
            *slot = Some(value);
        }
    }

    /// What is there, in order of the places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flatten()).flatten()
    }

    /// What is there with its place, in their order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let (first, rest, room) = (self.first.iter_mut(), self.rest.iter_mut().flatten(), self.room);
        let all = first.enumerate().chain(rest.enumerate().map(move |(at, slot)| (room + at, slot)));
        all.filter_map(|(place, slot)| Some((place, slot.as_mut()?)))
    }

    #[inline(always)]
    fn slot(&mut self, place: usize) -> Option<&mut Option<T>> {
        if place < self.first.len() {
            return self.first.get_mut(place);
        }
        self.behind_mut(place)
    }

    /// A slot that is not among the first. Outside the ways to those, which are short and taken by most messages.
    #[inline(never)]
    fn behind(&self, place: usize) -> Option<&Option<T>> {
        let place = place.checked_sub(self.room)?;
        self.rest.get(place / Self::STRETCH)?.get(place % Self::STRETCH)
    }

    #[inline(never)]
    fn behind_mut(&mut self, place: usize) -> Option<&mut Option<T>> {
        let place = place.checked_sub(self.room)?;
        self.rest.get_mut(place / Self::STRETCH)?.get_mut(place % Self::STRETCH)
    }

    #[inline(always)]
    fn push(&mut self, slot: Option<T>) {
        if self.first.len() < self.room {
            return self.first.push(slot);
        }
        match self.rest.last_mut().filter(|last| last.len() < Self::STRETCH) {
            Some(last) => last.push(slot),
            None => {
                let mut last = Vec::with_capacity(Self::STRETCH);
                last.push(slot);
                self.rest.push(last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_there_stays_where_it_is_in_memory() {
        let mut slots = Slots::with_room(3);
        (0..100).for_each(|place| slots.put(place, [place; 50]));
        let at = |slots: &Slots<_>, place| slots.get(place).map(std::ptr::from_ref);
        let before = at(&slots, 80);
        (100..100_000).for_each(|place| slots.put(place, [place; 50]));
        assert!(before.is_some() && at(&slots, 80) == before);
    }

    proptest! {
        /// As a map has them, however they come and go and wherever stretches begin.
        #[test]
        fn places_are_those_of_a_map(room in 0usize..200, moves in prop::collection::vec((0usize..40_000, any::<bool>()), 1..40)) {
            let (mut slots, mut known, mut len) = (Slots::with_room(room), BTreeMap::new(), 0);
            for (at, (place, is_put)) in moves.into_iter().enumerate() {
                if is_put {
                    slots.put(place, at);
                    known.insert(place, at);
                    len = len.max(place + 1);
                } else {
                    prop_assert_eq!(slots.take(place), known.remove(&place));
                }
                prop_assert_eq!(slots.len(), len);
                prop_assert_eq!(slots.get(place), known.get(&place));
                prop_assert_eq!(slots.get_mut(place), known.get_mut(&place));
            }
            prop_assert!(slots.iter().eq(known.values()));
            prop_assert!(slots.iter_mut().map(|(place, at)| (place, *at)).eq(known));
        }
    }
}
