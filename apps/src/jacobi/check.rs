//! Is x as near to a solution as was asked for? Checked with A and B as they were given, or made anew, in 64-bit numbers;
//! nothing that the iteration said of itself is used.
//!
//! D^-1 (B - A x), D the diagonal of A, is what the next iteration would change. It may be at most the tolerance times the
//! same of x = 0, which is D^-1 B, of each right-hand side by itself. With M = I - D^-1 A a change is M times the one
//! before it, so after a last change within the tolerance the next one is at most |M| times that, |M| the largest sum of
//! magnitudes in a row of M; and rounding adds no more than gamma(e + 4) (|A| |x| + |B|) to a row of e entries (Higham,
//! "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1) for each of the two iterations. What converged
//! never fails.

use super::generated::Generated;
use crate::matrix::{Csr, Element, Matrix, Real, generated};

/// A system A X = B.
pub(super) enum System<T> {
    /// Made by seed wherever it is needed.
    Generated { a: Generated, rhs: usize, seed_b: u64 },
    /// From files.
    Dense { a: Matrix<T>, b: Matrix<T> },
    /// From files.
    Sparse { a: Csr<T>, b: Matrix<T> },
}

impl<T: Real> System<T> {
    /// Unknowns and right-hand sides.
    pub(super) fn sides(&self) -> (usize, usize) {
        match self {
            Self::Generated { a, rhs, .. } => (a.n, *rhs),
            Self::Dense { b, .. } | Self::Sparse { b, .. } => b.shape(),
        }
    }

