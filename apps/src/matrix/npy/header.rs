//! The header of a `.npy` file that holds a matrix.

use crate::matrix::element::Dtype;
use crate::matrix::lines::shortened;
use command::npy;

/// What the header says about the numbers that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: Dtype,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// Why a header's text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The text is no header.
    #[error(transparent)]
    Text(npy::HeaderError),
    /// Whole numbers.
    #[error("it holds integers ('{0}'): convert it with .astype('float64') before saving")]
    Integers(String),
    /// Another type than 32- and 64-bit floating point.
    #[error(
        "its numbers are '{0}', and only '<f4', '<f8', '>f4' and '>f8' can be read: convert it before saving"
    )]
    UnsupportedType(String),
    /// Neither a matrix nor a vector.
    #[error("it has {0} dimensions: only 2 (a matrix) and 1 (taken as a column) can be read")]
    Dimensions(usize),
    /// A side is 0.
    #[error("it is empty: its shape is {rows} x {cols}")]
    Empty {
        /// Rows it claims.
        rows: usize,
        /// Columns it claims.
        cols: usize,
    },
    /// Rows x columns x size is no number of bytes that a machine could have.
    #[error("its shape, {rows} x {cols}, is impossibly big")]
    TooBig {
        /// Rows it claims.
        rows: usize,
        /// Columns it claims.
        cols: usize,
    },
}

impl Header {
    /// Reads the dictionary, without prefix and length.
    pub(super) fn parse(text: &[u8]) -> Result<Self, HeaderError> {
        let npy::Header { descr, fortran_order, shape } = npy::Header::parse(text)?;
        let (dtype, big_endian) = number_type(descr)?;
        let (rows, cols) = match shape[..] {
            [rows, cols] => (rows, cols),
            [rows] => (rows, 1),
            _ => return Err(HeaderError::Dimensions(shape.len())),
        };
        let header = Self { dtype, big_endian, fortran_order, rows, cols };
        if rows == 0 || cols == 0 {
            return Err(HeaderError::Empty { rows, cols });
        }
        match header.data_bytes() {
            Some(_) => Ok(header),
            None => Err(HeaderError::TooBig { rows, cols }),
        }
    }

    /// Bytes of all numbers; none if they cannot be counted.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        data_bytes(self.rows, self.cols, self.dtype.size_bytes())
    }
}

impl From<npy::HeaderError> for HeaderError {
    fn from(error: npy::HeaderError) -> Self {
        match error {
            npy::HeaderError::Record => Self::UnsupportedType("a record of several fields".into()),
            error => Self::Text(error),
        }
    }
}

/// The bytes before the numbers of the type `descr` of a matrix.
pub(super) fn encode(descr: &str, rows: usize, cols: usize) -> Vec<u8> {
    let header = npy::Header { descr, fortran_order: false, shape: vec![rows, cols] };
    header.encode().expect("two numbers of 20 digits and fixed words are below 64 KiB")
}

/// Bytes of so many numbers of `size` bytes each; none if they cannot be counted.
pub(super) fn data_bytes(rows: usize, cols: usize, size: usize) -> Option<u64> {
    let bytes = rows.checked_mul(cols)?.checked_mul(size)?;
    // Offsets in files are signed 64-bit numbers to the operating system.
    i64::try_from(bytes).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

fn number_type(descr: &str) -> Result<(Dtype, bool), HeaderError> {
    match descr {
        "<f4" => Ok((Dtype::F32, false)),
        "<f8" => Ok((Dtype::F64, false)),
        // Without an order, and with `=`, the numbers are in that of the machine.
        "f4" | "=f4" => Ok((Dtype::F32, cfg!(target_endian = "big"))),
        "f8" | "=f8" => Ok((Dtype::F64, cfg!(target_endian = "big"))),
        ">f4" => Ok((Dtype::F32, true)),
        ">f8" => Ok((Dtype::F64, true)),
        _ if matches!(descr.trim_start_matches(['<', '>', '|', '=']).as_bytes(), [b'i' | b'u', ..]) => {
            Err(HeaderError::Integers(shortened(descr)))
        }
        _ => Err(HeaderError::UnsupportedType(shortened(descr))),
    }
}
