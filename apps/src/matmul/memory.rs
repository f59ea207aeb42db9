//! Whether a product fits into the memory of the nodes, before any of it is taken.
//!
//! What a node will hold follows from its share: its blocks of C, the blocks of A and B that stay with it, and
//! those that travel ahead of the work. Where that is more than the nodes file's `memory` or the node's host has,
//! its share is made smaller, and the others take over by their speeds. A product that does not fit anyhow is
//! refused with one sentence, where without this some node would die in the middle of the work.

use super::arguments::{Algorithm, Matmul};
use super::drive::speeds_by_node;
use super::{conventional, panel, tile};
use crate::matrix::Dtype;
use crate::matrix::part;
use chares::loadbalance::{PartitionError, grid, placement};
use chares::{Cx, Driver, NodeShape, RunError};
use std::fmt;
use std::ops::Range;

/// Groups of rows of Fox's algorithm that a node holds besides its own.
const TRAVELLING_GROUPS: usize = 2 * panel::AHEAD;
/// What a process takes besides its blocks: stacks, workspace of the kernels, and as much as one connection may have
/// under way, 12 MiB, which arrives in pieces of the allocator's memory and stays with it.
const NODE_RESERVE_BYTES: u64 = 20 << 20;
const PE_RESERVE_BYTES: u64 = 4 << 20;
/// How often shares are shifted before a product counts as too big.
const ATTEMPTS: usize = 100;
/// The least that is left of a speed, relative to what was measured, when its share is shifted to others.
const SPEED_MIN: f64 = 1e-6;

