//! Boxes that are cut into elements of one size, and into subdomains by recursive bisection.
//!
//! Nodes are counted with x running fastest. The cut depends on the mesh alone, never on the machines, so that a solution has
//! the same bits whoever computes it. Subdomains are numbered as bisection makes them, so that those with adjoining numbers
//! adjoin in space: whoever gets a range of numbers gets a part of the box that bisection by speeds would give it.

use super::shape::Shape;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Some nodes of a lattice: a range along each axis.
pub type Nodes = [Range<usize>; 3];

/// A box of elements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lattice {
    /// Of all its elements, which are products of lines.
    pub shape: Shape,
    /// Elements along each axis; 0 along those that it does not have.
    pub elements: [usize; 3],
    /// How long it is along each axis.
    pub lengths: [f64; 3],
}

impl Lattice {
    /// Nodes along each axis.
    #[must_use]
    pub fn nodes_along(&self) -> [usize; 3] {
        self.elements.map(|count| count * self.shape.order + 1)
    }

    /// Nodes of all.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes_along().iter().product()
    }

    /// The number of a node.
    #[must_use]
    pub fn id(&self, at: [usize; 3]) -> u64 {
        let [nx, ny, _] = self.nodes_along();
        ((at[2] * ny + at[1]) * nx + at[0]) as u64
    }

    /// Where the node of a number is in the lattice.
    #[must_use]
    pub fn place(&self, id: u64) -> [usize; 3] {
        let ([nx, ny, _], id) = (self.nodes_along(), id as usize);
        [id % nx, id / nx % ny, id / (nx * ny)]
    }

    /// Where a node is in space.
    #[must_use]
    pub fn point(&self, at: [usize; 3]) -> [f64; 3] {
        let last = self.nodes_along().map(|n| n - 1);
        std::array::from_fn(
            |k| if last[k] == 0 { 0.0 } else { self.lengths[k] * at[k] as f64 / last[k] as f64 },
        )
    }

    /// The sides that a node is on: bit 0 is the low end of x, bit 1 the high one, bit 2 the low one of y, and so on.
    #[must_use]
    pub fn sides(&self, at: [usize; 3]) -> u32 {
        let nodes = self.nodes_along();
        let bit =
            |k: usize| u32::from(at[k] == 0) << (2 * k) | u32::from(at[k] + 1 == nodes[k]) << (2 * k + 1);
        (0..self.shape.dim).map(bit).sum()
    }

    /// The same box with half as many elements along each axis; nothing if it has one only.
    #[must_use]
    pub fn coarser(&self) -> Option<Self> {
        let elements = self.elements.map(|count| count.div_ceil(2));
        (elements != self.elements).then_some(Self { elements, ..*self })
    }

    /// Elements, a range along each axis, that have some of these nodes.
    #[must_use]
    pub fn elements_of(&self, nodes: &Nodes) -> Nodes {
        let order = self.shape.order;
        std::array::from_fn(|k| match self.elements[k] {
            0 => 0..1,
            count => {
                let first = nodes[k].start.div_ceil(order).saturating_sub(1);
                first..((nodes[k].end.saturating_sub(1)) / order + 1).min(count)
            }
        })
    }

    /// All nodes of these elements.
    #[must_use]
    pub fn nodes_of(&self, elements: &Nodes) -> Nodes {
        let order = self.shape.order;
        std::array::from_fn(|k| match self.elements[k] {
            0 => 0..1,
            _ => elements[k].start * order..elements[k].end * order + 1,
        })
    }
}

/// The nodes of a lattice in subdomains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Nodes along each axis.
    pub nodes: [usize; 3],
    /// Subdomains.
    pub parts: u32,
}

impl Cut {
    /// The nodes of a subdomain.
    #[must_use]
    pub fn part(&self, part: u32) -> Nodes {
        self.descend(|cut| part < cut.parts_below)
    }

    /// The subdomain of a node.
    #[must_use]
    pub fn owner(&self, at: [usize; 3]) -> u32 {
        let mut owner = 0;
        self.descend(|cut| {
            let is_below = at[cut.axis] < cut.place;
            owner = if is_below { owner } else { cut.parts_below };
            is_below
        });
        owner
    }

