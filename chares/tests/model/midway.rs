//! Checkpoints in the midst of something: half of a reduction has been given, and all chares have been told to move.

use crate::checkpoints::{InMemory, go_on_elsewhere};
use chares::checkpoint::Protocol;
use chares::{Callback, Chare, Ctx, Cx, Driver, Entry, Gather, InProcess, Placement, Program, RunError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Gives its number when half of those that it is one of are told to, and counts how often it has.
#[derive(Serialize, Deserialize)]
struct Giver {
    given: u32,
}
/// Give, those whose number is even or those whose number is odd.
#[derive(Clone, Serialize, Deserialize)]
struct Give(u32, Callback<Gather<[u32; 2]>>);
chares::entries!(Giver: Give; reduces Gather<[u32; 2]> as "Numbers");

impl Chare for Giver {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { given: 0 }
    }
}
impl Entry<Give> for Giver {
    fn receive(&mut self, Give(half, to): Give, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() % 2 == half {
            self.given += 1;
            ctx.contribute(Gather(vec![[ctx.index(), self.given]]), to);
        }
    }
}

fn program() -> Program {
    Program::new("midway", "1").chare::<Giver>()
}

const GIVERS: u32 = 9;

/// Three reductions: when the first half of one has been given, `is_midway` is set for one wait, in which all chares may have been
/// told to move.
fn drive(main: &mut Driver, is_midway: &AtomicBool, moves: bool) -> Result<(), RunError> {
    let givers = main.array_placed::<Giver>(GIVERS, (), Placement::Cyclic);
    for round in 1..=3 {
        let (to, given) = main.pending();
        givers.broadcast(main, Give(round % 2, to));
        main.quiescence()?;
        let pes = main.pe_count();
        for giver in (0..GIVERS).filter(|_| moves) {
            main.migrate(&givers.at(giver), (giver + round) % pes);
        }
        is_midway.store(true, Ordering::SeqCst);
        main.quiescence()?;
        is_midway.store(false, Ordering::SeqCst);
        givers.broadcast(main, Give(1 - round % 2, to));
        let mut numbers = given.wait(main)?.0;
        numbers.sort_unstable();
        let all: Vec<_> = (0..GIVERS).map(|giver| [giver, round]).collect();
        assert_eq!(numbers, all, "each has given once a round");
    }
    Ok(())
}

#[test]
fn a_run_saved_when_half_of_a_reduction_has_been_given_and_chares_are_about_to_move_ends_right() {
    for (pes, protocol, moves) in crate::MIXES.into_iter().flat_map(|pes| {
        let protocols = [Protocol::Barrier, Protocol::Snapshot];
        protocols.into_iter().flat_map(move |protocol| [(pes, protocol, false), (pes, protocol, true)])
    }) {
        let is_midway = Arc::new(AtomicBool::new(false));
        let is_now = Arc::clone(&is_midway);
        let (keeper, taken) = InMemory::by(move |_| is_now.load(Ordering::SeqCst));
        let keeper = if protocol == Protocol::Snapshot { keeper.by_snapshot() } else { keeper };
        let mix = InProcess { always_pup: true, ..InProcess::new(pes) };
        let done = program().run_in_process(&mix, |main| {
            main.keep_checkpoints(Box::new(keeper));
            drive(main, &is_midway, moves)
        });
        let context = format!("{pes:?}, {protocol:?}, moves: {moves}");
        done.unwrap_or_else(|e| panic!("{context}: {e}"));
        let taken = std::mem::take(&mut *taken.lock().unwrap());
        assert!(!taken.is_empty(), "{context}");
        let total: u32 = pes.iter().sum();
        for (number, saved) in taken.iter().enumerate() {
            let nobody = AtomicBool::new(false);
            for pes in [vec![total + 1], vec![1; total as usize]] {
                let again = go_on_elsewhere(program(), &mix, (saved.go_on(), None), &pes, |main| {
                    drive(main, &nobody, moves)
                });
                again.unwrap_or_else(|e| panic!("{context}, from {number} on {pes:?}: {e}"));
            }
        }
    }
}
