//! Links over QUIC: one connection per pair of nodes, opened on first use and closed when long idle, and on it one
//! stream per class and direction, so that bulk data delays neither small messages nor the runtime's own words.
//!
//! Back-pressure: a receiver stops reading `Small` and `Bulk` while its backlog is over a limit; QUIC's windows then
//! stop the sender's stream, and what the sender's chares go on producing waits in its memory, up to a limit (8 GiB a
//! link by default) past which the run ends with a sentence. No PE ever waits for a link, so backlogs always fall
//! again and there is nothing to deadlock.
//!
//! Nothing here blocks or waits by itself: the tasks run on whatever current-thread runtime called
//! [`QuicFabric::bind`]. How its thread waits for packets, asleep or spinning, is for its owner to decide.
//!
//! There are three streams for each direction of a link (control, small and bulk messages), which live as long as the
//! connection, in place of one stream for each bulk message. Order within a class then needs no further care, and one
//! long-lived stream was measured to be faster than many short ones.
//!
//! Two processes of one host and one user send each other their frames through memory instead, see `near`. The
//! connection stays: it says who they are, and that they live.

mod accept;
mod awake;
mod bottleneck;
mod congestion;
mod door;
mod gather;
mod idle;
mod lane;
mod life;
mod near;
mod peer;
mod settings;

use super::tls::{NodeIdentity, TlsError};
use crate::frame::{Class, Fabric, Frame, Receiver, SendError};
use crate::ids::NodeId;
use crate::progress::Progress;
use crate::size::Size;
use crate::spin::Spin;
use awake::Awake;
use dashmap::DashMap;
use door::Door;
use gather::Gather;
use lane::Lane;
use life::Signs;
use near::Neighbours;
use peer::Peer;
use quinn::{
    AsyncUdpSocket, ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, Runtime as _,
    ServerConfig, TokioRuntime, VarInt,
};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tracing::Instrument as _;

pub use congestion::Congestion;
pub use peer::LinkStats;
pub use settings::{LinkSettings, QuinnParts};

/// Code with which a connection is closed because the run is over at this end.
const ENDED: VarInt = VarInt::from_u32(0);
/// Code for an other end that is not a node that this one talks to.
const UNWANTED: VarInt = VarInt::from_u32(1);
/// Code for a connection that was idle, and that both ends agreed to close.
const IDLE: VarInt = VarInt::from_u32(3);
/// Code for a link that cannot go on, for the reason given.
const BROKEN: VarInt = VarInt::from_u32(2);

/// First byte of a stream that is about closing its connection; others begin with their [`Class`].
const PARTING: u8 = 3;
/// The same for one that offers to share memory.
const NEAR: u8 = 4;
/// How long the last packet to each node, which says that the connection is closed, is repeated for whoever goes on sending
/// because it was lost. QUIC's own measure is three of its timeouts, 15 to 50 ms on one host, which each node would add to
/// the end of each run.
const FAREWELL_ROUND_TRIPS: u32 = 3;
const FAREWELL_MIN: Duration = Duration::from_millis(5);
const FAREWELL_MAX: Duration = Duration::from_millis(200);

/// Why a link or an endpoint does not come up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The socket cannot be opened.
    #[error("the UDP socket cannot be opened: {0}")]
    Socket(#[from] io::Error),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Nobody answers at that address.
    #[error("nobody answered at {0}")]
    NoAnswer(SocketAddr),
    /// The connection did not come up.
    #[error("the connection was not made: {0}")]
    Connection(String),
}

/// The connections of one node.
pub struct QuicFabric {
    /// Itself, for the tasks that a call of `send` starts.
    this: Weak<Self>,
    me: NodeId,
    identity: NodeIdentity,
    endpoint: Endpoint,
    client: ClientConfig,
    receiver: Arc<dyn Receiver>,
    settings: LinkSettings,
    peers: DashMap<NodeId, Arc<Peer>>,
    addresses: RwLock<Vec<Option<SocketAddr>>>,
    runtime: Handle,
    is_closing: AtomicBool,
    door: Arc<Door>,
    socket: Arc<Gather>,
    signs: Arc<Signs>,
    awake: Arc<Awake>,
    progress: OnceLock<Arc<Progress>>,
    neighbours: Neighbours,
    start: Instant,
}

impl fmt::Debug for QuicFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuicFabric of {:?} with {} peers", self.me, self.peers.len())
    }
}

impl Fabric for QuicFabric {
    /// Drops the frame if the link is lost, which was reported, or the fabric is closing.
    fn send(&self, to: NodeId, class: Class, frame: Frame) -> Result<(), SendError> {
        self.settings.frames.check_frame(&frame)?;
        let len_bytes = frame.len_bytes();
        self.put(to, class, len_bytes, |lane, queued| lane.push(frame, queued))
    }

