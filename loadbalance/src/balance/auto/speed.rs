//! The speed of a PE: how far it can be relied on, and what is reckoned with where it is not known.

use super::Level;

/// Follows the speed of a PE from measurement to measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    level: Level,
    sway: Sway,
    /// The most that was measured while there were chares on it.
    most: f64,
    /// Since when there are none, and after how many seconds it is worth a try then.
    idle_since_s: Option<f64>,
    try_after_s: f64,
}

/// Seconds after which a PE without chares may have become fast again, at first and at most.
const TRY_AFTER_S: f64 = 5.0;
const TRY_AFTER_MOST_S: f64 = 20.0;
/// Who delivers this part of what it did at best has recovered.
const RECOVERED: f64 = 0.7;
/// A speed that differs by more than so many of its errors, and by this part, is another one.
const ERRORS: f64 = 4.0;
const CHANGE: f64 = 0.15;

impl Speed {
    pub(super) const fn new() -> Self {
        Self {
            level: Level::new(),
            sway: Sway { sum: 0.0, count: 0, before: None, amount: 0.0, means: 0 },
            most: 0.0,
            idle_since_s: None,
            try_after_s: TRY_AFTER_S,
        }
    }

    /// Takes what was measured. The speed of a PE whose chares have all gone is not known: it stays what it was.
    pub(super) fn observe(&mut self, measured: f64, has_work: bool, now_s: f64) {
        if !has_work && self.most > 0.0 {
            self.idle_since_s.get_or_insert(now_s);
            return;
        }
        self.idle_since_s = None;
        self.most = if has_work { self.most.max(measured) } else { 0.0 };
        self.level.observe_in_proportion(measured);
        self.sway.observe(measured);
        if self.level.value() > RECOVERED * self.most {
            self.try_after_s = TRY_AFTER_S;
        }
    }

    /// What may be gained by trying whether it has become fast again: its speed at best, if it has had no chares for some
    /// seconds, and for so many at least.
    pub(super) fn worth_a_try(&self, now_s: f64, least_s: f64) -> Option<f64> {
        let since_s = now_s - self.idle_since_s?;
        (since_s >= self.try_after_s.max(least_s)).then_some(self.most)
    }

    /// It is being tried. If that is too early, the next time is later.
    pub(super) fn is_tried(&mut self) {
        (self.idle_since_s, self.try_after_s) = (None, (2.0 * self.try_after_s).min(TRY_AFTER_MOST_S));
    }

    pub(super) const fn value(&self) -> f64 {
        self.level.value().max(f64::MIN_POSITIVE)
    }

    /// Whether it has been measured so often, or cannot be.
    pub(super) const fn is_known(&self, samples_min: u32) -> bool {
        self.level.samples() >= samples_min || self.idle_since_s.is_some()
    }

    /// Its standard error, as a part of it.
    pub(super) fn error(&self) -> f64 {
        (self.level.error() / self.value()).max(DEVIATION * self.sway.amount)
    }

    /// Whether it is no longer what it was.
    pub(super) fn is_another(&self, then: f64) -> bool {
        (self.value() - then).abs() > (CHANGE * then).max(ERRORS * self.error() * self.value())
    }
}

/// By which part of themselves the means of some measurements differ, one after the other, in half of all cases. What goes up
/// and down for seconds is no noise of single measurements, but nothing to rely on either; what changes seldom is.
#[derive(Clone, Copy, Debug)]
struct Sway {
    sum: f64,
    count: u32,
    before: Option<f64>,
    amount: f64,
    means: u32,
}

/// Measurements of a mean.
const MEANED: u32 = 8;
/// The standard deviation of normal differences over their median amount.
const DEVIATION: f64 = 1.48;
/// No speed is steadier than this part of itself.
const FINEST: f64 = 1e-3;

impl Sway {
    fn observe(&mut self, measured: f64) {
        (self.sum, self.count) = (self.sum + measured, self.count + 1);
        if self.count < MEANED {
            return;
        }
        let mean = self.sum / f64::from(MEANED);
        (self.sum, self.count) = (0.0, 0);
        let Some(before) = self.before.replace(mean) else { return };
        let amount = (mean - before).abs() / mean.max(before).max(f64::MIN_POSITIVE);
        self.means = self.means.saturating_add(1);
        // A step up or down each time, by a part of it, stays where half of all are above.
        let step = if self.means > 3 { 1.25 } else { 2.0 };
        self.amount = if self.means == 1 {
            amount
        } else if amount > self.amount {
            (self.amount * step).max(FINEST).min(amount)
        } else {
            (self.amount / step).max(amount)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::random::Random;

    #[test]
    fn what_sways_for_seconds_is_less_to_rely_on_than_what_is_noisy() {
        let error = |kept: f64, seed: u64| {
            let (mut random, mut speed, mut sways) = (Random::new(seed), Speed::new(), 0.0);
            for at in 0..400 {
                sways = kept * sways + (1.0 - kept * kept).sqrt() * random.normal();
                speed.observe(1.0 + 0.05 * sways, true, f64::from(at));
            }
            speed.error()
        };
        let mut sum = [0.0; 2];
        for seed in 0..20 {
            let (noisy, swaying) = (error(0.0, seed), error(0.9, seed));
            sum = [sum[0] + noisy, sum[1] + swaying];
        }
        assert!(sum[1] > 1.5 * sum[0], "{sum:?}");
    }

    #[test]
    fn a_change_now_and_then_is_no_sway() {
        let mut speed = Speed::new();
        (0..400).for_each(|at| speed.observe(if at % 100 < 50 { 1.0 } else { 0.5 }, true, f64::from(at)));
        assert!(speed.sway.amount < 0.05 && speed.is_another(1.0) && !speed.is_another(0.5), "{speed:?}");
    }

    #[test]
    fn a_pe_without_chares_is_tried_again_each_time_later() {
        let mut speed = Speed::new();
        (0..10).for_each(|_| speed.observe(1.0, true, 0.0));
        (0..50).for_each(|_| speed.observe(0.25, true, 0.0));
        let mut tried_s = |from_s: u32, least_s: f64| {
            let found = (from_s..1000).find(|at| {
                speed.observe(0.25, false, f64::from(*at));
                speed.worth_a_try(f64::from(*at), least_s) == Some(1.0)
            });
            speed.is_tried();
            (0..50).for_each(|_| speed.observe(0.25, true, f64::from(from_s)));
            found.map(|at| at - from_s)
        };
        let after = [0, 100, 200, 300].map(|from_s| tried_s(from_s, 0.0));
        assert_eq!(after, [5, 10, 20, 20].map(Some));
        assert_eq!(tried_s(400, 50.0), Some(50), "a trial that costs much comes seldom");
        (0..50).for_each(|_| speed.observe(0.9, true, 600.0));
        speed.observe(0.9, false, 600.0);
        assert_eq!(speed.worth_a_try(605.0, 0.0), Some(1.0), "it had recovered");
    }
}
