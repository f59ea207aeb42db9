//! What is known of all chares of a run: which there are, where they are, what they cost and how large they are.

use crate::ids::{ElementId, NodeId, PeId};
use crate::loads::PeLoads;
use crate::topology::Topology;
use loadbalance::Part;
use loadbalance::balance::{Chare, Pe, View};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Collects what nodes say until all have said something, and makes a view of it for a balancer.
#[derive(Debug)]
pub struct Census {
    topology: Topology,
    told: BTreeSet<NodeId>,
    pes: Vec<PeNow>,
    chares: Vec<Known>,
    numbers: FxHashMap<ElementId, usize>,
}

/// A PE, since the last view.
#[derive(Clone, Debug)]
struct PeNow {
    wall_s: f64,
    fixed_s: f64,
    /// The part of its time that the system let it run when it had something to do, as it was measured last.
    cpu_part: f64,
}

#[derive(Clone, Debug)]
struct Known {
    element: ElementId,
    pe: PeId,
    bytes: u64,
    /// Processor time since the last view, on each PE where it was.
    worked: Vec<(PeId, f64)>,
    /// For how many views it has been nowhere.
    nowhere: u32,
}

/// A chare that left a PE and has not come anywhere for so many views has ended.
const NOWHERE_MAX: u32 = 8;

impl Census {
    /// Of a run of which nothing is known yet.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let pe = PeNow { wall_s: 0.0, fixed_s: 0.0, cpu_part: 1.0 };
        Self {
            topology: topology.clone(),
            told: BTreeSet::new(),
            pes: vec![pe; topology.pe_count() as usize],
            chares: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }

    /// Takes what a node says, which has been checked.
    pub fn take(&mut self, from: NodeId, loads: Vec<PeLoads>) {
        self.told.insert(from);
        for PeLoads { pe, wall_ns, cpu_part, fixed_ns, chares } in loads {
            let Some(now) = self.pes.get_mut(pe.as_usize()) else { continue };
            now.wall_s += seconds(wall_ns);
            now.fixed_s += seconds(fixed_ns);
            now.cpu_part = cpu_part.unwrap_or(now.cpu_part);
            for chare in chares {
                let next = self.chares.len();
                let number = *self.numbers.entry(chare.element).or_insert(next);
                if number == next {
                    let element = chare.element;
                    self.chares.push(Known { element, pe, bytes: 0, worked: Vec::new(), nowhere: 0 });
                }
                let known = &mut self.chares[number];
                known.worked.push((pe, seconds(chare.cpu_ns)));
                if chare.bytes > 0 {
                    known.bytes = chare.bytes;
                }
                if chare.is_here {
                    (known.pe, known.nowhere) = (pe, 0);
                } else if known.pe == pe {
                    known.nowhere = known.nowhere.max(1);
                }
            }
        }
    }

