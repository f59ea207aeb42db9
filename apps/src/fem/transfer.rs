//! Between a mesh and the next coarser one of the same box: what a function of the coarse mesh is at the nodes of the fine one,
//! and the transpose of it, which takes residuals to the coarse mesh. Both are products of what they are along each axis.
//! Meshes need not be nested: an odd number of elements is halved and rounded up.

use super::lattice::{Lattice, Nodes, each};
use super::shape::Shape;
use super::submesh::Numbers;
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Along an axis: which nodes of the other mesh count for each node, and how much.
pub type Line = Vec<Vec<(usize, f64)>>;

/// What a function of the coarse mesh is at the nodes of the fine one, along each axis.
#[must_use]
pub fn along(fine: &Lattice, coarse: &Lattice) -> [Line; 3] {
    std::array::from_fn(|k| {
        let (order, last) = (fine.shape.order, fine.elements[k] * fine.shape.order);
        if last == 0 {
            return vec![vec![(0, 1.0)]];
        }
        let line = Shape::product(order, 1);
        let of = |node: usize| {
            let place = node * coarse.elements[k];
            let element = (place / last).min(coarse.elements[k] - 1);
            let within = (place - element * last) as f64 / last as f64;
            let values = line.at([within, 0.0, 0.0]).values;
            let all = (0..=order).map(|at| (element * order + at, values[at]));
            all.filter(|(_, value)| value.abs() > 1e-12).collect()
        };
        (0..=last).map(of).collect()
    })
}

/// The same from the other side.
#[must_use]
pub fn transposed(line: &Line, nodes: usize) -> Line {
    let mut turned = vec![Vec::new(); nodes];
    for (fine, row) in line.iter().enumerate() {
        row.iter().for_each(|&(coarse, value)| turned[coarse].push((fine, value)));
    }
    turned
}

/// All nodes of the other mesh that count for these.
#[must_use]
pub fn needed(lines: &[Line; 3], nodes: &Nodes) -> Nodes {
    std::array::from_fn(|k| {
        let all = || lines[k][nodes[k].clone()].iter().flatten().map(|(at, _)| *at);
        all().min().unwrap_or(0)..all().max().map_or(0, |last| last + 1)
    })
}

/// For own nodes of one mesh, which nodes of the other count, and how much: what that is along each axis, and the numbers of
/// the other mesh's nodes, so that the products need no memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Transfer {
    along: [Own; 3],
    /// Of all nodes of the other mesh that count, x running fastest.
    numbers: Bulk<u32>,
}

/// An axis: which of the other mesh's nodes that count for any own node count for each, and how much.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Own {
    /// Where the parts of each own node begin, and where the last one ends.
    starts: Vec<u32>,
    parts: Vec<(u32, f64)>,
    /// Nodes of the other mesh that count for any.
    others: u32,
}

impl Own {
    fn new(line: &Line, own: &Range<usize>, needed: &Range<usize>) -> Self {
        let mut all = Self { starts: vec![0], parts: Vec::new(), others: needed.len() as u32 };
        for parts in &line[own.clone()] {
            all.parts.extend(parts.iter().map(|(at, weight)| ((at - needed.start) as u32, *weight)));
            all.starts.push(all.parts.len() as u32);
        }
        all
    }

    /// Own nodes.
    fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Adds to the numbers of each own node its parts: `part` says of one how much it counts, and its numbers.
    #[inline(always)]
    fn add_to<'a, const EACH: usize>(
        &self,
        line: &mut [[f64; EACH]],
        part: impl Fn(u32, f64) -> (f64, &'a [f64; EACH]),
    ) {
        for (sums, parts) in line.iter_mut().zip(self.each()) {
            for &(at, weight) in parts {
                let (weight, x) = part(at, weight);
                (0..EACH).for_each(|k| sums[k] += weight * x[k]);
            }
        }
    }

    /// The parts of each own node.
    fn each(&self) -> impl Iterator<Item = &[(u32, f64)]> {
        self.starts.windows(2).map(|ends| &self.parts[ends[0] as usize..ends[1] as usize])
    }
}

impl Transfer {
    /// For these own nodes; the others have these numbers.
    #[must_use]
    pub fn new(lines: &[Line; 3], own: &Nodes, numbers: &Numbers) -> Self {
        let others = needed(lines, own);
        let along = std::array::from_fn(|k| Own::new(&lines[k], &own[k], &others[k]));
        let numbers: Vec<u32> = each(&others).map(|at| numbers.of(at)).collect();
        Self { along, numbers: numbers.into() }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_axes = self.along.iter().map(|own| size_of_val(&own.starts[..]) + size_of_val(&own.parts[..]));
        size_of_val(&self.numbers[..]) + of_axes.sum::<usize>()
    }

