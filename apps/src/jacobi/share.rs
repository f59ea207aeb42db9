//! A block's share of a system and of its solution: an iteration on it, without messages.

use super::parts::Parts;
use super::rows::Rows;
use crate::matrix::Real;
use chares::Bulk;
use serde::{Deserialize, Serialize};

/// Rows of A and B, and the parts of x that they need. What has many right-hand sides lies one after the other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Share<T> {
    rhs: usize,
    rows: Rows<T>,
    b: Bulk<T>,
    diagonal: Vec<T>,
    pub(super) parts: Parts,
    x: Vec<T>,
    sums: Vec<T>,
    /// The own unknowns before the iteration.
    own: Bulk<T>,
}

/// What an iteration gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Outcome<T> {
    /// The own unknowns, one right-hand side after the other.
    pub(super) x: Bulk<T>,
    /// The largest change of one of them, for each right-hand side; infinite if one is not finite.
    pub(super) changes: Vec<f64>,
    /// The largest magnitude of a residual B - A x before the iteration.
    pub(super) residual: f64,
}

impl<T: Real> Share<T> {
    /// The share of block `block`, which has these rows of A and, for each right-hand side one after the other, those of
    /// B; and the sources that each unit of work needs. Block `i` has the rows `bounds[i]..bounds[i + 1]`. x is 0.
    pub(super) fn new(
        block: u32,
        bounds: &[u64],
        rhs: usize,
        mut rows: Rows<T>,
        b: Bulk<T>,
    ) -> (Self, Vec<Vec<u32>>) {
        let diagonal: Vec<T> = (0..rows.range().len()).map(|at| rows.diagonal(at)).collect();
        let parts = match rows.foreign_columns() {
            Some(foreign) => Parts::some(block, bounds, foreign),
            None => Parts::all(bounds),
        };
        let units = rows.localize(&parts);
        let (x, sums) = (vec![T::zeroed(); rhs * parts.len()], vec![T::zeroed(); rhs * rows.sums_each()]);
        let own = Bulk::zeros(rhs * diagonal.len());
        (Self { rhs, rows, b, diagonal, parts, x, sums, own }, units)
    }

    /// Takes a part of x in; nothing if it has not as many numbers as belong to it.
    pub(super) fn take_in(&mut self, source: usize, values: &[T]) -> bool {
        let place = self.parts.sources()[source].place.clone();
        if values.len() != self.rhs * place.len() {
            return false;
        }
        for (x, values) in self.x.chunks_exact_mut(self.parts.len()).zip(values.chunks_exact(place.len())) {
            x[place.clone()].copy_from_slice(values);
        }
        true
    }

    /// Computes a unit of work, all of whose sources have been taken in.
    pub(super) fn compute(&mut self, unit: usize) {
        self.rows.multiply(unit, self.parts.len(), &self.x, &mut self.sums);
    }

    /// Ends the iteration, all of whose units have been computed: each unknown takes up its residual, divided by its
    /// number on the diagonal.
    pub(super) fn finish(&mut self) -> Outcome<T> {
        let (rows, each) = (self.diagonal.len(), self.rows.sums_each());
        let mut x = Bulk::zeros(self.rhs * rows);
        let (mut changes, mut residual) = (vec![0.0; self.rhs], T::zeroed());
        if rows > 0 {
            let by_rhs = x.as_mut_slice().chunks_exact_mut(rows).zip(self.own.chunks_exact(rows));
            let known = self.b.chunks_exact(rows).zip(self.sums.chunks_exact_mut(each));
            for (((x, old), (b, sums)), largest) in by_rhs.zip(known).zip(&mut changes) {
                let (mut change, mut is_finite) = (T::zeroed(), true);
                self.rows.add_up(sums);
                let numbers = x.iter_mut().zip(old).zip(b.iter().zip(sums.iter().zip(&self.diagonal)));
                for ((x, &old), (&b, (&sum, &diagonal))) in numbers {
                    let off = b - sum;
                    *x = old + off / diagonal;
                    let moved = magnitude(*x - old);
                    is_finite &= moved.to_f64().is_finite();
                    change = larger(change, moved);
                    residual = larger(residual, magnitude(off));
                }
                *largest = if is_finite { change.to_f64() } else { f64::INFINITY };
            }
        }
        self.own = x.clone();
        Outcome { x, changes, residual: residual.to_f64() }
    }

    /// The right-hand sides of these rows.
    pub(super) fn right_hand_sides(&self) -> &[T] {
        &self.b
    }

    /// The own unknowns that are numbers `rows` of its own, one right-hand side after the other.
    pub(super) fn pick(&self, own: &[T], rows: &[u32]) -> Bulk<T> {
        let mut picked = Bulk::zeros(self.rhs * rows.len());
        let count = self.diagonal.len();
        if count == 0 || rows.is_empty() {
            return picked;
        }
        let by_rhs = picked.as_mut_slice().chunks_exact_mut(rows.len()).zip(own.chunks_exact(count));
        for (picked, own) in by_rhs {
            picked.iter_mut().zip(rows).for_each(|(to, &row)| *to = own[row as usize]);
        }
        picked
    }
}

fn magnitude<T: Real>(x: T) -> T {
    if x < T::zeroed() { T::zeroed() - x } else { x }
}

fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jacobi::rows::Dense;

    /// Two iterations of one block from x = 0.
    fn outcomes(a: [[f64; 2]; 2], b: [f64; 2]) -> [Outcome<f64>; 2] {
        let mut rows = Dense::zeros(2, 0..2);
        a.iter().enumerate().for_each(|(at, row)| rows.set_row(at, row));
        let (mut share, units) = Share::new(0, &[0, 2], 1, Rows::Dense(rows), Bulk::from_slice(&b));
        let mut x = Bulk::zeros(2);
        [(); 2].map(|()| {
            assert!(share.take_in(0, &x));
            (0..units.len()).for_each(|unit| share.compute(unit));
            let outcome = share.finish();
            x = outcome.x.clone();
            outcome
        })
    }

    #[test]
    fn changes_and_residuals_are_the_largest_of_all_rows() {
        let [first, second] = outcomes([[4.0, 1.0], [2.0, -8.0]], [4.0, 24.0]);
        assert_eq!((&first.x[..], &first.changes[..], first.residual), (&[1.0, -3.0][..], &[3.0][..], 24.0));
        // A x is (1, 26).
        assert_eq!(
            (&second.x[..], &second.changes[..], second.residual),
            (&[1.75, -2.75][..], &[0.75][..], 3.0)
        );
    }

    #[test]
    fn a_change_that_is_no_number_in_any_row_is_infinite() {
        for b in [[f64::NAN, 1.0], [1.0, f64::NAN], [f64::INFINITY, 1.0]] {
            assert_eq!(outcomes([[2.0, 0.0], [0.0, 2.0]], b)[0].changes, [f64::INFINITY]);
        }
    }
}
