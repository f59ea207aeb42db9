//! A block's share of a system and of its solution: an iteration on it, without messages.

use super::parts::Parts;
use super::rows::Rows;
use super::step::{Known, Step};
use crate::matrix::Real;
use chares::Bulk;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Rows of A and B, and x as the last iterations made it. What has many right-hand sides lies one after the other.
///
/// Memory is what sparse systems wait for, so each number is touched as seldom as can be: x of every iteration stays where
/// it was made, with the parts of others beside the own one, and the rows of a unit of work end while their sums are in a
/// cache.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Share<T> {
    rhs: usize,
    #[serde(deserialize_with = "compressed")]
    rows: Rows<T>,
    b: Bulk<T>,
    diagonal: Vec<T>,
    pub(super) parts: Parts,
    /// Where the own unknowns lie among the numbers that are held.
    own: Range<usize>,
    /// The last one is x before the iteration that is computed.
    iterates: VecDeque<Iterate<T>>,
    /// x that is being made.
    next: Bulk<T>,
    sums: Vec<T>,
    /// What the rows gave that have ended, for each right-hand side.
    steps: Vec<Step<T>>,
}

/// x as an iteration made it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Iterate<T> {
    pub(super) iteration: u32,
    pub(super) x: Bulk<T>,
    /// The largest magnitude of a residual B - A x before the iteration.
    pub(super) residual: f64,
}

