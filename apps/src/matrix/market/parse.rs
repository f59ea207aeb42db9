//! From lines to a matrix.

use crate::matrix::dense::Matrix;
use crate::matrix::lines::{self, LINE_BYTES_MAX, LineError};
use crate::matrix::sparse::{Csr, SIDE_MAX, Triplet};
use std::io::{self, BufRead};

/// What is wrong with a line of a MatrixMarket file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MarketLineError {
    /// The first line is not the format's banner.
    #[error("expected '%%MatrixMarket matrix <array|coordinate> <field> <symmetry>'")]
    Banner,
    /// A word of the banner means something that a dense real matrix cannot be.
    #[error("'{word}' cannot be read: {mend}")]
    Unsupported {
        /// The word in the banner.
        word: String,
        /// What can be read instead.
        mend: &'static str,
    },
    /// The line does not have as many words as it needs.
    #[error("expected {expected}, got {got} words")]
    Words {
        /// What belongs there.
        expected: &'static str,
        /// Words in the line.
        got: usize,
    },
    /// A word is no number of the announced kind.
    #[error("'{word}' is not {expected}")]
    Number {
        /// The word.
        word: String,
        /// What belongs there.
        expected: &'static str,
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
    #[error("{expected} entries are announced, but the file has {}{got}", if *.got > *.expected { "at least " } else { "" })]
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
    /// The line does not end.
    #[error("the line is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The line is not text.
    #[error("the line is not UTF-8 text")]
    NotText,
}

use MarketLineError as Bad;

/// What went wrong, and in which line.
#[derive(Debug)]
pub(super) enum Wrong {
    Io(io::Error),
    Line(u64, MarketLineError),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

impl Symmetry {
    fn word(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::Skew => "skew-symmetric",
        }
    }
}

struct Banner {
    coordinate: bool,
    field: Field,
    symmetry: Symmetry,
}

/// Reads no further than to the sides, rows and columns; `file_bytes` bounds what the file can announce.
pub(super) fn sides(source: impl BufRead, file_bytes: u64) -> Result<[u64; 2], Wrong> {
    let mut lines = Lines::new(source);
    Ok(head(&mut lines, file_bytes, u64::MAX)?.1)
}

/// Reads no further than to the size line: entries of a coordinate file, with those that symmetry adds.
pub(super) fn entry_count(source: impl BufRead, file_bytes: u64) -> Result<Option<u64>, Wrong> {
    let mut lines = Lines::new(source);
    let (banner, _, count) = head(&mut lines, file_bytes, u64::MAX)?;
    Ok(banner.coordinate.then(|| banner.symmetry.entries(count)))
}

/// Reads a whole coordinate file; `file_bytes` bounds what it can announce, `max_bytes` what is allocated.
pub(super) fn sparse(source: impl BufRead, file_bytes: u64, max_bytes: u64) -> Result<Csr<f64>, Wrong> {
    let mut lines = Lines::new(source);
    let (banner, [rows, cols], count) = head(&mut lines, file_bytes, u64::MAX)?;
    if !banner.coordinate {
        return Err(Wrong::Line(1, Bad::NotSparse));
    }
    let entries = banner.symmetry.entries(count);
    // While it is read an entry takes 16 bytes and 12 more later, a row 8 bytes twice.
    let bytes = entries.saturating_mul(28).saturating_add(rows.saturating_mul(16));
    let too_big = Bad::SparseTooBig { rows, cols, entries, max_bytes };
    if bytes > max_bytes || rows.max(cols) > SIDE_MAX {
        return Err(lines.wrong(too_big));
    }
    let (row_count, col_count) = (usize::try_from(rows), usize::try_from(cols));
    let (Ok(row_count), Ok(col_count)) = (row_count, col_count) else { return Err(lines.wrong(too_big)) };
    // Grows with what really comes.
    let mut triplets: Vec<Triplet<f64>> = Vec::new();
    each_entry(&mut lines, &banner, [rows, cols], count, |place, value, _| {
        let index = |from_one: u64| u32::try_from(from_one - 1).expect("sides are checked to be 32 bits");
        let keep = |(row, col), value| triplets.push((index(row), index(col), value));
        banner.symmetry.both(place, value, keep)
    })?;
    let matrix = Csr::from_triplets(row_count, col_count, &triplets);
    if matrix.is_finite() {
        Ok(matrix)
    } else {
        Err(lines.wrong(Bad::NotFinite { word: "a sum of duplicates".into() }))
    }
}

