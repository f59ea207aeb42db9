//! What a run needs of memory, and which node has which rows. Nothing else is dealt out beforehand: subproblems go to PEs that
//! ask for them.

use super::arguments::Adjacency;
use super::graph::words_of;
use super::walk::{AHEAD, local_vertices};
use crate::division::{self, Division, DivisionError, Shortage, Work};
use chares::loadbalance::machines::Machines;
use chares::loadbalance::{Items, Part, PartitionError, placement};
use std::ops::Range;

/// A search, as far as memory is concerned.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) vertices: usize,
    /// Of the graph that an independent set is wanted of.
    pub(super) density: f64,
    /// Where the graph is kept.
    pub(super) adjacency: Adjacency,
    /// Whether it is in a file.
    pub(super) is_read: bool,
}

impl Plan {
    /// Bytes of so many rows.
    fn rows(&self, count: usize) -> u64 {
        8 * count as u64 * words_of(self.vertices) as u64
    }

    /// Bytes of a subproblem in a graph of so many vertices: as many levels as large sets of a random graph of this density
    /// have vertices, each with a set and with branches that get fewer from one to the next.
    fn subproblem(&self, graph: usize) -> u64 {
        let vertices = self.vertices.max(2) as f64;
        let depth = 16.0 + 2.0 * vertices.ln() / -(1.0 - self.density.clamp(0.001, 0.999)).ln();
        let levels = depth.min(vertices) as u64;
        levels * 8 * words_of(graph) as u64 * 2 + levels.min(64) * 8 * graph as u64
    }

    /// States that it fits on these machines. What each node has of the rows, as bounds, if it has not all of them.
    ///
    /// # Errors
    /// Which node or host has too little memory, how much is needed there, and how to mend it.
    pub(super) fn divide(&self, machines: &Machines) -> Result<Division<Vec<u64>>, DivisionError> {
        let weights = match self.adjacency {
            Adjacency::Basic => machines.speeds(),
            // Who has the rows of a vertex does little with them: what counts is that no node has many.
            Adjacency::Partitioned => {
                machines.pes().iter().flat_map(|pes| pes.clone().map(|_| 1.0 / pes.len() as f64)).collect()
            }
        };
        division::divide(self, machines, weights)
    }

    /// Bytes of the rows on each of so many nodes.
    pub(super) fn adjacency(&self, division: &Division<Vec<u64>>) -> Vec<u64> {
        match self.adjacency {
            Adjacency::Basic => vec![self.rows(self.vertices); division.memory.len()],
            Adjacency::Partitioned => {
                division.owners.windows(2).map(|bounds| self.rows((bounds[1] - bounds[0]) as usize)).collect()
            }
        }
    }
}

impl Work for Plan {
    /// Bounds of the rows of each node; none where every node has all.
    type Owners = Vec<u64>;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Vec<u64>>, PartitionError> {
        let pes = machines.pes();
        let (mut owners, mut memory) = (Vec::new(), Vec::new());
        match self.adjacency {
            Adjacency::Basic => {
                // A graph that arrives is there twice for a moment; a PE has a subproblem, a spare one and one that it gives
                // away.
                let of = |pes: &Range<u32>| {
                    2 * self.rows(self.vertices) + pes.len() as u64 * 3 * self.subproblem(self.vertices)
                };
                memory.extend(pes.iter().map(of));
            }
            Adjacency::Partitioned => {
                let of_node = |pes: &Range<u32>| weights[pes.start as usize..pes.end as usize].iter().sum();
                let nodes: Vec<f64> = pes.iter().map(of_node).collect();
                owners = placement::contiguous(&Items::alike(self.vertices as u64), &Part::each(&nodes))?;
                let local = local_vertices(self.vertices);
                let times = if self.is_read { 2 } else { 1 };
                for (pes, bounds) in pes.iter().zip(owners.windows(2)) {
                    // The first walk may be anywhere. From one level to the next about the half is left.
                    let walk = 2 * 8 * self.vertices as u64;
                    let graph = 8 * (local * words_of(local)) as u64;
                    let subproblems = u64::from(AHEAD * (AHEAD + 1)) * (graph + self.subproblem(local));
                    let each = subproblems + u64::from(AHEAD) * walk / 2;
                    memory.push(
                        times * self.rows((bounds[1] - bounds[0]) as usize) + walk + pes.len() as u64 * each,
                    );
                }
            }
        }
        Ok(Division { owners, weights: weights.to_vec(), shares: Vec::new(), bytes: Vec::new(), memory })
    }

    fn what(&self) -> String {
        format!("a search in a graph of {} vertices", self.vertices)
    }

    fn of_launcher(&self, _: bool) -> u64 {
        match (self.adjacency, self.is_read) {
            // The graph, its complement, and what is sent.
            (Adjacency::Basic, _) => 3 * self.rows(self.vertices),
            // The graph, and its complement, of which each node is sent a part.
            (Adjacency::Partitioned, true) => 2 * self.rows(self.vertices),
            // Rows that are made to complete the set and to check it.
            (Adjacency::Partitioned, false) => self.rows(8),
        }
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take a smaller graph, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take a smaller graph, or hosts with more memory",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::{Link, Memory};

    fn partitioned(vertices: usize) -> Plan {
        Plan { vertices, density: 0.54, adjacency: Adjacency::Partitioned, is_read: false }
    }

    #[test]
    fn a_twelfth_of_the_rows_of_15000_vertices_is_less_than_2_4_million_bytes() {
        let link = Link { latency_s: 1e-4, bytes_per_s: 1e9 };
        let unlike: Vec<&[f64]> =
            (0..12).map(|at| if at < 6 { &[1.0, 0.5][..] } else { &[0.1][..] }).collect();
        let machines = Machines::on_one_host(&unlike, link);
        let plan = partitioned(15_000);
        let division = plan.divide(&machines).unwrap();
        assert_eq!(plan.adjacency(&division), [1250 * 235 * 8; 12]);
        assert!(division.memory.iter().all(|bytes| (2_400_000..12_000_000).contains(bytes)), "{division:?}");
        let basic = Plan { adjacency: Adjacency::Basic, ..plan };
        assert_eq!(basic.adjacency(&basic.divide(&machines).unwrap()), [15_000 * 235 * 8; 12]);
    }

    #[test]
    fn a_node_with_little_memory_has_fewer_rows_and_too_little_altogether_is_refused() {
        let link = Link { latency_s: 1e-4, bytes_per_s: 1e9 };
        let mut machines = Machines::on_one_host(&[&[1.0], &[1.0]], link);
        let limited = |mib: u64| Memory { limit_bytes: Some(mib << 20), ..Memory::default() };
        machines.nodes[1].memory = limited(120);
        let plan = partitioned(60_000);
        let held = plan.adjacency(&plan.divide(&machines).unwrap());
        assert!(held[1] < 100 << 20 && held[0] > 300 << 20, "{held:?}");
        machines.nodes[0].memory = limited(120);
        let refused = plan.divide(&machines).unwrap_err().to_string();
        assert!(refused.contains("a search in a graph of 60000 vertices needs "), "{refused}");
    }
}
