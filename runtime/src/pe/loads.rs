//! What the chares of a PE cost: processor time by chare, and the part of its time that the PE got from the system.
//!
//! Looking at the clock takes as long as delivering a message, so not every entry method is timed: a timed one stands for
//! those before it that were not, and the shorter they are, the fewer are timed. Where entry methods take longer than a few
//! microseconds, all are.

use super::tally::Timed;
use super::traffic::{Counting, Receivers};
use crate::ids::{ElementId, PeId};
use crate::loads::{ChareLoad, PeLoads};
use loadbalance::balance::Mobility;
use nix::time::{ClockId, clock_gettime};
use rustc_hash::FxHashMap;
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Entry methods are timed so that what [`Sampling`] is told to reckon with takes at most this part of their time.
const TIMING_PART: u64 = 128;
/// Where somebody wants to know what single chares do, at most so many entry methods go untimed on average between two that are
/// timed.
const UNTIMED_MAX: u32 = 127;
/// A PE says what its chares did no more often than this.
const EVERY_NS: u64 = 50_000_000;
/// A stretch of work that is shorter says nothing of what the system takes away.
const STRETCH_MIN_NS: u64 = 20_000;

/// What a PE keeps of its chares since it said it last.
#[derive(Debug)]
pub(crate) struct Loads {
    /// Whether anybody wants to know.
    pub(super) is_on: bool,
    /// Whether any chare has been here that may not go anywhere. Where none has, nobody looks for such.
    pub(super) has_limited: bool,
    of: FxHashMap<ElementId, Load>,
    many: Many,
    processor: Processor,
    /// The part of a core that it got when it computed for nothing.
    pub(super) probed: Option<f64>,
    /// When the PE said it last, and how long it had run entry methods and the runtime until then.
    said_ns: u64,
    busy_ns: (u64, u64),
}

#[derive(Clone, Debug, Default)]
struct Load {
    ns: u64,
    bytes: u64,
    has_left: bool,
    mobility: Mobility,
}

impl Loads {
    pub(super) fn new(is_on: bool, look_ns: u64) -> Self {
        Self {
            is_on,
            has_limited: false,
            of: FxHashMap::default(),
            many: Many::new(look_ns),
            processor: Processor::default(),
            probed: None,
            said_ns: 0,
            busy_ns: (0, 0),
        }
    }

    /// A chare worked for so long.
    pub(super) fn worked(&mut self, element: ElementId, ns: u64) {
        if self.is_on {
            self.of.entry(element).or_default().ns += ns;
        }
    }

    /// A chare has come from another PE, with so many bytes.
    pub(super) fn arrived(&mut self, element: ElementId, bytes: u64) {
        if self.is_on {
            let load = self.of.entry(element).or_default();
            (load.bytes, load.has_left) = (bytes, false);
        }
    }

    /// A chare has gone, with so many bytes.
    pub(super) fn departed(&mut self, element: ElementId, bytes: u64) {
        if self.is_on {
            let load = self.of.entry(element).or_default();
            (load.bytes, load.has_left) = (bytes, true);
        }
    }

    /// One of several chares that a message is for begins to run.
    #[inline]
    pub(super) fn next_of_many(&mut self, element: ElementId, now_ns: impl FnOnce() -> u64) {
        if self.many.untimed > 0 {
            self.many.untimed -= 1;
        } else {
            self.look(element, now_ns);
        }
    }

    #[cold]
    fn look(&mut self, element: ElementId, now_ns: impl FnOnce() -> u64) {
        if !self.is_on {
            self.many.untimed = u32::MAX;
            return;
        }
        if let Some((last, ns)) = self.many.look(element, now_ns()) {
            self.worked(last, ns);
        }
    }

    /// All of them have run.
    #[inline]
    pub(super) fn many_end(&mut self, now_ns: impl FnOnce() -> u64) {
        if self.many.timed.is_some()
            && let Some((last, ns)) = self.many.end(now_ns())
        {
            self.worked(last, ns);
        }
    }

    /// The PE has something to do again.
    pub(super) fn stretch_begins(&mut self, now_ns: u64) {
        if self.is_on {
            self.processor.begins(now_ns, processor_ns);
        }
    }

    /// The PE has nothing to do.
    pub(super) fn stretch_ends(&mut self, now_ns: u64) {
        if self.is_on {
            self.processor.ends(now_ns, processor_ns);
        }
    }

    /// The PE has computed for nothing for so long, by the wall's clock and the thread's.
    pub(super) fn has_shown(&mut self, wall_ns: u64, cpu_ns: u64) {
        self.probed = Got { wall_ns, cpu_ns }.part();
    }