    /// Puts, or adds, what the other mesh's `x` is at the own nodes into `y`; nodes have so many unknowns each.
    pub fn apply(&self, each: usize, x: &[f64], y: &mut [f64], adds: bool) {
        if !adds {
            y.fill(0.0);
        }
        match each {
            1 => self.add::<1>(x, y),
            2 => self.add::<2>(x, y),
            _ => self.add::<3>(x, y),
        }
    }

    /// Each own node takes up its parts in the order of the other mesh's nodes.
    fn add<const EACH: usize>(&self, x: &[f64], y: &mut [f64]) {
        let [along_x, along_y, along_z] = &self.along;
        let (x, y, numbers) = (x.as_chunks::<EACH>().0, y.as_chunks_mut::<EACH>().0, &self.numbers[..]);
        let [others_x, others_y, _] = self.along.each_ref().map(|own| own.others as usize);
        let lines = along_z.each().flat_map(|in_z| along_y.each().map(move |in_y| (in_z, in_y)));
        for ((in_z, in_y), line) in lines.zip(y.chunks_exact_mut(along_x.len().max(1))) {
            for &(z, of_z) in in_z {
                for &(y, of_y) in in_y {
                    let numbers = &numbers[(z as usize * others_y + y as usize) * others_x..][..others_x];
                    along_x.add_to(line, |at, of_x| (of_x * of_y * of_z, &x[numbers[at as usize] as usize]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fem::lattice::Cut;

    /// What `apply` does, by the lines alone and in the same order, so that the bits are the same.
    fn by_lines(
        lines: &[Line; 3],
        own: &Nodes,
        x: impl Fn([usize; 3], usize) -> f64,
        y: &mut [f64],
        each_node: usize,
    ) {
        for (y, at) in y.chunks_exact_mut(each_node).zip(each(own)) {
            for (z, of_z) in &lines[2][at[2]] {
                for (y_at, of_y) in &lines[1][at[1]] {
                    for (x_at, of_x) in &lines[0][at[0]] {
                        for (k, y) in y.iter_mut().enumerate() {
                            *y += of_x * of_y * of_z * x([*x_at, *y_at, *z], k);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn own_nodes_get_the_products_of_the_lines_and_nothing_is_kept_of_these() {
        for (order, dim, elements) in
            [(1, 2, [37, 22, 0]), (2, 2, [9, 15, 0]), (1, 3, [7, 9, 12]), (2, 3, [4, 5, 3])]
        {
            let fine = Lattice { shape: Shape::product(order, dim), elements, lengths: [1.0; 3] };
            let coarse = fine.coarser().unwrap();
            let up = along(&fine, &coarse);
            let down = std::array::from_fn(|k| transposed(&up[k], coarse.nodes_along()[k]));
            let cut = Cut { nodes: fine.nodes_along(), parts: 3 };
            for (part, each_node) in (0..3).zip([1, 2, 3]) {
                for (lines, lattice) in [(&up, &fine), (&down, &coarse)] {
                    let own = cut.coarse_part(part, lattice.nodes_along());
                    let others = needed(lines, &own);
                    // Those of others come in any order.
                    let order: Vec<[usize; 3]> =
                        each(&others).collect::<Vec<_>>().into_iter().rev().collect();
                    let numbers = Numbers::new(&others, order.iter().copied());
                    let value = |number: usize, k: usize| ((number * each_node + k) as f64 * 0.37).sin();
                    let x: Vec<f64> = (0..order.len() * each_node)
                        .map(|at| value(at / each_node, at % each_node))
                        .collect();
                    let transfer = Transfer::new(lines, &own, &numbers);
                    for adds in [false, true] {
                        let mut found = vec![0.5; each(&own).count() * each_node];
                        let mut expected = vec![if adds { 0.5 } else { 0.0 }; found.len()];
                        transfer.apply(each_node, &x, &mut found, adds);
                        by_lines(
                            lines,
                            &own,
                            |at, k| value(numbers.of(at) as usize, k),
                            &mut expected,
                            each_node,
                        );
                        assert_eq!(found, expected, "{order:?} {dim} {part} {adds}");
                    }
                    let of_lines: usize = lines.iter().flatten().map(|parts| 16 * parts.len() + 8).sum();
                    assert!(transfer.bytes() <= 4 * order.len() + of_lines, "{} bytes", transfer.bytes());
                }
            }
        }
    }
}
