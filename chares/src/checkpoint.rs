//! Runs that are saved on their way, and go on from there: the driver's part.
//!
//! A chare between two entry methods has no stack, so that what there is of it can be saved. A driver has one: it is a
//! function that waits. When a run goes on from a checkpoint its driver is run again from the beginning, and what it waited
//! for before the checkpoint is given to it at once, from a log, as durable-execution systems do (Temporal, Restate); what
//! it sends meanwhile has been sent, and goes nowhere. At the first wait that the log does not have, the run goes on.
//! So a driver has to ask the same things in the same order, and takes whatever else may differ between two runs (the time,
//! speeds of machines, random numbers) from [`Driver::once`](crate::Driver::once).
//!
//! A checkpoint is taken while the driver waits for a result or for quiescence: all PEs stand still between two entry
//! methods, and when nothing is on its way any more each packs what it has. Then the run goes on, the driver, too, while what was
//! packed is sent and kept. PEs keep their numbers: whoever goes on may have other nodes, each with as many of the PEs as suit it.
//!
//! To stand still costs as long as the longest entry method that runs takes, and some milliseconds more, because arrays that are
//! packed are shared until somebody writes to them. A [snapshot](runtime::proto::snapshot) needs nobody to stand still: the driver
//! is saved first, where it waits, and goes on, and so does each PE between two of its messages; what was sent before its sender
//! was saved and comes after its receiver was is saved, too.

mod version_1;

use crate::pup;
pub use crate::timeline::{Kept, Restored};
use crate::type_name::type_name;
pub use loadbalance::balance::Mapping;
pub use runtime::balancing::Placed;
use runtime::checkpoint::SavedVariable;
use runtime::digest::Digested;
use runtime::envelope::{Packed, Payload};
use runtime::failure::{Failure, Kind};
use runtime::ids::PeId;
use runtime::monitor::requests::SavedIn;
use runtime::monitor::wire::NodeSnapshot;
use runtime::saved::{GiveExtents, RecordHeader, SavedPlace, SavedRecords};
use runtime::schema::{Change, Path, Shape, difference, shape_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the driver is saved. Version 1 does not say what the outcomes are made of; another one is refused.
pub(crate) const VERSION: u16 = 2;

/// How a run is saved while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// All PEs stand still until nothing is on its way, and pack what they have.
    Barrier,
    /// Each PE packs what it has between two messages, and goes on; what is on its way is saved as it comes.
    Snapshot,
}

/// Who keeps checkpoints, and says when.
pub trait Keeper: Send {
    /// How one is to be taken now, if one is. At a moment that the program calls a good one, one that would soon be due is.
    fn is_due(&mut self, is_good_moment: bool) -> Option<Protocol>;

    /// How one is taken that somebody asks for.
    fn protocol(&self) -> Protocol {
        Protocol::Barrier
    }

    /// One begins; whether all values of the one before are at hand, so that they can be left out of this one.
    ///
    /// # Errors
    /// Why it cannot be kept: it is not taken then, and the run goes on.
    fn begin(&mut self) -> Result<bool, String>;

    /// From what PEs get room that see where the one is kept that has begun, and write what they have themselves; nothing if all is
    /// to be [put](Self::put).
    fn extents(&self) -> Option<Arc<dyn GiveExtents>> {
        None
    }

    /// A part of it, with the checksums of its values; of a chare with the name of its type.
    ///
    /// # Errors
    /// As those of [`begin`](Self::begin).
    fn put(
        &mut self,
        header: RecordHeader,
        type_name: &str,
        packed: Packed,
        digested: Vec<Digested>,
    ) -> Result<(), String>;

    /// It is complete, with the driver's own part, and with what the values of shared variables are made of. The run goes on
    /// meanwhile.
    ///
    /// # Errors
    /// As those of [`begin`](Self::begin).
    fn commit(&mut self, driver: Packed, variables: Vec<SavedVariable>) -> Result<Kept, String>;

    /// It is not taken: why. The keeper tells the user, for nobody else does.
    fn discard(&mut self, why: &str);

    /// Whether the driver waits until each is complete. Otherwise it goes on meanwhile, and no other begins before.
    fn is_awaited(&self) -> bool {
        false
    }

    /// Where they are kept, if others can go on from there.
    fn place(&self) -> Option<SavedIn> {
        None
    }
}

/// What a run goes on from.
pub struct GoOn {
    /// The driver's own part.
    pub driver: Packed,
    /// All the rest.
    pub run: Box<dyn SavedRun>,
    /// What the values of shared variables were made of, as far as that is known: others are taken as they are.
    pub variables: Vec<SavedVariable>,
    /// How chares are placed; where they were if nothing is said.
    pub placing: Option<Placing>,
    /// Hears how much came from where.
    pub tell: Box<dyn Fn(&Restored) + Send>,
}

