//! PEs that go to other nodes while all PEs of the run stand still and nothing is on its way.
//!
//! ```text
//!   launcher ─ Arrange ─► all nodes that stay: the table of PEs is another; who gets PEs starts their threads, which stand still
//!            ─ HandOver ► the PEs that go: each sends all there is of it straight to its new place, and its thread ends
//!            ─ Restore ─► the same PEs at their new places: they take in what was sent
//! ```
//!
//! A PE keeps its number, so that whatever names it stays right: placements, homes, sections, trees of reductions. The PEs of a
//! node that joins are numbered behind all others and have no chare at first; what nodes share is given to it, as where a run
//! goes on from a checkpoint on more PEs than it had.

use super::{LauncherEvent, Node};
use crate::codec::Order;
use crate::config::NodeConfig;
use crate::envelope::{Envelope, Packed, PeOrder, Target};
use crate::ids::{NodeId, PeId};
use crate::monitor::wire::NodeInfo;
use crate::pe::scheduler::start_pe;
use crate::proto::membership::{NodeEntry, Welcome};
use crate::topology::Topology;
use std::sync::{OnceLock, PoisonError};

/// A table of the PEs of all nodes, and those that took its place one after the other. None is ever given back, because they
/// are read without a lock and by whoever sends anything; runs have few.
#[derive(Debug)]
pub(super) struct Tables {
    topology: Topology,
    next: OnceLock<Box<Self>>,
}

impl Tables {
    pub(super) fn new(topology: Topology) -> Self {
        Self { topology, next: OnceLock::new() }
    }

    /// The one that holds now.
    #[inline]
    pub(super) fn latest(&self) -> &Topology {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        &last.topology
    }

    /// Another one holds from now on.
    fn replace(&self, topology: Topology) {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        // Only one thread of a node changes it.
        let _ = last.next.set(Box::new(Self::new(topology)));
    }
}

/// A node whose process has been started and reached, and that is not of the run yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Recruit {
    /// Its number, the next one.
    pub node: NodeId,
    /// What it is told first, with the table of all nodes, itself among them.
    pub welcome: Welcome,
    /// What viewers are told of it.
    pub info: NodeInfo,
}

impl Recruit {
    /// Itself, as others know it.
    #[must_use]
    pub fn entry(&self) -> Option<&NodeEntry> {
        self.welcome.table.nodes.get(self.node.as_usize())
    }
}

impl Node {
    /// Has a process started for one more node; the driver hears of the [`Recruit`], or why there is none. Only on a launcher
    /// whose run is supervised; whether it is.
    #[must_use]
    pub fn recruit(&self, config: NodeConfig) -> bool {
        self.listeners.tell_supervision(LauncherEvent::Wanted(Box::new(config)));
        self.listeners.is_supervised()
    }

    /// Sends away who has been recruited and cannot be admitted.
    pub fn dismiss(&self) {
        self.listeners.tell_supervision(LauncherEvent::Dismissed);
    }

    /// Has a node join, on all nodes; only on the launcher, while all PEs stand still and nobody looks for quiescence. Its PEs
    /// are numbered behind the others', and count as fast as these are on average. Who answers after this knows of all.
    pub fn admit(&self, recruit: Recruit) {
        let Some(entry) = recruit.entry().cloned() else { return };
        let Recruit { node, mut welcome, .. } = recruit;
        let _changing = self.arranging.write().unwrap_or_else(PoisonError::into_inner);
        let with_new = |mut rates: Vec<f64>| {
            let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
            rates.resize(rates.len() + entry.pe_count as usize, mean);
            rates
        };
        let speeds = with_new(self.speeds().to_vec());
        let cpu_rates = self.measured_cpu_rates().map(with_new);
        self.order_all(&Order::Admit(node, entry.clone()));
        self.take_in(node, &entry);
        self.listeners.tell_supervision(LauncherEvent::Admitted);
        welcome.table.is_init = self.is_init();
        welcome.table.colour = self.colour();
        self.order(node, Order::Welcome(Box::new(welcome)), Packed::default());
        for (header, packed) in self.shared_records() {
            if let Err(why) = self.give(node, header, packed) {
                self.fail(format!("what nodes share cannot be given to {node:?}: {why}"));
            }
        }
        self.set_speeds(speeds);
        for (pe, rate) in (0..).map(PeId).zip(cpu_rates.into_iter().flatten()) {
            self.state.set_cpu_rate(pe, rate);
        }
    }

