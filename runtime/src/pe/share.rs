//! The part of its core that a PE may use: it works, and then sleeps for what it owes to the core's owner.
//!
//! What it may use is processor time, as a quota of the system is: while it waits for others to leave the core, or for messages, it
//! uses nothing, and that wait is as good as sleep. PEs that take turns on a core thus have all of their shares there, as long as
//! these fit, and one that waits for others in each step anyhow does not keep these waiting while it sleeps.

use std::time::Duration;

/// What a PE with a share of its core owes. All times but processor time are those of the node's clock.
#[derive(Debug)]
pub(crate) struct Share {
    share: f64,
    is_whole: bool,
    /// Sleep that is owed; less than nothing where the PE waited, or slept, for longer than it had to.
    owed_ns: i64,
    /// Time at work for which nothing is owed yet.
    worked_ns: u64,
    /// Processor time that the PE had used when debts were last reckoned.
    used_ns: u64,
    /// All work up to here is counted, and all sleep is over.
    settled_ns: u64,
    /// Begin of the present piece of work.
    since_ns: u64,
}

impl Share {
    /// Debts are paid back in pieces of at least this long, for shorter sleeps are not exact.
    pub(crate) const PIECE: Duration = Duration::from_millis(2);
    /// Nobody catches up on more waiting than this: a period of the system's own quotas, unless they are set otherwise.
    const AHEAD_MAX_NS: i64 = 100_000_000;

    /// A PE that may use `share` of its core, 0 to 1.
    pub(crate) fn new(share: f64) -> Self {
        let is_whole = share >= 1.0;
        Self { share, is_whole, owed_ns: 0, worked_ns: 0, used_ns: 0, settled_ns: 0, since_ns: 0 }
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

    /// Counts the work done since `from_ns`; what has been counted before, or was sleep, is not counted again.
    pub(crate) fn worked(&mut self, from_ns: u64, now_ns: u64) {
        if self.is_whole() {
            return;
        }
        self.worked_ns += now_ns.saturating_sub(from_ns.max(self.settled_ns));
        self.settled_ns = now_ns;
    }

    /// What is owed, if that is at least `piece` and anything; the caller is to sleep so long and then say
    /// [`slept`](Self::slept). `processor_ns` says what processor time the PE has used so far, if the system tells; it is asked
    /// only where so much may be owed.
    pub(crate) fn due(
        &mut self,
        piece: Duration,
        processor_ns: impl FnOnce() -> Option<u64>,
    ) -> Option<Duration> {
        let piece_ns = i64::try_from(piece.as_nanos()).unwrap_or(i64::MAX).max(1);
        if self.owed_ns + self.sleep_ns(self.worked_ns) < piece_ns {
            return None;
        }
        let worked_ns = std::mem::take(&mut self.worked_ns);
        let now_ns = processor_ns();
        let used_ns = now_ns.map_or(worked_ns, |now| now.saturating_sub(self.used_ns).min(worked_ns));
        self.used_ns = now_ns.unwrap_or(self.used_ns);
        self.owes(self.sleep_ns(used_ns) - (worked_ns - used_ns) as i64);
        u64::try_from(self.owed_ns).ok().filter(|_| self.owed_ns >= piece_ns).map(Duration::from_nanos)
    }

    /// The PE slept for what it owes.
    pub(crate) fn slept(&mut self, from_ns: u64, now_ns: u64) {
        self.owes(-(now_ns.saturating_sub(from_ns) as i64));
        self.settled_ns = now_ns;
    }

    /// The PE had nothing to do, and used nothing of its core.
    pub(crate) fn rested(&mut self, from_ns: u64, now_ns: u64) {
        if self.is_whole() {
            return;
        }
        let from_ns = from_ns.max(self.settled_ns);
        self.slept(from_ns, now_ns);
    }

    /// What begins now is looked at alone: nothing of it makes up for earlier waits, and the time up to now was not work.
    pub(crate) fn begins_anew(&mut self, now_ns: u64) {
        self.owed_ns = self.owed_ns.max(0);
        self.settled_ns = now_ns;
    }

    /// For so much processor time.
    fn sleep_ns(&self, used_ns: u64) -> i64 {
        (used_ns as f64 * (1.0 / self.share - 1.0)) as i64
    }

    fn owes(&mut self, more_ns: i64) {
        self.owed_ns = self.owed_ns.saturating_add(more_ns).max(-Self::AHEAD_MAX_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sleeps(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    #[test]
    fn work_is_charged_once_and_sleep_never() {
        let mut share = Share::new(0.25);
        share.worked(10 * MS, 11 * MS);
        let too_early = || panic!("too little is owed to ask for processor time");
        assert_eq!(share.due(Duration::from_millis(4), too_early), None, "too little to sleep for");
        assert_eq!(share.due(Share::PIECE, || Some(MS)), sleeps(3));
        share.slept(11 * MS, 14 * MS);
        // The stretch around all this: only what came after the sleep is new.
        share.worked(9 * MS, 15 * MS);
        assert_eq!(share.due(Duration::ZERO, || Some(2 * MS)), sleeps(3));
        share.slept(15 * MS, 18 * MS);
        assert_eq!(share.due(Duration::ZERO, || Some(2 * MS)), None);
    }

    #[test]
    fn what_a_pe_waits_for_its_core_is_as_good_as_sleep() {
        let mut share = Share::new(0.25);
        // Of these 10 ms it had its core for 4, so it may have it again after 16.
        share.worked(0, 10 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(4 * MS)), sleeps(6));
        // It wakes 1 ms late.
        share.slept(10 * MS, 17 * MS);
        share.worked(17 * MS, 18 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(5 * MS)), sleeps(2));
        share.slept(18 * MS, 20 * MS);
        // It had its core for less than it may.
        share.worked(20 * MS, 40 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(6 * MS)), None);
        share.worked(40 * MS, 46 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(12 * MS)), sleeps(2));
    }

