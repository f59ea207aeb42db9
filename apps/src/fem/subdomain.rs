//! The chare: a subdomain that iterates together with all others.

use super::check::Measured;
use super::cholesky::Cholesky;
use super::course::Course;
use super::lattice::{Cut, each};
use super::level::{Levels, coarsest_lattice};
use super::machine::{Machine, Need, Sums};
use super::marching::{Marching, Rim};
use super::problem::{Domain, Preconditioner, Problem};
use super::stages::{Adapt, March, Verdicts};
use super::submesh::Submesh;
use chares::{Array, Bulk, Callback, Chare, Ctx, Cx as _, Entry, Gather, Inbox, Readonly, Reduce, Stopwatch};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What others wait for goes before anything that computes.
pub(super) const URGENT: i32 = -1;
/// What goes on with numbers of others goes after what tells others of its own: they may be far away.
const LATER: i32 = 1;
/// How often the window is told how it goes.
const TELL: Duration = Duration::from_millis(100);

/// A subdomain.
#[derive(Serialize, Deserialize)]
pub struct Subdomain {
    pub(super) problem: Readonly<Problem>,
    pub(super) number: u32,
    /// Its part of a mesh that was read, before [`Prepare`].
    read: Option<Submesh>,
    pub(super) machine: Machine,
    /// The coarsest mesh, at the first subdomain.
    coarsest: Option<Cholesky>,
    /// Counts exchanges; messages carry it.
    exchange: u64,
    halos: Inbox<u64, Halo>,
    /// It waits for sums, or for the coarsest mesh.
    pub(super) is_waiting: bool,
    /// It has told itself to go on.
    is_called: bool,
    pub(super) figures: Figures,
    ended: Option<Callback<Course>>,
    shown: Option<Stopwatch>,
    /// In the course of time.
    pub(super) marching: Marching,
    pub(super) rims: Inbox<u32, Rim>,
    pub(super) march: Option<March>,
}

/// What a subdomain holds and what it took, or all.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes.
    pub bytes: u64,
    /// Numbers of the matrices of all meshes.
    pub entries: u64,
    /// Seconds of processor time in the element loop.
    pub assembling_s: f64,
    /// The same in the steps of the iteration, and in telling others of them.
    pub iterating_s: f64,
    /// The same at the coarsest mesh.
    pub coarsest_s: f64,
    /// The largest number of the right-hand sides.
    pub largest_load: f64,
    /// Whether the coarsest mesh can be solved: whether nothing can move freely.
    pub is_free: bool,
}

impl Reduce for Figures {
    fn combine(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.entries += other.entries;
        self.assembling_s += other.assembling_s;
        self.iterating_s += other.iterating_s;
        self.coarsest_s += other.coarsest_s;
        self.largest_load = self.largest_load.max(other.largest_load);
        self.is_free |= other.is_free;
    }
}

/// A part of a mesh that was read.
#[derive(Serialize, Deserialize)]
pub struct Load(pub Submesh);

/// Compute the equations, and tell others what is needed of them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Prepare(pub Callback<Figures>);

/// Another subdomain has copies of these nodes of a mesh, by their numbers in all of it.
#[derive(Serialize, Deserialize)]
pub struct Want {
    level: usize,
    by: u32,
    ids: Bulk<u64>,
}

/// Begin; all say when it is over.
#[derive(Clone, Serialize, Deserialize)]
pub struct Go(pub Callback<Course>);

/// Numbers of another subdomain.
#[derive(Serialize, Deserialize)]
pub struct Halo {
    exchange: u64,
    from: u32,
    numbers: Bulk<f64>,
}

/// Go on: all numbers of others are here.
#[derive(Serialize, Deserialize)]
pub struct GoOn;

/// Sums over all subdomains, in the order of their numbers.
#[derive(Clone, Serialize, Deserialize)]
pub struct Added(Sums);

