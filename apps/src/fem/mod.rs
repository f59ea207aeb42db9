//! Finite elements: Poisson's equation and linear elasticity, in boxes and in meshes from files, and bodies that swell in time.
//!
//! Source of the shape of the program: the adaptive parallel thesis (M. V. Nibhanupudi, Rensselaer Polytechnic Institute, 1998),
//! section 3.2, where element loops are what runs in parallel. The mathematics is here in plain functions and data without
//! chares: [`shape`] has the elements, [`lattice`] and [`mesh`] cut meshes into subdomains ([`submesh`]), [`assemble`] loops
//! over elements, [`level`] has the matrices of all meshes of multigrid, and [`machine`] takes the [`steps`] of the iteration.
//! [`subdomain`] is the chare around it: it sends what the machine tells and gives it what comes. Bodies that swell in the course of
//! time ([`swelling`]) are of blocks whose elements become smaller and larger ([`forest`], [`adapt`]); [`marching`] is what a
//! block does in a step, and [`stages`] the chare's part of it.
#![doc = include_str!("README.md")]

pub mod adapt;
pub mod alone;
mod amdahl;
pub mod arguments;
pub mod assemble;
pub mod check;
pub mod cholesky;
mod cost;
pub mod course;
mod division;
mod drive;
pub mod exact;
mod follow;
pub mod forest;
pub mod gmres;
pub mod ilu;
pub mod input;
pub mod kind;
pub mod lattice;
pub mod level;
pub mod machine;
pub mod marching;
pub mod mesh;
pub mod msh;
pub mod patch;
pub mod problem;
pub mod rehearsal;
pub mod rows;
pub mod shape;
pub mod spot;
pub mod stages;
pub mod steps;
pub mod subdomain;
pub mod submesh;
pub mod swelling;
pub mod swelling_input;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod vtu;

use crate::caches;
use crate::kernels::measured;
use arguments::Fem;
use chares::KernelCall;
use command::{App, CommandLine};
use lattice::Lattice;
use level::{Level, Levels};
use problem::{Boundary, Condition, Domain, Preconditioner, Problem, Solver, Source};
use shape::Shape;

/// Floating-point operations of one call by which a speed is measured, at least.
const LEAST_WORK: f64 = (1u32 << 22) as f64;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program.chare::<subdomain::Subdomain>().app(
        App::new("fem", "Solve Poisson's equation or linear elasticity by finite elements", drive::drive)
            .kernel(kernel)
            .kernel_key(Fem::kernel_key)
            .kernel_unit(|_| "FLOP")
            .work(Fem::work)
            .complete(Fem::completed)
            .files(Fem::files)
            .unused(Fem::unused)
            .aside(&["out", "vtu", "verify"])
            .cost(cost::MODEL, cost::cost),
    )
}

/// Products of a matrix such as the problem has with a vector, in which the iteration spends its time; units are
/// floating-point operations.
fn kernel(fem: &Fem) -> KernelCall {
    let Ok(problem) = fem.problem() else { return Box::new(|| 1.0) };
    let row_bytes = problem.bytes_of(1.0).max(1.0) as usize;
    let nodes = (caches::bytes_beyond() / row_bytes).clamp(64, problem.nodes().max(64));
    let Some(operands) = operands(&problem, nodes) else { return Box::new(|| 1.0) };
    let work = 2.0 * operands.0.rows.entries() as f64;
    Box::new(measured(vec![operands], work, LEAST_WORK, |(finest, x, y)| {
        finest.rows.multiply(x, y);
        std::hint::black_box(&*y);
    }))
}

/// The matrix of a box of about so many nodes, whose rows are like those of the problem, a vector and room for their product.
fn operands(problem: &Problem, nodes: usize) -> Option<(Level, Vec<f64>, Vec<f64>)> {
    let (shape, each) = (problem.shape(), problem.each());
    let side = ((nodes as f64).powf(1.0 / shape.dim as f64) as usize / shape.order).max(2);
    // Of a mesh from a file a box stands in that has rows of about the same length.
    let lattice = Lattice {
        shape: Shape::product(shape.order, shape.dim),
        elements: std::array::from_fn(|k| if k < shape.dim { side } else { 0 }),
        lengths: std::array::from_fn(|k| if k < shape.dim { 1.0 } else { 0.0 }),
    };
    let sample = Problem {
        domain: Domain::Lattice(lattice),
        source: Source::Even([0.0; 3]),
        boundaries: vec![Boundary { group: 0, condition: Condition::Fixed([Some(0.0); 3]) }],
        exact: None,
        swelling: None,
        parts: 1,
        solver: Solver { preconditioner: Preconditioner::None, ..problem.solver },
        ..problem.clone()
    };
    let finest = Levels::of_lattice(&sample, 0).levels.into_iter().next()?;
    let count = lattice.nodes() * each;
    let x: Vec<f64> = (0..count).map(|at| 1.0 + (at % 7) as f64).collect();
    Some((finest, x, vec![0.0; count]))
}
