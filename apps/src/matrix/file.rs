//! Reading a matrix from a file of either kind, told apart by its name.

use super::dense::AnyMatrix;
use super::market::{self, MarketReadError};
use super::npy::{NpyReadError, NpyReader};
use std::path::{Path, PathBuf};

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
    /// The matrix is bigger than allowed.
    #[error("{} has {bytes} bytes of numbers, more than the limit of {max_bytes}", path.display())]
    TooBig {
        /// The file.
        path: PathBuf,
        /// Bytes of the matrix.
        bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
}

/// Reads a `.npy` or `.mtx` file into a matrix of at most `max_bytes` bytes; MatrixMarket gives 64-bit numbers.
///
/// # Errors
/// If the name ends in neither, the file cannot be read or is wrong, or the matrix is bigger than the limit.
pub fn read(path: impl AsRef<Path>, max_bytes: u64) -> Result<AnyMatrix, ReadError> {
    let path = path.as_ref();
    let ends_in = |kind: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(kind));
    if ends_in("npy") {
        let reader = NpyReader::open(path)?;
        let bytes = reader.data_bytes();
        if bytes > max_bytes {
            return Err(ReadError::TooBig { path: path.to_owned(), bytes, max_bytes });
        }
        Ok(reader.read_all()?)
    } else if ends_in("mtx") {
        Ok(market::read(path, max_bytes)?.into())
    } else {
        Err(ReadError::UnknownKind { path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Matrix, npy};

    #[test]
    fn the_name_decides_how_a_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let matrix = Matrix::from_vec(1, 2, vec![0.5f64, 2.0]).unwrap();
        let paths = [dir.path().join("a.NPY"), dir.path().join("a.mtx"), dir.path().join("a.txt")];
        npy::write(&paths[0], &matrix).unwrap();
        market::write(&paths[1], &matrix).unwrap();
        for path in &paths[..2] {
            assert_eq!(read(path, 16).unwrap(), AnyMatrix::F64(matrix.clone()));
            let message = read(path, 15).unwrap_err().to_string();
            assert!(message.contains("limit of 15"), "{message}");
        }
        assert!(matches!(read(&paths[2], 16), Err(ReadError::UnknownKind { .. })));
    }
}
