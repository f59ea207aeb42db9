//! How long a relaxation may take.
//!
//! Conjugate gradients make the largest force smaller by about the same factor in each evaluation, once they are near the
//! minimum. The forecast draws that line through the smallest forces so far and where they began; it is no promise, and
//! without a trend it says nothing.

/// Evaluations after which a trend is trusted.
const ENOUGH: usize = 8;

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

    /// Takes in the largest force of another evaluation, eV/A.
    pub fn watch(&mut self, max_force: f64) {
        let force = max_force.max(f64::MIN_POSITIVE).ln();
        let best = self.best.last().copied().unwrap_or(f64::INFINITY).min(force);
        self.best.push(best);
    }

    /// Evaluations that are left, by the trend of the last half of them; nothing if there is none.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
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

    #[test]
    fn a_steady_fall_is_foretold() {
        let mut forecast = Forecast::new(1e-8);
        for n in 1..20 {
            forecast.watch(10f64.powf(-0.25 * n as f64));
            let total = forecast.left().map(|left| n + left);
            assert!(if n < 8 { total.is_none() } else { matches!(total, Some(32 | 33)) }, "{n}: {total:?}");
        }
    }

    #[test]
    fn no_fall_is_no_forecast() {
        let mut forecast = Forecast::new(1e-8);
        for _ in 0..50 {
            forecast.watch(0.1);
            assert_eq!(forecast.left(), None);
        }
    }
}
