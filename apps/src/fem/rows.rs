//! Sparse rows with a small square block of numbers for each pair of nodes, and what is computed with them.
//!
//! The order of operations on a number is fixed, so that results have the same bits on any machine.

use chares::Bulk;
use serde::{Deserialize, Serialize};

/// Rows of a matrix: one for each own node, with a block for each node beside it. A block has as many rows and columns as a
/// node has unknowns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rows {
    /// Unknowns of a node, 1 to 3.
    pub each: usize,
    /// Row `i` has the blocks `starts[i]..starts[i + 1]`.
    pub starts: Bulk<u32>,
    /// The node of each block, ascending in a row.
    pub columns: Bulk<u32>,
    /// The numbers of all blocks, row by row.
    pub values: Bulk<f64>,
}

impl Rows {
    /// Rows without numbers yet, where elements with these nodes join the own ones, which come first.
    #[must_use]
    pub fn of_elements<'a>(each: usize, own: usize, elements: impl Iterator<Item = &'a [u32]>) -> Self {
        let all: Vec<&[u32]> = elements.collect();
        let mut counts = vec![0u32; own + 1];
        let is_own = |node: &&u32| (**node as usize) < own;
        for element in &all {
            element.iter().filter(is_own).for_each(|&node| counts[node as usize + 1] += 1);
        }
        (0..own).for_each(|node| counts[node + 1] += counts[node]);
        let (mut of_nodes, mut next) = (vec![0u32; counts[own] as usize], counts.clone());
        for (at, element) in all.iter().enumerate() {
            for &node in element.iter().filter(is_own) {
                of_nodes[next[node as usize] as usize] = at as u32;
                next[node as usize] += 1;
            }
        }
        let (mut starts, mut columns) = (vec![0], Vec::new());
        let mut row = Vec::new();
        for node in 0..own {
            row.clear();
            for &element in &of_nodes[counts[node] as usize..counts[node + 1] as usize] {
                row.extend_from_slice(all[element as usize]);
            }
            row.sort_unstable();
            row.dedup();
            columns.extend_from_slice(&row);
            starts.push(columns.len() as u32);
        }
        let mut values = Bulk::zeros(columns.len() * each * each);
        // Sums are read before they are written, and a fresh page that is read first costs a second fault, at which the system
        // interrupts all other PEs of the process.
        values.as_mut_slice().fill(0.0);
        Self { each, starts: starts.into(), columns: columns.into(), values }
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        bytes_of(&self.starts, &self.columns, &self.values)
    }

    /// The place of the block of a row in a column.
    #[must_use]
    pub fn block(&self, row: usize, column: u32) -> Option<usize> {
        let (from, to) = (self.starts[row] as usize, self.starts[row + 1] as usize);
        self.columns[from..to].binary_search(&column).ok().map(|at| from + at)
    }

    /// The numbers on the diagonal, for each unknown.
    #[must_use]
    pub fn diagonal(&self) -> Vec<f64> {
        let each = self.each;
        let of = |row: usize| {
            let block = self.block(row, row as u32).map(|at| &self.values[at * each * each..]);
            (0..each).map(move |k| block.map_or(1.0, |block| block[k * each + k]))
        };
        (0..self.len()).flat_map(of).collect()
    }

    /// The rows times `x`, into `y`.
    pub fn multiply(&self, x: &[f64], y: &mut [f64]) {
        match self.each {
            1 => self.run::<1>(x, y, |y, sum| *y = sum),
            2 => self.run::<2>(x, y, |y, sum| *y = sum),
            _ => self.run::<3>(x, y, |y, sum| *y = sum),
        }
    }

    /// Takes the rows times `x` from `y`.
    pub fn subtract(&self, x: &[f64], y: &mut [f64]) {
        match self.each {
            1 => self.run::<1>(x, y, |y, sum| *y -= sum),
            2 => self.run::<2>(x, y, |y, sum| *y -= sum),
            _ => self.run::<3>(x, y, |y, sum| *y -= sum),
        }
    }

    #[inline(always)]
    fn run<const D: usize>(&self, x: &[f64], y: &mut [f64], put: impl Fn(&mut f64, f64)) {
        let x = x.as_chunks::<D>().0;
        // What is shared is looked up once, and not for each row.
        let (all_columns, values): (&[u32], &[f64]) = (&self.columns, &self.values);
        for (y, ends) in y.as_chunks_mut::<D>().0.iter_mut().zip(self.starts.windows(2)) {
            let (from, to) = (ends[0] as usize, ends[1] as usize);
            let columns = &all_columns[from..to];
            let blocks = values[from * D * D..to * D * D].as_chunks::<D>().0;
            // Two sums each, for an addition takes longer than the numbers of a small block.
            let mut sums = [[0.0; D]; 2];
            let (twos, one) = columns.as_chunks::<2>();
            let (of_twos, of_one) = blocks.split_at(twos.len() * 2 * D);
            for (columns, blocks) in twos.iter().zip(of_twos.chunks_exact(2 * D)) {
                add(&mut sums[0], &blocks[..D], &x[columns[0] as usize]);
                add(&mut sums[1], &blocks[D..], &x[columns[1] as usize]);
            }
            if let [column] = one {
                add(&mut sums[0], of_one, &x[*column as usize]);
            }
            (0..D).for_each(|k| put(&mut y[k], sums[0][k] + sums[1][k]));
        }
    }
}

/// Bytes that rows with these parts take.
pub(super) const fn bytes_of(starts: &[u32], columns: &[u32], values: &[f64]) -> usize {
    size_of_val(starts) + size_of_val(columns) + size_of_val(values)
}

/// Adds a block times the unknowns of a node.
#[inline(always)]
pub(super) fn add<const D: usize>(sums: &mut [f64; D], block: &[[f64; D]], x: &[f64; D]) {
    for (sum, row) in sums.iter_mut().zip(block) {
        for k in 0..D {
            *sum += row[k] * x[k];
        }
    }
}
