//! Block kernels: pure functions on slices, single-threaded, with no chare in sight.

mod deterministic;
pub mod gemm;
pub mod min_plus;
pub mod lu;
