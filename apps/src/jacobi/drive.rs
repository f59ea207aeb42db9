//! The driver: distributes the rows by speed, starts the iteration, collects and checks the solution.

use super::arguments::Jacobi;
use super::blocks::Blocks;
use super::check::{self, System};
use super::division::divide;
use super::dominance::Dominance;
use super::solver::{
    Collect, Go, Left, LoadDense, LoadRhs, LoadSparse, Measure, Prepare, Solver, SolverInit, transposed,
};
use super::watch::{IterationEnd, Why};
use crate::division::Division;
use crate::matrix::{self, Csr, Dtype, Matrix, Real, ShapeError, generate, market};
use crate::system::{Coefficients, LinearSystem, check_sides, read};
use chares::{Array, Bulk, Cx, Driver, Placement, Reduce, RunError};
use std::path::Path;
use std::sync::Arc;

/// Most bytes of a sparse matrix from a file.
const SPARSE_BYTES_MAX: u64 = 256 << 30;
/// Changes of so many roundings of the largest unknown are those that never end.
const ROUNDING_CHANGES: f64 = 16.0;
/// Rows of a dense matrix in one message.
const MESSAGE_BYTES: usize = 64 << 20;

/// Runs an iteration as the command line asks.
pub(super) fn drive(main: &mut Driver, jacobi: Jacobi) -> Result<(), RunError> {
    let division = divide(&jacobi, main.machines())?;
    division.state(main);
    main.phase("reading the system", 0, 0);
    match jacobi.system.dtype_or_default() {
        Dtype::F32 => solve::<f32>(main, &jacobi, given(&jacobi)?, division),
        Dtype::F64 => solve::<f64>(main, &jacobi, given(&jacobi)?, division),
    }
}

/// The system that the arguments name.
fn given<T: Real>(jacobi: &Jacobi) -> Result<System<T>, RunError> {
    let (Some(a), Some(b)) = (&jacobi.system.a, &jacobi.system.b) else {
        let seed_b = generate::seed_of_b(jacobi.system.seed);
        let generated = jacobi.generated().ok_or_else(|| RunError::Input("--b goes with --a".into()))?;
        return Ok(System::Generated { a: generated, rhs: jacobi.system.rhs, seed_b });
    };
    if jacobi.is_dense() {
        let LinearSystem { a, b, .. } = LinearSystem::<T>::of(&jacobi.system, 0.0)?;
        let Coefficients::Dense(a) = a else { return Err(RunError::Input("--b goes with --a".into())) };
        return Ok(System::Dense { a, b });
    }
    let a_read = market::read_sparse(a, SPARSE_BYTES_MAX).map_err(|e| RunError::Input(e.to_string()))?;
    let b_read = read::<T>(b)?;
    // The files may have changed since they were looked at.
    check_sides(a, (a_read.rows(), a_read.cols()), b, b_read.shape())?;
    jacobi.system.check_unchanged(a_read.rows(), b_read.cols())?;
    let a_read = if T::DTYPE == Dtype::F32 { finite(a, a_read.convert())? } else { a_read.convert() };
    Ok(System::Sparse { a: a_read, b: b_read })
}

fn finite<T: Real>(path: &Path, a: Csr<T>) -> Result<Csr<T>, RunError> {
    if a.is_finite() {
        return Ok(a);
    }
    Err(RunError::Input(format!(
        "{path:?} has numbers that are too large for {}: leave out --dtype",
        T::DTYPE
    )))
}

fn solve<T: Real>(
    main: &mut Driver,
    jacobi: &Jacobi,
    system: System<T>,
    division: Division<Blocks>,
) -> Result<(), RunError> {
    let (setup, homes) = setup(main, jacobi, &system, division)?;
    state(main, jacobi, &setup);
    let (solvers, dominance) = distribute(main, &setup, homes, &system)?;
    look_at(main, &setup, &dominance)?;
    main.init_over()?;
    let (to, stopped) = main.pending();
    solvers.broadcast(main, Go(to));
    let mut end = None;
    for _ in 0..setup.blocks() {
        end = Some(stopped.wait(main)?);
    }
    main.timed_over()?;
    let Some(end) = end else { return Err(RunError::Failed("there are no PEs".into())) };
    conclude(main, jacobi, &setup, &dominance, &end)?;
    let (to, told) = main.pending();
    solvers.broadcast(main, Measure(to));
    let mut left = Left::default();
    for _ in 0..setup.blocks() {
        left.combine(told.wait(main)?);
    }
    let residual = left.residual / (dominance.norm * left.x + left.b).max(f64::MIN_POSITIVE);
    main.outcome().fact("residual", residual);
    main.outcome().remark(&format!(
        "{} iterations, last change {:.2e} of the first, residual {residual:.2e} relative to |A| |x| + |B|",
        end.iteration, end.change
    ));
    if jacobi.verify || jacobi.system.out.is_some() {
        let x = collect(main, &setup, &solvers)?;
        finish(main, jacobi, &system, &x, &end)?;
    }
    exhausted(jacobi, &dominance, &end, (setup.n, left.x))
}

