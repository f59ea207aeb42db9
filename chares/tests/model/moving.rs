//! Chares that move by themselves or are moved, while everything else goes on.

use chares::prelude::*;
use chares::{Gather, On};
use nomads::{Nomad, walk};
use serde::{Deserialize, Serialize};

fn program() -> Program {
    Program::new("moving", "1").chare::<Nomad>().chare::<Pilgrim>().chare::<Office>()
}

#[test]
fn elements_that_move_in_every_step_get_everything_once_and_in_order() {
    for pes in crate::MIXES {
        for always_pup in [false, true] {
            let mix = InProcess { always_pup, ..InProcess::new(pes) };
            program().run_in_process(&mix, |main| walk(main, 200)).unwrap_or_else(|e| panic!("{mix:?}: {e}"));
        }
    }
}

/// Each of a hundred thousand has its number, and comes in its place.
#[test]
fn a_hundred_thousand_numbered_messages_between_chares_that_move_all_the_time_keep_their_order() {
    // Each of eight tells all of them in each step.
    let walks = |main: &mut Driver| walk(main, 1_600);
    program().run_in_process(&InProcess { always_pup: true, ..InProcess::new(&[1, 1, 2]) }, walks).unwrap();
}

/// A single chare that is sent from PE to PE and says where it is; it ends when it is told.
#[derive(Serialize, Deserialize)]
struct Pilgrim {
    visited: Vec<u32>,
}
#[derive(Serialize, Deserialize)]
struct Where(Callback<Gather<u32>>);
#[derive(Serialize, Deserialize)]
struct End;
chares::entries!(Pilgrim: Where, End);
impl Chare for Pilgrim {
    type Index = ();
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { visited: Vec::new() }
    }
}
impl Entry<Where> for Pilgrim {
    fn receive(&mut self, Where(to): Where, ctx: &mut Ctx<'_, Self>) {
        self.visited.push(ctx.pe_id());
        to.send(ctx, Gather(self.visited.clone()));
    }
}
impl Entry<End> for Pilgrim {
    fn receive(&mut self, _: End, ctx: &mut Ctx<'_, Self>) {
        ctx.destroy();
    }
}

#[test]
fn the_driver_sends_a_single_chare_on_a_journey() {
    crate::on_every_mix(program, |main| {
        let pes = main.pe_count();
        let pilgrim = main.chare::<Pilgrim>((), On::Pe(0));
        let mut last = Vec::new();
        for n in 0..3 * pes {
            main.migrate(&pilgrim, n * 5 % pes);
            let (to, place) = main.pending();
            pilgrim.send(main, Where(to));
            last = place.wait(main)?.0;
        }
        assert_eq!(last.len(), 3 * pes as usize);
        pilgrim.send(main, End);
        // Whatever comes now is for nobody, wherever it was last.
        let (to, _) = main.pending::<Gather<u32>>();
        pilgrim.send(main, Where(to));
        main.migrate(&pilgrim, 0);
        main.quiescence()
    });
    let journey = |main: &mut Driver| {
        let pilgrim = main.chare::<Pilgrim>((), On::Pe(1));
        for pe in [2, 0, 0, 3] {
            main.migrate(&pilgrim, pe);
            main.quiescence()?;
            let (to, place) = main.pending();
            pilgrim.send(main, Where(to));
            assert_eq!(place.wait(main)?.0.last(), Some(&pe));
        }
        Ok(())
    };
    program().run_in_process(&InProcess::new(&[2, 1, 1]), journey).unwrap();
}

/// An element of a group.
#[derive(Serialize, Deserialize)]
struct Office;
#[derive(Serialize, Deserialize)]
struct Go;
chares::entries!(Office: Go);
impl Chare for Office {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Go> for Office {
    fn receive(&mut self, _: Go, ctx: &mut Ctx<'_, Self>) {
        ctx.migrate_to(0);
    }
}

#[test]
fn what_cannot_move_is_named() {
    let said = crate::failure(program(), |main| {
        let group = main.group::<Office>(());
        group.on(1).send(main, Go);
        main.quiescence()
    });
    assert!(said.contains("an element of a group was to move"), "{said}");
    let said = crate::failure(program(), |main| {
        let pilgrim = main.chare::<Pilgrim>((), On::Pe(0));
        main.migrate(&pilgrim, 3);
        main.quiescence()
    });
    assert!(said.contains("a chare was to move to PE 3, which does not exist"), "{said}");
}
