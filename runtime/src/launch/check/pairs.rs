//! What the way between each two nodes carries, two by two, so that none disturbs another at its ends: as in a tournament each
//! node has one other in each round.

use super::{Probe, Problem, hear, is_same_host, number};
use crate::config::{ClusterConfig, Transport};
use crate::launch::echo::{self, Order};
use crate::monitor::wire::OutputLine;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// How long a node may take to answer.
const ANSWERS: Duration = Duration::from_secs(2);
/// Of very many nodes not all pairs are measured: no round begins later.
const ALL: Duration = Duration::from_secs(15);

/// The way between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Their names.
    pub nodes: [String; 2],
    /// The shortest round trip of a datagram, seconds.
    pub round_trip_s: f64,
    /// Bytes in a second that datagrams carried to the first and to the second of them; `null` where that was not measured.
    pub bytes_per_s: [Option<f64>; 2],
    /// Whether messages between them go through the memory of their host, and no network.
    pub is_one_host: bool,
}

/// Bytes in a second that come to a probe from others, by their places among the probes; none where nothing came.
pub(super) type Carried = BTreeMap<usize, Option<f64>>;

/// The pairs of each round, of so many.
fn rounds(count: usize) -> Vec<Vec<(usize, usize)>> {
    // With an odd count one rests in each round.
    let all = count.next_multiple_of(2);
    let of_round = |round: usize| {
        let seat = |place: usize| if place == 0 { 0 } else { (place - 1 + round) % (all - 1) + 1 };
        let pair = |place: usize| (seat(place), seat(all - 1 - place));
        (0..all / 2).map(pair).filter(|(a, b)| *a < count && *b < count).collect()
    };
    (0..all.saturating_sub(1)).map(of_round).collect()
}

/// Has all who reach each other over the network measure what comes from the other.
pub(super) async fn measure(
    config: &ClusterConfig,
    probes: &mut [Probe],
    lines: &mut UnboundedReceiver<OutputLine>,
) {
    let begun = Instant::now();
    for round in rounds(probes.len()) {
        let back: Vec<_> = round.iter().map(|&(a, b)| (b, a)).collect();
        for asked in [round, back] {
            if begun.elapsed() > ALL {
                return;
            }
            let mut asking = Vec::new();
            for (to, from) in asked {
                let way = probes[to]
                    .way_to(from)
                    .filter(|_| !probes[to].is_silent && !shares_memory(config, probes, to, from));
                let Some(way) = way else { continue };
                let order = Order { from: probes[from].ready().addr, way };
                let Ok(words) = order.to_line() else { continue };
                if probes[to].started.tell(words.as_bytes()).await.is_ok() {
                    asking.push((to, from));
                }
            }
            let mut heard = hear(lines, asking.len(), ANSWERS, echo::carried_from_line).await;
            for (to, from) in asking {
                match heard.remove(&number(probes[to].at).0) {
                    Some(rate) => drop(probes[to].carried.insert(from, rate)),
                    None => probes[to].is_silent = true,
                }
            }
        }
    }
}

fn shares_memory(config: &ClusterConfig, probes: &[Probe], one: usize, other: usize) -> bool {
    let node = |place: usize| &config.nodes[probes[place].at];
    config.network.transport == Transport::Auto && is_same_host(node(one), node(other))
}

/// What was found, pair by pair in the order of the nodes file, of those that reach each other.
pub(super) fn found(config: &ClusterConfig, probes: &[Probe]) -> Vec<Pair> {
    let pairs = (0..probes.len()).flat_map(|one| (one + 1..probes.len()).map(move |other| (one, other)));
    let pair = |(one, other): (usize, usize)| {
        let way = probes[one].way_to(other)?.min(probes[other].way_to(one)?);
        let to = |to: usize, from: usize| probes[to].carried.get(&from).copied().flatten();
        Some(Pair {
            nodes: [one, other].map(|place| config.nodes[probes[place].at].name.clone()),
            round_trip_s: way.as_secs_f64(),
            bytes_per_s: [to(one, other), to(other, one)],
            is_one_host: shares_memory(config, probes, one, other),
        })
    };
    pairs.filter_map(pair).collect()
}

/// What there is to warn of: single datagrams come through, but no train of them.
pub(super) fn warnings(config: &ClusterConfig, probes: &[Probe], probe: &Probe) -> Vec<Problem> {
    let lost = probe.carried.iter().filter(|(_, rate)| rate.is_none());
    let names: Vec<String> =
        lost.map(|(from, _)| format!("{:?}", config.nodes[probes[*from].at].name)).collect();
    let reason = format!("single datagrams from {} come here, but not many at once", names.join(", "));
    let mend = "look for what drops them on the way; `run netbench` shows what messages get";
    if names.is_empty() { Vec::new() } else { vec![Problem::new(reason, mend)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_meets_each_other_once_and_nobody_two_in_a_round() {
        for count in 0..12 {
            let mut met = BTreeSet::new();
            for round in rounds(count) {
                let busy: Vec<usize> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
                assert_eq!(busy.iter().collect::<BTreeSet<_>>().len(), busy.len(), "{count}: {round:?}");
                met.extend(round.iter().map(|(a, b)| (*a.min(b), *a.max(b))));
            }
            assert_eq!(met.len(), count * count.saturating_sub(1) / 2, "{count}");
        }
    }
}
