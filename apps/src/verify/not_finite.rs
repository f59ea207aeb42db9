//! Products in which some numbers are not finite: what arithmetic makes of NaN and infinities is known, so those
//! elements are checked by themselves, and the others as if nothing had been there.
//!
//! An element of C whose row of A or column of B holds a NaN or an infinity is itself one; which one follows from
//! the terms that are not finite alone (infinities of both signs, or one times 0, make a NaN). Where the factors
//! are finite and C is not, its sum may have left the range of the numbers; whether it could is seen from
//! |A| |B|, so the rows of C with such elements are checked in full.

use super::{Verdict, full_tolerance, relative, sides};
use crate::matrix::{Element, Matrix, ShapeError};

/// Checks C = A B where C or a factor is not finite everywhere; `check` is for what is left, in which zeros take
/// the places of all that is checked here.
pub(super) fn product<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    check: impl FnOnce(&Matrix<T>, &Matrix<T>, &Matrix<T>) -> Result<Verdict, ShapeError>,
) -> Result<Verdict, ShapeError> {
    let (m, k, n) = sides(a, b, c)?;
    let of_rows: Vec<Vec<usize>> = (0..m).map(|i| not_finite(a.row_slice(i..i + 1))).collect();
    let mut of_cols = vec![Vec::new(); n];
    for p in 0..k {
        not_finite(b.row_slice(p..p + 1)).into_iter().for_each(|j| of_cols[j].push(p));
    }
    let is_special = |i: usize, j: usize| !of_rows[i].is_empty() || !of_cols[j].is_empty();
    let mut wrong = None;
    let mut overflowed = Vec::new();
    for (i, of_row) in of_rows.iter().enumerate() {
        let row = c.row_slice(i..i + 1);
        for j in (0..n).filter(|&j| is_special(i, j)) {
            let terms = of_row.iter().chain(&of_cols[j]);
            let due = sum(terms.map(|&p| a.values()[i * k + p].to_f64() * b.values()[p * n + j].to_f64()));
            let is_due = if due.is_nan() { row[j].to_f64().is_nan() } else { row[j].to_f64() == due };
            wrong = if is_due { wrong } else { wrong.or(Some(i)) };
        }
        if not_finite(row).into_iter().any(|j| !is_special(i, j)) {
            overflowed.push(i);
        }
    }
    let (mut a_left, mut b_left, mut c_left) = (a.clone(), b.clone(), c.clone());
    let zeros = vec![T::default(); k.max(n)];
    for i in (0..m).filter(|i| !of_rows[*i].is_empty() || overflowed.binary_search(i).is_ok()) {
        a_left.set_block(i..i + 1, 0..k, &zeros[..k]);
        c_left.set_block(i..i + 1, 0..n, &zeros[..n]);
    }
    let columns = of_cols.iter().map(Vec::is_empty);
    for j in columns.clone().enumerate().filter(|(_, is_finite)| !is_finite).map(|(j, _)| j) {
        (0..k).for_each(|p| b_left.values_mut()[p * n + j] = T::default());
        (0..m).for_each(|i| c_left.values_mut()[i * n + j] = T::default());
    }
    let mut verdict = check(&a_left, &b_left, &c_left)?;
    // In the unit of the other check: how many times more than it may be.
    let unit = verdict.tolerance / full_tolerance::<T>(k);
    for i in overflowed {
        verdict
            .observe(i, unit * error_of_row(a.row_slice(i..i + 1), &b_left, c.row_slice(i..i + 1), &of_cols));
    }
    if let Some(row) = wrong {
        verdict.observe(row, f64::INFINITY);
    }
    verdict.not_finite = not_finite(c.values()).len();
    Ok(verdict)
}

/// The largest relative error of a row of C, where columns of B that are not finite do not count. A sum that may
/// have left the range of the numbers on its way may be anything that is not finite.
fn error_of_row<T: Element>(a: &[T], b: &Matrix<T>, c: &[T], of_cols: &[Vec<usize>]) -> f64 {
    let (mut exact, mut scale) = (vec![0.0; c.len()], vec![0.0; c.len()]);
    for (p, x) in a.iter().enumerate() {
        for ((exact, scale), y) in exact.iter_mut().zip(&mut scale).zip(b.row_slice(p..p + 1)) {
            let term = x.to_f64() * y.to_f64();
            *exact += term;
            *scale += term.abs();
        }
    }
    let floor = T::TINY * (a.len() + 1) as f64;
    let errors = (0..c.len()).filter(|&j| of_cols[j].is_empty()).map(|j| {
        let may_overflow = !T::from_f64(scale[j]).to_f64().is_finite();
        match c[j].to_f64() {
            value if may_overflow && !(value.is_finite() && exact[j].is_finite()) => 0.0,
            value => relative(value - exact[j], scale[j].min(f64::MAX), floor),
        }
    });
    errors.fold(0.0, f64::max)
}

/// Where numbers are not finite.
fn not_finite<T: Element>(values: &[T]) -> Vec<usize> {
    (0..values.len()).filter(|&at| !values[at].to_f64().is_finite()).collect()
}

