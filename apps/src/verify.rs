//! Is C really A B? Checked by other means than the ones that made C, with tolerances that follow from theory.
//!
//! Notation: A is m x k, B is k x n; u is the unit roundoff of the numbers (2^-24 for `f32`, 2^-53 for `f64`),
//! v = 2^-53 that of the check, which computes in `f64` always.
//!
//! **Full check**, for small products: every element against a product computed in `f64`. Whatever the order
//! of summation and with or without fused multiply-add, k products are summed with an error of at most
//! gamma(k + 1) (|A| |B|)ij, where gamma(r) = r u / (1 - r u) (Higham, "Accuracy and Stability of Numerical
//! Algorithms", 2002, section 3.1). Errors are therefore measured relative to (|A| |B|)ij; the tolerance is
//! gamma(k + 1) for u and again for v, for the reference is not exact either. A right product never fails.
//!
//! **Freivalds' check**, for big ones (R. Freivalds, "Probabilistic machines can use less running time", 1977):
//! for a random vector x of signs, A (B x) must be C x; three matrix-vector products in place of a matrix
//! product. One wrong element changes its row of C x by all of its error, whatever the signs, and so is found
//! in the first round if its error exceeds the tolerance; errors that cancel in one round do so in all R rounds
//! with probability 2^-R at most. The bound that no rounding could break would be useless for `f32`: it is some
//! k sqrt(n) times the errors that occur. So the tolerance follows the statistical model of rounding (Higham
//! and Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019). The
//! error of element (i, j) is about u times the root of the sum of its k squared partial sums; these are of the
//! size of sum_p (aip bpj)^2 where signs alternate, and of cij^2 where they do not; random signs add the errors
//! of a row as squares. Errors are therefore measured relative to the row's scale
//! si = sqrt(sum_p aip^2 |bp|^2 + |ci|^2), |.| being the 2-norm of a row. The tolerance is
//! (16 + 1.5 sqrt(k)) sqrt(k u^2 + (k + 2 n) v^2): the 16 are some 40 standard deviations of random roundings,
//! and 1.5 sqrt(k) allows for data whose roundings all go the same way, such as constant matrices: adding one
//! number k times loses k u / 3 of the sum at most, and the signs of x add that up to some 4 sqrt(n) times.
//! For `f32` at n = 512 this finds one element of a random product that is wrong by a fifth of a percent of
//! their typical size, at n = 8192 by a tenth; for `f64`, by less than a part in 10^8.
//!
//! NaN and infinities, in the product or the factors, fail either check; [`product`] puts them aside before, see
//! `not_finite`. Squares are taken of elements and of row norms, so Freivalds' check is for products of magnitudes
//! between 1e-150 and 1e150.

mod not_finite;

use crate::matrix::{Element, Matrix, ShapeError, generate};
use serde::{Deserialize, Serialize};

/// Rounds of Freivalds' check: errors that could cancel get through with a probability of 2^-16 at most.
pub const ROUNDS: usize = 16;

/// Up to this m k n, the full check costs less than a second.
const FULL_MAX: usize = 1 << 29;

/// How a product was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Every element against another product.
    Full,
    /// By random vectors.
    Freivalds,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[must_use = "a check is worth nothing if nobody looks at it"]
pub struct Verdict {
    /// How it was checked; errors of different methods are relative to different scales.
    pub method: Method,
    /// The biggest relative error; infinite if anything was not a finite number.
    pub max_error: f64,
    /// What it may be.
    pub tolerance: f64,
    /// Row of the biggest error, from 0.
    pub row: usize,
    /// Elements of the product that are NaN or infinite, whether they should be or not; counted by [`product`].
    pub not_finite: usize,
}

impl Verdict {
    fn new(method: Method, tolerance: f64) -> Self {
        Self { method, max_error: 0.0, tolerance, row: 0, not_finite: 0 }
    }

    /// Whether the product is right.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.max_error <= self.tolerance
    }

    /// Takes up an error found in a row; not a number counts as infinite.
    pub fn observe(&mut self, row: usize, error: f64) {
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if error > self.max_error {
            (self.max_error, self.row) = (error, row);
        }
    }

    /// The worse of two verdicts on parts of the same product.
    pub fn and(self, other: Self) -> Self {
        if other.max_error > self.max_error { other } else { self }
    }
}

