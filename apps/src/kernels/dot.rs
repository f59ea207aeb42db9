//! Rows times a vector, for matrices that stream from memory once per use: dense rows and compressed sparse ones.
//!
//! The order of operations is fixed, so that a product has the same bits on any machine: a dense dot product keeps
//! one sum for each of so many lanes, each product and each sum rounded (no fused multiply-add), and adds the lanes
//! up in a fixed order at the end; a sparse one likewise with four sums. `pulp` picks the widest vectors that this machine has.
//! Memory is the limit, not arithmetic: the lanes are enough to hide the time that an addition takes.

use crate::matrix::Element;
use pulp::{Arch, Simd, WithSimd};

/// Sums of a dense dot product in a group, whatever the numbers are; the groups of one are added first.
const GROUP: usize = 16;

/// One dot product for each row: `sums[i]` becomes row i of `rows`, row-major with as many columns as `x` has
/// numbers, times `x`.
///
/// # Panics
/// If there are not as many numbers in `rows` as sums times numbers in `x`.
pub fn dense<T: Element>(rows: &[T], x: &[T], sums: &mut [T]) {
    assert_eq!(sums.len().checked_mul(x.len()), Some(rows.len()), "{} rows of {}", sums.len(), x.len());
    if x.is_empty() {
        sums.fill(T::zeroed());
        return;
    }
    Arch::new().dispatch(Dense { rows, x, sums });
}

/// One dot product for each of some compressed sparse rows: `sums[i]` becomes the sum of `values[k] * x[cols[k]]` for
/// `k` in `starts[i]..starts[i + 1]`.
///
/// # Panics
/// If `starts` is not one longer than `sums` or leads outside the other slices, or if a column lies outside `x`.
pub fn sparse<T: Element>(starts: &[u64], cols: &[u32], values: &[T], x: &[T], sums: &mut [T]) {
    assert_eq!(starts.len(), sums.len() + 1, "one start more than rows");
    let at = |start: u64| usize::try_from(start).expect("entries in memory");
    let mut row = 0;
    while row < sums.len() {
        let len = at(starts[row + 1] - starts[row]);
        let alike = starts[row + 1..].windows(2).take_while(|ends| at(ends[1] - ends[0]) == len).count() + 1;
        let entries = at(starts[row])..at(starts[row + alike]);
        let (cols, values) = (&cols[entries.clone()], &values[entries]);
        rows_of(len, cols, values, x, &mut sums[row..row + alike]);
        row += alike;
    }
}

/// Rows with `len` entries each. Those of a grid are short and alike: without a loop in each they take two thirds of the time.
fn rows_of<T: Element>(len: usize, cols: &[u32], values: &[T], x: &[T], sums: &mut [T]) {
    match len {
        0 => sums.fill(T::zeroed()),
        1 => short::<T, 1>(cols, values, x, sums),
        2 => short::<T, 2>(cols, values, x, sums),
        3 => short::<T, 3>(cols, values, x, sums),
        4 => short::<T, 4>(cols, values, x, sums),
        5 => short::<T, 5>(cols, values, x, sums),
        6 => short::<T, 6>(cols, values, x, sums),
        7 => short::<T, 7>(cols, values, x, sums),
        _ => match len % 4 {
            0 => long::<T, 0>(len, cols, values, x, sums),
            1 => long::<T, 1>(len, cols, values, x, sums),
            2 => long::<T, 2>(len, cols, values, x, sums),
            _ => long::<T, 3>(len, cols, values, x, sums),
        },
    }
}

fn short<T: Element, const LEN: usize>(cols: &[u32], values: &[T], x: &[T], sums: &mut [T]) {
    let rows = cols.as_chunks::<LEN>().0.iter().zip(values.as_chunks::<LEN>().0);
    for (sum, (cols, values)) in sums.iter_mut().zip(rows) {
        let mut lanes = [T::zeroed(); 4];
        for entry in 0..LEN {
            lanes[entry % 4] += values[entry] * x[cols[entry] as usize];
        }
        *sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    }
}

/// Rows with `len` entries each, which are `REST` more than a multiple of four. The four sums change places after each entry
/// because a loop over single entries is the fastest here: with four at a time, rows of 9 and 14 random columns of a million
/// took 1.6 times as long on an AMD EPYC of 2023, and rows of near columns 5 % less.
fn long<T: Element, const REST: usize>(len: usize, cols: &[u32], values: &[T], x: &[T], sums: &mut [T]) {
    let rows = cols.chunks_exact(len).zip(values.chunks_exact(len));
    for (sum, (cols, values)) in sums.iter_mut().zip(rows) {
        let mut lanes = [T::zeroed(); 4];
        for (&col, &value) in cols.iter().zip(values) {
            lanes = [lanes[1], lanes[2], lanes[3], lanes[0] + value * x[col as usize]];
        }
        let lane = |at: usize| lanes[(at + 4 - REST) % 4];
        *sum = (lane(0) + lane(1)) + (lane(2) + lane(3));
    }
}

struct Dense<'a, T> {
    rows: &'a [T],
    x: &'a [T],
    sums: &'a mut [T],
}

impl<T: Element> WithSimd for Dense<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match size_of::<T>() {
            8 => self.run::<1>(),
            _ => self.run::<2>(),
        }
    }
}

impl<T: Element> Dense<'_, T> {
    #[inline(always)]
    fn run<const GROUPS: usize>(self) {
        let Self { rows, x, sums } = self;
        for (row, sum) in rows.chunks_exact(x.len()).zip(sums) {
            *sum = dot::<T, GROUPS>(row, x);
        }
    }
}