    fn send_small(&self, to: NodeId, body: &[u8]) -> Result<(), SendError> {
        self.settings.frames.check(body.len() as u64, std::iter::empty())?;
        self.put(to, Class::Small, body.len(), |lane, queued| lane.push_body(body, queued, true))
    }

    fn look(&self) -> bool {
        self.look_near()
    }

    fn shares(&self) -> bool {
        self.neighbours.are_any()
    }

    fn tell(&self) {
        self.neighbours.tell();
    }

    fn untold(&self) -> Option<Arc<AtomicBool>> {
        Some(self.neighbours.untold())
    }

    fn begin_looking(&self) {
        self.neighbours.begin_looking();
    }

    fn end_looking(&self, sleeps: bool) {
        self.neighbours.end_looking(sleeps);
    }

    fn sharers(&self) -> Vec<NodeId> {
        self.neighbours.ids()
    }

    fn meets(&self, node: NodeId, address: SocketAddr) {
        let mut addresses = self.addresses.write().unwrap_or_else(PoisonError::into_inner);
        let count = addresses.len().max(node.as_usize() + 1);
        addresses.resize(count, None);
        addresses[node.as_usize()] = Some(address);
    }

    fn progress(&self) -> Option<&Arc<Progress>> {
        self.progress.get()
    }
}

impl QuicFabric {
    /// Opens a port of `address`, listens on it unless the settings say that nobody dials, and connects on demand. Must
    /// be called inside the network thread's runtime.
    ///
    /// # Errors
    /// If the socket or the identity is not usable.
    pub fn bind(
        address: SocketAddr,
        identity: &NodeIdentity,
        me: NodeId,
        receiver: Arc<dyn Receiver>,
        settings: LinkSettings,
    ) -> Result<Arc<Self>, LinkError> {
        let QuinnParts { socket, endpoint, server, client } = settings.quinn(address, identity)?;
        let socket = TokioRuntime.wrap_udp_socket(socket)?;
        Self::bind_on(socket, (endpoint, server, client), identity, me, receiver, settings)
    }

