//! How a system is cut: blocks of neighbouring columns, those of B behind those of A, and who holds them.

use crate::matrix::Real;
use crate::system::Generated;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Rows that are generated at once, and then turned into columns.
const ROWS_AT_ONCE: usize = 64;

/// A system A X = B cut into blocks of columns, as every chare knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Unknowns.
    pub n: usize,
    /// Right-hand sides.
    pub rhs: usize,
    /// Columns of a block; the last of A and the last of B may have fewer.
    pub width: usize,
    /// The PE that holds each block: first those of A, then those of B.
    pub owners: Arc<Vec<u32>>,
    /// The numbers, if they are made by seed; else the driver sends them.
    pub generated: Option<Generated>,
}

impl Plan {
    /// Blocks that a system of this size is cut into, those of A and those of B.
    #[must_use]
    pub fn counts(n: usize, rhs: usize, width: usize) -> [usize; 2] {
        [n.div_ceil(width), rhs.div_ceil(width)]
    }

    /// Blocks of A, each of which becomes a panel.
    #[must_use]
    pub fn panels(&self) -> u32 {
        self.count(0)
    }

    /// Blocks of B.
    #[must_use]
    pub fn right_blocks(&self) -> u32 {
        self.count(1)
    }

    fn count(&self, which: usize) -> u32 {
        u32::try_from(Self::counts(self.n, self.rhs, self.width)[which]).expect("sides are below 2^32")
    }

    /// Columns of a block: of A, or if it is behind those of A, of B.
    #[must_use]
    pub fn columns_of(&self, block: u32) -> Range<usize> {
        let panels = self.panels();
        let (block, end) = if block < panels { (block, self.n) } else { (block - panels, self.rhs) };
        let first = block as usize * self.width;
        first..(first + self.width).min(end)
    }

    /// The blocks of a PE, in order.
    pub fn blocks_of(&self, pe: u32) -> impl Iterator<Item = u32> {
        (0..).zip(self.owners.iter()).filter(move |(_, owner)| **owner == pe).map(|(block, _)| block)
    }

    /// Writes the generated columns of a block, one after the other.
    pub fn fill<T: Real>(&self, generated: &Generated, block: u32, columns: &mut [T]) {
        let cols = self.columns_of(block);
        for first in (0..self.n).step_by(ROWS_AT_ONCE) {
            let rows = first..(first + ROWS_AT_ONCE).min(self.n);
            let strip = if block < self.panels() {
                generated.block_a::<T>(rows.clone(), cols.clone())
            } else {
                generated.block_b::<T>(rows.clone(), cols.clone())
            };
            for (j, column) in columns.chunks_exact_mut(self.n).enumerate() {
                let to = column[rows.clone()].iter_mut();
                to.zip(strip.iter().skip(j).step_by(cols.len())).for_each(|(to, value)| *to = *value);
            }
        }
    }
}
