//! The field of a charge: Poisson's equation in a periodic box by Fourier transforms, along y in each column of the grid and
//! along x in each row of the spectrum. Whoever does these, one chare all of them or each chare its part, does the same
//! operations on the same numbers, so the bits are the same.
//!
//! The electrons' density is real: of its spectrum the rows from 0 to half of the cells along y say all. Differences stand for
//! derivatives: of second order, as the shape of the particles is.
//!
//! What is solved for is the potential; who has particles takes its differences. It is half as much to send as accelerations.

use super::numbers::sine;
use super::problem::Problem;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlannerScalar};
use std::fmt;
use std::sync::Arc;

/// A number of a spectrum.
pub type Wave = Complex<f64>;

/// What is needed to solve for the field.
pub struct Solver {
    cells: [usize; 2],
    mode: usize,
    /// Density relative to the mean, of a sum of charge.
    density: f64,
    /// What the Laplacian does to a wave, for each along x and y, without its sign.
    curvatures: [Vec<f64>; 2],
    along_x: Plans,
    along_y: Plans,
    scratch: Vec<Wave>,
    column: Vec<Wave>,
}

impl fmt::Debug for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Solver({:?})", self.cells)
    }
}

/// Transforms of a length, there and back. Those for one instruction set, which every processor has: others round otherwise.
struct Plans {
    there: Arc<dyn Fft<f64>>,
    back: Arc<dyn Fft<f64>>,
}

impl Plans {
    fn new(length: usize) -> Self {
        let mut planner = FftPlannerScalar::new();
        Self { there: planner.plan_fft_forward(length), back: planner.plan_fft_inverse(length) }
    }

    fn scratch(&self) -> usize {
        self.there.get_inplace_scratch_len().max(self.back.get_inplace_scratch_len())
    }
}

/// What is learnt of the field with a row of its spectrum. Energies are those of an electron in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// In this row and that of the opposite wave number.
    pub row: f64,
    /// In the wave that is watched, if it is in this row.
    pub mode: f64,
}

/// The field of a whole grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Solved {
    /// What an electron has of energy at each point, column after column.
    pub potential: Vec<f64>,
    /// Of all rows together.
    pub energy: Energy,
}

impl Solver {
    /// For a problem's grid.
    #[must_use]
    pub fn new(problem: &Problem) -> Self {
        let cells = problem.cells;
        let sides = problem.cell();
        let of_axis = |axis: usize, of: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let count = cells[axis] as f64;
            (0..cells[axis]).map(|wave| of(wave as f64 / count)).collect()
        };
        let curvature = |axis: usize| of_axis(axis, &|turns| (2.0 * sine(turns / 2.0) / sides[axis]).powi(2));
        let (along_x, along_y) = (Plans::new(cells[0]), Plans::new(cells[1]));
        let scratch = vec![Wave::default(); along_x.scratch().max(along_y.scratch())];
        Self {
            cells,
            mode: problem.mode as usize,
            density: problem.grid() as f64 / problem.charge() as f64,
            curvatures: [curvature(0), curvature(1)],
            along_x,
            along_y,
            scratch,
            column: vec![Wave::default(); cells[1]],
        }
    }

    /// Rows of the half of a spectrum that says all.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.cells[1] / 2 + 1
    }

    /// The spectrum along y of the charge of a column, row by row.
    pub fn column_there(&mut self, charge: &[i64], mut to: impl FnMut(usize, Wave)) {
        for (wave, charge) in self.column.iter_mut().zip(charge) {
            *wave = Wave::new(*charge as f64 * self.density, 0.0);
        }
        self.along_y.there.process_with_scratch(&mut self.column, &mut self.scratch);
        let rows = self.cells[1] / 2 + 1;
        self.column[..rows].iter().enumerate().for_each(|(row, wave)| to(row, *wave));
    }

    /// Turns a row of the spectrum along y of the density into the same row of the potential.
    pub fn row(&mut self, number: usize, row: &mut [Wave]) -> Energy {
        self.along_x.there.process_with_scratch(row, &mut self.scratch);
        let points = (self.cells[0] * self.cells[1]) as f64;
        let is_alone = number == 0 || 2 * number == self.cells[1];
        let twice = if is_alone { 1.0 } else { 2.0 };
        let mut energy = Energy::default();
        for (at, wave) in row.iter_mut().enumerate() {
            let curvature = self.curvatures[0][at] + self.curvatures[1][number];
            // The ions have the mean of the density.
            if curvature == 0.0 {
                *wave = Wave::default();
                continue;
            }
            let potential = *wave / (points * curvature);
            let of_wave = 0.5 * (wave.re * potential.re + wave.im * potential.im) / points;
            energy.row += twice * of_wave;
            if number == 0 && (at == self.mode || at + self.mode == self.cells[0]) {
                energy.mode += of_wave;
            }
            *wave = potential;
        }
        self.along_x.back.process_with_scratch(row, &mut self.scratch);
        energy
    }

    /// The potential in a column, from those rows of it that say all.
    pub fn column_back(&mut self, of_row: impl Fn(usize) -> Wave, to: &mut Vec<f64>) {
        let cells = self.cells[1];
        for row in 0..=cells / 2 {
            let wave = of_row(row);
            let is_alone = row == 0 || 2 * row == cells;
            if is_alone {
                // What is not real there is rounding.
                self.column[row] = Wave::new(wave.re, 0.0);
            } else {
                (self.column[row], self.column[cells - row]) = (wave, wave.conj());
            }
        }
        self.along_y.back.process_with_scratch(&mut self.column, &mut self.scratch);
        to.extend(self.column.iter().map(|wave| wave.re));
    }

    /// The field of the charge of a whole grid, column after column.
    #[must_use]
    pub fn solve(&mut self, charge: &[i64]) -> Solved {
        let ([columns, cells], rows) = (self.cells, self.rows());
        let mut spectrum = vec![Wave::default(); rows * columns];
        for (column, charge) in charge.chunks_exact(cells).enumerate() {
            self.column_there(charge, |row, wave| spectrum[row * columns + column] = wave);
        }
        let mut energy = Energy::default();
        for (number, row) in spectrum.chunks_exact_mut(columns).enumerate() {
            energy.add(self.row(number, row));
        }
        let mut potential = Vec::with_capacity(columns * cells);
        for column in 0..columns {
            self.column_back(|row| spectrum[row * columns + column], &mut potential);
        }
        Solved { potential, energy }
    }
}

