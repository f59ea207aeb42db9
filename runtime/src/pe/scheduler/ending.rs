//! What a PE does about elements that have been destroyed, and about those that are inserted at their places.

use super::Scheduler;
use crate::envelope::{
    CollectionId, Contributors, ElementId, ElementIndex, Envelope, Packed, Payload, Target, ToPe,
};
use crate::ids::PeId;
use crate::moving::{Moving, Record};
use crate::object::PupError;
use crate::pe::ending::{Ended, EndedSingle, Remains};
use crate::pe::saving::{read, written};
use crate::priority::Priority;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

impl Scheduler {
    /// Sends home what is left of elements that have been destroyed by the message that has just been dealt with.
    pub(super) fn bury(&mut self) {
        while let Some(EndedSingle { element, moved }) = self.pe.ended_singles.pop() {
            self.pe.loads.ended(element);
            if let Some((home, spoken)) = moved {
                self.pe.tell_gone(element, home, spoken);
                self.pe.account().processed();
            }
        }
        if self.pe.ended.is_empty() {
            return;
        }
        let ended = std::mem::take(&mut self.pe.ended);
        let (me, count) = (self.pe.id, ended.len());
        let away: FxHashSet<ElementId> =
            ended.iter().filter(|ended| ended.home != me).map(|ended| ended.element).collect();
        let (mut mailboxes, made) =
            if away.is_empty() { (FxHashMap::default(), 0) } else { self.pe.queue.extract(&away) };
        self.pe.account().goes_on(made);
        let mut gone: BTreeMap<(CollectionId, u32), u64> = BTreeMap::new();
        for Ended { element, home, remains } in ended {
            let ElementId { collection, index } = element;
            self.pe.loads.ended(element);
            if home != me {
                let mailbox = mailboxes.remove(&element).unwrap_or_default();
                self.send_home((element, home), &remains, mailbox);
                continue;
            }
            *gone.entry((collection, remains.sequence)).or_default() += 1;
            self.keep_remains((collection, index), remains);
        }
        gone.into_iter().for_each(|((id, from), count)| self.pe.are_gone(id, from, count));
        (0..count).for_each(|_| self.pe.account().processed());
    }

    fn send_home(&mut self, (element, home): (ElementId, PeId), remains: &Remains, mailbox: Vec<Envelope>) {
        let state = written(remains).map(|body| Packed { body: body.into(), attachments: Vec::new() });
        match state.and_then(|state| self.pack_record((element, home), home, &state, mailbox)) {
            Ok(Some((record, payload))) => {
                self.pe.account().goes_on(1);
                self.pe.say(home, Moving::Remains(Box::new(record)), payload);
            }
            Ok(None) => self.pe.fail(format!("what waits for {element:?}, which has ended, is too long")),
            Err(error) => self.pe.fail(error.to_string()),
        }
    }

    /// Takes in what is left of an element that is at home here and was destroyed elsewhere.
    pub(in crate::pe) fn take_remains(
        &mut self,
        record: Box<Record>,
        payload: Payload,
    ) -> Result<(), PupError> {
        let ElementId { collection, index } = record.element;
        if !self.has_shelf(collection) {
            let envelope = Envelope::new(ToPe::Moving(Box::new(Moving::Remains(record))), i32::MIN, payload);
            return self.keep_early(collection, envelope);
        }
        let (element, state, mailbox, luggage) = Self::unpack_record(*record, payload)?;
        let remains: Remains = read(&state.body)?;
        let from = remains.sequence;
        mailbox.into_iter().for_each(|letter| self.pe.receives(element, letter));
        let mut outputs = Vec::new();
        let arrived = self.pe.moved.locations.arrive(element, luggage, &mut outputs);
        arrived.map_err(|error| PupError::new("what is left of a chare", error.0))?;
        self.pe.carry_out(outputs);
        self.pe.are_gone(collection, from, 1);
        self.keep_remains((collection, index), remains);
        Ok(())
    }

    /// Keeps what is left of an element that is at home here. If another is to be made at its place, that begins.
    fn keep_remains(&mut self, (id, index): (CollectionId, ElementIndex), remains: Remains) {
        let Some(shelf) = self.shelves.get_mut(id) else { return };
        let from = remains.sequence;
        shelf.gone.insert(index, remains);
        if shelf.early.get(&index).is_some_and(|waiting| waiting.iter().any(is_insertion)) {
            self.pe.count_in(id, index, from);
        }
    }

