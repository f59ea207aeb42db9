//! A PE that stands still, so that all there is of it can be saved, or comes back.

use super::cutting::read_late;
use super::ending::Gone;
use super::saver::Saver;
use super::{Scheduler, Shelf};
use crate::codec::ControlToLauncher;
use crate::envelope::{CollectionId, ElementId, ElementIndex, Envelope, Packed, Payload, PeOrder, Target};
use crate::ids::{NodeId, PeId};
use crate::monitor::wire::PeState;
use crate::object::PupError;
use crate::pe::account::SavedCounts;
use crate::pe::contributors::SavedContributors;
use crate::pe::inbox::Arrival;
use crate::pe::saving::{read, written};
use crate::pe::seeds::is_seed;
use crate::priority::Priority;
use crate::proto::number_set::NumberSet;
use crate::saved::{Paused, RecordHeader, RecordOf, Save, SavedPlace, Sent, ToKeep};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a PE is saved; a later version is refused. Messages that came late are of version 3, which earlier programs refuse.
const VERSION: u16 = 2;
/// How often the launcher is told how much has been read of what was saved.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// What waits on a PE that stands still.
#[derive(Default)]
pub(super) struct Waiting {
    /// In its own queue, in the order of its turns.
    pub(super) queue: Vec<Envelope>,
    /// What has arrived since.
    pub(super) arrived: Vec<Envelope>,
    /// How many messages more those have become that came late to a snapshot.
    split: u64,
    /// Records taken in.
    records: u64,
    /// The PE's own, which is the last of them.
    has_own: bool,
    /// How many there will be, once that was said.
    expected: Option<u64>,
    /// It was told to save the PE, and has not yet.
    to_save: Option<Save>,
    /// It was told to which node all there is of the PE is to go, and has not sent it yet.
    to_hand_over: Option<NodeId>,
    /// Chares that have been taken in: what they do about it has to wait until the PE goes on.
    came: Vec<ElementId>,
    /// All there is of it has gone to another node.
    is_gone: bool,
}

impl Waiting {
    /// What has not had its turn.
    pub(super) fn of(queue: Vec<Envelope>) -> Self {
        Self { queue, ..Self::default() }
    }
}

pub(super) type Saved = (Target, Priority, Payload);

/// All of a PE but its chares, with what version 1 does not have behind it.
#[derive(Serialize, Deserialize)]
struct SavedScheduler {
    version: u16,
    pe: Vec<u8>,
    queue: Vec<Saved>,
    arrived: Vec<Saved>,
    early: Vec<(CollectionId, Vec<Saved>)>,
    shelves: Vec<SavedShelf>,
}

/// What there is since elements can be destroyed.
#[derive(Default, Serialize, Deserialize)]
struct SavedEnds {
    gone: Vec<(CollectionId, Gone)>,
    contributors: SavedContributors,
}

#[derive(Serialize, Deserialize)]
struct SavedShelf {
    collection: CollectionId,
    elements_made: u64,
    singles_made: Vec<(PeId, NumberSet)>,
    early: Vec<(ElementIndex, Vec<Saved>)>,
}

