//! Nodes that are started while the run goes on.
//!
//! ```text
//!   driver ─ Wanted ─► a process is started and dialled, beside everything else ─ Recruited ─► driver
//!   it is lost before it is admitted ─ Recruited ─► driver, again
//!   driver ─ Admitted ─► it is attended and missed like all others;  or ─ Dismissed ─► its process ends
//! ```

use super::join::connect;
use super::start_error::StartError;
use super::starts::{Starts, info_of, pes_of};
use crate::codec::WIRE_VERSION;
use crate::config::{LaunchMethod, NodeConfig};
use crate::frame::Fabric as _;
use crate::ids::NodeId;
use crate::launch::{LaunchedNode, Ready, local_listen_ip};
use crate::node::Recruit;
use crate::proto::membership::{ClusterTable, NodeEntry, PES_MAX, Welcome, fingerprint};
use crate::topology::Topology;
use crate::transport::quic::QuicFabric;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A process that has been started and reached, or why there is none.
pub(super) type Outcome = Result<LaunchedNode, StartError>;

/// The nodes that are of the run, or were, and at most one that may be soon.
pub(super) struct Recruiting {
    starts: Starts,
    table: ClusterTable,
    program: u64,
    /// Width of a pointer on the narrowest machine that the run began on.
    pointer_bits: u32,
    /// Ends with this, and what it has started with it.
    under_way: UnboundedSender<Outcome>,
    /// Where it is said what became of a start.
    pub(super) outcomes: UnboundedReceiver<Outcome>,
    /// One that has come and may be admitted, and what others would know of it.
    waiting: Option<(LaunchedNode, NodeEntry)>,
}

impl Recruiting {
    /// None are wanted yet beside those of the table, whose program has these lines, and whose narrowest machine has pointers of
    /// so many bits.
    pub(super) fn new(starts: Starts, table: ClusterTable, lines: &[String], pointer_bits: u32) -> Self {
        let (under_way, outcomes) = unbounded_channel();
        Self { starts, table, program: fingerprint(lines), pointer_bits, under_way, outcomes, waiting: None }
    }

    /// Names of all nodes, launcher first.
    pub(super) fn names(&self) -> Vec<String> {
        self.table.nodes.iter().map(|entry| entry.name.clone()).collect()
    }

    /// Whether a node is of the run, or was.
    pub(super) fn knows(&self, node: NodeId) -> bool {
        node.as_usize() < self.table.nodes.len()
    }

    fn next(&self) -> NodeId {
        NodeId(u16::try_from(self.table.nodes.len()).unwrap_or(u16::MAX))
    }

    /// Starts a process for one more node and dials it; what comes of it is told as an outcome.
    pub(super) fn want(&mut self, config: NodeConfig, topology: &Topology, fabric: &Arc<QuicFabric>) {
        let (id, name, is_local) = (self.next(), config.name.clone(), config.launch == LaunchMethod::Local);
        let there = There {
            program: self.program,
            addresses: self.addresses_of(topology),
            pointer_bits: self.pointer_bits,
        };
        let outward = || local_listen_ip(there.addresses.iter().copied().filter(|ip| !ip.is_loopback()));
        self.starts.add(config, topology);
        let launched = match self.starts.launch_from(id.0, is_local.then(outward)) {
            Ok(launched) => launched,
            Err(error) => return drop(self.under_way.send(Err(error))),
        };
        let (fabric, told) = (Arc::clone(fabric), self.under_way.clone());
        tokio::spawn(async move {
            let reached = async {
                let mut launched = launched.await?;
                let mut started =
                    launched.pop().ok_or_else(|| StartError::Local("nothing was started".into()))?;
                let address = started.ready.addr;
                fits(&started.name, &started.ready, &there).map_err(StartError::Local)?;
                fabric.meets(id, address);
                let reached = tokio::select! {
                    biased;
                    reason = started.exited() => return Err(StartError::Lost { name, reason: reason.to_string() }),
                    reached = connect(&fabric, id) => reached,
                };
                reached.map_err(|reason| StartError::Unreachable { name, address, reason })?;
                Ok(started)
            };
            // Where nobody hears of it any more the process ends with this task.
            let _ = told.send(reached.await);
        });
    }

    /// Where the nodes listen that have PEs.
    fn addresses_of(&self, topology: &Topology) -> Vec<IpAddr> {
        let entries =
            topology.compute_nodes().iter().filter_map(|node| self.table.nodes.get(node.as_usize()));
        entries.filter_map(|entry| Some(entry.address.parse::<SocketAddr>().ok()?.ip())).collect()
    }

