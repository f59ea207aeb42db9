//! The loop of a PE: take the most urgent message, run its entry method to the end, and again.

use super::Pe;
use crate::codec::Control;
use crate::collection::Collection;
use crate::envelope::{CollectionId, ElementIndex, Envelope, Packed, Payload, Target};
use crate::ids::{NodeId, PeId};
use crate::monitor::wire::PeState;
use crate::node::Node;
use crate::object::{CONSTRUCTOR, KernelCall, PupError, REDUCTION, Store, Undelivered};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest sleep of an idle PE; it is woken by messages, this only bounds the harm of a lost wake-up.
const SLEEP: Duration = Duration::from_millis(100);
/// A speed is the median over so many stretches of time: a hiccup of the machine spoils one, not the result.
const WINDOWS: u32 = 7;
/// More envelopes than this, taken from the inbox at once, make the way to the next entry method long.
const BATCH: usize = 16;
/// A PE with a share of its core pays back in pieces of at least this long.
const DEBT_MIN_NS: u64 = 2_000_000;

/// Starts a thread for each PE of `node`, pinned to its core where the settings name enough cores.
///
/// # Errors
/// If the system refuses a thread.
pub fn start_pes(node: &Arc<Node>) -> std::io::Result<Vec<JoinHandle<()>>> {
    let pes = node.topology().pes(node.id());
    let cores = &node.settings().cores;
    let is_pinned = cores.len() >= pes.len();
    pes.enumerate()
        .map(|(rank, pe)| {
            let core = is_pinned.then(|| cores[rank]);
            let node = Arc::clone(node);
            std::thread::Builder::new().name(format!("PE {pe}")).spawn(move || {
                if let Some(core) = core {
                    pin(core);
                }
                Scheduler::new(&node, rank).run();
            })
        })
        .collect()
}

/// Keeps the calling thread on one core; a system that does not permit it runs it where it likes.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    let pinned = set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    if let Err(error) = pinned {
        tracing::debug!("PE is not pinned to core {core}: {error}");
    }
}

/// A PE with its chares.
pub struct Scheduler {
    pe: Pe,
    rank: usize,
    shelves: FxHashMap<CollectionId, Shelf>,
    /// Messages for collections that are not known here yet.
    early: FxHashMap<CollectionId, Vec<Envelope>>,
    debt_ns: u64,
}

struct Shelf {
    chare_type: u16,
    store: Box<dyn Store>,
    /// Messages for elements that have not been constructed yet.
    early: FxHashMap<ElementIndex, Vec<Envelope>>,
}

impl Scheduler {
    /// The PE at position `rank` of `node`, without chares.
    #[must_use]
    pub fn new(node: &Arc<Node>, rank: usize) -> Self {
        let first = node.topology().pes(node.id()).start;
        let id = PeId(first + u32::try_from(rank).expect("a node has fewer than 2^32 PEs"));
        let pe = Pe::new(id, Arc::clone(node));
        Self { pe, rank, shelves: FxHashMap::default(), early: FxHashMap::default(), debt_ns: 0 }
    }

    /// Runs until the node ends. To be called on the PE's own thread.
    pub fn run(mut self) {
        let node = Arc::clone(&self.pe.node);
        let mut arrived = VecDeque::new();
        loop {
            if node.inbox(self.rank).take(&mut arrived) {
                if arrived.len() > BATCH {
                    self.pe.way.is_long();
                }
                arrived.drain(..).for_each(|envelope| self.pe.queue.push(envelope));
            }
            match self.pe.queue.pop() {
                Some(envelope) => {
                    if self.process(envelope).is_break() {
                        return;
                    }
                }
                None => self.idle(&node),
            }
        }
    }

    fn idle(&self, node: &Node) {
        self.pe.account().queued(0, 0);
        self.switch(PeState::Idle);
        node.inbox(self.rank).wait(node.settings().spin, SLEEP);
        self.switch(PeState::Overhead);
    }

