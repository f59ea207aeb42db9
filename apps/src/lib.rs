//! Programs on chares.

pub mod apsp;
pub mod bench;
mod caches;
mod division;
pub mod gauss;
pub mod imbalance;
pub mod jacobi;
pub mod kernels;
pub mod manual;
pub mod matmul;
pub mod matrix;
pub mod netbench;
pub mod output;
pub mod statics;
pub mod statistics;
pub mod system;
mod trial;
pub mod verify;
