//! The classes of traffic between nodes, which protocols and links have in common.

use serde::{Deserialize, Serialize};

/// Class of traffic. Order holds inside a class between two nodes, never across classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// What the runtime itself says. It is always read, and never held back by a receiver that is behind.
    Control,
    /// Messages below [`LARGE_BYTES`](crate::frame::LARGE_BYTES); several of them may share a packet.
    Small,
    /// Big messages: lower priority, so that they delay nothing.
    Large,
}
