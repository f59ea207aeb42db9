//! Checks of what a node tells of itself: counters, samples, reductions and loads.

use super::{Checked, Checks, NAME_MAX_BYTES, impossible};
use crate::ids::{NodeId, PeId};
use crate::loads::NodeLoads;
use crate::monitor::collectives::{Collectives, GATHERED_MAX};
use crate::monitor::profile::{COUNTS_MAX, ELEMENT_MAX_BYTES, ENTRIES_MAX, Profile, RECEIVERS_MAX};
use crate::monitor::samples::{SAMPLES_MAX, Samples};
use crate::monitor::wire::NodeSnapshot;
use crate::topology::Topology;

impl Checks<'_> {
    /// Checks what a node says of the loads of its chares.
    pub(in super::super) fn check_loads(&self, from: NodeId, loads: &NodeLoads) -> Checked {
        let pe_count = self.topology.pe_count();
        // It may have been said before PEs went to other nodes.
        let is_sane = [self.topology, self.topology.before()]
            .iter()
            .any(|then| loads.can_be_of(then.pes(from), pe_count));
        if is_sane { Ok(()) } else { impossible("loads that cannot be") }
    }

    pub(super) fn check_snapshot(&self, from: NodeId, snapshot: &NodeSnapshot) -> Checked {
        let numbers = snapshot.pes.iter().map(|pe| pe.pe);
        let are_its = |then: &Topology| numbers.clone().eq(then.pes(from).iter().copied());
        // It may have been taken before PEs went to other nodes, or be the last of a node that has left.
        let has_left = self.topology.pes(from).is_empty();
        let is_known = are_its(self.topology) || are_its(self.topology.before()) || has_left;
        let is_whole = snapshot.node == from.0 && is_known;
        if !is_whole || snapshot.pes.iter().any(|pe| pe.entry.len() > NAME_MAX_BYTES) {
            return impossible("counters that are not those of its PEs");
        }
        snapshot.profile.as_ref().map_or(Ok(()), |profile| self.check_profile(profile))
    }

    /// Checks what a node says of what its PEs ran. It may have been said before PEs went to other nodes.
    pub(super) fn check_samples(&self, from: NodeId, samples: &Samples) -> Checked {
        let is_short = samples.ran.len().max(samples.sent.len()) <= SAMPLES_MAX;
        let is_pe = |pe: u32| self.is_pe(PeId(pe));
        let is_sane = samples.ran.iter().all(|ran| is_pe(ran.pe))
            && samples.sent.iter().all(|sent| is_pe(sent.pe))
            && samples.node == from.0;
        if is_short && is_sane { Ok(()) } else { impossible("samples that no node has") }
    }

    /// Checks what a node says of reductions. It may have been said before PEs went to other nodes.
    pub(super) fn check_collectives(
        &self,
        from: NodeId,
        Collectives { node, gathered }: &Collectives,
    ) -> Checked {
        let is_sane = *node == from.0
            && gathered.len() <= GATHERED_MAX
            && gathered.iter().all(|one| self.is_pe(PeId(one.pe)));
        if is_sane { Ok(()) } else { impossible("reductions that no node has") }
    }

    fn check_profile(&self, profile: &Profile) -> Checked {
        let Profile { entries, sent_to, chares, .. } = profile;
        let is_short = entries.len() <= ENTRIES_MAX
            && sent_to.len() <= RECEIVERS_MAX
            && chares.len() <= COUNTS_MAX
            && entries.iter().all(|one| one.slowest.element.len() <= ELEMENT_MAX_BYTES);
        if !is_short || sent_to.iter().any(|one| one.node >= self.topology.node_count()) {
            return impossible("a profile that no node has");
        }
        Ok(())
    }
}
