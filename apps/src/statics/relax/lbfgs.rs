//! Limited-memory BFGS from scalar products alone (W. Chen, Z. Wang, J. Zhou, Large-scale L-BFGS using MapReduce, NIPS 27,
//! 2014): the direction is a sum of the kept steps, and its factors follow from their products with each other.

use super::line::{Line, LineDecision};
use super::{Choice, Measured, Turn};

/// Steps that are kept.
const KEPT: usize = 5;
/// First step along the force, as for conjugate gradients.
const FIRST: f64 = 0.02;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Lbfgs {
    max_step: f64,
    line: Option<Line>,
    /// Steps that the blocks keep, oldest first.
    steps: Vec<Kept>,
    straight: bool,
}

/// A step that is kept: products of its s and y with the y of all steps that are kept, and largest components.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Kept {
    s_y: Vec<f64>,
    y_y: Vec<f64>,
    f_s: f64,
    f_y: f64,
    largest: [f64; 2],
}

impl Lbfgs {
    pub(super) fn new(max_step: f64) -> Self {
        Self { max_step, line: None, steps: Vec::new(), straight: true }
    }

    pub(super) fn next(&mut self, measured: &Measured) -> Choice {
        let Some(line) = &mut self.line else {
            self.steps.clear();
            return self.along_force(measured);
        };
        match line.judge(measured.energy, measured.fd) {
            LineDecision::Try(step) => Choice::Step(step),
            LineDecision::Accept | LineDecision::Beyond { .. } => self.turn(measured),
            LineDecision::Fail if self.straight => Choice::Stuck,
            LineDecision::Fail => {
                self.line = None;
                Choice::Step(0.0)
            }
        }
    }

    fn along_force(&mut self, measured: &Measured) -> Choice {
        if measured.ff == 0.0 {
            return Choice::Stuck;
        }
        self.straight = true;
        let turn = Turn { force: 1.0, ..Turn::default() };
        self.search(measured, turn, measured.ff, measured.max_f, FIRST)
    }

    fn search(&mut self, measured: &Measured, turn: Turn, slope: f64, max_d: f64, step: f64) -> Choice {
        let line = Line::new(measured.energy, slope, step, self.max_step / max_d, 0.9, 0.0);
        self.line = Some(line);
        Choice::Turn { turn, step: line.step(), max_d, away: 0.0 }
    }

    fn turn(&mut self, measured: &Measured) -> Choice {
        let [sy, yy, ..] = measured.history.new;
        // Without curvature along the step nothing is learnt; all that was kept is let go.
        if sy <= 1e-12 * yy || yy == 0.0 {
            self.steps.clear();
            return self.along_force(measured);
        }
        self.keep(measured);
        let (factors, gamma) = self.factors();
        let mut slope = gamma * measured.ff;
        let mut max_d = gamma * measured.max_f;
        for (step, [s, y]) in self.steps.iter().zip(&factors) {
            slope += s * step.f_s + y * step.f_y;
            max_d += s.abs() * step.largest[0] + y.abs() * step.largest[1];
        }
        if slope <= 0.0 {
            self.steps.clear();
            return self.along_force(measured);
        }
        self.straight = false;
        let turn = Turn { force: gamma, keep: self.steps.len(), history: factors, ..Turn::default() };
        self.search(measured, turn, slope, max_d, 1.0)
    }

    /// Takes the step that ends here into the kept ones.
    fn keep(&mut self, measured: &Measured) {
        let [sy, yy, fs, fy] = measured.history.new;
        for (step, [_, y_sk, y_yk, f_sk, f_yk]) in self.steps.iter_mut().zip(&measured.history.kept) {
            step.s_y.push(*y_sk);
            step.y_y.push(*y_yk);
            (step.f_s, step.f_y) = (*f_sk, *f_yk);
        }
        let with = |part: usize| measured.history.kept.iter().map(move |products| products[part]);
        let mut s_y: Vec<f64> = with(0).collect();
        let mut y_y: Vec<f64> = with(2).collect();
        s_y.push(sy);
        y_y.push(yy);
        self.steps.push(Kept { s_y, y_y, f_s: fs, f_y: fy, largest: measured.history.largest });
        if self.steps.len() > KEPT {
            self.steps.remove(0);
            for step in &mut self.steps {
                step.s_y.remove(0);
                step.y_y.remove(0);
            }
        }
    }

    /// Factors of s_k and y_k in the direction, and that of the force: the two loops of L-BFGS in products.
    fn factors(&self) -> (Vec<[f64; 2]>, f64) {
        let count = self.steps.len();
        let rho: Vec<f64> = self.steps.iter().enumerate().map(|(k, step)| 1.0 / step.s_y[k]).collect();
        // q = f - sum alpha_k y_k.
        let mut alpha = vec![0.0; count];
        for k in (0..count).rev() {
            let s_q: f64 =
                self.steps[k].f_s - (k + 1..count).map(|j| alpha[j] * self.steps[k].s_y[j]).sum::<f64>();
            alpha[k] = rho[k] * s_q;
        }
        let last = &self.steps[count - 1];
        let gamma = last.s_y[count - 1] / last.y_y[count - 1];
        // r = gamma q + sum (alpha_k - beta_k) s_k.
        let mut factors: Vec<[f64; 2]> = alpha.iter().map(|alpha| [0.0, -gamma * alpha]).collect();
        for k in 0..count {
            let y_r = gamma * self.steps[k].f_y
                + (0..count).map(|j| factors[j][1] * self.steps[k].y_y[j]).sum::<f64>()
                + (0..k).map(|j| factors[j][0] * self.steps[j].s_y[k]).sum::<f64>();
            factors[k][0] = alpha[k] - rho[k] * y_r;
        }
        (factors, gamma)
    }
}
