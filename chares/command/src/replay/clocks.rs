//! The clocks of nodes on that of the launcher.
//!
//! A node's clock is read between a question of the launcher and its answer, so the middle of these is off by at most
//! half the time between them (Cristian 1989). Of several readings the shortest counts. With readings from both ends of
//! a run, what a clock gains on the way is spread evenly.

use runtime::monitor::recording::Recorded;
use runtime::monitor::wire::{ClockReading, MonitorEvent};
use std::collections::BTreeMap;

/// Readings that close together are of one moment.
const MOMENT_NS: u64 = 2_000_000_000;
/// No sound clock gains or loses more: twice what a kernel allows.
const GAIN_MAX: f64 = 1e-3;
/// Times beyond this (ten years) are nonsense and are cut off, so that all sums fit.
const TIME_MAX_NS: u64 = 315_360_000_000_000_000;

/// How a node's clock stands to the launcher's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Clock {
    /// A reading of it.
    uptime_ns: i64,
    /// What the launcher's showed beyond it then.
    ahead_ns: i64,
    /// What that grows by per nanosecond.
    gain: f64,
    /// How far it may be off; `None` if that is not known, because no question was answered.
    pub(crate) precision_ns: Option<u64>,
}

impl Clock {
    /// The launcher's time when the node's was `uptime_ns`.
    pub(crate) fn launcher_ns(&self, uptime_ns: u64) -> i64 {
        let uptime = nanos(uptime_ns);
        uptime + self.ahead_ns + ((uptime - self.uptime_ns) as f64 * self.gain).round() as i64
    }
}

/// A clock reading of one node.
#[derive(Clone, Copy)]
struct Reading {
    asked: u64,
    uptime: i64,
    ahead: i64,
    /// Half the time from question to answer.
    off: u64,
}

/// The clocks of all nodes that told anything.
pub(crate) fn clocks(events: &[Recorded]) -> BTreeMap<u16, Clock> {
    let mut readings: BTreeMap<u16, Vec<Reading>> = BTreeMap::new();
    // A snapshot was taken before it came: the quickest gives the best bound.
    let mut bounds: BTreeMap<u16, i64> = BTreeMap::new();
    for recorded in events {
        match &recorded.event {
            MonitorEvent::Clocks(reading) => {
                for (node, uptime) in &reading.uptimes {
                    readings.entry(*node).or_default().extend(read(reading, *uptime));
                }
            }
            MonitorEvent::Snapshot(snapshot) => {
                let at = i64::try_from(recorded.at.as_nanos()).unwrap_or(i64::MAX / 4);
                let ahead = at - nanos(snapshot.uptime_ns);
                bounds.entry(snapshot.node).and_modify(|least| *least = ahead.min(*least)).or_insert(ahead);
            }
            _ => {}
        }
    }
    let mut clocks: BTreeMap<u16, Clock> =
        bounds.into_iter().map(|(node, ahead_ns)| (node, Clock { ahead_ns, ..Clock::default() })).collect();
    clocks.extend(readings.iter().filter_map(|(node, readings)| Some((*node, clock(readings)?))));
    clocks
}

fn read(reading: &ClockReading, uptime_ns: u64) -> Option<Reading> {
    let (asked, answered) = (reading.asked_ns.min(TIME_MAX_NS), reading.answered_ns.min(TIME_MAX_NS));
    let off = answered.checked_sub(asked)? / 2;
    let uptime = nanos(uptime_ns);
    Some(Reading { asked, uptime, ahead: nanos(asked + off) - uptime, off })
}

fn clock(readings: &[Reading]) -> Option<Clock> {
    let (first, last) = (readings.first()?.asked, readings.last()?.asked);
    let best_in = |from: u64, to: u64| {
        readings
            .iter()
            .filter(|reading| (from..=to).contains(&reading.asked))
            .min_by_key(|reading| reading.off)
    };
    let best = best_in(0, u64::MAX)?;
    let fixed =
        Clock { uptime_ns: best.uptime, ahead_ns: best.ahead, gain: 0.0, precision_ns: Some(best.off) };
    if last < first.saturating_add(MOMENT_NS) {
        return Some(fixed);
    }
    let early = best_in(first, first.saturating_add(MOMENT_NS))?;
    let late = best_in(last.saturating_sub(MOMENT_NS), last)?;
    let gain = (late.ahead - early.ahead) as f64 / (late.uptime - early.uptime) as f64;
    if !gain.is_finite() || gain.abs() > GAIN_MAX {
        return Some(fixed);
    }
    let precision_ns = Some(early.off.max(late.off));
    Some(Clock { uptime_ns: early.uptime, ahead_ns: early.ahead, gain, precision_ns })
}