/// A sum that is not looked at any further once it is NaN.
fn sum(mut terms: impl Iterator<Item = f64>) -> f64 {
    let total = terms.try_fold(0.0, |sum: f64, term| {
        let sum = sum + term;
        if sum.is_nan() { Err(()) } else { Ok(sum) }
    });
    total.unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use crate::kernels::gemm::{Kernel, gemm};
    use crate::matrix::{Element, Matrix, generate};
    use crate::verify::{FULL_MAX, Method, Verdict, freivalds, full, product};

    const KERNELS: [Kernel; 3] = [Kernel::Fast, Kernel::Plain, Kernel::Deterministic];

    fn times<T: Element>(kernel: Kernel, a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
        let mut c = Matrix::zeros(a.rows(), b.cols()).unwrap();
        gemm(kernel, a.rows(), a.cols(), b.cols(), a.values(), b.values(), c.values_mut());
        c
    }

    /// By both ways to check what is finite.
    fn both<T: Element>(a: &Matrix<T>, b: &Matrix<T>, c: &Matrix<T>) -> [Verdict; 2] {
        [
            super::product(a, b, c, full).unwrap(),
            super::product(a, b, c, |a, b, c| freivalds(a, b, c, 8, 3)).unwrap(),
        ]
    }

    fn factors<T: Element>() -> (Matrix<T>, Matrix<T>) {
        (generate::matrix(1, 9, 11).unwrap(), generate::matrix(2, 11, 7).unwrap())
    }

    fn right_is_right_and_wrong_is_wrong<T: Element>() {
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for (in_a, in_b) in special.iter().flat_map(|&x| special.map(|y| (x, y))) {
            let (mut a, mut b) = factors::<T>();
            a.values_mut()[3 * 11 + 4] = T::from_f64(in_a);
            b.values_mut()[4 * 7 + 2] = T::from_f64(in_b);
            b.values_mut()[5 * 7 + 2] = T::from_f64(f64::INFINITY);
            // Infinity times 0 is NaN.
            b.values_mut()[4 * 7 + 6] = T::default();
            for kernel in KERNELS {
                let c = times(kernel, &a, &b);
                for verdict in both(&a, &b, &c) {
                    assert!(verdict.holds(), "{in_a}, {in_b}, {kernel}: {verdict:?}");
                    assert_eq!(verdict.not_finite, 7 + 9 - 1);
                }
                for at in 0..9 * 7 {
                    let value = c.values()[at].to_f64();
                    let number = if value.is_finite() { value + 0.25 } else { 0.5 };
                    let others = [number, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
                    let is_other = |x: f64| x != value && !(x.is_nan() && value.is_nan());
                    for other in others.into_iter().filter(|&x| is_other(x)) {
                        let mut wrong = c.clone();
                        wrong.values_mut()[at] = T::from_f64(other);
                        for verdict in both(&a, &b, &wrong) {
                            let place = (at / 7, at % 7);
                            assert!(!verdict.holds(), "{other} for {value} at {place:?}: {verdict:?}");
                            assert_eq!(verdict.row, at / 7);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn nan_and_infinities_of_the_factors_must_be_in_the_product_and_nowhere_else() {
        right_is_right_and_wrong_is_wrong::<f32>();
        right_is_right_and_wrong_is_wrong::<f64>();
    }

    #[test]
    fn sums_may_leave_the_range_of_the_numbers_only_where_they_are_big_enough() {
        let (mut a, b) = factors::<f32>();
        a.values_mut()[2 * 11..3 * 11].iter_mut().for_each(|x| *x *= f32::MAX);
        for kernel in KERNELS {
            let c = times(kernel, &a, &b);
            assert!(c.values().iter().any(|value| !value.is_finite()));
            assert!(both(&a, &b, &c).iter().all(Verdict::holds), "{kernel}");
            for at in [2 * 7, 5 * 7 + 1] {
                let mut wrong = c.clone();
                wrong.values_mut()[at] = if at == 14 { 1.0 } else { f32::INFINITY };
                assert!(both(&a, &b, &wrong).iter().all(|verdict| !verdict.holds()), "{kernel}, {at}");
            }
        }
    }

    #[test]
    fn big_products_with_nan_are_checked_by_vectors() {
        let (m, k, n) = (300, 2000, 1000);
        assert!(m * k * n > FULL_MAX);
        let mut a = generate::matrix::<f32>(1, m, k).unwrap();
        let mut b = generate::matrix::<f32>(2, k, n).unwrap();
        a.values_mut()[17 * k + 5] = f32::NAN;
        b.values_mut()[1999 * n + 30] = f32::INFINITY;
        let mut c = times(Kernel::Fast, &a, &b);
        let verdict = product(&a, &b, &c, 1).unwrap();
        assert!(verdict.holds() && verdict.method == Method::Freivalds, "{verdict:?}");
        assert_eq!(verdict.not_finite, m + n - 1);
        c.values_mut()[18 * n + 31] += 1.0;
        let verdict = product(&a, &b, &c, 1).unwrap();
        assert!(!verdict.holds() && verdict.row == 18, "{verdict:?}");
    }
}
