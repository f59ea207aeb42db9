//! Elements of arrays that are destroyed, and made again, while others send to them and reduce.

use crate::checkpoints::run_and_keep;
use chares::prelude::*;
use chares::{Gather, InProcess, On};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const COUNT: u32 = 12;

/// One of those that come and go.
#[chare]
struct Leaf {
    generation: u32,
    notes: Vec<u32>,
}

#[chare(reduces(Sum<u32>, Gather<(u32, u32)>))]
impl Leaf {
    /// One may end at once.
    fn new(ctx: &mut Ctx<'_, Self>, generation: u32, ends: bool) -> Self {
        if ends {
            ctx.destroy();
        }
        Self { generation, notes: Vec::new() }
    }

    #[entry]
    fn count(&mut self, to: Callback<Sum<u32>>, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Sum(1), to);
    }

    /// Counts itself, for the last time.
    #[entry]
    fn count_and_end(&mut self, to: Callback<Sum<u32>>, ctx: &mut Ctx<'_, Self>) {
        ctx.destroy();
        ctx.contribute(Sum(1), to);
    }

    /// Counts itself, and ends if it is its turn.
    #[entry]
    fn fall(&mut self, turn: u32, to: Callback<Sum<u32>>, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Sum(1), to);
        if ctx.index() % 3 == turn {
            ctx.destroy();
        }
    }

    #[entry]
    fn end(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.destroy();
    }

    /// Tells in which generation it is.
    #[entry]
    fn tell(&mut self, to: Callback<Gather<(u32, u32)>>, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Gather(vec![(ctx.index(), self.generation)]), to);
    }

    #[entry]
    fn note(&mut self, number: u32) {
        self.notes.push(number);
    }

    /// Sends another so many notes, from that number on.
    #[entry]
    fn write(&mut self, to: u32, from: u32, count: u32, ctx: &mut Ctx<'_, Self>) {
        let to = ctx.array().at(to);
        (from..from + count).for_each(|number| to.note(ctx, number));
    }

    #[entry]
    fn notes(&self) -> Vec<u32> {
        self.notes.clone()
    }

    /// Sends a note to all of an array.
    #[entry]
    fn shout(&mut self, all: Array<Self>, ctx: &mut Ctx<'_, Self>) {
        all.note(ctx, 7);
    }

    #[entry]
    fn go(&mut self, pe: u32, ctx: &mut Ctx<'_, Self>) {
        ctx.migrate_to(pe);
    }

    /// Takes part in a sum over a section.
    #[entry]
    fn meet(&mut self, section: chares::Section<Self>, to: Callback<Sum<u32>>, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_in(&section, Sum(1), to);
    }

    /// Makes another, or several.
    #[entry]
    fn grow(&mut self, at: Vec<u32>, generation: u32, ctx: &mut Ctx<'_, Self>) {
        let all = ctx.array();
        at.into_iter().for_each(|at| ctx.insert(&all, at, (generation, false)));
    }
}

fn program() -> Program {
    Program::new("leaves", "1").chare::<Leaf>()
}

fn leaves(main: &mut Driver) -> Array<Leaf> {
    main.array(COUNT, (0, false))
}

/// How many there are.
fn count(main: &mut Driver, leaves: &Array<Leaf>) -> Result<u32, RunError> {
    let (to, sum) = main.pending();
    leaves.count(main, to);
    Ok(sum.wait(main)?.0)
}

/// Who there is, in which generation.
fn tell(main: &mut Driver, leaves: &Array<Leaf>) -> Result<Vec<(u32, u32)>, RunError> {
    let (to, all) = main.pending();
    leaves.tell(main, to);
    Ok(all.wait(main)?.0)
}

fn notes(main: &mut Driver, leaves: &Array<Leaf>, at: u32) -> Result<Vec<u32>, RunError> {
    leaves.at(at).notes().ask(main)
}

#[test]
fn reductions_go_on_without_those_that_have_ended_and_count_what_they_added_before() {
    crate::on_every_mix(program, |main| {
        let leaves = leaves(main);
        // All but one have contributed, and that one does not.
        let (to, sum) = main.pending();
        (0..COUNT).filter(|at| *at != 5).for_each(|at| leaves.at(at).count(main, to));
        leaves.at(5).end(main);
        assert_eq!(sum.wait(main)?, Sum(11));
        // One has contributed and is gone before the others begin, and two reductions are under way at once.
        let (first, one) = main.pending();
        let (second, other) = main.pending();
        leaves.at(6).count(main, first);
        leaves.at(6).count_and_end(main, second);
        leaves.at(7).count_and_end(main, first);
        for at in (0..COUNT).filter(|at| ![5, 6, 7].contains(at)) {
            leaves.at(at).count(main, first);
            leaves.at(at).count(main, second);
        }
        assert_eq!(other.wait(main)?, Sum(10));
        assert_eq!(one.wait(main)?, Sum(11));
        assert_eq!(tell(main, &leaves)?.len(), 9);
        // None is left on most PEs and nodes.
        (0..COUNT - 1).filter(|at| ![5, 6, 7].contains(at)).for_each(|at| leaves.at(at).end(main));
        main.quiescence()?;
        assert_eq!(count(main, &leaves)?, 1);
        let (to, sum) = main.pending();
        leaves.count_and_end(main, to);
        assert_eq!(sum.wait(main)?, Sum(1));
        // What goes to all goes to nobody.
        leaves.end(main);
        main.quiescence()
    });
}

