//! Whether work fits into the memory of the nodes, before any of it is taken.
//!
//! What a node will hold follows from its share. Where that is more than the nodes file's `memory` or the node's host
//! has, its share is made smaller, and the others take over by their speeds. Work that does not fit anyhow is refused
//! with one sentence, where without this some node would die in the middle of it.

pub(crate) use chares::Size;
use chares::loadbalance::PartitionError;
use chares::{Cx, Driver, NodeShape, RunError};
use std::fmt;

/// What a process takes besides its blocks: stacks, workspace of the kernels, and as much as one connection may have
/// under way, 12 MiB, which arrives in pieces of the allocator's memory and stays with it.
const NODE_RESERVE_BYTES: u64 = 20 << 20;
const PE_RESERVE_BYTES: u64 = 4 << 20;
/// How often shares are shifted before work counts as too big.
const ATTEMPTS: usize = 100;
/// The least that is left of a speed, relative to what was measured, when its share is shifted to others.
const SPEED_MIN: f64 = 1e-6;

/// Why work cannot be done here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MemoryError {
    /// There is not enough memory, however the work is divided.
    #[error("{what} needs {} on {place}, which may take {}: {mend}", Size(*.need), Size(*.room))]
    TooBig { what: String, place: String, need: u64, room: u64, mend: &'static str },
    /// There is nothing to divide by.
    #[error("the work cannot be divided by speed: {0}")]
    Speeds(#[from] PartitionError),
}

/// Work that takes memory; it is displayed as what a sentence says that needs it ("a 7 x 7 times 7 x 7 product").
pub trait Need: fmt::Display {
    /// Bytes that each node holds at most, if the work is divided by these speeds of the PEs.
    ///
    /// # Errors
    /// If it cannot be divided by them.
    fn of_nodes(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u64>, PartitionError>;

    /// Bytes that the launcher holds at most, where it sends to other hosts or does not.
    fn of_launcher(&self, sends_elsewhere: bool) -> u64;

    /// What helps where a node has too little: one with a limit, or those of a host, with the launcher or without.
    fn mend(&self, place: Lack) -> &'static str;
}

/// Where memory lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// On a node with a limit in the nodes file.
    Node,
    /// On a host.
    Host,
    /// On the host where the launcher runs.
    LaunchersHost,
}

/// Refuses work that the nodes cannot hold; where only some cannot, shifts their shares to the others. What each node
/// will hold is stated in the window and in the report.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub fn check(main: &mut Driver, need: &impl Need) -> Result<(), RunError> {
    let speeds = main.speeds();
    let plan = plan(need, main.launcher(), main.nodes(), &speeds);
    let plan = plan.map_err(|e| RunError::Input(e.to_string()))?;
    if plan.speeds != speeds {
        main.plan_with(plan.speeds);
    }
    let names: Vec<&str> = main.nodes().iter().map(|node| node.name.as_str()).collect();
    let stated = format!("needs {}", on_nodes(&plan.needs, &names));
    main.phase(&stated, 0, 0);
    main.outcome().fact("planned_memory_bytes", plan.needs);
    Ok(())
}

/// Bytes on each of few nodes, or on those of many that need most.
fn on_nodes(bytes: &[u64], names: &[&str]) -> String {
    let mut all: Vec<_> = bytes.iter().zip(names).collect();
    all.sort_by_key(|(bytes, _)| std::cmp::Reverse(**bytes));
    let said = all.iter().take(4).map(|(bytes, name)| format!("{} on node {name}", Size(**bytes)));
    let rest = if all.len() > 4 { format!(" and less on {} more", all.len() - 4) } else { String::new() };
    said.collect::<Vec<_>>().join(", ") + &rest
}

/// Speeds by which everything fits, and what each node will hold, bytes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) speeds: Vec<f64>,
    pub(crate) needs: Vec<u64>,
}

