//! Solvers as they were saved when [`Chare::VERSION`](chares::Chare::VERSION) was 1: x of past iterations was kept beside the x that
//! was computed with, and sparse rows ended together.

use super::parts::Parts;
use super::rounds::Rounds;
use super::rows::Rows;
use super::share::{self, Iterate};
use super::solver::{self, Left, SolverInit};
use super::watch::{IterationEnd, Watch};
use super::work;
use crate::matrix::Real;
use chares::{Bulk, Callback, Inbox, Stopwatch};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A block of rows.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Solver<T> {
    setup: SolverInit,
    block: u32,
    rows: Option<Rows<T>>,
    b: Bulk<T>,
    work: Option<Work<T>>,
}

/// What an iterating block had.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
struct Work<T> {
    block: u32,
    share: Share<T>,
    rounds: Rounds,
    wanted: Vec<(u32, Bulk<u32>)>,
    watch: Watch,
    iteration: u32,
    is_parked: bool,
    is_stepping: bool,
    early: Inbox<u32, (u32, Bulk<T>)>,
    /// The last iterations that were made here.
    past: VecDeque<(u32, Outcome<T>)>,
    ended: Option<IterationEnd>,
    stopped: Option<Callback<IterationEnd>>,
    told: Option<Callback<Left>>,
    shown: Option<Stopwatch>,
}

/// Rows of A and B, and the numbers of x that were computed with.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
struct Share<T> {
    rhs: usize,
    rows: Rows<T>,
    b: Bulk<T>,
    diagonal: Vec<T>,
    parts: Parts,
    x: Vec<T>,
    sums: Vec<T>,
    /// The own unknowns before the iteration.
    own: Bulk<T>,
}

/// What an iteration gave.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
struct Outcome<T> {
    x: Bulk<T>,
    changes: Vec<f64>,
    residual: f64,
}

/// Today's solver, as far as that one was.
///
/// # Errors
/// If numbers are missing.
pub(super) fn migrated<T: Real>(old: Solver<T>) -> Result<solver::Solver<T>, String> {
    let Solver { setup, block, rows, b, work } = old;
    let work = work.map(Work::migrated).transpose()?;
    Ok(solver::Solver { setup, block, rows, b, work })
}

impl<T: Real> Work<T> {
    fn migrated(self) -> Result<work::Work<T>, String> {
        let mut share = self.share.migrated(self.block, self.past)?;
        // The sums of what had been computed of the iteration are not kept in the same way.
        if !self.is_parked {
            self.rounds.given().for_each(|unit| share.compute(unit));
        }
        Ok(work::Work {
            block: self.block,
            share,
            rounds: self.rounds,
            wanted: self.wanted,
            watch: self.watch,
            iteration: self.iteration,
            is_parked: self.is_parked,
            is_stepping: self.is_stepping,
            early: self.early,
            ended: self.ended,
            stopped: self.stopped,
            told: self.told,
            shown: self.shown,
        })
    }
}

