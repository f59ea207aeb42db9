//! Matrices, dense and sparse, and where they come from: `.npy` files, MatrixMarket files, and a generator by seed.
//!
//! A dense matrix is row-major numbers in one plain vector. How they travel between nodes is not decided here.

mod block;
mod dense;
mod element;
mod file;
pub mod generate;
pub(crate) mod lines;
pub mod market;
pub mod npy;
mod sparse;

pub use block::{Piece, Real, generated, part, zeros};
pub use dense::{Matrix, ShapeError, bounds};
pub use element::{Dtype, Element, UnknownDtype};
pub use file::{Heading, ReadError, WriteError, read, write};
pub use lines::{LineError, TextError};
pub(crate) use sparse::span;
pub use sparse::{Csr, SIDE_MAX as SPARSE_SIDE_MAX, Triplet};
