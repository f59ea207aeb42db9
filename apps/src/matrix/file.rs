//! Reading and writing a matrix in a file of either kind, told apart by its name.

use super::dense::{Matrix, ShapeError};
use super::element::{Dtype, Element};
use super::market::{self, MarketReadError, MarketWriteError};
use super::npy::{self, NpyReadError, NpyReader, NpyWriteError};
use std::path::{Path, PathBuf};

/// Most bytes of a matrix that was written as text: of few entries, it may need far more memory than its text.
const TEXT_BYTES_MAX: u64 = 64 << 30;

/// Why a matrix could not be read from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A `.npy` file.
    #[error(transparent)]
    Npy(#[from] NpyReadError),
    /// A `.mtx` file.
    #[error(transparent)]
    Market(#[from] MarketReadError),
    /// The name does not say what the file is.
    #[error("cannot tell what {} is by its name: it must end in .npy (numpy) or .mtx (MatrixMarket)", path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
    },
    /// The matrix is too long for this machine's addresses.
    #[error("{} is {rows} x {cols}, more than this machine can address", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: u64,
        /// Its columns.
        cols: u64,
    },
    /// There is no memory to turn a `.mtx` file's 64-bit numbers into others.
    #[error("{}: {source}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        source: ShapeError,
    },
}

/// The kinds of files.
enum Kind {
    Npy,
    Market,
}

impl Kind {
    fn of(path: &Path) -> Result<Self, ReadError> {
        let ends_in =
            |kind: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(kind));
        match () {
            () if ends_in("npy") => Ok(Self::Npy),
            () if ends_in("mtx") => Ok(Self::Market),
            () => Err(ReadError::UnknownKind { path: path.to_owned() }),
        }
    }
}

/// Reads a `.npy` or `.mtx` file into a matrix of `T`; numbers of another type are rounded to the nearest. Those of a
/// `.npy` file take no memory beside the matrix. Those of a `.mtx` file take 64 bits each until all are read, and 64 GiB
/// at most.
///
/// # Errors
/// If the name ends in neither, or the file cannot be read, is wrong, or is too big.
pub fn read<T: Element>(path: impl AsRef<Path>) -> Result<Matrix<T>, ReadError> {
    let path = path.as_ref();
    match Kind::of(path)? {
        Kind::Npy => Ok(npy::read(path)?),
        Kind::Market => market::read(path, TEXT_BYTES_MAX)?
            .into_typed()
            .map_err(|source| ReadError::Memory { path: path.to_owned(), source }),
    }
}

/// Why a matrix could not be written to a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A `.npy` file.
    #[error(transparent)]
    Npy(#[from] NpyWriteError),
    /// A `.mtx` file.
    #[error(transparent)]
    Market(#[from] MarketWriteError),
}

/// Writes a matrix as MatrixMarket text if the name ends in `.mtx`, else as `.npy`.
///
/// # Errors
/// If the file cannot be written; an older one stays then.
pub fn write<T: Element>(path: impl AsRef<Path>, matrix: &Matrix<T>) -> Result<(), WriteError> {
    let path = path.as_ref();
    match Kind::of(path) {
        Ok(Kind::Market) => Ok(market::write(path, matrix)?),
        Ok(Kind::Npy) | Err(_) => Ok(npy::write(path, matrix)?),
    }
}

/// What the beginning of a file says of its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Type of its numbers; of text, f64.
    pub dtype: Dtype,
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
}

impl Heading {
    /// Reads the beginning of a `.npy` or `.mtx` file.
    ///
    /// # Errors
    /// If the name ends in neither, the file cannot be read, or its beginning is wrong.
    pub fn of(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        match Kind::of(path)? {
            Kind::Npy => {
                let file = NpyReader::open(path)?;
                Ok(Self { dtype: file.dtype(), rows: file.rows(), cols: file.cols() })
            }
            Kind::Market => {
                let [rows, cols] = market::sides(path)?;
                let too_long = |_| ReadError::TooLong { path: path.to_owned(), rows, cols };
                let side = |side| usize::try_from(side).map_err(too_long);
                Ok(Self { dtype: Dtype::F64, rows: side(rows)?, cols: side(cols)? })
            }
        }
    }

    /// What the beginnings of two files say, if both are given and can be read.
    #[must_use]
    pub fn of_both(a: Option<&Path>, b: Option<&Path>) -> Option<[Self; 2]> {
        Some([Self::of(a?).ok()?, Self::of(b?).ok()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn the_name_decides_how_a_file_is_written_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let matrix = Matrix::from_vec(1, 2, vec![0.5f64, 2.0]).unwrap();
        let paths = [dir.path().join("a.NPY"), dir.path().join("a.mtx"), dir.path().join("a.txt")];
        paths.iter().for_each(|path| write(path, &matrix).unwrap());
        assert!(std::fs::read(&paths[1]).unwrap().starts_with(b"%%MatrixMarket"));
        assert_eq!(std::fs::read(&paths[2]).unwrap(), std::fs::read(&paths[0]).unwrap());
        for path in &paths[..2] {
            assert_eq!(read::<f64>(path).unwrap(), matrix);
            assert_eq!(read::<f32>(path).unwrap(), matrix.convert().unwrap());
            assert_eq!(Heading::of(path).unwrap(), Heading { dtype: Dtype::F64, rows: 1, cols: 2 });
        }
        assert!(matches!(read::<f64>(&paths[2]), Err(ReadError::UnknownKind { .. })));
        assert!(matches!(Heading::of(&paths[2]), Err(ReadError::UnknownKind { .. })));
    }
}
