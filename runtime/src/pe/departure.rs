//! Elements that go to other PEs, and come from there.

use super::scheduler::{Scheduler, moved_broadcast};
use super::seeds::is_seed;
use crate::envelope::{
    CollectionId, ElementId, ElementIndex, Envelope, MembersHere, Packed, Payload, Target, ToPe,
};
use crate::ids::PeId;
use crate::moving::{Extent, Heading, Letter, Moving, Record, Trunk, Unpacking, What};
use crate::object::PupError;
use crate::priority::Priority;
use crate::proto::location::Luggage;
use crate::proto::sim::Random;
use loadbalance::balance::Mobility;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Says at random moments that an element is to move, and where to.
pub(super) struct Wander(Random);

type Unpacked = (ElementId, Packed, Vec<Letter>, Luggage<ElementId, Letter>);

/// Of so many messages one makes its receiver move.
const WANDER_ONE_IN: u64 = 2;

impl Wander {
    pub(super) fn new(seed: Option<u64>, pe: PeId) -> Option<Self> {
        seed.map(|seed| Self(Random::new(seed ^ u64::from(pe.0) << 32)))
    }

    /// Where the next element goes, if it is to.
    pub(super) fn next(&mut self, pe_count: u32) -> Option<PeId> {
        let goes = self.0.below(WANDER_ONE_IN) == 0;
        goes.then(|| PeId(u32::try_from(self.0.below(u64::from(pe_count))).unwrap_or_default()))
    }
}

impl Scheduler {
    /// Puts an envelope on the queue, unless it is for an element of which more is known than its home.
    pub(super) fn find_receiver(&mut self, mut envelope: Envelope) {
        if let Envelope {
            target: Target::Section(section), priority, payload: Payload::Packed(packed), ..
        } = &mut envelope
        {
            self.find_members(section, priority, packed);
        }
        let Target::Message(ToPe::Element { collection, index, entry, from, number }) = envelope.target
        else {
            return self.pe.queue.push(envelope);
        };
        let element = ElementId { collection, index };
        let Envelope { priority, payload, backlog_bytes, .. } = envelope;
        let heading = Heading { what: What::Run(entry), priority: priority.clone() };
        match self.pe.take_plain(element, from, heading, payload) {
            Ok(()) => {
                self.dealt_with_bytes += backlog_bytes;
                self.pe.account().processed();
            }
            Err(payload) => {
                let target = ToPe::Element { collection, index, entry, from, number }.into();
                self.pe.queue.push(Envelope { target, priority, payload, backlog_bytes });
            }
        }
    }

    /// Passes a message to a section on to those members of which more is known than their home, before anything else can
    /// be said to them; the others stay.
    fn find_members(&mut self, section: &mut MembersHere, priority: &Priority, packed: &Arc<Packed>) {
        let MembersHere { collection, members, entry, .. } = section;
        members.retain(|&index| {
            let element = ElementId { collection: *collection, index };
            let heading = Heading { what: What::Run(*entry), priority: priority.clone() };
            let payload = Payload::Packed(Arc::clone(packed));
            self.pe.take_plain(element, PeId::DRIVER, heading, payload).is_err()
        });
    }

    /// Lets elements go that are to leave.
    pub(super) fn leave(&mut self, (collection, index): (Option<CollectionId>, Option<ElementIndex>)) {
        if let (Some(wander), Some(collection), Some(index)) = (&mut self.wander, collection, index)
            && let Some(to) = wander.next(self.pe.node.topology().pe_count())
            && self.pe.collection(collection).is_none_or(|known| !known.is_fixed)
        {
            self.pe.will_leave(ElementId { collection, index }, to);
        }
        // Those that are told so one after the other go together: for each time, all that waits is looked through.
        if self.pe.moved.leaving.is_empty() || self.pe.queue.next_departs() {
            return;
        }
        let mut leaving = std::mem::take(&mut self.pe.moved.leaving);
        let count = leaving.len();
        leaving
            .retain(|&(element, to)| to != self.pe.id && self.is_here(element) && self.may_go(element, to));
        let elements = leaving.iter().map(|&(element, _)| element).collect();
        let (mut mailboxes, made) =
            if leaving.is_empty() { (FxHashMap::default(), 0) } else { self.pe.queue.extract(&elements) };
        self.pe.account().goes_on(made);
        for (element, to) in leaving {
            self.depart(element, to, mailboxes.remove(&element).unwrap_or_default());
        }
        (0..count).for_each(|_| self.pe.account().processed());
    }

