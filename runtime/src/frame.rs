//! The unit that links carry between nodes, its limits, and the two sides of a link.

pub use crate::class::Class;

use crate::buffer::Buffer;
use crate::ids::NodeId;
use crate::progress::Progress;
use crate::size::Size;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// From this many bytes on a message travels as [`Class::Large`].
pub const LARGE_BYTES: usize = 16 * 1024;

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

/// How long one message to another node may be, by default 4 GiB in up to 65,535 buffers and 64 MiB beside them.
/// Nothing limits messages inside a node.
///
/// Both ends hold to it: a message that is over a limit ends the run, which names it, its receiver and the limit;
/// a stream that announces one cannot be read any further, and its link is given up.
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits {
    /// Longest body: everything but buffers, and what the runtime adds. Default 64 MiB, at most 4 GiB.
    pub body_bytes: u64,
    /// Longest sum of body and attachments. Default 4 GiB.
    pub frame_bytes: u64,
    /// Most attachments. Default 65,535: as many as two bytes count.
    pub attachments: u16,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self { body_bytes: 64 << 20, frame_bytes: 4 << 30, attachments: u16::MAX }
    }
}

impl FrameLimits {
    /// Whether a frame with these lengths is within the limits.
    ///
    /// # Errors
    /// The first limit that the lengths break.
    pub(crate) fn check(
        &self,
        body: u64,
        attachments: impl ExactSizeIterator<Item = u64>,
    ) -> Result<(), FramingError> {
        // Its length travels in 4 bytes.
        let limit = self.body_bytes.min(u64::from(u32::MAX));
        if body > limit {
            return Err(FramingError::Body { bytes: body, limit });
        }
        let (count, limit) = (attachments.len(), self.attachments);
        if count > usize::from(limit) {
            return Err(FramingError::Attachments { count, limit });
        }
        let bytes = attachments.fold(body, u64::saturating_add);
        if bytes > self.frame_bytes {
            return Err(FramingError::Frame { bytes, limit: self.frame_bytes });
        }
        Ok(())
    }

    /// Whether `frame` is within the limits.
    ///
    /// # Errors
    /// The first limit that the frame breaks.
    pub fn check_frame(&self, frame: &Frame) -> Result<(), FramingError> {
        self.check(frame.body.len() as u64, frame.attachments.iter().map(|a| a.len() as u64))
    }
}

/// Which limit a frame breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FramingError {
    /// Its body is too long.
    #[error(
        "it has {} beside its buffers, over the limit of {}; put numbers into bulk arrays, or send \
         it in parts",
        Size(*bytes), Size(*limit)
    )]
    Body {
        /// Length of the body, or the length that was announced.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// It has too many attachments.
    #[error("it has {count} buffers, over the limit of {limit}; send it in parts")]
    Attachments {
        /// Count of attachments, or the count that was announced.
        count: usize,
        /// The limit.
        limit: u16,
    },
    /// All of it is too long.
    #[error("it has {}, over the limit of {}; send it in parts", Size(*bytes), Size(*limit))]
    Frame {
        /// Length of the frame, or the length that was announced; `u64::MAX` for anything longer.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

/// Why a frame was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No link takes it.
    #[error(transparent)]
    Limit(#[from] FramingError),
    /// The other node is too far behind.
    #[error(
        "{} would wait for it then, over the limit of {}; it takes more slowly than this node produces, so send less \
         at a time, or wait for answers",
        Size(*queued_bytes), Size(*limit_bytes)
    )]
    Behind {
        /// Bytes that wait for the other node, this frame included.
        queued_bytes: u64,
        /// The limit of a link.
        limit_bytes: u64,
    },
}

/// The sending side: what connects this node with all others.
pub trait Fabric: Send + Sync {
    /// Queues `frame` for `to` and returns at once; opens the connection if there is none yet.
    ///
    /// Frames of one class to one node arrive in the order of these calls, or the link is reported lost.
    ///
    /// # Errors
    /// If the frame is over a limit; it is dropped, and nothing after it can be relied upon.
    fn send(&self, to: NodeId, class: Class, frame: Frame) -> Result<(), SendError>;

    /// As [`send`](Self::send), for a frame of class [`Class::Small`] without attachments: copied, and not kept. Where many
    /// follow each other, some may wait for the next, for [`tell`](Self::tell), or for a millisecond or two.
    ///
    /// # Errors
    /// As those of `send`.
    fn send_small(&self, to: NodeId, body: &[u8]) -> Result<(), SendError> {
        self.send(to, Class::Small, Frame { body: Bytes::copy_from_slice(body), attachments: Vec::new() })
    }

    /// Delivers what other processes have put into memory that they share with this one, and puts in what waits for them;
    /// whether there was anything. Any thread may call this at any time; it calls the receiver.
    fn look(&self) -> bool {
        false
    }

    /// Lets others have what waits for more to be sent. [`look`](Self::look) does that as well.
    fn tell(&self) {}

    /// True while something so waits.
    fn untold(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    /// Whether there is any such process.
    fn shares(&self) -> bool {
        false
    }

    /// The calling thread is going to [`look`](Self::look) over and over.
    fn begin_looking(&self) {}

    /// It does so no longer, because it works again, or because it sleeps.
    fn end_looking(&self, _sleeps: bool) {}

    /// The nodes that this one shares memory with.
    fn sharers(&self) -> Vec<NodeId> {
        Vec::new()
    }

    /// From now on there is such a node, which listens there.
    fn meets(&self, _node: NodeId, _address: SocketAddr) {}

    /// Where idle PEs can take turns at the network; `None` if its own thread does all.
    fn progress(&self) -> Option<&Arc<Progress>> {
        None
    }
}

/// The receiving side: what a node does with what links bring. Called by whoever runs the network's tasks or
/// [looks](Fabric::look), for a class of a peer by one at a time; must not block.
pub trait Receiver: Send + Sync {
    /// A whole frame arrived.
    fn receive(&self, from: NodeId, class: Class, frame: Frame);

    /// Whole frames arrived, in this order; takes all of them out of `frames`. What need only be done once for many
    /// frames is done once.
    fn receive_all(&self, from: NodeId, class: Class, frames: &mut Vec<Frame>) {
        frames.drain(..).for_each(|frame| self.receive(from, class, frame));
    }

    /// Bytes delivered by `receive` that no PE has taken yet. While it is above the node's limit the links
    /// stop reading `Small` and `Bulk` (QUIC's flow control then holds the sender back); PEs never wait for
    /// links, so the backlog always falls again and nothing can deadlock.
    fn backlog_bytes(&self) -> u64;

    /// The link to `peer` broke and will not come back.
    fn link_lost(&self, peer: NodeId, reason: String);
}
