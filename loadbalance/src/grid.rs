//! Blocks of a matrix product over unlike parts, such that few blocks cross the wire.
//!
//! In every step of Cannon's algorithm each block of A moves one column to the left and each block of B one
//! row up, both in a ring. Between nodes those shifts are what the network must carry, so the mapping decides:
//!
//! - strips of whole rows: no block of A ever leaves its part; of B one row of blocks crosses at each boundary;
//! - row-major ranges ([`cells`]): as strips, but a boundary may fall inside a row, so that the number of
//!   blocks follows the speeds within one block; each such boundary costs two blocks of A more;
//! - dealt out or scattered: nearly every block crosses in every step.
//!
//! Rectangles have less boundary than strips once there are many parts, but cannot match unlike speeds within
//! one block. Strips do, and what each part sends does not grow with the number of parts.

use crate::partition::PartitionError;
use crate::placement::weighted_bounds;

/// Splits `rows` block rows over the parts by speed: bounds as in [`crate::placement`], part `p` gets the whole
/// rows `bounds[p]..bounds[p + 1]`.
///
/// Exact to one row of blocks. With few rows that is coarse; [`cells`] is exact to one block.
///
/// # Errors
///
/// If there are no speeds, or one is not a positive, finite number.
pub fn row_strips(rows: u32, speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
    weighted_bounds(u64::from(rows), speeds)
}

/// Assigns the blocks of a grid to parts by speed, within one block: the part of each block, row-major.
///
/// The parts own consecutive ranges of the row-major order, so each has a strip of rows whose first and last
/// row may be shared with a neighbour. The result holds `rows * cols` numbers: keep that product sane.
///
/// # Errors
///
/// If there are no speeds, or one is not a positive, finite number.
///
/// # Examples
///
/// ```
/// let owner = loadbalance::grid::cells(3, 4, &[1.0, 0.5])?;
/// assert_eq!(owner, [
///     0, 0, 0, 0, //
///     0, 0, 0, 0, //
///     1, 1, 1, 1,
/// ]);
/// # Ok::<(), loadbalance::PartitionError>(())
/// ```
pub fn cells(rows: u32, cols: u32, speeds: &[f64]) -> Result<Vec<u32>, PartitionError> {
    let bounds = weighted_bounds(u64::from(rows) * u64::from(cols), speeds)?;
    let ranges = bounds.windows(2).zip(0u32..);
    Ok(ranges.flat_map(|(range, part)| (range[0]..range[1]).map(move |_| part)).collect())
}

/// Blocks that go from one node to another in one step of Cannon's algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShiftCrossings {
    /// Blocks of A, which move one column to the left.
    pub a: u64,
    /// Blocks of B, which move one row up.
    pub b: u64,
}

impl ShiftCrossings {
    /// Bytes on the wire in one step, given the size of one block of A and one of B.
    #[must_use]
    pub const fn bytes(self, a_block_bytes: u64, b_block_bytes: u64) -> u64 {
        self.a * a_block_bytes + self.b * b_block_bytes
    }
}

