//! The chain of entry methods and messages that the last ones of some seconds waited for: who is on it delays all, and who is
//! not could be slower without delaying anybody.
//!
//! It is followed backwards, from the end of what ran last (C.-Q. Yang and B. P. Miller, "Critical path analysis for the
//! execution of parallel and distributed programs", ICDCS 1988): from an entry method for which a PE had waited to the one
//! that sent the message, from another to what ran before on its PE. Few messages are [followed](super::samples); for one that
//! is not, that of the same entry method of the same PE stands in whose time is nearest, of those that were waited for as long.

use super::samples::{Cause, Ran};
use std::collections::{BTreeMap, HashMap};

/// A PE number that means the driver.
pub const DRIVER: u32 = u32::MAX;
/// A path has no more links.
const LINKS_MAX: usize = 100_000;
/// So many calls in both directions are looked at for one that stands in.
const NEAR: usize = 256;

/// A call of an entry method. Times are nanoseconds on one clock of all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The PE.
    pub pe: u32,
    /// Place of its name among those of the program.
    pub name: u16,
    /// When it began.
    pub from: i64,
    /// When it ended.
    pub to: i64,
    /// How long its PE had waited for it; 0 if it had something to do.
    pub waited: i64,
    /// What started it, if that is known.
    pub cause: Option<Cause>,
}

impl Call {
    /// A call that a node tells of; `clock` says when its process was so old.
    #[must_use]
    pub fn of(ran: &Ran, clock: impl Fn(u64) -> i64) -> Self {
        let from = clock(ran.began_ns);
        Self {
            pe: ran.pe,
            name: ran.name,
            from,
            to: clock(ran.began_ns.saturating_add(ran.took_ns)).max(from),
            waited: i64::try_from(ran.idle_ns).unwrap_or(i64::MAX).min(i64::MAX / 4),
            cause: ran.cause,
        }
    }
}

/// From this part of a path on, messages on their way are what there was to wait for.
pub const UNDER_WAY: f64 = 0.2;

/// What a PE did of which no call is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// It was on its core: in short entry methods, or in the runtime.
    Worked,
    /// It had something to do and waited for a core.
    NoCore,
    /// The same, because a quota of CPU time of its control group was used up.
    Quota,
    /// It slept, because its own `cpu_share` was used up.
    Throttled,
    /// It had no message.
    Idle,
}

/// What the time of a link went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// An entry method.
    Ran {
        /// The PE that ran it.
        pe: u32,
        /// Place of its name.
        name: u16,
    },
    /// What a PE did between two calls that are told of.
    Between {
        /// The PE.
        pe: u32,
        /// What that was, where it is known.
        doing: Option<Doing>,
    },
    /// A message was on its way, or waited for its turn.
    Way {
        /// The PE that sent it.
        from: u32,
        /// The one that it was for.
        to: u32,
    },
    /// The driver, and what it waited for.
    Driver,
    /// A PE waited, and for whom is not known.
    Unknown {
        /// The PE.
        pe: u32,
    },
}

/// The links of a path and their times, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// What and how long, nanoseconds, above 0.
    pub links: Vec<(Link, i64)>,
    /// When the first of them, the latest, ended.
    pub end: i64,
}

impl Path {
    /// The path to what ended last in the time between these two. `sent` are the times at which the messages left that are
    /// followed, by their PE and number.
    #[must_use]
    pub fn of(calls: &[Call], sent: &HashMap<(u32, u32), i64>, (from, to): (i64, i64)) -> Self {
        let known = Known::of(calls, sent, to);
        let mut path = Self::default();
        let last = known.last_end(to);
        let Some((mut pe, mut at)) = last else { return path };
        path.end = at;
        while at > from && path.links.len() < LINKS_MAX {
            let Some((place, call)) = known.before(pe, at) else {
                // It did nothing before, as it came late: who had done something until then is what it came to.
                let Some(before) = known.last_end(at) else { break };
                path.put(Link::Unknown { pe }, before.1.max(from), at);
                (pe, at) = before;
                continue;
            };
            path.put(Link::Between { pe, doing: None }, call.to.max(from), at);
            path.put(Link::Ran { pe, name: call.name }, call.from.max(from), at.min(call.to));
            at = call.from;
            if call.waited <= 0 || at <= from {
                continue;
            }
            let begun = at;
            (pe, at) = match known.sender(pe, place, call) {
                Some((DRIVER, _)) => {
                    // It had waited for what ended last, if for anything.
                    let Some(before) = known.last_end(begun) else { break };
                    path.put(Link::Driver, before.1.max(from), begun);
                    before
                }
                Some((sender, left)) => {
                    let left = left.min(begun);
                    path.put(Link::Way { from: sender, to: pe }, left.max(from), begun);
                    (sender, left)
                }
                None => {
                    let before = begun - call.waited;
                    path.put(Link::Unknown { pe }, before.max(from), begun);
                    (pe, before)
                }
            };
        }
        path
    }

