//! Balancers: which chares should move, now that they live and their loads are known.
//!
//! ```text
//!   PEs: speed, background, memory ──┐
//!   chares: PE, load, bytes, where ──┤              one Balancer            carry_out
//!   they may go                      ├─ View ─check─► Wanted: the PE ─ limits ─► Decision: moves, and
//!   edges: who talks to whom         │              of each chare              what they should bring
//!   limits: bandwidth, flux, moves ──┘
//!
//!   measurements over time ──────────── auto ──► whether to decide now, by whom, and what came of it
//! ```
//!
//! A balancer is one file that says where each chare should be. What all of them have in common is around it: whether the
//! view makes sense, chares of PEs that leave, limits, and that nothing moves where nothing is gained. So all pass the same
//! tests, and the same view gives the same moves on every machine: no clock, no hash map, no random number but from a seed,
//! no function that libraries compute differently.
//!
//! To add one, write its file and name it in [`BALANCERS`]; the tests of all find it there.
//!
//! # Example
//!
//! ```
//! use loadbalance::Part;
//! use loadbalance::balance::{Balancer, Move, View, greedy::Greedy};
//!
//! // Four chares on the slower of two PEs.
//! let view = View::new(&Part::each(&[2.0, 1.0]), [(1, 4.0), (1, 2.0), (1, 2.0), (1, 1.0)]);
//! let decision = Greedy.decide(&view)?;
//! assert_eq!(decision.moves, [Move { chare: 0, from: 1, to: 0 }, Move { chare: 2, from: 1, to: 0 }]);
//! assert!((decision.before, decision.after) == (3.0, 1.0));
//! # Ok::<(), loadbalance::balance::ViewError>(())
//! ```

pub mod auto;
pub mod bisection;
pub mod choice;
pub mod communication;
pub mod decision;
pub mod delivered;
pub mod diffusion;
mod earliest;
pub mod exchange;
pub mod gossip;
pub mod greedy;
pub mod hierarchical;
mod leaving;
pub mod mapping;
pub mod memory;
pub mod partition;
pub mod patterns;
mod pieces;
pub mod random;
pub mod refine;
pub mod seeds;
pub mod simulated;
pub mod span;
pub mod steady;
pub mod view;
pub mod weighted;

#[cfg(test)]
mod tests;

pub use choice::{BALANCERS, Choice, ChoiceError};
pub use decision::{Decision, Left, Move, Wanted};
pub use mapping::{Mapping, MappingError};
pub use view::{Chare, Checked, Edge, Limits, Mobility, Pe, View, ViewError};

use std::fmt::Debug;

/// Says where chares should be.
pub trait Balancer: Debug + Send + Sync {
    /// What users call it.
    fn name(&self) -> &'static str;

    /// The PE that each chare should be on, as far as it may; limits are not this function's matter.
    fn wanted(&self, view: &Checked<'_>) -> Wanted;

    /// Whether it moves chares although the run does not end sooner for it.
    fn may_worsen(&self) -> bool {
        false
    }

    /// Whether it looks at who talks to whom.
    fn uses_edges(&self) -> bool {
        false
    }

    /// Whether it looks at where chares lie.
    fn uses_places(&self) -> bool {
        false
    }

    /// What it does otherwise than it was asked to, because there are so many PEs; nothing if it does as asked.
    fn doubt(&self, _pes: u32) -> Option<String> {
        None
    }

    /// Bytes of memory that a decision takes on the node that makes it, about.
    fn bytes(&self, pes: u64, chares: u64, edges: u64) -> u64 {
        memory::linear(pes, chares, edges)
    }

    /// The moves for a view: within its limits, none that mobility forbids, and none at all if nothing is gained.
    ///
    /// # Errors
    /// If the view makes no sense.
    fn decide(&self, view: &View) -> Result<Decision, ViewError> {
        let checked = view.check()?;
        if view.pes.iter().any(|pe| pe.is_leaving) {
            return leaving::decide(view, |rest| self.decide(rest));
        }
        Ok(Decision::carry_out(&checked, &self.wanted(&checked), self.may_worsen()))
    }
}

/// Chares stay where they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stay;

impl Balancer for Stay {
    fn name(&self) -> &'static str {
        "none"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        view.owners().into()
    }
}

/// Each chare goes to the next PE, or to the next of those that it may be on: moves as many as can be, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotate;

impl Balancer for Rotate {
    fn name(&self) -> &'static str {
        "rotate"
    }

    fn may_worsen(&self) -> bool {
        true
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let next = |chare: &Chare| match &chare.mobility {
            Mobility::Anywhere => (chare.pe + 1) % view.pes.len() as u32,
            Mobility::OneOf(set) => {
                let later = set.iter().filter(|pe| **pe > chare.pe).min();
                later.or_else(|| set.iter().min()).copied().unwrap_or(chare.pe)
            }
            Mobility::Pinned => chare.pe,
        };
        view.chares.iter().map(next).collect::<Vec<u32>>().into()
    }
}
