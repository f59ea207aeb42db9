//! Whether idle threads of a node stay awake for the next message, or sleep at once because others want the cores.
//!
//! A thread that stays awake takes time from others only where it shares its core, or a quota of CPU time, with them,
//! and then it has to wait for its turn like them. Linux counts that wait for each thread, whatever it is for: other
//! programs on the core, a quota that is used up, too many threads of the run itself. So each thread looks at its own
//! count while it is about to stay awake; nothing runs for that beside it, and a node without messages looks at
//! nothing.
//!
//! Measured with a busy loop on its core, a thread that stays awake waits for 40 to 60 % of each 10 ms, alone for less
//! than 0.3 %; with a quota of half a core for half of the time. What a system does by the way was seen to make it wait
//! for 12 of 50 ms. A look takes 0.5 to 1 µs.
//!
//! Threads that stay awake also offer their core to others every few microseconds. Where those do no more than look for
//! messages too, all of them get the core back soon, and a message between two of them still comes sooner than a
//! thread is woken: such short waits do not count. Who gets its core back late has offered it to one that works, and
//! would notice its messages late: then the node's threads sleep at once for a while, longer each time in a row.
//!
//! It is worth doing because waking a thread takes 20 to 40 µs, and where every core has a PE a message between two
//! nodes would have to wake four.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks of a thread at its own count of waits.
const LOOK_NS: u64 = 50_000_000;
/// A thread that has to wait for its core for more than this part of the time shares it with others.
const CROWDED: f64 = 1.0 / 3.0;
/// The same limit for threads that sleep at once: they use their cores for moments only, and so wait less.
const STILL_CROWDED: f64 = 1.0 / 8.0;
/// How long threads sleep at once after a thread last had to wait for its core.
const HOLD_NS: u64 = 1_000_000_000;
/// Waits that are shorter than this on average are for threads that stay awake too, or use the core for moments.
const SHORT_NS: u64 = 100_000;
/// Who gets its core back so late has given it to a thread that works.
const LATE: Duration = Duration::from_micros(200);
/// How long threads sleep at once after the first time that one of them got its core back late.
const FIRST_HOLD_NS: u64 = 10_000_000;
/// Who gets its core back later than this has given it to another thread, and not only asked.
const ASKED: Duration = Duration::from_micros(2);
/// Time of this thread on a core, time it waited for one, and how often it got one. Linux only.
const COUNTS: &str = "/proc/thread-self/schedstat";

/// How long all idle threads of a node stay awake.
#[derive(Debug)]
pub struct Spin {
    longest: Duration,
    start: Instant,
    held_until_ns: AtomicU64,
    /// How long threads slept at once the last time that one of them had got its core back late.
    hold_ns: AtomicU64,
}

impl Spin {
    /// How long threads stay awake after their last message, if they do; zero means never.
    #[must_use]
    pub fn new(longest: Duration) -> Arc<Self> {
        Arc::new(Self {
            longest,
            start: Instant::now(),
            held_until_ns: AtomicU64::new(0),
            hold_ns: AtomicU64::new(0),
        })
    }

    /// Whether idle threads stay awake at present.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_ever() && self.is_on_at(self.now_ns())
    }

    /// Whether idle threads stay awake when nobody else wants their cores.
    #[must_use]
    pub fn is_ever(&self) -> bool {
        !self.longest.is_zero()
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn is_on_at(&self, now_ns: u64) -> bool {
        now_ns >= self.held_until_ns.load(Ordering::Relaxed)
    }

    /// A thread has found that it had to wait for its core for that part of the time, 0 to 1. Where the system does not
    /// tell, nobody stays awake any more: who cannot see whether he takes time from others does not risk it.
    fn looked(&self, now_ns: u64, waited: Option<f64>) {
        let is_on = self.is_on_at(now_ns);
        let until_ns = match waited {
            Some(part) if part < if is_on { CROWDED } else { STILL_CROWDED } => return,
            Some(_) => now_ns.saturating_add(HOLD_NS),
            None => u64::MAX,
        };
        self.held_until_ns.fetch_max(until_ns, Ordering::Relaxed);
        if is_on {
            tracing::debug!("idle threads sleep at once: {waited:?} of the time they waited for their cores");
        }
    }

    /// A thread that offered its core to others got it back late.
    fn was_late(&self, now_ns: u64) {
        let (last_ns, until_ns) =
            (self.hold_ns.load(Ordering::Relaxed), self.held_until_ns.load(Ordering::Relaxed));
        if now_ns < until_ns {
            return;
        }
        let is_again = now_ns - until_ns <= last_ns;
        let hold_ns = if is_again { (2 * last_ns).min(HOLD_NS) } else { FIRST_HOLD_NS };
        self.hold_ns.store(hold_ns, Ordering::Relaxed);
        self.held_until_ns.fetch_max(now_ns.saturating_add(hold_ns), Ordering::Relaxed);
        tracing::trace!(
            "idle threads sleep at once for {} ms: others work on their cores",
            hold_ns / 1_000_000
        );
    }
}

