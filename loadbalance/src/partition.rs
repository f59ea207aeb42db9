//! How many items each part gets: the `CkDataPartition` of the metacomputer of 1995, for few chares with a
//! variable amount of data each.
//!
//! The exact share of a part is seldom a whole number of granules, so something must be rounded. Here every
//! share is first rounded *down*; the granules left over then go, at most one to each part, to the parts that
//! finish soonest with one more. Two things follow:
//!
//! - Invariant: a part differs from its ideal share by less than one granule (when no limit binds). It holds
//!   its share rounded down, or one piece of at most a granule more; and it gets a whole granule more only when
//!   its share had a fractional part. There are always enough such parts: the fractions add up to what is left,
//!   and each is below one.
//! - No other way to hand out one piece each ends earlier. Rounding by the largest remainder keeps the first
//!   property as well, but may give the spare granule to a slow part, for which it is expensive.
//!
//! Shares are computed in integers, with speeds scaled to 52 bits, so that no item is lost at any size and
//! every machine computes the same division.

use std::ops::Range;
use thiserror::Error;

/// One receiver of items: a node, a PE, a group of PEs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Items per unit of time, relative to any reference shared by all parts; positive and finite.
    pub speed: f64,
    /// The most items that fit, for instance into the part's memory; `None` is no limit.
    pub max_items: Option<u64>,
}

impl Part {
    /// A part without a limit.
    #[must_use]
    pub const fn new(speed: f64) -> Self {
        Self { speed, max_items: None }
    }

    /// The same part with room for `max_items` items.
    #[must_use]
    pub const fn with_max_items(self, max_items: u64) -> Self {
        Self { max_items: Some(max_items), ..self }
    }

    fn limit(&self) -> u64 {
        self.max_items.unwrap_or(u64::MAX)
    }
}

/// In what pieces, and how much of it now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionOptions {
    /// Smallest unit handed out, in items, at least 1. Every part gets a multiple of it, except that one part
    /// also gets the remainder of the division of the items by it. Default 1.
    pub granule: u64,
    /// Which share of the items is handed out by this call, 0 to 1. Below 1 the ranges cover the first
    /// `fraction` of the items, rounded down to a granule, and the caller divides the rest later, when it knows
    /// the speeds better; a part's limit is then what it can take in this call. Default 1.
    pub fraction: f64,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        Self { granule: 1, fraction: 1.0 }
    }
}

/// Why items could not be divided.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The list of parts was empty.
    #[error("there are no parts to divide the items over: name at least one")]
    NoParts,
    /// A speed was zero, negative, infinite or not a number.
    #[error(
        "part {part} has speed {speed}: a speed must be a positive, finite number (leave out a part that shall get nothing)"
    )]
    BadSpeed {
        /// Place of the part in the list, from 0.
        part: usize,
        /// The speed that was given.
        speed: f64,
    },
    /// The granule was zero.
    #[error("the granule is 0: the smallest unit must be at least 1 item")]
    ZeroGranule,
    /// The fraction was outside 0 to 1 or not a number.
    #[error("the fraction to hand out is {fraction}: it must lie between 0 and 1")]
    BadFraction {
        /// The fraction that was given.
        fraction: f64,
    },
    /// The limits of all parts together are too small.
    #[error(
        "{missing} of {items} items do not fit: in granules of {granule} all parts together have room for {} \
         (raise a limit, add a part, or use a smaller granule)",
        items - missing
    )]
    NoRoom {
        /// Items to be handed out by this call.
        items: u64,
        /// How many of them find no place.
        missing: u64,
        /// The granule asked for.
        granule: u64,
    },
}

