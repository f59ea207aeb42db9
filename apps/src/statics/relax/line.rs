//! Search along a line: a quadratic through two slopes, and Armijo's condition to fall back on.

/// What to do after an evaluation on the line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Verdict {
    /// Here the line ends. Where its minimum would be, by the last two slopes.
    Accept { best: f64 },
    /// Evaluate at this step.
    Try(f64),
    /// Nothing along this line is lower.
    Fail,
}

/// A line from an origin with this energy, and the force along it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    energy: f64,
    slope: f64,
    step: f64,
    longest: f64,
    /// The slope at the end may be this part of that at the origin.
    flatness: f64,
    tries: u32,
}

/// The energy has to fall by this part of what the slope promises.
const ARMIJO: f64 = 1e-4;
/// Energies that differ by less, relatively, are equal but for rounding.
const ROUNDING: f64 = 1e-13;

impl Line {
    /// `slope` is force times direction at the origin, positive downhill.
    pub(super) fn new(energy: f64, slope: f64, step: f64, longest: f64, flatness: f64) -> Self {
        Self { energy, slope, step: step.min(longest), longest, flatness, tries: 0 }
    }

    /// The step to evaluate.
    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// With the energy and the force along the line at the step.
    pub(super) fn judge(&mut self, energy: f64, slope: f64) -> Verdict {
        self.tries += 1;
        let fall = self.slope - slope;
        let best = if fall > 0.0 { self.step * self.slope / fall } else { 2.0 * self.step };
        let flat = slope.abs() <= self.flatness * self.slope;
        let lower = energy <= self.energy - ARMIJO * self.step * self.slope;
        // Near the minimum energies are rounded alike, and slopes tell more.
        let level = energy <= self.energy + ROUNDING * self.energy.abs() && slope.abs() <= self.slope;
        if lower || level {
            let enough = flat || self.tries > 2 || (slope > 0.0 && self.step >= self.longest);
            if enough {
                return Verdict::Accept { best };
            }
            return self.go(best.clamp(0.1 * self.step, 4.0 * self.step));
        }
        if self.tries > 20 {
            return Verdict::Fail;
        }
        self.go(best.clamp(0.1 * self.step, 0.5 * self.step))
    }

    fn go(&mut self, step: f64) -> Verdict {
        self.step = step.min(self.longest);
        Verdict::Try(self.step)
    }
}