    /// Halves the box across its longest side until one subdomain is left, on the side that is told of each cut.
    fn descend(&self, mut is_below: impl FnMut(&Halving) -> bool) -> Nodes {
        let (mut nodes, mut parts) = (self.nodes.map(|n| 0..n), 0..self.parts);
        while parts.len() > 1 {
            let axis = (0..3).rev().max_by_key(|&k| nodes[k].len()).unwrap_or(0);
            let below = parts.len() / 2;
            let place = nodes[axis].start + nodes[axis].len() * below / parts.len();
            let middle = parts.start + below as u32;
            if is_below(&Halving { axis, place, parts_below: middle }) {
                (nodes[axis].end, parts.end) = (place, middle);
            } else {
                (nodes[axis].start, parts.start) = (place, middle);
            }
        }
        nodes
    }

    /// The nodes of a subdomain in a coarser lattice of the same box, with so many nodes along each axis: those whose places
    /// are among its own ones.
    #[must_use]
    pub fn coarse_part(&self, part: u32, nodes: [usize; 3]) -> Nodes {
        let fine = self.part(part);
        std::array::from_fn(|k| {
            let (coarse, last) = (nodes[k] - 1, (self.nodes[k] - 1).max(1));
            let end =
                |at: usize| if coarse == 0 { at.min(1) } else { (at * coarse).div_ceil(last).min(nodes[k]) };
            // Behind the last node there is no place.
            let high = if fine[k].end == self.nodes[k] { nodes[k] } else { end(fine[k].end) };
            end(fine[k].start)..high
        })
    }

    /// The subdomain of a node in a coarser lattice of the same box.
    #[must_use]
    pub fn coarse_owner(&self, at: [usize; 3], nodes: [usize; 3]) -> u32 {
        let last = nodes.map(|n| (n - 1).max(1));
        self.owner(std::array::from_fn(|k| at[k] * (self.nodes[k] - 1) / last[k]))
    }
}

/// A cut of a part of the box.
struct Halving {
    axis: usize,
    /// The first node above it.
    place: usize,
    /// The first subdomain above it.
    parts_below: u32,
}

/// The smallest box around two.
#[must_use]
pub fn hull(one: &Nodes, other: &Nodes) -> Nodes {
    if other.iter().any(Range::is_empty) {
        return one.clone();
    }
    if one.iter().any(Range::is_empty) {
        return other.clone();
    }
    std::array::from_fn(|k| one[k].start.min(other[k].start)..one[k].end.max(other[k].end))
}

/// All nodes of a box, x running fastest.
pub fn each(nodes: &Nodes) -> impl Iterator<Item = [usize; 3]> + use<> {
    let [x, y, z] = nodes.clone();
    z.flat_map(move |k| {
        let x = x.clone();
        y.clone().flat_map(move |j| x.clone().map(move |i| [i, j, k]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_node_of_every_level_has_the_owner_whose_part_it_is_in(
            elements in prop::array::uniform3(1usize..12),
            order in 1usize..3,
            dim in 2usize..4,
            parts in 1u32..9,
        ) {
            let mut elements = elements;
            elements[dim..].fill(0);
            let mut lattice = Lattice { shape: Shape::product(order, dim), elements, lengths: [1.0; 3] };
            let cut = Cut { nodes: lattice.nodes_along(), parts };
            loop {
                let nodes = lattice.nodes_along();
                let mut seen = 0;
                for part in 0..parts {
                    for at in each(&cut.coarse_part(part, nodes)) {
                        prop_assert_eq!(cut.coarse_owner(at, nodes), part);
                        prop_assert_eq!(lattice.place(lattice.id(at)), at);
                        seen += 1;
                    }
                }
                prop_assert_eq!(seen, lattice.nodes());
                let Some(coarser) = lattice.coarser() else { break };
                lattice = coarser;
            }
        }
    }

    #[test]
    fn parts_are_of_about_the_same_size() {
        let cut = Cut { nodes: [100, 60, 1], parts: 7 };
        let sizes: Vec<usize> =
            (0..7).map(|part| cut.part(part).map(|range| range.len()).iter().product()).collect();
        assert!(sizes.iter().all(|size| (700..1000).contains(size)), "{sizes:?}");
    }
}
