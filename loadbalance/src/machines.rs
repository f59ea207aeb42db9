//! The machines of a run, as far as anybody plans with them: how fast their PEs are, what memory they have, what lies
//! between them and what bytes on the way cost. A run knows the speeds and the memory of its nodes; a plan for machines
//! that are not there knows their speeds and the network.

use crate::overhead;
use crate::plan::Part;
use std::ops::Range;

/// A process of a run: a node, or the launcher, which has no PEs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Its name in the nodes file.
    pub name: String,
    /// Its host in the nodes file: nodes of the same host share its memory and exchange bytes faster. `localhost` is where
    /// the launcher runs.
    pub host: String,
    /// Of each of its PEs, when all of them work: units of work per second where they were measured
    /// ([`Machines::is_measured`]), else speeds relative to any reference.
    pub rates: Vec<f64>,
    /// What it may hold.
    pub memory: Memory,
}

/// The memory of a node. By default nothing limits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The run ends when the process needs more than this; `None` is no limit.
    pub limit_bytes: Option<u64>,
    /// What the process had when the driver began.
    pub taken_bytes: u64,
    /// What its host could still give at that time; `None` if it does not tell.
    pub host_bytes: Option<u64>,
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
const BETWEEN_HOSTS: ByteTime = ByteTime { sent: 2.0e-9, received: 0.6e-9 };
/// Inside one host, where datagrams may be long.
const INSIDE_A_HOST: ByteTime = ByteTime { sent: 0.5e-9, received: 0.5e-9 };
/// No PE counts as slower than this part of the fastest.
const SPEED_MIN: f64 = 1e-6;

/// Rates relative to the fastest of them: positive and finite, whatever they are, and all 1 if there is none above 0.
#[must_use]
pub fn relative(rates: &[f64]) -> Vec<f64> {
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    let speed = |rate: &f64| if fastest > 0.0 { (rate / fastest).max(SPEED_MIN) } else { 1.0 };
    rates.iter().map(speed).collect()
}

/// Bytes that a node exchanges with others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    /// To all other nodes together.
    pub sent: f64,
    /// From all of them.
    pub received: f64,
}

/// The nodes of a mix and what lies between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    /// In the order of the nodes file; their PEs are numbered through.
    pub nodes: Vec<Machine>,
    /// The process that starts the run and collects its results.
    pub launcher: Machine,
    /// From node `i` to node `j` at `i * nodes.len() + j`, with `i == j` between two PEs of the node; empty where nobody
    /// knows the network, as in a run.
    pub links: Vec<Link>,
    /// Whether rates are units of work per second. Else only their ratios count, and nothing can be said of seconds.
    pub is_measured: bool,
}

impl Machines {
    /// Nodes `n0`, `n1` and so on of one host with these measured rates, the same link between any two.
    #[must_use]
    pub fn on_one_host(rates: &[&[f64]], link: Link) -> Self {
        let machine = |(at, rates): (usize, &&[f64])| Machine {
            name: format!("n{at}"),
            host: "host".into(),
            rates: rates.to_vec(),
            ..Machine::default()
        };
        let nodes: Vec<Machine> = rates.iter().enumerate().map(machine).collect();
        let links = vec![link; nodes.len() * nodes.len()];
        Self { nodes, links, is_measured: true, ..Self::default() }
    }

