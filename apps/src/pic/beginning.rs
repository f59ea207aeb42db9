//! Where particles begin, and how fast: each by its number alone, whoever makes it.

use super::numbers::{mirrored, normal, sine};
use super::particles::{Particles, cell_of, wrapped};
use super::problem::{Problem, Species, Strip};
use crate::matrix::generate::hash;
use std::f64::consts::TAU;
use std::ops::Range;

impl Problem {
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
