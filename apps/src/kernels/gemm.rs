//! The block product C += A B, in three ways.
//!
//! The fast one is that of [`super::fast`].

use super::deterministic;
use super::fast::Operand;
use crate::matrix::Element;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// How a block product is computed. All three run on the calling thread alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// As fast as this machine can; the bits may differ between machine types and ways to cut the blocks.
    #[default]
    Fast,
    /// The three plain loops, the "scalar" kernel of the 1995 report; the same bits as `deterministic`.
    Plain,
    /// The same bits on any machine and for any cut of rows and columns.
    ///
    /// Each element of C takes up its products in the order of ascending k, each product and each sum rounded
    /// by itself. Cutting k changes nothing either, as long as the parts are added in ascending order.
    Deterministic,
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast",
            Self::Plain => "plain",
            Self::Deterministic => "deterministic",
        })
    }
}

/// C += A B for row-major blocks: A is m x k, B is k x n, C is m x n. Sides may be 0.
///
/// # Panics
/// If a slice does not have exactly as many elements as its sides say.
pub fn gemm<T: Element>(kernel: Kernel, m: usize, k: usize, n: usize, a: &[T], b: &[T], c: &mut [T]) {
    gemm_columns(kernel, [m, k, n], 0..n, a, b, c);
}

/// The same for some columns of C only, which take up the products with these columns of B; the others stay as they
/// are. Sides are m, k and n.
///
/// # Panics
/// If a slice does not have exactly as many elements as its sides say, or if there are no such columns.
pub fn gemm_columns<T: Element>(
    kernel: Kernel,
    [m, k, n]: [usize; 3],
    columns: Range<usize>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    assert_eq!(m.checked_mul(k), Some(a.len()), "A is {m} x {k}");
    assert_eq!(k.checked_mul(n), Some(b.len()), "B is {k} x {n}");
    assert_eq!(m.checked_mul(n), Some(c.len()), "C is {m} x {n}");
    assert!(columns.start <= columns.end && columns.end <= n, "columns {columns:?} of {n}");
    if m == 0 || k == 0 || columns.is_empty() {
        return;
    }
    match kernel {
        Kernel::Fast => fast([m, k, n], &columns, a, b, c),
        Kernel::Plain => plain([k, n], &columns, a, b, c),
        Kernel::Deterministic => deterministic::gemm([k, n], &columns, a, b, c),
    }
}

fn plain<T: Element>([k, n]: [usize; 2], columns: &Range<usize>, a: &[T], b: &[T], c: &mut [T]) {
    for (row_a, row_c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
        for (j, sum) in columns.clone().zip(&mut row_c[columns.clone()]) {
            for (p, &x) in row_a.iter().enumerate() {
                *sum += x * b[p * n + j];
            }
        }
    }
}

/// What is given to the kernel at once: rows of A and C, the depth, columns of B and C. The kernel packs these parts of
/// A and B; with more at once the packed ones of all PEs do not stay in the caches, nor C until the next depth comes.
/// On two cores at once f32 is 0 to 4 % faster than with a depth of 1,024 and 256 columns, and f64 as fast.
const BLOCK: [usize; 3] = [1024, 512, 512];

/// Bytes of memory that a call takes for the packed parts of A and B, at most; f32 takes half.
pub(crate) const WORKSPACE_BYTES: u64 = ((BLOCK[0] + BLOCK[2]) * BLOCK[1] * size_of::<f64>()) as u64;

fn fast<T: Element>([m, k, n]: [usize; 3], columns: &Range<usize>, a: &[T], b: &[T], c: &mut [T]) {
    let [rows_at_once, depth_at_once, columns_at_once] = BLOCK;
    for rows in blocks(m, rows_at_once) {
        for block in blocks(columns.len(), columns_at_once) {
            let block = columns.start + block.start..columns.start + block.end;
            for inner in blocks(k, depth_at_once) {
                product([k, n], [&rows, &inner, &block], a, b, c);
            }
        }
    }
}