    fn process(&mut self, envelope: Envelope) -> ControlFlow<()> {
        let Envelope { target, priority, payload, backlog_bytes } = envelope;
        let waiting = self.pe.queue.len() + self.pe.node.inbox(self.rank).len();
        self.pe.account().queued(waiting, self.pe.node.backlog());
        if matches!(target, Target::Stop) {
            return ControlFlow::Break(());
        }
        let brief = Brief::of(&target);
        // Reading the clock costs as much as the rest of the way, so it is read only where it is needed.
        let has_share = self.pe.node.settings().cpu_share < 1.0;
        let before_ns = if has_share { self.pe.node.now_ns() } else { 0 };
        let outcome = catch_unwind(AssertUnwindSafe(|| self.act(target, priority, payload)));
        if backlog_bytes > 0 {
            self.pe.node.backlog_fell(backlog_bytes);
        }
        let failure = match outcome {
            Ok(Ok(true)) => {
                self.pe.account().processed();
                None
            }
            Ok(Ok(false)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panic) => Some(format!("panicked: {}", panic_text(panic.as_ref()))),
        };
        self.switch(PeState::Overhead);
        if let Some(failure) = failure {
            let what = self.describe(&brief);
            let name = &self.pe.node.program().name;
            self.pe.fail(format!("{what} on {:?} of {name} failed: {failure}", self.pe.id));
        }
        if has_share {
            self.debt_ns += self.owed_ns(self.pe.node.now_ns() - before_ns);
            self.pay_back();
        }
        ControlFlow::Continue(())
    }

    /// Does what an envelope asks; false if it waits for something and has not been processed.
    fn act(&mut self, target: Target, priority: i32, payload: Payload) -> Result<bool, PupError> {
        match target {
            Target::Element { collection, index, entry } => {
                return self.deliver(collection, index, entry, priority, payload);
            }
            Target::All { collection, entry } => {
                return self.deliver_all(collection, entry, priority, payload);
            }
            Target::Section { collection, members, entry } => {
                return self.deliver_section(collection, members, entry, priority, payload);
            }
            Target::Create(collection) => self.create(collection, payload)?,
            Target::Insert { collection, index } => {
                if !self.insert(collection, index, priority, payload)? {
                    return Ok(false);
                }
            }
            Target::Partial(header) => {
                let known = self.pe.collection(header.collection).map_or(0, |c| c.chare_type);
                self.enter(known, REDUCTION);
                self.pe.take_partial(*header, payload)?;
            }
            Target::Relay(callback) => self.pe.reply(callback, |_| payload),
            Target::Measure { kernel, budget_ms } => self.measure(kernel, budget_ms, &payload)?,
            Target::Slot(_) | Target::Stop => {}
        }
        Ok(true)
    }

    fn deliver(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        entry: u16,
        priority: i32,
        payload: Payload,
    ) -> Result<bool, PupError> {
        let target = Target::Element { collection, index, entry };
        let Some(shelf) = shelf(&mut self.shelves, &mut self.pe, collection) else {
            self.keep_early(collection, Envelope::new(target, priority, payload));
            return Ok(false);
        };
        begin(&mut self.pe, shelf.chare_type, entry);
        match shelf.store.deliver(index, entry, payload, &mut self.pe) {
            Ok(()) | Err(Undelivered::Gone) => Ok(true),
            Err(Undelivered::Missing(payload)) => {
                let waiting = shelf.early.entry(index).or_default();
                waiting.push(Envelope::new(target, priority, payload));
                Ok(false)
            }
            Err(Undelivered::Bad(error)) => Err(error),
        }
    }

    fn deliver_all(
        &mut self,
        collection: CollectionId,
        entry: u16,
        priority: i32,
        payload: Payload,
    ) -> Result<bool, PupError> {
        if !self.has_shelf(collection) || self.lacks_elements(collection) {
            self.keep_early(collection, Envelope::new(Target::All { collection, entry }, priority, payload));
            return Ok(false);
        }
        let Some(shelf) = self.shelves.get_mut(&collection) else { return Ok(false) };
        let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
        if !shelf.store.is_empty() {
            begin(&mut self.pe, shelf.chare_type, entry);
            let count = shelf.store.deliver_all(entry, &packed, &mut self.pe)?;
            self.pe.account().entered_more(count.saturating_sub(1));
        }
        Ok(true)
    }

