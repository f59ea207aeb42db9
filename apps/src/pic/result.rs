//! What is asked of regions at the end.

use super::particles::Particles;
use super::poisson::{Charge, Columns};
use super::region::Region;
use chares::{Bulk, Callback, Ctx, Entry, Max, Reduce};
use serde::{Deserialize, Serialize};

/// A checksum over all particles, to the last bit, whoever has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(pub u64);

impl Reduce for Digest {
    fn combine(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

/// Counts of particles, place by place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counts(pub Bulk<i64>);

impl Reduce for Counts {
    fn combine(&mut self, other: Self) {
        let sums = self.0.as_mut_slice();
        sums.iter_mut().zip(other.0.iter()).for_each(|(sum, count)| *sum += count);
    }
}

/// Tell the checksum.
#[derive(Clone, Serialize, Deserialize)]
pub struct DigestOf(pub Callback<Digest>);

/// Tell how fast the fastest particle is along x, in cells per step.
#[derive(Clone, Serialize, Deserialize)]
pub struct Fastest(pub Callback<Max<f64>>);

/// Count particles by their place and velocity along x.
#[derive(Clone, Serialize, Deserialize)]
pub struct PhaseSpace {
    /// Columns of places and rows of velocities, from the lowest.
    pub bins: [usize; 2],
    /// The highest velocity, in cells per step; the lowest is its opposite.
    pub top: f64,
    /// Who is told.
    pub to: Callback<Counts>,
}

/// Tell the charge on the whole grid.
#[derive(Clone, Serialize, Deserialize)]
pub struct Density(pub Callback<Charge>);

/// Send the particles.
#[derive(Clone, Serialize, Deserialize)]
pub struct Collect(pub Callback<Particles>);

/// How many particles are at each place with each velocity along x, row after row from the lowest velocity.
#[must_use]
pub fn counted(particles: &Particles, cells: usize, [columns, rows]: [usize; 2], top: f64) -> Vec<i64> {
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
