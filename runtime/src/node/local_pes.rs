//! The PEs of a node as others see them: where envelopes for them are put, and what they count.

use crate::envelope::{Envelope, Packed, Payload, Target};
use crate::ids::PeId;
use crate::loads::PeLoads;
use crate::monitor::Detail;
use crate::monitor::profile::{COUNTS_MAX, ChareCount, ENTRIES_MAX, EntryTime, SentTo};
use crate::monitor::wire::{PeSnapshot, PeState};
use crate::object::ProgramTable;
use crate::pe::account::Account;
use crate::pe::inbox::{Inbox, Incoming};
use crate::pe::loads::Said;
use crate::pe::tally::Tally;
use crate::pe::told::Told;
use crate::priority::Priority;
use crate::proto::quiescence::Counts;
use crate::proto::snapshot::Colour;
use crate::topology::Topology;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// The PEs of one node, and the driver's account, which is like theirs. Which PEs these are the
/// [topology](crate::topology::Topology) says.
#[derive(Debug)]
pub(crate) struct LocalPes {
    slots: Slots,
    driver: Arc<Account>,
    /// What makes new accounts.
    program: Arc<ProgramTable>,
    node_count: u16,
    detail: Detail,
    backlog: Backlog,
    measuring: Mutex<Arc<Barrier>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Places for all PEs of the run, by their numbers, filled for those that are here, or were. They are read without a lock for
/// each message, so that more are added behind them.
#[derive(Debug)]
struct Slots {
    first: Vec<OnceLock<Box<Slot>>>,
    more: OnceLock<Box<Self>>,
}

impl Slots {
    fn new(count: usize) -> Self {
        Self { first: (0..count).map(|_| OnceLock::new()).collect(), more: OnceLock::new() }
    }

    /// That of a PE, if there is such a PE.
    #[inline]
    fn get(&self, pe: PeId) -> Option<&OnceLock<Box<Slot>>> {
        let (mut slots, mut at) = (self, pe.as_usize());
        loop {
            match slots.first.get(at) {
                None => (at, slots) = (at - slots.first.len(), slots.more.get()?),
                found => return found,
            }
        }
    }

    /// There are so many from now on, if there were fewer.
    fn grow(&self, count: usize) {
        let (mut slots, mut known) = (self, self.first.len());
        while known < count {
            slots = slots.more.get_or_init(|| Box::new(Self::new(count - known)));
            known += slots.first.len();
        }
    }

    /// Those that are here, or were, with their numbers.
    fn filled(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let parts = std::iter::successors(Some(self), |slots| slots.more.get().map(|more| &**more));
        let all = (0..).zip(parts.flat_map(|slots| &slots.first));
        all.filter_map(|(pe, slot)| slot.get().map(|slot| (pe, &**slot)))
    }
}

/// A PE that is here.
#[derive(Debug)]
struct Slot {
    inbox: Inbox,
    account: Arc<Account>,
    /// What it has said of its chares' loads.
    said: Said,
}

/// Bytes that came by links and that no PE has dealt with. Its own cache lines keep it apart from what PEs read for each
/// message.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Backlog(AtomicU64);

/// The counters of a PE. What left for other nodes is counted in any case: by that it is known whether anything is on its way.
fn account(program: &ProgramTable, node_count: u16, detail: Detail) -> Account {
    Account::new(if detail.times() { Tally::new(program, node_count) } else { Tally::of_sent(node_count) })
}

impl LocalPes {
    /// Those of a node, for which nothing has arrived, in a run of this program.
    pub(super) fn new(pes: &[u32], topology: &Topology, program: &Arc<ProgramTable>, detail: Detail) -> Self {
        let node_count = topology.node_count();
        let new = Self {
            slots: Slots::new(topology.pe_count() as usize),
            driver: Arc::new(account(program, node_count, detail)),
            program: Arc::clone(program),
            node_count,
            detail,
            backlog: Backlog::default(),
            measuring: Mutex::new(Arc::new(Barrier::new(1))),
            threads: Mutex::default(),
        };
        pes.iter().for_each(|pe| new.begin(PeId(*pe), 0));
        new.measure_with(pes.len());
        new
    }

    /// The run has so many PEs from now on.
    pub(super) fn grow(&self, pe_count: u32) {
        self.slots.grow(pe_count as usize);
    }

