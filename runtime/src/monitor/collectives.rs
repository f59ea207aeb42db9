//! Reductions as they come together, place by place: on each PE, on the combining PEs of nodes, and at the root; and exchanges,
//! on each PE. Of ever more of them ever fewer are told of, the same ones by all PEs, so that what each tells can be put together.

use serde::{Deserialize, Serialize};

/// Stages that a node tells of at once at most.
pub const GATHERED_MAX: usize = 4096;
/// The first so many reductions or exchanges of a collection or section are all told of; then so many each time that their number doubles.
const ALL_BELOW: u32 = 256;

/// Whether PEs tell of the reduction, or the exchange, with that number in its collection or section.
#[must_use]
#[inline]
pub fn is_told(number: u32) -> bool {
    number < ALL_BELOW || number.is_multiple_of((number / ALL_BELOW + 1).next_power_of_two())
}

/// Reductions that were passed on by a node's PEs, and exchanges that ended there, since it told of that last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collectives {
    /// The node.
    pub node: u16,
    /// In the order in which each PE passed them on, at most [`GATHERED_MAX`].
    pub gathered: Vec<Gathered>,
}

/// One stage of a reduction or an exchange: what came together on a PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gathered {
    /// The PE.
    pub pe: u32,
    /// The collection, or the section, whose elements contribute: a number that is the same on all nodes. Exchanges within
    /// sections are those of their collection.
    pub over: u64,
    /// Whether that is a section.
    pub is_section: bool,
    /// Place of the type's name in [`RunInfo::chare_types`](super::wire::RunInfo::chare_types); of an exchange, place of the
    /// name of the entry method that its parts come to in [`RunInfo::entry_names`](super::wire::RunInfo::entry_names).
    pub chare_type: u16,
    /// Which reduction over these elements, or which exchange between them, from 0.
    pub number: u32,
    /// What came together.
    pub stage: Stage,
    /// Age of the node process when the first of it was there, nanoseconds.
    pub began_ns: u64,
    /// How long it took until all of it was there, nanoseconds.
    pub took_ns: u64,
}

/// What comes together at a place of a reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// What the elements contribute that are at home on the PE.
    #[default]
    Own,
    /// What other PEs of the node, or other nodes, pass on to the PE.
    Others,
    /// All: the PE has the result.
    Result,
    /// An exchange: from when the first element of the PE sent its parts until all elements there had what is for them.
    Exchange,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ever_more_reductions_ever_fewer_are_told_of() {
        let told = |numbers: std::ops::Range<u32>| numbers.filter(|number| is_told(*number)).count();
        assert_eq!(told(0..256), 256);
        for doubling in 8..20 {
            assert!((100..=160).contains(&told(1 << doubling..2 << doubling)), "{doubling}");
        }
        assert!(!is_told(u32::MAX) && is_told(1 << 31));
    }
}
