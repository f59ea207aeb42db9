//! How much of a node has been packed to be saved, and is not with who keeps it yet.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that PEs have packed and nobody has kept yet: the first bound is for the memory that a checkpoint takes here, the second
/// for what waits at the launcher.
#[derive(Debug, Default)]
pub(crate) struct Held {
    now: Mutex<Now>,
    less: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// Packed, under way or not.
    packed_bytes: u64,
    /// On its way to the launcher.
    sent_bytes: u64,
    /// The run ends: nobody keeps anything any more.
    is_over: bool,
}

impl Held {
    /// A PE has packed so many bytes, as soon as less than `most` are held.
    pub(crate) fn pack(&self, bytes: u64, most: u64) {
        self.wait_while(|now| now.packed_bytes >= most.max(1)).packed_bytes += bytes;
    }

    /// So many bytes of them are sent, as soon as less than `most` are on their way.
    pub(crate) fn send(&self, bytes: u64, most: u64) {
        self.wait_while(|now| now.sent_bytes >= most.max(1)).sent_bytes += bytes;
    }

    /// So many bytes need not be sent.
    pub(crate) fn left_out(&self, bytes: u64) {
        let mut now = self.now();
        now.packed_bytes = now.packed_bytes.saturating_sub(bytes);
        self.less.notify_all();
    }

    /// So many bytes that were sent have been kept.
    pub(super) fn kept(&self, bytes: u64) {
        let mut now = self.now();
        now.packed_bytes = now.packed_bytes.saturating_sub(bytes);
        now.sent_bytes = now.sent_bytes.saturating_sub(bytes);
        self.less.notify_all();
    }

    /// Nobody waits any more.
    pub(super) fn end(&self) {
        self.now().is_over = true;
        self.less.notify_all();
    }

    fn wait_while(&self, is_full: impl Fn(&Now) -> bool) -> MutexGuard<'_, Now> {
        let now = self.less.wait_while(self.now(), |now| is_full(now) && !now.is_over);
        now.unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::Duration;

    /// Something that may wait, in a thread of its own; what it gives says that it waits no longer.
    fn beside(held: &Arc<Held>, work: impl FnOnce(&Held) + Send + 'static) -> Receiver<()> {
        let (done, is_done) = channel();
        let held = Arc::clone(held);
        thread::spawn(move || {
            work(&held);
            let _ = done.send(());
        });
        is_done
    }

    fn goes_on(waiting: &Receiver<()>) {
        waiting.recv_timeout(Duration::from_secs(60)).expect("nothing to wait for is left");
    }

    #[test]
    fn pes_wait_for_memory_and_what_is_sent_for_the_launcher() {
        let held = Arc::new(Held::default());
        // However much it is, the first is packed and sent at once.
        held.pack(100, 30);
        held.send(60, 20);
        let packing = beside(&held, |held| held.pack(1, 30));
        let sending = beside(&held, |held| held.send(1, 20));
        held.kept(41);
        goes_on(&sending);
        assert!(packing.try_recv().is_err(), "59 of 30 bytes are held");
        held.left_out(30);
        goes_on(&packing);
        let packing = beside(&held, |held| held.pack(1, 1));
        let sending = beside(&held, |held| held.send(1, 1));
        held.end();
        goes_on(&packing);
        goes_on(&sending);
    }
}
