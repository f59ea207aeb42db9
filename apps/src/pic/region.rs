//! The chare that has particles: those in some columns of the grid, or some of them wherever they are. In each step the field
//! moves them and their charge goes to who solves for the next field.
//!
//! Particles that leave a region go where they are now, in one superstep (the thesis' scheme 1), or from neighbour to
//! neighbour (its distributed grid). Every region sends to all that its particles can reach, so each knows when it has
//! heard from all.

use super::charge::{Charge, Columns};
use super::field::Differences;
use super::figures::{Account, Figures};
use super::look::Look;
use super::particles::{Particles, Pushed, Pushing, around, cell_of};
use super::problem::{Problem, Scheme};
use super::requests::{Collect, Counts, Density, Digest, DigestOf, Fastest, PhaseSpace};
use super::spectrum::{Bands, Guard, Lines, Spectrum, columns};
use chares::{Bulk, Callback, Chare, Ctx, Cx as _, Element, Entry, Inbox, Max, Part, Readonly, Scratch};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Steps after which particles are put in the order of their cells; they begin in that of their columns. It costs three times a
/// step.
const SORT_EVERY: u32 = 100;

/// What a run ends with where a step is too long.
pub(super) const WILD: &str = "a particle goes further than 8 cells, or once through the box, in a step: take a smaller --dt or \
                               fewer --cells";

/// Some particles.
#[derive(Serialize, Deserialize)]
pub struct Region {
    pub(super) setup: RegionInit,
    /// Steps that are done.
    pub(super) step: u32,
    pub(super) particles: Particles,
    /// The charge of the particles that are there, with the row and the column behind the last.
    grid: Bulk<i64>,
    /// What came of the last step.
    pushed: Pushed,
    /// How often particles have been passed on in this step.
    hop: u32,
    arrived: Inbox<(u32, u32), Arrivals>,
    /// Particles that have to be passed on.
    passing: Particles,
    pub(super) spectrum: Spectrum,
    leaving: Scratch<Vec<u32>>,
    accelerations: Scratch<Vec<f64>>,
}

/// What every region is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegionInit {
    /// The problem.
    pub problem: Readonly<Problem>,
    /// Who solves for the field, unless all do together.
    pub poisson: Option<ToPoisson>,
    /// Who hears of each step where all solve together.
    pub told: Callback<Figures>,
}

/// How charge comes to who solves for the field.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ToPoisson {
    /// That of a region's columns.
    pub columns: Callback<Columns>,
    /// That of all columns, added up.
    pub all: Callback<Charge>,
}

/// Begin.
#[derive(Clone, Serialize, Deserialize)]
pub struct Go;

/// The field of a step.
#[derive(Clone, Serialize, Deserialize)]
pub struct Slab {
    /// The step.
    pub step: u32,
    /// The potential, column after column: of the whole grid if particles stay, or else in the region's columns and those around
    /// them.
    pub potential: Bulk<f64>,
}

/// Particles that leave a region after a step, perhaps none.
#[derive(Serialize, Deserialize)]
pub struct Arrivals {
    step: u32,
    hop: u32,
    particles: Particles,
}

chares::entries!(
    Region: Go, Slab, Arrivals, Guard, Part<Lines> as "Lines", Part<Bands> as "Bands", Account, DigestOf, Fastest,
        PhaseSpace, Density, Collect, Look;
    reduces Charge, Account, Digest, Counts, Max<f64> as "Fastest"
);

impl Chare for Region {
    type Index = u32;
    type Init = RegionInit;

    fn new(setup: RegionInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let problem = setup.problem.read(ctx);
        let particles = match problem.scheme {
            Scheme::Fixed => problem.numbered(problem.part(ctx.index())),
            Scheme::Regions | Scheme::Distributed => problem.inside(problem.strip(ctx.index())),
        };
        Self {
            setup,
            step: 0,
            particles,
            grid: Bulk::default(),
            pushed: Pushed::default(),
            hop: 0,
            arrived: Inbox::default(),
            passing: Particles::default(),
            spectrum: Spectrum::default(),
            leaving: Scratch::default(),
            accelerations: Scratch::default(),
        }
    }
}

impl Entry<Go> for Region {
    fn receive(&mut self, _: Go, ctx: &mut Ctx<'_, Self>) {
        let (problem, pushing) = self.known(ctx);
        self.grid = Bulk::zeros(pushing.sums());
        self.particles.deposit(0, &pushing, self.grid.as_mut_slice());
        self.settled(&problem, &pushing, ctx);
    }
}

impl Entry<Slab> for Region {
    fn receive(&mut self, Slab { step, potential }: Slab, ctx: &mut Ctx<'_, Self>) {
        if step != self.step {
            return ctx.fail("a field came that is not of this step");
        }
        self.take_step(&potential, ctx);
    }
}

impl Entry<Arrivals> for Region {
    fn receive(&mut self, arrivals: Arrivals, ctx: &mut Ctx<'_, Self>) {
        self.arrived.hold((arrivals.step, arrivals.hop), arrivals);
        // Those of a step that is not yet taken here wait.
        if self.hop > 0 {
            let (problem, pushing) = self.known(ctx);
            self.take_in(&problem, &pushing, ctx);
        }
    }
}

impl Entry<Account> for Region {
    fn receive(&mut self, account: Account, ctx: &mut Ctx<'_, Self>) {
        if account.is_wild {
            return ctx.fail(WILD);
        }
        let (problem, told) = (self.setup.problem.read(ctx), self.setup.told);
        told.send(ctx, account.figures(&problem));
    }
}

