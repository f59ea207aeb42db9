//! What the chares of a PE cost: processor time by chare, and the part of its time that the PE got from the system.
//!
//! Looking at the clock takes as long as delivering a message, so not every entry method is timed: a timed one stands for
//! those before it that were not, and the shorter they are, the fewer are timed. Where entry methods take longer than a few
//! microseconds, all are.

use super::processor::{Got, Processor, processor_ns};
use super::tally::Timed;
use super::traffic::{Counting, Receivers};
use crate::ids::{ElementId, PeId};
use crate::loads::{ChareLoad, PeLoads, Whereabouts, is_remaining};
use loadbalance::balance::Mobility;
use rustc_hash::FxHashMap;
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

/// Entry methods are timed so that what [`Sampling`] is told to reckon with takes at most this part of their time.
const TIMING_PART: u64 = 128;
/// Where somebody wants to know what single chares do, at most so many entry methods go untimed on average between two that are
/// timed.
const UNTIMED_MAX: u32 = 127;
/// The first so many are all timed: a program that makes a chare and has it do one thing that takes long would tell of none of it
/// if the constructor stood for that.
const FIRST: u32 = 16;
/// A PE says what its chares did no more often than this.
const EVERY_NS: u64 = 50_000_000;

/// What a PE keeps of its chares since it said it last.
#[derive(Debug)]
pub(crate) struct Loads {
    /// Whether anybody wants to know.
    pub(super) is_on: bool,
    /// Whether any chare has been here that may not go anywhere. Where none has, nobody looks for such.
    pub(super) has_limited: bool,
    of: FxHashMap<ElementId, Load>,
    /// What those did that came and went since.
    gone: Worked,
    /// How long the entry methods took by the wall's clock whose processor time is known.
    known_ns: u64,
    many: Many,
    processor: Processor,
    /// The part of a core that it got when it computed for nothing.
    pub(super) probed: Option<f64>,
    /// When the PE said it last, and how long it had run entry methods and the runtime until then.
    said_ns: u64,
    busy_ns: (u64, u64),
}

/// What a chare did.
#[derive(Clone, Copy, Debug, Default)]
struct Worked {
    /// Processor time of long entry methods.
    known_ns: u64,
    /// What others took by the wall's clock, those included for which they stand.
    estimated_ns: u64,
}

impl Worked {
    /// Its processor time, where that of all that is estimated is this part of the estimates.
    fn cpu_ns(self, scale: f64) -> u64 {
        self.known_ns + (self.estimated_ns as f64 * scale) as u64
    }
}

impl AddAssign for Worked {
    fn add_assign(&mut self, other: Self) {
        self.known_ns += other.known_ns;
        self.estimated_ns += other.estimated_ns;
    }
}

#[derive(Clone, Debug, Default)]
struct Load {
    worked: Worked,
    bytes: u64,
    whereabouts: Whereabouts,
    mobility: Mobility,
    /// It was made here, and nobody has been told of it yet.
    is_new: bool,
    remaining: Option<f64>,
}

impl Loads {
    pub(super) fn new(is_on: bool, look_ns: u64) -> Self {
        Self {
            is_on,
            has_limited: false,
            of: FxHashMap::default(),
            gone: Worked::default(),
            known_ns: 0,
            many: Many::new(look_ns),
            processor: Processor::default(),
            probed: None,
            said_ns: 0,
            busy_ns: (0, 0),
        }
    }

    /// A chare has just worked for so long; what it waited for the core meanwhile is no work of its own.
    pub(super) fn worked(&mut self, element: ElementId, timed: Timed) {
        if self.is_on {
            let mut worked = Worked { known_ns: 0, estimated_ns: timed.all_ns() };
            if let Some(known_ns) = self.processor.on_core_ns(timed.took_ns, processor_ns) {
                worked = Worked { known_ns, estimated_ns: timed.all_ns() - timed.took_ns };
                self.known_ns += timed.took_ns;
            }
            self.of.entry(element).or_default().worked += worked;
        }
    }

    /// A chare says how much it still has to do. What makes no sense, as where a division by nothing has been tried, says nothing.
    pub(super) fn remains(&mut self, element: ElementId, units: f64) {
        if self.is_on && is_remaining(units) {
            self.of.entry(element).or_default().remaining = Some(units);
        }
    }

