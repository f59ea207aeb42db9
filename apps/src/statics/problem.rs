//! What is relaxed, as every node knows it: each makes its own blocks from this, and nobody else's.

use super::block::{Block, Class};
use super::crystal::Crystal;
use super::partition::Partition;
use super::potential::Potential;
use super::relax::{Limits, Method, Order, Relaxation};
use super::serial::System;
use serde::{Deserialize, Serialize};

/// A crystal with defects, cut into blocks, and how it is to be relaxed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// What atoms do to each other.
    pub potential: Potential,
    /// The perfect crystal.
    pub crystal: Crystal,
    /// Its blocks.
    pub partition: Partition,
    /// Width in A by which lists reach beyond the cutoff.
    pub skin: f64,
    /// The way down.
    pub method: Method,
    /// When it ends.
    pub limits: Limits,
    /// Ids of atoms that are taken out, ascending.
    pub removed: Vec<u64>,
    /// Free atoms begin up to so many A beside their places, along each axis, by a rule that depends on the id only.
    pub shake: f64,
}

impl Problem {
    /// How far lists reach, in A.
    pub fn reach(&self) -> f64 {
        self.potential.cutoff() + self.skin
    }

    /// A block of the crystal, with its defects.
    pub fn block(&self, number: usize) -> Block {
        let mut block = Block::new(self.partition.atoms(&self.crystal, number));
        for own in 0..block.own() {
            if self.removed.binary_search(&block.ids[own]).is_ok() {
                block.classes[own] = Class::Removed;
            }
            if block.classes[own] == Class::Free && self.shake > 0.0 {
                let i = (block.ids[own] + 1) as f64;
                let by = [i + 0.3, 1.7 * i + 0.9, 2.3 * i + 1.7].map(|phase| self.shake * phase.sin());
                block.at[own] = std::array::from_fn(|k| block.at[own][k] + by[k]);
            }
        }
        block
    }

    /// The machine of a relaxation, and its first order, by which lists are built.
    pub fn begin(&self) -> (Relaxation, Order) {
        let mut machine = Relaxation::new(self.method, self.limits, self.skin);
        let mut order = machine.start();
        if let Order::Go { rebuild, .. } = &mut order {
            *rebuild = true;
        }
        (machine, order)
    }

    /// All blocks in one thread.
    pub fn serial(&self) -> System {
        let blocks = (0..self.partition.len()).map(|number| self.block(number)).collect();
        System::new(self.potential.clone(), self.crystal.bounds(), blocks, self.skin)
    }
}
