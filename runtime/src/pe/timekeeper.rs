//! Divides the time of a PE into entry methods and the gaps between them, and chooses which entry methods are timed.

use super::account::Account;
use super::loads::Sampling;
use super::tally::Timed;
use crate::monitor::wire::PeState;

/// Divides the time of a PE into entry methods and the gaps between them. Reading the clock takes longer than the rest of
/// such a gap, so the PE times one gap in 64, assumes that the others are like it, and books a run of entry methods at
/// once.
#[derive(Debug)]
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
    /// How many gaps go untimed between two that are timed.
    guesses: u32,
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

/// To time an entry method takes as long as so many looks: it takes three, four changes of the account, the counts by kind, and
/// branches that no processor foretells.
const LOOKS: u64 = 8;
/// At most so many entry methods go untimed on average between two that are timed.
const UNTIMED_MAX: u32 = 1023;

/// After so long, the first entry method after a time without work is timed.
const UNTIMED_NS: u64 = 100_000;

impl Default for Timekeeper {
    /// A keeper that tells gaps from entry methods, and times none of these.
    fn default() -> Self {
        Self {
            state: PeState::default(),
            typical_ns: 0,
            guessed: 0,
            unseen: 0,
            is_seen: false,
            guesses: Self::GUESSED,
            timing: None,
            marks_left: 0,
            marks_each: 0,
            marks_from_ns: 0,
        }
    }
}

impl Timekeeper {
    /// How many gaps go untimed between two that are timed.
    const GUESSED: u32 = 63;

    /// Messages of one entry method that are followed at most.
    const MARKS_EACH: u32 = 4;

    /// A keeper that also times entry methods, where a look at the clock takes so long, and says of which of them messages
    /// may be followed, if any are. More often than for the sums of all if somebody balances by what single chares take.
    pub fn timing(look_ns: u64, follows_messages: bool, balances: bool) -> Self {
        let sampling =
            if balances { Sampling::of_chares(look_ns) } else { Sampling::new(LOOKS * look_ns, UNTIMED_MAX) };
        let timing = Timing { sampling, began_ns: None, ended_ns: 0 };
        let marks_each = if follows_messages { Self::MARKS_EACH } else { 0 };
        Self { timing: Some(timing), marks_each, ..Self::default() }
    }

    /// A keeper that takes gaps to be nothing, and looks at no clock for an entry method.
    pub fn off() -> Self {
        Self { unseen: u32::MAX, guesses: u32::MAX, ..Self::default() }
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
        let expected_ns = account.switched_ns() + self.typical_ns;
        if !self.is_seen && self.unseen > 0 && self.state == PeState::Overhead {
            self.unseen -= 1;
            return self.switch(account, state, expected_ns);
        }
        let now_ns = now_ns();
        if self.state == PeState::Overhead {
            self.learn(expected_ns, now_ns);
        }
        let unseen = std::mem::replace(&mut self.unseen, self.guesses);
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

#[cfg(test)]
mod tests {
    use super::super::inbox::Inbox;
    use super::*;
    use std::cell::Cell;

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
                (Account::default(), Timekeeper::timing(20, true, false), Cell::new(0));
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
        let (account, mut timekeeper) = (Account::default(), Timekeeper::timing(20, true, false));
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

    #[test]
    fn a_long_entry_method_is_timed_after_a_few_short_ones_and_after_a_time_without_work() {
        let (account, mut timekeeper) = (Account::default(), Timekeeper::timing(20, true, false));
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
        let second = run(&mut timekeeper, 5_000_000, false);
        assert_eq!(
            second,
            Some(Timed { took_ns: 5_000_000, stands_for: 1 }),
            "the only long one, after a constructor"
        );
        let mut of_short = Timekeeper::timing(20, true, false);
        let timed = (0..17).filter_map(|_| run(&mut of_short, 40, false)).count();
        assert_eq!(timed, 17, "the first sixteen stand for themselves alone");
        let timed = (0..4).filter_map(|_| run(&mut of_short, 5_000_000, false)).count();
        assert!((1..4).contains(&timed), "no more than two go untimed when some begin to");
        assert!(
            (0..100).filter_map(|_| run(&mut timekeeper, 40, false)).count() < 100,
            "some short ones are not"
        );
        let timed = (0..4).filter_map(|_| run(&mut timekeeper, 5_000_000, true)).count();
        assert_eq!(timed, 4, "each follows a time without work");
        let timed = (0..10_000).filter_map(|_| run(&mut timekeeper, 40, false)).count();
        assert!(timed < 1000, "{timed} of many short ones were timed");
        let after = run(&mut timekeeper, 5_000_000, true).expect("it follows a time without work");
        assert!(after.took_ns >= 5_000_000 && after.stands_for <= 2 * UNTIMED_MAX + 1, "{after:?}");
    }

    #[test]
    fn a_keeper_that_is_off_looks_at_no_clock_for_entry_methods_and_times_idleness() {
        let (account, mut timekeeper, looks) = (Account::default(), Timekeeper::off(), Cell::new(0));
        let mut now = 0;
        for stretch in 0..100 {
            timekeeper.switch(&account, PeState::Overhead, now);
            for _ in 0..1000 + stretch {
                let look = || {
                    looks.set(looks.get() + 1);
                    now
                };
                timekeeper.entry_begins(&account, PeState::Compute, look);
                assert_eq!(timekeeper.entry_ends(&account, look), None);
                assert!(!timekeeper.may_mark());
                now += 50;
            }
            timekeeper.switch(&account, PeState::Idle, now);
            now += 1000;
        }
        timekeeper.switch(&account, PeState::Overhead, now);
        assert_eq!(looks.get(), 0);
        let snapshot = account.snapshot(0, &Inbox::default(), now, |_, _| String::new());
        assert_eq!((snapshot.idle_ns, snapshot.overhead_ns), (100_000, 0));
        assert_eq!(snapshot.compute_ns, now - 100_000);
    }
}
