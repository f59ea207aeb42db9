//! What regions have and send while they solve for the field together.

use super::field::{Solver, Wave};
use super::figures::Account;
use super::problem::{Problem, Strip};
use chares::{Bulk, Exchange, Inbox, Scratch};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a region has of the field that is being solved for.
#[derive(Default, Serialize, Deserialize)]
pub struct Spectrum {
    pub(super) guards: Inbox<u32, Guard>,
    /// The charge of the columns, while the neighbour's part is on its way, and until the end of the step.
    pub(super) charge: Bulk<i64>,
    pub(super) is_waiting: bool,
    pub(super) lines: Exchange<Lines>,
    pub(super) bands: Exchange<Bands>,
    /// Energies of the rows.
    pub(super) account: Account,
    pub(super) solver: Scratch<Option<Solver>>,
}

/// The charge of the particles of the region before in this one's first column, before a step.
#[derive(Serialize, Deserialize)]
pub struct Guard {
    pub(super) step: u32,
    pub(super) charge: Bulk<i64>,
}

/// Columns of a region in the rows of another: real and imaginary parts, row after row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lines(pub(super) Bulk<f64>);

/// The potential in the rows of a region, in the columns of another and those around them: real and imaginary parts, row after
/// row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bands(pub(super) Bulk<f64>);

pub(super) fn numbers(waves: impl Iterator<Item = Wave>) -> impl Iterator<Item = f64> {
    waves.flat_map(|wave| [wave.re, wave.im])
}

pub(super) fn waves(numbers: &[f64]) -> impl Iterator<Item = Wave> {
    numbers.chunks_exact(2).map(|pair| Wave::new(pair[0], pair[1]))
}

impl Spectrum {
    /// What the region adds to the figures of a step, from the charge and the rows that it had for it.
    pub(super) fn account(&mut self, cells: usize) -> Account {
        let rows = std::mem::take(&mut self.account);
        rows.with_columns(&self.charge, cells)
    }
}

/// Rows of the spectrum that a region solves for.
pub(super) fn rows_of(problem: &Problem, region: u32) -> Range<usize> {
    let (rows, regions) = (problem.cells[1] / 2 + 1, problem.regions());
    let bound = |region: usize| region * rows / regions;
    bound(region as usize)..bound(region as usize + 1)
}

/// The columns whose potential a region needs: its own, the one before and two behind them, for accelerations there and in the
/// first one behind.
pub(super) fn columns(problem: &Problem, region: u32) -> impl Iterator<Item = usize> {
    let Strip { first, columns } = problem.strip(region);
    let all = problem.cells[0];
    (first + all - 1..=first + all + columns + 1).map(move |column| column % all)
}
