//! Holding messages until the set for a step is complete (Charm++'s `when`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Messages that came early, by the step they belong to. Part of a chare's state, so it moves with it.
///
/// ```
/// let mut edges = chares::Inbox::default();
/// edges.hold(7, "west");
/// assert_eq!(edges.take(&7, 2), None);
/// edges.hold(7, "east");
/// assert_eq!(edges.take(&7, 2), Some(vec!["west", "east"]));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inbox<K: Ord, M> {
    held: BTreeMap<K, Vec<M>>,
}

impl<K: Ord, M> Default for Inbox<K, M> {
    fn default() -> Self {
        Self { held: BTreeMap::new() }
    }
}

impl<K: Ord, M> Inbox<K, M> {
    /// Keeps a message for `step`.
    pub fn hold(&mut self, step: K, message: M) {
        self.held.entry(step).or_default().push(message);
    }

    /// All messages of `step`, in order of arrival, once there are at least `count`; they are removed.
    pub fn take(&mut self, step: &K, count: usize) -> Option<Vec<M>> {
        let is_complete = self.held.get(step).map_or(count == 0, |held| held.len() >= count);
        is_complete.then(|| self.held.remove(step).unwrap_or_default())
    }

    /// Messages held for `step`.
    #[must_use]
    pub fn count(&self, step: &K) -> usize {
        self.held.get(step).map_or(0, Vec::len)
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
