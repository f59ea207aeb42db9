//! Conjugate gradients: Polak-Ribiere, restarted along the force whenever that is not downhill.
//!
//! About one evaluation for each line. A line begins with the step that would have been best on the last one. Two slopes
//! tell where its minimum is and, since the force changes evenly near a minimum, what the force is there; the next line
//! begins at that place without evaluating it. What is evaluated on the way shows whether that is true; where it is not,
//! the line is searched.

use super::line::{Line, LineDecision};
use super::{Choice, Measured, Turn};

/// First step, in A per eV/A: half of what the stiffest metals take.
const FIRST: f64 = 0.02;
/// Slope that is left at the end of a line that is searched. Smaller takes more evaluations, larger more lines.
const FLATNESS: f64 = 0.3;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Cg {
    max_step: f64,
    line: Option<Line>,
    /// f f and the largest component of f at the origin.
    ff: f64,
    max_f: f64,
    /// The step that would have been best on the last line.
    best: f64,
    /// Whether the direction is the force itself.
    straight: bool,
}

/// Where a line ends and the next begins: `part` of the step, with sums there.
struct End {
    part: f64,
    energy: f64,
    doubt: f64,
    ff: f64,
    fg: f64,
    fd: f64,
    max_f: f64,
}

impl End {
    fn at(measured: &Measured) -> Self {
        let &Measured { energy, ff, fg, fd, max_f, .. } = measured;
        Self { part: 1.0, energy, doubt: 0.0, ff, fg, fd, max_f }
    }
}

impl Cg {
    pub(super) fn new(max_step: f64) -> Self {
        Self { max_step, line: None, ff: 0.0, max_f: 0.0, best: FIRST, straight: true }
    }

    pub(super) fn next(&mut self, measured: &Measured) -> Choice {
        let Some(line) = &mut self.line else { return self.turn(measured, &End::at(measured), 0.0) };
        let here = End::at(measured);
        let verdict = line.judge(measured.energy, measured.fd);
        let (best, slope) = (line.best(measured.fd), line.slope());
        match verdict {
            LineDecision::Try(step) => Choice::Step(step),
            LineDecision::Accept => self.bend(measured, best, &here),
            LineDecision::Beyond { part, energy, doubt } => {
                let rest = 1.0 - part;
                let end = End {
                    part,
                    energy,
                    doubt,
                    ff: rest * rest * self.ff + 2.0 * part * rest * measured.fg + part * part * measured.ff,
                    fg: rest * self.ff + part * measured.fg,
                    fd: rest * slope + part * measured.fd,
                    max_f: rest.abs() * self.max_f + part * measured.max_f,
                };
                // A force that is all but gone is a difference of equals: it is evaluated.
                let gone = end.ff <= 1e-8 * self.ff;
                if gone && (part - 1.0).abs() > 1e-3 {
                    return Choice::Step(line.go_to(best));
                }
                self.bend(measured, best, if gone { &here } else { &end })
            }
            LineDecision::Fail if self.straight => Choice::Stuck,
            LineDecision::Fail => {
                // Back to the origin, and from there along the force.
                self.line = None;
                self.best = FIRST;
                Choice::Step(0.0)
            }
        }
    }

    /// Into the conjugate direction.
    fn bend(&mut self, measured: &Measured, best: f64, end: &End) -> Choice {
        self.best = best;
        let beta = ((end.ff - end.fg) / self.ff).max(0.0);
        self.turn(measured, end, beta)
    }

    fn turn(&mut self, measured: &Measured, end: &End, beta: f64) -> Choice {
        let slope = end.ff + beta * end.fd;
        let downhill = slope > 1e-3 * end.ff;
        let (beta, slope) = if downhill { (beta, slope) } else { (0.0, end.ff) };
        if slope <= 0.0 {
            return Choice::Stuck;
        }
        let max_d = end.max_f + beta * measured.max_d;
        let walked = self.line.as_ref().map_or(0.0, |line| line.step() * measured.max_d);
        let line = Line::new(end.energy, slope, self.best, self.max_step / max_d, FLATNESS, end.doubt);
        (self.ff, self.max_f, self.straight) = (end.ff, end.max_f, beta == 0.0);
        self.line = Some(line);
        let turn = Turn { beyond: end.part - 1.0, force: 1.0, direction: beta, ..Turn::default() };
        Choice::Turn { turn, step: line.step(), max_d, away: (end.part - 1.0).abs() * walked }
    }
}
