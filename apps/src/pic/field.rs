//! The field of a charge: Poisson's equation in a periodic box by Fourier transforms, along y in each column of the grid and
//! along x in each row of the spectrum. Whoever does these, one chare all of them or each chare its part, does the same
//! operations on the same numbers, so the bits are the same.
//!
//! The electrons' density is real: of its spectrum the rows from 0 to half of the cells along y say all. Differences stand for
//! derivatives: of second order, as the shape of the particles is.

use super::numbers::sine;
use super::problem::{Problem, Strip};
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
    /// What a difference over two cells does to a wave, for each along x and y, with the units of acceleration.
    slopes: [Vec<f64>; 2],
    /// What the Laplacian does, without its sign.
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
    /// Accelerations along x and y at each point, in cells per step squared: column after column, each with the first again
    /// behind the last, as have the rows in them.
    pub accelerations: Vec<f64>,
    /// Of all rows together.
    pub energy: Energy,
}

impl Solver {
    /// For a problem's grid.
    #[must_use]
    pub fn new(problem: &Problem) -> Self {
        let Problem { cells, dt, .. } = *problem;
        let sides = problem.cell();
        let of_axis = |axis: usize, of: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let count = cells[axis] as f64;
            (0..cells[axis]).map(|wave| of(wave as f64 / count)).collect()
        };
        let slope = |axis: usize| {
            let unit = dt * dt / (sides[axis] * sides[axis]);
            of_axis(axis, &|turns| sine(turns) * unit)
        };
        let curvature = |axis: usize| of_axis(axis, &|turns| (2.0 * sine(turns / 2.0) / sides[axis]).powi(2));
        let (along_x, along_y) = (Plans::new(cells[0]), Plans::new(cells[1]));
        let scratch = vec![Wave::default(); along_x.scratch().max(along_y.scratch())];
        Self {
            cells,
            mode: problem.mode as usize,
            density: problem.grid() as f64 / problem.charge() as f64,
            slopes: [slope(0), slope(1)],
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

    /// From a row of the spectrum along y of the density to the same row of the accelerations along x, into which `row` is
    /// turned, and along y.
    pub fn row(&mut self, number: usize, row: &mut [Wave], along_y: &mut [Wave]) -> Energy {
        self.along_x.there.process_with_scratch(row, &mut self.scratch);
        let points = (self.cells[0] * self.cells[1]) as f64;
        let is_alone = number == 0 || 2 * number == self.cells[1];
        let twice = if is_alone { 1.0 } else { 2.0 };
        let mut energy = Energy::default();
        for (at, (wave, along_y)) in row.iter_mut().zip(along_y).enumerate() {
            let curvature = self.curvatures[0][at] + self.curvatures[1][number];
            // The ions have the mean of the density.
            if curvature == 0.0 {
                (*wave, *along_y) = Default::default();
                continue;
            }
            let potential = *wave / (points * curvature);
            let of_wave = 0.5 * (wave.re * potential.re + wave.im * potential.im) / points;
            energy.row += twice * of_wave;
            if number == 0 && (at == self.mode || at + self.mode == self.cells[0]) {
                energy.mode += of_wave;
            }
            let turned = Wave::new(-potential.im, potential.re);
            *wave = turned * -self.slopes[0][at];
            *along_y = turned * -self.slopes[1][number];
        }
        self.along_x.back.process_with_scratch(row, &mut self.scratch);
        energy
    }

    /// The way back along x of the accelerations along y.
    pub fn row_back(&mut self, along_y: &mut [Wave]) {
        self.along_x.back.process_with_scratch(along_y, &mut self.scratch);
    }

    /// The accelerations in a column, from those rows of it that say all, along x and y; behind them those of the first point
    /// again.
    pub fn column_back(&mut self, of_row: impl Fn(usize) -> (Wave, Wave), to: &mut Vec<f64>) {
        let cells = self.cells[1];
        // Both are real: one transform takes both, as real and as imaginary part.
        for row in 0..=cells / 2 {
            let (x, y) = of_row(row);
            self.column[row] = Wave::new(x.re - y.im, x.im + y.re);
            let is_alone = row == 0 || 2 * row == cells;
            if is_alone {
                // What is not real there is rounding.
                self.column[row] = Wave::new(x.re, y.re);
            } else {
                self.column[cells - row] = Wave::new(x.re + y.im, y.re - x.im);
            }
        }
        self.along_y.back.process_with_scratch(&mut self.column, &mut self.scratch);
        to.extend(self.column.iter().flat_map(|wave| [wave.re, wave.im]));
        to.extend([self.column[0].re, self.column[0].im]);
    }

    /// The field of the charge of a whole grid, column after column.
    #[must_use]
    pub fn solve(&mut self, charge: &[i64]) -> Solved {
        let ([columns, cells], rows) = (self.cells, self.rows());
        let mut along_x = vec![Wave::default(); rows * columns];
        let mut along_y = along_x.clone();
        for (column, charge) in charge.chunks_exact(cells).enumerate() {
            self.column_there(charge, |row, wave| along_x[row * columns + column] = wave);
        }
        let mut energy = Energy::default();
        let both = along_x.chunks_exact_mut(columns).zip(along_y.chunks_exact_mut(columns));
        for (number, (along_x, along_y)) in both.enumerate() {
            energy.add(self.row(number, along_x, along_y));
            self.row_back(along_y);
        }
        let mut accelerations = Vec::with_capacity(2 * (columns + 1) * (cells + 1));
        for column in 0..columns {
            let of_row = |row: usize| (along_x[row * columns + column], along_y[row * columns + column]);
            self.column_back(of_row, &mut accelerations);
        }
        accelerations.extend_from_within(..2 * (cells + 1));
        Solved { accelerations, energy }
    }
}

impl Energy {
    /// Takes the next row in.
    pub fn add(&mut self, next: Self) {
        self.row += next.row;
        self.mode += next.mode;
    }
}

impl Solved {
    /// The accelerations in these columns and the one behind them.
    #[must_use]
    pub fn of(&self, strip: Strip, cells: usize) -> &[f64] {
        let column = 2 * (cells + 1);
        &self.accelerations[strip.first * column..(strip.first + strip.columns + 1) * column]
    }
}
