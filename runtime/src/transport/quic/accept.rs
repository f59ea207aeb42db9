//! Who is let in, and reading what they bring.

use super::peer::Peer;
use super::{ENDED, IDLE, NEAR, PARTING, QuicFabric, UNWANTED, end, near};
use crate::frame::{Class, Frame};
use crate::ids::NodeId;
use crate::proto::parting::PartingWord;
use crate::transport::framing::Decoder;
use bytes::Bytes;
use quinn::{Connection, ConnectionError, Incoming, ReadError, ReadExactError, RecvStream};
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a reader that is held back looks whether the backlog has fallen.
const HOLD: Duration = Duration::from_millis(1);
/// Most chunks taken from a stream at once; a chunk is what came in one packet.
const CHUNKS: usize = 64;

/// Accepts connections until the endpoint closes.
pub(super) async fn accept_all(fabric: Arc<QuicFabric>) {
    while let Some(incoming) = fabric.endpoint.accept().await {
        if !fabric.door.is_knock(&incoming.orig_dst_cid()) {
            fabric.door.turn_away();
            incoming.ignore();
            continue;
        }
        let fabric = Arc::clone(&fabric);
        tokio::spawn(async move {
            if let Err(reason) = admit(&fabric, incoming).await {
                fabric.door.turn_away();
                tracing::debug!("a connection was turned away: {reason}");
            }
        });
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
        // This end has closed the connection itself.
        ConnectionError::LocallyClosed => {}
        // The run is over at the other end, so frames that still wait for it have nowhere to go.
        ConnectionError::ApplicationClosed(close) if close.error_code == ENDED => drop(peer.lose("")),
        ConnectionError::ApplicationClosed(close)
            if close.error_code == IDLE && peer.has_agreed_to_end(connection) => {}
        // If both ends agreed to close, this end may notice no more than silence.
        ConnectionError::TimedOut | ConnectionError::Reset if peer.has_agreed_to_end(connection) => {}
        other => fabric.lost(peer, end(&other)),
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
        2 => Class::Large,
        PARTING => {
            return match read_rest(&mut stream, PartingWord::BYTES_MAX).await {
                Ok(Some(word)) => fabric.take_parting(peer, connection, &word),
                Ok(None) => Err(format!("{:?} said more about leaving than there is to say", peer.id)),
                Err(ReadError::ConnectionLost(_)) => Ok(()),
                Err(error) => {
                    Err(format!("{:?} said something about leaving that is not read: {error}", peer.id))
                }
            };
        }
        NEAR => {
            let name = read_rest(&mut stream, near::OFFER_BYTES_MAX).await;
            return match name.map(|name| name.and_then(|name| name.try_into().ok())) {
                Ok(Some(name)) => {
                    near::answer(fabric, peer, connection, name).await;
                    Ok(())
                }
                Err(ReadError::ConnectionLost(_)) => Ok(()),
                _ => Err(format!("{:?} offered memory in words that are not understood", peer.id)),
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
                // Frames that came before one that is too long are delivered all the same.
                let taken: Result<(), _> = taken.collect();
                let count = frames.len();
                peer.received.add(count, frames.iter().map(Frame::len_bytes).sum());
                fabric.receiver.receive_all(peer.id, class, &mut frames);
                // What has come through shared memory waits until all these are delivered.
                peer.by_quic[class as usize].fetch_add(count as u64, Ordering::Release);
                taken.map_err(|e| format!("{:?} sent a message that is too long: {e}", peer.id))?;
            }
            Ok(None) => return Ok(()),
            Err(ReadError::ConnectionLost(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// All that follows on a stream of which something has been read; `None` if it is more than `most` bytes.
///
/// It is read in order, which `read_to_end` does not do: where QUIC has sent something twice, that gives again what has been read
/// already, and quinn, which counts it twice, panics when the stream is dropped.
pub(super) async fn read_rest(stream: &mut RecvStream, most: usize) -> Result<Option<Vec<u8>>, ReadError> {
    let mut rest = Vec::new();
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        rest.extend_from_slice(&chunk.bytes);
        if rest.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(rest))
}

/// Whether this node's PEs must catch up before more is read for them.
pub(super) fn is_behind(fabric: &QuicFabric) -> bool {
    fabric.receiver.backlog_bytes() > fabric.settings.backlog_limit_bytes
}
