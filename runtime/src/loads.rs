//! What PEs say of the work of their chares, for whoever balances.

use crate::ids::{ElementId, PeId};
use loadbalance::balance::Mobility;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What a chare did on one PE in a stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChareLoad {
    /// Which.
    pub element: ElementId,
    /// Nanoseconds of processor time.
    pub cpu_ns: u64,
    /// Bytes that travel if it moves, as far as that is known.
    pub bytes: u64,
    /// What had become of it at the end.
    pub whereabouts: Whereabouts,
    /// Where it may go, if it was there.
    pub mobility: Mobility,
    /// The work that it still has to do, as it said last, in units that are the same for all chares.
    pub remaining: Option<f64>,
}

/// Where a chare is, as the PE sees it that tells its load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whereabouts {
    /// It is there.
    #[default]
    Here,
    /// It has gone to another PE.
    Left,
    /// It has ended.
    Ended,
}

/// Messages, and the bytes of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// How many.
    pub messages: u64,
    /// Bytes of their bodies and bulk buffers.
    pub bytes: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Amount {
    /// Whether one PE can have sent that in one stretch: a message a nanosecond for a hundred years is too much.
    fn can_be(&self) -> bool {
        self.messages < 1 << 62 && self.bytes < 1 << 62
    }
}

/// What one chare sent to another in a stretch of time, as far as that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Who sent it, from the PE that says so.
    pub from: ElementId,
    /// Who got it, wherever it is.
    pub to: ElementId,
    /// What it was.
    pub amount: Amount,
}

/// What is known of the chares of a run, for whoever goes on with it elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownLoads {
    /// Work of each chare in a second, on the average of up to two minutes; of those that say what remains to be done, each by
    /// its part of that.
    pub chares: Vec<(ElementId, f64)>,
    /// Work of each PE in a second for what cannot move.
    pub fixed: Vec<f64>,
    /// What pairs of chares sent each other over a stretch of time, both ways together.
    pub edges: Vec<(ElementId, ElementId, Amount)>,
}

impl KnownLoads {
    /// Whether anybody can have known that.
    #[must_use]
    pub fn can_be(&self) -> bool {
        let of_chares = self.chares.iter().map(|(_, work)| work);
        of_chares.chain(&self.fixed).all(|work| work.is_finite() && *work >= 0.0)
    }
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
    /// The part of a core that it got when it computed for nothing, if it was asked to.
    pub probed: Option<f64>,
    /// Nanoseconds of processor time for what cannot move: that of the runtime, of groups, and of chares that came and went
    /// since this was told last.
    pub fixed_ns: u64,
    /// The chares that did anything, came, left or ended.
    pub chares: Vec<ChareLoad>,
    /// To whom chares sent messages from this PE: of each chare those to whom it sent most. Empty if nobody wants to know.
    pub traffic: Vec<Traffic>,
    /// What they sent to others.
    pub other_traffic: Amount,
}

/// Whether a chare may say that so much of its work remains.
pub(crate) fn is_remaining(units: f64) -> bool {
    (0.0..=REMAINING_MAX).contains(&units)
}

/// The units of as many chares as there can be add up to a finite number.
const REMAINING_MAX: f64 = 1e200;

/// What a node and its PEs did in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeLoads {
    /// The most bytes per second that have come from other nodes, of all stretches so far.
    pub bytes_per_s: f64,
    /// Bytes of memory that it may still take, if the nodes file limits it.
    pub room_bytes: Option<u64>,
    /// Its PEs.
    pub pes: Vec<PeLoads>,
}

impl NodeLoads {
    /// Whether a node with these PEs may say so in a run of so many.
    #[must_use]
    pub fn can_be_of(&self, pes: &[u32], pe_count: u32) -> bool {
        let is_rate = self.bytes_per_s.is_finite() && self.bytes_per_s >= 0.0;
        is_rate && self.pes.iter().all(|pe| pe.can_be_of(pes, pe_count))
    }
}

impl PeLoads {
    fn can_be_of(&self, pes: &[u32], pe_count: u32) -> bool {
        // A processor that did more than a hundred years of work in one stretch counts wrong.
        let is_time = |ns: u64| ns <= 100 * 366 * 86_400 * 1_000_000_000;
        pes.contains(&self.pe.0)
            && [self.wall_ns, self.fixed_ns].into_iter().all(is_time)
            && [self.cpu_part, self.probed].into_iter().flatten().all(|part| part > 0.0 && part <= 1.0)
            && self.chares.iter().all(|chare| is_time(chare.cpu_ns))
            && self.chares.iter().filter_map(|chare| chare.remaining).all(is_remaining)
            && self.chares.iter().flat_map(|chare| chare.mobility.named()).all(|pe| *pe < pe_count)
            && self.traffic.iter().map(|one| &one.amount).chain([&self.other_traffic]).all(Amount::can_be)
    }
}
