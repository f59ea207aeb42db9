//! A matrix as it is multiplied. Of rows that are alike but for where they are, as those inside a box, one is kept: they need
//! neither memory, nor its bandwidth, nor time when a subdomain moves.

use super::rows::{Rows, add};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Rows, each by itself or many by what they have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Operator {
    /// Each by itself.
    Rows(Rows),
    /// By patterns.
    Alike(Alike),
}

/// Runs of rows that have the same numbers, at the same distance from the diagonal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Alike {
    /// One row for each pattern; its columns are how far they are from the row, modulo 2^32.
    patterns: Rows,
    /// The pattern of each run, and how many rows it has.
    runs: Vec<(u32, u32)>,
}

impl Default for Operator {
    fn default() -> Self {
        Self::Rows(Rows::default())
    }
}

/// Patterns are worth their trouble if they take at most one part in so many of the bytes of the rows.
const WORTH: usize = 2;
/// Rows of one unknown are computed so many at a time.
const LANES: usize = 8;

impl From<Rows> for Operator {
    fn from(rows: Rows) -> Self {
        let alike = Alike::of(&rows);
        if WORTH * alike.bytes() <= rows.bytes() { Self::Alike(alike) } else { Self::Rows(rows) }
    }
}

impl Operator {
    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Rows(rows) => rows.is_empty(),
            Self::Alike(alike) => alike.runs.is_empty(),
        }
    }

    /// Numbers of all rows, whether they are kept or not.
    #[must_use]
    pub fn entries(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.entries(),
            Self::Alike(alike) => alike.entries(),
        }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.bytes(),
            Self::Alike(alike) => alike.bytes(),
        }
    }

    /// Each row by itself.
    #[must_use]
    pub fn rows(&self) -> Rows {
        match self {
            Self::Rows(rows) => rows.clone(),
            Self::Alike(alike) => alike.rows(),
        }
    }

    /// The rows times `x`, into `y`.
    pub fn multiply(&self, x: &[f64], y: &mut [f64]) {
        match self {
            Self::Rows(rows) => rows.multiply(x, y),
            Self::Alike(alike) => alike.apply(x, y, |y, sum| *y = sum),
        }
    }

    /// Takes the rows times `x` from `y`.
    pub fn subtract(&self, x: &[f64], y: &mut [f64]) {
        match self {
            Self::Rows(rows) => rows.subtract(x, y),
            Self::Alike(alike) => alike.apply(x, y, |y, sum| *y -= sum),
        }
    }
}

impl Alike {
    fn of(rows: &Rows) -> Self {
        let (mut starts, mut away, mut values) = (vec![0], Vec::new(), Vec::new());
        let (mut runs, mut first): (Vec<(u32, u32)>, _) = (Vec::new(), 0);
        let mut known: HashMap<(Vec<u32>, Vec<u64>), u32> = HashMap::new();
        for row in 0..rows.len() {
            if let Some((_, count)) = runs.last_mut()
                && are_alike(rows, first, row)
            {
                *count += 1;
                continue;
            }
            let (columns, of_row) = parts_of(rows, row);
            let distances: Vec<u32> = columns.iter().map(|column| column.wrapping_sub(row as u32)).collect();
            let next = known.len() as u32;
            let pattern = *known.entry((distances, bits(of_row))).or_insert_with_key(|(distances, _)| {
                away.extend_from_slice(distances);
                values.extend_from_slice(of_row);
                starts.push(away.len() as u32);
                next
            });
            runs.push((pattern, 1));
            first = row;
        }
        let patterns =
            Rows { each: rows.each, starts: starts.into(), columns: away.into(), values: values.into() };
        Self { patterns, runs }
    }

    fn blocks_of(&self, pattern: u32) -> std::ops::Range<usize> {
        let starts = &self.patterns.starts;
        starts[pattern as usize] as usize..starts[pattern as usize + 1] as usize
    }

    fn entries(&self) -> usize {
        let blocks =
            self.runs.iter().map(|(pattern, count)| self.blocks_of(*pattern).len() * *count as usize);
        blocks.sum::<usize>() * self.patterns.each * self.patterns.each
    }

    fn bytes(&self) -> usize {
        self.patterns.bytes() + size_of_val(&self.runs[..])
    }

    fn rows(&self) -> Rows {
        let each = self.patterns.each;
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut row = 0u32;
        for &(pattern, count) in &self.runs {
            let blocks = self.blocks_of(pattern);
            for _ in 0..count {
                columns
                    .extend(self.patterns.columns[blocks.clone()].iter().map(|away| row.wrapping_add(*away)));
                values.extend_from_slice(
                    &self.patterns.values[blocks.start * each * each..blocks.end * each * each],
                );
                starts.push(columns.len() as u32);
                row += 1;
            }
        }
        Rows { each, starts: starts.into(), columns: columns.into(), values: values.into() }
    }

    #[inline(always)]
    fn apply(&self, x: &[f64], y: &mut [f64], put: impl Fn(&mut f64, f64)) {
        match self.patterns.each {
            1 => self.run_of_one(x, y, put),
            2 => self.run::<2>(x, y, put),
            _ => self.run::<3>(x, y, put),
        }
    }

    /// Each run by itself: the first of its rows, and the rows that it has.
    #[inline(always)]
    fn each_run(&self, mut of_run: impl FnMut(std::ops::Range<usize>, &[u32], std::ops::Range<usize>)) {
        let columns: &[u32] = &self.patterns.columns;
        let mut row = 0;
        for &(pattern, count) in &self.runs {
            let (blocks, next) = (self.blocks_of(pattern), row + count as usize);
            of_run(row..next, &columns[blocks.clone()], blocks);
            row = next;
        }
    }

