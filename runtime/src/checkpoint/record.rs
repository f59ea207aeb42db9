//! One thing of a run, as a checkpoint keeps it.

use crate::ids::{CollectionId, ElementId, ElementIndex, PeId};
use crate::payload::Packed;
use crate::saved::{RecordHeader, RecordOf};
use crate::variable::VariableKind;
use std::fmt;

/// The type of the records of a value of a shared variable, whose number stands where chares have their collection.
pub const VARIABLE: &str = "variable";
/// The same for what has been added to an accumulator.
pub const SUM: &str = "sum";
/// The same for the other things that nodes share.
const COLLECTION: &str = "collection";
const LOADS: &str = "loads";
/// The type of the records of what a PE has beside its chares.
const PE: &str = "PE";
/// The same for messages that were on their way to it.
const LATE: &str = "late";

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
    /// A scheduler's own state: its queue, open reductions, places; and messages that were on their way to it.
    Pe,
    /// What nodes share: collections, variables.
    Node,
    /// The driver's log.
    Driver,
}

impl Record {
    /// What a run gives to be saved; of a chare with the name of its type.
    #[must_use]
    pub fn of_run(RecordHeader { pe, of }: RecordHeader, type_name: &str, packed: Packed) -> Self {
        let shared = |name: &str, collection, index| (Kind::Node, 0, name.to_string(), collection, index);
        let (kind, pe, type_name, collection, index) = match of {
            RecordOf::Chare(ElementId { collection, index }) => {
                (Kind::Chare, pe.0, type_name.into(), collection.0, index.0)
            }
            RecordOf::Pe => (Kind::Pe, pe.0, PE.into(), 0, [0; 3]),
            RecordOf::Late { by } => (Kind::Pe, pe.0, LATE.into(), 0, [by.0, 0, 0]),
            RecordOf::Sum(id) => shared(SUM, id, [0; 3]),
            RecordOf::Loads => shared(LOADS, 0, [0; 3]),
            RecordOf::Collection => shared(COLLECTION, 0, [0; 3]),
            RecordOf::Variable { id, kind, origin } => {
                shared(VARIABLE, id, [u32::from(kind == VariableKind::Monotonic), origin.0, 0])
            }
        };
        Self { kind, pe, type_name, collection, index, packed }
    }

    /// What it is of a run; `None` of the driver's, and of what is none.
    #[must_use]
    pub fn header(&self) -> Option<RecordHeader> {
        let element =
            ElementId { collection: CollectionId(self.collection), index: ElementIndex(self.index) };
        let (pe, of) = match (self.kind, self.type_name.as_str()) {
            (Kind::Chare, _) => (PeId(self.pe), RecordOf::Chare(element)),
            (Kind::Pe, LATE) => (PeId(self.pe), RecordOf::Late { by: PeId(self.index[0]) }),
            (Kind::Pe, _) => (PeId(self.pe), RecordOf::Pe),
            (Kind::Node, SUM) => (PeId::DRIVER, RecordOf::Sum(self.collection)),
            (Kind::Node, COLLECTION) => (PeId::DRIVER, RecordOf::Collection),
            (Kind::Node, LOADS) => (PeId::DRIVER, RecordOf::Loads),
            (Kind::Node, VARIABLE) => {
                let [monotonic, origin, _] = self.index;
                let kind = if monotonic == 1 { VariableKind::Monotonic } else { VariableKind::Once };
                (PeId::DRIVER, RecordOf::Variable { id: self.collection, kind, origin: PeId(origin) })
            }
            _ => return None,
        };
        Some(RecordHeader { pe, of })
    }

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
