//! Jacobi's method for linear systems A X = B, dense and sparse.
//!
//! Source: the report on the CHARM metacomputer (1995), its section on Jacobi's method. x becomes
//! x + D^-1 (B - A x), D the diagonal of A, until changes are small relative to the first. It converges for every
//! start if the diagonal dominates the rows (Varga, "Matrix Iterative Analysis", 1962, section 3.3).
#![doc = include_str!("README.md")]

mod arguments;
mod blocks;
mod check;
mod cost;
mod division;
pub mod dominance;
mod drive;
pub mod generated;
mod parts;
mod rehearsal;
mod rounds;
mod rows;
mod share;
pub mod solver;
mod sparse;
mod step;
mod version_1;
pub mod watch;
mod work;

pub use arguments::Jacobi;

use crate::caches;
use crate::kernels::measured;
use crate::matrix::{Csr, Dtype, Real, generated as numbers};
use chares::KernelCall;
use command::{App, CommandLine};
use generated::{Generated, Kind};
use rows::{Dense, Rows};
use share::Share;
use sparse::Sparse;
use work::KEPT;

/// Bytes that a sparse row takes beside its entries.
const ROW_BYTES: usize = 48;
/// Floating-point operations of one call by which a speed is measured, at least.
const LEAST_WORK: f64 = (1u32 << 22) as f64;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    let program = program
        .chare::<solver::Solver<f32>>()
        .migrate(1, version_1::migrated::<f32>)
        .chare::<solver::Solver<f64>>()
        .migrate(1, version_1::migrated::<f64>);
    program.app(
        App::new("jacobi", "Solve a linear system by Jacobi's method", drive::drive)
            .kernel(kernel)
            .kernel_key(Jacobi::kernel_key)
            .kernel_unit(|_| "FLOP")
            .work(Jacobi::work)
            .check(arguments::check)
            .complete(|arguments: Jacobi| Ok(arguments.completed()))
            .files(|arguments: &Jacobi| arguments.system.files())
            .unused(|arguments: &Jacobi| arguments.system.unused())
            .aside(&["system.out", "verify"])
            .cost(cost::MODEL, cost::cost),
    )
}

/// Iterations on some rows, in which the application spends its time; units are floating-point operations.
fn kernel(jacobi: &Jacobi) -> KernelCall {
    match jacobi.system.dtype_or_default() {
        Dtype::F32 => kernel_of::<f32>(jacobi),
        Dtype::F64 => kernel_of::<f64>(jacobi),
    }
}

fn kernel_of<T: Real>(jacobi: &Jacobi) -> KernelCall {
    let (n, rhs) = (jacobi.system.n.max(1), jacobi.system.rhs.clamp(1, 16));
    let (rows, bounds, entries) = if jacobi.is_dense() {
        let count = (caches::bytes_beyond() / size_of::<T>() / n).clamp(1, n);
        let mut rows = Dense::zeros(n, 0..count);
        let mut row = vec![T::from_f64(-0.9 / n as f64); n];
        for i in 0..count {
            row[i] = T::from_f64(1.0);
            rows.set_row(i, &row);
            row[i] = T::from_f64(-0.9 / n as f64);
        }
        (Rows::Dense(rows), vec![0, count as u64, n as u64], count * n)
    } else {
        let each = usize::try_from(jacobi.entries()).unwrap_or(n).div_ceil(n).max(1);
        let given = jacobi.generated();
        // Of rows that are alike nothing but what is beside their entries is read.
        let entry_bytes =
            if given.is_some_and(|of| of.is_laplacian()) { 0 } else { size_of::<T>() + size_of::<u32>() };
        let count = (caches::bytes_beyond() / (ROW_BYTES + each * entry_bytes)).clamp(1, n);
        let of = given.unwrap_or(Generated { kind: Kind::Laplace3d, n, dominance: 1.1, seed: 1 });
        let all = Generated { n: count, ..of }.sparse_rows::<T>(0..count);
        let all = if given.is_some() { all } else { unlike(&all) };
        let (starts, cols, values) = all.bulk(0..count);
        let sparse =
            Sparse::new(count, 0..count, starts, cols, values).expect("the rows of a matrix are rows");
        (Rows::Sparse(sparse), vec![0, count as u64], all.entries())
    };
    let count = rows.range().len();
    let (share, units) = Share::new(0, &bounds, rhs, rows, numbers(1, 0..rhs, 0..count));
    let work = 2.0 * entries as f64 * rhs as f64;
    Box::new(measured(vec![share], work, LEAST_WORK, move |share| {
        (0..units.len()).for_each(|unit| share.compute(unit));
        share.finish(1, KEPT);
    }))
}

/// The same rows without the last entry of every eighth: what the rows of a file have in common is not known, so they are
/// measured as if it were nothing.
fn unlike<T: Real>(rows: &Csr<T>) -> Csr<T> {
    let mut made = Csr::with_columns(rows.cols());
    for at in 0..rows.rows() {
        let entries: Vec<(u32, T)> = rows.row(at).collect();
        let without = usize::from(at.is_multiple_of(8) && entries.len() > 1);
        made.push_row(&entries[..entries.len() - without]);
    }
    made
}

#[cfg(test)]
mod tests;
