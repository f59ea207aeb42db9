//! How much may be under way: by Cubic, and by BBR where hosts are far from each other and packets are lost.
//!
//! Cubic takes each loss for a path that is full. Where a round trip is short it recovers at once, and of the two it
//! is the simpler and the better tried. Over 20 ms, with one packet of a hundred lost for other reasons, it falls to
//! 1 MB/s; BBR, which goes by the rate at which packets arrive, does not. But BBR begins by emptying the path for 200
//! ms, and does so again every ten seconds, which between near hosts is longer than many a step of a program: it must
//! not be taken for them by mistake.
//!
//! Measured with `runtime/examples/wire.rs` between two hosts of one machine: over 20 ms with 1 % of the packets lost,
//! Cubic moves 0.8 MB/s and BBR 68; over 2 ms with 0.1 % lost, 20 and 260. On a LAN with 1 Gbit/s and a round trip of
//! 0.2 ms both reach 119 MB/s. So a link uses Cubic until a packet is lost on a path whose round trip takes at least
//! 5 ms.

use quinn::congestion::{BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use quinn_proto::RttEstimator;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A host that never answers sooner is far. Acknowledgements may be held back for so long.
const FAR: Duration = super::settings::ACK_DELAY_MAX;
/// So many acknowledgements must have been late: a busy host answers late too, but not each time.
const SAMPLES: u32 = 16;
/// May be under way before anything is known of a path, bytes; as BBR has it. With the 14 KiB of TCP, 64 KiB over a new
/// connection of 20 ms took two round trips and not one.
const INITIAL_WINDOW_BYTES: u64 = 240_000;

/// How links share a path, and how fast they take it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// Cubic until a packet is lost on a path whose round trip takes at least 5 ms, then BBR.
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
        Box::new(ByDistanceController {
            chosen: Arc::clone(&self.near).build(now, current_mtu),
            other: Some(Arc::clone(&self.far).build(now, current_mtu)),
            samples: 0,
        })
    }
}

/// Cubic, and BBR beside it as long as the other host may be far.
struct ByDistanceController {
    chosen: Box<dyn Controller>,
    other: Option<Box<dyn Controller>>,
    samples: u32,
}

impl ByDistanceController {
    fn learn(&mut self, shortest: Duration) {
        self.samples = self.samples.saturating_add(1);
        if shortest < FAR {
            self.other = None;
        }
    }

    fn lost(&mut self) {
        if let Some(far) = self.other.take_if(|_| self.samples >= SAMPLES) {
            self.chosen = far;
        }
    }

    fn each(&mut self, mut tell: impl FnMut(&mut dyn Controller)) {
        tell(&mut *self.chosen);
        if let Some(other) = &mut self.other {
            tell(&mut **other);
        }
    }
}

impl Controller for ByDistanceController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.each(|one| one.on_sent(now, bytes, last_packet_number));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.each(|one| one.on_ack(now, sent, bytes, app_limited, rtt));
        if self.other.is_some() {
            self.learn(rtt.min());
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.each(|one| one.on_end_acks(now, in_flight, app_limited, largest));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.each(|one| one.on_congestion_event(now, sent, is_persistent, lost_bytes));
        // A mark by a router on the way is no loss.
        if lost_bytes > 0 {
            self.lost();
        }
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

    fn controller() -> Box<ByDistanceController> {
        let built = Congestion::Auto.factory().build(Instant::now(), 1200);
        built.into_any().downcast().unwrap()
    }

    /// Of the two only BBR has a rate of its own.
    fn is_bbr(one: &dyn Controller) -> bool {
        one.metrics().pacing_rate.is_some()
    }

    fn lose(one: &mut dyn Controller) {
        let now = Instant::now();
        one.on_congestion_event(now, now, false, 1200);
    }

    #[test]
    fn a_far_host_gets_bbr_once_a_packet_is_lost() {
        let mut one = controller();
        for _ in 0..SAMPLES {
            lose(&mut *one);
            assert!(!is_bbr(&*one), "too early to know");
            one.learn(20 * MS);
        }
        let now = Instant::now();
        one.on_congestion_event(now, now, false, 0);
        assert!(!is_bbr(&*one), "nothing was lost");
        assert!(!is_bbr(&*one.clone_box()));
        lose(&mut *one);
        assert!(is_bbr(&*one) && is_bbr(&*one.clone_box()));
        one.learn(MS);
        lose(&mut *one);
        assert!(is_bbr(&*one), "for good");
    }

    #[test]
    fn a_host_that_has_answered_soon_once_is_near() {
        let mut one = controller();
        (0..SAMPLES / 2).for_each(|_| one.learn(30 * MS));
        one.learn(FAR - MS);
        assert!(one.other.is_none(), "what is not needed any more costs nothing");
        (0..SAMPLES).for_each(|_| one.learn(30 * MS));
        lose(&mut *one);
        assert!(!is_bbr(&*one));
    }

    #[test]
    fn both_are_told_everything_until_then() {
        let mut one = controller();
        one.on_mtu_update(6000);
        let (cubic, bbr) = (one.chosen.window(), one.other.as_ref().unwrap().window());
        (0..SAMPLES).for_each(|_| one.learn(20 * MS));
        lose(&mut *one);
        assert_eq!(one.window(), bbr);
        assert_eq!((cubic, one.initial_window()), (INITIAL_WINDOW_BYTES, INITIAL_WINDOW_BYTES));
    }
}