    /// Whether it is time to say what chares did.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.is_on && now_ns.saturating_sub(self.said_ns) >= EVERY_NS
    }

    /// Says what chares did, of a PE that has run entry methods and the runtime for so long since the run began. `mobility`
    /// tells of a chare where it may go, `None` if it is a group's, `bytes` how many a chare has of which that is not known.
    pub(super) fn say(
        &mut self,
        (now_ns, busy_ns): (u64, (u64, u64)),
        said: &Said,
        traffic: &mut Counting,
        mobility: impl Fn(ElementId) -> Option<Mobility>,
        mut bytes: impl FnMut(ElementId) -> u64,
    ) {
        self.processor.reads(now_ns, processor_ns);
        let got = self.processor.take();
        let cpu_part = got.part();
        let before_ns = std::mem::replace(&mut self.busy_ns, busy_ns);
        let cpu_ns = |now: u64, before: u64| now.saturating_sub(before) as f64 * cpu_part.unwrap_or(1.0);
        let (entries, runtime) = (cpu_ns(busy_ns.0, before_ns.0), cpu_ns(busy_ns.1, before_ns.1));
        let counted: u64 = self.of.values().map(|load| load.ns).sum();
        // Estimates add up to what the PE really did.
        let scale = if counted > 0 { entries / counted as f64 } else { 0.0 };
        // What the runtime does for messages stays when their chares go: others will send them from here, or to here.
        let mut fixed_ns = (if counted > 0 { runtime } else { runtime + entries }) as u64;
        let mut movable = Vec::with_capacity(self.of.len());
        for (element, load) in self.of.drain() {
            let cpu_ns = (load.ns as f64 * scale) as u64;
            let Some(mobility) = mobility(element) else {
                fixed_ns += cpu_ns;
                continue;
            };
            let found = if load.bytes == 0 { bytes(element) } else { 0 };
            movable.push((element, Load { ns: cpu_ns, mobility, ..load }, found));
        }
        // Finding out how large a chare is may take long, and nobody should wait for that.
        let mut told = said.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.fixed_ns += fixed_ns;
        for (element, load, found) in movable {
            let one = told.of.entry(element).or_default();
            one.ns += load.ns;
            one.bytes = if load.bytes > 0 { load.bytes } else { found.max(one.bytes) };
            (one.has_left, one.mobility) = (load.has_left, load.mobility);
        }
        traffic.say(&mut told.receivers);
        told.got += got;
        told.probed = self.probed.take().or(told.probed);
        told.at_ns = now_ns;
        self.said_ns = now_ns;
    }
}

/// What a PE has said and nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Said(Mutex<Words>);

#[derive(Debug, Default)]
struct Words {
    of: FxHashMap<ElementId, Load>,
    receivers: Receivers,
    fixed_ns: u64,
    got: Got,
    probed: Option<f64>,
    /// When it was said, and when what was said before.
    at_ns: u64,
    taken_ns: u64,
}

impl Said {
    /// Whether there is something new.
    pub(crate) fn is_new(&self) -> bool {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.at_ns > words.taken_ns
    }

    /// Takes it. A PE that has nothing to do has said all until `idle_ns`.
    pub(crate) fn take(&self, pe: PeId, idle_ns: Option<u64>) -> PeLoads {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until_ns = idle_ns.unwrap_or(words.at_ns).max(words.at_ns);
        let wall_ns = until_ns.saturating_sub(words.taken_ns);
        words.taken_ns = until_ns;
        words.at_ns = until_ns;
        let chare = |(element, Load { ns, bytes, has_left, mobility }): (ElementId, Load)| ChareLoad {
            element,
            cpu_ns: ns,
            bytes,
            is_here: !has_left,
            mobility,
        };
        let mut chares: Vec<ChareLoad> = words.of.drain().map(chare).collect();
        chares.sort_unstable_by_key(|chare| chare.element);
        let fixed_ns = std::mem::take(&mut words.fixed_ns);
        let (traffic, other_traffic) = words.receivers.take();
        let cpu_part = std::mem::take(&mut words.got).part();
        let probed = words.probed.take();
        PeLoads { pe, wall_ns, cpu_part, probed, fixed_ns, chares, traffic, other_traffic }
    }
}

/// Times chares that one message reaches one after the other.
#[derive(Debug)]
struct Many {
    /// How many more go untimed.
    untimed: u32,
    /// The one that is timed, and since when.
    timed: Option<(ElementId, u64)>,
    sampling: Sampling,
}

impl Many {
    fn new(look_ns: u64) -> Self {
        Self { untimed: 0, timed: None, sampling: Sampling::of_chares(look_ns) }
    }

