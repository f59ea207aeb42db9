//! The parts of an LU factorisation with partial pivoting that work on one panel: some neighbouring columns of the rows
//! that are still active, stored column by column.
//!
//! A panel is factored by halves (S. Toledo, "Locality of reference in LU decomposition with partial pivoting", SIAM J.
//! Matrix Anal. Appl. 18, 1997), so that nearly all of it is products of blocks.

use super::gemm::{View, subtract_product};
use crate::matrix::Element;
use pulp::Arch;

/// Panels of so few columns are factored column by column.
const NARROW: usize = 8;
/// Triangles of so few rows are solved row by row.
const SHORT: usize = 16;
/// Columns that are turned at once: a row of them fills two lines of the cache, or one if numbers have 32 bits.
const COLUMNS_TO_TURN: usize = 16;
/// Columns that a triangle is solved for before the next ones: they stay in the second cache meanwhile.
const COLUMNS_TO_SOLVE: usize = 128;
/// How many partial maxima are looked for side by side: more than one vector of numbers holds.
const LANES: usize = 32;

/// No pivot is large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPivot {
    /// The column of the panel, from 0.
    pub column: usize,
}

/// Factors a panel P whose columns are `rows` numbers long into L (below the diagonal; ones on it) and U, so that
/// L U is P with its rows exchanged: row j with row `pivots[j]`, one j after the other. `least` has what the pivot of
/// each column must be larger than.
///
/// # Errors
/// The first column without such a pivot; the panel is then of no use.
///
/// # Panics
/// If the panel does not have as many columns as `least`, or has fewer rows than columns.
pub fn factor<T: Element>(panel: &mut [T], rows: usize, least: &[T]) -> Result<Vec<u32>, NoPivot> {
    assert!(panel.len() == rows * least.len() && least.len() <= rows, "a panel of {} columns", least.len());
    let mut pivots = vec![0; least.len()];
    Panel { values: panel, rows, pivots: &mut pivots, least }.factor(0, least.len())?;
    Ok(pivots)
}

struct Panel<'a, T> {
    values: &'a mut [T],
    rows: usize,
    pivots: &'a mut [u32],
    least: &'a [T],
}

impl<T: Element> Panel<'_, T> {
    /// Factors the columns from `first` to `end`; those before are done, and have been applied to these.
    fn factor(&mut self, first: usize, end: usize) -> Result<(), NoPivot> {
        if end - first <= NARROW {
            return (first..end).try_for_each(|column| self.eliminate(column, first, end));
        }
        let rows = self.rows;
        let middle = first + ((end - first) / 2).next_multiple_of(NARROW);
        self.factor(first, middle)?;
        exchange_rows(&mut self.values[middle * rows..end * rows], rows, first, &self.pivots[first..middle]);
        let (left, right) = self.values.split_at_mut(middle * rows);
        let (left, right) = (&left[first * rows..], &mut right[..(end - middle) * rows]);
        let mut top = Vec::with_capacity((end - middle) * (middle - first));
        for column in right.chunks_exact_mut(rows) {
            for (j, l) in left.chunks_exact(rows).enumerate() {
                let at = first + j;
                let factor = column[at];
                subtract_multiple(&mut column[at + 1..middle], factor, &l[at + 1..middle]);
            }
            top.extend_from_slice(&column[first..middle]);
        }
        let sides = [rows - middle, middle - first, end - middle];
        if rows > middle {
            let below = View::by_columns(&left[middle..], rows);
            let above = View::by_columns(&top, middle - first);
            subtract_product(sides, below, above, (&mut right[middle..], rows));
        }
        self.factor(middle, end)?;
        exchange_rows(&mut self.values[first * rows..middle * rows], rows, middle, &self.pivots[middle..end]);
        Ok(())
    }

    /// Finds the pivot of a column, brings it up in the columns from `first` to `end`, and eliminates those behind.
    fn eliminate(&mut self, column: usize, first: usize, end: usize) -> Result<(), NoPivot> {
        let rows = self.rows;
        let chosen = column + largest(&self.values[column * rows..][column..rows]);
        // Not a number is not larger than anything either.
        let is_large = self.values[column * rows + chosen].magnitude() > self.least[column];
        if !is_large {
            return Err(NoPivot { column });
        }
        self.pivots[column] = u32::try_from(chosen).expect("a panel has fewer than 2^32 rows");
        exchange_rows(
            &mut self.values[first * rows..end * rows],
            rows,
            column,
            &self.pivots[column..=column],
        );
        let (done, behind) = self.values.split_at_mut((column + 1) * rows);
        let own = &mut done[column * rows..];
        let pivot = own[column];
        divide(&mut own[column + 1..], pivot);
        for other in behind[..(end - column - 1) * rows].chunks_exact_mut(rows) {
            let factor = other[column];
            subtract_multiple(&mut other[column + 1..], factor, &own[column + 1..]);
        }
        Ok(())
    }
}

