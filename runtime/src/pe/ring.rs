//! A growing ring of values that were moved to elements of this PE.
//!
//! Each is written field by field where it will stay, and read in the same pieces: to read as a whole what has just
//! been written piece by piece, which is how a `VecDeque` of larger values is filled, makes the processor wait for
//! longer than all the rest of a message's way takes.
//!
//! Such a wait takes 4 ns, and there were three of them on the way of each message: for its envelope, its payload and
//! itself. For the same reason an entry method has one function for moved and one for packed messages, an error is
//! one word, and the length of the queue is all that is published for each message. Together that made a message on
//! one PE take 24 ns in place of 39 (`metachare bench --only pe/`).

use crate::envelope::{CollectionId, ElementIndex, Value};

/// Slots of a new ring; a power of two, as all lengths are.
const LEN_MIN: usize = 64;

/// A value for an element of this PE.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) collection: CollectionId,
    pub(super) index: ElementIndex,
    pub(super) entry: u16,
    pub(super) message: Value,
}

#[derive(Debug)]
struct Slot {
    collection: CollectionId,
    /// The first two dimensions of the index in one, so that they are not read in other pieces than were written.
    low: u64,
    high: u32,
    entry: u16,
    /// `None` is a mark: in this place belongs something that is kept elsewhere.
    message: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Ring {
    slots: Box<[Slot]>,
    /// Index of the first value. It grows without end, and its remainder by the length of the ring is the slot.
    head: usize,
    len: usize,
}

impl Default for Ring {
    fn default() -> Self {
        Self { slots: empty(LEN_MIN), head: 0, len: 0 }
    }
}

fn empty(len: usize) -> Box<[Slot]> {
    let slot = || Slot { collection: CollectionId(0), low: 0, high: 0, entry: 0, message: None };
    (0..len).map(|_| slot()).collect()
}

impl Ring {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Not as a [`Moved`], which would be written in pieces and then copied as a whole.
    #[inline(always)]
    pub(super) fn push_back(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        entry: u16,
        message: Value,
    ) {
        let at = self.slot_behind();
        let slot = &mut self.slots[at];
        let [a, b, c] = index.0;
        slot.collection = collection;
        slot.low = u64::from(b) << 32 | u64::from(a);
        slot.high = c;
        slot.entry = entry;
        // It held nothing; without this each message would pay for a look whether that has to be dropped.
        std::mem::forget(slot.message.replace(message));
    }

    pub(super) fn mark_back(&mut self) {
        let at = self.slot_behind();
        self.slots[at].message = None;
    }

    pub(super) fn mark_front(&mut self) {
        let at = self.slot_before();
        self.slots[at].message = None;
    }

    /// Takes the first, unless it is a mark.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Moved> {
        let at = self.head & (self.slots.len() - 1);
        let slot = &mut self.slots[at];
        // Slots that are not in use hold nothing.
        let message = slot.message.take()?;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        let index = ElementIndex([slot.low as u32, (slot.low >> 32) as u32, slot.high]);
        Some(Moved { collection: slot.collection, index, entry: slot.entry, message })
    }

    /// Takes the mark that is first, if [`pop`](Self::pop) has found none but one; false if nothing is here.
    pub(super) fn pop_mark(&mut self) -> bool {
        let is_marked = self.len > 0;
        if is_marked {
            self.head = self.head.wrapping_add(1);
            self.len -= 1;
        }
        is_marked
    }

    pub(super) fn has_mark_first(&self) -> bool {
        self.len > 0 && self.slots[self.head & (self.slots.len() - 1)].message.is_none()
    }

    #[inline]
    fn slot_behind(&mut self) -> usize {
        if self.len == self.slots.len() {
            self.grow();
        }
        let at = self.head.wrapping_add(self.len) & (self.slots.len() - 1);
        self.len += 1;
        at
    }

    fn slot_before(&mut self) -> usize {
        if self.len == self.slots.len() {
            self.grow();
        }
        self.head = self.head.wrapping_sub(1);
        self.len += 1;
        self.head & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.slots.len();
        let mut slots: Vec<Slot> = std::mem::take(&mut self.slots).into_vec();
        slots.rotate_left(self.head & (len - 1));
        slots.extend(empty(len));
        self.slots = slots.into_boxed_slice();
        self.head = 0;
    }
}
