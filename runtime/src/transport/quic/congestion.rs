//! How much may be under way: by Cubic where hosts are near each other, by BBR where they are far.
//!
//! Cubic takes each loss for a path that is full. Where a round trip is short it recovers at once, and of the two it is
//! the simpler and the better tried. Over 20 ms, with one packet of a hundred lost for other reasons, it falls to 1 MB/s;
//! BBR, which goes by the rate at which packets arrive, reached 68 there (`runtime/examples/wire.rs`).

use quinn::congestion::{BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use quinn_proto::RttEstimator;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A host whose answers take at least so long is far.
const FAR: Duration = Duration::from_millis(2);
/// After so many acknowledgements the shortest round trip is known: a busy host answers late, but not each time.
const SAMPLES: u32 = 64;
/// May be under way before anything is known of a path, bytes; as BBR has it. With the 14 KiB of TCP, 64 KiB over a new
/// connection of 20 ms took two round trips and not one.
const INITIAL_WINDOW_BYTES: u64 = 240_000;

/// How links share a path, and how fast they take it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// Cubic for round trips below 2 ms, else BBR.
    #[default]
    Auto,
    /// As most of TCP does: gives way at each loss.
    Cubic,
    /// By the rate at which packets arrive, which single losses do not change.
    Bbr,
}

impl Congestion {
    pub(super) fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        let (mut cubic, mut bbr) = (CubicConfig::default(), BbrConfig::default());
        cubic.initial_window(INITIAL_WINDOW_BYTES);
        bbr.initial_window(INITIAL_WINDOW_BYTES);
        match self {
            Self::Auto => Arc::new(ByDistance { near: Arc::new(cubic), far: Arc::new(bbr) }),
            Self::Cubic => Arc::new(cubic),
            Self::Bbr => Arc::new(bbr),
        }
    }
}

struct ByDistance {
    near: Arc<CubicConfig>,
    far: Arc<BbrConfig>,
}

impl ControllerFactory for ByDistance {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Undecided {
            chosen: Arc::clone(&self.near).build(now, current_mtu),
            other: Some(Arc::clone(&self.far).build(now, current_mtu)),
            is_far: false,
            samples: 0,
        })
    }
}

/// Both, until it is known how far the other host is; then one.
struct Undecided {
    chosen: Box<dyn Controller>,
    other: Option<Box<dyn Controller>>,
    is_far: bool,
    samples: u32,
}

impl Undecided {
    fn learn(&mut self, shortest: Duration) {
        let Some(other) = &mut self.other else { return };
        if (shortest >= FAR) != self.is_far {
            std::mem::swap(&mut self.chosen, other);
            self.is_far = !self.is_far;
        }
        self.samples += 1;
        if self.samples == SAMPLES {
            self.other = None;
        }
    }

    fn each(&mut self, mut tell: impl FnMut(&mut dyn Controller)) {
        tell(&mut *self.chosen);
        if let Some(other) = &mut self.other {
            tell(&mut **other);
        }
    }
}

impl Controller for Undecided {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.each(|one| one.on_sent(now, bytes, last_packet_number));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.each(|one| one.on_ack(now, sent, bytes, app_limited, rtt));
        self.learn(rtt.min());
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.each(|one| one.on_end_acks(now, in_flight, app_limited, largest));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.each(|one| one.on_congestion_event(now, sent, is_persistent, lost_bytes));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.each(|one| one.on_mtu_update(new_mtu));
    }

    fn window(&self) -> u64 {
        self.chosen.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.chosen.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            chosen: self.chosen.clone_box(),
            other: self.other.as_ref().map(|other| other.clone_box()),
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        self.chosen.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn undecided() -> Undecided {
        let built = Congestion::Auto.factory().build(Instant::now(), 1200);
        *built.into_any().downcast::<Undecided>().unwrap()
    }

    /// Of the two only BBR has a rate of its own.
    fn is_bbr(one: &dyn Controller) -> bool {
        one.metrics().pacing_rate.is_some()
    }

    #[test]
    fn near_hosts_get_cubic_and_far_ones_bbr_for_good() {
        for (shortest, far) in [(MS / 5, false), (20 * MS, true)] {
            let mut one = undecided();
            for sample in 0..SAMPLES {
                assert!(sample == 0 || is_bbr(&one) == far);
                one.learn(shortest);
            }
            one.learn(MS);
            assert_eq!(is_bbr(&one), far);
            assert_eq!(is_bbr(&*one.clone_box()), far);
        }
    }

    #[test]
    fn a_near_host_that_answers_late_at_first_is_not_far() {
        let mut one = undecided();
        (0..SAMPLES / 2).for_each(|_| one.learn(30 * MS));
        (0..SAMPLES).for_each(|_| one.learn(MS));
        assert!(!is_bbr(&one));
    }

    #[test]
    fn until_then_both_are_told_everything() {
        let mut one = undecided();
        let (now, mtu) = (Instant::now(), 6000);
        let cubic_before = one.window();
        one.on_congestion_event(now, now, false, 1200);
        assert!(one.window() < cubic_before);
        one.on_mtu_update(mtu);
        one.learn(20 * MS);
        assert!(is_bbr(&one) && one.window() >= INITIAL_WINDOW_BYTES);
        one.learn(MS);
        assert!(!is_bbr(&one) && one.window() < cubic_before, "it has not forgotten the loss");
    }
}