/// In columns of `rows` numbers: exchanges row `first` with row `pivots[0]`, the next with `pivots[1]`, and so on.
pub fn exchange_rows<T: Element>(columns: &mut [T], rows: usize, first: usize, pivots: &[u32]) {
    for column in columns.chunks_exact_mut(rows.max(1)) {
        for (row, &pivot) in (first..).zip(pivots) {
            column.swap(row, pivot as usize);
        }
    }
}

/// Solves L Y = X for the unit lower triangle L of a factored panel, whose columns are `rows` numbers long: X, column by
/// column, with as many rows as the panel has columns, becomes Y.
///
/// # Panics
/// If the panel or X have another size.
pub fn solve_lower<T: Element>(panel: &[T], rows: usize, x: &mut [T]) {
    let side = panel.len() / rows.max(1);
    assert!(
        panel.len() == side * rows && side <= rows && x.len().is_multiple_of(side.max(1)),
        "{side} columns"
    );
    let mut top = Vec::new();
    for some in x.chunks_mut(COLUMNS_TO_SOLVE * side.max(1)) {
        solve_part(panel, [rows, side], (0, side), some, &mut top);
    }
}

/// The rows of L from `first` to `end`, and those rows of X. `top` is memory for some of them.
fn solve_part<T: Element>(
    panel: &[T],
    [rows, side]: [usize; 2],
    (first, end): (usize, usize),
    x: &mut [T],
    top: &mut Vec<T>,
) {
    if end - first <= SHORT {
        let l = &panel[first * rows..];
        return Arch::new().dispatch(|| {
            for some in x.chunks_mut(COLUMNS_TO_TURN * side) {
                solve_short(l, [rows, side], (first, end), some);
            }
        });
    }
    let middle = first + (end - first) / 2;
    solve_part(panel, [rows, side], (first, middle), x, top);
    top.clear();
    x.chunks_exact(side).for_each(|column| top.extend_from_slice(&column[first..middle]));
    let sides = [end - middle, middle - first, x.len() / side];
    let l = View::by_columns(&panel[first * rows + middle..], rows);
    subtract_product(sides, l, View::by_columns(top, middle - first), (&mut x[middle..], side));
    solve_part(panel, [rows, side], (middle, end), x, top);
}

/// The same for few rows and columns, row by row. Columns may lie a power of two apart, where many of them compete for few lines
/// of the cache: so each is read and written in one go, and they are turned in between.
#[inline(always)]
fn solve_short<T: Element>(l: &[T], [rows, side]: [usize; 2], (first, end): (usize, usize), x: &mut [T]) {
    let mut turned = [[T::zeroed(); COLUMNS_TO_TURN]; SHORT];
    for (c, column) in x.chunks_exact(side).enumerate() {
        turned.iter_mut().zip(&column[first..end]).for_each(|(row, value)| row[c] = *value);
    }
    for (j, l) in l.chunks(rows).take(end - first).enumerate() {
        let (done, behind) = turned.split_at_mut(j + 1);
        let own = &done[j];
        for (row, &factor) in behind.iter_mut().zip(&l[first + j + 1..end]) {
            row.iter_mut().zip(own).for_each(|(value, own)| *value = *value - factor * *own);
        }
    }
    for (c, column) in x.chunks_exact_mut(side).enumerate() {
        column[first..end].iter_mut().zip(&turned).for_each(|(value, row)| *value = row[c]);
    }
}

