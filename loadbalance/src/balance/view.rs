//! What a balancer is told: [`Pe`]s, [`Chare`]s and who talks to whom, and within which [`Limits`] it may move them.
//!
//! A *load* is work: seconds of processor time times the speed of the PE that ran it, over one stretch of time for all
//! chares. Seconds alone would call a chare heavy because it lives on a slow PE, and move it to the next slow one.

use crate::plan::Part;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use thiserror::Error;

/// A PE as it is now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pe {
    /// Its node, and the work per second that it delivers now; positive and finite.
    pub part: Part,
    /// Work that it has besides the chares of this view, over the same stretch of time as their loads; 0 or more.
    pub background: f64,
    /// The bytes of chares that it may hold; `None` is no limit. It takes nothing while it holds more.
    pub memory_bytes: Option<u64>,
    /// Whether it is about to leave the run: all chares that may leave it do, and none comes.
    pub is_leaving: bool,
    /// The work per second that it would have delivered while it computed for nothing, where it was asked to since the view
    /// before: so much more or less than the time before means that it has become faster or slower.
    pub probed: Option<f64>,
}

impl From<Part> for Pe {
    fn from(part: Part) -> Self {
        Self { part, background: 0.0, memory_bytes: None, is_leaving: false, probed: None }
    }
}

/// Where a chare may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mobility {
    /// On any PE.
    #[default]
    Anywhere,
    /// On these PEs only, besides the one where it is.
    OneOf(Arc<[u32]>),
    /// Where it is.
    Pinned,
}

impl Mobility {
    /// On these PEs only, besides the one where it is; in any order.
    #[must_use]
    pub fn one_of(pes: impl IntoIterator<Item = u32>) -> Self {
        let mut pes: Vec<u32> = pes.into_iter().collect();
        pes.sort_unstable();
        pes.dedup();
        Self::OneOf(pes.into())
    }

    /// Whether a chare that is on a PE may be on another.
    #[must_use]
    pub fn permits(&self, from: u32, to: u32) -> bool {
        from == to
            || match self {
                Self::Anywhere => true,
                Self::OneOf(set) => set.contains(&to),
                Self::Pinned => false,
            }
    }

    /// The PEs that are named.
    #[must_use]
    pub fn named(&self) -> &[u32] {
        if let Self::OneOf(set) = self { set } else { &[] }
    }
}

impl fmt::Display for Mobility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anywhere => f.write_str("anywhere"),
            Self::OneOf(set) => write!(f, "to PEs {set:?} only"),
            Self::Pinned => f.write_str("nowhere"),
        }
    }
}

/// A chare that lives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chare {
    /// The number of its PE.
    pub pe: u32,
    /// Its work; 0 or more, and finite.
    pub load: f64,
    /// What travels if it moves.
    pub bytes: u64,
    /// Where it may go.
    pub mobility: Mobility,
}

/// What two chares sent each other, both ways together, over the same stretch of time as their loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// One of them, by its number in [`View::chares`].
    pub one: u32,
    /// The other.
    pub other: u32,
    /// Bytes of all messages.
    pub bytes: u64,
    /// How many messages.
    pub messages: u64,
}

/// A message without any bytes takes a network as long as so many bytes, about.
const MESSAGE_BYTES: u64 = 256;

impl Edge {
    /// What it costs, in bytes, if both are on two PEs: each message by itself takes time, too.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.bytes.saturating_add(self.messages.saturating_mul(MESSAGE_BYTES))
    }
}

/// What all moves of one decision together keep to. By default nothing limits them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes that may leave a node, and as many that may enter it: its bandwidth times the seconds that moving may take.
    /// Moves inside a node cost none.
    pub node_bytes: Option<u64>,
    /// The part of its load that a PE may give away, from 0 to 1.
    pub flux: Option<f64>,
    /// How many chares may move.
    pub moves: Option<u64>,
}

/// All that a balancer is told. PEs and chares are named by their numbers in the lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The PEs of the run; those of a node follow one another.
    pub pes: Vec<Pe>,
    /// The chares that live.
    pub chares: Vec<Chare>,
    /// Who talks to whom: each pair once, only those that do.
    pub edges: Vec<Edge>,
    /// Where each chare lies in space; empty if they lie nowhere. Unused coordinates are 0.
    pub places: Vec<[f64; 3]>,
    /// The block of shared data that each chare needs; empty if there are none. Balancers that keep the rule of no new
    /// destination move a chare only to where its block is already.
    pub blocks: Vec<Option<u32>>,
    /// What moving keeps to.
    pub limits: Limits,
}

impl View {
    /// Chares with these loads on these PEs.
    #[must_use]
    pub fn new(parts: &[Part], chares: impl IntoIterator<Item = (u32, f64)>) -> Self {
        let chare = |(pe, load)| Chare { pe, load, ..Chare::default() };
        Self {
            pes: parts.iter().copied().map(Pe::from).collect(),
            chares: chares.into_iter().map(chare).collect(),
            ..Self::default()
        }
    }

