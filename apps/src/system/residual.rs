//! How good a solution is: its residual as HPL measures it, and row by row.

use super::{LinearSystem, Wide, exponent, times_power_of_two};
use crate::kernels::dot;
use crate::matrix::{Matrix, Real};

/// Half a megabyte: what a core's second cache holds beside a column.
const NUMBERS_IN_CACHE: usize = 1 << 16;

/// Residuals of a solution, both in units of rounding: a stable method stays far below 16.
///
/// u is the unit roundoff of the numbers (2^-24 for f32, 2^-53 for f64), n the count of unknowns, and all norms are the
/// largest magnitude, of A the largest sum of magnitudes in a row. Of many right-hand sides the worst counts. Sums are
/// made in f64 whatever the numbers are; rows of any magnitude are compared without overflow. ||x|| counts as no less
/// than the smallest normal number: numbers below that are not rounded in proportion to their size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// ||A x - b|| / (||A|| ||x|| n u): the measure of HPL (A. Petitet and others, "HPL - A Portable Implementation of
    /// the High-Performance Linpack Benchmark"), without its ||b|| beside ||A|| ||x||, which at most halves it.
    pub overall: f64,
    /// The same with each row's own sum of magnitudes in the place of ||A||, the worst of all rows: it sees a wrong row
    /// whose numbers are small.
    pub by_row: f64,
    /// The row of the worst, from 0.
    pub row: usize,
}

impl Residual {
    /// Above this a solution counts as wrong.
    pub const ACCEPTED: f64 = 16.0;
}

/// The residual of the solution `x` of a system, n x rhs. Computed from A as it was given, or made anew. Infinite if a
/// number of `x` is not finite.
///
/// # Panics
/// If `x` has another shape than B.
#[must_use]
pub fn residual<T: Real>(system: &LinearSystem<T>, x: &Matrix<T>) -> Residual {
    assert_eq!(x.shape(), system.b.shape(), "a solution for each right-hand side");
    let columns: Vec<Column> = (0..system.rhs).map(|column| Column::of(x, column)).collect();
    let (mut worst, mut norm) = (vec![Wide::default(); columns.len()], Wide::default());
    let mut residual = Residual { overall: 0.0, by_row: 0.0, row: 0 };
    let mut some = Rows::new(system.n);
    let mut take_up = |some: &mut Rows| {
        norm = some.known.iter().fold(norm, |norm, row| norm.max(Wide::new(row.sum, row.exponent)));
        let mut products = vec![0.0; some.known.len()];
        for (at, (column, worst)) in columns.iter().zip(&mut worst).enumerate() {
            dot::dense(&some.scaled, &column.values, &mut products);
            for (row, product) in some.known.iter().zip(&products) {
                let exponent = row.exponent + column.exponent;
                let b = system.b.row_slice(row.at..row.at + 1)[at].to_f64();
                let off = Wide::new(product - times_power_of_two(b, -exponent), exponent);
                let by_row = off.over(Wide::new(row.sum * column.norm, exponent));
                if by_row > residual.by_row {
                    (residual.by_row, residual.row) = (by_row, row.at);
                }
                *worst = worst.max(off);
            }
        }
        some.clear();
    };
    system.a.for_each_row(system.n, |at, values| {
        some.add(at, values);
        if some.is_full() {
            take_up(&mut some);
        }
    });
    take_up(&mut some);
    let unit = system.n as f64 * T::UNIT_ROUNDOFF;
    for (column, worst) in columns.iter().zip(worst) {
        let scale = norm.times(Wide::new(column.norm, column.exponent));
        residual.overall = residual.overall.max(worst.over(scale) / unit);
    }
    residual.by_row /= unit;
    residual
}

/// Some rows of A, each divided by a power of two so that its largest number is below 1: so many as stay in a cache while
/// all columns of the solution come by.
struct Rows {
    n: usize,
    scaled: Vec<f64>,
    known: Vec<Row>,
}

/// What is known of a row.
struct Row {
    at: usize,
    exponent: i32,
    /// Of magnitudes, scaled.
    sum: f64,
}

impl Rows {
    fn new(n: usize) -> Self {
        Self { n, scaled: Vec::new(), known: Vec::new() }
    }

    fn add<T: Real>(&mut self, at: usize, values: &[T]) {
        let most = values.iter().fold(0.0, |most: f64, value| most.max(value.to_f64().abs()));
        let exponent = exponent(most);
        let first = self.scaled.len();
        self.scaled.extend(values.iter().map(|value| times_power_of_two(value.to_f64(), -exponent)));
        let sum = self.scaled[first..].iter().map(|value| value.abs()).sum();
        self.known.push(Row { at, exponent, sum });
    }

    fn is_full(&self) -> bool {
        self.scaled.len() + self.n > NUMBERS_IN_CACHE
    }

    fn clear(&mut self) {
        self.scaled.clear();
        self.known.clear();
    }
}

/// A column of the solution, divided by a power of two so that its largest number is below 1, and its norm.
struct Column {
    values: Vec<f64>,
    exponent: i32,
    norm: f64,
}