impl Reduce for Added {
    fn combine(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, other)| *sum += other);
    }
}

/// Right-hand sides of the coarsest mesh, by subdomains.
type Coarse = Gather<Bulk<f64>>;

/// The solution of the coarsest mesh.
#[derive(Clone, Serialize, Deserialize)]
pub struct Solved(Bulk<f64>);

/// Say what it took.
#[derive(Clone, Serialize, Deserialize)]
pub struct Account(pub Callback<Figures>);

/// Say how good the solution is.
#[derive(Clone, Serialize, Deserialize)]
pub struct Check(pub Callback<Measured>);

/// Send the own part of the solution.
#[derive(Clone, Serialize, Deserialize)]
pub struct Collect(pub Callback<Part>);

/// A part of the solution.
#[derive(Clone, Serialize, Deserialize)]
pub struct Part {
    /// Numbers of the nodes in the whole mesh.
    pub ids: Bulk<u64>,
    /// The unknowns of each.
    pub values: Bulk<f64>,
}

chares::entries!(Subdomain:
    Load, Prepare, Want, Go, Halo, GoOn, Added, Coarse as "Coarse", Solved, Account, Check, Collect, March, Rim, Adapt,
        Verdicts as "Verdicts";
    reduces Figures, Added, Course, Coarse as "Coarse", Measured, Verdicts as "Verdicts");

impl Chare for Subdomain {
    type Index = u32;
    type Init = Readonly<Problem>;

    const VERSION: u16 = 3;

    fn new(problem: Readonly<Problem>, ctx: &mut Ctx<'_, Self>) -> Self {
        Self {
            problem,
            number: ctx.index(),
            read: None,
            machine: Machine::default(),
            coarsest: None,
            exchange: 0,
            halos: Inbox::default(),
            is_waiting: false,
            is_called: false,
            figures: Figures::default(),
            ended: None,
            shown: None,
            marching: Marching::default(),
            rims: Inbox::default(),
            march: None,
        }
    }
}

impl Entry<Load> for Subdomain {
    fn receive(&mut self, Load(mesh): Load, _: &mut Ctx<'_, Self>) {
        self.read = Some(mesh);
    }
}

impl Entry<Prepare> for Subdomain {
    fn receive(&mut self, Prepare(to): Prepare, ctx: &mut Ctx<'_, Self>) {
        let (problem, begun) = (self.problem.read(ctx), spent());
        self.machine = Machine::new(&problem, self.number, self.read.take());
        self.figures.assembling_s += spent() - begun;
        if self.number == 0 && coarsest_lattice(&problem).is_some() {
            let begun = spent();
            self.coarsest = coarsest(&problem);
            self.figures.is_free = self.coarsest.is_none();
            self.figures.coarsest_s += spent() - begun;
        }
        self.figures.largest_load = self.machine.largest_load();
        self.figures.bytes = self.machine.bytes() as u64;
        self.figures.entries = self.machine.entries() as u64;
        ctx.contribute_ordered(self.figures, to);
        let (array, by) = (ctx.array(), self.number);
        for (level, of) in self.machine.levels.iter().enumerate() {
            if level > 0 && of.rows.is_empty() {
                continue;
            }
            for (from, ids) in of.wants() {
                array.at(from).send(ctx, Want { level, by, ids });
            }
        }
    }
}

impl Entry<Want> for Subdomain {
    fn receive(&mut self, want: Want, ctx: &mut Ctx<'_, Self>) {
        if self.machine.levels.is_empty() {
            // It has not been prepared yet.
            return ctx.this().send(ctx, want);
        }
        let level = self.machine.levels.get_mut(want.level);
        if !level.is_some_and(|level| level.want(want.by, &want.ids)) {
            ctx.fail("a subdomain was asked for nodes that are not its own");
        }
    }
}

impl Entry<Go> for Subdomain {
    fn receive(&mut self, Go(ended): Go, ctx: &mut Ctx<'_, Self>) {
        self.ended = Some(ended);
        self.advance(ctx);
    }
}

