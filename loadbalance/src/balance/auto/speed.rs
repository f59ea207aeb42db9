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
    /// What it has shown since then when it computed for nothing.
    probes: Probes,
    asked_s: f64,
    /// Its last chares were taken away because all waited for them.
    is_too_slow: bool,
}

/// Seconds after which a PE without chares may have become fast again, at first and at most.
const TRY_AFTER_S: f64 = 5.0;
const TRY_AFTER_MOST_S: f64 = 20.0;
/// A PE without chares is asked no more often, seconds, to compute for nothing.
const PROBE_EVERY_S: f64 = 1.0;
/// Who shows so many times what he showed when his chares had left has become faster.
const FASTER: f64 = 1.5;
/// Seconds after which one that shows no change is tried all the same: chares may have become lighter.
const TRY_ANYWAY_S: f64 = 60.0;
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
            probes: Probes::NONE,
            asked_s: f64::NEG_INFINITY,
            is_too_slow: false,
        }
    }

    /// Takes what was measured. The speed of a PE whose chares have all gone is not known: it stays what it was.
    pub(super) fn observe(&mut self, measured: f64, has_work: bool, now_s: f64) {
        if !has_work && self.most > 0.0 {
            self.idle_since_s.get_or_insert(now_s);
            return;
        }
        (self.idle_since_s, self.probes, self.is_too_slow) = (None, Probes::NONE, false);
        self.most = if has_work { self.most.max(measured) } else { 0.0 };
        self.level.observe_in_proportion(measured);
        self.sway.observe(measured);
        if self.level.value() > RECOVERED * self.most {
            self.try_after_s = TRY_AFTER_S;
        }
    }

    /// Whether it is to compute for nothing, because it has no chares that would show how fast it is.
    pub(super) fn asks(&mut self, now_s: f64) -> bool {
        let is_due = self.idle_since_s.is_some() && now_s - self.asked_s >= PROBE_EVERY_S;
        if is_due {
            self.asked_s = now_s;
        }
        is_due
    }

    /// It has computed for nothing, at this speed.
    pub(super) fn has_shown(&mut self, speed: f64) {
        if self.idle_since_s.is_some() {
            self.probes.take(speed);
        }
    }

    /// What may be gained by trying whether it has become fast again: its speed at best, if it has had no chares for some
    /// seconds, and for so many at least. If it shows that it is slow, it is tried as soon as it shows that it is faster, and
    /// seldom before. It does not always: for a moment, a quota may be all of a core.
    pub(super) fn worth_a_try(&self, now_s: f64, least_s: f64) -> Option<f64> {
        let since_s = now_s - self.idle_since_s?;
        let after_s = match self.probes.first() {
            Some(first) if self.is_too_slow && first < RECOVERED * self.most => {
                let has_failed = self.try_after_s > TRY_AFTER_S;
                match self.probes.faster() {
                    Some(_) if has_failed => TRY_AFTER_S,
                    Some(_) => 0.0,
                    None => TRY_ANYWAY_S.max(least_s),
                }
            }
            _ => self.try_after_s.max(least_s),
        };
        (since_s >= after_s).then_some(self.most)
    }

    /// Its last chares are taken away because all wait for them. How slow it is with one nobody measures from then on, so that
    /// none comes back but to try.
    pub(super) const fn gives_up(&mut self) {
        self.is_too_slow = true;
    }

    /// Whether it has been found too slow for a single chare.
    pub(super) const fn is_too_slow(&self) -> bool {
        self.is_too_slow && self.idle_since_s.is_some()
    }

    /// It is being tried. If that is too early, the next time is later.
    pub(super) fn is_tried(&mut self) {
        if let Some(now) = self.probes.faster() {
            self.level.restart(now);
        }
        self.probes = Probes::NONE;
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

/// What a PE has shown when it computed for nothing. Single ones may be wrong: it may just have packed what left it.
#[derive(Clone, Copy, Debug)]
struct Probes {
    first: [f64; 3],
    last: [f64; 2],
    count: usize,
}

impl Probes {
    const NONE: Self = Self { first: [0.0; 3], last: [0.0; 2], count: 0 };

    fn take(&mut self, speed: f64) {
        if let Some(first) = self.first.get_mut(self.count) {
            *first = speed;
        }
        self.last = [self.last[1], speed];
        self.count = self.count.saturating_add(1);
    }

    /// How fast it was at first: the middle of three.
    fn first(&self) -> Option<f64> {
        let mut first = self.first;
        first.sort_unstable_by(f64::total_cmp);
        (self.count >= first.len()).then_some(first[1])
    }

    /// How fast it is now, the slower of two, if it has become faster.
    fn faster(&self) -> Option<f64> {
        let now = self.last[0].min(self.last[1]);
        self.first().is_some_and(|first| now > FASTER * first).then_some(now)
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
    fn a_pe_that_shows_how_slow_it_is_is_tried_when_it_has_become_faster() {
        let mut speed = Speed::new();
        (0..10).for_each(|_| speed.observe(1.0, true, 0.0));
        assert!(!speed.asks(5.0), "its chares show how fast it is");
        (0..50).for_each(|_| speed.observe(0.1, true, 10.0));
        let tried_s = |speed: &mut Speed, from_s: u32, shows: &dyn Fn(u32) -> f64| {
            speed.gives_up();
            let found = (from_s..from_s + 100).find(|at| {
                let now_s = f64::from(*at);
                speed.observe(0.1, false, now_s);
                if speed.asks(now_s) {
                    speed.has_shown(shows(*at));
                }
                speed.worth_a_try(now_s, 0.0).is_some()
            });
            if found.is_some() {
                speed.is_tried();
            }
            (found.map(|at| at - from_s), speed.value())
        };
        assert_eq!(
            tried_s(&mut speed, 20, &|_| 0.25),
            (Some(60), 0.1),
            "each probe shows more than chares get, and none shows a change"
        );
        (0..50).for_each(|_| speed.observe(1.0, true, 100.0));
        (0..50).for_each(|_| speed.observe(0.1, true, 110.0));
        assert_eq!(tried_s(&mut speed, 120, &|at| if at < 125 { 0.25 } else { 0.8 }), (Some(6), 0.8));
        let mut speed = Speed::new();
        (0..10).for_each(|_| speed.observe(1.0, true, 0.0));
        (0..50).for_each(|_| speed.observe(0.1, true, 10.0));
        speed.gives_up();
        speed.observe(0.1, false, 20.0);
        (0..3).for_each(|_| speed.has_shown(1.0));
        let waits = |now_s: f64| speed.worth_a_try(now_s, 0.0);
        assert_eq!((waits(24.9), waits(25.0)), (None, Some(1.0)), "what shows nothing counts for nothing");
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
