//! On which PE each block lives: by measured speed and by what the blocks hold, in slabs or in boxes, whichever is
//! predicted to end sooner.
//!
//! Slabs (G. Pulla, 1999, section 5.2) exchange with two neighbours only; boxes have less surface, but more neighbours.
//! Both are tried, then single blocks go over from the PE that would end last to one beside it, or are exchanged for
//! others there, while that helps.

use chares::loadbalance::{Items, Part, PartitionError, placement};

/// Time that a ghost atom from another node takes from a PE, in units of computing one atom: two messages are packed
/// and unpacked for it.
const REMOTE_GHOST: f64 = 0.05;

/// Blocks are exchanged one for another where there are no more than this. Of more, each is so small a part that one that
/// goes over does as well.
const EXCHANGES_MOST_BLOCKS: usize = 1000;

/// Blocks and what they cost.
#[derive(Clone, Debug)]
pub struct Load {
    /// Blocks along x, y, z.
    pub grid: [usize; 3],
    /// Which axes go round.
    pub periodic: [bool; 3],
    /// Cost of an evaluation of each block, in units of an atom inside the crystal.
    pub cost: Vec<f64>,
    /// Ghosts that a block has from one beside it along each axis.
    pub faces: [f64; 3],
}

/// A place for each block.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// PE of each block.
    pub owners: Vec<u32>,
    /// What it is like: `slabs along x` or `boxes`.
    pub shape: String,
    /// Time of an evaluation as predicted, in costs over speed.
    pub time: f64,
}

/// Distributes blocks over PEs.
///
/// # Errors
/// There is no PE, or a speed is not positive and finite.
pub fn distribute(load: &Load, pes: &[Part]) -> Result<Distribution, PartitionError> {
    // Refuses what is no speed before anything is computed from it.
    placement::contiguous(&Items::alike(0), pes)?;
    let all: Vec<usize> = (0..load.cost.len()).collect();
    let mut best: Option<Distribution> = None;
    for shape in [Some(2), Some(1), Some(0), None] {
        let mut owners = vec![0; all.len()];
        match shape {
            Some(axis) => slabs(load, axis, pes, &mut owners),
            None => boxes(load, all.clone(), 0..pes.len(), pes, &mut owners),
        }
        refine(load, pes, &mut owners, false);
        // Exchanges make the surface between nodes rougher, so they come last.
        if owners.len() <= EXCHANGES_MOST_BLOCKS {
            refine(load, pes, &mut owners, true);
        }
        let time = time(load, pes, &owners);
        if best.as_ref().is_none_or(|best| time < best.time) {
            let shape = shape.map_or("boxes".into(), |axis| format!("slabs along {}", ['x', 'y', 'z'][axis]));
            best = Some(Distribution { owners, shape, time });
        }
    }
    best.ok_or(PartitionError::NoParts)
}

impl Load {
    fn place(&self, block: usize) -> [usize; 3] {
        let [nx, ny, _] = self.grid;
        [block % nx, block / nx % ny, block / (nx * ny)]
    }

    /// Ghosts that each node has from blocks on others, those across edges and corners left out.
    pub fn ghosts_from_elsewhere(&self, pes: &[Part], owners: &[u32]) -> Vec<f64> {
        let node = |block: usize| pes[owners[block] as usize].node;
        let mut ghosts = vec![0.0; pes.last().map_or(0, |pe| pe.node + 1)];
        for block in 0..owners.len() {
            let elsewhere = self.beside(block).filter(|&(other, _)| node(other) != node(block));
            ghosts[node(block)] += elsewhere.map(|(_, ghosts)| ghosts).sum::<f64>();
        }
        ghosts
    }

    /// The blocks that share a face with one, and the ghosts that it has of each.
    fn beside(&self, block: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let place = self.place(block);
        (0..6).filter_map(move |side| {
            let (axis, up) = (side / 2, side % 2 == 1);
            let n = self.grid[axis];
            let mut at = place;
            at[axis] = match (up, place[axis]) {
                (true, last) if last + 1 == n => (self.periodic[axis] && n > 1).then_some(0)?,
                (true, here) => here + 1,
                (false, 0) => (self.periodic[axis] && n > 1).then_some(n - 1)?,
                (false, here) => here - 1,
            };
            Some(((at[2] * self.grid[1] + at[1]) * self.grid[0] + at[0], self.faces[axis]))
        })
    }
}

/// Each PE takes consecutive blocks, counted slab by slab across `axis`.
fn slabs(load: &Load, axis: usize, pes: &[Part], owners: &mut [u32]) {
    let order = across(load.grid, axis);
    let (cost, speed): (f64, f64) = (load.cost.iter().sum(), pes.iter().map(|pe| pe.speed).sum());
    let (mut next, mut given, mut due) = (0, 0.0, 0.0);
    for (number, pe) in pes.iter().enumerate() {
        due += pe.speed / speed * cost;
        let is_last = number + 1 == pes.len();
        while let Some(&block) = order.get(next)
            && (is_last || given + load.cost[block] / 2.0 <= due)
        {
            owners[block] = number as u32;
            given += load.cost[block];
            next += 1;
        }
    }
}

