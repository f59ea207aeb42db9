//! How much may be under way: by Cubic, and by BBR where hosts are far from each other and packets are lost.
//!
//! Cubic takes each loss for a path that is full. Where a round trip is short it recovers at once, and of the two it is
//! the simpler and the better tried. Over 20 ms, with one packet of a hundred lost for other reasons, it falls to 1 MB/s;
//! BBR, which goes by the rate at which packets arrive, does not. But BBR begins by
//! emptying the path for 200 ms, and does so again every ten seconds, which between near hosts is longer than many a
//! step of a program: it must not be taken for them by mistake. Nor must a narrow line that is full be taken for a far
//! one: there BBR hardly gives way to losses, holds the queue for itself, and whoever uses Cubic beside it is starved.
//!
//! Measured with `runtime/examples/wire.rs` between two hosts of one machine: over 20 ms with 1 % of the packets lost,
//! Cubic moves 0.8 MB/s and BBR 68; over 2 ms with 0.1 % lost, 20 and 260. On a LAN with 1 Gbit/s and a round trip of
//! 0.2 ms both reach 119 MB/s.

use super::bottleneck::Bounded;
use quinn::congestion::{BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use quinn_proto::RttEstimator;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A host whose round trips never take less is far. It takes less to a near host, unless it holds an acknowledgement
/// back for so long.
const FAR: Duration = super::settings::ACK_DELAY_MAX;
/// How many acknowledgements must have come before a host is called far: a busy host answers late too, but not each
/// time.
const SAMPLES: u32 = 16;
/// How long a path must have been used before its host is called far, so that a queue would have come and gone by
/// then.
const KNOWN: Duration = Duration::from_secs(1);
/// If more than one packet of so many is lost under BBR, the path is taken to be full.
const LOST_ONE_OF: u64 = 8;
/// Bytes that may be under way before anything is known of a path. A message of 64 KiB goes at once, where with the 14
/// KiB of TCP it took two round trips over a new connection of 20 ms. Four times as much passes a line of 4 Mbit/s
/// within a second.
const INITIAL_WINDOW_BYTES: u64 = 80_000;

/// How links share a path, and how fast they take it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// Cubic until a packet is lost on a path whose round trips take at least 5 ms though no queue shows, then BBR.
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
        let (cubic, bbr) = (Arc::new(cubic), Arc::new(bbr));
        Arc::new(match self {
            Self::Auto => Choice { near: Some(cubic), far: Some(bbr) },
            Self::Cubic => Choice { near: Some(cubic), far: None },
            Self::Bbr => Choice { near: None, far: Some(bbr) },
        })
    }
}

/// Makes the controller of each new path: one kind, or a choice between two.
struct Choice {
    near: Option<Arc<CubicConfig>>,
    far: Option<Arc<BbrConfig>>,
}

impl ControllerFactory for Choice {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let near = self.near.clone().map(|config| config.build(now, current_mtu));
        let far = self.far.clone().map(|config| config.build(now, current_mtu));
        let inner: Box<dyn Controller> = match (near, far) {
            (Some(near), Some(far)) => Box::new(ByDistance::new(now, near, far)),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => Arc::new(CubicConfig::default()).build(now, current_mtu),
        };
        Box::new(Bounded::new(inner))
    }
}

/// Cubic, and BBR beside it as long as the other host may be far.
struct ByDistance {
    near: Box<dyn Controller>,
    far: Option<Box<dyn Controller>>,
    /// Whether BBR, the controller for far hosts, decides at present.
    is_far: bool,
    since: Instant,
    samples: u32,
    /// The shortest of all round trips, and the usual length of the latest ones.
    shortest: Duration,
    usual: Duration,
    trial: Trial,
}

/// How many bytes have arrived and how many were lost under BBR since a moment.
#[derive(Clone, Copy)]
struct Trial {
    since: Instant,
    acknowledged_bytes: u64,
    lost_bytes: u64,
}

