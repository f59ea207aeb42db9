//! The loop of a PE: take the most urgent message, run its entry method to the end, and again.

mod cutting;
mod ending;
mod failing;
mod making;
mod measuring;
mod pausing;
mod saver;
mod telling;
mod to_disk;
mod writing;

pub use cutting::late_relays;
pub use failing::panic_text;

use super::Pe;
use super::departure::Wander;
use super::doing::Doing;
use super::idle::Idle;
use super::inbox::Arrival;
use super::recent::Recent;
use super::ring::Moved;
use super::share::Share;
use crate::codec::Refusal;
use crate::envelope::{
    CollectionId, ElementId, ElementIndex, Envelope, MembersHere, Packed, Payload, PeOrder, Target, ToPe,
    Value,
};
use crate::ids::PeId;
use crate::mark::Mark;
use crate::monitor::wire::PeState;
use crate::moving::{Heading, What};
use crate::node::Node;
use crate::node::naming::Brief;
use crate::object::{KernelCall, PupError, REDUCTION, Store, StoreFor};
use crate::priority::Priority;
use loadbalance::balance::Mobility;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use rustc_hash::FxHashMap;
use saver::Savers;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes that a PE may have dealt with before it tells the node. It does not tell of each message, because the network
/// thread writes the same counter.
const SETTLE_BYTES: u64 = 64 << 10;
/// More envelopes than this, taken from the inbox at once, make the gap before the next entry method long.
const BATCH: usize = 16;

/// Starts a thread for each PE of `node`, pinned to its core where the settings name enough cores.
///
/// # Errors
/// If the system refuses a thread.
pub fn start_pes(node: &Arc<Node>) -> std::io::Result<()> {
    let pes = node.topology().pes(node.id());
    let cores = &node.settings().cores;
    let is_pinned = cores.len() >= pes.len();
    let own = |rank| if is_pinned { vec![cores[rank]] } else { Vec::new() };
    pes.iter().enumerate().try_for_each(|(rank, pe)| start_pe(node, PeId(*pe), own(rank)))
}

/// Starts a thread for a PE of `node`, on these cores if there are any.
pub(crate) fn start_pe(node: &Arc<Node>, pe: PeId, cores: Vec<usize>) -> std::io::Result<()> {
    let here = Arc::clone(node);
    let thread = std::thread::Builder::new().name(format!("PE {}", pe.0)).spawn(move || {
        pin(&cores);
        Scheduler::new(&here, pe).run();
    })?;
    node.pes().runs(thread);
    Ok(())
}

/// Keeps the calling thread on these cores; without any, and where the system does not permit it (false), all stays as it is.
pub(crate) fn pin(cores: &[usize]) -> bool {
    if cores.is_empty() {
        return false;
    }
    let mut set = CpuSet::new();
    let chosen: Result<(), _> = cores.iter().try_for_each(|&core| set.set(core));
    let pinned = chosen.and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    if let Err(error) = &pinned {
        tracing::debug!("not pinned to the cores {cores:?}: {error}");
    }
    pinned.is_ok()
}

/// A PE with its chares.
pub struct Scheduler {
    pub(super) pe: Pe,
    pub(super) shelves: Recent<Shelf>,
    /// Messages for collections that are not known here yet.
    early: FxHashMap<CollectionId, Vec<Envelope>>,
    share: Share,
    /// What speeds are measured with, while they are.
    kernel: Option<KernelCall>,
    idle: Idle,
    /// Bytes that came by links, are dealt with, and still count as the node's backlog.
    pub(super) dealt_with_bytes: u64,
    /// Elements move at random moments, so that tests find what does not bear it.
    pub(super) wander: Option<Wander>,
    /// How large chares are.
    sizes: telling::Sizes,
    /// The population of the PE when chares were counted last.
    counted: [u64; 3],
    /// Sends what is packed to be saved.
    savers: Savers,
    /// What it has to do with a snapshot.
    snapshot: cutting::Snapshot,
}

pub(super) struct Shelf {
    pub(super) chare_type: u16,
    /// Its elements never move.
    is_fixed: bool,
    pub(super) store: Box<dyn Store>,
    /// How many elements have been made here.
    made: u64,
    /// Messages for elements that have not been constructed yet, or have been destroyed.
    pub(super) early: FxHashMap<ElementIndex, Vec<Envelope>>,
    /// What is left of elements that are at home here and have been destroyed.
    gone: ending::Gone,
}