    /// A chare has been made here. Of an array there may have been another at its place.
    pub(super) fn made(&mut self, element: ElementId) {
        if !self.is_on {
            return;
        }
        if element.collection.as_singles().is_some() {
            self.of.insert(element, Load { is_new: true, ..Load::default() });
        } else if let Some(load) = self.of.get_mut(&element) {
            load.whereabouts = Whereabouts::Here;
        }
    }

    /// A chare has come from another PE, with so many bytes.
    pub(super) fn arrived(&mut self, element: ElementId, bytes: u64) {
        if self.is_on {
            let load = self.of.entry(element).or_default();
            (load.bytes, load.whereabouts) = (bytes, Whereabouts::Here);
        }
    }

    /// A chare has gone, with so many bytes.
    pub(super) fn departed(&mut self, element: ElementId, bytes: u64) {
        self.goes(element, bytes, Whereabouts::Left);
    }

    /// A chare has ended here.
    pub(super) fn ended(&mut self, element: ElementId) {
        self.goes(element, 0, Whereabouts::Ended);
    }

    /// What nobody has been told of is not worth telling any more: programs make such chares by the million.
    fn goes(&mut self, element: ElementId, bytes: u64, whereabouts: Whereabouts) {
        if !self.is_on {
            return;
        }
        let load = self.of.entry(element).or_default();
        if load.is_new {
            self.gone += load.worked;
            self.of.remove(&element);
        } else {
            (load.bytes, load.whereabouts) = (bytes, whereabouts);
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
        if let Some((last, timed)) = self.many.look(element, now_ns()) {
            self.worked(last, timed);
        }
    }

    /// All of them have run.
    #[inline]
    pub(super) fn many_end(&mut self, now_ns: impl FnOnce() -> u64) {
        if self.many.timed.is_some()
            && let Some((last, timed)) = self.many.end(now_ns())
        {
            self.worked(last, timed);
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
        self.probed = Got { wall_ns, cpu_ns, ..Got::default() }.part();
    }

    /// The PE has slept for so long because of its share of its core.
    pub(super) fn held_back(&mut self, ns: u64) {
        self.processor.held_back(ns);
    }

    /// What is said from now on is about the time from now on. Before, the PE measured how fast it is, which would count as the
    /// work of those chares that run first.
    pub(super) fn begin(&mut self, (now_ns, busy_ns): (u64, (u64, u64)), said: &Said) {
        (self.said_ns, self.busy_ns) = (now_ns, busy_ns);
        (self.known_ns, self.gone) = (0, Worked::default());
        self.of.values_mut().for_each(|load| load.worked = Worked::default());
        self.processor.reads(now_ns, processor_ns);
        self.processor.take();
        let mut words = said.0.lock().unwrap_or_else(PoisonError::into_inner);
        (words.at_ns, words.taken_ns, words.fixed_ns, words.got) = (now_ns, now_ns, 0, Got::default());
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
        let on_core = got.part_of_rest().unwrap_or(1.0);
        let before_ns = std::mem::replace(&mut self.busy_ns, busy_ns);
        let known_ns = std::mem::take(&mut self.known_ns);
        let entries = busy_ns.0.saturating_sub(before_ns.0 + known_ns) as f64 * on_core;
        let runtime = busy_ns.1.saturating_sub(before_ns.1) as f64 * on_core;
        let gone = std::mem::take(&mut self.gone);
        let counted = self.of.values().map(|load| load.worked.estimated_ns).sum::<u64>() + gone.estimated_ns;
        // Estimates add up to what the PE really did.
        let scale = if counted > 0 { entries / counted as f64 } else { 0.0 };
        // What the runtime does for messages stays when their chares go: others will send them from here, or to here.
        let mut fixed_ns = (if counted > 0 { runtime } else { runtime + entries }) as u64;
        // Where chares came and went, others will.
        fixed_ns += gone.cpu_ns(scale);
        let mut movable = Vec::with_capacity(self.of.len());
        for (element, load) in self.of.drain() {
            let cpu_ns = load.worked.cpu_ns(scale);
            let Some(mobility) = mobility(element) else {
                fixed_ns += cpu_ns;
                continue;
            };
            if load.is_new && cpu_ns == 0 && load.remaining.is_none() {
                continue;
            }
            let is_here = load.whereabouts == Whereabouts::Here;
            let found = if load.bytes == 0 && is_here { bytes(element) } else { 0 };
            let worked = Worked { known_ns: cpu_ns, estimated_ns: 0 };
            movable.push((element, Load { worked, mobility, ..load }, found));
        }
        // Finding out how large a chare is may take long, and nobody should wait for that.
        let mut told = said.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.fixed_ns += fixed_ns;
        movable.into_iter().for_each(|(element, load, found)| told.take_in(element, load, found));
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

impl Words {
    /// Adds what a chare did, of which it was found that it has so many bytes.
    fn take_in(&mut self, element: ElementId, load: Load, found: u64) {
        let one = self.of.entry(element).or_insert_with(|| Load { is_new: load.is_new, ..Load::default() });
        one.worked += load.worked;
        if one.is_new && load.whereabouts != Whereabouts::Here {
            self.fixed_ns += one.worked.known_ns;
            self.of.remove(&element);
            return;
        }
        one.bytes = if load.bytes > 0 { load.bytes } else { found.max(one.bytes) };
        (one.whereabouts, one.mobility) = (load.whereabouts, load.mobility);
        one.remaining = load.remaining.or(one.remaining);
    }
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
        let chare = |(element, load): (ElementId, Load)| {
            let Load { worked, bytes, whereabouts, mobility, remaining, .. } = load;
            ChareLoad { element, cpu_ns: worked.known_ns, bytes, whereabouts, mobility, remaining }
        };
        let mut chares: Vec<ChareLoad> = words.of.drain().map(chare).collect();
        chares.sort_unstable_by_key(|chare| chare.element);
        let fixed_ns = std::mem::take(&mut words.fixed_ns);
        let (traffic, other_traffic) = words.receivers.take();
        let cpu_part = words.got.take_part();
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

    /// The next one begins at this time; the one that was timed before, and what it took.
    fn look(&mut self, next: ElementId, now_ns: u64) -> Option<(ElementId, Timed)> {
        let ended = self.end(now_ns);
        if self.untimed == 0 {
            self.timed = Some((next, now_ns));
        } else {
            self.untimed -= 1;
        }
        ended
    }

    fn end(&mut self, now_ns: u64) -> Option<(ElementId, Timed)> {
        let (element, since_ns) = self.timed.take()?;
        let (timed, untimed) = self.sampling.timed(now_ns.saturating_sub(since_ns));
        self.untimed = untimed;
        Some((element, timed))
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
    /// So many more are timed whatever they take.
    first: u32,
}

impl Sampling {
    /// For what single chares do, where a look at the clock takes so long: only the looks are reckoned with.
    pub(super) fn of_chares(look_ns: u64) -> Self {
        Self::new(look_ns, UNTIMED_MAX)
    }

    /// Where timing one takes so long, and no more than so many may go untimed on average.
    pub(super) fn new(cost_ns: u64, untimed_max: u32) -> Self {
        Self { cost_ns, untimed_max, mean_ns: 0, random: 1, stands_for: 1, gap: 0, first: FIRST }
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
        if self.first > 0 {
            self.first -= 1;
            return 0;
        }
        let mean = u32::try_from(2 * TIMING_PART * self.cost_ns / self.mean_ns.max(1)).unwrap_or(u32::MAX);
        // One short call shall not hide many long ones behind it.
        self.gap = mean.min(2 * self.gap + 1).min(self.untimed_max);
        // The generator of W. Press et al., "Numerical Recipes": its upper half is random enough.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 16) % (2 * self.gap + 1)
    }
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

    fn once(took_ns: u64) -> Timed {
        Timed { took_ns, stands_for: 1 }
    }

    #[test]
    fn what_was_before_it_began_is_not_told() {
        let (mut loads, said) = (Loads::new(true, 20), Said::default());
        let traffic = &mut Counting::new(false);
        let mobility = |_| Some(Mobility::Anywhere);
        loads.say((1000, (700, 300)), &said, traffic, mobility, |_| 0);
        // Long enough to be measured by processor time; one of them has come and gone.
        loads.made(element(2));
        for one in [1, 2] {
            loads.worked(element(one), Timed { took_ns: 300_000, stands_for: 3 });
        }
        loads.ended(element(2));
        loads.begin((9000, (8500, 400)), &said);
        assert!(!said.is_new() && !loads.is_due(9000 + EVERY_NS - 1));
        loads.worked(element(0), once(300));
        loads.say((9600, (8800, 450)), &said, traffic, mobility, |_| 0);
        let told = said.take(PeId(0), None);
        assert_eq!(told.wall_ns, 600);
        let all_ns: u64 = told.chares.iter().map(|chare| chare.cpu_ns).sum();
        assert!(all_ns <= 300 && told.fixed_ns <= 50, "{told:?}");
        let first = told.chares.iter().find(|chare| chare.element == element(0));
        assert_eq!(first.map(|chare| chare.cpu_ns), Some(all_ns));
    }

    #[test]
    fn what_was_said_is_taken_once_and_says_who_has_left() {
        let (mut loads, said) = (Loads::new(true, 20), Said::default());
        loads.worked(element(0), once(300));
        loads.worked(element(1), once(100));
        loads.remains(element(1), 2.5);
        [-1.0, f64::NAN, f64::INFINITY].into_iter().for_each(|units| loads.remains(element(1), units));
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
            whereabouts: Whereabouts::Left,
            mobility: Mobility::Pinned,
            remaining: Some(2.5),
        };
        assert_eq!(told.chares, [left]);
        assert!(!said.is_new());
        assert_eq!(said.take(PeId(3), Some(2500)).wall_ns, 1500, "idle since then");
    }

    #[test]
    fn of_chares_that_come_and_go_only_the_work_is_told() {
        let single = |serial| ElementId {
            collection: CollectionId::singles(3),
            index: ElementIndex::of_single(PeId(0), PeId(0), serial),
        };
        let (mut loads, said) = (Loads::new(true, 20), Said::default());
        let say = |loads: &mut Loads, busy_ns| {
            let now_ns = loads.said_ns + EVERY_NS;
            loads.say(
                (now_ns, (busy_ns, 0)),
                &said,
                &mut Counting::new(false),
                |_| Some(Mobility::Anywhere),
                |_| 1,
            );
        };
        for serial in 0..10_000 {
            loads.made(single(serial));
            loads.worked(single(serial), once(1));
            loads.ended(single(serial));
        }
        assert!(loads.of.is_empty());
        [10_000, 10_001, 10_002].into_iter().for_each(|serial| loads.made(single(serial)));
        loads.worked(single(10_000), once(5_000));
        loads.worked(single(10_001), once(5_000));
        say(&mut loads, 20_000);
        loads.worked(single(10_000), once(1));
        loads.ended(single(10_000));
        say(&mut loads, 21_000);
        let sum = |told: &PeLoads| told.fixed_ns + told.chares.iter().map(|chare| chare.cpu_ns).sum::<u64>();
        let told = said.take(PeId(0), None);
        let found: Vec<_> = told.chares.iter().map(|chare| (chare.element, chare.whereabouts)).collect();
        assert_eq!(
            found,
            [(single(10_001), Whereabouts::Here)],
            "one ended before it was told, one has done nothing"
        );
        // What is said second is the part of it that the thread's clock shows.
        assert!((19_995..=21_000).contains(&sum(&told)), "{told:?}");
        loads.ended(single(10_001));
        loads.arrived(single(10_003), 7);
        loads.departed(single(10_003), 7);
        say(&mut loads, 21_000);
        let told = said.take(PeId(0), None);
        let found: Vec<_> = told.chares.iter().map(|chare| chare.whereabouts).collect();
        assert_eq!(found, [Whereabouts::Ended, Whereabouts::Left], "of these somebody may have been told");
    }

    #[test]
    fn where_nobody_wants_to_know_nothing_is_timed() {
        let mut loads = Loads::new(false, 20);
        (0..1000).for_each(|at| loads.next_of_many(element(at), || panic!("no look")));
        loads.many_end(|| panic!("no look"));
        loads.made(element(0));
        loads.arrived(element(0), 1);
        loads.ended(element(0));
        assert!(loads.of.is_empty() && !loads.is_due(u64::MAX));
    }
}
