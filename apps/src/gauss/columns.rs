//! The elimination of the 1995 report: rows dealt out by speed, in parts that can move; for each column the parts agree on a
//! pivot row, which is broadcast, and each takes it from its own rows. Rows are never exchanged; each keeps in mind for which
//! column it was the pivot.
//!
//! The report gives each PE neighbouring rows. Here they are dealt out in turn, a fast PE more often than a slow one, so
//! that rows that are used up early, as the first ones of many matrices from practice are, are taken from all alike.
//! A candidate travels with its numbers, so that one reduction and one broadcast do for a column.

use crate::kernels::lu;
use crate::matrix::{Piece, Real};
use crate::system::{Generated, exponent, times_power_of_two};
use chares::{Bulk, Callback, Chare, Ctx, Entry, Reduce};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::blocked::{EliminationResult, Singular};
use super::factors::{self, Factors};

/// What all have to wait for goes before what one has to do.
const URGENT: i32 = -1;

/// How the rows are dealt out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowPlan {
    /// Unknowns.
    pub n: usize,
    /// Right-hand sides.
    pub rhs: usize,
    /// The part that holds each row.
    pub owners: Arc<Vec<u32>>,
    /// The numbers, if they are made by seed; else the driver sends them.
    pub generated: Option<Generated>,
}

impl RowPlan {
    /// The rows of a part, in order.
    pub fn rows_of(&self, part: u32) -> impl Iterator<Item = usize> {
        self.owners.iter().enumerate().filter(move |(_, owner)| **owner == part).map(|(row, _)| row)
    }
}

/// The rows of one part.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Rows<T> {
    plan: RowPlan,
    rows: Vec<usize>,
    /// Row by row, those of A and behind them those of B.
    values: Bulk<T>,
    /// The row here that was the pivot of each column, and whether each row has been one.
    pivots: BTreeMap<usize, usize>,
    is_used: Vec<bool>,
    /// The row that was the pivot of each column so far, of whichever part.
    order: Vec<usize>,
    factors: Factors,
    /// What the pivot of each column must be larger than.
    least: Vec<T>,
    /// The next column to eliminate; on the way back, the one behind the next unknown.
    column: usize,
    is_eliminated: bool,
    /// Unknowns that have come before those behind them.
    early: BTreeMap<usize, Vec<T>>,
    /// The unknowns from the last on, in part 0.
    solved: Vec<T>,
    done: Option<Callback<EliminationResult>>,
}

/// The rows of a part, each of A and then of B, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadRows<T>(pub Bulk<T>);

/// Begin; `done` is told the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GoRows {
    /// Who waits for the end.
    pub done: Callback<EliminationResult>,
}

/// The largest magnitude in each column of A, once rows are scaled; or a row of zeros.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ColumnMagnitudes {
    largest: Vec<f64>,
    zeros: Option<usize>,
}

impl Reduce for ColumnMagnitudes {
    fn combine(&mut self, other: Self) {
        self.largest.iter_mut().zip(other.largest).for_each(|(one, other)| *one = one.max(other));
        self.zeros = self.zeros.into_iter().chain(other.zeros).min();
    }
}

/// The row that a part has to offer for a column, from that column on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Candidate<T> {
    /// Of its first number.
    magnitude: f64,
    row: usize,
    values: Bulk<T>,
}

impl<T: Real> Reduce for Candidate<T> {
    /// Of equal ones the first row, so that machines make no difference.
    fn combine(&mut self, other: Self) {
        let is_better = other.magnitude > self.magnitude
            || other.magnitude.total_cmp(&self.magnitude).is_eq() && other.row < self.row;
        if is_better {
            *self = other;
        }
    }
}

/// An unknown for all right-hand sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Unknown<T> {
    column: usize,
    x: Vec<T>,
}

/// Send the solution.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct CollectRows<T: Real>(pub Callback<Piece<T>>);

chares::entries!(impl<T: Real> Rows<T> as "GaussRows":
    LoadRows<T>, GoRows, ColumnMagnitudes, Candidate<T>, Unknown<T>, CollectRows<T>;
    reduces ColumnMagnitudes, Candidate<T>, EliminationResult);

impl<T: Real> Chare for Rows<T> {
    type Index = u32;
    type Init = RowPlan;
    fn new(plan: RowPlan, ctx: &mut Ctx<'_, Self>) -> Self {
        Self::made(plan, ctx.index())
    }
}

impl<T: Real> Entry<LoadRows<T>> for Rows<T> {
    fn receive(&mut self, LoadRows(values): LoadRows<T>, _: &mut Ctx<'_, Self>) {
        self.values = values;
    }
}