/// All blocks, slab by slab across `axis`.
fn across(grid: [usize; 3], axis: usize) -> Vec<usize> {
    let steps = [1, grid[0], grid[0] * grid[1]];
    let (rows, columns) = ((axis + 2) % 3, (axis + 1) % 3);
    let slab = |at: usize| {
        let row = move |row: usize| (0..grid[columns]).map(move |column| row + column * steps[columns]);
        (0..grid[rows]).flat_map(move |at_row| row(at * steps[axis] + at_row * steps[rows]))
    };
    (0..grid[axis]).flat_map(slab).collect()
}

/// Halves the PEs, and the blocks across their longest side by the speeds of the halves, until one PE is left.
fn boxes(
    load: &Load,
    mut blocks: Vec<usize>,
    range: std::ops::Range<usize>,
    pes: &[Part],
    owners: &mut [u32],
) {
    if range.len() <= 1 {
        return blocks.into_iter().for_each(|block| owners[block] = range.start as u32);
    }
    let middle = halfway(pes, range.clone());
    let speed = |range: std::ops::Range<usize>| pes[range].iter().map(|pe| pe.speed).sum::<f64>();
    let share = speed(range.start..middle) / speed(range.clone());
    let extent = |axis: usize| {
        let along = || blocks.iter().map(|&block| load.place(block)[axis]);
        along().max().unwrap_or(0) + 1 - along().min().unwrap_or(0)
    };
    // Few ghosts cross a cut over the longest side: each block counts for its length there.
    let length = |axis: usize| extent(axis) as f64 / load.faces[axis].max(1e-9);
    let axis = (0..3).max_by(|&a, &b| length(a).total_cmp(&length(b))).unwrap_or(0);
    blocks.sort_by_key(|&block| {
        let place = load.place(block);
        [place[axis], place[(axis + 2) % 3], place[(axis + 1) % 3]]
    });
    let due = share * blocks.iter().map(|&block| load.cost[block]).sum::<f64>();
    let (mut given, mut cut) = (0.0, 0);
    while cut < blocks.len() && given + load.cost[blocks[cut]] / 2.0 <= due {
        given += load.cost[blocks[cut]];
        cut += 1;
    }
    let rest = blocks.split_off(cut);
    boxes(load, blocks, range.start..middle, pes, owners);
    boxes(load, rest, middle..range.end, pes, owners);
}

/// Where a range of PEs falls into halves: between two nodes if there are two, nearest to equal speed.
fn halfway(pes: &[Part], range: std::ops::Range<usize>) -> usize {
    let has_nodes = pes[range.start].node != pes[range.end - 1].node;
    let whole: f64 = pes[range.clone()].iter().map(|pe| pe.speed).sum();
    let off = |cut: usize| (2.0 * pes[range.start..cut].iter().map(|pe| pe.speed).sum::<f64>() - whole).abs();
    (range.start + 1..range.end)
        .filter(|&cut| !has_nodes || pes[cut - 1].node != pes[cut].node)
        .min_by(|&a, &b| off(a).total_cmp(&off(b)))
        .unwrap_or(range.start + 1)
}

/// Time of each PE: what its blocks cost, and the ghosts that they have from other nodes.
fn times(load: &Load, pes: &[Part], owners: &[u32]) -> Vec<f64> {
    let mut times = vec![0.0; pes.len()];
    for (block, &owner) in owners.iter().enumerate() {
        let pe = pes[owner as usize];
        let is_remote = |other: &(usize, f64)| pes[owners[other.0] as usize].node != pe.node;
        let ghosts: f64 = load.beside(block).filter(is_remote).map(|(_, ghosts)| ghosts).sum();
        times[owner as usize] += (load.cost[block] + REMOTE_GHOST * ghosts) / pe.speed;
    }
    times
}

fn time(load: &Load, pes: &[Part], owners: &[u32]) -> f64 {
    times(load, pes, owners).into_iter().fold(0.0, f64::max)
}

/// Moves blocks from the PE that ends last to PEs beside it, or also exchanges them for others, while it makes the end
/// sooner.
fn refine(load: &Load, pes: &[Part], owners: &mut [u32], exchanges: bool) {
    for _ in 0..owners.len() {
        let times = times(load, pes, owners);
        let Some(last) = (0..pes.len()).max_by(|&a, &b| times[a].total_cmp(&times[b])) else { return };
        let best = best_change(load, pes, owners, (&times, last), exchanges);
        let Some(change) = best else { return };
        let before: Vec<_> = change.iter().map(|&(block, _)| (block, owners[block])).collect();
        change.iter().for_each(|&(block, to)| owners[block] = to);
        if time(load, pes, owners) >= times[last] * (1.0 - 1e-9) {
            before.iter().for_each(|&(block, to)| owners[block] = to);
            return;
        }
    }
}