    /// Sends an element to another PE if it is here, or as soon as it is made.
    pub(super) fn depart_or_wait(
        &mut self,
        element: ElementId,
        to: PeId,
        priority: Priority,
        payload: Payload,
    ) -> Result<(), PupError> {
        let ElementId { collection, index } = element;
        let waits = Envelope::new(Target::Depart { collection, index, to }, priority, payload);
        if !self.has_shelf(collection) {
            return self.keep_early(collection, waits);
        }
        if self.is_destroyed(collection, index) {
            return Ok(());
        }
        if self.is_here(element) || self.pe.moved.locations.knows_of_move(element) {
            if !self.may_go(element, to) {
                self.refuse_to_go(element, to);
                return Ok(());
            }
            self.pe.will_leave(element, to);
        } else if let Some(shelf) = self.shelves.get_mut(collection)
            && !shelf.store.is_gone(index)
        {
            self.pe.account().held();
            shelf.early.entry(index).or_default().push(waits);
        }
        Ok(())
    }

    /// Whether an element that is here may go to another PE.
    fn may_go(&self, element: ElementId, to: PeId) -> bool {
        let shelf = self.shelves.get(element.collection);
        shelf.is_none_or(|shelf| shelf.mobility(element.index).permits(self.pe.id.0, to.0))
    }

    /// The program has told an element to go where it may not.
    fn refuse_to_go(&mut self, element: ElementId, to: PeId) {
        let chare_type = self.shelves.get(element.collection).map_or(u16::MAX, |shelf| shelf.chare_type);
        let program = self.pe.node.program();
        let name = program.chare_types.get(usize::from(chare_type)).map_or("", |known| known.name.as_str());
        let index = program.index_name(chare_type, element.index);
        self.pe.fail(format!(
            "{name} {index} was to move to PE {}, where its mobility does not let it: ask for no such move, or say another \
             mobility before",
            to.0
        ));
    }

    /// Lets an element that has come make what did not travel.
    pub(super) fn has_arrived(&mut self, element: ElementId) {
        if let Some(shelf) = self.shelves.get_mut(element.collection) {
            shelf.store.arrived(element.index, &mut self.pe);
        }
    }

    /// Notes that an element which has come may not go anywhere, if that is so.
    pub(super) fn look_at_mobility(&mut self, element: ElementId) {
        let shelf = self.shelves.get(element.collection);
        if shelf.is_some_and(|shelf| shelf.mobility(element.index) != Mobility::Anywhere) {
            self.pe.has_limited_chares();
        }
    }

    pub(super) fn is_here(&self, element: ElementId) -> bool {
        let shelf = self.shelves.get(element.collection);
        shelf.is_some_and(|shelf| shelf.store.find(element.index).is_some())
    }

    /// Sends an element to another PE, with its state, the messages that wait for it here, and how far it has come with
    /// those who send to it. Nothing happens if it is not here any more.
    fn depart(&mut self, element: ElementId, to: PeId, mailbox: Vec<Envelope>) {
        let Some(shelf) = self.shelves.get_mut(element.collection) else { return };
        let taken = shelf.store.find(element.index).and_then(|slot| shelf.store.take(slot));
        let Some((home, state)) = taken else { return };
        self.pe.account().migrated();
        match self.pack_record((element, home), to, &state, mailbox) {
            Ok(Some((record, payload))) => {
                let bytes =
                    if let Payload::Packed(packed) = &payload { packed.len_bytes() as u64 } else { 0 };
                self.pe.loads.departed(element, bytes);
                // What is said to all never means single chares.
                if home == self.pe.id && element.collection.as_singles().is_none() {
                    let movers = self.pe.moved.movers.entry(element.collection).or_default();
                    movers.insert(element.index);
                }
                self.pe.account().goes_on(1);
                self.pe.say(to, Moving::Arrive(Box::new(record)), payload);
            }
            Ok(None) => self.pe.fail(format!("{element:?} cannot move: its state or mailbox is too long")),
            Err(error) => self.pe.fail(error.to_string()),
        }
    }

    pub(super) fn pack_record(
        &mut self,
        (element, home): (ElementId, PeId),
        to: PeId,
        state: &Packed,
        waiting: Vec<Envelope>,
    ) -> Result<Option<(Record, Payload)>, PupError> {
        let mut trunk = Trunk::default();
        let Some(state) = trunk.add(state) else { return Ok(None) };
        let mut mailbox = Vec::new();
        for Envelope { target, priority, payload, backlog_bytes } in waiting {
            self.dealt_with_bytes += backlog_bytes;
            let what = match target {
                Target::Message(ToPe::Element { entry, .. }) => What::Run(entry),
                Target::Copy { entry, .. } => What::Copy(entry),
                Target::Depart { to, .. } => What::Migrate(to),
                _ => continue,
            };
            let letter = Letter { heading: Heading { what, priority }, payload };
            mailbox.push(self.pack_letter(element, letter, &mut trunk)?);
        }
        let mut outputs = Vec::new();
        let Some(luggage) = self.pe.moved.locations.depart((element, home), to, &mut outputs) else {
            return Ok(None);
        };
        let luggage = luggage.try_map(|letter| self.pack_letter(element, letter, &mut trunk))?;
        self.pe.carry_out(outputs);
        Ok(Some((Record { element, home, state, mailbox, luggage }, Payload::packed(trunk.close()))))
    }

