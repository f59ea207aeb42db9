//! What the hosts of a run are worth, as far as their cores go.

use super::wire::NodeInfo;
use std::collections::BTreeMap;

/// A host and what this run has there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host<'a> {
    /// Its name in the nodes file.
    pub name: &'a str,
    /// How many different cores the nodes there may use; 0 where that is not known.
    pub cores: u32,
    /// How many PEs of the run are there.
    pub pes: u32,
    /// The nodes there.
    pub nodes: Vec<&'a NodeInfo>,
}

impl Host<'_> {
    /// Whether there are more PEs than cores, so that they wait for each other.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.cores > 0 && self.pes > self.cores
    }

    /// What its PEs reach together. No more than its cores do, at the speed of the PE that would be the fastest alone, and no less
    /// than its best node: one that joined was measured beside others, which took of its speed.
    fn worth(&self) -> f64 {
        let sum: f64 = self.nodes.iter().map(|node| node_speed(node)).sum();
        let most = if self.is_crowded() { f64::from(self.cores) * self.fastest_alone() } else { sum };
        sum.min(most).max(self.worth_of_best())
    }

    /// What its best node would reach alone.
    fn worth_of_best(&self) -> f64 {
        let alone = |node: &&NodeInfo| {
            if !self.is_crowded() {
                return node_speed(node);
            }
            let reached: f64 = speeds_alone(node).sum();
            reached.min(self.cores_had() * self.fastest_alone())
        };
        self.nodes.iter().map(alone).fold(0.0, f64::max)
    }

    /// How many cores its PEs had together when they were measured: the rest is taken by others, who would not leave it to a node
    /// alone.
    fn cores_had(&self) -> f64 {
        self.nodes.iter().flat_map(|node| parts(node)).sum::<f64>().min(f64::from(self.cores))
    }

    fn fastest_alone(&self) -> f64 {
        self.nodes.iter().flat_map(|node| speeds_alone(node)).fold(0.0, f64::max)
    }
}

/// The hosts of these nodes.
#[must_use]
pub fn hosts<'a>(nodes: impl IntoIterator<Item = &'a NodeInfo>) -> Vec<Host<'a>> {
    let mut by_name: BTreeMap<&str, Vec<&NodeInfo>> = BTreeMap::new();
    nodes.into_iter().for_each(|node| by_name.entry(&node.host).or_default().push(node));
    let host = |(name, nodes): (&'a str, Vec<&'a NodeInfo>)| {
        let sum = |of: fn(&NodeInfo) -> u32| nodes.iter().map(|node| of(node)).fold(0, u32::saturating_add);
        let mut ranges: Vec<(u32, u32)> = nodes.iter().flat_map(|node| ranges(&node.allowed_cores)).collect();
        let listed = length(&mut ranges);
        let usable = sum(|node| node.cores);
        // A quota lets a node use fewer cores than the system lists, and lists may not be known.
        let cores = if listed == 0 {
            nodes.iter().map(|node| node.cores).max().unwrap_or(0)
        } else {
            listed.min(usable)
        };
        Host { name, cores, pes: sum(|node| node.pe_count), nodes }
    };
    by_name.into_iter().map(host).collect()
}

/// What all nodes are worth, in units of the fastest of them alone: never more than their cores are. `None` until speeds are
/// known.
#[must_use]
pub fn equivalents<'a>(nodes: impl IntoIterator<Item = &'a NodeInfo>) -> Option<f64> {
    let hosts = hosts(nodes);
    let best = hosts.iter().map(Host::worth_of_best).fold(0.0, f64::max);
    (best > 0.0).then(|| hosts.iter().map(Host::worth).sum::<f64>() / best)
}

/// The node of the greatest speed; `None` until speeds are known.
#[must_use]
pub fn fastest<'a>(nodes: impl IntoIterator<Item = &'a NodeInfo>) -> Option<&'a NodeInfo> {
    let known = nodes.into_iter().filter(|node| node_speed(node) > 0.0);
    known.max_by(|one, other| node_speed(one).total_cmp(&node_speed(other)))
}

/// Sum of the speeds of a node's PEs; 0 until measured.
#[must_use]
pub fn node_speed(node: &NodeInfo) -> f64 {
    speeds(node).sum()
}

fn speeds(node: &NodeInfo) -> impl Iterator<Item = f64> {
    node.pe_speeds.iter().copied().map(|speed| if speed.is_finite() && speed > 0.0 { speed } else { 0.0 })
}

/// What each PE would reach if it had had a core to itself when its speed was measured.
fn speeds_alone(node: &NodeInfo) -> impl Iterator<Item = f64> {
    speeds(node).zip(parts(node)).map(|(speed, part)| speed / part)
}

