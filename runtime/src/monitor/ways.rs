//! How long messages are on their way between nodes, of those that are [followed](super::samples): so a slow link is known by
//! what it does to the run, whatever it consists of.
//!
//! A message is on its way from when it was sent until what it started began; only those count for which a PE had waited, so
//! that none had to queue. The clocks of two nodes may be apart by more than that: what one direction seems to take longer for
//! it, the other seems to take shorter, and the mean of both is right, as for clocks over a network (D. Mills, RFC 5905).

use super::critical_path::Call;
use std::collections::{BTreeMap, HashMap};

/// From so many messages in each direction on a way is known.
const MESSAGES_MIN: usize = 3;
/// A way that takes so many times as long as the shortest one, and at least this, is slow.
const SLOW_TIMES: i64 = 4;
const SLOW_MIN_NS: i64 = 300_000;

/// Messages between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The nodes, that with the lower number first.
    pub nodes: (u16, u16),
    /// How long one takes: the median of each direction, and the mean of both. Nanoseconds, at least 0.
    pub ns: i64,
    /// How long one is, of those that count: bytes, the median of both directions.
    pub bytes: u64,
    /// Of how many messages that is known.
    pub messages: usize,
}

/// The ways between nodes that are known, the slowest first. `sent` are the times at which messages left, by their PE and
/// number; `node` says where a PE is.
#[must_use]
pub fn ways<'a>(
    calls: impl IntoIterator<Item = &'a Call>,
    sent: &HashMap<(u32, u32), i64>,
    node: impl Fn(u32) -> Option<u16>,
) -> Vec<Way> {
    let mut by_direction: BTreeMap<(u16, u16), Vec<(i64, u64)>> = BTreeMap::new();
    for call in calls.into_iter().filter(|call| call.waited > 0) {
        let Some(cause) = call.cause else { continue };
        let Some(left) = sent.get(&(cause.pe, cause.number)) else { continue };
        if let (Some(from), Some(to)) = (node(cause.pe), node(call.pe))
            && from != to
        {
            by_direction.entry((from, to)).or_default().push((call.from.saturating_sub(*left), cause.bytes));
        }
    }
    let mut ways = Vec::new();
    for ((from, to), there) in by_direction.iter().filter(|((from, to), _)| from < to) {
        let Some(back) = by_direction.get(&(*to, *from)) else { continue };
        if there.len().min(back.len()) < MESSAGES_MIN {
            continue;
        }
        let time = |all: &[(i64, u64)]| median(all.iter().map(|(took, _)| *took).collect()) / 2;
        let bytes = there.iter().chain(back).map(|(_, bytes)| *bytes).collect();
        ways.push(Way {
            nodes: (*from, *to),
            ns: (time(there).saturating_add(time(back))).max(0),
            bytes: median(bytes),
            messages: there.len() + back.len(),
        });
    }
    ways.sort_by_key(|way| std::cmp::Reverse(way.ns));
    ways
}

/// The part, 0 to 1, of the waiting of each PE in which the message that ended it was on its way from another node: as long as
/// messages take there as a rule, whatever the clocks of both show. Only of PEs where that is known of most of the waiting of
/// which it is known who ended it.
#[must_use]
pub fn parts_on_way<'a>(
    calls: impl IntoIterator<Item = &'a Call>,
    ways: &[Way],
    node: impl Fn(u32) -> Option<u16>,
) -> BTreeMap<u32, f64> {
    let took: HashMap<(u16, u16), i64> = ways.iter().map(|way| (way.nodes, way.ns)).collect();
    let mut sums: BTreeMap<u32, Waited> = BTreeMap::new();
    for call in calls.into_iter().filter(|call| call.waited > 0) {
        let Some(cause) = call.cause else { continue };
        let sum = sums.entry(call.pe).or_default();
        let add = |sum: &mut i64, ns: i64| *sum = sum.saturating_add(ns);
        match (node(cause.pe), node(call.pe)) {
            (Some(from), Some(to)) if from != to => match took.get(&(from.min(to), from.max(to))) {
                Some(took) => {
                    add(&mut sum.known, call.waited);
                    add(&mut sum.on_way, call.waited.min(*took));
                }
                None => add(&mut sum.unknown, call.waited),
            },
            _ => add(&mut sum.known, call.waited),
        }
    }
    let known = sums.into_iter().filter(|(_, sum)| sum.known > sum.unknown);
    known.map(|(pe, sum)| (pe, sum.on_way as f64 / sum.known as f64)).collect()
}

