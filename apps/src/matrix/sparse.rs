//! The compressed sparse row matrix: memory by its entries, not by its sides.

use super::block::Real;
use super::element::Element;
use chares::Bulk;
use std::fmt;
use std::ops::Range;

/// Most rows and columns: their numbers are kept in 32 bits.
pub const SIDE_MAX: u64 = u32::MAX as u64;

/// An entry on its way into a matrix: row, column and number.
pub type Triplet<T> = (u32, u32, T);

/// A sparse matrix by compressed rows. The entries of a row are in the order of their columns, each column once.
#[derive(Clone, PartialEq)]
pub struct Csr<T> {
    col_count: usize,
    /// Row i has the entries `starts[i]..starts[i + 1]`.
    starts: Vec<u64>,
    cols: Vec<u32>,
    values: Vec<T>,
}

impl<T: Element> Csr<T> {
    /// The matrix of these entries, in any order. Those of one place are added, in the order in which they come.
    ///
    /// # Panics
    /// If an entry lies outside the matrix.
    #[must_use]
    pub fn from_triplets(rows: usize, cols: usize, triplets: &[Triplet<T>]) -> Self {
        let mut starts = vec![0u64; rows + 1];
        for &(row, col, _) in triplets {
            assert!((col as usize) < cols, "column {col} of {cols}");
            starts[row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0u32, T::zeroed()); triplets.len()];
        for &(row, col, value) in triplets {
            let place = &mut next[row as usize];
            entries[index(*place)] = (col, value);
            *place += 1;
        }
        let mut made = Self {
            col_count: cols,
            starts: vec![0],
            cols: Vec::with_capacity(triplets.len()),
            values: Vec::with_capacity(triplets.len()),
        };
        for at in 0..rows {
            let row = &mut entries[span(&starts, &(at..at + 1))];
            // Stable, so that sums do not depend on anything but the order of the entries.
            row.sort_by_key(|&(col, _)| col);
            made.push_row(row);
        }
        made
    }

    /// A matrix without rows, to be filled by [`push_row`](Self::push_row).
    #[must_use]
    pub fn with_columns(cols: usize) -> Self {
        Self { col_count: cols, starts: vec![0], cols: Vec::new(), values: Vec::new() }
    }

    /// Adds a row below: its entries by ascending column. Adjoining ones of the same column are added.
    ///
    /// # Panics
    /// If columns descend or lie outside the matrix.
    pub fn push_row(&mut self, entries: &[(u32, T)]) {
        let first = self.cols.len();
        for &(col, value) in entries {
            assert!((col as usize) < self.col_count, "column {col} of {}", self.col_count);
            match self.cols[first..].last() {
                Some(&last) if last == col => {
                    if let Some(sum) = self.values.last_mut() {
                        *sum += value;
                    }
                }
                last => {
                    assert!(last.is_none_or(|&last| last < col), "columns of a row ascend");
                    self.cols.push(col);
                    self.values.push(value);
                }
            }
        }
        self.starts.push(self.cols.len() as u64);
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.col_count
    }

