//! What is told of each step: energies and charge, and where along x the electrons are.

use super::field::Energy;
use super::problem::Problem;
use chares::Reduce;
use serde::{Deserialize, Serialize};

/// Parts along x of which the density is told.
pub const PARTS: usize = 24;

/// What is told of a step. Energies are those of an electron in the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The step. They come in another order where who tells of them moves.
    pub step: u32,
    /// Of the particles' velocities at the time of the step.
    pub kinetic: f64,
    /// Of the field at that time.
    pub potential: f64,
    /// The part of it that the watched wave has.
    pub mode: f64,
    /// By which part of itself the sum of all charge differs from what it has to be.
    pub charge_error: f64,
    /// The density in equal parts of the box along x, relative to the mean.
    pub density: [f32; PARTS],
}

/// What a chare, or one chare for all, adds to the figures of a step. Rows of spectra and columns come in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// The step.
    pub step: u32,
    /// Rounded squares of velocities.
    pub kinetic: i64,
    /// Energies of rows of the spectrum, each with that of the watched wave in it.
    rows: Vec<(f64, f64)>,
    /// Sums of the charge of columns.
    columns: Vec<i64>,
    /// A particle goes further in a step than it may.
    pub is_wild: bool,
}

impl Reduce for Account {
    fn combine(&mut self, mut other: Self) {
        self.kinetic = self.kinetic.wrapping_add(other.kinetic);
        self.rows.append(&mut other.rows);
        self.columns.append(&mut other.columns);
        self.is_wild |= other.is_wild;
    }
}

impl Account {
    /// Of these columns' charge, each of `cells` sums.
    #[must_use]
    pub fn of(charge: &[i64], cells: usize) -> Self {
        Self {
            columns: charge.chunks_exact(cells).map(|column| column.iter().sum()).collect(),
            ..Self::default()
        }
    }

    /// The same with the sums of these columns' charge.
    #[must_use]
    pub fn with_columns(self, charge: &[i64], cells: usize) -> Self {
        Self { columns: Self::of(charge, cells).columns, ..self }
    }

    /// Adds the next row of the spectrum, or all of them together.
    pub fn add_row(&mut self, energy: Energy) {
        self.rows.push((energy.row, energy.mode));
    }

    /// The figures, when all have added to them.
    #[must_use]
    pub fn figures(&self, problem: &Problem) -> Figures {
        let mut energy = Energy::default();
        self.rows.iter().for_each(|&(row, mode)| energy.add(Energy { row, mode }));
        let (columns, charge) = (self.columns.len(), problem.charge());
        let mut density = [0.0; PARTS];
        for (part, density) in density.iter_mut().enumerate() {
            let range =
                part * columns / PARTS..((part + 1) * columns / PARTS).max(part * columns / PARTS + 1);
            let here = self.columns.get(range).unwrap_or_default();
            let mean = charge as f64 / columns as f64 * here.len().max(1) as f64;
            *density = (here.iter().sum::<i64>() as f64 / mean) as f32;
        }
        let error = self.columns.iter().sum::<i64>().abs_diff(charge);
        Figures {
            step: self.step,
            kinetic: problem.kinetic(self.kinetic),
            potential: energy.row,
            mode: energy.mode,
            charge_error: error as f64 / charge as f64,
            density,
        }
    }
}

impl Figures {
    /// Kinetic and potential energy.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.kinetic + self.potential
    }

    /// The density along x as a row of bars, from 0 to the highest or twice the mean.
    #[must_use]
    pub fn bars(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let top = self.density.iter().copied().fold(2.0f32, f32::max);
        self.density.iter().map(|density| BARS[((density / top * 7.99) as usize).min(7)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_the_density() {
        let mut figures = Figures {
            step: 0,
            kinetic: 1.0,
            potential: 0.5,
            mode: 0.0,
            charge_error: 0.0,
            density: [1.0; PARTS],
        };
        assert_eq!((figures.bars(), figures.total()), ("▄".repeat(PARTS), 1.5));
        (figures.density[0], figures.density[1]) = (4.0, 0.0);
        assert!(figures.bars().starts_with("█▁▂▂"), "{}", figures.bars());
    }
}
