//! How much PEs find out about what they do.

use serde::{Deserialize, Serialize};

/// How much PEs find out about what they do; each includes those before it. What it costs is measured by `bench`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Detail {
    /// How many messages there are, and when a PE has nothing to do. No clock is read for an entry method: all time in which
    /// there is something to do counts as computing, also what the runtime takes of it.
    Counts,
    /// What entry methods of each kind take and what the runtime takes, by a few of many, and what goes to each node.
    #[default]
    Times,
    /// [Single entry methods and messages](super::samples), a few a second.
    Single,
}

impl Detail {
    /// Whether entry methods are timed.
    #[must_use]
    pub fn times(self) -> bool {
        self >= Self::Times
    }

    /// Whether single entry methods and messages are told of.
    #[must_use]
    pub fn tells_single(self) -> bool {
        self == Self::Single
    }
}
