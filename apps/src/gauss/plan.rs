//! How a system is cut: blocks of neighbouring columns, those of B behind those of A, and who holds them.

use crate::matrix::Real;
use crate::system::Generated;
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Panels that a node holds besides those that wait: the one that it makes, and one that is on its way.
const PANELS_BESIDE: usize = 2;
/// Rows that are generated at once, and then turned into columns.
const ROWS_AT_ONCE: usize = 64;

/// A system A X = B cut into blocks of columns, as every chare knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Unknowns.
    pub n: usize,
    /// Right-hand sides.
    pub rhs: usize,
    /// Columns of a block; the last of A and the last of B may have fewer.
    pub width: usize,
    /// The part that holds each block: first those of A, then those of B.
    pub owners: Arc<Vec<u32>>,
    /// The numbers, if they are made by seed; else the driver sends them.
    pub generated: Option<Generated>,
}

impl Plan {
    /// Blocks that a system of this size is cut into, those of A and those of B.
    #[must_use]
    pub fn counts(n: usize, rhs: usize, width: usize) -> [usize; 2] {
        [n.div_ceil(width), rhs.div_ceil(width)]
    }

    /// Blocks of A, each of which becomes a panel.
    #[must_use]
    pub fn panels(&self) -> u32 {
        self.count(0)
    }

    /// Blocks of B.
    #[must_use]
    pub fn right_blocks(&self) -> u32 {
        self.count(1)
    }

    fn count(&self, which: usize) -> u32 {
        u32::try_from(Self::counts(self.n, self.rhs, self.width)[which]).expect("sides are below 2^32")
    }

    /// Columns of a block: of A, or if it is behind those of A, of B.
    #[must_use]
    pub fn columns_of(&self, block: u32) -> Range<usize> {
        let panels = self.panels();
        let (block, end) = if block < panels { (block, self.n) } else { (block - panels, self.rhs) };
        let first = block as usize * self.width;
        first..(first + self.width).min(end)
    }

    /// The blocks of a part, in order.
    pub fn blocks_of(&self, part: u32) -> impl Iterator<Item = u32> {
        (0..).zip(self.owners.iter()).filter(move |(_, owner)| **owner == part).map(|(block, _)| block)
    }

    /// The parts that part `part` hands a panel on to, where `nodes` has the home node of each. On each node the part whose
    /// next block comes first gets the panel, from such a part of another node, and hands it to the others at home there.
    /// Nodes and parts follow one another as their next blocks do; those that have no block behind the panel are left out.
    ///
    /// Source: the ring broadcasts of HPL (A. Petitet et al., "HPL", 2018, section "Panel Broadcast").
    #[must_use]
    pub fn onward(&self, panel: u32, part: u32, nodes: &[u32]) -> Vec<u32> {
        let mut is_met = vec![false; nodes.len()];
        let mut order = Vec::new();
        for &owner in &self.owners[panel as usize..] {
            if !std::mem::replace(&mut is_met[owner as usize], true) {
                order.push(owner);
            }
            if order.len() == nodes.len() {
                break;
            }
        }
        let node_of = |part: u32| nodes[part as usize];
        let is_first =
            |part: &u32| order.iter().find(|other| node_of(**other) == node_of(*part)) == Some(part);
        if !is_first(&part) {
            return Vec::new();
        }
        let elsewhere = order.iter().copied().filter(is_first).skip_while(|first| *first != part).nth(1);
        let here = order.iter().copied().filter(|other| *other != part && node_of(*other) == node_of(part));
        elsewhere.into_iter().chain(here).collect()
    }

    /// Takes memory for the panels that come to the node of PE `pe` and are made there, once for each node, where `nodes` has
    /// the node of each PE; the plan is one [of PEs](Self::of_pes).
    pub(super) fn reserve_panels<T: Real>(&self, pe: u32, nodes: &[u32], look_ahead: usize) {
        if let Some(panels) = self.panels_to_reserve(pe, nodes, look_ahead) {
            Bulk::<T>::reserve(self.n * self.width, panels);
        }
    }

    /// How many panels PE `pe` takes memory for: none if it is not the first of its node, or if there is no other node.
    fn panels_to_reserve(&self, pe: u32, nodes: &[u32], look_ahead: usize) -> Option<usize> {
        let node = nodes[pe as usize];
        let here = (0..).zip(nodes).filter(|(_, other)| **other == node).map(|(pe, _)| pe);
        let (first, end) = here.fold((pe, pe + 1), |(first, end), pe| (first.min(pe), end.max(pe + 1)));
        let is_asked = first == pe && nodes.iter().any(|other| *other != node);
        let of_a = &self.owners[..self.panels() as usize];
        is_asked.then(|| panels_waiting(of_a, first..end, look_ahead))
    }

    /// The same with the PE of each block in the place of its part, where `homes` has that of each part.
    pub(super) fn of_pes(&self, homes: &[u32]) -> Self {
        let owners = self.owners.iter().map(|part| homes[*part as usize]).collect();
        Self { owners: Arc::new(owners), ..self.clone() }
    }

