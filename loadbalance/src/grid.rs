//! Blocks of a matrix product over unlike nodes, such that few blocks cross the wire.
//!
//! In Cannon's algorithm the blocks of A of a grid row are all needed by every place of that row, and those of
//! B by every place of their grid column. If a block comes to each node once, a row whose places lie on `d`
//! nodes makes each of its blocks cross `d - 1` times, and a column likewise. So the mapping decides, and what
//! it must keep small is the sum of the heights and widths of the nodes' areas:
//!
//! - rectangles ([`rectangles`]): fewest crossings of the three;
//! - strips of whole rows: no block of A crosses, but each of B goes to every node;
//! - dealt out or scattered: every block goes to every node.
//!
//! Source of the rectangles: O. Beaumont, V. Boudet, F. Rastello, Y. Robert, "Matrix multiplication on
//! heterogeneous platforms", IEEE TPDS 12(10), 2001: areas in proportion to speed, in columns; their optimal
//! grouping into columns is found exactly. What is new here: areas follow the speeds within one block, because
//! the boundaries may have a step in them.
//!
//! How much the mapping decides: for nodes of speeds 1, 0.55 and 0.25, rectangles and blocks that come to each node
//! once make 1.45 matrices cross between nodes; shifting every block over strips of rows, each time over the wire,
//! makes it 2.8.

use crate::placement::cut;
use crate::plan::{Items, Part, PartitionError, checked};

/// The owner of each item of a grid. Each node gets its share, within one item if all cost the same, as an area that is
/// nearly a rectangle; within it each part gets its share, within one. The result holds `rows * cols` numbers: keep that
/// product sane.
///
/// # Errors
///
/// If there are no parts, a speed is not a positive, finite number, or costs do not belong to the items.
///
/// # Examples
///
/// ```
/// use loadbalance::{Items, Part, grid::rectangles};
/// let part = |node, speed| Part { node, speed };
/// let parts = [part(0, 1.0), part(1, 0.5), part(2, 0.25), part(2, 0.25)];
/// assert_eq!(rectangles(&Items::grid(4, 4), &parts)?, [
///     0, 0, 1, 1, //
///     0, 0, 1, 1, //
///     0, 0, 2, 2, //
///     0, 0, 3, 3,
/// ]);
/// # Ok::<(), loadbalance::PartitionError>(())
/// ```
pub fn rectangles(items: &Items<'_>, parts: &[Part]) -> Result<Vec<u32>, PartitionError> {
    let all = checked(items, parts)?;
    let mut first = 0;
    let mut areas: Vec<Area<'_>> = Vec::new();
    for node in parts.chunk_by(|one, other| one.node == other.node) {
        let speeds = &all[first..first + node.len()];
        areas.push(Area { first, speeds, speed: speeds.iter().sum() });
        first += node.len();
    }
    areas.sort_by(|one, other| other.speed.total_cmp(&one.speed));
    let speeds: Vec<f64> = areas.iter().map(|area| area.speed).collect();

    let columns = columns_of(&speeds);
    let widths: Vec<f64> = columns.windows(2).map(|c| speeds[c[0]..c[1]].iter().sum()).collect();
    let (rows, cols) = (index(items.rows), index(items.cols));
    let places: Vec<usize> = (0..cols).flat_map(|j| (0..rows).map(move |i| i * cols + j)).collect();
    let mut owner = vec![0; places.len()];
    for (column, places) in columns.windows(2).zip(pieces(items, &places, &widths)) {
        let mut places = places.to_vec();
        places.sort_unstable();
        let of_column = column[0]..column[1];
        for (area, places) in areas[of_column.clone()].iter().zip(pieces(items, &places, &speeds[of_column]))
        {
            for (part, places) in (area.first..).zip(pieces(items, places, area.speeds)) {
                let part = u32::try_from(part).expect("there are fewer than 2^32 parts");
                places.iter().for_each(|&place| owner[place] = part);
            }
        }
    }
    Ok(owner)
}

/// What one node gets.
struct Area<'a> {
    /// Its first part.
    first: usize,
    speeds: &'a [f64],
    speed: f64,
}

