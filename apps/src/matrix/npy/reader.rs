//! Reading `.npy` files.

use super::header::{Header, HeaderError};
use crate::matrix::dense::Matrix;
use crate::matrix::element::{Dtype, Element};
use command::npy::{MAGIC, PREFIX_BYTES};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Real headers have about a hundred bytes, and numpy itself refuses more than 10,000 unless told otherwise.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Bytes read at once: enough for a disk's full speed, little enough to stay in the cache.
const CHUNK_BYTES: usize = 256 * 1024;

/// Why a `.npy` file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyReadError {
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The first bytes are other ones.
    #[error("{} is not a .npy file: it does not begin with \\x93NUMPY", path.display())]
    NotNpy {
        /// The file.
        path: PathBuf,
    },
    /// A version that did not exist when this was written.
    #[error("{} is in version {major}.{minor} of the format: only 1.0, 2.0 and 3.0 can be read", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// First number of the version.
        major: u8,
        /// Second number of the version.
        minor: u8,
    },
    /// The header claims to be longer than the file, or than any real one.
    #[error(
        "the header of {} claims {claimed} bytes, but {available} are left in the file and {HEADER_BYTES_MAX} are allowed",
        path.display()
    )]
    HeaderLength {
        /// The file.
        path: PathBuf,
        /// Bytes the header claims to have.
        claimed: u64,
        /// Bytes that follow.
        available: u64,
    },
    /// The header is wrong, or describes something that is no matrix of floating-point numbers.
    #[error("the header of {} cannot be used: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: HeaderError,
    },
    /// The file is shorter or longer than its header says.
    #[error(
        "{} has {actual} bytes, but its header ({rows} x {cols} of {dtype}) needs exactly {expected}",
        path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Rows in the header.
        rows: usize,
        /// Columns in the header.
        cols: usize,
        /// Number type in the header.
        dtype: Dtype,
        /// Bytes it should have.
        expected: u64,
        /// Bytes it has.
        actual: u64,
    },
    /// There is not enough memory for the rows asked for.
    #[error("not enough memory for {rows} rows of {}: read it on more nodes or in smaller blocks", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// Rows asked for.
        rows: usize,
    },
}

/// An open `.npy` file whose header and length have been checked.
///
/// Reading does not move a position, so several threads may read through one reader.
#[derive(Debug)]
pub struct NpyReader {
    file: File,
    path: PathBuf,
    header: Header,
    data_start: u64,
}