/// How long one thread had to wait for its core, computed without the system: the caller passes the time in.
#[derive(Debug, Default)]
struct Waits {
    /// When the thread looked last, and what the system had counted by then.
    last: Option<(u64, Count)>,
    due_ns: u64,
}

/// What the system counts for a thread from its start on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    waited_ns: u64,
    /// How often it got a core.
    turns: u64,
}

impl Waits {
    fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Takes what the system has counted, and returns which part of the time since the last look the thread waited for
    /// others that work.
    fn looks(&mut self, now_ns: u64, count: Option<Count>) -> Option<f64> {
        self.due_ns = now_ns.saturating_add(LOOK_NS);
        let count = count?;
        let (then_ns, before) = self.last.replace((now_ns, count)).unwrap_or((0, count));
        let waited_ns = count.waited_ns.saturating_sub(before.waited_ns);
        let turns = count.turns.saturating_sub(before.turns).max(1);
        let is_short = waited_ns / turns < SHORT_NS;
        Some(if is_short { 0.0 } else { waited_ns as f64 / now_ns.saturating_sub(then_ns).max(1) as f64 })
    }
}

/// The view that one thread has of the cores.
#[derive(Debug)]
pub struct Watch {
    spin: Arc<Spin>,
    waits: Waits,
    counts: Counts,
}

/// Where a thread's own counts are.
#[derive(Debug)]
enum Counts {
    /// The thread has not opened its file of counts yet; only the thread itself can.
    New,
    Open(File),
    Absent,
}

impl Watch {
    /// For one thread of a node, from its first question on.
    #[must_use]
    pub fn new(spin: &Arc<Spin>) -> Self {
        Self { spin: Arc::clone(spin), waits: Waits::default(), counts: Counts::New }
    }

    /// Whether the calling thread, which has had nothing to do since `idle_since`, is to stay awake.
    pub fn stays_awake(&mut self, idle_since: Instant) -> bool {
        if !self.spin.is_ever() {
            return false;
        }
        let now = Instant::now();
        let now_ns = u64::try_from((now - self.spin.start).as_nanos()).unwrap_or(u64::MAX);
        if self.waits.is_due(now_ns) {
            let waited = self.waits.looks(now_ns, self.counts.read());
            self.spin.looked(now_ns, waited);
        }
        now.saturating_duration_since(idle_since) < self.spin.longest && self.spin.is_on_at(now_ns)
    }

    /// Lets other threads have the calling thread's core if they want it; whether one did.
    pub fn offers_core(&self) -> bool {
        let before = Instant::now();
        std::thread::yield_now();
        let after = Instant::now();
        if after - before >= LATE {
            self.spin.was_late(u64::try_from((after - self.spin.start).as_nanos()).unwrap_or(u64::MAX));
        }
        after - before >= ASKED
    }
}

impl Counts {
    /// What is counted for the calling thread; `None` if the system does not tell.
    fn read(&mut self) -> Option<Count> {
        if matches!(self, Self::New) {
            *self = File::open(COUNTS).map_or(Self::Absent, Self::Open);
        }
        let Self::Open(file) = self else { return None };
        let mut text = [0; 128];
        let len = file.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(text.get(..len)?).ok()?)
    }
}

