//! Conjugate gradients: Polak-Ribiere, restarted along the force whenever that is not downhill.
//!
//! The next line begins with the step that would have been best on the last one, so that most lines end at their first
//! evaluation; another follows where the slope at its end is more than a part of that at its origin.

use super::line::{Line, Verdict};
use super::{Choice, Measured, Turn};

/// First step, in A per eV/A: half of what the stiffest metals take.
const FIRST: f64 = 0.02;
/// Slope that is left at the end of a line. Smaller takes more evaluations for a line, larger more lines.
const FLATNESS: f64 = 0.3;

pub(super) struct Cg {
    max_step: f64,
    line: Option<Line>,
    /// f f at the origin.
    ff: f64,
    /// The step that would have been best on the last line.
    best: f64,
    /// Whether the direction is the force itself.
    straight: bool,
}

impl Cg {
    pub(super) fn new(max_step: f64) -> Self {
        Self { max_step, line: None, ff: 0.0, best: FIRST, straight: true }
    }

    pub(super) fn next(&mut self, measured: &Measured) -> Choice {
        let Some(line) = &mut self.line else { return self.turn(measured, 0.0) };
        match line.judge(measured.energy, measured.fd) {
            Verdict::Try(step) => Choice::Step(step),
            Verdict::Accept { best } => {
                self.best = best;
                let beta = ((measured.ff - measured.fg) / self.ff).max(0.0);
                self.turn(measured, beta)
            }
            Verdict::Fail if self.straight => Choice::Stuck,
            Verdict::Fail => {
                // Back to the origin, and from there along the force.
                self.line = None;
                self.best = FIRST;
                Choice::Step(0.0)
            }
        }
    }

    fn turn(&mut self, measured: &Measured, beta: f64) -> Choice {
        let slope = measured.ff + beta * measured.fd;
        let downhill = slope > 1e-3 * measured.ff;
        let (beta, slope) = if downhill { (beta, slope) } else { (0.0, measured.ff) };
        if slope == 0.0 {
            return Choice::Stuck;
        }
        let max_d = measured.max_f + beta * measured.max_d;
        let line = Line::new(measured.energy, slope, self.best, self.max_step / max_d, FLATNESS);
        self.ff = measured.ff;
        self.straight = beta == 0.0;
        self.line = Some(line);
        Choice::Turn {
            turn: Turn { force: 1.0, direction: beta, ..Turn::default() },
            step: line.step(),
            max_d,
        }
    }
}
