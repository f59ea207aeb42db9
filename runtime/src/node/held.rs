//! How much of a node has been packed to be saved, and is not with who keeps it yet.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that PEs have packed and nobody has kept yet. They bound the memory that a checkpoint takes.
#[derive(Debug, Default)]
pub(crate) struct Held {
    now: Mutex<Now>,
    less: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    bytes: u64,
    /// The run ends: nobody keeps anything any more.
    is_over: bool,
}

impl Held {
    /// Adds bytes as soon as less than `most` are held.
    pub(crate) fn hold(&self, bytes: u64, most: u64) {
        let is_full = |now: &mut Now| now.bytes >= most.max(1) && !now.is_over;
        let now = self.less.wait_while(self.now(), is_full);
        now.unwrap_or_else(PoisonError::into_inner).bytes += bytes;
    }

    /// So many bytes are held no longer.
    pub(crate) fn release(&self, bytes: u64) {
        let mut now = self.now();
        now.bytes = now.bytes.saturating_sub(bytes);
        self.less.notify_all();
    }

    /// Nobody waits any more.
    pub(super) fn end(&self) {
        self.now().is_over = true;
        self.less.notify_all();
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
