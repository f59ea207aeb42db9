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
mod kernel;
pub mod kind;
pub mod lattice;
pub mod level;
pub mod machine;
pub mod marching;
pub mod mesh;
pub mod msh;
pub mod operator;
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

use arguments::Fem;
use command::{App, CommandLine};

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program.chare::<subdomain::Subdomain>().app(
        App::new("fem", "Solve Poisson's equation or linear elasticity by finite elements", drive::drive)
            .kernel(kernel::kernel)
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
