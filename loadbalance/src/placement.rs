//! Neighbouring items to each part: a list is cut into pieces, a piece for each part.
//!
//! The result is a list of *bounds*: one more than there are parts, from 0 up to the count of items; part `p` owns
//! `bounds[p]..bounds[p + 1]`. So a map of a million items over ten nodes is eleven numbers, which every
//! node may hold, and a lookup is a binary search.
//!
//! The exact share of a part is seldom a whole number of items, so something must be rounded. Here every share is first
//! rounded *down*; the items left over then go, at most one to each part, to the parts that finish soonest with one
//! more. Two things follow:
//!
//! - A part differs from its ideal share by less than one item. There are always enough parts whose share had a fraction:
//!   the fractions add up to what is left, and each is below one.
//! - No other way to hand out one item each ends earlier. Rounding by the largest remainder keeps the first
//!   property as well, but may give the spare item to a slow part, for which it is expensive.
//!
//! Shares are computed in integers, with speeds scaled to 52 bits, so that no item is lost at any size and
//! every machine computes the same division. Source: the `CkDataPartition` of T. Neff's report on the CHARM metacomputer
//! (1995).

use crate::plan::{Items, Part, PartitionError, checked};

/// Speeds are taken as so many parts of the fastest: as fine as the fraction of an f64.
const SCALE: f64 = (1u64 << 52) as f64;

/// Bounds that give every part the same number of items, or one more; the first parts get the extra ones.
///
/// # Panics
///
/// If `parts` is 0, because then nobody could own the items.
///
/// # Examples
///
/// ```
/// assert_eq!(loadbalance::placement::block_bounds(10, 4), [0, 3, 6, 8, 10]);
/// ```
#[must_use]
pub fn block_bounds(count: u64, parts: usize) -> Vec<u64> {
    assert!(parts > 0, "block_bounds needs at least one part to own {count} items");
    let parts = parts as u64;
    let (each, extra) = (count / parts, count % parts);
    (0..=parts).map(|part| part * each + part.min(extra)).collect()
}

/// Bounds that give every part neighbouring items in proportion to its speed; a part may get none. Where items cost the
/// same, a part differs from its ideal share by less than one item; else each bound lies where the cost before it is
/// nearest to what it should be.
///
/// # Errors
///
/// If there are no parts, a speed is not a positive, finite number, or costs do not belong to the items.
///
/// # Examples
///
/// Like rows; then rows of a sparse matrix by their entries, the first of which is as long as all others:
///
/// ```
/// use loadbalance::{Items, Part, placement::contiguous};
///
/// let parts = Part::each(&[2.0, 1.0, 1.0]);
/// assert_eq!(contiguous(&Items::alike(7), &parts)?, [0, 4, 6, 7]);
/// let rows = [4, 1, 1, 1, 1];
/// assert_eq!(contiguous(&Items::with_costs(&rows), &Part::each(&[1.0, 1.0]))?, [0, 1, 5]);
/// # Ok::<(), loadbalance::PartitionError>(())
/// ```
pub fn contiguous(items: &Items<'_>, parts: &[Part]) -> Result<Vec<u64>, PartitionError> {
    let speeds = checked(items, parts)?;
    Ok(if items.costs.is_empty() { by_count(items.count(), &speeds) } else { by_cost(items.costs, &speeds) })
}

/// Bounds of so many items that cost the same, or cost so much each; speeds have been checked.
pub(crate) fn cut(count: usize, costs: &[u64], speeds: &[f64]) -> Vec<u64> {
    if costs.is_empty() { by_count(count as u64, speeds) } else { by_cost(costs, speeds) }
}

fn by_count(count: u64, speeds: &[f64]) -> Vec<u64> {
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    // A float's conversion saturates, and no weight is more than the scale, which f64 holds exactly.
    let weights: Vec<u128> =
        speeds.iter().map(|speed| ((speed / fastest * SCALE).round() as u128).max(1)).collect();
    let total: u128 = weights.iter().sum();
    // 64 bits of items times 52 of weight cannot overflow 128.
    let exact = |part: usize| u128::from(count) * weights[part];
    let mut counts: Vec<u128> = (0..weights.len()).map(|part| exact(part) / total).collect();
    let left = u128::from(count) - counts.iter().sum::<u128>();
    let mut takers: Vec<usize> = (0..weights.len()).filter(|&part| exact(part) % total != 0).collect();
    // A stable sort: of equals the first in the list is served first.
    takers.sort_by(|&a, &b| ((counts[a] + 1) * weights[b]).cmp(&((counts[b] + 1) * weights[a])));
    takers.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    takers.into_iter().for_each(|part| counts[part] += 1);
    let mut bounds = vec![0];
    for count in counts {
        let count = u64::try_from(count).expect("a share is never more than the items, which are 64 bits");
        bounds.push(bounds[bounds.len() - 1] + count);
    }
    bounds
}

