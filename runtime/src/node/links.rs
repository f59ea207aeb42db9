//! What leaves a node and comes to it by links, counted.

use crate::codec::{Header, encode_in};
use crate::envelope::Packed;
use crate::frame::{Class, Fabric, SendError};
use crate::ids::NodeId;
use crate::monitor::profile::SentTo;
use crate::pe::tally::LATER_NODES;
use crate::progress::Progress;
use crate::proto::snapshot::Colour;
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
    messages: [AtomicU64; COLOURS],
    bytes: AtomicU64,
}

/// Messages are counted by their colours, and those that have none.
const COLOURS: usize = 3;
/// How many of each colour.
pub(super) type ByColour = [u64; COLOURS];

/// Where those of a colour are counted.
pub(super) fn place_of(colour: Option<Colour>) -> usize {
    colour.map_or(COLOURS - 1, |colour| colour as usize)
}

impl Traffic {
    fn add(&self, colour: usize, messages: u64, bytes: u64) {
        self.messages[colour].fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Messages and bytes so far.
    pub(super) fn read(&self) -> (u64, u64) {
        let messages = self.messages.iter().map(|one| one.load(Ordering::Relaxed)).sum();
        (messages, self.bytes.load(Ordering::Relaxed))
    }

    fn messages_of(&self, colour: Colour) -> u64 {
        // What was counted before is seen by who hears of anything that came later.
        self.messages[colour as usize].load(Ordering::SeqCst)
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
        (to, colour): (NodeId, Option<Colour>),
        header: &H,
        payload: Packed,
    ) -> (u64, Result<(), SendError>) {
        debug_assert_eq!(to == NodeId::LAUNCHER, H::IS_FOR_LAUNCHER, "{header:?} is not for {to:?}");
        let Some(fabric) = self.fabric(to) else { return (0, Ok(())) };
        let class = H::class(payload.len_bytes());
        let frame = encode_in(colour, header, payload);
        let bytes = frame.len_bytes() as u64;
        if class != Class::Control
            && let Some(sent) = self.sent.get(usize::from(to.0)).or(self.sent.last())
        {
            sent.add(place_of(colour), 1, bytes);
        }
        (bytes, fabric.send(to, class, frame))
    }

    /// The same for a frame of class [`Class::Small`] that is nothing but `body`. Whoever sends counts it in his account,
    /// so that PEs do not wait for each other.
    pub(super) fn send_small(&self, to: NodeId, body: &[u8]) -> Result<(), SendError> {
        self.fabric(to).map_or(Ok(()), |fabric| fabric.send_small(to, body))
    }

    /// Counts frames of a class that have arrived.
    pub(super) fn received(&self, class: Class, frames: ByColour, bytes: u64) {
        if class == Class::Control {
            return;
        }
        self.received.bytes.fetch_add(bytes, Ordering::Relaxed);
        for (counted, frames) in self.received.messages.iter().zip(frames).filter(|(_, frames)| *frames > 0) {
            counted.fetch_add(frames, Ordering::SeqCst);
        }
    }

    /// Frames of a colour that have left, but for those that who sent them has counted, and that have arrived.
    pub(super) fn carried(&self, colour: Colour) -> (u64, u64) {
        // In this order, so that whatever what came has caused to be sent is among what left.
        let received = self.received.messages_of(colour);
        (self.sent.iter().map(|sent| sent.messages_of(colour)).sum(), received)
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
