//! What PEs did between the entry methods that are told of one by one, as far as their counters say it.

use super::critical_path::{Call, Doing};
use std::collections::BTreeMap;

/// Of each PE.
#[derive(Debug, Default)]
pub struct Gaps(BTreeMap<u32, Vec<Gap>>);

/// What a PE did in some time, by its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// From when, nanoseconds.
    pub from: i64,
    /// Until when, nanoseconds.
    pub to: i64,
    /// What it did.
    pub spent: Spent,
}

/// Nanoseconds that a PE spent on different things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// On its core: in entry methods, initialising, or in the runtime.
    pub worked: u64,
    /// Having something to do without a core.
    pub no_core: u64,
    /// Stopped by a quota.
    pub quota: u64,
    /// Asleep because of its `cpu_share`.
    pub throttled: u64,
    /// Without a message.
    pub idle: u64,
}

/// What a PE did in a span while no call, and no waiting for one, is told of.
#[derive(Debug)]
struct Gap {
    from: i64,
    to: i64,
    /// As parts of that time.
    parts: Vec<(Doing, f64)>,
}

impl Gaps {
    /// `spans` are of PEs, those of each in order; `calls` are all that are told of, by their PE and then by when they began.
    #[must_use]
    pub fn of(spans: impl IntoIterator<Item = (u32, Vec<Span>)>, calls: &[Call]) -> Self {
        let mut all: BTreeMap<u32, Vec<Gap>> = BTreeMap::new();
        for (pe, spans) in spans {
            let first = calls.partition_point(|call| call.pe < pe);
            let count = calls[first..].partition_point(|call| call.pe == pe);
            let of_pe = &calls[first..first + count];
            all.entry(pe).or_default().extend(spans.iter().map(|span| Gap::of(span, of_pe)));
        }
        all.values_mut().for_each(|gaps| gaps.sort_by_key(|gap| gap.to));
        Self(all)
    }

    /// What a PE did in a time in which no call of it is told of, with nanoseconds for each.
    #[must_use]
    pub fn did(&self, pe: u32, (from, to): (i64, i64)) -> Vec<(Doing, i64)> {
        let gaps = self.0.get(&pe).map_or(&[][..], Vec::as_slice);
        let mut sums: BTreeMap<Doing, f64> = BTreeMap::new();
        let first = gaps.partition_point(|gap| gap.to <= from);
        for gap in gaps[first..].iter().take_while(|gap| gap.from < to) {
            let common = (gap.to.min(to) - gap.from.max(from)).max(0) as f64;
            gap.parts.iter().for_each(|(doing, part)| *sums.entry(*doing).or_default() += part * common);
        }
        sums.into_iter().map(|(doing, time)| (doing, time.round() as i64)).collect()
    }
}

impl Gap {
    /// `calls` are all that are told of the PE, in order.
    fn of(span: &Span, calls: &[Call]) -> Self {
        let common = |from: i64, to: i64| (to.min(span.to) - from.max(span.from)).max(0).unsigned_abs();
        let first = calls.partition_point(|call| call.to <= span.from);
        let mut known = (0_u64, 0_u64);
        for call in &calls[first..] {
            known.0 += common(call.from, call.to);
            known.1 += common(call.from - call.waited, call.from);
            // The waiting for the next one may have begun in the span.
            if call.from >= span.to {
                break;
            }
        }
        Self { from: span.from, to: span.to, parts: parts(span.spent, known) }
    }
}

/// What a PE did besides running calls for so long, and waiting for these for so long, as parts of that.
fn parts(spent: Spent, (ran, waited): (u64, u64)) -> Vec<(Doing, f64)> {
    let (worked, no_core, quota) = (spent.worked as f64, spent.no_core as f64, spent.quota as f64);
    // A call takes from beginning to end, with what kept its PE from the core in that time; but for a cpu_share PEs sleep between
    // calls.
    let busy = worked + no_core + quota;
    let others = if busy > 0.0 { (busy - ran as f64).max(0.0) / busy } else { 0.0 };
    let all = [
        (Doing::Worked, worked * others),
        (Doing::NoCore, no_core * others),
        (Doing::Quota, quota * others),
        (Doing::Throttled, spent.throttled as f64),
        (Doing::Idle, spent.idle.saturating_sub(waited) as f64),
    ];
    let sum: f64 = all.iter().map(|(_, time)| time).sum();
    let is_some = |(_, time): &(Doing, f64)| sum > 0.0 && *time > 0.0;
    all.into_iter().filter(is_some).map(|(doing, time)| (doing, time / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_took_and_what_was_waited_for_them_is_not_counted_again() {
        let spent = Spent { worked: 40, no_core: 40, throttled: 40, quota: 20, idle: 50 };
        // Half of the hundred in which it was not asleep, or without a message, is told of.
        let [worked, no_core, quota, throttled, idle] = parts(spent, (50, 30))[..] else { panic!("five") };
        let near = |one: (Doing, f64), time: f64| (one.1 - time / 110.0).abs() < 1e-9;
        assert!(
            near(worked, 20.0) && near(no_core, 20.0) && near(quota, 10.0),
            "{worked:?} {no_core:?} {quota:?}"
        );
        assert!(near(throttled, 40.0) && near(idle, 20.0), "{throttled:?} {idle:?}");
        assert_eq!(parts(spent, (500, 500)), [(Doing::Throttled, 1.0)], "more than there was");
        assert_eq!(parts(Spent::default(), (1, 1)), []);
    }

    #[test]
    fn a_time_is_divided_as_the_spans_are_that_it_has_in_common_with() {
        let span =
            |from, to, worked, idle| Span { from, to, spent: Spent { worked, idle, ..Spent::default() } };
        let call = Call { pe: 1, from: 100, to: 150, ..Call::default() };
        let gaps = Gaps::of([(1, vec![span(0, 100, 100, 0), span(100, 200, 75, 25)])], &[call]);
        // Of the second span the call took half, so that a half of the rest was worked, and a half idle.
        assert_eq!(gaps.did(1, (50, 100)), [(Doing::Worked, 50)]);
        assert_eq!(gaps.did(1, (80, 200)), [(Doing::Worked, 70), (Doing::Idle, 50)]);
        assert_eq!((gaps.did(1, (300, 400)), gaps.did(2, (0, 100))), (vec![], vec![]));
    }
}
