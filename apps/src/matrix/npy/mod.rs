//! Numpy's `.npy` files, read and written by blocks of rows so that a big matrix is never twice in memory.
//!
//! Read: versions 1.0, 2.0 and 3.0, 32- and 64-bit floating point in both byte orders, C and Fortran order,
//! two dimensions or one (taken as a column). Written: version 1.0, little-endian, C order; whole
//! numbers of 32 and 64 bits too. Crates for the format read one number after the other
//! or an array of one type as a whole, and bring a parser generator along for the header.

mod header;
mod reader;
mod writer;

pub use header::HeaderError;
pub use reader::{NpyReadError, NpyReader, read};
pub use writer::{NpyNumber, NpyWriteError, NpyWriter, write};

#[cfg(test)]
mod tests;
