//! What is put on a PE's queue: a target, a priority, and a payload that is a moved value or packed bytes.

pub use crate::ids::{CollectionId, ElementId, ElementIndex};
pub use crate::payload::{Arrived, Outgoing, Packed, Payload, Value};
pub use crate::results::{CallbackTarget, Contributors, PartialHeader};

use crate::ids::{NodeId, PeId};
use crate::mark::Mark;
use crate::moving::Moving;
use crate::priority::Priority;
use crate::saved::{RecordHeader, Save};
use serde::{Deserialize, Serialize};

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
        /// Which message of that PE it is, of those that are [followed](crate::mark::Mark). Not saved, and beside the message
        /// where that goes to another node.
        #[serde(skip)]
        number: u32,
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
    /// How many elements take part in reductions.
    Contributors(Box<Contributors>),
}

impl ToPe {
    /// The mark of the message, if it is followed.
    #[must_use]
    pub fn mark(&self) -> Mark {
        match self {
            Self::Element { from, number, .. } => Mark { from: *from, number: *number },
            Self::Partial(header) => header.mark,
            _ => Mark::NONE,
        }
    }

    /// Has the message followed, if it is of a kind that can be. The mark is one of the PE that it is from.
    pub fn set_mark(&mut self, mark: Mark) {
        match self {
            Self::Element { from, number, .. } if *from == mark.from => *number = mark.number,
            Self::Partial(header) => header.mark = mark,
            _ => {}
        }
    }
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
    /// Send elements to other PEs; the payload says which and where to. One that is not there has moved or ended, and is
    /// left alone.
    Migrate,
    /// Stand still: run nothing, and keep what arrives. Until [`Resume`](Self::Resume).
    Pause,
    /// Pack all that is here, while the PE stands still; the launcher is sent it meanwhile and afterwards.
    Save(Save),
    /// Send all that is here to the same PE at its new place, and end, while the PE stands still.
    HandOver {
        /// Where that is.
        to: NodeId,
    },
    /// Take in what was saved of it, as far as it finds that itself while it stands still; say how many records it has. The
    /// payload is where to look.
    ReadSaved,
    /// So many records have been read or sent that the PE is to take in while it stands still; say when it has all.
    Restore {
        /// Count of records.
        records: u64,
    },
    /// Go on.
    Resume,
    /// Compute for nothing for a moment, unless there is something to do, and say how much of a core that got. Behind the others:
    /// what waited for a PE when it was saved is in checkpoints.
    Probe,
    /// Pack all that is here, and go on in the other colour; the launcher is sent it meanwhile. How is what the node was told last.
    Cut,
    /// Nothing that was sent before its sender was cut comes any more: send what came of that since.
    Close,
}

/// What a PE is to do with an envelope: what others have it do, and what its own node tells it. Only the former leaves
/// the process, unless it is saved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Target {
    /// What somebody on any node has it do.
    Message(ToPe),
    /// Run an entry method of every element that lives on the PE.
    All {
        /// The collection whose elements get it.
        collection: CollectionId,
        /// Number of the entry method to run.
        entry: u16,
        /// Whether and how it is followed.
        #[serde(skip)]
        mark: Mark,
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
    /// Take in what was saved: only while the PE stands still.
    Record(Box<RecordHeader>),
    /// End the PE's scheduler.
    Stop,
    /// Run an entry method of one element that had moved, as of all elements: one that has been destroyed is passed over.
    Copy {
        /// The collection of the element.
        collection: CollectionId,
        /// Index of the element in its collection.
        index: ElementIndex,
        /// Number of the entry method to run.
        entry: u16,
    },
    /// Make the element that was asked for at the place of one that has been destroyed, which all know to be counted.
    Replace {
        /// The collection of the element.
        collection: CollectionId,
        /// Index of the element in its collection.
        index: ElementIndex,
    },
}

/// Members of a section that are at home on one PE.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MembersHere {
    /// The collection of the elements.
    pub collection: CollectionId,
    /// Who they are.
    pub members: Vec<ElementIndex>,
    /// Number of the entry method to run.
    pub entry: u16,
    /// Whether and how the message is followed.
    #[serde(skip)]
    pub mark: Mark,
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
    /// How urgent it is; equal ones keep their order.
    pub priority: Priority,
    /// What the message says.
    pub payload: Payload,
    /// Bytes counted in the node's backlog until the PE has dealt with this; 0 if it did not come by a link.
    pub backlog_bytes: u64,
}

impl Envelope {
    /// An envelope made inside this process.
    #[must_use]
    pub fn new(target: impl Into<Target>, priority: impl Into<Priority>, payload: Payload) -> Self {
        Self { target: target.into(), priority: priority.into(), payload, backlog_bytes: 0 }
    }

    /// One that goes before all others, and has nothing beside what is to be done.
    #[must_use]
    pub fn urgent(target: impl Into<Target>) -> Self {
        Self::new(target, Priority::first(), Payload::packed(Packed::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_a_cache_line() {
        assert_eq!((size_of::<Target>(), size_of::<Payload>(), size_of::<Envelope>()), (32, 16, 64));
    }
}
