//! What a PE did with its time and its messages: counters that others read without stopping it.

use super::inbox::Inbox;
use super::on_core::{Counted, OnCore, STATES};
use super::tally::Tally;
use super::told::Told;
use crate::ids::NodeId;
use crate::monitor::profile::{EntryTime, SlowestCall, UNDER_WAY};
use crate::monitor::wire::{PeSnapshot, PeState};
use crate::proto::quiescence::Counts;
use crate::proto::snapshot::Colour;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bit of `running` that says that an entry method has run at all.
const ANY: u64 = 1 << 32;

/// What a PE has done for so long without a look at the clock is one call: short ones that are not timed are so many at most that
/// they take as long as a few thousand looks.
const ONE_CALL_NS: u64 = 10_000_000;

/// Counters of one PE. Only the PE itself writes them, so plain load-and-store increments are exact.
///
/// Aligned to two cache lines (they are fetched in pairs), so that PEs do not slow each other down by counting.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Account {
    /// State in the low three bits, start of the state in the others; one word, so both are read together.
    current: AtomicU64,
    totals_ns: [AtomicU64; STATES],
    entries: AtomicU64,
    chares: AtomicU64,
    migrations: AtomicU64,
    arrived: AtomicU64,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    created: AtomicU64,
    processed: AtomicU64,
    held: AtomicU64,
    queued: AtomicU64,
    progress: AtomicU64,
    /// Chare type and entry method that runs or ran last, and a bit that says that there is one.
    running: AtomicU64,
    /// The thread of the PE; 0 as long as it has none.
    thread: AtomicI32,
    /// Only for those who take snapshots.
    on_core: Mutex<OnCore>,
    tally: Tally,
    told: Told,
}

/// What is saved of the counters of a PE: not its times.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedCounts {
    counts: Counts,
    /// Entry methods run, chares, migrations, messages sent, progress.
    others: [u64; 5],
}

impl Account {
    /// An account that also counts by kind.
    #[must_use]
    pub fn new(tally: Tally) -> Self {
        Self { tally, ..Self::default() }
    }

    /// What is counted by kind.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What is told of one by one.
    pub(crate) fn told(&self) -> &Told {
        &self.told
    }

    /// Books the time since the last switch and begins `state`; `now_ns` counts from the node's start. A time
    /// before the last switch counts as that.
    pub fn switch(&self, state: PeState, now_ns: u64) {
        self.switch_from(0, state, now_ns);
    }

    /// As [`switch`](Self::switch), but books so much of the time since the last switch as overhead.
    pub(super) fn switch_from(&self, overhead_ns: u64, state: PeState, now_ns: u64) {
        let (previous, since_ns) = unpack(self.current.load(Ordering::Relaxed));
        let now_ns = now_ns.max(since_ns);
        let overhead_ns = overhead_ns.min(now_ns - since_ns);
        bump(&self.totals_ns[previous as usize], now_ns - since_ns - overhead_ns);
        if overhead_ns > 0 {
            bump(&self.totals_ns[PeState::Overhead as usize], overhead_ns);
        }
        self.current.store(now_ns << 3 | state as u64, Ordering::Release);
    }

    /// The PE is here from now on: no time before that is its.
    pub fn begins_at(&self, now_ns: u64) {
        self.current.store(now_ns << 3 | PeState::Idle as u64, Ordering::Release);
    }

    /// The calling thread is the PE's from now on.
    pub fn runs_here(&self) {
        self.thread.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
    }

    /// How long the PE has run entry methods until the last switch, and how long the runtime. Only for the PE itself.
    pub fn busy_ns(&self) -> (u64, u64) {
        let of = |state| self.totals_ns[state as usize].load(Ordering::Relaxed);
        (of(PeState::Compute) + of(PeState::Init), of(PeState::Overhead))
    }

    /// Entry methods that have run.
    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// When the current state began.
    pub fn switched_ns(&self) -> u64 {
        unpack(self.current.load(Ordering::Relaxed)).1
    }

    /// The current state.
    pub fn state(&self) -> PeState {
        unpack(self.current.load(Ordering::Relaxed)).0
    }

    /// An entry method of `chare_type`, a constructor or a reduction begins.
    #[inline]
    pub fn begins(&self, chare_type: u16, entry: u16) {
        let running = ANY | u64::from(chare_type) << 16 | u64::from(entry);
        self.running.store(running, Ordering::Relaxed);
    }

    /// Chare type and entry method that runs or ran last, if there is one.
    #[must_use]
    pub fn running(&self) -> Option<(u16, u16)> {
        let running = self.running.load(Ordering::Relaxed);
        (running & ANY != 0).then_some(((running >> 16 & 0xffff) as u16, (running & 0xffff) as u16))
    }

