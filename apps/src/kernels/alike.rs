//! Adjoining rows of a sparse matrix that are alike, as those along a line of a grid: each row's entries lie one column
//! further than those of the row before, so the columns of the first say all, and numbers that are the same in all of them are
//! kept once.
//!
//! Sparse products wait for memory, and of such rows little is read beside x. A row's product has the bits that
//! [`dot::sparse`](super::dot::sparse) gives; rows are taken side by side, in vectors as wide as the machine has. Columns by
//! distances and numbers by their differences are from Kourtis, Goumas and Koziris, "Optimizing sparse matrix-vector
//! multiplication using index and value compression" (Computing Frontiers, 2008).

use crate::matrix::{Real, span};
use pulp::{Arch, Simd, WithSimd};
use std::array::from_fn;

/// Rows that are taken at once: a vector of f64 in AVX-512, two in AVX2.
const LANES: usize = 8;
/// Sums of a row: its entries are added to them in turn.
const SUMS: usize = 4;

/// Adjoining rows whose entries lie at the same distances.
#[derive(Debug)]
pub struct Alike<T> {
    rows: usize,
    /// Where the entries of the first row lie.
    cols: Vec<u32>,
    /// If all rows have the same numbers, those of one, else the first of each row, then the second of each, and so on.
    values: Vec<T>,
    is_same: bool,
}

/// How many rows from the first on are alike: as many entries in each, each one column further than in the row before.
/// `starts` has the beginning of each row's entries in `cols`, and the end of the last.
///
/// # Panics
/// If `starts` leads outside `cols`.
#[must_use]
pub fn count(starts: &[u64], cols: &[u32]) -> usize {
    let row = |at: usize| &cols[span(starts, &(at..at + 1))];
    let follows = |(before, row): (&[u32], &[u32])| {
        before.len() == row.len()
            && before.iter().zip(row).all(|(before, col)| before.checked_add(1) == Some(*col))
    };
    let rows = starts.len().saturating_sub(1);
    (1..rows).take_while(|&at| follows((row(at - 1), row(at)))).count() + rows.min(1)
}

impl<T: Real> Alike<T> {
    /// As many rows as `values` has, row by row, with entries in each whose columns in the first row are `cols`.
    ///
    /// # Panics
    /// If there are no columns, no rows, or numbers of a part of a row.
    #[must_use]
    pub fn new(cols: &[u32], values: &[T]) -> Self {
        assert_eq!(values.len() % cols.len(), 0, "as many entries in each row");
        let rows = values.len() / cols.len();
        let (first, bits) = (&values[..cols.len()], bytemuck::cast_slice::<T, u8>);
        let is_same = values.chunks_exact(cols.len()).all(|row| bits(row) == bits(first));
        let mut kept = Vec::with_capacity(if is_same { cols.len() } else { values.len() });
        if is_same {
            kept.extend_from_slice(first);
        } else {
            (0..cols.len()).for_each(|at| kept.extend(values[at..].iter().step_by(cols.len()).copied()));
        }
        Self { rows, cols: cols.to_vec(), values: kept, is_same }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns and numbers of a row.
    ///
    /// # Panics
    /// If rows have numbers of their own and there is no such one.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, T)> + '_ {
        let col = move |first: u32| first + u32::try_from(row).expect("a column for each row");
        (0..).zip(&self.cols).map(move |(entry, &first)| (col(first), self.value(entry, row)))
    }

    fn value(&self, entry: usize, row: usize) -> T {
        self.values[if self.is_same { entry } else { entry * self.rows + row }]
    }

    /// `sums[i]` becomes the product of row `i` with `x`.
    ///
    /// # Panics
    /// If there are not as many sums as rows, or if a column lies outside `x`.
    pub fn multiply(&self, x: &[T], sums: &mut [T]) {
        assert_eq!(sums.len(), self.rows, "a sum for each row");
        Arch::new().dispatch(Product { rows: self, x, sums });
    }
}

struct Product<'a, T> {
    rows: &'a Alike<T>,
    x: &'a [T],
    sums: &'a mut [T],
}

impl<T: Real> WithSimd for Product<'_, T> {
    type Output = ();

    /// Rows of grids in two and three dimensions have loops of their own, without one over the entries: half of the time.
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        match (self.rows.cols.len(), self.rows.is_same) {
            (3, true) => self.short::<3, true>(),
            (3, false) => self.short::<3, false>(),
            (5, true) => self.short::<5, true>(),
            (5, false) => self.short::<5, false>(),
            (7, true) => self.short::<7, true>(),
            (7, false) => self.short::<7, false>(),
            (9, true) => self.short::<9, true>(),
            (9, false) => self.short::<9, false>(),
            _ => self.long(),
        }
        self.last();
    }
}

