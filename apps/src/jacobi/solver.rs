//! The chares that iterate, each a block of rows of the system with the unknowns of these rows; a PE has several, so that
//! some can move to another.
//!
//! As in the 1995 report, each iteration is an exchange of x, and the iteration ends when no unknown of any block changes
//! by more than the tolerance. Two things differ. A block computes with the parts of x that are here, its own first, while
//! others are on their way; of a sparse matrix only those numbers of x travel that somebody's rows need. And nobody
//! waits for the largest change: it is a reduction that goes on while the next iterations are computed, and the result
//! is that of the iteration that decided. So result and count of iterations do not depend on when messages come.

use super::dominance::Dominance;
use super::generated::Generated;
use super::rows::{Dense, Rows};
use super::sparse::Sparse;
use super::watch::IterationEnd;
use super::work::Work;
use crate::matrix::{Piece, Real, generated};
use chares::{Bulk, Callback, Chare, Ctx, Cx, Entry, Reduce};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Computed without looking for messages.
const SLICE: Duration = Duration::from_micros(500);
/// What others send goes before what is still to be computed.
const URGENT: i32 = -1;

/// What every solver is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SolverInit {
    /// Unknowns.
    pub n: usize,
    /// Right-hand sides.
    pub rhs: usize,
    /// Block `i` has the rows `bounds[i]..bounds[i + 1]`.
    pub bounds: Arc<Vec<u64>>,
    /// Whether the rows are dense.
    pub is_dense: bool,
    /// The matrix, if it is generated.
    pub generated: Option<Generated>,
    /// Seed of generated right-hand sides.
    pub seed_b: u64,
    /// The largest change of an unknown in the last iteration, relative to the first of its right-hand side.
    pub tolerance: f64,
    /// Iterations at most.
    pub max_iterations: u32,
}

impl SolverInit {
    /// Blocks of rows.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        u32::try_from(self.bounds.len() - 1).expect("there are fewer blocks than rows, which are below 2^32")
    }

    /// The rows of a block.
    #[must_use]
    pub fn rows_of(&self, block: u32) -> Range<usize> {
        let at = |block: usize| usize::try_from(self.bounds[block]).expect("a row of a matrix in memory");
        at(block as usize)..at(block as usize + 1)
    }
}

/// Iterates on a block of rows.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Solver<T> {
    pub(super) setup: SolverInit,
    pub(super) block: u32,
    /// As they come, before [`Prepare`].
    pub(super) rows: Option<Rows<T>>,
    pub(super) b: Bulk<T>,
    pub(super) work: Option<Work<T>>,
}

/// Dense rows of A, where they are not generated: adjoining ones from row `first` of A on.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadDense<T> {
    /// The first of them.
    pub first: usize,
    /// Their numbers, row by row.
    pub values: Bulk<T>,
}

/// All sparse rows of a block, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadSparse<T> {
    /// Where each row's entries begin, and the end of the last.
    pub starts: Bulk<u64>,
    /// Columns of the entries.
    pub cols: Bulk<u32>,
    /// Their numbers.
    pub values: Bulk<T>,
}

/// The right-hand sides of a block's rows, one after the other, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadRhs<T>(pub Bulk<T>);

/// All rows have come: say what they are like, and tell others what is needed of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepare(pub Callback<Dominance>);

/// A block needs these unknowns of another, by their numbers there, in every iteration.
#[derive(Debug, Serialize, Deserialize)]
pub struct Want {
    block: u32,
    rows: Bulk<u32>,
}

/// Begin; each block says when it stops.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Go(pub Callback<IterationEnd>);

/// A part of x as an iteration made it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct SolutionPart<T> {
    pub(super) iteration: u32,
    pub(super) block: u32,
    pub(super) values: Bulk<T>,
}

/// Compute something that can be computed.
#[derive(Debug, Serialize, Deserialize)]
pub struct ComputeNext;

/// The largest change of an iteration, for each right-hand side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    iteration: u32,
    changes: Vec<f64>,
}

impl Reduce for Change {
    fn combine(&mut self, other: Self) {
        self.changes.iter_mut().zip(other.changes).for_each(|(most, other)| *most = most.max(other));
    }
}

/// Say how far A x is from B for the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measure(pub Callback<Left>);

/// What is left of a block's rows of B - A x, and how large numbers are: magnitudes, the largest.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Left {
    /// Of B - A x.
    pub residual: f64,
    /// Of x.
    pub x: f64,
    /// Of B.
    pub b: f64,
}

impl Reduce for Left {
    fn combine(&mut self, other: Self) {
        self.residual = self.residual.max(other.residual);
        self.x = self.x.max(other.x);
        self.b = self.b.max(other.b);
    }
}

