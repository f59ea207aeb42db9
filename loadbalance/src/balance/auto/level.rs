//! The level of a noisy measure, and how far it can be trusted.

/// Follows a measure. Errors that change their sign are noise and move it little; errors of one sign are a change and move
/// it fast. Nothing is fitted: how noisy the measure is comes from its own errors.
///
/// D. W. Trigg and A. G. Leach, "Exponential smoothing with an adaptive response rate", Operational Research Quarterly 18
/// (1967).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    value: f64,
    /// Means of errors, of their amounts, and of their amounts without those that are changes rather than noise.
    mean: f64,
    amount: f64,
    noise: f64,
    gain: f64,
    samples: u32,
}

/// The weight of the newest error in the means, once there are enough.
const WEIGHT: f64 = 0.125;
/// Errors of more than so many mean ones are no noise.
const NOISE_MAX: f64 = 3.0;
/// The standard deviation of normal errors over their mean amount.
const DEVIATION: f64 = 1.25;

impl Level {
    /// Nothing has been measured.
    #[must_use]
    pub const fn new() -> Self {
        Self { value: 0.0, mean: 0.0, amount: 0.0, noise: 0.0, gain: 0.0, samples: 0 }
    }

    /// Takes a measurement; one that is not finite is ignored.
    pub fn observe(&mut self, measured: f64) {
        if !measured.is_finite() {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        if self.samples == 1 {
            self.value = measured;
            return;
        }
        let error = measured - self.value;
        let weight = (1.0 / f64::from(self.samples - 1)).max(WEIGHT);
        let amount = error.abs();
        // What all errors have in common is a change that goes on, and no noise either.
        let deviation = amount.min((error - self.mean).abs());
        let most = NOISE_MAX * self.noise.max(self.value.abs() * FINEST);
        let noise = if self.samples > 3 { deviation.min(most) } else { deviation };
        self.mean += weight * (error - self.mean);
        self.amount += weight * (amount - self.amount);
        self.noise += weight * (noise - self.noise);
        self.gain = if self.amount > 0.0 { (self.mean.abs() / self.amount).min(1.0) } else { 0.0 };
        self.value += self.gain * error;
    }

    /// The same of a measure whose noise is a part of it, and stays that part when it changes.
    pub fn observe_in_proportion(&mut self, measured: f64) {
        let before = self.value;
        self.observe(measured);
        if self.value > 0.0 && before > 0.0 {
            self.noise *= self.value / before;
        }
    }

    /// It is this now, whatever was measured before.
    pub const fn restart(&mut self, value: f64) {
        (self.value, self.mean, self.amount, self.gain) = (value, 0.0, 0.0, 0.0);
    }

    /// The level now; 0 before the first measurement.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.value
    }

    /// The measurement after the next, which is the first that moves decided now can change, if the change of the last
    /// ones goes on.
    #[must_use]
    pub fn forecast(&self) -> f64 {
        self.value + 2.0 * self.gain * self.mean
    }

    /// The standard deviation of a single measurement from the level before it.
    #[must_use]
    pub fn noise(&self) -> f64 {
        DEVIATION * self.noise
    }

    /// The standard error of the level itself, which is less, as it rests on several measurements.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.noise() * (self.gain / (2.0 - self.gain)).sqrt()
    }

    /// How many measurements there were.
    #[must_use]
    pub const fn samples(&self) -> u32 {
        self.samples
    }
}

/// No measure is finer than this part of itself.
const FINEST: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::random::Random;

    #[test]
    fn noise_moves_it_little_and_a_change_at_once() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut level = Level::default();
            let mut measure =
                |level: &mut Level, mean: f64| level.observe(mean * (1.0 + 0.05 * random.normal()));
            (0..40).for_each(|_| measure(&mut level, 1.0));
            assert!((level.value() - 1.0).abs() < 0.12, "{seed}: {level:?}");
            assert!((0.025..0.12).contains(&level.noise()) && level.error() < level.noise(), "{level:?}");
            (0..3).for_each(|_| measure(&mut level, 0.25));
            assert!((level.value() - 0.25).abs() < 0.1, "{seed}: {level:?}");
            assert!(level.noise() < 0.16, "a change is no noise: {level:?}");
        }
    }

    #[test]
    fn noise_that_is_a_part_of_the_level_falls_with_it() {
        for seed in 0..50 {
            let (mut random, mut level) = (Random::new(seed), Level::default());
            let mut measure = |level: &mut Level, mean: f64| {
                level.observe_in_proportion(mean * (1.0 + 0.03 * random.normal()));
            };
            (0..60).for_each(|_| measure(&mut level, 1.0));
            (0..6).for_each(|_| measure(&mut level, 0.1));
            assert!((0.08..0.13).contains(&level.value()), "{seed}: {level:?}");
            assert!(level.noise() < 0.12 * level.value(), "{seed}: {level:?}");
        }
    }

    #[test]
    fn what_is_not_measured_is_not_followed() {
        let mut level = Level::default();
        [2.0, f64::NAN, f64::INFINITY, 2.0, 2.0].into_iter().for_each(|measured| level.observe(measured));
        assert_eq!((level.value(), level.noise(), level.error(), level.samples()), (2.0, 0.0, 0.0, 3));
    }
}