/// Places one after the other, cut into pieces by speed.
fn pieces<'a>(
    items: &Items<'_>,
    places: &'a [usize],
    speeds: &[f64],
) -> impl Iterator<Item = &'a [usize]> + use<'a> {
    let bounds = cut(places.len(), &items.costs_of(places), speeds);
    (1..bounds.len()).map(move |at| &places[index(bounds[at - 1])..index(bounds[at])])
}

/// Bounds are of places in a vector, so they fit.
fn index(bound: u64) -> usize {
    usize::try_from(bound).unwrap_or(usize::MAX)
}

/// Groups areas, given by falling speed, into columns so that the sum of all widths and heights is least: the
/// first area of each column, and the count of areas.
///
/// A column of `c` areas as wide as their speeds add up to has widths of `c` times that in sum, and heights of 1.
fn columns_of(speeds: &[f64]) -> Vec<usize> {
    let total: f64 = speeds.iter().sum();
    // best[e]: the least sum for the first e areas, and where the last of their columns begins.
    let mut best = vec![(0.0, 0usize)];
    for end in 1..=speeds.len() {
        let mut width = 0.0;
        let mut least = (f64::INFINITY, 0);
        for begin in (0..end).rev() {
            width += speeds[begin] / total;
            let sum = best[begin].0 + width * (end - begin) as f64 + 1.0;
            if sum < least.0 {
                least = (sum, begin);
            }
        }
        best.push(least);
    }
    let mut bounds = vec![speeds.len()];
    while let Some(&end) = bounds.last().filter(|&&end| end > 0) {
        bounds.push(best[end].1);
    }
    bounds.reverse();
    bounds
}

/// Where a block goes on from a place of its ring.
///
/// `ring` names the node of each place; a block moves from place `p` to `p - 1`, around the ring, until all
/// have had it. It is at place `here` now, after `travelled` moves. The result are the distances, in moves, of
/// the places to which *this* place hands it: the next one, unless that lies on a node that has had the block
/// already; and, at the end of a stretch on one node, the place where the next stretch on the same node begins,
/// so that the block need not come home over the wire.
///
/// Over the whole tour each place gets the block once, and each node gets it from another at most once.
///
/// # Panics
///
/// If `here` is not a place of the ring.
#[must_use]
pub fn hops(ring: &[u32], here: usize, travelled: usize) -> Vec<usize> {
    let places = ring.len();
    let left = (places - 1).saturating_sub(travelled);
    let node = |distance: usize| ring[(here + 2 * places - distance) % places];
    if left == 0 {
        return Vec::new();
    }
    if node(1) == ring[here] {
        return vec![1];
    }
    let was_there = (0..=travelled).any(|back| ring[(here + back) % places] == node(1));
    let home = (2..=left).find(|&distance| node(distance) == ring[here]);
    (!was_there).then_some(1).into_iter().chain(home).collect()
}

/// Blocks that a node receives from others and sends to others, in a whole product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Blocks of A received.
    pub a_in: u64,
    /// Blocks of A sent.
    pub a_out: u64,
    /// Blocks of B received.
    pub b_in: u64,
    /// Blocks of B sent.
    pub b_out: u64,
}

/// Counts the blocks that each of `nodes` nodes receives and sends if each block travels its ring by [`hops`]:
/// exact where a node's places in a row or column lie side by side.
///
/// `node` names the node of each place, row-major.
///
/// # Panics
///
/// If `node` does not hold `rows * cols` entries, or one is not below `nodes`.
#[must_use]
pub fn traffic(node: &[usize], rows: usize, cols: usize, nodes: usize) -> Vec<Traffic> {
    assert_eq!(node.len(), rows * cols, "a grid of {rows} x {cols} places needs as many nodes");
    let mut all = vec![Traffic::default(); nodes];
    for line in node.chunks(cols.max(1)) {
        for (node, received, sent) in along(line) {
            all[node].a_in += received;
            all[node].a_out += sent;
        }
    }
    for j in 0..cols {
        let line: Vec<usize> = node.iter().skip(j).step_by(cols).copied().collect();
        for (node, received, sent) in along(&line) {
            all[node].b_in += received;
            all[node].b_out += sent;
        }
    }
    all
}

