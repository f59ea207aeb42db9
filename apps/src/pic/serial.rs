//! The same by one thread in one page: what runs are compared with.

use super::field::{Differences, Solver};
use super::figures::{Account, Figures};
use super::particles::{Particles, Pushing, around};
use super::problem::{Problem, Scheme};

/// A plasma that is followed here.
#[derive(Debug)]
pub struct Serial {
    problem: Problem,
    pushing: Pushing,
    solver: Solver,
    /// All particles, in the order of their numbers.
    pub particles: Particles,
    grid: Vec<i64>,
    step: u32,
}

impl Serial {
    /// At the beginning.
    #[must_use]
    pub fn new(problem: &Problem) -> Self {
        let problem = Problem { scheme: Scheme::Fixed, ..problem.clone() };
        let pushing = Pushing::new(&problem, problem.whole());
        let particles = problem.numbered(0..problem.particles());
        let mut grid = vec![0; pushing.sums()];
        particles.deposit(0, &pushing, &mut grid);
        Self { solver: Solver::new(&problem), pushing, particles, grid, step: 0, problem }
    }

    /// Takes a step. `None` if a particle goes further than it may.
    pub fn step(&mut self) -> Option<Figures> {
        let Self { problem, pushing, solver, particles, grid, step } = self;
        let charge = around(pushing.folded(grid), problem.cells[1]);
        let solved = solver.solve(&charge);
        let mut account = Account::of(&charge, problem.cells[1]);
        account.add_row(solved.energy);
        grid.fill(0);
        let mut field = Vec::new();
        Differences::new(problem).everywhere(&solved.potential, &mut field);
        let pushed = particles.advance(pushing, (&field, *step == 0), grid, &mut Vec::new());
        (account.step, account.kinetic) = (*step, pushed.kinetic);
        *step += 1;
        (!pushed.is_wild).then(|| account.figures(problem))
    }
}
