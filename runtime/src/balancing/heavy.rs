//! Which chares are the heaviest of their PEs, from what nodes say of their loads, for those who watch.

use crate::ids::{ElementId, NodeId};
use crate::loads::{NodeLoads, PeLoads, Whereabouts};
use crate::monitor::heavy::{Heaviest, HeavyChare, OF_PE_MAX};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Loads are added up for so long before they are told: chares that work in turn shall not take turns on the screen.
const SPAN_NS: u64 = 2_000_000_000;

/// Adds up what nodes say.
#[derive(Debug, Default)]
pub(super) struct Heavy {
    nodes: BTreeMap<NodeId, BTreeMap<u32, OfPe>>,
}

#[derive(Debug, Default)]
struct OfPe {
    wall_ns: u64,
    of: FxHashMap<ElementId, u64>,
}

impl Heavy {
    /// Takes what a node says, which has been checked; what is to be told of it, if it is time for that. `name` gives the place
    /// of a chare's type and its index for people.
    pub(super) fn take(
        &mut self,
        from: NodeId,
        loads: &NodeLoads,
        name: impl Fn(ElementId) -> Option<(u16, String)>,
    ) -> Option<Heaviest> {
        let pes = self.nodes.entry(from).or_default();
        for PeLoads { pe, wall_ns, chares, .. } in &loads.pes {
            let sum = pes.entry(pe.0).or_default();
            sum.wall_ns = sum.wall_ns.saturating_add(*wall_ns);
            for chare in chares {
                if chare.whereabouts == Whereabouts::Here {
                    let ns = sum.of.entry(chare.element).or_default();
                    *ns = ns.saturating_add(chare.cpu_ns);
                } else {
                    sum.of.remove(&chare.element);
                }
            }
        }
        if pes.values().all(|sum| sum.wall_ns < SPAN_NS) {
            return None;
        }
        let pes = self.nodes.remove(&from)?;
        let chares = pes.into_iter().flat_map(|(pe, sum)| sum.heaviest(pe, &name)).collect();
        Some(Heaviest { node: from.0, chares })
    }
}

impl OfPe {
    fn heaviest(self, pe: u32, name: impl Fn(ElementId) -> Option<(u16, String)>) -> Vec<HeavyChare> {
        let mut all: Vec<(Reverse<u64>, ElementId)> = self
            .of
            .into_iter()
            .filter(|(_, ns)| *ns > 0)
            .map(|(element, ns)| (Reverse(ns), element))
            .collect();
        if all.len() > OF_PE_MAX {
            all.select_nth_unstable(OF_PE_MAX - 1);
            all.truncate(OF_PE_MAX);
        }
        all.sort_unstable();
        let wall_ns = self.wall_ns.max(1) as f64;
        let told = |(Reverse(ns), element): (Reverse<u64>, ElementId)| {
            let (chare_type, element) = name(element)?;
            Some(HeavyChare { pe, chare_type, element, part: ns as f64 / wall_ns })
        };
        all.into_iter().filter_map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex, PeId};
    use crate::loads::ChareLoad;

    fn element(at: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), 1), index: ElementIndex([at, 0, 0]) }
    }

    fn said(pe: u32, wall_ms: u64, chares: &[(u32, u64, bool)]) -> NodeLoads {
        let chare = |(at, ms, is_here): &(u32, u64, bool)| ChareLoad {
            element: element(*at),
            cpu_ns: ms * 1_000_000,
            bytes: 0,
            whereabouts: if *is_here { Whereabouts::Here } else { Whereabouts::Ended },
            mobility: Default::default(),
            remaining: None,
        };
        let of_pe = PeLoads {
            pe: PeId(pe),
            wall_ns: wall_ms * 1_000_000,
            cpu_part: None,
            probed: None,
            fixed_ns: 0,
            chares: chares.iter().map(chare).collect(),
            traffic: Vec::new(),
            other_traffic: Default::default(),
        };
        NodeLoads { pes: vec![of_pe], ..NodeLoads::default() }
    }

    fn name(element: ElementId) -> Option<(u16, String)> {
        Some((1, format!("[{}]", element.index.0[0])))
    }

    #[test]
    fn the_heaviest_of_two_seconds_are_told_and_who_has_left_is_not() {
        let mut heavy = Heavy::default();
        let some: Vec<_> = (0..9).map(|at| (at, 10 * u64::from(at), true)).collect();
        assert_eq!(heavy.take(NodeId(1), &said(3, 1000, &some), name), None);
        assert_eq!(
            heavy.take(NodeId(2), &said(4, 1500, &[(20, 1, true)]), name),
            None,
            "each node has its time"
        );
        let told =
            heavy.take(NodeId(1), &said(3, 1000, &[(0, 500, true), (8, 0, false), (7, 30, true)]), name);
        let one = |element: &str, part| HeavyChare { pe: 3, chare_type: 1, element: element.into(), part };
        let chares = vec![one("[0]", 0.25), one("[7]", 0.05), one("[6]", 0.03), one("[5]", 0.025)];
        assert_eq!(told, Some(Heaviest { node: 1, chares }));
        assert_eq!(heavy.take(NodeId(1), &said(3, 1900, &[]), name), None, "it begins anew");
        let told = heavy.take(NodeId(1), &said(3, 100, &[(5, 200, true)]), |_| None);
        assert_eq!(told.map(|told| told.chares.len()), Some(0), "what has no name");
    }
}
