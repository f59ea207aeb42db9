//! Identities that travel in messages: newtypes without logic, so that a node cannot be mistaken for a PE.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};

/// An operating-system process of the run. Node 0 is the launcher: it runs the driver and has no PEs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The process that the user started; the driver runs there.
    pub const LAUNCHER: Self = Self(0);

    /// This node's place in a table ordered by node id.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::from(self.0)
    }
}

/// A processing element: one scheduler thread. Numbered from 0 through all nodes, in the order of the nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PeId(pub u32);

impl PeId {
    /// The driver's thread on the launcher: it sends and receives like a PE, but holds no chares.
    pub const DRIVER: Self = Self(u32::MAX);

    /// This PE's place in a table ordered by PE.
    #[must_use]
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

impl fmt::Debug for PeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::DRIVER { f.write_str("driver") } else { write!(f, "PE {}", self.0) }
    }
}

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

/// Bits of the second dimension of a single chare's index: the upper ones of its number, and whether it is a seed.
const SERIAL_HIGH: u32 = 0x7f;
const SEED: u32 = 0x80;

impl ElementIndex {
    /// The single chare that `creator` made as number `serial` of its type on `home`, counted from 0: there is no other
    /// in the run, for 2^24 PEs and 2^39 chares of one creator on one PE.
    #[must_use]
    pub fn of_single(creator: PeId, home: PeId, serial: u64) -> Self {
        let high = (serial >> 32) as u32 & SERIAL_HIGH;
        Self([creator.0, home.0 << 8 | high, (serial & 0xffff_ffff) as u32])
    }

    /// Creator and number of a single chare.
    #[must_use]
    pub fn as_single(self) -> (PeId, u64) {
        let [creator, high, low] = self.0;
        (PeId(creator), u64::from(high & SERIAL_HIGH) << 32 | u64::from(low))
    }

    /// The same single chare as a seed: one that goes to PEs that have nothing to do.
    #[must_use]
    pub fn seed(self) -> Self {
        let [creator, high, low] = self.0;
        Self([creator, high | SEED, low])
    }

    /// Whether a single chare is a seed.
    #[must_use]
    pub fn is_seed(self) -> bool {
        self.0[1] & SEED != 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_chares_differ_by_creator_home_and_number() {
        let mut all = std::collections::BTreeSet::new();
        for (creator, home) in [(0, 0), (0, 1), (1, 0), (u32::MAX, 0), (u32::MAX, 0xff_ffff)] {
            for serial in [0, 1, 255, 256, u64::from(u32::MAX), 1 << 32, (1 << 39) - 1] {
                let index = ElementIndex::of_single(PeId(creator), PeId(home), serial);
                assert_eq!(index.as_single(), (PeId(creator), serial));
                assert!(all.insert(index) && !index.is_seed());
                assert!(all.insert(index.seed()) && index.seed().is_seed());
                assert_eq!(index.seed().as_single(), index.as_single());
            }
        }
    }
}
