//! Divisions of work over machines. A division is a value: it is made once, before any of the work begins, and read by all
//! who ask who has what: the driver, plans and comparisons, and the report.
//!
//! Work is divided by weights. They begin as the speeds of the PEs, or as weights that leave a node's PEs time for its
//! messages ([`Machines::balanced`]). What a node will hold follows from its share. Where that is more than the nodes
//! file's `memory` or the node's host has, its PEs' weights are made smaller, and the others take over by theirs. Work that
//! does not fit anyhow is refused with one sentence, where without this some node would die in the middle of it.

use crate::kernels::gemm;
pub(crate) use chares::Size;
use chares::loadbalance::grid::{self, Traffic};
use chares::loadbalance::machines::{Bytes, Machine, Machines};
use chares::loadbalance::{Items, PartitionError};
use chares::{Cx as _, Driver, RunError};

/// What a process takes besides its blocks: what the program itself changes, and as much as one connection may have under
/// way, 12 MiB, which arrives in pieces of the allocator's memory and stays with it.
const NODE_RESERVE_BYTES: u64 = 20 << 20;
/// What a PE takes besides: its stack, and the kernel's copies, whose memory stays with the allocator between calls.
const PE_RESERVE_BYTES: u64 = (2 << 20) + gemm::WORKSPACE_BYTES;
/// How often shares are shifted before work counts as too big.
const ATTEMPTS: usize = 100;
/// The least that is left of a weight when its share is shifted to others.
const WEIGHT_MIN: f64 = 1e-6;

/// A division of work over machines.
#[derive(Clone, Debug)]
pub(crate) struct Division<O> {
    /// Who has what, as the application needs it.
    pub(crate) owners: O,
    /// By what it was divided, PE by PE.
    pub(crate) weights: Vec<f64>,
    /// The share of each PE in the data, 0 to 1; empty where nothing is dealt out beforehand.
    pub(crate) shares: Vec<f64>,
    /// Bytes that each node exchanges with others.
    pub(crate) bytes: Vec<Bytes>,
    /// Bytes of memory that each node holds at most.
    pub(crate) memory: Vec<u64>,
}

/// Work that can be divided.
pub(crate) trait Work {
    /// Who has what, as the application needs it.
    type Owners;

    /// The division by these weights of the PEs.
    ///
    /// # Errors
    /// If it cannot be divided by them.
    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Self::Owners>, PartitionError>;

    /// What a sentence says that needs memory: "a 7 x 7 times 7 x 7 product".
    fn what(&self) -> String;

    /// Bytes that the launcher holds at most, where it sends to other hosts or does not.
    fn of_launcher(&self, sends_elsewhere: bool) -> u64;

    /// What helps where a node has too little: one with a limit, or those of a host, with the launcher or without.
    fn advice(&self, place: Shortage) -> &'static str;
}

/// Why work cannot be divided here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DivisionError {
    /// There is not enough memory, however the work is divided.
    #[error("{what} needs {} on {place}, which may take {}: {advice}", Size(*.need), Size(*.room))]
    TooBig { what: String, place: String, need: u64, room: u64, advice: &'static str },
    /// There is nothing to divide by.
    #[error("the work cannot be divided by speed: {0}")]
    Speeds(#[from] PartitionError),
}

impl From<DivisionError> for RunError {
    fn from(error: DivisionError) -> Self {
        match error {
            DivisionError::TooBig { .. } => Self::Input(error.to_string()),
            DivisionError::Speeds(_) => Self::Failed(error.to_string()),
        }
    }
}

/// Where memory lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// On a node with a limit in the nodes file.
    Node,
    /// On a host.
    Host,
    /// On the host where the launcher runs.
    LaunchersHost,
}

impl<O> Division<O> {
    /// States what each node will hold and its share, in the window and in the report.
    pub(crate) fn state(&self, main: &mut Driver) {
        let names: Vec<&str> = main.machines().nodes.iter().map(|node| node.name.as_str()).collect();
        let stated = format!("needs {}", on_nodes(&self.memory, &names));
        main.phase(&stated, 0, 0);
        let outcome = main.outcome();
        outcome.fact("planned_memory_bytes", self.memory.clone());
        outcome.shares(self.shares.clone());
    }
}

/// Bytes on each of few nodes, or on those of many that need most.
fn on_nodes(bytes: &[u64], names: &[&str]) -> String {
    let mut all: Vec<_> = bytes.iter().zip(names).collect();
    all.sort_by_key(|(bytes, _)| std::cmp::Reverse(**bytes));
    let said = all.iter().take(4).map(|(bytes, name)| format!("{} on node {name}", Size(**bytes)));
    let rest = if all.len() > 4 { format!(" and less on {} more", all.len() - 4) } else { String::new() };
    said.collect::<Vec<_>>().join(", ") + &rest
}