impl<T: Real> Entry<GoRows> for Rows<T> {
    fn receive(&mut self, go: GoRows, ctx: &mut Ctx<'_, Self>) {
        self.done = Some(go.done);
        let magnitudes = self.scale();
        let all = Callback::broadcast(&ctx.array());
        ctx.contribute(magnitudes, all);
    }
}

impl<T: Real> Entry<ColumnMagnitudes> for Rows<T> {
    fn receive(&mut self, magnitudes: ColumnMagnitudes, ctx: &mut Ctx<'_, Self>) {
        if let Some(row) = magnitudes.zeros {
            return self.give_up(Singular::Row(row), ctx);
        }
        let unit = self.plan.n as f64 * T::UNIT_ROUNDOFF;
        self.least = magnitudes.largest.into_iter().map(|most| T::from_f64(most * unit)).collect();
        self.offer(ctx);
    }
}

impl<T: Real> Entry<Candidate<T>> for Rows<T> {
    fn receive(&mut self, pivot: Candidate<T>, ctx: &mut Ctx<'_, Self>) {
        let column = self.column;
        let is_large = pivot.magnitude > self.least[column].to_f64();
        if !is_large {
            return self.give_up(Singular::Column(column), ctx);
        }
        self.eliminate(&pivot);
        if ctx.index() == 0 {
            ctx.progress(1);
        }
        if self.column < self.plan.n {
            self.offer(ctx);
        } else {
            self.solve(ctx);
        }
    }
}

impl<T: Real> Entry<Unknown<T>> for Rows<T> {
    fn receive(&mut self, unknown: Unknown<T>, ctx: &mut Ctx<'_, Self>) {
        self.early.insert(unknown.column, unknown.x);
        self.take_unknowns(ctx);
    }
}

impl<T: Real> Entry<CollectRows<T>> for Rows<T> {
    fn receive(&mut self, CollectRows(to): CollectRows<T>, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            let (n, rhs) = (self.plan.n, self.plan.rhs);
            let values: Vec<T> = self.solved.chunks(rhs).rev().flatten().copied().collect();
            to.send(ctx, Piece { rows: 0..n, cols: 0..rhs, values: values.into() });
        }
    }
}

impl<T: Real> Rows<T> {
    fn offer(&mut self, ctx: &mut Ctx<'_, Self>) {
        let all = Callback::broadcast(&ctx.array());
        let candidate = self.candidate();
        ctx.contribute(candidate, all);
    }

    /// All find the same; one says it.
    fn give_up(&mut self, singular: Singular, ctx: &mut Ctx<'_, Self>) {
        if let Some(done) = self.done.filter(|_| ctx.index() == 0) {
            done.send(ctx, EliminationResult::singular(singular));
        }
    }

    /// All rows have been pivots: the unknowns, from the last on. Each is computed where its row is.
    fn solve(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.is_eliminated = true;
        if let Some(x) = self.unknown(self.plan.n - 1) {
            let column = self.plan.n - 1;
            ctx.array().broadcast_with(ctx, URGENT, Unknown { column, x });
        }
        self.take_unknowns(ctx);
    }

    fn take_unknowns(&mut self, ctx: &mut Ctx<'_, Self>) {
        // Not before the last column is eliminated here: `column` then counts down.
        while self.is_eliminated && self.column > 0 {
            let column = self.column - 1;
            let Some(x) = self.early.remove(&column) else { return };
            self.take(column, &x);
            if ctx.index() == 0 {
                self.solved.extend(x);
            }
            self.column = column;
            match column.checked_sub(1).and_then(|next| Some((next, self.unknown(next)?))) {
                Some((column, x)) => {
                    ctx.array().broadcast_with(ctx, URGENT, Unknown { column, x });
                }
                None if column == 0 => {
                    if let Some(done) = self.done.take() {
                        let pieces = usize::from(ctx.index() == 0);
                        let mut factors = self.factors;
                        if ctx.index() == 0 && factors::is_odd(std::mem::take(&mut self.order)) {
                            factors.exchange();
                        }
                        ctx.contribute(EliminationResult { pieces, singular: None, factors }, done);
                    }
                }
                None => {}
            }
        }
    }
}

