//! What is computed, as every chare and the check know it.
//!
//! Time is in 1/ω_p, mass and charge are those of an electron, and the mean density is 1. Lengths are in any unit, velocities
//! in that unit times ω_p. Chares compute in cells and steps: a place is in cells, a velocity in cells per step.

use super::numbers::{mirrored, normal, sine};
use super::particles::{Particles, cell_of};
use crate::matrix::generate::hash;
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

impl Problem {
    /// All particles.
    #[must_use]
    pub fn particles(&self) -> u64 {
        self.species.iter().map(|species| species.particles).sum()
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

    /// The particles of these numbers at the beginning.
    #[must_use]
    pub fn numbered(&self, numbers: Range<u64>) -> Particles {
        let mut particles = Particles::default();
        let mut first = 0;
        for (kind, species) in self.species.iter().enumerate() {
            let here = first..first + species.particles;
            let (from, to) = (numbers.start.max(here.start), numbers.end.min(here.end));
            (from..to).for_each(|number| particles.push(self.particle(kind, number - first)));
            first = here.end;
        }
        particles
    }

    /// The particles that begin in these columns, in the order of their numbers.
    #[must_use]
    pub fn inside(&self, strip: Strip) -> Particles {
        let mut particles = Particles::default();
        let range = strip.range();
        let at = |column: usize| column as f64 / self.cells[0] as f64;
        // Numbers ascend along x, but for the displacement by the wave.
        let displaced = self.perturbation / (TAU * f64::from(self.mode));
        for (kind, species) in self.species.iter().enumerate() {
            let count = species.particles as f64;
            let from = (count * (at(range.start) - displaced) - 2.0).floor() as i64;
            let to = (count * (at(range.end) + displaced) + 2.0).ceil() as i64;
            let numbers = from..to.min(from + species.particles as i64);
            for number in numbers {
                let particle = self.particle(kind, number.rem_euclid(species.particles as i64) as u64);
                if range.contains(&cell_of(particle[0]).0) {
                    particles.push(particle);
                }
            }
        }
        particles
    }

    /// A particle of a species at the beginning: its place in cells and its velocity in cells per step. A quiet start: places
    /// and velocities are those of a sequence that fills the space of both evenly (J. M. Hammersley), displaced along x as
    /// the wave has it (C. K. Birdsall and A. B. Langdon, "Plasma Physics via Computer Simulation", chapter 16).
    fn particle(&self, kind: usize, number: u64) -> [f64; 4] {
        let Species { particles, drift, thermal } = self.species[kind];
        let even = |base: u64| {
            let shift = (hash(self.seed, kind as u64, base) >> 11) as f64 / (1u64 << 53) as f64;
            let place = mirrored(number, base) + shift;
            place - place.floor()
        };
        // At the ends the distribution has no quantile.
        let velocity = |base| {
            if thermal > 0.0 { thermal * normal(even(base).clamp(1e-12, 1.0 - 1e-12)) } else { 0.0 }
        };
        let x = (number as f64 + 0.5) / particles as f64;
        let mode = f64::from(self.mode);
        let x = x - self.perturbation / (TAU * mode) * sine(mode * x);
        let ([nx, ny], [dx, dy]) = (self.cells.map(|cells| cells as f64), self.cell());
        [
            wrapped(nx * x, nx),
            wrapped(ny * even(2), ny),
            (drift + velocity(3)) * (self.dt / dx),
            velocity(5) * (self.dt / dy),
        ]
    }
}

/// A place up to a box away as one inside it.
#[inline(always)]
pub(super) fn wrapped(place: f64, cells: f64) -> f64 {
    let place = if place < 0.0 { place + cells } else { place };
    if place >= cells { place - cells } else { place }
}

/// Bits of a number.
const fn bits_of(number: u64) -> u32 {
    64 - number.leading_zeros()
}
