//! What can be said of a matrix before the first iteration: whether the diagonal dominates its rows.

use super::rows::Rows;
use crate::matrix::Real;
use chares::Reduce;
use serde::{Deserialize, Serialize};

/// Sums of magnitudes may be off by their roundings.
const ROUNDING: f64 = 1e-6;

/// What some rows of A are like. Combined, the result is the same in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dominance {
    /// The first row whose number on the diagonal is 0.
    pub zero: Option<u64>,
    /// The first row with a number that is NaN or infinite.
    pub not_finite: Option<u64>,
    /// Rows whose diagonal is less than the sum of the other magnitudes.
    pub weak: u64,
    /// The row whose other magnitudes are the most for its diagonal, and how many times the diagonal: Jacobi's method
    /// multiplies no error by more than that in an iteration.
    pub worst: Option<(f64, u64)>,
    /// The largest sum of magnitudes of a row.
    pub norm: f64,
}

impl Dominance {
    /// Of a block's rows.
    pub(super) fn of<T: Real>(rows: &Rows<T>) -> Self {
        let mut all = Self::default();
        for (at, row) in rows.range().enumerate() {
            all.combine(Self::of_row(row as u64, rows.diagonal(at).to_f64().abs(), rows.magnitudes(at)));
        }
        all
    }

    fn of_row(row: u64, diagonal: f64, magnitudes: f64) -> Self {
        let others = (magnitudes - diagonal).max(0.0);
        if !magnitudes.is_finite() {
            return Self { not_finite: Some(row), ..Self::default() };
        }
        if diagonal == 0.0 {
            return Self { zero: Some(row), norm: magnitudes, ..Self::default() };
        }
        let ratio = others / diagonal;
        Self {
            weak: u64::from(ratio > 1.0 + ROUNDING),
            worst: Some((ratio, row)),
            norm: magnitudes,
            ..Self::default()
        }
    }

    /// A sentence for who solves a system whose diagonal does not dominate; none if it does.
    pub(super) fn warning(&self, n: usize) -> Option<String> {
        let (ratio, row) = self.worst.filter(|_| self.weak > 0)?;
        Some(format!(
            "{} of {n} rows are not dominated by their diagonal (the worst is row {row}, counted from 0: the others add \
             up to {ratio:.3} times the diagonal), so Jacobi's method need not converge",
            self.weak
        ))
    }
}

impl Reduce for Dominance {
    fn combine(&mut self, other: Self) {
        let first = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.zero = first(self.zero, other.zero);
        self.not_finite = first(self.not_finite, other.not_finite);
        self.weak += other.weak;
        let is_worse =
            |(ratio, row): (f64, u64), (than, at): (f64, u64)| ratio > than || (ratio == than && row < at);
        if let Some(worst) = other.worst
            && self.worst.is_none_or(|known| is_worse(worst, known))
        {
            self.worst = Some(worst);
        }
        self.norm = self.norm.max(other.norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_row_is_found_whatever_the_order() {
        // (diagonal, sum of all magnitudes)
        let rows = [(4.0, 8.0), (1.0, 4.0), (2.0, 3.0), (3.0, 12.0), (0.0, 7.0), (0.0, 1.0)];
        let of = |order: &[u64]| {
            let mut all = Dominance::default();
            order.iter().for_each(|&row| {
                let (diagonal, magnitudes) = rows[row as usize];
                all.combine(Dominance::of_row(row, diagonal, magnitudes));
            });
            all
        };
        let all = of(&[0, 1, 2, 3, 4, 5]);
        assert_eq!(all, of(&[5, 3, 4, 1, 0, 2]));
        assert_eq!((all.zero, all.weak, all.worst, all.norm), (Some(4), 2, Some((3.0, 1)), 12.0));
        let sentence = all.warning(6).unwrap();
        assert!(sentence.starts_with("2 of 6 rows are not dominated by their diagonal (the worst is row 1"));
        assert_eq!(of(&[0, 2]).warning(6), None);
        let mut not_finite = all;
        [5, 3, 4].into_iter().for_each(|row| not_finite.combine(Dominance::of_row(row, 1.0, f64::NAN)));
        assert_eq!(not_finite, Dominance { not_finite: Some(3), ..all });
    }
}
