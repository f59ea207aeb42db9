//! Block kernels: pure functions on slices, single-threaded, with no chare in sight.

pub mod alike;
mod deterministic;
pub mod dot;
pub mod fast;
pub mod gemm;
pub mod lu;
mod measured;
pub mod min_plus;
mod tiles;

pub(crate) use measured::measured;
