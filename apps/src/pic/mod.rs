//! Plasma in a periodic box in two dimensions, as particles in cells: electrons between which only the electrostatic field
//! acts, and ions that stand still.
//!
//! The physics is in plain functions and data without chares: [`problem`] says what is followed, `beginning` where it begins, [`particles`] moves particles
//! and adds up their charge, [`field`] solves for the field, [`theory`] says what should come of it; [`serial`] shows in one
//! page how a step is made of these. Chares have the particles ([`region`]) and the field ([`poisson`], [`distributed`]).
//! Schemes and their costs are those of the adaptive thesis (M. V. Nibhanupudi, Rensselaer Polytechnic Institute, 1998).
#![doc = include_str!("README.md")]

mod answers;
pub mod arguments;
mod beginning;
pub mod charge;
pub mod choices;
mod cost;
pub mod distributed;
mod division;
mod drive;
pub mod field;
pub mod figures;
mod input;
mod kernel;
pub mod look;
pub mod numbers;
pub mod particles;
mod picture;
pub mod poisson;
pub mod problem;
pub mod region;
pub mod requests;
pub mod scheme;
pub mod serial;
pub mod spectrum;
pub mod theory;

pub use arguments::Pic;

use chares::KernelCall;
use command::{App, CommandLine};

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program.chare::<region::Region>().chare::<poisson::Poisson>().chare::<scheme::Probe>().app(
        App::new("pic", "Follow a plasma's electrons in the field that they make", drive::drive)
            .kernel(kernel)
            .kernel_key(Pic::kernel_key)
            .kernel_unit(|_| "particles")
            .work(Pic::work)
            .complete(Pic::completed)
            .files(Pic::files)
            .aside(&["out", "trace", "phase_space", "density", "verify"])
            .cost(cost::MODEL, cost::cost),
    )
}

/// Steps of particles.
fn kernel(pic: &Pic) -> KernelCall {
    let Ok(problem) = pic.problem() else { return Box::new(|| 1.0) };
    let mut kernel = kernel::Kernel::new(&problem);
    Box::new(move || kernel.call())
}

#[cfg(test)]
mod tests;