    fn put(&mut self, link: Link, from: i64, to: i64) {
        if to > from {
            self.links.push((link, to - from));
        }
    }

    /// The same, where it is known what PEs did between the calls that are told of: `did` says it of a PE and a time from when
    /// to when, with nanoseconds for each.
    #[must_use]
    pub fn divided(self, did: impl Fn(u32, (i64, i64)) -> Vec<(Doing, i64)>) -> Self {
        let mut divided = Self { links: Vec::new(), end: self.end };
        let mut to = self.end;
        for (link, time) in self.links {
            let from = to - time;
            let mut rest = time;
            if let Link::Between { pe, .. } = link {
                for (doing, part) in did(pe, (from, to)) {
                    let part = part.clamp(0, rest);
                    divided.put(Link::Between { pe, doing: Some(doing) }, 0, part);
                    rest -= part;
                }
            }
            divided.put(link, 0, rest);
            to = from;
        }
        divided
    }

    /// How long it is, nanoseconds.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.links.iter().map(|(_, time)| time).sum()
    }

    /// The part of it, 0 to 1, in which a message was on its way from one node to another; `node` says where a PE is.
    #[must_use]
    pub fn under_way(&self, node: impl Fn(u32) -> Option<u16>) -> f64 {
        self.part(|link| match link {
            Link::Way { from, to } => node(*from) != node(*to),
            _ => false,
        })
    }

    /// The part of it, 0 to 1, that links of some kind are.
    #[must_use]
    pub fn part(&self, is_it: impl Fn(&Link) -> bool) -> f64 {
        let of_it = self.links.iter().filter(|(link, _)| is_it(link));
        of_it.map(|(_, time)| time).sum::<i64>() as f64 / self.length().max(1) as f64
    }

    /// What takes which part of it, 0 to 1, the largest first.
    #[must_use]
    pub fn parts(&self) -> Vec<(Link, f64)> {
        let mut sums: BTreeMap<Link, i64> = BTreeMap::new();
        self.links.iter().for_each(|(link, time)| *sums.entry(*link).or_default() += time);
        let length = self.length().max(1) as f64;
        let mut parts: Vec<(Link, f64)> =
            sums.into_iter().map(|(link, time)| (link, time as f64 / length)).collect();
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        parts
    }

    /// The same in words, for people; `node` names that of a PE.
    #[must_use]
    pub fn told(&self, entries: &[String], node: impl Fn(u32) -> Option<String>) -> Vec<(f64, String)> {
        let entry =
            |name: u16| entries.get(usize::from(name)).cloned().unwrap_or_else(|| "an entry method".into());
        let pe = |number: u32| match node(number) {
            Some(node) => format!("PE {number} ({node})"),
            None => format!("PE {number}"),
        };
        self.parts().into_iter().map(|(link, part)| (part, link.words(entry, pe))).collect()
    }

    /// The PE that is on most of it, and its part.
    #[must_use]
    pub fn most(&self) -> Option<(u32, f64)> {
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        for (link, time) in &self.links {
            if let Some(pe) = link.busy() {
                *sums.entry(pe).or_default() += time;
            }
        }
        let (pe, time) = sums.into_iter().max_by_key(|(_, time)| *time)?;
        Some((pe, time as f64 / self.length().max(1) as f64))
    }
}

impl Link {
    /// The PE that had something to do then.
    #[must_use]
    pub fn busy(&self) -> Option<u32> {
        match *self {
            Self::Between { doing: Some(Doing::Idle), .. } => None,
            Self::Ran { pe, .. } | Self::Between { pe, .. } => Some(pe),
            Self::Way { .. } | Self::Driver | Self::Unknown { .. } => None,
        }
    }

