//! Where chares begin: as many on each PE as its speed earns, whatever their loads are; as far as nodes have memory.

use super::arguments::Imbalance;
use crate::division::{self, Division, DivisionError, Shortage, Size, Work, shares_of};
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::{Items, PartitionError, placement};

/// What a chare takes beside its state.
const CHARE_BYTES: u64 = 1 << 10;
/// What a number for a neighbour takes on its way to another node.
const HALO_BYTES: f64 = 48.0;
/// What the check holds for each chare beside the words of its state, and for each of those.
const CHECK_BYTES: u64 = 160;
const WORD_BYTES: u64 = 8;

/// Divides the chares: PE `p` begins with those from `owners[p]` to `owners[p + 1]`. Bytes are those of a step.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub(super) fn divide(
    imbalance: &Imbalance,
    machines: &Machines,
) -> Result<Division<Vec<u64>>, DivisionError> {
    division::divide(imbalance, machines, machines.speeds())
}

impl Work for Imbalance {
    type Owners = Vec<u64>;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Vec<u64>>, PartitionError> {
        let all = u64::from(self.chares);
        let bounds = placement::contiguous(&Items::alike(all), &machines.parts(weights))?;
        let pes = machines.pes();
        let of_nodes: Vec<u64> =
            pes.iter().map(|pes| bounds[pes.end as usize] - bounds[pes.start as usize]).collect();
        // Of consecutive chares the first and the last have a neighbour elsewhere.
        let exchanged = |chares: &u64| match *chares {
            0 => 0.0,
            chares if chares == all => 0.0,
            _ => 2.0 * HALO_BYTES,
        };
        let bytes = |chares: &u64| Bytes { sent: exchanged(chares), received: exchanged(chares) };
        // State that moves is there twice for a moment.
        let memory = |chares: &u64| chares.saturating_mul(2 * self.state + CHARE_BYTES);
        Ok(Division {
            weights: weights.to_vec(),
            shares: shares_of(&bounds),
            bytes: of_nodes.iter().map(bytes).collect(),
            memory: of_nodes.iter().map(memory).collect(),
            owners: bounds,
        })
    }

    fn what(&self) -> String {
        format!("a ring of {} chares with {} of state each", self.chares, Size(self.state))
    }

    fn of_launcher(&self, _: bool) -> u64 {
        let words = (self.state / WORD_BYTES).min(self.steps.into());
        let checked = if self.verify { CHECK_BYTES + words * WORD_BYTES } else { 0 };
        u64::from(self.chares).saturating_mul(2 * WORD_BYTES + checked)
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take fewer chares or less --state, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take fewer chares, less --state, or more hosts",
        }
    }
}