impl Shelf {
    /// Where an element may go; anywhere if it is not here.
    pub(super) fn mobility(&self, index: ElementIndex) -> Mobility {
        self.store.find(index).map(|slot| self.store.mobility(slot)).unwrap_or_default()
    }
}

impl Scheduler {
    /// The PE with this number, which is of `node`, without chares.
    #[must_use]
    pub fn new(node: &Arc<Node>, id: PeId) -> Self {
        let mut pe = Pe::new(id, Arc::clone(node));
        let share = Share::new(node.settings().cpu_share);
        let wander = Wander::new(node.settings().wander, id);
        pe.has_more_to_do = wander.is_some() || !share.is_whole();
        Self {
            pe,
            shelves: Recent::default(),
            early: FxHashMap::default(),
            share,
            kernel: None,
            idle: Idle::new(node),
            dealt_with_bytes: 0,
            wander,
            sizes: telling::Sizes::default(),
            counted: [0; 3],
            savers: Savers::default(),
            snapshot: cutting::Snapshot::default(),
        }
    }

    /// Runs until the node ends. To be called on the PE's own thread.
    pub fn run(mut self) {
        let mut arrived = VecDeque::new();
        self.pe.account().runs_here();
        // Around all messages and not around each: to be ready for a panic takes as long as to deliver a message.
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work(&mut arrived))) {
            self.failed(&format!("panicked: {}", panic_text(panic.as_ref())));
            self.message_ends(false);
        }
    }

    /// Takes messages until it is told to stop.
    pub(super) fn work(&mut self, arrived: &mut VecDeque<Arrival>) {
        let node = Arc::clone(&self.pe.node);
        let inbox = node.pes().inbox(self.pe.id);
        loop {
            if inbox.take(arrived) {
                self.take_in(arrived);
            }
            if let Some(Moved { collection, index, entry, message }) = self.pe.queue.pop_moved() {
                let brief = Brief { collection: Some(collection), index: None, entry };
                self.message_begins(brief, Some(index), 0);
                let outcome = self.deliver_moved(collection, index, entry, message);
                self.message_ends_with(outcome);
            } else if self.process_other(&node).is_break() {
                return;
            }
        }
    }

    /// Puts what has arrived on the queue, unless it is for an element of which more is known than its home.
    #[inline(never)]
    fn take_in(&mut self, arrived: &mut VecDeque<Arrival>) {
        if arrived.len() > BATCH
            || arrived.iter().any(|arrival| matches!(arrival, Arrival::Run(_) | Arrival::Look))
        {
            self.switch(PeState::Overhead);
            self.pe.timekeeper.gap_is_long();
        }
        for arrival in arrived.drain(..) {
            if let Arrival::Colour(colour) = arrival {
                self.snapshot.arriving = colour;
            } else if self.snapshot.arriving != self.pe.colour() {
                arrival.open(|envelope| self.take_of_other_colour(envelope));
            } else if self.pe.moved.locations.is_empty() {
                let queue = &mut self.pe.queue;
                arrival.open(|envelope| queue.push(envelope));
            } else {
                arrival.open(|envelope| self.find_receiver(envelope));
            }
        }
    }

    /// Puts what has arrived on the queue, unless it is for an element of which more is known than its home.
    fn take_one(&mut self, envelope: Envelope) {
        if self.pe.moved.locations.is_empty() {
            self.pe.queue.push(envelope);
        } else {
            self.find_receiver(envelope);
        }
    }

    /// Tells the node what of its backlog is dealt with.
    #[cold]
    fn settle(&mut self) {
        self.pe.node.pes().backlog_fell(self.pe.id, std::mem::take(&mut self.dealt_with_bytes));
    }

    fn idle(&mut self, node: &Node) {
        if self.pe.seeds.may_ask() {
            self.pe.ask_for_seeds();
        }
        if self.dealt_with_bytes > 0 {
            self.settle();
        }
        self.pe.account().queued(0);
        self.switch(PeState::Idle);
        self.stretch_ends();
        let Pe { id, timekeeper, account, outbox, .. } = &mut self.pe;
        self.idle.wait(node.pes().inbox(*id), outbox, || {
            timekeeper.switch(account, PeState::Asleep, node.now_ns());
        });
        let since_ns = self.pe.account().switched_ns();
        self.switch(PeState::Overhead);
        self.stretch_begins();
        let now_ns = self.pe.account.switched_ns();
        self.share.rested(since_ns, now_ns);
        self.pe.sampling.was_idle(since_ns, now_ns);
    }

    /// Deals with what is not an ordinary value for an element, or waits. Apart, so that the loop keeps in registers what
    /// it needs for those.
    #[inline(never)]
    fn process_other(&mut self, node: &Node) -> ControlFlow<()> {
        let Some(envelope) = self.pe.queue.pop() else {
            self.idle(node);
            return ControlFlow::Continue(());
        };
        let Envelope { target, priority, payload, backlog_bytes } = envelope;
        if matches!(target, Target::Stop) {
            return ControlFlow::Break(());
        }
        self.message_begins(Brief::of(&target), None, backlog_bytes);
        self.looks_for_mark(&target, backlog_bytes);
        let outcome = self.act(target, priority, payload);
        self.message_ends_with(outcome);
        ControlFlow::Continue(())
    }

    /// Notes that the PE begins to do something.
    #[inline]
    fn message_begins(&mut self, brief: Brief, running: Option<ElementIndex>, backlog_bytes: u64) {
        self.pe.account().queued(self.pe.queue.len());
        self.pe.running = running;
        self.pe.doing = Doing { brief, backlog_bytes, many: None };
        // Reading the clock costs as much as the rest of the way, so it is read only where it is needed.
        if !self.share.is_whole() {
            self.share.begins(self.pe.node.now_ns());
        }
    }

    #[inline(always)]
    fn message_ends_with(&mut self, outcome: Result<(), PupError>) {
        if let Err(error) = &outcome {
            self.failed(&error.to_string());
        }
        self.message_ends(outcome.is_ok());
    }

    /// Notes that what was begun last is done or has failed.
    #[inline(always)]
    fn message_ends(&mut self, is_done: bool) {
        self.dealt_with_bytes += self.pe.doing.backlog_bytes;
        if self.dealt_with_bytes >= SETTLE_BYTES {
            self.settle();
        }
        if is_done {
            self.pe.account().processed();
        }
        self.pe.outbox.passes();
        let Pe { node, account, timekeeper, .. } = &mut self.pe;
        let timed = timekeeper.entry_ends(account, || node.now_ns());
        if let Some(timed) = timed {
            self.timed(timed);
        }
        if self.pe.has_more_to_do {
            self.do_more();
        }
    }

    /// Does what few PEs have to do after a message.
    #[cold]
    fn do_more(&mut self) {
        if !self.share.is_whole() {
            self.share.ends(self.pe.node.now_ns());
            self.pay_back(Share::PIECE);
        }
        self.bury();
        let Brief { collection, index, .. } = self.pe.doing.brief;
        // Of those that a message for many reached, the last.
        let running = (collection, index.or(self.pe.running));
        if self.pe.seeds.are_awaited() {
            self.give_seeds(running);
        } else {
            self.leave(running);
        }
        let stays = self.wander.is_some() || !self.share.is_whole() || self.pe.seeds.are_awaited();
        self.pe.has_more_to_do = stays || !self.pe.moved.leaving.is_empty();
    }

    /// Does what an envelope asks, or keeps it until what it needs is there.
    fn act(&mut self, target: Target, priority: Priority, payload: Payload) -> Result<(), PupError> {
        match target {
            Target::Message(message) => return self.act_on(message, priority, payload),
            Target::All { collection, entry, .. } => {
                self.deliver_all(collection, entry, priority, payload)?
            }
            Target::Section(section) => {
                let MembersHere { collection, members, entry, .. } = *section;
                let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
                let count = members.len() as u64;
                // Those that had moved when it came were taken out, and so was who left later.
                for index in members {
                    self.pe.runs_next(ElementId { collection, index });
                    let payload = Payload::Packed(Arc::clone(&packed));
                    self.deliver(collection, index, entry, priority.clone(), payload)?;
                }
                self.many_end(count, count);
            }
            Target::Create(collection) => self.create(collection, payload)?,
            Target::Copy { collection, index, entry } => {
                if self.is_here(ElementId { collection, index }) {
                    return self.deliver(collection, index, entry, priority, payload);
                }
            }
            Target::Replace { collection, index } => self.replace((collection, index))?,
            Target::Depart { collection, index, to } => {
                self.depart_or_wait(ElementId { collection, index }, to, priority, payload)?;
            }
            Target::Order(PeOrder::PrepareKernel { kernel }) => self.prepare_kernel(kernel, &payload)?,
            Target::Order(PeOrder::Measure { budget_ms }) => self.measure(budget_ms),
            Target::Order(PeOrder::DropKernel) => self.kernel = None,
            Target::Order(PeOrder::NameHeld) => self.name_held(),
            Target::Order(PeOrder::Migrate) => self.migrate(payload)?,
            Target::Order(PeOrder::Probe) => self.probe(),
            Target::Order(PeOrder::Pause) => self.pause(),
            Target::Order(PeOrder::Cut) => self.cut(),
            Target::Order(PeOrder::Close) => self.close(),
            // These are for a PE that stands still; this one has been told to go on.
            Target::Order(
                PeOrder::Save(_)
                | PeOrder::HandOver { .. }
                | PeOrder::ReadSaved
                | PeOrder::Restore { .. }
                | PeOrder::Resume,
            )
            | Target::Record(_) => {}
            Target::Stop => {}
        }
        Ok(())
    }

    fn act_on(&mut self, message: ToPe, priority: Priority, payload: Payload) -> Result<(), PupError> {
        match message {
            ToPe::Element { collection, index, entry, .. } => {
                self.deliver(collection, index, entry, priority, payload)
            }
            ToPe::Insert { collection, index } => self.insert(collection, index, priority, payload),
            ToPe::Partial(header) => {
                let id = header.collection;
                let Some(known) = self.pe.collection(id) else {
                    // Reductions climb another tree than the one by which collections become known.
                    return self.keep_early(id, Envelope::new(ToPe::Partial(header), priority, payload));
                };
                entry_begins(&mut self.pe, known.chare_type, REDUCTION);
                self.pe.take_partial(*header, payload)
            }
            ToPe::Moving(moving) => self.take_moving(*moving, payload),
            ToPe::Contributors(said) => self.take_contributors(*said),
            ToPe::Relay(callback) => {
                self.pe.reply(*callback, |_| payload);
                Ok(())
            }
        }
    }

    /// The shortest way, which nearly all messages take.
    #[inline]
    fn deliver_moved(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        entry: u16,
        message: Value,
    ) -> Result<(), PupError> {
        if let Some(shelf) = self.shelves.get_mut(collection)
            && let Some(slot) = shelf.store.find(index)
        {
            entry_begins(&mut self.pe, shelf.chare_type, entry);
            self.pe.account().ran(1);
            return shelf.store.run(slot, entry, message, &mut self.pe);
        }
        self.deliver(collection, index, entry, Priority::ORDINARY, Payload::Value(message))
    }

    fn deliver(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        entry: u16,
        priority: Priority,
        payload: Payload,
    ) -> Result<(), PupError> {
        let target = ToPe::Element { collection, index, entry, from: PeId::DRIVER, number: 0 };
        let Some(shelf) = shelf(&mut self.shelves, &mut self.early, &mut self.pe, collection) else {
            return self.keep_early(collection, Envelope::new(target, priority, payload));
        };
        entry_begins(&mut self.pe, shelf.chare_type, entry);
        if let Some(slot) = shelf.store.find(index) {
            self.pe.account().ran(1);
            return match payload {
                Payload::Value(message) => shelf.store.run(slot, entry, message, &mut self.pe),
                Payload::Packed(message) => shelf.store.run_packed(slot, entry, &message, &mut self.pe),
            };
        }
        if shelf.store.is_gone(index) {
            return Ok(());
        }
        // Of single chares that have moved nothing is kept at home: what comes to where one has ended is dropped.
        let is_single = collection.as_singles().is_some();
        if !is_single || !self.pe.moved.locations.has_arrived(ElementId { collection, index }) {
            check_home(&mut self.pe, collection, index)?;
            self.pe.account().held();
            shelf.early.entry(index).or_default().push(Envelope::new(target, priority, payload));
        }
        Ok(())
    }

    /// Delivers what was sent to all to one of them that is at home here and has moved, behind the messages of its own that
    /// went after it before. If it has been destroyed, it is passed over, here or where the copy comes to.
    fn deliver_copy(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        entry: u16,
        priority: Priority,
        packed: &Arc<Packed>,
    ) -> Result<(), PupError> {
        let element = ElementId { collection, index };
        let heading = Heading { what: What::Copy(entry), priority: priority.clone() };
        let payload = Payload::Packed(Arc::clone(packed));
        match self.pe.take_plain(element, PeId::DRIVER, heading, payload) {
            Ok(()) => Ok(()),
            Err(payload) => self.deliver(collection, index, entry, priority, payload),
        }
    }

    fn deliver_all(
        &mut self,
        collection: CollectionId,
        entry: u16,
        priority: Priority,
        payload: Payload,
    ) -> Result<(), PupError> {
        if !self.has_shelf(collection) || self.lacks_elements(collection) {
            let target = Target::All { collection, entry, mark: Mark::NONE };
            return self.keep_early(collection, Envelope::new(target, priority, payload));
        }
        let Some(shelf) = self.shelves.get_mut(collection) else { return Ok(()) };
        let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
        if !shelf.store.is_empty() {
            entry_begins(&mut self.pe, shelf.chare_type, entry);
            let count = shelf.store.run_all(entry, &packed, &mut self.pe)?;
            self.many_end(count, 1);
            self.pe.account().ran(count);
        }
        for index in self.pe.movers(collection) {
            if self.is_destroyed(collection, index) {
                continue;
            }
            self.deliver_copy(collection, index, entry, priority.clone(), &packed)?;
        }
        Ok(())
    }

    /// Whether there is a shelf for the collection. One is put up if there is none and the collection is known here.
    pub(super) fn has_shelf(&mut self, id: CollectionId) -> bool {
        shelf(&mut self.shelves, &mut self.early, &mut self.pe, id).is_some()
    }

    /// Keeps a message for a collection that is not known here yet, or not complete.
    pub(super) fn keep_early(&mut self, id: CollectionId, envelope: Envelope) -> Result<(), PupError> {
        // One that nobody can have made would wait for ever.
        let wrong = |refusal: Refusal| PupError::new("for a chare", refusal.to_string());
        self.pe.node.checks().check_id(id).map_err(wrong)?;
        self.pe.account().held();
        self.early.entry(id).or_default().push(envelope);
        Ok(())
    }

    fn release_early(&mut self, id: CollectionId) {
        let waiting = self.early.remove(&id).unwrap_or_default();
        self.release(waiting);
    }

    fn release(&mut self, waiting: Vec<Envelope>) {
        self.pe.account().released(waiting.len() as u64);
        self.pe.queue.push_front(waiting);
    }

    fn switch(&mut self, state: PeState) {
        self.pe.timekeeper.switch(&self.pe.account, state, self.pe.node.now_ns());
    }
}

