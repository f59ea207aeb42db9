//! What a subdomain has of a mesh: its own nodes, all elements that have some of these, and the other nodes of the elements.
//!
//! Whoever owns a node adds up its row of the matrix, of all its elements. Elements along cuts are computed by all their
//! owners, in the order of their numbers, so that a row has the same bits however the mesh is cut.

use super::kind::Kind;
use super::lattice::{Cut, Lattice, Nodes, each};
use super::shape::Shape;
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A part of a mesh. Nodes have their own numbers here: own ones first, then those of others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submesh {
    /// Of all elements.
    pub shape: Shape,
    /// Own nodes.
    pub own: usize,
    /// Numbers of the nodes in the whole mesh.
    pub ids: Bulk<u64>,
    /// Where they are: three numbers each.
    pub points: Bulk<f64>,
    /// Groups that they are in, a bit for each.
    pub groups: Bulk<u32>,
    /// Whose the other nodes are, ascending, and which of them.
    pub sources: Vec<(u32, Range<usize>)>,
    /// Nodes of the elements, one after the other.
    pub elements: Bulk<u32>,
    /// Nodes of the faces that groups consist of.
    pub faces: Bulk<u32>,
    /// The group of each face, by its number.
    pub face_groups: Bulk<u32>,
    /// Whether all elements are of one form, so that one matrix is that of all.
    pub is_uniform: bool,
    /// The kind of each element, where elements of one kind have one matrix and corners may hang; empty elsewhere.
    pub kinds: Bulk<u32>,
}

impl Submesh {
    /// Nodes of each element.
    pub fn each_element(&self) -> impl Iterator<Item = &[u32]> {
        self.elements.chunks_exact(self.shape.nodes())
    }

    /// Nodes of each element, and its kind.
    pub fn each_kind(&self) -> impl Iterator<Item = (&[u32], Kind)> {
        let kinds = self.kinds.iter().copied().chain(std::iter::repeat(0));
        self.each_element().zip(kinds.map(Kind))
    }

    /// Nodes of each face, and its group.
    pub fn each_face(&self) -> impl Iterator<Item = (&[u32], u32)> {
        self.faces.chunks_exact(self.shape.face().nodes()).zip(self.face_groups.iter().copied())
    }

    /// Where a node is.
    #[must_use]
    pub fn point(&self, node: usize) -> [f64; 3] {
        self.points.as_chunks::<3>().0[node]
    }

    /// Where the corners of an element are.
    pub fn corners_of(&self, nodes: &[u32], kind: Kind, points: &mut Vec<[f64; 3]>) {
        self.points_of(nodes, points);
        kind.spread(points.as_flattened_mut(), 3);
    }

    /// Where the nodes of an element or a face are.
    pub fn points_of(&self, nodes: &[u32], points: &mut Vec<[f64; 3]>) {
        let all = self.points.as_chunks::<3>().0;
        points.clear();
        points.extend(nodes.iter().map(|&node| all[node as usize]));
    }

    /// Nodes that are here.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.ids.len()
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_elements = self.elements.len() + self.kinds.len();
        36 * self.ids.len() + 4 * (of_elements + self.faces.len() + self.face_groups.len())
    }

    /// A subdomain of a lattice that may be coarser than the one that was cut. `held` are the nodes that are to be here, own
    /// ones and others; those of its elements are among them.
    #[must_use]
    pub fn of_lattice(lattice: &Lattice, cut: &Cut, part: u32, held: &Nodes) -> Self {
        let own = cut.coarse_part(part, lattice.nodes_along());
        let is_own = |at: &[usize; 3]| (0..3).all(|k| own[k].contains(&at[k]));
        let others = each(held).filter(|at| !is_own(at));
        let mut others: Vec<(u32, u64)> =
            others.map(|at| (cut.coarse_owner(at, lattice.nodes_along()), lattice.id(at))).collect();
        others.sort_unstable();
        let mut ids: Vec<u64> = each(&own).map(|at| lattice.id(at)).collect();
        let count = ids.len();
        let mut sources: Vec<(u32, Range<usize>)> = Vec::new();
        for run in others.chunk_by(|one, other| one.0 == other.0) {
            sources.push((run[0].0, ids.len()..ids.len() + run.len()));
            ids.extend(run.iter().map(|(_, id)| id));
        }
        let mut mesh = Self {
            shape: lattice.shape,
            own: count,
            points: ids.iter().flat_map(|&id| lattice.point(lattice.place(id))).collect::<Vec<_>>().into(),
            groups: ids.iter().map(|&id| lattice.sides(lattice.place(id))).collect::<Vec<_>>().into(),
            ids: ids.into(),
            sources,
            elements: Bulk::default(),
            faces: Bulk::default(),
            face_groups: Bulk::default(),
            is_uniform: true,
            kinds: Bulk::default(),
        };
        if count > 0 {
            mesh.add_elements(lattice, &own, held);
        }
        mesh
    }

    fn add_elements(&mut self, lattice: &Lattice, own: &Nodes, held: &Nodes) {
        let numbers = Numbers::new(held, self.ids.iter().map(|&id| lattice.place(id)));
        let (mut elements, mut faces, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let (order, of_shape) = (self.shape.order, self.shape.faces());
        for element in each(&lattice.elements_of(own)) {
            let low: [usize; 3] = std::array::from_fn(|k| element[k] * order);
            let one: Nodes = std::array::from_fn(|k| match lattice.elements[k] {
                0 => 0..1,
                _ => low[k]..low[k] + order + 1,
            });
            let begin = elements.len();
            elements.extend(each(&one).map(|at| numbers.of(at)));
            for (side, nodes) in of_shape.iter().enumerate() {
                let (axis, is_high) = (side / 2, side % 2 == 1);
                let is_at_end =
                    if is_high { element[axis] + 1 == lattice.elements[axis] } else { element[axis] == 0 };
                if is_at_end {
                    faces.extend(nodes.iter().map(|&node| elements[begin + node]));
                    groups.push(side as u32);
                }
            }
        }
        (self.elements, self.faces, self.face_groups) = (elements.into(), faces.into(), groups.into());
    }
}

/// The numbers that the nodes of a box have in a subdomain.
pub struct Numbers {
    held: Nodes,
    numbers: Vec<u32>,
}

impl Numbers {
    /// Of these nodes, which come in the order of their numbers.
    pub fn new(held: &Nodes, nodes: impl Iterator<Item = [usize; 3]>) -> Self {
        let count = held.iter().map(|range| range.len()).product();
        let mut all = Self { held: held.clone(), numbers: vec![u32::MAX; count] };
        for (number, at) in (0..).zip(nodes) {
            let index = all.index(at);
            all.numbers[index] = number;
        }
        all
    }

    fn index(&self, at: [usize; 3]) -> usize {
        let [x, y, z] = &self.held;
        ((at[2] - z.start) * y.len() + (at[1] - y.start)) * x.len() + (at[0] - x.start)
    }

    /// The number of a node that is held.
    #[must_use]
    pub fn of(&self, at: [usize; 3]) -> u32 {
        self.numbers[self.index(at)]
    }
}
