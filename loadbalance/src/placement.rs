//! Which part owns which element: maps of a dense index space `0..count` to parts.
//!
//! A contiguous map is a list of *bounds*: one more than there are parts, from 0 up to `count`; part `p` owns
//! `bounds[p]..bounds[p + 1]`. So a map of a million elements over ten nodes is eleven numbers, which every
//! node may hold, and a lookup is a binary search.

use crate::partition::{Part, PartitionError, PartitionOptions, data_partition};

/// Bounds that give every part the same number of elements, or one more; the first parts get the extra ones.
///
/// # Panics
///
/// If `parts` is 0, because then nobody could own the elements.
///
/// # Examples
///
/// ```
/// assert_eq!(loadbalance::placement::block_bounds(10, 4), [0, 3, 6, 8, 10]);
/// ```
#[must_use]
pub fn block_bounds(count: u64, parts: usize) -> Vec<u64> {
    assert!(parts > 0, "block_bounds needs at least one part to own {count} elements");
    let parts = parts as u64;
    let (each, extra) = (count / parts, count % parts);
    (0..=parts).map(|part| part * each + part.min(extra)).collect()
}

/// Bounds that give every part elements in proportion to its speed, within one element; a part may get none.
///
/// # Errors
///
/// If there are no speeds, or one is not a positive, finite number.
pub fn weighted_bounds(count: u64, speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
    let parts: Vec<Part> = speeds.iter().copied().map(Part::new).collect();
    let ranges = data_partition(count, &parts, &PartitionOptions::default())?;
    Ok(std::iter::once(0).chain(ranges.into_iter().map(|range| range.end)).collect())
}

/// Bounds that give every part elements in proportion to its speed, where elements cost unlike much: element `i` costs
/// `before[i + 1] - before[i]`, so that `before` has one number more than there are elements, begins with 0 and does
/// not descend. Each bound lies where the cost before it is nearest to what it should be.
///
/// # Errors
///
/// If there are no speeds, or one is not a positive, finite number.
///
/// # Examples
///
/// Rows of a sparse matrix by their entries; the first is as long as all others:
///
/// ```
/// let starts = [0, 4, 5, 6, 7, 8];
/// assert_eq!(loadbalance::placement::weighted_bounds_by_cost(&starts, &[1.0, 1.0])?, [0, 1, 5]);
/// # Ok::<(), loadbalance::PartitionError>(())
/// ```
pub fn weighted_bounds_by_cost(before: &[u64], speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
    let total = before.last().copied().unwrap_or(0);
    let mut bounds = weighted_bounds(total, speeds)?;
    let last = before.len().saturating_sub(1);
    for bound in &mut bounds {
        let after = before.partition_point(|&cost| cost < *bound).min(last);
        let is_nearer = after > 0 && *bound - before[after - 1] < before[after].saturating_sub(*bound);
        *bound = (after - usize::from(is_nearer)) as u64;
    }
    // Elements that cost nothing belong to somebody as well.
    if let Some(end) = bounds.last_mut() {
        *end = last as u64;
    }
    Ok(bounds)
}

/// The part that owns element `index`, or `None` if the index lies outside the bounds.
#[must_use]
pub fn owner(bounds: &[u64], index: u64) -> Option<usize> {
    let after = bounds.partition_point(|&bound| bound <= index);
    (0 < after && after < bounds.len()).then(|| after - 1)
}

/// The part that owns element `index` when elements are dealt out in turn: good for loads that grow with the
/// index, bad for neighbours that talk.
///
/// # Panics
///
/// If `parts` is 0.
#[must_use]
pub fn cyclic(index: u64, parts: usize) -> usize {
    assert!(parts > 0, "cyclic needs at least one part to own element {index}");
    // The remainder is below `parts`, so it fits.
    (index % parts as u64) as usize
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
    }

    #[test]
    fn a_part_without_speed_is_refused() {
        let error = weighted_bounds(10, &[1.0, 0.0]).unwrap_err();
        assert_eq!(error, PartitionError::BadSpeed { part: 1, speed: 0.0 });
    }

    #[test]
    fn cyclic_deals_in_turn() {
        assert_eq!((0..7).map(|index| cyclic(index, 3)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    }

    fn check_bounds(bounds: &[u64], count: u64, parts: usize) -> Result<(), TestCaseError> {
        prop_assert_eq!(bounds.len(), parts + 1);
        prop_assert_eq!((bounds[0], bounds[parts]), (0, count));
        prop_assert!(bounds.is_sorted());
        Ok(())
    }

    proptest! {
        #[test]
        fn blocks_cover_the_space_evenly(count: u64, parts in 1usize..200) {
            let bounds = block_bounds(count, parts);
            check_bounds(&bounds, count, parts)?;
            let each = count / parts as u64;
            prop_assert!(bounds.windows(2).all(|pair| (each..=each + 1).contains(&(pair[1] - pair[0]))));
        }

        #[test]
        fn equal_speeds_give_even_blocks(count: u64, parts in 1usize..50) {
            let bounds = weighted_bounds(count, &vec![0.7; parts]).unwrap();
            prop_assert_eq!(bounds, block_bounds(count, parts));
        }

        #[test]
        fn no_part_is_off_by_more_than_one_element_at_either_end(
            costs in prop::collection::vec(0u64..50, 0..200),
            speeds in prop::collection::vec(0.01f64..1.0, 1..8),
        ) {
            let mut before = vec![0];
            costs.iter().for_each(|cost| before.push(before[before.len() - 1] + cost));
            let bounds = weighted_bounds_by_cost(&before, &speeds).unwrap();
            check_bounds(&bounds, costs.len() as u64, speeds.len())?;
            let (total, all) = (before[costs.len()] as f64, speeds.iter().sum::<f64>());
            for (part, speed) in speeds.iter().enumerate() {
                let cost = before[bounds[part + 1] as usize] - before[bounds[part] as usize];
                let most = costs.iter().copied().max().unwrap_or(0) as f64;
                prop_assert!((cost as f64 - total * speed / all).abs() <= most + 1.0);
            }
        }

        #[test]
        fn the_owner_holds_the_element(
            count in 1u64..100_000,
            speeds in prop::collection::vec(0.01f64..1.0, 1..20),
            at in 0.0f64..1.0,
        ) {
            let bounds = weighted_bounds(count, &speeds).unwrap();
            check_bounds(&bounds, count, speeds.len())?;
            let index = ((count as f64 * at) as u64).min(count - 1);
            let part = owner(&bounds, index).unwrap();
            prop_assert!((bounds[part]..bounds[part + 1]).contains(&index));
            prop_assert_eq!(owner(&bounds, count), None);
        }
    }
}
