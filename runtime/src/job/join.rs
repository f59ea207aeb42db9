//! The launcher's part in a start, once all processes have answered: it dials the nodes and welcomes them.

use super::processes::Processes;
use super::start_error::StartError;
use crate::codec::{Order, WIRE_VERSION};
use crate::envelope::Packed;
use crate::ids::NodeId;
use crate::node::{LauncherEvent, Node};
use crate::proto::membership::{Build, ClusterTable, Joining};
use crate::transport::quic::{LinkError, QuicFabric};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// How long a started node may take to be connected, and all of them together to join.
const JOIN_LIMIT: Duration = Duration::from_secs(15);
/// How many nodes are dialled at once. A handshake keeps each end busy for a few milliseconds: of many more at once on one
/// machine the last would be taken for unanswered.
const DIALS: usize = 64;

/// Nodes that are to join.
pub(super) struct Start<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) fabric: &'a Arc<QuicFabric>,
    pub(super) table: ClusterTable,
    pub(super) heard: UnboundedReceiver<LauncherEvent>,
    pub(super) processes: Processes,
}

impl Start<'_> {
    /// Waits until all nodes have joined a program with these lines.
    pub(super) async fn join(&mut self, lines: Vec<String>) -> Result<(), StartError> {
        let Self { node, fabric, table, heard, processes } = self;
        let joined = async {
            connect_all(fabric, table).await?;
            join_all(node, table, lines, heard).await
        };
        tokio::select! {
            // A process that is over tells more, and sooner, than its silence.
            biased;
            Some((node, reason)) = processes.exits.recv() => {
                Err(StartError::Lost { name: name_of(table, node), reason: format!("it {reason}") })
            }
            joined = joined => joined,
        }
    }
}

async fn connect_all(fabric: &Arc<QuicFabric>, table: &ClusterTable) -> Result<(), StartError> {
    let places = Arc::new(Semaphore::new(DIALS));
    let mut dials = JoinSet::new();
    for (id, entry) in (0u16..).map(NodeId).zip(&table.nodes).skip(1) {
        let (fabric, places) = (Arc::clone(fabric), Arc::clone(&places));
        // The launcher itself made this text of an address.
        let Ok(address) = entry.address.parse::<SocketAddr>() else { continue };
        let name = entry.name.clone();
        dials.spawn(async move {
            let _place = places.acquire().await;
            let reached = connect(&fabric, id).await;
            reached.map_err(|reason| StartError::Unreachable { name, address, reason })
        });
    }
    while let Some(dialled) = dials.join_next().await {
        dialled.map_err(|e| StartError::Local(format!("a dial was given up: {e}")))??;
    }
    Ok(())
}

/// Dials a node again and again for as long as it may take to answer: it may be slow, or packets to it may be lost.
pub(super) async fn connect(fabric: &Arc<QuicFabric>, to: NodeId) -> Result<(), String> {
    let until = Instant::now() + JOIN_LIMIT;
    loop {
        match timeout_at(until, fabric.connect(to)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(LinkError::NoAnswer(_))) => {
                tracing::debug!("{to:?} has not answered; it is dialled again")
            }
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("no answer for {} s", JOIN_LIMIT.as_secs())),
        }
    }
}

async fn join_all(
    node: &Node,
    table: &ClusterTable,
    lines: Vec<String>,
    heard: &mut UnboundedReceiver<LauncherEvent>,
) -> Result<(), StartError> {
    let build = Build { wire_version: WIRE_VERSION, lines };
    let mut joining = Joining::new(table, build, node.now(), JOIN_LIMIT);
    let welcome = Order::Welcome(Box::new(joining.welcome(table.clone())));
    for to in joining.missing() {
        node.order(to, welcome.clone(), Packed::default());
    }
    // A launcher without other nodes waits for nobody.
    while let Some(deadline) = joining.timeout() {
        let left = deadline.saturating_sub(node.now());
        match tokio::time::timeout(left, heard.recv()).await {
            Ok(Some(LauncherEvent::Joining(from, answer))) => {
                joining.handle(from, answer)?;
            }
            Ok(Some(LauncherEvent::LinkLost { peer, reason, .. })) => {
                return Err(StartError::Lost { name: name_of(table, peer), reason });
            }
            Ok(Some(LauncherEvent::Fault(from, sentence))) => {
                let name = name_of(table, from);
                return Err(StartError::Local(format!("node {name:?} did not join: {sentence}")));
            }
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => return Err(StartError::Local("the launcher hears nothing any more".into())),
        }
        joining.check(node.now())?;
    }
    Ok(())
}

fn name_of(table: &ClusterTable, node: NodeId) -> String {
    table.nodes.get(node.as_usize()).map_or("?", |entry| &entry.name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Class, Frame, Receiver};
    use crate::transport::quic::LinkSettings;
    use crate::transport::tls::RunAuthority;
    use tokio::net::UdpSocket;

    struct Deaf;

    impl Receiver for Deaf {
        fn receive(&self, _: NodeId, _: Class, _: Frame) {}
        fn backlog_bytes(&self) -> u64 {
            0
        }
        fn link_lost(&self, _: NodeId, _: String) {}
    }

    #[tokio::test]
    async fn a_node_that_is_slow_to_answer_is_dialled_again() {
        let authority = RunAuthority::new("test-3").unwrap();
        let bind = |n, address, settings| {
            let identity = authority.issue(NodeId(n)).unwrap();
            QuicFabric::bind(address, &identity, NodeId(n), Arc::new(Deaf), settings).unwrap()
        };
        // A dial that nobody answers is given up after this time.
        let idle_timeout = Duration::from_millis(300);
        let keep_alive = Duration::from_millis(100);
        let hasty = LinkSettings { idle_timeout, keep_alive, is_dialled: false, ..LinkSettings::default() };
        let launcher = bind(0, "127.0.0.1:0".parse().unwrap(), hasty);
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        launcher.set_addresses(vec![None, Some(address)]);
        let dialling = tokio::spawn(async move { connect(&launcher, NodeId(1)).await });
        let (mut first, mut bytes) = (None, [0; 2048]);
        loop {
            let heard = tokio::time::timeout(JOIN_LIMIT, silent.recv(&mut bytes)).await;
            assert!(heard.unwrap().unwrap() > 1000);
            // Each dial has an id of its own.
            let id = bytes[6..26].to_vec();
            if *first.get_or_insert_with(|| id.clone()) != id {
                break;
            }
        }
        drop(silent);
        let _node = bind(1, address, LinkSettings::default());
        assert_eq!(dialling.await.unwrap(), Ok(()));
    }
}
