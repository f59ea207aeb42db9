//! The speed that a PE delivers: work done per second of the wall, over the last seconds.

use super::auto::Level;

/// Follows the speed of one PE. What others take of its processor lowers it, as it should.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivered {
    first_guess: f64,
    window_s: f64,
    work: f64,
    wall_s: f64,
    level: Level,
}

impl Delivered {
    /// Of a PE whose speed is guessed before anything was measured; a measurement takes `window_s` seconds in which it is
    /// busy, so that single messages make no noise.
    #[must_use]
    pub fn new(first_guess: f64, window_s: f64) -> Self {
        Self { first_guess, window_s, work: 0.0, wall_s: 0.0, level: Level::default() }
    }

    /// Takes the work that was done in so many seconds of the wall in which there was something to do. Amounts that are
    /// negative or not finite are ignored.
    pub fn observe(&mut self, work: f64, wall_s: f64) {
        let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
        if !(is_amount(work) && is_amount(wall_s)) {
            return;
        }
        self.work += work;
        self.wall_s += wall_s;
        if self.wall_s >= self.window_s && self.wall_s > 0.0 {
            self.level.observe(self.work / self.wall_s);
            (self.work, self.wall_s) = (0.0, 0.0);
        }
    }

    /// Work per second that it delivers now; the first guess as long as nothing was measured or nothing was done.
    #[must_use]
    pub fn speed(&self) -> f64 {
        if self.level.value() > 0.0 { self.level.value() } else { self.first_guess }
    }

    /// The variance of a measurement.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.level.noise() * self.level.noise()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_delivers_what_was_done_and_first_what_was_guessed() {
        let mut pe = Delivered::new(3.0, 1.0);
        pe.observe(1.0, 0.5);
        assert_eq!(pe.speed(), 3.0, "half a window");
        pe.observe(1.0, 0.5);
        [(f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0)]
            .into_iter()
            .for_each(|(work, s)| pe.observe(work, s));
        assert_eq!((pe.speed(), pe.variance()), (2.0, 0.0));
        (0..4).for_each(|_| pe.observe(0.5, 1.0));
        assert!((pe.speed() - 0.5).abs() < 0.1 && pe.variance() > 0.0, "{pe:?}");
    }
}