impl<T: Real> Product<'_, T> {
    #[inline(always)]
    fn short<const LEN: usize, const IS_SAME: bool>(&mut self) {
        let Self { rows: Alike { rows, cols, values, .. }, x, sums } = self;
        let x: [&[[T; LANES]]; LEN] = from_fn(|at| x[cols[at] as usize..][..*rows].as_chunks().0);
        let one: [T; LEN] = from_fn(|at| values[at]);
        let each = |at: usize| if IS_SAME { x[at] } else { values[at * rows..][..*rows].as_chunks().0 };
        let each: [&[[T; LANES]]; LEN] = from_fn(each);
        for (block, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut lanes = [[T::zeroed(); LANES]; SUMS];
            for entry in 0..LEN {
                let (x, values, lanes) = (&x[entry][block], &each[entry][block], &mut lanes[entry % SUMS]);
                (0..LANES).for_each(|lane| {
                    lanes[lane] += if IS_SAME { one[entry] } else { values[lane] } * x[lane];
                });
            }
            *sums = added(&lanes);
        }
    }

    #[inline(always)]
    fn long(&mut self) {
        let Self { rows: Alike { rows, cols, values, is_same }, x, sums } = self;
        for (block, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut lanes = [[T::zeroed(); LANES]; SUMS];
            for (entry, &col) in cols.iter().enumerate() {
                let (x, lanes) = (&x[col as usize + block * LANES..][..LANES], &mut lanes[entry % SUMS]);
                if *is_same {
                    (0..LANES).for_each(|lane| lanes[lane] += values[entry] * x[lane]);
                } else {
                    let values = &values[entry * rows + block * LANES..][..LANES];
                    (0..LANES).for_each(|lane| lanes[lane] += values[lane] * x[lane]);
                }
            }
            *sums = added(&lanes);
        }
    }

    /// The rows that are left where others have been taken side by side.
    #[inline(always)]
    fn last(&mut self) {
        let Self { rows, x, sums } = self;
        for row in rows.rows - rows.rows % LANES..rows.rows {
            let mut lanes = [[T::zeroed()]; SUMS];
            for (entry, &col) in rows.cols.iter().enumerate() {
                lanes[entry % SUMS][0] += rows.value(entry, row) * x[col as usize + row];
            }
            [sums[row]] = added(&lanes);
        }
    }
}

/// The four sums of some rows as one.
#[inline(always)]
fn added<T: Real, const ROWS: usize>([a, b, c, d]: &[[T; ROWS]; SUMS]) -> [T; ROWS] {
    from_fn(|row| (a[row] + b[row]) + (c[row] + d[row]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::dot;
    use crate::matrix::generate;
    use proptest::prelude::*;

    fn bits(numbers: &[f64]) -> Vec<u64> {
        numbers.iter().map(|number| number.to_bits()).collect()
    }

    #[test]
    fn rows_are_alike_as_far_as_each_entry_lies_one_column_further() {
        let of = |rows: &[&[u32]]| {
            let ends = rows.iter().scan(0, |end, row| {
                *end += row.len() as u64;
                Some(*end)
            });
            let starts: Vec<u64> = std::iter::once(0).chain(ends).collect();
            count(&starts, &rows.concat())
        };
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[&[3]]), 1);
        assert_eq!(of(&[&[0, 4], &[1, 5], &[2, 6], &[2, 7]]), 3);
        assert_eq!(of(&[&[0, 4], &[1]]), 1);
        assert_eq!(of(&[&[], &[], &[1]]), 2);
        assert_eq!(of(&[&[u32::MAX], &[0]]), 1);
    }

    proptest! {
        #[test]
        fn products_have_the_bits_of_listed_rows(
            cols in prop::collection::btree_set(0u32..40, 1..11),
            rows in 1usize..40,
            is_same: bool,
            seed: u64,
        ) {
            let cols: Vec<u32> = cols.into_iter().collect();
            let x = generate::block::<f64>(seed, 0..1, 0..80);
            let mut values = generate::block::<f64>(seed, 1..2, 0..rows * cols.len());
            if is_same {
                (cols.len()..values.len()).for_each(|at| values[at] = values[at - cols.len()]);
            }
            let starts: Vec<u64> = (0..=rows).map(|row| (row * cols.len()) as u64).collect();
            let listed: Vec<u32> = (0..rows as u32).flat_map(|row| cols.iter().map(move |col| col + row)).collect();
            prop_assert_eq!(count(&starts, &listed), rows);
            let alike = Alike::new(&cols, &values);
            prop_assert_eq!(alike.rows(), rows);
            let (in_rows, numbers): (Vec<u32>, Vec<f64>) = (0..rows).flat_map(|row| alike.row(row)).unzip();
            prop_assert_eq!((in_rows, bits(&numbers)), (listed.clone(), bits(&values)));
            let (mut expected, mut sums) = (vec![0.0; rows], vec![7.0; rows]);
            dot::sparse(&starts, &listed, &values, &x, &mut expected);
            alike.multiply(&x, &mut sums);
            prop_assert_eq!(bits(&sums), bits(&expected));
        }
    }

    /// Zeros of either sign and what is no number are told apart.
    #[test]
    fn numbers_are_the_same_where_their_bits_are() {
        for values in [[0.0, -0.0], [f64::NAN, 1.0], [1.0, 2.0]] {
            assert_eq!(bits(&Alike::new(&[3], &values).values), bits(&values));
        }
        assert_eq!(bits(&Alike::new(&[3], &[f64::NAN; 2]).values), bits(&[f64::NAN]));
    }

    #[test]
    #[should_panic(expected = "the len is 11")]
    fn a_column_outside_x_panics() {
        Alike::new(&[3], &[1.0; 9]).multiply(&[0.0; 11], &mut [0.0; 9]);
    }
}
