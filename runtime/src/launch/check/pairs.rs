//! What the way between each two nodes carries, two by two, so that none disturbs another at its ends: as in a tournament each
//! node has one other in each round.

use serde::Serialize;

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

/// The pairs of each round, of so many.
pub(super) fn rounds(count: usize) -> Vec<Vec<(usize, usize)>> {
    // With an odd count one rests in each round.
    let all = count.next_multiple_of(2);
    let of_round = |round: usize| {
        let seat = |place: usize| if place == 0 { 0 } else { (place - 1 + round) % (all - 1) + 1 };
        let pair = |place: usize| (seat(place), seat(all - 1 - place));
        (0..all / 2).map(pair).filter(|(a, b)| *a < count && *b < count).collect()
    };
    (0..all.saturating_sub(1)).map(of_round).collect()
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
