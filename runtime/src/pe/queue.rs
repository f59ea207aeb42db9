//! The order in which a PE takes its messages: by priority, and among equals as the program says.

use super::ring::{Moved, Ring};
use crate::envelope::{
    CollectionId, ElementId, ElementIndex, Envelope, MembersHere, Payload, Target, ToPe, Value,
};
use crate::ids::PeId;
use crate::priority::Priority;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Which of the messages of the same priority that wait on a PE is the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOrder {
    /// The one that came first.
    #[default]
    Fifo,
    /// The one that came last.
    Lifo,
}

/// A PE's own queue. Ordinary messages never touch the heap.
#[derive(Debug, Default)]
pub struct Queue {
    order: QueueOrder,
    /// Ordinary values for elements, and a mark for each other ordinary thing.
    ordinary: Ring,
    /// The envelopes that the marks stand for, in the same order.
    marked: VecDeque<Envelope>,
    others: BinaryHeap<Ranked>,
    /// Sequence numbers of the latest envelope put behind all others, and of the latest put before all others.
    last: i64,
    first: i64,
    #[cfg(test)]
    extractions: u64,
}

#[derive(Debug)]
struct Ranked {
    arrival: i64,
    envelope: Envelope,
}

impl Queue {
    /// With that order among equals.
    #[must_use]
    pub fn new(order: QueueOrder) -> Self {
        Self { order, ..Self::default() }
    }

    /// Puts an envelope behind all of the same priority, or before them if the last comes first.
    pub fn push(&mut self, envelope: Envelope) {
        // What the runtime itself says is said in order, whatever the program's messages do.
        let is_in_order = matches!(envelope.target, Target::Message(ToPe::Moving(_)) | Target::Order(_));
        if self.order == QueueOrder::Lifo && !is_in_order {
            return self.push_before(envelope);
        }
        match envelope {
            Envelope {
                target: Target::Message(ToPe::Element { collection, index, entry, number: 0, .. }),
                payload: Payload::Value(message),
                priority,
                backlog_bytes: 0,
            } if priority.is_ordinary() => self.ordinary.push_back(collection, index, entry, message),
            envelope if envelope.priority.is_ordinary() => {
                self.ordinary.mark_back();
                self.marked.push_back(envelope);
            }
            envelope => {
                self.last += 1;
                self.others.push(Ranked { arrival: self.last, envelope });
            }
        }
    }

    /// Puts an ordinary value for an element of this PE behind all others.
    #[inline(always)]
    pub(super) fn push_moved(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        entry: u16,
        message: Value,
    ) {
        self.ordinary.push_back(collection, index, entry, message);
    }

    /// Puts envelopes, in their order, before all of the same priority: they were here once, had to wait for
    /// something, and must not be overtaken by what came later.
    pub fn push_front(&mut self, envelopes: Vec<Envelope>) {
        envelopes.into_iter().rev().for_each(|envelope| self.push_before(envelope));
    }

    fn push_before(&mut self, envelope: Envelope) {
        if envelope.priority.is_ordinary() {
            self.ordinary.mark_front();
            self.marked.push_front(envelope);
        } else {
            self.first -= 1;
            self.others.push(Ranked { arrival: self.first, envelope });
        }
    }

    /// Takes what is most urgent if it is an ordinary value for an element, as nearly everything is.
    #[inline]
    pub(super) fn pop_moved(&mut self) -> Option<Moved> {
        if self.has_urgent() { None } else { self.ordinary.pop() }
    }

    /// Takes the most urgent envelope.
    pub fn pop(&mut self) -> Option<Envelope> {
        if let Some(Moved { collection, index, entry, message }) = self.pop_moved() {
            let target = ToPe::Element { collection, index, entry, from: PeId::DRIVER, number: 0 };
            return Some(Envelope::new(target, 0, Payload::Value(message)));
        }
        if !self.has_urgent() && self.ordinary.pop_mark() {
            return self.marked.pop_front();
        }
        self.others.pop().map(|ranked| ranked.envelope)
    }

    /// Takes out all that waits, in the order in which it would have had its turn.
    pub fn take_all(&mut self) -> Vec<Envelope> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Puts back what was [taken out](Self::take_all), before anything else is put in.
    pub fn put_back(&mut self, all: Vec<Envelope>) {
        match self.order {
            QueueOrder::Fifo => all.into_iter().for_each(|envelope| self.push(envelope)),
            QueueOrder::Lifo => self.push_front(all),
        }
    }

    /// The elements that messages wait for, each as often as there are such messages, in the order in which they would have
    /// their turn. It takes as long as to take all that waits.
    pub(super) fn receivers(&mut self) -> Vec<ElementId> {
        let all = self.take_all();
        let receivers = all.iter().filter_map(|envelope| match envelope.target {
            Target::Message(ToPe::Element { collection, index, .. }) => Some(ElementId { collection, index }),
            _ => None,
        });
        let receivers = receivers.collect();
        self.put_back(all);
        receivers
    }

