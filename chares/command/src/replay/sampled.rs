//! Single entry methods and messages of a recording, on the launcher's clock.

use super::clocks::Clock;
use runtime::monitor::critical_path::Call;
use runtime::monitor::recording::Recording;
use runtime::monitor::wire::MonitorEvent;
use std::collections::{BTreeMap, HashMap};

/// What is known of them, times in nanoseconds.
#[derive(Default)]
pub(crate) struct Sampled {
    pub(crate) calls: Vec<Call>,
    /// When the messages left that are followed, by their PE and number.
    pub(crate) sent: HashMap<(u32, u32), i64>,
}

impl Sampled {
    /// Those of a recording whose nodes have these clocks, with `first` as the beginning of time.
    pub(super) fn of(recording: &Recording, clocks: &BTreeMap<u16, Clock>, first: i64) -> Self {
        let mut sampled = Self::default();
        for recorded in &recording.events {
            let MonitorEvent::Samples(samples) = &recorded.event else { continue };
            let Some(clock) = clocks.get(&samples.node) else { continue };
            let time = |uptime_ns: u64| clock.launcher_ns(uptime_ns) - first;
            sampled.calls.extend(samples.ran.iter().map(|ran| Call::of(ran, time)));
            sampled.sent.extend(samples.sent.iter().map(|one| ((one.pe, one.number), time(one.at_ns))));
        }
        sampled.calls.sort_by_key(|call| (call.pe, call.from));
        sampled
    }
}
