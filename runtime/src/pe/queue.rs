//! The order in which a PE takes its messages: by priority, and first come first served among equals.

use crate::envelope::{CollectionId, ElementIndex, Envelope, Payload, Target};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A PE's own queue. Ordinary messages (priority 0) never touch the heap.
#[derive(Debug, Default)]
pub struct Queue {
    ordinary: VecDeque<Envelope>,
    others: BinaryHeap<Ranked>,
    /// Numbers of the latest put behind all, and of the latest put in front of all.
    last: i64,
    first: i64,
}

#[derive(Debug)]
struct Ranked {
    arrival: i64,
    envelope: Envelope,
}

impl Queue {
    /// Puts an envelope behind all of the same priority.
    pub fn push(&mut self, envelope: Envelope) {
        if envelope.priority == 0 {
            self.ordinary.push_back(envelope);
        } else {
            self.last += 1;
            self.others.push(Ranked { arrival: self.last, envelope });
        }
    }

    /// Puts an ordinary message for an element behind all others. Written where it will stay: to copy what has just
    /// been written in pieces makes the processor wait, longer than all the rest takes.
    #[inline]
    pub fn push_ordinary(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        entry: u16,
        payload: Payload,
    ) {
        let target = Target::Element { collection, index, entry };
        self.ordinary.push_back(Envelope { target, priority: 0, payload, backlog_bytes: 0 });
    }

    /// Puts envelopes, in their order, before all of the same priority: they were here once, had to wait for
    /// something, and must not be overtaken by what came later.
    pub fn push_front(&mut self, envelopes: Vec<Envelope>) {
        for envelope in envelopes.into_iter().rev() {
            if envelope.priority == 0 {
                self.ordinary.push_front(envelope);
            } else {
                self.first -= 1;
                self.others.push(Ranked { arrival: self.first, envelope });
            }
        }
    }

    /// Takes the most urgent envelope.
    pub fn pop(&mut self) -> Option<Envelope> {
        self.pop_ordinary().or_else(|| self.others.pop().map(|ranked| ranked.envelope))
    }

    /// Takes the most urgent envelope if it is an ordinary one.
    #[inline]
    pub fn pop_ordinary(&mut self) -> Option<Envelope> {
        let is_urgent = self.others.peek().is_some_and(|top| top.envelope.priority < 0);
        if is_urgent { None } else { self.ordinary.pop_front() }
    }

    /// Count of waiting envelopes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ordinary.len() + self.others.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ordinary.is_empty() && self.others.is_empty()
    }
}

impl Ranked {
    fn key(&self) -> (i32, i64) {
        (self.envelope.priority, self.arrival)
    }
}

// The heap yields its greatest, so the most urgent and then the earliest must compare greatest.
impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Ranked {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Packed, Payload, Target};
    use proptest::prelude::*;

    fn envelope(slot: u64, priority: i32) -> Envelope {
        Envelope::new(Target::Slot(slot), priority, Payload::packed(Packed::default()))
    }

    #[test]
    fn what_had_to_wait_comes_before_its_equals_in_its_order() {
        let mut queue = Queue::default();
        (0..4).for_each(|slot| queue.push(envelope(slot, if slot < 2 { 0 } else { 5 })));
        queue.push_front(vec![envelope(10, 0), envelope(11, 5), envelope(12, 0), envelope(13, 5)]);
        queue.push_front(vec![envelope(20, 5)]);
        let order: Vec<Target> = std::iter::from_fn(|| queue.pop()).map(|e| e.target).collect();
        assert_eq!(order, [10, 12, 0, 1, 20, 11, 13, 2, 3].map(Target::Slot));
    }

    proptest! {
        #[test]
        fn order_is_priority_then_arrival(priorities in prop::collection::vec(-2i32..3, 0..100)) {
            let mut queue = Queue::default();
            for (slot, &priority) in priorities.iter().enumerate() {
                queue.push(envelope(slot as u64, priority));
            }
            let mut expected: Vec<(i32, u64)> =
                priorities.iter().enumerate().map(|(slot, &p)| (p, slot as u64)).collect();
            expected.sort();
            for (priority, slot) in expected {
                let next = queue.pop().unwrap();
                prop_assert_eq!((next.priority, next.target), (priority, Target::Slot(slot)));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