/// Solves U X = Y for the upper triangle U of `width` columns, `rows` numbers apart, and subtracts what the columns above
/// the triangle, `above` rows, add to the rest of Y: each column of `y` has `above` + `width` numbers, of which the last
/// `width` become X.
pub fn solve_upper<T: Element>(columns: &[T], rows: usize, above: usize, width: usize, y: &mut [T]) {
    let length = above + width;
    let mut x = Vec::with_capacity(y.len() / length.max(1) * width);
    for y in y.chunks_exact_mut(length.max(1)) {
        let lower = &mut y[above..];
        for j in (0..width).rev() {
            let u = &columns[j * rows + above..][..=j];
            lower[j] = lower[j] / u[j];
            let factor = lower[j];
            subtract_multiple(&mut lower[..j], factor, &u[..j]);
        }
        x.extend_from_slice(lower);
    }
    let count = x.len() / width.max(1);
    subtract_product(
        [above, width, count],
        View::by_columns(columns, rows),
        View::by_columns(&x, width),
        (y, length),
    );
}

/// y -= factor x.
pub fn subtract_multiple<T: Element>(y: &mut [T], factor: T, x: &[T]) {
    Arch::new().dispatch(|| y.iter_mut().zip(x).for_each(|(y, &x)| *y = *y - factor * x));
}

/// Replaces each number of `largest` by the magnitude of its partner in `x`, if that is larger.
pub fn keep_larger<T: Element>(largest: &mut [T], x: &[T]) {
    let keep = |most: &mut T, value: T| *most = if value > *most { value } else { *most };
    Arch::new()
        .dispatch(|| largest.iter_mut().zip(x).for_each(|(most, value)| keep(most, value.magnitude())));
}

fn divide<T: Element>(x: &mut [T], by: T) {
    Arch::new().dispatch(|| x.iter_mut().for_each(|x| *x = *x / by));
}

/// The first place of the largest magnitude; 0 if there is none.
#[must_use]
pub fn largest<T: Element>(x: &[T]) -> usize {
    let most = largest_magnitude(x);
    x.iter().position(|value| value.magnitude() == most).unwrap_or(0)
}

