//! A list cut into pieces of which the longest takes as short a time as it can, and the others are as even as they can be.

/// Who gets a piece: how much of it fits into the time that all would take if the list could be cut anywhere, and how much
/// more with each second more. The former together are as much as the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    pub(super) room: f64,
    pub(super) speed: f64,
}

/// Bounds near to these so that no other way to cut the list into pieces of neighbours, one for each taker in order, has a shorter
/// longest piece. The nearest bounds alone leave a PE with a chare more, and its neighbour with one less, wherever loads that are
/// alike were measured a little apart. Of all bounds around them that do, it is those that are the most even.
///
/// The time is found by bisection, and how early and how late each bound may be at that time from both ends (the probe of
/// A. Pınar and C. Aykanat, "Fast optimal load balancing algorithms for 1D partitioning", J. Parallel Distrib. Comput. 64,
/// 2004).
pub(super) fn shortest(bounds: &[u64], costs: &[u64], takers: &[Taker]) -> Vec<u64> {
    let list = List::new(costs, takers);
    let longest = bounds.windows(2).zip(takers).map(|(piece, taker)| {
        let cost = list.sums[piece[1] as usize] - list.sums[piece[0] as usize];
        (cost as f64 - taker.room) / taker.speed
    });
    let (mut too_little, mut enough) = (0.0, longest.fold(0.0, f64::max));
    if !list.fits(enough) {
        return bounds.to_vec();
    }
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(too_little, enough);
        if list.fits(middle) { enough = middle } else { too_little = middle }
    }
    let earliest = list.earliest(enough);
    let mut found = vec![0];
    for (at, taker) in takers.iter().enumerate() {
        let begin = found[at];
        let last = list.end(begin, taker, enough);
        let first = earliest[at + 1].max(begin);
        found.push(bounds[at + 1].clamp(first, last.max(first)));
    }
    list.most_even(&found, enough)
}

/// In each the time is known twice as well, of how much longer the bounds take that were given than if the list could be cut
/// anywhere.
const BISECTIONS: usize = 40;

/// Bounds are tried so many places before and behind those that are known.
const AROUND: u64 = 4;

struct List<'a> {
    /// What all before each place cost.
    sums: Vec<u64>,
    takers: &'a [Taker],
}

impl<'a> List<'a> {
    fn new(costs: &[u64], takers: &'a [Taker]) -> Self {
        let mut sums = vec![0];
        sums.extend(costs.iter().scan(0, |sum, cost| {
            *sum += cost;
            Some(*sum)
        }));
        Self { sums, takers }
    }

    /// The most that fits in, but for rounding.
    fn most(taker: &Taker, more_s: f64) -> u64 {
        ((taker.room + more_s * taker.speed) * (1.0 + 1e-12)) as u64
    }

    /// How far the piece of that taker reaches at most that begins there.
    fn end(&self, begin: u64, taker: &Taker, more_s: f64) -> u64 {
        let most = self.sums[begin as usize].saturating_add(Self::most(taker, more_s));
        self.sums.partition_point(|sum| *sum <= most) as u64 - 1
    }

    /// Whether the whole list has room.
    fn fits(&self, more_s: f64) -> bool {
        let end = self.takers.iter().fold(0, |begin, taker| self.end(begin, taker, more_s));
        end as usize + 1 == self.sums.len()
    }

    /// Of each bound the first place at which all that follows has room for the rest.
    fn earliest(&self, more_s: f64) -> Vec<u64> {
        let mut bounds = vec![self.sums.len() as u64 - 1];
        for taker in self.takers.iter().rev() {
            let end = self.sums[bounds[bounds.len() - 1] as usize];
            let least = end.saturating_sub(Self::most(taker, more_s));
            bounds.push(self.sums.partition_point(|sum| *sum < least) as u64);
        }
        bounds.reverse();
        bounds
    }

