//! The dense row-major matrix, and how a dimension is cut into nearly equal parts.

use super::element::{Dtype, Element};
use std::fmt;
use std::ops::Range;

/// Numbers and shape do not belong together, or the shape is too big for this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// The vector's length is not rows x columns.
    #[error("a {rows} x {cols} matrix cannot be made of {len} numbers")]
    Length {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
        /// Numbers given.
        len: usize,
    },
    /// The numbers do not fit the address space or the free memory.
    #[error("a {rows} x {cols} matrix of {dtype} does not fit into memory: take a smaller one or more nodes")]
    TooBig {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
        /// Type asked for.
        dtype: Dtype,
    },
    /// Factors and product do not have matching sides.
    #[error(
        "{}x{} times {}x{} does not make {}x{}: inner sides must agree, outer sides are the product's",
        .a.0, .a.1, .b.0, .b.1, .c.0, .c.1
    )]
    Product {
        /// Rows and columns of the left factor.
        a: (usize, usize),
        /// Rows and columns of the right factor.
        b: (usize, usize),
        /// Rows and columns of the product.
        c: (usize, usize),
    },
}

/// A dense matrix, row-major: element (i, j) is number i * cols + j.
#[derive(Clone, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    values: Vec<T>,
}

impl<T: Element> Matrix<T> {
    /// A matrix of zeros.
    ///
    /// # Errors
    /// [`ShapeError::TooBig`] if memory for it cannot be had.
    pub fn zeros(rows: usize, cols: usize) -> Result<Self, ShapeError> {
        let too_big = || ShapeError::TooBig { rows, cols, dtype: T::DTYPE };
        let len = rows.checked_mul(cols).ok_or_else(too_big)?;
        let values = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| too_big())?;
        Ok(Self { rows, cols, values })
    }

    /// The matrix whose rows, one after the other, are `values`.
    ///
    /// # Errors
    /// [`ShapeError::Length`] if there are not rows x columns of them.
    pub fn from_vec(rows: usize, cols: usize, values: Vec<T>) -> Result<Self, ShapeError> {
        if rows.checked_mul(cols) == Some(values.len()) {
            Ok(Self { rows, cols, values })
        } else {
            Err(ShapeError::Length { rows, cols, len: values.len() })
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows and columns.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// All numbers, row after row.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All numbers, row after row, to write to.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The numbers without the shape, without a copy.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.values
    }

    /// The rows of a range, one after the other, without a copy.
    ///
    /// # Panics
    /// If the range is not within the matrix.
    #[must_use]
    pub fn row_slice(&self, rows: Range<usize>) -> &[T] {
        self.assert_within(&rows, &(0..self.cols));
        &self.values[rows.start * self.cols..rows.end * self.cols]
    }

    /// A copy of a block, row-major with as many columns as the range.
    ///
    /// # Panics
    /// If a range is not within the matrix.
    #[must_use]
    pub fn block(&self, rows: Range<usize>, cols: Range<usize>) -> Vec<T> {
        self.assert_within(&rows, &cols);
        let mut block = Vec::with_capacity(rows.len() * cols.len());
        for i in rows {
            block.extend_from_slice(&self.values[i * self.cols..][cols.clone()]);
        }
        block
    }

    /// Writes a row-major block into its place.
    ///
    /// # Panics
    /// If a range is not within the matrix, or the block has another number of elements than the ranges.
    pub fn set_block(&mut self, rows: Range<usize>, cols: Range<usize>, block: &[T]) {
        self.assert_within(&rows, &cols);
        assert_eq!(block.len(), rows.len() * cols.len(), "block of {rows:?} x {cols:?}");
        if cols.is_empty() {
            return;
        }
        for (i, row) in rows.zip(block.chunks_exact(cols.len())) {
            self.values[i * self.cols..][cols.clone()].copy_from_slice(row);
        }
    }

    /// The same matrix in another number type, each number rounded to the nearest.
    ///
    /// # Errors
    /// [`ShapeError::TooBig`] if memory for it cannot be had.
    pub fn convert<U: Element>(&self) -> Result<Matrix<U>, ShapeError> {
        let mut converted = Matrix::zeros(self.rows, self.cols)?;
        for (to, from) in converted.values.iter_mut().zip(&self.values) {
            *to = U::from_f64(from.to_f64());
        }
        Ok(converted)
    }

    /// The same matrix in another number type, or just itself if the type stays.
    ///
    /// # Errors
    /// As [`convert`](Self::convert).
    pub fn into_typed<U: Element>(self) -> Result<Matrix<U>, ShapeError> {
        if T::DTYPE != U::DTYPE {
            return self.convert();
        }
        Matrix::from_vec(self.rows, self.cols, bytemuck::allocation::cast_vec(self.values))
    }

    fn assert_within(&self, rows: &Range<usize>, cols: &Range<usize>) {
        let within = |range: &Range<usize>, len| range.start <= range.end && range.end <= len;
        assert!(
            within(rows, self.rows) && within(cols, self.cols),
            "block {rows:?} x {cols:?} of a {} x {} matrix",
            self.rows,
            self.cols
        );
    }
}