/// How long a PE waited, nanoseconds.
#[derive(Default)]
struct Waited {
    /// For what came by a way that is known, or by none.
    known: i64,
    /// For so much of that it was on its way.
    on_way: i64,
    /// For what came by a way of which nothing is known.
    unknown: i64,
}

/// What is slow among [`ways`], in words with the names of nodes: that of one node to all others if it is that, else the
/// slowest way. `None` if none takes much longer than another one.
#[must_use]
pub fn slow(ways: &[Way], name: impl Fn(u16) -> String) -> Option<String> {
    let (slowest, fastest) = (ways.first()?, ways.last()?);
    let limit = fastest.ns.saturating_mul(SLOW_TIMES).max(SLOW_MIN_NS);
    let slow = || ways.iter().filter(|way| way.ns >= limit);
    slow().next()?;
    let has = |way: &Way, node: u16| way.nodes.0 == node || way.nodes.1 == node;
    // It may be the link of one node that is slow, and that is used for all others.
    let of_all = [slowest.nodes.0, slowest.nodes.1].into_iter().find(|node| {
        let of_it = ways.iter().filter(|way| has(way, *node)).count();
        of_it > 1 && slow().count() == of_it && slow().all(|way| has(way, *node))
    });
    let mean = |of: &mut dyn Iterator<Item = &Way>| {
        let (sum, count) = of.fold((0_i64, 0), |(sum, count), way| (sum.saturating_add(way.ns), count + 1));
        sum / count.max(1)
    };
    let (between, took) = match of_all {
        Some(node) => (format!("{} and others", name(node)), mean(&mut slow())),
        None => (format!("{} and {}", name(slowest.nodes.0), name(slowest.nodes.1)), slowest.ns),
    };
    let rest = mean(&mut ways.iter().filter(|way| way.ns < limit));
    let length = if slowest.bytes >= 10_000 {
        format!(" of {:.2} MB", slowest.bytes as f64 / 1e6)
    } else {
        String::new()
    };
    Some(format!(
        "a message{length} between {between} is on its way for {}, between the rest for {}",
        milliseconds(took),
        milliseconds(rest)
    ))
}

/// [What is slow](slow), or else how long messages are on their way anywhere. `None` where no way is known.
#[must_use]
pub fn told(ways: &[Way], name: impl Fn(u16) -> String) -> Option<String> {
    let middle = ways.get(ways.len() / 2)?;
    let anywhere = || {
        let took = milliseconds(middle.ns);
        match ways {
            [Way { nodes: (one, other), .. }] => {
                format!("a message between {} and {} is on its way for {took}", name(*one), name(*other))
            }
            _ => format!("a message between nodes is on its way for {took}, wherever it goes"),
        }
    };
    Some(slow(ways, &name).unwrap_or_else(anywhere))
}

