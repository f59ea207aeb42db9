//! Meshes that are read: all of one on the launcher, cut into subdomains by recursive bisection of the nodes' places (M. J.
//! Berger, S. H. Bokhari, IEEE Transactions on Computers 36, 1987).

use super::input::Announced;
use super::shape::{Family, Shape};
use super::submesh::Submesh;
use chares::Bulk;
use std::ops::Range;

/// A mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    /// Of all elements.
    pub shape: Shape,
    /// Where nodes are.
    pub points: Vec<[f64; 3]>,
    /// Nodes of the elements, one after the other.
    pub elements: Vec<u32>,
    /// Nodes of the faces that groups consist of.
    pub faces: Vec<u32>,
    /// The group of each face.
    pub face_groups: Vec<u32>,
    /// Names of the groups.
    pub groups: Vec<String>,
}

impl Mesh {
    /// What is known of it without its numbers.
    #[must_use]
    pub fn announced(&self) -> Announced {
        let count = self.elements.len() / self.shape.nodes();
        Announced { shape: self.shape, nodes: self.points.len(), count, groups: self.groups.clone() }
    }

    /// The subdomain of each node.
    #[must_use]
    pub fn bisected(&self, parts: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.points.len() as u32).collect();
        let mut owners = vec![0; order.len()];
        self.bisect(&mut order, 0..parts, &mut owners);
        owners
    }

    /// Halves nodes across their longest side until one subdomain is left.
    fn bisect(&self, nodes: &mut [u32], parts: Range<u32>, owners: &mut [u32]) {
        if parts.len() <= 1 {
            return nodes.iter().for_each(|&node| owners[node as usize] = parts.start);
        }
        let at = |node: u32, k: usize| self.points[node as usize][k];
        let length = |k: usize| {
            let ends = nodes.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &node| {
                (low.min(at(node, k)), high.max(at(node, k)))
            });
            ends.1 - ends.0
        };
        let lengths = [0, 1, 2].map(length);
        let axis = (0..3).rev().max_by(|&a, &b| lengths[a].total_cmp(&lengths[b])).unwrap_or(0);
        let below = parts.len() / 2;
        let cut = nodes.len() * below / parts.len();
        if cut > 0 && cut < nodes.len() {
            nodes.select_nth_unstable_by(cut, |&a, &b| at(a, axis).total_cmp(&at(b, axis)).then(a.cmp(&b)));
        }
        let middle = parts.start + below as u32;
        let (low, high) = nodes.split_at_mut(cut);
        self.bisect(low, parts.start..middle, owners);
        self.bisect(high, middle..parts.end, owners);
    }

    /// Its subdomains.
    #[must_use]
    pub fn submeshes(&self, parts: u32) -> Vec<Submesh> {
        let owners = self.bisected(parts);
        let mut own: Vec<Vec<u64>> = vec![Vec::new(); parts as usize];
        owners.iter().enumerate().for_each(|(node, &owner)| own[owner as usize].push(node as u64));
        let mut groups = vec![0u32; self.points.len()];
        let (element, face) = (self.shape.nodes(), self.shape.face().nodes());
        for (nodes, group) in self.faces.chunks_exact(face).zip(&self.face_groups) {
            nodes.iter().for_each(|&node| groups[node as usize] |= 1 << group);
        }
        let elements = touching(&self.elements, element, &owners, parts);
        let faces = touching(&self.faces, face, &owners, parts);
        let all = own.into_iter().zip(elements.iter().zip(&faces)).enumerate();
        all.map(|(part, (own, (elements, faces)))| {
            let elements = elements.iter().flat_map(|&at| &self.elements[at * element..][..element]);
            let face_groups: Vec<u32> = faces.iter().map(|&at| self.face_groups[at]).collect();
            let faces = faces.iter().flat_map(|&at| &self.faces[at * face..][..face]);
            let (elements, faces) = (elements.copied().collect(), faces.copied().collect());
            self.submesh(part as u32, own, (elements, faces, face_groups), (&owners, &groups))
        })
        .collect()
    }

    fn submesh(
        &self,
        part: u32,
        mut ids: Vec<u64>,
        (mut elements, mut faces, face_groups): (Vec<u32>, Vec<u32>, Vec<u32>),
        (owners, groups): (&[u32], &[u32]),
    ) -> Submesh {
        let own = ids.len();
        let others = elements.iter().filter(|&&node| owners[node as usize] != part);
        let mut others: Vec<(u32, u64)> =
            others.map(|&node| (owners[node as usize], u64::from(node))).collect();
        others.sort_unstable();
        others.dedup();
        let mut sources: Vec<(u32, Range<usize>)> = Vec::new();
        for run in others.chunk_by(|one, other| one.0 == other.0) {
            sources.push((run[0].0, ids.len()..ids.len() + run.len()));
            ids.extend(run.iter().map(|(_, id)| id));
        }
        let number = |node: u32| {
            let id = u64::from(node);
            let at = match ids[..own].binary_search(&id) {
                Ok(at) => at,
                // A face with an own node is one of an element that is here.
                Err(_) => others.binary_search(&(owners[node as usize], id)).map_or(0, |at| own + at),
            };
            at as u32
        };
        elements.iter_mut().chain(&mut faces).for_each(|node| *node = number(*node));
        let points = ids.iter().flat_map(|&id| self.points[id as usize]);
        Submesh {
            shape: self.shape,
            own,
            points: points.collect::<Vec<_>>().into(),
            groups: ids.iter().map(|&id| groups[id as usize]).collect::<Vec<_>>().into(),
            ids: ids.into(),
            sources,
            elements: elements.into(),
            faces: faces.into(),
            face_groups: face_groups.into(),
            is_uniform: false,
            kinds: Bulk::default(),
        }
    }

    /// Turns elements that are inside out.
    ///
    /// # Errors
    /// The number of an element, from 0, that is flat.
    pub fn turn(&mut self) -> Result<(), usize> {
        let (count, dim) = (self.shape.nodes(), self.shape.dim);
        let middle = self.shape.at(match self.shape.family {
            Family::Product => [0.5; 3],
            Family::Simplex => [1.0 / (dim + 1) as f64; 3],
        });
        for (number, nodes) in self.elements.chunks_exact_mut(count).enumerate() {
            let points: Vec<_> = nodes.iter().map(|&node| self.points[node as usize]).collect();
            let volume = self.shape.place(&middle, &points).volume;
            if volume < 0.0 {
                nodes.copy_from_slice(&mirrored(self.shape, nodes));
            } else if volume == 0.0 || !volume.is_finite() {
                return Err(number);
            }
        }
        Ok(())
    }
}

