//! What is put on a PE's queue: a target, a priority, and a payload that is a moved value or packed bytes.

use crate::buffer::Buffer;
use crate::ids::PeId;
use crate::moving::Moving;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A chare collection (array, group or the single chares of a type) of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CollectionId(pub u64);

impl CollectionId {
    /// The single chares of one type; they exist from the start on every PE.
    #[must_use]
    pub fn singles(chare_type: u16) -> Self {
        Self(u64::from(chare_type))
    }

    /// The `serial`-th collection (counted from 1) that `creator` makes: unique without asking anybody.
    #[must_use]
    pub fn made_by(creator: PeId, serial: u32) -> Self {
        // The top bit keeps these apart from the single chares, whose numbers are small.
        Self(1 << 63 | u64::from(creator.0) << 31 | u64::from(serial & 0x7fff_ffff))
    }

    /// Who made it; `None` if this stands for the single chares of a type, or for nothing.
    #[must_use]
    pub fn creator(self) -> Option<PeId> {
        let is_made = self.0 >> 63 == 1;
        is_made.then(|| u32::try_from(self.0 >> 31 & u64::from(u32::MAX)).ok().map(PeId)).flatten()
    }

    /// The chare type, if this stands for the single chares of a type.
    #[must_use]
    pub fn as_singles(self) -> Option<u16> {
        u16::try_from(self.0).ok()
    }
}

/// Place of an element in its collection: up to three dimensions, unused ones 0. For single chares it is
/// the creating PE, the PE where it was made, and a serial number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ElementIndex(pub [u32; 3]);

impl ElementIndex {
    /// The single chare that `creator` made as number `serial` of its type on `home`, counted from 0: there is no other
    /// in the run, for 2^24 PEs and 2^40 chares of one creator on one PE.
    #[must_use]
    pub fn of_single(creator: PeId, home: PeId, serial: u64) -> Self {
        let high = (serial >> 32) as u32 & 0xff;
        Self([creator.0, home.0 << 8 | high, (serial & 0xffff_ffff) as u32])
    }

    /// Creator and number of a single chare.
    #[must_use]
    pub fn as_single(self) -> (PeId, u64) {
        let [creator, high, low] = self.0;
        (PeId(creator), u64::from(high & 0xff) << 32 | u64::from(low))
    }
}

/// As two numbers: hashed as a run of bytes it takes three times as long, for every message.
impl Hash for ElementIndex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c] = self.0;
        state.write_u64(u64::from(b) << 32 | u64::from(a));
        state.write_u32(c);
    }
}

impl fmt::Debug for ElementIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [i, 0, 0] => write!(f, "[{i}]"),
            [i, j, 0] => write!(f, "[{i}, {j}]"),
            [i, j, k] => write!(f, "[{i}, {j}, {k}]"),
        }
    }
}

/// An element of a collection, or a single chare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ElementId {
    /// Its collection.
    pub collection: CollectionId,
    /// Its place there.
    pub index: ElementIndex,
}

/// A message, constructor argument or contribution as a value of the type that its receiver expects.
pub type Value = Box<dyn Any + Send>;

/// The same as bytes: a small body, and bulk buffers that are shared instead of copied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed {
    /// postcard.
    pub body: Bytes,
    /// Bulk numeric data, in the order in which the body refers to them.
    pub attachments: Vec<Buffer>,
}

impl Packed {
    /// Bytes of body and attachments.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.body.len() + self.attachments.iter().map(Buffer::len).sum::<usize>()
    }
}

/// What a message says, moved or packed.
pub enum Payload {
    /// Moved by ownership inside a process.
    Value(Value),
    /// Came from another process, will go there, or is shared by several receivers.
    Packed(Arc<Packed>),
}

impl Payload {
    /// Bytes for one receiver.
    #[must_use]
    pub fn packed(packed: Packed) -> Self {
        Self::Packed(Arc::new(packed))
    }

    /// Gives it to its only receiver.
    pub fn open<T>(self, take: impl FnOnce(Arrived<'_>) -> T) -> T {
        match self {
            Self::Value(value) => take(Arrived::Value(value)),
            Self::Packed(packed) => take(Arrived::Packed(&packed)),
        }
    }
}

/// What a message says, as one of its receivers gets it.
pub enum Arrived<'a> {
    /// Moved: it is the receiver's own.
    Value(Value),
    /// To be unpacked; others may unpack it too.
    Packed(&'a Packed),
}

/// A message on its way out, which becomes a value or bytes as its receiver needs it. A closure that makes the payload,
/// given whether that may be moved, is one.
pub trait Outgoing: Sized {
    /// The payload: moved if it may be.
    fn payload(self, may_move: bool) -> Payload;

    /// Appends the message to `out` as the bytes that [`payload`](Self::payload) would have, and returns its bulk
    /// buffers.
    ///
    /// # Errors
    /// The message itself, with `out` as it was, where the bytes cannot be had without making the payload.
    fn write(self, out: &mut Vec<u8>) -> Result<Vec<Buffer>, Self> {
        let _ = out;
        Err(self)
    }
}

impl<F: FnOnce(bool) -> Payload> Outgoing for F {
    #[inline]
    fn payload(self, may_move: bool) -> Payload {
        self(may_move)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value"),
            Self::Packed(packed) => packed.fmt(f),
        }
    }
}

