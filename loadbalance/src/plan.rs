//! What every planner takes and gives: [`Items`] with their costs, [`Part`]s with their speeds, and for each item the part
//! that owns it, or bounds between parts where each owns neighbours.
//!
//! What else a part has to do, and what memory it lacks, is in its speed already when a planner sees it: see
//! [`Machines::balanced`](crate::machines::Machines::balanced). So there is one question only that each planner answers in
//! its own way, and all are tried by the same tests.

use std::borrow::Cow;
use thiserror::Error;

/// One receiver of items: a PE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Parts of the same node exchange nothing over the wire; they follow one another.
    pub node: usize,
    /// Cost per unit of time, relative to any reference shared by all parts; positive and finite.
    pub speed: f64,
}

impl Part {
    /// Parts of these speeds, each on a node of its own.
    #[must_use]
    pub fn each(speeds: &[f64]) -> Vec<Self> {
        speeds.iter().enumerate().map(|(node, &speed)| Self { node, speed }).collect()
    }

    /// Parts of these speeds, node by node.
    #[must_use]
    pub fn of_nodes<S: AsRef<[f64]>>(nodes: &[S]) -> Vec<Self> {
        let of_node = |(node, speeds): (usize, &S)| -> Vec<Self> {
            speeds.as_ref().iter().map(|&speed| Self { node, speed }).collect()
        };
        nodes.iter().enumerate().flat_map(of_node).collect()
    }
}

/// What is divided: a grid of items, counted row by row. A list is a grid of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Items<'a> {
    /// Rows of the grid.
    pub rows: u64,
    /// Items in a row.
    pub cols: u64,
    /// What each item costs, in any unit; empty if all cost the same.
    pub costs: &'a [u64],
}

impl<'a> Items<'a> {
    /// A list of items that cost the same.
    #[must_use]
    pub const fn alike(count: u64) -> Self {
        Self::grid(1, count)
    }

    /// A grid of items that cost the same.
    #[must_use]
    pub const fn grid(rows: u64, cols: u64) -> Self {
        Self { rows, cols, costs: &[] }
    }

    /// A list of items that cost so much each.
    #[must_use]
    pub const fn with_costs(costs: &'a [u64]) -> Self {
        Self { rows: 1, cols: costs.len() as u64, costs }
    }
}

impl Items<'_> {
    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.rows.saturating_mul(self.cols)
    }

    /// The costs of some of them, in this order; empty if all cost the same.
    pub(crate) fn costs_of(&self, items: &[usize]) -> Cow<'_, [u64]> {
        if self.costs.is_empty() {
            return Cow::Borrowed(&[]);
        }
        items.iter().map(|&item| self.costs[item]).collect()
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
    /// There was not one cost for each item, or all together were more than 64 bits hold.
    #[error("{items} items have {costs} costs: give one for each, less than 2^64 in all, or none")]
    BadCosts {
        /// How many items there are.
        items: u64,
        /// How many costs were given.
        costs: usize,
    },
}

/// The speeds of parts that can be planned with; refuses others, and costs that do not belong to the items.
pub(crate) fn checked(items: &Items<'_>, parts: &[Part]) -> Result<Vec<f64>, PartitionError> {
    if parts.is_empty() {
        return Err(PartitionError::NoParts);
    }
    let is_bad = |part: &Part| !(part.speed.is_finite() && part.speed > 0.0);
    if let Some(part) = parts.iter().position(is_bad) {
        return Err(PartitionError::BadSpeed { part, speed: parts[part].speed });
    }
    let total = items.costs.iter().try_fold(0, |sum: u64, cost| sum.checked_add(*cost));
    if total.is_none() || !(items.costs.is_empty() || items.costs.len() as u64 == items.count()) {
        return Err(PartitionError::BadCosts { items: items.count(), costs: items.costs.len() });
    }
    Ok(parts.iter().map(|part| part.speed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cyclic, grid, placement};
    use proptest::prelude::*;

    type Planner = fn(&Items<'_>, &[Part]) -> Result<Vec<u32>, PartitionError>;

    /// Neighbours to each part, as a list of owners.
    fn contiguous(items: &Items<'_>, parts: &[Part]) -> Result<Vec<u32>, PartitionError> {
        let bounds = placement::contiguous(items, parts)?;
        let owner = |item| placement::owner(&bounds, item).map(|part| part as u32);
        Ok((0..items.count()).map(|item| owner(item).unwrap()).collect())
    }

    /// All planners, and how far the cost of a part may be from what its speed earns, in costs of the dearest item.
    const PLANNERS: [(Planner, f64); 3] = [(contiguous, 1.0), (cyclic::dealt, 2.0), (grid::rectangles, 3.0)];

    #[test]
    fn what_cannot_be_planned_with_is_refused_by_all() {
        for (plan, _) in PLANNERS {
            let refused = |items: &Items<'_>, speeds: &[f64]| plan(items, &Part::each(speeds)).unwrap_err();
            assert_eq!(refused(&Items::alike(5), &[]), PartitionError::NoParts);
            for speed in [0.0, -1.0, f64::INFINITY] {
                let why = PartitionError::BadSpeed { part: 1, speed };
                assert_eq!(refused(&Items::alike(5), &[1.0, speed]), why);
            }
            assert!(refused(&Items::alike(5), &[f64::NAN]).to_string().contains("part 0 has speed NaN"));
            let short = Items { costs: &[1, 2], ..Items::grid(2, 3) };
            assert_eq!(refused(&short, &[1.0]), PartitionError::BadCosts { items: 6, costs: 2 });
            let dear = Items::with_costs(&[u64::MAX, 1]);
            assert_eq!(refused(&dear, &[1.0]), PartitionError::BadCosts { items: 2, costs: 2 });
            assert!(plan(&Items::alike(0), &Part::each(&[1.0, 2.0])).unwrap().is_empty());
        }
    }

    proptest! {
        #[test]
        fn every_planner_gives_each_part_what_its_speed_earns(
            (rows, cols) in (1u64..12, 1u64..12),
            all in prop::collection::vec(0u64..1000, 144),
            parts in prop::collection::vec((0usize..2, 0.05f64..1.0), 1..9),
            are_alike: bool,
        ) {
            let mut node = 0;
            let parts: Vec<Part> = parts.into_iter().map(|(step, speed)| {
                node += step;
                Part { node, speed }
            }).collect();
            let count = (rows * cols) as usize;
            let items = Items { rows, cols, costs: if are_alike { &[] } else { &all[..count] } };
            let cost = |item: usize| items.costs.get(item).copied().unwrap_or(1) as f64;
            let total: f64 = (0..count).map(cost).sum();
            let dearest = (0..count).map(cost).fold(0.0, f64::max);
            let speed: f64 = parts.iter().map(|part| part.speed).sum();
            for (number, (plan, most)) in PLANNERS.into_iter().enumerate() {
                let owners = plan(&items, &parts).unwrap();
                prop_assert_eq!(owners.len(), count);
                let mut have = vec![0.0; parts.len()];
                owners.iter().enumerate().for_each(|(item, owner)| have[*owner as usize] += cost(item));
                for (have, part) in have.iter().zip(&parts) {
                    let earned = total * part.speed / speed;
                    prop_assert!((have - earned).abs() <= most * dearest + 1.0, "{} {} {}", number, have, earned);
                }
                // Only ratios of speeds count.
                let faster: Vec<Part> = parts.iter().map(|part| Part { speed: 4.0 * part.speed, ..*part }).collect();
                prop_assert_eq!(plan(&items, &faster).unwrap(), owners);
            }
        }
    }
}
