//! What balancing itself costs.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What balancing has cost the launcher and the network so far, without the chares that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BalancingCost {
    /// How often it looked at all loads, to decide whether to move anything.
    pub looks: u64,
    /// Seconds that all looks and decisions took, on the launcher, where nobody waits for them.
    pub seconds: f64,
    /// The longest of them.
    pub longest_s: f64,
    /// Messages with loads from nodes, and with orders to PEs.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
}

impl BalancingCost {
    /// A message of so many bytes.
    pub(crate) fn message(&mut self, bytes: u64) {
        self.messages = self.messages.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// A look with all that followed from it took so long.
    pub(crate) fn looked(&mut self, took: Duration) {
        self.looks += 1;
        self.seconds += took.as_secs_f64();
        self.longest_s = self.longest_s.max(took.as_secs_f64());
    }
}