/// Checks C = A B in full if that takes less than about a second, else by [`ROUNDS`] rounds of Freivalds' check.
/// Where the factors hold NaN or infinities, or sums leave the range of the numbers, the product must not be finite
/// either, as arithmetic has it.
///
/// # Errors
/// [`ShapeError::Product`] if the shapes do not match.
pub fn product<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    seed: u64,
) -> Result<Verdict, ShapeError> {
    let check = |a: &Matrix<T>, b: &Matrix<T>, c: &Matrix<T>| {
        let work = a.rows().saturating_mul(a.cols()).saturating_mul(b.cols());
        if work <= FULL_MAX { full(a, b, c) } else { freivalds(a, b, c, ROUNDS, seed) }
    };
    let is_finite = |matrix: &Matrix<T>| matrix.values().iter().all(|value| value.to_f64().is_finite());
    if [a, b, c].into_iter().all(is_finite) { check(a, b, c) } else { not_finite::product(a, b, c, check) }
}

/// Compares every element of C with a product computed in `f64`.
///
/// # Errors
/// [`ShapeError::Product`] if the shapes do not match.
pub fn full<T: Element>(a: &Matrix<T>, b: &Matrix<T>, c: &Matrix<T>) -> Result<Verdict, ShapeError> {
    let (m, k, n) = sides(a, b, c)?;
    let mut verdict = Verdict::new(Method::Full, full_tolerance::<T>(k));
    let floor = T::TINY * (k + 1) as f64;
    // Not one of the kernels: what made C must not be asked whether C is right.
    let (mut exact, mut scale) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..m {
        exact.fill(0.0);
        scale.fill(0.0);
        for (p, x) in a.row_slice(i..i + 1).iter().enumerate() {
            let row_b = b.row_slice(p..p + 1);
            for ((exact, scale), y) in exact.iter_mut().zip(&mut scale).zip(row_b) {
                let product = x.to_f64() * y.to_f64();
                *exact += product;
                *scale += product.abs();
            }
        }
        for ((value, exact), scale) in c.row_slice(i..i + 1).iter().zip(&exact).zip(&scale) {
            verdict.observe(i, relative(value.to_f64() - exact, *scale, floor));
        }
    }
    Ok(verdict)
}

/// Checks C = A B by `rounds` random vectors of signs.
///
/// # Errors
/// [`ShapeError::Product`] if the shapes do not match.
pub fn freivalds<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    rounds: usize,
    seed: u64,
) -> Result<Verdict, ShapeError> {
    let (m, k, n) = sides(a, b, c)?;
    let mut norms_b = vec![0.0; k];
    add_square_norms(b.values(), &mut norms_b);
    let mut scales = vec![0.0; m];
    add_square_norms(c.values(), &mut scales);
    add_squares_matvec(a.values(), &norms_b, &mut scales);
    let mut verdict = Verdict::new(Method::Freivalds, freivalds_tolerance::<T>(k, n));
    for round in 0..rounds {
        let x = signs(seed, round, n);
        let (mut bx, mut abx, mut cx) = (vec![0.0; k], vec![0.0; m], vec![0.0; m]);
        matvec_acc(b.values(), &x, &mut bx);
        matvec_acc(a.values(), &bx, &mut abx);
        matvec_acc(c.values(), &x, &mut cx);
        verdict = verdict.and(compare_rows::<T>(0, k, n, &abx, &cx, &scales));
    }
    Ok(verdict)
}

fn sides<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
) -> Result<(usize, usize, usize), ShapeError> {
    if a.cols() == b.rows() && c.shape() == (a.rows(), b.cols()) {
        Ok((a.rows(), a.cols(), b.cols()))
    } else {
        Err(ShapeError::Product { a: a.shape(), b: b.shape(), c: c.shape() })
    }
}

fn full_tolerance<T: Element>(k: usize) -> f64 {
    let gamma = |u: f64| {
        let ku = (k + 1) as f64 * u;
        if ku < 1.0 { ku / (1.0 - ku) } else { f64::MAX }
    };
    gamma(T::UNIT_ROUNDOFF) + gamma(f64::UNIT_ROUNDOFF)
}

/// The tolerance of Freivalds' check for an m x k times k x n product; derived at the top of this file.
#[must_use]
pub fn freivalds_tolerance<T: Element>(k: usize, n: usize) -> f64 {
    let (u, v) = (T::UNIT_ROUNDOFF, f64::UNIT_ROUNDOFF);
    let (k, n) = (k as f64, n as f64);
    (16.0 + 1.5 * k.sqrt()) * (k * u * u + (k + 2.0 * n) * v * v).sqrt()
}

