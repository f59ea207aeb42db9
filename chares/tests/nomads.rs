//! Nomads: elements that move in every step, while messages, broadcasts, multicasts and reductions are under way.

use chares::prelude::*;
use chares::{Gather, Section};
use serde::{Deserialize, Serialize};

/// Number of the step after which they rest.
pub const LAST: u32 = 1_000_000;

/// Tells every other element of its array in each step, and goes somewhere else after each.
#[derive(Serialize, Deserialize)]
pub struct Nomad {
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

/// Eight elements move after each of `steps` steps, at most [`LAST`]. That each got everything once and in order, they see
/// themselves.
///
/// # Errors
/// What ends the run.
pub fn walk(main: &mut Driver, steps: u32) -> Result<(), RunError> {
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