/// Rows of a share that has been packed.
fn compressed<'de, T: Real, D: Deserializer<'de>>(deserializer: D) -> Result<Rows<T>, D::Error> {
    let mut rows = Rows::deserialize(deserializer)?;
    rows.compress();
    Ok(rows)
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
        let begun = Iterate { iteration: 0, x: Bulk::zeros(rhs * parts.len()), residual: 0.0 };
        (Self::resumed(block, rhs, rows, b, diagonal, parts, VecDeque::from([begun])), units)
    }

    /// The share of a block that has made these iterations of those that it still needs, nothing yet of the next.
    pub(super) fn resumed(
        block: u32,
        rhs: usize,
        mut rows: Rows<T>,
        b: Bulk<T>,
        diagonal: Vec<T>,
        parts: Parts,
        iterates: VecDeque<Iterate<T>>,
    ) -> Self {
        rows.compress();
        let own = parts.place_of(block);
        let (next, sums) = (Bulk::zeros(rhs * parts.len()), vec![T::zeroed(); rhs * rows.sums_each()]);
        Self { rhs, rows, b, diagonal, parts, own, iterates, next, sums, steps: vec![Step::default(); rhs] }
    }

    /// Takes another block's part of x in that the iteration computes with; nothing if it has not as many numbers as belong
    /// to it.
    pub(super) fn take_in(&mut self, source: usize, values: &[T]) -> bool {
        let (place, held) = (self.parts.sources()[source].place.clone(), self.parts.len());
        let Some(last) = self.iterates.back_mut() else { return false };
        if values.len() != self.rhs * place.len() {
            return false;
        }
        let by_rhs = last.x.as_mut_slice().chunks_exact_mut(held);
        by_rhs
            .zip(values.chunks_exact(place.len()))
            .for_each(|(x, part)| x[place.clone()].copy_from_slice(part));
        true
    }

    /// Computes a unit of work, all of whose sources have been taken in.
    pub(super) fn compute(&mut self, unit: usize) {
        let Some(last) = self.iterates.back() else { return };
        self.rows.multiply(unit, self.parts.len(), &last.x, &mut self.sums);
        if let Some(rows) = self.rows.ended_by(unit) {
            self.end_rows(&rows);
        }
    }

    /// Ends iteration number `iteration`, all of whose units have been computed, and forgets all but the last `kept`. Gives
    /// the largest change of an own unknown, for each right-hand side; infinite if one is not finite.
    pub(super) fn finish(&mut self, iteration: u32, kept: usize) -> Vec<f64> {
        if !self.rows.end_by_units() {
            let each = self.rows.sums_each().max(1);
            self.sums.chunks_exact_mut(each).for_each(|sums| self.rows.add_up(sums));
            self.end_rows(&(0..self.diagonal.len()));
        }
        let residual = self.steps.iter().map(Step::residual).fold(0.0, f64::max);
        let changes = self.steps.iter_mut().map(|step| std::mem::take(step).change()).collect();
        let oldest = if self.iterates.len() < kept { None } else { self.iterates.pop_front() };
        let unused = oldest.map_or_else(|| Bulk::zeros(self.next.len()), |oldest| oldest.x);
        let x = std::mem::replace(&mut self.next, unused);
        self.iterates.push_back(Iterate { iteration, x, residual });
        changes
    }

    /// Each unknown of these rows, whose sums are known, takes up its residual, divided by its number on the diagonal.
    fn end_rows(&mut self, rows: &Range<usize>) {
        let (held, count, each) = (self.parts.len(), self.diagonal.len(), self.rows.sums_each());
        let Some(last) = self.iterates.back() else { return };
        if rows.is_empty() {
            return;
        }
        let place = self.own.start + rows.start..self.own.start + rows.end;
        let x = last.x.chunks_exact(held).zip(self.next.as_mut_slice().chunks_exact_mut(held));
        let known = self.b.chunks_exact(count).zip(self.sums.chunks_exact(each));
        for (((old, new), (b, sums)), step) in x.zip(known).zip(&mut self.steps) {
            let known = Known { b: &b[rows.clone()], sums, diagonal: &self.diagonal[rows.clone()] };
            step.take(&known, &old[place.clone()], &mut new[place.clone()]);
        }
    }

    /// The largest magnitude of a residual B - A x before an iteration, if it is still known.
    pub(super) fn residual_before(&self, iteration: u32) -> Option<f64> {
        self.iterate(iteration).map(|iterate| iterate.residual)
    }

    /// The own unknowns as an iteration made them, one right-hand side after the other; none if that is forgotten.
    pub(super) fn own(&self, iteration: u32) -> Bulk<T> {
        self.gathered(iteration, self.own.len(), |own, to| to.copy_from_slice(own))
    }

    /// Of those the numbers `rows`.
    pub(super) fn pick(&self, iteration: u32, rows: &[u32]) -> Bulk<T> {
        self.gathered(iteration, rows.len(), |own, to| {
            to.iter_mut().zip(rows).for_each(|(to, &row)| *to = own[row as usize]);
        })
    }

    fn gathered(&self, iteration: u32, count: usize, gather: impl Fn(&[T], &mut [T])) -> Bulk<T> {
        let Some(iterate) = self.iterate(iteration).filter(|_| count > 0) else { return Bulk::default() };
        let mut gathered = Bulk::zeros(self.rhs * count);
        let by_rhs =
            gathered.as_mut_slice().chunks_exact_mut(count).zip(iterate.x.chunks_exact(self.parts.len()));
        by_rhs.for_each(|(to, x)| gather(&x[self.own.clone()], to));
        gathered
    }

    fn iterate(&self, iteration: u32) -> Option<&Iterate<T>> {
        self.iterates.iter().rev().find(|iterate| iterate.iteration == iteration)
    }

    /// The right-hand sides of these rows.
    pub(super) fn right_hand_sides(&self) -> &[T] {
        &self.b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jacobi::rows::Dense;

    /// x, the changes and the residual of two iterations of one block from x = 0.
    fn outcomes(a: [[f64; 2]; 2], b: [f64; 2]) -> [(Vec<f64>, Vec<f64>, f64); 2] {
        let mut rows = Dense::zeros(2, 0..2);
        a.iter().enumerate().for_each(|(at, row)| rows.set_row(at, row));
        let (mut share, units) = Share::new(0, &[0, 2], 1, Rows::Dense(rows), Bulk::from_slice(&b));
        [1, 2].map(|iteration| {
            (0..units.len()).for_each(|unit| share.compute(unit));
            let changes = share.finish(iteration, 2);
            (share.own(iteration).to_vec(), changes, share.residual_before(iteration).unwrap())
        })
    }

    #[test]
    fn changes_and_residuals_are_the_largest_of_all_rows() {
        let [first, second] = outcomes([[4.0, 1.0], [2.0, -8.0]], [4.0, 24.0]);
        assert_eq!(first, (vec![1.0, -3.0], vec![3.0], 24.0));
        // A x is (1, 26).
        assert_eq!(second, (vec![1.75, -2.75], vec![0.75], 3.0));
    }

    #[test]
    fn a_change_that_is_no_number_in_any_row_is_infinite() {
        for b in [[f64::NAN, 1.0], [1.0, f64::NAN], [f64::INFINITY, 1.0]] {
            assert_eq!(outcomes([[2.0, 0.0], [0.0, 2.0]], b)[0].1, [f64::INFINITY]);
        }
    }

    #[test]
    fn only_so_many_iterations_are_kept_and_a_part_of_another_length_is_refused() {
        let (mut share, _) =
            Share::new(1, &[0, 1, 2], 1, Rows::Dense(Dense::zeros(2, 1..2)), Bulk::from_slice(&[1.0]));
        assert!(share.take_in(0, &[5.0]) && !share.take_in(0, &[5.0, 6.0]));
        (1..=4).for_each(|iteration| drop(share.finish(iteration, 3)));
        let known: Vec<u32> =
            (0..=5).filter(|iteration| share.residual_before(*iteration).is_some()).collect();
        assert_eq!(known, [2, 3, 4]);
        assert!(share.own(1).is_empty() && share.pick(4, &[0]).len() == 1);
    }
}