    /// Of all bounds around these that leave each taker with no more than there is room for in that time, those with the least
    /// sum of the squares of times, each as often as its taker is fast.
    fn most_even(&self, bounds: &[u64], more_s: f64) -> Vec<u64> {
        let all = self.sums.len() as u64 - 1;
        let around = |at: usize| {
            let by = if at == self.takers.len() { 0 } else { AROUND };
            (bounds[at].saturating_sub(by)..=(bounds[at] + by).min(all)).collect::<Vec<u64>>()
        };
        // Of each place of a bound the least sum of all before it, and the place of the bound before with which it has that.
        let mut ways: Vec<Vec<(u64, f64, usize)>> = vec![vec![(0, 0.0, 0)]];
        for (at, taker) in self.takers.iter().enumerate() {
            let before = &ways[at];
            let most = Self::most(taker, more_s);
            let best = |end: u64| {
                let begins = before.iter().enumerate().filter(|(_, (begin, ..))| *begin <= end);
                let sums = begins.filter_map(|(from, (begin, sum, _))| {
                    let cost = self.sums[end as usize] - self.sums[*begin as usize];
                    let above = cost as f64 - taker.room;
                    (cost <= most).then_some((end, sum + above * above / taker.speed, from))
                });
                sums.min_by(|one, other| one.1.total_cmp(&other.1))
            };
            ways.push(around(at + 1).into_iter().filter_map(best).collect());
        }
        if ways[self.takers.len()].is_empty() {
            return bounds.to_vec();
        }
        let (mut at, mut found) = (0, Vec::with_capacity(ways.len()));
        for way in ways.iter().rev() {
            let (bound, _, from) = way[at];
            found.push(bound);
            at = from;
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::cut;
    use proptest::prelude::*;

    fn takers(costs: &[u64], speeds: &[f64]) -> Vec<Taker> {
        let (all, speed) = (costs.iter().sum::<u64>() as f64, speeds.iter().sum::<f64>());
        speeds.iter().map(|of| Taker { room: all * of / speed, speed: *of }).collect()
    }

    /// Seconds of the longest piece.
    fn longest(bounds: &[u64], costs: &[u64], speeds: &[f64]) -> f64 {
        let pieces = bounds.windows(2).zip(speeds);
        let seconds = pieces.map(|(piece, speed)| {
            costs[piece[0] as usize..piece[1] as usize].iter().sum::<u64>() as f64 / speed
        });
        seconds.fold(0.0, f64::max)
    }

    #[test]
    fn loads_that_were_measured_a_little_apart_are_shared_out_as_equals() {
        let mut random = crate::balance::random::Random::new(1);
        for (count, pes) in [128, 144].into_iter().flat_map(|count| (4..=32).map(move |pes| (count, pes))) {
            let apart = if count % pes == 0 { 10_000 } else { 5_000 };
            let costs: Vec<u64> = (0..count).map(|_| 100_000 + random.below(apart)).collect();
            let speeds = vec![1.0; pes];
            let found = shortest(&cut(count, &costs, &speeds), &costs, &takers(&costs, &speeds));
            let (few, many) = (count / pes, count.div_ceil(pes));
            let mut counts = found.windows(2).map(|piece| (piece[1] - piece[0]) as usize);
            assert!(counts.all(|count| (few..=many).contains(&count)), "{count} for {pes}: {found:?}");
        }
    }

    proptest! {
        #[test]
        fn no_other_bounds_have_a_shorter_longest_piece(
            costs in prop::collection::vec(0u64..1000, 1..12),
            speeds in prop::collection::vec(0.25f64..4.0, 1..4),
        ) {
            let near = cut(costs.len(), &costs, &speeds);
            let found = shortest(&near, &costs, &takers(&costs, &speeds));
            prop_assert_eq!((found[0], found[speeds.len()]), (0, costs.len() as u64));
            prop_assert!(found.is_sorted());
            // All ways to cut so short a list into at most three pieces.
            let ends = 0..=costs.len() as u64;
            let all = ends.clone().flat_map(|one| ends.clone().map(move |other| [one, other]));
            let best = all.filter(|inner| inner.is_sorted()).map(|inner| {
                let bounds = [&[0], &inner[..speeds.len() - 1], &[costs.len() as u64]].concat();
                longest(&bounds, &costs, &speeds)
            });
            let best = best.fold(f64::INFINITY, f64::min);
            // Times are sums of whole numbers over a speed, which is rounded.
            prop_assert!(longest(&found, &costs, &speeds) <= best + 1e-9 * (1.0 + best), "{found:?}: {best}");
        }

        #[test]
        fn no_other_bounds_with_such_a_longest_piece_are_more_even(
            costs in prop::collection::vec(0u64..1000, 1..=AROUND as usize),
            speeds in prop::collection::vec(0.25f64..4.0, 3),
        ) {
            let near = cut(costs.len(), &costs, &speeds);
            let found = shortest(&near, &costs, &takers(&costs, &speeds));
            let most = longest(&found, &costs, &speeds) * (1.0 + 1e-12);
            let squares = |bounds: &[u64]| -> f64 {
                let pieces = bounds.windows(2).zip(&speeds);
                let squares = pieces.map(|(piece, speed)| {
                    let cost = costs[piece[0] as usize..piece[1] as usize].iter().sum::<u64>() as f64;
                    cost * cost / speed
                });
                squares.sum()
            };
            let end = costs.len() as u64;
            let all = (0..=end).flat_map(|one| (one..=end).map(move |other| [0, one, other, end]));
            let least = all
                .filter(|bounds| longest(bounds, &costs, &speeds) <= most)
                .map(|bounds| squares(&bounds))
                .fold(f64::INFINITY, f64::min);
            prop_assert!(squares(&found) <= least * (1.0 + 1e-9) + 1e-9, "{found:?}: {least}");
        }
    }
}
