//! What entry methods cost, who sends to whom and where chares are, of all nodes together.

use std::collections::BTreeMap;

use runtime::monitor::profile::{ChareCount, EntryTime, SentTo, SlowestCall};
use runtime::monitor::text;

use super::Model;
use super::node::Node;
use super::slowest::SlowCall;

/// Characters kept of the name of an element.
pub(super) const ELEMENT_MAX: usize = 40;

/// Slowest calls that are told of all nodes together.
const SLOWEST_MAX: usize = 100;

/// What an entry method has cost on some nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntrySum {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) ns: u64,
    /// Of that in the last seconds.
    pub(crate) recent_ns: u64,
    pub(crate) slowest: SlowestCall,
}

impl EntrySum {
    /// Time of a call, nanoseconds.
    pub(crate) fn mean_ns(&self) -> u64 {
        self.ns / self.calls.max(1)
    }
}

/// From a node to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Link {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) messages_per_s: f64,
    pub(crate) bytes_per_s: f64,
}

impl Model {
    /// What entry methods have cost on these nodes, that with the longest time first.
    pub(crate) fn entries(&self, nodes: &[&Node]) -> Vec<EntrySum> {
        let mut sums: BTreeMap<u16, EntrySum> = BTreeMap::new();
        for node in nodes {
            let Some((old, new)) = node.profiles() else { continue };
            for entry in &new.entries {
                let before = old.entries.iter().find(|old| old.name == entry.name);
                let sum = sums.entry(entry.name).or_default();
                add(sum, entry, before.map_or(0, |before| before.ns));
            }
        }
        let named = |(name, sum): (u16, EntrySum)| {
            let name = self.run.entry_names.get(usize::from(name));
            EntrySum { name: name.cloned().unwrap_or_else(|| "?".into()), ..sum }
        };
        let mut sums: Vec<EntrySum> = sums.into_iter().map(named).collect();
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
        sums
    }

    /// The slowest calls of these nodes that are known, and the name of each's entry method and node.
    pub(crate) fn slowest<'a>(&'a self, nodes: &[&'a Node]) -> Vec<(&'a SlowCall, &'a str, String)> {
        let of = |node: &&'a Node| node.slowest.calls().iter().map(|call| (call, *node)).collect::<Vec<_>>();
        let mut calls: Vec<(&SlowCall, &Node)> = nodes.iter().flat_map(of).collect();
        calls.sort_by_key(|(call, _)| std::cmp::Reverse(call.ns));
        calls.truncate(SLOWEST_MAX);
        let named = |(call, node): (&'a SlowCall, &Node)| {
            let name = self.run.entry_names.get(usize::from(call.name)).map_or("?", String::as_str);
            (call, name, node.name())
        };
        calls.into_iter().map(named).collect()
    }

    /// What these nodes send to others, in no order.
    pub(crate) fn links(&self, nodes: &[&Node]) -> Vec<Link> {
        let mut links = Vec::new();
        for node in nodes {
            let Some((old, new)) = node.profiles() else { continue };
            let span_s = new.at_ns.saturating_sub(old.at_ns) as f64 / 1e9;
            for sent in &new.sent_to {
                let before = old.sent_to.iter().find(|old| old.node == sent.node);
                let SentTo { messages, bytes, .. } = before.copied().unwrap_or_default();
                let rate = |new: u64, old: u64| {
                    if span_s > 0.0 { new.saturating_sub(old) as f64 / span_s } else { 0.0 }
                };
                links.push(Link {
                    from: node.last.node,
                    to: sent.node,
                    messages: sent.messages,
                    bytes: sent.bytes,
                    messages_per_s: rate(sent.messages, messages),
                    bytes_per_s: rate(sent.bytes, bytes),
                });
            }
        }
        links
    }

    /// How many chares of which types live on these PEs, e.g. `12 Block, 3 Cell`.
    pub(crate) fn chares_of(&self, node: &Node, is_wanted: impl Fn(u32) -> bool) -> String {
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        let all = node.profiles().map(|(_, new)| new.chares.as_slice()).unwrap_or_default();
        for ChareCount { pe, chare_type, chares } in all {
            if is_wanted(*pe) {
                let sum = counts.entry(*chare_type).or_default();
                *sum = sum.saturating_add(*chares);
            }
        }
        let mut counts: Vec<(u16, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let name =
            |chare_type: u16| self.run.chare_types.get(usize::from(chare_type)).map_or("?", String::as_str);
        let said: Vec<String> =
            counts.into_iter().map(|(chare_type, count)| format!("{count} {}", name(chare_type))).collect();
        said.join(", ")
    }

    /// Name of a node, or of the launcher.
    pub(crate) fn name_of(&self, node: u16) -> String {
        match (node, self.nodes.get(&node)) {
            (0, None) => "launcher".into(),
            (_, Some(node)) => node.name(),
            (number, None) => format!("node{number}"),
        }
    }
}

fn add(sum: &mut EntrySum, entry: &EntryTime, before_ns: u64) {
    sum.calls = sum.calls.saturating_add(entry.calls);
    sum.ns = sum.ns.saturating_add(entry.ns);
    sum.recent_ns = sum.recent_ns.saturating_add(entry.ns.saturating_sub(before_ns));
    if entry.slowest.ns > sum.slowest.ns {
        let element = text::clean_line(&entry.slowest.element, ELEMENT_MAX);
        sum.slowest = SlowestCall { element, ..entry.slowest };
    }
}
