//! Incomplete factors of a subdomain's own equations, ILU(0): as many numbers as the matrix has, by blocks of a node's unknowns
//! (J. A. Meijerink, H. A. van der Vorst, Mathematics of Computation 31, 1977). Where a pivot is not positive, the diagonal is
//! made larger until all are (T. A. Manteuffel, Mathematics of Computation 34, 1980).

use super::rows::Rows;
use serde::{Deserialize, Serialize};

/// The first part by which a diagonal is made larger; then twice as much each time.
const FIRST_SHIFT: f64 = 1e-3;
/// How often it is made larger.
const SHIFTS_MAX: u32 = 40;

/// Factors of the own part of a matrix. On the diagonal there are inverses of blocks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ilu(Rows);

impl Ilu {
    /// Factors what these rows have in columns of own nodes.
    #[must_use]
    pub fn of(rows: &Rows) -> Self {
        let own = own_part(rows);
        let mut shift = 0.0;
        for _ in 0..SHIFTS_MAX {
            let mut factors = own.clone();
            if factor(&mut factors, shift) {
                return Self(factors);
            }
            shift = if shift == 0.0 { FIRST_SHIFT } else { 2.0 * shift };
        }
        // The numbers are none that can be computed with, which the iteration finds.
        Self(own)
    }

    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Solves for a right-hand side, into `x`.
    pub fn solve(&self, b: &[f64], x: &mut [f64]) {
        match self.0.each {
            1 => self.run::<1>(b, x),
            2 => self.run::<2>(b, x),
            _ => self.run::<3>(b, x),
        }
    }

    fn run<const D: usize>(&self, b: &[f64], x: &mut [f64]) {
        // What is shared is looked up once, and not for each number.
        let Rows { starts, columns, values, .. } = &self.0;
        let (starts, columns, values): (&[u32], &[u32], &[f64]) = (starts, columns, values);
        let (b, x) = (b.as_chunks::<D>().0, x.as_chunks_mut::<D>().0);
        let block = |at: usize| &values[at * D * D..][..D * D];
        let of_row = |row: usize| starts[row] as usize..starts[row + 1] as usize;
        let take = |sum: &mut [f64; D], at: usize, x: &[f64; D]| {
            for (sum, row) in sum.iter_mut().zip(block(at).chunks_exact(D)) {
                (0..D).for_each(|k| *sum -= row[k] * x[k]);
            }
        };
        for row in 0..self.0.len() {
            let mut sum = b[row];
            for at in of_row(row) {
                let column = columns[at] as usize;
                if column >= row {
                    break;
                }
                take(&mut sum, at, &x[column]);
            }
            x[row] = sum;
        }
        for row in (0..self.0.len()).rev() {
            let mut sum = x[row];
            let mut diagonal = 0;
            for at in of_row(row).rev() {
                let column = columns[at] as usize;
                if column == row {
                    diagonal = at;
                    break;
                }
                take(&mut sum, at, &x[column]);
            }
            let inverse = block(diagonal);
            x[row] = std::array::from_fn(|i| (0..D).map(|k| inverse[i * D + k] * sum[k]).sum());
        }
    }
}

/// The columns of own nodes.
fn own_part(rows: &Rows) -> Rows {
    let each = rows.each * rows.each;
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows.len() {
        let all = rows.starts[row] as usize..rows.starts[row + 1] as usize;
        for at in all.filter(|&at| (rows.columns[at] as usize) < rows.len()) {
            columns.push(rows.columns[at]);
            values.extend_from_slice(&rows.values[at * each..(at + 1) * each]);
        }
        starts.push(columns.len() as u32);
    }
    Rows { each: rows.each, starts: starts.into(), columns: columns.into(), values: values.into() }
}

/// Factors rows in their place, each number on the diagonal larger by a part; whether all pivots are positive.
fn factor(rows: &mut Rows, shift: f64) -> bool {
    let each = rows.each;
    let size = each * each;
    let (starts, columns) = (rows.starts.clone(), rows.columns.clone());
    let values = rows.values.as_mut_slice();
    let count = starts.len() - 1;
    let mut place = vec![usize::MAX; count];
    let mut diagonals = vec![0; count];
    for row in 0..count {
        let own = starts[row] as usize..starts[row + 1] as usize;
        own.clone().for_each(|at| place[columns[at] as usize] = at);
        let diagonal = place[row];
        diagonals[row] = diagonal;
        (0..each).for_each(|c| values[diagonal * size + c * each + c] *= 1.0 + shift);
        for at in own.clone() {
            let above = columns[at] as usize;
            if above >= row {
                break;
            }
            let factor =
                product(&values[at * size..][..size], &values[diagonals[above] * size..][..size], each);
            values[at * size..][..size].copy_from_slice(&factor[..size]);
            for other in diagonals[above] + 1..starts[above + 1] as usize {
                let to = place[columns[other] as usize];
                // What is not in the pattern is left out.
                if to != usize::MAX {
                    let taken = product(&factor[..size], &values[other * size..][..size], each);
                    values[to * size..][..size].iter_mut().zip(taken).for_each(|(to, taken)| *to -= taken);
                }
            }
        }
        let Some(inverse) = inverse(&values[diagonal * size..][..size], each) else { return false };
        values[diagonal * size..][..size].copy_from_slice(&inverse[..size]);
        own.for_each(|at| place[columns[at] as usize] = usize::MAX);
    }
    true
}

/// The product of two small square blocks.
fn product(a: &[f64], b: &[f64], each: usize) -> [f64; 9] {
    let entry = |at: usize| (0..each).map(|k| a[at / each * each + k] * b[k * each + at % each]).sum();
    std::array::from_fn(|at| if at < each * each { entry(at) } else { 0.0 })
}

/// The inverse of a small block that is positive definite; nothing of others.
fn inverse(block: &[f64], each: usize) -> Option<[f64; 9]> {
    let mut a = [0.0; 9];
    let mut inverse = [0.0; 9];
    a[..each * each].copy_from_slice(block);
    (0..each).for_each(|k| inverse[k * each + k] = 1.0);
    for k in 0..each {
        let pivot = a[k * each + k];
        // A pivot that has nearly gone would make factors that are too large.
        if pivot.is_nan() || pivot <= 1e-8 * block[k * each + k].abs() || block[k * each + k] <= 0.0 {
            return None;
        }
        for j in 0..each {
            a[k * each + j] /= pivot;
            inverse[k * each + j] /= pivot;
        }
        for i in (0..each).filter(|&i| i != k) {
            let factor = a[i * each + k];
            for j in 0..each {
                a[i * each + j] -= factor * a[k * each + j];
                inverse[i * each + j] -= factor * inverse[k * each + j];
            }
        }
    }
    Some(inverse)
}