    fn deliver_section(
        &mut self,
        collection: CollectionId,
        members: Vec<ElementIndex>,
        entry: u16,
        priority: i32,
        payload: Payload,
    ) -> Result<bool, PupError> {
        let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
        let mut all_done = true;
        let mut later = Vec::new();
        for index in members {
            let done = self.deliver(collection, index, entry, priority, Payload::Packed(packed.clone()))?;
            if !done {
                later.push(index);
            }
            all_done &= done;
        }
        // Each kept copy will count as processed when it is; only the first stands for this envelope.
        for _ in 1..later.len() {
            self.pe.account().created(1);
        }
        if !all_done {
            return Ok(false);
        }
        Ok(true)
    }

    fn create(&mut self, id: CollectionId, payload: Payload) -> Result<(), PupError> {
        let Some(collection) = self.pe.collection(id) else { return Ok(()) };
        if !self.has_shelf(id) {
            return Ok(());
        }
        if !collection.is_deferred {
            let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
            begin(&mut self.pe, collection.chare_type, CONSTRUCTOR);
            self.construct_all(&collection, &packed)?;
        }
        self.pe.unpark(id);
        self.release_early(id);
        Ok(())
    }

    fn construct_all(&mut self, collection: &Collection, packed: &Packed) -> Result<(), PupError> {
        let Some(shelf) = self.shelves.get_mut(&collection.id) else { return Ok(()) };
        let mut count = 0;
        for linear in collection.on_pe(self.pe.id) {
            let init = Payload::Packed(packed.clone());
            shelf.store.insert(collection.index_at(linear), init, &mut self.pe)?;
            count += 1;
        }
        self.pe.account().chares(count);
        let waiting: Vec<Envelope> = shelf.early.drain().flat_map(|(_, waiting)| waiting).collect();
        waiting.into_iter().for_each(|envelope| self.pe.queue.push(envelope));
        Ok(())
    }

    fn insert(
        &mut self,
        id: CollectionId,
        index: ElementIndex,
        priority: i32,
        payload: Payload,
    ) -> Result<bool, PupError> {
        let Some(shelf) = shelf(&mut self.shelves, &mut self.pe, id) else {
            self.keep_early(id, Envelope::new(Target::Insert { collection: id, index }, priority, payload));
            return Ok(false);
        };
        begin(&mut self.pe, shelf.chare_type, CONSTRUCTOR);
        shelf.store.insert(index, payload, &mut self.pe)?;
        self.pe.account().chares(1);
        for envelope in shelf.early.remove(&index).unwrap_or_default() {
            self.pe.queue.push(envelope);
        }
        if !self.lacks_elements(id) {
            self.release_early(id);
        }
        Ok(true)
    }

    /// Whether elements of a deferred collection that belong here have not been inserted yet. Broadcasts
    /// wait for them, so that "every element" does not depend on timing.
    fn lacks_elements(&mut self, id: CollectionId) -> bool {
        if id.as_singles().is_some() {
            return false;
        }
        let Some(collection) = self.pe.collection(id) else { return true };
        let Some(shelf) = self.shelves.get(&id) else { return true };
        let pe_count = self.pe.node.topology().pe_count();
        (shelf.store.len() as u64) < collection.counts(pe_count)[self.pe.id.as_usize()]
    }

    /// Makes sure of the shelf of a collection that is known here.
    fn has_shelf(&mut self, id: CollectionId) -> bool {
        shelf(&mut self.shelves, &mut self.pe, id).is_some()
    }

    fn keep_early(&mut self, id: CollectionId, envelope: Envelope) {
        self.early.entry(id).or_default().push(envelope);
    }

    fn release_early(&mut self, id: CollectionId) {
        for envelope in self.early.remove(&id).unwrap_or_default() {
            self.pe.queue.push(envelope);
        }
    }

    /// Runs the application's kernel together with all PEs of the node and tells the launcher the rate.
    fn measure(&mut self, kernel: u16, budget_ms: u32, arguments: &Payload) -> Result<(), PupError> {
        let node = Arc::clone(&self.pe.node);
        let Some(kernel) = node.program().kernels.get(usize::from(kernel)) else { return Ok(()) };
        let Payload::Packed(arguments) = arguments else { return Err(moved_broadcast()) };
        let mut call = (kernel.prepare)(&arguments.body)?;
        call(); // first touch of memory and caches
        node.measuring().wait();
        self.switch(PeState::Init);
        let window = Duration::from_millis(u64::from(budget_ms)) / WINDOWS;
        let mut rates: Vec<f64> = (0..WINDOWS).map(|_| self.rate_over(window, &mut call)).collect();
        rates.sort_unstable_by(f64::total_cmp);
        node.control(NodeId::LAUNCHER, Control::Speed(self.pe.id, rates[rates.len() / 2]));
        Ok(())
    }