impl Entry<Halo> for Subdomain {
    fn receive(&mut self, halo: Halo, ctx: &mut Ctx<'_, Self>) {
        self.halos.hold(halo.exchange, halo);
        if let Some(count) = self.machine.awaited() {
            self.call(count, ctx);
        }
    }
}

impl Entry<GoOn> for Subdomain {
    fn receive(&mut self, GoOn: GoOn, ctx: &mut Ctx<'_, Self>) {
        self.is_called = false;
        self.timed(|subdomain| {
            let Some(count) = subdomain.machine.awaited() else { return };
            let Some(halos) = subdomain.halos.take(&subdomain.exchange, count) else { return };
            if !halos.iter().all(|halo| subdomain.machine.take(halo.from, &halo.numbers)) {
                return ctx.fail("a subdomain got other numbers than those that it has copies of");
            }
            subdomain.machine.have_taken();
            subdomain.take_steps(ctx);
        });
    }
}

impl Entry<Added> for Subdomain {
    fn receive(&mut self, Added(sums): Added, ctx: &mut Ctx<'_, Self>) {
        self.timed(|subdomain| {
            subdomain.machine.take_sums(&sums);
            subdomain.is_waiting = false;
            if subdomain.number == 0 && subdomain.march.is_none() {
                subdomain.show(ctx);
            }
            subdomain.take_steps(ctx);
        });
    }
}

impl Entry<Coarse> for Subdomain {
    fn receive(&mut self, Gather(parts): Coarse, ctx: &mut Ctx<'_, Self>) {
        let (problem, begun) = (self.problem.read(ctx), spent());
        let (Some(factor), Some((_, cut))) = (&self.coarsest, problem.lattice()) else { return };
        let mut solution = joined(&problem, &cut, &parts);
        factor.solve(solution.as_mut_slice());
        self.figures.coarsest_s += spent() - begun;
        ctx.array().broadcast_with(ctx, URGENT, Solved(solution));
    }
}

impl Entry<Solved> for Subdomain {
    fn receive(&mut self, Solved(solution): Solved, ctx: &mut Ctx<'_, Self>) {
        self.machine.take_coarse(&solution);
        self.is_waiting = false;
        self.advance(ctx);
    }
}

impl Entry<Account> for Subdomain {
    fn receive(&mut self, Account(to): Account, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(self.figures, to);
    }
}

impl Entry<Check> for Subdomain {
    fn receive(&mut self, Check(to): Check, ctx: &mut Ctx<'_, Self>) {
        let problem = self.problem.read(ctx);
        let measured = self.machine.measured(&problem, self.number);
        ctx.contribute_ordered(measured, to);
    }
}

impl Entry<Collect> for Subdomain {
    fn receive(&mut self, Collect(to): Collect, ctx: &mut Ctx<'_, Self>) {
        let Some(finest) = self.machine.levels.first() else { return };
        let values = &self.machine.solution()[..finest.own * self.machine.each()];
        to.send(
            ctx,
            Part { ids: Bulk::from_slice(&finest.ids[..finest.own]), values: Bulk::from_slice(values) },
        );
    }
}