    /// The view, found to make sense.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<Checked<'_>, ViewError> {
        let pe_count = self.pes.len();
        if pe_count == 0 {
            return Err(ViewError::NoPes);
        }
        self.pes.iter().enumerate().try_for_each(|(pe, told)| told.check(pe))?;
        for (chare, told) in self.chares.iter().enumerate() {
            if !is_amount(told.load) {
                return Err(ViewError::BadLoad { chare, load: told.load });
            }
            let is_unknown = |pe: &&u32| **pe as usize >= pe_count;
            if let Some(&pe) = std::iter::once(&told.pe).chain(told.mobility.named()).find(is_unknown) {
                return Err(ViewError::UnknownPe { chare, pe, pe_count });
            }
        }
        self.check_lists()?;
        if self.pes.iter().all(|pe| pe.is_leaving) {
            return Err(ViewError::AllLeave { pe_count });
        }
        let times = Times::of(self);
        if !(times.longest().is_finite() && times.level().is_finite() && times.total_speed().is_finite()) {
            return Err(ViewError::TooMuch);
        }
        Ok(Checked { view: self, times })
    }

    fn check_lists(&self) -> Result<(), ViewError> {
        let chares = self.chares.len();
        let is_unknown = |edge: &&Edge| edge.one.max(edge.other) as usize >= chares;
        if let Some(edge) = self.edges.iter().find(is_unknown) {
            return Err(ViewError::UnknownChare { chare: edge.one.max(edge.other), chares });
        }
        for (list, len) in [("places", self.places.len()), ("blocks", self.blocks.len())] {
            if len != 0 && len != chares {
                return Err(ViewError::BadList { list, len, chares });
            }
        }
        if let Some(chare) = self.places.iter().position(|place| place.iter().any(|x| !x.is_finite())) {
            return Err(ViewError::BadPlace { chare });
        }
        match self.limits.flux {
            Some(flux) if !(0.0..=1.0).contains(&flux) => Err(ViewError::BadFlux { flux }),
            _ => Ok(()),
        }
    }

    /// The node of each PE, numbered through from 0 whatever they are called.
    #[must_use]
    pub fn nodes(&self) -> Vec<usize> {
        let mut names: Vec<usize> = self.pes.iter().map(|pe| pe.part.node).collect();
        names.sort_unstable();
        names.dedup();
        self.pes.iter().map(|pe| names.partition_point(|name| *name < pe.part.node)).collect()
    }

    /// Whether a chare may live on a PE.
    #[must_use]
    pub fn may_live(&self, chare: u32, pe: u32) -> bool {
        let told = &self.chares[chare as usize];
        told.mobility.permits(told.pe, pe)
    }
}

impl Pe {
    fn check(&self, pe: usize) -> Result<(), ViewError> {
        let speed = self.part.speed;
        if !(speed.is_finite() && speed > 0.0) {
            return Err(ViewError::BadSpeed { pe, speed });
        }
        if !is_amount(self.background) {
            return Err(ViewError::BadBackground { pe, background: self.background });
        }
        Ok(())
    }
}

/// A view that makes sense, and what follows from it: only such a one reaches a balancer.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    view: &'a View,
    /// The PEs with all they have now.
    pub times: Times,
}

impl<'a> Checked<'a> {
    /// The view itself, for as long as it lives.
    #[must_use]
    pub const fn view(&self) -> &'a View {
        self.view
    }

    /// Where each chare is now.
    #[must_use]
    pub fn owners(&self) -> Vec<u32> {
        self.view.chares.iter().map(|chare| chare.pe).collect()
    }

    /// The chares from the heaviest to the lightest, of equals the lowest number first.
    #[must_use]
    pub fn heaviest_first(&self) -> Vec<u32> {
        let mut order: Vec<(u64, u32)> =
            (0..).zip(&self.view.chares).map(|(chare, told)| (!key(told.load), chare)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, chare)| chare).collect()
    }

    /// The chares of each PE, in the order of their numbers.
    #[must_use]
    pub fn by_pe(&self, owners: &[u32]) -> Vec<Vec<u32>> {
        let mut chares = vec![Vec::new(); self.view.pes.len()];
        (0..).zip(owners).for_each(|(chare, pe)| chares[*pe as usize].push(chare));
        chares
    }
}

impl Deref for Checked<'_> {
    type Target = View;

    fn deref(&self) -> &View {
        self.view
    }
}

/// The work of each PE, and how long it takes for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Of each PE: its chares and its background.
    pub work: Vec<f64>,
    /// Of each PE.
    pub speed: Vec<f64>,
}

