//! When to stop: the largest changes of each iteration in, a verdict out. All blocks see the same changes and so come to
//! the same verdict without asking each other.
//!
//! Changes are looked at relative to the first, each right-hand side's to its own. x begins as 0, so the first change is
//! D^-1 B, and a later one is D^-1 (B - A x): the rule is that of a relative residual, and means the same whatever the
//! units of B and of the rows are.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A change this many times the smallest one so far is no detour any more: the iteration runs away.
const RUNAWAY: f64 = 1e10;
/// Without a new smallest change for so many iterations, a change that has grown by [`GROWTH`] since counts as such.
const PATIENCE: u32 = 200;
const GROWTH: f64 = 10.0;
/// Iterations from which the rate of convergence is told.
const WINDOW: usize = 16;

/// Why the iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// No unknown changed by more than the tolerance allows.
    Converged,
    /// Changes grow instead of shrinking, or are no numbers any more.
    Diverged,
    /// The last iteration that is allowed was made.
    Exhausted,
}

/// The end of the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationEnd {
    /// The iteration that decided, from 1: the result is what it gave.
    pub iteration: u32,
    /// Its largest change, relative to the first of the same right-hand side.
    pub change: f64,
    /// The smallest one of all iterations.
    pub least: f64,
    /// Its largest change as it is.
    pub largest: f64,
    /// What it means.
    pub why: Why,
}

/// Follows the changes of all iterations, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Watch {
    tolerance: f64,
    max_iterations: u32,
    iteration: u32,
    /// The largest change of each right-hand side in the first iteration.
    first: Vec<f64>,
    least: f64,
    least_at: u32,
    recent: VecDeque<f64>,
}

impl Watch {
    pub(super) fn new(tolerance: f64, max_iterations: u32) -> Self {
        Self {
            tolerance,
            max_iterations,
            iteration: 0,
            first: Vec::new(),
            least: f64::INFINITY,
            least_at: 0,
            recent: VecDeque::with_capacity(WINDOW + 1),
        }
    }

    /// Iterations whose changes are known.
    pub(super) fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Takes up the largest change of each right-hand side in the next iteration; a verdict if it is the last one.
    pub(super) fn observe(&mut self, changes: &[f64]) -> Option<IterationEnd> {
        if self.iteration == 0 {
            self.first = changes.to_vec();
        }
        self.iteration += 1;
        let relative = |(&change, first): (&f64, &f64)| if change == 0.0 { 0.0 } else { change / first };
        let change = largest(changes.iter().zip(&self.first).map(relative));
        if change < self.least {
            (self.least, self.least_at) = (change, self.iteration);
        }
        self.recent.push_back(change);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        let has_grown = self.iteration - self.least_at >= PATIENCE && change > GROWTH * self.least;
        let why = if !change.is_finite() || change > RUNAWAY * self.least || has_grown {
            Why::Diverged
        } else if change <= self.tolerance {
            Why::Converged
        } else if self.iteration >= self.max_iterations {
            Why::Exhausted
        } else {
            return None;
        };
        let largest = largest(changes.iter().copied());
        Some(IterationEnd { iteration: self.iteration, change, least: self.least, largest, why })
    }

    /// What the window shows: how many iterations there will be if the changes go on shrinking as they did of late,
    /// nothing if they do not shrink; and how large they are.
    pub(super) fn forecast(&self) -> (Option<u64>, String) {
        let change = self.recent.back().copied().unwrap_or(f64::INFINITY);
        let first = self.recent.front().copied().unwrap_or(change);
        let shrinks = (change / first).ln() / (self.recent.len().max(2) - 1) as f64;
        let left = (self.tolerance / change).ln() / shrinks;
        let expected = (shrinks < 0.0 && left.is_finite()).then(|| {
            let left = left.ceil().clamp(0.0, 1e9) as u64;
            (u64::from(self.iteration) + left).min(u64::from(self.max_iterations))
        });
        (expected, format!("change {change:.1e}, wants {:e}", self.tolerance))
    }
}

