//! Search along a line: a quadratic through two slopes, and Armijo's condition to fall back on.

/// What to do after an evaluation on the line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum LineDecision {
    /// Here the line ends.
    Accept,
    /// Here the line ends, and the quadratic tells its minimum so well that nothing need be evaluated there: at `part` of
    /// the step, with this energy, known to within `doubt`.
    Beyond { part: f64, energy: f64, doubt: f64 },
    /// Evaluate at this step.
    Try(f64),
    /// Nothing along this line is lower.
    Fail,
}

/// A line from an origin with this energy, and the force along it.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Line {
    energy: f64,
    /// How well the energy at the origin is known.
    doubt: f64,
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
/// A quadratic that misses the fall of the energy by no more than this part is trusted.
const TRUSTED: f64 = 0.1;

impl Line {
    /// `slope` is force times direction at the origin, positive downhill.
    pub(super) fn new(energy: f64, slope: f64, step: f64, longest: f64, flatness: f64, doubt: f64) -> Self {
        Self { energy, doubt, slope, step: step.min(longest), longest, flatness, tries: 0 }
    }

    /// The step to evaluate.
    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// The slope at the origin.
    pub(super) fn slope(&self) -> f64 {
        self.slope
    }

    /// With the energy and the force along the line at the step.
    pub(super) fn judge(&mut self, energy: f64, slope: f64) -> LineDecision {
        self.tries += 1;
        let best = self.best(slope);
        let lower = energy <= self.energy + self.doubt - ARMIJO * self.step * self.slope;
        // Near the minimum energies are rounded alike, and slopes tell more.
        let level =
            energy <= self.energy + self.doubt + ROUNDING * self.energy.abs() && slope.abs() <= self.slope;
        if !(lower || level) {
            return if self.tries > 20 {
                LineDecision::Fail
            } else {
                self.go(best.clamp(0.1 * self.step, 0.5 * self.step))
            };
        }
        let rounding = ROUNDING * self.energy.abs();
        let promised = 0.5 * self.step * (self.slope + slope);
        let missed = (self.energy - energy - promised).abs();
        let part = best / self.step;
        if missed <= TRUSTED * promised.abs() + self.doubt + rounding
            && (0.2..=3.0).contains(&part)
            && best <= self.longest
        {
            let energy = energy - 0.5 * slope * (best - self.step);
            return LineDecision::Beyond { part, energy, doubt: missed + rounding };
        }
        let flat = slope.abs() <= self.flatness * self.slope;
        if flat || self.tries > 2 || (slope > 0.0 && self.step >= self.longest) {
            return LineDecision::Accept;
        }
        self.go(best.clamp(0.1 * self.step, 4.0 * self.step))
    }

    /// The step at which the force along the line would be 0 if it changed evenly.
    pub(super) fn best(&self, slope: f64) -> f64 {
        let fall = self.slope - slope;
        if fall > 0.0 { self.step * self.slope / fall } else { 2.0 * self.step }
    }

    /// Evaluates at this step next.
    pub(super) fn go_to(&mut self, step: f64) -> f64 {
        self.step = step.min(self.longest);
        self.step
    }

    fn go(&mut self, step: f64) -> LineDecision {
        LineDecision::Try(self.go_to(step))
    }
}