    /// Knows a node that joins.
    pub(super) fn take_in(&self, node: NodeId, entry: &NodeEntry) {
        let now = self.topology().joined_by(node, entry.pe_count);
        self.pes.grow(now.pe_count());
        self.state.grow(now.pe_count());
        if let (Some(fabric), Ok(address)) = (self.fabric(), entry.address.parse()) {
            fabric.meets(node, address);
        }
        self.quiescence().regroup(now.members().collect());
        self.tables.replace(now);
    }

    /// Has these PEs be on other nodes from now on, on all nodes that stay; only on the launcher, while all PEs stand still
    /// and nobody looks for quiescence. The PEs that have come tell the driver that they stand still.
    pub fn arrange(&self, moves: &[(PeId, NodeId)]) {
        // Whoever gives a PE an order meanwhile waits, and finds it at its new place.
        let _changing = self.arranging.write().unwrap_or_else(PoisonError::into_inner);
        let rates = |all: &[f64]| self.topology().shared_rates(all, &self.topology().rearranged(moves));
        let (mut speeds, cpu_rates) =
            (rates(&self.speeds()), self.measured_cpu_rates().map(|all| rates(&all)));
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        speeds.iter_mut().for_each(|speed| *speed /= fastest);
        self.adopt(moves);
        self.order_all(&Order::Arrange(moves.to_vec()));
        self.set_speeds(speeds);
        for (pe, rate) in (0..).map(PeId).zip(cpu_rates.into_iter().flatten()) {
            self.state.set_cpu_rate(pe, rate);
        }
    }

    /// Gives an order to a PE, wherever it is, which is not counted among the messages of the run. Only on the launcher.
    pub fn order_pe(&self, pe: PeId, order: PeOrder, payload: Packed) {
        let _unchanged = self.arranging.read().unwrap_or_else(PoisonError::into_inner);
        self.order(self.topology().node_of(pe), Order::ToPe(pe, order), payload);
    }

    /// Takes over who is where, and starts the PEs that are here now: they stand still.
    pub(super) fn adopt(&self, moves: &[(PeId, NodeId)]) {
        let now = self.topology().rearranged(moves);
        let new = now.pes(self.id).iter().copied().map(PeId);
        let new: Vec<PeId> = new.filter(|pe| self.topology().node_of(*pe) != self.id).collect();
        new.iter().for_each(|pe| self.pes.begin(*pe, self.now_ns()));
        self.pes.measure_with(now.pes(self.id).len());
        self.quiescence().regroup(now.members().collect());
        self.tables.replace(now);
        let Some(this) = self.this.upgrade() else { return };
        for pe in new {
            self.pes.push(pe, None, Envelope::urgent(Target::Order(PeOrder::Pause)));
            // Its own PEs have the cores one by one; they are shared by those that come.
            if let Err(error) = start_pe(&this, pe, self.settings.cores.clone()) {
                self.fail(format!("{pe:?} cannot go on on {:?}: no thread: {error}", self.id));
            }
        }
    }

    /// Whether nothing is under way of a search for quiescence; if so, nothing begins until
    /// [`resume_quiescence`](Self::resume_quiescence). Only on the launcher.
    #[must_use]
    pub fn pause_quiescence(&self) -> bool {
        self.quiescence().pause()
    }

    /// Goes on with what [`pause_quiescence`](Self::pause_quiescence) has stopped.
    pub fn resume_quiescence(&self) {
        self.quiescence().resume();
        self.pump_quiescence();
    }
}
