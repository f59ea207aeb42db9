//! Where the numbers of a system come from.

use super::SystemArguments;
use super::arguments::check_sides;
use crate::matrix::{self, Matrix, Real, ShapeError, generate};
use chares::{Bulk, RunError};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// Rows of generated coefficients that are made at once where all are looked at.
const ROWS_AT_ONCE: usize = 64;

/// The coefficients, as the driver has them.
#[derive(Debug)]
pub enum Coefficients<T> {
    /// Made by seed wherever they are needed.
    Generated(Generated),
    /// Read from a file, all of them.
    Dense(Matrix<T>),
}

/// A system by seed: random numbers in [-1, 1), with a number added to each on the diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// Of A; B has the next.
    pub seed: u64,
    /// What is added on the diagonal of A.
    pub diagonal: f64,
}

impl Generated {
    /// A row-major block of A.
    #[must_use]
    pub fn block_a<T: Real>(&self, rows: Range<usize>, cols: Range<usize>) -> Bulk<T> {
        let mut block = Bulk::zeros(rows.len() * cols.len());
        self.fill_a(rows, cols, block.as_mut_slice());
        block
    }

    /// Writes a row-major block of A into `values`, which has its length.
    pub fn fill_a<T: Real>(&self, rows: Range<usize>, cols: Range<usize>, values: &mut [T]) {
        generate::fill(self.seed, rows.clone(), cols.clone(), values);
        if self.diagonal == 0.0 {
            return;
        }
        for (i, row) in rows.zip(values.chunks_exact_mut(cols.len().max(1))) {
            if cols.contains(&i) {
                let place = &mut row[i - cols.start];
                *place = T::from_f64(place.to_f64() + self.diagonal);
            }
        }
    }

    /// A row-major block of B.
    #[must_use]
    pub fn block_b<T: Real>(&self, rows: Range<usize>, cols: Range<usize>) -> Bulk<T> {
        matrix::generated(generate::seed_of_b(self.seed), rows, cols)
    }
}

/// A system A X = B.
#[derive(Debug)]
pub struct LinearSystem<T> {
    /// Unknowns.
    pub n: usize,
    /// Right-hand sides.
    pub rhs: usize,
    /// A, n x n.
    pub a: Coefficients<T>,
    /// B, n x rhs.
    pub b: Matrix<T>,
}

impl<T: Real> LinearSystem<T> {
    /// The system that the arguments name; one by seed has `diagonal` added on its diagonal. All numbers of files are
    /// finite.
    ///
    /// # Errors
    /// If a file cannot be read, or makes no system.
    pub fn of(arguments: &SystemArguments, diagonal: f64) -> Result<Self, RunError> {
        let (Some(a), Some(b)) = (&arguments.a, &arguments.b) else {
            let (n, rhs) = (arguments.n, arguments.rhs);
            let generated = Generated { seed: arguments.seed, diagonal };
            let b = Matrix::from_vec(n, rhs, generated.block_b(0..n, 0..rhs).to_vec()).map_err(too_big)?;
            return Ok(Self { n, rhs, a: Coefficients::Generated(generated), b });
        };
        let (left, right) = (read::<T>(a)?, read::<T>(b)?);
        // The files may have changed since they were looked at.
        check_sides(a, left.shape(), b, right.shape())?;
        arguments.check_unchanged(left.rows(), right.cols())?;
        Ok(Self { n: left.rows(), rhs: right.cols(), a: Coefficients::Dense(left), b: right })
    }

    /// The seed, if the system is made by seed.
    #[must_use]
    pub fn generated(&self) -> Option<Generated> {
        match &self.a {
            Coefficients::Generated(generated) => Some(*generated),
            Coefficients::Dense(_) => None,
        }
    }
}

impl<T: Real> Coefficients<T> {
    /// All rows of the n x n coefficients, one after the other: the number of each, and its numbers.
    pub fn for_each_row(&self, n: usize, mut take: impl FnMut(usize, &[T])) {
        match self {
            Self::Dense(matrix) => (0..n).for_each(|row| take(row, matrix.row_slice(row..row + 1))),
            Self::Generated(generated) => {
                for first in (0..n).step_by(ROWS_AT_ONCE) {
                    let rows = first..(first + ROWS_AT_ONCE).min(n);
                    let block = generated.block_a::<T>(rows.clone(), 0..n);
                    rows.zip(block.chunks_exact(n)).for_each(|(row, values)| take(row, values));
                }
            }
        }
    }
}

fn too_big(error: ShapeError) -> RunError {
    RunError::Input(error.to_string())
}

/// The matrix in a file, in the type `T`, all of whose numbers are finite.
///
/// # Errors
/// If the file cannot be read or holds others.
pub(crate) fn read<T: Real>(path: &Path) -> Result<Matrix<T>, RunError> {
    let matrix: Matrix<T> = matrix::read(path).map_err(|e| RunError::Input(e.to_string()))?;
    let Some(at) = matrix.values().iter().position(|value| !value.to_f64().is_finite()) else {
        return Ok(matrix);
    };
    let (row, column) = (at / matrix.cols(), at % matrix.cols());
    Err(RunError::Input(format!(
        "{path:?}: element ({row}, {column}), counted from 0, is NaN or infinite as {}: a system needs finite numbers",
        T::DTYPE
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_refused_by_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        for wrong in [f64::NAN, f64::INFINITY] {
            let matrix =
                Matrix::from_vec(3, 4, (0..12).map(|at| if at == 7 { wrong } else { 1.0 }).collect());
            matrix::npy::write(&path, &matrix.unwrap()).unwrap();
            let sentence = read::<f64>(&path).unwrap_err().to_string();
            assert!(sentence.contains("element (1, 3), counted from 0, is NaN or infinite"), "{sentence}");
        }
        matrix::npy::write(&path, &Matrix::from_vec(1, 2, vec![1e39, 1.0]).unwrap()).unwrap();
        assert_eq!(read::<f64>(&path).unwrap().values(), [1e39, 1.0]);
        assert!(read::<f32>(&path).is_err(), "as f32 it is infinite");
    }

    #[test]
    fn blocks_with_a_diagonal_are_those_of_the_whole() {
        let generated = Generated { seed: 3, diagonal: 40.0 };
        let whole = Matrix::from_vec(9, 9, generated.block_a::<f64>(0..9, 0..9).to_vec()).unwrap();
        for (rows, cols) in [(2..7, 0..9), (0..3, 4..9), (5..6, 5..6), (1..1, 2..4), (4..9, 0..0)] {
            let block = generated.block_a::<f64>(rows.clone(), cols.clone());
            assert_eq!(block.to_vec(), whole.block(rows, cols));
        }
        assert!((0..9).all(|i| whole.row_slice(i..i + 1)[i] >= 39.0));
        let mut rows = Vec::new();
        Coefficients::<f64>::Generated(generated).for_each_row(9, |_, row| rows.extend_from_slice(row));
        assert_eq!(rows, whole.values());
    }
}