impl NpyReader {
    /// Opens a file and checks header and length; reads no numbers yet.
    ///
    /// # Errors
    /// If the file cannot be read, is no `.npy` file, holds no matrix or vector of 32- or 64-bit floating
    /// point, or is not exactly as long as its header says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NpyReadError> {
        let path = path.as_ref().to_owned();
        let io = |source| NpyReadError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(io)?;
        let actual = file.metadata().map_err(io)?.len();
        let (text_start, text_len) = text_place(&file, &path, actual)?;
        let available = actual.saturating_sub(text_start);
        let too_long = || NpyReadError::HeaderLength { path: path.clone(), claimed: text_len, available };
        let len =
            usize::try_from(text_len).ok().filter(|&len| len <= HEADER_BYTES_MAX && text_len <= available);
        let mut text = vec![0; len.ok_or_else(too_long)?];
        file.read_exact_at(&mut text, text_start).map_err(io)?;
        let wrong = |source| NpyReadError::Header { path: path.clone(), source };
        let header = Header::parse(&text).map_err(wrong)?;
        let data_start = text_start + text_len;
        let Header { rows, cols, dtype, .. } = header;
        let too_big = || wrong(HeaderError::TooBig { rows, cols });
        let expected =
            header.data_bytes().and_then(|bytes| bytes.checked_add(data_start)).ok_or_else(too_big)?;
        if expected != actual {
            return Err(NpyReadError::Length { path, rows, cols, dtype, expected, actual });
        }
        Ok(Self { file, path, header, data_start })
    }

    /// Rows of the matrix; of a vector, its length.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.header.rows
    }

    /// Columns of the matrix; of a vector, 1.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.header.cols
    }

    /// The type of the numbers in the file.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.header.dtype
    }

    /// Bytes of all numbers in the file.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        // No overflow: the file is longer than that.
        self.rows() as u64 * self.cols() as u64 * self.dtype().size_bytes() as u64
    }

    /// Some rows, row-major, as `T`; numbers of another type in the file are rounded to the nearest.
    ///
    /// Needs memory for these rows and some hundred kilobytes more. A file in Fortran order is read column by
    /// column, with one access per column.
    ///
    /// # Errors
    /// If the file cannot be read any more, or there is not enough memory.
    ///
    /// # Panics
    /// If the range is not within the matrix.
    pub fn read_rows<T: Element>(&self, rows: Range<usize>) -> Result<Vec<T>, NpyReadError> {
        assert!(rows.start <= rows.end && rows.end <= self.rows(), "rows {rows:?} of {}", self.rows());
        let memory = || NpyReadError::Memory { path: self.path.clone(), rows: rows.len() };
        // No overflow: the whole matrix is as long as a real file.
        let len = rows.len() * self.cols();
        let mut values = bytemuck::allocation::try_zeroed_vec::<T>(len).map_err(|()| memory())?;
        if !self.header.fortran_order {
            let start = rows.start * self.cols();
            self.read_run(start, len, |at, value| values[at] = value)?;
        } else {
            for j in 0..self.cols() {
                let start = j * self.rows() + rows.start;
                self.read_run(start, rows.len(), |at, value| values[at * self.cols() + j] = value)?;
            }
        }
        Ok(values)
    }

    /// The whole matrix; numbers of the other type are rounded to the nearest as they are read, and take no memory.
    ///
    /// # Errors
    /// As for [`read_rows`](Self::read_rows).
    pub fn read_all<T: Element>(&self) -> Result<Matrix<T>, NpyReadError> {
        let values = self.read_rows(0..self.rows())?;
        Ok(Matrix::from_vec(self.rows(), self.cols(), values).expect("all rows were read"))
    }

    /// Gives `put` the numbers that lie one after the other in the file, each with its place from 0.
    fn read_run<T: Element>(
        &self,
        first: usize,
        count: usize,
        put: impl FnMut(usize, T),
    ) -> Result<(), NpyReadError> {
        match (self.header.dtype, self.header.big_endian) {
            (Dtype::F32, false) => self.decode_run(first, count, |b| f32::from_le_bytes(b).to_f64(), put),
            (Dtype::F32, true) => self.decode_run(first, count, |b| f32::from_be_bytes(b).to_f64(), put),
            (Dtype::F64, false) => self.decode_run(first, count, f64::from_le_bytes, put),
            (Dtype::F64, true) => self.decode_run(first, count, f64::from_be_bytes, put),
        }
    }

    fn decode_run<T: Element, const SIZE: usize>(
        &self,
        first: usize,
        count: usize,
        decode: impl Fn([u8; SIZE]) -> f64,
        mut put: impl FnMut(usize, T),
    ) -> Result<(), NpyReadError> {
        let mut chunk = vec![0; CHUNK_BYTES.min(count * SIZE)];
        let mut done = 0;
        while done < count {
            let bytes = &mut chunk[..((count - done) * SIZE).min(CHUNK_BYTES)];
            let offset = self.data_start + ((first + done) * SIZE) as u64;
            self.file
                .read_exact_at(bytes, offset)
                .map_err(|source| NpyReadError::Io { path: self.path.clone(), source })?;
            for number in bytes.as_chunks::<SIZE>().0 {
                put(done, T::from_f64(decode(*number)));
                done += 1;
            }
        }
        Ok(())
    }
}

/// Where the header's text begins and how long it claims to be.
fn text_place(file: &File, path: &Path, file_bytes: u64) -> Result<(u64, u64), NpyReadError> {
    let path = || path.to_owned();
    let read = |bytes: &mut [u8], at: usize| {
        let (start, end) = (at as u64, (at + bytes.len()) as u64);
        if end > file_bytes {
            return Err(NpyReadError::HeaderLength {
                path: path(),
                claimed: end,
                available: file_bytes.saturating_sub(start),
            });
        }
        file.read_exact_at(bytes, start).map_err(|source| NpyReadError::Io { path: path(), source })
    };
    let mut prefix = [0; PREFIX_BYTES];
    if file_bytes < PREFIX_BYTES as u64 {
        return Err(NpyReadError::NotNpy { path: path() });
    }
    read(&mut prefix, 0)?;
    if prefix[..MAGIC.len()] != MAGIC {
        return Err(NpyReadError::NotNpy { path: path() });
    }
    match (prefix[6], prefix[7]) {
        (1, 0) => {
            let mut len = [0; 2];
            read(&mut len, PREFIX_BYTES)?;
            Ok((PREFIX_BYTES as u64 + 2, u16::from_le_bytes(len).into()))
        }
        (2 | 3, 0) => {
            let mut len = [0; 4];
            read(&mut len, PREFIX_BYTES)?;
            Ok((PREFIX_BYTES as u64 + 4, u32::from_le_bytes(len).into()))
        }
        (major, minor) => Err(NpyReadError::Version { path: path(), major, minor }),
    }
}

/// Reads a whole matrix from a file, as [`NpyReader::read_all`].
///
/// # Errors
/// As for [`NpyReader::open`] and [`NpyReader::read_rows`].
pub fn read<T: Element>(path: impl AsRef<Path>) -> Result<Matrix<T>, NpyReadError> {
    NpyReader::open(path)?.read_all()
}