/// Makes the solvers where they are at home and gives them their rows; what those are like.
fn distribute<T: Real>(
    main: &mut Driver,
    setup: &SolverInit,
    homes: Placement,
    system: &System<T>,
) -> Result<(Array<Solver<T>>, Dominance), RunError> {
    main.phase("distributing", 0, 0);
    let solvers: Array<Solver<T>> = main.array_placed(setup.blocks(), setup.clone(), homes);
    for block in 0..setup.blocks() {
        let rows = setup.rows_of(block);
        let b = match system {
            System::Generated { .. } => continue,
            System::Dense { a, b } => {
                let at_once = (MESSAGE_BYTES / size_of::<T>() / setup.n).max(1);
                for first in rows.clone().step_by(at_once) {
                    let values = a.row_slice(first..(first + at_once).min(rows.end));
                    let values = Bulk::from_slice(values);
                    solvers.at(block).send(main, LoadDense { first, values });
                }
                b
            }
            System::Sparse { a, b } => {
                let (starts, cols, values) = a.bulk(rows.clone());
                solvers.at(block).send(main, LoadSparse { starts, cols, values });
                b
            }
        };
        let b = transposed(b.row_slice(rows), setup.rhs);
        solvers.at(block).send(main, LoadRhs::<T>(b));
    }
    // Rows must be where they belong before anybody is asked to look at them.
    main.quiescence()?;
    let (to, told) = main.pending();
    solvers.broadcast(main, Prepare(to));
    Ok((solvers, told.wait(main)?))
}

/// The solution, of the parts that the solvers have.
fn collect<T: Real>(
    main: &mut Driver,
    setup: &SolverInit,
    solvers: &Array<Solver<T>>,
) -> Result<Matrix<T>, RunError> {
    let too_big = |e: ShapeError| RunError::Failed(e.to_string());
    let (to, pieces) = main.pending();
    solvers.broadcast(main, Collect::<T>(to));
    let mut x = Matrix::zeros(setup.n, setup.rhs).map_err(too_big)?;
    let count = u64::from(setup.blocks());
    for done in 1..=count {
        let piece = pieces.wait(main)?;
        let rows = piece.cols.len();
        if rows > 0 && piece.values.len() == rows * setup.rhs {
            x.set_block(piece.cols, 0..setup.rhs, &transposed(&piece.values, rows));
        } else if rows > 0 {
            return Err(RunError::Failed("a block gave another part of the solution than its own".into()));
        }
        main.phase("collecting", done, count);
    }
    Ok(x)
}

fn setup<T: Real>(
    main: &mut Driver,
    jacobi: &Jacobi,
    system: &System<T>,
    mut division: Division<Blocks>,
) -> Result<(SolverInit, Placement), RunError> {
    if let System::Sparse { a, .. } = system {
        division = division.by_entries(jacobi, a.starts())?;
        main.outcome().shares(division.shares);
    }
    let (n, rhs) = system.sides();
    let (generated, seed_b) = match system {
        System::Generated { a, seed_b, .. } => (Some(*a), *seed_b),
        System::Dense { .. } | System::Sparse { .. } => (None, 0),
    };
    let setup = SolverInit {
        n,
        rhs,
        bounds: Arc::new(division.owners.rows),
        is_dense: jacobi.is_dense(),
        generated,
        seed_b,
        tolerance: jacobi.tolerance(),
        max_iterations: jacobi.max_iterations,
    };
    Ok((setup, Placement::Bounds(division.owners.of_pes)))
}

/// States the system in the report.
fn state(main: &mut Driver, jacobi: &Jacobi, setup: &SolverInit) {
    let outcome = main.outcome();
    outcome.fact("n", setup.n);
    outcome.fact("rhs", setup.rhs);
    outcome.fact("entries", jacobi.entries());
    outcome.fact("blocks", setup.blocks());
    outcome.fact("storage", if setup.is_dense { "dense" } else { "sparse" });
    outcome.fact("tolerance", setup.tolerance);
}