/// The banner, the sides and how many lines of entries follow.
fn head(
    lines: &mut Lines<impl BufRead>,
    file_bytes: u64,
    max_bytes: u64,
) -> Result<(Banner, [u64; 2], u64), Wrong> {
    let banner = match lines.next_any()? {
        Some(text) => Banner::parse(text),
        None => Err(Bad::Banner),
    };
    let banner = banner.map_err(|bad| Wrong::Line(1, bad))?;
    let Some(text) = lines.next_data()? else {
        let expected = if banner.coordinate { "rows, columns and entries" } else { "rows and columns" };
        return Err(lines.wrong(Bad::Words { expected, got: 0 }));
    };
    let (sides, count) = size_line(text, &banner, file_bytes, max_bytes).map_err(|bad| lines.wrong(bad))?;
    Ok((banner, sides, count))
}

/// Reads a whole file; `file_bytes` bounds what it can announce, `max_bytes` what is allocated.
pub(super) fn matrix(source: impl BufRead, file_bytes: u64, max_bytes: u64) -> Result<Matrix<f64>, Wrong> {
    let mut lines = Lines::new(source);
    let (banner, sides, count) = head(&mut lines, file_bytes, max_bytes)?;
    let [rows, cols] = sides;
    let too_big = Bad::TooBig { rows, cols, max_bytes };
    let dense = usize::try_from(rows).ok().zip(usize::try_from(cols).ok());
    let dense = dense.and_then(|(rows, cols)| Matrix::zeros(rows, cols).ok());
    let mut matrix = dense.ok_or_else(|| lines.wrong(too_big))?;
    each_entry(&mut lines, &banner, sides, count, |place, value, _| {
        banner.symmetry.store(&mut matrix, place, value)
    })?;
    Ok(matrix)
}

/// An entry of a matrix as a file has it, or as its symmetry adds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarketEntry {
    /// Its row, from 1.
    pub row: u64,
    /// Its column, from 1.
    pub col: u64,
    /// The number.
    pub value: f64,
    /// Whether the file promises whole numbers.
    pub is_whole: bool,
    /// Whether the file names the places of its entries: what it does not name is not there.
    pub is_sparse: bool,
    /// The line, from 1.
    pub line: u64,
}

/// Gives all entries of a file in its order, and behind each the one that symmetry adds; keeps none of them.
pub(super) fn entries(
    source: impl BufRead,
    file_bytes: u64,
    mut take: impl FnMut(MarketEntry),
) -> Result<(), Wrong> {
    let mut lines = Lines::new(source);
    let (banner, sides, count) = head(&mut lines, file_bytes, u64::MAX)?;
    let (is_whole, is_sparse) = (banner.field != Field::Real, banner.coordinate);
    each_entry(&mut lines, &banner, sides, count, |place, value, line| {
        let mut take = |(row, col), value| take(MarketEntry { row, col, value, is_whole, is_sparse, line });
        banner.symmetry.both(place, value, &mut take)
    })
}

/// Reads the entries behind the head, in the file's order: the place of each, its number and its line.
fn each_entry(
    lines: &mut Lines<impl BufRead>,
    banner: &Banner,
    sides: [u64; 2],
    count: u64,
    mut take: impl FnMut((u64, u64), f64, u64) -> Result<(), Bad>,
) -> Result<(), Wrong> {
    let mut cursor = (1 + u64::from(banner.symmetry == Symmetry::Skew), 1);
    for got in 0..count {
        let Some(text) = lines.next_data()? else {
            return Err(lines.wrong(Bad::Count { expected: count, got }));
        };
        let entry = if banner.coordinate {
            banner.coordinate_entry(text, sides)
        } else {
            number(text.split_ascii_whitespace(), banner.field, "one number").map(|value| {
                let here = cursor;
                cursor = banner.symmetry.below(here, sides[0]);
                (here, value)
            })
        };
        let line = lines.0.number;
        let taken = entry.and_then(|(place, value)| take(place, value, line));
        taken.map_err(|bad| lines.wrong(bad))?;
    }
    match lines.next_data()? {
        Some(_) => Err(lines.wrong(Bad::Count { expected: count, got: count + 1 })),
        None => Ok(()),
    }
}

