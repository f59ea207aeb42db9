//! Where results go, and the parts of reductions on their way.

use crate::ids::{CollectionId, ElementIndex, PeId};
use crate::mark::Mark;
use crate::proto::contributors::Change;
use serde::{Deserialize, Serialize};

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
    /// Whether and how it is followed: not saved, and beside the message where that goes to another node.
    #[serde(skip)]
    pub mark: Mark,
}

/// What the places say to each other at which reductions of a collection come together, of how many elements take part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contributors {
    /// The collection.
    pub collection: CollectionId,
    /// What changes.
    pub change: Change,
}
