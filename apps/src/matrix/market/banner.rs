//! The first lines of a MatrixMarket file: of which kind it is, how large, and which places it names.

use super::wrong::MarketLineError as Bad;
use crate::matrix::dense::Matrix;
use crate::matrix::lines::{LineError, shortened, whole};

/// Kind of the numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    Pattern,
}

/// Which other entries an entry stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// The first line.
pub(super) struct Banner {
    /// Whether entries come with their places.
    pub(super) coordinate: bool,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
}

impl Banner {
    pub(super) fn parse(text: &str) -> Result<Self, Bad> {
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let [first, object, format, field, symmetry] = words.as_slice() else { return Err(Bad::Banner) };
        if first != "%%matrixmarket" {
            return Err(Bad::Banner);
        }
        let unsupported = |word: &str, hint| Err(Bad::Unsupported { word: shortened(word), hint });
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
}

impl Symmetry {
    fn word(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::Skew => "skew-symmetric",
        }
    }

    /// The place after this one in an array file: down the column, below the diagonal where that is all.
    pub(super) fn below(self, (row, col): (u64, u64), rows: u64) -> (u64, u64) {
        match self {
            _ if row < rows => (row + 1, col),
            Self::General => (1, col + 1),
            Self::Symmetric => (col + 1, col + 1),
            Self::Skew => (col + 2, col + 1),
        }
    }

    /// Entries of a matrix whose file names so many, at most.
    pub(super) fn entries(self, count: u64) -> u64 {
        if self == Self::General { count } else { count.saturating_mul(2) }
    }

    /// Gives an entry, and the one that symmetry adds.
    pub(super) fn both(
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

    pub(super) fn store(
        self,
        matrix: &mut Matrix<f64>,
        (row, col): (u64, u64),
        value: f64,
    ) -> Result<(), Bad> {
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
pub(super) fn size_line(
    text: &str,
    banner: &Banner,
    file_bytes: u64,
    max_bytes: Option<u64>,
) -> Result<([u64; 2], u64), Bad> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(5).collect();
    let side = |word| whole(word, "a number of rows, columns or entries");
    let (rows, cols, entries) = match (banner.coordinate, words.as_slice()) {
        (true, [rows, cols, entries]) => (side(rows)?, side(cols)?, Some(side(entries)?)),
        (false, [rows, cols]) => (side(rows)?, side(cols)?, None),
        (true, other) => {
            return Err(LineError::Words { expected: "rows, columns and entries", got: other.len() }.into());
        }
        (false, other) => {
            return Err(LineError::Words { expected: "rows and columns", got: other.len() }.into());
        }
    };
    if rows == 0 || cols == 0 {
        return Err(Bad::Empty { rows, cols });
    }
    if banner.symmetry != Symmetry::General && rows != cols {
        return Err(Bad::NotSquare { rows, cols, symmetry: banner.symmetry.word() });
    }
    let elements = rows.saturating_mul(cols);
    if let Some(max_bytes) = max_bytes.filter(|most| elements > most / 8) {
        return Err(Bad::TooBig { rows, cols, max_bytes });
    }
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