    fn pack_letter(
        &mut self,
        element: ElementId,
        letter: Letter,
        trunk: &mut Trunk,
    ) -> Result<(Heading, Extent), PupError> {
        let Letter { heading, payload } = letter;
        let Payload::Packed(packed) = self.pe.packed(element, heading.what, payload)? else {
            return Err(moved_broadcast());
        };
        let too_long = || PupError::new("a message", "it is too long to be taken along");
        Ok((heading, trunk.add(&packed).ok_or_else(too_long)?))
    }

    /// Takes what is said of chares that move.
    pub(super) fn take_moving(&mut self, moving: Moving, payload: Payload) -> Result<(), PupError> {
        let mut outputs = Vec::new();
        match moving {
            Moving::Parcels(parcels) => {
                let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
                for parcel in parcels {
                    let parcel = parcel.with_payload(Payload::Packed(Arc::clone(&packed)));
                    self.pe.moved.locations.take(parcel, &mut outputs);
                }
            }
            Moving::Parcel(parcel) => {
                let parcel = parcel.with_payload(payload);
                self.pe.moved.locations.take(parcel, &mut outputs);
            }
            Moving::Tell { element, at, epoch } => self.pe.moved.locations.learn(element, at, epoch),
            Moving::Introduce { element, home, chare } => {
                self.pe.introduce((element, home), chare);
            }
            Moving::Arrive(record) => return self.arrive(record, payload),
            Moving::Remains(record) => return self.take_remains(record, payload),
            Moving::Gone { chare, epoch, taken, spoken } => {
                self.pe.take_gone(chare, (epoch, taken), spoken);
            }
            Moving::Forget { chare, epoch } => {
                if !self.is_here(chare) {
                    self.pe.forget(chare, epoch);
                }
            }
            Moving::Ask { pe } => self.pe.asked_for_seeds(pe),
            Moving::MayAsk => self.pe.may_ask_for_seeds(),
            Moving::Spoken { chare, number, audience } => {
                let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
                self.pe.take_spoken(chare, number, audience, Arc::unwrap_or_clone(packed));
            }
            Moving::Contribution(header, members) => {
                return self.pe.take_contribution(header, members, payload);
            }
        }
        self.pe.carry_out(outputs);
        Ok(())
    }

    /// Takes in an element that comes from another PE.
    fn arrive(&mut self, record: Box<Record>, payload: Payload) -> Result<(), PupError> {
        let id = record.element.collection;
        if !self.has_shelf(id) {
            // The collection is not known here yet.
            let envelope = Envelope::new(ToPe::Moving(Box::new(Moving::Arrive(record))), i32::MIN, payload);
            return self.keep_early(id, envelope);
        }
        let len_bytes = if let Payload::Packed(packed) = &payload { packed.len_bytes() as u64 } else { 0 };
        let (element, state, mailbox, luggage) = Self::unpack_record(*record, payload)?;
        let Some(shelf) = self.shelves.get_mut(id) else { return Ok(()) };
        shelf.store.put(element.index, &state)?;
        self.look_at_mobility(element);
        if is_seed(element) {
            self.pe.seed_came();
        }
        self.pe.account().arrived();
        self.pe.loads.arrived(element, len_bytes);
        mailbox.into_iter().for_each(|letter| self.pe.receives(element, letter));
        let mut outputs = Vec::new();
        let arrived = self.pe.moved.locations.arrive(element, luggage, &mut outputs);
        arrived.map_err(|error| PupError::new("a chare", error.0))?;
        self.pe.carry_out(outputs);
        self.has_arrived(element);
        Ok(())
    }

    /// An element that comes from another PE, its state, the messages that wait for it, and how far it has come with those
    /// who send to it.
    pub(super) fn unpack_record(record: Record, payload: Payload) -> Result<Unpacked, PupError> {
        let wrong = || PupError::new("a chare", "what it takes along is shorter or longer than is said");
        let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
        let mut unpacking = Unpacking::new(Arc::unwrap_or_clone(packed));
        let Record { element, state, mailbox, luggage, .. } = record;
        let state = unpacking.next(state).ok_or_else(wrong)?;
        let mut letter = |(heading, extent)| {
            let payload = Payload::packed(unpacking.next(extent).ok_or_else(wrong)?);
            Ok(Letter { heading, payload })
        };
        let mailbox: Vec<Letter> = mailbox.into_iter().map(&mut letter).collect::<Result<_, PupError>>()?;
        let luggage = luggage.try_map(letter)?;
        if unpacking.is_over() { Ok((element, state, mailbox, luggage)) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests;