/// Refuses a matrix that the method cannot use, and warns of one that it may fail for.
fn look_at(main: &mut Driver, setup: &SolverInit, dominance: &Dominance) -> Result<(), RunError> {
    if let Some(row) = dominance.not_finite {
        return Err(RunError::Input(format!(
            "row {row} of the matrix, counted from 0, has numbers that are NaN or infinite, or too large to add up"
        )));
    }
    if let Some(row) = dominance.zero {
        return Err(RunError::Input(format!(
            "row {row} of the matrix, counted from 0, has 0 on the diagonal, which Jacobi's method divides by: order the \
             rows otherwise, or use gauss"
        )));
    }
    main.outcome().fact("rows_not_dominant", dominance.weak);
    if let Some((ratio, row)) = dominance.worst {
        main.outcome().fact("worst_row", row);
        main.outcome().fact("worst_row_others_by_diagonal", ratio);
    }
    if let Some(warning) = dominance.warning(setup.n) {
        main.outcome().remark(&warning);
    }
    Ok(())
}

/// States how the iteration went, and ends the run if it ran away.
fn conclude(
    main: &mut Driver,
    jacobi: &Jacobi,
    setup: &SolverInit,
    dominance: &Dominance,
    end: &IterationEnd,
) -> Result<(), RunError> {
    let outcome = main.outcome();
    outcome.work(jacobi.work_of_iteration() * f64::from(end.iteration));
    outcome.fact("iterations", end.iteration);
    outcome.fact("last_change", end.change);
    outcome.fact("converged", end.why == Why::Converged);
    if end.why != Why::Diverged {
        return Ok(());
    }
    let change = if end.change.is_finite() {
        format!(
            "the largest change is {:.1e} times the first, after {:.1e} at the least",
            end.change, end.least
        )
    } else {
        "its changes are no finite numbers any more".into()
    };
    let why = dominance.warning(setup.n).map_or_else(String::new, |why| format!(": {why}"));
    let sentence = format!(
        "Jacobi's method runs away from the solution of this system: in iteration {} {change}{why}",
        end.iteration
    );
    Err(RunError::App(sentence.into()))
}

/// The error of an iteration that came to its cap.
fn exhausted(
    jacobi: &Jacobi,
    dominance: &Dominance,
    end: &IterationEnd,
    (n, largest_x): (usize, f64),
) -> Result<(), RunError> {
    if end.why != Why::Exhausted {
        return Ok(());
    }
    let written = match &jacobi.system.out {
        Some(out) => format!(" ({} has what it came to)", out.display()),
        None => String::new(),
    };
    let why = dominance.warning(n).map_or_else(String::new, |why| format!("; {why}"));
    let dtype = jacobi.system.dtype_or_default();
    let mend = if end.largest <= ROUNDING_CHANGES * dtype.unit_roundoff() * largest_x {
        format!("raise --tolerance, for rounding in {dtype} leaves no smaller changes")
    } else {
        "raise --max-iterations or --tolerance".into()
    };
    let sentence = format!(
        "no convergence in {} iterations{written}: the largest change of the last one is {:.1e} times the first, and \
         --tolerance is {:.1e}: {mend}{why}",
        end.iteration,
        end.change,
        jacobi.tolerance()
    );
    Err(RunError::App(sentence.into()))
}

/// Writes and checks the solution.
fn finish<T: Real>(
    main: &mut Driver,
    jacobi: &Jacobi,
    system: &System<T>,
    x: &Matrix<T>,
    end: &IterationEnd,
) -> Result<(), RunError> {
    if let Some(out) = &jacobi.system.out {
        main.phase("writing", 0, 0);
        matrix::write(out, x).map_err(|e| RunError::Output(e.to_string()))?;
    }
    if !jacobi.verify {
        return Ok(());
    }
    main.phase("verifying", 0, 0);
    main.outcome().collected();
    let checked = check::solution(system, x, jacobi.tolerance());
    let outcome = main.outcome();
    outcome.fact("backward_error", checked.backward_error);
    outcome.fact("next_change", checked.next_change);
    let is_converged = end.why == Why::Converged;
    outcome.verified_by(
        is_converged && checked.holds(),
        format!("backward error {:.2e}", checked.backward_error),
    );
    // What came to its cap has a sentence of its own.
    if checked.holds() || !is_converged {
        return Ok(());
    }
    Err(RunError::Wrong(format!(
        "the solution is wrong: row {} of B - A x, divided by the diagonal, is {:.2e} times what --tolerance and \
         rounding allow",
        checked.row, checked.excess
    )))
}
