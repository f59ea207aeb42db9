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
//! It is worth doing because waking a thread takes 20 µs. On a machine with a core for each thread, a message between
//! two local nodes takes 8 to 9 µs where threads stay awake for 50 µs after the last message, and about 60 where they
//! sleep at once (`metachare bench --only link/round-trip`, `spin` in the nodes file). A network thread that never
//! sleeps would send each message by itself, so it lets streams of small messages gather for a few turns.

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
/// Time of this thread on a core, time it waited for one, and how often it got one. Linux only.
const COUNTS: &str = "/proc/thread-self/schedstat";

/// How long all idle threads of a node stay awake.
#[derive(Debug)]
pub struct Spin {
    longest: Duration,
    start: Instant,
    held_until_ns: AtomicU64,
}

impl Spin {
    /// How long threads stay awake after their last message, if they do; zero means never.
    #[must_use]
    pub fn new(longest: Duration) -> Arc<Self> {
        Arc::new(Self { longest, start: Instant::now(), held_until_ns: AtomicU64::new(0) })
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
}

/// How long one thread had to wait for its core, computed without the system: the caller passes the time in.
#[derive(Debug, Default)]
struct Waits {
    /// When the thread looked last, and how long it had waited in total by then.
    last: Option<(u64, u64)>,
    due_ns: u64,
}

impl Waits {
    fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Takes the time that the thread has waited in all its life, and returns which part of the time since the last
    /// look it waited.
    fn looks(&mut self, now_ns: u64, waited_ns: Option<u64>) -> Option<f64> {
        self.due_ns = now_ns.saturating_add(LOOK_NS);
        let (then_ns, before_ns) = self.last.replace((now_ns, waited_ns?)).unwrap_or((0, waited_ns?));
        Some(waited_ns?.saturating_sub(before_ns) as f64 / now_ns.saturating_sub(then_ns).max(1) as f64)
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
            let waited = self.waits.looks(now_ns, self.counts.waited_ns());
            self.spin.looked(now_ns, waited);
        }
        now.saturating_duration_since(idle_since) < self.spin.longest && self.spin.is_on_at(now_ns)
    }
}

impl Counts {
    /// How long the calling thread has waited for a core in all its life; `None` if the system does not tell.
    fn waited_ns(&mut self) -> Option<u64> {
        if matches!(self, Self::New) {
            *self = File::open(COUNTS).map_or(Self::Absent, Self::Open);
        }
        let Self::Open(file) = self else { return None };
        let mut text = [0; 128];
        let len = file.read_at(&mut text, 0).ok()?;
        waited_ns(std::str::from_utf8(text.get(..len)?).ok()?)
    }
}

/// The second number. A system that does not count says that the thread never had a core.
fn waited_ns(counts: &str) -> Option<u64> {
    let mut numbers = counts.split_whitespace().map(|number| number.parse::<u64>().ok());
    let (_, waited_ns, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (turns > 0).then_some(waited_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    const MS: u64 = 1_000_000;

    /// A thread has to wait for its core for a part of each millisecond, in percent; when threads begin to sleep at
    /// once, and when they stay awake again, in milliseconds.
    fn turns(crowded: &[(Range<u64>, u64)]) -> Vec<u64> {
        let (spin, mut waits, mut waited_ns) = (Spin::new(Duration::from_micros(50)), Waits::default(), 0);
        let (mut was_on, mut turns) = (true, Vec::new());
        for ms in 0..10_000 {
            let now_ns = ms * MS;
            if waits.is_due(now_ns) {
                let waited = waits.looks(now_ns, Some(waited_ns));
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
        assert_eq!(waits.looks(7, Some(999)), Some(0.0), "before the first look");
        assert!(waits.looks(1_000 * MS, Some(30 * MS)).is_some_and(|part| part < STILL_CROWDED));
        assert!(waits.looks(1_050 * MS, Some(50 * MS)).is_some_and(|part| part >= CROWDED));
        assert_eq!(waits.looks(1_050 * MS, Some(0)), Some(0.0), "whatever the system says");
    }

    #[test]
    fn a_system_that_does_not_count_lets_no_thread_stay_awake() {
        let spin = Spin::new(Duration::from_secs(1));
        assert!(spin.is_on());
        spin.looked(0, Waits::default().looks(0, None));
        assert!(!spin.is_on() && !spin.is_on_at(u64::MAX - 1));
        for counts in ["", "1 2", "7 x 3", "0 0 0", "-1 2 3"] {
            assert_eq!(waited_ns(counts), None, "{counts:?}");
        }
        assert_eq!(waited_ns("120094 4500 17\n"), Some(4500));
    }

    #[test]
    fn a_thread_stays_awake_for_as_long_as_it_may_and_not_at_all_if_it_may_not() {
        let now = Instant::now();
        assert!(!Watch::new(&Spin::new(Duration::ZERO)).stays_awake(now));
        assert!(!Watch::new(&Spin::new(Duration::from_nanos(1))).stays_awake(now));
        let spin = Spin::new(Duration::from_secs(3600));
        let is_counted = Counts::New.waited_ns().is_some();
        assert_eq!(Watch::new(&spin).stays_awake(now), is_counted);
        spin.looked(spin.now_ns(), Some(0.5));
        assert!(!Watch::new(&spin).stays_awake(now));
    }
}
