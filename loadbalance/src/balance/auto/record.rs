//! What a decision promised and what came of it.

use crate::balance::Decision;

/// One decision to move, for a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The balancer.
    pub by: &'static str,
    /// Chares that moved.
    pub moves: u64,
    /// Bytes that travelled.
    pub bytes: u64,
    /// The longest time of a PE over the ideal one before.
    pub before: f64,
    /// The same as it was expected after.
    pub expected: f64,
    /// The same as it was measured after; `None` until then.
    pub after: Option<f64>,
    /// The part of each second that was expected to be gained.
    pub gain_expected: f64,
    /// The part that was gained, negative if it was lost; `None` until it is measured.
    pub gain_realised: Option<f64>,
    /// Seconds that moving was expected to cost.
    pub cost_s: f64,
}

impl Record {
    /// Of a decision at that time, by that balancer, with the part of each second that it is expected to gain and the seconds
    /// that it is expected to cost.
    #[must_use]
    pub fn new(at_s: f64, by: &'static str, decision: &Decision, gain: f64, cost_s: f64) -> Self {
        Self {
            at_s,
            by,
            moves: decision.moves.len() as u64,
            bytes: decision.bytes,
            before: decision.before,
            expected: decision.after,
            after: None,
            gain_expected: gain,
            gain_realised: None,
            cost_s,
        }
    }

    /// The longest time of a PE over the ideal one is found to be this afterwards, and so much was gained of each second.
    pub fn settle(&mut self, after: f64, gain: f64) {
        (self.after, self.gain_realised) = (Some(after), Some(gain));
    }
}
