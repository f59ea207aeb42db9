//! What is computed, as every chare and the check know it.
//!
//! Time is in 1/ω_p, mass and charge are those of an electron, and the mean density is 1. Lengths are in any unit, velocities
//! in that unit times ω_p. Chares compute in cells and steps: a place is in cells, a velocity in cells per step.

use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::ops::Range;

/// No particle may go further in a step, in cells along an axis.
pub const REACH: usize = 8;

/// A plasma in a periodic box, and how it is followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Cells along x and y.
    pub cells: [usize; 2],
    /// The box.
    pub length: [f64; 2],
    /// Time of a step.
    pub dt: f64,
    /// Steps.
    pub steps: u32,
    /// Electrons; ions are an even background that stands still.
    pub species: Vec<Species>,
    /// Waves along x in the box that the beginning has and that is watched.
    pub mode: u32,
    /// By which part of itself the density is higher there.
    pub perturbation: f64,
    /// Of the beginning.
    pub seed: u64,
    /// Who has which particles and which part of the grid.
    pub scheme: Scheme,
    /// Region `r` has the columns from `bounds[r]` to `bounds[r + 1]`, or the particles of these numbers if they stay.
    pub bounds: Vec<u64>,
}

/// Electrons of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Species {
    /// How many particles stand for them.
    pub particles: u64,
    /// Their mean velocity, along x.
    pub drift: f64,
    /// The standard deviation of their velocities along each axis.
    pub thermal: f64,
}

/// Who has which particles and which part of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Particles go to the chare of the columns where they are; one chare solves for the field (the thesis' scheme 1).
    Regions,
    /// Particles stay; each chare has a copy of the grid; one chare solves for the field (the thesis' scheme 2).
    Fixed,
    /// Particles are passed on from neighbour to neighbour, and all solve for the field together.
    Distributed,
}

/// Columns of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strip {
    /// The first.
    pub first: usize,
    /// How many.
    pub columns: usize,
}

impl Strip {
    /// The columns.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.columns
    }
}

/// What a point of the grid costs for the field, relative to a step of a particle: 16 to 20 ns against 10 where it was measured.
pub(super) const POINT_WORK: f64 = 1.8;

impl Problem {
    /// All particles.
    #[must_use]
    pub fn particles(&self) -> u64 {
        self.species.iter().map(|species| species.particles).sum()
    }

    /// What a step takes, in steps of a particle: the particles, and the field.
    #[must_use]
    pub fn work_of_step(&self) -> f64 {
        self.particles() as f64 + POINT_WORK * self.grid() as f64
    }

    /// Cells of the grid.
    #[must_use]
    pub fn grid(&self) -> usize {
        self.cells[0] * self.cells[1]
    }

    /// All columns.
    #[must_use]
    pub fn whole(&self) -> Strip {
        Strip { first: 0, columns: self.cells[0] }
    }

    /// How many regions there are.
    #[must_use]
    pub fn regions(&self) -> usize {
        self.bounds.len() - 1
    }

    /// What a region has at the beginning, of columns or particles.
    #[must_use]
    pub fn part(&self, region: u32) -> Range<u64> {
        self.bounds[region as usize]..self.bounds[region as usize + 1]
    }

    /// The columns where a region's particles may be.
    #[must_use]
    pub fn strip(&self, region: u32) -> Strip {
        if self.scheme == Scheme::Fixed {
            return self.whole();
        }
        let part = self.part(region);
        Strip { first: part.start as usize, columns: (part.end - part.start) as usize }
    }

    /// The region that has a column.
    #[must_use]
    pub fn region_at(&self, column: usize) -> u32 {
        self.bounds.partition_point(|bound| *bound <= column as u64).saturating_sub(1) as u32
    }

    /// Regions that a particle can go through in a step, along the ring of all.
    fn reach(&self) -> usize {
        let narrowest = self.bounds.windows(2).map(|ends| (ends[1] - ends[0]) as usize).min().unwrap_or(1);
        REACH.div_ceil(narrowest.max(1)).min(self.regions() / 2)
    }

    /// How often particles are passed on after a step.
    #[must_use]
    pub fn hops(&self) -> u32 {
        if self.scheme == Scheme::Distributed { self.reach() as u32 } else { 1 }
    }

    /// Those to whom a region sends its particles.
    #[must_use]
    pub fn neighbours(&self, region: u32) -> Vec<u32> {
        let (regions, region) = (self.regions(), region as usize);
        let reach = if self.scheme == Scheme::Distributed { 1.min(regions / 2) } else { self.reach() };
        let around = (1..=reach).flat_map(|by| [region + by, region + regions - by]);
        let mut neighbours: Vec<u32> = around.map(|other| (other % regions) as u32).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        neighbours
    }

    /// The neighbour of a region that is on the shorter way to another.
    #[must_use]
    pub fn towards(&self, region: u32, other: u32) -> u32 {
        let regions = self.regions() as u32;
        let upwards = (other + regions - region) % regions;
        let by = if upwards <= regions / 2 { 1 } else { regions - 1 };
        (region + by) % regions
    }

    /// The sides of a cell.
    #[must_use]
    pub fn cell(&self) -> [f64; 2] {
        [self.length[0] / self.cells[0] as f64, self.length[1] / self.cells[1] as f64]
    }

    /// The wave number that is watched.
    #[must_use]
    pub fn wave_number(&self) -> f64 {
        TAU * f64::from(self.mode) / self.length[0]
    }

    /// Bits of a place inside its cell, along an axis, that count for the charge. As many as leave room for the charge of all
    /// particles at one point in an `i64`, so that no sum can overflow.
    #[must_use]
    pub fn bits(&self) -> u32 {
        ((62 - bits_of(self.particles())) / 2).min(24)
    }

    /// The charge of all particles, in the units of the grid's sums.
    #[must_use]
    pub fn charge(&self) -> i64 {
        (self.particles() as i64) << (2 * self.bits())
    }

    /// By what squares of velocities are multiplied before they are rounded and added: sums of all particles, none faster than
    /// [`REACH`], do not overflow.
    #[must_use]
    pub fn energy_scale(&self) -> f64 {
        (1u64 << (55 - bits_of(self.particles())).min(43)) as f64
    }

    /// What squares of velocities along x and y count, relative to the longer side of a cell.
    #[must_use]
    pub fn energy_weights(&self) -> [f64; 2] {
        let [dx, dy] = self.cell();
        [dx, dy].map(|side| (side / dx.max(dy)).powi(2))
    }

    /// The kinetic energy of an electron in the mean, of a sum of rounded squares.
    #[must_use]
    pub fn kinetic(&self, sum: i64) -> f64 {
        let [dx, dy] = self.cell();
        let unit = dx.max(dy) / self.dt;
        0.5 * unit * unit * (sum as f64 / self.energy_scale()) / self.particles() as f64
    }
}

/// Bits of a number.
const fn bits_of(number: u64) -> u32 {
    64 - number.leading_zeros()
}
