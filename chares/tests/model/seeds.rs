//! Chares that go to PEs that have nothing to do.

use crate::checkpoints::{go_on_elsewhere, run_and_keep};
use chares::{Callback, Chare, Ctx, Cx, Driver, Element, Entry, InProcess, On, Program, RunError};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A piece of work, all made by one chare.
#[derive(Serialize, Deserialize)]
struct Leaf {
    birthplace: u32,
}
/// Work, and tell where: the PE of the constructor, and that of the work.
#[derive(Clone, Serialize, Deserialize)]
struct Work(Callback<(u32, u32)>);
chares::entries!(Leaf: Work);

/// Leaves that worked on another PE than the first.
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
const LEAVES: u32 = 400;
/// So many are enough to show that they go.
const ENOUGH: u32 = 20;

impl Chare for Leaf {
    type Index = ();
    type Init = ();
    fn new((): (), ctx: &mut Ctx<'_, Self>) -> Self {
        Self { birthplace: ctx.pe_id() }
    }
}
impl Entry<Work> for Leaf {
    fn receive(&mut self, Work(to): Work, ctx: &mut Ctx<'_, Self>) {
        if ctx.pe_id() == 0 {
            // The first PE is slow as long as it does everything alone.
            let begun = Instant::now();
            while ELSEWHERE.load(Ordering::Relaxed) < ENOUGH && begun.elapsed() < Duration::from_millis(20) {
                sleep(Duration::from_micros(200));
            }
        } else {
            ELSEWHERE.fetch_add(1, Ordering::Relaxed);
        }
        to.send(ctx, (self.birthplace, ctx.pe_id()));
        ctx.destroy();
    }
}

/// Makes all leaves at once.
#[derive(Serialize, Deserialize)]
struct Tree;
#[derive(Clone, Serialize, Deserialize)]
struct Grow(Callback<(u32, u32)>);
chares::entries!(Tree: Grow);
impl Chare for Tree {
    type Index = ();
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Grow> for Tree {
    fn receive(&mut self, Grow(to): Grow, ctx: &mut Ctx<'_, Self>) {
        for _ in 0..LEAVES {
            let leaf: Element<Leaf> = ctx.chare((), On::ByLoad);
            leaf.send(ctx, Work(to));
        }
    }
}

#[test]
fn idle_pes_get_what_waits_elsewhere() {
    let program = Program::new("seeds", "1").chare::<Leaf>().chare::<Tree>();
    let outcome = program.run_in_process(&InProcess::new(&[2, 1]), |main| {
        let (to, told) = main.pending();
        let tree: Element<Tree> = main.chare((), On::Pe(0));
        tree.send(main, Grow(to));
        let all: Vec<(u32, u32)> = (0..LEAVES).map(|_| told.wait(main)).collect::<Result<_, _>>()?;
        main.quiescence()?;
        Ok(all)
    });
    let all = outcome.unwrap();
    assert!(all.iter().all(|(made, _)| *made == 0), "{all:?}");
    let moved = |pe| all.iter().filter(|(_, worked)| *worked == pe).count();
    assert!(moved(1) > 0 && moved(2) > 0 && moved(1) + moved(2) >= ENOUGH as usize, "{all:?}");
}

/// Chares that wait until they are told to work.
#[derive(Serialize, Deserialize)]
struct Bud;
#[derive(Clone, Serialize, Deserialize)]
struct Open(Callback<u32>);
chares::entries!(Bud: Open);

/// Buds that worked on another PE than the first.
static OPENED_ELSEWHERE: AtomicU32 = AtomicU32::new(0);
const BUDS: u32 = 100;

impl Chare for Bud {
    type Index = ();
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Open> for Bud {
    fn receive(&mut self, Open(to): Open, ctx: &mut Ctx<'_, Self>) {
        if ctx.pe_id() == 0 {
            let begun = Instant::now();
            while OPENED_ELSEWHERE.load(Ordering::Relaxed) < ENOUGH
                && begun.elapsed() < Duration::from_millis(20)
            {
                sleep(Duration::from_micros(200));
            }
        } else {
            OPENED_ELSEWHERE.fetch_add(1, Ordering::Relaxed);
        }
        to.send(ctx, ctx.pe_id());
    }
}

/// Makes all buds at once, and says how many there are.
#[derive(Serialize, Deserialize)]
struct Twig(Vec<Element<Bud>>);
#[derive(Clone, Serialize, Deserialize)]
struct Size(Callback<u32>);
chares::entries!(Twig: Size, Open);
impl Chare for Twig {
    type Index = ();
    type Init = ();
    fn new((): (), ctx: &mut Ctx<'_, Self>) -> Self {
        Self((0..BUDS).map(|_| ctx.chare((), On::ByLoad)).collect())
    }
}
impl Entry<Size> for Twig {
    fn receive(&mut self, Size(to): Size, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, self.0.len() as u32);
    }
}
impl Entry<Open> for Twig {
    fn receive(&mut self, open: Open, ctx: &mut Ctx<'_, Self>) {
        self.0.iter().for_each(|bud| bud.send(ctx, open.clone()));
    }
}

/// Has buds made, asks so often how many there are, and has them work if that is wanted: where they did.
fn open_after(main: &mut Driver, asked: u32, opens: bool) -> Result<Vec<u32>, RunError> {
    let twig: Element<Twig> = main.chare((), On::Pe(0));
    for _ in 0..asked {
        let (to, size) = main.pending();
        twig.send(main, Size(to));
        assert_eq!(size.wait(main)?, BUDS);
    }
    if !opens {
        return Ok(Vec::new());
    }
    let (to, told) = main.pending();
    twig.send(main, Open(to));
    (0..BUDS).map(|_| told.wait(main)).collect()
}

#[test]
fn idle_pes_get_what_waits_elsewhere_after_a_restart_too() {
    let program = || Program::new("buds", "1").chare::<Bud>().chare::<Twig>();
    let begun = InProcess::new(&[2, 1]);
    let (_, mut taken) = run_and_keep(program(), &begun, |_| true, |main| open_after(main, 3, false));
    let from = taken.pop().expect("a run that waits has checkpoints");
    assert!(from.chares() > BUDS as usize, "they had been made");
    let mut places = Vec::new();
    let outcome = go_on_elsewhere(program(), &begun, (from.go_on(), None), &[1, 2], |main| {
        places = open_after(main, 6, true)?;
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
    let elsewhere = places.iter().filter(|pe| **pe != 0).count();
    assert!(elsewhere >= ENOUGH as usize, "{places:?}");
}