    /// The next one begins at this time; the one that was timed before, and how long those took for which it stands.
    fn look(&mut self, next: ElementId, now_ns: u64) -> Option<(ElementId, u64)> {
        let ended = self.end(now_ns);
        if self.untimed == 0 {
            self.timed = Some((next, now_ns));
        } else {
            self.untimed -= 1;
        }
        ended
    }

    fn end(&mut self, now_ns: u64) -> Option<(ElementId, u64)> {
        let (element, since_ns) = self.timed.take()?;
        let (timed, untimed) = self.sampling.timed(now_ns.saturating_sub(since_ns));
        self.untimed = untimed;
        Some((element, timed.all_ns()))
    }
}

/// Says how many entry methods go untimed until the next one is timed, and what a timed one stands for. Their number changes
/// all the time: with the same number again and again, the same few chares would be timed of many that run in turn.
#[derive(Debug)]
pub(super) struct Sampling {
    /// What it takes to time one.
    cost_ns: u64,
    /// At most so many go untimed on average.
    untimed_max: u32,
    mean_ns: u64,
    random: u32,
    /// How many the next timed one stands for, itself included.
    stands_for: u32,
    /// How many went untimed on average, of late.
    gap: u32,
}

impl Sampling {
    /// For what single chares do, where a look at the clock takes so long: only the looks are reckoned with.
    pub(super) fn of_chares(look_ns: u64) -> Self {
        Self::new(look_ns, UNTIMED_MAX)
    }

    /// Where timing one takes so long, and no more than so many may go untimed on average.
    pub(super) fn new(cost_ns: u64, untimed_max: u32) -> Self {
        Self { cost_ns, untimed_max, mean_ns: 0, random: 1, stands_for: 1, gap: 0 }
    }

    /// One took so long: for how many it stands, and how many go untimed now.
    pub(super) fn timed(&mut self, took_ns: u64) -> (Timed, u32) {
        let mean_ns = self.mean_ns;
        self.mean_ns = if mean_ns == 0 { took_ns } else { mean_ns - mean_ns / 8 + took_ns / 8 };
        let untimed = self.next();
        let stood_for = std::mem::replace(&mut self.stands_for, untimed + 1);
        (Timed { took_ns, stands_for: stood_for }, untimed)
    }

    /// So many that were to go untimed did not come: the next one is timed.
    pub(super) fn comes_early(&mut self, untimed: u32) {
        self.stands_for = self.stands_for.saturating_sub(untimed).max(1);
    }

    /// How many of the mean length have to go untimed.
    fn next(&mut self) -> u32 {
        let mean = u32::try_from(2 * TIMING_PART * self.cost_ns / self.mean_ns.max(1)).unwrap_or(u32::MAX);
        // One short call shall not hide many long ones behind it.
        self.gap = mean.min(2 * self.gap + 1).min(self.untimed_max);
        // The generator of W. Press et al., "Numerical Recipes": its upper half is random enough.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 16) % (2 * self.gap + 1)
    }
}

/// How much of the time in which the PE had something to do the system let it run.
#[derive(Debug, Default)]
struct Processor {
    /// When the stretch began that is measured, by the wall's clock and the thread's.
    since: Option<(u64, u64)>,
    /// When the last one ended.
    ended_ns: u64,
    got: Got,
}

/// Of so much time by the wall's clock the system let the PE run for so much.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    wall_ns: u64,
    cpu_ns: u64,
}

impl AddAssign for Got {
    fn add_assign(&mut self, other: Self) {
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
    }
}

impl Got {
    fn part(self) -> Option<f64> {
        // The clocks are not read at the same moment, and a PE that got nothing at all has done nothing.
        (self.wall_ns > 0).then(|| (self.cpu_ns as f64 / self.wall_ns as f64).clamp(PART_MIN, 1.0))
    }
}

impl Processor {
    fn begins(&mut self, now_ns: u64, clock: impl FnOnce() -> Option<u64>) {
        // Where work comes in bits, the thread's clock would take longer than they.
        if now_ns.saturating_sub(self.ended_ns) >= STRETCH_MIN_NS {
            self.since = clock().map(|cpu_ns| (now_ns, cpu_ns));
        }
    }

    fn ends(&mut self, now_ns: u64, clock: impl FnOnce() -> Option<u64>) {
        if let Some((wall_ns, cpu_ns)) = self.since.take()
            && now_ns.saturating_sub(wall_ns) >= STRETCH_MIN_NS
            && let Some(cpu_now_ns) = clock()
        {
            self.got += Got { wall_ns: now_ns - wall_ns, cpu_ns: cpu_now_ns.saturating_sub(cpu_ns) };
        }
        self.ended_ns = now_ns;
    }