/// An error relative to a scale. Below `floor`, numbers have no more relative precision.
fn relative(error: f64, scale: f64, floor: f64) -> f64 {
    if !error.is_finite() || !scale.is_finite() {
        f64::INFINITY
    } else if error.abs() <= floor {
        0.0
    } else {
        error.abs() / scale
    }
}

// The pieces of Freivalds' check, for matrices that lie in blocks on many nodes. All of them add to vectors,
// so blocks can be taken in any cut, and what they add up to can be reduced over nodes.

/// The vector of one round: `n` random signs, 1 or -1, the same on every node.
#[must_use]
pub fn signs(seed: u64, round: usize, n: usize) -> Vec<f64> {
    let sign = |j| if generate::hash(!seed, round as u64, j as u64) >> 63 == 0 { 1.0 } else { -1.0 };
    (0..n).map(sign).collect()
}

/// y += R x for a row-major block R of `y.len()` rows and `x.len()` columns, summed in `f64`.
///
/// # Panics
/// If the block does not have that shape.
pub fn matvec_acc<T: Element>(rows: &[T], x: &[f64], y: &mut [f64]) {
    assert_eq!(rows.len(), x.len() * y.len(), "a block of {} x {}", y.len(), x.len());
    for_each_row(rows, y, |row| sum_of(row.len(), |j| row[j].to_f64() * x[j]));
}

/// y += (R o R) x: as [`matvec_acc`], with the squares of the block's elements.
///
/// # Panics
/// If the block does not have `y.len()` rows and `x.len()` columns.
pub fn add_squares_matvec<T: Element>(rows: &[T], x: &[f64], y: &mut [f64]) {
    assert_eq!(rows.len(), x.len() * y.len(), "a block of {} x {}", y.len(), x.len());
    for_each_row(rows, y, |row| sum_of(row.len(), |j| row[j].to_f64() * row[j].to_f64() * x[j]));
}

/// Adds to each element of `norms` the squared 2-norm of its row of a row-major block.
///
/// # Panics
/// If the block does not consist of `norms.len()` rows of equal length.
pub fn add_square_norms<T: Element>(rows: &[T], norms: &mut [f64]) {
    assert!(rows.is_empty() || rows.len().is_multiple_of(norms.len()), "{} rows", norms.len());
    for_each_row(rows, norms, |row| sum_of(row.len(), |j| row[j].to_f64() * row[j].to_f64()));
}

/// Compares A (B x) with C x for some rows, `first` being the number of the first one.
///
/// `scales` are the squared scales of the rows: [`add_square_norms`] of C, plus [`add_squares_matvec`] of A
/// with the squared row norms of B.
///
/// # Panics
/// If the three vectors are not equally long.
pub fn compare_rows<T: Element>(
    first: usize,
    k: usize,
    n: usize,
    abx: &[f64],
    cx: &[f64],
    scales: &[f64],
) -> Verdict {
    assert!(abx.len() == cx.len() && abx.len() == scales.len(), "one number of each kind a row");
    let mut verdict = Verdict::new(Method::Freivalds, freivalds_tolerance::<T>(k, n));
    let floor = T::TINY * (k + 1) as f64 * n as f64;
    for (i, ((abx, cx), scale)) in abx.iter().zip(cx).zip(scales).enumerate() {
        verdict.observe(first + i, relative(abx - cx, scale.sqrt(), floor));
    }
    verdict
}

fn for_each_row<T>(rows: &[T], sums: &mut [f64], sum: impl Fn(&[T]) -> f64) {
    let Some(cols) = rows.len().checked_div(sums.len()).filter(|&cols| cols > 0) else { return };
    for (total, row) in sums.iter_mut().zip(rows.chunks_exact(cols)) {
        *total += sum(row);
    }
}

