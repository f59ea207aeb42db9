//! Which PEs belong to which node: fixed for a run, known to all.

use crate::ids::{NodeId, PeId};
use std::ops::Range;
use std::sync::Arc;

/// The PEs of all nodes. Node 0, the launcher, has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// `first_pe[n]..first_pe[n + 1]` are the PEs of node `n`.
    first_pe: Vec<u32>,
    /// The nodes that have PEs, in order.
    compute_nodes: Vec<NodeId>,
    /// Which PEs were together when the run began, if it goes on from a checkpoint.
    begun: Option<Arc<Self>>,
}

impl Topology {
    /// From the count of PEs of each node, launcher (0 PEs) first.
    #[must_use]
    pub fn new(pe_counts: &[u32]) -> Self {
        let mut first_pe = vec![0];
        for count in pe_counts {
            first_pe.push(first_pe[first_pe.len() - 1] + count);
        }
        let with_pes = (0..).zip(pe_counts).filter(|(_, count)| **count > 0);
        let compute_nodes = with_pes.map(|(node, _)| NodeId(node)).collect();
        Self { first_pe, compute_nodes, begun: None }
    }

    /// The same PEs on the nodes of a run that goes on from a checkpoint, and began with those on each node. If there are
    /// more now, those are behind them.
    #[must_use]
    pub fn gone_on_from(self, pe_counts: &[u32]) -> Self {
        Self { begun: Some(Arc::new(Self::new(pe_counts))), ..self }
    }

    /// Which PEs belonged to which node when the run began. Reductions are combined as they were then for as long as the
    /// run goes on, whatever nodes its PEs are on: so those that were under way can be completed.
    #[must_use]
    pub fn begun(&self) -> &Self {
        self.begun.as_deref().unwrap_or(self)
    }

    /// Counts of PEs of each node, launcher first.
    #[must_use]
    pub fn pe_counts(&self) -> Vec<u32> {
        self.first_pe.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Count of nodes, launcher included.
    #[must_use]
    pub fn node_count(&self) -> u16 {
        u16::try_from(self.first_pe.len() - 1).expect("a run has fewer than 65,536 nodes")
    }

    /// Count of PEs.
    #[must_use]
    pub fn pe_count(&self) -> u32 {
        self.first_pe[self.first_pe.len() - 1]
    }

    /// The PEs of `node`.
    #[must_use]
    pub fn pes(&self, node: NodeId) -> Range<u32> {
        self.first_pe[node.as_usize()]..self.first_pe[node.as_usize() + 1]
    }

    /// The node of `pe`; the driver's is the launcher.
    #[must_use]
    pub fn node_of(&self, pe: PeId) -> NodeId {
        if pe == PeId::DRIVER {
            return NodeId::LAUNCHER;
        }
        let after = self.first_pe.partition_point(|&first| first <= pe.0);
        NodeId(u16::try_from(after - 1).expect("a run has fewer than 65,536 nodes"))
    }

    /// The nodes that have PEs, in order.
    #[must_use]
    pub fn compute_nodes(&self) -> &[NodeId] {
        &self.compute_nodes
    }

    /// The PE that combines for `node` what its PEs contribute to the collection or section `key`: another
    /// one for each key, so that no PE does it all. `None` for a node without PEs.
    #[must_use]
    pub fn combiner(&self, node: NodeId, key: u64) -> Option<PeId> {
        let pes = self.pes(node);
        let count = u64::from(pes.end - pes.start);
        let offset = (key ^ key >> 32).checked_rem(count)?;
        Some(PeId(pes.start + u32::try_from(offset).expect("less than a u32 count")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_and_nodes_agree() {
        let topology = Topology::new(&[0, 2, 1, 0, 3]);
        assert_eq!((topology.node_count(), topology.pe_count()), (5, 6));
        let nodes: Vec<u16> = (0..6).map(|pe| topology.node_of(PeId(pe)).0).collect();
        assert_eq!(nodes, [1, 1, 2, 4, 4, 4]);
        assert_eq!(topology.node_of(PeId::DRIVER), NodeId::LAUNCHER);
        assert_eq!(topology.compute_nodes(), [NodeId(1), NodeId(2), NodeId(4)]);
        for key in 0..20 {
            assert!(topology.pes(NodeId(4)).contains(&topology.combiner(NodeId(4), key).unwrap().0));
        }
        assert_eq!(topology.combiner(NodeId(3), 1), None);
    }
}
