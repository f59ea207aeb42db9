//! One thing of a run, as a checkpoint keeps it.

use crate::envelope::Packed;
use std::fmt;

/// The type of the records of a value of a shared variable, whose number stands where chares have their collection.
pub const VARIABLE: &str = "variable";
/// The same for what has been added to an accumulator.
pub const SUM: &str = "sum";

/// What one thing of a run was at the checkpoint: a chare, or what a scheduler, a node or the driver knew.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What it is of.
    pub kind: Kind,
    /// The PE to which it belongs; 0 where it belongs to none.
    pub pe: u32,
    /// The type of the value, by its name in the program.
    pub type_name: String,
    /// The collection of the chare; 0 where there is none.
    pub collection: u64,
    /// The index of the chare in its collection; zeros where there is none.
    pub index: [u32; 3],
    /// The value.
    pub packed: Packed,
}

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The state of one chare.
    Chare,
    /// A scheduler's own state: its queue, open reductions, places.
    Pe,
    /// What nodes share: collections, variables.
    Node,
    /// The driver's log.
    Driver,
}

impl Record {
    /// The number of the variable or accumulator that it is of, if it is of one.
    #[must_use]
    pub fn variable(&self) -> Option<u64> {
        let is_shared = self.kind == Kind::Node && [VARIABLE, SUM].contains(&self.type_name.as_str());
        is_shared.then_some(self.collection)
    }
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Chare, Self::Pe, Self::Node, Self::Driver];

    /// The one of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == name)
    }

    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chare => "chare",
            Self::Pe => "PE",
            Self::Node => "node",
            Self::Driver => "driver",
        })
    }
}
