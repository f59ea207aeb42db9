//! The part of its core that a PE may use: it works, and then sleeps for what it owes to the core's owner.

use std::time::Duration;

/// What a PE with a share of its core owes. All times are those of the node's clock.
#[derive(Debug)]
pub(crate) struct Share {
    share: f64,
    is_whole: bool,
    debt_ns: u64,
    /// All work up to here is in the debt, and all sleep is over.
    settled_ns: u64,
    /// Begin of the present piece of work.
    since_ns: u64,
}

impl Share {
    /// Debts are paid back in pieces of at least this long, for shorter sleeps are not exact.
    pub(crate) const PIECE: Duration = Duration::from_millis(2);

    /// A PE that may use `share` of its core, 0 to 1.
    pub(crate) fn new(share: f64) -> Self {
        Self { share, is_whole: share >= 1.0, debt_ns: 0, settled_ns: 0, since_ns: 0 }
    }

    /// Whether the whole core may be used: then nothing is ever owed.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// A piece of work begins.
    pub(crate) fn begins(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// The piece of work that began last is done.
    pub(crate) fn ends(&mut self, now_ns: u64) {
        self.worked(self.since_ns, now_ns);
    }

    /// Adds what is owed for the work done since `from_ns`; what has been charged before, or was sleep, is not
    /// charged again.
    pub(crate) fn worked(&mut self, from_ns: u64, now_ns: u64) {
        if self.is_whole() {
            return;
        }
        let worked_ns = now_ns.saturating_sub(from_ns.max(self.settled_ns));
        self.debt_ns += (worked_ns as f64 * (1.0 / self.share - 1.0)) as u64;
        self.settled_ns = now_ns;
    }

    /// What is owed, if that is at least `piece`; the caller is to sleep so long and then say
    /// [`rested`](Self::rested).
    pub(crate) fn due(&mut self, piece: Duration) -> Option<Duration> {
        let debt = Duration::from_nanos(self.debt_ns);
        if debt.is_zero() || debt < piece {
            return None;
        }
        self.debt_ns = 0;
        Some(debt)
    }

    /// Up to now the PE did not work, so it owes nothing for that time.
    pub(crate) fn rested(&mut self, now_ns: u64) {
        self.settled_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn work_is_charged_once_and_sleep_never() {
        let mut share = Share::new(0.25);
        share.worked(10 * MS, 11 * MS);
        assert_eq!(share.due(Duration::from_millis(4)), None, "too little to sleep for");
        assert_eq!(share.due(Share::PIECE), Some(Duration::from_millis(3)));
        share.rested(14 * MS);
        // The stretch around all this: only what came after the sleep is new.
        share.worked(9 * MS, 15 * MS);
        assert_eq!(share.due(Duration::ZERO), Some(Duration::from_millis(3)));
        assert_eq!(share.due(Duration::ZERO), None);
    }

    #[test]
    fn a_whole_core_is_owed_to_nobody() {
        let mut share = Share::new(1.0);
        share.worked(0, 1000 * MS);
        assert_eq!(share.due(Duration::ZERO), None);
    }
}