/// The second and the third number. A system that does not count says that the thread never had a core.
fn parse(counts: &str) -> Option<Count> {
    let mut numbers = counts.split_whitespace().map(|number| number.parse::<u64>().ok());
    let (_, waited_ns, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (turns > 0).then_some(Count { waited_ns, turns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    const MS: u64 = 1_000_000;

    /// Waited for so long in all, for 3 ms each time.
    fn waited(waited_ns: u64) -> Option<Count> {
        Some(Count { waited_ns, turns: waited_ns / (3 * MS) })
    }

    /// A thread has to wait for its core for a part of each millisecond, in percent; when threads begin to sleep at
    /// once, and when they stay awake again, in milliseconds.
    fn turns(crowded: &[(Range<u64>, u64)]) -> Vec<u64> {
        let (spin, mut waits, mut waited_ns) = (Spin::new(Duration::from_micros(50)), Waits::default(), 0);
        let (mut was_on, mut turns) = (true, Vec::new());
        for ms in 0..10_000 {
            let now_ns = ms * MS;
            if waits.is_due(now_ns) {
                let waited = waits.looks(now_ns, waited(waited_ns));
                spin.looked(now_ns, waited);
            }
            let is_on = spin.is_on_at(now_ns);
            if is_on != std::mem::replace(&mut was_on, is_on) {
                turns.push(ms);
            }
            let part = crowded.iter().find(|(when, _)| when.contains(&ms)).map_or(0, |(_, part)| *part);
            waited_ns += part * MS / 100;
        }
        turns
    }

    #[test]
    fn threads_sleep_at_once_while_others_want_their_cores_and_a_second_longer() {
        assert_eq!(turns(&[]), [0; 0]);
        for begin in 3_000..3_050 {
            let turns = turns(&[(begin..begin + 2_000, 50)]);
            let [off, on] = turns[..] else { panic!("{turns:?}") };
            assert!(off - begin <= 100 && (6_000..6_100).contains(&on), "{turns:?}");
        }
    }

    #[test]
    fn what_the_system_does_by_the_way_is_nothing() {
        assert_eq!(turns(&[(0..10_000, 10), (5_000..5_012, 100)]), [0; 0]);
    }

    #[test]
    fn others_who_stay_are_seen_also_while_threads_sleep_at_once() {
        assert_eq!(turns(&[(1_000..1_200, 50), (1_200..6_000, 20)]).len(), 2);
        assert_eq!(turns(&[(1_000..2_000, 50), (2_500..3_500, 50)]).len(), 2, "half a second is no pause");
    }

    #[test]
    fn waits_for_threads_that_only_look_for_messages_do_not_count() {
        let mut waits = Waits::default();
        for look in 0..10 {
            let count = Count { waited_ns: look * 25 * MS, turns: look * 10_000 };
            assert_eq!(waits.looks(look * 50 * MS, Some(count)), Some(0.0), "25 of 50 ms, 2.5 µs each time");
        }
        let count = Count { waited_ns: 275 * MS, turns: 90_012 };
        assert_eq!(waits.looks(500 * MS, Some(count)), Some(1.0), "a dozen times 4 ms");
    }

    #[test]
    fn who_gets_its_core_back_late_sleeps_the_longer_the_more_often_in_a_row() {
        let spin = Spin::new(Duration::from_micros(50));
        let (mut now_ns, mut holds) = (MS, Vec::new());
        let mut late = |now_ns: u64| {
            spin.was_late(now_ns);
            let held_ns = (0..).step_by(MS as usize).find(|wait_ns| spin.is_on_at(now_ns + wait_ns)).unwrap();
            holds.push(held_ns / MS);
            now_ns + held_ns
        };
        for _ in 0..9 {
            now_ns = late(now_ns) + 5 * MS;
        }
        late(now_ns + 1_000 * MS);
        assert_eq!(holds, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 10]);
    }

    #[test]
    fn a_quota_that_is_used_up_is_seen() {
        for period in [10, 100] {
            let throttled: Vec<_> =
                (0..100).map(|n| (n * period + period / 2..n * period + period, 100)).collect();
            assert_eq!(turns(&throttled).first().map(|ms| ms.div_ceil(100)), Some(1), "{period}");
        }
    }

    #[test]
    fn what_a_thread_waited_in_a_long_sleep_is_little() {
        let mut waits = Waits::default();
        assert_eq!(waits.looks(7, waited(999)), Some(0.0), "before the first look");
        assert!(waits.looks(1_000 * MS, waited(30 * MS)).is_some_and(|part| part < STILL_CROWDED));
        assert!(waits.looks(1_050 * MS, waited(50 * MS)).is_some_and(|part| part >= CROWDED));
        assert_eq!(waits.looks(1_050 * MS, waited(0)), Some(0.0), "whatever the system says");
    }

    #[test]
    fn a_system_that_does_not_count_lets_no_thread_stay_awake() {
        let spin = Spin::new(Duration::from_secs(1));
        assert!(spin.is_on());
        spin.looked(0, Waits::default().looks(0, None));
        assert!(!spin.is_on() && !spin.is_on_at(u64::MAX - 1));
        for counts in ["", "1 2", "7 x 3", "0 0 0", "-1 2 3"] {
            assert_eq!(parse(counts), None, "{counts:?}");
        }
        assert_eq!(parse("120094 4500 17\n"), Some(Count { waited_ns: 4500, turns: 17 }));
    }

    #[test]
    fn a_thread_stays_awake_for_as_long_as_it_may_and_not_at_all_if_it_may_not() {
        let now = Instant::now();
        assert!(!Watch::new(&Spin::new(Duration::ZERO)).stays_awake(now));
        assert!(!Watch::new(&Spin::new(Duration::from_nanos(1))).stays_awake(now));
        let spin = Spin::new(Duration::from_secs(3600));
        let is_counted = Counts::New.read().is_some();
        assert_eq!(Watch::new(&spin).stays_awake(now), is_counted);
        spin.looked(spin.now_ns(), Some(0.5));
        assert!(!Watch::new(&spin).stays_awake(now));
    }
}
