//! Chares that move by themselves or are moved, while everything else goes on.

use chares::prelude::*;
use chares::{Gather, On, Section};
use serde::{Deserialize, Serialize};

/// Number of the step after which they rest.
const LAST: u32 = 1_000_000;

/// Tells every other element of its array in each step, and goes somewhere else after each.
#[derive(Serialize, Deserialize)]
struct Nomad {
    steps: u32,
    of: u32,
    /// The last step heard of from each.
    heard: Vec<u32>,
    state: Vec<u8>,
    section: Option<Section<Self>>,
    seen_in_section: u32,
    proclaimed: u32,
}
#[derive(Serialize, Deserialize)]
struct Walk {
    done: Callback<Sum<u64>>,
    odd: Section<Nomad>,
    gathered: Callback<Gather<u32>>,
}
#[derive(Serialize, Deserialize)]
struct Hello {
    from: u32,
    step: u32,
}
/// Goes to all, from one of them.
#[derive(Serialize, Deserialize)]
struct Proclaim(u32);
/// Goes to the members of the section, from one of them.
#[derive(Serialize, Deserialize)]
struct Whisper(u32);
#[derive(Serialize, Deserialize)]
struct Tell(Callback<Gather<u32>>);

chares::entries!(Nomad: Walk, Hello, Proclaim, Whisper, Tell; reduces Sum<u64>, Gather<u32>);

impl Chare for Nomad {
    type Index = u32;
    /// Count of elements, and of steps that are over before the first.
    type Init = (u32, u32);
    fn new((of, steps): (u32, u32), ctx: &mut Ctx<'_, Self>) -> Self {
        let state = vec![ctx.index() as u8; 100 * ctx.index() as usize];
        let heard = vec![steps; of as usize];
        Self { steps, of, heard, state, section: None, seen_in_section: steps, proclaimed: steps }
    }
}

impl Nomad {
    fn step(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.steps += 1;
        let (from, step) = (ctx.index(), self.steps);
        assert!(
            self.state.iter().all(|byte| u32::from(*byte) == from) && self.state.len() == 100 * from as usize
        );
        ctx.contribute(Sum(1), Callback::ignore());
        let array = ctx.array();
        (0..self.of).for_each(|to| array.at(to).send(ctx, Hello { from, step }));
        if from == 1 {
            array.broadcast(ctx, Proclaim(step));
            if let Some(section) = self.section.clone() {
                section.send(ctx, Whisper(step));
            }
        }
        // A walk over all PEs, another one for each element.
        let pes = ctx.pe_count();
        ctx.migrate_to((ctx.pe_id() + 1 + from + step % 3) % pes);
    }
}

impl Entry<Walk> for Nomad {
    fn receive(&mut self, walk: Walk, ctx: &mut Ctx<'_, Self>) {
        for n in 0..4u64 {
            // Several reductions are under way at once.
            ctx.contribute(Sum(n), Callback::ignore());
        }
        ctx.contribute(Sum(u64::from(ctx.index())), walk.done);
        if ctx.index() % 2 == 1 {
            ctx.contribute_in(&walk.odd, Gather(vec![ctx.index()]), walk.gathered);
        }
        self.section = Some(walk.odd);
        self.step(ctx);
    }
}
impl Entry<Hello> for Nomad {
    fn receive(&mut self, Hello { from, step }: Hello, ctx: &mut Ctx<'_, Self>) {
        let heard = &mut self.heard[from as usize];
        assert_eq!(step, *heard + 1, "{from} -> {}", ctx.index());
        *heard = step;
        let slowest = self.heard.iter().min().copied().unwrap_or_default();
        // Others may have begun before.
        let has_begun = self.section.is_some();
        if has_begun && self.steps < LAST && slowest >= self.steps {
            self.step(ctx);
        }
    }
}
impl Entry<Proclaim> for Nomad {
    fn receive(&mut self, Proclaim(step): Proclaim, ctx: &mut Ctx<'_, Self>) {
        assert_eq!(step, self.proclaimed + 1, "element {}", ctx.index());
        self.proclaimed = step;
    }
}
impl Entry<Whisper> for Nomad {
    fn receive(&mut self, Whisper(step): Whisper, ctx: &mut Ctx<'_, Self>) {
        assert_eq!(step, self.seen_in_section + 1, "element {}", ctx.index());
        self.seen_in_section = step;
    }
}
impl Entry<Tell> for Nomad {
    fn receive(&mut self, Tell(to): Tell, ctx: &mut Ctx<'_, Self>) {
        let is_odd = ctx.index() % 2 == 1;
        assert!(self.heard.iter().all(|heard| *heard == LAST));
        assert_eq!((self.proclaimed, self.seen_in_section == LAST), (LAST, is_odd));
        ctx.contribute_ordered(Gather(vec![ctx.pe_id()]), to);
    }
}

fn program() -> Program {
    Program::new("moving", "1").chare::<Nomad>().chare::<Pilgrim>().chare::<Office>()
}

/// Eight elements move after each of `steps` steps, with messages, broadcasts, multicasts and reductions under way.
fn walk(main: &mut Driver, steps: u32) -> Result<(), RunError> {
    let of = 8;
    let nomads = main.array::<Nomad>(of, (of, LAST - steps));
    let odd = nomads.section(main, (1..of).step_by(2));
    let (gathered, members) = main.pending();
    let (done, sum) = main.pending();
    nomads.broadcast(main, Walk { done, odd, gathered });
    assert_eq!(sum.wait(main)?.0, 28);
    assert_eq!(members.wait(main)?.0, [1, 3, 5, 7]);
    main.quiescence()?;
    let (tell, places) = main.pending();
    nomads.broadcast(main, Tell(tell));
    let places: Vec<u32> = places.wait(main)?.0;
    assert_eq!(places.len(), of as usize);
    Ok(())
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
