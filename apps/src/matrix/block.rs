//! Blocks of matrices as chares hold and send them: where they begin and end, and memory for them.

use super::{Element, generate};
use chares::{Bulk, Number};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A number type that is both computed with and sent.
pub trait Real: Element + Number {}

impl<T: Element + Number> Real for T {}

/// A block of the matrix with this seed.
#[must_use]
pub fn generated<T: Real>(seed: u64, rows: Range<usize>, cols: Range<usize>) -> Bulk<T> {
    let mut block = Bulk::zeros(rows.len() * cols.len());
    generate::fill(seed, rows, cols, block.as_mut_slice());
    block
}

/// `len` zeros in memory that the system has handed out: a block of a result begins as these, so that the timed part
/// does not wait for pages.
#[must_use]
pub fn zeros<T: Real>(len: usize) -> Bulk<T> {
    let mut block = Bulk::zeros(len);
    block.as_mut_slice().fill(T::zeroed());
    block
}

/// Part `at` of `0..n` cut into `parts` ranges that differ by at most one in length.
#[must_use]
pub fn part(n: usize, parts: u32, at: u32) -> Range<usize> {
    let (parts, at) = (parts as usize, at as usize);
    let start = |at: usize| at * (n / parts) + at.min(n % parts);
    start(at)..start(at + 1)
}

/// A piece of a matrix on its way, such as of the result to the driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Piece<T> {
    /// Its rows of the matrix.
    pub rows: Range<usize>,
    /// Its columns of the matrix.
    pub cols: Range<usize>,
    /// Its numbers, row by row.
    pub values: Bulk<T>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_bounds_of_the_matrix_module() {
        for n in [0, 1, 7, 64, 100] {
            for parts in 1..12 {
                let all: Vec<_> = (0..parts).map(|at| part(n, parts, at)).collect();
                assert_eq!(all, crate::matrix::bounds(n, parts as usize));
            }
        }
    }
}
