//! What PEs did between the entry methods that are told of one by one, as far as their counters say it.

use super::series::{PeSeries, Series, Span, Times};
use runtime::monitor::critical_path::{Call, Doing};
use std::collections::BTreeMap;

/// Of each PE.
pub(super) struct Gaps(BTreeMap<u32, Vec<Gap>>);

/// What a PE did between two snapshots while no call, and no waiting for one, is told of.
struct Gap {
    from: i64,
    to: i64,
    /// As parts of that time.
    parts: Vec<(Doing, f64)>,
}

impl Gaps {
    pub(super) fn of(series: &Series<'_>) -> Self {
        let mut all: BTreeMap<u32, Vec<Gap>> = BTreeMap::new();
        for pe in series.nodes.iter().flat_map(|node| &node.pes) {
            let calls = &series.sampled.calls;
            let first = calls.partition_point(|call| call.pe < pe.pe);
            let count = calls[first..].partition_point(|call| call.pe == pe.pe);
            all.entry(pe.pe).or_default().extend(gaps(pe, &calls[first..first + count]));
        }
        all.values_mut().for_each(|gaps| gaps.sort_by_key(|gap| gap.to));
        Self(all)
    }

    /// What a PE did in a time in which no call of it is told of, with nanoseconds for each.
    pub(super) fn did(&self, pe: u32, (from, to): (i64, i64)) -> Vec<(Doing, i64)> {
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

/// `calls` are all that are told of that PE, in order.
fn gaps(pe: &PeSeries<'_>, calls: &[Call]) -> Vec<Gap> {
    let gap = |span: &Span<'_>| {
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
        Gap { from: span.from, to: span.to, parts: parts(span.spent, known) }
    };
    pe.spans.iter().map(gap).collect()
}

/// What a PE did besides running calls for so long, and waiting for these for so long, as parts of that.
fn parts(spent: Times, (ran, waited): (u64, u64)) -> Vec<(Doing, f64)> {
    let worked = spent.compute.saturating_add(spent.init).saturating_add(spent.overhead) as f64;
    let (no_core, quota) = (spent.core_wait as f64, spent.quota as f64);
    // A call takes from beginning to end, with what kept its PE from the core in that time; but for a cpu_share PEs sleep between
    // calls.
    let busy = worked + no_core + quota;
    let others = if busy > 0.0 { (busy - ran as f64).max(0.0) / busy } else { 0.0 };
    let all = [
        (Doing::Worked, worked * others),
        (Doing::NoCore, no_core * others),
        (Doing::Quota, quota * others),
        (Doing::Throttled, spent.throttled.saturating_sub(spent.quota) as f64),
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
        let spent = Times {
            compute: 30,
            overhead: 10,
            core_wait: 40,
            throttled: 60,
            quota: 20,
            idle: 50,
            ..Times::default()
        };
        // Half of the hundred in which it was not asleep, or without a message, is told of.
        let [worked, no_core, quota, throttled, idle] = parts(spent, (50, 30))[..] else { panic!("five") };
        let near = |one: (Doing, f64), time: f64| (one.1 - time / 110.0).abs() < 1e-9;
        assert!(
            near(worked, 20.0) && near(no_core, 20.0) && near(quota, 10.0),
            "{worked:?} {no_core:?} {quota:?}"
        );
        assert!(near(throttled, 40.0) && near(idle, 20.0), "{throttled:?} {idle:?}");
        assert_eq!(parts(spent, (500, 500)), [(Doing::Throttled, 1.0)], "more than there was");
        assert_eq!(parts(Times::default(), (1, 1)), []);
    }
}