/// Divides work by these weights, or by others by which everything fits.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub(crate) fn divide<W: Work>(
    work: &W,
    machines: &Machines,
    mut weights: Vec<f64>,
) -> Result<Division<W::Owners>, DivisionError> {
    let (places, pes) = (places(machines, work), machines.pes());
    let mut refused = None;
    for _ in 0..ATTEMPTS {
        let division = work.by(machines, &weights)?;
        let needed = places.iter().map(|place| (place, place.need(&division.memory)));
        let over: Vec<(&Place, u64)> = needed.filter(|(place, need)| *need > place.room).collect();
        let ratio = |place: &Place, need: u64| need as f64 / place.room.max(1) as f64;
        let worst = over.iter().max_by(|one, other| ratio(one.0, one.1).total_cmp(&ratio(other.0, other.1)));
        let Some((place, need)) = worst else { return Ok(division) };
        // By the first weights it is plainest what is missing.
        refused.get_or_insert_with(|| DivisionError::TooBig {
            what: work.what(),
            place: place.name.clone(),
            need: *need,
            room: place.room,
            advice: place.advice,
        });
        let is_over = |at: &usize| over.iter().any(|(place, _)| place.nodes.contains(at));
        if (0..pes.len()).all(|at| is_over(&at)) || over.iter().any(|(place, _)| place.fixed > place.room) {
            break;
        }
        for (place, need) in over {
            // A little more than seems enough, because shares are rounded.
            let fits = 0.99 * (place.room - place.fixed) as f64 / (need - place.fixed).max(1) as f64;
            for pe in place.nodes.iter().flat_map(|&at| pes[at].clone()) {
                let weight = &mut weights[pe as usize];
                *weight = (*weight * fits).max(WEIGHT_MIN);
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
    advice: &'static str,
}

impl Place {
    pub(crate) fn need(&self, needs: &[u64]) -> u64 {
        self.nodes.iter().fold(self.fixed, |sum, &at| sum.saturating_add(needs[at]))
    }
}

/// Bytes that a node of so many PEs takes besides its blocks.
pub(crate) fn reserve(pes: usize) -> u64 {
    NODE_RESERVE_BYTES + PE_RESERVE_BYTES * pes as u64
}

/// All memory that limits `work`.
pub(crate) fn places(machines: &Machines, work: &impl Work) -> Vec<Place> {
    let Machines { nodes, launcher, .. } = machines;
    let mut places = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(room) = node.memory.limit_bytes {
            let advice = work.advice(Shortage::Node);
            let fixed = node.memory.taken_bytes + reserve(node.rates.len());
            places.push(Place {
                nodes: vec![at],
                fixed,
                room,
                name: format!("node {:?}", node.name),
                advice,
            });
        }
    }
    let mut hosts: Vec<&str> =
        std::iter::once(launcher).chain(nodes).map(|node| node.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        let here = |node: &Machine| node.host == host;
        let all = std::iter::once(launcher).chain(nodes).filter(|node| here(node));
        let Some(room) = all.filter_map(|node| node.memory.host_bytes).min() else { continue };
        let at: Vec<usize> = (0..nodes.len()).filter(|&at| here(&nodes[at])).collect();
        let own = if here(launcher) { work.of_launcher(at.len() < nodes.len()) } else { 0 };
        let fixed = at.iter().fold(own, |sum, &at| sum.saturating_add(reserve(nodes[at].rates.len())));
        let names: Vec<&str> = at.iter().map(|&at| nodes[at].name.as_str()).collect();
        let advice = work.advice(if here(launcher) { Shortage::LaunchersHost } else { Shortage::Host });
        places.push(Place { nodes: at, fixed, room, name: host_with(host, &names, own > 0), advice });
    }
    places
}

/// The share of each PE, where PE `p` has `bounds[p]..bounds[p + 1]` of all.
pub(crate) fn shares_of(bounds: &[u64]) -> Vec<f64> {
    let total = bounds.last().copied().unwrap_or(0).max(1) as f64;
    bounds.windows(2).map(|ends| (ends[1] - ends[0]) as f64 / total).collect()
}

/// The share of each of so many PEs, where the owner of each item is known; each item counts as much as `size` says.
pub(crate) fn shares_by(owners: &[u32], pes: usize, size: impl Fn(usize) -> u64) -> Vec<f64> {
    let (mut sizes, mut total) = (vec![0; pes], 0);
    for (at, &pe) in owners.iter().enumerate() {
        sizes[pe as usize] += size(at);
        total += size(at);
    }
    sizes.into_iter().map(|size| size as f64 / total.max(1) as f64).collect()
}

/// Blocks of a square array, dealt out by weight so that few of them cross between nodes.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// The PE of each, row by row.
    pub(crate) owners: Vec<u32>,
    /// The node of each.
    pub(crate) nodes: Vec<usize>,
    /// What each node exchanges if blocks go along all rows (A) and columns (B).
    pub(crate) traffic: Vec<Traffic>,
    /// The share of each PE.
    pub(crate) shares: Vec<f64>,
}

/// Deals out the blocks of an array that has so many along a side.
///
/// # Errors
/// If they cannot be dealt out by these weights.
pub(crate) fn blocks(side: u32, machines: &Machines, weights: &[f64]) -> Result<Blocks, PartitionError> {
    let pes = machines.pes();
    let owners = grid::rectangles(&Items::grid(side.into(), side.into()), &machines.parts(weights))?;
    let node_of = |pe: &u32| pes.iter().position(|pes| pes.contains(pe)).unwrap_or(0);
    let nodes: Vec<usize> = owners.iter().map(node_of).collect();
    let traffic = grid::traffic(&nodes, side as usize, side as usize, pes.len());
    Ok(Blocks { shares: shares_by(&owners, weights.len(), |_| 1), owners, nodes, traffic })
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