/// Divides `items` over `parts` in proportion to their speeds: one range for each part, in the order of the
/// parts, adjoining and without overlap, together `0..items` (or the first `fraction` of it).
///
/// A part differs from its ideal share by less than one granule. Where a limit binds, the part is filled as
/// far as whole granules go, and the others share the excess by speed, again within one granule. Ranges may be
/// empty. The same input gives the same ranges on every machine.
///
/// Source: T. Neff's report on the CHARM metacomputer (1995), `CkDataPartition(size, max, base, fraction)`.
///
/// # Errors
///
/// [`PartitionError::NoRoom`] if the limits leave no place for all items, which says how many are too many; the
/// other variants name an input without a meaning. Nothing is handed out in part.
///
/// # Examples
///
/// ```
/// use loadbalance::{Part, PartitionOptions, data_partition};
///
/// let parts = [Part::new(2.0), Part::new(1.0)];
/// let options = PartitionOptions { granule: 8, ..Default::default() };
/// // 96 rows in groups of 8, ideal shares 64 and 32; then 100 rows, which leave a group of 4.
/// assert_eq!(data_partition(96, &parts, &options)?, [0..64, 64..96]);
/// assert_eq!(data_partition(100, &parts, &options)?, [0..68, 68..100]);
/// # Ok::<(), loadbalance::PartitionError>(())
/// ```
pub fn data_partition(
    items: u64,
    parts: &[Part],
    options: &PartitionOptions,
) -> Result<Vec<Range<u64>>, PartitionError> {
    check(parts, options)?;
    let items = portion(items, options);
    let counts = counts(items, parts, options.granule)?;
    let mut next = 0;
    Ok(counts
        .into_iter()
        .map(|count| {
            let start = next;
            next += count;
            start..next
        })
        .collect())
}

fn check(parts: &[Part], options: &PartitionOptions) -> Result<(), PartitionError> {
    if parts.is_empty() {
        return Err(PartitionError::NoParts);
    }
    for (part, &Part { speed, .. }) in parts.iter().enumerate() {
        if !(speed.is_finite() && speed > 0.0) {
            return Err(PartitionError::BadSpeed { part, speed });
        }
    }
    if options.granule == 0 {
        return Err(PartitionError::ZeroGranule);
    }
    if !(0.0..=1.0).contains(&options.fraction) {
        return Err(PartitionError::BadFraction { fraction: options.fraction });
    }
    Ok(())
}

/// How many of the items this call hands out.
fn portion(items: u64, options: &PartitionOptions) -> u64 {
    if options.fraction >= 1.0 {
        return items;
    }
    let share = u128::from(items) * u128::from(fixed_point(options.fraction)) / u128::from(SCALE);
    let share = narrow(share);
    share - share % options.granule
}

/// Items for each part; the inputs have been checked.
fn counts(items: u64, parts: &[Part], granule: u64) -> Result<Vec<u64>, PartitionError> {
    let weights = weights(parts);
    // What a part can hold in whole granules.
    let room: Vec<u64> = parts.iter().map(|part| part.limit() - part.limit() % granule).collect();
    let total_room: u128 = room.iter().copied().map(u128::from).sum();
    if total_room >= u128::from(items) {
        let shares = shares(items, &weights, &room);
        return Ok(round(items, &shares, &weights, granule));
    }

    // Whole granules fill all parts. The room is a multiple of the granule and the space beside it is less than
    // one, so only a last piece shorter than a granule may still go there.
    let missing = items - narrow(total_room);
    let spare = |part: usize| parts[part].limit() - room[part];
    let holder = (0..parts.len())
        .filter(|&part| spare(part) >= missing)
        .min_by(|&a, &b| cmp_finish((room[a] + missing, weights[a]), (room[b] + missing, weights[b])));
    let Some(holder) = holder else {
        let short = items % granule;
        let holds_short = (0..parts.len()).any(|part| spare(part) >= short);
        let missing = if holds_short { missing - short } else { missing };
        return Err(PartitionError::NoRoom { items, missing, granule });
    };
    let mut counts = room;
    counts[holder] += missing;
    Ok(counts)
}

/// The ideal share of a part, before rounding.
struct Share {
    /// The share in items, rounded down.
    items: u64,
    /// Whether that rounding lost something.
    rounded: bool,
}

