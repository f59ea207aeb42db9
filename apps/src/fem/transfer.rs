//! Between a mesh and the next coarser one of the same box: what a function of the coarse mesh is at the nodes of the fine one,
//! and the transpose of it, which takes residuals to the coarse mesh. Both are products of what they are along each axis.
//! Meshes need not be nested: an odd number of elements is halved and rounded up.

use super::lattice::{Lattice, Nodes, each};
use super::shape::Shape;
use super::submesh::Numbers;
use chares::Bulk;
use serde::{Deserialize, Serialize};

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

/// For own nodes of one mesh, which nodes of the other count, and how much.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Transfer {
    starts: Bulk<u32>,
    columns: Bulk<u32>,
    weights: Bulk<f64>,
}

impl Transfer {
    /// For these own nodes; the others have these numbers.
    #[must_use]
    pub fn new(lines: &[Line; 3], own: &Nodes, numbers: &Numbers) -> Self {
        let (mut starts, mut columns, mut weights) = (vec![0], Vec::new(), Vec::new());
        for at in each(own) {
            for (z, wz) in &lines[2][at[2]] {
                for (y, wy) in &lines[1][at[1]] {
                    for (x, wx) in &lines[0][at[0]] {
                        columns.push(numbers.of([*x, *y, *z]));
                        weights.push(wx * wy * wz);
                    }
                }
            }
            starts.push(columns.len() as u32);
        }
        Self { starts: starts.into(), columns: columns.into(), weights: weights.into() }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        4 * (self.starts.len() + self.columns.len()) + 8 * self.weights.len()
    }

    /// Puts, or adds, what the other mesh's `x` is at the own nodes into `y`; nodes have so many unknowns each.
    pub fn apply(&self, each: usize, x: &[f64], y: &mut [f64], adds: bool) {
        if !adds {
            y.fill(0.0);
        }
        for (y, ends) in y.chunks_exact_mut(each).zip(self.starts.windows(2)) {
            let row = ends[0] as usize..ends[1] as usize;
            for (&column, weight) in self.columns[row.clone()].iter().zip(&self.weights[row]) {
                let x = &x[column as usize * each..][..each];
                y.iter_mut().zip(x).for_each(|(y, x)| *y += weight * x);
            }
        }
    }
}
