//! How far a relaxation is, and how long the rest may take.
//!
//! Conjugate gradients make the largest force smaller by about the same factor in each evaluation, once they are near the
//! minimum. The forecast draws that line through the smallest forces so far and where they began; it is no promise, and
//! without a trend it says nothing.

use super::course::Watch;
use std::time::Duration;

/// Evaluations after which a trend is trusted.
const ENOUGH: usize = 8;

/// A phase as a window shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Energy, largest force, iteration and seconds that may be left, in so few characters that the count of evaluations has
    /// room on 80 columns.
    pub name: String,
    /// Evaluations so far.
    pub done: u64,
    /// How many there may be in all; 0 if nothing can be said.
    pub total: u64,
}

/// Watches the largest force.
#[derive(Clone, Debug)]
pub struct Forecast {
    target: f64,
    /// Natural logarithms of the smallest largest force up to each evaluation.
    best: Vec<f64>,
}

impl Forecast {
    /// Towards forces of at most `target` eV/A.
    #[must_use]
    pub fn new(target: f64) -> Self {
        Self { target, best: Vec::new() }
    }

    /// Takes in another evaluation, `elapsed` after the first began: what a window shows.
    pub fn watch(&mut self, watch: &Watch, elapsed: Duration) -> Shown {
        let force = watch.max_force.max(f64::MIN_POSITIVE).ln();
        let best = self.best.last().copied().unwrap_or(f64::INFINITY).min(force);
        self.best.push(best);
        let left = self.left();
        let seconds = |left: u64| elapsed.as_secs_f64() / watch.evaluations.max(1) as f64 * left as f64;
        let rest = left.map_or_else(String::new, |left| format!(", ~{:.0} s left", seconds(left).ceil()));
        Shown {
            name: format!(
                "{:.3} eV, {:.1e} eV/A, iteration {}{rest}; evaluation",
                watch.energy, watch.max_force, watch.iterations
            ),
            done: watch.evaluations,
            total: left.map_or(0, |left| watch.evaluations + left),
        }
    }

    /// Evaluations that are left, by the trend of the last half of them.
    fn left(&self) -> Option<u64> {
        let count = self.best.len();
        if count < ENOUGH || self.target <= 0.0 {
            return None;
        }
        let (from, to) = (self.best[count / 2], self.best[count - 1]);
        let fall = (from - to) / (count - 1 - count / 2) as f64;
        let missing = to - self.target.ln();
        (fall > 1e-4).then(|| (missing / fall).max(0.0).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(n: u64, max_force: f64) -> Watch {
        let energy = -123_456_789.0;
        Watch { evaluations: n, iterations: n, energy, max_force, virial: [0.0; 6], stop: None }
    }

    #[test]
    fn a_steady_fall_is_foretold() {
        let mut forecast = Forecast::new(1e-8);
        for n in 1..20 {
            let force = 10f64.powf(-0.25 * n as f64);
            let shown = forecast.watch(&watch(n, force), Duration::from_secs(2 * n));
            assert!(shown.done == n && shown.name.len() <= 70, "{shown:?}");
            let total = if n < 8 { 0..=0 } else { 32..=33 };
            assert!(total.contains(&shown.total), "{shown:?}");
            let left = format!("~{} s left", 2 * shown.total.saturating_sub(n));
            assert_eq!(shown.name.contains(&left), n >= 8, "{shown:?}");
        }
    }

    #[test]
    fn no_fall_is_no_forecast() {
        let mut forecast = Forecast::new(1e-8);
        let mut shown = (1..50).map(|n| forecast.watch(&watch(n, 0.1), Duration::from_secs(n)));
        assert!(shown.all(|shown| shown.total == 0 && !shown.name.contains("left")));
    }
}
