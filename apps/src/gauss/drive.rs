//! The driver: deals out the system by speed, starts the chares, collects and checks the solution.

use super::Factors;
use super::arguments::{Algorithm, Gauss};
use super::blocked::{Blocks, BlocksInit, CollectBlocks, EliminationResult, GoBlocks, LoadBlock};
use super::columns::{CollectRows, GoRows, LoadRows, RowPlan, Rows};
use super::division::divide;
use super::parts::Parts;
use super::plan::Plan;
use crate::matrix::{self, Dtype, Matrix, Piece, Real, ShapeError};
use crate::system::{Coefficients, Generated, LinearSystem, Residual, residual};
use chares::{Array, Bulk, Callback, Cx, Driver, Pending, Placement, RunError};
use std::sync::Arc;

/// Solves a system as the command line asks.
pub(super) fn drive(main: &mut Driver, gauss: Gauss) -> Result<(), RunError> {
    let division = divide(&gauss, main.machines())?;
    division.state(main);
    match gauss.system.dtype_or_default() {
        Dtype::F32 => run::<f32>(main, &gauss, division.owners),
        Dtype::F64 => run::<f64>(main, &gauss, division.owners),
    }
}

fn run<T: Real>(main: &mut Driver, gauss: &Gauss, owners: Arc<Vec<u32>>) -> Result<(), RunError> {
    main.phase("reading the system", 0, 0);
    let system = LinearSystem::<T>::of(&gauss.system, 0.0)?;
    let (x, factors) = solved(main, gauss, &system, owners)?;
    state_factors(main, &factors);
    finish(main, gauss, &system, &x)
}

/// The solution of a system, n x rhs, and what the factors of A tell; `owners` has the PE of each row or block.
pub(super) fn solved<T: Real>(
    main: &mut Driver,
    gauss: &Gauss,
    system: &LinearSystem<T>,
    owners: Arc<Vec<u32>>,
) -> Result<(Matrix<T>, Factors), RunError> {
    state(main, gauss, system);
    let parts = Parts::dealt(&owners, gauss.parts_per_pe());
    main.outcome().fact("parts", parts.count());
    let generated = system.generated();
    match gauss.algorithm {
        Algorithm::Columns => columns(main, system, generated, &parts),
        Algorithm::Blocked => {
            let plan = gauss.plan(Arc::clone(&parts.owners), generated);
            blocked(main, system, plan, &parts)
        }
    }
}

/// The solution, n x rhs, and the factors, with rows on the PEs.
fn columns<T: Real>(
    main: &mut Driver,
    system: &LinearSystem<T>,
    generated: Option<Generated>,
    parts: &Parts,
) -> Result<(Matrix<T>, Factors), RunError> {
    main.phase("distributing", 0, 0);
    let owners = Arc::clone(&parts.owners);
    let plan = RowPlan { n: system.n, rhs: system.rhs, owners, generated };
    let homes = Placement::on_pes(parts.homes.iter().copied());
    let rows: Array<Rows<T>> = main.array_placed(parts.count(), plan.clone(), homes);
    if let Coefficients::Dense(a) = &system.a {
        for part in 0..parts.count() {
            rows.at(part).send(main, LoadRows(given_rows(a, &system.b, plan.rows_of(part))));
        }
    }
    main.init_over()?;
    main.expect_progress("column", system.n as u64)?;
    let (done, ended) = main.pending();
    rows.broadcast(main, GoRows { done });
    let ended = eliminated(ended.wait(main)?)?;
    main.timed_over()?;
    let (to, solved): (Callback<Piece<T>>, Pending<_>) = main.pending();
    rows.broadcast(main, CollectRows(to));
    Ok((collected(main, system, ended.pieces, &solved)?, ended.factors))
}

/// The same with blocks of columns on the PEs.
fn blocked<T: Real>(
    main: &mut Driver,
    system: &LinearSystem<T>,
    plan: Plan,
    parts: &Parts,
) -> Result<(Matrix<T>, Factors), RunError> {
    main.outcome().fact("block", plan.width);
    main.outcome().fact("panels", plan.panels());
    let panels = u64::from(plan.panels());
    main.parts(panels, "blocks of columns", |good| {
        let width = (system.n as u64 / good).max(1);
        (system.n as u64 / width > panels).then(|| format!("--block {width}"))
    });
    main.phase("distributing", 0, 0);
    let init = BlocksInit { plan: plan.clone(), homes: Arc::clone(&parts.homes) };
    let homes = Placement::on_pes(parts.homes.iter().copied());
    let blocks: Array<Blocks<T>> = main.array_placed(parts.count(), init, homes);
    for (block, columns) in given_columns(system, &plan) {
        let owner = plan.owners[block as usize];
        blocks.at(owner).send(main, LoadBlock { block, columns });
    }
    main.init_over()?;
    main.expect_progress("panel", u64::from(plan.panels()))?;
    let (done, ended) = main.pending();
    blocks.broadcast(main, GoBlocks { done });
    let ended = eliminated(ended.wait(main)?)?;
    main.timed_over()?;
    let (to, solved): (Callback<Piece<T>>, Pending<_>) = main.pending();
    blocks.broadcast(main, CollectBlocks(to));
    Ok((collected(main, system, ended.pieces, &solved)?, ended.factors))
}

