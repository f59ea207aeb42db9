//! How long a program will take on machines of which only a few figures are known: speeds, latencies, bandwidths.
//!
//! A run is reckoned as phases, in the manner of bulk-synchronous computing (L. G. Valiant, "A bridging model for
//! parallel computation", CACM 33, 1990): in each phase every PE has its work, every node bytes to send and receive, and
//! some messages have to follow one another. All wait for the PE that is last. What the model leaves out is stated by
//! what it has: there is no contention on the network but at the nodes' own connections, and speeds stay as measured.

use std::ops::Range;

/// A node, as far as a cost model knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name in the nodes file.
    pub name: String,
    /// Nodes of the same host exchange bytes faster.
    pub host: String,
    /// Units of work per second of each of its PEs, when all of them work.
    pub rates: Vec<f64>,
}

/// A message of `s` bytes takes about `latency_s + s / bytes_per_s` from one node to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Seconds of an empty message, one way.
    pub latency_s: f64,
    /// Bytes per second of long ones.
    pub bytes_per_s: f64,
}

/// The processor time of a byte, in seconds of the fastest PE: on a node without a spare core it is taken from the
/// work, and a slow PE takes as much longer for it as for the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByteTime {
    /// Of sending it.
    pub sent: f64,
    /// Of receiving it.
    pub received: f64,
}

/// Between hosts: measured over a link of 1 Gbit/s in frames of 1,500 bytes, encryption included, on three nodes at
/// once (2.6 and 0.6 ns fit all three), and with less load.
pub const BETWEEN_HOSTS: ByteTime = ByteTime { sent: 2.0e-9, received: 0.6e-9 };
/// Inside one host, where datagrams may be long.
pub const INSIDE_A_HOST: ByteTime = ByteTime { sent: 0.5e-9, received: 0.5e-9 };

/// Bytes that a node exchanges with others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    /// To all other nodes together.
    pub sent: f64,
    /// From all of them.
    pub received: f64,
}

/// The nodes of a mix and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Machines {
    /// In the order of the nodes file; their PEs are numbered through.
    pub nodes: Vec<Machine>,
    /// From node `i` to node `j` at `i * nodes.len() + j`; with `i == j` between two PEs of the node.
    pub links: Vec<Link>,
}

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
}

/// How long a run takes, and what each PE does meanwhile; the rest of the time it waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reckoned {
    /// Seconds in all.
    pub seconds: f64,
    /// By number.
    pub pes: Vec<Busy>,
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
    /// Nodes `n0`, `n1` and so on of one host with these rates, the same link between any two.
    #[must_use]
    pub fn on_one_host(rates: &[&[f64]], link: Link) -> Self {
        let machine = |(at, rates): (usize, &&[f64])| Machine {
            name: format!("n{at}"),
            host: "host".into(),
            rates: rates.to_vec(),
        };
        let nodes: Vec<Machine> = rates.iter().enumerate().map(machine).collect();
        Self { links: vec![link; nodes.len() * nodes.len()], nodes }
    }

    /// The part of each PE of so much work, if all end together.
    #[must_use]
    pub fn divided_by_speed(&self, work: f64) -> Vec<f64> {
        let rates = self.rates();
        let total: f64 = rates.iter().sum();
        rates.iter().map(|rate| rate / total * work).collect()
    }

    /// Rates of all PEs, by their number.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        self.nodes.iter().flat_map(|node| node.rates.iter().copied()).collect()
    }

    /// Speeds of the PEs of each node, relative to the fastest PE.
    #[must_use]
    pub fn speeds_by_node(&self) -> Vec<Vec<f64>> {
        let fastest = self.fastest();
        self.nodes.iter().map(|node| node.rates.iter().map(|rate| rate / fastest).collect()).collect()
    }

    /// The PEs of each node.
    #[must_use]
    pub fn pes(&self) -> Vec<Range<u32>> {
        let mut next = 0;
        let pes_of = |node: &Machine| {
            let first = next;
            next += u32::try_from(node.rates.len()).unwrap_or(u32::MAX - first);
            first..next
        };
        self.nodes.iter().map(pes_of).collect()
    }

    /// The longest way between two nodes, or of a single node between its PEs.
    #[must_use]
    pub fn latency_s(&self) -> f64 {
        self.between().map(|link| link.latency_s).fold(0.0, f64::max)
    }

    /// What a byte costs a node's PEs.
    #[must_use]
    pub fn byte_time(&self, node: usize) -> ByteTime {
        let is_inside = self.nodes.iter().all(|other| other.host == self.nodes[node].host);
        if is_inside { INSIDE_A_HOST } else { BETWEEN_HOSTS }
    }

    /// How long a run of these phases takes here.
    #[must_use]
    pub fn reckon(&self, phases: &[Phase]) -> Reckoned {
        let mut all = Reckoned { seconds: 0.0, pes: vec![Busy::default(); self.rates().len()] };
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
        let (rates, fastest) = (self.rates(), self.fastest());
        let mut busy = Vec::with_capacity(rates.len());
        for (at, pes) in self.pes().into_iter().enumerate() {
            let bytes = phase.bytes.get(at).copied().unwrap_or_default();
            let time = self.byte_time(at);
            let of_node = (bytes.sent * time.sent + bytes.received * time.received) * fastest;
            let of_each = of_node / f64::from(pes.end - pes.start);
            busy.extend(pes.map(|pe| {
                let (work, rate) = (phase.work.get(pe as usize).unwrap_or(&0.0), rates[pe as usize]);
                Busy { work_s: work / rate, bytes_s: of_each / rate }
            }));
        }
        busy
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

    fn fastest(&self) -> f64 {
        self.rates().into_iter().fold(f64::MIN_POSITIVE, f64::max)
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
        assert_eq!(two.reckon(&[even]), Reckoned { seconds: 6.0, pes: vec![busy; 3] });
        let uneven = Phase { times: 1.0, work: vec![10.0, 10.0, 30.0], ..Phase::default() };
        let reckoned = two.reckon(&[uneven]);
        assert_eq!((reckoned.seconds, reckoned.pes[0].work_s, reckoned.pes[2].work_s), (6.0, 1.0, 6.0));
        assert_eq!(two.pes(), [0..2, 2..3]);
        assert_eq!(two.speeds_by_node(), [vec![1.0, 1.0], vec![0.5]]);
    }

    #[test]
    fn what_is_overlapped_is_waited_for_only_if_it_takes_longer_than_the_work() {
        let two = machines(&[("a", &[1.0]), ("b", &[1.0])], LAN);
        let bytes = vec![Bytes { sent: 1e8, received: 2e8 }; 2];
        let seconds = |work: f64, is_overlapped| {
            let (bytes, work) = (bytes.clone(), vec![work; 2]);
            let phase = Phase { times: 1.0, work, bytes, rounds: 100.0, is_overlapped, chain_s: 0.5 };
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
            let phase = Phase { times: 2.0, work, bytes, rounds, is_overlapped, chain_s: 0.0 };
            let Reckoned { seconds, pes } = all.reckon(&[phase]);
            prop_assert!(seconds >= ideal * (1.0 - 1e-9), "{seconds} {ideal}");
            prop_assert!(pes.iter().all(|pe| pe.all_s() <= seconds * (1.0 + 1e-9)), "{seconds} {pes:?}");
        }
    }
}