    #[test]
    fn not_more_than_a_period_of_waiting_is_made_up_for() {
        let mut share = Share::new(0.5);
        share.worked(0, 5000 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(0)), None);
        share.worked(5000 * MS, 5110 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(110 * MS)), sleeps(10));
    }

    #[test]
    fn a_pe_that_had_nothing_to_do_for_as_long_as_it_owes_does_not_sleep() {
        let mut share = Share::new(0.5);
        share.worked(0, 3 * MS);
        share.rested(3 * MS, 5 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(3 * MS)), None, "only 1 ms is owed");
        share.worked(5 * MS, 8 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(6 * MS)), sleeps(4));
        share.slept(8 * MS, 12 * MS);
        // What was sleep was no rest, too.
        share.rested(9 * MS, 13 * MS);
        share.worked(13 * MS, 16 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(9 * MS)), sleeps(2));
        // However long nothing was to do, it is good for no more than a period.
        share.rested(16 * MS, 5000 * MS);
        share.worked(5000 * MS, 5130 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(139 * MS)), sleeps(30));
    }

    #[test]
    fn what_begins_anew_makes_up_for_nothing() {
        let mut share = Share::new(0.5);
        share.worked(0, 50 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(0)), None);
        share.begins_anew(60 * MS);
        share.worked(55 * MS, 70 * MS);
        assert_eq!(share.due(Share::PIECE, || Some(10 * MS)), sleeps(10));
    }

    #[test]
    fn where_the_system_does_not_tell_processor_time_all_work_is_charged() {
        let mut share = Share::new(0.5);
        share.worked(0, 10 * MS);
        assert_eq!(share.due(Share::PIECE, || None), sleeps(10));
    }

    #[test]
    fn a_whole_core_is_owed_to_nobody() {
        let mut share = Share::new(1.0);
        share.worked(0, 1000 * MS);
        assert_eq!(share.due(Duration::ZERO, || Some(1000 * MS)), None);
    }
}
