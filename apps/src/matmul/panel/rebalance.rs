//! Another division of work that goes on already: who takes how much from whom, so that all end together.
//!
//! The work is a number of steps over items that are divided over parts; in each step a part goes over all its items.
//! What a part really does in a second is known after some steps, and from a later step on another division may hold.
//! Until then each part has a backlog: steps that keep to the old division.

/// How often the interval in which the common end lies is halved: more changes no bit of it.
const HALVINGS: usize = 200;

/// A part in the midst of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Underway {
    /// Items that it has now.
    pub(super) items: u64,
    /// Items that it goes over in a second; positive and finite.
    pub(super) rate: f64,
    /// What it still has to do whatever is decided now, in items times steps.
    pub(super) backlog: f64,
    /// It keeps at least as many items; at most what it has.
    pub(super) least: u64,
    /// It gets at most as many; at least what it has.
    pub(super) most: u64,
}

impl Underway {
    /// When it ends if it goes over so many items in each of so many steps, after its backlog.
    pub(super) fn end(&self, items: u64, steps: f64) -> f64 {
        (self.backlog + items as f64 * steps) / self.rate
    }

    /// Items with which it ends at that time, within its limits.
    fn items_until(&self, end: f64, steps: f64) -> f64 {
        ((end * self.rate - self.backlog) / steps).clamp(self.least as f64, self.most as f64)
    }
}

/// Items of each part for the `steps` that are left, such that all parts end together as far as their limits and whole
/// items let them; as many in all as they have now. `None` if there is nothing to decide by: no step, or a part whose
/// rate is not positive and finite, or whose limits are not on both sides of what it has.
pub(super) fn even_out(parts: &[Underway], steps: f64) -> Option<Vec<u64>> {
    let is_sane = |part: &Underway| {
        let has_rate = part.rate.is_finite() && part.rate > 0.0 && part.backlog.is_finite();
        has_rate && (part.least..=part.most).contains(&part.items)
    };
    if parts.is_empty() || !steps.is_finite() || steps <= 0.0 || !parts.iter().all(is_sane) {
        return None;
    }
    let total: u64 = parts.iter().map(|part| part.items).sum();
    let longest = |items: fn(&Underway) -> u64| {
        parts.iter().map(|part| part.end(items(part), steps)).fold(0.0, f64::max)
    };
    // By `early` not more than all items are done; by `late` all.
    let (mut early, mut late) = (0.0, longest(|part| part.most));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(early, late);
        let done: f64 = parts.iter().map(|part| part.items_until(middle, steps)).sum();
        if done > total as f64 {
            late = middle;
        } else {
            early = middle;
        }
    }
    // Rounded down within limits that are whole; the rest goes to those that end soonest with one more.
    let mut items: Vec<u64> = parts.iter().map(|part| part.items_until(early, steps) as u64).collect();
    let mut left = total.saturating_sub(items.iter().sum());
    while left > 0 {
        let end = |at: usize| parts[at].end(items[at] + 1, steps);
        let mut open: Vec<usize> = (0..parts.len()).filter(|&at| items[at] < parts[at].most).collect();
        open.sort_by(|&one, &other| end(one).total_cmp(&end(other)));
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(open.len());
        open[..count].iter().for_each(|&at| items[at] += 1);
        left -= count as u64;
    }
    Some(items)
}

/// Items that one part hands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    /// The part that gives.
    pub(super) from: usize,
    /// The part that takes.
    pub(super) to: usize,
    /// How many.
    pub(super) items: u64,
}

