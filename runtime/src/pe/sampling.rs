//! Which entry methods and messages a PE tells of: see [`samples`](crate::monitor::samples).

use super::Pe;
use super::tally::Timed;
use crate::ids::{NodeId, PeId};
use crate::mark::Mark;
use crate::monitor::samples::{Cause, Ran, Sent};

/// So many may be told of one behind the other after a time without any.
const BURST: u64 = 16;
/// An entry method that begins so soon after the PE had nothing to do counts as what it had waited for.
const SOON_NS: u64 = 50_000;

/// How a PE chooses.
#[derive(Debug)]
pub(super) struct Sampling {
    runs: Rate,
    sends: Rate,
    /// How many messages have been chosen.
    number: u32,
    random: u32,
    /// When the PE had nothing to do last: from, to.
    idle: (u64, u64),
    /// What started the entry method that runs, if that is followed.
    cause: Option<Cause>,
    /// A message of the entry method that runs is followed.
    has_sent: bool,
}

impl Sampling {
    /// So many of either a second, on this node.
    pub(super) fn new(per_s: u32, node: NodeId) -> Self {
        let rate = || Rate::new(per_s);
        // A PE that comes from another node shall not use the numbers again that it has used there.
        let number = u32::from(node.0) << 24;
        Self { runs: rate(), sends: rate(), number, random: 1, idle: (0, 0), cause: None, has_sent: false }
    }

    /// The PE had nothing to do in that time.
    #[inline]
    pub(super) fn was_idle(&mut self, from_ns: u64, to_ns: u64) {
        // Who looks for work and finds none goes on being idle.
        let goes_on = from_ns <= self.idle.1 + 1000;
        self.idle = (if goes_on { self.idle.0 } else { from_ns }, to_ns);
    }

    /// An entry method that was timed has ended; what is told of it, if it is chosen.
    fn ran(&mut self, (pe, name): (PeId, u16), took_ns: u64, end_ns: u64) -> Option<Ran> {
        let began_ns = end_ns.saturating_sub(took_ns);
        let (from_ns, to_ns) = std::mem::take(&mut self.idle);
        let idle_ns = if began_ns <= to_ns + SOON_NS { to_ns - from_ns } else { 0 };
        let cause = self.cause.take();
        // At either end of an arrow it has been chosen already.
        let is_chosen = std::mem::take(&mut self.has_sent) || cause.is_some();
        if !is_chosen && !self.runs.permits(end_ns) {
            return None;
        }
        Some(Ran { pe: pe.0, name, began_ns, took_ns, idle_ns, cause })
    }

    /// What becomes of the message that is sent now.
    fn sends(&mut self, now_ns: u64) -> Choice {
        // Where there are many, not always the first ones. The generator of W. Press et al., "Numerical Recipes".
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if self.random >> 31 == 0 && !self.sends.has_plenty(now_ns) {
            return Choice::PassedOver;
        }
        if !self.sends.permits(now_ns) {
            return Choice::NoneUntil(self.sends.due_ns);
        }
        self.number = self.number.wrapping_add(1).max(1);
        self.has_sent = true;
        Choice::Followed(self.number)
    }
}

/// What becomes of a message that might be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// It is, under this number.
    Followed(u32),
    /// It is not; the next one may be.
    PassedOver,
    /// Nor is any other until then: the PE need not look at the clock for them.
    NoneUntil(u64),
}

/// Permits so many a second, and some at once after a time without any.
#[derive(Debug)]
struct Rate {
    gap_ns: u64,
    /// When the next one is due if they come one after the other.
    due_ns: u64,
}

impl Rate {
    fn new(per_s: u32) -> Self {
        let gap_ns = if per_s == 0 { u64::MAX } else { 1_000_000_000 / u64::from(per_s) };
        Self { gap_ns, due_ns: if per_s == 0 { u64::MAX } else { 0 } }
    }

    /// Whether at least half as many are permitted at once as ever are.
    fn has_plenty(&self, now_ns: u64) -> bool {
        self.due_ns <= now_ns.saturating_sub(self.gap_ns.saturating_mul(BURST / 2))
    }

    fn permits(&mut self, now_ns: u64) -> bool {
        let due_ns = self.due_ns.max(now_ns.saturating_sub(self.gap_ns.saturating_mul(BURST - 1)));
        let permits = due_ns <= now_ns;
        if permits {
            self.due_ns = due_ns.saturating_add(self.gap_ns);
        }
        permits
    }
}

