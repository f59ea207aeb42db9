//! The other end of a link: its queues, its connections, and what went over it.

use super::lane::Lane;
use super::near::Near;
use crate::ids::NodeId;
use crate::proto::parting::Parting;
use quinn::Connection;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    /// Connections that are open. More than one where both ends have dialled at once.
    pub connections: u32,
    /// QUIC's estimate of the round trip, if the link is up.
    pub round_trip: Option<Duration>,
    /// Bytes that fit into one datagram, if the link is up.
    pub datagram_bytes: Option<u16>,
    /// Whether frames go through memory that both ends share.
    pub is_shared: bool,
}

impl LinkStats {
    /// The sum of two; it has no round trip and no length of datagrams, which belong to single links.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            frames_sent: self.frames_sent + other.frames_sent,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            frames_received: self.frames_received + other.frames_received,
            bytes_received: self.bytes_received + other.bytes_received,
            queued_bytes: self.queued_bytes + other.queued_bytes,
            connections: self.connections + other.connections,
            round_trip: None,
            datagram_bytes: None,
            is_shared: self.is_shared || other.is_shared,
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

    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }
}

/// The other end of a link.
pub(super) struct Peer {
    pub(super) id: NodeId,
    pub(super) lanes: [Lane; 3],
    links: Mutex<Links>,
    /// How often a connection has become doubtful or was closed as idle.
    doubts: AtomicU64,
    /// Told when the first connection or an address to dial has come up, and when one is doubtful no more.
    pub(super) changed: Notify,
    pub(super) is_dialling: tokio::sync::Mutex<()>,
    pub(super) is_served: AtomicBool,
    is_lost: AtomicBool,
    pub(super) sent: Count,
    pub(super) received: Count,
    /// Bytes in all lanes, also those that their tasks have taken and not yet handed to QUIC.
    pub(super) queued_bytes: AtomicU64,
    /// Frames that came by QUIC, of each class.
    pub(super) by_quic: [AtomicU64; 3],
    /// The memory that is shared with it.
    pub(super) near: OnceLock<Arc<Near>>,
}

/// The connections to a peer.
#[derive(Default)]
pub(super) struct Links {
    /// The first is the one on which this node begins the streams of each class.
    pub(super) connections: Vec<Connection>,
    pub(super) parting: Parting,
    /// The two ends share memory, or are about to: then they keep the connection that says who they are, and that they
    /// live.
    is_near: bool,
}

impl Links {
    pub(super) fn has(&self, number: usize) -> bool {
        self.connections.iter().any(|known| known.stable_id() == number)
    }
}

impl Peer {
    pub(super) fn new(id: NodeId) -> Self {
        Self {
            id,
            lanes: Default::default(),
            links: Mutex::default(),
            doubts: AtomicU64::new(0),
            changed: Notify::new(),
            is_dialling: tokio::sync::Mutex::default(),
            is_served: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            sent: Count::default(),
            received: Count::default(),
            queued_bytes: AtomicU64::new(0),
            by_quic: Default::default(),
            near: OnceLock::new(),
        }
    }

    /// Keeps the connection from now on, because memory is going to be shared; false if it is about to be closed, or that
    /// was begun already.
    pub(super) fn begin_near(&self) -> bool {
        let mut links = self.lock();
        let may = !links.is_near && !links.parting.is_asking() && !links.connections.is_empty();
        links.is_near |= may;
        may
    }

    /// No memory is shared after all.
    pub(super) fn give_up_near(&self) {
        self.lock().is_near = false;
    }

    pub(super) fn is_near(&self) -> bool {
        self.lock().is_near
    }

    /// The connection to send on.
    pub(super) fn connection(&self) -> Option<Connection> {
        self.lock().connections.first().cloned()
    }

    /// Adds a connection; false if there are too many.
    pub(super) fn add(&self, connection: &Connection) -> bool {
        let mut links = self.lock();
        let is_welcome = links.connections.len() < CONNECTIONS_MAX;
        if is_welcome {
            links.connections.push(connection.clone());
        }
        drop(links);
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
        for connection in &self.lock().connections {
            connection.close(super::BROKEN, reason);
        }
        self.changed.notify_waiters();
        self.near.get().into_iter().for_each(|near| near.end());
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
            connections: u32::try_from(self.lock().connections.len()).unwrap_or(u32::MAX),
            round_trip: connection.as_ref().map(Connection::rtt),
            datagram_bytes: connection.map(|c| c.stats().path.current_mtu),
            is_shared: self.near.get().is_some_and(|near| !near.is_over()),
        }
    }

    /// Whether this end has asked to close a connection and awaits the answer: until then nothing is sent.
    pub(super) fn is_asking_to_leave(&self) -> bool {
        !self.is_lost() && self.lock().parting.is_asking()
    }

    /// Lanes that send are to look whether they still can.
    pub(super) fn doubt(&self) {
        self.doubts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn doubts(&self) -> u64 {
        self.doubts.load(Ordering::Relaxed)
    }

    /// Whether what follows may go over `connection` as before; waits while that is in question. `seen` is the count of
    /// doubts when that was last known.
    pub(super) async fn keeps(&self, connection: &Connection, seen: &mut u64) -> bool {
        while self.doubts() != *seen {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if !self.is_asking_to_leave() {
                *seen = self.doubts();
                return self.lock().has(connection.stable_id());
            }
            changed.await;
        }
        true
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