impl Scheduler {
    /// Stands still until it is told to go on, or to end: runs nothing and sends nothing but records, and keeps what
    /// arrives.
    pub(super) fn pause(&mut self) {
        let node = Arc::clone(&self.pe.node);
        let inbox = node.pes().inbox(self.pe.id);
        self.switch(PeState::Overhead);
        let Some(mut waiting) = self.take_waiting() else { return };
        // Links must not wait for a PE that stands still: what it keeps is dealt with for them.
        self.disown(&mut waiting.queue);
        self.tell_paused(Ok(0));
        let mut came = VecDeque::new();
        'still: loop {
            self.settle();
            // Looked at before what has come is taken: then that holds what was told when the last variable was in place.
            let is_to_be_sent = self.is_to_be_sent(&waiting);
            while !inbox.take(&mut came) && !is_to_be_sent {
                self.idle.wait(inbox, &mut self.pe.outbox, || {});
            }
            while let Some(arrival) = came.pop_front() {
                if self.take_arrival(arrival, &mut waiting) {
                    break 'still;
                }
            }
            if is_to_be_sent {
                self.send(&mut waiting);
            }
            if waiting.is_gone {
                break 'still;
            }
        }
        // What is ordered of a PE that stands still is not counted among the messages of the run, and this order ends now.
        self.pe.account().goes_on(1);
        let is_over = waiting.queue.first().is_some_and(|envelope| matches!(envelope.target, Target::Stop));
        self.pe.queue.put_back(waiting.queue);
        let here = if is_over { Vec::new() } else { waiting.came };
        if here.iter().any(|element| is_seed(*element)) {
            self.pe.seed_came();
        }
        here.into_iter().for_each(|element| self.has_arrived(element));
        waiting.arrived.into_iter().for_each(|envelope| self.take_one(envelope));
        self.take_in(&mut came);
    }

    /// All that waits for its turn, so that it can be packed; nothing if the PE has been told to end at the same moment, and would
    /// wait in vain. The order that asks for it is not counted among the messages of the run: of that there is nothing left then.
    pub(super) fn take_waiting(&mut self) -> Option<Waiting> {
        let queue = self.pe.queue.take_all();
        if queue.iter().any(|envelope| matches!(envelope.target, Target::Stop)) {
            self.pe.account().goes_on(1);
            self.pe.queue.put_back(queue);
            return None;
        }
        Some(Waiting::of(queue))
    }

    /// Takes what arrives while the PE stands still; whether it is to go on.
    fn take_arrival(&mut self, arrival: Arrival, waiting: &mut Waiting) -> bool {
        if let Arrival::Colour(colour) = arrival {
            self.snapshot.arriving = colour;
        }
        let mut envelopes = Vec::new();
        arrival.open(|envelope| envelopes.push(envelope));
        self.disown(&mut envelopes);
        let mut goes_on = false;
        for envelope in envelopes {
            if self.is_to_be_set_aside(&envelope.target) {
                // Somebody else has gone on already, and has been cut since.
                self.set_aside(envelope);
            } else if goes_on {
                waiting.arrived.push(envelope);
            } else {
                goes_on = self.take_paused(envelope, waiting);
            }
        }
        goes_on
    }

    /// Counts envelopes as dealt with, for whoever watches what comes by links.
    fn disown(&mut self, envelopes: &mut [Envelope]) {
        let bytes: u64 = envelopes.iter_mut().map(|one| std::mem::take(&mut one.backlog_bytes)).sum();
        self.dealt_with_bytes += bytes;
    }

    fn tell_paused(&self, paused: Paused) {
        self.pe.node.tell_launcher(ControlToLauncher::Paused(self.pe.id, paused));
    }

    /// Takes an envelope while the PE stands still; whether it is to go on.
    fn take_paused(&mut self, envelope: Envelope, waiting: &mut Waiting) -> bool {
        match envelope.target {
            Target::Order(PeOrder::Resume) => {
                self.check_whole(waiting);
                self.pe.account().goes_on(std::mem::take(&mut waiting.split));
                return true;
            }
            Target::Stop => {
                waiting.queue.insert(0, envelope);
                return true;
            }
            Target::Order(PeOrder::Save(save)) => waiting.to_save = Some(save),
            Target::Order(PeOrder::HandOver { to }) => waiting.to_hand_over = Some(to),
            Target::Order(PeOrder::ReadSaved) => {
                let read = self.read_saved(&envelope.payload, waiting);
                self.tell_paused(read.map(|()| waiting.records));
            }
            Target::Order(PeOrder::Restore { records }) => {
                waiting.expected = Some(records);
                if records == 0 {
                    // The others count on from what was saved, and so does the driver: what it has asked for before is in
                    // nobody's count.
                    self.pe.account().restore(&SavedCounts::default());
                }
                self.tell_when_complete(waiting);
            }
            Target::Record(header) => {
                let restored = match &envelope.payload {
                    Payload::Packed(packed) => self.take_record(*header, packed, waiting),
                    Payload::Value(_) => Ok(()),
                };
                match restored {
                    Ok(()) => waiting.records += 1,
                    Err(error) => self.tell_paused(Err(error.to_string())),
                }
                self.tell_when_complete(waiting);
            }
            _ => waiting.arrived.push(envelope),
        }
        false
    }

    /// Whether the PE is to be saved or sent to its new place now. The first of a node waits until write-once variables that
    /// were set here are in place everywhere: whom that is to be told is told by a message to this PE, which has to go with it.
    fn is_to_be_sent(&self, waiting: &Waiting) -> bool {
        let is_told = waiting.to_save.is_some() || waiting.to_hand_over.is_some();
        is_told && (!self.is_first() || self.pe.node.variables().are_acknowledged())
    }

    fn send(&mut self, waiting: &mut Waiting) {
        if let Some(save) = waiting.to_save.take() {
            let saved = self.save(waiting, save).map_err(|error| error.to_string());
            self.tell_paused(saved);
        }
        if let Some(to) = waiting.to_hand_over.take() {
            let sent = self.hand_over(waiting, to).map_err(|error| error.to_string());
            if sent.is_ok() {
                // Before it is told, because whoever hears of it counts what is left here.
                self.is_gone(waiting);
            }
            self.tell_paused(sent);
        }
    }

    /// Nothing is left here but to end.
    fn is_gone(&mut self, waiting: &mut Waiting) {
        *waiting = Waiting { is_gone: true, ..Waiting::of(vec![Envelope::urgent(Target::Stop)]) };
        (self.shelves, self.early, self.wander) = Default::default();
        self.pe.account().is_gone();
        self.pe.has_more_to_do = false;
    }

    /// Whether it is the first PE of its node, which does for the others what has to be done once.
    fn is_first(&self) -> bool {
        let node = &self.pe.node;
        node.topology().pes(node.id()).first() == Some(&self.pe.id.0)
    }

    fn tell_when_complete(&self, waiting: &Waiting) {
        if waiting.expected == Some(waiting.records) {
            self.tell_paused(Ok(waiting.records));
        }
    }

    /// Without the PE's own record nobody would ever know that nothing is left to do: how many messages it has made and
    /// processed is in there.
    fn check_whole(&mut self, waiting: &Waiting) {
        if waiting.records > 0 && !waiting.has_own {
            let id = self.pe.id;
            self.pe.fail(format!(
                "what was saved of {id:?} is not whole: the record of the PE itself is missing"
            ));
        }
    }

    /// Packs all there is of the PE, for the launcher to be sent; how many records it was. What no message can carry is an
    /// error, and the PE is as it was.
    fn save(&mut self, waiting: &mut Waiting, save: Save) -> Result<u64, PupError> {
        let sums = self.sums_of_node();
        self.pack_for(waiting, sums, save).map(|(records, _)| records)
    }

    /// Packs all there is of the PE, and what has been added to accumulators, for the launcher to be sent; how many records it was,
    /// and where more may go.
    pub(super) fn pack_for(
        &mut self,
        waiting: &mut Waiting,
        sums: Vec<(u64, Packed)>,
        save: Save,
    ) -> Result<(u64, Saver), PupError> {
        let saver = self.savers.begin(&self.pe.node, self.pe.id, save)?;
        let mut records = 0;
        self.pack(waiting, sums, false, |sent, packed| records += saver.send(sent, packed))?;
        Ok((records, saver))
    }

    /// What has been added to accumulators on this node, for the PE that has to see to that.
    fn sums_of_node(&self) -> Vec<(u64, Packed)> {
        if self.is_first() { self.pe.node.sums().all() } else { Vec::new() }
    }

    /// Sends all there is of the PE to its new place; how many records that was. What has been added to accumulators goes to
    /// the launcher, uncounted.
    fn hand_over(&mut self, waiting: &mut Waiting, to: NodeId) -> Result<u64, PupError> {
        let (node, mut records) = (Arc::clone(&self.pe.node), 0);
        let sums = self.sums_of_node();
        self.pack(waiting, sums, true, |sent, packed| {
            if let RecordOf::Sum(_) = sent.header.of {
                return node.save(ToKeep::left_behind(sent), packed);
            }
            records += 1;
            node.hand_over(to, sent, packed);
        })?;
        Ok(records)
    }

    /// Packs all there is of the PE, its own part last, and what has been added to accumulators. What no message can carry is an
    /// error, and the PE is as it was.
    fn pack(
        &mut self,
        waiting: &mut Waiting,
        sums: Vec<(u64, Packed)>,
        is_leaving: bool,
        mut put: impl FnMut(Sent, Packed),
    ) -> Result<(), PupError> {
        // Here it fails for what could not be sent to another node either, and then the run ends.
        let saved = self.saved(waiting, is_leaving).and_then(|saved| written(&(saved, self.saved_ends())));
        let saved = saved.inspect_err(|error| self.pe.fail(error.to_string()))?;
        let (id, mut failed) = (self.pe.id, None);
        let mut send = |of, packed| match Sent::new(RecordHeader { pe: id, of }, packed) {
            Ok((sent, packed)) => put(sent, packed),
            Err(error) => drop(failed.get_or_insert(error)),
        };
        sums.into_iter().for_each(|(sum, packed)| send(RecordOf::Sum(sum), packed));
        for (collection, shelf) in self.shelves.iter() {
            let mut send_chare =
                |index, packed| send(RecordOf::Chare(ElementId { collection, index }), packed);
            shelf.store.save(&mut send_chare);
        }
        send(RecordOf::Pe, Packed { body: saved.into(), attachments: Vec::new() });
        match failed {
            None => Ok(()),
            Some(error) => Err(PupError::new("what is to be saved", error.to_string())),
        }
    }

    fn saved(&mut self, waiting: &mut Waiting, is_leaving: bool) -> Result<SavedScheduler, PupError> {
        let queue = self.pack_all(&mut waiting.queue)?;
        let arrived = self.pack_all(&mut waiting.arrived)?;
        let mut kept = std::mem::take(&mut self.early);
        let early: Result<_, PupError> =
            kept.iter_mut().map(|(id, envelopes)| Ok((*id, self.pack_all(envelopes)?))).collect();
        self.early = kept;
        let mut kept = std::mem::take(&mut self.shelves);
        let shelves: Result<_, PupError> =
            kept.iter_mut().map(|(id, shelf)| self.saved_shelf(id, shelf)).collect();
        self.shelves = kept;
        let pe = if is_leaving { self.pe.save_to_leave()? } else { self.pe.save()? };
        Ok(SavedScheduler { version: VERSION, pe, queue, arrived, early: early?, shelves: shelves? })
    }

    fn saved_ends(&self) -> SavedEnds {
        let gone = self.shelves.iter().filter(|(_, shelf)| !shelf.gone.is_empty());
        let gone = gone.map(|(id, shelf)| (id, shelf.gone.clone())).collect();
        SavedEnds { gone, contributors: self.pe.save_contributors() }
    }

    fn saved_shelf(&mut self, collection: CollectionId, shelf: &mut Shelf) -> Result<SavedShelf, PupError> {
        let early = shelf.early.iter_mut().map(|(index, envelopes)| Ok((*index, self.pack_all(envelopes)?)));
        let early = early.collect::<Result<_, PupError>>()?;
        let singles_made = shelf.store.made();
        Ok(SavedShelf { collection, elements_made: shelf.made, singles_made, early })
    }

    /// Makes bytes of all envelopes, which stay as they are otherwise.
    fn pack_all(&mut self, envelopes: &mut Vec<Envelope>) -> Result<Vec<Saved>, PupError> {
        let mut packed = Vec::with_capacity(envelopes.len());
        for envelope in envelopes.drain(..) {
            let made = self.pe.pack_envelope(envelope)?;
            self.pe.account().goes_on(made.len().saturating_sub(1) as u64);
            packed.extend(made);
        }
        *envelopes = packed;
        envelopes.iter().filter(|envelope| can_be_saved(&envelope.target)).map(saved).collect()
    }

    /// Takes in what was saved of the PE, as far as that is found here; the launcher sends the rest.
    ///
    /// # Errors
    /// If it is not told where to look, or a record is none of the PE.
    fn read_saved(&mut self, place: &Payload, waiting: &mut Waiting) -> Result<(), String> {
        let Payload::Packed(packed) = place else { return Err("nobody says where it is".into()) };
        let place = postcard::from_bytes::<SavedPlace>(&packed.body).map_err(|error| error.to_string())?;
        if !place.can_be() {
            return Err("it is said to be where nothing can be".into());
        }
        let (id, node) = (self.pe.id, Arc::clone(&self.pe.node));
        let sent = |why: &dyn Display| {
            tracing::debug!("{id:?} is sent what was saved of it, because it cannot read it: {why}");
            Ok(())
        };
        let saved = match node.find_saved(&place) {
            Ok(saved) => saved,
            Err(why) => return sent(&why),
        };
        let (mut bytes, mut told) = (0, Instant::now());
        for record in saved.of_pe(id) {
            let (header, packed) = match record {
                Ok(record) => record,
                Err(why) => return sent(&why),
            };
            if node.has_ended() {
                break;
            }
            node.checks().check_saved(&header).map_err(|why| why.to_string())?;
            bytes += packed.len_bytes() as u64;
            self.take_record(header, &packed, waiting).map_err(|error| error.to_string())?;
            waiting.records += 1;
            if told.elapsed() >= TOLD_EVERY {
                node.tell_launcher(ControlToLauncher::Reading(id, bytes));
                told = Instant::now();
            }
        }
        node.tell_launcher(ControlToLauncher::Reading(id, bytes));
        Ok(())
    }

    /// Takes in what was saved of the PE or one of its chares.
    fn take_record(
        &mut self,
        header: RecordHeader,
        packed: &Packed,
        waiting: &mut Waiting,
    ) -> Result<(), PupError> {
        match header.of {
            RecordOf::Chare(element) => {
                self.has_shelf(element.collection);
                let Some(shelf) = self.shelves.get_mut(element.collection) else {
                    return Err(PupError::new("a chare", "its collection is not known"));
                };
                shelf.store.put(element.index, packed)?;
                self.look_at_mobility(element);
                waiting.came.push(element);
                Ok(())
            }
            RecordOf::Pe => {
                let (saved, ends) = read_own(&packed.body)?;
                self.take_own(saved, waiting)?;
                waiting.has_own = true;
                self.take_ends(ends)
            }
            RecordOf::Late { .. } => {
                let (late, split) = read_late(&packed.body)?;
                waiting.arrived.extend(late);
                waiting.split += split;
                Ok(())
            }
            RecordOf::Sum(_) | RecordOf::Collection | RecordOf::Variable { .. } | RecordOf::Loads => Ok(()),
        }
    }

    fn take_ends(&mut self, ends: SavedEnds) -> Result<(), PupError> {
        self.pe.restore_contributors(ends.contributors);
        for (collection, gone) in ends.gone {
            self.has_shelf(collection);
            let shelf = self.shelves.get_mut(collection);
            let unknown = || PupError::new("destroyed elements", "their collection is not known");
            shelf.ok_or_else(unknown)?.gone = gone;
        }
        Ok(())
    }

    fn take_own(&mut self, saved: SavedScheduler, waiting: &mut Waiting) -> Result<(), PupError> {
        let queues = [&saved.queue, &saved.arrived];
        let early = saved.early.iter().map(|(_, waiting)| waiting);
        let in_shelves =
            saved.shelves.iter().flat_map(|shelf| shelf.early.iter().map(|(_, waiting)| waiting));
        let all = queues.into_iter().chain(early).chain(in_shelves).flatten();
        check_saved(all)?;
        self.pe.restore(&saved.pe)?;
        for SavedShelf { collection, elements_made, singles_made, early } in saved.shelves {
            self.has_shelf(collection);
            let Some(shelf) = self.shelves.get_mut(collection) else {
                return Err(PupError::new("chares", "their collection is not known"));
            };
            shelf.made = elements_made;
            shelf.store.set_made(singles_made);
            shelf.early = early.into_iter().map(|(index, waiting)| (index, open(waiting))).collect();
        }
        self.early = saved.early.into_iter().map(|(id, waiting)| (id, open(waiting))).collect();
        waiting.queue = open(saved.queue);
        // What has come here already is later.
        waiting.arrived.splice(..0, open(saved.arrived));
        Ok(())
    }
}