    /// All rows: number, entries of A and numbers of B.
    fn for_each_row(&self, mut take: impl FnMut(usize, &mut dyn Iterator<Item = (usize, f64)>, &[T])) {
        let wide = |(col, value): (u32, T)| (col as usize, value.to_f64());
        match self {
            Self::Generated { a, rhs, seed_b } => {
                let mut row = vec![T::zeroed(); if a.is_dense() { a.n } else { 0 }];
                for i in 0..a.n {
                    let b = generated::<T>(*seed_b, i..i + 1, 0..*rhs);
                    if a.is_dense() {
                        a.fill_row(i, &mut row);
                        take(i, &mut row.iter().map(|value| value.to_f64()).enumerate(), &b);
                    } else {
                        take(i, &mut a.sparse_rows::<T>(i..i + 1).row(0).map(wide), &b);
                    }
                }
            }
            Self::Dense { a, b } => {
                for i in 0..a.rows() {
                    let row = a.row_slice(i..i + 1);
                    take(i, &mut row.iter().map(|value| value.to_f64()).enumerate(), b.row_slice(i..i + 1));
                }
            }
            Self::Sparse { a, b } => {
                (0..a.rows()).for_each(|i| take(i, &mut a.row(i).map(wide), b.row_slice(i..i + 1)));
            }
        }
    }
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a check is worth nothing if nobody looks at it"]
pub(super) struct Checked {
    /// The largest |B - A x| of a row relative to its |A| |x| + |B|: by how much the numbers of the system would have to
    /// be others for x to be exact (Oettli and Prager, 1964). Infinite if x is not finite.
    pub(super) backward_error: f64,
    /// The largest change that another iteration would make, relative to the first of the same right-hand side.
    pub(super) next_change: f64,
    /// How many times what is allowed the worst row is off; infinite if it is not finite.
    pub(super) excess: f64,
    /// That row, from 0.
    pub(super) row: usize,
}

impl Checked {
    /// Whether the solution is as near as was asked for.
    pub(super) fn holds(&self) -> bool {
        self.excess <= 1.0
    }
}

/// What is known of a right-hand side: magnitudes, the largest of all rows, each divided by the diagonal.
#[derive(Clone, Copy, Default)]
struct Side {
    /// Of B.
    first: f64,
    /// Of B - A x.
    next: f64,
    /// The same without what rounding explains, and its row.
    unexplained: (f64, usize),
}

/// Checks x, n x rhs: whether another iteration would change it by no more than `tolerance` allows.
pub(super) fn solution<T: Real>(system: &System<T>, x: &Matrix<T>, tolerance: f64) -> Checked {
    let (mut backward_error, mut growth, rhs) = (0.0f64, 1.0f64, x.cols());
    let mut sides = vec![Side::default(); rhs];
    let (mut offs, mut sizes) = (vec![0.0; rhs], vec![0.0; rhs]);
    system.for_each_row(|i, entries, b| {
        let (mut diagonal, mut others, mut count) = (0.0, 0.0, 0usize);
        offs.iter_mut().zip(b).for_each(|(off, b)| *off = b.to_f64());
        sizes.iter_mut().zip(b).for_each(|(size, b)| *size = b.to_f64().abs());
        for (col, value) in entries {
            count += 1;
            let magnitude = if col == i { &mut diagonal } else { &mut others };
            *magnitude += value.abs();
            for ((off, size), x) in offs.iter_mut().zip(&mut sizes).zip(x.row_slice(col..col + 1)) {
                let product = value * x.to_f64();
                *off -= product;
                *size += product.abs();
            }
        }
        growth = growth.max(others / diagonal);
        for (((off, size), b), side) in offs.iter().zip(&sizes).zip(b).zip(&mut sides) {
            let left = if off.is_nan() { f64::INFINITY } else { off.abs() };
            backward_error = backward_error.max(left / size.max(f64::MIN_POSITIVE));
            // Infinity less what is no number would be no number, and that no excess.
            let explained = if left.is_finite() { rounding::<T>(count, *size, diagonal) } else { 0.0 };
            let unexplained = (left - explained).max(0.0) / diagonal;
            side.first = side.first.max(b.to_f64().abs() / diagonal);
            side.next = side.next.max(left / diagonal);
            if unexplained > side.unexplained.0 {
                side.unexplained = (unexplained, i);
            }
        }
    });
    let mut checked = Checked { backward_error, next_change: 0.0, excess: 0.0, row: 0 };
    // What the iteration compared was rounded to its own numbers.
    let allowed = tolerance * growth * (1.0 + 8.0 * T::UNIT_ROUNDOFF);
    for Side { first, next, unexplained: (unexplained, row) } in sides {
        let excess = relative(unexplained, allowed * first);
        if excess > checked.excess {
            (checked.excess, checked.row) = (excess, row);
        }
        checked.next_change = checked.next_change.max(relative(next, first));
    }
    checked
}

/// One magnitude relative to another; infinite if either is no number.
fn relative(magnitude: f64, to: f64) -> f64 {
    let ratio = magnitude / to.max(f64::MIN_POSITIVE);
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// How far two iterations may be off in a row of so many entries by rounding: their numbers, the check's, and those that
/// are too small for all their digits. `size` is its |A| |x| + |B|.
fn rounding<T: Element>(entries: usize, size: f64, diagonal: f64) -> f64 {
    let count = entries as f64 + 4.0;
    let gamma = |unit: f64| {
        let sum = count * unit;
        if sum < 0.5 { sum / (1.0 - sum) } else { f64::INFINITY }
    };
    2.0 * (gamma(T::UNIT_ROUNDOFF) + gamma(f64::UNIT_ROUNDOFF)) * size
        + 2.0 * count * T::TINY * (1.0 + diagonal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers on the diagonal are 4, those beside it 1; x is 1, 2, 3.
    fn systems() -> [System<f64>; 2] {
        let (mut dense, mut entries) = (vec![0.0; 9], Vec::new());
        for (i, j) in
            (0..3).flat_map(|i| (0..3).map(move |j| (i, j))).filter(|(i, j): &(u32, u32)| i.abs_diff(*j) < 2)
        {
            let value = if i == j { 4.0 } else { 1.0 };
            dense[(3 * i + j) as usize] = value;
            entries.push((i, j, value));
        }
        let b = Matrix::from_vec(3, 1, vec![6.0, 12.0, 14.0]).unwrap();
        let a = Matrix::from_vec(3, 3, dense).unwrap();
        [System::Dense { a, b: b.clone() }, System::Sparse { a: Csr::from_triplets(3, 3, &entries), b }]
    }

    #[test]
    fn a_right_solution_holds_and_a_wrong_one_is_named_by_its_row() {
        for system in systems() {
            let of =
                |x: [f64; 3], part| solution(&system, &Matrix::from_vec(3, 1, x.to_vec()).unwrap(), part);
            assert!(of([1.0, 2.0, 3.0], 0.0).holds());
            let wrong = of([1.0, 2.0, 3.0 + 1e-9], 0.0);
            assert!(!wrong.holds() && wrong.row == 2, "{wrong:?}");
            assert!((wrong.backward_error - 4e-9 / 28.0).abs() < 1e-14, "{wrong:?}");
            // The first change is 3.5.
            assert!((wrong.next_change - 1e-9 / 3.5).abs() < 1e-14, "{wrong:?}");
            assert!(of([1.0, 2.0, 3.0 + 1e-9], 1.01e-9 / 3.5).holds());
            assert!(!of([1.0, 2.0, 3.0 + 1e-9], 0.99e-9 / 3.5).holds());
            let not_finite = of([1.0, f64::NAN, 3.0], 1.0);
            assert!(!not_finite.holds() && not_finite.backward_error == f64::INFINITY, "{not_finite:?}");
        }
    }

    #[test]
    fn all_rows_of_generated_systems_are_looked_at() {
        use crate::jacobi::generated::Kind;
        for kind in [Kind::Dense, Kind::Laplace2d, Kind::Laplace3d, Kind::Random] {
            let (a, rhs) = (Generated { kind, n: 27, dominance: 1.1, seed: 5 }, 2);
            let system = System::<f64>::Generated { a, rhs, seed_b: 6 };
            let mut seen = Vec::new();
            system.for_each_row(|row, entries, b| seen.push((row, entries.count() > 1, b.len())));
            assert_eq!(seen, (0..27).map(|row| (row, true, rhs)).collect::<Vec<_>>(), "{kind:?}");
            // With x = 0 all of B is left.
            let checked = solution(&system, &Matrix::zeros(27, rhs).unwrap(), 0.0);
            assert!(
                !checked.holds() && (checked.backward_error, checked.next_change) == (1.0, 1.0),
                "{kind:?}: {checked:?}"
            );
        }
    }

    #[test]
    fn what_rounding_explains_holds_and_no_more() {
        for (system, entries) in systems().into_iter().zip([3.0, 2.0]) {
            // The magnitudes of the last row add up to 28; its numbers and those of the check are rounded alike.
            let explained = 2.0 * 2.0 * (entries + 4.0) * f64::UNIT_ROUNDOFF * 28.0;
            for (part, holds) in [(0.9, true), (1.1, false)] {
                let x = vec![1.0, 2.0, 3.0 + part * explained / 4.0];
                assert_eq!(solution(&system, &Matrix::from_vec(3, 1, x).unwrap(), 0.0).holds(), holds);
            }
        }
    }

    #[test]
    fn each_right_hand_side_is_looked_at_in_its_own_units() {
        let part = 1e-10;
        for scale in [1.0, 1e-11, 1e-200] {
            let a = || Matrix::from_vec(1, 1, vec![2.0]).unwrap();
            let b = Matrix::from_vec(1, 2, vec![4.0, 4.0 * scale]).unwrap();
            let system = System::Dense { a: a(), b };
            let of = |off: f64| {
                solution(&system, &Matrix::from_vec(1, 2, vec![2.0, scale * (2.0 + off)]).unwrap(), part)
            };
            assert!(of(0.0).holds() && of(1.9 * part).holds() && !of(2.1 * part).holds(), "{scale}");
            assert!(!of(50.0).holds() && of(50.0).next_change > 20.0);
        }
        // Nothing is left of a right-hand side of 0 but 0.
        let zero =
            System::Dense { a: Matrix::from_vec(1, 1, vec![2.0]).unwrap(), b: Matrix::zeros(1, 1).unwrap() };
        let of = |x: f64| solution(&zero, &Matrix::from_vec(1, 1, vec![x]).unwrap(), part);
        assert!(of(0.0).holds() && !of(1e-20).holds());
    }
}
