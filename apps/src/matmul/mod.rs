//! Matrix multiply, C = A B, by four algorithms of the 1995 report, on real matrices.
//!
//! Source: the report on the CHARM metacomputer (1995), its section on matrix multiplication. Check: a full
//! comparison for small products, Freivalds' check for big ones (see [`crate::verify`]).

pub mod arguments;
pub mod conventional;
mod drive;
mod memory;
pub mod panel;
pub mod problem;
pub mod tile;

pub use arguments::{Algorithm, Matmul};

use crate::kernels::gemm::{Kernel, gemm};
use crate::matrix::{Dtype, generate};
use chares::{App, KernelCall, Program};

/// Sides of the blocks by which a PE's speed is measured: as large as the work's blocks, but not so large
/// that one product takes longer than some tens of milliseconds on a slow PE.
const KERNEL_SIDE_MAX: usize = 1280;
/// The same for the plain loops, which are twenty times as slow.
const PLAIN_SIDE_MAX: usize = 512;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: Program) -> Program {
    program
        .chare::<conventional::Rows<f32>>()
        .chare::<conventional::Rows<f64>>()
        .chare::<tile::Tile<f32>>()
        .chare::<tile::Tile<f64>>()
        .chare::<tile::Office<f32>>()
        .chare::<tile::Office<f64>>()
        .chare::<panel::Panel<f32>>()
        .chare::<panel::Panel<f64>>()
        .app(
            App::new("matmul", "Multiply two matrices", drive::drive)
                .kernel(kernel)
                .kernel_key(Matmul::kernel_key)
                .check(arguments::check)
                .complete(Matmul::completed),
        )
}

/// The block product that the application spends its time in; units are floating-point operations.
fn kernel(matmul: &Matmul) -> KernelCall {
    match matmul.dtype_or_default() {
        Dtype::F32 => kernel_of::<f32>(matmul),
        Dtype::F64 => kernel_of::<f64>(matmul),
    }
}

fn kernel_of<T: problem::Real>(matmul: &Matmul) -> KernelCall {
    let kernel = matmul.kernel();
    let most = if kernel == Kernel::Plain { PLAIN_SIDE_MAX } else { KERNEL_SIDE_MAX };
    let [m, k, n] = matmul.typical_block().map(|side| side.clamp(1, most));
    let a = generate::block::<T>(1, 0..m, 0..k);
    let b = generate::block::<T>(2, 0..k, 0..n);
    let mut c = vec![T::zeroed(); m * n];
    let work = 2.0 * m as f64 * k as f64 * n as f64;
    // Tiny blocks are repeated, so that reading the clock is not what is measured.
    let repeats = (1 << 22) / (m * k * n) + 1;
    Box::new(move || {
        for _ in 0..repeats {
            gemm(kernel, m, k, n, &a, &b, &mut c);
        }
        work * repeats as f64
    })
}