    /// Takes out all messages for some elements, each one's in the order in which they would have had their turn. It takes
    /// as long as to take all that waits, for however many elements. Of a message to a section each element gets its own;
    /// how many such were made is said too.
    pub fn extract(&mut self, elements: &FxHashSet<ElementId>) -> (FxHashMap<ElementId, Vec<Envelope>>, u64) {
        let receiver = |envelope: &Envelope| match envelope.target {
            Target::Message(ToPe::Element { collection, index, .. })
            | Target::Depart { collection, index, .. }
            | Target::Copy { collection, index, .. } => Some(ElementId { collection, index }),
            _ => None,
        };
        let (mut taken, mut made): (FxHashMap<_, Vec<_>>, _) = (FxHashMap::default(), 0);
        let mut kept = Vec::with_capacity(self.len());
        while let Some(mut envelope) = self.pop() {
            for (element, own) in own_of_members(&mut envelope, elements) {
                taken.entry(element).or_default().push(own);
                made += 1;
            }
            match receiver(&envelope).filter(|element| elements.contains(element)) {
                Some(element) => taken.entry(element).or_default().push(envelope),
                None => kept.push(envelope),
            }
        }
        self.put_back(kept);
        #[cfg(test)]
        {
            self.extractions += 1;
        }
        (taken, made)
    }

    /// Whether the next thing to do is to let an element go.
    pub(super) fn next_departs(&self) -> bool {
        let next = if self.has_urgent() { None } else { self.marked.front() };
        let departs = next.is_some_and(|envelope| matches!(envelope.target, Target::Depart { .. }));
        departs && self.ordinary.has_mark_first()
    }

    /// How often something has been [taken out](Self::extract).
    #[cfg(test)]
    pub(super) fn extractions(&self) -> u64 {
        self.extractions
    }

    #[inline]
    fn has_urgent(&self) -> bool {
        self.others.peek().is_some_and(|top| top.envelope.priority.is_urgent())
    }

