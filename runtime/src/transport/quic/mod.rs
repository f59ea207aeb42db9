//! Links over QUIC: one connection per pair of nodes, opened on first use, and on it one stream per class
//! and direction, so that bulk data delays neither small messages nor the runtime's own words.
//!
//! Back-pressure: a receiver stops reading `Small` and `Bulk` while its backlog is over a limit; QUIC's
//! windows then stop the sender's stream, and what the sender's chares go on producing waits in its memory,
//! up to a limit past which the run ends with a sentence. No PE ever waits for a link, so backlogs always
//! fall again and there is nothing to deadlock.

mod accept;
mod lane;
mod settings;

use super::tls::{NodeIdentity, TlsError};
use crate::frame::{Class, Fabric, Frame, Receiver};
use crate::ids::NodeId;
use dashmap::DashMap;
use lane::Lane;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, TokioRuntime, VarInt};
pub use settings::LinkSettings;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Why a link or an endpoint does not come up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The socket.
    #[error("the UDP socket cannot be opened: {0}")]
    Socket(#[from] io::Error),
    /// The certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Nobody said where the node is.
    #[error("the address of {0:?} is not known")]
    NoAddress(NodeId),
    /// The connection did not come up.
    #[error("the connection was not made: {0}")]
    Connection(String),
}

/// The connections of one node.
pub struct QuicFabric {
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
    strangers: AtomicU64,
}

impl fmt::Debug for QuicFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuicFabric of {:?} with {} peers", self.me, self.peers.len())
    }
}

/// The other end of a link.
struct Peer {
    id: NodeId,
    lanes: [Lane; 3],
    connection: Mutex<Option<Connection>>,
    /// Told when `connection` is set.
    established: Notify,
    is_dialling: tokio::sync::Mutex<()>,
    is_served: AtomicBool,
    is_lost: AtomicBool,
}

impl Fabric for QuicFabric {
    fn send(&self, to: NodeId, class: Class, frame: Frame) {
        let peer = self.peer(to);
        let queued = peer.lanes[class as usize].push(frame);
        if queued > self.settings.send_limit_bytes {
            let gib = queued as f64 / f64::from(1 << 30);
            self.lost(
                &peer,
                format!("{gib:.1} GiB wait to be sent to it: this node produces faster than it takes"),
            );
        }
    }
}

impl QuicFabric {
    /// Listens on `address` and connects on demand. Must be called inside the network thread's runtime.
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
        let (client, server) = identity.configs()?;
        let socket = settings.socket(address)?;
        let server = settings.server(server);
        let runtime = Arc::new(TokioRuntime);
        let endpoint = Endpoint::new(settings.endpoint(), Some(server), socket, runtime)?;
        let client: Arc<QuicClientConfig> = Arc::new(client);
        let mut client = ClientConfig::new(client);
        client.transport_config(settings.transport());
        let fabric = Arc::new(Self {
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
            strangers: AtomicU64::new(0),
        });
        tokio::spawn(accept::accept_all(Arc::clone(&fabric)));
        Ok(fabric)
    }

    /// Where this node listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Tells where the nodes are, by id; a node without an address is never dialled, it dials us.
    pub fn set_addresses(self: &Arc<Self>, addresses: Vec<Option<SocketAddr>>) {
        *self.addresses.write().unwrap_or_else(PoisonError::into_inner) = addresses;
        let count = self.node_count();
        for id in (0..count).map(NodeId).filter(|id| *id != self.me) {
            let peer = self.peer(id);
            self.serve(&peer);
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

    /// Handshakes of strangers that were turned away.
    #[must_use]
    pub fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }

    /// Sends what is queued, as far as `limit` permits, and closes all connections. Links that break from
    /// now on are not reported.
    pub async fn close(self: &Arc<Self>, limit: Duration) {
        self.is_closing.store(true, Ordering::SeqCst);
        let peers: Vec<Arc<Peer>> = self.peers.iter().map(|p| Arc::clone(&p)).collect();
        let flush = async {
            for lane in peers.iter().flat_map(|p| &p.lanes) {
                lane.finish().await;
            }
        };
        let _ = tokio::time::timeout(limit, flush).await;
        self.endpoint.close(VarInt::from_u32(0), b"end");
        let _ = tokio::time::timeout(Duration::from_millis(200), self.endpoint.wait_idle()).await;
    }

    fn node_count(&self) -> u16 {
        let count = self.addresses.read().unwrap_or_else(PoisonError::into_inner).len();
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    fn peer(&self, id: NodeId) -> Arc<Peer> {
        let make = || {
            Arc::new(Peer {
                id,
                lanes: [Lane::default(), Lane::default(), Lane::default()],
                connection: Mutex::default(),
                established: Notify::new(),
                is_dialling: tokio::sync::Mutex::default(),
                is_served: AtomicBool::new(false),
                is_lost: AtomicBool::new(false),
            })
        };
        Arc::clone(&self.peers.entry(id).or_insert_with(make))
    }

    /// Starts the tasks that empty the lanes to a peer, once. They dial when there is something to send.
    fn serve(self: &Arc<Self>, peer: &Arc<Peer>) {
        if peer.is_served.swap(true, Ordering::SeqCst) {
            return;
        }
        for class in [Class::Control, Class::Small, Class::Bulk] {
            let (fabric, peer) = (Arc::clone(self), Arc::clone(peer));
            self.runtime.spawn(async move { lane::empty(&fabric, &peer, class).await });
        }
    }

    /// The connection to a peer; dials if there is none and the peer can be dialled.
    async fn connection(self: &Arc<Self>, peer: &Arc<Peer>) -> Result<Connection, LinkError> {
        loop {
            if let Some(connection) = peer.current() {
                return Ok(connection);
            }
            let established = peer.established.notified();
            let address = self.address(peer.id);
            let Some(address) = address else {
                established.await;
                continue;
            };
            let _only_one = peer.is_dialling.lock().await;
            if let Some(connection) = peer.current() {
                return Ok(connection);
            }
            let name = self.identity.name_of(peer.id);
            let failed = |error: &dyn fmt::Display| LinkError::Connection(error.to_string());
            let dialled = self.endpoint.connect_with(self.client.clone(), address, &name);
            let connection = dialled.map_err(|e| failed(&e))?.await.map_err(|e| failed(&e))?;
            self.establish(peer, &connection);
            return Ok(connection);
        }
    }

    fn address(&self, id: NodeId) -> Option<SocketAddr> {
        let addresses = self.addresses.read().unwrap_or_else(PoisonError::into_inner);
        addresses.get(id.as_usize()).copied().flatten()
    }

    /// A connection to a peer is up, dialled or accepted: read what it brings, send on it if it is the first.
    fn establish(self: &Arc<Self>, peer: &Arc<Peer>, connection: &Connection) {
        peer.lock().get_or_insert_with(|| connection.clone());
        peer.established.notify_waiters();
        self.serve(peer);
        let (fabric, peer, connection) = (Arc::clone(self), Arc::clone(peer), connection.clone());
        self.runtime.spawn(async move { accept::read_all(&fabric, &peer, &connection).await });
    }

    /// Reports a broken link, once.
    fn lost(&self, peer: &Peer, reason: String) {
        let is_news = !peer.is_lost.swap(true, Ordering::SeqCst);
        if is_news && !self.is_closing.load(Ordering::SeqCst) {
            self.receiver.link_lost(peer.id, reason);
        }
    }
}

impl Peer {
    fn current(&self) -> Option<Connection> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