fn by_cost(costs: &[u64], speeds: &[f64]) -> Vec<u64> {
    let mut before = vec![0];
    costs.iter().for_each(|cost| before.push(before[before.len() - 1] + cost));
    let mut bounds = by_count(before[costs.len()], speeds);
    for bound in &mut bounds {
        let after = before.partition_point(|&cost| cost < *bound).min(costs.len());
        let is_nearer = after > 0 && *bound - before[after - 1] < before[after].saturating_sub(*bound);
        *bound = (after - usize::from(is_nearer)) as u64;
    }
    // Items that cost nothing belong to somebody as well.
    if let Some(end) = bounds.last_mut() {
        *end = costs.len() as u64;
    }
    bounds
}

/// The part that owns item `index`, or `None` if the index lies outside the bounds.
#[must_use]
pub fn owner(bounds: &[u64], index: u64) -> Option<usize> {
    let after = bounds.partition_point(|&bound| bound <= index);
    (0 < after && after < bounds.len()).then(|| after - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_part_owns_nothing() {
        let bounds = [0, 3, 3, 3, 5];
        let owners: Vec<_> = (0..6).map(|index| owner(&bounds, index)).collect();
        assert_eq!(owners, [Some(0), Some(0), Some(0), Some(3), Some(3), None]);
    }

    #[test]
    fn no_bounds_own_nothing() {
        assert_eq!(owner(&[], 0), None);
        assert_eq!(owner(&[0], 0), None);
        assert_eq!(owner(&block_bounds(0, 3), 0), None);
    }

    #[test]
    fn blocks_of_the_largest_space_do_not_overflow() {
        assert_eq!(block_bounds(u64::MAX, 2), [0, u64::MAX / 2 + 1, u64::MAX]);
        assert_eq!(owner(&block_bounds(u64::MAX, 3), u64::MAX - 1), Some(2));
        let tiny = f64::MIN_POSITIVE;
        let bounds = contiguous(&Items::alike(u64::MAX), &Part::each(&[1.0, tiny, f64::MAX])).unwrap();
        assert_eq!((bounds[0], bounds[3]), (0, u64::MAX));
    }

    #[test]
    fn the_spare_item_goes_where_it_is_done_soonest() {
        // Shares are 2.5, 1.25 and 1.25: with one more, the parts are done after 3/2, 2/1 and 2/1.
        assert_eq!(contiguous(&Items::alike(5), &Part::each(&[2.0, 1.0, 1.0])).unwrap(), [0, 3, 4, 5]);
        // 2/3, 1/3: the fast part does both sooner than the slow one does one.
        assert_eq!(contiguous(&Items::alike(1), &Part::each(&[1.0, 2.0])).unwrap(), [0, 0, 1]);
    }

    proptest! {
        #[test]
        fn blocks_cover_the_space_evenly(count: u64, parts in 1usize..200) {
            let bounds = block_bounds(count, parts);
            prop_assert_eq!((bounds.len(), bounds[0], bounds[parts]), (parts + 1, 0, count));
            let each = count / parts as u64;
            prop_assert!(bounds.windows(2).all(|pair| (each..=each + 1).contains(&(pair[1] - pair[0]))));
        }

        #[test]
        fn equal_speeds_give_even_blocks(count: u64, parts in 1usize..50) {
            let bounds = contiguous(&Items::alike(count), &Part::each(&vec![0.7; parts])).unwrap();
            prop_assert_eq!(bounds, block_bounds(count, parts));
        }

        #[test]
        fn like_items_follow_speed_within_one(
            count in 0u64..1_000_000,
            speeds in prop::collection::vec(0.01f64..1.0, 1..20),
        ) {
            let bounds = contiguous(&Items::alike(count), &Part::each(&speeds)).unwrap();
            prop_assert!(bounds.is_sorted() && (bounds[0], bounds[speeds.len()]) == (0, count));
            let all: f64 = speeds.iter().sum();
            for (pair, speed) in bounds.windows(2).zip(&speeds) {
                let have = (pair[1] - pair[0]) as f64;
                prop_assert!((have - count as f64 * speed / all).abs() < 1.0 + 1e-6);
            }
        }

        #[test]
        fn the_owner_holds_the_item(
            count in 1u64..100_000,
            speeds in prop::collection::vec(0.01f64..1.0, 1..20),
            at in 0.0f64..1.0,
        ) {
            let bounds = contiguous(&Items::alike(count), &Part::each(&speeds)).unwrap();
            let index = ((count as f64 * at) as u64).min(count - 1);
            let part = owner(&bounds, index).unwrap();
            prop_assert!((bounds[part]..bounds[part + 1]).contains(&index));
            prop_assert_eq!(owner(&bounds, count), None);
        }
    }
}
