//! The programming model, on several mixes of nodes inside one process, moved and always packed.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod basics;
mod collectives;
mod failures;
mod order;
mod places;
mod reductions;
mod sections;
mod state;
mod variables;

use chares::{Driver, InProcess, Program, RunError};

/// Runs on all mixes of nodes, with messages moved and with all packed.
fn on_every_mix(program: impl Fn() -> Program, drive: impl Fn(&mut Driver) -> Result<(), RunError>) {
    for pes in [&[1][..], &[3], &[2, 1], &[1, 1, 2], &[1; 7]] {
        for always_pup in [false, true] {
            let mix = InProcess { always_pup, ..InProcess::new(pes) };
            program().run_in_process(&mix, &drive).unwrap_or_else(|e| panic!("{mix:?}: {e}"));
        }
    }
}

/// With which sentence a run on two nodes fails.
fn failure(program: Program, drive: impl Fn(&mut Driver) -> Result<(), RunError>) -> String {
    program.run_in_process(&InProcess::new(&[2, 1]), &drive).unwrap_err().to_string()
}
