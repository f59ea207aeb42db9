//! Who is let in, and reading what they bring.

use super::peer::Peer;
use super::{ENDED, IDLE, LinkSettings, PARTING, QuicFabric, UNWANTED, end};
use crate::frame::{Class, Frame};
use crate::ids::NodeId;
use crate::proto::parting::PartingWord;
use crate::transport::framing::Decoder;
use bytes::Bytes;
use quinn::{Connection, ConnectionError, Incoming, ReadError, ReadExactError, ReadToEndError, RecvStream};
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a reader that is held back looks whether the backlog has fallen.
const HOLD: Duration = Duration::from_millis(1);
/// Most chunks taken from a stream at once; a chunk is what came in one packet.
const CHUNKS: usize = 64;

/// Accepts connections until the endpoint closes. Strangers cost a handshake each at most: many at once
/// must first prove their address, which costs the node nothing, and too many are not heard. The run's own
/// nodes are not among them: whoever dials from the address of one is counted apart.
pub(super) async fn accept_all(fabric: Arc<QuicFabric>) {
    let (strangers, nodes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    while let Some(incoming) = fabric.endpoint.accept().await {
        let is_node = fabric.is_address_of_node(incoming.remote_address());
        let open = if is_node { &nodes } else { &strangers };
        match judge(
            &fabric.settings,
            is_node,
            incoming.remote_address_validated(),
            open.load(Ordering::Relaxed),
        ) {
            Verdict::Ignore => incoming.ignore(),
            Verdict::Prove => {
                // Fails only for addresses that have proven themselves already.
                let _ = incoming.retry();
            }
            Verdict::Admit => {
                open.fetch_add(1, Ordering::Relaxed);
                let (fabric, open) = (Arc::clone(&fabric), Arc::clone(open));
                tokio::spawn(async move {
                    if let Err(reason) = admit(&fabric, incoming).await {
                        fabric.strangers.fetch_add(1, Ordering::Relaxed);
                        tracing::debug!("a connection was turned away: {reason}");
                    }
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        }
    }
}

/// What becomes of a dial.
enum Verdict {
    Admit,
    /// It must show first that it comes from where it says.
    Prove,
    Ignore,
}

/// `open` is how many of its kind have a handshake under way.
fn judge(settings: &LinkSettings, is_node: bool, is_proven: bool, open: usize) -> Verdict {
    if is_node && is_proven {
        // Nobody else can say so, and a node does not dial without end.
        Verdict::Admit
    } else if !is_node && open >= 4 * settings.handshakes {
        Verdict::Ignore
    } else if !is_proven && open >= settings.handshakes {
        Verdict::Prove
    } else {
        Verdict::Admit
    }
}

async fn admit(fabric: &Arc<QuicFabric>, incoming: Incoming) -> Result<(), String> {
    let limit = fabric.settings.handshake_limit;
    let connection = tokio::time::timeout(limit, incoming)
        .await
        .map_err(|_| "its handshake took too long".to_string())?
        .map_err(|e| e.to_string())?;
    let Some(node) = identify(fabric, &connection) else {
        connection.close(UNWANTED, b"not a node of this run");
        return Err("its certificate names no node of this run".into());
    };
    fabric.establish(&fabric.peer(node), &connection);
    Ok(())
}

/// The node of the run that a connection's verified certificate names. Before the table of nodes is known
/// every node that the launcher made a certificate for is let in.
fn identify(fabric: &QuicFabric, connection: &Connection) -> Option<NodeId> {
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    let node = fabric.identity.node_of(chain.first()?)?;
    let count = fabric.node_count();
    (node != fabric.me && (count == 0 || node.0 < count)).then_some(node)
}

/// Reads all streams of a connection until it closes.
pub(super) async fn read_all(fabric: &Arc<QuicFabric>, peer: &Arc<Peer>, connection: &Connection) {
    let closed = loop {
        match connection.accept_uni().await {
            Ok(stream) => {
                let (fabric, peer, connection) = (Arc::clone(fabric), Arc::clone(peer), connection.clone());
                tokio::spawn(async move {
                    if let Err(reason) = read(&fabric, &peer, &connection, stream).await {
                        fabric.lost(&peer, reason);
                    }
                });
            }
            Err(closed) => break closed,
        }
    };
    match closed {
        // This and the next say that the run is over there.
        ConnectionError::LocallyClosed => {}
        // What waits for it has nowhere to go.
        ConnectionError::ApplicationClosed(close) if close.error_code == ENDED => drop(peer.lose("")),
        ConnectionError::ApplicationClosed(close)
            if close.error_code == IDLE && peer.has_agreed_to_end(connection) => {}
        // Of a close that was agreed this end may hear no more than silence.
        ConnectionError::TimedOut | ConnectionError::Reset if peer.has_agreed_to_end(connection) => {}
        other => fabric.lost(peer, end(&other, &fabric.settings)),
    }
}

async fn read(
    fabric: &Arc<QuicFabric>,
    peer: &Arc<Peer>,
    connection: &Connection,
    mut stream: RecvStream,
) -> Result<(), String> {
    let mut class = [0];
    match stream.read_exact(&mut class).await {
        // `read_all` sees the end of the connection and says what it means.
        Err(ReadExactError::ReadError(ReadError::ConnectionLost(_))) => return Ok(()),
        other => other.map_err(|e| format!("{:?} opened a stream and said nothing: {e}", peer.id))?,
    }
    let class = match class[0] {
        0 => Class::Control,
        1 => Class::Small,
        2 => Class::Bulk,
        PARTING => {
            return match stream.read_to_end(PartingWord::BYTES_MAX).await {
                Ok(word) => fabric.take_parting(peer, connection, &word),
                Err(ReadToEndError::Read(ReadError::ConnectionLost(_))) => Ok(()),
                Err(error) => {
                    Err(format!("{:?} said something about leaving that is not read: {error}", peer.id))
                }
            };
        }
        other => return Err(format!("{:?} opened a stream of unknown class {other}", peer.id)),
    };
    let mut frames: Vec<Frame> = Vec::new();
    let mut decoder = Decoder::new(fabric.settings.frames);
    let mut chunks = [const { Bytes::new() }; CHUNKS];
    loop {
        while class != Class::Control && is_behind(fabric) {
            tokio::time::sleep(HOLD).await;
        }
        match stream.read_chunks(&mut chunks).await {
            Ok(Some(count)) => {
                let arrived = chunks.iter_mut().take(count).map(std::mem::take);
                let taken = arrived.map(|chunk| decoder.take(chunk, |frame| frames.push(frame)));
                // What came before one that is too long is delivered all the same.
                let taken: Result<(), _> = taken.collect();
                peer.received.add(frames.len(), frames.iter().map(Frame::len_bytes).sum());
                fabric.receiver.receive_all(peer.id, class, &mut frames);
                taken.map_err(|e| format!("{:?} sent a message that is too long: {e}", peer.id))?;
            }
            Ok(None) => return Ok(()),
            Err(ReadError::ConnectionLost(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Whether this node's PEs must catch up before more is read for them.
fn is_behind(fabric: &QuicFabric) -> bool {
    fabric.receiver.backlog_bytes() > fabric.settings.backlog_limit_bytes
}
