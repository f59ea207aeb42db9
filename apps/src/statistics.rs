//! Medians and percentiles of what was measured.

pub use command::statistics::{median, quantile};
use serde::Serialize;

/// A sample in a few numbers, all in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many values there were.
    pub samples: usize,
    /// Their mean.
    pub mean: f64,
    /// A twentieth is below it.
    pub p5: f64,
    /// The median.
    pub p50: f64,
    /// A twentieth is above it.
    pub p95: f64,
    /// A hundredth is above it; of less than a hundred values, near the largest.
    pub p99: f64,
}

impl Summary {
    /// Of these values; `None` of nothing.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let part = |at| quantile(&values, at);
        Some(Self {
            samples: values.len(),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p5: part(0.05)?,
            p50: part(0.5)?,
            p95: part(0.95)?,
            p99: part(0.99)?,
        })
    }
}

/// Three digits that say something, or all before the point.
#[must_use]
pub fn figure(number: f64) -> String {
    let decimals = match number.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_a_ramp_are_its_values() {
        let ramp: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let summary = Summary::of(ramp).unwrap();
        let expected = Summary { samples: 101, mean: 50.0, p5: 5.0, p50: 50.0, p95: 95.0, p99: 99.0 };
        assert_eq!(summary, expected);
        assert_eq!(Summary::of(Vec::new()), None);
    }

    #[test]
    fn figures_have_three_digits() {
        let figures = [0.01234, 1.2345, 12.345, 123.45, 12345.6].map(figure);
        assert_eq!(figures, ["0.012", "1.23", "12.3", "123", "12346"]);
    }

    proptest! {
        #[test]
        fn percentiles_are_ordered_and_within_the_values(values in prop::collection::vec(0.0..1e9f64, 1..200)) {
            let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
            let Summary { p5, p50, p95, p99, mean, .. } = Summary::of(values).unwrap();
            prop_assert!(low <= p5 && p5 <= p50 && p50 <= p95 && p95 <= p99 && p99 <= high);
            prop_assert!(low * 0.999_999 <= mean && mean <= high * 1.000_001);
        }
    }
}