/// Where the result of a reduction, or any reply, goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum CallbackTarget {
    /// The result is thrown away.
    Ignore,
    /// The driver, which waits for results under this number.
    Slot(u64),
    /// An entry method of one element.
    Element {
        /// The collection of the element.
        collection: CollectionId,
        /// Index of the element in its collection.
        index: ElementIndex,
        /// Number of the entry method to run.
        entry: u16,
        /// The PE where a single chare lives; elements of arrays are found by their placement.
        home: Option<PeId>,
    },
    /// An entry method of every element.
    All {
        /// The collection whose elements get it.
        collection: CollectionId,
        /// Number of the entry method to run.
        entry: u16,
    },
    /// An entry method of every member of a section, for results of that section's own reductions only: nobody
    /// else knows its members.
    Members {
        /// The collection of the section.
        collection: CollectionId,
        /// The section's identity.
        section: u64,
        /// Number of the entry method to run.
        entry: u16,
    },
}

/// A reduction partial's description; its values are the payload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartialHeader {
    /// Collection whose elements contribute.
    pub collection: CollectionId,
    /// Section of that collection, or 0 for all of it.
    pub section: u64,
    /// Which reduction of the collection or section, counted from 0.
    pub sequence: u32,
    /// How the chare type combines the values.
    pub reducer: u16,
    /// How many elements have contributed to these values.
    pub count: u64,
    /// How many elements the receiving place waits for. Only set for sections, which a combiner need not know.
    pub expected: u64,
    /// The places that follow the receiving one on the way to the root, and how many elements each waits for (sections
    /// only).
    pub then: Vec<(PeId, u64)>,
    /// Who gets the result.
    pub callback: CallbackTarget,
    /// Linear index, body length and number of attachments of each value; several only when ordered.
    pub parts: Vec<(u64, u32, u32)>,
    /// Whether values are kept apart and combined in index order at the root.
    pub ordered: bool,
}

/// What chares and PEs have a PE do, on whatever node it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ToPe {
    /// Run an entry method of one element.
    Element {
        /// The collection of the element.
        collection: CollectionId,
        /// Index of the element in its collection.
        index: ElementIndex,
        /// Number of the entry method to run.
        entry: u16,
        /// The PE that sent it: told where the element is, if that is not at home.
        from: PeId,
    },
    /// Construct one element.
    Insert {
        /// The collection of the element.
        collection: CollectionId,
        /// Index of the element in its collection.
        index: ElementIndex,
    },
    /// Part of a reduction, from a PE or from another node.
    Partial(Box<PartialHeader>),
    /// Pass the payload on to whoever a callback names.
    Relay(Box<CallbackTarget>),
    /// What has to do with chares that move.
    Moving(Box<Moving>),
}

/// What the launcher has a PE do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeOrder {
    /// Make the application's own kernel ready, call it once, and tell the rate of that call; the payload is the kernel's
    /// arguments.
    PrepareKernel {
        /// Index of the kernel in the program table.
        kernel: u16,
    },
    /// Run the kernel that is ready, at the same time as the other PEs, and tell the rate.
    Measure {
        /// How long, in milliseconds.
        budget_ms: u32,
    },
    /// Give back the memory of the kernel that is ready.
    DropKernel,
    /// End the run with a sentence that names a message held there for an element that nobody makes, if one is: nothing
    /// else goes on anywhere.
    NameHeld,
}

/// What a PE is to do with an envelope: what others have it do, and what its own node tells it. Only the former leaves
/// the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// What somebody on any node has it do.
    Message(ToPe),
    /// Run an entry method of every element that lives on the PE.
    All {
        /// The collection whose elements get it.
        collection: CollectionId,
        /// Number of the entry method to run.
        entry: u16,
    },
    /// Run an entry method of these elements, which live on the PE.
    Section(Box<MembersHere>),
    /// A collection came into being: construct the elements that live here (unless deferred).
    Create(CollectionId),
    /// Let an element go to another PE, if it is here.
    Depart {
        /// The collection of the element.
        collection: CollectionId,
        /// Index of the element in its collection.
        index: ElementIndex,
        /// Where it goes.
        to: PeId,
    },
    /// What the launcher has the PE do.
    Order(PeOrder),
    /// End the PE's scheduler.
    Stop,
}

/// Members of a section that are at home on one PE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MembersHere {
    /// The collection of the elements.
    pub collection: CollectionId,
    /// Who they are.
    pub members: Vec<ElementIndex>,
    /// Number of the entry method to run.
    pub entry: u16,
}

impl From<ToPe> for Target {
    #[inline]
    fn from(message: ToPe) -> Self {
        Self::Message(message)
    }
}

/// One thing for a PE to do. As long as a cache line, because each message moves one from thread to thread.
#[derive(Debug)]
pub struct Envelope {
    /// What to do.
    pub target: Target,
    /// Smaller is more urgent; equal ones keep their order.
    pub priority: i32,
    /// What the message says.
    pub payload: Payload,
    /// Bytes counted in the node's backlog until the PE has dealt with this; 0 if it did not come by a link.
    pub backlog_bytes: u64,
}

impl Envelope {
    /// An envelope made inside this process.
    #[must_use]
    pub fn new(target: impl Into<Target>, priority: i32, payload: Payload) -> Self {
        Self { target: target.into(), priority, payload, backlog_bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_chares_differ_by_creator_home_and_number() {
        let mut all = std::collections::BTreeSet::new();
        for (creator, home) in [(0, 0), (0, 1), (1, 0), (u32::MAX, 0), (u32::MAX, 0xff_ffff)] {
            for serial in [0, 1, 255, 256, u64::from(u32::MAX), 1 << 32, (1 << 40) - 1] {
                let index = ElementIndex::of_single(PeId(creator), PeId(home), serial);
                assert_eq!(index.as_single(), (PeId(creator), serial));
                assert!(all.insert(index));
            }
        }
    }

    #[test]
    fn an_envelope_is_a_cache_line() {
        assert_eq!((size_of::<Target>(), size_of::<Payload>(), size_of::<Envelope>()), (32, 16, 64));
    }
}