#[test]
fn elements_that_are_made_again_take_part_from_then_on() {
    crate::on_every_mix(program, |main| {
        let leaves = leaves(main);
        for generation in 1..4 {
            for turn in [2, 0, 1] {
                let (to, sum) = main.pending();
                leaves.fall(main, turn, to);
                assert_eq!(sum.wait(main)?, Sum(if turn == 2 { 12 } else { 4 * (2 - turn) }));
            }
            // Nobody is there, or will be for a while.
            leaves.end(main);
            main.quiescence()?;
            leaves.at(7).note(main, generation);
            main.insert(&leaves, 7, (generation, false));
            main.insert(&leaves, 2, (generation, true));
            main.quiescence()?;
            assert_eq!(count(main, &leaves)?, 1);
            assert_eq!(notes(main, &leaves, 7)?, [generation]);
            let others = (0..COUNT).filter(|at| *at != 7).collect();
            leaves.at(7).grow(main, others, generation);
            main.quiescence()?;
            assert!(tell(main, &leaves)?.into_iter().eq((0..COUNT).map(|at| (at, generation))));
        }
        Ok(())
    });
}

#[test]
fn some_end_in_each_step_and_come_back_while_the_others_go_on() {
    crate::on_every_mix(program, |main| {
        let leaves = leaves(main);
        for step in 0..6 {
            let (to, sum) = main.pending();
            leaves.fall(main, step % 3, to);
            assert_eq!(sum.wait(main)?, Sum(COUNT));
            if step % 2 == 0 {
                assert_eq!(count(main, &leaves)?, 8);
            }
            let falling = (0..COUNT).filter(|at| at % 3 == step % 3);
            // What is left of one that ended elsewhere may still be on its way home.
            falling.for_each(|at| main.insert(&leaves, at, (step, false)));
            main.quiescence()?;
        }
        let all = tell(main, &leaves)?;
        assert!(all.into_iter().eq((0..COUNT).map(|at| (at, 3 + at % 3))));
        Ok(())
    });
}

#[test]
fn messages_wait_for_the_next_at_their_place_once_each_and_in_order() {
    crate::on_every_mix(program, |main| {
        let leaves = leaves(main);
        for round in 0..4 {
            (0..3).for_each(|number| leaves.at(4).note(main, number));
            leaves.at(4).end(main);
            (10..13).for_each(|number| leaves.at(4).note(main, number));
            leaves.at(8).write(main, 4, 100, 5);
            main.insert(&leaves, 4, (round, false));
            (13..16).for_each(|number| leaves.at(4).note(main, number));
            main.quiescence()?;
            // What comes from another may have been read by the one that has ended.
            let (own, others): (Vec<u32>, Vec<u32>) =
                notes(main, &leaves, 4)?.into_iter().partition(|number| *number < 100);
            assert_eq!(own, [10, 11, 12, 13, 14, 15]);
            assert!(others.is_sorted() && others.iter().all(|number| (100..105).contains(number)));
            // The one that sent them ends too, and who comes after it sends on.
            leaves.at(8).end(main);
            main.insert(&leaves, 8, (round, false));
            main.quiescence()?;
            leaves.at(8).write(main, 9, round * 100, 20);
            leaves.at(9).write(main, 8, 0, 3);
            main.quiescence()?;
            assert_eq!(notes(main, &leaves, 8)?, [0, 1, 2]);
        }
        let expected = (0..4).flat_map(|round| round * 100..round * 100 + 20);
        assert!(notes(main, &leaves, 9)?.into_iter().eq(expected));
        assert_eq!(count(main, &leaves)?, COUNT);
        Ok(())
    });
}

