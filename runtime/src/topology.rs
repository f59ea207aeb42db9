//! Which PEs belong to which node: known to all, and changed for all at once while they stand still.

use crate::ids::{NodeId, PeId};
use std::sync::Arc;

/// The PEs of all nodes. Node 0, the launcher, has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The node of each PE.
    places: Vec<NodeId>,
    /// The PEs of each node, in order.
    pes: Vec<Vec<u32>>,
    /// The nodes that have PEs, in order.
    compute_nodes: Vec<NodeId>,
    /// Which PEs were together when the run began, if that was otherwise.
    begun: Option<Arc<Self>>,
    /// Which PEs were together before some went to other nodes, if any did.
    before: Option<Arc<Self>>,
}

impl Topology {
    /// From the count of PEs of each node, launcher (0 PEs) first.
    #[must_use]
    pub fn new(pe_counts: &[u32]) -> Self {
        let places = (0..).map(NodeId).zip(pe_counts);
        let places = places.flat_map(|(node, count)| std::iter::repeat_n(node, *count as usize)).collect();
        Self::of(places, pe_counts.len())
    }

    /// From [stretches](Self::stretches) of PEs on these many nodes, launcher included, whose numbers have been checked.
    #[must_use]
    pub fn of_stretches(stretches: &[(NodeId, u32)], node_count: u16) -> Self {
        let places = stretches.iter().flat_map(|(node, count)| std::iter::repeat_n(*node, *count as usize));
        Self::of(places.collect(), usize::from(node_count))
    }

    /// How many PEs with numbers one behind the other are on which node, from the first PE to the last.
    #[must_use]
    pub fn stretches(&self) -> Vec<(NodeId, u32)> {
        let stretches = self.places.chunk_by(|one, next| one == next);
        stretches.map(|pes| (pes[0], u32::try_from(pes.len()).unwrap_or(u32::MAX))).collect()
    }

    fn of(places: Vec<NodeId>, node_count: usize) -> Self {
        let mut pes = vec![Vec::new(); node_count];
        (0..).zip(&places).for_each(|(pe, node)| pes[node.as_usize()].push(pe));
        let compute_nodes = (0..).map(NodeId).zip(&pes).filter(|(_, pes)| !pes.is_empty());
        let compute_nodes = compute_nodes.map(|(node, _)| node).collect();
        Self { places, pes, compute_nodes, begun: None, before: None }
    }

    /// The same PEs on the nodes of a run that goes on from a checkpoint, and began with those on each node. If there are
    /// more now, those are behind them.
    #[must_use]
    pub fn gone_on_from(self, pe_counts: &[u32]) -> Self {
        Self { begun: Some(Arc::new(Self::new(pe_counts))), ..self }
    }

    /// The same PEs after some of them have gone to other nodes.
    #[must_use]
    pub fn rearranged(&self, moves: &[(PeId, NodeId)]) -> Self {
        let mut places = self.places.clone();
        moves.iter().for_each(|(pe, node)| places[pe.as_usize()] = *node);
        self.changed(places, self.pes.len())
    }

    /// The same PEs, and those of a node that has joined: so many, numbered behind all others.
    #[must_use]
    pub fn joined_by(&self, node: NodeId, pe_count: u32) -> Self {
        let new = std::iter::repeat_n(node, pe_count as usize);
        self.changed(
            self.places.iter().copied().chain(new).collect(),
            self.pes.len().max(node.as_usize() + 1),
        )
    }

    fn changed(&self, places: Vec<NodeId>, node_count: usize) -> Self {
        let before = Arc::new(Self { before: None, ..self.clone() });
        let begun = self.begun.clone().unwrap_or_else(|| Arc::clone(&before));
        Self { begun: Some(begun), before: Some(before), ..Self::of(places, node_count) }
    }

    /// Where the PEs of a node go when it leaves: each to the node that has the fewest then for the sum of the speeds of its
    /// own. `None` if there is no other.
    #[must_use]
    pub fn without(&self, leaving: NodeId, speeds: &[f64]) -> Option<Vec<(PeId, NodeId)>> {
        let others = self.compute_nodes.iter().filter(|node| **node != leaving);
        let worth =
            |node: NodeId| self.pes(node).iter().filter_map(|pe| speeds.get(*pe as usize)).sum::<f64>();
        let mut loads: Vec<(NodeId, f64, f64)> =
            others.map(|node| (*node, self.pes(*node).len() as f64, worth(*node))).collect();
        let mut place = |pe: &u32| {
            let load = |(_, count, worth): &(NodeId, f64, f64)| (count + 1.0) / worth.max(f64::MIN_POSITIVE);
            let (node, count, _) = loads.iter_mut().min_by(|a, b| load(a).total_cmp(&load(b)))?;
            *count += 1.0;
            Some((PeId(*pe), *node))
        };
        self.pes(leaving).iter().map(&mut place).collect()
    }

    /// What each PE can do where it is `now`, of PEs that reach these rates where they are here: those of a node whose PEs are
    /// others now share evenly what its own could do together.
    #[must_use]
    pub fn shared_rates(&self, rates: &[f64], now: &Self) -> Vec<f64> {
        let rate = |pe: u32| {
            let node = now.node_of(PeId(pe));
            if self.pes(node) == now.pes(node) {
                return rates.get(pe as usize).copied().unwrap_or(1.0);
            }
            let own: f64 = self.pes(node).iter().filter_map(|pe| rates.get(*pe as usize)).sum();
            own / now.pes(node).len() as f64
        };
        (0..now.pe_count()).map(rate).collect()
    }

