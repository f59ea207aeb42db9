//! Gaussian elimination with partial pivoting: A X = B for any number of right-hand sides.
//!
//! Source: T. Neff's report on the CHARM metacomputer (1995), its section on Gaussian elimination, for the elimination
//! column by column; the blocked one follows LAPACK's and HPL's. Check: the residual as HPL measures it (see
//! [`crate::system::residual`]).
#![doc = include_str!("README.md")]

pub mod arguments;
pub mod blocked;
pub mod columns;
mod cost;
mod division;
mod drive;
mod factors;
mod parts;
pub mod plan;

pub use arguments::{Algorithm, Gauss};
pub use factors::Factors;

use crate::caches;
use crate::kernels::{lu, measured};
use crate::matrix::{Dtype, Real, generated};
use chares::KernelCall;
use command::{App, CommandLine};

/// Columns of the trailing matrix by which a PE's speed is measured; rows are in short steps up to so many, then in long
/// ones, so that speeds measured for one system hold for others of about its size.
const KERNEL_COLUMNS: usize = 512;
const KERNEL_ROWS_SHORT: usize = 1024;
const KERNEL_ROWS_LONG: usize = 4096;
const KERNEL_ROWS_MAX: usize = 16 << 10;
/// Tiny ones are not made more often than that, however many the caches hold.
const KERNEL_SETS: usize = 8;
/// Bytes of the rows by which it is measured where the elimination goes column by column.
const ROWS_BYTES: usize = 4 << 20;
/// Floating-point operations of one call by which a speed is measured, at least.
const LEAST_WORK: f64 = (1u32 << 23) as f64;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program
        .chare::<blocked::Blocks<f32>>()
        .chare::<blocked::Blocks<f64>>()
        .chare::<columns::Rows<f32>>()
        .chare::<columns::Rows<f64>>()
        .app(
            App::new("gauss", "Solve a linear system by Gaussian elimination", drive::drive)
                .kernel(kernel)
                .kernel_key(Gauss::kernel_key)
                .kernel_unit(|_| "FLOP")
                .work(Gauss::work)
                .check(arguments::check)
                .complete(|arguments: Gauss| Ok(arguments.completed()))
                .files(|arguments: &Gauss| arguments.system.files())
                .unused(|arguments: &Gauss| arguments.system.unused())
                .aside(&["system.out", "verify"])
                .cost(cost::MODEL, cost::cost),
        )
}

/// What the application spends its time in: columns take up a panel, or rows a multiple of another one; units are
/// floating-point operations.
fn kernel(gauss: &Gauss) -> KernelCall {
    match (gauss.algorithm, gauss.system.dtype_or_default()) {
        (Algorithm::Columns, Dtype::F32) => row_kernel::<f32>(gauss),
        (Algorithm::Columns, Dtype::F64) => row_kernel::<f64>(gauss),
        (Algorithm::Blocked, Dtype::F32) => block_kernel::<f32>(gauss),
        (Algorithm::Blocked, Dtype::F64) => block_kernel::<f64>(gauss),
    }
}

/// Multiples of a row are taken from others, of as many numbers as rows have on average.
fn row_kernel<T: Real>(gauss: &Gauss) -> KernelCall {
    let length = (gauss.system.n / 2 + gauss.system.rhs).max(1);
    let pivot = generated::<T>(1, 0..1, 0..length);
    let rows = (ROWS_BYTES / size_of::<T>() / length).clamp(1, gauss.system.n);
    let values = generated::<T>(2, 0..rows, 0..length);
    let factor = T::from_f64(0.5);
    let work = 2.0 * (rows * length) as f64;
    Box::new(measured(vec![values], work, LEAST_WORK / 2.0, move |values| {
        let rows = values.as_mut_slice().chunks_exact_mut(length);
        rows.for_each(|row| lu::subtract_multiple(row, factor, &pivot));
    }))
}

/// Rows of the trailing matrix by which a speed is measured. As many rows are exchanged for a panel, however long its
/// columns are: over a whole elimination as many operations come to each exchange as with columns of two thirds of n.
fn kernel_rows(n: usize) -> usize {
    let rows = 2 * n / 3;
    match n {
        0..KERNEL_ROWS_SHORT => n,
        _ if rows <= KERNEL_ROWS_LONG => rows.next_multiple_of(KERNEL_ROWS_SHORT),
        _ => rows.next_multiple_of(KERNEL_ROWS_LONG).min(KERNEL_ROWS_MAX),
    }
}

fn block_kernel<T: Real>(gauss: &Gauss) -> KernelCall {
    let width = gauss.width();
    let rows = kernel_rows(gauss.system.n).max(width);
    let columns = gauss.system.n.clamp(1, KERNEL_COLUMNS);
    let panel = blocked::Factored::<T>::example(rows, width);
    let sets = (caches::bytes_beyond() / (rows * columns * size_of::<T>())).clamp(1, KERNEL_SETS);
    let sets: Vec<_> = (0..sets as u64).map(|set| generated::<T>(3 + set, 0..columns, 0..rows)).collect();
    let work = 2.0 * (rows as f64 - width as f64 / 2.0) * width as f64 * columns as f64;
    let mut beside = Vec::new();
    Box::new(measured(sets, work, LEAST_WORK, move |columns| {
        blocked::take_up(&panel, (rows, 0), columns.as_mut_slice(), &mut beside);
    }))
}

#[cfg(test)]
mod tests;