impl Banner {
    fn parse(text: &str) -> Result<Self, Bad> {
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let [first, object, format, field, symmetry] = words.as_slice() else { return Err(Bad::Banner) };
        if first != "%%matrixmarket" {
            return Err(Bad::Banner);
        }
        let unsupported =
            |word: &str, mend| Err(Bad::Unsupported { word: word.chars().take(40).collect(), mend });
        if object != "matrix" {
            return unsupported(object, "only 'matrix' can");
        }
        let coordinate = match format.as_str() {
            "array" => false,
            "coordinate" => true,
            _ => return unsupported(format, "only 'array' and 'coordinate' can"),
        };
        let field = match field.as_str() {
            "real" | "double" => Field::Real,
            "integer" => Field::Integer,
            "pattern" if coordinate => Field::Pattern,
            "pattern" => return unsupported(field, "an array file must hold numbers"),
            "complex" => {
                return unsupported(field, "matrices are real here; save real and imaginary part apart");
            }
            _ => return unsupported(field, "only 'real', 'integer' and 'pattern' can"),
        };
        let symmetry = match symmetry.as_str() {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" if field == Field::Pattern => {
                return unsupported(symmetry, "a pattern has no signs, so it must be general or symmetric");
            }
            "skew-symmetric" => Symmetry::Skew,
            "hermitian" => {
                return unsupported(symmetry, "matrices are real here; save it as symmetric if it is real");
            }
            _ => return unsupported(symmetry, "only 'general', 'symmetric' and 'skew-symmetric' can"),
        };
        Ok(Self { coordinate, field, symmetry })
    }

    fn coordinate_entry(&self, text: &str, [rows, cols]: [u64; 2]) -> Result<((u64, u64), f64), Bad> {
        let expected = if self.field == Field::Pattern { "row and column" } else { "row, column and number" };
        let mut words = text.split_ascii_whitespace();
        let mut index = || {
            let missing = Bad::Words { expected, got: text.split_ascii_whitespace().count() };
            words.next().ok_or(missing).and_then(|word| whole(word, "a row or column, counted from 1"))
        };
        let (row, col) = (index()?, index()?);
        if row == 0 || col == 0 || row > rows || col > cols {
            return Err(Bad::OutOfRange { row, col, rows, cols });
        }
        Ok(((row, col), number(words, self.field, expected)?))
    }
}

impl Symmetry {
    /// The place after this one in an array file: down the column, below the diagonal where that is all.
    fn below(self, (row, col): (u64, u64), rows: u64) -> (u64, u64) {
        match self {
            _ if row < rows => (row + 1, col),
            Self::General => (1, col + 1),
            Self::Symmetric => (col + 1, col + 1),
            Self::Skew => (col + 2, col + 1),
        }
    }

    /// Entries of a matrix whose file names so many, at most.
    fn entries(self, count: u64) -> u64 {
        if self == Self::General { count } else { count.saturating_mul(2) }
    }

    /// Gives an entry, and the one that symmetry adds.
    fn both(
        self,
        (row, col): (u64, u64),
        value: f64,
        mut take: impl FnMut((u64, u64), f64),
    ) -> Result<(), Bad> {
        self.check((row, col))?;
        take((row, col), value);
        match self {
            Self::Symmetric if row != col => take((col, row), value),
            Self::Skew => take((col, row), -value),
            Self::General | Self::Symmetric => {}
        }
        Ok(())
    }

    /// Refuses a place that files of this symmetry do not have.
    fn check(self, (row, col): (u64, u64)) -> Result<(), Bad> {
        if (self == Self::Symmetric && col > row) || (self == Self::Skew && col >= row) {
            return Err(Bad::UpperTriangle { row, col, symmetry: self.word() });
        }
        Ok(())
    }

    fn store(self, matrix: &mut Matrix<f64>, (row, col): (u64, u64), value: f64) -> Result<(), Bad> {
        self.check((row, col))?;
        let index =
            |from_one: u64| usize::try_from(from_one - 1).expect("sides of a matrix in memory are usize");
        let (i, j, cols) = (index(row), index(col), matrix.cols());
        let values = matrix.values_mut();
        let sum = values[i * cols + j] + value;
        if !sum.is_finite() {
            return Err(Bad::NotFinite { word: sum.to_string() });
        }
        values[i * cols + j] = sum;
        match self {
            Self::General => {}
            Self::Symmetric => values[j * cols + i] = sum,
            Self::Skew => values[j * cols + i] = -sum,
        }
        Ok(())
    }
}

