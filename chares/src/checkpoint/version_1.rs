//! What logs of version 1 hold otherwise: counters of nodes, which did not tell the clock of their cores yet.

use crate::pup;
use runtime::envelope::Packed;
use runtime::monitor::profile::Profile;
use runtime::monitor::wire::{NodeSnapshot, PeSnapshot, Processors};
use serde::Deserialize;

/// [`NodeSnapshot`] as it was.
#[derive(Deserialize)]
struct Unclocked {
    node: u16,
    sequence: u64,
    uptime_ns: u64,
    memory_bytes: u64,
    host_memory_bytes: u64,
    sent_messages: u64,
    sent_bytes: u64,
    received_messages: u64,
    received_bytes: u64,
    spins: bool,
    shares_memory_with: Vec<u16>,
    processors: Processors,
    pes: Vec<PeSnapshot>,
    profile: Option<Profile>,
}

impl From<Unclocked> for NodeSnapshot {
    fn from(then: Unclocked) -> Self {
        Self {
            node: then.node,
            sequence: then.sequence,
            uptime_ns: then.uptime_ns,
            memory_bytes: then.memory_bytes,
            host_memory_bytes: then.host_memory_bytes,
            sent_messages: then.sent_messages,
            sent_bytes: then.sent_bytes,
            received_messages: then.received_messages,
            received_bytes: then.received_bytes,
            spins: then.spins,
            shares_memory_with: then.shares_memory_with,
            processors: then.processors,
            pes: then.pes,
            profile: then.profile,
            clock_mhz: 0,
        }
    }
}

/// Counters as they are told now; nothing if these are older still.
pub(super) fn renewed(counters: &Packed) -> Option<Packed> {
    let then: Vec<Unclocked> = pup::unpack(counters).ok()?;
    Some(pup::pack(&then.into_iter().map(NodeSnapshot::from).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_then_are_those_of_now_without_a_clock_and_older_ones_are_not_known() {
        let now = NodeSnapshot { node: 3, sent_bytes: 1 << 40, spins: true, ..NodeSnapshot::default() };
        let mut bytes = pup::pack(&vec![now.clone()]);
        // The clock is the last number of a snapshot, and 0 takes one byte.
        bytes.body = bytes.body.slice(..bytes.body.len() - 1);
        let older = pup::pack(&vec![(3u16, 7u64)]);
        assert_eq!(pup::unpack::<Vec<NodeSnapshot>>(&renewed(&bytes).unwrap()).unwrap(), [now]);
        assert_eq!(renewed(&older), None);
    }
}