    /// Sums are added in the order in which [`Rows`] adds them, so that they have the same bits.
    #[inline(always)]
    fn run<const D: usize>(&self, x: &[f64], y: &mut [f64], put: impl Fn(&mut f64, f64)) {
        let (x, y) = (x.as_chunks::<D>().0, y.as_chunks_mut::<D>().0);
        let values: &[f64] = &self.patterns.values;
        self.each_run(|rows, away, blocks| {
            let blocks = values[blocks.start * D * D..blocks.end * D * D].as_chunks::<D>().0;
            for row in rows {
                let at = |away: u32| &x[(row as u32).wrapping_add(away) as usize];
                let mut sums = [[0.0; D]; 2];
                for (number, (away, block)) in away.iter().zip(blocks.chunks_exact(D)).enumerate() {
                    add(&mut sums[number % 2], block, at(*away));
                }
                (0..D).for_each(|k| put(&mut y[row][k], sums[0][k] + sums[1][k]));
            }
        });
    }

    /// The same of one unknown, some rows of a run at a time.
    #[inline(always)]
    fn run_of_one(&self, x: &[f64], y: &mut [f64], put: impl Fn(&mut f64, f64)) {
        let values: &[f64] = &self.patterns.values;
        self.each_run(|rows, away, blocks| {
            let values = &values[blocks];
            let (of_lanes, rest) = y[rows.clone()].as_chunks_mut::<LANES>();
            let mut row = rows.start as u32;
            for y in of_lanes {
                let mut sums = [[0.0; LANES]; 2];
                for (number, (away, value)) in away.iter().zip(values).enumerate() {
                    let x = &x[row.wrapping_add(*away) as usize..][..LANES];
                    let sums = &mut sums[number % 2];
                    (0..LANES).for_each(|lane| sums[lane] += value * x[lane]);
                }
                (0..LANES).for_each(|lane| put(&mut y[lane], sums[0][lane] + sums[1][lane]));
                row += LANES as u32;
            }
            for y in rest {
                let mut sums = [0.0; 2];
                for (number, (away, value)) in away.iter().zip(values).enumerate() {
                    sums[number % 2] += value * x[row.wrapping_add(*away) as usize];
                }
                put(y, sums[0] + sums[1]);
                row += 1;
            }
        });
    }
}

/// The columns of a row, and its numbers.
fn parts_of(rows: &Rows, row: usize) -> (&[u32], &[f64]) {
    let (from, to) = (rows.starts[row] as usize, rows.starts[row + 1] as usize);
    let size = rows.each * rows.each;
    (&rows.columns[from..to], &rows.values[from * size..to * size])
}

/// Whether two rows have the same numbers, to the bit, at the same distance from the diagonal.
fn are_alike(rows: &Rows, one: usize, other: usize) -> bool {
    let ([(columns, values), (others, other_values)], apart) =
        ([one, other].map(|row| parts_of(rows, row)), (other - one) as u32);
    columns.len() == others.len()
        && columns.iter().zip(others).all(|(one, other)| one.wrapping_add(apart) == *other)
        && values.iter().zip(other_values).all(|(one, other)| one.to_bits() == other.to_bits())
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fem::level::Levels;
    use crate::fem::tests::of;
    use chares::Bulk;

    #[test]
    fn rows_that_are_alike_are_kept_once_and_give_the_same_bits() {
        let lines = [
            "--elements 40",
            "--elements 14 --physics elasticity --dim 2",
            "--elements 18 --order 2",
            "--elements 12 --physics elasticity --dim 3",
        ];
        for line in lines {
            let words: Vec<&str> = line.split(' ').chain(["--subdomains", "3"]).collect();
            let problem = of(&words).problem().unwrap();
            for part in 0..3 {
                let operator = &Levels::of_lattice(&problem, part).levels[0].rows;
                let rows = operator.rows();
                assert!(matches!(operator, Operator::Alike(_)), "{line}: they are not kept once");
                assert!(WORTH * operator.bytes() <= rows.bytes(), "{line}");
                assert_eq!((operator.entries(), operator.is_empty()), (rows.entries(), false));
                let again = Operator::from(rows.clone()).rows();
                assert_eq!((&again.starts, &again.columns), (&rows.starts, &rows.columns));
                assert_eq!(again.values, rows.values);
                let columns = rows.columns.iter().max().map_or(0, |most| *most as usize + 1);
                let x: Vec<f64> = (0..columns * rows.each).map(|at| (at as f64 * 0.37).sin()).collect();
                let mut products = [(); 2].map(|()| vec![0.5; rows.len() * rows.each]);
                rows.multiply(&x, &mut products[0]);
                operator.multiply(&x, &mut products[1]);
                assert_eq!(products[0], products[1], "{line}");
                rows.subtract(&x, &mut products[0]);
                operator.subtract(&x, &mut products[1]);
                assert_eq!(products[0], products[1], "{line}");
            }
        }
    }

    #[test]
    fn rows_that_are_not_alike_stay_as_they_are() {
        let rows = |values: &[f64]| Rows {
            each: 1,
            starts: (0..=values.len() as u32).collect::<Vec<_>>().into(),
            columns: (0..values.len() as u32).collect::<Vec<_>>().into(),
            values: Bulk::from_slice(values),
        };
        let of = |values: &[f64]| matches!(Operator::from(rows(values)), Operator::Alike(_));
        assert!(of(&[2.0; 100]));
        assert!(!of(&std::array::from_fn::<f64, 100, _>(|at| at as f64)));
        assert!(Operator::from(Rows::default()).is_empty() && Operator::default().is_empty());
    }
}