impl Column {
    fn of<T: Real>(x: &Matrix<T>, column: usize) -> Self {
        let values = || x.values().iter().skip(column).step_by(x.cols()).map(|value| value.to_f64());
        let least_normal = T::TINY / (2.0 * T::UNIT_ROUNDOFF);
        let most = values().fold(least_normal, |most: f64, value| most.max(value.abs()));
        let exponent = exponent(most);
        let values = values().map(|value| times_power_of_two(value, -exponent)).collect();
        Self { values, exponent, norm: times_power_of_two(most, -exponent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Element as _;
    use crate::system::Coefficients;

    fn system(n: usize, a: Vec<f64>, b: Vec<f64>) -> LinearSystem<f64> {
        let rhs = b.len() / n;
        let a = Coefficients::Dense(Matrix::from_vec(n, n, a).unwrap());
        LinearSystem { n, rhs, a, b: Matrix::from_vec(n, rhs, b).unwrap() }
    }

    fn of(system: &LinearSystem<f64>, x: Vec<f64>) -> Residual {
        residual(system, &Matrix::from_vec(system.n, system.rhs, x).unwrap())
    }

    #[test]
    fn the_measure_is_that_of_the_definition() {
        let system = system(2, vec![1.0, -3.0, 2.0, 2.0], vec![5.0, 1.0, 6.0, 4.0]);
        // A x is (-2, 4), so A x - b is (-7, -2) and (-3, 0); the norms of A and x are 4 and 1.
        let found = of(&system, vec![1.0; 4]);
        let u = 2.0 * f64::UNIT_ROUNDOFF;
        assert_eq!((found.overall * u, found.by_row * u, found.row), (7.0 / 4.0, 7.0 / 4.0, 0));
    }

    #[test]
    fn rows_of_any_size_are_seen_and_nothing_overflows() {
        for scale in [1.0, 1e-150, 1e150, 1e-300] {
            let a = vec![2.0e150, 1.0e150, scale, -scale];
            let system = system(2, a, vec![5.0e150, 0.0]);
            let x = 5.0 / 3.0;
            let right = of(&system, vec![x, x]);
            assert!(right.overall < 2.0 && right.by_row < 2.0, "{right:?}");
            // Wrong by a thousandth, along what the first row does not see.
            let wrong = of(&system, vec![x - 1e-3, x + 2e-3]);
            assert!(wrong.by_row > 1e11, "{wrong:?}");
            assert_eq!(wrong.row, 1);
        }
        let huge = system(1, vec![1e-200], vec![1e-300]);
        assert!(of(&huge, vec![1e-100]).overall < 2.0);
        let wide = system(1, vec![1e200], vec![1e300]);
        assert!(of(&wide, vec![1e100]).overall < 2.0);
    }

    #[test]
    fn what_is_too_small_for_all_its_digits_is_right_nevertheless() {
        let tiny = f64::TINY;
        let system = system(2, vec![3.0, 0.0, 0.0, 1.0], vec![20.0 * tiny, 0.0]);
        let rounded = of(&system, vec![7.0 * tiny, 0.0]);
        assert!(rounded.overall < 1.0 && rounded.by_row < 1.0, "{rounded:?}");
        let wrong = of(&system, vec![1e10 * tiny, 0.0]);
        assert!(wrong.overall > 16.0, "{wrong:?}");
        let nothing = LinearSystem { b: Matrix::from_vec(2, 1, vec![1e-290, 0.0]).unwrap(), ..system };
        assert!(of(&nothing, vec![0.0, 0.0]).overall > 16.0);
    }

    #[test]
    fn every_row_counts_for_every_right_hand_side() {
        // More rows than are taken at once.
        let (n, rhs) = (300, 3);
        assert!(n * n > NUMBERS_IN_CACHE);
        let a: Vec<f64> = (0..n * n).map(|at| if at % (n + 1) == 0 { 2.0 } else { 0.0 }).collect();
        let b: Vec<f64> = (0..n * rhs).map(|at| at as f64).collect();
        let system = system(n, a, b);
        let x: Vec<f64> = (0..n * rhs).map(|at| at as f64 / 2.0).collect();
        assert_eq!(of(&system, x.clone()), Residual { overall: 0.0, by_row: 0.0, row: 0 });
        for wrong in [0, n * rhs - 1, 218 * rhs + 1] {
            let mut x = x.clone();
            x[wrong] += 1.0;
            let found = of(&system, x);
            assert!(found.overall > 1e9 && found.row == wrong / rhs, "{wrong}: {found:?}");
        }
    }

    #[test]
    fn what_is_not_finite_is_infinitely_wrong() {
        let system = system(2, vec![1.0, 0.0, 0.0, 1.0], vec![1.0, 1.0]);
        for x in [[f64::NAN, 1.0], [1.0, f64::INFINITY]] {
            assert_eq!(of(&system, x.to_vec()).overall, f64::INFINITY);
        }
        assert_eq!(of(&system, vec![1.0, 1.0]).overall, 0.0);
    }
}