impl<T: Real> Rows<T> {
    fn made(plan: RowPlan, part: u32) -> Self {
        let rows: Vec<usize> = plan.rows_of(part).collect();
        let length = plan.n + plan.rhs;
        let mut values = Bulk::<T>::default();
        if let Some(generated) = &plan.generated {
            values = Bulk::zeros(rows.len() * length);
            for (&row, to) in rows.iter().zip(values.as_mut_slice().chunks_exact_mut(length)) {
                let (a, b) = to.split_at_mut(plan.n);
                generated.fill_a(row..row + 1, 0..plan.n, a);
                b.copy_from_slice(&generated.block_b::<T>(row..row + 1, 0..plan.rhs));
            }
        }
        let is_used = vec![false; rows.len()];
        let (pivots, early) = (BTreeMap::new(), BTreeMap::new());
        let (least, solved) = (Vec::new(), Vec::new());
        let (order, factors) = (Vec::new(), Factors::default());
        let (column, is_eliminated, done) = (0, false, None);
        Self {
            plan,
            rows,
            values,
            pivots,
            is_used,
            order,
            factors,
            least,
            column,
            is_eliminated,
            early,
            solved,
            done,
        }
    }

    fn length(&self) -> usize {
        self.plan.n + self.plan.rhs
    }

    /// Divides each row by the power of two that brings its largest magnitude below 1, so that none is chosen as a pivot
    /// only because it is written in a small unit.
    fn scale(&mut self) -> ColumnMagnitudes {
        let (n, length) = (self.plan.n, self.length());
        let (mut largest, mut zeros) = (vec![T::zeroed(); n], None);
        for (row, &number) in self.values.as_mut_slice().chunks_exact_mut(length).zip(&self.rows) {
            let most = lu::largest_magnitude(&row[..n]).to_f64();
            if most == 0.0 {
                zeros = zeros.or(Some(number));
            }
            let e = exponent(most);
            self.factors.scale_back(i64::from(e));
            if e != 0 {
                row.iter_mut().for_each(|x| *x = T::from_f64(times_power_of_two(x.to_f64(), -e)));
            }
            lu::keep_larger(&mut largest, &row[..n]);
        }
        self.factors.largest_of_a = lu::largest_magnitude(&largest).to_f64();
        ColumnMagnitudes { largest: largest.into_iter().map(T::to_f64).collect(), zeros }
    }

    /// The best row of those here that have not been pivots.
    fn candidate(&self) -> Candidate<T> {
        let (column, length) = (self.column, self.length());
        let mut best: Option<(T, usize)> = None;
        for at in (0..self.rows.len()).filter(|at| !self.is_used[*at]) {
            let magnitude = self.values[at * length + column].magnitude();
            if best.is_none_or(|(most, _)| magnitude > most) {
                best = Some((magnitude, at));
            }
        }
        let Some((magnitude, at)) = best else {
            return Candidate { magnitude: -1.0, row: usize::MAX, values: Bulk::default() };
        };
        let values = Bulk::from_slice(&self.values[at * length + column..(at + 1) * length]);
        Candidate { magnitude: magnitude.to_f64(), row: self.rows[at], values }
    }

    /// Takes multiples of the pivot row from all rows here that have not been pivots.
    fn eliminate(&mut self, pivot: &Candidate<T>) {
        let (column, length) = (self.column, self.length());
        if let Ok(at) = self.rows.binary_search(&pivot.row) {
            self.is_used[at] = true;
            self.pivots.insert(column, at);
            self.factors.reach(lu::largest_magnitude(&pivot.values[..self.plan.n - column]).to_f64());
            self.factors.multiply(pivot.values[0].to_f64());
        }
        self.order.push(pivot.row);
        let rows = self.values.as_mut_slice().chunks_exact_mut(length);
        for (row, _) in rows.zip(&self.is_used).filter(|(_, is_used)| !**is_used) {
            let factor = row[column] / pivot.values[0];
            lu::subtract_multiple(&mut row[column + 1..], factor, &pivot.values[1..]);
        }
        self.column += 1;
    }

    /// The unknown of a column, if its row is here.
    fn unknown(&self, column: usize) -> Option<Vec<T>> {
        let row = &self.values[*self.pivots.get(&column)? * self.length()..][..self.length()];
        Some(row[self.plan.n..].iter().map(|y| *y / row[column]).collect())
    }

    /// Takes an unknown into account in the rows of those before it.
    fn take(&mut self, column: usize, x: &[T]) {
        let (n, length) = (self.plan.n, self.length());
        for (_, at) in self.pivots.range(..column) {
            let row = &mut self.values.as_mut_slice()[at * length..(at + 1) * length];
            let (a, y) = row.split_at_mut(n);
            lu::subtract_multiple(y, a[column], x);
        }
    }
}
