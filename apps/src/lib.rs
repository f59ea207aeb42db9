//! Programs on chares.

pub mod bench;
pub mod kernels;
pub mod matmul;
pub mod matrix;
pub mod verify;
