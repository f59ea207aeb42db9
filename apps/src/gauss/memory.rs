//! How much memory an elimination takes: a node holds the rows or columns of its PEs, and panels that wait for them.

use super::arguments::{Algorithm, Gauss};
use super::plan::{self, Plan};
use crate::matrix::Dtype;
use crate::memory::{Lack, Need};
use chares::NodeShape;
use chares::loadbalance::{PartitionError, cyclic};
use std::fmt;

/// What decides how much memory a system needs.
#[derive(Debug)]
pub(super) struct Size {
    n: usize,
    rhs: usize,
    width: usize,
    dtype: Dtype,
    algorithm: Algorithm,
    is_given: bool,
}

impl Size {
    pub(super) fn of(gauss: &Gauss) -> Self {
        let system = &gauss.system;
        Self {
            n: system.n,
            rhs: system.rhs,
            width: gauss.width(),
            dtype: system.dtype_or_default(),
            algorithm: gauss.algorithm,
            is_given: system.a.is_some(),
        }
    }

    fn bytes(&self, numbers: u128) -> u64 {
        u64::try_from(numbers.saturating_mul(self.dtype.size_bytes() as u128)).unwrap_or(u64::MAX)
    }

    /// Numbers of A and B.
    fn numbers(&self) -> u128 {
        self.n as u128 * (self.n as u128 + self.rhs as u128)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n, rhs, dtype, .. } = self;
        let sides = if *rhs == 1 { "one right-hand side".into() } else { format!("{rhs} right-hand sides") };
        write!(f, "a system of {n} unknowns with {sides} in {dtype}")
    }
}

impl Need for Size {
    fn of_nodes(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
        let [of_a, of_b] = match self.algorithm {
            Algorithm::Columns => [self.n, 0],
            Algorithm::Blocked => Plan::counts(self.n, self.rhs, self.width),
        };
        let owners = cyclic::weighted_cyclic(of_a + of_b, speeds)?;
        // Rows that were sent lie beside those that are made of them until they all are.
        let copies = if self.is_given { 2 } else { 1 };
        let panel = self.n as u128 * self.width as u128;
        let needs = nodes.iter().map(|node| {
            let is_here = |owner: &u32| node.pes.contains(owner);
            let own = owners.iter().filter(|owner| is_here(owner)).count() as u128;
            let held = self.numbers() * own / owners.len().max(1) as u128 * copies;
            let waiting = match self.algorithm {
                Algorithm::Columns => (self.n + self.rhs) as u128 * node.pes.len() as u128,
                Algorithm::Blocked => panel * plan::panels_waiting(&owners[..of_a], node.pes.clone()) as u128,
            };
            self.bytes(held + waiting)
        });
        Ok(needs.collect())
    }

    fn of_launcher(&self, sends_elsewhere: bool) -> u64 {
        let given = if self.is_given { self.numbers() } else { 0 };
        // What goes to the own host is counted where it arrives.
        let sent = if sends_elsewhere { given } else { 0 };
        self.bytes(given + sent + 3 * self.n as u128 * self.rhs as u128)
    }

    fn mend(&self, place: Lack) -> &'static str {
        match place {
            Lack::Node => "take a smaller system or more nodes, or raise its `memory` in the nodes file",
            Lack::Host | Lack::LaunchersHost => "take a smaller system, `--dtype f32` or more hosts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(algorithm: Algorithm, n: usize, pes: &[u32], speeds: &[f64]) -> Vec<u64> {
        let (rhs, width, dtype, is_given) = (1, 128, Dtype::F64, false);
        let mut first = 0;
        let shape = |&count: &u32| {
            first += count;
            NodeShape { pes: first - count..first, ..NodeShape::default() }
        };
        let nodes: Vec<NodeShape> = pes.iter().map(shape).collect();
        Size { n, rhs, width, dtype, algorithm, is_given }.of_nodes(&nodes, speeds).unwrap()
    }

    #[test]
    fn one_node_holds_the_system_and_some_panels() {
        let whole = 8 * 4096 * 4097;
        for algorithm in [Algorithm::Columns, Algorithm::Blocked] {
            let needs = need(algorithm, 4096, &[2], &[1.0, 1.0]);
            assert!((whole..whole + whole / 4).contains(&needs[0]), "{algorithm:?}: {needs:?} for {whole}");
        }
    }

    #[test]
    fn a_slow_node_holds_less_of_the_system_and_more_panels() {
        let needs = need(Algorithm::Blocked, 12_800, &[1, 1], &[1.0, 0.25]);
        let (columns, panel) = (8 * 12_800 * 12_800, 8 * 12_800 * 128);
        assert!((columns / 5 + 5 * panel..columns / 5 + 12 * panel).contains(&needs[1]), "{needs:?}");
        assert!(needs[0] > columns * 4 / 5, "{needs:?}");
    }
}
