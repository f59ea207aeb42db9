//! A chare of the ring: takes a step when the numbers of both neighbours have come.

use super::chain;
use super::problem::{Numbers, Problem};
use super::serial::add;
use chares::loadbalance::balance::patterns::Course;
use chares::{Bulk, Callback, Chare, Ctx, Cx, Entry, Gather, Inbox, Mobility, Reduce, Scratch};
use serde::{Deserialize, Serialize};

/// One chare.
#[derive(Serialize, Deserialize)]
pub struct Walker {
    setup: WalkerInit,
    /// Steps that are done.
    step: u32,
    /// Steps that may be done now: none before the word to begin, and with barriers as many as sums are known for.
    end: u32,
    number: u64,
    state: Bulk<u64>,
    /// Units of work that are done.
    units: u64,
    halos: Inbox<u32, Halo>,
    /// The loads from this step on.
    course: Scratch<Option<Course>>,
}

/// What every chare is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalkerInit {
    /// The work.
    pub problem: Problem,
    /// Who hears of the sums.
    pub added: Callback<Added>,
    /// Who hears of the end.
    pub ended: Callback<Gather<Ended>>,
}

/// Begin.
#[derive(Clone, Serialize, Deserialize)]
pub struct Go;

/// The number of a neighbour before a step.
#[derive(Serialize, Deserialize)]
pub struct Halo {
    step: u32,
    is_before: bool,
    number: u64,
}

/// The sum of all numbers before a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// The step.
    pub step: u32,
    /// Modulo the prime.
    pub sum: u64,
}

/// What a chare has at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its number.
    pub number: u64,
    /// Units of work that it has done.
    pub units: u64,
}

chares::entries!(Walker: Go, Halo, Added; reduces Added as "Sum", Gather<Ended> as "Ends");

impl Reduce for Added {
    fn combine(&mut self, other: Self) {
        self.sum = add(self.sum, other.sum);
    }
}

impl Chare for Walker {
    type Index = u32;
    type Init = WalkerInit;

    fn new(setup: WalkerInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let (problem, chare) = (&setup.problem, ctx.index());
        let state: Vec<u64> = (0..problem.words).map(|word| problem.word(chare, word)).collect();
        let mobility = mobility(problem, ctx);
        ctx.set_mobility(mobility);
        Self {
            step: 0,
            end: 0,
            number: problem.first(chare),
            state: state.into(),
            units: 0,
            halos: Inbox::default(),
            course: Scratch::default(),
            setup,
        }
    }
}

/// Where a chare may go. The array is known where its elements are made.
fn mobility(problem: &Problem, ctx: &mut Ctx<'_, Walker>) -> Mobility {
    let chare = ctx.index();
    let Some(task) = problem.task(chare) else { return Mobility::Anywhere };
    let (array, reach) = (ctx.array(), problem.reach(chare, ctx.pe_count()));
    let near: Vec<u32> = reach.into_iter().filter_map(|at| ctx.home_of(&array, at)).collect();
    task.mobility(near.into_iter().chain([ctx.pe_id()]))
}

impl Entry<Go> for Walker {
    fn receive(&mut self, _: Go, ctx: &mut Ctx<'_, Self>) {
        let Problem { steps, reduce_every, barrier, .. } = self.setup.problem;
        self.end = if barrier { reduce_every.min(steps) } else { steps };
        self.tell_neighbours(ctx);
        self.advance(ctx);
    }
}

impl Entry<Halo> for Walker {
    fn receive(&mut self, halo: Halo, ctx: &mut Ctx<'_, Self>) {
        self.halos.hold(halo.step, halo);
        self.advance(ctx);
    }
}

impl Entry<Added> for Walker {
    fn receive(&mut self, added: Added, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            self.setup.added.send(ctx, added);
        }
        let Problem { steps, reduce_every, .. } = self.setup.problem;
        self.end = steps.min(added.step.saturating_add(reduce_every));
        self.advance(ctx);
    }
}

impl Walker {
    fn tell_neighbours(&self, ctx: &mut Ctx<'_, Self>) {
        let (array, [before, after]) = (ctx.array(), self.setup.problem.neighbours(ctx.index()));
        let halo = |is_before| Halo { step: self.step, is_before, number: self.number };
        array.at(before).send(ctx, halo(false));
        array.at(after).send(ctx, halo(true));
    }

    /// Ends the run if the chare is where it may not be.
    fn check_place(&self, ctx: &mut Ctx<'_, Self>) {
        let (array, chare, pe) = (ctx.array(), ctx.index(), ctx.pe_id());
        if self.setup.problem.task(chare).is_some()
            && let Some(home) = ctx.home_of(&array, chare)
            && !ctx.mobility().permits(home, pe)
        {
            let may = ctx.mobility().clone();
            ctx.fail(&format!("chare {chare} of PE {home} is on PE {pe}, and it may go {may}"));
        }
    }

    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        while self.step < self.end
            && let Some(halos) = self.halos.take(&self.step, 2)
        {
            self.check_place(ctx);
            self.take_step(ctx.index(), &halos);
            ctx.progress(1);
            if self.step == self.setup.problem.steps {
                return self.conclude(ctx);
            }
            self.tell_neighbours(ctx);
            self.contribute(ctx);
        }
    }

    fn take_step(&mut self, chare: u32, halos: &[Halo]) {
        let Self { setup: WalkerInit { problem, .. }, step, number, state, .. } = self;
        let of =
            |is_before| halos.iter().find(|halo| halo.is_before == is_before).map_or(0, |halo| halo.number);
        let numbers = Numbers { own: *number, before: of(true), after: of(false) };
        let at = problem.word_of_step(*step);
        let begin = Problem::begin(*step, numbers, at.map_or(0, |at| state[at]));
        let units = problem.units(self.course.get_or_insert_with(|| problem.course(chare, *step)));
        *number = chain::walk(begin, units);
        if let Some(at) = at {
            state.as_mut_slice()[at] = *number;
        }
        self.units += units;
        *step += 1;
    }

    fn contribute(&mut self, ctx: &mut Ctx<'_, Self>) {
        let WalkerInit { problem, added, .. } = &self.setup;
        if problem.adds_before(self.step) {
            let to = if problem.barrier { Callback::broadcast(&ctx.array()) } else { *added };
            ctx.contribute(Added { step: self.step, sum: self.number }, to);
        }
    }

    fn conclude(&mut self, ctx: &mut Ctx<'_, Self>) {
        let number = Problem::end(self.number, self.state.iter().copied());
        ctx.contribute_ordered(Gather(vec![Ended { number, units: self.units }]), self.setup.ended);
    }
}