/// Who hands how many items to whom, so that `before` becomes `after`: none more than is needed, fewer transfers than
/// there are parts, and nobody both gives and takes. Both have the same sum.
pub(super) fn transfers(before: &[u64], after: &[u64]) -> Vec<Transfer> {
    let changes = || before.iter().zip(after).enumerate();
    let gives = changes().map(|(at, (before, after))| (at, before.saturating_sub(*after)));
    let takes = changes().map(|(at, (before, after))| (at, after.saturating_sub(*before)));
    let mut takes = takes.filter(|take| take.1 > 0);
    let mut taker = takes.next();
    let mut all = Vec::new();
    for (from, mut left) in gives.filter(|give| give.1 > 0) {
        while left > 0
            && let Some((to, wanted)) = taker
        {
            let items = left.min(wanted);
            all.push(Transfer { from, to, items });
            left -= items;
            taker = if items < wanted { Some((to, wanted - items)) } else { takes.next() };
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn free(items: u64, rate: f64) -> Underway {
        Underway { items, rate, backlog: 0.0, least: 0, most: u64::MAX / 1024 }
    }

    #[test]
    fn a_part_that_is_behind_keeps_fewer_items_and_hands_over_the_others() {
        let fast = Underway { items: 60, rate: 100.0, backlog: 0.0, least: 0, most: 120 };
        let slow = Underway { items: 60, rate: 50.0, backlog: 120.0, ..fast };
        // 880 / 100 s and (120 + 320) / 50 s.
        assert_eq!(even_out(&[fast, slow], 10.0).unwrap(), [88, 32]);
        let due = [Transfer { from: 1, to: 0, items: 3 }, Transfer { from: 1, to: 2, items: 1 }];
        assert_eq!(transfers(&[10, 10, 10], &[13, 6, 11]), due);
    }

    #[test]
    fn without_backlog_items_follow_rates() {
        let parts = [free(25, 4.0), free(25, 2.0), free(25, 1.0), free(25, 3.0)];
        assert_eq!(even_out(&parts, 3.0).unwrap(), [40, 20, 10, 30]);
    }

    #[test]
    fn limits_hold_and_the_others_take_over() {
        let mut parts = [free(30, 10.0), free(30, 1.0), free(30, 1.0)];
        parts[0].most = 40;
        parts[1].least = 28;
        assert_eq!(even_out(&parts, 1.0).unwrap(), [40, 28, 22]);
        parts[0].most = 30;
        parts[2].least = 30;
        assert_eq!(even_out(&parts, 1.0).unwrap(), [30, 30, 30]);
    }

    #[test]
    fn what_cannot_be_decided_is_not() {
        let part = free(5, 1.0);
        assert_eq!(even_out(&[], 1.0), None);
        assert_eq!(even_out(&[part], 0.0), None);
        assert_eq!(even_out(&[part, Underway { rate: 0.0, ..part }], 1.0), None);
        assert_eq!(even_out(&[part, Underway { rate: f64::NAN, ..part }], 1.0), None);
        assert_eq!(even_out(&[part, Underway { most: 4, ..part }], 1.0), None);
    }

    fn underway() -> impl Strategy<Value = Underway> {
        let limits = (0u64..2000, 0u64..2000);
        (0u64..2000, 0.01f64..100.0, 0.0f64..5000.0, limits).prop_map(|(items, rate, backlog, limits)| {
            let (least, most) = (items.saturating_sub(limits.0), items + limits.1);
            Underway { items, rate, backlog, least, most }
        })
    }

    proptest! {
        #[test]
        fn no_item_is_lost_limits_hold_and_no_pair_could_do_better(
            parts in prop::collection::vec(underway(), 1..12),
            steps in 0.5f64..50.0,
        ) {
            let items = even_out(&parts, steps).unwrap();
            let before: Vec<u64> = parts.iter().map(|part| part.items).collect();
            prop_assert_eq!(items.iter().sum::<u64>(), before.iter().sum::<u64>());
            for (part, items) in parts.iter().zip(&items) {
                prop_assert!((part.least..=part.most).contains(items), "{:?}: {}", part, items);
            }
            let ends: Vec<f64> = parts.iter().zip(&items).map(|(part, &items)| part.end(items, steps)).collect();
            // Whoever could give an item ends at most about one item after whoever could take one.
            for (one, giver) in parts.iter().enumerate().filter(|(at, part)| items[*at] > part.least) {
                for (other, taker) in parts.iter().enumerate().filter(|(at, part)| items[*at] < part.most) {
                    let item = steps / giver.rate + steps / taker.rate;
                    prop_assert!(ends[one] <= ends[other] + 1.001 * item, "{:?} {:?}", ends, parts);
                }
            }
            let longest = |items: &[u64]| {
                parts.iter().zip(items).map(|(part, &items)| part.end(items, steps)).fold(0.0, f64::max)
            };
            let slack = parts.iter().map(|part| steps / part.rate).fold(0.0, f64::max);
            prop_assert!(longest(&items) <= longest(&before) + slack);
        }

        #[test]
        fn transfers_make_the_one_division_of_the_other(
            parts in prop::collection::vec((0u64..50, 0u64..50), 1..20),
        ) {
            let (before, mut after): (Vec<u64>, Vec<u64>) = parts.into_iter().unzip();
            let (one, other): (u64, u64) = (before.iter().sum(), after.iter().sum());
            after[0] += one.saturating_sub(other);
            let mut left = other.saturating_sub(one);
            for items in &mut after {
                let cut = left.min(*items);
                (*items, left) = (*items - cut, left - cut);
            }
            let all = transfers(&before, &after);
            prop_assert!(all.len() < before.len());
            let mut items = before.clone();
            for Transfer { from, to, items: moved } in &all {
                prop_assert!(*moved > 0 && !all.iter().any(|other| other.to == *from || other.from == *to));
                items[*from] -= moved;
                items[*to] += moved;
            }
            prop_assert_eq!(items, after);
        }
    }
}