/// The shape only: a matrix of a million numbers is no help in a message.
impl<T> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} x {})", self.rows, self.cols)
    }
}

/// Cuts `0..n` into `parts` neighbouring ranges whose lengths differ by at most one, the longer ones first.
///
/// More parts than items give empty ranges at the end; no parts give none.
///
/// ```
/// assert_eq!(apps::matrix::bounds(7, 3), [0..3, 3..5, 5..7]);
/// ```
#[must_use]
pub fn bounds(n: usize, parts: usize) -> Vec<Range<usize>> {
    let mut start = 0;
    (0..parts)
        .map(|part| {
            let end = start + n / parts + usize::from(part < n % parts);
            std::mem::replace(&mut start, end)..end
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(rows: usize, cols: usize) -> Matrix<f64> {
        Matrix::from_vec(rows, cols, (0..rows * cols).map(|i| i as f64).collect()).unwrap()
    }

    #[test]
    fn wrong_length_and_overflowing_shapes_are_refused() {
        assert_eq!(
            Matrix::from_vec(2, 3, vec![0.0f32; 5]),
            Err(ShapeError::Length { rows: 2, cols: 3, len: 5 })
        );
        assert!(Matrix::from_vec(usize::MAX, 2, vec![0.0f32; 6]).is_err());
        assert!(matches!(Matrix::<f64>::zeros(usize::MAX, 2), Err(ShapeError::TooBig { .. })));
        assert!(matches!(Matrix::<f64>::zeros(1 << 40, 1 << 20), Err(ShapeError::TooBig { .. })));
    }

    #[test]
    fn block_takes_the_named_rows_and_columns() {
        let m = counted(3, 4);
        assert_eq!(m.block(1..3, 1..3), [5.0, 6.0, 9.0, 10.0]);
        assert_eq!(m.row_slice(2..3), [8.0, 9.0, 10.0, 11.0]);
        assert!(m.block(1..1, 0..4).is_empty());
        assert!(m.block(0..3, 4..4).is_empty());
    }

    #[test]
    #[should_panic(expected = "block 0..4 x 0..1 of a 3 x 4 matrix")]
    fn block_outside_the_matrix_panics() {
        let _ = counted(3, 4).block(0..4, 0..1);
    }

    #[test]
    fn retyping_keeps_the_numbers() {
        assert_eq!(counted(2, 3).into_typed::<f64>().unwrap(), counted(2, 3));
        assert_eq!(counted(2, 3).into_typed::<f32>().unwrap().values(), [0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    proptest! {
        #[test]
        fn bounds_cover_everything_once_and_nearly_equally(n in 0usize..10_000, parts in 1usize..200) {
            let ranges = bounds(n, parts);
            prop_assert_eq!(ranges.len(), parts);
            prop_assert_eq!(ranges[0].start, 0);
            prop_assert_eq!(ranges[parts - 1].end, n);
            prop_assert!(ranges.windows(2).all(|w| w[0].end == w[1].start && w[0].len() >= w[1].len()));
            prop_assert!(ranges[0].len() - ranges[parts - 1].len() <= 1);
        }

        #[test]
        fn blocks_put_back_make_the_matrix_again(
            rows in 0usize..20, cols in 0usize..20, row_parts in 1usize..6, col_parts in 1usize..6,
        ) {
            let m = counted(rows, cols);
            let mut copy = Matrix::zeros(rows, cols).unwrap();
            for r in bounds(rows, row_parts) {
                for c in bounds(cols, col_parts) {
                    copy.set_block(r.clone(), c.clone(), &m.block(r.clone(), c));
                }
            }
            prop_assert_eq!(copy, m);
        }
    }
}