/// Send the result: pieces with a row for each right-hand side.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Collect<T: Real>(pub Callback<Piece<T>>);

chares::entries!(impl<T: Real> Solver<T>:
    LoadDense<T>, LoadSparse<T>, LoadRhs<T>, Prepare, Want, Go, SolutionPart<T>, ComputeNext, Change, Measure, Collect<T>;
    reduces Dominance, Change);

impl<T: Real> Chare for Solver<T> {
    type Index = u32;
    type Init = SolverInit;
    const VERSION: u16 = 2;
    fn new(setup: SolverInit, ctx: &mut Ctx<'_, Self>) -> Self {
        Self::made(setup, ctx.index())
    }
}

impl<T: Real> Entry<LoadDense<T>> for Solver<T> {
    fn receive(&mut self, load: LoadDense<T>, _: &mut Ctx<'_, Self>) {
        self.load_dense(&load);
    }
}

impl<T: Real> Entry<LoadSparse<T>> for Solver<T> {
    fn receive(&mut self, load: LoadSparse<T>, ctx: &mut Ctx<'_, Self>) {
        let rows = self.setup.rows_of(self.block);
        match Sparse::new(self.setup.n, rows, load.starts, load.cols, load.values) {
            Some(sparse) => self.rows = Some(Rows::Sparse(sparse)),
            None => ctx.fail("the rows that came for a block are not rows of the matrix"),
        }
    }
}

impl<T: Real> Entry<LoadRhs<T>> for Solver<T> {
    fn receive(&mut self, LoadRhs(b): LoadRhs<T>, _: &mut Ctx<'_, Self>) {
        self.b = b;
    }
}

impl<T: Real> Entry<Prepare> for Solver<T> {
    fn receive(&mut self, Prepare(to): Prepare, ctx: &mut Ctx<'_, Self>) {
        let Some(rows) = self.rows.take() else { return ctx.fail("no rows have come for a block") };
        let b = std::mem::take(&mut self.b);
        if b.len() != rows.range().len() * self.setup.rhs {
            return ctx.fail("the right-hand sides that came for a block are not those of its rows");
        }
        ctx.contribute(Dominance::of(&rows), to);
        self.work = Some(Work::new(&self.setup, self.block, rows, b));
        for (of, rows) in self.wants() {
            ctx.array().at(of).send(ctx, Want { block: self.block, rows });
        }
    }
}

impl<T: Real> Entry<Want> for Solver<T> {
    fn receive(&mut self, Want { block, rows }: Want, ctx: &mut Ctx<'_, Self>) {
        let count = self.setup.rows_of(self.block).len();
        match &mut self.work {
            Some(work) if rows.iter().all(|&row| (row as usize) < count) => work.wanted.push((block, rows)),
            // Whoever was asked first is not prepared yet.
            None => ctx.this().send(ctx, Want { block, rows }),
            Some(_) => ctx.fail("a block was asked for unknowns that are not its own"),
        }
    }
}

impl<T: Real> Entry<Go> for Solver<T> {
    fn receive(&mut self, Go(stopped): Go, ctx: &mut Ctx<'_, Self>) {
        let Some(work) = &mut self.work else { return };
        work.stopped = Some(stopped);
        work.begin();
        self.step_on(ctx);
    }
}

impl<T: Real> Entry<SolutionPart<T>> for Solver<T> {
    fn receive(&mut self, part: SolutionPart<T>, ctx: &mut Ctx<'_, Self>) {
        let Some(work) = &mut self.work else { return };
        if part.block == self.block {
            return;
        }
        if !work.take_in(part) {
            return ctx.fail("a part of x has another length than what was asked for");
        }
        self.step_on(ctx);
    }
}

impl<T: Real> Entry<ComputeNext> for Solver<T> {
    fn receive(&mut self, _: ComputeNext, ctx: &mut Ctx<'_, Self>) {
        let Some(work) = &mut self.work else { return };
        work.is_stepping = false;
        let started = Instant::now();
        while let Some(unit) = work.rounds.next() {
            work.share.compute(unit);
            if started.elapsed() > SLICE {
                break;
            }
        }
        if work.is_over() {
            let (iteration, changes) = work.finish();
            if work.ended.is_none() {
                self.hand_out(Change { iteration, changes }, ctx);
            }
            if let Some(work) = &mut self.work {
                work.begin();
                work.tell_left(ctx);
            }
        }
        self.step_on(ctx);
    }
}

