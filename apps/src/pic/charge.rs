//! Charge on its way from who has the particles to who solves for the field.

use super::problem::Strip;
use chares::{Bulk, Reduce};
use serde::{Deserialize, Serialize};

/// The charge of the columns of a region and of the one behind them before a step, and what came of the step before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Columns {
    /// The step.
    pub step: u32,
    /// The columns.
    pub strip: Strip,
    /// Column after column.
    pub charge: Bulk<i64>,
    /// Rounded squares of velocities.
    pub kinetic: i64,
    /// A particle goes further in a step than it may.
    pub is_wild: bool,
}

/// The same of all columns, as particles are added up that stay where they are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Charge(pub Columns);

impl Reduce for Charge {
    fn combine(&mut self, other: Self) {
        let Columns { charge, kinetic, is_wild, .. } = &mut self.0;
        charge.as_mut_slice().iter_mut().zip(other.0.charge.iter()).for_each(|(sum, charge)| *sum += charge);
        *kinetic = kinetic.wrapping_add(other.0.kinetic);
        *is_wild |= other.0.is_wild;
    }
}
