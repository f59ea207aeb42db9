//! What a PE does while it has nothing to do: it looks for messages, and takes its turn at the network.

use super::inbox::Inbox;
use super::outbox::Outbox;
use crate::frame::Fabric;
use crate::node::Node;
use crate::progress::Progress;
use crate::spin::Watch;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest sleep of an idle PE; it is woken by messages, this only bounds the harm of a lost wake-up.
const SLEEP: Duration = Duration::from_millis(100);
/// How often a PE looks for messages at a time, where they come from PEs of its own node or through shared memory; that
/// takes about a microsecond: longer than an answer of another PE that does the same.
const LOOKS: u32 = 64;
/// How long an idle PE keeps its core before it offers it to others, if nobody took it the last time.
const STRETCH: Duration = Duration::from_micros(10);

/// A PE's waiting, and what it does for the network meanwhile.
pub(super) struct Idle {
    watch: Watch,
    progress: Option<Arc<Progress>>,
    fabric: Option<Arc<dyn Fabric>>,
    /// Others ran when the PE last offered its core.
    has_neighbours: bool,
    /// The last message that the PE waited for came from its own node.
    is_local: bool,
}

impl Idle {
    pub(super) fn new(node: &Node) -> Self {
        let progress = node.progress().cloned();
        let fabric = node.fabric().cloned();
        let watch = Watch::new(node.spin());
        Self { watch, progress, fabric, has_neighbours: false, is_local: false }
    }

    /// Returns when there is something in `inbox`, which holds nothing that the PE has not told the node of. Calls
    /// `falls_asleep` before the thread sleeps.
    pub(super) fn wait(&mut self, inbox: &Inbox, outbox: &mut Outbox, falls_asleep: impl FnOnce()) {
        outbox.tell();
        self.fabric.iter().for_each(|fabric| fabric.begin_looking());
        let sleeps = !self.stays_until_message(inbox);
        self.fabric.iter().for_each(|fabric| fabric.end_looking(sleeps));
        if sleeps {
            falls_asleep();
            self.sleep(inbox, outbox);
        }
        self.is_local = inbox.backlog_bytes() == 0;
    }

    /// Stays awake until there is a message; false if it is time to sleep.
    fn stays_until_message(&mut self, inbox: &Inbox) -> bool {
        let has_sent = self.progress.as_ref().is_some_and(|progress| progress.has_kept());
        if !has_sent && self.looks(inbox) {
            return true;
        }
        let since = Instant::now();
        while self.watch.stays_awake(since) {
            self.stretch(inbox);
            if !inbox.is_empty() {
                return true;
            }
            self.has_neighbours = self.watch.offers_core();
        }
        !inbox.is_empty()
    }

    fn sleep(&self, inbox: &Inbox, outbox: &Outbox) {
        outbox.send();
        self.progress.iter().for_each(|progress| progress.leave());
        while inbox.is_empty() {
            inbox.sleep(SLEEP);
        }
    }

    /// Looks for messages, and after packets if nobody else does, for as long as it keeps its core.
    fn stretch(&self, inbox: &Inbox) {
        let end = Instant::now() + if self.has_neighbours { Duration::ZERO } else { STRETCH };
        let is_over = || Instant::now() >= end;
        if let Some(turn) = self.progress.as_ref().and_then(|progress| progress.turn_soon()) {
            // Looking after packets takes longer than a message takes that comes from the next PE.
            return turn.run(|| !inbox.is_empty() || self.looks(inbox) || is_over());
        }
        while !looks(inbox, self.fabric.as_deref()) && !is_over() {}
    }

    /// Looks for messages for a moment where they may come from threads that put them into the inbox or into shared memory;
    /// whether there is one.
    fn looks(&self, inbox: &Inbox) -> bool {
        let sharing = self.fabric.as_deref().filter(|fabric| fabric.shares());
        (self.is_local || sharing.is_some()) && looks(inbox, sharing)
    }
}

/// Looks for messages for a moment; whether there is one.
fn looks(inbox: &Inbox, fabric: Option<&dyn Fabric>) -> bool {
    (0..LOOKS).any(|_| {
        if !fabric.is_some_and(Fabric::look) {
            std::hint::spin_loop();
        }
        !inbox.is_empty()
    })
}
