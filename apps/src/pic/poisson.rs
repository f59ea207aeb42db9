//! The chare that solves for the field of all, where that is done at one place: sums of charge come, the potential goes.
//!
//! Transforms of a grid are a hundredth of the time of its particles, so all wait less for one fast PE than for exchanges
//! between many; and there is one who rounds.

use super::charge::{Charge, Columns};
use super::field::{Solved, Solver};
use super::figures::{Account, Figures};
use super::problem::{Problem, Scheme};
use super::region::{Region, Slab, WILD};
use super::spectrum::columns;
use chares::{Array, Bulk, Callback, Chare, Ctx, Cx as _, Entry, Inbox, Readonly, Scratch};
use serde::{Deserialize, Serialize};

/// The chare.
#[derive(Serialize, Deserialize)]
pub struct Poisson {
    setup: PoissonInit,
    regions: Option<Array<Region>>,
    /// Steps whose field is solved for.
    step: u32,
    held: Inbox<u32, Columns>,
    /// Of the step before, without the kinetic energy, which comes with the charge after it.
    account: Option<Account>,
    solver: Scratch<Option<Solver>>,
}

/// What it is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoissonInit {
    /// The problem.
    pub problem: Readonly<Problem>,
    /// Who hears of each step.
    pub told: Callback<Figures>,
}

/// Who has the particles.
#[derive(Clone, Serialize, Deserialize)]
pub struct Regions(pub Array<Region>);

chares::entries!(Poisson: Regions, Columns, Charge);

impl Chare for Poisson {
    type Index = u32;
    type Init = PoissonInit;

    fn new(setup: PoissonInit, _: &mut Ctx<'_, Self>) -> Self {
        Self {
            setup,
            regions: None,
            step: 0,
            held: Inbox::default(),
            account: None,
            solver: Scratch::default(),
        }
    }
}

impl Entry<Regions> for Poisson {
    fn receive(&mut self, Regions(regions): Regions, _: &mut Ctx<'_, Self>) {
        self.regions = Some(regions);
    }
}

impl Entry<Charge> for Poisson {
    fn receive(&mut self, Charge(all): Charge, ctx: &mut Ctx<'_, Self>) {
        self.solve(&all, ctx);
    }
}

impl Entry<Columns> for Poisson {
    fn receive(&mut self, columns: Columns, ctx: &mut Ctx<'_, Self>) {
        self.held.hold(columns.step, columns);
        let problem = self.setup.problem.read(ctx);
        let Some(all) = self.held.take(&self.step, problem.regions()) else { return };
        let ([nx, ny], mut grid) = (problem.cells, Bulk::zeros(problem.grid()));
        let (mut kinetic, mut is_wild) = (0i64, false);
        let sums = grid.as_mut_slice();
        for Columns { strip, charge, kinetic: of_strip, is_wild: is_wild_there, .. } in all {
            for (column, charge) in charge.chunks_exact(ny).enumerate() {
                let column = (strip.first + column) % nx;
                let sums = &mut sums[column * ny..(column + 1) * ny];
                sums.iter_mut().zip(charge).for_each(|(sum, charge)| *sum += charge);
            }
            kinetic = kinetic.wrapping_add(of_strip);
            is_wild |= is_wild_there;
        }
        self.solve(&Columns { step: self.step, strip: problem.whole(), charge: grid, kinetic, is_wild }, ctx);
    }
}

impl Poisson {
    /// Tells of the step that has brought this charge, and begins the next.
    fn solve(&mut self, all: &Columns, ctx: &mut Ctx<'_, Self>) {
        let problem = self.setup.problem.read(ctx);
        if let Some(mut account) = self.account.take() {
            if all.is_wild {
                return ctx.fail(WILD);
            }
            account.kinetic = all.kinetic;
            self.setup.told.send(ctx, account.figures(&problem));
        }
        let Some(regions) = self.regions.filter(|_| self.step < problem.steps) else { return };
        let solver = self.solver.get_or_insert_with(|| Solver::new(&problem));
        let solved = solver.solve(&all.charge);
        let mut account = Account::of(&all.charge, problem.cells[1]);
        account.step = self.step;
        account.add_row(solved.energy);
        self.account = Some(account);
        self.hand_out(&problem, regions, &solved, ctx);
        self.step += 1;
    }

    fn hand_out(&self, problem: &Problem, regions: Array<Region>, solved: &Solved, ctx: &mut Ctx<'_, Self>) {
        let step = self.step;
        if problem.scheme == Scheme::Fixed {
            return regions.broadcast(ctx, Slab { step, potential: Bulk::from_slice(&solved.potential) });
        }
        let cells = problem.cells[1];
        regions.scatter(ctx, |region| {
            let of = |column: usize| &solved.potential[column * cells..(column + 1) * cells];
            let slab = columns(problem, region).map(of).collect::<Vec<&[f64]>>().concat();
            Slab { step, potential: slab.into() }
        });
    }
}
