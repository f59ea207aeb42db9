//! What `auto` sees, for people.

use super::lost::Lost;

/// What the last measurement showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// The longest time of a PE over the ideal one, as it is to be expected; 1 is perfect.
    pub imbalance: f64,
    /// By how much it is above 1 where there is nothing but noise.
    pub noise: f64,
    /// Of each PE the speed, its standard error as a part of it, the work of its chares in a second, and the standard error
    /// of that.
    pub pes: Vec<[f64; 4]>,
    /// The best moves that were found, if any were looked for.
    pub weighed: Option<Weighed>,
}

/// Moves that may be worth it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighed {
    /// How many chares would move.
    pub moves: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The part of each second that would be gained.
    pub gain: f64,
    /// Seconds that moving would cost.
    pub cost_s: f64,
    /// What has been lost so far by not moving.
    pub lost: Lost,
    /// Seconds of the run that are left, as is known or guessed.
    pub left_s: f64,
}
