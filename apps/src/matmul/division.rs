//! Who computes what of a product: shares that leave the nodes time for the blocks that come and go, and that fit into
//! their memory.
//!
//! A node without a spare core pays for its messages with the time of its PEs, and a slow one pays more for each
//! byte. By speed alone its share would be too big: see [`chares::loadbalance::overhead`]. What a node will hold follows
//! from its share, its blocks of C, the blocks of A and B that stay with it, and those that travel ahead of the work.

use super::arguments::{Algorithm, Matmul};
use super::{conventional, panel, side, tile};
use crate::division::{self, Blocks, Division, DivisionError, Shortage, Work, places, shares_of};
use crate::matrix::part;
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::{Items, Part, PartitionError, placement};
use std::ops::Range;

/// Groups of rows of Fox's algorithm that a node holds besides its own.
const TRAVELLING_GROUPS: usize = 2 * panel::AHEAD;

/// Who has what of a product.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Owners {
    /// PE `p` has the rows `rows[p]..rows[p + 1]` of A and C.
    Rows(Vec<u64>),
    /// The PE of each block of C, row by row of a grid of this side.
    Tiles(u32, Vec<u32>),
    /// Columns of B and C, and groups of rows of A.
    Panels(Panels),
}

/// Who has what of a product by Fox's algorithm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panels {
    /// PE `p` has the columns `columns[p]..columns[p + 1]` of B and C.
    pub(super) columns: Vec<u64>,
    /// Rows of a group.
    pub(super) grain: usize,
    /// PE `p` has the groups `groups[p]..groups[p + 1]` of A.
    pub(super) groups: Vec<u64>,
    /// Columns for which each PE has memory besides, while the product runs: as many it may take from others, and send
    /// away at once. Where nothing limits memory, all.
    pub(super) room: Vec<u64>,
}

/// Divides a product, such that all nodes end together and it fits, as far as that can be told beforehand.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub(super) fn divide(matmul: &Matmul, machines: &Machines) -> Result<Division<Owners>, DivisionError> {
    let matmul = side::settled(matmul, machines)?;
    let weights = machines.balanced(|weights| matmul.seconds(machines, weights))?;
    division::divide(&matmul, machines, weights)
}

impl Matmul {
    /// How long each PE will take if the work is divided by these weights.
    pub(super) fn seconds(&self, machines: &Machines, weights: &[f64]) -> Result<Vec<f64>, PartitionError> {
        let Division { shares, bytes, .. } = self.by(machines, weights)?;
        let work: Vec<f64> = shares.into_iter().map(|share| share * self.work()).collect();
        Ok(machines.seconds(&work, &bytes))
    }

    pub(super) fn number_bytes(&self) -> f64 {
        self.dtype_or_default().size_bytes() as f64
    }

    /// Rows, inner side and columns; longer ones than any memory has are cut, so that nothing below overflows.
    fn wide_sides(&self) -> [u128; 3] {
        let (m, k, n) = self.sides();
        [m, k, n].map(|side| (side as u128).min(1 << 40))
    }

    fn bytes(&self, numbers: u128) -> u64 {
        let size = self.dtype_or_default().size_bytes() as u128;
        u64::try_from(numbers.saturating_mul(size)).unwrap_or(u64::MAX)
    }

    /// Bounds of the rows, columns or groups of each PE, of `count` in all.
    fn strips(count: u128, weights: &[f64]) -> Result<Vec<u64>, PartitionError> {
        let items = Items::alike(u64::try_from(count).unwrap_or(u64::MAX));
        placement::contiguous(&items, &Part::each(weights))
    }