    /// Takes in what there is of a stretch that goes on, and begins to measure where none was measured.
    fn reads(&mut self, now_ns: u64, clock: impl Fn() -> Option<u64>) {
        self.ends(now_ns, &clock);
        self.since = clock().map(|cpu_ns| (now_ns, cpu_ns));
    }

    fn take(&mut self) -> Got {
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

/// What a look at the clock takes, the least of some.
pub(super) fn look_ns(now_ns: impl Fn() -> u64) -> u64 {
    const TIMES: u64 = 16;
    let once = || {
        let begin = now_ns();
        (1..TIMES).for_each(|_| {
            std::hint::black_box(now_ns());
        });
        now_ns().saturating_sub(begin) / TIMES
    };
    (0..8).map(|_| once()).min().unwrap_or_default().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex};

    fn element(at: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), 1), index: ElementIndex([at, 0, 0]) }
    }

    /// The loads that a PE says of chares that ran for so long each, one after the other in one message, again and again.
    fn shares_found(took_ns: &[u64], rounds: u64) -> (Vec<f64>, u64) {
        let (mut loads, looks) = (Loads::new(true, 20), std::cell::Cell::new(0));
        let mut now = 1;
        for _ in 0..rounds {
            for (at, took) in (0..).zip(took_ns) {
                loads.next_of_many(element(at), || {
                    looks.set(looks.get() + 1);
                    now
                });
                now += took;
            }
            loads.many_end(|| now);
        }
        let said = Said::default();
        loads.say((now, (now, 0)), &said, &mut Counting::new(false), |_| Some(Mobility::Anywhere), |_| 0);
        let told = said.take(PeId(0), None);
        let sum: u64 = told.chares.iter().map(|chare| chare.cpu_ns).sum();
        let share = |at| {
            let found = told.chares.iter().find(|chare| chare.element == element(at));
            found.map_or(0.0, |chare| chare.cpu_ns as f64 / sum as f64)
        };
        ((0..took_ns.len() as u32).map(share).collect(), looks.get())
    }

    #[test]
    fn long_entry_methods_are_timed_exactly() {
        let (found, _) = shares_found(&[10_000, 30_000, 20_000, 40_000], 10);
        assert_eq!(
            found.iter().map(|share| (share * 100.0).round()).collect::<Vec<_>>(),
            [10.0, 30.0, 20.0, 40.0]
        );
    }

    #[test]
    fn of_short_ones_few_are_timed_and_their_shares_are_found_all_the_same() {
        let took: Vec<u64> = (0..10).map(|at| if at == 3 { 400 } else { 100 }).collect();
        let (found, looks) = shares_found(&took, 10_000);
        assert!(looks < 100_000 / 20, "{looks} looks for 100,000 entry methods");
        let expected = |at: usize| took[at] as f64 / 1300.0;
        found.iter().enumerate().for_each(|(at, share)| {
            assert!((share / expected(at) - 1.0).abs() < 0.3, "{at}: {share} of {}", expected(at));
        });
    }

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
    }

    #[test]
    fn what_was_said_is_taken_once_and_says_who_has_left() {
        let (mut loads, said) = (Loads::new(true, 20), Said::default());
        loads.worked(element(0), 300);
        loads.worked(element(1), 100);
        loads.departed(element(1), 77);
        assert!(!loads.is_due(EVERY_NS - 1) && loads.is_due(EVERY_NS));
        let mobility = |one| (one != element(0)).then_some(Mobility::Pinned);
        loads.say((1000, (800, 100)), &said, &mut Counting::new(false), mobility, |_| 5);
        assert!(said.is_new());
        let told = said.take(PeId(3), None);
        assert_eq!((told.pe, told.wall_ns), (PeId(3), 1000));
        let part = told.cpu_part.unwrap_or(1.0);
        assert!(told.fixed_ns.abs_diff((700.0 * part) as u64) <= 1, "estimates add up to what the PE did");
        let left = ChareLoad {
            element: element(1),
            cpu_ns: (200.0 * part) as u64,
            bytes: 77,
            is_here: false,
            mobility: Mobility::Pinned,
        };
        assert_eq!(told.chares, [left]);
        assert!(!said.is_new());
        assert_eq!(said.take(PeId(3), Some(2500)).wall_ns, 1500, "idle since then");
    }

    #[test]
    fn where_nobody_wants_to_know_nothing_is_timed() {
        let mut loads = Loads::new(false, 20);
        (0..1000).for_each(|at| loads.next_of_many(element(at), || panic!("no look")));
        loads.many_end(|| panic!("no look"));
        loads.arrived(element(0), 1);
        assert!(loads.of.is_empty() && !loads.is_due(u64::MAX));
    }
}