/// What makes the end of PE `last` and of one beside it soonest, their ghosts as they are: a block that goes there, and
/// perhaps one that comes back for it.
fn best_change(
    load: &Load,
    pes: &[Part],
    owners: &[u32],
    (times, last): (&[f64], usize),
    exchanges: bool,
) -> Option<Vec<(usize, u32)>> {
    let mine = (0..owners.len()).filter(|&block| owners[block] as usize == last);
    let beside = mine.flat_map(|block| load.beside(block).map(move |(other, _)| (block, other)));
    let pairs: Vec<_> = beside.filter(|&(_, other)| owners[other] as usize != last).collect();
    let after = |to: u32, cost: f64| {
        (times[last] - cost / pes[last].speed).max(times[to as usize] + cost / pes[to as usize].speed)
    };
    let changes = pairs.iter().flat_map(|&(block, other)| {
        let (to, cost) = (owners[other], load.cost[block]);
        let back = pairs.iter().map(|pair| pair.1).filter(move |&back| exchanges && owners[back] == to);
        let exchange =
            move |back| (after(to, cost - load.cost[back]), vec![(block, to), (back, last as u32)]);
        std::iter::once((after(to, cost), vec![(block, to)])).chain(back.map(exchange))
    });
    changes.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, change)| change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(grid: [usize; 3]) -> Load {
        let cost = vec![4096.0; grid.iter().product()];
        Load { grid, periodic: [true; 3], cost, faces: [700.0; 3] }
    }

    fn ideal(load: &Load, pes: &[Part]) -> f64 {
        load.cost.iter().sum::<f64>() / pes.iter().map(|pe| pe.speed).sum::<f64>()
    }

    #[test]
    fn unlike_nodes_end_nearly_together() {
        let nodes = Part::each(&[1.0, 0.55, 0.25]);
        let load = load([4, 4, 4]);
        let found = distribute(&load, &nodes).unwrap();
        assert!(found.time < 1.06 * ideal(&load, &nodes), "{found:?}");
    }

    #[test]
    fn equal_pes_get_equal_shares() {
        for grid in [[2, 2, 2], [4, 4, 4], [12, 1, 1], [3, 4, 4]] {
            let load = load(grid);
            let pes = Part::of_nodes(&[[1.0; 4]]);
            let found = distribute(&load, &pes).unwrap();
            let ideal = ideal(&load, &pes);
            assert!((found.time / ideal - 1.0).abs() < 1e-9, "{grid:?}: {found:?}");
        }
    }

    /// A crystal whose outer blocks cost little: they count for little.
    #[test]
    fn blocks_count_for_what_they_hold() {
        let mut load = load([8, 1, 1]);
        load.periodic = [false; 3];
        load.cost = vec![100.0, 100.0, 100.0, 100.0, 4000.0, 4000.0, 4000.0, 4000.0];
        let found = distribute(&load, &Part::each(&[1.0, 1.0])).unwrap();
        assert_eq!(found.owners, [0, 0, 0, 0, 0, 0, 1, 1]);
    }

    /// No single block could go from one PE to the other.
    #[test]
    fn blocks_are_exchanged_for_others() {
        let cost = vec![5.0, 5.0, 3.0, 3.0];
        let load = Load { grid: [4, 1, 1], periodic: [false; 3], cost, faces: [0.0; 3] };
        assert_eq!(distribute(&load, &Part::each(&[1.0, 1.0])).unwrap().time, 8.0);
    }

    #[test]
    fn slabs_are_counted_one_after_the_other() {
        for (grid, axis) in [([3, 4, 5], 0), ([3, 4, 5], 1), ([5, 1, 2], 2), ([1, 1, 1], 0)] {
            let load = load(grid);
            let mut sorted: Vec<usize> = (0..load.cost.len()).collect();
            sorted.sort_by_key(|&block| {
                let place = load.place(block);
                [place[axis], place[(axis + 2) % 3], place[(axis + 1) % 3]]
            });
            assert_eq!(across(grid, axis), sorted, "{grid:?} across {axis}");
        }
    }

    proptest! {
        #[test]
        fn every_block_lives_somewhere_and_refining_never_harms(
            grid in prop::array::uniform3(1usize..6),
            speeds in prop::collection::vec(prop::collection::vec(0.1f64..1.0, 1..4), 1..5),
            costs in prop::collection::vec(0.0f64..5000.0, 125),
        ) {
            let mut load = load(grid);
            let count = load.cost.len();
            load.cost.copy_from_slice(&costs[..count]);
            let pes = Part::of_nodes(&speeds);
            let found = distribute(&load, &pes).unwrap();
            prop_assert!(found.owners.iter().all(|&pe| (pe as usize) < pes.len()));
            let dearest = load.cost.iter().copied().fold(0.0, f64::max) + 6.0 * 700.0 * REMOTE_GHOST;
            let slowest = speeds.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            prop_assert!(found.time <= ideal(&load, &pes) * (1.0 + 1e-9)
                + (count as f64 * REMOTE_GHOST * 4200.0 + dearest * 2.0) / slowest);
        }
    }
}
