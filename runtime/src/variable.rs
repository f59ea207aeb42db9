//! Variables that all nodes share.

use serde::{Deserialize, Serialize};

/// Kinds of variables that all nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariableKind {
    /// Set once: readonly and write-once variables.
    Once,
    /// Improves over time; each origin's later value replaces its earlier one.
    Monotonic,
}