    /// Count of waiting envelopes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ordinary.len() + self.others.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Takes these elements out of the members that a message to a section has here, with a message for each.
fn own_of_members(envelope: &mut Envelope, elements: &FxHashSet<ElementId>) -> Vec<(ElementId, Envelope)> {
    let Envelope { target: Target::Section(section), priority, payload: Payload::Packed(packed), .. } =
        envelope
    else {
        return Vec::new();
    };
    let MembersHere { collection, members, entry, .. } = section.as_mut();
    let (collection, entry) = (*collection, *entry);
    let mut own = Vec::new();
    members.retain(|&index| {
        let element = ElementId { collection, index };
        let leaves = elements.contains(&element);
        if leaves {
            let message = ToPe::Element { collection, index, entry, from: PeId::DRIVER, number: 0 };
            own.push((
                element,
                Envelope::new(message, priority.clone(), Payload::Packed(Arc::clone(packed))),
            ));
        }
        !leaves
    });
    own
}

impl Ranked {
    fn key(&self) -> (&Priority, i64) {
        (&self.envelope.priority, self.arrival)
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
    use crate::envelope::Packed;
    use crate::mark::Mark;
    use crate::priority::Bits;
    use proptest::prelude::*;

    /// A target that differs from others by a number.
    fn numbered(slot: u64) -> Target {
        Target::Create(CollectionId(slot))
    }

    fn envelope(slot: u64, priority: impl Into<Priority>) -> Envelope {
        Envelope::new(numbered(slot), priority, Payload::packed(Packed::default()))
    }

    #[test]
    fn what_is_for_one_element_is_taken_out_in_its_order_and_the_rest_keeps_its_own() {
        let element = ElementId { collection: CollectionId(1), index: ElementIndex([7, 0, 0]) };
        let for_it = |number: u64, priority| {
            let ElementId { collection, index } = element;
            let target = ToPe::Element { collection, index, entry: 3, from: PeId::DRIVER, number: 0 };
            Envelope::new(target, priority, Payload::Value(Box::new(number)))
        };
        let mut queue = Queue::default();
        for number in 0..200u64 {
            let priority = [0, 0, 5, -5][(number / 3 % 4) as usize];
            queue.push(if number % 3 == 0 { for_it(number, priority) } else { envelope(number, priority) });
        }
        let ranked = |is_for_it: bool| {
            let mut numbers: Vec<u64> = (0..200).filter(|n| (n % 3 == 0) == is_for_it).collect();
            numbers.sort_by_key(|n| ([0, 0, 5, -5][(n / 3 % 4) as usize], *n));
            numbers
        };
        let taken = queue.extract(&[element].into_iter().collect()).0.remove(&element).unwrap_or_default();
        let taken: Vec<u64> = taken
            .iter()
            .map(|e| match &e.payload {
                Payload::Value(value) => *value.downcast_ref::<u64>().unwrap(),
                Payload::Packed(_) => panic!("it was moved"),
            })
            .collect();
        assert_eq!(taken, ranked(true));
        let rest: Vec<Target> = std::iter::from_fn(|| queue.pop()).map(|e| e.target).collect();
        assert_eq!(rest, ranked(false).into_iter().map(numbered).collect::<Vec<_>>());
    }

    #[test]
    fn of_a_message_to_a_section_who_leaves_gets_its_own_in_its_turn() {
        let member = |at| ElementIndex([at, 0, 0]);
        let (collection, entry) = (CollectionId(1), 3);
        let packed = |word: u8| Payload::packed(Packed { body: vec![word].into(), attachments: Vec::new() });
        let leaves = ElementId { collection, index: member(7) };
        let mut queue = Queue::default();
        let alone = |word| {
            let target = ToPe::Element { collection, index: member(7), entry, from: PeId::DRIVER, number: 0 };
            Envelope::new(target, 0, packed(word))
        };
        queue.push(alone(0));
        for word in [1, 2] {
            let members = vec![member(5), member(7), member(9)];
            let target =
                Target::Section(Box::new(MembersHere { collection, members, entry, mark: Mark::NONE }));
            queue.push(Envelope::new(target, 0, packed(word)));
        }
        queue.push(alone(3));
        let (mut taken, made) = queue.extract(&[leaves].into_iter().collect());
        let word = |envelope: &Envelope| match &envelope.payload {
            Payload::Packed(packed) => packed.body[0],
            Payload::Value(_) => panic!("it was packed"),
        };
        let taken = taken.remove(&leaves).unwrap_or_default();
        assert_eq!((taken.iter().map(word).collect::<Vec<_>>(), made), (vec![0, 1, 2, 3], 2));
        for expected in [1, 2] {
            let rest = queue.pop().unwrap();
            assert_eq!(word(&rest), expected);
            let Target::Section(section) = rest.target else { panic!("a section's message is left") };
            assert_eq!(section.members, [member(5), member(9)]);
        }
        assert!(queue.is_empty());
    }

    #[test]
    fn what_had_to_wait_comes_before_its_equals_in_its_order() {
        let mut queue = Queue::default();
        (0..4).for_each(|slot| queue.push(envelope(slot, if slot < 2 { 0 } else { 5 })));
        queue.push_front(vec![envelope(10, 0), envelope(11, 5), envelope(12, 0), envelope(13, 5)]);
        queue.push_front(vec![envelope(20, 5)]);
        let order: Vec<Target> = std::iter::from_fn(|| queue.pop()).map(|e| e.target).collect();
        assert_eq!(order, [10, 12, 0, 1, 20, 11, 13, 2, 3].map(numbered));
    }

    fn value(number: u64) -> Envelope {
        let index = ElementIndex([1, 2, number as u32]);
        let target = ToPe::Element {
            collection: CollectionId(number),
            index,
            entry: 3,
            from: PeId::DRIVER,
            number: 0,
        };
        Envelope::new(target, 0, Payload::Value(Box::new(number)))
    }

    fn number(envelope: &Envelope) -> u64 {
        match (&envelope.target, &envelope.payload) {
            (Target::Create(CollectionId(slot)), Payload::Packed(_)) => *slot,
            (Target::Message(ToPe::Element { collection, index, entry, .. }), Payload::Value(value)) => {
                let number = *value.downcast_ref::<u64>().unwrap();
                assert_eq!((collection.0, *index, *entry), (number, ElementIndex([1, 2, number as u32]), 3));
                number
            }
            other => panic!("{other:?} was never put there"),
        }
    }

    proptest! {
        #[test]
        fn ordinary_values_and_others_keep_their_order_while_the_ring_grows(
            steps in prop::collection::vec((0u8..6, 1usize..60), 1..60),
        ) {
            let (mut queue, mut model, mut next) = (Queue::default(), VecDeque::new(), 0);
            for (step, count) in steps {
                for _ in 0..count {
                    next += 1;
                    match step {
                        0 | 1 => queue.push(value(next)),
                        2 => queue.push(envelope(next, 0)),
                        3 => {
                            // Values that had to wait come back too.
                            let back = if next % 2 == 0 { value(next) } else { envelope(next, 0) };
                            queue.push_front(vec![back]);
                            model.push_front(next);
                            continue;
                        }
                        _ => {
                            prop_assert_eq!(queue.pop().map(|e| number(&e)), model.pop_front());
                            continue;
                        }
                    }
                    model.push_back(next);
                }
                prop_assert_eq!(queue.len(), model.len());
            }
            let rest: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|e| number(&e)).collect();
            prop_assert_eq!(rest, Vec::from(model));
        }

        #[test]
        fn order_is_priority_then_arrival(
            all in prop::collection::vec((-2i32..3, prop::collection::vec(any::<bool>(), 0..4)), 0..100),
            is_lifo: bool,
        ) {
            let mut queue = Queue::new(if is_lifo { QueueOrder::Lifo } else { QueueOrder::Fifo });
            for (slot, (number, bits)) in (0..).zip(&all) {
                let bits = bits.iter().fold(Bits::new(), |bits, &bit| bits.followed_by(bit.into(), 1));
                queue.push(envelope(slot, (*number, bits)));
            }
            let arrival = |slot: u64| if is_lifo { u64::MAX - slot } else { slot };
            let mut expected: Vec<_> = (0..).zip(&all).map(|(slot, of)| (of, arrival(slot), slot)).collect();
            expected.sort();
            for (_, _, slot) in expected {
                prop_assert_eq!(queue.pop().unwrap().target, numbered(slot));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