impl Trial {
    fn new(since: Instant) -> Self {
        Self { since, acknowledged_bytes: 0, lost_bytes: 0 }
    }
}

impl ByDistance {
    fn new(now: Instant, near: Box<dyn Controller>, far: Box<dyn Controller>) -> Self {
        Self {
            near,
            far: Some(far),
            is_far: false,
            since: now,
            samples: 0,
            shortest: Duration::MAX,
            usual: Duration::MAX,
            trial: Trial::new(now),
        }
    }

    fn learn(&mut self, shortest: Duration, usual: Duration) {
        self.samples = self.samples.saturating_add(1);
        (self.shortest, self.usual) = (shortest, usual);
        if shortest < FAR {
            self.is_near();
        }
    }

    /// Decides for good that the host is near.
    fn is_near(&mut self) {
        (self.far, self.is_far) = (None, false);
    }

    fn lost(&mut self, now: Instant, bytes: u64) {
        let is_known = self.samples >= SAMPLES && now.saturating_duration_since(self.since) >= KNOWN;
        // Where round trips are hardly longer than the shortest, no queue is full, so the packet was lost for another
        // reason.
        let is_empty = self.usual <= self.shortest.saturating_mul(5) / 4;
        if self.is_far {
            self.trial.lost_bytes += bytes;
        } else if self.far.is_some() && is_known && is_empty {
            (self.is_far, self.trial) = (true, Trial::new(now));
        }
        self.judge(now);
    }

    /// Looks once a second whether so much is lost under BBR that it does more harm than good. The fate of a few packets,
    /// fewer than the first window holds, says nothing of that.
    fn judge(&mut self, now: Instant) {
        let Trial { since, acknowledged_bytes, lost_bytes } = self.trial;
        let is_known = now.saturating_duration_since(since) >= KNOWN
            && lost_bytes + acknowledged_bytes >= INITIAL_WINDOW_BYTES;
        if !self.is_far || !is_known {
            return;
        }
        self.trial = Trial::new(now);
        if lost_bytes.saturating_mul(LOST_ONE_OF) > lost_bytes + acknowledged_bytes {
            self.is_near();
        }
    }

    fn each(&mut self, mut tell: impl FnMut(&mut dyn Controller)) {
        tell(&mut *self.near);
        if let Some(far) = &mut self.far {
            tell(&mut **far);
        }
    }

    fn chosen(&self) -> &dyn Controller {
        self.far.as_deref().filter(|_| self.is_far).unwrap_or(&*self.near)
    }
}

