//! PEs that go to other nodes while all PEs of the run stand still and nothing is on its way.
//!
//! ```text
//!   launcher ─ Arrange ─► all nodes that stay: the table of PEs is another; who gets PEs starts their threads, which stand still
//!            ─ HandOver ► the PEs that go: each sends all there is of it straight to its new place, and its thread ends
//!            ─ Restore ─► the same PEs at their new places: they take in what was sent
//! ```
//!
//! A PE keeps its number, so that whatever names it stays right: placements, homes, sections, trees of reductions.

use super::Node;
use crate::codec::Order;
use crate::envelope::{Envelope, Packed, Payload, PeOrder, Target};
use crate::ids::{NodeId, PeId};
use crate::pe::scheduler::start_pe;
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

impl Node {
    /// Has these PEs be on other nodes from now on, on all nodes that stay; only on the launcher, while all PEs stand still
    /// and nobody looks for quiescence. The PEs that have come tell the driver that they stand still.
    pub fn arrange(&self, moves: &[(PeId, NodeId)]) {
        // Whoever gives a PE an order meanwhile waits, and finds it at its new place.
        let _changing = self.arranging.write().unwrap_or_else(PoisonError::into_inner);
        let rates = |all: &[f64]| rearranged(all, self.topology(), &self.topology().rearranged(moves));
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
            let order = Target::Order(PeOrder::Pause);
            self.pes.push(pe, Envelope::new(order, i32::MIN, Payload::packed(Packed::default())));
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

/// What each PE can do when PEs have changed nodes: those of a node share evenly what its own could do together.
fn rearranged(rates: &[f64], before: &Topology, now: &Topology) -> Vec<f64> {
    let rate = |pe: u32| {
        let node = now.node_of(PeId(pe));
        let own: f64 = before.pes(node).iter().filter_map(|pe| rates.get(*pe as usize)).sum();
        if before.pes(node) == now.pes(node) {
            rates.get(pe as usize).copied().unwrap_or(1.0)
        } else {
            own / now.pes(node).len() as f64
        }
    };
    (0..now.pe_count()).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_that_share_cores_share_their_speed() {
        let before = Topology::new(&[0, 2, 1, 1]);
        let now = before.rearranged(&[(PeId(2), NodeId(1))]);
        let speeds = rearranged(&[1.0, 0.8, 0.5, 0.3], &before, &now);
        assert!(speeds.iter().zip([0.6, 0.6, 0.6, 0.3]).all(|(found, right)| (found - right).abs() < 1e-12));
    }
}