/// What was saved of a PE, by this version or an earlier one.
fn read_own(bytes: &[u8]) -> Result<(SavedScheduler, SavedEnds), PupError> {
    let wrong = |why: String| PupError::new("what was saved of a PE", why);
    let (version, _) = postcard::take_from_bytes::<u16>(bytes).map_err(|error| wrong(error.to_string()))?;
    match version {
        1 => Ok((read(bytes)?, SavedEnds::default())),
        VERSION => read(bytes),
        _ => Err(wrong(format!("it is of version {version}, and this program knows {VERSION}"))),
    }
}

/// An envelope that holds bytes, as it is saved.
pub(super) fn saved(envelope: &Envelope) -> Result<Saved, PupError> {
    let Payload::Packed(payload) = &envelope.payload else {
        return Err(PupError::new("packed bytes", "a message was moved that nobody can pack"));
    };
    Ok((envelope.target.clone(), envelope.priority.clone(), Payload::Packed(Arc::clone(payload))))
}

/// The envelopes that were saved.
pub(super) fn open(all: Vec<Saved>) -> Vec<Envelope> {
    let envelope = |(target, priority, payload)| Envelope { target, priority, payload, backlog_bytes: 0 };
    all.into_iter().map(envelope).collect()
}

/// Refuses what nobody can have saved.
pub(super) fn check_saved<'a>(all: impl IntoIterator<Item = &'a Saved>) -> Result<(), PupError> {
    match all.into_iter().find(|(target, ..)| !can_be_saved(target)) {
        None => Ok(()),
        Some((target, ..)) => {
            Err(PupError::new("what was saved of a PE", format!("{target:?} is never saved")))
        }
    }
}

/// Whether a PE can have had this waiting when it was saved.
fn can_be_saved(target: &Target) -> bool {
    match target {
        Target::Order(order) => matches!(order, PeOrder::Migrate | PeOrder::NameHeld),
        Target::Record(_) | Target::Stop => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_before_elements_could_be_destroyed_is_read_and_nothing_else() {
        let saved = |version| SavedScheduler {
            version,
            pe: vec![7],
            queue: Vec::new(),
            arrived: Vec::new(),
            early: Vec::new(),
            shelves: Vec::new(),
        };
        let with_ends = |version| written(&(saved(version), SavedEnds::default())).unwrap();
        let (earlier, ends) = read_own(&written(&saved(1)).unwrap()).unwrap();
        assert_eq!((earlier.pe, ends.gone.len()), (vec![7], 0));
        assert_eq!(read_own(&with_ends(VERSION)).unwrap().0.pe, [7]);
        for wrong in [written(&saved(VERSION)).unwrap(), with_ends(1), with_ends(VERSION + 1), Vec::new()] {
            assert!(read_own(&wrong).is_err());
        }
    }
}
