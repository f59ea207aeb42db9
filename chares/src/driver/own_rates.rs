//! What PEs do at the nodes that they came with, and at those where they are now.

use loadbalance::machines::relative;
use runtime::ids::NodeId;
use runtime::topology::Topology;

/// The rate of each PE at the node that it came with, all in one unit; nodes that leave and join do not change it.
#[derive(Clone, Debug)]
pub(super) struct OwnRates {
    /// Where PEs came.
    homes: Topology,
    rates: Vec<f64>,
    /// Whether the rates are units of work per second; those of a node that joins have to be in the same unit.
    pub(super) are_measured: bool,
}

impl OwnRates {
    /// Of PEs that all are where they came with; those whose rate is not known count as fast as the others on average.
    pub(super) fn new(rates: &[f64], are_measured: bool, homes: &Topology) -> Self {
        let mean = if rates.is_empty() { 1.0 } else { rates.iter().sum::<f64>() / rates.len() as f64 };
        let mut rates = rates.to_vec();
        rates.resize(homes.pe_count() as usize, mean);
        Self { homes: homes.clone(), rates, are_measured }
    }

    /// A node has joined with PEs of these rates.
    pub(super) fn join(&mut self, node: NodeId, rates: &[f64]) {
        self.homes = self.homes.joined_by(node, u32::try_from(rates.len()).unwrap_or(u32::MAX));
        self.rates.extend(rates);
    }

    /// Of all PEs that came with a node.
    pub(super) fn of_node(&self, node: NodeId) -> f64 {
        self.homes.pes(node).iter().filter_map(|pe| self.rates.get(*pe as usize)).sum()
    }

    /// Of all PEs, relative to the fastest of them.
    pub(super) fn relative(&self) -> Vec<f64> {
        relative(&self.rates)
    }

    /// What they do where they are now, relative to the fastest: a node's own PEs and those that have gone there share what
    /// its own ones would do alone.
    pub(super) fn placed(&self, now: &Topology) -> Vec<f64> {
        relative(&self.homes.shared_rates(&self.rates, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::ids::PeId;

    fn are_alike(found: &[f64], right: &[f64]) -> bool {
        found.len() == right.len()
            && found.iter().zip(right).all(|(found, right)| (found - right).abs() < 1e-12)
    }

    #[test]
    fn who_has_joined_after_others_shared_a_node_counts_in_their_unit() {
        // Three equal nodes of one PE; the last one leaves, and its PE goes to the first one.
        let begun = Topology::new(&[0, 1, 1, 1]);
        let mut rates = OwnRates::new(&[10.0, 10.0, 10.0], true, &begun);
        let drained = begun.rearranged(&[(PeId(2), NodeId(1))]);
        assert!(are_alike(&rates.placed(&drained), &[0.5, 1.0, 0.5]));
        rates.join(NodeId(4), &[20.0]);
        let joined = drained.joined_by(NodeId(4), 1);
        assert!(are_alike(&rates.placed(&joined), &[0.25, 0.5, 0.25, 1.0]));
        assert!(are_alike(&rates.relative(), &[0.5, 0.5, 0.5, 1.0]));
        // The one that has come leaves, too.
        let left = joined.rearranged(&[(PeId(3), NodeId(2))]);
        assert!(are_alike(&rates.placed(&left), &[1.0; 4]));
    }

    #[test]
    fn pes_whose_rates_are_not_known_count_as_the_others() {
        let rates = OwnRates::new(&[1.0, 3.0], true, &Topology::new(&[0, 2, 1]));
        assert!(are_alike(&rates.relative(), &[1.0 / 3.0, 1.0, 2.0 / 3.0]));
        assert!(are_alike(&OwnRates::new(&[], false, &Topology::new(&[0, 1])).relative(), &[1.0]));
    }
}