pub(crate) fn plan(
    work: &impl Need,
    launcher: &NodeShape,
    nodes: &[NodeShape],
    speeds: &[f64],
) -> Result<Plan, MemoryError> {
    let places = places(launcher, nodes, work);
    let mut speeds = speeds.to_vec();
    let mut refused = None;
    for _ in 0..ATTEMPTS {
        let needs = work.of_nodes(nodes, &speeds)?;
        let needed = places.iter().map(|place| (place, place.need(&needs)));
        let over: Vec<(&Place, u64)> = needed.filter(|(place, need)| *need > place.room).collect();
        let ratio = |place: &Place, need: u64| need as f64 / place.room.max(1) as f64;
        let worst = over.iter().max_by(|one, other| ratio(one.0, one.1).total_cmp(&ratio(other.0, other.1)));
        let Some((place, need)) = worst else { return Ok(Plan { speeds, needs }) };
        // By the speeds as they were measured it is plainest what is missing.
        refused.get_or_insert_with(|| MemoryError::TooBig {
            what: work.to_string(),
            place: place.name.clone(),
            need: *need,
            room: place.room,
            mend: place.mend,
        });
        let is_over = |at: &usize| over.iter().any(|(place, _)| place.nodes.contains(at));
        if (0..nodes.len()).all(|at| is_over(&at)) || over.iter().any(|(place, _)| place.fixed > place.room) {
            break;
        }
        for (place, need) in over {
            // A little more than seems enough, because shares are rounded.
            let fits = 0.99 * (place.room - place.fixed) as f64 / (need - place.fixed).max(1) as f64;
            for pe in place.nodes.iter().flat_map(|&at| nodes[at].pes.clone()) {
                let speed = &mut speeds[pe as usize];
                *speed = (*speed * fits).max(SPEED_MIN);
            }
        }
    }
    Err(refused.unwrap_or(PartitionError::NoParts.into()))
}

/// Memory that some nodes share: of one node with a limit, or of a host.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) nodes: Vec<usize>,
    /// What is taken from it whatever the shares are.
    fixed: u64,
    pub(crate) room: u64,
    name: String,
    mend: &'static str,
}

impl Place {
    pub(crate) fn need(&self, needs: &[u64]) -> u64 {
        self.nodes.iter().fold(self.fixed, |sum, &at| sum.saturating_add(needs[at]))
    }
}

/// All memory that limits `work`.
pub(crate) fn places(launcher: &NodeShape, nodes: &[NodeShape], work: &impl Need) -> Vec<Place> {
    let reserve = |node: &NodeShape| NODE_RESERVE_BYTES + PE_RESERVE_BYTES * node.pes.len() as u64;
    let mut places = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(room) = node.memory_limit_bytes {
            let mend = work.mend(Lack::Node);
            let fixed = node.memory_bytes + reserve(node);
            places.push(Place { nodes: vec![at], fixed, room, name: format!("node {:?}", node.name), mend });
        }
    }
    let mut hosts: Vec<&str> =
        std::iter::once(launcher).chain(nodes).map(|node| node.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        let here = |node: &NodeShape| node.host == host;
        let all = std::iter::once(launcher).chain(nodes).filter(|node| here(node));
        let Some(room) = all.filter_map(|node| node.host_memory_bytes).min() else { continue };
        let at: Vec<usize> = (0..nodes.len()).filter(|&at| here(&nodes[at])).collect();
        let own = if here(launcher) { work.of_launcher(at.len() < nodes.len()) } else { 0 };
        let fixed = at.iter().fold(own, |sum, &at| sum.saturating_add(reserve(&nodes[at])));
        let names: Vec<&str> = at.iter().map(|&at| nodes[at].name.as_str()).collect();
        let mend = work.mend(if here(launcher) { Lack::LaunchersHost } else { Lack::Host });
        places.push(Place { nodes: at, fixed, room, name: host_with(host, &names, own > 0), mend });
    }
    places
}

/// A host by its name and those of its processes that count.
fn host_with(host: &str, names: &[&str], has_launcher: bool) -> String {
    let mut processes: Vec<String> = names.iter().take(3).map(|name| format!("{name:?}")).collect();
    if names.len() > 3 {
        processes.push(format!("{} more", names.len() - 3));
    }
    if has_launcher {
        processes.push("the launcher".into());
    }
    match processes.pop() {
        Some(last) if processes.is_empty() => format!("host {host:?} (with {last})"),
        Some(last) => format!("host {host:?} (with {} and {last})", processes.join(", ")),
        None => format!("host {host:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_stated_node_by_node_the_largest_first() {
        let gib = 1 << 30;
        let names = ["a", "b", "c", "d", "e"];
        assert_eq!(on_nodes(&[gib, 3 * gib], &names), "3 GiB on node b, 1 GiB on node a");
        assert!(on_nodes(&[gib; 5], &names).ends_with("1 GiB on node d and less on 1 more"));
    }
}
