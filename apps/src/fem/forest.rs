//! Boxes of square blocks, each of which has elements of one size: those of its level, half as long as those of the level
//! below. Where blocks of neighbouring levels meet, nodes of the finer one hang ([`Kind`]).
//!
//! Nodes are counted in the lattice that is finest everywhere, so that a node has the same number on all levels. A node belongs
//! to the first block that touches it. Blocks are numbered as bisection makes them.

use super::kind::Kind;
use super::lattice::{Lattice, each};
use super::submesh::Submesh;
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Levels above the coarsest, at most.
pub const LEVELS_MAX: u8 = 6;

/// A box of blocks, in two dimensions, with elements of order 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forest {
    /// The mesh where all blocks are of level 0.
    pub lattice: Lattice,
    /// Elements along a side of a block of level 0, at least 2; elements of the mesh are a multiple.
    pub side: usize,
    /// The finest level.
    pub finest: u8,
}

impl Forest {
    /// Blocks along x and y.
    fn blocks_along(&self) -> [usize; 2] {
        [0, 1].map(|k| (self.lattice.elements[k] / self.side).max(1))
    }

    /// Halves the box across its longest side until one block is left, on the side that is told of each cut: its axis, the first
    /// block above it, and how many are below.
    fn descend(&self, mut is_below: impl FnMut(usize, usize, u32) -> bool) -> [usize; 2] {
        let (mut low, mut along) = ([0; 2], self.blocks_along());
        while along[0] * along[1] > 1 {
            let axis = usize::from(along[1] >= along[0]);
            let half = along[axis] / 2;
            if is_below(axis, low[axis] + half, (half * along[1 - axis]) as u32) {
                along[axis] = half;
            } else {
                (low[axis], along[axis]) = (low[axis] + half, along[axis] - half);
            }
        }
        low
    }

    /// The number of the block at a place, in blocks.
    fn number(&self, at: [usize; 2]) -> u32 {
        let mut number = 0;
        self.descend(|axis, place, count| {
            let is_below = at[axis] < place;
            number += if is_below { 0 } else { count };
            is_below
        });
        number
    }