    /// Units of work per second over a stretch of time, with what is owed to the owner of the core paid.
    fn rate_over(&mut self, window: Duration, call: &mut KernelCall) -> f64 {
        let node = Arc::clone(&self.pe.node);
        let (start, mut units) = (node.now(), 0.0);
        loop {
            let before_ns = node.now_ns();
            units += call();
            self.debt_ns += self.owed_ns(node.now_ns() - before_ns);
            self.pay_back();
            let elapsed = node.now().saturating_sub(start);
            if elapsed >= window {
                return units / elapsed.as_secs_f64();
            }
        }
    }

    fn owed_ns(&self, worked_ns: u64) -> u64 {
        let share = self.pe.node.settings().cpu_share;
        if share >= 1.0 { 0 } else { (worked_ns as f64 * (1.0 / share - 1.0)) as u64 }
    }

    /// Sleeps for what is owed to the owner of the core.
    fn pay_back(&mut self) {
        if self.debt_ns < DEBT_MIN_NS {
            return;
        }
        self.switch(PeState::Idle);
        std::thread::sleep(Duration::from_nanos(std::mem::take(&mut self.debt_ns)));
        self.switch(PeState::Overhead);
    }

    fn enter(&mut self, chare_type: u16, entry: u16) {
        begin(&mut self.pe, chare_type, entry);
    }

    fn switch(&self, state: PeState) {
        self.pe.account().switch(state, self.pe.node.now_ns());
    }

    fn describe(&self, brief: &Brief) -> String {
        let Some(id) = brief.collection else { return "a message".into() };
        let chare_type = match id.as_singles() {
            Some(chare_type) => Some(chare_type),
            None => self.pe.known.get(&id).map(|c| c.chare_type),
        };
        let Some(chare_type) = chare_type else { return "a message".into() };
        let name = self.pe.node.program().entry_name(chare_type, brief.entry);
        brief.index.map_or_else(|| name.clone(), |index| format!("{name} of element {index:?}"))
    }
}

/// What is kept of a target to name it if its entry method fails.
struct Brief {
    collection: Option<CollectionId>,
    index: Option<ElementIndex>,
    entry: u16,
}

impl Brief {
    fn of(target: &Target) -> Self {
        let (collection, index, entry) = match target {
            Target::Element { collection, index, entry } => (Some(*collection), Some(*index), *entry),
            Target::All { collection, entry } | Target::Section { collection, entry, .. } => {
                (Some(*collection), None, *entry)
            }
            Target::Create(collection) => (Some(*collection), None, CONSTRUCTOR),
            Target::Insert { collection, index } => (Some(*collection), Some(*index), CONSTRUCTOR),
            Target::Partial(header) => (Some(header.collection), None, REDUCTION),
            Target::Relay(_) | Target::Measure { .. } | Target::Slot(_) | Target::Stop => (None, None, 0),
        };
        Self { collection, index, entry }
    }
}

/// The shelf of a collection, put up if it is not there; `None` if the collection is not known here.
fn shelf<'a>(
    shelves: &'a mut FxHashMap<CollectionId, Shelf>,
    pe: &mut Pe,
    id: CollectionId,
) -> Option<&'a mut Shelf> {
    match shelves.entry(id) {
        Entry::Occupied(shelf) => Some(shelf.into_mut()),
        Entry::Vacant(place) => {
            let chare_type = id.as_singles().or_else(|| pe.collection(id).map(|c| c.chare_type))?;
            let known = pe.node.program().chare_types.get(usize::from(chare_type))?;
            let store = (known.new_store)(id);
            Some(place.insert(Shelf { chare_type, store, early: FxHashMap::default() }))
        }
    }
}

fn begin(pe: &mut Pe, chare_type: u16, entry: u16) {
    let state = if pe.node.is_init() { PeState::Init } else { PeState::Compute };
    let account = pe.node.account(pe.id);
    account.switch(state, pe.way.end_ns(account.since_ns(), || pe.node.now_ns()));
    account.entered(chare_type, entry);
}

fn moved_broadcast() -> PupError {
    PupError { expected: "packed bytes", reason: "a value was moved to several receivers".into() }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
