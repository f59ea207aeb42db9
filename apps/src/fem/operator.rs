//! A matrix as it is multiplied. Of rows that are alike but for where they are, as those inside a box, one is kept: they need
//! neither memory, nor its bandwidth, nor time when a subdomain moves.

use super::rows::{Rows, add, bytes_of};
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
        Alike::of(&rows).map_or(Self::Rows(rows), Self::Alike)
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
    /// Nothing if that is not worth it, which is seen before all rows have been looked at.
    fn of(rows: &Rows) -> Option<Self> {
        let most = rows.bytes() / WORTH;
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
            if bytes_of(&starts, &away, &values) + size_of_val(&runs[..]) > most {
                return None;
            }
        }
        let patterns =
            Rows { each: rows.each, starts: starts.into(), columns: away.into(), values: values.into() };
        (!runs.is_empty()).then_some(Self { patterns, runs })
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
            1 => self.run::<1>(x, y, put),
            2 => self.run::<2>(x, y, put),
            _ => self.run::<3>(x, y, put),
        }
    }

    /// Sums are added in the order in which [`Rows`] adds them, so that they have the same bits.
    #[inline(always)]
    fn run<const D: usize>(&self, x: &[f64], y: &mut [f64], put: impl Fn(&mut f64, f64)) {
        // What is shared is looked up once, and not for each run.
        let Rows { starts, columns, values, .. } = &self.patterns;
        let (starts, columns, values): (&[u32], &[u32], &[f64]) = (starts, columns, values);
        let mut next = 0;
        for &(pattern, count) in &self.runs {
            let (from, to) = (starts[pattern as usize] as usize, starts[pattern as usize + 1] as usize);
            let (away, values) = (&columns[from..to], &values[from * D * D..to * D * D]);
            let mut row = next;
            next += count as usize;
            let y = &mut y[row * D..next * D];
            let (of_lanes, rest) =
                if D == 1 { y.as_chunks_mut::<LANES>() } else { (&mut [] as &mut [[f64; LANES]], y) };
            for y in of_lanes {
                let sums = lanes(x, row, (away, values));
                (0..LANES).for_each(|lane| put(&mut y[lane], sums[0][lane] + sums[1][lane]));
                row += LANES;
            }
            let (x, blocks) = (x.as_chunks::<D>().0, values.as_chunks::<D>().0);
            for y in rest.as_chunks_mut::<D>().0 {
                let mut sums = [[0.0; D]; 2];
                for (number, (away, block)) in away.iter().zip(blocks.chunks_exact(D)).enumerate() {
                    add(&mut sums[number % 2], block, &x[column(row, *away)]);
                }
                (0..D).for_each(|k| put(&mut y[k], sums[0][k] + sums[1][k]));
                row += 1;
            }
        }
    }
}

/// The column that is so far from a row, modulo 2^32.
#[inline(always)]
const fn column(row: usize, away: u32) -> usize {
    (row as u32).wrapping_add(away) as usize
}

/// Both sums of some rows of one unknown that have the same pattern: its columns and numbers.
#[inline(always)]
fn lanes(x: &[f64], row: usize, (away, values): (&[u32], &[f64])) -> [[f64; LANES]; 2] {
    let mut sums = [[0.0; LANES]; 2];
    for (number, (away, value)) in away.iter().zip(values).enumerate() {
        let x = &x[column(row, *away)..][..LANES];
        let sums = &mut sums[number % 2];
        (0..LANES).for_each(|lane| sums[lane] += value * x[lane]);
    }
    sums
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
