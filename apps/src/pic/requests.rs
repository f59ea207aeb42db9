//! What is asked of regions at the end, and the kinds of their answers.

use super::charge::Charge;
use super::particles::Particles;
use chares::{Bulk, Callback, Max, Reduce};
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