    /// Rows of A and C; all of B is on every node.
    fn rows(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Owners>, PartitionError> {
        let [m, k, n] = self.wide_sides();
        let bounds = Self::strips(m, weights)?;
        let default = || conventional::default_grain(self.sides().0, weights.len());
        let grain = (self.grain.unwrap_or_else(default) as u128).min(m);
        // Each PE may have rows of two chares of others at a time.
        let lent = if machines.nodes.len() > 1 { 2 * grain } else { 0 };
        let rows = |pes: &Range<u32>| between(&bounds, pes) + lent * pes.len() as u128;
        let numbers = machines.pes().into_iter().map(|pes| k * n + rows(&pes) * (k + n));
        Ok(Division {
            weights: weights.to_vec(),
            shares: shares_of(&bounds),
            bytes: vec![Bytes::default(); machines.nodes.len()],
            memory: numbers.map(|numbers| self.bytes(numbers)).collect(),
            owners: Owners::Rows(bounds),
        })
    }

    /// Blocks of C, and with them those of A and B that pass through them.
    fn tiles(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Owners>, PartitionError> {
        let q = self.side();
        let Blocks { owners, nodes, traffic, shares } = division::blocks(q, machines, weights)?;
        let (m, k, n) = self.sides();
        let blocks = f64::from(q) * f64::from(q);
        let (a_bytes, b_bytes) = (m as f64 * k as f64 / blocks, k as f64 * n as f64 / blocks);
        let bytes = traffic.iter().map(|t| {
            let bytes = |a, b| self.number_bytes() * (a as f64 * a_bytes + b as f64 * b_bytes);
            Bytes { sent: bytes(t.a_out, t.b_out), received: bytes(t.a_in, t.b_in) }
        });
        Ok(Division {
            weights: weights.to_vec(),
            shares,
            bytes: bytes.collect(),
            memory: (0..machines.nodes.len())
                .map(|node| self.bytes(self.numbers_of_tiles(&nodes, node)))
                .collect(),
            owners: Owners::Tiles(q, owners),
        })
    }

    /// Numbers that a node holds, where `nodes` has the node of each block of C: of a grid row it keeps the blocks of A
    /// that it begins with until the end, as many as it has places there; as many others pass through them, and some more
    /// are on their way. Of a grid column likewise.
    fn numbers_of_tiles(&self, nodes: &[usize], node: usize) -> u128 {
        let (q, (m, _, n)) = (self.side(), self.sides());
        let [_, wide_k, _] = self.wide_sides();
        let inner = wide_k.div_ceil(u128::from(q));
        let lengths = |side: usize| -> Vec<u128> {
            (0..q).map(|at| (part(side, q, at).len() as u128).min(1 << 40)).collect()
        };
        let (rows, columns) = (lengths(m), lengths(n));
        let mut numbers = 0;
        let (mut in_row, mut in_column) = (vec![0; rows.len()], vec![0; columns.len()]);
        for (i, line) in nodes.chunks(q as usize).enumerate() {
            for (j, _) in line.iter().enumerate().filter(|(_, owner)| **owner == node) {
                numbers += rows[i] * columns[j];
                in_row[i] += 1;
                in_column[j] += 1;
            }
        }
        for (places, long) in in_row.into_iter().zip(&rows).chain(in_column.into_iter().zip(&columns)) {
            numbers += u128::from(tile::held_at_most(q, places)) * long * inner;
        }
        numbers
    }

    /// Columns of B and C. Each node gets all of A but its own groups, and sends its own to all others.
    fn panels(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Owners>, PartitionError> {
        let [m, k, n] = self.wide_sides();
        let columns = Self::strips(n, weights)?;
        let shares = shares_of(&columns);
        let pes = machines.pes();
        let (others, all) = (pes.len().saturating_sub(1) as f64, self.number_bytes() * m as f64 * k as f64);
        let bytes = pes.iter().map(|pes| {
            let own: f64 = pes.clone().map(|pe| shares[pe as usize]).sum();
            Bytes { sent: all * own * others, received: all * (1.0 - own) }
        });
        let grain = self.grain.unwrap_or_else(|| panel::default_grain(self.sides().0));
        let travelling = match pes.len() {
            1 => 0,
            _ => (TRAVELLING_GROUPS.saturating_mul(grain) as u128).min(m) * k,
        };
        let held = |columns: u128| columns * (k + m) + (m * columns).div_ceil(n.max(1)) * k;
        let numbers = pes.iter().map(|pes| travelling + held(between(&columns, pes)));
        let memory: Vec<u64> = numbers.map(|numbers| self.bytes(numbers)).collect();
        let groups = Self::strips(m.div_ceil(grain as u128), weights)?;
        let room = self.spare_columns(machines, &memory);
        Ok(Division {
            weights: weights.to_vec(),
            bytes: bytes.collect(),
            shares,
            memory,
            owners: Owners::Panels(Panels { columns, grain, groups, room }),
        })
    }

    /// See [`Panels::room`]. The PEs of a place share what is free there, and leave half of it: a plan is not exact.
    fn spare_columns(&self, machines: &Machines, memory: &[u64]) -> Vec<u64> {
        let ([m, k, n], of_nodes) = (self.wide_sides(), machines.pes());
        let column_bytes = self.bytes(m + k).max(1);
        let mut spare = vec![u64::try_from(n).unwrap_or(u64::MAX); machines.rates().len()];
        for place in places(machines, self) {
            let pes = || place.nodes.iter().flat_map(|&at| of_nodes[at].clone());
            let free = place.room.saturating_sub(place.need(memory)) / 2;
            let each = free / (pes().count().max(1) as u64) / column_bytes;
            pes().for_each(|pe| spare[pe as usize] = spare[pe as usize].min(each));
        }
        spare
    }
}

/// How many items the PEs of a node have, where PE `p` has `bounds[p]..bounds[p + 1]`.
fn between(bounds: &[u64], pes: &Range<u32>) -> u128 {
    u128::from(bounds[pes.end as usize] - bounds[pes.start as usize])
}

impl Work for Matmul {
    type Owners = Owners;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Owners>, PartitionError> {
        match self.algorithm {
            Algorithm::Conventional => self.rows(machines, weights),
            Algorithm::Cannon | Algorithm::FoxHeyOtto => self.tiles(machines, weights),
            Algorithm::Fox => self.panels(machines, weights),
        }
    }

    fn what(&self) -> String {
        let (m, k, n) = self.sides();
        format!("a {m} x {k} times {k} x {n} product in {}", self.dtype_or_default())
    }

    /// The launcher has the files' factors, and what is still to be sent of them to other hosts (on its own host
    /// that is counted where it arrives); the product, if somebody wants to see it; and to check it the factors.
    fn of_launcher(&self, sends_elsewhere: bool) -> u64 {
        let ([m, k, n], is_given) = (self.wide_sides(), self.a.is_some());
        let factors = m * k + k * n;
        let sent = match (is_given, self.algorithm) {
            (true, _) if sends_elsewhere => 2 * factors,
            (true, _) => factors,
            (false, Algorithm::Conventional) => k * n,
            (false, _) => 0,
        };
        let shown = if self.out.is_some() || self.verify { m * n } else { 0 };
        let checked = if self.verify && !is_given { factors } else { 0 };
        self.bytes(sent + shown + checked)
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take smaller matrices or more nodes, or raise its `memory` in the nodes file",
            Shortage::LaunchersHost if self.verify || self.out.is_some() => {
                "take smaller matrices, `--dtype f32` or more hosts, or leave out `--verify` and `--out`"
            }
            Shortage::Host | Shortage::LaunchersHost => "take smaller matrices, `--dtype f32` or more hosts",
        }
    }
}

#[cfg(test)]
mod tests;
