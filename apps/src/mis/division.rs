//! What a run needs of memory. Nothing is dealt out beforehand: subproblems go to PEs that ask for them.

use super::graph::words_of;
use crate::division::{self, Division, DivisionError, Shortage, Work};
use chares::loadbalance::PartitionError;
use chares::loadbalance::machines::Machines;

/// A search, as far as memory is concerned.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) vertices: usize,
    /// Of the graph that an independent set is wanted of.
    pub(super) density: f64,
}

impl Plan {
    /// Bytes of a graph.
    fn rows(&self) -> u64 {
        8 * self.vertices as u64 * words_of(self.vertices) as u64
    }

    /// Bytes of a subproblem: as many levels as large sets of a random graph of this density have vertices, each with a set
    /// and with branches that get fewer from one to the next.
    fn subproblem(&self) -> u64 {
        let vertices = self.vertices.max(2) as f64;
        let depth = 16.0 + 2.0 * vertices.ln() / -(1.0 - self.density.clamp(0.001, 0.999)).ln();
        let levels = depth.min(vertices) as u64;
        levels * 8 * words_of(self.vertices) as u64 * 2 + levels.min(64) * 8 * self.vertices as u64
    }

    /// States that it fits on these machines.
    ///
    /// # Errors
    /// Which node or host has too little memory, how much is needed there, and how to mend it.
    pub(super) fn divide(&self, machines: &Machines) -> Result<Division<()>, DivisionError> {
        division::divide(self, machines, machines.speeds())
    }
}

impl Work for Plan {
    type Owners = ();

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<()>, PartitionError> {
        // A graph that arrives is there twice for a moment; a PE has a subproblem, a spare one and one that it gives away.
        let memory =
            machines.pes().into_iter().map(|pes| 2 * self.rows() + pes.len() as u64 * 3 * self.subproblem());
        let memory = memory.collect();
        Ok(Division { owners: (), weights: weights.to_vec(), shares: Vec::new(), bytes: Vec::new(), memory })
    }

    fn what(&self) -> String {
        format!("a search in a graph of {} vertices", self.vertices)
    }

    fn of_launcher(&self, _: bool) -> u64 {
        // The graph, its complement in order, and what is sent.
        3 * self.rows()
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take a smaller graph, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take a smaller graph, or hosts with more memory",
        }
    }
}
