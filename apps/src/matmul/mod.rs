//! Matrix multiply, C = A B, by four algorithms of the 1995 report, on real matrices.
//!
//! Source: the report on the CHARM metacomputer (1995), its section on matrix multiplication. Check: a full
//! comparison for small products, Freivalds' check for big ones (see [`crate::verify`]).
#![doc = include_str!("README.md")]

pub mod arguments;
pub mod conventional;
mod cost;
mod division;
mod drive;
mod length;
pub mod panel;
pub mod problem;
mod side;
pub mod tile;

pub use arguments::{Algorithm, Matmul};

use crate::caches;
use crate::kernels::gemm::{Kernel, gemm};
use crate::kernels::measured;
use crate::matrix::{Dtype, Real, generated, zeros};
use chares::KernelCall;
use command::{App, CommandLine};

/// Sides of the blocks by which a PE's speed is measured: as large as the work's blocks, but not so large
/// that one product takes longer than some tens of milliseconds on a slow PE.
const KERNEL_SIDE_MAX: usize = 1280;
/// So many sets of blocks make even small ones unlike those that stay in the nearest cache.
const SETS_MAX: usize = 64;
/// The same for the plain loops, which are twenty times as slow.
const PLAIN_SIDE_MAX: usize = 512;
/// Floating-point operations of one call by which a speed is measured, at least.
const LEAST_WORK: f64 = (1u32 << 23) as f64;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program
        .chare::<conventional::Rows<f32>>()
        .chare::<conventional::Rows<f64>>()
        .chare::<tile::Tile<f32>>()
        .chare::<tile::Tile<f64>>()
        .chare::<tile::TileMaker<f32>>()
        .chare::<tile::TileMaker<f64>>()
        .chare::<panel::Panel<f32>>()
        .chare::<panel::Panel<f64>>()
        .app(
            App::new("matmul", "Multiply two matrices", drive::drive)
                .kernel(kernel)
                .kernel_key(Matmul::kernel_key)
                .kernel_unit(|_| "FLOP")
                .work(Matmul::work)
                // Files say by themselves how large they are.
                .settled("seconds", |matmul| {
                    let n = matmul.n.filter(|_| matmul.a.is_none() && matmul.b.is_none());
                    n.iter().map(|n| ("n", n.to_string())).collect()
                })
                .check(arguments::check)
                .complete(|arguments: Matmul| Ok(arguments.completed()))
                .files(Matmul::files)
                .unused(Matmul::unused)
                .aside(&["out", "verify"])
                .cost(cost::COST, cost::cost),
        )
}

/// The block product that the application spends its time in; units are floating-point operations.
fn kernel(matmul: &Matmul) -> KernelCall {
    match matmul.dtype_or_default() {
        Dtype::F32 => kernel_of::<f32>(matmul),
        Dtype::F64 => kernel_of::<f64>(matmul),
    }
}

/// The side of a product that takes about so long on this machine.
fn side_for(matmul: &Matmul, seconds: f64) -> usize {
    let number_bytes = matmul.dtype_or_default().size_bytes();
    // Its blocks will be large ones.
    let large = Matmul { n: Some(KERNEL_SIDE_MAX * matmul.side() as usize), ..matmul.clone() };
    length::side_for(seconds, number_bytes, || kernel(&large))
}

fn kernel_of<T: Real>(matmul: &Matmul) -> KernelCall {
    let kernel = matmul.kernel();
    let most = if kernel == Kernel::Plain { PLAIN_SIDE_MAX } else { KERNEL_SIDE_MAX };
    let [m, k, n] = matmul.typical_block().map(|side| side.clamp(1, most));
    let block_bytes = (m * k + k * n + m * n) * size_of::<T>();
    let sets = (caches::bytes_beyond() / block_bytes).clamp(1, SETS_MAX);
    let operands: Vec<_> = (0..sets as u64)
        .map(|set| (generated(2 * set, 0..m, 0..k), generated(2 * set + 1, 0..k, 0..n), zeros::<T>(m * n)))
        .collect();
    let work = 2.0 * m as f64 * k as f64 * n as f64;
    Box::new(measured(operands, work, LEAST_WORK, move |(a, b, c)| {
        gemm(kernel, m, k, n, a, b, c.as_mut_slice());
    }))
}