    /// A process has been started: what it would be in a run with these PEs; nothing if nobody was wanted.
    pub(super) fn has_come(
        &mut self,
        started: LaunchedNode,
        topology: &Topology,
    ) -> Result<Option<Recruit>, StartError> {
        let Some(config) = self.starts.nodes().last() else { return Ok(None) };
        let (node, pe_count) = (started.node, pes_of(config, &started));
        let address = started.ready.addr.to_string();
        let entry = NodeEntry { name: config.name.clone(), address, pe_count };
        if !entry.can_join(node, topology.node_count(), topology.pe_count()) {
            let sentence =
                format!("node {:?} cannot join with {pe_count} PEs: a run has at most {PES_MAX}", entry.name);
            return Err(StartError::Local(sentence));
        }
        let info = info_of(config, &started, topology.pe_count());
        let mut table = self.table.clone();
        table.nodes.push(entry.clone());
        let then = topology.joined_by(node, pe_count);
        table.nodes.iter_mut().zip(then.pe_counts()).for_each(|(entry, count)| entry.pe_count = count);
        (table.begun, table.stretches) = (then.begun().pe_counts(), then.stretches());
        self.waiting = Some((started, entry));
        let welcome = Welcome { wire_version: WIRE_VERSION, fingerprint: self.program, table };
        Ok(Some(Recruit { node, welcome, info }))
    }

    /// What becomes of the one that has come and waits, if it is this one that is lost.
    pub(super) fn lost(&self, node: NodeId, reason: &str) -> Option<StartError> {
        let (started, _) = self.waiting.as_ref().filter(|(started, _)| started.node == node)?;
        Some(StartError::Lost { name: started.name.clone(), reason: reason.into() })
    }

    /// The one that has come is of the run now: its process.
    pub(super) fn admitted(&mut self) -> Option<LaunchedNode> {
        let (started, entry) = self.waiting.take()?;
        self.table.nodes.push(entry);
        Some(started)
    }

    /// The one that was wanted, if any still is, is not of the run, and its process ends.
    pub(super) fn dismissed(&mut self, fabric: &QuicFabric) {
        // All nodes of the table but the launcher are started here.
        if self.starts.nodes().len() < self.table.nodes.len() {
            return;
        }
        self.waiting = None;
        self.starts.take_back();
        fabric.forget(self.next());
    }
}

/// What the nodes have in common that are there when another comes.
struct There {
    /// Fingerprint of their program.
    program: u64,
    /// Where they listen.
    addresses: Vec<IpAddr>,
    /// Width of a pointer on the narrowest machine that the run began on.
    pointer_bits: u32,
}

/// Whether a process can work with those that are there; else why not, and how to mend it.
fn fits(name: &str, ready: &Ready, there: &There) -> Result<(), String> {
    if (ready.version, ready.program) != (WIRE_VERSION, there.program) {
        return Err(format!(
            "node {name:?} runs another build of the program; remove its `binary` setting or put the same build there"
        ));
    }
    let bits = ready.architecture.pointer_bits;
    if bits < there.pointer_bits {
        return Err(format!(
            "node {name:?} is a machine of {bits} bits, and this run began on machines of {}, whose numbers it may not hold; begin \
             a run with it, or add another node",
            there.pointer_bits
        ));
    }
    let is_apart = |ip: &&IpAddr| ip.is_loopback() != ready.addr.ip().is_loopback();
    match there.addresses.iter().find(is_apart) {
        Some(ip) => Err(format!(
            "node {name:?} listens at {}, and others of this run at {ip}, where only one machine can reach them; begin a run \
             that other machines may join with `address` in its nodes file",
            ready.addr.ip()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_work_with_those_that_are_there_is_told_why() {
        let ready = Ready::here(SocketAddr::from(([127, 0, 0, 1], 7)), 5);
        let there = |address: [u8; 4], pointer_bits| There {
            program: 5,
            addresses: vec![IpAddr::from(address)],
            pointer_bits,
        };
        let near = there([127, 0, 0, 1], usize::BITS);
        assert_eq!(fits("late", &ready, &near), Ok(()));
        let why = |ready: &Ready, there: &There| fits("late", ready, there).unwrap_err();
        assert!(why(&Ready { program: 6, ..ready.clone() }, &near).contains("another build"));
        assert!(why(&ready, &there([10, 0, 0, 1], usize::BITS)).contains("only one machine can reach"));
        let mut narrow = ready;
        narrow.architecture.pointer_bits = usize::BITS / 2;
        assert!(why(&narrow, &near).contains(&format!("is a machine of {} bits", usize::BITS / 2)));
        assert_eq!(fits("late", &narrow, &there([127, 0, 0, 1], usize::BITS / 2)), Ok(()));
    }
}
