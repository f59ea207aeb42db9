//! Who is let in, and reading what they bring.

use super::{Peer, QuicFabric};
use crate::frame::Class;
use crate::ids::NodeId;
use crate::transport::framing::Decoder;
use quinn::{Connection, ConnectionError, Incoming, ReadError, RecvStream, VarInt};
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a reader that is held back looks whether the backlog has fallen.
const HOLD: Duration = Duration::from_millis(1);
/// Most bytes taken from a stream at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Accepts connections until the endpoint closes. Strangers cost a handshake each at most: many at once
/// must first prove their address, which costs the node nothing.
pub(super) async fn accept_all(fabric: Arc<QuicFabric>) {
    let open = Arc::new(AtomicUsize::new(0));
    while let Some(incoming) = fabric.endpoint.accept().await {
        let count = open.load(Ordering::Relaxed);
        if count >= 4 * fabric.settings.handshakes {
            incoming.ignore();
            continue;
        }
        if count >= fabric.settings.handshakes && !incoming.remote_address_validated() {
            // Fails only for addresses that have proven themselves already.
            let _ = incoming.retry();
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let (fabric, open) = (Arc::clone(&fabric), Arc::clone(&open));
        tokio::spawn(async move {
            if let Err(reason) = admit(&fabric, incoming).await {
                fabric.strangers.fetch_add(1, Ordering::Relaxed);
                tracing::debug!("a connection was turned away: {reason}");
            }
            open.fetch_sub(1, Ordering::Relaxed);
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
        connection.close(VarInt::from_u32(1), b"not a node of this run");
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
                    if let Err(reason) = read(&fabric, &peer, stream).await {
                        fabric.lost(&peer, reason);
                        connection.close(VarInt::from_u32(2), b"not understood");
                    }
                });
            }
            Err(closed) => break closed,
        }
    };
    match closed {
        // Both say that the run is over there.
        ConnectionError::LocallyClosed => {}
        ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(0) => {}
        ConnectionError::TimedOut => {
            let seconds = fabric.settings.idle_timeout.as_secs_f64();
            fabric.lost(peer, format!("nothing was heard from it for {seconds} s"));
        }
        other => fabric.lost(peer, other.to_string()),
    }
}

async fn read(fabric: &Arc<QuicFabric>, peer: &Arc<Peer>, mut stream: RecvStream) -> Result<(), String> {
    let mut class = [0];
    stream.read_exact(&mut class).await.map_err(|e| e.to_string())?;
    let class = match class[0] {
        0 => Class::Control,
        1 => Class::Small,
        2 => Class::Bulk,
        other => return Err(format!("it opened a stream of unknown class {other}")),
    };
    let mut decoder = Decoder::new(fabric.settings.frames);
    loop {
        while class != Class::Control && fabric.receiver.backlog_bytes() > fabric.settings.backlog_limit_bytes
        {
            tokio::time::sleep(HOLD).await;
        }
        match stream.read_chunk(CHUNK_BYTES, true).await {
            Ok(Some(chunk)) => {
                let deliver = |frame| fabric.receiver.receive(peer.id, class, frame);
                decoder.take(chunk.bytes, deliver).map_err(|e| e.to_string())?;
            }
            Ok(None) => return Ok(()),
            // `read_all` sees the end of the connection and says what it means.
            Err(ReadError::ConnectionLost(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
}
