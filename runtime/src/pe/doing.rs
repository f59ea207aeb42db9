//! What a PE does.

use crate::envelope::{CollectionId, Target};
use crate::node::naming::Brief;

/// What the PE does now, or did last.
pub(super) struct Doing {
    pub(super) brief: Brief,
    /// Bytes that the node counts as waiting until that is over.
    pub(super) backlog_bytes: u64,
    /// If it was for several chares, each of which was timed by itself: how many, and how often an entry method began.
    pub(super) many: Option<(u64, u64)>,
}

impl Default for Doing {
    fn default() -> Self {
        Self { brief: Brief::of(&Target::Stop), backlog_bytes: 0, many: None }
    }
}

impl Doing {
    /// The collection of the chares that it is for.
    pub(super) fn collection(&self) -> Option<CollectionId> {
        self.brief.collection
    }
}