impl Region {
    pub(super) fn known(&self, ctx: &mut Ctx<'_, Self>) -> (Arc<Problem>, Pushing) {
        let problem = self.setup.problem.read(ctx);
        let pushing = Pushing::new(&problem, problem.strip(ctx.index()));
        (problem, pushing)
    }

    /// Moves the particles in a potential, as [`Slab`] has it, and sends those away that leave.
    pub(super) fn take_step(&mut self, potential: &[f64], ctx: &mut Ctx<'_, Self>) {
        let (problem, pushing) = self.known(ctx);
        let ([nx, ny], is_whole) = (problem.cells, problem.scheme == Scheme::Fixed);
        let given = if is_whole { nx } else { columns(&problem, ctx.index()).count() };
        if potential.len() != given * ny {
            return ctx.fail("a field came that is not of this region");
        }
        let differences = Differences::new(&problem);
        if is_whole {
            differences.everywhere(potential, &mut self.accelerations);
        } else {
            differences.inside(potential, &mut self.accelerations);
        }
        if self.step % SORT_EVERY == SORT_EVERY - 1 {
            self.particles.sort(&pushing);
        }
        let mut leaving = std::mem::take(&mut *self.leaving);
        leaving.clear();
        let grid = self.grid.as_mut_slice();
        grid.fill(0);
        self.pushed =
            self.particles.advance(&pushing, (&self.accelerations, self.step == 0), grid, &mut leaving);
        self.step += 1;
        if problem.scheme == Scheme::Distributed {
            let mut account = self.spectrum.account(problem.cells[1]);
            (account.kinetic, account.is_wild) = (self.pushed.kinetic, self.pushed.is_wild);
            account.step = self.step - 1;
            let first = ctx.array().at(0);
            ctx.contribute_ordered(account, Callback::element(&first));
        }
        let passing = &mut self.passing;
        self.particles.take_out(&leaving, |particle| passing.push(particle));
        *self.leaving = leaving;
        if problem.scheme == Scheme::Fixed {
            return self.settled(&problem, &pushing, ctx);
        }
        self.hop = 1;
        self.pass_on(&problem, ctx);
        self.take_in(&problem, &pushing, ctx);
    }

    /// Sends particles that are not at home here nearer to where they are.
    fn pass_on(&mut self, problem: &Problem, ctx: &mut Ctx<'_, Self>) {
        let (index, array) = (ctx.index(), ctx.array());
        let to = problem.neighbours(index);
        let mut batches: Vec<Particles> = to.iter().map(|_| Particles::default()).collect();
        for particle in std::mem::take(&mut self.passing).each() {
            let home = problem.region_at(cell_of(particle[0]).0);
            let next =
                if problem.scheme == Scheme::Distributed { problem.towards(index, home) } else { home };
            match to.iter().position(|region| *region == next) {
                Some(at) => batches[at].push(particle),
                None => return ctx.fail("a particle has gone further than any may"),
            }
        }
        let (step, hop) = (self.step, self.hop);
        for (region, particles) in to.into_iter().zip(batches) {
            let element: Element<Self> = array.at(region);
            element.send(ctx, Arrivals { step, hop, particles });
        }
    }

    /// Takes in particles that have come, once those of all neighbours have.
    fn take_in(&mut self, problem: &Problem, pushing: &Pushing, ctx: &mut Ctx<'_, Self>) {
        let (index, range) = (ctx.index(), problem.strip(ctx.index()).range());
        let neighbours = problem.neighbours(index).len();
        let hops = problem.hops();
        while self.hop <= hops {
            let Some(arrived) = self.arrived.take(&(self.step, self.hop), neighbours) else { return };
            let before = self.particles.len();
            for particle in arrived.iter().flat_map(|arrivals| arrivals.particles.each()) {
                let is_home = range.contains(&cell_of(particle[0]).0);
                if is_home { &mut self.particles } else { &mut self.passing }.push(particle);
            }
            self.particles.deposit(before, pushing, self.grid.as_mut_slice());
            self.hop += 1;
            if self.hop <= hops {
                self.pass_on(problem, ctx);
            }
        }
        if !self.passing.is_empty() {
            return ctx.fail("a particle has come to a region where it is not");
        }
        self.hop = 0;
        self.settled(problem, pushing, ctx);
    }

    /// All particles are where they belong: their charge goes to who solves for the field.
    fn settled(&mut self, problem: &Problem, pushing: &Pushing, ctx: &mut Ctx<'_, Self>) {
        let charge = pushing.folded(&self.grid);
        let Pushed { kinetic, is_wild } = self.pushed;
        let (step, strip) = (self.step, problem.strip(ctx.index()));
        let Some(poisson) = self.setup.poisson else { return self.begin_spectrum(problem, charge, ctx) };
        let mut columns = Columns { step, strip, charge: Bulk::default(), kinetic, is_wild };
        if problem.scheme == Scheme::Fixed {
            columns.charge = Bulk::from_slice(&around(charge, problem.cells[1]));
            ctx.contribute(Charge(columns), poisson.all);
        } else {
            columns.charge = Bulk::from(charge);
            poisson.columns.send(ctx, columns);
        }
    }

    /// The charge of the particles that are here, on the whole grid.
    pub(super) fn whole_charge(&self, problem: &Problem) -> Bulk<i64> {
        let pushing = Pushing::new(problem, problem.whole());
        let mut grid = vec![0; pushing.sums()];
        self.particles.deposit(0, &pushing, &mut grid);
        Bulk::from_slice(&around(pushing.folded(&grid), problem.cells[1]))
    }
}