    /// What it is, for people; `entry` and `pe` name entry methods and PEs.
    fn words(&self, entry: impl Fn(u16) -> String, pe: impl Fn(u32) -> String) -> String {
        match *self {
            Self::Ran { pe: at, name } => format!("{} on {}", entry(name), pe(at)),
            Self::Between { pe: at, doing } => match doing {
                None => format!("short entry methods, the runtime, or a stop, on {}", pe(at)),
                Some(Doing::Worked) => format!("short entry methods, or the runtime, on {}", pe(at)),
                Some(Doing::NoCore) => format!("{} waited for its core", pe(at)),
                Some(Doing::Quota) => format!("{} was stopped by a CPU quota", pe(at)),
                Some(Doing::Throttled) => format!("{} was held back by its cpu_share", pe(at)),
                Some(Doing::Idle) => format!("{} waited for messages", pe(at)),
            },
            Self::Way { from, to } => format!("messages from {} to {}", pe(from), pe(to)),
            Self::Driver => "the driver, and what it waited for".into(),
            Self::Unknown { pe: at } => format!("{} waited, for whom is not known", pe(at)),
        }
    }
}

/// The calls of each PE in order.
struct Known<'a> {
    of: BTreeMap<u32, Vec<Call>>,
    /// All ends, in order.
    ends: Vec<(i64, u32)>,
    sent: &'a HashMap<(u32, u32), i64>,
}

impl<'a> Known<'a> {
    fn of(calls: &[Call], sent: &'a HashMap<(u32, u32), i64>, until: i64) -> Self {
        let mut of: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
        for call in calls.iter().filter(|call| call.from < call.to && call.to <= until) {
            of.entry(call.pe).or_default().push(*call);
        }
        of.values_mut().for_each(|calls| calls.sort_by_key(|call| call.from));
        let mut ends: Vec<(i64, u32)> = of.values().flatten().map(|call| (call.to, call.pe)).collect();
        ends.sort_unstable();
        Self { of, ends, sent }
    }

    /// What ended last until then, and when.
    fn last_end(&self, until: i64) -> Option<(u32, i64)> {
        let place = self.ends.partition_point(|(end, _)| *end <= until).checked_sub(1)?;
        self.ends.get(place).map(|(end, pe)| (*pe, *end))
    }

    /// The last call of a PE that began before then.
    fn before(&self, pe: u32, at: i64) -> Option<(usize, Call)> {
        let calls = self.of.get(&pe)?;
        let place = calls.partition_point(|call| call.from < at).checked_sub(1)?;
        Some((place, *calls.get(place)?))
    }

    /// Who sent what started the call for which its PE had waited, and when; as far as can be known from it or from others
    /// like it.
    fn sender(&self, pe: u32, place: usize, call: Call) -> Option<(u32, i64)> {
        if let Some(way) = self.way(call) {
            return Some((way.0, call.from - way.1));
        }
        let calls = self.of.get(&pe)?;
        let like = |other: &&Call| other.name == call.name && other.waited > 0;
        // Who waits long for one sender and shortly for another does not take one for the other.
        let is_other = |other: &Call| other.waited / 2 > call.waited || other.waited < call.waited / 2;
        let distance = |other: &Call| (is_other(other), (other.from - call.from).abs());
        let around = calls[place.saturating_sub(NEAR)..].iter().take(2 * NEAR).filter(like);
        let known = around.filter_map(|other| Some((distance(other), self.way(*other)?)));
        let (_, (sender, took)) = known.min_by_key(|(distance, _)| *distance)?;
        Some((sender, self.left(sender, call.from - took, call.from)))
    }

    /// When a message left that came until then, if `guess` is not known better. A PE that had no message sent none: it did so
    /// when it had the next one or, where that is too late, before it waited for that.
    fn left(&self, pe: u32, guess: i64, came: i64) -> i64 {
        let calls = self.of.get(&pe).map_or(&[][..], Vec::as_slice);
        match calls.get(calls.partition_point(|call| call.from < guess)) {
            Some(next) if next.from - next.waited < guess && next.from <= came => next.to.min(came),
            Some(next) if next.from - next.waited < guess => next.from - next.waited,
            _ => guess,
        }
    }