/// A time in milliseconds, with its unit.
fn milliseconds(ns: i64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

/// The one in the middle, or 0 of none.
fn median<T: Ord + Copy + Default>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::samples::Cause;
    use crate::proto::sim::Random;

    const MS: i64 = 1_000_000;

    /// Messages between nodes that have one PE each, of which each direction takes so long; the clock of node `n` is ahead
    /// by `n` milliseconds.
    fn known(took: impl Fn(u32, u32) -> i64) -> Vec<Way> {
        let (mut calls, mut sent, mut random) = (Vec::new(), HashMap::new(), Random::new(7));
        for number in 0..100 {
            for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
                let left = i64::from(number) * 100 * MS;
                // One in five is late, or was sent to who was busy.
                let late = if random.bits() % 5 == 0 { 50 * MS } else { 0 };
                let at = left + took(from, to) + late + (i64::from(to) - i64::from(from)) * MS;
                let number = number * 10 + to;
                sent.insert((from, number), left);
                let cause = Some(Cause { pe: from, number, bytes: 100 });
                calls.push(Call { pe: to, from: at, to: at + 1, waited: 1, cause, ..Call::default() });
                let queued = Call { waited: 0, from: at + 900 * MS, ..calls[calls.len() - 1] };
                calls.push(queued);
            }
        }
        ways(&calls, &sent, |pe| u16::try_from(pe + 1).ok())
    }

    fn said(took: impl Fn(u32, u32) -> i64) -> Option<String> {
        slow(&known(took), |node| ["", "a", "b", "c"][usize::from(node)].into())
    }

    #[test]
    fn the_slow_link_is_named_whatever_the_clocks_show() {
        let of_c = |from: u32, to: u32| if from == 2 || to == 2 { 10 * MS } else { MS / 5 };
        let ways = known(of_c);
        assert_eq!((ways.len(), ways[0].ns, ways[2].ns), (3, 10 * MS, MS / 5), "{ways:?}");
        let expected = "a message between c and others is on its way for 10 ms, between the rest for 0.20 ms";
        assert_eq!(said(of_c).as_deref(), Some(expected));
        let of_two = |from: u32, to: u32| if from + to == 1 { 2 * MS } else { MS / 5 };
        let expected = "a message between a and b is on its way for 2.00 ms, between the rest for 0.20 ms";
        assert_eq!(said(of_two).as_deref(), Some(expected));
    }

    #[test]
    fn of_waiting_that_part_is_the_network_in_which_the_message_was_on_its_way() {
        let way = |nodes, ns| Way { nodes, ns, bytes: 100, messages: 10 };
        let ways = [way((1, 2), 10 * MS), way((1, 3), MS)];
        let call = |pe: u32, from: Option<u32>, waited| {
            let cause = from.map(|pe| Cause { pe, number: 1, bytes: 100 });
            Call { pe, waited, cause, ..Call::default() }
        };
        let calls = [
            call(0, Some(1), 40 * MS),
            call(0, Some(2), 5 * MS),
            // For that it did not wait, that ended nothing which is known, and that came from the same node or the driver.
            call(0, Some(1), 0),
            call(0, None, 50 * MS),
            call(0, Some(0), 4 * MS),
            call(0, Some(u32::MAX), 6 * MS),
            // It came sooner than messages do.
            call(1, Some(0), 3 * MS),
            // Nothing is known of what ended that, or of the way there.
            call(2, None, MS),
            call(2, Some(1), 8 * MS),
            call(2, Some(2), 3 * MS),
        ];
        let node = |pe: u32| u16::try_from(pe).ok().filter(|pe| *pe < 3).map(|pe| pe + 1);
        let parts = parts_on_way(&calls, &ways, node);
        assert_eq!(parts, BTreeMap::from([(0, 11.0 / 55.0), (1, 1.0)]));
    }

    #[test]
    fn where_all_are_alike_or_quick_none_is_slow() {
        assert_eq!(said(|_, _| 10 * MS), None);
        let name = |node: u16| ["", "a", "b", "c"][usize::from(node)].to_string();
        let anywhere = told(&known(|_, _| 10 * MS), name);
        assert_eq!(
            anywhere.as_deref(),
            Some("a message between nodes is on its way for 10 ms, wherever it goes")
        );
        let of_two = told(&known(|_, _| 10 * MS)[..1], name).unwrap();
        assert!(
            of_two.starts_with("a message between ") && of_two.ends_with(" is on its way for 10 ms"),
            "{of_two}"
        );
        assert_eq!(told(&[], name), None);
        assert_eq!(said(|from, _| if from == 2 { 2 * MS } else { MS }), None);
        assert_eq!(said(|from, to| if from + to == 1 { MS / 100 } else { MS / 5 }), None, "shared memory");
        assert_eq!(slow(&[], |_| String::new()), None);
    }

    #[test]
    fn what_is_known_of_one_direction_or_of_few_messages_says_nothing_and_no_time_is_too_long() {
        let sent: HashMap<(u32, u32), i64> =
            (0..4).flat_map(|n| [((0, n), i64::MIN), ((1, n), i64::MAX)]).collect();
        let call = |pe: u32, number: u32| {
            let cause = Some(Cause { pe: 1 - pe, number, bytes: u64::MAX });
            Call { pe, from: i64::MAX, to: i64::MAX, waited: 1, cause, ..Call::default() }
        };
        let one_way: Vec<Call> = (0..4).map(|number| call(1, number)).collect();
        let of = |calls: &[Call]| ways(calls, &sent, |pe| u16::try_from(pe).ok());
        assert_eq!(of(&one_way), []);
        let both = |count| (0..count).flat_map(|number| [call(0, number), call(1, number)]);
        assert_eq!(of(&both(2).collect::<Vec<_>>()), []);
        assert_eq!(of(&both(4).collect::<Vec<_>>())[0].messages, 8);
    }
}