#[test]
fn elements_end_away_from_home_and_begin_at_home() {
    for always_pup in [false, true] {
        let mix = InProcess { always_pup, ..InProcess::new(&[1, 2, 1]) };
        let run = program().run_in_process(&mix, |main| {
            let leaves = leaves(main);
            for round in 1..5 {
                (0..COUNT).for_each(|at| leaves.at(at).go(main, (at + round) % 4));
                // They find those that have moved from everywhere.
                (0..COUNT).for_each(|at| leaves.at(at).write(main, (at + 5) % COUNT, round, 1));
                main.quiescence()?;
                leaves.end(main);
                main.quiescence()?;
                (0..COUNT).for_each(|at| main.insert(&leaves, at, (round, false)));
                (0..COUNT).for_each(|at| leaves.at(at).write(main, (at + 7) % COUNT, 10 + round, 1));
                main.quiescence()?;
                for at in 0..COUNT {
                    assert_eq!(notes(main, &leaves, at)?, [10 + round], "element {at} in round {round}");
                }
                assert_eq!(count(main, &leaves)?, COUNT);
            }
            let chares: u64 = main.snapshots()?.iter().flat_map(|node| &node.pes).map(|pe| pe.chares).sum();
            assert_eq!(chares, u64::from(COUNT));
            Ok(())
        });
        run.unwrap();
    }
}

#[test]
fn a_single_chare_ends_where_it_has_moved_to_and_nothing_of_it_is_kept() {
    for always_pup in [false, true] {
        let mix = InProcess { always_pup, ..InProcess::new(&[1, 2]) };
        let run = program().run_in_process(&mix, |main| {
            let solo = main.chare::<Leaf>((0, false), On::Pe(1));
            solo.go(main, 2);
            solo.note(main, 1);
            assert_eq!(solo.notes().ask(main)?, [1]);
            solo.end(main);
            solo.note(main, 2);
            main.quiescence()?;
            solo.note(main, 3);
            main.quiescence()?;
            main.snapshots()
        });
        let chares: u64 = run.unwrap().iter().flat_map(|node| &node.pes).map(|pe| pe.chares).sum();
        assert_eq!(chares, 0);
    }
}

#[test]
fn pes_forget_single_chares_that_have_moved_once_and_ended() {
    let kept_of = |count: u32| {
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let drive = |main: &mut Driver| {
            let leaves = leaves(main);
            let all: Vec<_> = (0..count).map(|_| main.chare::<Leaf>((0, false), On::Pe(1))).collect();
            for (solo, to) in all.iter().zip([0, 2].into_iter().cycle()) {
                solo.go(main, to);
                solo.note(main, 1);
            }
            main.quiescence()?;
            // What each says to all goes by way of its home.
            all.iter().for_each(|solo| solo.shout(main, leaves));
            all.iter().for_each(|solo| solo.end(main));
            main.quiescence()?;
            is_over.store(true, Ordering::Relaxed);
            (0..5).try_for_each(|_| tell(main, &leaves).map(drop))
        };
        let rule = move |_| asked.load(Ordering::Relaxed);
        let ((), taken) = run_and_keep(program(), &InProcess::new(&[1, 2]), rule, drive);
        taken.last().expect("a run that waits has checkpoints").pe_bytes()
    };
    let [few, many] = [10, 500].map(kept_of);
    assert!(many < few + 1000, "{few} bytes after a few, {many} after many");
}

#[test]
fn misuse_ends_the_run_with_a_sentence() {
    let fails = |drive: fn(&mut Driver) -> Result<(), RunError>| crate::failure(program(), drive);
    let to_nobody = fails(|main| {
        let leaves = leaves(main);
        leaves.at(5).go(main, 0);
        leaves.at(5).end(main);
        leaves.at(5).note(main, 1);
        main.quiescence()
    });
    assert_eq!(
        to_nobody,
        "Leaf: Note of element [5] waits on PE 1 for an element that has been destroyed, and not inserted again"
    );
    let twice = fails(|main| {
        let leaves = leaves(main);
        leaves.at(5).end(main);
        main.quiescence()?;
        main.insert(&leaves, 5, (1, false));
        main.insert(&leaves, 5, (2, false));
        main.quiescence()
    });
    assert_eq!(twice, "element [5] of an array of Leaf was made twice");
    let there_already = fails(|main| {
        let leaves = leaves(main);
        leaves.at(5).go(main, 0);
        main.quiescence()?;
        main.insert(&leaves, 5, (1, false));
        main.quiescence()
    });
    assert_eq!(there_already, "element [5] of an array of Leaf was made twice");
    let section = fails(|main| {
        let leaves = leaves(main);
        leaves.at(5).end(main);
        main.quiescence()?;
        let section = leaves.section(main, [4, 5, 11]);
        let (to, sum) = main.pending();
        section.meet(main, section.clone(), to);
        sum.wait(main).map(drop)
    });
    assert!(section.contains("Meet of element [5] waits on PE 1 for an element that has been"), "{section}");
    let group = crate::failure(Program::new("group", "1").chare::<Leaf>(), |main| {
        let group = main.group::<Leaf>((0, false));
        group.on(1).end(main);
        main.quiescence()
    });
    assert!(group.starts_with("element [1] of a group of Leaf cannot be destroyed"), "{group}");
}