    /// Who sent what started a call, and how long that was on its way.
    fn way(&self, call: Call) -> Option<(u32, i64)> {
        let cause = call.cause?;
        if cause.pe == DRIVER {
            return Some((DRIVER, 0));
        }
        let left = self.sent.get(&(cause.pe, cause.number))?;
        Some((cause.pe, (call.from - left).max(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(pe: u32, name: u16, from: i64, to: i64) -> Call {
        Call { pe, name, from, to, ..Call::default() }
    }

    fn waited(pe: u32, name: u16, (from, to): (i64, i64), waited: i64, cause: Option<(u32, u32)>) -> Call {
        let cause = cause.map(|(pe, number)| Cause { pe, number, bytes: 0 });
        Call { waited, cause, ..call(pe, name, from, to) }
    }

    fn ran(pe: u32, name: u16) -> Link {
        Link::Ran { pe, name }
    }

    #[test]
    fn the_path_goes_from_who_waited_to_who_sent_and_else_to_what_ran_before() {
        // PE 0 computes from 0 to 10 and 10 to 70, sends at 60; PE 1 has waited, gets it at 65 and ends at 90.
        let calls = [
            call(0, 1, 0, 10),
            call(0, 2, 12, 70),
            call(1, 3, 0, 20),
            waited(1, 4, (65, 90), 45, Some((0, 7))),
        ];
        let sent = HashMap::from([((0, 7), 60)]);
        let path = Path::of(&calls, &sent, (0, 100));
        let way = Link::Way { from: 0, to: 1 };
        let links = [
            (ran(1, 4), 25),
            (way, 5),
            (ran(0, 2), 48),
            (Link::Between { pe: 0, doing: None }, 2),
            (ran(0, 1), 10),
        ];
        assert_eq!(path.links, links);
        assert_eq!((path.length(), path.most()), (90, Some((0, 60.0 / 90.0))));
        assert_eq!(path.parts()[0], (ran(0, 2), 48.0 / 90.0));
        assert_eq!(path.under_way(|pe| u16::try_from(pe).ok()), 5.0 / 90.0);
        assert_eq!(path.under_way(|_| Some(1)), 0.0, "on one node");
        // Only what lies in the time that is asked for.
        assert_eq!(Path::of(&calls, &sent, (50, 100)).links, [(ran(1, 4), 25), (way, 5), (ran(0, 2), 10)]);
        assert_eq!(Path::of(&calls, &sent, (0, 80)).links[0], (ran(0, 2), 58));
    }

    /// PE 1 joins the run when it is 600 old, and never waits.
    #[test]
    fn the_path_goes_on_before_a_pe_that_came_late() {
        let calls = [call(0, 1, 0, 300), call(0, 1, 300, 590), call(0, 1, 590, 980), call(1, 1, 600, 1000)];
        let path = Path::of(&calls, &HashMap::new(), (0, 1000));
        let links = [(ran(1, 1), 400), (Link::Unknown { pe: 1 }, 10), (ran(0, 1), 290), (ran(0, 1), 300)];
        assert_eq!(path.links, links);
        assert_eq!(path.most(), Some((0, 0.59)));
    }

    #[test]
    fn a_message_that_is_not_followed_is_like_the_next_one_of_its_kind() {
        let mut calls = Vec::new();
        // In each step of 100, PE 0 works for 90, and PE 1 for 5 from what it is sent at the end. One of ten is known.
        for step in 0..100_i64 {
            let at = step * 100;
            calls.push(waited(0, 0, (at + 6, at + 96), 8, (step % 10 == 5).then_some((1, step as u32))));
            calls.push(waited(1, 1, (at + 98, at + 103), 95, (step % 10 == 3).then_some((0, step as u32))));
        }
        let left = |step: i64| [((0, step as u32), step * 100 + 96), ((1, step as u32), step * 100 + 3)];
        let sent: HashMap<(u32, u32), i64> = (0..100).flat_map(left).collect();
        let path = Path::of(&calls, &sent, (2000, 10_000));
        let (pe, part) = path.most().unwrap();
        assert!(pe == 0 && (0.88..0.92).contains(&part), "{part}: {:?}", &path.links[..8]);
        assert!(path.parts().iter().all(|(link, _)| !matches!(link, Link::Unknown { .. })));
    }

    /// Each of three PEs gets in each step what the others sent it in the one before; what PE 2 sends and gets takes long.
    #[test]
    fn who_waits_long_for_one_sender_and_shortly_for_another_does_not_take_one_for_the_other() {
        const STEP: i64 = 41_000;
        let (mut calls, mut sent) = (Vec::new(), HashMap::new());
        for step in 1..200_i64 {
            // No step is as long as another one.
            let [at, before] = [step, step - 1].map(|step| step * STEP + step * 37 % 400);
            let number = u32::try_from(step).unwrap();
            sent.extend([((0, number), at + 90), ((2, number), at + 105)]);
            let followed = |pe: u32, every: i64, number: u32| (step % every == 0).then_some((pe, number));
            let waited_long = at - before - 2000;
            calls.push(waited(0, 0, (at, at + 95), waited_long, followed(2, 10, number - 1)));
            calls.push(waited(2, 0, (at + 100, at + 110), waited_long, followed(0, 2, number - 1)));
            calls.push(waited(1, 0, (at + 200, at + 210), waited_long, followed(2, 10, number - 1)));
            calls.push(waited(1, 0, (at + 900, at + 910), 600, followed(0, 1, number)));
        }
        let path = Path::of(&calls, &sent, (20 * STEP, 180 * STEP));
        let is_slow = |link: &Link| matches!(link, Link::Way { from, to } if *from == 2 || *to == 2);
        assert!(path.part(is_slow) > 0.95, "{:?}", path.parts());
    }

    #[test]
    fn what_a_pe_did_between_two_calls_is_divided_by_its_counters() {
        let calls = [call(0, 1, 0, 10), call(0, 2, 60, 70)];
        let path = Path::of(&calls, &HashMap::new(), (0, 100)).divided(|pe, time| {
            assert_eq!((pe, time), (0, (10, 60)));
            vec![(Doing::Throttled, 30), (Doing::NoCore, 12), (Doing::Worked, 0), (Doing::Idle, 3)]
        });
        let between = |doing| Link::Between { pe: 0, doing };
        let links = [
            (ran(0, 2), 10),
            (between(Some(Doing::Throttled)), 30),
            (between(Some(Doing::NoCore)), 12),
            (between(Some(Doing::Idle)), 3),
            (between(None), 5),
            (ran(0, 1), 10),
        ];
        assert_eq!(path.links, links);
        assert_eq!(path.most(), Some((0, 67.0 / 70.0)), "who waits for messages is not busy");
        let said = path.told(&[], |_| Some("a".into()));
        for words in ["was held back by its cpu_share", "waited for its core", "waited for messages"] {
            assert!(said.iter().any(|(_, what)| *what == format!("PE 0 (a) {words}")), "{words}: {said:?}");
        }
        let whole =
            Path::of(&calls, &HashMap::new(), (0, 100)).divided(|_, _| vec![(Doing::Worked, i64::MAX)]);
        assert_eq!(whole.length(), 70, "what cannot be is cut off");
    }

    #[test]
    fn the_driver_is_on_the_path_where_all_wait_for_it() {
        let mut calls = Vec::new();
        for step in 0..10 {
            let at = step * 100;
            for pe in 0..3_u32 {
                let end = at + 10 + i64::from(pe);
                calls.push(waited(pe, 0, (at, end), 88, Some((DRIVER, 1))));
            }
        }
        let path = Path::of(&calls, &HashMap::new(), (0, 1000));
        assert_eq!(path.links[..2], [(ran(2, 0), 12), (Link::Driver, 88)]);
        assert_eq!(path.parts()[0].0, Link::Driver);
    }

    #[test]
    fn who_waits_for_nobody_knows_whom_says_so_and_no_input_makes_it_endless() {
        let calls = [call(4, 0, 0, 10), waited(4, 0, (50, 60), 40, None)];
        let path = Path::of(&calls, &HashMap::new(), (0, 100));
        assert_eq!(path.links, [(ran(4, 0), 10), (Link::Unknown { pe: 4 }, 40), (ran(4, 0), 10)]);
        assert_eq!(Path::of(&[], &HashMap::new(), (0, 100)), Path::default());
        // A clock that is wrong has a message arrive before it left.
        let calls = [
            waited(0, 0, (10, 20), 5, Some((1, 1))),
            waited(1, 0, (5, 30), 5, Some((0, 1))),
            call(0, 0, 9, 3),
        ];
        let sent = HashMap::from([((0, 1), 19), ((1, 1), 29)]);
        let path = Path::of(&calls, &sent, (0, 100));
        assert_eq!(path.links, [(ran(1, 0), 25)]);
        let mut random = crate::proto::sim::Random::new(5);
        for _ in 0..200 {
            let mut below = |count: u64| (random.bits() % count) as i64;
            let mut some = || {
                let cause = (below(3) > 0).then(|| (below(5) as u32, below(4) as u32));
                let from = below(100);
                waited(below(4) as u32, below(2) as u16, (from, from + below(30) - 5), below(20), cause)
            };
            let calls: Vec<Call> = (0..60).map(|_| some()).collect();
            let sent = (0..16).map(|at| ((at % 4, at / 4), below(120))).collect();
            let path = Path::of(&calls, &sent, (10, 110));
            assert!(path.length() <= 100 && path.links.iter().all(|(_, time)| *time > 0));
        }
    }
}
