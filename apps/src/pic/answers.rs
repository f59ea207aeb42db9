//! What regions answer at the end.

use super::charge::{Charge, Columns};
use super::particles::Particles;
use super::region::Region;
use super::requests::{Collect, Counts, Density, Digest, DigestOf, Fastest, PhaseSpace};
use chares::{Ctx, Entry, Max};

/// How many particles are at each place with each velocity along x, row after row from the lowest velocity.
fn counted(particles: &Particles, cells: usize, [columns, rows]: [usize; 2], top: f64) -> Vec<i64> {
    let mut counts = vec![0; columns * rows];
    for [x, _, u, _] in particles.each() {
        let bin = |part: f64, bins: usize| ((part * bins as f64) as usize).min(bins - 1);
        let (column, row) = (bin(x / cells as f64, columns), bin((u / top + 1.0) / 2.0, rows));
        counts[row * columns + column] += 1;
    }
    counts
}

impl Entry<DigestOf> for Region {
    fn receive(&mut self, DigestOf(to): DigestOf, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Digest(self.particles.digest()), to);
    }
}

impl Entry<Fastest> for Region {
    fn receive(&mut self, Fastest(to): Fastest, ctx: &mut Ctx<'_, Self>) {
        let fastest = self.particles.each().map(|[_, _, u, _]| u.abs()).fold(0.0, f64::max);
        ctx.contribute(Max(fastest), to);
    }
}

impl Entry<PhaseSpace> for Region {
    fn receive(&mut self, PhaseSpace { bins, top, to }: PhaseSpace, ctx: &mut Ctx<'_, Self>) {
        let (problem, _) = self.known(ctx);
        ctx.contribute(Counts(counted(&self.particles, problem.cells[0], bins, top).into()), to);
    }
}

impl Entry<Density> for Region {
    fn receive(&mut self, Density(to): Density, ctx: &mut Ctx<'_, Self>) {
        let (problem, _) = self.known(ctx);
        let charge = self.whole_charge(&problem);
        let (strip, step) = (problem.whole(), self.step);
        ctx.contribute(Charge(Columns { step, strip, charge, kinetic: 0, is_wild: false }), to);
    }
}

impl Entry<Collect> for Region {
    fn receive(&mut self, Collect(to): Collect, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, self.particles.clone());
    }
}