/// The nodes of a ring, and how many blocks each receives and sends.
fn along(ring: &[usize]) -> Vec<(usize, u64, u64)> {
    let mut nodes: Vec<(usize, u64)> = Vec::new();
    for &place in ring {
        match nodes.iter_mut().find(|(node, _)| *node == place) {
            Some((_, places)) => *places += 1,
            None => nodes.push((place, 1)),
        }
    }
    let all = ring.len() as u64;
    let sent = |at: usize| {
        // A block moves to lower places; the last of its nodes is the one after that which it began with.
        let (_, from_before) = nodes[(at + nodes.len() - 1) % nodes.len()];
        if nodes.len() > 1 { all - from_before } else { 0 }
    };
    nodes.iter().enumerate().map(|(at, &(node, places))| (node, all - places, sent(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const UNLIKE: [f64; 3] = [1.0, 0.55, 0.25];

    /// Blocks that cross the wire.
    fn crossing(owner: &[u32], side: usize) -> u64 {
        let node: Vec<usize> = owner.iter().map(|&pe| pe as usize).collect();
        traffic(&node, side, side, 6).iter().map(|t| t.a_in + t.b_in).sum()
    }

    fn strips(rows: u32, cols: u32, speeds: &[f64]) -> Vec<u32> {
        let bounds = cut((rows * cols) as usize, &[], speeds);
        (0..u64::from(rows * cols)).map(|p| crate::placement::owner(&bounds, p).unwrap() as u32).collect()
    }

    #[test]
    fn rectangles_cross_less_than_strips_and_far_less_than_dealt_out_ones() {
        let total = |owner: &[u32]| crossing(owner, 16);
        let areas = total(&rectangles(&Items::grid(16, 16), &Part::each(&UNLIKE)).unwrap());
        let strips = total(&strips(16, 16, &UNLIKE));
        let dealt: Vec<u32> = (0..256).map(|index| index % 3).collect();
        // 1.445 matrices is the least for these speeds in whole columns; steps in the boundaries cost a little.
        assert!(areas as f64 <= 1.6 * 256.0, "{areas}");
        assert!(strips as f64 >= 2.0 * 256.0, "{strips}");
        assert_eq!(total(&dealt), 4 * 256);
    }

    #[test]
    fn like_nodes_get_like_squares() {
        let owner: [u32; 16] =
            rectangles(&Items::grid(4, 4), &Part::each(&[1.0; 4])).unwrap().try_into().unwrap();
        assert_eq!(owner, [0, 0, 2, 2, 0, 0, 2, 2, 1, 1, 3, 3, 1, 1, 3, 3]);
        let each = Traffic { a_in: 4, a_out: 4, b_in: 4, b_out: 4 };
        assert_eq!(traffic(&owner.map(|pe| pe as usize), 4, 4, 4), [each; 4]);
        assert_eq!(traffic(&[0; 16], 4, 4, 1), [Traffic::default()]);
    }

    #[test]
    fn a_single_place_and_an_empty_grid_ship_nothing() {
        assert_eq!(rectangles(&Items::grid(1, 1), &Part::each(&UNLIKE)).unwrap(), [0]);
        assert_eq!(rectangles(&Items::grid(0, 5), &Part::each(&UNLIKE)).unwrap(), Vec::<u32>::new());
        assert_eq!(traffic(&[0], 1, 1, 1), [Traffic::default()]);
        assert_eq!(hops(&[0], 0, 0), Vec::<usize>::new());
    }

    #[test]
    fn a_block_does_not_come_home_over_the_wire() {
        // Places 0 and 1 on one node, 2 and 3 on another; the block began at place 1.
        let ring = [0, 0, 1, 1];
        assert_eq!(hops(&ring, 1, 0), [1]);
        assert_eq!(hops(&ring, 0, 1), [1]);
        assert_eq!(hops(&ring, 3, 2), [1]);
        assert_eq!(hops(&ring, 2, 3), Vec::<usize>::new());
        // It began at place 0: place 1, on the same node, is the last to need it and is given it at once.
        assert_eq!(hops(&ring, 0, 0), [1, 3]);
        assert_eq!(hops(&ring, 2, 2), Vec::<usize>::new());
    }

    #[test]
    fn hops_send_and_receive_what_traffic_counts() {
        let owner = rectangles(&Items::grid(16, 16), &Part::each(&UNLIKE)).unwrap();
        let node: Vec<usize> = owner.iter().map(|&pe| pe as usize).collect();
        let mut counted = [Traffic::default(); 3];
        let mut tour = |ring: &[u32], is_a: bool| {
            for start in 0..16 {
                let mut under_way = vec![(start, 0)];
                while let Some((here, travelled)) = under_way.pop() {
                    for distance in hops(ring, here, travelled) {
                        let there = (here + 32 - distance) % 16;
                        under_way.push((there, travelled + distance));
                        let (from, to) = (ring[here] as usize, ring[there] as usize);
                        let crosses = u64::from(from != to);
                        if is_a {
                            counted[from].a_out += crosses;
                            counted[to].a_in += crosses;
                        } else {
                            counted[from].b_out += crosses;
                            counted[to].b_in += crosses;
                        }
                    }
                }
            }
        };
        for at in 0..16 {
            tour(&owner[at * 16..][..16], true);
            tour(&(0..16).map(|i| owner[i * 16 + at]).collect::<Vec<_>>(), false);
        }
        assert_eq!(traffic(&node, 16, 16, 3), counted);
    }

    proptest! {
        #[test]
        fn every_place_gets_each_block_once_and_every_node_at_most_once(
            ring in prop::collection::vec(0u32..4, 1..24),
            start in 0usize..24,
        ) {
            let (places, start) = (ring.len(), start % ring.len());
            let mut had = vec![0; places];
            had[start] = 1;
            let mut entered: Vec<u32> = vec![ring[start]];
            let mut under_way = vec![(start, 0usize)];
            while let Some((here, travelled)) = under_way.pop() {
                for distance in hops(&ring, here, travelled) {
                    let there = (here + 2 * places - distance) % places;
                    prop_assert!(travelled + distance < places);
                    had[there] += 1;
                    if ring[there] != ring[here] {
                        entered.push(ring[there]);
                    }
                    under_way.push((there, travelled + distance));
                }
            }
            prop_assert!(had.iter().all(|&count| count == 1), "{had:?}");
            let nodes: BTreeSet<u32> = entered.iter().copied().collect();
            prop_assert_eq!(nodes.len(), entered.len());
        }

        #[test]
        fn places_follow_speed_within_one_on_each_node_and_pe(
            rows in 1u32..30,
            cols in 1u32..30,
            nodes in prop::collection::vec(prop::collection::vec(0.05f64..1.0, 1..4), 1..8),
        ) {
            let owner = rectangles(&Items::grid(rows.into(), cols.into()), &Part::of_nodes(&nodes)).unwrap();
            prop_assert_eq!(owner.len() as u32, rows * cols);
            let total: f64 = nodes.iter().flatten().sum();
            let places = f64::from(rows * cols);
            let mut first = 0;
            for pes in &nodes {
                let speed: f64 = pes.iter().sum();
                let end = first + pes.len() as u32;
                let mine = owner.iter().filter(|&&pe| (first..end).contains(&pe)).count() as f64;
                // Once for the column, once within it.
                prop_assert!((mine - places * speed / total).abs() < 2.0);
                for (pe, own) in (first..end).zip(pes) {
                    let count = owner.iter().filter(|&&o| o == pe).count() as f64;
                    prop_assert!((count - mine * own / speed).abs() < 1.0);
                }
                first = end;
            }
        }

        #[test]
        fn areas_never_cross_more_than_strips(
            side in 6u32..30,
            speeds in prop::collection::vec(0.2f64..1.0, 2..6),
        ) {
            let total = |owner: &[u32]| crossing(owner, side as usize);
            let areas = total(&rectangles(&Items::grid(side.into(), side.into()), &Part::each(&speeds)).unwrap());
            // A step in a boundary may cost a line of blocks for each node.
            let steps = u64::from(2 * side) * speeds.len() as u64;
            prop_assert!(areas <= total(&strips(side, side, &speeds)) + steps);
        }
    }
}