impl Energy {
    /// Takes the next row in.
    pub fn add(&mut self, next: Self) {
        self.row += next.row;
        self.mode += next.mode;
    }
}

/// Accelerations from potentials: differences over two cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differences {
    cells: [usize; 2],
    units: [f64; 2],
}

impl Differences {
    /// For a problem's grid.
    #[must_use]
    pub fn new(problem: &Problem) -> Self {
        let unit = |side: f64| -0.5 * (problem.dt / side).powi(2);
        Self { cells: problem.cells, units: problem.cell().map(unit) }
    }

    /// Accelerations along x and y at each point of the whole grid, in cells per step squared, column after column, each with its
    /// first point again behind the last, and the first column again behind all.
    pub fn everywhere(&self, potential: &[f64], to: &mut Vec<f64>) {
        let [nx, ny] = self.cells;
        self.accelerations(nx + 1, |column| &potential[(column + nx - 1) % nx * ny..][..ny], to);
    }

    /// The same from the potential in neighbouring columns, in all of them but the first and the last.
    pub fn inside(&self, potential: &[f64], to: &mut Vec<f64>) {
        let ny = self.cells[1];
        let columns = (potential.len() / ny).saturating_sub(2);
        self.accelerations(columns, |column| &potential[column * ny..][..ny], to);
    }

    /// Those in so many columns. `potential` has that of the one before them as number 0, then theirs, and that of the one
    /// behind them.
    fn accelerations<'a>(&self, columns: usize, potential: impl Fn(usize) -> &'a [f64], to: &mut Vec<f64>) {
        let Self { cells: [_, cells], units: [of_x, of_y] } = *self;
        to.clear();
        to.reserve(2 * columns * (cells + 1));
        for column in 0..columns {
            let (left, here, right) = (potential(column), potential(column + 1), potential(column + 2));
            let at = |row: usize, below: usize, above: usize| {
                [of_x * (right[row] - left[row]), of_y * (here[above] - here[below])]
            };
            let first = at(0, cells - 1, 1 % cells);
            to.extend(first);
            let beside = left[1..].iter().zip(&right[1..]);
            to.extend(
                beside.zip(here.windows(3)).flat_map(|((left, right), around)| {
                    [of_x * (right - left), of_y * (around[2] - around[0])]
                }),
            );
            if cells > 1 {
                to.extend(at(cells - 1, cells - 2, 0));
            }
            to.extend(first);
        }
    }
}