    /// Has an element made later at a place where one was before: once what is left of that has come home, and all know that
    /// there is one more. One that has moved may not have been told yet that it is to end. False, with nothing done, if the
    /// place was never taken, or by one that has never moved.
    pub(super) fn insert_later(
        &mut self,
        (id, index): (CollectionId, ElementIndex),
        priority: &Priority,
        payload: &mut Option<Payload>,
    ) -> bool {
        let Some(shelf) = self.shelves.get_mut(id) else { return false };
        let gone = shelf.gone.get(&index).map(|remains| remains.sequence);
        if gone.is_none() && !self.pe.moved.locations.knows_of_move(ElementId { collection: id, index }) {
            return false;
        }
        let waiting = shelf.early.entry(index).or_default();
        if waiting.iter().any(is_insertion) {
            self.made_twice((id, index));
        } else if let Some(payload) = payload.take() {
            waiting.push(Envelope::new(ToPe::Insert { collection: id, index }, priority.clone(), payload));
            self.pe.account().held();
            if let Some(from) = gone {
                self.pe.count_in(id, index, from);
            }
        }
        true
    }

    /// Takes what is said of how many elements take part in reductions.
    pub(super) fn take_contributors(&mut self, said: Contributors) -> Result<(), PupError> {
        let id = said.collection;
        if !self.has_shelf(id) {
            let said = ToPe::Contributors(Box::new(said));
            return self.keep_early(id, Envelope::urgent(said));
        }
        let Some((index, from)) = self.pe.take_contributors(said) else { return Ok(()) };
        let Some(shelf) = self.shelves.get_mut(id) else { return Ok(()) };
        let insertion =
            shelf.early.get(&index).and_then(|waiting| waiting.iter().find(|one| is_insertion(one)));
        let (Some(remains), Some(insertion)) = (shelf.gone.get_mut(&index), insertion) else {
            return Err(nobody_asked(index));
        };
        remains.sequence = from;
        self.pe.will_replace(ElementId { collection: id, index }, insertion.priority.clone());
        Ok(())
    }

    /// Makes the element that was asked for at the place of one that has been destroyed.
    pub(super) fn replace(&mut self, (id, index): (CollectionId, ElementIndex)) -> Result<(), PupError> {
        let Some(shelf) = self.shelves.get_mut(id) else { return Ok(()) };
        let insertion = shelf.early.get_mut(&index).and_then(|waiting| {
            let at = waiting.iter().position(is_insertion)?;
            Some(waiting.remove(at))
        });
        let (Some(remains), Some(insertion)) = (shelf.gone.remove(&index), insertion) else {
            return Err(nobody_asked(index));
        };
        self.pe.account().released(1);
        self.pe.account().processed();
        self.construct((id, index), Some(remains), insertion.payload)
    }

    /// Whether an element that was at home here has been destroyed, and not inserted again.
    pub(in crate::pe) fn is_destroyed(&self, collection: CollectionId, index: ElementIndex) -> bool {
        self.shelves.get(collection).is_some_and(|shelf| shelf.gone.contains_key(&index))
    }

    /// Ends the run because an element is to be made that there is.
    pub(super) fn made_twice(&self, (id, index): (CollectionId, ElementIndex)) {
        let chare_type = self.shelves.get(id).map_or(u16::MAX, |shelf| shelf.chare_type);
        let program = self.pe.node.program();
        let name = program.chare_types.get(usize::from(chare_type)).map_or("?", |known| known.name.as_str());
        let at = program.index_name(chare_type, index);
        self.pe.fail(format!("element {at} of an array of {name} was made twice"));
    }
}

fn nobody_asked(index: ElementIndex) -> PupError {
    PupError::new("a new element", format!("nobody has asked for element {index:?}"))
}

/// Whether it has an element made.
pub(super) fn is_insertion(envelope: &Envelope) -> bool {
    matches!(envelope.target, Target::Message(ToPe::Insert { .. }))
}

/// What is kept of elements that were destroyed, by their index.
pub(super) type Gone = FxHashMap<ElementIndex, Remains>;

#[cfg(test)]
mod tests;