/// What was saved of a run beside its driver's own part. A record that cannot be had is an error in its place.
pub trait SavedRun: Send {
    /// Where nodes may find it themselves.
    fn place(&self) -> Option<SavedPlace>;

    /// What nodes share.
    fn shared(&self) -> SavedRecords<'_>;

    /// How many records each PE has, of itself and its chares.
    fn counts(&self) -> BTreeMap<PeId, u64>;

    /// The records of a PE after the first so many.
    fn of_pe(&self, pe: PeId, first: u64) -> SavedRecords<'_>;

    /// The first so many of them, of which no attachment is needed.
    fn heads_of_pe(&self, pe: PeId, count: u64) -> SavedRecords<'_>;

    /// Nodes say that they have read so many bytes themselves so far.
    fn nodes_have_read(&self, bytes: u64);

    /// All of it is with the nodes: how much came from where.
    fn restored(&self) -> Restored;
}

/// Chares are placed anew before a run goes on.
pub struct Placing {
    /// How. If nothing is said: by who talks to whom if that was saved, else by blocks.
    pub mapping: Option<Mapping>,
    /// The relative speeds of the PEs that there are now.
    pub speeds: Vec<f64>,
    /// Units of work that they do in a second, if that was measured.
    pub rates: Option<Vec<f64>>,
    /// Hears what came of it.
    pub tell: Box<dyn Fn(&Placed) + Send>,
}

impl std::fmt::Debug for Placing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Placing by {:?} on PEs of the speeds {:?}", self.mapping, self.speeds)
    }
}

impl std::fmt::Debug for GoOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GoOn from {} bytes of a driver", self.driver.len_bytes())
    }
}

/// Counts of PEs of the nodes, launcher first, with which a run began, and how many PEs it had in the end, by the driver's own
/// part of its checkpoint: it needs at least as many to go on.
///
/// # Errors
/// If the driver's part is not one, or of another version.
pub fn pe_counts(driver: &Packed) -> Result<(Vec<u32>, u32), Failure> {
    let saved = SavedDriver::open(driver)?;
    Ok((saved.pe_counts, saved.pes))
}

/// One thing that the driver had to wait for, or did [once](crate::Driver::once).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) what: String,
    pub(crate) result: Packed,
}

/// The driver's own part of a checkpoint.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedDriver {
    pub(crate) version: u16,
    /// Counts of PEs of the nodes when the run began.
    pub(crate) pe_counts: Vec<u32>,
    /// Count of PEs when it was saved.
    pub(crate) pes: u32,
    pub(crate) outcomes: Vec<Outcome>,
    /// Results that it has not waited for yet.
    pub(crate) slots: Vec<(u64, Vec<Payload>)>,
    pub(crate) next_slot: u64,
    /// How many collections, sections and variables it had made.
    pub(crate) serial: u32,
    /// Its way of sending.
    pub(crate) pe: Vec<u8>,
    pub(crate) is_init: bool,
    pub(crate) speeds: Vec<f64>,
    pub(crate) counted: Option<(String, u64, u64)>,
    /// Behind all that version 1 has.
    #[serde(skip)]
    pub(crate) types: OutcomeTypes,
}

/// What outcomes are made of.
#[derive(Clone, Default)]
pub(crate) struct OutcomeTypes {
    /// The types, by name.
    pub(crate) types: Vec<(String, Shape)>,
    /// The number of that of each outcome.
    pub(crate) of: Vec<u32>,
}

impl OutcomeTypes {
    /// The type of an outcome, with its number and name; nothing where the checkpoint does not say it.
    pub(crate) fn of(&self, outcome: usize) -> Option<(u32, &str, &Shape)> {
        let number = *self.of.get(outcome)?;
        self.types.get(number as usize).map(|(name, shape)| (number, name.as_str(), shape))
    }

    /// Whether the runtime's own are made of what they are made of now. Of all others that is known when the driver waits for them
    /// again, which is before nodes are given anything.
    fn check_own(&self) -> Result<(), Failure> {
        let (own, shape) = (type_name::<Vec<NodeSnapshot>>(), shape_of::<Vec<NodeSnapshot>>);
        let saved = self.types.iter().find(|(name, _)| *name == own);
        match saved.and_then(|(_, saved)| difference(saved, &shape())) {
            Some(change) => Err(Failure::new(Kind::Input, changed("counters", &own, &change))),
            None => Ok(()),
        }
    }
}

/// That an outcome is of a type that has changed since the checkpoint was written, as a sentence: what it was waited for, and where
/// the type differs.
pub(crate) fn changed(what: &str, name: &str, change: &Change) -> String {
    let part = if change.path == Path::default() { "it".into() } else { change.path.of(name) };
    made_of_others(what, &format!("{part} {}", change.what))
}

