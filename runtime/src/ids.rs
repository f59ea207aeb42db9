//! Identities that travel in messages: newtypes without logic, so that a node cannot be mistaken for a PE.

use serde::{Deserialize, Serialize};
use std::fmt;

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
