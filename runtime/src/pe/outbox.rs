//! What a PE has sent to other nodes leaves: at once when it becomes idle, and soon while it is busy.

use crate::frame::Fabric;
use crate::node::Node;
use crate::progress::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a busy PE has sent leaves when so much time has passed, or it has become idle.
const SEND_EVERY: Duration = Duration::from_micros(20);

/// What waits for more to be sent.
pub(super) struct Outbox {
    progress: Option<Arc<Progress>>,
    fabric: Option<Arc<dyn Fabric>>,
    /// Something does, in memory that is shared with other processes.
    untold: Arc<AtomicBool>,
    /// Since when, as far as a busy PE has looked.
    since: Option<Instant>,
}

impl Outbox {
    pub(super) fn new(node: &Node) -> Self {
        let (progress, fabric) = (node.progress().cloned(), node.fabric().cloned());
        let untold = fabric.as_ref().and_then(|fabric| fabric.untold()).unwrap_or_default();
        Self { progress, fabric, untold, since: None }
    }

    /// Called by a busy PE after each entry method, also between those that one message has run: what has been sent does
    /// not wait until it is idle.
    #[inline]
    pub(super) fn passes(&mut self) {
        let has_kept = self.progress.as_ref().is_some_and(|progress| progress.has_kept());
        if has_kept || self.untold.load(Ordering::Relaxed) {
            self.passes_on();
        }
    }

    #[cold]
    fn passes_on(&mut self) {
        let now = Instant::now();
        if now - *self.since.get_or_insert(now) >= SEND_EVERY {
            self.tell();
            self.send();
        }
    }

    /// Tells other processes of what waits in memory that is shared with them.
    pub(super) fn tell(&mut self) {
        self.since = None;
        self.fabric.iter().for_each(|fabric| fabric.tell());
    }

    /// Sends by the network what waits, if the PE can have the turn at it.
    pub(super) fn send(&self) {
        if let Some(progress) = &self.progress
            && progress.has_kept()
            && let Some(turn) = progress.turn()
        {
            // The second time, what has come in the first is dealt with: a PE that sends all the time keeps the network's
            // thread from doing it.
            let mut is_second = false;
            turn.run(|| std::mem::replace(&mut is_second, true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementId, ElementIndex, NodeId, PeId};
    use crate::node::NodeSettings;
    use crate::object::ProgramTable;
    use crate::pe::Pe;
    use crate::topology::Topology;
    use tokio::sync::Notify;

    #[test]
    fn what_one_of_many_has_sent_does_not_wait_until_all_have_had_the_message() {
        let network = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let progress = Progress::new(network);
        let (filled, has_left) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (of_task, leaves) = (Arc::clone(&filled), Arc::clone(&has_left));
        progress.runtime().spawn(async move {
            of_task.notified().await;
            leaves.store(true, Ordering::SeqCst);
        });
        let program = Arc::new(ProgramTable::default());
        let node = Node::new(NodeId(1), Topology::new(&[0, 1]), program, NodeSettings::default());
        let mut pe = Pe::new(PeId(0), node);
        pe.outbox.progress = Some(Arc::clone(&progress));
        let mut next = |number| {
            pe.runs_next(ElementId { collection: CollectionId(0), index: ElementIndex([number, 0, 0]) });
        };
        next(0);
        progress.wake(&filled);
        // There is nobody else who could have the turn.
        let begun = Instant::now();
        for number in 1.. {
            next(number);
            if has_left.load(Ordering::SeqCst) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "it waits for the last of all");
        }
        assert!(begun.elapsed() >= SEND_EVERY, "more may be sent soon, and go with it");
    }
}
