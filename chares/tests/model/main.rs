//! The programming model, on several mixes of nodes inside one process, moved and always packed.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod arrived;
mod attributes;
mod balancing;
mod basics;
mod changed;
mod checkpoints;
mod collectives;
mod draining;
mod ending;
mod failures;
mod hints;
mod kept;
mod midway;
mod mobility;
mod moving;
mod order;
mod places;
mod reductions;
mod search;
mod sections;
mod seeds;
mod showing;
mod snapshots;
mod state;
mod tasks;
mod turns;
mod variables;

use chares::checkpoint::Protocol;
use chares::{Driver, InProcess, Program, RunError};

/// Runs on all mixes of nodes, with messages moved and with all packed, and with chares that stay and that move.
fn on_every_mix(program: impl Fn() -> Program, drive: impl Fn(&mut Driver) -> Result<(), RunError>) {
    on_mixes_where_nothing_moves(&program, &drive);
    on_mixes(&[(false, Some(1)), (false, Some(2)), (true, Some(3))], program, drive);
}

/// The same for what holds only of a chare that stays where it was made.
fn on_mixes_where_nothing_moves(
    program: impl Fn() -> Program,
    drive: impl Fn(&mut Driver) -> Result<(), RunError>,
) {
    on_mixes(&[(false, None), (true, None)], program, drive);
}

fn on_mixes(
    kinds: &[(bool, Option<u64>)],
    program: impl Fn() -> Program,
    drive: impl Fn(&mut Driver) -> Result<(), RunError>,
) {
    let may_move = kinds.iter().any(|(_, wander)| wander.is_some());
    for pes in MIXES {
        for &(always_pup, wander) in kinds {
            let mix = InProcess { always_pup, wander, ..InProcess::new(pes) };
            program().run_in_process(&mix, &drive).unwrap_or_else(|e| panic!("{mix:?}: {e}"));
            if matches!((always_pup, wander), (false, None) | (true, Some(_))) {
                draining::run_and_drain(&program, &mix, &drive);
            }
            // At every wait, or at some of them.
            let every = if always_pup { 4 } else { 1 };
            let protocols: &[Protocol] = match (always_pup, wander) {
                (true, Some(_)) => &[Protocol::Barrier, Protocol::Snapshot],
                (true, None) | (false, Some(1)) => &[Protocol::Barrier],
                _ => &[Protocol::Snapshot],
            };
            for protocol in protocols {
                checkpoints::run_and_go_on(&program, &mix, (every, may_move, *protocol), &drive);
            }
        }
    }
}

const MIXES: [&[u32]; 5] = [&[1], &[3], &[2, 1], &[1, 1, 2], &[1; 7]];

/// With which sentence a run on two nodes fails.
fn failure(program: Program, drive: impl Fn(&mut Driver) -> Result<(), RunError>) -> String {
    program.run_in_process(&InProcess::new(&[2, 1]), &drive).unwrap_err().to_string()
}
