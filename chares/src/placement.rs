//! Where new chares are made.

use loadbalance::placement::{block_bounds, contiguous};
use loadbalance::{Items, Part};
use runtime::collection::Placement as RawPlacement;
use runtime::ids::PeId;

/// Where the elements of a new array are made. Elements are counted row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum Placement {
    /// Consecutive elements, equally many on every PE.
    Block,
    /// Consecutive elements, as many on each PE as its measured speed earns.
    BySpeed,
    /// Dealt out in turn.
    Cyclic,
    /// PE `p` gets the elements `bounds[p]..bounds[p + 1]`.
    Bounds(Vec<u64>),
    /// A PE for each element.
    Explicit(Vec<PeId>),
}

/// Where a single chare is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// On the PE of its creator; by speed if that is the driver.
    Here,
    /// On that PE.
    Pe(u32),
    /// In turn, each PE as often as its measured speed earns.
    BySpeed,
    /// At random, on each PE as often as its measured speed earns: for many chares of about the same work, made on many PEs that
    /// know nothing of each other.
    AtRandom,
    /// Where there is least to do: on the PE of its creator (by speed if that is the driver), from where it goes to a PE that has
    /// nothing to do and asks, as many chares at a time as that PE's speed earns. For work that nobody knows beforehand, such as
    /// searches in trees. Chares go only while messages wait for them. In a tree, messages that come last and run first
    /// ([`queue_order`](crate::Program::queue_order)) keep queues short, and those that go are large branches.
    ByLoad,
}

impl Placement {
    /// A list of PE numbers, one per element, as [`Placement::Explicit`].
    #[must_use]
    pub fn on_pes(pes: impl IntoIterator<Item = u32>) -> Self {
        Self::Explicit(pes.into_iter().map(PeId).collect())
    }

    pub(crate) fn resolve(&self, count: u64, pe_count: u32, speeds: &[f64]) -> RawPlacement {
        let equal = || block_bounds(count, pe_count as usize);
        match self {
            Self::Block => RawPlacement::Bounds(equal()),
            // Measured speeds are positive and finite; were they not, equal shares are still a valid plan.
            Self::BySpeed => RawPlacement::Bounds(
                contiguous(&Items::alike(count), &Part::each(speeds)).unwrap_or_else(|_| equal()),
            ),
            Self::Cyclic => RawPlacement::Cyclic { pe_count },
            Self::Bounds(bounds) => RawPlacement::Bounds(bounds.clone()),
            Self::Explicit(pes) => RawPlacement::Explicit(pes.clone()),
        }
    }
}
