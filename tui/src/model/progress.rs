//! How far a phase is, and how long it may still take: from its mean rate so far and from that of the last seconds.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use runtime::monitor::wire::Phase;

use crate::figures;

/// What counts as the last seconds.
const RECENT: Duration = Duration::from_secs(10);
/// Steps remembered of them.
const STEPS: usize = 128;
/// Before that nothing is foretold.
const YOUNG: Duration = Duration::from_secs(2);

/// Bounds of the time that a phase may still take; as text in words, such as `about 10s left`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// It takes no less.
    pub least: Duration,
    /// It takes no more; `None` if it stood still in the last seconds.
    pub most: Option<Duration>,
}

impl fmt::Display for Remaining {
    /// Bounds that differ by little are one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most } = *self;
        let from = figures::age(least);
        match most.map(|most| (figures::age(most), most)) {
            None => write!(f, "over {from} left"),
            Some((to, most)) if most.as_secs_f64() <= 1.25 * least.as_secs_f64() + 1.0 => {
                write!(f, "about {to} left")
            }
            Some((to, _)) => write!(f, "{from} to {to} left"),
        }
    }
}

/// The present phase of a run as a viewer hears of it, on the viewer's clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub(crate) phase: Phase,
    /// When the viewer first heard of it, and of what then.
    begun: (Duration, u64),
    steps: VecDeque<(Duration, u64)>,
}

impl Progress {
    /// A phase of which the viewer hears at that time for the first time.
    pub(crate) fn new(phase: Phase, now: Duration) -> Self {
        let begun = (now, phase.done);
        Self { phase, begun, steps: VecDeque::from([begun]) }
    }

    /// The run has got so far: in the same phase, or in one that begins.
    pub fn take(&mut self, phase: Phase, now: Duration) {
        if self.phase.goes_on(&phase) {
            self.advance(phase, now);
        } else {
            *self = Self::new(phase, now);
        }
    }

    /// What the run told of its phase last.
    #[must_use]
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    fn advance(&mut self, phase: Phase, now: Duration) {
        let done = phase.done;
        self.phase = phase;
        if self.steps.back().is_some_and(|step| step.1 == done) {
            return;
        }
        self.steps.push_back((now, done));
        while self.steps.len() > STEPS
            || self.steps.get(1).is_some_and(|step| step.0.saturating_add(RECENT) < now)
        {
            self.steps.pop_front();
        }
    }

    /// The time it may still take, if it is known how much is to be done and two units have been seen to be done.
    /// Both bounds assume that the rest costs as much per unit as what was done.
    #[must_use]
    pub fn remaining(&self, now: Duration) -> Option<Remaining> {
        let Phase { done, total, .. } = self.phase;
        let rest = total.checked_sub(done).filter(|rest| *rest > 0)? as f64;
        let &(old, before) = self.steps.front()?;
        let (age, seen) = (now.saturating_sub(self.begun.0), done.saturating_sub(self.begun.1));
        if age < YOUNG || seen < 2 {
            return None;
        }
        let time = |seen: u64, took: Duration| {
            Duration::try_from_secs_f64(rest * took.as_secs_f64() / seen as f64).ok()
        };
        let mean = time(seen, age)?;
        // Of the last seconds only, although a step may have taken longer.
        let recent = match (done - before.min(done), now.saturating_sub(old)) {
            (0, _) => None,
            (seen, took) => time(seen, took),
        };
        Some(match recent {
            Some(recent) => Remaining { least: mean.min(recent), most: Some(mean.max(recent)) },
            None => Remaining { least: mean, most: None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// A phase of 100 units that is so far at these times, and what remains at the time `now`.
    fn remaining(steps: &[(u64, u64)], now: u64) -> Option<Remaining> {
        let phase = |done| Phase { name: "column".into(), done, total: 100, ..Phase::default() };
        let mut progress = Progress::new(phase(steps[0].1), seconds(steps[0].0));
        for &(at, done) in &steps[1..] {
            assert!(progress.phase.goes_on(&phase(done)));
            progress.advance(phase(done), seconds(at));
        }
        progress.remaining(seconds(now))
    }

    fn between(least: u64, most: u64) -> Option<Remaining> {
        Some(Remaining { least: seconds(least), most: Some(seconds(most)) })
    }

    #[test]
    fn a_steady_phase_has_one_estimate() {
        let steps: Vec<_> = (0..=40).map(|second| (second, second)).collect();
        assert_eq!(remaining(&steps, 40), between(60, 60));
    }

    #[test]
    fn a_phase_that_slows_down_or_was_joined_late_has_two() {
        // 40 units in 20 s, then one a second.
        let steps: Vec<_> = (0..=20).map(|s| (s, 2 * s)).chain((21..=40).map(|s| (s, s + 20))).collect();
        let Remaining { least, most } = remaining(&steps, 40).unwrap();
        assert_eq!((least.as_millis(), most), (26_666, Some(seconds(40))));
        assert_eq!(remaining(&[(100, 50), (105, 60)], 105), between(20, 20));
    }

    /// As of an iteration of which it is known only after a while, and not well, how long it will be.
    #[test]
    fn a_forecast_that_changes_changes_the_estimate() {
        let phase = |done, total| Phase { done, total, is_forecast: true, ..Phase::default() };
        let mut progress = Progress::new(phase(0, 0), seconds(0));
        for second in 1..=20 {
            let next = phase(2 * second, if second < 10 { 0 } else { 100 + second });
            assert!(progress.phase.goes_on(&next));
            progress.advance(next, seconds(second));
            let left = (second >= 10).then_some((100 - second) / 2);
            let said = progress.remaining(seconds(second)).map(|left| left.least.as_secs());
            assert_eq!(said, left, "after {second} s");
        }
        let fixed = Phase { is_forecast: false, ..phase(50, 200) };
        assert!(!progress.phase.goes_on(&fixed) && !progress.phase.goes_on(&phase(39, 120)));
    }

    #[test]
    fn nothing_is_foretold_from_nothing() {
        assert_eq!(remaining(&[(0, 0)], 60), None);
        assert_eq!(remaining(&[(0, 0), (1, 50)], 1), None, "too young");
        assert_eq!(remaining(&[(0, 0), (5, 1)], 5), None, "one unit may be any");
        assert_eq!(remaining(&[(0, 0), (5, 100)], 6), None, "done");
    }

    #[test]
    fn standing_still_makes_the_estimate_longer() {
        let steps = [(0, 0), (1, 10), (2, 20)];
        assert_eq!(remaining(&steps, 2), between(8, 8));
        assert_eq!(remaining(&steps, 20), between(80, 80));
    }
}
