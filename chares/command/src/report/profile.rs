//! What a report says of entry methods and of who sent to whom.

use super::{name_of, seconds};
use runtime::monitor::profile::EntryTime;
use runtime::monitor::wire::{NodeInfo, NodeSnapshot};
use serde::Serialize;

/// What an entry method cost in the whole run.
#[derive(Debug, Serialize)]
pub(super) struct EntryReport {
    name: String,
    calls: u64,
    time_s: f64,
    slowest_s: f64,
    slowest_at_s: f64,
    slowest_pe: u32,
    slowest_element: String,
}

/// What a node sent to another one in the whole run.
#[derive(Debug, Serialize)]
pub(super) struct SentReport {
    node: String,
    messages: u64,
    bytes: u64,
}

/// What entry methods cost on all nodes, the longest time first.
pub(super) fn entries(end: &[NodeSnapshot], names: &[String]) -> Vec<EntryReport> {
    let all = end.iter().filter_map(|node| node.profile.as_ref()).flat_map(|profile| &profile.entries);
    let report = |EntryTime { name, calls, ns, slowest }: EntryTime| EntryReport {
        name: names.get(usize::from(name)).map_or("?", String::as_str).into(),
        calls,
        time_s: seconds(ns),
        slowest_s: seconds(slowest.ns),
        slowest_at_s: seconds(slowest.at_ns),
        slowest_pe: slowest.pe,
        slowest_element: slowest.element,
    };
    EntryTime::sums(all.cloned()).into_iter().map(report).collect()
}

/// What a node sent to each other one, the most bytes first.
pub(super) fn sent_to(node: &NodeSnapshot, nodes: &[NodeInfo]) -> Vec<SentReport> {
    let sent = node.profile.iter().flat_map(|profile| &profile.sent_to);
    sent.map(|to| SentReport { node: name_of(to.node, nodes), messages: to.messages, bytes: to.bytes })
        .collect()
}