/// Counts the blocks that cross between nodes in one step of Cannon's shifts; all steps are alike, because
/// blocks move between fixed places.
///
/// `owner` is the part of each place, row-major, and `node_of` names the node on which a part lives.
///
/// # Panics
///
/// If `owner` does not hold `rows * cols` entries.
#[must_use]
pub fn shift_crossings(
    owner: &[u32],
    rows: usize,
    cols: usize,
    node_of: impl Fn(u32) -> u32,
) -> ShiftCrossings {
    assert_eq!(owner.len(), rows * cols, "a grid of {rows} x {cols} places needs as many owners");
    let node: Vec<u32> = owner.iter().map(|&part| node_of(part)).collect();
    let mut crossings = ShiftCrossings::default();
    for row in 0..rows {
        for col in 0..cols {
            let here = node[row * cols + col];
            let left = node[row * cols + (col + cols - 1) % cols];
            let above = node[(row + rows - 1) % rows * cols + col];
            crossings.a += u64::from(here != left);
            crossings.b += u64::from(here != above);
        }
    }
    crossings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNLIKE: [f64; 3] = [1.0, 0.55, 0.25];

    fn count(owner: &[u32], part: u32) -> u64 {
        owner.iter().filter(|&&p| p == part).count() as u64
    }

    /// The same counts, in an order that a fixed linear congruence shuffles.
    fn scattered(owner: &[u32]) -> Vec<u32> {
        let mut owner = owner.to_vec();
        let mut state = 1u64;
        for last in (1..owner.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            owner.swap(last, (state >> 33) as usize % (last + 1));
        }
        owner
    }

    #[test]
    fn strips_cross_far_less_than_cyclic_or_scattered() {
        let q = 18;
        let places = q * q;
        let strips = cells(18, 18, &UNLIKE).unwrap();
        let total = |owner: &[u32]| {
            let crossings = shift_crossings(owner, q, q, |part| part);
            crossings.a + crossings.b
        };
        let cyclic: Vec<u32> = (0..places as u32).map(|index| index % 3).collect();
        // Three boundaries of a row of B each, and nothing of A but at ragged ends.
        assert!(total(&strips) <= 3 * 18 + 2 * 2, "strips: {}", total(&strips));
        let blocks_moved = 2 * places as u64;
        assert!(total(&cyclic) * 10 >= blocks_moved * 3, "cyclic: {}", total(&cyclic));
        assert!(total(&scattered(&strips)) * 10 >= blocks_moved * 5);
        assert!(total(&strips) * 5 < total(&cyclic));
        assert!(total(&strips) * 5 < total(&scattered(&strips)));
    }

    #[test]
    fn whole_strips_never_ship_a() {
        let bounds = row_strips(36, &UNLIKE).unwrap();
        assert_eq!(bounds, [0, 20, 31, 36]);
        let owner: Vec<u32> = (0..3u32)
            .flat_map(|part| (bounds[part as usize] * 36..bounds[part as usize + 1] * 36).map(move |_| part))
            .collect();
        assert_eq!(cells(36, 36, &UNLIKE).unwrap(), owner);
        assert_eq!(shift_crossings(&owner, 36, 36, |part| part), ShiftCrossings { a: 0, b: 3 * 36 });
    }

    #[test]
    fn parts_of_one_node_talk_for_nothing() {
        let owner = cells(6, 6, &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!(shift_crossings(&owner, 6, 6, |_| 0), ShiftCrossings::default());
        // Parts 0 and 1 together: two boundaries are left of three.
        assert_eq!(shift_crossings(&owner, 6, 6, |part| part / 2), ShiftCrossings { a: 0, b: 12 });
    }

    #[test]
    fn a_ragged_boundary_costs_two_blocks_of_a() {
        let owner = [
            0, 0, 0, //
            0, 1, 1, //
            1, 1, 1,
        ];
        let crossings = shift_crossings(&owner, 3, 3, |part| part);
        assert_eq!(crossings, ShiftCrossings { a: 2, b: 2 + 1 + 3 });
        assert_eq!(crossings.bytes(100, 10), 260);
    }

    #[test]
    fn a_single_place_and_an_empty_grid_ship_nothing() {
        assert_eq!(shift_crossings(&[0], 1, 1, |part| part), ShiftCrossings::default());
        assert_eq!(cells(0, 5, &UNLIKE).unwrap(), Vec::<u32>::new());
        assert_eq!(shift_crossings(&[], 0, 5, |part| part), ShiftCrossings::default());
    }

    proptest! {
        #[test]
        fn blocks_follow_speed_within_one(
            rows in 1u32..40,
            cols in 1u32..40,
            speeds in prop::collection::vec(0.05f64..1.0, 1..10),
        ) {
            let owner = cells(rows, cols, &speeds).unwrap();
            prop_assert_eq!(owner.len() as u32, rows * cols);
            prop_assert!(owner.is_sorted());
            let total: f64 = speeds.iter().sum();
            for (part, speed) in (0u32..).zip(&speeds) {
                let ideal = f64::from(rows * cols) * speed / total;
                prop_assert!((count(&owner, part) as f64 - ideal).abs() < 1.0);
            }
        }

        #[test]
        fn strips_ship_at_most_a_row_and_two_blocks_per_part(
            rows in 1usize..40,
            cols in 1usize..40,
            speeds in prop::collection::vec(0.05f64..1.0, 1..10),
        ) {
            let owner = cells(rows as u32, cols as u32, &speeds).unwrap();
            let crossings = shift_crossings(&owner, rows, cols, |part| part);
            let parts = speeds.len() as u64;
            prop_assert!(crossings.a <= 2 * parts);
            prop_assert!(crossings.b <= parts * cols as u64);
        }
    }
}
