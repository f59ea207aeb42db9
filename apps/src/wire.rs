//! What bytes on the wire cost the PEs of a node: where the network thread shares their cores, time.

use chares::NodeShape;
use chares::loadbalance::cost::{BETWEEN_HOSTS, ByteTime, Bytes, INSIDE_A_HOST, Machines};
use chares::loadbalance::overhead;
use std::ops::Range;

/// The PEs of each node, and what a byte costs there.
pub(crate) struct Wire {
    pub(crate) nodes: Vec<Range<u32>>,
    pub(crate) costs: Vec<ByteTime>,
}

impl Wire {
    pub(crate) fn of(nodes: &[NodeShape]) -> Self {
        let cost = |node: &NodeShape| {
            let is_inside = nodes.iter().all(|other| other.host == node.host);
            if is_inside { INSIDE_A_HOST } else { BETWEEN_HOSTS }
        };
        Self {
            nodes: nodes.iter().map(|node| node.pes.clone()).collect(),
            costs: nodes.iter().map(cost).collect(),
        }
    }

    /// The same of machines that a run is planned for.
    pub(crate) fn planned(machines: &Machines) -> Self {
        let costs = (0..machines.nodes.len()).map(|node| machines.byte_time(node)).collect();
        Self { nodes: machines.pes(), costs }
    }

    /// How long each PE takes for its `work`, in units of which it does `rates` a second, and for its part of the bytes of
    /// its node.
    pub(crate) fn seconds(&self, work: &[f64], bytes: &[Bytes], rates: &[f64]) -> Vec<f64> {
        // A byte takes a slow processor as much longer as the work does.
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        let mut seconds = Vec::with_capacity(rates.len());
        for (pes, (bytes, cost)) in self.nodes.iter().zip(bytes.iter().zip(&self.costs)) {
            let on_wire = (bytes.sent * cost.sent + bytes.received * cost.received) * fastest
                / f64::from(pes.end - pes.start);
            seconds.extend(pes.clone().map(|pe| (work[pe as usize] + on_wire) / rates[pe as usize]));
        }
        seconds
    }

    /// The seconds of PEs with what speeds may be wrong by: alike for all PEs of a node, which share its troubles.
    pub(crate) fn with_allowance(&self, mut seconds: Vec<f64>, weights: &[f64]) -> Vec<f64> {
        let total: f64 = weights.iter().sum();
        for pes in &self.nodes {
            let pes = pes.start as usize..pes.end as usize;
            let allowance = overhead::allowance(weights[pes.clone()].iter().sum::<f64>() / total);
            seconds[pes].iter_mut().for_each(|seconds| *seconds *= allowance);
        }
        seconds
    }
}
