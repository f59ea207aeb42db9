//! Chares that go to PEs that have nothing to do.

use chares::{Callback, Chare, Ctx, Cx, Element, Entry, InProcess, On, Program};
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
