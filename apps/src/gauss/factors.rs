//! What the factors of a matrix tell about it: how far its numbers grew, and its determinant.

use chares::Reduce;
use serde::{Deserialize, Serialize};

/// Of a matrix A whose rows were scaled, or of what a PE has of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Factors {
    /// The largest magnitude in A once its rows are scaled.
    pub largest_of_a: f64,
    /// The largest magnitude in U.
    pub largest_of_u: f64,
    /// The logarithm of the magnitude of the determinant to base 10.
    pub log10_determinant: f64,
    /// The determinant is below 0.
    pub is_negative: bool,
}

impl Reduce for Factors {
    fn combine(&mut self, other: Self) {
        self.largest_of_a = self.largest_of_a.max(other.largest_of_a);
        self.largest_of_u = self.largest_of_u.max(other.largest_of_u);
        self.log10_determinant += other.log10_determinant;
        self.is_negative ^= other.is_negative;
    }
}

impl Factors {
    /// The growth factor: what is lost to rounding grows with it. Partial pivoting seldom lets it be large; at worst it is
    /// 2^(n-1) (J. H. Wilkinson, "Error analysis of direct methods of matrix inversion", J. ACM 8, 1961).
    #[must_use]
    pub fn growth(&self) -> f64 {
        self.largest_of_u / self.largest_of_a
    }

    /// -1 or 1.
    #[must_use]
    pub fn sign(&self) -> i8 {
        if self.is_negative { -1 } else { 1 }
    }

    /// Takes a diagonal element of U into account.
    pub(super) fn multiply(&mut self, pivot: f64) {
        self.log10_determinant += pivot.abs().log10();
        self.is_negative ^= pivot < 0.0;
    }

    /// Two rows were exchanged.
    pub(super) fn exchange(&mut self) {
        self.is_negative ^= true;
    }

    /// All rows together were divided by 2 to that power.
    pub(super) fn scale_back(&mut self, exponent: i64) {
        self.log10_determinant += exponent as f64 * 2f64.log10();
    }

    /// Numbers of U are up to that large.
    pub(super) fn reach(&mut self, magnitude: f64) {
        self.largest_of_u = self.largest_of_u.max(magnitude);
    }
}

/// Whether a permutation, which is used up, is made of an odd number of exchanges.
pub(super) fn is_odd(mut permutation: Vec<usize>) -> bool {
    let mut is_odd = false;
    for at in 0..permutation.len() {
        while permutation[at] != at {
            let to = permutation[at];
            permutation.swap(at, to);
            is_odd ^= true;
        }
    }
    is_odd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_odd_or_even() {
        for (permutation, expected) in [
            (vec![], false),
            (vec![0, 1], false),
            (vec![1, 0], true),
            (vec![1, 2, 0], false),
            (vec![3, 0, 1, 2], true),
        ] {
            assert_eq!(is_odd(permutation.clone()), expected, "{permutation:?}");
        }
    }

    #[test]
    fn signs_multiply_and_magnitudes_are_the_largest() {
        for (one, other) in [(false, false), (true, false), (false, true), (true, true)] {
            let part = |is_negative, size| Factors {
                largest_of_a: size,
                largest_of_u: 3.0 * size,
                log10_determinant: size,
                is_negative,
            };
            let mut both = part(one, 2.0);
            both.combine(part(other, 5.0));
            assert_eq!(both, Factors { log10_determinant: 7.0, ..part(one != other, 5.0) });
            assert_eq!((both.sign(), both.growth()), (if one == other { 1 } else { -1 }, 3.0));
        }
    }
}
