//! How long a program will take on machines of which only a few figures are known: speeds, latencies, bandwidths.
//!
//! A run is reckoned as phases, in the manner of bulk-synchronous computing (L. G. Valiant, "A bridging model for
//! parallel computation", CACM 33, 1990): in each phase every PE has its work, every node bytes to send and receive, and
//! some messages have to follow one another. All wait for the PE that is last. What the model leaves out is stated by
//! what it has: there is no contention on the network but at the nodes' own connections, and speeds stay as measured.

use crate::machines::{Bytes, Link, Machines};

/// A part of a run that is gone through some times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    /// How often.
    pub times: f64,
    /// Units of work of each PE, each time.
    pub work: Vec<f64>,
    /// What each node exchanges with others, each time; none for nothing.
    pub bytes: Vec<Bytes>,
    /// So many messages follow one another, each time.
    pub rounds: f64,
    /// Whether messages are under way while PEs work, or work waits for them.
    pub is_overlapped: bool,
    /// Seconds of work and messages that follow one another through several PEs, whatever others do meanwhile, each time:
    /// it does not take less.
    pub chain_s: f64,
    /// Whether it is a guess how often: nobody has run it, and nothing of it could be tried.
    pub is_guess: bool,
}

/// How long a run takes, and what each PE does meanwhile; the rest of the time it waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reckoned {
    /// Seconds in all.
    pub seconds: f64,
    /// By number.
    pub pes: Vec<Busy>,
    /// Whether the seconds rest on a guess. What machines are to each other does not.
    pub is_guess: bool,
}

/// What a PE spends its time on, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// The work.
    pub work_s: f64,
    /// Bytes that its node sends and receives.
    pub bytes_s: f64,
}

impl Busy {
    fn all_s(self) -> f64 {
        self.work_s + self.bytes_s
    }
}

impl Machines {
    /// The longest way between two nodes, or of a single node between its PEs.
    #[must_use]
    pub fn latency_s(&self) -> f64 {
        self.between().map(|link| link.latency_s).fold(0.0, f64::max)
    }

    /// How long a run of these phases takes here.
    #[must_use]
    pub fn reckon(&self, phases: &[Phase]) -> Reckoned {
        let is_guess = phases.iter().any(|phase| phase.is_guess);
        let mut all = Reckoned { seconds: 0.0, pes: vec![Busy::default(); self.rates().len()], is_guess };
        for phase in phases {
            let busy = self.busy(phase);
            let longest = busy.iter().map(|pe| pe.all_s()).fold(0.0, f64::max);
            let network = phase.rounds * self.latency_s() + self.transfer_s(&phase.bytes);
            let each = if phase.is_overlapped { longest.max(network) } else { longest + network };
            all.seconds += phase.times * each.max(phase.chain_s);
            for (sum, pe) in all.pes.iter_mut().zip(busy) {
                sum.work_s += phase.times * pe.work_s;
                sum.bytes_s += phase.times * pe.bytes_s;
            }
        }
        all
    }

    /// What each PE does in a phase, once.
    fn busy(&self, phase: &Phase) -> Vec<Busy> {
        let pes = self.rates().into_iter().zip(self.work_of_bytes(&phase.bytes)).enumerate();
        pes.map(|(pe, (rate, bytes))| {
            let work = phase.work.get(pe).unwrap_or(&0.0);
            Busy { work_s: work / rate, bytes_s: bytes / rate }
        })
        .collect()
    }

    /// How long the busiest connection takes: each direction by itself, at the rate of the node's slowest link.
    fn transfer_s(&self, bytes: &[Bytes]) -> f64 {
        let of_node = |(at, bytes): (usize, &Bytes)| {
            let rate = self.from(at).map(|link| link.bytes_per_s).fold(f64::INFINITY, f64::min);
            bytes.sent.max(bytes.received) / rate
        };
        bytes.iter().enumerate().map(of_node).filter(|seconds| seconds.is_finite()).fold(0.0, f64::max)
    }

    /// Links from a node to the others.
    fn from(&self, node: usize) -> impl Iterator<Item = &Link> {
        let row = self.links.iter().skip(node * self.nodes.len()).take(self.nodes.len());
        row.enumerate().filter(move |(other, _)| *other != node).map(|(_, link)| link)
    }

