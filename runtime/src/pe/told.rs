//! What a PE tells of one by one, kept until somebody takes it.

use crate::monitor::collectives::Gathered;
use crate::monitor::samples::{Ran, Sent};
use std::sync::{Mutex, PoisonError};

/// All that it tells of.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Entry methods.
    pub(crate) ran: Kept<Ran, 512>,
    /// Messages.
    pub(crate) sent: Kept<Sent, 512>,
    /// Reductions.
    pub(crate) gathered: Kept<Gathered, 256>,
}

/// Where nobody takes what is kept, so much is.
#[derive(Debug, Default)]
pub(crate) struct Kept<T, const MAX: usize>(Mutex<Vec<T>>);

impl<T, const MAX: usize> Kept<T, MAX> {
    /// Takes it all.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps one more, if there is room.
    pub(super) fn keep(&self, one: T) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX {
            kept.push(one);
        }
    }
}
