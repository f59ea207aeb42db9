//! Dense matrices and where they come from: `.npy` files, MatrixMarket files, and a generator by seed.
//!
//! A matrix is row-major numbers in one plain vector. How they travel between nodes is not decided here.

mod block;
mod dense;
mod element;
mod file;
pub mod generate;
pub mod market;
pub mod npy;

pub use block::{Piece, Real, generated, part, zeros};
pub use dense::{AnyMatrix, Matrix, ShapeError, bounds};
pub use element::{Dtype, Element, UnknownDtype};
pub use file::{Heading, ReadError, read};
