//! Which part owns which element where the elements are used up from the front: dealt out in turn, a fast part more
//! often than a slow one, so that whatever is left is always divided by speed.
//!
//! That is what a factorisation needs, whose active part shrinks column by column: contiguous shares would leave the
//! first parts without work half the time.

use crate::partition::PartitionError;

/// The speeds are taken as so many parts of the fastest.
const SCALE: f64 = (1u64 << 32) as f64;

/// The owner of each of `count` elements. Of the last r elements, for any r, every part owns as many as its speed earns
/// within less than one; of any other neighbouring ones within less than two.
///
/// The elements are dealt out from the last to the first by the rule of R. Tijdeman ("The chairman assignment
/// problem", Discrete Mathematics 32, 1980): of the parts that have waited long enough to be due, the one whose turn would
/// else be missed first.
///
/// # Errors
/// If there are no speeds, or one is not a positive, finite number.
///
/// # Examples
///
/// ```
/// let owners = loadbalance::cyclic::weighted_cyclic(8, &[1.0, 0.5, 0.5])?;
/// assert_eq!(owners, [0, 2, 1, 0, 0, 2, 1, 0]);
/// # Ok::<(), loadbalance::PartitionError>(())
/// ```
pub fn weighted_cyclic(count: usize, speeds: &[f64]) -> Result<Vec<u32>, PartitionError> {
    let weights = weights(speeds)?;
    let total: i128 = weights.iter().sum();
    // How late a part may be at most is 1 - 1 / slack.
    let slack = (2 * weights.len() as i128 - 2).max(1);
    let mut given = vec![0i128; weights.len()];
    let mut owners = Vec::with_capacity(count);
    for turn in 1..=count as i128 {
        // What each part is owed, in elements times the total.
        let due = |part: usize| turn * weights[part] - given[part] * total;
        let left = |part: usize| (slack - 1) * total - slack * due(part);
        let is_due = |part: &usize| weights.len() == 1 || slack * due(*part) >= total;
        let sooner =
            |one: &usize, other: &usize| (left(*one) * weights[*other]).cmp(&(left(*other) * weights[*one]));
        let next = (0..weights.len()).filter(is_due).min_by(sooner).unwrap_or(0);
        given[next] += 1;
        owners.push(u32::try_from(next).expect("there are fewer than 2^32 parts"));
    }
    owners.reverse();
    Ok(owners)
}

fn weights(speeds: &[f64]) -> Result<Vec<i128>, PartitionError> {
    if speeds.is_empty() {
        return Err(PartitionError::NoParts);
    }
    if let Some((part, &speed)) =
        speeds.iter().enumerate().find(|(_, speed)| !(speed.is_finite() && **speed > 0.0))
    {
        return Err(PartitionError::BadSpeed { part, speed });
    }
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    Ok(speeds.iter().map(|speed| ((speed / fastest * SCALE).round() as i128).max(1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_parts_take_turns() {
        let owners = weighted_cyclic(9, &[0.3; 3]).unwrap();
        assert!(owners.chunks(3).all(|turn| turn == &owners[..3]), "{owners:?}");
        assert_eq!(weighted_cyclic(3, &[7.0]).unwrap(), [0, 0, 0]);
        assert!(weighted_cyclic(0, &[1.0, 2.0]).unwrap().is_empty());
    }

    #[test]
    fn a_part_without_speed_is_refused() {
        assert_eq!(weighted_cyclic(5, &[]), Err(PartitionError::NoParts));
        let bad = weighted_cyclic(5, &[1.0, -1.0]);
        assert_eq!(bad, Err(PartitionError::BadSpeed { part: 1, speed: -1.0 }));
    }

    proptest! {
        #[test]
        fn whatever_is_left_is_divided_by_speed(
            count in 0usize..400,
            speeds in prop::collection::vec(0.01f64..1.0, 1..12),
        ) {
            let owners = weighted_cyclic(count, &speeds).unwrap();
            prop_assert_eq!(owners.len(), count);
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