    /// As [`bind`](Self::bind), with a socket that is open already.
    fn bind_on(
        socket: Arc<dyn AsyncUdpSocket>,
        (endpoint, server, client): (EndpointConfig, ServerConfig, ClientConfig),
        identity: &NodeIdentity,
        me: NodeId,
        receiver: Arc<dyn Receiver>,
        settings: LinkSettings,
    ) -> Result<Arc<Self>, LinkError> {
        let server = settings.is_dialled.then_some(server);
        let awake = Awake::start();
        let door = Arc::new(Door::new(identity.secret(), me, settings.is_dialled));
        let signs = Arc::<Signs>::default();
        let socket = Gather::before(socket, Arc::clone(&awake), Arc::clone(&door), Arc::clone(&signs));
        let quic = Arc::clone(&socket) as Arc<dyn AsyncUdpSocket>;
        let endpoint = Endpoint::new_with_abstract_socket(endpoint, server, quic, Arc::new(TokioRuntime))?;
        let fabric = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            me,
            identity: identity.clone(),
            endpoint,
            client,
            receiver,
            settings,
            peers: DashMap::new(),
            addresses: RwLock::default(),
            runtime: Handle::current(),
            is_closing: AtomicBool::new(false),
            door,
            socket,
            signs,
            awake,
            progress: OnceLock::new(),
            neighbours: Neighbours::default(),
            start: Instant::now(),
        });
        if fabric.settings.shares_memory {
            tokio::spawn(near::attend(Weak::clone(&fabric.this)));
        }
        if let Some(idle) = fabric.settings.close_idle_after.filter(|_| fabric.settings.is_dialled) {
            tokio::spawn(idle::close_idle(Weak::clone(&fabric.this), idle));
        }
        tokio::spawn(accept::accept_all(Arc::clone(&fabric)));
        Ok(fabric)
    }

    /// Where this node listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// The network thread stays awake for that long after the last traffic; to be called once. Before, it sleeps as
    /// soon as it can.
    pub fn stay_awake_for(&self, spin: &Arc<Spin>) {
        self.awake.stay_for(spin);
    }

    /// Idle PEs run the tasks of the runtime in which this was bound, which is that of `progress`; to be called once.
    /// Before, its own thread does it alone.
    pub fn share_turns(&self, progress: Arc<Progress>) {
        if self.progress.set(progress).is_err() {
            tracing::error!("a network was told twice who takes turns at it");
        }
    }

    /// Tells where the nodes are, by id; a node without an address is never dialled, it dials us.
    pub fn set_addresses(&self, addresses: Vec<Option<SocketAddr>>) {
        *self.addresses.write().unwrap_or_else(PoisonError::into_inner) = addresses;
        self.peers.iter().for_each(|peer| peer.changed.notify_waiters());
    }

    /// From now on there is no such node, of which nobody else has heard.
    pub fn forget(&self, node: NodeId) {
        if let Some((_, peer)) = self.peers.remove(&node) {
            peer.lose("");
        }
        if let Some(known) =
            self.addresses.write().unwrap_or_else(PoisonError::into_inner).get_mut(node.as_usize())
        {
            *known = None;
        }
    }

    /// Opens the connection to a node.
    ///
    /// # Errors
    /// If the node is not reached or is not who it should be.
    pub async fn connect(self: &Arc<Self>, to: NodeId) -> Result<(), LinkError> {
        let peer = self.peer(to);
        self.connection(&peer).await.map(|_| ())
    }

    /// Datagrams and handshakes of strangers that were turned away.
    #[must_use]
    pub fn strangers(&self) -> u64 {
        self.door.strangers()
    }

    /// What went over the link to `peer`; all zero if there is none.
    #[must_use]
    pub fn stats(&self, peer: NodeId) -> LinkStats {
        self.peers.get(&peer).map_or_else(LinkStats::default, |peer| peer.stats())
    }

    /// What went over all links together.
    #[must_use]
    pub fn total_stats(&self) -> LinkStats {
        self.peers.iter().fold(LinkStats::default(), |sum, peer| sum.plus(peer.stats()))
    }

    /// Sends what is queued, as far as `limit` permits, and closes all connections. What is sent from now on
    /// is dropped; links that break from now on are not reported.
    pub async fn close(&self, limit: Duration) {
        self.is_closing.store(true, Ordering::SeqCst);
        let peers: Vec<Arc<Peer>> = self.peers.iter().map(|p| Arc::clone(&p)).collect();
        let flush = async {
            for peer in peers.iter().filter(|peer| !peer.is_lost()) {
                for lane in &peer.lanes {
                    lane.finish().await;
                }
                self.finish_near(peer).await;
            }
        };
        if tokio::time::timeout(limit, flush).await.is_err() {
            tracing::debug!("{:?} closes with {} unsent", self.me, Size(self.total_stats().queued_bytes));
        }
        let round_trips = peers.iter().filter_map(|peer| peer.stats().round_trip);
        let farthest = round_trips.max().unwrap_or_default();
        self.endpoint.close(ENDED, b"end");
        let farewell = (FAREWELL_ROUND_TRIPS * farthest).clamp(FAREWELL_MIN, FAREWELL_MAX);
        let _ = tokio::time::timeout(farewell, self.endpoint.wait_idle()).await;
    }

    /// Counts a frame of that length and has it put into its lane.
    fn put(
        &self,
        to: NodeId,
        class: Class,
        len_bytes: usize,
        push: impl FnOnce(&Lane, &AtomicU64) -> bool,
    ) -> Result<(), SendError> {
        let peer = self.peer(to);
        if peer.is_lost() || self.is_closing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let queued_bytes = peer.queued_bytes.load(Ordering::Relaxed).saturating_add(len_bytes as u64);
        let limit_bytes = self.settings.send_limit_bytes;
        // Control messages are short, and may be just about this limit.
        if queued_bytes > limit_bytes && class != Class::Control {
            return Err(SendError::Behind { queued_bytes, limit_bytes });
        }
        // The frame is counted before it can leave, because these counts decide whether an idle connection may be
        // closed.
        peer.sent.add(1, len_bytes);
        let lane = &peer.lanes[class as usize];
        if push(lane, &peer.queued_bytes) {
            // Waking a sleeping thread is expensive, so it is done once per batch and not once per frame.
            match self.progress.get() {
                Some(progress) => progress.wake(&lane.filled),
                None => lane.filled.notify_one(),
            }
        }
        if lane.lacks_room() {
            self.neighbours.lacks_room();
        }
        self.serve(&peer);
        Ok(())
    }

    fn node_count(&self) -> u16 {
        let count = self.addresses.read().unwrap_or_else(PoisonError::into_inner).len();
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    fn peer(&self, id: NodeId) -> Arc<Peer> {
        // Nearly always the peer is in the table, and looking it up holds up nobody else who does so.
        if let Some(peer) = self.peers.get(&id) {
            return Arc::clone(&peer);
        }
        Arc::clone(&self.peers.entry(id).or_insert_with(|| Arc::new(Peer::new(id))))
    }

    /// Starts the tasks that empty the lanes to a peer, once. They dial when there is something to send.
    fn serve(&self, peer: &Arc<Peer>) {
        if peer.is_served.load(Ordering::Relaxed) || peer.is_served.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        for class in [Class::Control, Class::Small, Class::Large] {
            let (fabric, peer) = (Arc::clone(&this), Arc::clone(peer));
            self.runtime.spawn(async move { lane::empty(&fabric, &peer, class).await });
        }
    }

    /// The connection to a peer; dials if there is none and the peer can be dialled.
    async fn connection(self: &Arc<Self>, peer: &Arc<Peer>) -> Result<Connection, LinkError> {
        loop {
            let mut changed = pin!(peer.changed.notified());
            // No change is missed from here on.
            changed.as_mut().enable();
            if peer.is_asking_to_leave() {
                changed.await;
                continue;
            }
            if let Some(connection) = peer.connection() {
                return Ok(connection);
            }
            let Some(address) = self.address(peer.id) else {
                changed.await;
                continue;
            };
            let _only_one = peer.is_dialling.lock().await;
            if let Some(connection) = peer.connection() {
                return Ok(connection);
            }
            return match self.dial(peer.id, address).await {
                Ok(connection) => {
                    self.establish(peer, &connection);
                    Ok(connection)
                }
                // The peer may have reached this node while this node did not reach it.
                Err(error) => peer.connection().ok_or(error),
            };
        }
    }

    async fn dial(&self, to: NodeId, address: SocketAddr) -> Result<Connection, LinkError> {
        let name = self.identity.name_of(to);
        let (mut client, knock) = (self.client.clone(), self.door.knock(to));
        client.initial_dst_cid_provider(Arc::new(move || knock));
        self.door.open_to(address);
        let dialled = self.endpoint.connect_with(client, address, &name);
        let connecting = dialled.map_err(|e| LinkError::Connection(e.to_string()))?;
        match tokio::time::timeout(self.settings.idle_timeout, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Err(_) | Ok(Err(ConnectionError::TimedOut)) => Err(LinkError::NoAnswer(address)),
            Ok(Err(error)) => Err(LinkError::Connection(end(&error))),
        }
    }

    fn address(&self, id: NodeId) -> Option<SocketAddr> {
        let addresses = self.addresses.read().unwrap_or_else(PoisonError::into_inner);
        addresses.get(id.as_usize()).copied().flatten()
    }

    /// A connection to a peer is up, dialled or accepted: read what it brings, send on it if it is the first.
    fn establish(self: &Arc<Self>, peer: &Arc<Peer>, connection: &Connection) {
        if peer.is_lost() || !peer.add(connection) {
            return connection.close(UNWANTED, b"this link was lost, or has too many connections");
        }
        let (from, to) = (self.me.0, peer.id.0);
        let span = tracing::info_span!(parent: None, "connection", from, to);
        tracing::info!(parent: &span, "up, with round trips of {:?}", connection.rtt());
        let (fabric, peer, connection) = (Arc::clone(self), Arc::clone(peer), connection.clone());
        let watched = life::watch(Arc::clone(self), Arc::clone(&peer), connection.clone());
        self.runtime.spawn(watched.instrument(span.clone()));
        // One of the two offers, and the other brings the memory.
        if fabric.settings.shares_memory && from < to {
            let offer = near::offer(Arc::clone(&fabric), Arc::clone(&peer), connection.clone());
            self.runtime.spawn(offer.instrument(span.clone()));
        }
        let reads = async move { accept::read_all(&fabric, &peer, &connection).await };
        self.runtime.spawn(reads.instrument(span));
    }

    /// Reports a broken link, once, and is done with it.
    fn lost(&self, peer: &Peer, reason: String) {
        if !self.is_closing.load(Ordering::SeqCst) && peer.lose(&reason) {
            self.receiver.link_lost(peer.id, reason);
        }
    }
}

/// Why a connection is over, for people.
fn end(error: &ConnectionError) -> String {
    match error {
        ConnectionError::TimedOut => "it gave signs of life, but nothing else came through".into(),
        ConnectionError::ApplicationClosed(close) => {
            // A node of the run said this, but it ends up on a terminal.
            let reason = String::from_utf8_lossy(&close.reason);
            format!("it gave the link up: {}", reason.replace(char::is_control, " "))
        }
        ConnectionError::Reset => "its process is another one than before".into(),
        ConnectionError::LocallyClosed => "the link was closed here".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
