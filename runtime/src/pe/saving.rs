//! What is saved of a PE beside its chares and the messages that wait for them: how it sends and combines from now on.

use super::Pe;
use super::account::{Account, SavedCounts};
use super::combine::{Places, SavedPlaces};
use super::contributors::SavedContributors;
use super::moving::Moved;
use super::parked::Parked;
use super::section::{PlanTable, Plans};
use crate::envelope::{CollectionId, ElementId, Envelope, Packed, PartialHeader, Payload, Target, ToPe};
use crate::ids::PeId;
use crate::moving::{Heading, Letter, Moving, What};
use crate::object::{CONSTRUCTOR, PupError};
use crate::proto::location::{Load, Locations};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// What [`Pe::save`] writes, in its order.
type SavedPe = (
    (u32, FxHashMap<(u16, PeId), u64>, Vec<f64>),
    FxHashMap<CollectionId, Vec<Parked>>,
    SavedPlaces,
    PlanTable,
    Moved,
    SavedCounts,
);

impl Pe {
    /// What decides how it sends and combines from now on, to be taken over by [`restore`](Self::restore), perhaps on
    /// another node.
    ///
    /// # Errors
    /// If a message or value that waits here cannot be packed.
    pub fn save(&mut self) -> Result<Vec<u8>, PupError> {
        self.save_with(Account::saved)
    }

    /// The same for a PE that leaves its node, where what it has done so far stays counted.
    pub(super) fn save_to_leave(&mut self) -> Result<Vec<u8>, PupError> {
        self.save_with(Account::saved_to_leave)
    }

    fn save_with(&mut self, counts: fn(&Account) -> SavedCounts) -> Result<Vec<u8>, PupError> {
        self.pack_letters()?;
        let Self { serial, singles, credits, parked, reductions, plans, moved, account, node, .. } = self;
        let reductions = reductions.save(node.program())?;
        written(&((serial, singles, credits), parked, reductions, plans.all(), moved, counts(account)))
    }

    /// How many elements take part in reductions.
    pub(super) fn save_contributors(&self) -> SavedContributors {
        self.reductions.saved_contributors()
    }

    /// Takes over how many elements take part in reductions, after the rest.
    pub(super) fn restore_contributors(&mut self, saved: SavedContributors) {
        self.reductions.set_contributors(saved);
    }

    /// Goes on as the PE did that was saved, which had the same number.
    ///
    /// # Errors
    /// If it is not what [`save`](Self::save) gave.
    pub fn restore(&mut self, saved: &[u8]) -> Result<(), PupError> {
        let (ids, parked, reductions, plans, moved, counts): SavedPe = read(saved)?;
        (self.serial, self.singles, self.credits) = ids;
        (self.parked, self.plans, self.moved) = (parked, Plans::of(plans), moved);
        self.reductions = Places::open(&reductions, self.node.program())?;
        self.has_more_to_do |= !self.moved.leaving.is_empty();
        self.account.restore(&counts);
        self.look_around();
        Ok(())
    }

    /// How many collections, sections and variables it has made.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// Makes bytes of the messages that wait for chares which have moved, or are on their way here.
    fn pack_letters(&mut self) -> Result<(), PupError> {
        let mut locations = std::mem::replace(&mut self.moved.locations, Locations::new(self.id));
        let packed =
            locations.messages_mut().try_for_each(|(element, letter)| self.pack_letter(element, letter));
        self.moved.locations = locations;
        packed?;
        let mut parked = std::mem::take(&mut self.parked);
        let packed = parked.values_mut().flatten().try_for_each(|waiting| match waiting {
            Parked::Numbered(element, _, letter) => self.pack_letter(*element, letter),
            Parked::Plain(..) | Parked::Introduction(..) => Ok(()),
        });
        self.parked = parked;
        packed
    }

    fn pack_letter(&mut self, element: ElementId, letter: &mut Letter) -> Result<(), PupError> {
        let empty = Payload::packed(Packed::default());
        let payload = std::mem::replace(&mut letter.payload, empty);
        letter.payload = self.packed(element, letter.heading.what, payload)?;
        Ok(())
    }

    /// The envelope as one or several that hold bytes, and can leave the process.
    pub(super) fn pack_envelope(&mut self, envelope: Envelope) -> Result<Vec<Envelope>, PupError> {
        let Envelope { target, priority, payload, backlog_bytes } = envelope;
        if matches!(payload, Payload::Packed(_)) {
            return Ok(vec![Envelope { target, priority, payload, backlog_bytes }]);
        }
        let partials = |found: Vec<(PartialHeader, Payload)>, target: &dyn Fn(PartialHeader) -> ToPe| {
            found
                .into_iter()
                .map(|(header, payload)| Envelope::new(target(header), priority.clone(), payload))
                .collect::<Vec<_>>()
        };
        let payload = match &target {
            Target::Message(ToPe::Partial(header)) => {
                let found = self.packed_partial(header, payload)?;
                return Ok(partials(found, &|header| ToPe::Partial(Box::new(header))));
            }
            Target::Message(ToPe::Moving(moving)) => match &**moving {
                Moving::Contribution(header, members) => {
                    let found = self.packed_partial(header, payload)?;
                    let target = |header| Moving::Contribution(header, members.clone());
                    return Ok(partials(found, &|header| ToPe::Moving(Box::new(target(header)))));
                }
                Moving::Parcel(parcel) => match &parcel.load {
                    Load::Message(Heading { what, .. }) => self.packed(parcel.key, *what, payload)?,
                    Load::Begin(..) => payload,
                },
                _ => payload,
            },
            Target::Message(ToPe::Element { collection, index, entry, .. }) => {
                let element = ElementId { collection: *collection, index: *index };
                self.packed(element, What::Run(*entry), payload)?
            }
            Target::Message(ToPe::Insert { collection, index }) => {
                let element = ElementId { collection: *collection, index: *index };
                self.packed(element, What::Run(CONSTRUCTOR), payload)?
            }
            _ => payload,
        };
        Ok(vec![Envelope { target, priority, payload, backlog_bytes }])
    }
}

/// To bytes.
pub(super) fn written(value: &impl Serialize) -> Result<Vec<u8>, PupError> {
    postcard::to_stdvec(value).map_err(|error| PupError::new("what is to be saved", error.to_string()))
}

/// From bytes, all of them.
pub(super) fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, PupError> {
    let wrong = |why: String| PupError::new("what was saved of a PE", why);
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(wrong(format!("{} bytes are left over", rest.len()))),
        Err(error) => Err(wrong(error.to_string())),
    }
}
