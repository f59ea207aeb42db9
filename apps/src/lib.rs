//! Programs on chares.

pub mod apsp;
pub mod bench;
pub mod gauss;
pub mod jacobi;
pub mod kernels;
pub mod matmul;
pub mod matrix;
pub mod netbench;
pub mod output;
pub mod statistics;
pub mod memory;
pub mod system;
pub mod statics;
pub mod verify;