impl Subdomain {
    /// Takes steps until something of others is needed.
    pub(super) fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.timed(|subdomain| subdomain.take_steps(ctx));
    }

    /// Tells itself to go on if the numbers of so many others are here.
    fn call(&mut self, count: usize, ctx: &mut Ctx<'_, Self>) {
        if !self.is_called && self.halos.count(&self.exchange) >= count {
            self.is_called = true;
            ctx.this().send_with(ctx, LATER, GoOn);
        }
    }

    /// Adds the processor time of some steps, but for that of elements, which counts for itself.
    fn timed(&mut self, steps: impl FnOnce(&mut Self)) {
        let (begun, assembling_s) = (spent(), self.figures.assembling_s);
        steps(self);
        let of_elements_s = self.figures.assembling_s - assembling_s;
        self.figures.iterating_s += spent() - begun - of_elements_s;
    }

    fn take_steps(&mut self, ctx: &mut Ctx<'_, Self>) {
        while (self.ended.is_some() || self.march.is_some()) && !self.is_waiting {
            match self.machine.step() {
                Need::Nothing => {}
                Need::Tell(parts) => {
                    self.exchange += 1;
                    let (array, exchange, from) = (ctx.array(), self.exchange, self.number);
                    for (to, numbers) in parts {
                        array.at(to).send_with(ctx, URGENT, Halo { exchange, from, numbers });
                    }
                }
                Need::Halo(count) => return self.call(count, ctx),
                Need::Sums(sums) => {
                    self.is_waiting = true;
                    let all = Callback::broadcast(&ctx.array());
                    ctx.contribute_ordered(Added(sums), all);
                }
                Need::Coarse(part) => {
                    self.is_waiting = true;
                    let first = Callback::element(&ctx.array().at(0));
                    ctx.contribute_ordered(Gather(vec![part]), first);
                }
                Need::Over if self.march.is_some() => {
                    self.solved(ctx);
                    if self.machine.levels.is_empty() {
                        return;
                    }
                }
                Need::Over => {
                    if let Some(ended) = self.ended.take() {
                        ctx.contribute(self.machine.course, ended);
                    }
                }
            }
        }
    }

    /// Tells the window how far it is, now and then.
    fn show(&mut self, ctx: &mut Ctx<'_, Self>) {
        let course = self.machine.course;
        if self.shown.is_some_and(|shown| shown.elapsed() < TELL) && course.why.is_none() {
            return;
        }
        self.shown = Some(Stopwatch::start());
        let tolerance = self.problem.read(ctx).solver.tolerance;
        let (iterations, residual) = (f64::from(course.iterations), course.residual());
        // At the rate of all iterations so far.
        let expected = iterations * tolerance.ln() / residual.ln();
        let expected =
            (residual < 1.0 && expected.is_finite()).then(|| expected.clamp(iterations, 1e9) as u64);
        let detail = format!("residual {residual:.1e}, wants {tolerance:e}");
        ctx.forecast("iteration", course.iterations.into(), expected, &detail);
    }
}

/// Seconds of processor time that this thread has taken; by the clock there would be what others take of its core, too.
pub(super) fn spent() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |time| Duration::from(time).as_secs_f64())
}

/// The equations of the coarsest mesh, factored; nothing if they have no single solution, or there is no such mesh.
#[must_use]
pub fn coarsest(problem: &Problem) -> Option<Cholesky> {
    let lattice = coarsest_lattice(problem)?;
    let domain = Domain::Lattice(lattice);
    let solver = super::problem::Solver { preconditioner: Preconditioner::None, ..problem.solver };
    let alone = Problem { domain, parts: 1, solver, ..problem.clone() };
    Cholesky::of(&Levels::of_lattice(&alone, 0).levels.first()?.rows.rows())
}

/// Right-hand sides of the coarsest mesh in the order of its nodes.
#[must_use]
pub fn joined(problem: &Problem, cut: &Cut, parts: &[Bulk<f64>]) -> Bulk<f64> {
    let Some(lattice) = coarsest_lattice(problem) else { return Bulk::default() };
    let unknowns = problem.each();
    let mut all = Bulk::zeros(lattice.nodes() * unknowns);
    for (number, part) in (0..).zip(parts) {
        let own = cut.coarse_part(number, lattice.nodes_along());
        for (at, numbers) in each(&own).zip(part.chunks_exact(unknowns)) {
            all.as_mut_slice()[lattice.id(at) as usize * unknowns..][..unknowns].copy_from_slice(numbers);
        }
    }
    all
}

/// The array of subdomains.
pub type Subdomains = Array<Subdomain>;
