//! Sections: some elements of a collection, with multicasts and reductions of their own.
//!
//! Nobody keeps a table of sections. Who sends or contributes has the list of members, from which follow, by
//! the placement that every node knows, the nodes that take part and the tree over them.

use super::Pe;
use crate::collection::Collection;
use crate::envelope::{CollectionId, ElementId, ElementIndex, Packed};
use crate::ids::{NodeId, PeId};
use crate::moving::{Audience, Heading, What};
use crate::priority::Priority;
use crate::proto::tree::{ARITY, TreeOver};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a reduction over a section comes together, as seen from the PE where some of its members
/// are at home.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SectionPlan {
    /// The section's identity.
    pub id: u64,
    /// All of its members.
    pub members: Arc<Vec<ElementIndex>>,
    /// Members that are at home on this PE.
    pub here: u64,
    /// The combining PE of its node, of the node above it and so on to the root, each with the count of
    /// members whose values come together there.
    pub path: Vec<(PeId, u64)>,
}

/// The plans of a PE: at least those used last. Who takes part in a reduction has the members from which they are made, so that
/// those can go which nobody has used for long: programs may make a section for each reduction.
#[derive(Debug, Default)]
pub(super) struct Plans {
    /// Those used since the others were put aside.
    recent: PlanTable,
    others: PlanTable,
    /// Of those in `recent`.
    weight: usize,
}

/// Plans by section and home.
pub(super) type PlanTable = FxHashMap<(u64, PeId), Arc<SectionPlan>>;

/// Plans weigh as much as they have members, and this in addition: then there are some megabytes of them.
const PLAN_WEIGHT: usize = 32;
const RECENT_WEIGHT_MAX: usize = 1 << 19;

impl Plans {
    fn get(&mut self, key: (u64, PeId)) -> Option<Arc<SectionPlan>> {
        if let Some(plan) = self.recent.get(&key) {
            return Some(Arc::clone(plan));
        }
        let plan = self.others.remove(&key)?;
        self.weight += weight(&plan);
        self.recent.insert(key, Arc::clone(&plan));
        Some(plan)
    }

    /// The same of a section of which a reduction is under way, or has just ended.
    pub(super) fn of_reduction(&self, key: (u64, PeId)) -> Option<Arc<SectionPlan>> {
        self.recent.get(&key).or_else(|| self.others.get(&key)).map(Arc::clone)
    }

    /// Adds one. Where there are many, those go that have not been used since that was so last, unless a reduction over
    /// their section is `under_way`: its result may be for the members.
    fn insert(
        &mut self,
        key: (u64, PeId),
        plan: Arc<SectionPlan>,
        under_way: impl FnOnce() -> FxHashSet<u64>,
    ) {
        if self.weight > RECENT_WEIGHT_MAX {
            let under_way = under_way();
            self.others.retain(|(section, _), _| under_way.contains(section));
            self.others.extend(std::mem::take(&mut self.recent));
            self.weight = 0;
        }
        self.weight += weight(&plan);
        self.recent.insert(key, plan);
    }

    /// All of them, to be saved.
    pub(super) fn all(&self) -> PlanTable {
        self.others.iter().chain(&self.recent).map(|(key, plan)| (*key, Arc::clone(plan))).collect()
    }

    /// Those that were saved.
    pub(super) fn of(saved: PlanTable) -> Self {
        let weight = saved.values().map(|plan| weight(plan)).sum();
        Self { recent: saved, others: PlanTable::default(), weight }
    }
}

fn weight(plan: &SectionPlan) -> usize {
    plan.members.len() + PLAN_WEIGHT
}

impl Pe {
    /// Sends to some elements of a collection, along a tree over the nodes that hold any.
    ///
    /// # Errors
    /// The index that lies outside, or `None` if the collection is not known here yet.
    pub fn multicast(
        &mut self,
        collection: CollectionId,
        members: &[ElementIndex],
        entry: u16,
        priority: impl Into<Priority>,
        packed: &Packed,
    ) -> Result<(), Option<ElementIndex>> {
        let priority = priority.into();
        // What waits for the description must not be overtaken by what comes later.
        if self.is_waited_for(collection) {
            return Err(None);
        }
        let known = self.collection(collection).ok_or(None)?;
        let with_home = |&index: &ElementIndex| {
            known.pe_of(index).map(|home| (ElementId { collection, index }, home)).ok_or(Some(index))
        };
        let mut members: Vec<(ElementId, PeId)> = members.iter().map(with_home).collect::<Result<_, _>>()?;
        let is_mover = self.moved.mover.is_some();
        if (is_mover || !self.moved.locations.is_empty()) && self.goes_straight(&members) {
            let is_numbered = |(element, _): &(ElementId, PeId)| self.numbers(*element);
            let (numbered, plain): (Vec<_>, Vec<_>) = members.into_iter().partition(is_numbered);
            members = plain;
            let heading = Heading { what: What::Run(entry), priority: priority.clone() };
            self.send_numbered_to_all(&numbered, &heading, packed.clone());
        } else if is_mover {
            let all = members.iter().map(|(element, _)| element.index).collect();
            let audience = || Audience { collection, members: Some(all), entry, priority };
            drop(self.speak(audience, packed.clone()));
            return Ok(());
        }
        let mut by_pe: BTreeMap<PeId, Vec<ElementIndex>> = BTreeMap::new();
        for (element, home) in members {
            by_pe.entry(home).or_default().push(element.index);
        }
        self.account().created(by_pe.len() as u64);
        let what = (collection, entry, self.mark());
        let colour = Some(self.colour());
        let bytes = self.node.multicast(colour, what, priority, by_pe.into_iter().collect(), packed);
        self.account().left(bytes);
        Ok(())
    }

