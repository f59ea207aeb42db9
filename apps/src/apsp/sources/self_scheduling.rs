//! Items that nobody owns beforehand: parts ask for the next batch when they have done one.
//!
//! Good where an item needs no data but what every part has anyway, such as a source of shortest paths. A batch is a
//! part's share by speed of a fraction of what is left, so that few messages are needed at first, and at the end
//! nobody waits for more than a small batch. What speeds promise too much shows by itself: who is slower than it was
//! thought asks less often.
//!
//! Source: C. D. Polychronopoulos and D. J. Kuck, "Guided self-scheduling", 1987; weighted by speed as by
//! S. F. Hummel and others, "Load-sharing in heterogeneous systems via weighted factoring", 1996.

use std::ops::Range;

/// Of what is left, a part gets its share of one part in so many.
const FRACTION: f64 = 4.0;

/// What has been handed out.
#[derive(Clone, Debug)]
pub(super) struct SelfScheduling {
    next: u64,
    end: u64,
    shares: Vec<f64>,
    most: u64,
}

impl SelfScheduling {
    /// These items, for parts of these speeds, in batches of at most `most` and at least one. A speed that is no
    /// positive, finite number counts as a very small one: its part gets single items.
    pub(super) fn new(items: Range<u64>, speeds: &[f64], most: u64) -> Self {
        let sane = |speed: &f64| if speed.is_finite() && *speed > 0.0 { *speed } else { 0.0 };
        let total: f64 = speeds.iter().map(sane).sum();
        let shares = speeds.iter().map(|speed| sane(speed) / total.max(f64::MIN_POSITIVE)).collect();
        Self { next: items.start, end: items.end.max(items.start), shares, most: most.max(1) }
    }

    /// How many items have not been handed out.
    pub(super) fn left(&self) -> u64 {
        self.end - self.next
    }

    /// The next batch of a part; `None` when all items have been handed out.
    pub(super) fn next(&mut self, part: usize) -> Option<Range<u64>> {
        let left = self.left();
        let share = self.shares.get(part).copied().unwrap_or(0.0);
        let batch = ((left as f64 * share / FRACTION) as u64).clamp(1, self.most).min(left);
        let begin = self.next;
        self.next += batch;
        (batch > 0).then_some(begin..self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn batches_are_by_speed_and_get_smaller() {
        let mut sources = SelfScheduling::new(0..1000, &[1.0, 0.25], 150);
        let batches = [1, 0, 0, 0].map(|part| sources.next(part));
        assert_eq!(batches, [0..50, 50..200, 200..350, 350..480].map(Some));
    }

    /// Parts that really have these rates take batches, two at first and one for each that is done: when each ends,
    /// and what each has done.
    fn run(items: u64, promised: &[f64], rates: &[f64]) -> (Vec<f64>, Vec<u64>) {
        let mut waiting = SelfScheduling::new(0..items, promised, u64::MAX);
        let mut queues = vec![Vec::new(); rates.len()];
        for _ in 0..2 {
            for (part, queue) in queues.iter_mut().enumerate() {
                queue.extend(waiting.next(part));
            }
        }
        let (mut now, mut done) = (vec![0.0; rates.len()], vec![0; rates.len()]);
        let after = |part: usize, now: &[f64], queues: &[Vec<Range<u64>>]| {
            queues[part].first().map(|batch| now[part] + (batch.end - batch.start) as f64 / rates[part])
        };
        let next = |now: &[f64], queues: &[Vec<Range<u64>>]| {
            let ends = (0..rates.len()).filter_map(|part| Some((after(part, now, queues)?, part)));
            ends.min_by(|one, other| one.0.total_cmp(&other.0))
        };
        while let Some((end, part)) = next(&now, &queues) {
            now[part] = end;
            let batch = queues[part].remove(0);
            done[part] += batch.end - batch.start;
            queues[part].extend(waiting.next(part));
        }
        (now, done)
    }

    #[test]
    fn parts_end_together_although_speeds_were_wrong() {
        let (ends, done) = run(10_000, &[1.0, 0.9, 0.55, 0.55], &[100.0, 80.0, 40.0, 70.0]);
        let least = 10_000.0 / 290.0;
        assert!(ends.iter().all(|end| (0.995 * least..1.005 * least).contains(end)), "{ends:?} {least}");
        assert_eq!(done.iter().sum::<u64>(), 10_000);
    }

    #[test]
    fn nothing_is_handed_out_of_nothing_and_nobody_gets_nothing() {
        assert_eq!(SelfScheduling::new(5..5, &[1.0], 3).next(0), None);
        let mut one = SelfScheduling::new(5..6, &[f64::NAN, 1.0], 0);
        assert_eq!((one.next(0), one.next(1)), (Some(5..6), None));
    }

    proptest! {
        #[test]
        fn every_item_is_handed_out_once(
            items in 0u64..3000, most in 0u64..400, speeds in prop::collection::vec(0.05f64..2.0, 1..9), seed in 0usize..97,
        ) {
            let mut waiting = SelfScheduling::new(7..7 + items, &speeds, most);
            let (mut next, mut turn) = (7, seed);
            while let Some(batch) = waiting.next(turn % speeds.len()) {
                prop_assert!(batch.start == next && batch.end > next && batch.end - next <= most.max(1));
                next = batch.end;
                turn = turn.wrapping_mul(31).wrapping_add(seed);
            }
            prop_assert_eq!((next, waiting.left()), (7 + items, 0));
        }
    }
}
