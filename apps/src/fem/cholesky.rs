//! Equations of the coarsest mesh, solved at one place: the factor of Cholesky of a band.

use super::lattice::Lattice;
use super::rows::Rows;
use chares::Bulk;
use serde::{Deserialize, Serialize};

/// What solving all equations of a box at one place takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Equations.
    pub size: f64,
    /// Numbers of a row before the diagonal.
    pub width: f64,
}

impl Band {
    /// Of a box whose nodes have so many unknowns each.
    #[must_use]
    pub fn of(lattice: &Lattice, each: usize) -> Self {
        let [x, y, _] = lattice.nodes_along();
        // The last node of an element comes so many after its first one.
        let (dim, order) = (lattice.shape.dim, lattice.shape.order);
        let apart = order * (1 + x + if dim == 3 { x * y } else { 0 });
        Self { size: (lattice.nodes() * each) as f64, width: ((apart + 1) * each) as f64 }
    }

    /// Bytes of its factor.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        8.0 * self.size * (self.width + 1.0)
    }

    /// Operations in which it is factored, and in which it is solved.
    #[must_use]
    pub fn operations(&self) -> [f64; 2] {
        [self.size * self.width * self.width, 4.0 * self.size * self.width]
    }
}

/// The factor of a symmetric positive definite matrix whose numbers are near the diagonal.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cholesky {
    width: usize,
    /// Row by row: `width` numbers before the diagonal, then the inverse of that on it.
    band: Bulk<f64>,
}

impl Cholesky {
    /// Factors all rows of a mesh; nothing if they are not positive definite.
    #[must_use]
    pub fn of(rows: &Rows) -> Option<Self> {
        let (each, size) = (rows.each, rows.len() * rows.each);
        let row_of = |row: usize| rows.starts[row] as usize..rows.starts[row + 1] as usize;
        let first = |row: usize| rows.columns[row_of(row)].first().map_or(row, |&column| column as usize);
        let width = (0..rows.len()).map(|row| (row - first(row).min(row) + 1) * each).max().unwrap_or(0);
        let mut band = vec![0.0; size * (width + 1)];
        for row in 0..rows.len() {
            for at in row_of(row) {
                let column = rows.columns[at] as usize;
                for c in 0..each {
                    for d in 0..each {
                        let (i, j) = (row * each + c, column * each + d);
                        if j <= i {
                            band[i * (width + 1) + width + j - i] = rows.values[(at * each + c) * each + d];
                        }
                    }
                }
            }
        }
        let mut factor = Self { width, band: band.into() };
        (0..size).all(|row| factor.factor_row(row)).then_some(factor)
    }

    fn factor_row(&mut self, i: usize) -> bool {
        let width = self.width;
        let first = i.saturating_sub(width);
        let (above, own) = self.band.as_mut_slice().split_at_mut(i * (width + 1));
        for j in first..i {
            let from = first.max(j.saturating_sub(width));
            let other = &above[j * (width + 1)..][..width + 1];
            let dot: f64 = own[width + from - i..width + j - i]
                .iter()
                .zip(&other[width + from - j..width])
                .map(|(a, b)| a * b)
                .sum();
            own[width + j - i] = (own[width + j - i] - dot) * other[width];
        }
        let pivot = own[width] - own[width + first - i..width].iter().map(|a| a * a).sum::<f64>();
        // What rounding leaves of a number on the diagonal is none.
        let is_positive = pivot > 1e-13 * own[width].abs();
        own[width] = 1.0 / pivot.sqrt();
        is_positive
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * self.band.len()
    }

    /// Solves for a right-hand side, in its place.
    pub fn solve(&self, x: &mut [f64]) {
        let width = self.width;
        let row = |i: usize| {
            let first = i.saturating_sub(width);
            (first, &self.band[i * (width + 1) + width + first - i..][..i - first + 1])
        };
        for i in 0..x.len() {
            let (first, row) = row(i);
            let (diagonal, before) = (row[row.len() - 1], &row[..row.len() - 1]);
            let dot: f64 = before.iter().zip(&x[first..i]).map(|(a, x)| a * x).sum();
            x[i] = (x[i] - dot) * diagonal;
        }
        for i in (0..x.len()).rev() {
            let (first, row) = row(i);
            x[i] *= row[row.len() - 1];
            let value = x[i];
            x[first..i].iter_mut().zip(row).for_each(|(x, a)| *x -= a * value);
        }
    }
}