    /// Number of entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.cols.len()
    }

    /// Entries in the rows before each row, and in all at the end: row `i` has those from number `i` to `i + 1`.
    #[must_use]
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Columns and numbers of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, T)> + Clone + '_ {
        let (cols, values) = self.row_slices(row..row + 1);
        cols.iter().copied().zip(values.iter().copied())
    }

    /// Columns and numbers of adjoining rows, one row after the other.
    ///
    /// # Panics
    /// If the range is not within the matrix.
    #[must_use]
    pub fn row_slices(&self, rows: Range<usize>) -> (&[u32], &[T]) {
        let range = span(&self.starts, &rows);
        (&self.cols[range.clone()], &self.values[range])
    }

    /// Adjoining rows as chares hold and send them: where each row's entries begin, counted from the first of them,
    /// and the end of the last; columns; numbers.
    ///
    /// # Panics
    /// If the range is not within the matrix.
    #[must_use]
    pub fn bulk(&self, rows: Range<usize>) -> (Bulk<u64>, Bulk<u32>, Bulk<T>)
    where
        T: Real,
    {
        let first = self.starts[rows.start];
        let starts: Vec<u64> = self.starts[rows.start..=rows.end].iter().map(|start| start - first).collect();
        let (cols, values) = self.row_slices(rows);
        (starts.into(), Bulk::from_slice(cols), Bulk::from_slice(values))
    }

    /// Whether all numbers are finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.to_f64().is_finite())
    }

    /// The same matrix in another number type, each number rounded to the nearest.
    #[must_use]
    pub fn convert<U: Element>(&self) -> Csr<U> {
        Csr {
            col_count: self.col_count,
            starts: self.starts.clone(),
            cols: self.cols.clone(),
            values: self.values.iter().map(|value| U::from_f64(value.to_f64())).collect(),
        }
    }
}

impl<T> fmt::Debug for Csr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Csr({} x {}, {} entries)", self.starts.len() - 1, self.col_count, self.cols.len())
    }
}

/// Which entries some rows have, where each row's begin at `starts` and the last one's end at the last of these.
pub(crate) fn span(starts: &[u64], rows: &Range<usize>) -> Range<usize> {
    index(starts[rows.start])..index(starts[rows.end])
}

/// Where entries begin, as an index: there is memory for them.
fn index(start: u64) -> usize {
    usize::try_from(start).expect("entries in memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::generate::hash;
    use proptest::prelude::*;

    #[test]
    fn entries_are_sorted_and_those_of_one_place_added() {
        let made =
            Csr::from_triplets(3, 4, &[(2, 1, 5.0), (0, 3, 1.0), (0, 0, 2.0), (2, 1, 0.5), (0, 3, -3.0)]);
        assert_eq!((made.rows(), made.cols(), made.entries()), (3, 4, 3));
        assert_eq!(made.starts(), [0, 2, 2, 3]);
        assert_eq!(made.row(0).collect::<Vec<_>>(), [(0, 2.0), (3, -2.0)]);
        assert_eq!(made.row(1).count(), 0);
        assert_eq!(made.row(2).collect::<Vec<_>>(), [(1, 5.5)]);
        assert_eq!(made.row_slices(0..3), (&[0, 3, 1][..], &[2.0, -2.0, 5.5][..]));
        assert_eq!(made.convert::<f32>().row(2).collect::<Vec<_>>(), [(1, 5.5f32)]);
    }

    #[test]
    #[should_panic(expected = "column 4 of 4")]
    fn a_column_outside_panics() {
        let _ = Csr::from_triplets(3, 4, &[(0, 4, 1.0)]);
    }

    proptest! {
        #[test]
        fn the_same_matrix_as_a_dense_one(rows in 1usize..12, cols in 1usize..12, count in 0usize..80, seed: u64) {
            let draw = |at: usize, of: usize| (hash(seed, at as u64, 0) % of as u64) as u32;
            // Small whole numbers, whose sums are exact in any order.
            let value = |at: usize| (hash(seed, at as u64, 1) % 17) as f64 - 8.0;
            let triplets: Vec<_> =
                (0..count).map(|at| (draw(3 * at, rows), draw(3 * at + 1, cols), value(at))).collect();
            let mut dense = vec![0.0; rows * cols];
            triplets.iter().for_each(|&(i, j, value)| dense[i as usize * cols + j as usize] += value);
            let sparse = Csr::from_triplets(rows, cols, &triplets);
            let mut back = vec![0.0; rows * cols];
            for i in 0..rows {
                sparse.row(i).for_each(|(j, value)| back[i * cols + j as usize] = value);
                let columns: Vec<u32> = sparse.row(i).map(|(j, _)| j).collect();
                prop_assert!(columns.windows(2).all(|pair| pair[0] < pair[1]));
            }
            prop_assert_eq!(back, dense);
        }
    }
}