    /// Rates of all PEs, by their number.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        self.nodes.iter().flat_map(|node| node.rates.iter().copied()).collect()
    }

    /// Speeds of all PEs relative to the fastest of them, by their number; positive and finite, whatever the rates.
    #[must_use]
    pub fn speeds(&self) -> Vec<f64> {
        relative(&self.rates())
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

    /// The PEs with these weights, for a planner.
    #[must_use]
    pub fn parts(&self, weights: &[f64]) -> Vec<Part> {
        let of_node =
            |(node, pes): (usize, Range<u32>)| pes.map(move |pe| Part { node, speed: weights[pe as usize] });
        self.pes().into_iter().enumerate().flat_map(of_node).collect()
    }

    /// The part of each PE of so much work, if all end together.
    #[must_use]
    pub fn divided_by_speed(&self, work: f64) -> Vec<f64> {
        let rates = self.rates();
        let total: f64 = rates.iter().sum();
        rates.iter().map(|rate| rate / total * work).collect()
    }

    /// How long each PE takes for its `work` and for its part of the bytes of its node, which count as none where they are
    /// not given.
    #[must_use]
    pub fn seconds(&self, work: &[f64], bytes: &[Bytes]) -> Vec<f64> {
        let (rates, of_bytes) = (self.rates(), self.work_of_bytes(bytes));
        rates
            .iter()
            .zip(work.iter().zip(of_bytes))
            .map(|(rate, (work, bytes))| (work + bytes) / rate)
            .collect()
    }

    /// Weights by which all PEs end together, where `seconds` predicts how long each takes if the work is divided by some
    /// weights; with room for errors of the speeds, see [`overhead::allowance`]. The speeds themselves where they were not
    /// measured.
    ///
    /// # Errors
    /// What `seconds` returns.
    pub fn balanced<E>(&self, mut seconds: impl FnMut(&[f64]) -> Result<Vec<f64>, E>) -> Result<Vec<f64>, E> {
        let speeds = self.speeds();
        if !self.is_measured {
            return Ok(speeds);
        }
        overhead::balanced(&speeds, |weights| Ok(self.with_allowance(seconds(weights)?, weights)))
    }

    /// The seconds of PEs with what speeds may be wrong by: alike for all PEs of a node, which share its troubles.
    fn with_allowance(&self, mut seconds: Vec<f64>, weights: &[f64]) -> Vec<f64> {
        let total: f64 = weights.iter().sum();
        for pes in self.pes() {
            let pes = pes.start as usize..pes.end as usize;
            let allowance = overhead::allowance(weights[pes.clone()].iter().sum::<f64>() / total);
            seconds[pes].iter_mut().for_each(|seconds| *seconds *= allowance);
        }
        seconds
    }

    /// What its part of the bytes of its node costs each PE, in units of work.
    pub(crate) fn work_of_bytes(&self, bytes: &[Bytes]) -> Vec<f64> {
        let fastest = self.fastest();
        let of_node = |(at, node): (usize, &Machine)| {
            let (bytes, time) = (bytes.get(at).copied().unwrap_or_default(), self.byte_time(at));
            let of_node = (bytes.sent * time.sent + bytes.received * time.received) * fastest;
            vec![of_node / node.rates.len() as f64; node.rates.len()]
        };
        self.nodes.iter().enumerate().flat_map(of_node).collect()
    }

    /// What a byte costs a node's PEs.
    #[must_use]
    pub fn byte_time(&self, node: usize) -> ByteTime {
        let is_inside = self.nodes.iter().all(|other| other.host == self.nodes[node].host);
        if is_inside { INSIDE_A_HOST } else { BETWEEN_HOSTS }
    }

    pub(crate) fn fastest(&self) -> f64 {
        self.rates().into_iter().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Machines {
        let mut two =
            Machines::on_one_host(&[&[10.0, 10.0], &[5.0]], Link { latency_s: 1e-4, bytes_per_s: 1e8 });
        two.is_measured = false;
        two
    }

    #[test]
    fn pes_are_numbered_through_and_speeds_are_relative_to_the_fastest() {
        let mut two = two();
        assert_eq!((two.pes(), two.rates()), (vec![0..2, 2..3], vec![10.0, 10.0, 5.0]));
        assert_eq!(two.speeds(), [1.0, 1.0, 0.5]);
        assert_eq!(two.parts(&[7.0, 8.0, 9.0]), Part::of_nodes(&[vec![7.0, 8.0], vec![9.0]]));
        two.nodes[1].rates[0] = f64::NAN;
        assert_eq!(two.speeds(), [1.0, 1.0, SPEED_MIN]);
        two.nodes.iter_mut().for_each(|node| node.rates.fill(0.0));
        assert_eq!(two.speeds(), [1.0; 3]);
    }

    #[test]
    fn what_speeds_may_be_wrong_by_is_taken_from_small_shares_only() {
        let link = Link { latency_s: 1e-4, bytes_per_s: 1e8 };
        let three = Machines::on_one_host(&[&[4.0], &[2.0], &[1.0]], link);
        let alike = three.with_allowance(vec![0.15; 3], &[0.3; 3]);
        assert!(alike.iter().all(|seconds| (seconds - alike[0]).abs() < 1e-12), "{alike:?}");
        let unlike = three.with_allowance(vec![2.0, 1.0, 0.5], &[4.0, 2.0, 1.0]);
        assert!(
            unlike[0] < 2.0 && 1.0 < unlike[1] && unlike[1] < 2.0 * unlike[2] && unlike[2] < 0.54,
            "{unlike:?}"
        );
        assert_eq!(two().with_allowance(vec![1.0; 3], &[1.0, 1.0, 2.0]), [1.0; 3], "halves of the work");
    }

    #[test]
    fn shares_are_balanced_only_where_seconds_can_be_predicted() {
        let mut two = two();
        // The second node waits a second for messages.
        let seconds = |machines: &Machines, weights: &[f64]| {
            let total: f64 = weights.iter().sum();
            let work: Vec<f64> = weights.iter().map(|weight| 100.0 * weight / total).collect();
            let bytes = [Bytes::default(), Bytes { sent: 1e9, received: 0.0 }];
            Ok::<_, ()>(machines.seconds(&work, &bytes))
        };
        assert_eq!(two.balanced(|weights| seconds(&two, weights)).unwrap(), two.speeds());
        two.is_measured = true;
        let weights = two.balanced(|weights| seconds(&two, weights)).unwrap();
        assert!(weights[2] < 0.48 * weights[0], "{weights:?}");
    }
}