    /// The long call that this PE, of that number, is in, or whose end it has not come to count; `None` if it is in none. Whoever
    /// waits for what a chare sends last may hear of that before the call has ended.
    pub(crate) fn under_way(&self, pe: u32, now_ns: u64) -> Option<EntryTime> {
        let current = self.current.load(Ordering::Acquire);
        let (state, since_ns) = unpack(current);
        let ns = now_ns.saturating_sub(since_ns);
        let (chare_type, entry) = self.running()?;
        let is_in_one = matches!(state, PeState::Compute | PeState::Init) && ns >= ONE_CALL_NS;
        let name = self.tally.name(chare_type, entry).filter(|_| is_in_one)?;
        let slowest = SlowestCall { ns, at_ns: now_ns, pe, element: UNDER_WAY.into() };
        let is_still = self.current.load(Ordering::Acquire) == current;
        is_still.then_some(EntryTime { name, calls: 1, ns, slowest })
    }

    /// Counts entry methods that have run. Constructors, reductions, and entry methods whose element was not there do
    /// not count.
    #[inline]
    pub fn ran(&self, entries: u64) {
        bump(&self.entries, entries);
    }

    /// Chares came to live here, or left.
    pub fn chares(&self, added: i64) {
        bump(&self.chares, added.cast_unsigned());
    }

    /// How many chares live here, have left and have come: where this stays the same, nothing has changed but who they are.
    pub(super) fn population(&self) -> [u64; 3] {
        [&self.chares, &self.migrations, &self.arrived].map(|counter| counter.load(Ordering::Relaxed))
    }

    /// A chare came from another PE.
    pub fn arrived(&self) {
        self.chares(1);
        bump(&self.arrived, 1);
    }

    /// A chare that lived here moved to another PE.
    pub fn migrated(&self) {
        self.chares(-1);
        bump(&self.migrations, 1);
    }

    /// A chare sent a message that `receivers` PEs will process.
    #[inline]
    pub fn created(&self, receivers: u64) {
        bump(&self.sent, 1);
        bump(&self.created, receivers);
    }

    /// What a chare sent before goes on in so many messages of the runtime.
    pub fn goes_on(&self, messages: u64) {
        bump(&self.created, messages);
    }

    /// Bytes of what a chare sent left for other nodes.
    pub fn left(&self, bytes: u64) {
        bump(&self.sent_bytes, bytes);
    }

    /// The same for a message that the node does not count itself; the tally knows for which node.
    #[inline]
    pub fn left_small(&self, to: NodeId, colour: Colour, bytes: u64) {
        self.tally.sent(to, colour, bytes);
        bump(&self.sent_bytes, bytes);
    }

