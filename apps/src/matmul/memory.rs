//! How much memory a product takes: what a node will hold follows from its share, its blocks of C, the blocks of A and
//! B that stay with it, and those that travel ahead of the work.

use super::arguments::{Algorithm, Matmul};
use super::drive::speeds_by_node;
use super::{conventional, panel, tile};
use crate::matrix::Dtype;
use crate::matrix::part;
use crate::memory::{self, Lack, MemoryError, Need, places};
use chares::loadbalance::{PartitionError, grid, placement};
use chares::{Cx, Driver, NodeShape, RunError};
use std::fmt;
use std::ops::Range;

/// Groups of rows of Fox's algorithm that a node holds besides its own.
const TRAVELLING_GROUPS: usize = 2 * panel::AHEAD;
/// Refuses a product that the nodes cannot hold; where only some cannot, shifts their shares to the others.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub(super) fn check(main: &mut Driver, matmul: &Matmul) -> Result<(), RunError> {
    memory::check(main, &Product::of(matmul))
}

/// Columns for which each PE has memory besides what is planned, while Fox's product runs: as many it may take from
/// others, and send away at once. Where nothing limits memory, all.
///
/// # Errors
/// If there is nothing to divide by.
pub(super) fn spare_columns(main: &mut Driver, matmul: &Matmul) -> Result<Vec<u64>, RunError> {
    let speeds = main.speeds();
    let spare = Product::of(matmul).spare_columns(main.launcher(), main.nodes(), &speeds);
    spare.map_err(|e| RunError::Input(MemoryError::from(e).to_string()))
}

/// What decides how much memory a product needs.
#[derive(Debug)]
struct Product {
    /// Rows, inner side and columns.
    sides: (usize, usize, usize),
    dtype: Dtype,
    algorithm: Algorithm,
    q: u32,
    grain: Option<usize>,
    is_given: bool,
    is_verified: bool,
    is_written: bool,
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (m, k, n) = self.sides;
        write!(f, "a {m} x {k} times {k} x {n} product in {}", self.dtype)
    }
}

impl Product {
    fn of(matmul: &Matmul) -> Self {
        Self {
            sides: matmul.sides(),
            dtype: matmul.dtype_or_default(),
            algorithm: matmul.algorithm,
            q: matmul.side(),
            grain: matmul.grain,
            is_given: matmul.a.is_some(),
            is_verified: matmul.verify,
            is_written: matmul.out.is_some(),
        }
    }

    /// Rows, inner side and columns; longer ones than any memory has are cut, so that nothing below overflows.
    fn wide_sides(&self) -> [u128; 3] {
        let (m, k, n) = self.sides;
        [m, k, n].map(|side| (side as u128).min(1 << 40))
    }

    fn bytes(&self, numbers: u128) -> u64 {
        u64::try_from(numbers.saturating_mul(self.dtype.size_bytes() as u128)).unwrap_or(u64::MAX)
    }

    /// See [`spare_columns`]. The PEs of a place share what is free there, and leave half of it: a plan is not exact.
    fn spare_columns(
        &self,
        launcher: &NodeShape,
        nodes: &[NodeShape],
        speeds: &[f64],
    ) -> Result<Vec<u64>, PartitionError> {
        let needs = self.of_nodes(nodes, speeds)?;
        let [m, k, n] = self.wide_sides();
        let column_bytes = self.bytes(m + k).max(1);
        let mut spare = vec![u64::try_from(n).unwrap_or(u64::MAX); speeds.len()];
        for place in places(launcher, nodes, self) {
            let pes = || place.nodes.iter().flat_map(|&at| nodes[at].pes.clone());
            let free = place.room.saturating_sub(place.need(&needs)) / 2;
            let each = free / (pes().count().max(1) as u64) / column_bytes;
            pes().for_each(|pe| spare[pe as usize] = spare[pe as usize].min(each));
        }
        Ok(spare)
    }

