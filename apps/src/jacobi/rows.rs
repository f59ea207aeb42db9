//! The rows of A that one block has, dense or sparse, and their product with x part by part.
//!
//! A dense row is multiplied in segments of [`SEGMENT`] columns, whatever parts x comes in, and the sums of the
//! segments are added in the order of the columns; a sparse row is multiplied as a whole. So each number of A x has the
//! same bits on any mix of machines, and whichever part of x comes first.

use super::parts::Parts;
use crate::kernels::dot;
use crate::matrix::Real;
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// Columns that are multiplied at once: their part of x stays in the nearest cache.
pub(super) const SEGMENT: usize = 1024;
/// Rows of a segment that stay in a second-level cache.
const ROWS_AT_ONCE: usize = 32;
/// Entries of a sparse matrix in one unit of work: some tens of microseconds.
const UNIT_ENTRIES: u64 = 1 << 14;

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

/// Compressed sparse rows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Sparse<T> {
    rows: Range<usize>,
    starts: Bulk<u64>,
    /// Columns of A; after [`Rows::localize`], places in the parts of x that the block holds.
    cols: Bulk<u32>,
    values: Bulk<T>,
    /// Rows (of these, from 0) of each unit of work.
    units: Vec<Range<usize>>,
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

impl<T: Real> Sparse<T> {
    /// Rows of a matrix of `n` columns, whose entries begin at `starts`; none if these are not one more than the rows
    /// or lead outside the entries, or if a column lies outside the matrix.
    pub(super) fn new(
        n: usize,
        rows: Range<usize>,
        starts: Bulk<u64>,
        cols: Bulk<u32>,
        values: Bulk<T>,
    ) -> Option<Self> {
        let entries = cols.len() as u64;
        let is_sound = starts.len() == rows.len() + 1
            && starts.is_sorted()
            && starts.first() == Some(&0)
            && starts.last() == Some(&entries)
            && values.len() == cols.len()
            && cols.iter().all(|&col| (col as usize) < n);
        is_sound.then(|| {
            let units = units(&starts);
            Self { rows, starts, cols, values, units }
        })
    }
}

/// Cuts rows into units of about as many entries; there is one at least.
fn units(starts: &[u64]) -> Vec<Range<usize>> {
    let (mut units, mut first) = (Vec::new(), 0);
    for row in 1..starts.len() {
        if starts[row] - starts[first] >= UNIT_ENTRIES {
            units.push(first..row);
            first = row;
        }
    }
    if first + 1 < starts.len() || units.is_empty() {
        units.push(first..starts.len() - 1);
    }
    units
}

