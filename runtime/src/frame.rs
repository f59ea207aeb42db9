//! The unit that links carry between nodes, and the two sides of a link.

use crate::buffer::Buffer;
use crate::ids::NodeId;
use bytes::Bytes;

/// Class of traffic. Order holds inside a class between two nodes, never across classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The runtime's own words: always read, never held back.
    Control,
    /// Messages below [`BULK_BYTES`]: coalesced.
    Small,
    /// Big messages: lower priority, so that they delay nothing.
    Bulk,
}

/// From this many bytes on a message travels as [`Class::Bulk`].
pub const BULK_BYTES: usize = 16 * 1024;

/// Bytes for one other node: an encoded header and body, and bulk buffers that ride along uncopied.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Encoded by the codec; small.
    pub body: Bytes,
    /// Numeric data, little-endian.
    pub attachments: Vec<Buffer>,
}

impl Frame {
    /// Bytes of body and attachments.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.body.len() + self.attachments.iter().map(Buffer::len).sum::<usize>()
    }
}

/// The sending side: what connects this node with all others.
pub trait Fabric: Send + Sync {
    /// Queues `frame` for `to` and returns at once; opens the connection if there is none yet.
    ///
    /// Frames of one class to one node arrive in the order of these calls, or the link is reported lost.
    fn send(&self, to: NodeId, class: Class, frame: Frame);
}

/// The receiving side: what a node does with what links bring. Called on the network thread; must not block.
pub trait Receiver: Send + Sync {
    /// A whole frame arrived.
    fn receive(&self, from: NodeId, class: Class, frame: Frame);

    /// Bytes delivered by `receive` that no PE has taken yet. While it is above the node's limit the links
    /// stop reading `Small` and `Bulk` (QUIC's flow control then holds the sender back); PEs never wait for
    /// links, so the backlog always falls again and nothing can deadlock.
    fn backlog_bytes(&self) -> u64;

    /// The link to `peer` broke and will not come back.
    fn link_lost(&self, peer: NodeId, reason: String);
}