/// Splits by weight; where a part's share reaches its room, the part is filled and the rest is split among the
/// others. Filling all such parts at once is right, because the others' shares only grow by it.
fn shares(items: u64, weights: &[u64], room: &[u64]) -> Vec<Share> {
    let mut full = vec![false; weights.len()];
    let mut rest = u128::from(items);
    loop {
        let weight: u128 =
            weights.iter().zip(&full).filter(|&(_, &full)| !full).map(|(&w, _)| u128::from(w)).sum();
        // 64 bits of items times 52 of weight cannot overflow 128.
        let numerator = |part: usize| rest * u128::from(weights[part]);
        let filled: Vec<usize> = (0..weights.len())
            .filter(|&part| !full[part] && numerator(part) / weight >= u128::from(room[part]))
            .collect();
        if filled.is_empty() {
            let share = |part: usize| match full[part] {
                true => (room[part], false),
                false => (narrow(numerator(part) / weight), numerator(part) % weight != 0),
            };
            return (0..weights.len()).map(share).map(|(items, rounded)| Share { items, rounded }).collect();
        }
        for part in filled {
            full[part] = true;
            rest -= u128::from(room[part]);
        }
    }
}

/// Rounds shares down to granules and hands out what that leaves, at most one piece to each part.
fn round(items: u64, shares: &[Share], weights: &[u64], granule: u64) -> Vec<u64> {
    let mut counts: Vec<u64> = shares.iter().map(|share| share.items - share.items % granule).collect();
    let left = items - counts.iter().sum::<u64>();
    let has_fraction = |part: usize| shares[part].rounded || !shares[part].items.is_multiple_of(granule);
    let mut takers: Vec<usize> = (0..shares.len()).filter(|&part| has_fraction(part)).collect();
    let finish = |part: usize, piece: u64| (counts[part] + piece, weights[part]);
    // A stable sort: of equals the first in the list is served first.
    takers.sort_by(|&a, &b| cmp_finish(finish(a, granule), finish(b, granule)));
    let whole = usize::try_from(left / granule).map_or(takers.len(), |whole| whole.min(takers.len()));
    let short = left % granule;
    let last =
        takers[whole..].iter().copied().min_by(|&a, &b| cmp_finish(finish(a, short), finish(b, short)));
    for &part in &takers[..whole] {
        counts[part] += granule;
    }
    if let Some(part) = last {
        counts[part] += short;
    }
    debug_assert_eq!(counts.iter().sum::<u64>(), items, "fractions below one cannot add up to more pieces");
    counts
}

/// Compares when two parts finish, given (items, weight): `a / wa` with `b / wb` without a division.
fn cmp_finish((a, weight_a): (u64, u64), (b, weight_b): (u64, u64)) -> std::cmp::Ordering {
    (u128::from(a) * u128::from(weight_b)).cmp(&(u128::from(b) * u128::from(weight_a)))
}

/// Speeds as integers, the fastest `SCALE`, none zero.
fn weights(parts: &[Part]) -> Vec<u64> {
    let fastest = parts.iter().map(|part| part.speed).fold(0.0, f64::max);
    parts.iter().map(|part| fixed_point(part.speed / fastest).max(1)).collect()
}

/// A number from 0 to 1 in units of 1 / `SCALE`.
fn fixed_point(value: f64) -> u64 {
    debug_assert!((0.0..=1.0).contains(&value));
    // A float's conversion saturates, and SCALE is a power of two that f64 holds exactly.
    (value * SCALE as f64).round() as u64
}

/// Brings a value back that a bound by the number of items keeps within 64 bits.
fn narrow(value: u128) -> u64 {
    u64::try_from(value).expect("a share is never more than the items, which are 64 bits")
}

/// As fine as the fraction of an f64.
const SCALE: u64 = 1 << 52;

#[cfg(test)]
mod tests;