impl Pe {
    /// The mark of a message that goes to other PEs now.
    #[inline]
    pub(super) fn mark(&mut self) -> Mark {
        let number = if self.timekeeper.may_mark() { self.choose() } else { 0 };
        Mark { from: self.id, number }
    }

    #[cold]
    fn choose(&mut self) -> u32 {
        let at_ns = self.node.now_ns();
        let number = match self.sampling.sends(at_ns) {
            Choice::Followed(number) => number,
            Choice::PassedOver => return 0,
            Choice::NoneUntil(due_ns) => {
                self.timekeeper.marks_again(due_ns);
                return 0;
            }
        };
        self.timekeeper.has_marked();
        if self.id != PeId::DRIVER {
            self.account.told().sent.keep(Sent { pe: self.id.0, number, at_ns });
        }
        number
    }

    /// A message that is followed starts what comes next, which is timed for that.
    #[cold]
    pub(super) fn started_by(&mut self, mark: Mark, bytes: u64) {
        self.timekeeper.times_next(&self.account, self.node.now_ns());
        self.sampling.cause = Some(Cause { pe: mark.from.0, number: mark.number, bytes });
    }

    /// What was timed has ended just now.
    pub(super) fn sample(&mut self, (chare_type, entry): (u16, u16), timed: Timed) {
        let Some(name) = self.account.tally().name(chare_type, entry) else { return };
        let end_ns = self.account.switched_ns();
        if let Some(ran) = self.sampling.ran((self.id, name), timed.took_ns, end_ns) {
            self.account.told().ran.keep(ran);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_chosen_than_the_rate_permits_and_some_at_once_after_a_pause() {
        let mut rate = Rate::new(100);
        let permitted = |rate: &mut Rate, from_ms: u64, to_ms: u64| {
            (from_ms * 100..to_ms * 100).filter(|at| rate.permits(at * 10_000)).count()
        };
        assert_eq!(permitted(&mut rate, 1000, 2000), 15 + 100);
        assert_eq!(permitted(&mut rate, 2000, 3000), 100);
        assert_eq!(permitted(&mut rate, 9000, 9001), 16, "after a pause");
        assert!(!rate.has_plenty(9_080_000_000) && rate.has_plenty(9_090_000_000), "half of them");
        let mut off = Rate::new(0);
        assert_eq!(permitted(&mut off, 0, 1000), 0);
    }

    #[test]
    fn where_few_messages_are_sent_all_are_followed() {
        let mut sampling = Sampling::new(100, NodeId(2));
        let chosen = (1..=50).map(|at| sampling.sends(at * 1_000_000_000));
        assert!(chosen.eq((1..=50).map(|number| Choice::Followed(number + (2 << 24)))));
        let at_once: Vec<Choice> = (0..100).map(|_| sampling.sends(60_000_000_000)).collect();
        assert_eq!(at_once.iter().filter(|choice| matches!(choice, Choice::Followed(_))).count(), 16);
        assert!(at_once.contains(&Choice::NoneUntil(60_010_000_000)), "enough for now: {at_once:?}");
    }

    #[test]
    fn who_waited_says_how_long_and_for_what() {
        let mut sampling = Sampling::new(1000, NodeId(0));
        let ran = |sampling: &mut Sampling, took_ns, end_ns| {
            sampling.ran((PeId(3), 7), took_ns, end_ns).map(|ran| (ran.began_ns, ran.idle_ns, ran.cause))
        };
        sampling.was_idle(1_000_000, 1_500_000);
        sampling.was_idle(1_500_200, 2_000_000);
        let cause = Cause { pe: 5, number: 9, bytes: 100 };
        sampling.cause = Some(cause);
        assert_eq!(ran(&mut sampling, 500, 2_001_000), Some((2_000_500, 1_000_000, Some(cause))));
        assert_eq!(ran(&mut sampling, 500, 2_002_000), Some((2_001_500, 0, None)), "it waited once");
        sampling.was_idle(3_000_000, 4_000_000);
        assert_eq!(ran(&mut sampling, 500, 5_000_000), Some((4_999_500, 0, None)), "long after that");
    }
}
