//! What speeds are measured with: steps of particles such as a run has, in the caches as little as those are.

use super::particles::{Particles, Pushing};
use super::problem::Problem;

/// Particles that are more than stay in a cache near a core, and those of a call.
const PARTICLES_MAX: u64 = 1 << 20;
const CALL_PARTICLES: u64 = 1 << 17;

/// Some particles in parts, each of which takes a step in turn.
#[derive(Debug)]
pub(super) struct Kernel {
    pushing: Pushing,
    field: Vec<f64>,
    grid: Vec<i64>,
    parts: Vec<Particles>,
    leaving: Vec<u32>,
    next: usize,
}

impl Kernel {
    pub(super) fn new(problem: &Problem) -> Self {
        let pushing = Pushing::new(problem, problem.whole());
        let all = problem.particles().min(PARTICLES_MAX);
        let count = all.div_ceil(CALL_PARTICLES);
        // Every part from all over the numbers, which ascend along x.
        let parts = (0..count).map(|part| {
            let first = part * problem.particles() / count;
            let mut particles = problem.numbered(first..first + (all / count).max(1));
            particles.sort(&pushing);
            particles
        });
        // Alternating pushes of a thousandth of a cell: particles stay where they are, about.
        let field = (0..2 * pushing.field()).map(|at| if at % 3 == 0 { 1e-3 } else { -5e-4 }).collect();
        Self {
            parts: parts.collect(),
            field,
            grid: vec![0; pushing.sums()],
            pushing,
            leaving: Vec::new(),
            next: 0,
        }
    }

    /// A step of the next part; the units are particles.
    pub(super) fn call(&mut self) -> f64 {
        let Self { pushing, field, grid, parts, leaving, next } = self;
        *next = (*next + 1) % parts.len().max(1);
        let Some(part) = parts.get_mut(*next) else { return 1.0 };
        std::hint::black_box(part.advance(pushing, (field, false), grid, leaving));
        part.len() as f64
    }
}
