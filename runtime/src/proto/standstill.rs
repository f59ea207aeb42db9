//! Whether this process itself stood still: stopped by its user, suspended with its machine, or starved.
//!
//! Silence tells a dead node from a live one only while the observer runs. One that stood still finds its links
//! timed out when it goes on, and its nodes gone, which waited for it in vain; what it then says of them is true
//! of itself. So it compares the times of its own looks at the clock, before it accuses anybody.

use std::time::Duration;

/// How often to look when nothing else happens.
pub const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// A gap between two looks from here on is a standstill that can cost nodes: they wait less than twice as long.
const STANDSTILL: Duration = Duration::from_secs(3);

/// What a standstill broke shows itself so soon after it; what breaks later has another cause.
const AFTERMATH: Duration = Duration::from_secs(5);

/// The gaps between looks at the clock.
#[derive(Clone, Debug)]
pub struct Standstill {
    last_look: Duration,
    /// The latest standstill: when it ended, and how long it was.
    latest: Option<(Duration, Duration)>,
}

impl Standstill {
    /// Begins to watch at `now`.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        Self { last_look: now, latest: None }
    }

    /// Looks at the clock; to be called at least every [`LOOK_PERIOD`], and before [`explains`](Self::explains).
    pub fn look(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.last_look);
        if gap >= STANDSTILL {
            self.latest = Some((now, gap));
        }
        self.last_look = now;
    }

    /// The length of a standstill that explains why links break at `now`, if there was one just before.
    #[must_use]
    pub fn explains(&self, now: Duration) -> Option<Duration> {
        let (ended, length) = self.latest?;
        (now.saturating_sub(ended) <= AFTERMATH).then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_standstill_explains_what_breaks_right_after_it_and_nothing_later() {
        let mut own = Standstill::new(Duration::ZERO);
        (0..40).for_each(|tick| own.look(tick * LOOK_PERIOD));
        assert_eq!(own.explains(10_000 * MS), None);
        own.look(16_750 * MS);
        assert_eq!(own.explains(16_800 * MS), Some(7000 * MS));
        own.look(16_000 * MS);
        assert_eq!(own.explains(16_800 * MS), Some(7000 * MS), "a clock that steps back does no harm");
        assert_eq!(own.explains(21_800 * MS), None);
    }
}
