//! Sparse rows of A, and their product with x. Where most rows are as the one before but for a step to the right, as on grids,
//! they are kept in [stretches](Alike) of which hardly anything is read.

use super::parts::Parts;
use crate::kernels::alike::{self, Alike};
use crate::kernels::dot;
use crate::matrix::{Real, span};
use chares::Bulk;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeSet;
use std::ops::Range;

/// Entries of the matrix in one unit of work: some tens of microseconds.
const UNIT_ENTRIES: u64 = 1 << 14;
/// Fewer rows that are alike are not worth a loop of their own.
const STRETCH: usize = 16;

/// Compressed sparse rows.
#[derive(Debug, Deserialize)]
#[serde(from = "Listed<T>", bound(deserialize = "T: Real"))]
pub(super) struct Sparse<T> {
    rows: Range<usize>,
    /// Rows (of these, from 0) of each unit of work.
    units: Vec<Range<usize>>,
    entries: Entries<T>,
}

/// The entries of rows.
#[derive(Debug)]
enum Entries<T> {
    /// One after the other.
    Listed { starts: Bulk<u64>, cols: Bulk<u32>, values: Bulk<T> },
    /// For each unit of work.
    Stretches(Vec<Vec<Stretch<T>>>),
}

/// Some adjoining rows of a unit.
#[derive(Debug)]
enum Stretch<T> {
    Alike(Alike<T>),
    Other { starts: Vec<u64>, cols: Vec<u32>, values: Vec<T> },
}