/// The same for another reason.
pub(crate) fn made_of_others(what: &str, why: &str) -> String {
    format!(
        "the checkpoint is of another version of this program: the driver has waited for {what}, and {why}; go on with the program \
         that wrote it"
    )
}

impl SavedDriver {
    /// A result more that it has not waited for, behind those that it has.
    pub(crate) fn add_result(&mut self, slot: u64, result: Payload) {
        match self.slots.iter_mut().find(|(known, _)| *known == slot) {
            Some((_, waiting)) => waiting.push(result),
            None => self.slots.push((slot, vec![result])),
        }
    }

    pub(crate) fn pack(&self) -> Packed {
        // Shapes are JSON wherever they are written.
        let types = serde_json::to_string(&self.types.types).unwrap_or_default();
        pup::pack(&(self, types, &self.types.of))
    }

    pub(crate) fn open(packed: &Packed) -> Result<Self, Failure> {
        // The version comes first, and is understood whatever follows.
        let version = postcard::take_from_bytes::<u16>(&packed.body).map(|(version, _)| version);
        match version {
            Ok(1) => {
                let mut saved: Self =
                    pup::unpack(packed).map_err(|error| Failure::new(Kind::Input, error))?;
                // Other counters, which are older still, are refused when the driver waits for them.
                for outcome in saved.outcomes.iter_mut().filter(|outcome| outcome.what == "counters") {
                    version_1::renewed(&outcome.result).into_iter().for_each(|now| outcome.result = now);
                }
                Ok(saved)
            }
            Ok(VERSION) => {
                let unpacked = pup::unpack::<(Self, String, Vec<u32>)>(packed);
                let (saved, types, of) = unpacked.map_err(|error| Failure::new(Kind::Input, error))?;
                let types = serde_json::from_str(&types).map_err(|error| Failure::new(Kind::Input, error))?;
                let types = OutcomeTypes { types, of };
                types.check_own()?;
                Ok(Self { types, ..saved })
            }
            Ok(other) => {
                let sentence = format!(
                    "the checkpoint is of version {other} of the driver's log, and this program knows {VERSION}: go on \
                     with the program that wrote it"
                );
                Err(Failure::new(Kind::Input, sentence))
            }
            Err(_) => Err(Failure::new(Kind::Input, "the checkpoint holds no driver's log")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(types: OutcomeTypes) -> SavedDriver {
        SavedDriver {
            version: VERSION,
            pe_counts: vec![0, 2],
            pes: 2,
            outcomes: Vec::new(),
            slots: Vec::new(),
            next_slot: 3,
            serial: 4,
            pe: vec![5],
            is_init: true,
            speeds: vec![1.0; 2],
            counted: None,
            types,
        }
    }

    #[test]
    fn a_log_is_read_as_far_as_its_version_goes() {
        let shape = shape_of::<Vec<NodeSnapshot>>();
        let types = OutcomeTypes { types: vec![(type_name::<Vec<NodeSnapshot>>(), shape)], of: vec![0] };
        let opened = SavedDriver::open(&saved(types).pack()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (opened.serial, opened.types.of(0).map(|of| of.1), opened.types.of(1)),
            (4, Some("Vec<NodeSnapshot>"), None)
        );
        // Version 1 ends where the types begin.
        let first = SavedDriver { version: 1, ..saved(OutcomeTypes::default()) };
        let opened = SavedDriver::open(&pup::pack(&first)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((opened.next_slot, opened.types.of(0)), (3, None));
        let later = SavedDriver { version: VERSION + 1, ..saved(OutcomeTypes::default()) };
        let refused = SavedDriver::open(&later.pack()).err().expect("a later version").sentence;
        assert!(refused.starts_with("the checkpoint is of version 3 of the driver's log"), "{refused}");
    }

    #[test]
    fn counters_that_are_others_are_refused_by_their_path_before_anything_is_started() {
        let Shape::Seq(own) = shape_of::<Vec<NodeSnapshot>>() else { panic!("counters are a list") };
        let text = serde_json::to_string(&own).unwrap();
        let other = text.replacen("\"usize\"", "\"f64\"", 1).replacen("\"u64\"", "\"f64\"", 1);
        assert_ne!(text, other);
        let shape = Shape::Seq(Box::new(serde_json::from_str(&other).unwrap()));
        let types = OutcomeTypes { types: vec![(type_name::<Vec<NodeSnapshot>>(), shape)], of: Vec::new() };
        let refused = SavedDriver::open(&saved(types).pack()).err().expect("other counters").sentence;
        assert!(
            refused.contains("the driver has waited for counters, and Vec<NodeSnapshot>[]."),
            "{refused}"
        );
        assert!(refused.contains(" was f64 and is "), "{refused}");
    }
}
