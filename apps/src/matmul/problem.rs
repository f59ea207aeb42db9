//! What is multiplied: sizes, where the factors come from, and how blocks are cut.

use crate::kernels::gemm::Kernel;
use crate::matrix::{Real, generated};
use chares::{Bulk, Chare, Ctx, Cx};
use serde::{Deserialize, Serialize};
use std::ops::Range;

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

/// Count of PEs of the node where this runs.
#[must_use]
pub fn pes_here<C: Chare>(ctx: &mut Ctx<'_, C>) -> usize {
    let node = ctx.node_id();
    (0..ctx.pe_count()).filter(|&pe| ctx.node_of_pe(pe) == node).count().max(1)
}