/// Sides and the number of entries that must follow, all of them possible.
fn size_line(text: &str, banner: &Banner, file_bytes: u64, max_bytes: u64) -> Result<([u64; 2], u64), Bad> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(5).collect();
    let side = |word| whole(word, "a number of rows, columns or entries");
    let (rows, cols, entries) = match (banner.coordinate, words.as_slice()) {
        (true, [rows, cols, entries]) => (side(rows)?, side(cols)?, Some(side(entries)?)),
        (false, [rows, cols]) => (side(rows)?, side(cols)?, None),
        (true, other) => return Err(Bad::Words { expected: "rows, columns and entries", got: other.len() }),
        (false, other) => return Err(Bad::Words { expected: "rows and columns", got: other.len() }),
    };
    if rows == 0 || cols == 0 {
        return Err(Bad::Empty { rows, cols });
    }
    if banner.symmetry != Symmetry::General && rows != cols {
        return Err(Bad::NotSquare { rows, cols, symmetry: banner.symmetry.word() });
    }
    let elements =
        rows.checked_mul(cols).filter(|n| n.checked_mul(8).is_some_and(|bytes| bytes <= max_bytes));
    let Some(elements) = elements else { return Err(Bad::TooBig { rows, cols, max_bytes }) };
    let expected = entries.unwrap_or(match banner.symmetry {
        Symmetry::General => elements,
        Symmetry::Symmetric => (elements - rows) / 2 + rows,
        Symmetry::Skew => (elements - rows) / 2,
    });
    // An entry has at least a digit and the end of its line: nothing is allocated for what cannot follow.
    if expected > file_bytes / 2 {
        return Err(Bad::Impossible { expected, file_bytes });
    }
    Ok(([rows, cols], expected))
}

fn whole(word: &str, expected: &'static str) -> Result<u64, Bad> {
    let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten().ok_or_else(|| Bad::Number { word: shortened(word), expected })
}

/// The last word of an entry as a number; 1 where a pattern only names places.
fn number<'a>(
    mut words: impl Iterator<Item = &'a str>,
    field: Field,
    expected: &'static str,
) -> Result<f64, Bad> {
    let value = match field {
        Field::Pattern => 1.0,
        Field::Real | Field::Integer => {
            let word = words.next().ok_or(Bad::Words { expected, got: 0 })?;
            real(word, field)?
        }
    };
    match words.count() {
        0 => Ok(value),
        more => Err(Bad::Words { expected, got: more + 1 }),
    }
}

fn real(word: &str, field: Field) -> Result<f64, Bad> {
    let wrong = |expected| Bad::Number { word: shortened(word), expected };
    if field == Field::Integer {
        let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
        whole(digits, "a whole number").map_err(|_| wrong("a whole number of at most 19 digits"))?;
    }
    let value: f64 = word.parse().map_err(|_| wrong("a number"))?;
    if value.is_finite() { Ok(value) } else { Err(Bad::NotFinite { word: shortened(word) }) }
}

fn shortened(word: &str) -> String {
    word.chars().take(40).collect()
}

/// Lines, and what is wrong with them.
struct Lines<R>(lines::Lines<R>);

impl<R: BufRead> Lines<R> {
    fn new(source: R) -> Self {
        Self(lines::Lines::new(source))
    }

    /// The next line; none at the end of the file.
    fn next_any(&mut self) -> Result<Option<&str>, Wrong> {
        // The line is looked at again because a borrow that ends in an error cannot be given up (Polonius).
        match self.0.next().map(|text| text.is_some()) {
            Ok(false) => Ok(None),
            Ok(true) => self.0.last().map(Some).map_err(|error| self.unreadable(error)),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// The next line that is neither empty nor a comment; none at the end of the file.
    fn next_data(&mut self) -> Result<Option<&str>, Wrong> {
        loop {
            let end = match self.next_any()? {
                None => true,
                Some(text) if text.is_empty() || text.starts_with('%') => continue,
                Some(_) => false,
            };
            // As above.
            let text = self.0.last().map_err(|error| self.unreadable(error))?;
            return Ok((!end).then_some(text));
        }
    }

    fn unreadable(&self, error: LineError) -> Wrong {
        match error {
            LineError::Io(source) => Wrong::Io(source),
            LineError::TooLong => self.wrong(Bad::TooLong),
            LineError::NotText => self.wrong(Bad::NotText),
        }
    }

    fn wrong(&self, bad: Bad) -> Wrong {
        Wrong::Line(self.0.number, bad)
    }
}