/// In rows of lanes that the compiler takes for vectors: of 32 lanes in one array it makes none.
#[inline(always)]
fn dot<T: Element, const GROUPS: usize>(row: &[T], x: &[T]) -> T {
    let mut lanes = [[T::zeroed(); GROUP]; GROUPS];
    let (row, row_rest) = row.as_chunks::<GROUP>();
    let (x, x_rest) = x.as_chunks::<GROUP>();
    let (row, x) = (row.as_chunks::<GROUPS>(), x.as_chunks::<GROUPS>());
    for (row, x) in row.0.iter().zip(x.0) {
        for group in 0..GROUPS {
            add(&mut lanes[group], &row[group], &x[group]);
        }
    }
    for (group, (row, x)) in row.1.iter().zip(x.1).enumerate() {
        add(&mut lanes[group], row, x);
    }
    for (lane, (&value, &x)) in lanes[row.1.len()].iter_mut().zip(row_rest.iter().zip(x_rest)) {
        *lane += value * x;
    }
    let (first, others) = lanes.split_at_mut(1);
    for other in others {
        (0..GROUP).for_each(|lane| first[0][lane] += other[lane]);
    }
    let mut width = GROUP;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            let upper = first[0][lane + width];
            first[0][lane] += upper;
        }
    }
    first[0][0]
}

#[inline(always)]
fn add<T: Element>(lanes: &mut [T; GROUP], row: &[T; GROUP], x: &[T; GROUP]) {
    for lane in 0..GROUP {
        lanes[lane] += row[lane] * x[lane];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::generate;
    use proptest::prelude::*;

    /// The exact sum, nearly, and the sum of the magnitudes that errors are measured by.
    fn reference<T: Element>(pairs: impl Iterator<Item = (T, T)>) -> (f64, f64) {
        pairs.fold((0.0, 0.0), |(sum, size), (a, x)| {
            let product = a.to_f64() * x.to_f64();
            (sum + product, size + product.abs())
        })
    }

    fn assert_near<T: Element>(sum: T, (exact, size): (f64, f64), terms: usize) {
        let bound = (terms + 2) as f64 * T::UNIT_ROUNDOFF * size * 1.01;
        assert!((sum.to_f64() - exact).abs() <= bound, "{sum} {exact} {bound}");
    }

    fn assert_dense<T: Element>(rows: usize, cols: usize) {
        let (a, x) = (generate::block::<T>(1, 0..rows, 0..cols), generate::block::<T>(2, 0..1, 0..cols));
        let mut sums = vec![T::from_f64(9.0); rows];
        dense(&a, &x, &mut sums);
        for (i, &sum) in sums.iter().enumerate() {
            let row = &a[i * cols..(i + 1) * cols];
            assert_near(sum, reference(row.iter().copied().zip(x.iter().copied())), cols);
        }
    }

    #[test]
    fn dense_rows_of_any_length_are_multiplied() {
        for cols in [0, 1, 2, 15, 16, 17, 31, 33, 100, 1000] {
            assert_dense::<f64>(5, cols);
            assert_dense::<f32>(3, cols);
        }
        assert_dense::<f64>(0, 7);
    }

    /// The numbers are those of plain code, whatever vectors the machine has.
    #[test]
    fn dense_bits_are_those_of_the_lanes_written_out() {
        let (a, x) = (generate::block::<f64>(3, 0..1, 0..77), generate::block::<f64>(4, 0..1, 0..77));
        let mut lanes = [0.0; 16];
        a.iter().zip(&x).enumerate().for_each(|(at, (a, x))| lanes[at % 16] += a * x);
        for width in [8, 4, 2, 1] {
            (0..width).for_each(|lane| lanes[lane] += lanes[lane + width]);
        }
        let mut sum = [0.0];
        dense(&a, &x, &mut sum);
        assert_eq!(sum[0], lanes[0]);
    }

    proptest! {
        #[test]
        fn sparse_rows_of_any_length_are_multiplied(lengths in prop::collection::vec(0usize..12, 0..20), seed: u64) {
            let mut starts = vec![0u64];
            lengths.iter().for_each(|&len| starts.push(starts[starts.len() - 1] + len as u64));
            let count = starts[lengths.len()] as usize;
            let x = generate::block::<f64>(seed, 0..1, 0..50);
            let values = generate::block::<f64>(seed, 1..2, 0..count);
            let cols: Vec<u32> = (0..count as u64).map(|at| (generate::hash(seed, 2, at) % 50) as u32).collect();
            let mut sums = vec![7.0; lengths.len()];
            sparse(&starts, &cols, &values, &x, &mut sums);
            for (at, &sum) in sums.iter().enumerate() {
                let row = starts[at] as usize..starts[at + 1] as usize;
                let pairs = row.clone().map(|k| (values[k], x[cols[k] as usize]));
                assert_near(sum, reference(pairs.clone()), row.len());
                let mut lanes = [0.0; 4];
                pairs.enumerate().for_each(|(at, (value, x))| lanes[at % 4] += value * x);
                prop_assert_eq!(sum, (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), "the bits of four sums in turn");
            }
        }
    }

    #[test]
    #[should_panic(expected = "2 rows of 3")]
    fn wrong_sides_panic() {
        dense(&[0.0; 5], &[0.0; 3], &mut [0.0; 2]);
    }
}