    /// Of a grid row a node keeps the blocks of A that it begins with until the end, as many as it has places
    /// there; as many others pass through them, and some more are on their way. Of a grid column likewise.
    fn tiles(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u128>, PartitionError> {
        let q = self.q;
        let of_nodes = speeds_by_node(nodes.iter().map(|node| &node.pes), speeds);
        let owners = grid::rectangles(q, q, &of_nodes)?;
        let [_, wide_k, _] = self.wide_sides();
        let inner = wide_k.div_ceil(u128::from(q));
        let lengths = |side: usize| -> Vec<u128> {
            (0..q).map(|at| (part(side, q, at).len() as u128).min(1 << 40)).collect()
        };
        let (rows, columns) = (lengths(self.sides.0), lengths(self.sides.2));
        let of_node = |pes: &Range<u32>| {
            let mut numbers = 0;
            let (mut in_row, mut in_column) = (vec![0; rows.len()], vec![0; columns.len()]);
            for (i, line) in owners.chunks(q as usize).enumerate() {
                for (j, _) in line.iter().enumerate().filter(|(_, pe)| pes.contains(pe)) {
                    numbers += rows[i] * columns[j];
                    in_row[i] += 1;
                    in_column[j] += 1;
                }
            }
            for (places, long) in in_row.into_iter().zip(&rows).chain(in_column.into_iter().zip(&columns)) {
                numbers += u128::from(tile::held_at_most(q, places)) * long * inner;
            }
            numbers
        };
        Ok(nodes.iter().map(|node| of_node(&node.pes)).collect())
    }
}

impl Need for Product {
    fn of_nodes(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
        let [m, k, n] = self.wide_sides();
        let of_node = |bounds: &[u64], pes: &Range<u32>| {
            u128::from(bounds[pes.end as usize] - bounds[pes.start as usize])
        };
        let count = |side: u128| u64::try_from(side).unwrap_or(u64::MAX);
        let numbers: Vec<u128> = match self.algorithm {
            Algorithm::Conventional => {
                let bounds = placement::weighted_bounds(count(m), speeds)?;
                let default = || conventional::default_grain(self.sides.0, speeds.len());
                let grain = (self.grain.unwrap_or_else(default) as u128).min(m);
                // Each PE may have rows of two chares of others at a time.
                let lent = if speeds.len() > 1 { 2 * grain } else { 0 };
                let rows = |pes: &Range<u32>| of_node(&bounds, pes) + lent * pes.len() as u128;
                nodes.iter().map(|node| k * n + rows(&node.pes) * (k + n)).collect()
            }
            Algorithm::Fox => {
                let bounds = placement::weighted_bounds(count(n), speeds)?;
                let grain = self.grain.unwrap_or_else(|| panel::default_grain(self.sides.0));
                let travelling = (TRAVELLING_GROUPS.saturating_mul(grain) as u128).min(m) * k;
                let held = |columns: u128| columns * (k + m) + (m * columns).div_ceil(n.max(1)) * k;
                nodes.iter().map(|node| travelling + held(of_node(&bounds, &node.pes))).collect()
            }
            Algorithm::Cannon | Algorithm::FoxHeyOtto => self.tiles(nodes, speeds)?,
        };
        Ok(numbers.into_iter().map(|numbers| self.bytes(numbers)).collect())
    }

    /// The launcher has the files' factors, and what is still to be sent of them to other hosts (on its own host
    /// that is counted where it arrives); the product, if somebody wants to see it; and to check it the factors.
    fn of_launcher(&self, sends_elsewhere: bool) -> u64 {
        let [m, k, n] = self.wide_sides();
        let factors = m * k + k * n;
        let sent = match (self.is_given, self.algorithm) {
            (true, _) if sends_elsewhere => 2 * factors,
            (true, _) => factors,
            (false, Algorithm::Conventional) => k * n,
            (false, _) => 0,
        };
        let shown = if self.is_written || self.is_verified { m * n } else { 0 };
        let checked = if self.is_verified && !self.is_given { factors } else { 0 };
        self.bytes(sent + shown + checked)
    }

    fn mend(&self, place: Lack) -> &'static str {
        match place {
            Lack::Node => "take smaller matrices or more nodes, or raise its `memory` in the nodes file",
            Lack::LaunchersHost if self.is_verified || self.is_written => {
                "take smaller matrices, `--dtype f32` or more hosts, or leave out `--verify` and `--out`"
            }
            Lack::Host | Lack::LaunchersHost => "take smaller matrices, `--dtype f32` or more hosts",
        }
    }
}

#[cfg(test)]
mod tests;
