//! The processor time of a PE: what part of its time the system let it run, and what of an entry method was a wait.

use nix::time::{ClockId, clock_gettime};
use std::ops::AddAssign;
use std::time::Duration;

/// A stretch of work that is shorter says nothing of what the system takes away.
const STRETCH_MIN_NS: u64 = 20_000;

/// The system deals out cores in slices of some milliseconds: what a PE got of one in less than this says nothing of it. A PE
/// that joined, came late to its first message and had nothing to do after it was taken for one that gets nothing, for ever.
const GOT_MIN_NS: u64 = 50_000_000;

/// Whether an entry method waited for its core is looked at if it took so long: a look at the thread's clock is a call of the
/// system, of 0.2 to 0.3 µs, and threads that take turns do so for milliseconds.
const LONG_NS: u64 = 200_000;

/// How much of the time in which the PE had something to do the system let it run.
#[derive(Debug, Default)]
pub(super) struct Processor {
    /// When the stretch began that is measured, by the wall's clock and the thread's.
    since: Option<(u64, u64)>,
    /// When the last one ended.
    ended_ns: u64,
    got: Got,
    /// What the thread had used when its clock was looked at last.
    looked_ns: Option<u64>,
}

/// Of so much time by the wall's clock the system let the PE run for so much.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Got {
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: u64,
    /// What of the wall's time the PE slept because of its share: that makes it slow, and its chares no lighter.
    pub(super) held_ns: u64,
    /// What entry methods took by both clocks of which both are known.
    pub(super) known_ns: (u64, u64),
}

impl AddAssign for Got {
    fn add_assign(&mut self, other: Self) {
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
        self.held_ns += other.held_ns;
        self.known_ns.0 += other.known_ns.0;
        self.known_ns.1 += other.known_ns.1;
    }
}

impl Got {
    pub(super) fn part(self) -> Option<f64> {
        // The clocks are not read at the same moment, and a PE that got nothing at all has done nothing.
        (self.wall_ns > 0).then(|| (self.cpu_ns as f64 / self.wall_ns as f64).clamp(PART_MIN, 1.0))
    }

    /// The same of the time of which it is not known anyway.
    pub(super) fn part_of_rest(self) -> Option<f64> {
        let (wall_ns, cpu_ns) = self.known_ns;
        let wall_ns = self.wall_ns.saturating_sub(self.held_ns + wall_ns);
        Self { wall_ns, cpu_ns: self.cpu_ns.saturating_sub(cpu_ns), ..self }.part()
    }

    /// The part that is told of, once it says something; what does not is kept for later.
    pub(super) fn take_part(&mut self) -> Option<f64> {
        if self.wall_ns < GOT_MIN_NS { None } else { std::mem::take(self).part() }
    }
}

impl Processor {
    pub(super) fn begins(&mut self, now_ns: u64, clock: impl FnOnce() -> Option<u64>) {
        // Where work comes in bits, the thread's clock would take longer than they.
        if now_ns.saturating_sub(self.ended_ns) >= STRETCH_MIN_NS {
            self.looked_ns = clock();
            self.since = self.looked_ns.map(|cpu_ns| (now_ns, cpu_ns));
        }
    }

    pub(super) fn held_back(&mut self, ns: u64) {
        if self.since.is_some() {
            self.got.held_ns += ns;
        }
    }

    pub(super) fn ends(&mut self, now_ns: u64, clock: impl FnOnce() -> Option<u64>) {
        if let Some((wall_ns, cpu_ns)) = self.since.take()
            && now_ns.saturating_sub(wall_ns) >= STRETCH_MIN_NS
            && let Some(cpu_now_ns) = clock()
        {
            let cpu_ns = cpu_now_ns.saturating_sub(cpu_ns);
            self.got += Got { wall_ns: now_ns - wall_ns, cpu_ns, ..Got::default() };
        }
        self.ended_ns = now_ns;
    }

    /// Takes in what there is of a stretch that goes on, and begins to measure where none was measured.
    pub(super) fn reads(&mut self, now_ns: u64, clock: impl Fn() -> Option<u64>) {
        self.ends(now_ns, &clock);
        self.looked_ns = clock();
        self.since = self.looked_ns.map(|cpu_ns| (now_ns, cpu_ns));
    }

