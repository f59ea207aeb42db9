//! Writing `.npy` files.

use super::header;
use crate::matrix::dense::Matrix;
use crate::matrix::element::Element;
use command::Replacement;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes written at once where rows have to be brought into the file's byte order.
const CHUNK_BYTES: usize = 256 * 1024;

/// Why a `.npy` file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyWriteError {
    /// The operating system refused.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The matrix is empty or has more bytes than a file can.
    #[error("cannot write {}: a file cannot hold a {rows} x {cols} matrix", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
    },
    /// Blocks are missing, or some were written twice.
    #[error("{} was not written: {written} of {expected} numbers were given", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// Numbers given.
        written: u64,
        /// Numbers of the matrix.
        expected: u64,
    },
}

/// A number that a `.npy` file can be written with; only floating-point ones are read back as matrices.
pub trait NpyNumber: bytemuck::Pod {
    /// Its type, as numpy names the little-endian one.
    const DESCR: &'static str;
}

macro_rules! npy_numbers {
    ($($number:ty, $descr:literal;)*) => { $(
        impl NpyNumber for $number {
            const DESCR: &'static str = $descr;
        }
    )* };
}
npy_numbers! {
    f32, "<f4";
    f64, "<f8";
    i32, "<i4";
    i64, "<i8";
}

/// A `.npy` file in the making, filled by blocks in any order.
///
/// It is written beside the target and takes its name in [`finish`](Self::finish); dropped before, it is
/// removed. Not synced to disk: a power cut right afterwards may lose it, an interrupted run does not.
#[derive(Debug)]
pub struct NpyWriter<T> {
    replacement: Replacement,
    path: PathBuf,
    rows: usize,
    cols: usize,
    data_start: u64,
    written: u64,
    element: PhantomData<T>,
}

impl<T: NpyNumber> NpyWriter<T> {
    /// Creates the file for a matrix of this shape, version 1.0, little-endian, C order.
    ///
    /// # Errors
    /// If the matrix is empty or too big, or the file cannot be created.
    pub fn create(path: impl AsRef<Path>, rows: usize, cols: usize) -> Result<Self, NpyWriteError> {
        let path = path.as_ref().to_owned();
        let bytes = header::encode(T::DESCR, rows, cols);
        let data_start = bytes.len() as u64;
        let total =
            header::data_bytes(rows, cols, size_of::<T>()).and_then(|data| data.checked_add(data_start));
        let Some(total) = total.filter(|_| rows > 0 && cols > 0) else {
            return Err(NpyWriteError::Shape { path, rows, cols });
        };
        let io = |source| NpyWriteError::Io { path: path.clone(), source };
        let replacement = Replacement::create(&path).map_err(io)?;
        // The length first: a full disk is not noticed by it, but a file limit is, before any work is done.
        replacement.file().set_len(total).map_err(io)?;
        replacement.file().write_all_at(&bytes, 0).map_err(io)?;
        Ok(Self { replacement, path, rows, cols, data_start, written: 0, element: PhantomData })
    }

    /// Writes whole rows, beginning with row `first`.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// # Panics
    /// If `values` are not whole rows or do not lie within the matrix.
    pub fn write_rows(&mut self, first: usize, values: &[T]) -> Result<(), NpyWriteError> {
        assert!(values.len().is_multiple_of(self.cols), "{} numbers in rows of {}", values.len(), self.cols);
        self.write_block(first..first + values.len() / self.cols, 0..self.cols, values)
    }

    /// Writes a row-major block into its place.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// # Panics
    /// If the block does not lie within the matrix or has another number of elements than the ranges.
    pub fn write_block(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        values: &[T],
    ) -> Result<(), NpyWriteError> {
        assert!(rows.end <= self.rows && cols.end <= self.cols, "block {rows:?} x {cols:?}");
        assert_eq!(values.len(), rows.len() * cols.len(), "block of {rows:?} x {cols:?}");
        if values.is_empty() {
            return Ok(());
        }
        if cols.len() == self.cols {
            self.write_run(rows.start * self.cols, values)?;
        } else {
            for (i, row) in rows.zip(values.chunks_exact(cols.len())) {
                self.write_run(i * self.cols + cols.start, row)?;
            }
        }
        self.written += values.len() as u64;
        Ok(())
    }

    /// Completes the file and gives it its name, replacing an older one.
    ///
    /// Numbers are counted, not places: a block written twice in place of another one is not noticed.
    ///
    /// # Errors
    /// If not as many numbers were written as the matrix has, or renaming fails; no file is left then.
    pub fn finish(self) -> Result<(), NpyWriteError> {
        let expected = self.rows as u64 * self.cols as u64;
        if self.written != expected {
            return Err(NpyWriteError::Incomplete { path: self.path, written: self.written, expected });
        }
        let path = self.path;
        self.replacement.commit().map_err(|source| NpyWriteError::Io { path, source })
    }

    /// Writes numbers that lie one after the other in the file, beginning with number `first` of the matrix.
    fn write_run(&self, first: usize, values: &[T]) -> Result<(), NpyWriteError> {
        let offset = self.data_start + first as u64 * size_of::<T>() as u64;
        let done = if cfg!(target_endian = "little") {
            self.replacement.file().write_all_at(bytemuck::cast_slice(values), offset)
        } else {
            self.write_swapped(offset, values)
        };
        done.map_err(|source| NpyWriteError::Io { path: self.path.clone(), source })
    }

    fn write_swapped(&self, mut offset: u64, values: &[T]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        for chunk in values.chunks(CHUNK_BYTES / size_of::<T>()) {
            bytes.clear();
            for value in chunk {
                bytes.extend(bytemuck::bytes_of(value).iter().rev());
            }
            self.replacement.file().write_all_at(&bytes, offset)?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }
}

/// Writes a whole matrix in its own number type.
///
/// # Errors
/// As for [`NpyWriter::create`], [`NpyWriter::write_rows`] and [`NpyWriter::finish`].
pub fn write<T: Element>(path: impl AsRef<Path>, matrix: &Matrix<T>) -> Result<(), NpyWriteError> {
    let mut writer = NpyWriter::create(path, matrix.rows(), matrix.cols())?;
    writer.write_rows(0, matrix.values())?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path for big-endian machines, run here: its bytes are those of this machine, reversed.
    #[test]
    fn swapped_writing_reverses_every_number() {
        let dir = tempfile::tempdir().unwrap();
        let writer = NpyWriter::<f64>::create(dir.path().join("m.npy"), 300, 300).unwrap();
        let values: Vec<f64> = (0..90_000).map(f64::from).collect();
        writer.write_swapped(writer.data_start, &values).unwrap();
        let mut bytes = [0; 8];
        writer.replacement.file().read_exact_at(&mut bytes, writer.data_start + 8 * 89_999).unwrap();
        let same = f64::from_ne_bytes(bytes).to_bits().swap_bytes();
        assert_eq!(same, 89_999.0f64.to_bits());
    }
}
