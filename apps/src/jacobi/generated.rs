//! Systems to try the solver with: any PE can make any row without asking another one.
//!
//! Off the diagonal all numbers are negative or 0, on it there is the sum of the row's magnitudes times the
//! *dominance*: above 1 Jacobi's method converges, with a factor of about 1 / dominance for each iteration; a dense
//! matrix of dominance 1 is singular, as its rows add up to 0.

use crate::matrix::generate::{element, hash};
use crate::matrix::{Csr, Element};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Entries beside the diagonal in a row of a random sparse matrix, at most: two may fall together.
const RANDOM_ENTRIES: u64 = 8;

/// What a generated matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Kind {
    /// Dense random numbers
    Dense,
    /// The five-point Laplacian of a square
    Laplace2d,
    /// The seven-point Laplacian of a cube
    Laplace3d,
    /// Sparse, with eight random places in each row
    Random,
}

/// A matrix by its kind and seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// What it is.
    pub kind: Kind,
    /// Rows and columns.
    pub n: usize,
    /// The diagonal, relative to the sum of the other magnitudes of a row; of a Laplacian, of an inner row.
    pub dominance: f64,
    /// Of random numbers.
    pub seed: u64,
}

impl Generated {
    /// Whether its rows are dense.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.kind == Kind::Dense
    }

    /// Whether its rows are those of a grid, alike but at its edges.
    #[must_use]
    pub fn is_laplacian(&self) -> bool {
        matches!(self.kind, Kind::Laplace2d | Kind::Laplace3d)
    }

    /// Entries of the whole matrix, nearly.
    #[must_use]
    pub fn entries(&self) -> u64 {
        let n = self.n as u64;
        match self.kind {
            Kind::Dense => n.saturating_mul(n),
            Kind::Laplace2d => n.saturating_mul(5),
            Kind::Laplace3d => n.saturating_mul(7),
            Kind::Random => n.saturating_mul(1 + RANDOM_ENTRIES.min(n - 1)),
        }
    }

    /// Row `i` of a dense matrix, into as many numbers as it has columns.
    pub fn fill_row<T: Element>(&self, i: usize, row: &mut [T]) {
        let scale = 2.0 / self.n as f64;
        let mut sum = 0.0;
        for (j, value) in row.iter_mut().enumerate() {
            if j != i {
                let magnitude = element(self.seed, i, j).abs() * scale;
                sum += magnitude;
                *value = T::from_f64(-magnitude);
            }
        }
        // A matrix of one row has nothing beside its diagonal.
        let sum = if sum > 0.0 { sum } else { 1.0 };
        row[i] = T::from_f64(self.dominance * sum);
    }

    /// Rows of a sparse matrix, with all its columns.
    #[must_use]
    pub fn sparse_rows<T: Element>(&self, rows: Range<usize>) -> Csr<T> {
        let mut made = Csr::with_columns(self.n);
        let mut row: Vec<(u32, T)> = Vec::new();
        for i in rows {
            row.clear();
            match self.kind {
                Kind::Random => self.random_row(i, &mut row),
                _ => self.laplace_row(i, &mut row),
            }
            row.sort_by_key(|&(col, _)| col);
            made.push_row(&row);
        }
        made
    }

    /// The lengths of steps to the neighbours in a grid that is filled line by line, the last line perhaps in part.
    fn steps(&self) -> Vec<usize> {
        let side = |power: f64| ((self.n as f64).powf(1.0 / power).round() as usize).max(1);
        match self.kind {
            Kind::Laplace3d => vec![1, side(3.0), side(3.0).pow(2)],
            _ => vec![1, side(2.0)],
        }
    }

    fn laplace_row<T: Element>(&self, i: usize, row: &mut Vec<(u32, T)>) {
        let steps = self.steps();
        row.push((column(i), T::from_f64(2.0 * steps.len() as f64 * self.dominance)));
        for (at, &step) in steps.iter().enumerate() {
            // Where a line, or a plane of lines, ends there is no neighbour.
            let ends = steps.get(at + 1).copied().unwrap_or(usize::MAX);
            if i % ends >= step {
                row.push((column(i - step), T::from_f64(-1.0)));
            }
            if i % ends + step < ends && i + step < self.n {
                row.push((column(i + step), T::from_f64(-1.0)));
            }
        }
    }

    fn random_row<T: Element>(&self, i: usize, row: &mut Vec<(u32, T)>) {
        let mut sum = 0.0;
        for draw in 0..RANDOM_ENTRIES {
            let bits = hash(self.seed, i as u64, draw);
            let j = usize::try_from(bits % self.n as u64).unwrap_or(0);
            if j != i {
                let magnitude = element(self.seed ^ 0x5eed, i, draw as usize).abs() + 0.1;
                sum += magnitude;
                row.push((column(j), T::from_f64(-magnitude)));
            }
        }
        let sum = if sum > 0.0 { sum } else { 1.0 };
        row.push((column(i), T::from_f64(self.dominance * sum)));
    }
}

fn column(index: usize) -> u32 {
    u32::try_from(index).expect("a sparse matrix has fewer than 2^32 columns")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 4] = [Kind::Dense, Kind::Laplace2d, Kind::Laplace3d, Kind::Random];

    fn of(kind: Kind, n: usize) -> Generated {
        Generated { kind, n, dominance: 1.1, seed: 5 }
    }

    fn dense(of: Generated) -> Vec<Vec<f64>> {
        let mut all = vec![vec![0.0; of.n]; of.n];
        for (i, row) in all.iter_mut().enumerate() {
            if of.is_dense() {
                of.fill_row(i, row);
            } else {
                of.sparse_rows::<f64>(i..i + 1).row(0).for_each(|(j, value)| row[j as usize] = value);
            }
        }
        all
    }

    #[test]
    fn every_row_is_dominated_by_its_diagonal() {
        for kind in KINDS {
            for n in [1, 2, 7, 30] {
                for (i, row) in dense(of(kind, n)).into_iter().enumerate() {
                    let others: f64 =
                        row.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, a)| a.abs()).sum();
                    assert!(row[i] >= 1.0999 * others && row[i] > 0.0, "{kind:?} {n} row {i}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn laplacians_are_symmetric_with_as_many_neighbours_as_a_grid_has() {
        for (kind, n, neighbours) in [(Kind::Laplace2d, 16, 2 * 2 * 12), (Kind::Laplace3d, 27, 3 * 2 * 18)] {
            let all = dense(of(kind, n));
            let count = all.iter().flatten().filter(|value| **value == -1.0).count();
            assert_eq!(count, neighbours);
            (0..n).for_each(|i| (0..n).for_each(|j| assert_eq!(all[i][j], all[j][i])));
        }
        assert_eq!(of(Kind::Laplace2d, 7).sparse_rows::<f64>(0..7).rows(), 7);
    }

    #[test]
    fn rows_are_the_same_wherever_they_are_made() {
        for kind in [Kind::Laplace3d, Kind::Random] {
            let all = of(kind, 50).sparse_rows::<f64>(0..50);
            let some = of(kind, 50).sparse_rows::<f64>(13..20);
            (0..7).for_each(|i| assert!(some.row(i).eq(all.row(13 + i))));
        }
    }
}
