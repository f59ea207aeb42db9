//! What PEs say to each other of chares that move, and what a chare takes along.

use crate::buffer::Buffer;
use crate::ids::{CollectionId, ElementId, ElementIndex, PeId};
use crate::payload::{Packed, Payload};
use crate::priority::Priority;
use crate::proto::location::{Luggage, Parcel};
use crate::results::PartialHeader;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What is said of chares that move.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Moving {
    /// Something for an element that has moved, or from a chare that has. The payload is the message.
    Parcel(Parcel<ElementId, Heading>),
    /// Several, each with a message for its element, which is the payload for all of them.
    Parcels(Vec<Parcel<ElementId, Heading>>),
    /// Where an element is.
    Tell {
        /// The element.
        element: ElementId,
        /// Where it is.
        at: PeId,
        /// Since its move of that number.
        epoch: u32,
    },
    /// Tell an element, behind all that it was sent from the receiving PE, that a chare which was there sends from
    /// elsewhere now.
    Introduce {
        /// The element.
        element: ElementId,
        /// Its home.
        home: PeId,
        /// The chare.
        chare: ElementId,
    },
    /// An element comes. The payload is its state and the messages that it takes along.
    Arrive(Box<Record>),
    /// What a chare that has moved says to many: it is said from where the chare was before its first move, so that
    /// nobody gets it before what the chare said there. The payload is the message.
    Spoken {
        /// The chare.
        chare: ElementId,
        /// Counted from 0.
        number: u64,
        /// To whom.
        audience: Audience,
    },
    /// What an element that is away adds to a reduction, for the PE where it is at home; and the members of the section,
    /// if that PE has to know them. The payload is the value.
    Contribution(PartialHeader, Vec<ElementIndex>),
    /// A PE has nothing to do, and asks for chares that may go where there is least to do.
    Ask {
        /// Which one.
        pe: PeId,
    },
    /// There are such chares: the PE that has nothing to do may ask, or ask again once it has done what came before this.
    MayAsk,
    /// What is left of an element that was destroyed elsewhere comes home, as an element comes that moves: in place of its
    /// state with how far it came.
    Remains(Box<Record>),
    /// A single chare has ended away from home: for the PE where it is at home.
    Gone {
        /// The chare.
        chare: ElementId,
        /// Where it ended it had been since its move of that number.
        epoch: u32,
        /// It has taken so many messages that were numbered at its home.
        taken: u64,
        /// It has sent so many messages to many.
        spoken: u64,
    },
    /// A single chare that ended on the receiving PE is forgotten at its home.
    Forget {
        /// The chare.
        chare: ElementId,
        /// It came with its move of that number.
        epoch: u32,
    },
}

/// To whom a message for many goes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Audience {
    /// The collection.
    pub collection: CollectionId,
    /// Some of its elements; all if there is no list.
    pub members: Option<Vec<ElementIndex>>,
    /// Number of the entry method to run.
    pub entry: u16,
    /// Priority of the messages.
    pub priority: Priority,
}

/// What an element is to do, and how urgently.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heading {
    /// What it is to do.
    pub what: What,
    /// How urgent it is.
    pub priority: Priority,
}

/// What an element is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum What {
    /// Run an entry method with the message.
    Run(u16),
    /// Go to another PE.
    Migrate(PeId),
    /// Run an entry method with a message for all elements, unless it has been destroyed.
    Copy(u16),
    /// Of one that has been destroyed: be followed by the next, now that all has come which was said to it at its home. Never
    /// leaves that.
    Replace,
}

/// A message for an element that is known to have moved.
#[derive(Debug, Serialize, Deserialize)]
pub struct Letter {
    /// What it is about.
    pub heading: Heading,
    /// What it says.
    pub payload: Payload,
}

impl Parcel<ElementId, Heading> {
    /// The parcel with the message that came beside it.
    #[must_use]
    pub(crate) fn with_payload(self, payload: Payload) -> Parcel<ElementId, Letter> {
        self.split(|heading| (Letter { heading, payload }, ())).0
    }
}

/// A chare between two of its entry methods, as it is sent to another PE. The payload beside it is its state, then the
/// messages of the mailbox, then those of the luggage, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Which one.
    pub element: ElementId,
    /// Where it was made.
    pub home: PeId,
    /// Length of its state.
    pub state: Extent,
    /// Messages that waited for their turn, in order.
    pub mailbox: Vec<(Heading, Extent)>,
    /// How far it has come with each sender, and the messages that came out of order.
    pub luggage: Luggage<ElementId, (Heading, Extent)>,
}

/// Length of one of several things that are packed one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Extent {
    body_bytes: u32,
    attachments: u32,
}

/// Packs several things one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Trunk {
    body: Vec<u8>,
    attachments: Vec<Buffer>,
}

impl Trunk {
    /// Adds something; `None` if it is longer than anything that can be sent.
    pub(crate) fn add(&mut self, packed: &Packed) -> Option<Extent> {
        let body_bytes = u32::try_from(packed.body.len()).ok()?;
        let attachments = u32::try_from(packed.attachments.len()).ok()?;
        self.body.extend_from_slice(&packed.body);
        self.attachments.extend_from_slice(&packed.attachments);
        Some(Extent { body_bytes, attachments })
    }

    /// All that was added.
    pub(crate) fn close(self) -> Packed {
        Packed { body: self.body.into(), attachments: self.attachments }
    }
}

/// Takes out what was packed one behind the other.
#[derive(Debug)]
pub(crate) struct Unpacking {
    body: Bytes,
    attachments: std::vec::IntoIter<Buffer>,
}

impl Unpacking {
    pub(crate) fn new(packed: Packed) -> Self {
        Self { body: packed.body, attachments: packed.attachments.into_iter() }
    }

    /// The next thing; `None` if there is not so much.
    pub(crate) fn next(&mut self, extent: Extent) -> Option<Packed> {
        let (body, attachments) = (extent.body_bytes as usize, extent.attachments as usize);
        if self.body.len() < body || self.attachments.len() < attachments {
            return None;
        }
        let attachments = self.attachments.by_ref().take(attachments).collect();
        Some(Packed { body: self.body.split_to(body), attachments })
    }

    /// Whether all has been taken.
    pub(crate) fn is_over(&self) -> bool {
        self.body.is_empty() && self.attachments.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_together_comes_apart_again_and_no_more() {
        let things = [(3, 0), (0, 2), (0, 0), (5, 1)].map(|(body, attachments)| Packed {
            body: vec![body as u8; body].into(),
            attachments: vec![Buffer::zeroed(body + 1); attachments],
        });
        let mut trunk = Trunk::default();
        let extents = things.each_ref().map(|thing| trunk.add(thing).unwrap());
        let packed = trunk.close();
        let mut unpacking = Unpacking::new(packed.clone());
        for (thing, extent) in things.iter().zip(extents) {
            assert!(!unpacking.is_over());
            assert_eq!(unpacking.next(extent).as_ref(), Some(thing));
        }
        assert!(unpacking.is_over());
        for wrong in [Extent { body_bytes: 9, attachments: 0 }, Extent { body_bytes: 0, attachments: 4 }] {
            assert_eq!(Unpacking::new(packed.clone()).next(wrong), None);
        }
    }
}
