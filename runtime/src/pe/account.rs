//! What a PE did with its time and its messages: counters that others read without stopping it.

use super::inbox::Inbox;
use super::loads::Sampling;
use super::on_core::{Counted, OnCore, STATES};
use super::sampling::Kept;
use super::tally::{Tally, Timed};
use crate::ids::NodeId;
use crate::monitor::wire::{PeSnapshot, PeState};
use crate::proto::quiescence::Counts;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bit of `running` that says that an entry method has run at all.
const ANY: u64 = 1 << 32;

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
    sampled: Kept,
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

    /// What is told of single entry methods and messages.
    pub(crate) fn sampled(&self) -> &Kept {
        &self.sampled
    }

    /// Books the time since the last switch and begins `state`; `now_ns` counts from the node's start. A time
    /// before the last switch counts as that.
    pub fn switch(&self, state: PeState, now_ns: u64) {
        self.switch_from(0, state, now_ns);
    }

    /// As [`switch`](Self::switch), but books so much of the time since the last switch as overhead.
    fn switch_from(&self, overhead_ns: u64, state: PeState, now_ns: u64) {
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
    pub fn left_small(&self, to: NodeId, bytes: u64) {
        bump(&self.sent_bytes, bytes);
        self.tally.sent(to, bytes);
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

    /// The same for a PE that leaves its node: what it has done there stays counted there.
    pub(super) fn saved_to_leave(&self) -> SavedCounts {
        let chares = self.chares.load(Ordering::Relaxed);
        SavedCounts { counts: self.counts(), others: [0, chares, 0, 0, 0] }
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

/// Divides the time of a PE into entry methods and the gaps between them. Reading the clock takes longer than the rest of
/// such a gap, so the PE times one gap in 64, assumes that the others are like it, and books a run of entry methods at
/// once.
#[derive(Debug, Default)]
pub struct Timekeeper {
    /// The state that the account is in.
    state: PeState,
    typical_ns: u64,
    /// How many gaps have begun since the last switch of the account; none of them was timed.
    guessed: u32,
    /// How many more gaps may begin before one is timed.
    unseen: u32,
    /// Whether the clock was read when the present gap began.
    is_seen: bool,
    /// How entry methods are timed, if they are.
    timing: Option<Timing>,
    /// Of the messages that the entry method sends which is timed, so many may be followed.
    marks_left: u32,
    /// The same when one begins, from this time on.
    marks_each: u32,
    marks_from_ns: u64,
}

/// Times entry methods.
#[derive(Debug)]
struct Timing {
    sampling: Sampling,
    /// When the one began that is timed.
    began_ns: Option<u64>,
    /// When the last one ended that was.
    ended_ns: u64,
}

/// After so long, the first entry method after a time without work is timed.
const UNTIMED_NS: u64 = 100_000;

impl Timekeeper {
    /// How many gaps go untimed between two that are timed.
    const GUESSED: u32 = 63;

    /// Messages of one entry method that are followed at most.
    const MARKS_EACH: u32 = 4;

    /// A keeper that also times entry methods, where a look at the clock takes so long, and says of which of them messages
    /// may be followed, if any are.
    pub fn timing(look_ns: u64, follows_messages: bool) -> Self {
        let timing = Timing { sampling: Sampling::new(look_ns), began_ns: None, ended_ns: 0 };
        let marks_each = if follows_messages { Self::MARKS_EACH } else { 0 };
        Self { timing: Some(timing), marks_each, ..Self::default() }
    }

    /// Whether a message that is sent now may be followed.
    #[inline]
    pub fn may_mark(&self) -> bool {
        self.marks_left > 0
    }

    /// Says that messages may be followed from now on, whatever runs.
    pub fn always_marks(&mut self) {
        self.marks_left = if self.marks_each > 0 { u32::MAX } else { 0 };
    }

    /// A message is followed.
    pub fn has_marked(&mut self) {
        if self.marks_left < u32::MAX {
            self.marks_left = self.marks_left.saturating_sub(1);
        }
    }

    /// No more messages may be followed until then.
    pub fn marks_again(&mut self, at_ns: u64) {
        if self.marks_left < u32::MAX {
            (self.marks_left, self.marks_from_ns) = (0, at_ns);
        }
    }

    /// The next entry method is timed.
    pub fn times_next(&mut self, account: &Account, now_ns: u64) {
        self.switch(account, PeState::Overhead, now_ns);
        let unseen = std::mem::take(&mut self.unseen);
        if let Some(timing) = &mut self.timing {
            timing.sampling.comes_early(unseen);
        }
        self.is_seen = true;
    }

    /// An entry method begins, which counts as `state`.
    #[inline]
    pub fn entry_begins(&mut self, account: &Account, state: PeState, now_ns: impl FnOnce() -> u64) {
        if self.state == state {
            self.guessed += 1;
            self.unseen = self.unseen.saturating_sub(1);
        } else {
            self.entry_begins_with_switch(account, state, now_ns);
        }
    }

    fn entry_begins_with_switch(&mut self, account: &Account, state: PeState, now_ns: impl FnOnce() -> u64) {
        let (_, since_ns) = unpack(account.current.load(Ordering::Relaxed));
        let expected_ns = since_ns + self.typical_ns;
        if !self.is_seen && self.unseen > 0 && self.state == PeState::Overhead {
            self.unseen -= 1;
            return self.switch(account, state, expected_ns);
        }
        let now_ns = now_ns();
        if self.state == PeState::Overhead {
            self.learn(expected_ns, now_ns);
        }
        let unseen = std::mem::replace(&mut self.unseen, Self::GUESSED);
        if let Some(timing) = &mut self.timing {
            timing.sampling.comes_early(unseen);
            // So that there is a look at its end.
            (timing.began_ns, self.unseen) = (Some(now_ns), 0);
            self.marks_left = if now_ns >= self.marks_from_ns { self.marks_each } else { 0 };
        }
        self.switch(account, state, now_ns);
    }

    /// An entry method has ended; how long it took, if it was timed.
    #[inline]
    pub fn entry_ends(&mut self, account: &Account, now_ns: impl FnOnce() -> u64) -> Option<Timed> {
        if self.unseen == 0 { self.entry_ends_with_look(account, now_ns()) } else { None }
    }

    fn entry_ends_with_look(&mut self, account: &Account, now_ns: u64) -> Option<Timed> {
        self.switch(account, PeState::Overhead, now_ns);
        self.marks_left = 0;
        let timed = self.timing.as_mut().and_then(|timing| timing.ends(now_ns));
        if let Some((_, untimed)) = timed {
            self.unseen = untimed;
        }
        self.is_seen = self.unseen == 0;
        timed.map(|(timed, _)| timed)
    }

    /// Says that the present gap is longer than others, so that its end is to be timed. It began at the last switch.
    pub fn gap_is_long(&mut self) {
        self.is_seen = true;
    }

    /// The PE does something else than entry methods from now on, or looks at the clock anyway.
    pub fn switch(&mut self, account: &Account, state: PeState, now_ns: u64) {
        let overhead_ns = u64::from(std::mem::take(&mut self.guessed)) * self.typical_ns;
        account.switch_from(overhead_ns, state, now_ns);
        let before = std::mem::replace(&mut self.state, state);
        self.is_seen = false;
        if before.is_idle()
            && self.unseen > 0
            && let Some(timing) = &mut self.timing
            && now_ns >= timing.ended_ns + UNTIMED_NS
        {
            timing.sampling.comes_early(std::mem::take(&mut self.unseen));
        }
    }

    fn learn(&mut self, expected_ns: u64, now_ns: u64) {
        let step_ns = self.typical_ns / 8 + 1;
        // In steps towards the median: one long interruption says nothing about other gaps.
        self.typical_ns = if now_ns > expected_ns {
            self.typical_ns + step_ns
        } else {
            self.typical_ns.saturating_sub(step_ns)
        };
    }
}

impl Timing {
    /// How long the timed entry method took, and how many may go untimed now.
    fn ends(&mut self, now_ns: u64) -> Option<(Timed, u32)> {
        let took_ns = now_ns.saturating_sub(self.began_ns.take()?);
        self.ended_ns = now_ns;
        Some(self.sampling.timed(took_ns))
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
    use std::cell::Cell;

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

    #[test]
    fn overhead_is_found_without_a_look_at_the_clock_for_each_entry() {
        let (account, mut timekeeper) = (Account::default(), Timekeeper::default());
        let (mut now, looks, mut overhead) = (0, Cell::new(0), 0);
        let look = |now| {
            looks.set(looks.get() + 1);
            now
        };
        timekeeper.switch(&account, PeState::Overhead, 0);
        for n in 0..100_000u64 {
            let usual = 40 + n * 7 % 13;
            // Some gaps are interrupted, which is not the runtime's doing; of others the PE knows that they are long.
            let (took, runtime) = match n % 1000 {
                16 => (50_000, usual),
                7 | 507 => (5_000, 5_000),
                _ => (usual, usual),
            };
            if took == 5_000 {
                timekeeper.switch(&account, PeState::Overhead, look(now));
                timekeeper.gap_is_long();
            }
            (now, overhead) = (now + took, overhead + runtime);
            timekeeper.entry_begins(&account, PeState::Compute, || look(now));
            now += 3 + n % 40;
            timekeeper.entry_ends(&account, || look(now));
        }
        timekeeper.switch(&account, PeState::Overhead, now);
        let snapshot = account.snapshot(0, &Inbox::default(), now, |_, _| String::new());
        assert_eq!(snapshot.overhead_ns + snapshot.compute_ns, now, "no time is lost or counted twice");
        assert!(looks.get() < 2 * 100_000 / 60, "{} looks at the clock", looks.get());
        let found = snapshot.overhead_ns as f64 / overhead as f64;
        assert!((0.95..1.05).contains(&found), "{found} of the overhead was found");
    }

    #[test]
    fn a_long_entry_method_among_short_ones_is_computing() {
        let (account, mut timekeeper) = (Account::default(), Timekeeper::default());
        let mut now = 0;
        timekeeper.switch(&account, PeState::Overhead, now);
        for n in 0..100_000 {
            now += 50;
            timekeeper.entry_begins(&account, PeState::Compute, || now);
            now += if n % 1000 == 30 { 1_000_000 } else { 20 };
            timekeeper.entry_ends(&account, || now);
        }
        let snapshot = account.snapshot(0, &Inbox::default(), now, |_, _| String::new());
        assert_eq!(snapshot.overhead_ns + snapshot.compute_ns, now);
        assert!((4_500_000..5_500_000).contains(&snapshot.overhead_ns), "{snapshot:?}");
    }

    #[test]
    fn entry_methods_are_timed_as_often_as_looks_permit() {
        let timed = |took_ns: u64, count: u64| {
            let (account, mut timekeeper, looks) =
                (Account::default(), Timekeeper::timing(20, true), Cell::new(0));
            let (mut now, mut found) = (0, 0);
            timekeeper.switch(&account, PeState::Overhead, 0);
            for _ in 0..count {
                let look = |now| {
                    looks.set(looks.get() + 1);
                    now
                };
                now += 30;
                timekeeper.entry_begins(&account, PeState::Compute, || look(now));
                now += took_ns;
                found += timekeeper.entry_ends(&account, || look(now)).unwrap_or_default().all_ns();
            }
            (found as f64 / (took_ns * count) as f64, looks.get() as f64 / count as f64)
        };
        assert_eq!(timed(100_000, 1000), (1.0, 2.0), "all of the long ones");
        let (found, looks) = timed(40, 100_000);
        assert!((0.95..1.05).contains(&found) && looks < 0.05, "{found} found with {looks} looks for each");
    }

    #[test]
    fn messages_are_followed_of_what_is_timed_and_time_what_they_start() {
        let (account, mut timekeeper) = (Account::default(), Timekeeper::timing(20, true));
        let (mut now, mut marked) = (0, 0);
        timekeeper.switch(&account, PeState::Overhead, 0);
        let mut run = |timekeeper: &mut Timekeeper, is_followed: bool| {
            if is_followed {
                timekeeper.times_next(&account, now);
            }
            now += 30;
            timekeeper.entry_begins(&account, PeState::Compute, || now);
            marked += u32::from(timekeeper.may_mark());
            now += 40;
            timekeeper.entry_ends(&account, || now)
        };
        let timed = (0..100_000).filter_map(|_| run(&mut timekeeper, false));
        let (count, all) = timed.fold((0, 0), |(count, all), timed| (count + 1, all + timed.all_ns()));
        for _ in 0..1000 {
            let timed = run(&mut timekeeper, true).expect("it is timed");
            assert_eq!(timed.took_ns, 40);
        }
        assert!((0.9..1.1).contains(&(all as f64 / 4e6)), "{all}");
        assert_eq!(marked, count + 1000);
        let snapshot = account.snapshot(0, &Inbox::default(), now, |_, _| String::new());
        assert_eq!(snapshot.overhead_ns + snapshot.compute_ns, now, "no time is lost or counted twice");
        timekeeper.entry_begins(&account, PeState::Compute, || now);
        timekeeper.marks_again(now + 100);
        assert!(!timekeeper.may_mark(), "enough for now");
        for (begins, may) in [(now + 99, false), (now + 100, true)] {
            timekeeper.times_next(&account, begins);
            timekeeper.entry_begins(&account, PeState::Compute, || begins);
            assert_eq!(timekeeper.may_mark(), may);
            timekeeper.entry_ends(&account, || begins);
        }
    }

    /// Long entry methods that follow short ones are not hidden behind these for long.
    #[test]
    fn a_long_entry_method_is_timed_after_a_few_short_ones_and_after_a_time_without_work() {
        let (account, mut timekeeper) = (Account::default(), Timekeeper::timing(20, true));
        let mut now = 0;
        let mut run = |timekeeper: &mut Timekeeper, took_ns: u64, is_idle: bool| {
            if is_idle {
                timekeeper.switch(&account, PeState::Idle, now);
                now += 1_000_000;
                timekeeper.switch(&account, PeState::Overhead, now);
            }
            now += 30;
            timekeeper.entry_begins(&account, PeState::Compute, || now);
            now += took_ns;
            timekeeper.entry_ends(&account, || now)
        };
        timekeeper.switch(&account, PeState::Overhead, 0);
        let short = run(&mut timekeeper, 40, false);
        assert_eq!(short, Some(Timed { took_ns: 40, stands_for: 1 }));
        let timed = (0..4).filter_map(|_| run(&mut timekeeper, 5_000_000, false)).count();
        assert!(timed >= 1, "no more than two go untimed after one short one");
        let timed = (0..10_000).filter_map(|_| run(&mut timekeeper, 40, false)).count();
        assert!(timed < 1000, "{timed} of many short ones were timed");
        let after = run(&mut timekeeper, 5_000_000, true).expect("it follows a time without work");
        assert!(after.took_ns >= 5_000_000 && after.stands_for <= 2 * 127 + 1, "{after:?}");
    }

    #[test]
    fn chares_can_come_and_go() {
        let account = Account::default();
        account.chares(3);
        account.chares(-2);
        assert_eq!(account.snapshot(0, &Inbox::default(), 0, |_, _| String::new()).chares, 1);
    }
}
