//! How far a block that iterates is: which iteration it computes, what of x has come, what the last ones gave.

use super::rounds::Rounds;
use super::rows::Rows;
use super::share::Share;
use super::solver::{Left, SolutionPart, SolverInit};
use super::watch::{IterationEnd, Watch};
use crate::matrix::Real;
use chares::{Bulk, Callback, Chare, Ctx, Cx, Inbox, Stopwatch};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Iterations that may be begun before it is known whether one of them was the last.
pub(super) const AHEAD: u32 = 4;
/// Iterations whose x is kept: those ahead of the one that decides, that one, and the one before the oldest of them.
pub(super) const KEPT: usize = AHEAD as usize + 2;
/// How often the window is told how it goes.
const TELL: Duration = Duration::from_millis(100);

/// What an iterating block has.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Work<T> {
    pub(super) block: u32,
    pub(super) share: Share<T>,
    pub(super) rounds: Rounds,
    /// Who needs which of the own unknowns (by number here); not used where all need all.
    pub(super) wanted: Vec<(u32, Bulk<u32>)>,
    pub(super) watch: Watch,
    /// The iteration that is being computed, from 1; 0 before the start.
    pub(super) iteration: u32,
    /// It may not begin yet.
    pub(super) is_parked: bool,
    /// A message to go on is on its way.
    pub(super) is_stepping: bool,
    /// Parts of x of iterations to come, by the iteration that made them.
    pub(super) early: Inbox<u32, (u32, Bulk<T>)>,
    pub(super) ended: Option<IterationEnd>,
    pub(super) stopped: Option<Callback<IterationEnd>>,
    pub(super) told: Option<Callback<Left>>,
    pub(super) shown: Option<Stopwatch>,
}

impl<T: Real> Work<T> {
    pub(super) fn new(setup: &SolverInit, block: u32, rows: Rows<T>, b: Bulk<T>) -> Self {
        let (share, units) = Share::new(block, &setup.bounds, setup.rhs, rows, b);
        let rounds = Rounds::new(share.parts.sources().len(), &units);
        Self {
            block,
            share,
            rounds,
            wanted: Vec::new(),
            watch: Watch::new(setup.tolerance, setup.max_iterations),
            iteration: 0,
            is_parked: false,
            is_stepping: false,
            early: Inbox::default(),
            ended: None,
            stopped: None,
            told: None,
            shown: None,
        }
    }

    /// Begins the next iteration if it may begin: not too far ahead of what is known of the changes. The one after the
    /// last tells what is left of the residual.
    pub(super) fn begin(&mut self) {
        let next = if self.is_parked { self.iteration } else { self.iteration + 1 };
        let until = self.ended.map_or(self.watch.iteration() + AHEAD, |verdict| verdict.iteration) + 1;
        (self.iteration, self.is_parked) = (next, next > until);
        if self.is_parked {
            return;
        }
        self.rounds.begin();
        // x begins as 0, which everybody knows.
        if next == 1 {
            (0..self.share.parts.sources().len()).for_each(|source| self.rounds.arrive(source));
            return;
        }
        if let Some(own) = self.share.parts.source(self.block) {
            self.rounds.arrive(own);
        }
        for (block, values) in self.early.take(&(next - 1), 0).into_iter().flatten() {
            self.place(block, &values);
        }
    }

    /// Takes a part of x in, or keeps it for its iteration; `false` if it is not what was asked for.
    pub(super) fn take_in(&mut self, SolutionPart { iteration, block, values }: SolutionPart<T>) -> bool {
        if !self.is_parked && iteration + 1 == self.iteration {
            return self.place(block, &values);
        }
        if iteration + 1 >= self.iteration {
            self.early.hold(iteration, (block, values));
        }
        true
    }

    fn place(&mut self, block: u32, values: &[T]) -> bool {
        let Some(source) = self.share.parts.source(block) else { return true };
        let is_right = self.share.take_in(source, values);
        if is_right {
            self.rounds.arrive(source);
        }
        is_right
    }

    pub(super) fn has_work(&self) -> bool {
        self.is_iterating() && (self.rounds.is_ready() || self.rounds.is_over())
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_iterating() && self.rounds.is_over()
    }

    /// Whether an iteration has been begun that somebody wants.
    fn is_iterating(&self) -> bool {
        let is_wanted = self.ended.is_none_or(|verdict| self.iteration <= verdict.iteration + 1);
        self.iteration > 0 && !self.is_parked && is_wanted
    }

    /// Ends the iteration: its number, and the largest change of an unknown for each right-hand side.
    pub(super) fn finish(&mut self) -> (u32, Vec<f64>) {
        (self.iteration, self.share.finish(self.iteration, KEPT))
    }

    /// The own unknowns of the iteration that decided.
    pub(super) fn result(&self) -> Bulk<T> {
        self.ended.map(|verdict| self.share.own(verdict.iteration)).unwrap_or_default()
    }

    /// What is left of the residual with the result, once the iteration after it has been made.
    fn left(&self) -> Option<Left> {
        let residual = self.share.residual_before(self.ended?.iteration + 1)?;
        let most = |values: &[T]| values.iter().fold(0.0, |most: f64, value| most.max(value.to_f64().abs()));
        Some(Left { residual, x: most(&self.result()), b: most(self.share.right_hand_sides()) })
    }

    /// Says what is left, if somebody has asked and it is known.
    pub(super) fn tell_left<C: Chare>(&mut self, ctx: &mut Ctx<'_, C>) {
        if let Some(left) = self.left()
            && let Some(to) = self.told.take()
        {
            to.send(ctx, left);
        }
    }

    /// Tells the window how far it is, now and then.
    pub(super) fn show<C: Chare>(&mut self, ctx: &mut Ctx<'_, C>) {
        if self.shown.is_none_or(|shown| shown.elapsed() > TELL) || self.ended.is_some() {
            let (expected, detail) = self.watch.forecast();
            ctx.forecast("iteration", self.watch.iteration().into(), expected, &detail);
            self.shown = Some(Stopwatch::start());
        }
    }
}
