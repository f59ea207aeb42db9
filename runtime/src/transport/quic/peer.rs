//! The other end of a link: its queues, its connections, and what went over it.

use super::lane::Lane;
use crate::ids::NodeId;
use quinn::Connection;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Two come up when both ends dial at once; a few more are a peer that tries again. No honest end has more.
const CONNECTIONS_MAX: usize = 8;
/// Longest reason that travels in the close of a connection: it must fit into one datagram.
const REASON_MAX_BYTES: usize = 500;

/// What went over a link since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Frames taken by [`send`](crate::frame::Fabric::send).
    pub frames_sent: u64,
    /// Bytes of bodies and attachments of these frames.
    pub bytes_sent: u64,
    /// Frames delivered to the receiver.
    pub frames_received: u64,
    /// Bytes of bodies and attachments of these frames.
    pub bytes_received: u64,
    /// Bytes that wait to be taken by QUIC: what the link is behind.
    pub queued_bytes: u64,
    /// QUIC's estimate of the round trip, if the link is up.
    pub round_trip: Option<Duration>,
    /// Bytes that fit into one datagram, if the link is up.
    pub datagram_bytes: Option<u16>,
}

impl LinkStats {
    /// Both together; round trip and datagrams are those of no link.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            frames_sent: self.frames_sent + other.frames_sent,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            frames_received: self.frames_received + other.frames_received,
            bytes_received: self.bytes_received + other.bytes_received,
            queued_bytes: self.queued_bytes + other.queued_bytes,
            round_trip: None,
            datagram_bytes: None,
        }
    }
}

/// Frames and their bytes in one direction.
#[derive(Default)]
pub(super) struct Count {
    frames: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    pub(super) fn add(&self, frames: usize, bytes: usize) {
        self.frames.fetch_add(frames as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The other end of a link.
pub(super) struct Peer {
    pub(super) id: NodeId,
    pub(super) lanes: [Lane; 3],
    /// What this node sends goes over the first.
    connections: Mutex<Vec<Connection>>,
    /// Told when the first connection or an address to dial has come up.
    pub(super) changed: Notify,
    pub(super) is_dialling: tokio::sync::Mutex<()>,
    pub(super) is_served: AtomicBool,
    is_lost: AtomicBool,
    pub(super) sent: Count,
    pub(super) received: Count,
    /// Bytes in all lanes, also those that their tasks have taken and not yet handed to QUIC.
    pub(super) queued_bytes: AtomicU64,
}

impl Peer {
    pub(super) fn new(id: NodeId) -> Self {
        Self {
            id,
            lanes: Default::default(),
            connections: Mutex::default(),
            changed: Notify::new(),
            is_dialling: tokio::sync::Mutex::default(),
            is_served: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            sent: Count::default(),
            received: Count::default(),
            queued_bytes: AtomicU64::new(0),
        }
    }

    /// The connection to send on.
    pub(super) fn connection(&self) -> Option<Connection> {
        self.lock().first().cloned()
    }

    /// Adds a connection; false if there are too many.
    pub(super) fn add(&self, connection: &Connection) -> bool {
        let mut connections = self.lock();
        let is_welcome = connections.len() < CONNECTIONS_MAX;
        if is_welcome {
            connections.push(connection.clone());
        }
        drop(connections);
        self.changed.notify_waiters();
        is_welcome
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Nothing goes to this peer or comes from it any more: false if that was known. The other end is told
    /// why, and what waited for it is dropped.
    pub(super) fn lose(&self, reason: &str) -> bool {
        if self.is_lost.swap(true, Ordering::SeqCst) {
            return false;
        }
        let reason = &reason.as_bytes()[..reason.len().min(REASON_MAX_BYTES)];
        for connection in self.lock().iter() {
            connection.close(super::BROKEN, reason);
        }
        for lane in &self.lanes {
            lane.drop_all(&self.queued_bytes);
        }
        true
    }

    pub(super) fn stats(&self) -> LinkStats {
        let connection = self.connection();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LinkStats {
            frames_sent: read(&self.sent.frames),
            bytes_sent: read(&self.sent.bytes),
            frames_received: read(&self.received.frames),
            bytes_received: read(&self.received.bytes),
            queued_bytes: read(&self.queued_bytes),
            round_trip: connection.as_ref().map(Connection::rtt),
            datagram_bytes: connection.map(|c| c.stats().path.current_mtu),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