/// An element with its nodes in the order of its mirror image: x and y exchanged.
fn mirrored(shape: Shape, nodes: &[u32]) -> Vec<u32> {
    let side = shape.order + 1;
    let order: Vec<usize> = match (shape.family, shape.dim, shape.order) {
        (Family::Product, ..) => {
            let at =
                |node: usize| node / (side * side) * side * side + node % side * side + node / side % side;
            (0..nodes.len()).map(at).collect()
        }
        (Family::Simplex, 2, 1) => vec![0, 2, 1],
        (Family::Simplex, 2, _) => vec![0, 2, 1, 5, 4, 3],
        (Family::Simplex, _, 1) => vec![0, 2, 1, 3],
        (Family::Simplex, ..) => vec![0, 2, 1, 3, 6, 5, 4, 7, 8, 9]
            .into_iter()
            .enumerate()
            // The edges from corners 1 and 2 to corner 3 change places as well.
            .map(|(at, node)| match at {
                4 => 6,
                6 => 4,
                8 => 9,
                9 => 8,
                _ => node,
            })
            .collect(),
    };
    order.into_iter().map(|at| nodes[at]).collect()
}

/// For each subdomain the elements that have some of its nodes, ascending.
fn touching(elements: &[u32], nodes: usize, owners: &[u32], parts: u32) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); parts as usize];
    for (number, element) in elements.chunks_exact(nodes).enumerate() {
        for &node in element {
            let of_part: &mut Vec<usize> = &mut all[owners[node as usize] as usize];
            if of_part.last() != Some(&number) {
                of_part.push(number);
            }
        }
    }
    all
}
