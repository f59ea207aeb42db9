//! The PEs of a node as others see them: where envelopes for them are put, and what they count.

use crate::envelope::{Envelope, Packed, Payload, Target};
use crate::ids::PeId;
use crate::loads::PeLoads;
use crate::monitor::wire::{PeSnapshot, PeState};
use crate::pe::account::Account;
use crate::pe::inbox::{Inbox, Incoming};
use crate::pe::loads::Said;
use crate::priority::Priority;
use crate::proto::quiescence::Counts;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

/// The PEs of one node, and the driver's account, which is like theirs.
#[derive(Debug)]
pub(crate) struct LocalPes {
    /// Number of the first.
    first: u32,
    inboxes: Vec<Inbox>,
    accounts: Vec<Arc<Account>>,
    /// What each has said of its chares' loads.
    said: Vec<Said>,
    driver: Arc<Account>,
    backlog: Backlog,
    measuring: Barrier,
}

/// Bytes that came by links and that no PE has dealt with. Its own cache lines keep it apart from what PEs read for each
/// message.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Backlog(AtomicU64);

impl LocalPes {
    /// PEs with these numbers, for which nothing has arrived.
    pub(super) fn new(pes: &Range<u32>) -> Self {
        Self {
            first: pes.start,
            inboxes: pes.clone().map(|_| Inbox::default()).collect(),
            accounts: pes.clone().map(|_| Arc::default()).collect(),
            said: pes.clone().map(|_| Said::default()).collect(),
            driver: Arc::default(),
            backlog: Backlog::default(),
            measuring: Barrier::new(pes.len().max(1)),
        }
    }

    /// The inbox of the PE at position `rank`.
    pub(crate) fn inbox(&self, rank: usize) -> &Inbox {
        &self.inboxes[rank]
    }

    /// What a PE of this node, or the driver, counts.
    pub(crate) fn account(&self, pe: PeId) -> &Arc<Account> {
        if pe == PeId::DRIVER { &self.driver } else { &self.accounts[(pe.0 - self.first) as usize] }
    }

    /// Where the PE at position `rank` says what its chares cost.
    pub(crate) fn said(&self, rank: usize) -> &Said {
        &self.said[rank]
    }

    /// What the PEs have said of their chares' loads since it was taken last, once each that has something to do has said
    /// something.
    pub(super) fn take_loads(&self, now_ns: u64) -> Option<Vec<PeLoads>> {
        // A PE that sleeps for its share says nothing meanwhile, and the others shall not wait for it.
        let is_idle = |account: &Arc<Account>| {
            let state = account.state();
            state.is_idle() || state == PeState::Throttled
        };
        let mut all = self.accounts.iter().zip(&self.said);
        if !all.all(|(account, said)| said.is_new() || is_idle(account)) {
            return None;
        }
        let all = self.accounts.iter().zip(&self.said).zip((self.first..).map(PeId));
        let taken = all.map(|((account, said), pe)| said.take(pe, is_idle(account).then_some(now_ns)));
        Some(taken.collect())
    }

    /// Where PEs meet that measure their speed together.
    pub(crate) fn measuring(&self) -> &Barrier {
        &self.measuring
    }

    /// The PE at position `rank` has dealt with so many bytes that came by links.
    pub(crate) fn backlog_fell(&self, rank: usize, bytes: u64) {
        self.backlog.0.fetch_sub(bytes, Ordering::Relaxed);
        self.inbox(rank).dealt_with(bytes);
    }

    /// Bytes that came by links and that no PE has dealt with.
    pub(super) fn backlog_bytes(&self) -> u64 {
        self.backlog.0.load(Ordering::Relaxed)
    }

    /// Puts an envelope into a PE.
    pub(crate) fn push(&self, pe: PeId, envelope: Envelope) {
        self.inbox_of(pe).push(envelope);
    }

    /// The same for one that came by a link in a frame of so many bytes.
    pub(super) fn push_arrived(&self, pe: PeId, mut envelope: Envelope, len_bytes: u64) {
        envelope.backlog_bytes = len_bytes;
        self.backlog.0.fetch_add(len_bytes, Ordering::Relaxed);
        self.push(pe, envelope);
    }

    /// Puts messages into a PE that came by a link one behind the other, and have so many bytes; takes all of them.
    pub(super) fn push_run(&self, pe: PeId, messages: &mut Vec<Incoming>, len_bytes: u64) {
        self.backlog.0.fetch_add(len_bytes, Ordering::Relaxed);
        let inbox = self.inbox_of(pe);
        match messages.pop() {
            Some(only) if messages.is_empty() => inbox.push(only.into_envelope()),
            last => {
                messages.extend(last);
                inbox.push_run(std::mem::take(messages));
            }
        }
    }

    /// Puts an envelope into each PE that came in one frame.
    pub(super) fn push_to_all(&self, target: &Target, priority: &Priority, payload: &Packed) {
        let payload = Arc::new(payload.clone());
        for pe in (self.first..).take(self.inboxes.len()).map(PeId) {
            let envelope =
                Envelope::new(target.clone(), priority.clone(), Payload::Packed(Arc::clone(&payload)));
            self.push_arrived(pe, envelope, payload.len_bytes() as u64);
        }
    }

    /// Stops all PEs after the entry methods that run now.
    pub(super) fn stop(&self) {
        for inbox in &self.inboxes {
            inbox.push(Envelope::new(Target::Stop, i32::MIN, Payload::packed(Packed::default())));
        }
    }

    /// What all of them and the driver have created and processed.
    pub(super) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.all_accounts().for_each(|account| sum += account.counts());
        sum
    }

    /// Messages and bytes that they have counted themselves when they left.
    pub(super) fn small_traffic(&self) -> (u64, u64) {
        self.all_accounts()
            .map(|account| account.small())
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// The counters of each.
    pub(super) fn snapshots(&self, now_ns: u64, entry_name: impl Fn(u16, u16) -> String) -> Vec<PeSnapshot> {
        let pes = self.accounts.iter().zip(&self.inboxes).zip(self.first..);
        pes.map(|((account, inbox), pe)| account.snapshot(pe, inbox, now_ns, &entry_name)).collect()
    }

    fn all_accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        [&self.driver].into_iter().chain(&self.accounts)
    }

    fn inbox_of(&self, pe: PeId) -> &Inbox {
        self.inbox((pe.0 - self.first) as usize)
    }
}
