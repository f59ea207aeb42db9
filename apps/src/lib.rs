//! Programs on chares.

pub mod kernels;
pub mod matrix;
pub mod verify;