    /// Whether every node has said something since the last view.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.told.len() == self.topology.compute_nodes().len()
    }

    /// What chares did per second, and the speeds that PEs delivered, where `cpu_rates` is the work that each PE does in a
    /// second of processor time. Begins anew.
    pub fn view(&mut self, cpu_rates: &[f64]) -> View {
        self.told.clear();
        self.forget();
        let nodes = self.topology.compute_nodes();
        let node_of = |pe: u32| {
            let node = self.topology.node_of(PeId(pe));
            nodes.iter().position(|one| *one == node).unwrap_or_default()
        };
        let rate = |pe: PeId| cpu_rates.get(pe.as_usize()).copied().filter(|rate| *rate > 0.0).unwrap_or(1.0);
        let of_pe = |(pe, now): (u32, &PeNow)| {
            let speed = rate(PeId(pe)) * now.cpu_part;
            let background = rate(PeId(pe)) * per_second(now.fixed_s, now.wall_s);
            Pe { background, ..Pe::from(Part { node: node_of(pe), speed }) }
        };
        let pes: Vec<Pe> = (0..).zip(&self.pes).map(of_pe).collect();
        let of_chare = |known: &mut Known| {
            let worked = known.worked.drain(..);
            let load = worked.map(|(pe, s)| rate(pe) * per_second(s, self.pes[pe.as_usize()].wall_s)).sum();
            Chare { pe: known.pe.0, load, bytes: known.bytes, ..Chare::default() }
        };
        let chares = self.chares.iter_mut().map(of_chare).collect();
        self.pes.iter_mut().for_each(|pe| (pe.wall_s, pe.fixed_s) = (0.0, 0.0));
        View { pes, chares, ..View::default() }
    }

    /// The chare of that number, and the PE where it was last.
    #[must_use]
    pub fn chare(&self, number: u32) -> Option<(ElementId, PeId)> {
        self.chares.get(number as usize).map(|known| (known.element, known.pe))
    }

    /// Forgets chares that have ended.
    fn forget(&mut self) {
        let mut has_ended = false;
        for known in &mut self.chares {
            if known.nowhere > 0 {
                known.nowhere += 1;
                has_ended |= known.nowhere > NOWHERE_MAX;
            }
        }
        if has_ended {
            self.chares.retain(|known| known.nowhere <= NOWHERE_MAX);
            self.numbers = (0..).zip(&self.chares).map(|(number, known)| (known.element, number)).collect();
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn per_second(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex};
    use crate::loads::ChareLoad;

    const SECOND: u64 = 1_000_000_000;

    fn element(at: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), 1), index: ElementIndex([at, 0, 0]) }
    }

    /// That the chares of these numbers worked for so many parts of a second on a PE.
    fn said(pe: u32, cpu_part: f64, chares: &[(u32, f64, bool)]) -> Vec<PeLoads> {
        let chare = |&(at, part, is_here): &(u32, f64, bool)| ChareLoad {
            element: element(at),
            cpu_ns: (part * SECOND as f64) as u64,
            bytes: 10,
            is_here,
        };
        let chares = chares.iter().map(chare).collect();
        vec![PeLoads {
            pe: PeId(pe),
            wall_ns: SECOND,
            cpu_part: Some(cpu_part),
            fixed_ns: SECOND / 10,
            chares,
        }]
    }

    fn census() -> Census {
        Census::new(&Topology::new(&[0, 1, 1]))
    }

    #[test]
    fn loads_are_work_and_speeds_what_is_delivered() {
        let mut census = census();
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.5, true), (1, 0.25, true)]));
        assert!(!census.is_complete());
        census.take(NodeId(2), said(1, 0.5, &[(2, 0.4, true)]));
        assert!(census.is_complete());
        let view = census.view(&[1.0, 2.0]);
        assert!(view.check().is_ok());
        assert_eq!([view.pes[0].part.speed, view.pes[1].part.speed], [1.0, 1.0]);
        assert_eq!([view.pes[0].part.node, view.pes[1].part.node], [0, 1]);
        assert_eq!([view.pes[0].background, view.pes[1].background], [0.1, 0.2]);
        let chares: Vec<_> = view.chares.iter().map(|chare| (chare.pe, chare.load, chare.bytes)).collect();
        assert_eq!(chares, [(0, 0.5, 10), (0, 0.25, 10), (1, 0.8, 10)]);
        assert_eq!(census.view(&[1.0, 2.0]).chares[0].load, 0.0, "it begins anew");
        assert!(!census.is_complete());
    }

    #[test]
    fn a_node_that_speaks_twice_counts_once() {
        let mut census = census();
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.5, true)]));
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.3, true)]));
        census.take(NodeId(2), said(1, 1.0, &[]));
        assert_eq!(census.view(&[1.0, 1.0]).chares[0].load, 0.4);
    }

    #[test]
    fn a_chare_keeps_its_number_wherever_it_goes_until_it_has_ended() {
        let mut census = census();
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.1, true), (1, 0.1, true)]));
        census.view(&[1.0, 1.0]);
        // What the new PE says may come before what the old one says.
        census.take(NodeId(2), said(1, 1.0, &[(0, 0.2, true)]));
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.1, false), (1, 0.1, true)]));
        let view = census.view(&[1.0, 1.0]);
        assert_eq!((view.chares[0].pe, census.chare(0)), (1, Some((element(0), PeId(1)))));
        assert!((view.chares[0].load - 0.3).abs() < 1e-12);
        census.take(NodeId(1), said(0, 1.0, &[(1, 0.0, false)]));
        let counts: Vec<usize> =
            (0..NOWHERE_MAX + 1).map(|_| census.view(&[1.0, 1.0]).chares.len()).collect();
        assert_eq!((counts.first(), counts.last()), (Some(&2), Some(&1)));
        assert_eq!(census.chare(0).map(|(element, _)| element), Some(element(0)));
        census.take(NodeId(1), said(0, 1.0, &[(1, 0.1, true)]));
        assert_eq!(census.view(&[1.0, 1.0]).chares.len(), 2, "or another of that index was made");
    }
}
