//! How far an iteration is.

use super::problem::{Preconditioner, Problem};
use chares::Reduce;
use serde::{Deserialize, Serialize};

/// How the iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// The residual is as small as was asked for.
    Converged,
    /// All iterations that are allowed were made.
    Exhausted,
    /// Numbers are not finite any more, or the matrix is not positive definite.
    Broken,
}

/// How far an iteration is, which all subdomains know alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Iterations that were made.
    pub iterations: u32,
    /// The residual's length squared at the begin.
    pub begun: f64,
    /// And now.
    pub now: f64,
    /// Of the iteration before: residual times correction, and the length of the step.
    pub(super) last: [f64; 2],
    /// How it ended.
    pub why: Option<Why>,
}

impl Reduce for Course {
    /// All know the same.
    fn combine(&mut self, _: Self) {}
}

impl Course {
    /// The residual relative to that of the begin.
    #[must_use]
    pub fn residual(&self) -> f64 {
        if self.begun > 0.0 { (self.now / self.begun).sqrt() } else { 0.0 }
    }
}

/// Why an iteration did not converge, and what would help.
#[must_use]
pub fn not_converged(problem: &Problem, course: &Course) -> String {
    let (residual, iterations) = (course.residual(), course.iterations);
    if course.why == Some(Why::Broken) {
        return format!(
            "the iteration broke down after {iterations} iterations at a residual of {residual:.1e}: something is not fixed \
             enough, or numbers differ too much in size"
        );
    }
    format!(
        "no convergence in {iterations} iterations: the residual is {residual:.1e} of the first, and --tolerance is {:.1e}: \
         raise --max-iterations or --tolerance{}",
        problem.solver.tolerance,
        match problem.solver.preconditioner {
            Preconditioner::Jacobi | Preconditioner::None => ", or take a better --preconditioner",
            _ => "",
        }
    )
}
