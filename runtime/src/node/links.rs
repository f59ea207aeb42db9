//! What leaves a node and comes to it by links, counted.

use crate::codec::{Header, encode};
use crate::envelope::Packed;
use crate::frame::{Class, Fabric, SendError};
use crate::ids::NodeId;
use crate::monitor::profile::SentTo;
use crate::pe::tally::LATER_NODES;
use crate::progress::Progress;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The links of a node to all others.
pub(super) struct Links {
    fabric: OnceLock<Arc<dyn Fabric>>,
    /// By node.
    sent: Box<[Traffic]>,
    received: Traffic,
    peak: Peak,
}

/// The most that has come in a stretch of time.
#[derive(Debug, Default)]
struct Peak {
    /// Bytes that had come when it was looked last.
    bytes: AtomicU64,
    bytes_per_s: AtomicU64,
}

/// Messages and bytes. Their own cache lines keep them apart from what PEs read for each message.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    fn add(&self, messages: u64, bytes: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Messages and bytes so far.
    pub(super) fn read(&self) -> (u64, u64) {
        (self.messages.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Links(sent {:?}, received {:?})", self.sent_to(), self.received.read())
    }
}

impl Links {
    /// Links of which nothing has left for so many nodes.
    pub(super) fn new(node_count: u16) -> Self {
        Self {
            fabric: OnceLock::new(),
            sent: (0..node_count.saturating_add(LATER_NODES)).map(|_| Traffic::default()).collect(),
            received: Traffic::default(),
            peak: Peak::default(),
        }
    }

    /// From now on frames go this way; once, before anything is sent.
    pub(super) fn connect(&self, fabric: Arc<dyn Fabric>) {
        if self.fabric.set(fabric).is_err() {
            tracing::error!("a node was connected twice");
        }
    }

    /// Where idle PEs take turns at the network, if they do.
    pub(super) fn progress(&self) -> Option<&Arc<Progress>> {
        self.fabric.get().and_then(|fabric| fabric.progress())
    }

    /// Hands a message to the fabric and counts it; its bytes.
    pub(super) fn send<H: Header>(
        &self,
        to: NodeId,
        header: &H,
        payload: Packed,
    ) -> (u64, Result<(), SendError>) {
        debug_assert_eq!(to == NodeId::LAUNCHER, H::IS_FOR_LAUNCHER, "{header:?} is not for {to:?}");
        let Some(fabric) = self.fabric(to) else { return (0, Ok(())) };
        let class = H::class(payload.len_bytes());
        let frame = encode(header, payload);
        let bytes = frame.len_bytes() as u64;
        if class != Class::Control
            && let Some(sent) = self.sent.get(usize::from(to.0)).or(self.sent.last())
        {
            sent.add(1, bytes);
        }
        (bytes, fabric.send(to, class, frame))
    }

    /// The same for a frame of class [`Class::Small`] that is nothing but `body`. Whoever sends counts it in his account,
    /// so that PEs do not wait for each other.
    pub(super) fn send_small(&self, to: NodeId, body: &[u8]) -> Result<(), SendError> {
        self.fabric(to).map_or(Ok(()), |fabric| fabric.send_small(to, body))
    }

    /// Counts frames of a class that have arrived.
    pub(super) fn received(&self, class: Class, frames: usize, bytes: u64) {
        if class != Class::Control {
            self.received.add(frames as u64, bytes);
        }
    }

    /// What was sent to each node and not counted by who sent it.
    pub(super) fn sent_to(&self) -> Vec<SentTo> {
        let sent = (0..).zip(&self.sent).map(|(node, sent)| (node, sent.read()));
        sent.map(|(node, (messages, bytes))| SentTo { node, messages, bytes }).collect()
    }

    /// Messages and bytes that were received.
    pub(super) fn total_received(&self) -> (u64, u64) {
        self.received.read()
    }

    /// The most bytes per second that have come in the time between two calls, of which the last was `since_ns` ago.
    pub(super) fn most_received(&self, since_ns: u64) -> f64 {
        let (_, bytes) = self.received.read();
        let came = bytes.saturating_sub(self.peak.bytes.swap(bytes, Ordering::Relaxed));
        let rate = came as f64 / (since_ns.max(1) as f64 / 1e9);
        self.peak.bytes_per_s.fetch_max(rate as u64, Ordering::Relaxed).max(rate as u64) as f64
    }

    /// What carries frames, once there is something.
    pub(super) fn any_fabric(&self) -> Option<&Arc<dyn Fabric>> {
        self.fabric.get()
    }

    fn fabric(&self, to: NodeId) -> Option<&Arc<dyn Fabric>> {
        let fabric = self.fabric.get();
        if fabric.is_none() {
            tracing::error!("something is sent to {to:?} before there are links");
        }
        fabric
    }
}