/// The largest magnitude, 0 of none; not a number does not count.
#[must_use]
pub fn largest_magnitude<T: Element>(x: &[T]) -> T {
    let larger = |one: T, other: T| if other > one { other } else { one };
    let lanes = Arch::new().dispatch(|| {
        let mut most = [T::zeroed(); LANES];
        let mut parts = x.chunks_exact(LANES);
        for part in &mut parts {
            most.iter_mut().zip(part).for_each(|(most, value)| *most = larger(*most, value.magnitude()));
        }
        most.iter_mut()
            .zip(parts.remainder())
            .for_each(|(most, value)| *most = larger(*most, value.magnitude()));
        most
    });
    lanes.into_iter().fold(T::zeroed(), larger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::generate;
    use proptest::prelude::*;

    /// Elimination as textbooks write it, on columns; what [`factor`] gives.
    fn plain(panel: &mut [f64], rows: usize) -> Vec<u32> {
        let width = panel.len() / rows;
        let mut pivots = Vec::new();
        for j in 0..width {
            let size = |i: usize| panel[j * rows + i].abs();
            let pivot = (j..rows).fold(j, |best, i| if size(i) > size(best) { i } else { best });
            pivots.push(pivot as u32);
            (0..width).for_each(|c| panel.swap(c * rows + j, c * rows + pivot));
            for i in j + 1..rows {
                panel[j * rows + i] /= panel[j * rows + j];
                for c in j + 1..width {
                    panel[c * rows + i] -= panel[j * rows + i] * panel[c * rows + j];
                }
            }
        }
        pivots
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn panels_are_factored_as_the_textbook_does(width in 1usize..70, more in 0usize..90, seed in 0u64..1000) {
            let rows = width + more;
            let mut panel = generate::block::<f64>(seed, 0..width, 0..rows);
            let mut expected = panel.clone();
            let pivots = factor(&mut panel, rows, &vec![0.0; width]).unwrap();
            prop_assert_eq!(&pivots, &plain(&mut expected, rows));
            let far = panel.iter().zip(&expected).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
            prop_assert!(far < 1e-9, "{far}");
        }

        #[test]
        fn triangles_are_solved(side in 1usize..60, more in 0usize..20, width in 1usize..300, seed in 0u64..1000) {
            let rows = side + more;
            let mut panel = generate::block::<f64>(seed, 0..side, 0..rows);
            (0..side).for_each(|j| panel[j * rows + j] = 4.0);
            let x = generate::block::<f64>(seed + 1, 0..width, 0..side);
            let mut found = x.clone();
            solve_lower(&panel, rows, &mut found);
            for i in 0..side {
                for c in 0..width {
                    let row = |j: usize| panel[j * rows + i] * found[c * side + j];
                    let sum = found[c * side + i] + (0..i).map(row).sum::<f64>();
                    let size: f64 = (0..i).map(|j| row(j).abs()).sum::<f64>() + 1.0;
                    prop_assert!((sum - x[c * side + i]).abs() < 1e-13 * size, "{i} {c}");
                }
            }
        }

        #[test]
        fn upper_triangles_are_solved_and_the_rest_follows(
            above in 0usize..30, width in 1usize..30, count in 1usize..5, seed in 0u64..1000,
        ) {
            let (rows, length) = (above + width + 3, above + width);
            let mut u = generate::block::<f64>(seed, 0..width, 0..rows);
            (0..width).for_each(|j| u[j * rows + above + j] = 20.0);
            let y = generate::block::<f64>(seed + 1, 0..count, 0..length);
            let mut found = y.clone();
            solve_upper(&u, rows, above, width, &mut found);
            for c in 0..count {
                for i in 0..length {
                    let from = i.saturating_sub(above);
                    let x = |j: usize| found[c * length + above + j];
                    let sum: f64 = (from..width).map(|j| u[j * rows + i] * x(j)).sum();
                    let sum = if i < above { sum + found[c * length + i] } else { sum };
                    prop_assert!((sum - y[c * length + i]).abs() < 1e-12, "{c} {i}");
                }
            }
        }
    }

    #[test]
    fn a_column_without_a_pivot_is_named() {
        // The third column is the sum of the first two.
        let mut panel: Vec<f64> = (0..2).flat_map(|seed| generate::block::<f64>(seed, 0..1, 0..40)).collect();
        let sum: Vec<f64> = (0..40).map(|i| panel[i] + panel[40 + i]).collect();
        panel.extend(sum);
        let least = [40.0 * f64::EPSILON; 3];
        assert_eq!(factor(&mut panel, 40, &least), Err(NoPivot { column: 2 }));
        assert_eq!(factor(&mut [0.0f32; 6], 3, &[0.0; 2]), Err(NoPivot { column: 0 }));
        assert_eq!(factor(&mut [f32::NAN; 6], 3, &[0.0; 2]), Err(NoPivot { column: 0 }));
    }

    #[test]
    fn the_first_of_the_largest_is_found() {
        for length in [1, 31, 32, 33, 100] {
            let mut x = vec![1.0f32; length];
            assert_eq!(largest(&x), 0);
            x[length - 1] = -2.0;
            assert_eq!((largest(&x), largest_magnitude(&x)), (length - 1, 2.0));
        }
        assert_eq!(largest::<f64>(&[]), 0);
        assert_eq!(largest(&[f64::NAN, -3.0, 2.0]), 1);
    }
}