    /// Whether a message to a section leaves for each of its nodes from where it is sent, and none passes it on. Then what
    /// was sent to one member before, by whichever of these ways, is before it, and it may go past the homes of those who
    /// have moved. Which of both it is depends on the section alone: a message to it never overtakes another.
    fn goes_straight(&self, members: &[(ElementId, PeId)]) -> bool {
        let topology = self.node.topology();
        let nodes: BTreeSet<NodeId> = members.iter().map(|(_, home)| topology.node_of(*home)).collect();
        nodes.len() <= ARITY as usize
    }

    /// How a reduction over the section `id` of those members goes from the PE `home`; `None` if the collection is
    /// not known here or no member is at home there.
    pub fn section_plan(
        &mut self,
        id: u64,
        collection: CollectionId,
        members: &Arc<Vec<ElementIndex>>,
        home: PeId,
    ) -> Option<Arc<SectionPlan>> {
        if let Some(plan) = self.plans.get((id, home)) {
            return Some(plan);
        }
        let known = self.collection(collection)?;
        let plan = Arc::new(self.make_plan(id, &known, members, home)?);
        let Self { plans, reductions, .. } = self;
        plans.insert((id, home), Arc::clone(&plan), || reductions.under_way());
        Some(plan)
    }

    fn make_plan(
        &self,
        id: u64,
        known: &Collection,
        members: &Arc<Vec<ElementIndex>>,
        home: PeId,
    ) -> Option<SectionPlan> {
        let topology = self.node.topology().begun();
        let mut counts = BTreeMap::<NodeId, BTreeMap<PeId, u64>>::new();
        for at in members.iter().filter_map(|member| known.pe_of(*member)) {
            *counts.entry(topology.node_of(at)).or_default().entry(at).or_default() += 1;
        }
        let node = topology.node_of(home);
        let here = *counts.get(&node)?.get(&home)?;
        let nodes: Vec<NodeId> = counts.keys().copied().collect();
        // Another root for each section, so that no node is the root of all.
        let tree = TreeOver::new(&nodes, nodes[rank(id, nodes.len())])?;
        let place = |node: &NodeId| {
            let below = tree.subtree(*node).flat_map(|below| counts[&below].values()).sum();
            // The combining PE is one with members, so that the root knows who they are.
            let pes = &counts[node];
            Some((*pes.keys().nth(rank(id, pes.len()))?, below))
        };
        let upwards = std::iter::successors(Some(node), |node| tree.parent(*node));
        let path = upwards.map(|node| place(&node)).collect::<Option<_>>()?;
        Some(SectionPlan { id, members: Arc::clone(members), here, path })
    }
}

/// Picks one of `count` places, a different one for each section. There is at least one place.
fn rank(id: u64, count: usize) -> usize {
    (id % count.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_sections_that_nobody_uses_any_more_go() {
        let members = Arc::new(vec![ElementIndex([0; 3]); 1 << 14]);
        let plan =
            |id| Arc::new(SectionPlan { id, members: Arc::clone(&members), here: 1, path: Vec::new() });
        let (mut plans, home) = (Plans::default(), PeId(0));
        // Of the first a reduction is under way all the time, the second is used now and then.
        for id in 0..1000 {
            assert!(plans.get((id, home)).is_none());
            plans.insert((id, home), plan(id), || FxHashSet::from_iter([0]));
            assert!(id % 10 > 0 || plans.get((1, home)).is_some() || id == 0, "{id}");
            assert!(plans.get((id, home)).is_some(), "what was made last is there");
        }
        assert!(plans.of_reduction((0, home)).is_some() && plans.of_reduction((2, home)).is_none());
        let count = plans.all().len();
        assert!((32..80).contains(&count), "{count} are left");
        let mut saved = Plans::of(plans.all());
        plans.insert((1000, home), plan(1000), FxHashSet::default);
        saved.insert((1000, home), plan(1000), FxHashSet::default);
        assert!(saved.of_reduction((0, home)).is_some(), "who goes on puts them aside once more");
        (1001..1100).for_each(|id| saved.insert((id, home), plan(id), FxHashSet::default));
        assert!(saved.of_reduction((0, home)).is_none() && saved.all().len() < 80);
    }
}