impl Controller for ByDistance {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.each(|one| one.on_sent(now, bytes, last_packet_number));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.each(|one| one.on_ack(now, sent, bytes, app_limited, rtt));
        if self.far.is_some() {
            self.learn(rtt.min(), rtt.get());
            self.trial.acknowledged_bytes += bytes;
            self.judge(now);
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.each(|one| one.on_end_acks(now, in_flight, app_limited, largest));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.each(|one| one.on_congestion_event(now, sent, is_persistent, lost_bytes));
        // Routers may also mark packets instead of dropping them; a mark is no loss.
        if lost_bytes > 0 {
            self.lost(now, lost_bytes);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.each(|one| one.on_mtu_update(new_mtu));
    }

    fn window(&self) -> u64 {
        self.chosen().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.chosen().metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            near: self.near.clone_box(),
            far: self.far.as_ref().map(|far| far.clone_box()),
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        self.near.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);

    /// A controller of both kinds, and when it was made.
    fn controller() -> (ByDistance, Instant) {
        let (now, mut cubic) = (Instant::now(), CubicConfig::default());
        let near = Arc::new(cubic.initial_window(INITIAL_WINDOW_BYTES).clone()).build(now, 1200);
        (ByDistance::new(now, near, Arc::new(BbrConfig::default()).build(now, 1200)), now)
    }

    /// Of the two only BBR has a rate of its own.
    fn is_bbr(one: &dyn Controller) -> bool {
        one.metrics().pacing_rate.is_some()
    }

    fn lose(one: &mut dyn Controller, now: Instant, bytes: u64) {
        one.on_congestion_event(now, now, false, bytes);
    }

    /// One that was found far after a second.
    fn far() -> (ByDistance, Instant) {
        let (mut one, made) = controller();
        (0..SAMPLES).for_each(|_| one.learn(20 * MS, 22 * MS));
        lose(&mut one, made + SECOND, 1200);
        assert!(is_bbr(&one));
        (one, made + SECOND)
    }

    #[test]
    fn a_far_host_gets_bbr_once_a_packet_is_lost() {
        let (mut one, made) = controller();
        for _ in 0..SAMPLES {
            lose(&mut one, made + SECOND, 1200);
            assert!(!is_bbr(&one), "too few samples to know");
            one.learn(20 * MS, 22 * MS);
        }
        lose(&mut one, made + SECOND - MS, 1200);
        assert!(!is_bbr(&one), "too early to know");
        lose(&mut one, made + SECOND, 0);
        assert!(!is_bbr(&one), "nothing was lost");
        assert!(!is_bbr(&*one.clone_box()));
        lose(&mut one, made + SECOND, 1200);
        assert!(is_bbr(&one) && is_bbr(&*one.clone_box()));
    }

    #[test]
    fn a_host_that_has_answered_soon_once_is_near() {
        let (mut one, made) = controller();
        (0..SAMPLES / 2).for_each(|_| one.learn(30 * MS, 30 * MS));
        one.learn(FAR - MS, 30 * MS);
        assert!(one.far.is_none(), "what is not needed any more costs nothing");
        (0..SAMPLES).for_each(|_| one.learn(30 * MS, 30 * MS));
        lose(&mut one, made + SECOND, 1200);
        assert!(!is_bbr(&one));
        let (mut one, _) = far();
        one.learn(FAR - MS, 20 * MS);
        assert!(!is_bbr(&one), "also one that was found far by mistake");
    }

    #[test]
    fn a_line_with_a_queue_is_not_taken_for_a_far_one() {
        let (mut one, made) = controller();
        (0..SAMPLES).for_each(|_| one.learn(20 * MS, 26 * MS));
        lose(&mut one, made + SECOND, 1200);
        assert!(!is_bbr(&one));
    }

    #[test]
    fn bbr_is_given_up_where_it_loses_much() {
        for (lost, stays) in [(1, true), (2, true), (15, false), (50, false)] {
            let (mut one, since) = far();
            one.trial.acknowledged_bytes = 100_000 - lost * 1000;
            lose(&mut one, since + SECOND / 2, lost * 1000);
            assert!(is_bbr(&one), "too early to judge");
            lose(&mut one, since + SECOND, 1);
            assert_eq!(is_bbr(&one), stays, "{lost} of 100");
        }
    }

    #[test]
    fn a_few_lost_packets_are_no_reason_to_give_bbr_up() {
        let (mut one, since) = far();
        lose(&mut one, since + SECOND, INITIAL_WINDOW_BYTES - 1);
        assert!(is_bbr(&one));
        lose(&mut one, since + 2 * SECOND, 1);
        assert!(!is_bbr(&one), "they count with the next ones");
    }

    #[test]
    fn both_are_told_everything_until_then() {
        let (mut one, made) = controller();
        one.on_mtu_update(6000);
        let (cubic, bbr) = (one.near.window(), one.far.as_ref().unwrap().window());
        (0..SAMPLES).for_each(|_| one.learn(20 * MS, 20 * MS));
        lose(&mut one, made + SECOND, 1200);
        assert_eq!(one.window(), bbr);
        assert_eq!((cubic, one.initial_window()), (INITIAL_WINDOW_BYTES, INITIAL_WINDOW_BYTES));
    }
}
