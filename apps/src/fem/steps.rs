//! The iteration as a list of steps that every subdomain takes: conjugate gradients with one sum over all subdomains in each
//! iteration (A. T. Chronopoulos, C. W. Gear, Journal of Computational and Applied Mathematics 25, 1989), helped by a cycle
//! of multigrid whose smoother is a polynomial of Chebyshev (M. Adams, M. Brezina, J. Hu, R. Tuminaro, Journal of Computational
//! Physics 188, 2003).

use super::problem::Preconditioner;
use serde::{Deserialize, Serialize};

/// A vector of a level, 0 being the finest. The preconditioner takes `B` to `X`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vector {
    /// The right-hand side; on the finest level the residual of conjugate gradients.
    B,
    /// What the preconditioner makes of it.
    X,
    /// What is left of it.
    R,
    /// The last change of X.
    D,
}

/// A step. Those that exchange come in twos: numbers are told, and awaited from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Tells others the own numbers that they have copies of.
    Tell(usize, Vector),
    /// Waits for those of others.
    Await(usize, Vector),
    /// X = B.
    Copy,
    /// X = B over the diagonal.
    Scale,
    /// X = what the incomplete factors make of B.
    Factors,
    /// The first part of the polynomial, where X is 0.
    Smooth(usize),
    /// The next part, by its number from 1.
    SmoothOn(usize, u32),
    /// The last change is taken from R.
    Settle(usize),
    /// R goes to the right-hand side of the next level.
    Restrict(usize),
    /// The right-hand side of the coarsest level goes to where it is solved, and its X comes back.
    Coarse(usize),
    /// X of the next level is added to X.
    Prolong(usize),
    /// The first part of the polynomial, where X is not 0.
    SmoothAgain(usize),
    /// A X, and sums over all subdomains.
    Sum,
}

/// The steps of an iteration.
#[must_use]
pub fn iteration(preconditioner: Preconditioner, levels: usize, degree: u32) -> Vec<Step> {
    let mut steps = match preconditioner {
        Preconditioner::None => vec![Step::Copy],
        Preconditioner::Jacobi => vec![Step::Scale],
        Preconditioner::Ilu => vec![Step::Factors],
        Preconditioner::Multigrid => cycle(0, levels - 1, degree),
    };
    exchange(&mut steps, 0, Vector::X);
    steps.push(Step::Sum);
    steps
}

/// A cycle from a level to the coarsest and back.
fn cycle(level: usize, coarsest: usize, degree: u32) -> Vec<Step> {
    if level == coarsest {
        return vec![Step::Coarse(level)];
    }
    let mut steps = vec![Step::Smooth(level)];
    let smooth_on = |steps: &mut Vec<Step>| {
        for part in 1..degree {
            exchange(steps, level, Vector::D);
            steps.push(Step::SmoothOn(level, part));
        }
    };
    smooth_on(&mut steps);
    exchange(&mut steps, level, Vector::D);
    steps.push(Step::Settle(level));
    exchange(&mut steps, level, Vector::R);
    steps.push(Step::Restrict(level));
    steps.extend(cycle(level + 1, coarsest, degree));
    // What is solved at one place comes with the numbers of others.
    if level + 1 < coarsest {
        exchange(&mut steps, level + 1, Vector::X);
    }
    steps.push(Step::Prolong(level));
    exchange(&mut steps, level, Vector::X);
    steps.push(Step::SmoothAgain(level));
    smooth_on(&mut steps);
    steps
}

fn exchange(steps: &mut Vec<Step>, level: usize, vector: Vector) {
    steps.extend([Step::Tell(level, vector), Step::Await(level, vector)]);
}

/// Numbers of the polynomial of Chebyshev for eigenvalues between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Polynomial {
    middle: f64,
    half: f64,
}

impl Polynomial {
    /// For eigenvalues of D^-1 A up to `largest`, those that a coarser mesh does not have.
    #[must_use]
    pub fn new(largest: f64, smallest: f64) -> Self {
        Self { middle: (largest + smallest) / 2.0, half: (largest - smallest) / 2.0 }
    }

    /// What a residual over the diagonal counts for in the first change.
    #[must_use]
    pub fn first(&self) -> f64 {
        1.0 / self.middle
    }

    /// What the last change and a residual over the diagonal count for in change number `part`.
    #[must_use]
    pub fn next(&self, part: u32) -> (f64, f64) {
        let sigma = self.middle / self.half;
        let mut rho = (1.0 / sigma, 1.0 / sigma);
        for _ in 0..part {
            rho = (rho.1, 1.0 / (2.0 * sigma - rho.1));
        }
        (rho.0 * rho.1, 2.0 * rho.1 / self.half)
    }
}
