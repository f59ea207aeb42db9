//! What a PE does while it has nothing to do: it looks for messages, and takes its turn at the network.

use super::inbox::Inbox;
use crate::node::Node;
use crate::progress::Progress;
use crate::spin::Watch;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest sleep of an idle PE; it is woken by messages, this only bounds the harm of a lost wake-up.
const SLEEP: Duration = Duration::from_millis(100);
/// How often a PE without the turn looks for messages between two looks at the clock, which take longer.
const LOOKS: u32 = 16;
/// How long an idle PE keeps its core before it offers it to others, if nobody took it the last time.
const STRETCH: Duration = Duration::from_micros(10);
/// What a busy PE has sent leaves when so much time has passed, or it has become idle.
const SEND_EVERY: Duration = Duration::from_micros(20);

/// A PE's waiting, and what it does for the network.
pub(super) struct Idle {
    watch: Watch,
    progress: Option<Arc<Progress>>,
    /// Others ran when the PE last offered its core.
    has_neighbours: bool,
    sent: Option<Instant>,
}

impl Idle {
    pub(super) fn new(node: &Node) -> Self {
        let progress = node.progress().cloned();
        Self { watch: Watch::new(node.spin()), progress, has_neighbours: false, sent: None }
    }

    /// Returns when there is something in `inbox`.
    pub(super) fn wait(&mut self, inbox: &Inbox) {
        self.sent = None;
        let since = Instant::now();
        while self.watch.stays_awake(since) {
            self.stretch(inbox);
            if !inbox.is_empty() {
                return;
            }
            self.has_neighbours = self.watch.offers_core();
        }
        if let Some(progress) = &self.progress {
            Self::send(progress);
            progress.leave();
        }
        while inbox.is_empty() {
            inbox.sleep(SLEEP);
        }
    }

    /// Looks for messages, and after packets if nobody else does, for as long as it keeps its core.
    fn stretch(&self, inbox: &Inbox) {
        let end = Instant::now() + if self.has_neighbours { Duration::ZERO } else { STRETCH };
        if let Some(turn) = self.progress.as_ref().and_then(|progress| progress.turn_soon()) {
            return turn.run(|| !inbox.is_empty() || Instant::now() >= end);
        }
        loop {
            for _ in 0..LOOKS {
                if !inbox.is_empty() {
                    return;
                }
                std::hint::spin_loop();
            }
            if Instant::now() >= end {
                return;
            }
        }
    }

    /// Called by a busy PE after each entry method: what it has sent does not wait until it is idle.
    #[inline]
    pub(super) fn passes(&mut self) {
        if let Some(progress) = &self.progress
            && progress.has_kept()
        {
            let now = Instant::now();
            if now - *self.sent.get_or_insert(now) >= SEND_EVERY {
                self.sent = None;
                Self::send(progress);
            }
        }
    }

    fn send(progress: &Progress) {
        if progress.has_kept()
            && let Some(turn) = progress.turn()
        {
            turn.run(|| true);
        }
    }
}