/// The largest of some magnitudes, or what is no number among them.
fn largest(magnitudes: impl Iterator<Item = f64>) -> f64 {
    magnitudes.fold(0.0, |most, next| if next > most || next.is_nan() { next } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(changes: impl IntoIterator<Item = f64>) -> Option<IterationEnd> {
        let mut watch = Watch::new(1e-6, 1000);
        changes.into_iter().find_map(|change| watch.observe(&[change]))
    }

    #[test]
    fn the_units_of_a_right_hand_side_do_not_matter() {
        let halved = |scales: &[f64]| {
            let mut watch = Watch::new(1e-6, 1000);
            let mut changes = (0..).map(|k| scales.iter().map(|s| s * 0.5f64.powi(k)).collect::<Vec<_>>());
            changes.find_map(|changes| watch.observe(&changes)).unwrap()
        };
        for scales in [[1.0, 1.0], [1e-11, 1e-11], [1e30, 1e-30], [1.0, 0.0]] {
            let verdict = halved(&scales);
            assert_eq!((verdict.iteration, verdict.why), (21, Why::Converged), "{scales:?}");
            assert_eq!(verdict.largest, scales[0] * 0.5f64.powi(20));
        }
        // The small one stands still.
        let mut watch = Watch::new(1e-6, 50);
        let mut changes = (0..).map(|k| [0.5f64.powi(k), 1e-11]);
        assert_eq!(changes.find_map(|changes| watch.observe(&changes)).unwrap().why, Why::Exhausted);
    }

    #[test]
    fn the_first_change_within_the_tolerance_ends_it() {
        let verdict = ended((0..).map(|k| 0.5f64.powi(k))).unwrap();
        assert_eq!((verdict.iteration, verdict.why), (21, Why::Converged));
        assert_eq!(ended([1.0, 1e-6]).unwrap().why, Why::Converged);
        assert_eq!(ended([0.0]).unwrap().why, Why::Converged);
    }

    #[test]
    fn growth_for_good_is_found_and_a_detour_is_not() {
        for least in [1.0, 1e-3] {
            let verdict = ended((0..).map(|k| least * 1.01f64.powi(k))).unwrap();
            assert_eq!((verdict.iteration, verdict.why), (PATIENCE + 32 + 1, Why::Diverged));
            // 8^12 is the first that is more than 10^10.
            let verdict = ended((0..).map(|k| least * 8.0f64.powi(k))).unwrap();
            assert_eq!((verdict.iteration, verdict.why, verdict.least), (13, Why::Diverged, 1.0));
        }
        // Patience begins with the smallest change, which is that of iteration 150.
        let turn =
            (0..150).map(|k| 0.95f64.powi(k)).chain((1..).map(|k| 0.95f64.powi(149) * 1.02f64.powi(k)));
        let verdict = ended(turn).unwrap();
        assert_eq!((verdict.iteration, verdict.why), (150 + PATIENCE, Why::Diverged));
        // Up by a factor of a million for a hundred iterations, and then down.
        let detour = (0..100).map(|k| 1.15f64.powi(k)).chain((0..).map(|k| 1e6 * 0.7f64.powi(k)));
        assert_eq!(ended(detour).unwrap().why, Why::Converged);
    }

    #[test]
    fn what_is_no_number_has_diverged() {
        assert_eq!(ended([1.0, f64::NAN]).unwrap().why, Why::Diverged);
        assert_eq!(ended([1.0, f64::INFINITY]).unwrap().iteration, 2);
    }

    #[test]
    fn the_cap_ends_what_only_stands_still() {
        let verdict = ended(std::iter::repeat(0.5)).unwrap();
        assert_eq!((verdict.iteration, verdict.why), (1000, Why::Exhausted));
    }

    #[test]
    fn the_estimate_is_right_for_steady_convergence_and_absent_without() {
        let mut watch = Watch::new(1e-6, 1000);
        (0..30).for_each(|k| assert!(watch.observe(&[0.9f64.powi(k)]).is_none()));
        // 0.9^131.1 is the tolerance.
        let (expected, detail) = watch.forecast();
        assert!(expected.is_some_and(|expected| (132..=133).contains(&expected)), "{expected:?}");
        assert_eq!(detail, "change 4.7e-2, wants 1e-6");
        // What was long ago does not count.
        let mut watch = Watch::new(1e-6, 1000);
        (0..50).for_each(|k| assert!(watch.observe(&[0.9f64.powi((k - 20).max(0))]).is_none()));
        assert!(watch.forecast().0.is_some_and(|expected| (152..=153).contains(&expected)));
        let mut watch = Watch::new(1e-6, 1000);
        (0..30).for_each(|k| assert!(watch.observe(&[1.1f64.powi(k)]).is_none()));
        assert_eq!(watch.forecast().0, None);
    }
}