impl Times {
    /// Of the PEs with the chares that they have.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let mut times = Self::without_chares(view);
        view.chares.iter().for_each(|chare| times.work[chare.pe as usize] += chare.load);
        times
    }

    /// Of the PEs if each chare lived where `owners` says.
    #[must_use]
    pub fn with(view: &View, owners: &[u32]) -> Self {
        let mut times = Self::without_chares(view);
        view.chares.iter().zip(owners).for_each(|(chare, pe)| times.work[*pe as usize] += chare.load);
        times
    }

    /// Of the PEs with their background alone.
    #[must_use]
    pub fn without_chares(view: &View) -> Self {
        let work = view.pes.iter().map(|pe| pe.background).collect();
        Self { work, speed: view.pes.iter().map(|pe| pe.part.speed).collect() }
    }

    /// Seconds of a PE.
    #[must_use]
    pub fn seconds(&self, pe: u32) -> f64 {
        self.work[pe as usize] / self.speed[pe as usize]
    }

    /// Seconds of a PE with so much more work.
    #[must_use]
    pub fn seconds_with(&self, pe: u32, load: f64) -> f64 {
        (self.work[pe as usize] + load) / self.speed[pe as usize]
    }

    /// Seconds of the PE that takes longest.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.work.iter().zip(&self.speed).map(|(work, speed)| work / speed).fold(0.0, f64::max)
    }

    /// The PE that takes longest; `None` if there is none.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        let pes = 0..self.work.len() as u32;
        pes.max_by(|one, other| self.seconds(*one).total_cmp(&self.seconds(*other)))
    }

    /// Seconds of all if work were a fluid: no placement ends earlier.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.work.iter().sum::<f64>() / self.total_speed()
    }

    /// The longest over the level: 1 is perfect, and so is no work at all.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        let level = self.level();
        if level > 0.0 { self.longest() / level } else { 1.0 }
    }

    /// Work goes from one PE to another.
    pub fn shift(&mut self, load: f64, from: u32, to: u32) {
        // Sums of floats are not exact: what is left of nothing may be a little less.
        self.work[from as usize] = (self.work[from as usize] - load).max(0.0);
        self.work[to as usize] += load;
    }

    pub(super) fn total_speed(&self) -> f64 {
        self.speed.iter().sum()
    }
}

/// A number that orders seconds and loads as they are: for numbers of 0 and more the bits do.
pub(crate) const fn key(amount: f64) -> u64 {
    // Adding 0 makes a positive zero of a negative one.
    (amount + 0.0).to_bits()
}

fn is_amount(amount: f64) -> bool {
    amount.is_finite() && amount >= 0.0
}

/// Why a view makes no sense.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ViewError {
    /// There was nowhere to be.
    #[error("there are no PEs to balance: name at least one")]
    NoPes,
    /// All PEs leave.
    #[error("all {pe_count} PEs are about to leave the run: one must stay to take their chares")]
    AllLeave {
        /// How many there are.
        pe_count: usize,
    },
    /// A speed was zero, negative, infinite or not a number.
    #[error("PE {pe} has speed {speed}: a speed must be a positive, finite number")]
    BadSpeed {
        /// Number of the PE.
        pe: usize,
        /// What was told.
        speed: f64,
    },
    /// Work besides chares was negative, infinite or not a number.
    #[error("PE {pe} has background work {background}: it must be 0 or a positive, finite number")]
    BadBackground {
        /// Number of the PE.
        pe: usize,
        /// What was told.
        background: f64,
    },
    /// A load was negative, infinite or not a number.
    #[error("chare {chare} has load {load}: a load must be 0 or a positive, finite number")]
    BadLoad {
        /// Number of the chare.
        chare: usize,
        /// What was told.
        load: f64,
    },
    /// A chare lives, or may live, on a PE that is not there.
    #[error("chare {chare} is or may be on PE {pe}, but there are PEs 0 to {} only", .pe_count - 1)]
    UnknownPe {
        /// Number of the chare.
        chare: usize,
        /// The PE that was named.
        pe: u32,
        /// How many there are.
        pe_count: usize,
    },
    /// An edge ends at a chare that is not there.
    #[error("an edge ends at chare {chare}, but there are {chares} chares")]
    UnknownChare {
        /// The chare that was named.
        chare: u32,
        /// How many there are.
        chares: usize,
    },
    /// A list had neither no entry nor one for each chare.
    #[error("{chares} chares have {len} {list}: give one for each, or none")]
    BadList {
        /// Which.
        list: &'static str,
        /// How many entries it has.
        len: usize,
        /// How many chares there are.
        chares: usize,
    },
    /// A coordinate was infinite or not a number.
    #[error("chare {chare} lies at a place that is not finite: coordinates must be finite numbers")]
    BadPlace {
        /// Number of the chare.
        chare: usize,
    },
    /// The part of a load that may move was not a part.
    #[error("a PE may give away {flux} of its load: it must be a number from 0 to 1")]
    BadFlux {
        /// What was told.
        flux: f64,
    },
    /// Loads or speeds together were more than a float holds.
    #[error("all loads or speeds together are not finite: take a larger unit")]
    TooMuch,
}