impl<T: Real> Share<T> {
    fn migrated(self, block: u32, mut past: VecDeque<(u32, Outcome<T>)>) -> Result<share::Share<T>, String> {
        let Self { rhs, rows, b, diagonal, parts, x, own, .. } = self;
        let (held, count) = (parts.len(), diagonal.len());
        let is_whole = x.len() == rhs * held
            && past.iter().map(|(_, outcome)| &outcome.x).chain([&own]).all(|own| own.len() == rhs * count);
        if !is_whole {
            return Err(format!("block {block} has not as many unknowns as rows"));
        }
        let own_place = parts.place_of(block);
        // What the block has of x in an iteration: its own unknowns among those of others.
        let among = |mut x: Bulk<T>, own: &[T]| {
            let by_rhs = x.as_mut_slice().chunks_exact_mut(held.max(1)).zip(own.chunks_exact(count.max(1)));
            by_rhs.for_each(|(x, own)| x[own_place.clone()].copy_from_slice(own));
            x
        };
        let (iteration, residual) = past.pop_back().map_or((0, 0.0), |(at, last)| (at, last.residual));
        let mut iterates: VecDeque<_> = past
            .into_iter()
            .map(|(iteration, Outcome { x, residual, .. })| {
                let x = among(Bulk::zeros(rhs * held), &x);
                Iterate { iteration, x, residual }
            })
            .collect();
        iterates.push_back(Iterate { iteration, x: among(Bulk::from_slice(&x), &own), residual });
        Ok(share::Share::resumed(block, rhs, rows, b, diagonal, parts, iterates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jacobi::generated::{Generated, Kind};
    use crate::jacobi::solver::SolutionPart;
    use crate::jacobi::sparse::Sparse;
    use std::sync::Arc;

    const N: usize = 128 * 128;
    const ROWS: usize = 10_000;

    fn setup() -> SolverInit {
        SolverInit {
            n: N,
            rhs: 2,
            bounds: Arc::new(vec![0, ROWS as u64, N as u64]),
            is_dense: false,
            generated: None,
            seed_b: 1,
            tolerance: 1e-9,
            max_iterations: 100,
        }
    }

    fn rows() -> Rows<f64> {
        let all = Generated { kind: Kind::Laplace2d, n: N, dominance: 1.1, seed: 1 }.sparse_rows(0..N);
        let (starts, cols, values) = all.bulk(0..ROWS);
        Rows::Sparse(Sparse::new(N, 0..ROWS, starts, cols, values).unwrap())
    }

    fn b() -> Bulk<f64> {
        Bulk::from_slice(&(0..2 * ROWS).map(|at| (at % 17) as f64).collect::<Vec<_>>())
    }

    /// What the other block sends of an iteration.
    fn foreign(iteration: u32, count: usize) -> Bulk<f64> {
        Bulk::from_slice(&vec![f64::from(iteration) / 8.0; 2 * count])
    }

    /// The first block, which has computed three iterations and some units of the fourth.
    fn now(given: usize) -> work::Work<f64> {
        let mut work = work::Work::new(&setup(), 0, rows(), b());
        for iteration in 1..=4 {
            work.begin();
            if iteration > 1 {
                let theirs = work.share.parts.source(1).unwrap();
                let values = foreign(iteration - 1, work.share.parts.sources()[theirs].place.len());
                assert!(work.take_in(SolutionPart { iteration: iteration - 1, block: 1, values }));
            }
            for _ in 0..if iteration < 4 { usize::MAX } else { given } {
                let Some(unit) = work.rounds.next() else { break };
                work.share.compute(unit);
            }
            if iteration < 4 {
                work.finish();
            }
        }
        work
    }

    /// The same as it would have been saved.
    fn before(given: usize) -> Solver<f64> {
        let work = now(given);
        let mut rows = rows();
        let diagonal: Vec<_> = (0..ROWS).map(|at| rows.diagonal(at)).collect();
        let parts = Parts::some(0, &setup().bounds, rows.foreign_columns().unwrap());
        let units = rows.localize(&parts);
        let own = work.share.own(3);
        let mut x = vec![f64::NAN; 2 * parts.len()];
        for source in parts.sources() {
            let of_theirs = foreign(3, source.place.len());
            let values = if source.block == 0 { &own } else { &of_theirs };
            let by_rhs = x.chunks_mut(parts.len()).zip(values.chunks(source.place.len()));
            by_rhs.for_each(|(x, values)| x[source.place.clone()].copy_from_slice(values));
        }
        let mut rounds = Rounds::new(parts.sources().len(), &units);
        (0..parts.sources().len()).for_each(|source| rounds.arrive(source));
        assert!((0..given).all(|_| rounds.next().is_some()) && rounds.is_ready());
        let outcome = |iteration| {
            let residual = work.share.residual_before(iteration).unwrap();
            (iteration, Outcome { x: work.share.own(iteration), changes: vec![1.0; 2], residual })
        };
        let past = (1..=3).map(outcome).collect();
        let share = Share { rhs: 2, rows, b: b(), diagonal, parts, x, sums: vec![0.0; 2 * ROWS], own };
        let work = Work {
            block: 0,
            share,
            rounds,
            wanted: work.wanted,
            watch: work.watch,
            iteration: work.iteration,
            is_parked: work.is_parked,
            is_stepping: true,
            early: Inbox::default(),
            past,
            ended: None,
            stopped: None,
            told: None,
            shown: None,
        };
        Solver { setup: setup(), block: 0, rows: None, b: Bulk::default(), work: Some(work) }
    }

    #[test]
    fn a_block_goes_on_from_the_midst_of_an_iteration_to_the_same_numbers() {
        for given in 0..3 {
            let mut went_on = migrated(before(given)).unwrap().work.unwrap();
            let mut not_saved = now(given);
            for work in [&mut went_on, &mut not_saved] {
                while let Some(unit) = work.rounds.next() {
                    work.share.compute(unit);
                }
            }
            assert_eq!(went_on.finish(), not_saved.finish());
            for iteration in 1..=4 {
                let of = |work: &work::Work<f64>| {
                    (work.share.own(iteration).to_vec(), work.share.residual_before(iteration))
                };
                assert!(of(&went_on) == of(&not_saved) && of(&went_on).1.is_some(), "iteration {iteration}");
            }
        }
    }

    #[test]
    fn numbers_that_are_missing_are_refused() {
        let mut cut = before(0);
        cut.work.as_mut().unwrap().share.x.pop();
        assert_eq!(migrated(cut).err().unwrap(), "block 0 has not as many unknowns as rows");
    }
}
