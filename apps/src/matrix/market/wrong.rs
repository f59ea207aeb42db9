//! What can be wrong with a line of a MatrixMarket file.

use crate::matrix::lines::{LineError, there_are};

/// What is wrong with a line of a MatrixMarket file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MarketLineError {
    /// The first line is not the format's banner.
    #[error("expected '%%MatrixMarket matrix <array|coordinate> <field> <symmetry>'")]
    Banner,
    /// A word of the banner means something that a dense real matrix cannot be.
    #[error("'{word}' cannot be read: {hint}")]
    Unsupported {
        /// The word in the banner.
        word: String,
        /// What can be read instead.
        hint: &'static str,
    },
    /// The number is NaN or beyond the range of 64-bit numbers.
    #[error("'{word}' is not a finite 64-bit number")]
    NotFinite {
        /// The word, or the number that duplicates add up to.
        word: String,
    },
    /// A position is not in the matrix.
    #[error("position ({row}, {col}) is outside the {rows} x {cols} matrix")]
    OutOfRange {
        /// Row in the file, from 1.
        row: u64,
        /// Column in the file, from 1.
        col: u64,
        /// Rows of the matrix.
        rows: u64,
        /// Columns of the matrix.
        cols: u64,
    },
    /// A symmetric file holds only the lower triangle, a skew-symmetric one not even the diagonal.
    #[error("position ({row}, {col}) is above what a {symmetry} file holds: only the lower triangle{}",
        if *.symmetry == "skew-symmetric" { " without the diagonal" } else { "" })]
    UpperTriangle {
        /// Row in the file, from 1.
        row: u64,
        /// Column in the file, from 1.
        col: u64,
        /// The word in the banner.
        symmetry: &'static str,
    },
    /// A symmetric matrix must be square.
    #[error("a {symmetry} matrix cannot be {rows} x {cols}")]
    NotSquare {
        /// Rows announced.
        rows: u64,
        /// Columns announced.
        cols: u64,
        /// The word in the banner.
        symmetry: &'static str,
    },
    /// A side is 0.
    #[error("the matrix is empty: {rows} x {cols}")]
    Empty {
        /// Rows announced.
        rows: u64,
        /// Columns announced.
        cols: u64,
    },
    /// The matrix as a dense one is bigger than allowed.
    #[error("a dense {rows} x {cols} matrix is bigger than the limit of {max_bytes} bytes")]
    TooBig {
        /// Rows announced.
        rows: u64,
        /// Columns announced.
        cols: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The matrix as a sparse one is bigger than allowed.
    #[error(
        "a sparse {rows} x {cols} matrix of {entries} entries is bigger than the limit of {max_bytes} bytes, or of 2^32 - 1 rows"
    )]
    SparseTooBig {
        /// Rows announced.
        rows: u64,
        /// Columns announced.
        cols: u64,
        /// Entries, those that symmetry adds included.
        entries: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The file lists all numbers, so that it holds a dense matrix.
    #[error("the file holds a dense matrix ('array'), where a sparse one ('coordinate') is needed")]
    NotSparse,
    /// The file cannot have as many entries as it says, or has other ones.
    #[error("{} announced, but the file has {}{got}",
        there_are(*.expected, "entry", "entries"), if *.got > *.expected { "at least " } else { "" })]
    Count {
        /// Entries announced.
        expected: u64,
        /// Entries found so far.
        got: u64,
    },
    /// More entries are announced than the file has room for.
    #[error("{expected} entries are announced, more than {file_bytes} bytes can hold")]
    Impossible {
        /// Entries announced.
        expected: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// What can be wrong with a line of any format.
    #[error(transparent)]
    Line(#[from] LineError),
}