fn nanos(time: u64) -> i64 {
    time.min(TIME_MAX_NS).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use runtime::monitor::wire::NodeSnapshot;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn reading(asked_ns: u64, answered_ns: u64, uptime: u64) -> Recorded {
        let event = MonitorEvent::Clocks(ClockReading { asked_ns, answered_ns, uptimes: vec![(1, uptime)] });
        Recorded { at: Duration::from_nanos(answered_ns), event }
    }

    #[test]
    fn the_shortest_of_several_readings_counts() {
        // The node began at 5 s of the launcher.
        let events = [(0, 900, 100), (2000, 2040, 2019), (3000, 3800, 3790)]
            .map(|(asked, answered, read)| reading(5 * SECOND + asked, 5 * SECOND + answered, read));
        let clock = clocks(&events)[&1];
        assert_eq!((clock.launcher_ns(0), clock.precision_ns), (5 * 1_000_000_000 + 1, Some(20)));
    }

    #[test]
    fn what_a_clock_gains_is_spread_over_the_run() {
        // 50 millionths too slow, over an hour.
        let slow = |at: u64| at - at / 20_000;
        let events = [1, 3601].map(|s| reading(s * SECOND - 100, s * SECOND + 100, slow(s * SECOND)));
        let clock = clocks(&events)[&1];
        let off = clock.launcher_ns(slow(1800 * SECOND)) - 1800 * 1_000_000_000;
        assert!(off.abs() < 100 && clock.precision_ns == Some(100), "{off}");
    }

    #[test]
    fn without_a_reading_the_quickest_snapshot_tells() {
        let snapshot = |at, uptime_ns| Recorded {
            at: Duration::from_nanos(at),
            event: MonitorEvent::Snapshot(NodeSnapshot { node: 1, uptime_ns, ..NodeSnapshot::default() }),
        };
        let clock = clocks(&[snapshot(1900, 1000), snapshot(2300, 2000), snapshot(3700, 3000)])[&1];
        assert_eq!((clock.launcher_ns(0), clock.precision_ns), (300, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_file_makes_it_panic(
            readings in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..6), at: u64,
        ) {
            let events: Vec<Recorded> = readings.iter().map(|&(a, b, c)| reading(a, b, c)).collect();
            for clock in clocks(&events).values() {
                clock.launcher_ns(at);
            }
        }

        /// True times of clocks with any start, rate and delays lie within the precision that is stated.
        #[test]
        fn the_stated_precision_holds(
            start in 0..10 * SECOND,
            ppm in -100..=100i64,
            readings in proptest::collection::vec((0..600 * SECOND, 0..1_000_000u64, 0..1_000_000u64), 1..8),
        ) {
            let node = |at: u64| (at - start) as i64 + (at - start) as i64 / 1_000_000 * ppm;
            let mut moments: Vec<_> =
                readings.iter().map(|&(at, there, back)| (start + SECOND + at, there, back)).collect();
            moments.sort_unstable();
            let events: Vec<Recorded> = moments
                .iter()
                .map(|&(at, there, back)| reading(at - there, at + back, node(at).cast_unsigned()))
                .collect();
            let clock = clocks(&events)[&1];
            // Between the first and the last reading; within a moment a clock gains little.
            for &(at, ..) in [&moments[0], &moments[moments.len() - 1]] {
                let off = (clock.launcher_ns(node(at).cast_unsigned()) - at.cast_signed()).unsigned_abs();
                prop_assert!(off <= clock.precision_ns.unwrap() + 2 * MOMENT_NS / 10_000 + 2000, "{off}");
            }
        }
    }
}
