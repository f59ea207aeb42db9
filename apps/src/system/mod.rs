//! Linear systems A X = B as several applications solve them: what a user says of one, where its numbers come from,
//! and how good a solution is.
//!
//! A is n x n and B has a column for each right-hand side. Both are read from files, or made by seed, each part where
//! it is needed. How A is stored besides densely would come as another variant of [`Coefficients`].

mod arguments;
mod coefficients;
mod residual;
mod wide;

pub use arguments::SystemArguments;
pub(crate) use arguments::check_sides;
pub(crate) use coefficients::read;
pub use coefficients::{Coefficients, Generated, LinearSystem};
pub use residual::{Residual, residual};
pub use wide::{Wide, exponent, times_power_of_two};