/// What part of a core each PE had when its speed was measured; all of it where that is not known.
fn parts(node: &NodeInfo) -> impl Iterator<Item = f64> {
    let known = node.pe_parts.iter().copied().chain(std::iter::repeat(1.0));
    known.take(node.pe_speeds.len()).map(|part| if part > 0.0 && part < 1.0 { part } else { 1.0 })
}

/// Ranges of numbers, each without its end, in a list such as `0-3,8`; what is not a list has none.
fn ranges(list: &str) -> Vec<(u32, u32)> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some((first, last.checked_add(1)?)).filter(|(first, end)| first < end)
    };
    list.split(',').map(range).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// How many numbers are in at least one of these ranges.
fn length(ranges: &mut [(u32, u32)]) -> u32 {
    ranges.sort_unstable();
    let mut counted_to = 0;
    ranges.iter().fold(0_u32, |sum, &(first, end)| {
        let more = end.saturating_sub(first.max(counted_to));
        counted_to = end.max(counted_to);
        sum.saturating_add(more)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, allowed_cores: &str, cores: u32, pe_speeds: &[f64]) -> NodeInfo {
        NodeInfo {
            host: host.into(),
            allowed_cores: allowed_cores.into(),
            cores,
            pe_count: u32::try_from(pe_speeds.len()).unwrap(),
            pe_speeds: pe_speeds.into(),
            ..NodeInfo::default()
        }
    }

    fn worth(nodes: &[NodeInfo]) -> f64 {
        (equivalents(nodes).unwrap() * 100.0).round() / 100.0
    }

    #[test]
    fn twenty_four_nodes_on_two_cores_are_worth_two_however_they_were_measured() {
        let mut nodes = vec![node("here", "0-1", 2, &[1.0]); 24];
        assert_eq!(worth(&nodes), 2.0, "one after the other");
        nodes.iter_mut().for_each(|node| node.pe_parts = vec![1.0 / 12.0]);
        assert_eq!(worth(&nodes), 2.0, "all at once");
        nodes.iter_mut().for_each(|node| node.pe_parts = vec![1.0]);
        assert_eq!(worth(&nodes), 2.0);
        let one = [node("here", "0-1", 2, &[1.0; 24])];
        assert_eq!(worth(&one), 1.0, "of itself");
    }

    #[test]
    fn where_each_pe_has_a_core_speeds_add_up() {
        let nodes =
            [node("a", "0-3", 4, &[1.0, 1.0]), node("a", "0-3", 4, &[1.0]), node("b", "0", 1, &[0.5])];
        assert_eq!(worth(&nodes), 1.75);
        assert_eq!(equivalents(&[node("a", "0", 1, &[0.0])]), None);
        assert_eq!(equivalents(&[]), None);
    }

    #[test]
    fn a_crowded_host_beside_another_is_worth_what_was_measured_there() {
        let mut crowded = node("a", "0", 1, &[0.5, 0.5]);
        crowded.pe_parts = vec![0.5, 0.5];
        assert_eq!(worth(&[crowded.clone(), node("b", "0", 1, &[1.0])]), 2.0);
        crowded.pe_parts.clear();
        assert_eq!(
            worth(&[crowded, node("b", "0", 1, &[1.0])]),
            1.5,
            "not all of it where that is not known"
        );
    }

    #[test]
    fn all_are_worth_at_least_what_the_best_of_them_is() {
        // Of the first it is known that it had a third of a core; the others joined later.
        let mut nodes = vec![node("here", "0-1", 2, &[0.3]), node("here", "0-1", 2, &[0.05; 2])];
        nodes[0].pe_parts = vec![1.0 / 3.0];
        assert_eq!(worth(&nodes), 1.0);
    }

    #[test]
    fn what_others_take_of_a_crowded_host_a_node_alone_would_not_have_either() {
        // Three nodes of two PEs on two cores, of which others take one.
        let mut nodes = vec![node("here", "0-1", 2, &[1.0 / 6.0; 2]); 3];
        nodes.iter_mut().for_each(|node| node.pe_parts = vec![1.0 / 6.0; 2]);
        assert_eq!(worth(&nodes), 1.0);
    }

    #[test]
    fn cores_are_counted_once_and_a_quota_makes_fewer_of_them() {
        let cores = |nodes: &[NodeInfo]| hosts(nodes)[0].cores;
        assert_eq!(cores(&[node("a", "0-3,8", 5, &[]), node("a", "2-5", 4, &[])]), 7);
        assert_eq!(cores(&[node("a", "0-7", 2, &[])]), 2);
        assert_eq!(cores(&[node("a", "", 2, &[]), node("a", "?", 3, &[])]), 3);
        assert_eq!(cores(&[node("a", "5-2", 4, &[]), node("a", "0-4294967295", 1, &[])]), 4);
    }
}