    fn between(&self) -> impl Iterator<Item = &Link> {
        let count = self.nodes.len();
        let is_between = move |at: usize| count == 1 || at / count != at % count;
        self.links.iter().enumerate().filter(move |(at, _)| is_between(*at)).map(|(_, link)| link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn machines(nodes: &[(&str, &[f64])], link: Link) -> Machines {
        let rates: Vec<&[f64]> = nodes.iter().map(|(_, rates)| *rates).collect();
        let mut machines = Machines::on_one_host(&rates, link);
        machines.nodes.iter_mut().zip(nodes).for_each(|(node, (host, _))| node.host = (*host).into());
        machines
    }

    const LAN: Link = Link { latency_s: 1e-4, bytes_per_s: 1e8 };

    #[test]
    fn work_alone_takes_as_long_as_the_slowest_pe() {
        let two = machines(&[("a", &[10.0, 10.0]), ("b", &[5.0])], LAN);
        let even = Phase { times: 3.0, work: vec![20.0, 20.0, 10.0], ..Phase::default() };
        let busy = Busy { work_s: 6.0, bytes_s: 0.0 };
        assert_eq!(two.reckon(&[even]), Reckoned { seconds: 6.0, pes: vec![busy; 3], is_guess: false });
        let uneven = Phase { times: 1.0, work: vec![10.0, 10.0, 30.0], ..Phase::default() };
        let reckoned = two.reckon(&[uneven]);
        assert_eq!((reckoned.seconds, reckoned.pes[0].work_s, reckoned.pes[2].work_s), (6.0, 1.0, 6.0));
    }

    #[test]
    fn what_is_overlapped_is_waited_for_only_if_it_takes_longer_than_the_work() {
        let two = machines(&[("a", &[1.0]), ("b", &[1.0])], LAN);
        let bytes = vec![Bytes { sent: 1e8, received: 2e8 }; 2];
        let seconds = |work: f64, is_overlapped| {
            let (bytes, work) = (bytes.clone(), vec![work; 2]);
            let phase = Phase {
                times: 1.0,
                work,
                bytes,
                rounds: 100.0,
                is_overlapped,
                chain_s: 0.5,
                ..Phase::default()
            };
            let chained = Phase { chain_s: 100.0, ..phase.clone() };
            assert_eq!(two.reckon(&[chained]).seconds, 100.0);
            two.reckon(&[phase]).seconds
        };
        // 2e8 B at 1e8 B/s and 100 latencies take 2.01 s; sending and receiving cost the PEs 0.32 s.
        assert!((seconds(9.0, true) - 9.32).abs() < 1e-9);
        assert!((seconds(9.0, false) - 11.33).abs() < 1e-9);
        assert!((seconds(1.0, true) - 2.01).abs() < 1e-9);
    }

    #[test]
    fn one_node_pays_its_own_latency_and_no_bytes() {
        let one = machines(&[("a", &[1.0, 1.0])], Link { latency_s: 1e-6, bytes_per_s: 1e10 });
        let phase = Phase { times: 10.0, rounds: 2.0, bytes: vec![Bytes::default()], ..Phase::default() };
        assert!((one.reckon(&[phase]).seconds - 2e-5).abs() < 1e-12);
    }

    #[test]
    fn bytes_cost_more_between_hosts_and_on_slow_nodes() {
        let bytes = vec![Bytes { sent: 1e9, received: 1e9 }; 2];
        let phase = [Phase { times: 1.0, work: vec![0.0; 2], bytes, ..Phase::default() }];
        let cost = |hosts: [&str; 2], slow: f64| {
            let two = machines(&[(hosts[0], &[1.0]), (hosts[1], &[slow])], LAN);
            two.reckon(&phase).pes[1].bytes_s
        };
        assert!((cost(["a", "a"], 1.0) - 1.0).abs() < 1e-9);
        assert!((cost(["a", "b"], 1.0) - 2.6).abs() < 1e-9);
        assert!((cost(["a", "b"], 0.5) - 5.2).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn nothing_beats_the_ideal_and_no_pe_is_busy_for_longer_than_the_run(
            nodes in prop::collection::vec(prop::collection::vec(0.1f64..100.0, 1..4), 1..5),
            work in prop::collection::vec(0.0f64..1e4, 16),
            sent in 0.0f64..1e9,
            rounds in 0.0f64..1e3,
            is_overlapped in any::<bool>(),
        ) {
            let named: Vec<(&str, &[f64])> = nodes.iter().map(|rates| ("h", rates.as_slice())).collect();
            let all = machines(&named, LAN);
            let work = work[..all.rates().len()].to_vec();
            let ideal = 2.0 * work.iter().sum::<f64>() / all.rates().iter().sum::<f64>();
            let bytes = vec![Bytes { sent, received: sent }; nodes.len()];
            let phase = Phase { times: 2.0, work, bytes, rounds, is_overlapped, ..Phase::default() };
            let Reckoned { seconds, pes, .. } = all.reckon(&[phase]);
            prop_assert!(seconds >= ideal * (1.0 - 1e-9), "{seconds} {ideal}");
            prop_assert!(pes.iter().all(|pe| pe.all_s() <= seconds * (1.0 + 1e-9)), "{seconds} {pes:?}");
        }
    }
}
