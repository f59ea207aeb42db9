//! How much memory a system takes: a node holds the rows of its PEs and the parts of x that these need.

use super::arguments::Jacobi;
use super::work::AHEAD;
use crate::matrix::Dtype;
use crate::memory::{Lack, Need};
use chares::NodeShape;
use chares::loadbalance::{PartitionError, placement};
use std::fmt;

/// A sparse entry's column, and a row's beginning, bytes.
const COLUMN_BYTES: u128 = 4;
const START_BYTES: u128 = 8;
/// A number is held as two 64-bit ones and a column while a file of entries is read.
const TRIPLET_BYTES: u128 = 28;

/// What decides how much memory a system needs.
#[derive(Debug)]
pub(super) struct Size {
    n: usize,
    rhs: usize,
    dtype: Dtype,
    entries: u64,
    is_dense: bool,
    is_given: bool,
    is_collected: bool,
}

impl Size {
    pub(super) fn of(jacobi: &Jacobi) -> Self {
        Self {
            n: jacobi.system.n,
            rhs: jacobi.system.rhs,
            dtype: jacobi.system.dtype_or_default(),
            entries: jacobi.entries(),
            is_dense: jacobi.is_dense(),
            is_given: jacobi.system.a.is_some(),
            is_collected: jacobi.verify || jacobi.system.out.is_some(),
        }
    }

    fn number_bytes(&self) -> u128 {
        self.dtype.size_bytes() as u128
    }

    /// Bytes of all rows of A.
    fn matrix_bytes(&self) -> u128 {
        let entries = u128::from(self.entries);
        if self.is_dense {
            return entries * self.number_bytes();
        }
        entries * (self.number_bytes() + COLUMN_BYTES) + self.n as u128 * START_BYTES
    }

    /// Bytes of a number for each unknown and right-hand side.
    fn vector_bytes(&self) -> u128 {
        self.n as u128 * self.rhs as u128 * self.number_bytes()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n, rhs, dtype, entries, .. } = self;
        let sides = if *rhs == 1 { "one right-hand side".into() } else { format!("{rhs} right-hand sides") };
        if self.is_dense {
            write!(f, "a dense system of {n} unknowns with {sides} in {dtype}")
        } else {
            write!(f, "a sparse system of {n} unknowns and {entries} entries with {sides} in {dtype}")
        }
    }
}

impl Need for Size {
    fn of_nodes(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
        let bounds = placement::weighted_bounds(self.n as u64, speeds)?;
        let n = self.n.max(1) as u128;
        let needs = nodes.iter().map(|node| {
            let rows = u128::from(bounds[node.pes.end as usize] - bounds[node.pes.start as usize]);
            let pes = node.pes.len() as u128;
            // Rows that were sent lie beside those that are made of them until they all are.
            let copies = if self.is_given { 2 } else { 1 };
            let matrix = self.matrix_bytes() * rows / n * copies;
            // B, the diagonal, sums, and x of the last iterations.
            let own = (u128::from(AHEAD) + 8) * self.vector_bytes() * rows / n;
            // Every PE has all of x that its rows need, and parts of the next one.
            let others = if self.is_dense { pes } else { 1 };
            matrix + own + self.vector_bytes() * 2 * others
        });
        Ok(needs.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX)).collect())
    }

    fn of_launcher(&self, sends_elsewhere: bool) -> u64 {
        let read = match (self.is_given, self.is_dense) {
            (false, _) => 0,
            (true, true) => self.matrix_bytes(),
            (true, false) => self.matrix_bytes() + u128::from(self.entries) * TRIPLET_BYTES,
        };
        // What goes to the own host is counted where it arrives.
        let sent = if self.is_given && sends_elsewhere { self.matrix_bytes() } else { 0 };
        let collected = if self.is_collected { 2 * self.vector_bytes() } else { 0 };
        u64::try_from(read + sent + collected).unwrap_or(u64::MAX)
    }

    fn mend(&self, place: Lack) -> &'static str {
        match (place, self.is_dense) {
            (Lack::Node, _) => "take a smaller system or more nodes, or raise its `memory` in the nodes file",
            (_, true) => "take a smaller or a sparse system, `--dtype f32` or more hosts",
            (_, false) => "take a smaller system, `--dtype f32` or more hosts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::plan;

    const MIB: u64 = 1 << 20;

    fn size(n: usize, entries: u64, is_dense: bool) -> Size {
        let (rhs, dtype, is_given, is_collected) = (1, Dtype::F64, false, false);
        Size { n, rhs, dtype, entries, is_dense, is_given, is_collected }
    }

    fn hosts(mib: [u64; 2]) -> (NodeShape, Vec<NodeShape>) {
        let shape = |name: &str, pes, mib: u64| NodeShape {
            name: name.into(),
            host: name.into(),
            pes,
            host_memory_bytes: Some(mib * MIB),
            ..NodeShape::default()
        };
        (shape("launcher", 0..0, 4096), vec![shape("one", 0..1, mib[0]), shape("two", 1..2, mib[1])])
    }

    #[test]
    fn a_node_holds_its_rows_and_x() {
        let (_, nodes) = hosts([1000, 1000]);
        let needs = size(1000, 1_000_000, true).of_nodes(&nodes, &[3.0, 1.0]).unwrap();
        assert!(
            (6_000_000..6_200_000).contains(&needs[0]) && (2_000_000..2_100_000).contains(&needs[1]),
            "{needs:?}"
        );
        let needs = size(1_000_000, 5_000_000, false).of_nodes(&nodes, &[1.0, 1.0]).unwrap();
        assert!((34_000_000..100_000_000).contains(&needs[0]), "{needs:?}");
    }

    #[test]
    fn a_small_host_gets_fewer_rows_and_what_fits_nowhere_is_refused() {
        let (launcher, nodes) = hosts([1000, 100]);
        let fits = plan(&size(8000, 64_000_000, true), &launcher, &nodes, &[1.0, 1.0]).unwrap();
        assert!(fits.speeds[1] < 0.5 && fits.needs[1] < 76 * MIB, "{fits:?}");
        let refused =
            plan(&size(80_000, 6_400_000_000, true), &launcher, &nodes, &[1.0, 1.0]).unwrap_err().to_string();
        assert!(
            refused.starts_with("a dense system of 80000 unknowns with one right-hand side in f64 needs "),
            "{refused}"
        );
        assert!(refused.contains("GiB on host \"two\"") && refused.ends_with("or more hosts"), "{refused}");
    }
}