    /// A PE of the run is here from now on.
    pub(super) fn begin(&self, pe: PeId, now_ns: u64) {
        let new = || {
            let account = Arc::new(account(&self.program, self.node_count, self.detail));
            Box::new(Slot { inbox: Inbox::default(), account, said: Said::default() })
        };
        if let Some(slot) = self.slots.get(pe) {
            let slot = slot.get_or_init(new);
            slot.inbox.begins();
            slot.account.begins_at(now_ns);
        }
    }

    /// So many PEs measure their speed together from now on.
    pub(super) fn measure_with(&self, count: usize) {
        *self.measuring.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Barrier::new(count.max(1)));
    }

    /// A thread runs a PE.
    pub(crate) fn runs(&self, thread: JoinHandle<()>) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// The threads that have been started for PEs.
    pub(super) fn take_threads(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The inbox of a PE.
    pub(crate) fn inbox(&self, pe: PeId) -> &Inbox {
        &self.slot(pe).inbox
    }

    /// What a PE of this node, or the driver, counts.
    pub(crate) fn account(&self, pe: PeId) -> &Arc<Account> {
        if pe == PeId::DRIVER { &self.driver } else { &self.slot(pe).account }
    }

    /// Where a PE says what its chares cost.
    pub(crate) fn said(&self, pe: PeId) -> &Said {
        &self.slot(pe).said
    }

    /// What these PEs have said of their chares' loads since it was taken last, once each that has something to do has said
    /// something.
    pub(super) fn take_loads(&self, pes: &[u32], now_ns: u64) -> Option<Vec<PeLoads>> {
        // A PE that sleeps for its share says nothing meanwhile, and the others shall not wait for it.
        let is_idle = |slot: &Slot| {
            let state = slot.account.state();
            state.is_idle() || state == PeState::Throttled
        };
        let all = || pes.iter().map(|pe| (PeId(*pe), self.slot(PeId(*pe))));
        if !all().all(|(_, slot)| slot.said.is_new() || is_idle(slot)) {
            return None;
        }
        Some(all().map(|(pe, slot)| slot.said.take(pe, is_idle(slot).then_some(now_ns))).collect())
    }

    /// Where PEs meet that measure their speed together.
    pub(crate) fn measuring(&self) -> Arc<Barrier> {
        Arc::clone(&self.measuring.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A PE has dealt with so many bytes that came by links.
    pub(crate) fn backlog_fell(&self, pe: PeId, bytes: u64) {
        self.backlog.0.fetch_sub(bytes, Ordering::Relaxed);
        self.inbox(pe).dealt_with(bytes);
    }

    /// Bytes that came by links and that no PE has dealt with.
    pub(super) fn backlog_bytes(&self) -> u64 {
        self.backlog.0.load(Ordering::Relaxed)
    }

    /// Puts an envelope into a PE, of who sent it in that colour, or of nobody.
    pub(crate) fn push(&self, pe: PeId, colour: Option<Colour>, envelope: Envelope) {
        self.inbox(pe).push(colour, envelope);
    }

    /// The same for one that came by a link in a frame of so many bytes.
    pub(super) fn push_arrived(
        &self,
        pe: PeId,
        colour: Option<Colour>,
        mut envelope: Envelope,
        len_bytes: u64,
    ) {
        envelope.backlog_bytes = len_bytes;
        self.backlog.0.fetch_add(len_bytes, Ordering::Relaxed);
        self.push(pe, colour, envelope);
    }

    /// Puts messages of one colour into a PE that came by a link one behind the other, and have so many bytes; takes all of them.
    pub(super) fn push_run(
        &self,
        (pe, colour): (PeId, Option<Colour>),
        messages: &mut Vec<Incoming>,
        len_bytes: u64,
    ) {
        self.backlog.0.fetch_add(len_bytes, Ordering::Relaxed);
        let inbox = self.inbox(pe);
        match messages.pop() {
            Some(only) if messages.is_empty() => inbox.push(colour, only.into_envelope()),
            last => {
                messages.extend(last);
                inbox.push_run(colour, std::mem::take(messages));
            }
        }
    }

    /// Puts an envelope into each of these PEs that came in one frame.
    pub(super) fn push_to_all(
        &self,
        (pes, colour): (&[u32], Option<Colour>),
        target: &Target,
        priority: &Priority,
        payload: &Packed,
    ) {
        let payload = Arc::new(payload.clone());
        for pe in pes.iter().copied().map(PeId) {
            let envelope =
                Envelope::new(target.clone(), priority.clone(), Payload::Packed(Arc::clone(&payload)));
            self.push_arrived(pe, colour, envelope, payload.len_bytes() as u64);
        }
    }

    /// Stops all PEs after the entry methods that run now.
    pub(super) fn stop(&self) {
        for slot in self.slots() {
            slot.inbox.push(None, Envelope::urgent(Target::Stop));
        }
    }

    /// Messages of a colour that they have counted themselves when they left.
    pub(super) fn small_sent_of(&self, colour: Colour) -> u64 {
        self.all_accounts().map(|account| account.tally().sent_of(colour)).sum()
    }

    /// What all of them and the driver have created and processed.
    pub(super) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.all_accounts().for_each(|account| sum += account.counts());
        sum
    }

    /// Adds the messages and bytes that they have counted themselves when they left, to what is known of each node.
    pub(super) fn add_small_traffic(&self, sent: &mut [SentTo]) {
        for account in self.all_accounts() {
            for (sum, one) in sent.iter_mut().zip(account.tally().sent_to()) {
                sum.messages += one.messages;
                sum.bytes += one.bytes;
            }
        }
    }

    /// What all that have been here have run, the longest time first, and how many chares live on these.
    pub(super) fn profile(&self, pes: &[u32]) -> (Vec<EntryTime>, Vec<ChareCount>) {
        let ran = |(pe, slot): (u32, &Slot)| slot.account.tally().entries(pe, &self.program);
        let mut entries = EntryTime::sums(self.slots.filled().flat_map(ran));
        entries.truncate(ENTRIES_MAX);
        let counts = |pe: &u32| self.slot(PeId(*pe)).account.tally().chares(*pe).collect::<Vec<_>>();
        let mut chares: Vec<ChareCount> = pes.iter().flat_map(counts).collect();
        chares.sort_by_key(|one| std::cmp::Reverse(one.chares));
        chares.truncate(COUNTS_MAX);
        (entries, chares)
    }

    /// The long calls that are under way.
    pub(super) fn under_way(&self, now_ns: u64) -> impl Iterator<Item = EntryTime> {
        self.slots.filled().filter_map(move |(pe, slot)| slot.account.under_way(pe, now_ns))
    }

    /// So much at most of what all that have been here tell of one by one; taken away here, by `take`.
    pub(super) fn take_told<T>(&self, take: impl Fn(&Told) -> Vec<T>, most: usize) -> Vec<T> {
        let mut all: Vec<T> = self.slots().flat_map(|slot| take(slot.account.told())).collect();
        all.truncate(most);
        all
    }

    /// Has a PE look at the clock between two messages.
    pub(super) fn ask_to_look(&self, pe: PeId) {
        self.slot(pe).inbox.ask_to_look();
    }

    /// The counters of each of these.
    pub(super) fn snapshots(
        &self,
        pes: &[u32],
        now_ns: u64,
        entry_name: impl Fn(u16, u16) -> String,
    ) -> Vec<PeSnapshot> {
        let snapshot = |pe: &u32| {
            let Slot { inbox, account, .. } = self.slot(PeId(*pe));
            account.snapshot(*pe, inbox, now_ns, &entry_name)
        };
        pes.iter().map(snapshot).collect()
    }

    /// Reads again how many bytes they have sent.
    pub(super) fn read_sent(&self, snapshots: &mut [PeSnapshot]) {
        for one in snapshots {
            one.sent_bytes = self.slot(PeId(one.pe)).account.sent_bytes();
        }
    }

    fn all_accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        [&self.driver].into_iter().chain(self.slots().map(|slot| &slot.account))
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.filled().map(|(_, slot)| slot)
    }

    fn slot(&self, pe: PeId) -> &Slot {
        let slot = self.slots.get(pe).and_then(OnceLock::get);
        slot.expect("only PEs of this node are looked for in it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_that_come_later_have_places_of_their_own_and_the_others_keep_theirs() {
        let pes = LocalPes::new(&[1], &Topology::new(&[0, 2]), &Arc::default(), Detail::Times);
        let first: *const Inbox = pes.inbox(PeId(1));
        for (count, new) in [(2, 0), (3, 2), (6, 5), (6, 4)] {
            pes.grow(count);
            pes.begin(PeId(new), 0);
        }
        assert!(std::ptr::eq(first, pes.inbox(PeId(1))));
        let places: Vec<*const Inbox> =
            [0, 1, 2, 4, 5].map(|pe| std::ptr::from_ref(pes.inbox(PeId(pe)))).into();
        assert!((0..places.len()).all(|at| !places[..at].contains(&places[at])));
        assert_eq!((pes.slots().count(), pes.slots.get(PeId(6)).is_none()), (5, true));
    }
}