    /// Writes the generated columns of a block, one after the other.
    pub fn fill<T: Real>(&self, generated: &Generated, block: u32, columns: &mut [T]) {
        let cols = self.columns_of(block);
        for first in (0..self.n).step_by(ROWS_AT_ONCE) {
            let rows = first..(first + ROWS_AT_ONCE).min(self.n);
            let strip = if block < self.panels() {
                generated.block_a::<T>(rows.clone(), cols.clone())
            } else {
                generated.block_b::<T>(rows.clone(), cols.clone())
            };
            for (j, column) in columns.chunks_exact_mut(self.n).enumerate() {
                let to = column[rows.clone()].iter_mut();
                to.zip(strip.iter().skip(j).step_by(cols.len())).for_each(|(to, value)| *to = *value);
            }
        }
    }
}

/// So many panels may wait at a part to be taken up while it makes the next one first: one for each of so many nodes that a
/// panel passes through, and one more.
pub(super) fn look_ahead(nodes: usize) -> usize {
    nodes + 1
}

/// The most panels that a node with these PEs holds at once, where `owners` has who makes each and parts
/// [look ahead](look_ahead) so far.
pub(super) fn panels_waiting(owners: &[u32], pes: Range<u32>, look_ahead: usize) -> usize {
    // Others cannot be further ahead than to the next panel of the slowest PE here.
    let longest = pes.map(|pe| longest_wait(owners, pe)).max().unwrap_or(0);
    (longest + look_ahead + PANELS_BESIDE).min(owners.len())
}

/// The most panels from one of a PE to its next.
pub(super) fn longest_wait(owners: &[u32], pe: u32) -> usize {
    let own = owners.iter().enumerate().filter(|(_, owner)| **owner == pe).map(|(at, _)| at + 1);
    let ends = std::iter::once(0).chain(own);
    ends.clone().zip(ends.skip(1)).map(|(one, next)| next - one).max().unwrap_or(owners.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(owners: &[u32]) -> Plan {
        Plan { n: owners.len() - 1, rhs: 1, width: 1, owners: Arc::new(owners.to_vec()), generated: None }
    }

    #[test]
    fn a_panel_goes_first_to_who_makes_the_next() {
        let plan = plan(&[0, 2, 1, 0, 3, 1]);
        let alone = [0, 1, 2, 3];
        assert_eq!(plan.onward(0, 0, &alone), [2]);
        assert_eq!(plan.onward(0, 2, &alone), [1]);
        assert_eq!(plan.onward(0, 1, &alone), [3]);
        assert!(plan.onward(0, 3, &alone).is_empty());
        // PE 2 has no block behind its panel, PE 0 one.
        assert_eq!(plan.onward(1, 2, &alone), [1]);
        assert_eq!(plan.onward(3, 0, &alone), [3]);
        let pairs = [0, 0, 1, 1];
        assert_eq!(plan.onward(0, 0, &pairs), [2, 1]);
        assert_eq!(plan.onward(0, 2, &pairs), [3]);
        assert!(plan.onward(0, 1, &pairs).is_empty());
    }

    #[test]
    fn the_longest_wait_is_found() {
        assert_eq!(longest_wait(&[0, 1, 0, 0, 0, 1, 0], 1), 4);
        assert_eq!(longest_wait(&[0, 0, 1], 1), 3);
        assert_eq!(longest_wait(&[0, 0], 1), 2);
        assert_eq!(panels_waiting(&[0, 1, 0, 0, 0, 1, 0], 0..2, 2), 7);
        assert_eq!(panels_waiting(&[0, 1, 0, 0, 0, 1, 0], 0..1, 2), 2 + 2 + PANELS_BESIDE);
        let turns: Vec<u32> = (0..20).map(|at| at % 4).collect();
        assert_eq!(panels_waiting(&turns, 1..2, look_ahead(4)), 4 + 5 + PANELS_BESIDE);
        // PE 0 has every second panel, the others every sixth; the last block is that of B.
        let plan = plan(&[1, 0, 2, 0, 3, 0, 1, 0, 2, 0, 3, 0, 1, 0, 2, 0, 3, 0, 1]);
        let on = |nodes: [u32; 4]| [0, 1, 2, 3].map(|pe| plan.panels_to_reserve(pe, &nodes, 3));
        let waiting = |longest: usize| Some(longest + 3 + PANELS_BESIDE);
        assert_eq!(on([0, 0, 1, 1]), [waiting(6), None, waiting(6), None]);
        assert_eq!(on([0, 1, 1, 2]), [waiting(2), waiting(6), None, waiting(6)]);
        assert_eq!(on([0; 4]), [None; 4], "nothing travels inside a node");
    }

    proptest! {
        #[test]
        fn all_who_need_a_panel_get_it_once(
            owners in prop::collection::vec(0u32..9, 2..60), places in prop::collection::vec(0u32..4, 9), at in 0usize..59,
        ) {
            let panel = at % (owners.len() - 1);
            let plan = plan(&owners);
            let mut got = [0; 9];
            let mut open = vec![owners[panel]];
            while let Some(pe) = open.pop() {
                for next in plan.onward(panel as u32, pe, &places) {
                    got[next as usize] += 1;
                    prop_assert!(got[next as usize] == 1, "{next} twice");
                    open.push(next);
                }
            }
            for pe in 0..9 {
                let needs = pe != owners[panel] && owners[panel + 1..].contains(&pe);
                prop_assert_eq!(got[pe as usize], u32::from(needs), "PE {}", pe);
            }
        }
    }
}