impl<T: Real> Rows<T> {
    /// Which rows of A these are.
    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Self::Dense(dense) => dense.rows.clone(),
            Self::Sparse(sparse) => sparse.rows.clone(),
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
            Self::Sparse(Sparse { rows, starts, cols, values, .. }) => {
                let entries = span(starts, &(at..at + 1));
                let found = cols[entries.clone()].iter().position(|&col| col as usize == rows.start + at);
                found.map_or_else(T::zeroed, |place| values[entries.start + place])
            }
        }
    }

    /// The sum of the magnitudes in the row that is number `at` here.
    pub(super) fn magnitudes(&self, at: usize) -> f64 {
        let sum = |values: &[T]| values.iter().map(|value| value.to_f64().abs()).sum::<f64>();
        match self {
            Self::Dense(dense) => {
                let part = |segment| sum(&dense.values[dense.place(segment, at..at + 1)]);
                (0..dense.segments()).map(part).sum()
            }
            Self::Sparse(Sparse { starts, values, .. }) => sum(&values[span(starts, &(at..at + 1))]),
        }
    }

    /// The columns of A beside its own that these rows need, ascending; `None` if they need all.
    pub(super) fn foreign_columns(&self) -> Option<Vec<u32>> {
        match self {
            Self::Dense(_) => None,
            Self::Sparse(sparse) => {
                let is_foreign = |col: &&u32| !sparse.rows.contains(&(**col as usize));
                let mut foreign: Vec<u32> = sparse.cols.iter().filter(is_foreign).copied().collect();
                foreign.sort_unstable();
                foreign.dedup();
                Some(foreign)
            }
        }
    }

    /// From now on products are made with x as it lies in `parts`. Gives the sources that each unit of work needs.
    pub(super) fn localize(&mut self, parts: &Parts) -> Vec<Vec<u32>> {
        match self {
            Self::Dense(dense) => {
                (0..dense.segments()).map(|at| parts.sources_of(&segment(dense.n, at))).collect()
            }
            Self::Sparse(sparse) => {
                let mut needs = Vec::with_capacity(sparse.units.len());
                let cols = sparse.cols.as_mut_slice();
                for unit in &sparse.units {
                    let mut sources = BTreeSet::new();
                    for col in &mut cols[span(&sparse.starts, unit)] {
                        let (source, place) = parts.locate(*col);
                        sources.insert(source);
                        *col = place;
                    }
                    needs.push(sources.into_iter().collect());
                }
                needs
            }
        }
    }

    /// Numbers in [`multiply`](Self::multiply)'s `sums` for each right-hand side.
    pub(super) fn sums_each(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.rows.len() * dense.segments(),
            Self::Sparse(sparse) => sparse.units.iter().map(Range::len).max().unwrap_or(0),
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
            Self::Sparse(sparse) => Some(sparse.units[unit].clone()),
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
                let rows = sparse.units[unit].clone();
                let starts = &sparse.starts[rows.start..=rows.end];
                for (x, sums) in x.chunks_exact(held).zip(sums.chunks_exact_mut(each)) {
                    dot::sparse(starts, &sparse.cols, &sparse.values, x, &mut sums[..rows.len()]);
                }
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

/// The entries of some rows.
fn span(starts: &[u64], rows: &Range<usize>) -> Range<usize> {
    let at = |row: usize| usize::try_from(starts[row]).expect("entries in memory");
    at(rows.start)..at(rows.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_cover_the_rows_and_are_about_alike() {
        let ends =
            |starts: &[u64]| units(starts).iter().map(|unit| (unit.start, unit.end)).collect::<Vec<_>>();
        assert_eq!(ends(&[0]), [(0, 0)]);
        assert_eq!(ends(&[0, 3, 5]), [(0, 2)]);
        let many: Vec<u64> = (0..=10_000).map(|row| 7 * row).collect();
        let cut = units(&many);
        assert_eq!((cut[0].start, cut[cut.len() - 1].end, cut.len()), (0, 10_000, 5));
        assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn each_column_of_others_is_asked_for_once() {
        let (starts, cols) = (Bulk::from_slice(&[0, 3, 6]), Bulk::from_slice(&[3, 0, 1, 2, 4, 3]));
        let rows = Sparse::new(5, 1..3, starts, cols, Bulk::<f64>::zeros(6)).unwrap();
        assert_eq!(Rows::Sparse(rows).foreign_columns(), Some(vec![0, 3, 4]));
    }

    #[test]
    fn rows_that_are_no_rows_are_refused() {
        let sparse = |starts: &[u64], cols: &[u32], values: &[f64]| {
            Sparse::new(2, 0..2, Bulk::from_slice(starts), Bulk::from_slice(cols), Bulk::from_slice(values))
        };
        assert!(sparse(&[0, 1, 2], &[0, 1], &[1.0, 2.0]).is_some());
        assert!(sparse(&[0, 1], &[0], &[1.0]).is_none());
        assert!(sparse(&[0, 2, 1], &[0], &[1.0]).is_none());
        assert!(sparse(&[1, 1, 2], &[0, 1], &[1.0, 2.0]).is_none());
        assert!(sparse(&[0, 1, 9], &[0, 1], &[1.0, 2.0]).is_none());
        assert!(sparse(&[0, 1, 2], &[0, 1], &[1.0]).is_none());
        assert!(sparse(&[0, 1, 2], &[0, 2], &[1.0, 2.0]).is_none());
    }
}
