//! The counters of a node and its PEs at one moment.

use super::{Node, memory};
use crate::monitor::profile::{ENTRIES_MAX, EntryTime, Profile, RECEIVERS_MAX, SentTo};
use crate::monitor::wire::NodeSnapshot;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// So often the counters of what left are read, at most, until nothing leaves meanwhile.
const TRIES: u32 = 8;

impl Node {
    /// Counters of the node and its PEs now, with long calls that are under way: what the last one was to send may be out and
    /// its end not yet counted.
    #[must_use]
    pub fn snapshot(&self) -> NodeSnapshot {
        let mut snapshot = self.counters(|_| true);
        if self.settings.detail.times()
            && let Some(profile) = &mut snapshot.profile
        {
            let ended = std::mem::take(&mut profile.entries);
            profile.entries = EntryTime::sums(ended.into_iter().chain(self.pes.under_way(profile.at_ns)));
            profile.entries.truncate(ENTRIES_MAX);
        }
        snapshot
    }

    /// Counters of the node and its PEs, with a profile if one belongs to the snapshot of this number.
    pub(super) fn counters(&self, has_profile: impl FnOnce(u64) -> bool) -> NodeSnapshot {
        let now_ns = self.now_ns();
        let sequence = self.snapshots.fetch_add(1, Ordering::Relaxed);
        let (received_messages, received_bytes) = self.links.total_received();
        let mut pes = self.pes.snapshots(self.topology().pes(self.id), now_ns, |chare_type, entry| {
            self.program().entry_name(chare_type, entry)
        });
        let sent_to = together(|| self.sent_to(), || self.pes.read_sent(&mut pes));
        self.quota.lock().unwrap_or_else(PoisonError::into_inner).divide(&mut pes);
        let (processors, clock_mhz) = self.host_processors.now(now_ns);
        NodeSnapshot {
            node: self.id.0,
            sequence,
            uptime_ns: now_ns,
            memory_bytes: memory::taken_bytes(),
            host_memory_bytes: self.host_memory.available_bytes(now_ns),
            sent_messages: sent_to.iter().map(|one| one.messages).sum(),
            sent_bytes: sent_to.iter().map(|one| one.bytes).sum(),
            received_messages,
            received_bytes,
            spins: self.spin.is_on(),
            shares_memory_with: self
                .fabric()
                .map_or_else(Vec::new, |fabric| fabric.sharers().iter().map(|n| n.0).collect()),
            processors,
            pes,
            profile: has_profile(sequence).then(|| self.profile(now_ns, sent_to)),
            clock_mhz,
        }
    }

    fn profile(&self, at_ns: u64, mut sent_to: Vec<SentTo>) -> Profile {
        let (entries, chares) = self.pes.profile(self.topology().pes(self.id));
        sent_to.retain(|one| one.messages > 0);
        sent_to.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        sent_to.truncate(RECEIVERS_MAX);
        Profile { at_ns, entries, sent_to, chares }
    }

    /// What has left for each node.
    fn sent_to(&self) -> Vec<SentTo> {
        let mut sent_to = self.links.sent_to();
        self.pes.add_small_traffic(&mut sent_to);
        sent_to
    }
}

/// A whole that is read with its parts, so that neither has what the other lacks: both are read again while the whole changes
/// meanwhile. If it always does, the parts are of before.
fn together<T: PartialEq>(mut whole: impl FnMut() -> T, mut parts: impl FnMut()) -> T {
    let mut before = whole();
    for _ in 0..TRIES {
        parts();
        let after = whole();
        if after == before {
            break;
        }
        before = after;
    }
    before
}

#[cfg(test)]
mod tests {
    use super::{TRIES, together};
    use std::cell::Cell;

    /// A message that leaves between the two is in both or in none.
    #[test]
    fn what_leaves_while_counters_are_read_is_in_the_whole_and_in_a_part() {
        for leaves_at in 0..6 {
            let (left, reads, of_parts) = (Cell::new(816), Cell::new(0), Cell::new(0));
            let read = || {
                if reads.replace(reads.get() + 1) == leaves_at {
                    left.set(left.get() + 8);
                }
                left.get()
            };
            let whole = together(read, || of_parts.set(read()));
            assert_eq!(whole, of_parts.get(), "{leaves_at}");
        }
    }

    #[test]
    fn where_something_leaves_all_the_time_the_parts_are_no_more_than_the_whole() {
        let (left, of_parts, reads) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let read = || left.replace(left.get() + 1);
        let parts = || {
            of_parts.set(read());
            reads.set(reads.get() + 1);
        };
        assert!(together(read, parts) >= of_parts.get());
        assert_eq!(reads.get(), TRIES);
    }
}
