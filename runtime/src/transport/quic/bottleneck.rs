//! How long what is under way may wait before the narrowest place of its path.
//!
//! Whatever is sent there faster than it passes waits in a queue or is lost, and with it the signs of life of all who
//! share the line. So no more is under way than passes in a round trip of an empty path and a fixed time more; the rate
//! at which it passes is told by acknowledgements. Where no loss tells of a full queue, only this keeps it short.

use quinn::congestion::{Controller, ControllerMetrics};
use quinn_proto::RttEstimator;
use std::any::Any;
use std::time::{Duration, Instant};

/// The longest that data may wait in the queue of a path. Threads of a busy host answer late by tens of milliseconds
/// too.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Rates are measured over a round trip, and not over less.
const SPAN_MIN: Duration = Duration::from_millis(25);
/// How many of the latest rates are kept. The best of them is taken for the rate of the path.
const RATES: usize = 4;
/// Bytes that may always be under way: with fewer the rate could not be measured.
const WINDOW_MIN_BYTES: u64 = 16 << 10;

/// What acknowledgements tell of a path.
#[derive(Clone, Debug, Default)]
struct Bottleneck {
    /// When the count of bytes began, if there have been more to send ever since.
    since: Option<Instant>,
    bytes: u64,
    /// The latest rates, in bytes per second.
    rates: [f64; RATES],
    count: usize,
    shortest: Duration,
}

impl Bottleneck {
    /// A sender with nothing more to send learns nothing of the path.
    fn acknowledged(
        &mut self,
        now: Instant,
        bytes: u64,
        is_idle: bool,
        round_trip: Duration,
        shortest: Duration,
    ) {
        self.shortest = shortest;
        if is_idle {
            self.since = None;
            return;
        }
        let Some(since) = self.since else {
            (self.since, self.bytes) = (Some(now), 0);
            return;
        };
        self.bytes += bytes;
        let span = now.saturating_duration_since(since);
        if span >= round_trip.max(SPAN_MIN) {
            self.rates[self.count % RATES] = self.bytes as f64 / span.as_secs_f64();
            self.count += 1;
            (self.since, self.bytes) = (Some(now), 0);
        }
    }

    /// Forgets all but the latest rate: a loss may mean that the line has become narrower.
    fn lost(&mut self) {
        if self.count > 0 {
            self.rates[0] = self.rates[(self.count - 1) % RATES];
            self.count = 1;
        }
    }

    /// Bytes that may be under way, if that is known.
    fn window_max(&self) -> Option<u64> {
        let known = &self.rates[..self.count.min(RATES)];
        let best = known.iter().copied().reduce(f64::max)?;
        let bytes = best * (self.shortest + WAIT_MAX).as_secs_f64();
        Some((bytes as u64).max(WINDOW_MIN_BYTES))
    }
}

/// A controller that asks another one how much may be under way, and allows no more of it than passes the path soon.
pub(super) struct Bounded {
    inner: Box<dyn Controller>,
    bottleneck: Bottleneck,
}

impl Bounded {
    pub(super) fn new(inner: Box<dyn Controller>) -> Self {
        Self { inner, bottleneck: Bottleneck::default() }
    }
}

impl Controller for Bounded {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
        self.bottleneck.acknowledged(now, bytes, app_limited, rtt.get(), rtt.min());
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.inner.on_congestion_event(now, sent, is_persistent, lost_bytes);
        self.bottleneck.lost();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let window = self.inner.window();
        self.bottleneck.window_max().map_or(window, |most| most.min(window))
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), bottleneck: self.bottleneck.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Acknowledgements of so many bytes each, a millisecond apart.
    fn acknowledge(path: &mut Bottleneck, now: &mut Instant, bytes: u64, times: u32, is_idle: bool) {
        for _ in 0..times {
            path.acknowledged(*now, bytes, is_idle, 50 * MS, 20 * MS);
            *now += MS;
        }
    }

    #[test]
    fn nothing_is_known_at_first_nor_from_senders_with_little_to_send() {
        let (mut path, mut now) = (Bottleneck::default(), Instant::now());
        acknowledge(&mut path, &mut now, 1000, 50, false);
        assert_eq!(path.window_max(), None, "a round trip is not over");
        acknowledge(&mut path, &mut now, 1000, 500, true);
        assert_eq!(path.window_max(), None);
    }

    #[test]
    fn as_much_is_under_way_as_passes_within_a_bound() {
        let (mut path, mut now) = (Bottleneck::default(), Instant::now());
        acknowledge(&mut path, &mut now, 1000, 200, false);
        // A megabyte a second, for the shortest round trip and the bound: 120 ms.
        assert_eq!(path.window_max(), Some(120_000));
        acknowledge(&mut path, &mut now, 10, 60, false);
        assert_eq!(path.window_max(), Some(120_000), "the best of the latest rates");
        acknowledge(&mut path, &mut now, 10, 60, true);
        acknowledge(&mut path, &mut now, 10, 200, false);
        assert_eq!(path.window_max(), Some(WINDOW_MIN_BYTES), "until others have replaced it");
    }

    #[test]
    fn after_a_loss_only_the_latest_rate_counts() {
        let (mut path, mut now) = (Bottleneck::default(), Instant::now());
        path.lost();
        assert_eq!(path.window_max(), None);
        acknowledge(&mut path, &mut now, 1000, 152, false);
        acknowledge(&mut path, &mut now, 500, 51, false);
        path.lost();
        assert!(path.window_max().is_some_and(|bytes| bytes < 70_000), "{path:?}");
    }
}