/// A block of C takes up the product of one of A and one of B: rows, inner ones, and columns.
#[expect(unsafe_code, reason = "the kernel crate takes raw pointers; all sides are checked before")]
fn product<T: Element>(
    [k, n]: [usize; 2],
    [rows, inner, columns]: [&Range<usize>; 3],
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    assert!(rows.end * k <= a.len() && inner.end * n <= b.len() && rows.end * n <= c.len());
    assert!(inner.end <= k && columns.end <= n);
    let stride = |side: usize| isize::try_from(side).expect("no slice is longer than isize::MAX");
    let turned = |first: *const T, side: usize| Operand { first, rows_apart: 1, columns_apart: stride(side) };
    // SAFETY: with column stride 1 and row strides n, k and n the kernel touches elements up to
    // (rows.end-1) n + columns.end-1 of C, (rows.end-1) k + inner.end-1 of A and (inner.end-1) n + columns.end-1 of B.
    // It is asserted above that these lie within the slices. C is borrowed for writing, so it overlaps neither A nor B.
    // The kernel works by columns, so it computes the transposed product, B^T A^T.
    unsafe {
        T::product()(
            [columns.len(), inner.len(), rows.len()],
            turned(b.as_ptr().add(inner.start * n + columns.start), n),
            turned(a.as_ptr().add(rows.start * k + inner.start), k),
            (c.as_mut_ptr().add(rows.start * n + columns.start), stride(n)),
            T::from_f64(1.0),
        );
    }
}

/// A matrix in memory: its element (i, j) is number `i * rows_apart + j * columns_apart`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    /// The numbers, and perhaps others between them and behind.
    pub values: &'a [T],
    /// From one row to the next.
    pub rows_apart: usize,
    /// From one column to the next.
    pub columns_apart: usize,
}

impl<'a, T> View<'a, T> {
    /// Columns one after the other, `length` numbers apart.
    #[must_use]
    pub fn by_columns(values: &'a [T], length: usize) -> Self {
        Self { values, rows_apart: 1, columns_apart: length }
    }

    /// Rows one after the other, `length` numbers apart.
    #[must_use]
    pub fn by_rows(values: &'a [T], length: usize) -> Self {
        Self { values, rows_apart: length, columns_apart: 1 }
    }
}

/// C -= A B as fast as this machine can, on the calling thread: A is m x k, B is k x n, C is m x n, its columns one after
/// the other, `c.1` numbers apart. Sides may be 0.
///
/// # Panics
/// If a matrix does not lie within its slice.
pub fn subtract_product<T: Element>(
    [m, k, n]: [usize; 3],
    a: View<'_, T>,
    b: View<'_, T>,
    c: (&mut [T], usize),
) {
    if m == 0 || k == 0 || n == 0 {
        return;
    }
    let (c, apart) = c;
    for rows in blocks(m, BLOCK[0]) {
        let a = View { values: &a.values[(rows.start * a.rows_apart).min(a.values.len())..], ..a };
        subtract_at_once([rows.len(), k, n], a, b, (&mut c[rows.start..], apart));
    }
}

#[expect(unsafe_code, reason = "the kernel crate takes raw pointers; all sides are checked before")]
fn subtract_at_once<T: Element>(
    [m, k, n]: [usize; 3],
    a: View<'_, T>,
    b: View<'_, T>,
    (c, c_apart): (&mut [T], usize),
) {
    let within = |rows: usize, columns: usize, view: View<'_, T>| {
        let last = |count: usize, apart: usize| (count - 1).checked_mul(apart);
        let end = last(rows, view.rows_apart).zip(last(columns, view.columns_apart));
        end.and_then(|(row, column)| row.checked_add(column)).is_some_and(|end| end < view.values.len())
    };
    assert!(within(m, k, a), "A is {m} x {k}");
    assert!(within(k, n, b), "B is {k} x {n}");
    assert!(c_apart >= m && within(m, n, View::by_columns(c, c_apart)), "C is {m} x {n}");
    let stride = |side: usize| isize::try_from(side).expect("no slice is longer than isize::MAX");
    let operand = |view: View<'_, T>| Operand {
        first: view.values.as_ptr(),
        rows_apart: stride(view.rows_apart),
        columns_apart: stride(view.columns_apart),
    };
    // SAFETY: the kernel touches the elements of A, B and C and none beside them; it is asserted above that the last of
    // each lies within its slice, and strides are not negative. C is borrowed for writing, so it overlaps neither.
    unsafe {
        T::product()([m, k, n], operand(a), operand(b), (c.as_mut_ptr(), stride(c_apart)), -T::from_f64(1.0));
    }
}