    /// Bytes that have left so far.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Acquire)
    }

    /// A chare has done so many units of what the driver counts.
    pub fn progressed(&self, units: u64) {
        bump(&self.progress, units);
    }

    /// A message has been processed; what it caused has been counted as created before.
    #[inline]
    pub fn processed(&self) {
        bump(&self.processed, 1);
    }

    /// A message is kept for an element that is not there yet. That is the end of its processing; when the
    /// element comes it begins a second life, so that a message that waits in vain does not hide that nothing
    /// else is going on.
    pub fn held(&self) {
        bump(&self.held, 1);
    }

    /// So many kept messages go back into the queue.
    pub fn released(&self, count: u64) {
        bump(&self.created, count);
        bump(&self.held, count.wrapping_neg());
    }

    /// Messages that wait in the PE's own queue now.
    #[inline]
    pub fn queued(&self, messages: usize) {
        self.queued.store(messages as u64, Ordering::Relaxed);
    }

    /// Messages created by this PE (counted once per receiving PE), processed by it and kept, for quiescence.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let processed = self.processed.load(Ordering::Acquire);
        let created = self.created.load(Ordering::Acquire);
        Counts { created, processed, held: self.held.load(Ordering::Acquire) }
    }

    /// What is counted of chares and messages, to be saved.
    pub(super) fn saved(&self) -> SavedCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SavedCounts {
            counts: self.counts(),
            others: [&self.entries, &self.chares, &self.migrations, &self.sent, &self.progress].map(read),
        }
    }

    /// The same for a PE that leaves its node: what it has done there stays counted there, but for the progress of the application,
    /// which a checkpoint has of PEs only.
    pub(super) fn saved_to_leave(&self) -> SavedCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (chares, progress) = (read(&self.chares), read(&self.progress));
        SavedCounts { counts: self.counts(), others: [0, chares, 0, 0, progress] }
    }

    /// Counts on from what was saved.
    pub(super) fn restore(&self, saved: &SavedCounts) {
        let [entries, chares, migrations, sent, progress] = saved.others;
        self.hold(saved.counts, chares);
        let others = [(&self.entries, entries), (&self.migrations, migrations), (&self.sent, sent)];
        let others = others.into_iter().chain([(&self.progress, progress)]);
        for (counter, value) in others {
            counter.fetch_max(value, Ordering::Release);
        }
    }

    /// All there was of the PE has gone to another node.
    pub(super) fn is_gone(&self) {
        self.hold(Counts::default(), 0);
        self.progress.store(0, Ordering::Release);
    }

    fn hold(&self, Counts { created, processed, held }: Counts, chares: u64) {
        let all = [(&self.created, created), (&self.processed, processed), (&self.held, held)];
        let all = all.into_iter().chain([(&self.chares, chares)]);
        all.for_each(|(counter, value)| counter.store(value, Ordering::Release));
    }

    /// All counters, with the time of the running state included up to `now_ns`, and with what waits in the inbox.
    #[must_use]
    pub fn snapshot(
        &self,
        pe: u32,
        inbox: &Inbox,
        now_ns: u64,
        entry_name: impl FnOnce(u16, u16) -> String,
    ) -> PeSnapshot {
        let (mut times, current) = self.consistent_times();
        let (state, since_ns) = unpack(current);
        times[state as usize] += now_ns.saturating_sub(since_ns);
        let counted = Counted::of(self.thread.load(Ordering::Relaxed));
        let mut on_core = self.on_core.lock().unwrap_or_else(PoisonError::into_inner);
        let (times, core_wait_ns) = on_core.divide(times, counted);
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PeSnapshot {
            pe,
            state,
            in_state_ns: now_ns.saturating_sub(since_ns),
            idle_ns: times[PeState::Idle as usize] + times[PeState::Asleep as usize],
            compute_ns: times[PeState::Compute as usize],
            init_ns: times[PeState::Init as usize],
            overhead_ns: times[PeState::Overhead as usize],
            core_wait_ns,
            quota_ns: 0,
            throttled_ns: times[PeState::Throttled as usize],
            entries: read(&self.entries),
            chares: read(&self.chares),
            migrations: read(&self.migrations),
            arrived: read(&self.arrived),
            sent_messages: read(&self.sent),
            sent_bytes: read(&self.sent_bytes),
            queue_messages: read(&self.queued) + inbox.len() as u64,
            queue_bytes: inbox.backlog_bytes(),
            progress: read(&self.progress),
            entry: self
                .running()
                .map_or_else(String::new, |(chare_type, entry)| entry_name(chare_type, entry)),
        }
    }

    /// Totals and current state from between two switches; a PE that switches faster than this reads gets
    /// the last try, which is off by less than one entry.
    fn consistent_times(&self) -> ([u64; STATES], u64) {
        let read = || std::array::from_fn(|i| self.totals_ns[i].load(Ordering::Acquire));
        for _ in 0..8 {
            let before = self.current.load(Ordering::Acquire);
            let times = read();
            if self.current.load(Ordering::Acquire) == before {
                return (times, before);
            }
        }
        (read(), self.current.load(Ordering::Acquire))
    }
}

fn unpack(current: u64) -> (PeState, u64) {
    let state = match current & 7 {
        0 => PeState::Idle,
        1 => PeState::Compute,
        2 => PeState::Init,
        3 => PeState::Overhead,
        4 => PeState::Throttled,
        _ => PeState::Asleep,
    };
    (state, current >> 3)
}

#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_to_the_age_of_the_node() {
        let account = Account::default();
        account.switch(PeState::Init, 100);
        account.switch(PeState::Overhead, 350);
        account.switch(PeState::Compute, 400);
        account.begins(2, 7);
        assert_eq!(
            account.snapshot(3, &Inbox::default(), 1000, |_, _| String::new()).entries,
            0,
            "it has not run yet"
        );
        account.ran(1);
        let snapshot = account.snapshot(3, &Inbox::default(), 1000, |t, e| format!("{t}:{e}"));
        assert_eq!((snapshot.idle_ns, snapshot.init_ns), (100, 250));
        assert_eq!((snapshot.overhead_ns, snapshot.compute_ns), (50, 600));
        assert_eq!((snapshot.state, snapshot.entry.as_str()), (PeState::Compute, "2:7"));
    }

    /// Long entry methods that follow short ones are not hidden behind these for long.
    #[test]
    fn chares_can_come_and_go() {
        let account = Account::default();
        account.chares(3);
        account.chares(-2);
        assert_eq!(account.snapshot(0, &Inbox::default(), 0, |_, _| String::new()).chares, 1);
    }
}
