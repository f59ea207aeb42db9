//! MatrixMarket files: text, `array` or `coordinate`, read into a dense or a sparse matrix.
//!
//! Source: Boisvert, Pozo, Remington: "The Matrix Market Exchange Formats: Initial Design", NISTIR 5935, 1996.
//! Read: real, integer and pattern numbers; general, symmetric and skew-symmetric. Entries that a coordinate
//! file names twice are added, as its readers do. Written: `array real general`.

mod banner;
mod parse;
mod wrong;

use super::dense::Matrix;
use super::element::Element;
use super::lines::TextError;
use super::sparse::Csr;
use command::Replacement;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

pub use parse::MarketEntry;
pub use wrong::MarketLineError;

/// Why a MatrixMarket file could not be read.
pub type MarketReadError = TextError<MarketLineError>;

/// Reads a file into a dense matrix of at most `max_bytes` bytes.
///
/// The limit is needed because a few lines of a coordinate file can ask for any size.
///
/// # Errors
/// If the file cannot be read, is no MatrixMarket file of the kinds above, or the matrix would be bigger than
/// the limit; with the number of the line.
pub fn read(path: impl AsRef<Path>, max_bytes: u64) -> Result<Matrix<f64>, MarketReadError> {
    open(path.as_ref(), |file, file_bytes| parse::matrix(file, file_bytes, max_bytes))
}

/// Reads a coordinate file into a sparse matrix whose rows and entries take at most `max_bytes` bytes.
///
/// Memory is taken for rows and entries, not for places without an entry; about twice that while it is read.
///
/// # Errors
/// If the file cannot be read, is no coordinate file of the kinds above, or the matrix would be bigger than the
/// limit; with the number of the line.
pub fn read_sparse(path: impl AsRef<Path>, max_bytes: u64) -> Result<Csr<f64>, MarketReadError> {
    open(path.as_ref(), |file, file_bytes| parse::sparse(file, file_bytes, max_bytes))
}

/// How many entries the matrix in a file has, those that symmetry adds included, if the file lists them one by one
/// with their places (`coordinate`); `None` if it is dense. Only the beginning is read.
///
/// # Errors
/// If the file cannot be read or does not begin as a MatrixMarket file of the kinds above.
pub fn entry_count(path: impl AsRef<Path>) -> Result<Option<u64>, MarketReadError> {
    open(path.as_ref(), parse::entry_count)
}

/// Whether the beginning of a file promises whole numbers only, as `integer` and `pattern` do.
///
/// # Errors
/// If the file cannot be read or does not begin as a MatrixMarket file of the kinds above; with the number of
/// the line.
pub fn is_whole(path: impl AsRef<Path>) -> Result<bool, MarketReadError> {
    open(path.as_ref(), parse::is_whole)
}

/// Rows and columns of the matrix in a file, of which only the beginning is read.
///
/// # Errors
/// If the file cannot be read or does not begin as a MatrixMarket file of the kinds above; with the number of
/// the line.
pub fn sides(path: impl AsRef<Path>) -> Result<[u64; 2], MarketReadError> {
    open(path.as_ref(), parse::sides)
}

/// Gives all entries of a file in its order, and behind each the one that symmetry adds; keeps none of them, so that
/// a sparse matrix can be made that is far too big for a dense one.
///
/// # Errors
/// If the file cannot be read or is no MatrixMarket file of the kinds above; with the number of the line.
pub fn entries(path: impl AsRef<Path>, take: impl FnMut(MarketEntry)) -> Result<(), MarketReadError> {
    open(path.as_ref(), |file, file_bytes| parse::entries(file, file_bytes, take))
}

/// Reads a file of so many bytes with `read`.
fn open<T>(
    path: &Path,
    read: impl FnOnce(BufReader<File>, u64) -> Result<T, parse::Wrong>,
) -> Result<T, MarketReadError> {
    let io = |source| MarketReadError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let file_bytes = file.metadata().map_err(io)?.len();
    read(BufReader::with_capacity(256 * 1024, file), file_bytes).map_err(|wrong| wrong.of(path))
}

/// Why a MatrixMarket file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarketWriteError {
    /// The operating system refused.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The format has no infinities and no NaN.
    #[error("cannot write {}: element ({row}, {col}), counted from 1, is {value}: write .npy instead", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        col: usize,
        /// The element.
        value: f64,
    },
}

/// Writes a matrix as `array real general`, with as many digits as reading it back exactly needs.
///
/// It is written beside the target and takes its name when it is complete.
///
/// # Errors
/// If the file cannot be written, or an element is not finite; an older file stays then.
pub fn write<T: Element>(path: impl AsRef<Path>, matrix: &Matrix<T>) -> Result<(), MarketWriteError> {
    let path = path.as_ref();
    let io = |source| MarketWriteError::Io { path: path.to_owned(), source };
    let (rows, cols) = matrix.shape();
    if let Some(at) = matrix.values().iter().position(|value| !value.to_f64().is_finite()) {
        let value = matrix.values()[at].to_f64();
        return Err(MarketWriteError::NotFinite {
            path: path.to_owned(),
            row: at / cols + 1,
            col: at % cols + 1,
            value,
        });
    }
    let text = |out: &mut dyn Write| {
        writeln!(out, "%%MatrixMarket matrix array real general\n{rows} {cols}")?;
        let by_columns = (0..cols).flat_map(|j| (0..rows).map(move |i| i * cols + j));
        by_columns.map(|at| matrix.values()[at]).try_for_each(|value| writeln!(out, "{value:e}"))
    };
    Replacement::write(path, text).map_err(io)
}

#[cfg(test)]
mod tests;
