//! Is x really what the iteration should have come to? Checked with A as it was given, or made anew, in 64-bit numbers.
//!
//! With M = I - D^-1 A an iteration's change is M times the one before it, and D^-1 (B - A x) is the change that the
//! next iteration would make. So after a last change of at most c no row of D^-1 (B - A x) is larger than |M| c, |M|
//! the largest sum of magnitudes in a row of M; and rounding adds no more than gamma(e + 4) (|A| |x| + |B|) to a row
//! of e entries (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1) for each of the two
//! iterations. A right solution never fails.

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
    /// The largest magnitude of B - A x, relative to the largest of |A| |x| + |B|.
    pub(super) residual: f64,
    /// How many times what can be explained the worst row is off; infinite if it is not finite.
    pub(super) excess: f64,
    /// That row, from 0.
    pub(super) row: usize,
}

impl Checked {
    /// Whether the solution is right.
    pub(super) fn holds(&self) -> bool {
        self.excess <= 1.0
    }
}

/// Checks x, n x rhs, after whose iteration the next one's changes are at most `change`.
pub(super) fn solution<T: Real>(system: &System<T>, x: &Matrix<T>, change: f64) -> Checked {
    let mut checked = Checked { residual: 0.0, excess: 0.0, row: 0 };
    let (mut most_off, mut scale, rhs) = (0.0f64, 0.0f64, x.cols());
    let (mut offs, mut sizes) = (vec![0.0; rhs], vec![0.0; rhs]);
    system.for_each_row(|i, entries, b| {
        let (mut diagonal, mut count) = (0.0, 0usize);
        offs.iter_mut().zip(b).for_each(|(off, b)| *off = b.to_f64());
        sizes.iter_mut().zip(b).for_each(|(size, b)| *size = b.to_f64().abs());
        for (col, value) in entries {
            count += 1;
            if col == i {
                diagonal = value.abs();
            }
            for ((off, size), x) in offs.iter_mut().zip(&mut sizes).zip(x.row_slice(col..col + 1)) {
                let product = value * x.to_f64();
                *off -= product;
                *size += product.abs();
            }
        }
        for (off, size) in offs.iter().zip(&sizes) {
            let explained = diagonal * change + 2.0 * rounding::<T>(count) * size;
            let excess = excess(*off, explained);
            if excess > checked.excess {
                (checked.excess, checked.row) = (excess, i);
            }
            most_off = most_off.max(if off.is_nan() { f64::INFINITY } else { off.abs() });
            scale = scale.max(*size);
        }
    });
    checked.residual = most_off / scale.max(f64::MIN_POSITIVE);
    checked
}

fn excess(off: f64, explained: f64) -> f64 {
    let ratio = off.abs() / explained.max(f64::MIN_POSITIVE);
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// The relative error of a row of so many entries: that of its numbers, and that of the check.
fn rounding<T: Element>(entries: usize) -> f64 {
    let gamma = |unit: f64| {
        let sum = (entries as f64 + 4.0) * unit;
        if sum < 0.5 { sum / (1.0 - sum) } else { f64::INFINITY }
    };
    gamma(T::UNIT_ROUNDOFF) + gamma(f64::UNIT_ROUNDOFF)
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
                |x: [f64; 3], change| solution(&system, &Matrix::from_vec(3, 1, x.to_vec()).unwrap(), change);
            assert!(of([1.0, 2.0, 3.0], 0.0).holds());
            let wrong = of([1.0, 2.0, 3.0 + 1e-9], 0.0);
            assert!(!wrong.holds() && wrong.row == 2, "{wrong:?}");
            assert!((wrong.residual - 4e-9 / 28.0).abs() < 1e-14, "{wrong:?}");
            // Explained by a next change of as much, and not of less.
            assert!(of([1.0, 2.0, 3.0 + 1e-9], 1.01e-9).holds());
            assert!(!of([1.0, 2.0, 3.0 + 1e-9], 0.99e-9).holds());
            assert_eq!(of([1.0, f64::NAN, 3.0], 1.0).excess, f64::INFINITY);
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
            assert!(!checked.holds() && checked.residual == 1.0, "{kind:?}: {checked:?}");
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
}
