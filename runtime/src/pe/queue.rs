//! The order in which a PE takes its messages: by priority, and first come first served among equals.

use crate::envelope::Envelope;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A PE's own queue. Ordinary messages (priority 0) never touch the heap.
#[derive(Debug, Default)]
pub struct Queue {
    ordinary: VecDeque<Envelope>,
    others: BinaryHeap<Ranked>,
    arrivals: u64,
}

#[derive(Debug)]
struct Ranked {
    arrival: u64,
    envelope: Envelope,
}

impl Queue {
    /// Puts an envelope behind all of the same priority.
    pub fn push(&mut self, envelope: Envelope) {
        if envelope.priority == 0 {
            self.ordinary.push_back(envelope);
        } else {
            self.arrivals += 1;
            self.others.push(Ranked { arrival: self.arrivals, envelope });
        }
    }

    /// Takes the most urgent envelope.
    pub fn pop(&mut self) -> Option<Envelope> {
        let is_urgent = self.others.peek().is_some_and(|top| top.envelope.priority < 0);
        if !is_urgent && let Some(envelope) = self.ordinary.pop_front() {
            return Some(envelope);
        }
        self.others.pop().map(|ranked| ranked.envelope)
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
    fn key(&self) -> (i32, u64) {
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

    proptest! {
        #[test]
        fn order_is_priority_then_arrival(priorities in prop::collection::vec(-2i32..3, 0..100)) {
            let mut queue = Queue::default();
            for (slot, &priority) in priorities.iter().enumerate() {
                let payload = Payload::Packed(Packed::default());
                queue.push(Envelope::new(Target::Slot(slot as u64), priority, payload));
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
