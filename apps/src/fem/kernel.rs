//! What the speed of a PE is measured by, and counted in: iterations such as those of the problem.

use super::arguments::Fem;
use super::gmres::BASIS;
use super::lattice::Lattice;
use super::level::lattices;
use super::machine::{Machine, Need};
use super::problem::{Boundary, Condition, Domain, Preconditioner, Problem, Solver, Source};
use super::shape::Shape;
use crate::caches;
use crate::kernels::measured;
use chares::{Bulk, KernelCall};

/// Floating-point operations of one call by which a speed is measured, at least.
const LEAST_WORK: f64 = (1u32 << 22) as f64;
/// A box has one in so many of the problem's nodes at most: to compute its elements must not take longer than the run.
const SHARE: usize = 8;
/// It has so many at least.
const NODES_MIN: usize = 64;
/// The coarsest of several meshes has this part of the unknowns at most, so that there are several.
pub(super) const COARSEST_PART: usize = 64;

/// Iterations of a box, of a large problem one that does not fit into the caches, as the subdomains of a PE do not; units are
/// floating-point operations.
pub(super) fn kernel(fem: &Fem) -> KernelCall {
    let sample = fem.problem().ok().and_then(|problem| Sample::of_kernel(&problem));
    let Some(sample) = sample else { return Box::new(|| 1.0) };
    let work = sample.work();
    Box::new(measured(vec![sample], work, LEAST_WORK, Sample::iterate))
}

/// A box in one piece whose iterations are like those of a problem.
pub(super) struct Sample {
    problem: Problem,
    machine: Machine,
    load: Vec<f64>,
    /// What is said to be the solution of the coarsest mesh, which one place computes for all and not each PE.
    coarsest: Bulk<f64>,
}

impl Sample {
    /// The one by which the speeds of PEs are measured.
    pub(super) fn of_kernel(problem: &Problem) -> Option<Self> {
        let nodes = caches::bytes_beyond() as f64 / problem.bytes_of(1.0);
        Self::new(problem, (nodes as usize).min(problem.nodes() / SHARE).max(NODES_MIN))
    }

    /// One of about so many nodes. In place of a mesh from a file it is of elements whose rows are about as long.
    pub(super) fn new(problem: &Problem, nodes: usize) -> Option<Self> {
        let shape = Shape::product(problem.shape().order, problem.shape().dim);
        let side = ((nodes as f64).powf(1.0 / shape.dim as f64) as usize / shape.order).max(2);
        let lattice = Lattice {
            shape,
            elements: std::array::from_fn(|k| if k < shape.dim { side } else { 0 }),
            lengths: std::array::from_fn(|k| if k < shape.dim { 1.0 } else { 0.0 }),
        };
        let most = (lattice.nodes() * problem.each() / COARSEST_PART).max(1);
        let solver = Solver {
            coarsest: problem.solver.coarsest.min(most),
            tolerance: 0.0,
            max_iterations: u32::MAX,
            ..problem.solver
        };
        let mut sample = Problem {
            domain: Domain::Lattice(lattice),
            source: Source::Even([1.0; 3]),
            boundaries: vec![Boundary { group: 0, condition: Condition::Fixed([Some(0.0); 3]) }],
            exact: None,
            swelling: None,
            parts: 1,
            solver,
            ..problem.clone()
        };
        let meshes = lattices(&sample);
        if meshes.len() < 2 && sample.solver.preconditioner == Preconditioner::Multigrid {
            sample.solver.preconditioner = Preconditioner::Jacobi;
        }
        let mut machine = Machine::new(&sample, 0, None);
        if matches!(problem.domain, Domain::Read { .. }) {
            machine.keep_all_rows();
        }
        let load = machine.load()?.to_vec();
        let coarsest = Bulk::zeros(meshes.last()?.nodes() * sample.each());
        Some(Self { problem: sample, machine, load, coarsest })
    }

    /// Floating-point operations of an iteration, as they are counted of a large mesh, of which a smaller part is surface.
    pub(super) fn work(&self) -> f64 {
        let inside = self.machine.entries() as f64 / self.problem.entries_of_all_meshes();
        self.problem.work_of_iteration() * inside
    }

    /// Takes an iteration. After as many as one of minimal residuals remembers, or when there is nothing left to do, it
    /// begins anew.
    pub(super) fn iterate(&mut self) {
        let course = self.machine.course;
        if course.why.is_some() || course.iterations as usize >= BASIS {
            self.machine.begin(&self.problem.solver, &self.load);
        }
        let before = self.machine.course.iterations;
        while self.machine.course.iterations == before {
            match self.machine.step() {
                Need::Nothing | Need::Tell(_) => {}
                Need::Halo(_) => self.machine.have_taken(),
                Need::Sums(sums) => self.machine.take_sums(&sums),
                Need::Coarse(_) => self.machine.take_coarse(&self.coarsest),
                Need::Over => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        fem: Fem,
    }

    fn problem(line: &str) -> Problem {
        Line::try_parse_from(std::iter::once("fem").chain(line.split_whitespace()))
            .unwrap()
            .fem
            .problem()
            .unwrap()
    }

    #[test]
    fn a_sample_iterates_for_ever_with_any_method_and_mesh() {
        let lines = [
            "--elements 64",
            "--elements 2",
            "--elements 64 --coarsest 100000",
            "--elements 20 --physics elasticity --dim 3",
            "--elements 20 --order 2 --preconditioner ilu",
            "--elements 20 --preconditioner jacobi --method gmres",
            "--physics swelling",
        ];
        for line in lines {
            let mut sample = Sample::new(&problem(line), 500).unwrap();
            assert!(sample.work() > 0.0, "{line}");
            for made in 0..2 * BASIS {
                sample.iterate();
                let course = sample.machine.course;
                assert_eq!(course.iterations as usize, made % BASIS + 1, "{line}: {course:?}");
                assert!(course.now.is_finite(), "{line}: {course:?}");
            }
        }
    }
}