/// Sparse rows as they are sent and saved: entry by entry.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Sparse", bound(serialize = "T: Real", deserialize = "T: Real"))]
struct Listed<T> {
    rows: Range<usize>,
    starts: Bulk<u64>,
    /// Columns of A; after [`Sparse::localize`], places in the parts of x that the block holds.
    cols: Bulk<u32>,
    values: Bulk<T>,
    units: Vec<Range<usize>>,
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
        let is_sound = is_sound(&rows, &starts, &cols, &values) && cols.iter().all(|&col| (col as usize) < n);
        is_sound.then(|| {
            let units = units(&starts);
            Self { rows, units, entries: Entries::Listed { starts, cols, values } }
        })
    }

    /// Which rows of A these are.
    pub(super) fn rows(&self) -> &Range<usize> {
        &self.rows
    }

    /// The rows (of these, from 0) of each unit of work.
    pub(super) fn units(&self) -> &[Range<usize>] {
        &self.units
    }

    /// Columns and numbers of the row that is number `at` here. Before [`compress`](Self::compress), as what follows.
    pub(super) fn row(&self, at: usize) -> impl Iterator<Item = (u32, T)> + '_ {
        let Entries::Listed { starts, cols, values } = &self.entries else { unlisted() };
        let entries = span(starts, &(at..at + 1));
        cols[entries.clone()].iter().copied().zip(values[entries].iter().copied())
    }

    /// The columns of A beside its own that these rows need, ascending.
    pub(super) fn foreign_columns(&self) -> Vec<u32> {
        let Entries::Listed { cols, .. } = &self.entries else { unlisted() };
        let is_foreign = |col: &u32| !self.rows.contains(&(*col as usize));
        let mut foreign: Vec<u32> = cols.iter().copied().filter(is_foreign).collect();
        foreign.sort_unstable();
        foreign.dedup();
        foreign
    }

    /// From now on products are made with x as it lies in `parts`. Gives the sources that each unit of work needs.
    pub(super) fn localize(&mut self, parts: &Parts) -> Vec<Vec<u32>> {
        let Entries::Listed { starts, cols, .. } = &mut self.entries else { unlisted() };
        let cols = cols.as_mut_slice();
        let mut needs = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            let mut sources = BTreeSet::new();
            for col in &mut cols[span(starts, unit)] {
                let (source, place) = parts.locate(*col);
                sources.insert(source);
                *col = place;
            }
            needs.push(sources.into_iter().collect());
        }
        needs
    }

    /// Keeps what is alike in stretches, if that is most of the entries. What does not fit together stays as it came, and
    /// panics where it is multiplied.
    pub(super) fn compress(&mut self) {
        let Entries::Listed { starts, cols, values } = &self.entries else { return };
        if !is_sound(&self.rows, starts, cols, values) || !are_units(&self.units, self.rows.len()) {
            return;
        }
        let stretches: Vec<_> = self.units.iter().map(|unit| stretches(unit, starts, cols)).collect();
        let alike = stretches.iter().flatten().filter(|(_, are_alike)| *are_alike);
        if 2 * alike.map(|(rows, _)| span(starts, rows).len()).sum::<usize>() < cols.len().max(1) {
            return;
        }
        let of = |(rows, are_alike): (Range<usize>, bool)| {
            let entries = span(starts, &rows);
            let (cols, values) = (&cols[entries.clone()], &values[entries]);
            let each = span(starts, &(rows.start..rows.start + 1)).len();
            if are_alike && each > 0 {
                return Stretch::Alike(Alike::new(&cols[..each], values));
            }
            let starts =
                starts[rows.start..=rows.end].iter().map(|start| start - starts[rows.start]).collect();
            Stretch::Other { starts, cols: cols.to_vec(), values: values.to_vec() }
        };
        let entries = stretches.into_iter().map(|unit| unit.into_iter().map(of).collect()).collect();
        self.entries = Entries::Stretches(entries);
    }

    /// Computes a unit of work for one right-hand side: its rows' products with the numbers of x that are held become the
    /// first of the sums.
    pub(super) fn multiply(&self, unit: usize, x: &[T], sums: &mut [T]) {
        let rows = &self.units[unit];
        let mut sums = &mut sums[..rows.len()];
        match &self.entries {
            Entries::Listed { starts, cols, values } => {
                dot::sparse(&starts[rows.start..=rows.end], cols, values, x, sums);
            }
            Entries::Stretches(units) => {
                for stretch in &units[unit] {
                    let (now, later) = sums.split_at_mut(stretch.rows());
                    match stretch {
                        Stretch::Alike(rows) => rows.multiply(x, now),
                        Stretch::Other { starts, cols, values } => dot::sparse(starts, cols, values, x, now),
                    }
                    sums = later;
                }
            }
        }
    }

    /// The same, entry by entry.
    fn listed(&self) -> Listed<T> {
        let (starts, cols, values) = match &self.entries {
            Entries::Listed { starts, cols, values } => (starts.clone(), cols.clone(), values.clone()),
            Entries::Stretches(units) => {
                let (mut starts, mut cols, mut values) = (vec![0], Vec::new(), Vec::new());
                for stretch in units.iter().flatten() {
                    stretch.list(&mut starts, &mut cols, &mut values);
                }
                (starts.into(), cols.into(), values.into())
            }
        };
        Listed { rows: self.rows.clone(), starts, cols, values, units: self.units.clone() }
    }
}

impl<T: Real> Stretch<T> {
    fn rows(&self) -> usize {
        match self {
            Self::Alike(rows) => rows.rows(),
            Self::Other { starts, .. } => starts.len() - 1,
        }
    }

    /// Adds the rows below others.
    fn list(&self, starts: &mut Vec<u64>, cols: &mut Vec<u32>, values: &mut Vec<T>) {
        match self {
            Self::Alike(rows) => {
                for row in 0..rows.rows() {
                    rows.row(row).for_each(|(col, value)| {
                        cols.push(col);
                        values.push(value);
                    });
                    starts.push(cols.len() as u64);
                }
            }
            Self::Other { starts: of_these, cols: more_cols, values: more } => {
                let before = cols.len() as u64;
                starts.extend(of_these[1..].iter().map(|start| before + start));
                cols.extend_from_slice(more_cols);
                values.extend_from_slice(more);
            }
        }
    }
}