/// Why a product cannot be made here.
#[derive(Debug, thiserror::Error)]
enum MemoryError {
    /// There is not enough memory, however the work is divided.
    #[error("{product} needs {} on {place}, which may take {}: {mend}", Size(*.need), Size(*.room))]
    TooBig { product: String, place: String, need: u64, room: u64, mend: &'static str },
    /// There is nothing to divide by.
    #[error("the work cannot be divided by speed: {0}")]
    Speeds(#[from] PartitionError),
}

/// Refuses a product that the nodes cannot hold; where only some cannot, shifts their shares to the others.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub(super) fn check(main: &mut Driver, matmul: &Matmul) -> Result<(), RunError> {
    let speeds = main.speeds();
    let plan = plan(&Product::of(matmul), main.launcher(), main.nodes(), &speeds);
    let plan = plan.map_err(|e| RunError::Input(e.to_string()))?;
    if plan.speeds != speeds {
        main.plan_with(plan.speeds);
    }
    main.outcome().fact("planned_memory_bytes", plan.needs);
    Ok(())
}

/// Columns for which each PE has memory besides what is planned, while Fox's product runs: as many it may take from
/// others, and send away at once. Where nothing limits memory, all.
///
/// # Errors
/// If there is nothing to divide by.
pub(super) fn spare_columns(main: &mut Driver, matmul: &Matmul) -> Result<Vec<u64>, RunError> {
    let speeds = main.speeds();
    let spare = Product::of(matmul).spare_columns(main.launcher(), main.nodes(), &speeds);
    spare.map_err(|e| RunError::Input(MemoryError::from(e).to_string()))
}

/// Speeds by which everything fits, and what each node will hold, bytes.
#[derive(Debug)]
struct Plan {
    speeds: Vec<f64>,
    needs: Vec<u64>,
}

fn plan(
    product: &Product,
    launcher: &NodeShape,
    nodes: &[NodeShape],
    speeds: &[f64],
) -> Result<Plan, MemoryError> {
    let places = places(launcher, nodes, product);
    let mut speeds = speeds.to_vec();
    let mut refused = None;
    for _ in 0..ATTEMPTS {
        let needs = product.needs(nodes, &speeds)?;
        let needed = places.iter().map(|place| (place, place.need(&needs)));
        let over: Vec<(&Place, u64)> = needed.filter(|(place, need)| *need > place.room).collect();
        let ratio = |place: &Place, need: u64| need as f64 / place.room.max(1) as f64;
        let worst = over.iter().max_by(|one, other| ratio(one.0, one.1).total_cmp(&ratio(other.0, other.1)));
        let Some((place, need)) = worst else { return Ok(Plan { speeds, needs }) };
        // By the speeds as they were measured it is plainest what is missing.
        refused.get_or_insert_with(|| MemoryError::TooBig {
            product: product.to_string(),
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
struct Place {
    nodes: Vec<usize>,
    /// What is taken from it whatever the shares are.
    fixed: u64,
    room: u64,
    name: String,
    mend: &'static str,
}

impl Place {
    fn need(&self, needs: &[u64]) -> u64 {
        self.nodes.iter().fold(self.fixed, |sum, &at| sum.saturating_add(needs[at]))
    }
}

fn places(launcher: &NodeShape, nodes: &[NodeShape], product: &Product) -> Vec<Place> {
    let reserve = |node: &NodeShape| NODE_RESERVE_BYTES + PE_RESERVE_BYTES * node.pes.len() as u64;
    let mut places = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(room) = node.memory_limit_bytes {
            let mend = "take smaller matrices or more nodes, or raise its `memory` in the nodes file";
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
        let own = if here(launcher) { product.need_of_launcher(at.len() < nodes.len()) } else { 0 };
        let fixed = at.iter().fold(own, |sum, &at| sum.saturating_add(reserve(&nodes[at])));
        let names: Vec<&str> = at.iter().map(|&at| nodes[at].name.as_str()).collect();
        let mend = if here(launcher) && (product.is_verified || product.is_written) {
            "take smaller matrices, `--dtype f32` or more hosts, or leave out `--verify` and `--out`"
        } else {
            "take smaller matrices, `--dtype f32` or more hosts"
        };
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

/// What decides how much memory a product needs.
#[derive(Debug)]
struct Product {
    /// Rows, inner side and columns.
    sides: (usize, usize, usize),
    dtype: Dtype,
    algorithm: Algorithm,
    q: u32,
    grain: Option<usize>,
    is_given: bool,
    is_verified: bool,
    is_written: bool,
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (m, k, n) = self.sides;
        write!(f, "a {m} x {k} times {k} x {n} product in {}", self.dtype)
    }
}

impl Product {
    fn of(matmul: &Matmul) -> Self {
        Self {
            sides: matmul.sides(),
            dtype: matmul.dtype_or_default(),
            algorithm: matmul.algorithm,
            q: matmul.side(),
            grain: matmul.grain,
            is_given: matmul.a.is_some(),
            is_verified: matmul.verify,
            is_written: matmul.out.is_some(),
        }
    }

    /// Rows, inner side and columns; longer ones than any memory has are cut, so that nothing below overflows.
    fn wide_sides(&self) -> [u128; 3] {
        let (m, k, n) = self.sides;
        [m, k, n].map(|side| (side as u128).min(1 << 40))
    }

    fn bytes(&self, numbers: u128) -> u64 {
        u64::try_from(numbers.saturating_mul(self.dtype.size_bytes() as u128)).unwrap_or(u64::MAX)
    }

    /// The launcher has the files' factors, and what is still to be sent of them to other hosts (on its own host
    /// that is counted where it arrives); the product, if somebody wants to see it; and to check it the factors.
    fn need_of_launcher(&self, sends_elsewhere: bool) -> u64 {
        let [m, k, n] = self.wide_sides();
        let factors = m * k + k * n;
        let sent = match (self.is_given, self.algorithm) {
            (true, _) if sends_elsewhere => 2 * factors,
            (true, _) => factors,
            (false, Algorithm::Conventional) => k * n,
            (false, _) => 0,
        };
        let shown = if self.is_written || self.is_verified { m * n } else { 0 };
        let checked = if self.is_verified && !self.is_given { factors } else { 0 };
        self.bytes(sent + shown + checked)
    }

    /// Bytes that each node holds at most, if the work is divided by these speeds of the PEs.
    fn needs(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
        let [m, k, n] = self.wide_sides();
        let of_node = |bounds: &[u64], pes: &Range<u32>| {
            u128::from(bounds[pes.end as usize] - bounds[pes.start as usize])
        };
        let count = |side: u128| u64::try_from(side).unwrap_or(u64::MAX);
        let numbers: Vec<u128> = match self.algorithm {
            Algorithm::Conventional => {
                let bounds = placement::weighted_bounds(count(m), speeds)?;
                let default = || conventional::default_grain(self.sides.0, speeds.len());
                let grain = (self.grain.unwrap_or_else(default) as u128).min(m);
                // Each PE may have rows of two chares of others at a time.
                let lent = if speeds.len() > 1 { 2 * grain } else { 0 };
                let rows = |pes: &Range<u32>| of_node(&bounds, pes) + lent * pes.len() as u128;
                nodes.iter().map(|node| k * n + rows(&node.pes) * (k + n)).collect()
            }
            Algorithm::Fox => {
                let bounds = placement::weighted_bounds(count(n), speeds)?;
                let grain = self.grain.unwrap_or_else(|| panel::default_grain(self.sides.0));
                let travelling = (TRAVELLING_GROUPS.saturating_mul(grain) as u128).min(m) * k;
                let held = |columns: u128| columns * (k + m) + (m * columns).div_ceil(n.max(1)) * k;
                nodes.iter().map(|node| travelling + held(of_node(&bounds, &node.pes))).collect()
            }
            Algorithm::Cannon | Algorithm::FoxHeyOtto => self.tiles(nodes, speeds)?,
        };
        Ok(numbers.into_iter().map(|numbers| self.bytes(numbers)).collect())
    }

    /// See [`spare_columns`]. The PEs of a place share what is free there, and leave half of it: a plan is not exact.
    fn spare_columns(
        &self,
        launcher: &NodeShape,
        nodes: &[NodeShape],
        speeds: &[f64],
    ) -> Result<Vec<u64>, PartitionError> {
        let needs = self.needs(nodes, speeds)?;
        let [m, k, n] = self.wide_sides();
        let column_bytes = self.bytes(m + k).max(1);
        let mut spare = vec![u64::try_from(n).unwrap_or(u64::MAX); speeds.len()];
        for place in places(launcher, nodes, self) {
            let pes = || place.nodes.iter().flat_map(|&at| nodes[at].pes.clone());
            let free = place.room.saturating_sub(place.need(&needs)) / 2;
            let each = free / (pes().count().max(1) as u64) / column_bytes;
            pes().for_each(|pe| spare[pe as usize] = spare[pe as usize].min(each));
        }
        Ok(spare)
    }

    /// Of a grid row a node keeps the blocks of A that it begins with until the end, as many as it has places
    /// there; as many others pass through them, and some more are on their way. Of a grid column likewise.
    fn tiles(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u128>, PartitionError> {
        let q = self.q;
        let of_nodes = speeds_by_node(nodes.iter().map(|node| &node.pes), speeds);
        let owners = grid::rectangles(q, q, &of_nodes)?;
        let [_, wide_k, _] = self.wide_sides();
        let inner = wide_k.div_ceil(u128::from(q));
        let lengths = |side: usize| -> Vec<u128> {
            (0..q).map(|at| (part(side, q, at).len() as u128).min(1 << 40)).collect()
        };
        let (rows, columns) = (lengths(self.sides.0), lengths(self.sides.2));
        let of_node = |pes: &Range<u32>| {
            let mut numbers = 0;
            let (mut in_row, mut in_column) = (vec![0; rows.len()], vec![0; columns.len()]);
            for (i, line) in owners.chunks(q as usize).enumerate() {
                for (j, _) in line.iter().enumerate().filter(|(_, pe)| pes.contains(pe)) {
                    numbers += rows[i] * columns[j];
                    in_row[i] += 1;
                    in_column[j] += 1;
                }
            }
            for (places, long) in in_row.into_iter().zip(&rows).chain(in_column.into_iter().zip(&columns)) {
                numbers += u128::from(tile::held_at_most(q, places)) * long * inner;
            }
            numbers
        };
        Ok(nodes.iter().map(|node| of_node(&node.pes)).collect())
    }
}

/// A size for people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.0 as f64 / f64::from(1 << 20);
        match mib {
            0.0..1024.0 => write!(f, "{mib:.0} MiB"),
            1024.0..1_048_576.0 => write!(f, "{:.1} GiB", mib / 1024.0),
            _ => write!(f, "{:.1} TiB", mib / 1_048_576.0),
        }
    }
}

#[cfg(test)]
mod tests;
