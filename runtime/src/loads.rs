//! What PEs say of the work of their chares, for whoever balances.

use crate::ids::{ElementId, PeId};
use serde::{Deserialize, Serialize};

/// What a chare did on one PE in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChareLoad {
    /// Which.
    pub element: ElementId,
    /// Nanoseconds of processor time.
    pub cpu_ns: u64,
    /// Bytes that travel if it moves, as far as that is known.
    pub bytes: u64,
    /// Whether it was there at the end.
    pub is_here: bool,
}

/// What a PE and its chares did in a stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeLoads {
    /// Which.
    pub pe: PeId,
    /// Nanoseconds of the stretch.
    pub wall_ns: u64,
    /// The part of the time in which the PE had something to do that the system let it run; `None` if it had nothing to do.
    pub cpu_part: Option<f64>,
    /// Nanoseconds of processor time for what cannot move.
    pub fixed_ns: u64,
    /// The chares that did anything, came or left.
    pub chares: Vec<ChareLoad>,
}

/// What a node and its PEs did in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeLoads {
    /// The most bytes per second that have come from other nodes, of all stretches so far.
    pub bytes_per_s: f64,
    /// Its PEs.
    pub pes: Vec<PeLoads>,
}

impl NodeLoads {
    /// Whether a node with these PEs may say so.
    #[must_use]
    pub fn can_be_of(&self, pes: &[u32]) -> bool {
        let is_rate = self.bytes_per_s.is_finite() && self.bytes_per_s >= 0.0;
        is_rate && self.pes.iter().all(|pe| pe.can_be_of(pes))
    }
}

impl PeLoads {
    fn can_be_of(&self, pes: &[u32]) -> bool {
        // A processor that did more than a hundred years of work in one stretch counts wrong.
        let is_time = |ns: u64| ns <= 100 * 366 * 86_400 * 1_000_000_000;
        pes.contains(&self.pe.0)
            && [self.wall_ns, self.fixed_ns].into_iter().all(is_time)
            && self.cpu_part.is_none_or(|part| part > 0.0 && part <= 1.0)
            && self.chares.iter().all(|chare| is_time(chare.cpu_ns))
    }
}
