//! What nodes and their launcher say to each other of a run that is saved, or taken up again.
//!
//! A run is saved while all of its PEs stand still and nothing is on its way: then all there is of it lies on PEs, in what
//! nodes share, and with the driver. Each PE gives a record for each of its chares, and one for itself.

use crate::codec::VariableKind;
use crate::ids::{ElementId, PeId};
use serde::{Deserialize, Serialize};

/// What the payload beside it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The PE that it is of.
    pub pe: PeId,
    /// What of it.
    pub of: RecordOf,
}

/// What a record is of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RecordOf {
    /// A chare between two of its entry methods.
    Chare(ElementId),
    /// All that a PE holds beside its chares: messages, reductions under way, places of those that have moved.
    Pe,
    /// What has been added to an accumulator on the PE's node.
    Sum(u64),
    /// The description of a collection.
    Collection,
    /// The value of a variable.
    Variable {
        /// The variable.
        id: u64,
        /// How it changes.
        kind: VariableKind,
        /// Where it came from.
        origin: PeId,
    },
}

/// A PE that stands still has done what it was told: so many records have left, or come; or why not.
pub type Paused = Result<u64, String>;