impl<T: Real> Serialize for Sparse<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.listed().serialize(serializer)
    }
}

impl<T: Real> From<Listed<T>> for Sparse<T> {
    fn from(Listed { rows, starts, cols, values, units }: Listed<T>) -> Self {
        Self { rows, units, entries: Entries::Listed { starts, cols, values } }
    }
}

fn unlisted() -> ! {
    panic!("rows are asked for their entries before they are compressed")
}

/// Whether so many rows are in these units, in order.
fn are_units(units: &[Range<usize>], rows: usize) -> bool {
    let ends = units.iter().map(|unit| unit.end);
    units.iter().map(|unit| unit.start).chain([rows]).eq([0].into_iter().chain(ends))
        && units.iter().all(|unit| unit.start <= unit.end)
}

/// Whether so many rows have these entries.
fn is_sound<T>(rows: &Range<usize>, starts: &[u64], cols: &[u32], values: &[T]) -> bool {
    starts.len() == rows.len() + 1
        && starts.is_sorted()
        && starts.first() == Some(&0)
        && starts.last() == Some(&(cols.len() as u64))
        && values.len() == cols.len()
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

/// Cuts the rows of a unit into those that are alike, and what is between; and says which are.
fn stretches(unit: &Range<usize>, starts: &[u64], cols: &[u32]) -> Vec<(Range<usize>, bool)> {
    let (mut cut, mut other, mut at) = (Vec::new(), unit.start, unit.start);
    while at < unit.end {
        let end = at + alike::count(&starts[at..=unit.end], cols);
        if end - at >= STRETCH {
            cut.extend((other < at).then_some((other..at, false)));
            cut.push((at..end, true));
            other = end;
        }
        at = end;
    }
    cut.extend((other < unit.end).then_some((other..unit.end, false)));
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, generate};
    use chares::pup::{pack, unpack};

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
        assert_eq!(rows.foreign_columns(), [0, 3, 4]);
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

    /// Rows of a grid of 40 columns, some of whose numbers differ, cut out of it, and x in the order of its columns.
    fn grid(count: usize) -> (Sparse<f64>, Parts, Vec<f64>) {
        const SIDE: usize = 40;
        let n = SIDE * SIDE;
        let rows = 7 * SIDE + 5..7 * SIDE + 5 + count;
        let mut matrix = Csr::with_columns(n);
        for row in rows.clone() {
            let (left, right) = (row.is_multiple_of(SIDE), row % SIDE == SIDE - 1);
            let near =
                [(!left).then_some((row - 1, -1.0)), Some((row, 5.0)), (!right).then_some((row + 1, -1.0))];
            let entries = [Some((row - SIDE, -1.0 / row as f64))].into_iter().chain(near);
            let entries = entries.chain([Some((row + SIDE, -1.0))]).flatten();
            matrix.push_row(&entries.map(|(col, value)| (col as u32, value)).collect::<Vec<_>>());
        }
        let (starts, cols, values) = matrix.bulk(0..count);
        let sparse = Sparse::new(n, rows, starts, cols, values).unwrap();
        let bounds = [0, 7 * SIDE + 5, 7 * SIDE + 5 + count, n].map(|bound| bound as u64);
        let parts = Parts::some(1, &bounds, sparse.foreign_columns());
        let x = generate::block::<f64>(3, 0..1, 0..parts.len());
        (sparse, parts, x)
    }

    #[test]
    fn rows_of_a_grid_lie_in_stretches_and_give_the_same_bits_and_the_same_bytes_as_listed_ones() {
        let count = 700;
        let (mut sparse, parts, x) = grid(count);
        sparse.localize(&parts);
        sparse.compress();
        let Entries::Stretches(units) = &sparse.entries else { panic!("rows of a grid are alike") };
        let alike = units.iter().flatten().filter(|stretch| matches!(stretch, Stretch::Alike(_)));
        assert!((17..=19).contains(&alike.count()), "one for each line");
        let Listed { starts, cols, values, .. } = sparse.listed();
        let (mut expected, mut sums) = (vec![0.0; count], vec![9.0; count]);
        dot::sparse(&starts, &cols, &values, &x, &mut expected);
        sparse.multiply(0, &x, &mut sums);
        assert_eq!(sums, expected);
        let packed = pack(&sparse);
        let mut again: Sparse<f64> = unpack(&packed).unwrap();
        again.compress();
        assert!(matches!(again.entries, Entries::Stretches(_)));
        assert_eq!(pack(&again), packed);
        assert_eq!(pack(&sparse.listed()), packed);
    }

    #[test]
    fn many_rows_that_are_not_alike_lie_between_those_that_are() {
        // A row of one entry each: 40 that go to the right, 20 that go to the left, a row without any 17 times, 30 again.
        let cols: Vec<u32> = (0..40).chain((0..20).rev()).chain(5..35).collect();
        let starts: Vec<u64> = (0..=60).chain([60; 17]).chain(61..=90).collect();
        let values: Vec<f64> = (0..90).map(f64::from).collect();
        assert_eq!(
            stretches(&(0..107), &starts, &cols),
            [(0..40, true), (40..60, false), (60..77, true), (77..107, true)]
        );
        let rows = starts.len() - 1;
        let (of_starts, of_cols) = (starts.clone().into(), cols.clone().into());
        let mut sparse = Sparse::new(rows, 0..rows, of_starts, of_cols, values.clone().into()).unwrap();
        sparse.compress();
        let Entries::Stretches(units) = &sparse.entries else { panic!("most rows are alike") };
        assert_eq!(units[0].iter().map(Stretch::rows).collect::<Vec<_>>(), [40, 20, 17, 30]);
        let listed = sparse.listed();
        assert_eq!(
            (&listed.starts[..], &listed.cols[..], &listed.values[..]),
            (&starts[..], &cols[..], &values[..])
        );
        let (mut sums, x) = (vec![9.0; rows], vec![1.0; 40]);
        sparse.multiply(0, &x, &mut sums);
        assert_eq!((sums[..60].to_vec(), &sums[60..77]), (values[..60].to_vec(), &[0.0; 17][..]));
        assert_eq!(sums[77..], values[60..]);
    }

    #[test]
    fn rows_that_are_hardly_alike_stay_listed() {
        let (mut sparse, parts, _) = grid(12);
        sparse.localize(&parts);
        sparse.compress();
        assert!(matches!(sparse.entries, Entries::Listed { .. }));
    }

    #[test]
    fn what_does_not_fit_together_is_left_as_it_came() {
        let of = |units: &[(usize, usize)], starts: &[u64]| {
            let units = units.iter().map(|&(first, end)| first..end).collect();
            let (cols, values) = ((0..40).collect::<Vec<u32>>(), vec![1.0; 40]);
            let (starts, cols, values) = (starts.to_vec().into(), cols.into(), values.into());
            let mut sparse = Sparse::from(Listed { rows: 0..40, starts, cols, values, units });
            sparse.compress();
            sparse.entries
        };
        let starts: Vec<u64> = (0..=40).collect();
        assert!(matches!(of(&[(0, 20), (20, 40)], &starts), Entries::Stretches(_)));
        for units in [
            &[][..],
            &[(0, 20)],
            &[(0, 20), (21, 40)],
            &[(0, 50)],
            &[(0, 20), (10, 40)],
            &[(0, 20), (20, 41)],
        ] {
            assert!(matches!(of(units, &starts), Entries::<f64>::Listed { .. }), "{units:?}");
        }
        assert!(matches!(of(&[(0, 40)], &starts[1..]), Entries::Listed { .. }));
    }
}