impl<T: Real> Entry<Change> for Solver<T> {
    fn receive(&mut self, change: Change, ctx: &mut Ctx<'_, Self>) {
        let Some(work) = &mut self.work else { return };
        if work.ended.is_some() {
            return;
        }
        if change.iteration != work.watch.iteration() + 1 {
            return ctx.fail("the changes of iterations came in another order than these");
        }
        work.ended = work.watch.observe(&change.changes);
        if self.block == 0 {
            work.show(ctx);
        }
        if let Some(verdict) = work.ended
            && let Some(stopped) = work.stopped.take()
        {
            stopped.send(ctx, verdict);
        }
        if work.is_parked {
            work.begin();
        }
        self.step_on(ctx);
    }
}

impl<T: Real> Entry<Measure> for Solver<T> {
    fn receive(&mut self, Measure(to): Measure, ctx: &mut Ctx<'_, Self>) {
        let Some(work) = &mut self.work else { return };
        work.told = Some(to);
        work.tell_left(ctx);
        self.step_on(ctx);
    }
}

impl<T: Real> Entry<Collect<T>> for Solver<T> {
    fn receive(&mut self, Collect(to): Collect<T>, ctx: &mut Ctx<'_, Self>) {
        let Some(work) = &self.work else { return };
        let (rows, values) = (self.setup.rows_of(self.block), work.result());
        to.send(ctx, Piece { rows: 0..self.setup.rhs, cols: rows, values });
    }
}

impl<T: Real> Solver<T> {
    /// Sees to it that what can be computed is computed.
    fn step_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(work) = &mut self.work else { return };
        if work.has_work() && !work.is_stepping {
            work.is_stepping = true;
            ctx.this().send(ctx, ComputeNext);
        }
    }

    /// Sends the own part of x to those who need it, and the largest change to all.
    fn hand_out(&mut self, change: Change, ctx: &mut Ctx<'_, Self>) {
        let (Some(work), solvers, block) = (&self.work, ctx.array(), self.block) else { return };
        let iteration = change.iteration;
        if self.setup.is_dense {
            if self.setup.blocks() > 1 {
                let part = SolutionPart { iteration, block, values: work.share.own(iteration) };
                solvers.broadcast_with(ctx, URGENT, part);
            }
        } else {
            for (to, rows) in &work.wanted {
                let values = work.share.pick(iteration, rows);
                solvers.at(*to).send_with(ctx, URGENT, SolutionPart { iteration, block, values });
            }
        }
        ctx.contribute(change, Callback::broadcast(&solvers));
    }
}

impl<T: Real> Solver<T> {
    fn made(setup: SolverInit, block: u32) -> Self {
        let range = setup.rows_of(block);
        let rows = match setup.generated {
            Some(matrix) if setup.is_dense => {
                let mut rows = Dense::zeros(setup.n, range.clone());
                let mut row = vec![T::zeroed(); setup.n];
                for i in range.clone() {
                    matrix.fill_row(i, &mut row);
                    rows.set_row(i, &row);
                }
                Some(Rows::Dense(rows))
            }
            Some(matrix) => {
                let all = matrix.sparse_rows::<T>(range.clone());
                let (starts, cols, values) = all.bulk(0..range.len());
                Sparse::new(setup.n, range.clone(), starts, cols, values).map(Rows::Sparse)
            }
            None if setup.is_dense => Some(Rows::Dense(Dense::zeros(setup.n, range.clone()))),
            None => None,
        };
        let b = if setup.generated.is_some() {
            transposed(&generated::<T>(setup.seed_b, range, 0..setup.rhs), setup.rhs)
        } else {
            Bulk::default()
        };
        Self { setup, block, rows, b, work: None }
    }

    fn load_dense(&mut self, load: &LoadDense<T>) {
        let Some(Rows::Dense(rows)) = &mut self.rows else { return };
        for (row, values) in (load.first..).zip(load.values.chunks_exact(self.setup.n)) {
            rows.set_row(row, values);
        }
    }

    /// What is needed of others: whose, and their numbers there.
    fn wants(&self) -> Vec<(u32, Bulk<u32>)> {
        let Some(work) = &self.work else { return Vec::new() };
        let parts = &work.share.parts;
        let sources = parts.sources().iter().enumerate();
        let wants = sources.filter_map(|(at, source)| {
            let first = u32::try_from(self.setup.rows_of(source.block).start).ok()?;
            let rows: Vec<u32> = parts.wanted(at)?.iter().map(|unknown| unknown - first).collect();
            Some((source.block, Bulk::from(rows)))
        });
        wants.collect()
    }
}

/// Row-major numbers with `columns` in each row, column by column.
pub(super) fn transposed<T: Real>(values: &[T], columns: usize) -> Bulk<T> {
    let mut turned = Bulk::zeros(values.len());
    let rows = values.len() / columns;
    if rows > 0 {
        for (column, to) in turned.as_mut_slice().chunks_exact_mut(rows).enumerate() {
            to.iter_mut().zip(values.chunks_exact(columns)).for_each(|(to, row)| *to = row[column]);
        }
    }
    turned
}