/// How it ended, if there is a solution.
fn eliminated(ended: EliminationResult) -> Result<EliminationResult, RunError> {
    ended.singular.map_or(Ok(ended), |singular| Err(RunError::Input(singular.to_string())))
}

/// States what the factors tell.
fn state_factors(main: &mut Driver, factors: &Factors) {
    let (growth, log10, sign) = (factors.growth(), factors.log10_determinant, factors.sign());
    let outcome = main.outcome();
    outcome.fact("growth", growth);
    outcome.fact("log10_det", log10);
    outcome.fact("sign_det", sign);
    let minus = if sign < 0 { "-" } else { "" };
    outcome.remark(&format!("growth factor {growth:.3}, determinant {minus}10^{log10:.6}"));
}

/// The columns of each block, if they are the driver's to send.
fn given_columns<T: Real>(system: &LinearSystem<T>, plan: &Plan) -> impl Iterator<Item = (u32, Bulk<T>)> {
    let given = match &system.a {
        Coefficients::Dense(a) => Some(a),
        Coefficients::Generated(_) => None,
    };
    given.into_iter().flat_map(move |a| {
        (0..plan.panels() + plan.right_blocks()).map(move |block| {
            let from = if block < plan.panels() { a } else { &system.b };
            (block, transposed(from, plan.columns_of(block)))
        })
    })
}

/// Some rows, each of A and then of B.
fn given_rows<T: Real>(a: &Matrix<T>, b: &Matrix<T>, rows: impl Iterator<Item = usize>) -> Bulk<T> {
    let mut values = Vec::new();
    for row in rows {
        values.extend_from_slice(a.row_slice(row..row + 1));
        values.extend_from_slice(b.row_slice(row..row + 1));
    }
    values.into()
}

/// Columns of a matrix, one after the other.
fn transposed<T: Real>(matrix: &Matrix<T>, columns: std::ops::Range<usize>) -> Bulk<T> {
    let n = matrix.rows();
    let mut block = Bulk::zeros(columns.len() * n);
    let values = block.as_mut_slice();
    for i in 0..n {
        let row = &matrix.row_slice(i..i + 1)[columns.clone()];
        values[i..].iter_mut().step_by(n).zip(row).for_each(|(to, value)| *to = *value);
    }
    block
}

/// Puts the pieces of the solution together.
fn collected<T: Real>(
    main: &mut Driver,
    system: &LinearSystem<T>,
    pieces: usize,
    solved: &Pending<Piece<T>>,
) -> Result<Matrix<T>, RunError> {
    let too_big = |e: ShapeError| RunError::Failed(e.to_string());
    let mut x = Matrix::zeros(system.n, system.rhs).map_err(too_big)?;
    for done in 1..=pieces {
        let piece = solved.wait(main)?;
        x.set_block(piece.rows, piece.cols, &piece.values);
        main.phase("collecting", done as u64, pieces as u64);
    }
    Ok(x)
}

/// States the system in the report.
fn state<T: Real>(main: &mut Driver, gauss: &Gauss, system: &LinearSystem<T>) {
    let outcome = main.outcome();
    outcome.work(gauss.work());
    outcome.fact("n", system.n);
    outcome.fact("rhs", system.rhs);
    outcome.fact("dtype", T::DTYPE.to_string());
    outcome.fact("algorithm", serde_json::to_value(gauss.algorithm).unwrap_or_default());
}

/// Checks and writes the solution.
fn finish<T: Real>(
    main: &mut Driver,
    gauss: &Gauss,
    system: &LinearSystem<T>,
    x: &Matrix<T>,
) -> Result<(), RunError> {
    if let Some(at) = x.values().iter().position(|value| !value.to_f64().is_finite()) {
        return Err(RunError::Input(format!(
            "unknown {} of right-hand side {}, counted from 0, is beyond the range of {}: scale the system",
            at / system.rhs,
            at % system.rhs,
            T::DTYPE
        )));
    }
    if let Some(out) = &gauss.system.out {
        main.phase("writing", 0, 0);
        matrix::write(out, x).map_err(|e| RunError::Output(e.to_string()))?;
    }
    main.phase("verifying", 0, 0);
    main.outcome().collected();
    let Residual { overall, by_row, row } = residual(system, x);
    let outcome = main.outcome();
    outcome.fact("scaled_residual", overall);
    outcome.fact("scaled_residual_by_row", by_row);
    let limit = Residual::ACCEPTED;
    let is_accepted = |residual: f64| residual < limit;
    let is_right = is_accepted(overall) && (!gauss.verify || is_accepted(by_row));
    let by_row_too = if gauss.verify { format!(", by row {by_row:.2e}") } else { String::new() };
    let measured = format!("scaled residual {overall:.2e}{by_row_too}; below {limit} is right");
    outcome.verified_by(is_right, measured);
    let wrong = |sentence: String| Err(RunError::Wrong(format!("the solution is wrong: {sentence}")));
    if !is_accepted(overall) {
        return wrong(format!(
            "its scaled residual ||A x - b|| / (||A|| ||x|| n u) is {overall:.1}, below {limit} is right"
        ));
    }
    if gauss.verify && !is_accepted(by_row) {
        return wrong(format!(
            "the scaled residual of row {row} is {by_row:.1} for its own size, below {limit} is right"
        ));
    }
    Ok(())
}