    /// Which PEs belonged to which node when the run began. Reductions are combined as they were then for as long as the
    /// run goes on, whatever nodes its PEs are on: so those that were under way can be completed.
    #[must_use]
    pub fn begun(&self) -> &Self {
        self.begun.as_deref().unwrap_or(self)
    }

    /// Which PEs belonged to which node before some went to other nodes the last time; as now, if none ever did.
    #[must_use]
    pub fn before(&self) -> &Self {
        self.before.as_deref().unwrap_or(self)
    }

    /// Counts of PEs of each node, launcher first.
    #[must_use]
    pub fn pe_counts(&self) -> Vec<u32> {
        self.pes.iter().map(|pes| u32::try_from(pes.len()).expect("PEs are numbered by a u32")).collect()
    }

    /// Count of nodes that have ever been, launcher included.
    #[must_use]
    pub fn node_count(&self) -> u16 {
        u16::try_from(self.pes.len()).expect("a run has fewer than 65,536 nodes")
    }

    /// Count of PEs.
    #[must_use]
    pub fn pe_count(&self) -> u32 {
        u32::try_from(self.places.len()).expect("PEs are numbered by a u32")
    }

    /// The PEs of `node`, in order.
    #[must_use]
    pub fn pes(&self, node: NodeId) -> &[u32] {
        self.pes.get(node.as_usize()).map_or(&[], Vec::as_slice)
    }

    /// The node of `pe`; the driver's is the launcher. That of a PE that there is not is none of the run.
    #[must_use]
    #[inline]
    pub fn node_of(&self, pe: PeId) -> NodeId {
        if pe == PeId::DRIVER {
            return NodeId::LAUNCHER;
        }
        self.places.get(pe.as_usize()).copied().unwrap_or(NodeId(u16::MAX))
    }

    /// The nodes that have PEs, in order.
    #[must_use]
    pub fn compute_nodes(&self) -> &[NodeId] {
        &self.compute_nodes
    }

    /// The launcher and the nodes that have PEs, in order.
    pub fn members(&self) -> impl Iterator<Item = NodeId> {
        std::iter::once(NodeId::LAUNCHER).chain(self.compute_nodes.iter().copied())
    }

    /// The PE that combines for `node` what its PEs contribute to the collection or section `key`: another
    /// one for each key, so that no PE does it all. `None` for a node without PEs.
    #[must_use]
    pub fn combiner(&self, node: NodeId, key: u64) -> Option<PeId> {
        let pes = self.pes(node);
        let place = (key ^ key >> 32).checked_rem(pes.len() as u64)?;
        pes.get(usize::try_from(place).ok()?).copied().map(PeId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_that_share_cores_share_their_speed() {
        let before = Topology::new(&[0, 2, 1, 1]);
        let now = before.rearranged(&[(PeId(2), NodeId(1))]);
        let speeds = before.shared_rates(&[1.0, 0.8, 0.5, 0.3], &now);
        assert!(speeds.iter().zip([0.6, 0.6, 0.6, 0.3]).all(|(found, right)| (found - right).abs() < 1e-12));
    }

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
    #[test]
    fn pes_go_to_the_nodes_that_bear_them_best_and_their_numbers_and_the_beginning_stay() {
        let begun = Topology::new(&[0, 2, 1, 2]);
        let moves = begun.without(NodeId(1), &[1.0, 1.0, 1.0, 0.25, 0.25]).unwrap();
        assert_eq!(moves, [(PeId(0), NodeId(2)), (PeId(1), NodeId(2))]);
        let then = begun.rearranged(&moves);
        assert_eq!(
            (then.pes(NodeId(1)), then.pes(NodeId(2)), then.pes(NodeId(3))),
            (&[][..], &[0, 1, 2][..], &[3, 4][..])
        );
        assert_eq!(then.compute_nodes(), [NodeId(2), NodeId(3)]);
        assert_eq!((then.begun(), then.before()), (&begun, &begun));
        let moves = then.without(NodeId(2), &[1.0; 5]).unwrap();
        let last = then.rearranged(&moves);
        assert_eq!(last.pes(NodeId(3)), [0, 1, 2, 3, 4]);
        assert_eq!((last.begun(), last.before().pes(NodeId(2))), (&begun, then.pes(NodeId(2))));
        assert_eq!(last.without(NodeId(3), &[1.0; 5]), None, "somebody has to do the work");
    }

    #[test]
    fn a_node_joins_behind_all_others_and_what_was_numbered_stays_so() {
        let begun = Topology::new(&[0, 1, 2]);
        let moves = begun.without(NodeId(1), &[1.0; 3]).unwrap();
        let now = begun.rearranged(&moves).joined_by(NodeId(3), 2);
        assert_eq!(
            (now.pes(NodeId(1)), now.pes(NodeId(2)), now.pes(NodeId(3))),
            (&[][..], &[0, 1, 2][..], &[3, 4][..])
        );
        assert_eq!((now.node_count(), now.begun(), now.before().pe_count()), (4, &begun, 3));
        let stretches = now.stretches();
        assert_eq!(stretches, [(NodeId(2), 3), (NodeId(3), 2)]);
        let told = Topology::of_stretches(&stretches, 4).gone_on_from(&begun.pe_counts());
        assert_eq!(told, Topology { before: None, ..now });
    }
}
