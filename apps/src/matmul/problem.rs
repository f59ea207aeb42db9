//! What is multiplied: sizes, where the factors come from, and how blocks are cut.

use crate::kernels::gemm::Kernel;
use crate::matrix::{Element, generate};
use chares::{Bulk, Chare, Ctx, Cx, Number};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A number type that is both computed with and sent.
pub trait Real: Element + Number {}

impl<T: Element + Number> Real for T {}

/// The product C = A B, with A m x k and B k x n, as every chare knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Columns of B and C.
    pub n: usize,
    /// How blocks are multiplied.
    pub kernel: Kernel,
    /// Seeds of generated factors; `None` where the driver sends the numbers.
    pub seeds: Option<(u64, u64)>,
}

impl Problem {
    /// A block of A, if A is generated.
    #[must_use]
    pub fn block_a<T: Real>(&self, rows: Range<usize>, cols: Range<usize>) -> Bulk<T> {
        self.seeds.map_or_else(Bulk::default, |(seed, _)| generated(seed, rows, cols))
    }

    /// A block of B, if B is generated.
    #[must_use]
    pub fn block_b<T: Real>(&self, rows: Range<usize>, cols: Range<usize>) -> Bulk<T> {
        self.seeds.map_or_else(Bulk::default, |(_, seed)| generated(seed, rows, cols))
    }
}

/// A block of the matrix with this seed.
#[must_use]
pub fn generated<T: Real>(seed: u64, rows: Range<usize>, cols: Range<usize>) -> Bulk<T> {
    let mut block = Bulk::zeros(rows.len() * cols.len());
    generate::fill(seed, rows, cols, block.as_mut_slice());
    block
}

/// `len` zeros in memory that the system has handed out: a block of C begins as these, so that the timed part
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

/// Count of PEs of the node where this runs.
#[must_use]
pub fn pes_here<C: Chare>(ctx: &mut Ctx<'_, C>) -> usize {
    let node = ctx.node_id();
    (0..ctx.pe_count()).filter(|&pe| ctx.node_of_pe(pe) == node).count().max(1)
}

/// A piece of the result for the driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Piece<T> {
    /// Its rows of C.
    pub rows: Range<usize>,
    /// Its columns of C.
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