/// The sum of `term(0..n)`, in eight interleaved sums: memory is then slower than the additions.
#[inline(always)]
fn sum_of(n: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    let whole = n - n % 8;
    for start in (0..whole).step_by(8) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += term(start + lane);
        }
    }
    sums.iter().sum::<f64>() + (whole..n).map(term).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gemm::{Kernel, gemm};
    use crate::matrix::bounds;

    type Factors<T> = (Matrix<T>, Matrix<T>, Matrix<T>);

    fn multiplied<T: Element>(kernel: Kernel, a: Matrix<T>, b: Matrix<T>) -> Factors<T> {
        let mut c = Matrix::zeros(a.rows(), b.cols()).unwrap();
        gemm(kernel, a.rows(), a.cols(), b.cols(), a.values(), b.values(), c.values_mut());
        (a, b, c)
    }

    fn random<T: Element>(kernel: Kernel, m: usize, k: usize, n: usize) -> Factors<T> {
        let a = generate::matrix(1, m, k).unwrap();
        multiplied(kernel, a, generate::matrix(2, k, n).unwrap())
    }

    fn both<T: Element>((a, b, c): &Factors<T>) -> [Verdict; 2] {
        [full(a, b, c).unwrap(), freivalds(a, b, c, ROUNDS, 5).unwrap()]
    }

    #[test]
    fn right_products_of_every_kernel_hold() {
        for (m, k, n) in
            [(1, 1, 1), (1, 50, 1), (2, 1, 3), (40, 1, 9), (7, 300, 5), (65, 64, 63), (200, 512, 210)]
        {
            for kernel in [Kernel::Fast, Kernel::Plain, Kernel::Deterministic] {
                for verdict in both(&random::<f32>(kernel, m, k, n))
                    .into_iter()
                    .chain(both(&random::<f64>(kernel, m, k, n)))
                {
                    assert!(verdict.holds(), "{kernel} {m}x{k}x{n}: {verdict:?}");
                }
            }
        }
    }

    /// Data whose roundings do not look random, or whose rows have very different sizes.
    #[test]
    fn right_products_of_awkward_data_hold() {
        let (m, k, n) = (40, 1500, 70);
        let fill = |rows, cols, f: fn(usize, usize) -> f64| {
            let values = (0..rows * cols).map(|at| f32::from_f64(f(at / cols, at % cols))).collect();
            Matrix::from_vec(rows, cols, values).unwrap()
        };
        let shapes: [fn(usize, usize) -> f64; 7] = [
            |_, _| 0.1,
            |_, _| 0.0,
            |i, _| if i % 2 == 0 { 0.3 } else { -0.3 },
            |i, j| ((i * 7 + j * 3) as f64).exp2().recip().max(1e-30),
            |i, j| f64::from(u8::from(i % 8 == j % 8)) * 0.7,
            |i, j| 10f64.powi(i32::try_from((i + j) % 30).unwrap() - 15),
            |i, j| if j < 750 && i < 750 { 0.9 } else { -0.9 },
        ];
        for (at, fa) in shapes.into_iter().enumerate() {
            for (bt, fb) in shapes.into_iter().enumerate() {
                for kernel in [Kernel::Fast, Kernel::Deterministic] {
                    for verdict in both(&multiplied(kernel, fill(m, k, fa), fill(k, n, fb))) {
                        assert!(verdict.holds(), "{kernel}, shapes {at} and {bt}: {verdict:?}");
                    }
                }
            }
        }
    }

    /// One element of each of some regions, the biggest there, wrong by one in a thousand.
    fn assert_one_wrong_element_is_found<T: Element>([m, k, n]: [usize; 3], parts: usize) {
        let (a, b, right) = random::<T>(Kernel::Fast, m, k, n);
        for rows in bounds(m, parts) {
            for cols in bounds(n, parts) {
                let mut places = rows.clone().flat_map(|i| cols.clone().map(move |j| i * n + j));
                let size = |at: usize| right.values()[at].to_f64().abs();
                let Some(first) = places.next() else { continue };
                let at = places.fold(first, |best, at| if size(at) > size(best) { at } else { best });
                let mut c = right.clone();
                c.values_mut()[at] = T::from_f64(right.values()[at].to_f64() * 1.001);
                let wrong = (a.clone(), b.clone(), c);
                for verdict in both(&wrong) {
                    assert!(!verdict.holds(), "{m}x{k}x{n} at {at}: {verdict:?}");
                    assert_eq!(verdict.row, at / n);
                }
            }
        }
    }

    #[test]
    fn one_element_wrong_by_a_thousandth_is_found_anywhere() {
        for sides in [[1, 1, 1], [3, 3, 3], [5, 64, 9], [64, 64, 64], [127, 31, 200]] {
            assert_one_wrong_element_is_found::<f32>(sides, 5);
            assert_one_wrong_element_is_found::<f64>(sides, 5);
        }
        assert_one_wrong_element_is_found::<f32>([512; 3], 3);
        assert_one_wrong_element_is_found::<f64>([512; 3], 3);
    }

    #[test]
    fn a_missing_step_and_swapped_rows_are_found() {
        let (a, b, c) = random::<f32>(Kernel::Fast, 60, 60, 60);
        let mut short = Matrix::zeros(60, 60).unwrap();
        let (part_a, part_b) = (a.block(0..60, 0..59), b.block(0..59, 0..60));
        gemm(Kernel::Fast, 60, 59, 60, &part_a, &part_b, short.values_mut());
        let mut swapped = c.clone();
        swapped.set_block(0..1, 0..60, c.row_slice(1..2));
        swapped.set_block(1..2, 0..60, c.row_slice(0..1));
        for wrong in [short, swapped, Matrix::zeros(60, 60).unwrap()] {
            assert!(both(&(a.clone(), b.clone(), wrong)).iter().all(|verdict| !verdict.holds()));
        }
    }

    #[test]
    fn not_a_number_and_infinity_fail() {
        let right = random::<f32>(Kernel::Fast, 20, 20, 20);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut in_c = right.clone();
            in_c.2.values_mut()[399] = bad;
            let mut in_a = right.clone();
            in_a.0.values_mut()[0] = bad;
            let in_all = multiplied(Kernel::Fast, in_a.0.clone(), right.1.clone());
            for wrong in [in_c, in_a, in_all] {
                for verdict in both(&wrong) {
                    assert!(!verdict.holds() && verdict.max_error == f64::INFINITY, "{bad}: {verdict:?}");
                }
            }
        }
    }

    #[test]
    fn small_products_are_checked_in_full_and_big_ones_by_vectors() {
        let check = |(a, b, c): Factors<f32>| product(&a, &b, &c, 3).unwrap();
        let small = check(random(Kernel::Fast, 50, 60, 70));
        let big = check(random(Kernel::Fast, 300, 2000, 1000));
        assert!(small.holds() && small.method == Method::Full, "{small:?}");
        assert!(big.holds() && big.method == Method::Freivalds, "{big:?}");
    }

    #[test]
    fn shapes_that_do_not_match_are_refused() {
        let (a, b, c) = random::<f64>(Kernel::Plain, 2, 3, 4);
        assert!(matches!(full(&b, &a, &c), Err(ShapeError::Product { .. })));
        let message = freivalds(&a, &b, &a, 1, 0).unwrap_err().to_string();
        assert!(message.starts_with("2x3 times 3x4 does not make 2x3"), "{message}");
    }

    #[test]
    fn check_by_blocks_is_the_check_of_the_whole() {
        let (m, k, n) = (23, 31, 29);
        let (a, b, mut c) = random::<f32>(Kernel::Fast, m, k, n);
        c.values_mut()[11 * n + 3] += 0.25;
        let whole = freivalds(&a, &b, &c, 1, 8).unwrap();
        let x = signs(8, 0, n);
        let (mut norms, mut scales) = (vec![0.0; k], vec![0.0; m]);
        let (mut bx, mut abx, mut cx) = (vec![0.0; k], vec![0.0; m], vec![0.0; m]);
        for (rows, cols) in
            bounds(k, 3).into_iter().flat_map(|r| bounds(n, 4).into_iter().map(move |c| (r.clone(), c)))
        {
            let block = b.block(rows.clone(), cols.clone());
            add_square_norms(&block, &mut norms[rows.clone()]);
            matvec_acc(&block, &x[cols], &mut bx[rows]);
        }
        for rows in bounds(m, 4) {
            for cols in bounds(k, 3) {
                let block = a.block(rows.clone(), cols.clone());
                add_squares_matvec(&block, &norms[cols.clone()], &mut scales[rows.clone()]);
                matvec_acc(&block, &bx[cols], &mut abx[rows.clone()]);
            }
            for cols in bounds(n, 2) {
                let block = c.block(rows.clone(), cols.clone());
                add_square_norms(&block, &mut scales[rows.clone()]);
                matvec_acc(&block, &x[cols], &mut cx[rows.clone()]);
            }
        }
        let parts = bounds(m, 5)
            .into_iter()
            .map(|r| compare_rows::<f32>(r.start, k, n, &abx[r.clone()], &cx[r.clone()], &scales[r]));
        let joined = parts.reduce(Verdict::and).unwrap();
        assert!(!joined.holds() && joined.row == 11, "{joined:?}");
        assert!((joined.max_error / whole.max_error - 1.0).abs() < 1e-9, "{joined:?} {whole:?}");
    }

    #[test]
    fn signs_are_balanced_and_differ_by_round_and_seed() {
        let n = 10_000;
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>().abs();
        let vectors = [signs(1, 0, n), signs(1, 1, n), signs(2, 0, n), vec![1.0; n]];
        for (at, x) in vectors.iter().enumerate() {
            assert!(x.iter().all(|s| s.abs() == 1.0));
            // The standard deviation of the product of two independent ones is 100.
            assert!(vectors[..at].iter().all(|y| dot(x, y) < 500.0));
        }
    }
}