    /// Blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks_along().iter().product::<usize>() as u32
    }

    /// The lattice of which nodes have numbers.
    #[must_use]
    pub fn fine(&self) -> Lattice {
        Lattice { elements: self.lattice.elements.map(|count| count << self.finest), ..self.lattice }
    }

    /// Elements along a side of a block.
    #[must_use]
    pub fn along(&self, level: u8) -> usize {
        self.side << level
    }

    /// Elements of all blocks.
    #[must_use]
    pub fn elements(&self, levels: &[u8]) -> usize {
        levels.iter().map(|&level| self.along(level).pow(2)).sum()
    }

    /// Where a block is, in blocks.
    #[must_use]
    pub fn place(&self, block: u32) -> [usize; 2] {
        let mut rest = block;
        self.descend(|_, _, count| {
            let is_below = rest < count;
            rest -= if is_below { 0 } else { count };
            is_below
        })
    }

    /// Blocks that touch a block, ascending, and where they are beside it.
    #[must_use]
    pub fn around(&self, block: u32) -> Vec<(u32, [isize; 2])> {
        let ([x, y], along) = (self.place(block), self.blocks_along());
        let steps = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| [dx, dy])).filter(|step| *step != [0, 0]);
        let beside = steps.filter_map(|[dx, dy]| {
            let at = [x.checked_add_signed(dx)?, y.checked_add_signed(dy)?];
            (at[0] < along[0] && at[1] < along[1]).then(|| (self.number(at), [dx, dy]))
        });
        let mut all: Vec<_> = beside.collect();
        all.sort_unstable();
        all
    }

    /// The block that a node belongs to: the first of those that touch it.
    fn owner(&self, fine: [usize; 3]) -> u32 {
        let (blocks, along) = (self.blocks_along(), self.along(self.finest));
        let touching = |k: usize| {
            let block = fine[k] / along;
            let below = if fine[k].is_multiple_of(along) { block.saturating_sub(1) } else { block };
            below..block.min(blocks[k] - 1) + 1
        };
        each(&[touching(0), touching(1), 0..1]).map(|[x, y, _]| self.number([x, y])).min().unwrap_or(0)
    }

    /// A node of a block in the finest lattice.
    #[must_use]
    pub fn node(&self, block: [usize; 2], level: u8, at: [usize; 2]) -> [usize; 3] {
        let node = |k: usize| (block[k] * self.along(level) + at[k]) << (self.finest - level);
        [node(0), node(1), 0]
    }

    /// Which sides of a block meet larger elements: the low one and the high one of x, and of y.
    fn meets_larger(&self, block: u32, levels: &[u8]) -> [bool; 4] {
        let around = self.around(block);
        [[-1, 0], [1, 0], [0, -1], [0, 1]].map(|step| {
            let beside = around.iter().find(|(_, place)| *place == step);
            beside.is_some_and(|(other, _)| levels[*other as usize] < levels[block as usize])
        })
    }

    /// For a node of a block that hangs, the axis of the side that it hangs on.
    #[must_use]
    pub fn hangs(along: usize, larger: [bool; 4], at: [usize; 2]) -> Option<usize> {
        (0..2).find(|&axis| {
            let across = 1 - axis;
            let meets =
                at[across] == 0 && larger[2 * across] || at[across] == along && larger[2 * across + 1];
            meets && at[axis] % 2 == 1
        })
    }

    /// The nodes of an element of a block, where others stand for those that hang, and its kind.
    fn element(&self, part: &Part, [x, y]: [usize; 2]) -> ([u64; 4], Kind) {
        let (along, fine) = (self.along(part.level), self.fine());
        let mut kind = Kind::of_level(part.level);
        let nodes = std::array::from_fn(|corner| {
            let mut at = [x + corner % 2, y + corner / 2];
            if let Some(axis) = Self::hangs(along, part.larger, at) {
                kind = kind.hanging(corner, axis);
                // The near end of the side is another corner, and the far one as far on the other side.
                let is_high = corner >> axis & 1 == 1;
                at[axis] = if is_high { at[axis] + 1 } else { at[axis] - 1 };
            }
            fine.id(self.node(part.place, part.level, at))
        });
        (nodes, kind)
    }

    /// What is to be known of a block for its elements.
    #[must_use]
    pub fn part(&self, block: u32, levels: &[u8]) -> Part {
        let level = levels[block as usize];
        Part { place: self.place(block), level, larger: self.meets_larger(block, levels) }
    }

    /// The subdomain of a block, and which of its elements lie in the block, x running fastest.
    #[must_use]
    pub fn submesh(&self, block: u32, levels: &[u8]) -> (Submesh, Range<usize>) {
        let mut with = self.around(block);
        with.push((block, [0, 0]));
        with.sort_unstable();
        let (mut elements, mut kinds, mut mine) = (Vec::new(), Vec::new(), 0..0);
        let (mut faces, mut face_groups) = (Vec::new(), Vec::new());
        let owners = &mut Owners { forest: self, known: BTreeMap::new() };
        let of_shape = self.lattice.shape.faces();
        for (other, step) in with {
            let (part, along) = (self.part(other, levels), self.along(levels[other as usize]));
            // Where a far end stands for a corner that hangs, an element in the second row can have an own node.
            let near = |step: isize| match step {
                0 => 0..along,
                1 => 0..along.min(2),
                _ => along - along.min(2)..along,
            };
            let first = kinds.len();
            for [x, y, _] in each(&[near(step[0]), near(step[1]), 0..1]) {
                let (nodes, kind) = self.element(&part, [x, y]);
                if !nodes.iter().any(|&node| owners.of(node) == block) {
                    continue;
                }
                let count = self.lattice.elements.map(|count| count << part.level);
                let at = [part.place[0] * along + x, part.place[1] * along + y];
                for (side, of_side) in of_shape.iter().enumerate() {
                    let (axis, is_high) = (side / 2, side % 2 == 1);
                    if at[axis] == if is_high { count[axis] - 1 } else { 0 } {
                        faces.extend(of_side.iter().map(|&corner| nodes[corner]));
                        face_groups.push(side as u32);
                    }
                }
                elements.extend(nodes);
                kinds.push(kind.0);
            }
            if other == block {
                mine = first..kinds.len();
            }
        }
        let mesh = self.numbered(block, (&elements, kinds), (&faces, face_groups), owners);
        (mesh, mine)
    }

    fn numbered(
        &self,
        block: u32,
        (elements, kinds): (&[u64], Vec<u32>),
        (faces, face_groups): (&[u64], Vec<u32>),
        owners: &mut Owners<'_>,
    ) -> Submesh {
        let mut all: Vec<(bool, u32, u64)> =
            elements.iter().map(|&id| (owners.of(id), id)).map(|(by, id)| (by != block, by, id)).collect();
        all.sort_unstable();
        all.dedup();
        let numbers: BTreeMap<u64, u32> = (0..).zip(&all).map(|(at, (.., id))| (*id, at)).collect();
        let own = all.iter().take_while(|(is_other, ..)| !is_other).count();
        let (mut sources, mut first): (Vec<(u32, Range<usize>)>, usize) = (Vec::new(), own);
        for run in all[own..].chunk_by(|one, other| one.1 == other.1) {
            sources.push((run[0].1, first..first + run.len()));
            first += run.len();
        }
        let (fine, of) = (self.fine(), |ids: &[u64]| ids.iter().map(|id| numbers[id]).collect::<Vec<_>>());
        let places = || all.iter().map(|(.., id)| fine.place(*id));
        Submesh {
            shape: self.lattice.shape,
            own,
            points: places().flat_map(|at| fine.point(at)).collect::<Vec<_>>().into(),
            groups: places().map(|at| fine.sides(at)).collect::<Vec<_>>().into(),
            ids: all.iter().map(|(.., id)| *id).collect::<Vec<_>>().into(),
            sources,
            elements: of(elements).into(),
            faces: of(faces).into(),
            face_groups: face_groups.into(),
            is_uniform: false,
            kinds: Bulk::from(kinds),
        }
    }
}

/// What is to be known of a block for its elements.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Where it is, in blocks.
    pub place: [usize; 2],
    /// Its level.
    pub level: u8,
    /// Which of its sides meet larger elements.
    pub larger: [bool; 4],
}

/// Owners of nodes that were asked for.
struct Owners<'a> {
    forest: &'a Forest,
    known: BTreeMap<u64, u32>,
}

impl Owners<'_> {
    fn of(&mut self, id: u64) -> u32 {
        let Self { forest, known } = self;
        *known.entry(id).or_insert_with(|| forest.owner(forest.fine().place(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fem::shape::Shape;

    #[test]
    fn each_block_has_a_number_and_its_neighbours_have_it_beside_them() {
        for elements in [[2, 2, 0], [12, 8, 0], [10, 6, 0], [2, 14, 0], [22, 18, 0]] {
            let lattice = Lattice { shape: Shape::product(1, 2), elements, lengths: [1.0, 1.0, 0.0] };
            let forest = Forest { lattice, side: 2, finest: 1 };
            for block in 0..forest.blocks() {
                assert_eq!(forest.number(forest.place(block)), block);
                for (other, [dx, dy]) in forest.around(block) {
                    assert!(forest.around(other).contains(&(block, [-dx, -dy])));
                }
            }
        }
    }
}
