//! How far a relaxation is, and how long the rest may take.
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

    /// Takes in another evaluation: a line for people, evaluations so far, and how many there may be in all, 0 if
    /// nothing can be said.
    pub fn phase(&mut self, evaluations: u64, energy: f64, max_force: f64) -> (String, u64, u64) {
        let force = max_force.max(f64::MIN_POSITIVE).ln();
        let best = self.best.last().copied().unwrap_or(f64::INFINITY).min(force);
        self.best.push(best);
        let total = self.left().map_or(0, |left| evaluations + left);
        let line =
            format!("evaluation {evaluations}, energy {energy:.6} eV, largest force {max_force:.2e} eV/A,");
        (line, evaluations, total)
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

    #[test]
    fn a_steady_fall_is_foretold() {
        let mut forecast = Forecast::new(1e-8);
        let force = |n: u64| 10f64.powf(-0.25 * n as f64);
        for n in 1..20 {
            let (_, done, total) = forecast.phase(n, -1.0, force(n));
            assert_eq!(done, n);
            assert!(if n < 8 { total == 0 } else { (32..=33).contains(&total) }, "{n}: {total}");
        }
    }

    #[test]
    fn no_fall_is_no_forecast() {
        let mut forecast = Forecast::new(1e-8);
        assert!((1..50).all(|n| forecast.phase(n, -1.0, 0.1).2 == 0));
    }
}