    /// For how long an entry method that took so long and has just ended was on its core, if that is worth a look: at most so long,
    /// for what the thread has used since its clock was looked at before may be of others, too.
    pub(super) fn on_core_ns(&mut self, took_ns: u64, clock: impl FnOnce() -> Option<u64>) -> Option<u64> {
        if took_ns < LONG_NS {
            return None;
        }
        let now_ns = clock();
        let before_ns = std::mem::replace(&mut self.looked_ns, now_ns);
        let on_core_ns = now_ns?.saturating_sub(before_ns?).min(took_ns);
        if self.since.is_some() {
            self.got.known_ns.0 += took_ns;
            self.got.known_ns.1 += on_core_ns;
        }
        Some(on_core_ns)
    }

    pub(super) fn take(&mut self) -> Got {
        std::mem::take(&mut self.got)
    }
}

/// The least part of its time that a PE counts as getting.
const PART_MIN: f64 = 1e-3;

/// Processor time that the calling thread has used.
pub(super) fn processor_ns() -> Option<u64> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    u64::try_from(Duration::from(used).as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_takes_away_is_seen_and_is_no_load() {
        let mut processor = Processor::default();
        // Half of the time of two long stretches; a short one is not looked at.
        processor.begins(100_000, || Some(0));
        processor.ends(1_100_000, || Some(500_000));
        processor.begins(1_100_010, || panic!("work comes in bits"));
        processor.ends(1_100_500, || panic!("nothing was begun"));
        processor.begins(2_000_000, || Some(500_000));
        processor.reads(3_000_000, || Some(1_000_000));
        assert_eq!(processor.take().part(), Some(0.5));
        assert_eq!(processor.take().part(), None);
        processor.ends(4_000_000, || Some(2_000_000));
        assert_eq!(processor.take().part(), Some(1.0), "the stretch went on");
        // Of the next millisecond the PE sleeps for three quarters because of its share, and computes in the rest.
        processor.begins(5_000_000, || Some(2_000_000));
        processor.held_back(750_000);
        processor.ends(6_000_000, || Some(2_250_000));
        let got = processor.take();
        assert_eq!(
            (got.part(), got.part_of_rest()),
            (Some(0.25), Some(1.0)),
            "its chares are not a quarter as heavy"
        );
        let mut got = Got { wall_ns: GOT_MIN_NS / 2, cpu_ns: 1000, ..Got::default() };
        assert_eq!(got.take_part(), None, "a slice that came late");
        got += Got { wall_ns: GOT_MIN_NS, cpu_ns: GOT_MIN_NS, ..Got::default() };
        assert!(got.take_part().is_some_and(|part| part > 0.6), "it was kept");
        assert_eq!(got.take_part(), None);
    }

    #[test]
    fn what_a_long_entry_method_waits_for_its_core_is_not_its_work() {
        let mut processor = Processor::default();
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(processor.on_core_ns(LONG_NS - 1, || panic!("it is short")), None);
        processor.begins(ms(10), || Some(ms(1)));
        assert_eq!(processor.on_core_ns(ms(5), || Some(ms(2))), Some(ms(1)));
        assert_eq!(processor.on_core_ns(ms(5), || Some(ms(7))), Some(ms(5)), "it had its core all the time");
        // Since the last look others used more than that.
        assert_eq!(processor.on_core_ns(ms(5), || Some(ms(20))), Some(ms(5)));
        processor.reads(ms(40), || Some(ms(21)));
        assert_eq!(processor.on_core_ns(ms(5), || Some(ms(23))), Some(ms(2)));
        assert_eq!(processor.on_core_ns(ms(5), || None), None);
        assert_eq!(processor.on_core_ns(ms(5), || Some(ms(24))), None, "there is nothing to compare with");
        // Of 15 ms the PE slept for 5, an entry method took 6 and had its core for 1, and the rest had it half of the time.
        processor.reads(ms(60), || Some(ms(30)));
        processor.take();
        processor.held_back(ms(5));
        processor.on_core_ns(ms(6), || Some(ms(31)));
        processor.reads(ms(75), || Some(ms(33)));
        let got = processor.take();
        assert_eq!((got.part(), got.part_of_rest()), (Some(0.2), Some(0.5)));
    }
}