/// What the kernel computes at once, for any element type and vector width; a remainder costs about as much.
const BLOCK_UNIT: usize = 64;

/// `0..side` cut into ranges of at most about 1.5 times `about`, alike but for the last.
fn blocks(side: usize, about: usize) -> impl Iterator<Item = Range<usize>> {
    let count = (side + about / 2).div_euclid(about).max(1);
    let each = side.div_ceil(count).next_multiple_of(BLOCK_UNIT);
    (0..side.div_ceil(each)).map(move |at| at * each..((at + 1) * each).min(side))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{bounds, generate};
    use proptest::prelude::*;

    const SIDES: [usize; 6] = [1, 2, 7, 31, 64, 127];
    const KERNELS: [Kernel; 3] = [Kernel::Fast, Kernel::Plain, Kernel::Deterministic];

    fn operands<T: Element>(seed: u64, m: usize, k: usize, n: usize) -> (Vec<T>, Vec<T>, Vec<T>) {
        let block = |part, rows, cols| generate::block(3 * seed + part, 0..rows, 0..cols);
        (block(0, m, k), block(1, k, n), block(2, m, n))
    }

    /// Kahan's compensated sum in f64, and the sum of the magnitudes that errors are measured by.
    fn reference<T: Element>(row_a: &[T], column_b: impl Fn(usize) -> T, c: T) -> (f64, f64) {
        let (mut sum, mut lost, mut size) = (c.to_f64(), 0.0, c.to_f64().abs());
        for (p, x) in row_a.iter().enumerate() {
            let product = x.to_f64() * column_b(p).to_f64();
            let term = product - lost;
            let next = sum + term;
            lost = (next - sum) - term;
            sum = next;
            size += product.abs();
        }
        (sum, size)
    }

    /// Every element within the bound of any order of summation, k + 1 roundings of the sum of magnitudes.
    fn assert_close<T: Element>(kernel: Kernel, m: usize, k: usize, n: usize) {
        let (a, b, before) = operands::<T>(9, m, k, n);
        let mut c = before.clone();
        gemm(kernel, m, k, n, &a, &b, &mut c);
        for i in 0..m {
            for j in 0..n {
                let row = &a[i * k..(i + 1) * k];
                let (exact, size) = reference(row, |p| b[p * n + j], before[i * n + j]);
                let error = (c[i * n + j].to_f64() - exact).abs();
                let bound = ((k + 1) as f64) * T::UNIT_ROUNDOFF * size * 1.01;
                assert!(error <= bound, "{kernel} {m}x{k}x{n} at ({i}, {j}): {error} > {bound}");
            }
        }
    }

    #[test]
    fn every_kernel_is_close_to_a_compensated_reference() {
        let mut shapes: Vec<_> = SIDES.iter().map(|&n| (n, n, n)).collect();
        shapes.extend([(2, 3, 3100), (3, 3100, 2), (3100, 2, 3), (1, 1537, 1600)]);
        shapes.extend([(1, 127, 31), (127, 1, 64), (64, 31, 1), (3, 300, 5), (130, 2, 257), (33, 600, 47)]);
        for (m, k, n) in shapes {
            for kernel in KERNELS {
                assert_close::<f32>(kernel, m, k, n);
                assert_close::<f64>(kernel, m, k, n);
            }
        }
    }

    #[test]
    fn empty_sides_leave_c_as_it_was() {
        for kernel in KERNELS {
            let mut c = [1.0f64, 2.0];
            gemm(kernel, 1, 0, 2, &[], &[], &mut c);
            assert_eq!(c, [1.0, 2.0]);
            gemm::<f64>(kernel, 0, 3, 2, &[], &[0.0; 6], &mut []);
        }
    }

    #[test]
    #[should_panic(expected = "B is 2 x 3")]
    fn slices_of_the_wrong_length_panic() {
        gemm(Kernel::Fast, 1, 2, 3, &[0.0f32; 2], &[0.0; 5], &mut [0.0; 3]);
    }

    #[test]
    fn not_a_number_reaches_its_row_and_column() {
        for kernel in KERNELS {
            let (mut a, b, mut c) = operands::<f64>(1, 20, 20, 20);
            a[5 * 20 + 7] = f64::NAN;
            gemm(kernel, 20, 20, 20, &a, &b, &mut c);
            for (at, value) in c.iter().enumerate() {
                assert_eq!(value.is_nan(), at / 20 == 5, "{kernel} at {at}");
            }
        }
    }

    /// The definition of the deterministic product, as plainly as it can be written.
    fn naive<T: Element>(m: usize, k: usize, n: usize, a: &[T], b: &[T], c: &mut [T]) {
        for i in 0..m {
            for j in 0..n {
                for p in 0..k {
                    let product = a[i * k + p] * b[p * n + j];
                    c[i * n + j] += product;
                }
            }
        }
    }

    fn assert_same_bits<T: Element>(m: usize, k: usize, n: usize, seed: u64) {
        let (a, b, mut expected) = operands::<T>(seed, m, k, n);
        let start = expected.clone();
        naive(m, k, n, &a, &b, &mut expected);
        for kernel in [Kernel::Plain, Kernel::Deterministic] {
            let mut c = start.clone();
            gemm(kernel, m, k, n, &a, &b, &mut c);
            assert!(c == expected, "{kernel} {m}x{k}x{n} {}", T::DTYPE);
        }
    }

    #[test]
    fn deterministic_has_the_bits_of_the_naive_loop_for_all_tile_edges() {
        for (m, n) in (1..=18).flat_map(|m| (1..=70).map(move |n| (m, n))) {
            assert_same_bits::<f32>(m, 5, n, 1);
            assert_same_bits::<f64>(m, 5, n, 2);
        }
        for (m, k, n) in [(127, 257, 129), (65, 1030, 33), (300, 17, 301), (8, 256, 16), (9, 255, 17)] {
            assert_same_bits::<f32>(m, k, n, 3);
            assert_same_bits::<f64>(m, k, n, 4);
        }
    }

    fn assert_cuts_do_not_matter<T: Element>(sides: [usize; 3], parts: [usize; 3], seed: u64) {
        use crate::matrix::Matrix;
        let [m, k, n] = sides;
        let (a, b, start) = operands::<T>(seed, m, k, n);
        let mut expected = start.clone();
        gemm(Kernel::Deterministic, m, k, n, &a, &b, &mut expected);
        let a = Matrix::from_vec(m, k, a).unwrap();
        let b = Matrix::from_vec(k, n, b).unwrap();
        let mut c = Matrix::from_vec(m, n, start).unwrap();
        for rows in bounds(m, parts[0]) {
            for cols in bounds(n, parts[2]) {
                let mut block = c.block(rows.clone(), cols.clone());
                for ks in bounds(k, parts[1]) {
                    let (part_a, part_b) =
                        (a.block(rows.clone(), ks.clone()), b.block(ks.clone(), cols.clone()));
                    let kernel = Kernel::Deterministic;
                    gemm(kernel, rows.len(), ks.len(), cols.len(), &part_a, &part_b, &mut block);
                }
                c.set_block(rows.clone(), cols, &block);
            }
        }
        assert!(c.values() == expected, "{sides:?} cut into {parts:?}");
    }

    fn assert_some_columns<T: Element>(sides: [usize; 3], columns: Range<usize>, seed: u64) {
        let [m, k, n] = sides;
        let (a, b, start) = operands::<T>(seed, m, k, n);
        for kernel in KERNELS {
            let (mut all, mut some) = (start.clone(), start.clone());
            gemm(kernel, m, k, n, &a, &b, &mut all);
            gemm_columns(kernel, sides, columns.clone(), &a, &b, &mut some);
            let bound = ((k + 1) as f64) * T::UNIT_ROUNDOFF * 1.01;
            for (at, sum) in some.iter().enumerate() {
                let expected = if columns.contains(&(at % n)) { all[at] } else { start[at] };
                let (i, j) = (at / n, at % n);
                let (_, size) = reference(&a[i * k..][..k], |p| b[p * n + j], start[at]);
                let is_close = (sum.to_f64() - expected.to_f64()).abs() <= 2.0 * bound * size;
                let is_same = *sum == expected;
                assert!(
                    is_same || is_close && kernel == Kernel::Fast && columns.contains(&j),
                    "{kernel} {sides:?}, columns {columns:?}, at ({i}, {j}): {sum:?} for {expected:?}"
                );
            }
        }
    }

    #[test]
    fn products_are_subtracted_wherever_the_numbers_lie() {
        for [m, k, n] in [[1, 1, 1], [7, 3, 5], [64, 33, 12], [1700, 40, 9], [3, 0, 2], [0, 4, 2]] {
            let (a, b, before) = operands::<f64>(4, m, k, n);
            let mut expected: Vec<f64> = before.iter().map(|c| -c).collect();
            gemm(Kernel::Plain, m, k, n, &a, &b, &mut expected);
            // A and C by columns, some rows apart; B by columns, and by rows.
            let apart = m + 3;
            let by_columns = |values: &[f64], rows: usize, cols: usize, apart: usize| {
                let mut to = vec![9.0; apart * cols];
                (0..rows * cols).for_each(|at| to[at % cols * apart + at / cols] = values[at]);
                to
            };
            let (a, b_columns) = (by_columns(&a, m, k, apart), by_columns(&b, k, n, k + 1));
            for b in [View::by_rows(&b, n), View::by_columns(&b_columns, k + 1)] {
                let mut c = by_columns(&before, m, n, apart);
                subtract_product([m, k, n], View::by_columns(&a, apart), b, (&mut c, apart));
                let far = |(at, c): (usize, &f64)| {
                    let (i, j) = (at % apart, at / apart);
                    if i < m { (c + expected[i * n + j]).abs() } else { (c - 9.0).abs() }
                };
                assert!(c.iter().enumerate().map(far).fold(0.0, f64::max) < 1e-12, "{m} {k} {n}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "C is 3 x 2")]
    fn a_result_that_does_not_lie_within_its_slice_panics() {
        let view = View::by_columns(&[0.0f64; 6], 3);
        subtract_product([3, 1, 2], view, view, (&mut [0.0; 5], 3));
    }

    #[test]
    #[should_panic(expected = "columns 1..4 of 3")]
    fn columns_that_are_not_there_panic() {
        gemm_columns(Kernel::Fast, [1, 2, 3], 1..4, &[0.0f32; 2], &[0.0; 6], &mut [0.0; 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn some_columns_are_those_of_the_whole(
            m in 1usize..20, k in 1usize..40, n in 1usize..200, ends in (0usize..200, 0usize..200), seed in 0u64..1000,
        ) {
            let (one, other) = (ends.0.min(n), ends.1.min(n));
            assert_some_columns::<f32>([m, k, n], one.min(other)..one.max(other), seed);
            assert_some_columns::<f64>([m, k, n], one.min(other)..one.max(other), seed);
        }

        #[test]
        fn deterministic_does_not_depend_on_cuts(
            m in 1usize..70, k in 1usize..70, n in 1usize..90,
            rows in 1usize..5, ks in 1usize..5, cols in 1usize..5, seed in 0u64..1000,
        ) {
            assert_cuts_do_not_matter::<f32>([m, k, n], [rows, ks, cols], seed);
            assert_cuts_do_not_matter::<f64>([m, k, n], [rows, ks, cols], seed);
        }
    }
}
