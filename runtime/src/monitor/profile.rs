//! What a node tells of itself a few times a second: what its entry methods cost, whom it sends to, and which chares it
//! holds. Counters, as all that is [told](super::wire).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Kinds of entry methods that a node tells of, those that took most time.
pub const ENTRIES_MAX: usize = 64;
/// Other nodes that a node tells of, those that it sent most bytes to.
pub const RECEIVERS_MAX: usize = 64;
/// Counts of chares that a node tells, the largest ones.
pub const COUNTS_MAX: usize = 512;
/// Longest name of an element, bytes.
pub const ELEMENT_MAX_BYTES: usize = 128;
/// In place of the element of a call that has not ended: whoever is asked in the middle of it does not know it.
pub const UNDER_WAY: &str = "(under way)";

/// What the PEs of a node have run and what it has sent, from its start on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Age of the node process when this was taken, nanoseconds.
    pub at_ns: u64,
    /// By entry method, constructors and reductions among them, the longest time first; at most [`ENTRIES_MAX`].
    pub entries: Vec<EntryTime>,
    /// By receiver, the most bytes first; at most [`RECEIVERS_MAX`].
    pub sent_to: Vec<SentTo>,
    /// By PE and chare type, the largest first; at most [`COUNTS_MAX`].
    pub chares: Vec<ChareCount>,
}

/// What an entry method has cost, by the wall's clock. Where calls are shorter than some microseconds, some of them are
/// timed and stand for the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryTime {
    /// Place of its name in [`RunInfo::entry_names`](super::wire::RunInfo::entry_names).
    pub name: u16,
    /// How often it was called; one message for several chares counts for each.
    pub calls: u64,
    /// Time of all calls.
    pub ns: u64,
    /// The longest call that was timed.
    pub slowest: SlowestCall,
}

impl EntryTime {
    /// Adds what the same entry method has cost elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.ns = self.ns.saturating_add(other.ns);
        if other.slowest.ns > self.slowest.ns {
            self.slowest = other.slowest.clone();
        }
    }

    /// The sums of all that are of one entry method, the longest time first.
    #[must_use]
    pub fn sums(all: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut sums: BTreeMap<u16, Self> = BTreeMap::new();
        for one in all {
            match sums.entry(one.name) {
                Entry::Vacant(place) => drop(place.insert(one)),
                Entry::Occupied(mut sum) => sum.get_mut().add(&one),
            }
        }
        let mut sums: Vec<Self> = sums.into_values().collect();
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
        sums
    }
}

/// The longest call of an entry method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowestCall {
    /// How long it took: of a message for several chares, all of them together.
    pub ns: u64,
    /// Age of the node process at its end.
    pub at_ns: u64,
    /// The PE that ran it.
    pub pe: u32,
    /// The element, e.g. `[3, 1]`; empty where it was for several, [`UNDER_WAY`] where it had not ended.
    pub element: String,
}

/// What has left a node for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentTo {
    /// The other node; 0 is the launcher.
    pub node: u16,
    /// Messages, the runtime's own included.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How many chares of a type live on a PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChareCount {
    /// The PE.
    pub pe: u32,
    /// Place of the type's name in [`RunInfo::chare_types`](super::wire::RunInfo::chare_types).
    pub chare_type: u16,
    /// How many.
    pub chares: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_entry_method_costs_is_added_up_and_the_slowest_call_is_of_whoever_had_it() {
        let of = |name, calls, ns, slowest_ns, pe| {
            let slowest = SlowestCall { ns: slowest_ns, pe, ..SlowestCall::default() };
            EntryTime { name, calls, ns, slowest }
        };
        let sums =
            EntryTime::sums([of(3, 1, 10, 0, 1), of(1, 2, 30, 20, 2), of(3, 4, u64::MAX, 7, 4)].into_iter());
        assert_eq!(sums, [of(3, 5, u64::MAX, 7, 4), of(1, 2, 30, 20, 2)]);
    }
}
