//! The end of an iteration for some rows whose product with x is known: the new unknowns, and how far they moved.
//!
//! The largest of many numbers is the same in any order, so rows are taken side by side, in vectors as wide as the machine
//! has; each unknown is computed as it would be alone.

use crate::matrix::Real;
use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};
use std::array::from_fn;

/// Rows that are taken at once: a vector of f64 in AVX-512, two in AVX2.
const LANES: usize = 8;

/// How far unknowns moved for one right-hand side, over all rows so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Step<T> {
    change: T,
    residual: T,
    /// 0 as long as all changes are finite.
    poison: T,
}

/// What is known of some rows: their right-hand side, A x, and the numbers on the diagonal of A.
pub(super) struct Known<'a, T> {
    pub(super) b: &'a [T],
    pub(super) sums: &'a [T],
    pub(super) diagonal: &'a [T],
}

impl<T: Real> Default for Step<T> {
    fn default() -> Self {
        Self { change: T::zeroed(), residual: T::zeroed(), poison: T::zeroed() }
    }
}

impl<T: Real> Step<T> {
    /// The largest change of an unknown; infinite if one is not finite.
    pub(super) fn change(&self) -> f64 {
        if self.poison == T::zeroed() { self.change.to_f64() } else { f64::INFINITY }
    }

    /// The largest magnitude of a residual B - A x.
    pub(super) fn residual(&self) -> f64 {
        self.residual.to_f64()
    }

    /// Makes `new` of `old`, for the rows that these lie in; there may be more sums.
    ///
    /// # Panics
    /// If another slice has not as many numbers as `old`.
    pub(super) fn take(&mut self, known: &Known<'_, T>, old: &[T], new: &mut [T]) {
        let sums = &known.sums[..old.len()];
        assert!([known.b.len(), known.diagonal.len(), new.len()].iter().all(|len| *len == old.len()));
        Arch::new().dispatch(Rows { step: self, known: Known { sums, ..*known }, old, new });
    }

    #[inline(always)]
    fn take_one(&mut self, (b, sum, diagonal): (T, T, T), old: T) -> T {
        let off = b - sum;
        let new = old + off / diagonal;
        let moved = magnitude(new - old);
        self.change = larger(self.change, moved);
        self.residual = larger(self.residual, magnitude(off));
        // Only a finite number times 0 is 0.
        self.poison += moved * T::zeroed();
        new
    }

    #[inline(always)]
    fn join(&mut self, other: Self) {
        self.change = larger(self.change, other.change);
        self.residual = larger(self.residual, other.residual);
        self.poison += other.poison;
    }
}

struct Rows<'a, T> {
    step: &'a mut Step<T>,
    known: Known<'a, T>,
    old: &'a [T],
    new: &'a mut [T],
}

impl<T: Real> WithSimd for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { step, known, old, new } = self;
        let (b, b_rest) = known.b.as_chunks::<LANES>();
        let (sums, sums_rest) = known.sums.as_chunks::<LANES>();
        let (diagonal, diagonal_rest) = known.diagonal.as_chunks::<LANES>();
        let (old, old_rest) = old.as_chunks::<LANES>();
        let (new, new_rest) = new.as_chunks_mut::<LANES>();
        let (mut change, mut residual, mut poison) =
            ([T::zeroed(); LANES], [T::zeroed(); LANES], [T::zeroed(); LANES]);
        // One operation on all lanes after the other: of one lane after the other the compiler makes no vectors.
        for ((b, sums), ((diagonal, old), new)) in b.iter().zip(sums).zip(diagonal.iter().zip(old).zip(new)) {
            let off: [T; LANES] = from_fn(|lane| b[lane] - sums[lane]);
            let by: [T; LANES] = from_fn(|lane| off[lane] / diagonal[lane]);
            *new = from_fn(|lane| old[lane] + by[lane]);
            let moved: [T; LANES] = from_fn(|lane| magnitude(new[lane] - old[lane]));
            change = from_fn(|lane| larger(change[lane], moved[lane]));
            residual = from_fn(|lane| larger(residual[lane], magnitude(off[lane])));
            poison = from_fn(|lane| poison[lane] + moved[lane] * T::zeroed());
        }
        for lane in 0..LANES {
            step.join(Step { change: change[lane], residual: residual[lane], poison: poison[lane] });
        }
        let rest = b_rest.iter().zip(sums_rest).zip(diagonal_rest.iter().zip(old_rest).zip(new_rest));
        for ((b, sum), ((diagonal, old), new)) in rest {
            *new = step.take_one((*b, *sum, *diagonal), *old);
        }
    }
}

#[inline(always)]
fn magnitude<T: Real>(x: T) -> T {
    larger(x, T::zeroed() - x)
}

#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_side_by_side_give_what_each_gives_alone(
            rows in prop::collection::vec((-9.0f64..9.0, -9.0f64..9.0, 0.5f64..9.0, -9.0f64..9.0), 0..40),
            wrong in prop::option::of((0usize..40, prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]))),
        ) {
            let mut rows = rows;
            let is_wrong = wrong.is_some_and(|(at, number)| rows.get_mut(at).is_some_and(|row| { row.0 = number; true }));
            let column = |of: fn(&(f64, f64, f64, f64)) -> f64| rows.iter().map(of).collect::<Vec<_>>();
            let (b, sums, diagonal, old) = (column(|row| row.0), column(|row| row.1), column(|row| row.2), column(|row| row.3));
            let (mut step, mut new) = (Step::default(), vec![0.0; rows.len()]);
            // In two parts, as units of work come.
            let half = rows.len() / 3;
            for part in [0..half, half..rows.len()] {
                let known =
                    Known { b: &b[part.clone()], sums: &sums[part.clone()], diagonal: &diagonal[part.clone()] };
                step.take(&known, &old[part.clone()], &mut new[part]);
            }
            let expected: Vec<f64> = rows.iter().map(|(b, sum, diagonal, old)| old + (b - sum) / diagonal).collect();
            let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&new), bits(&expected));
            if is_wrong {
                prop_assert_eq!(step.change(), f64::INFINITY);
            } else {
                let moves = new.iter().zip(&old).map(|(new, old)| (new - old).abs());
                prop_assert_eq!(step.change(), moves.fold(0.0, f64::max));
                let off = rows.iter().map(|(b, sum, ..)| (b - sum).abs());
                prop_assert_eq!(step.residual(), off.fold(0.0, f64::max));
            }
        }
    }
}
