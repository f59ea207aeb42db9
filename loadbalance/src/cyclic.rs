//! Which part owns which item where the items are used up from the front: dealt out in turn, a fast part more
//! often than a slow one, so that whatever is left is always divided by speed.
//!
//! That is what a factorisation needs, whose active part shrinks column by column: contiguous shares would leave the
//! first parts without work half the time.

use crate::plan::{Items, Part, PartitionError, checked};

/// The speeds are taken as so many parts of the fastest.
const SCALE: f64 = (1u64 << 32) as f64;
/// The costs are taken in units of which there are about so many at most, so that nothing overflows 128 bits.
const UNITS_MAX: u64 = 1 << 40;

/// The owner of each item. Of the last r items, for any r, every part owns as many as its speed earns within less than
/// one, if all cost the same; of any other neighbouring ones within less than two.
///
/// The items are dealt out from the last to the first by the rule of R. Tijdeman ("The chairman assignment
/// problem", Discrete Mathematics 32, 1980): of the parts that have waited long enough to be due, the one whose turn would
/// else be missed first. Where items cost unlike much and none is due, the one that is owed most.
///
/// # Errors
/// If there are no parts, a speed is not a positive, finite number, or costs do not belong to the items.
///
/// # Examples
///
/// ```
/// use loadbalance::{Items, Part, cyclic::dealt};
/// let owners = dealt(&Items::alike(8), &Part::each(&[1.0, 0.5, 0.5]))?;
/// assert_eq!(owners, [0, 2, 1, 0, 0, 2, 1, 0]);
/// # Ok::<(), loadbalance::PartitionError>(())
/// ```
pub fn dealt(items: &Items<'_>, parts: &[Part]) -> Result<Vec<u32>, PartitionError> {
    let speeds = checked(items, parts)?;
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    let weights: Vec<i128> =
        speeds.iter().map(|speed| ((speed / fastest * SCALE).round() as i128).max(1)).collect();
    let total: i128 = weights.iter().sum();
    let unit = items.costs.iter().sum::<u64>() / UNITS_MAX + 1;
    let cost = |item: usize| items.costs.get(item).map_or(1, |cost| i128::from(cost / unit));
    // How late a part may be at most is 1 - 1 / slack.
    let slack = (2 * weights.len() as i128 - 2).max(1);
    let (mut passed, mut given) = (0, vec![0i128; weights.len()]);
    let count = usize::try_from(items.count()).unwrap_or(usize::MAX);
    let mut owners = Vec::with_capacity(count);
    for item in (0..count).rev() {
        let cost = cost(item);
        passed += cost;
        // What each part is owed, in costs times the total.
        let due = |part: usize| passed * weights[part] - given[part] * total;
        let left = |part: usize| (slack - 1) * total * cost - slack * due(part);
        let is_due = |part: &usize| weights.len() == 1 || slack * due(*part) >= total * cost;
        let sooner =
            |one: &usize, other: &usize| (left(*one) * weights[*other]).cmp(&(left(*other) * weights[*one]));
        let next = (0..weights.len()).filter(is_due).min_by(sooner);
        let next = next.or_else(|| (0..weights.len()).max_by_key(|part| due(*part))).unwrap_or(0);
        given[next] += cost;
        owners.push(u32::try_from(next).expect("there are fewer than 2^32 parts"));
    }
    owners.reverse();
    Ok(owners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_parts_take_turns() {
        let owners = dealt(&Items::alike(9), &Part::each(&[0.3; 3])).unwrap();
        assert!(owners.chunks(3).all(|turn| turn == &owners[..3]), "{owners:?}");
        assert_eq!(dealt(&Items::alike(3), &Part::each(&[7.0])).unwrap(), [0, 0, 0]);
        assert!(dealt(&Items::alike(0), &Part::each(&[1.0, 2.0])).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn whatever_is_left_is_divided_by_speed(
            count in 0u64..400,
            speeds in prop::collection::vec(0.01f64..1.0, 1..12),
        ) {
            let owners = dealt(&Items::alike(count), &Part::each(&speeds)).unwrap();
            prop_assert_eq!(owners.len() as u64, count);
            let total: f64 = speeds.iter().sum();
            let mut of_suffix = vec![0.0; speeds.len()];
            for (left, owner) in (1..).zip(owners.iter().rev()) {
                of_suffix[*owner as usize] += 1.0;
                for (have, speed) in of_suffix.iter().zip(&speeds) {
                    let earned = f64::from(left) * speed / total;
                    prop_assert!((have - earned).abs() < 1.0 + 1e-6, "{have} of {left} for {earned}: {owners:?}");
                }
            }
        }
    }
}
