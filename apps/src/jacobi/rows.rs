//! The rows of A that one block has, dense or sparse, and their product with x part by part.
//!
//! A dense row is multiplied in segments of [`SEGMENT`] columns, whatever parts x comes in, and the sums of the
//! segments are added in the order of the columns; a sparse row is multiplied as a whole. So each number of A x has the
//! same bits on any mix of machines, and whichever part of x comes first.

use super::parts::Parts;
use super::sparse::Sparse;
use crate::kernels::dot;
use crate::matrix::Real;
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Columns that are multiplied at once: their part of x stays in the nearest cache.
pub(super) const SEGMENT: usize = 1024;
/// Rows of a segment that stay in a second-level cache.
const ROWS_AT_ONCE: usize = 32;

/// Some adjoining rows of A.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) enum Rows<T> {
    Dense(Dense<T>),
    Sparse(Sparse<T>),
}

/// Dense rows, segment by segment so that each unit of work streams through memory.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Dense<T> {
    n: usize,
    rows: Range<usize>,
    /// One segment after the other, each row-major: in one piece, so that pages are large.
    values: Bulk<T>,
}

fn segment(n: usize, at: usize) -> Range<usize> {
    at * SEGMENT..((at + 1) * SEGMENT).min(n)
}

impl<T: Real> Dense<T> {
    /// Rows of zeros.
    pub(super) fn zeros(n: usize, rows: Range<usize>) -> Self {
        let values = Bulk::zeros(rows.len() * n);
        Self { n, rows, values }
    }

    /// How many segments there are.
    fn segments(&self) -> usize {
        self.n.div_ceil(SEGMENT)
    }

    /// Where the numbers of some rows (of these, from 0) lie that belong to a segment.
    fn place(&self, at: usize, rows: Range<usize>) -> Range<usize> {
        let (columns, before) = (segment(self.n, at), self.rows.len());
        let row = |row: usize| before * columns.start + row * columns.len();
        row(rows.start)..row(rows.end)
    }

    /// Writes row `row` of A.
    pub(super) fn set_row(&mut self, row: usize, values: &[T]) {
        let at = row - self.rows.start;
        for (segment, values) in values.chunks(SEGMENT).enumerate() {
            let place = self.place(segment, at..at + 1);
            self.values.as_mut_slice()[place].copy_from_slice(values);
        }
    }
}

impl<T: Real> Rows<T> {
    /// Which rows of A these are.
    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Self::Dense(dense) => dense.rows.clone(),
            Self::Sparse(sparse) => sparse.rows().clone(),
        }
    }

    /// The number on the diagonal of A in the row that is number `at` here; 0 where a sparse row has none. Before
    /// [`localize`](Self::localize), as what follows.
    pub(super) fn diagonal(&self, at: usize) -> T {
        match self {
            Self::Dense(dense) => {
                let row = dense.rows.start + at;
                dense.values[dense.place(row / SEGMENT, at..at + 1)][row % SEGMENT]
            }
            Self::Sparse(sparse) => {
                let own = sparse.rows().start + at;
                let found = sparse.row(at).find(|&(col, _)| col as usize == own);
                found.map_or_else(T::zeroed, |(_, value)| value)
            }
        }
    }

    /// The sum of the magnitudes in the row that is number `at` here.
    pub(super) fn magnitudes(&self, at: usize) -> f64 {
        let magnitude = |value: T| value.to_f64().abs();
        match self {
            Self::Dense(dense) => {
                let part = |segment| &dense.values[dense.place(segment, at..at + 1)];
                let sum = |segment| part(segment).iter().copied().map(magnitude).sum::<f64>();
                (0..dense.segments()).map(sum).sum()
            }
            Self::Sparse(sparse) => sparse.row(at).map(|(_, value)| magnitude(value)).sum(),
        }
    }

    /// The columns of A beside its own that these rows need, ascending; `None` if they need all.
    pub(super) fn foreign_columns(&self) -> Option<Vec<u32>> {
        match self {
            Self::Dense(_) => None,
            Self::Sparse(sparse) => Some(sparse.foreign_columns()),
        }
    }

    /// From now on products are made with x as it lies in `parts`. Gives the sources that each unit of work needs.
    pub(super) fn localize(&mut self, parts: &Parts) -> Vec<Vec<u32>> {
        match self {
            Self::Dense(dense) => {
                (0..dense.segments()).map(|at| parts.sources_of(&segment(dense.n, at))).collect()
            }
            Self::Sparse(sparse) => sparse.localize(parts),
        }
    }

    /// Has sparse rows, whose columns are places in the parts of x, lie as they are multiplied fastest.
    pub(super) fn compress(&mut self) {
        if let Self::Sparse(sparse) = self {
            sparse.compress();
        }
    }

    /// Numbers in [`multiply`](Self::multiply)'s `sums` for each right-hand side.
    pub(super) fn sums_each(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.rows.len() * dense.segments(),
            Self::Sparse(sparse) => sparse.units().iter().map(Range::len).max().unwrap_or(0),
        }
    }

    /// Whether each unit of work gives whole rows of A x, else [`add_up`](Self::add_up) does in the end.
    pub(super) fn end_by_units(&self) -> bool {
        matches!(self, Self::Sparse(_))
    }

    /// The rows (of these, from 0) that a unit of work gives as a whole: the first of the sums are theirs.
    pub(super) fn ended_by(&self, unit: usize) -> Option<Range<usize>> {
        match self {
            Self::Dense(_) => None,
            Self::Sparse(sparse) => Some(sparse.units()[unit].clone()),
        }
    }

    /// Computes a unit of work: its part of A x into its place among `sums` (of sparse rows: from the first on), where the
    /// numbers of x that are held, `held` of them, and the sums of one right-hand side follow those of the one before.
    pub(super) fn multiply(&self, unit: usize, held: usize, x: &[T], sums: &mut [T]) {
        let each = self.sums_each();
        if each == 0 {
            return;
        }
        match self {
            Self::Dense(dense) => {
                let (count, columns) = (dense.rows.len(), segment(dense.n, unit));
                // Some rows for all right-hand sides, while they are in the caches.
                for first in (0..count).step_by(ROWS_AT_ONCE) {
                    let rows = first..(first + ROWS_AT_ONCE).min(count);
                    let values = &dense.values[dense.place(unit, rows.clone())];
                    for (x, sums) in x.chunks_exact(held).zip(sums.chunks_exact_mut(each)) {
                        dot::dense(values, &x[columns.clone()], &mut sums[unit * count..][rows.clone()]);
                    }
                }
            }
            Self::Sparse(sparse) => {
                let by_rhs = x.chunks_exact(held).zip(sums.chunks_exact_mut(each));
                by_rhs.for_each(|(x, sums)| sparse.multiply(unit, x, sums));
            }
        }
    }

    /// Adds up the sums of all units of dense rows for one right-hand side: A x of the rows, in as many first numbers.
    pub(super) fn add_up(&self, sums: &mut [T]) {
        let rows = self.range().len();
        let (first, others) = sums.split_at_mut(rows);
        for more in others.chunks_exact(rows.max(1)) {
            first.iter_mut().zip(more).for_each(|(sum, &more)| *sum += more);
        }
    }
}