/// The shelf of a collection, put up if it is not there; `None` if the collection is not known here.
#[inline]
fn shelf<'a>(
    shelves: &'a mut Recent<Shelf>,
    early: &mut FxHashMap<CollectionId, Vec<Envelope>>,
    pe: &mut Pe,
    id: CollectionId,
) -> Option<&'a mut Shelf> {
    if shelves.get(id).is_none() {
        let collection = if id.as_singles().is_none() { Some(pe.collection(id)?) } else { None };
        let chare_type = id.as_singles().or_else(|| collection.as_ref().map(|c| c.chare_type))?;
        let known = pe.node.program().chare_types.get(usize::from(chare_type))?;
        let pe_count = pe.node.topology().pe_count();
        let is_fixed = collection.as_ref().is_some_and(|collection| collection.is_fixed);
        let store = (known.new_store)(StoreFor { id, collection, pe: pe.id, pe_count });
        let mut shelf = Shelf {
            chare_type,
            is_fixed,
            store,
            made: 0,
            early: FxHashMap::default(),
            gone: ending::Gone::default(),
        };
        // What came before the description waits where what comes after it will wait, and before that.
        for envelope in early.remove(&id).unwrap_or_default() {
            match envelope.target {
                Target::Message(ToPe::Element { index, .. }) => {
                    shelf.early.entry(index).or_default().push(envelope)
                }
                _ => early.entry(id).or_default().push(envelope),
            }
        }
        shelves.insert(id, shelf);
    }
    shelves.get_mut(id)
}

#[inline]
fn entry_begins(pe: &mut Pe, chare_type: u16, entry: u16) {
    let state = if pe.node.is_init() { PeState::Init } else { PeState::Compute };
    pe.timekeeper.entry_begins(&pe.account, state, || pe.node.now_ns());
    pe.account.begins(chare_type, entry);
}

/// Whether an element that is not here (yet) belongs here; one that does not would be waited for in vain.
fn check_home(pe: &mut Pe, id: CollectionId, index: ElementIndex) -> Result<(), PupError> {
    let Some(collection) = pe.collection(id) else { return Ok(()) };
    if collection.pe_of(index) == Some(pe.id) {
        return Ok(());
    }
    let reason = format!("element {index:?} does not live on {:?}", pe.id);
    Err(PupError::new("for a chare", reason))
}

pub(super) fn moved_broadcast() -> PupError {
    PupError::new("packed bytes", "a value was moved to several receivers")
}

#[cfg(test)]
mod tests;
