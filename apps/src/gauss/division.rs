//! Who has what of an elimination: shares that leave the nodes time for the panels that come and go, as a slow node gets as
//! many of them as a fast one (see [`chares::loadbalance::overhead`]), and that fit into their memory. A node holds the rows
//! or columns of its PEs, and panels that wait for them.

use super::arguments::{Algorithm, Gauss};
use super::plan::{self, Plan};
use crate::division::{self, Division, DivisionError, Shortage, Work, shares_by};
use crate::system::Generated;
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::{Items, PartitionError, cyclic};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

/// Divides a system, such that all nodes end together and it fits, as far as that can be told beforehand: the PE of each
/// row, or of each block of columns, those of A before those of B.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub(super) fn divide(gauss: &Gauss, machines: &Machines) -> Result<Division<Arc<Vec<u32>>>, DivisionError> {
    let weights = match gauss.algorithm {
        Algorithm::Columns => machines.speeds(),
        Algorithm::Blocked => {
            let Ok(weights) =
                machines.balanced(|weights| Ok::<_, Infallible>(seconds_of_blocks(gauss, machines, weights)));
            weights
        }
    };
    division::divide(gauss, machines, weights)
}

/// How long each PE will take if blocks are dealt out by these weights.
fn seconds_of_blocks(gauss: &Gauss, machines: &Machines, weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let work: Vec<f64> = weights.iter().map(|weight| weight / total * gauss.work()).collect();
    machines.seconds(&work, &bytes_of_blocks(gauss, machines, weights))
}

/// What each node receives and sends: all panels but its own come to it, and of all nodes that a panel comes to, all but
/// the last hand it on; the owners of the next panels come first, so that fast nodes hand on more.
fn bytes_of_blocks(gauss: &Gauss, machines: &Machines, weights: &[f64]) -> Vec<Bytes> {
    let n = gauss.system.n as f64;
    let panels = n * n / 2.0 * gauss.number_bytes();
    let total: f64 = weights.iter().sum();
    let own = |pes: Range<u32>| pes.map(|pe| weights[pe as usize]).sum::<f64>() / total;
    let shares: Vec<f64> = machines.pes().into_iter().map(own).collect();
    // How likely a node is the last: the likelier the less it owns.
    let seldom: f64 = shares.iter().map(|own| 1.0 / own).sum();
    let is_alone = shares.len() < 2;
    let of_node = |own: f64| {
        let sends = if is_alone { 0.0 } else { 1.0 - 1.0 / own / seldom };
        Bytes { sent: panels * sends, received: panels * (1.0 - own) }
    };
    shares.into_iter().map(of_node).collect()
}

impl Gauss {
    pub(super) fn number_bytes(&self) -> f64 {
        self.system.dtype_or_default().size_bytes() as f64
    }

    /// Bytes of each node where so many numbers go from anywhere to all other nodes.
    pub(super) fn broadcast(&self, machines: &Machines, numbers: f64) -> Vec<Bytes> {
        let count = machines.nodes.len() as f64;
        // Their owner sends to all others, and each of `count` nodes is as often the owner.
        let each = self.number_bytes() * numbers * (count - 1.0) / count;
        vec![Bytes { sent: each, received: each }; machines.nodes.len()]
    }

    fn bytes(&self, numbers: u128) -> u64 {
        let size = self.system.dtype_or_default().size_bytes() as u128;
        u64::try_from(numbers.saturating_mul(size)).unwrap_or(u64::MAX)
    }

    /// The system in blocks, where their owners are known.
    pub(super) fn plan(&self, owners: Arc<Vec<u32>>, generated: Option<Generated>) -> Plan {
        Plan { n: self.system.n, rhs: self.system.rhs, width: self.width(), owners, generated }
    }

    /// Numbers of A and B.
    fn numbers(&self) -> u128 {
        self.system.n as u128 * (self.system.n as u128 + self.system.rhs as u128)
    }
}

impl Work for Gauss {
    type Owners = Arc<Vec<u32>>;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Arc<Vec<u32>>>, PartitionError> {
        let (n, rhs, width) = (self.system.n, self.system.rhs, self.width());
        let [of_a, of_b] = match self.algorithm {
            Algorithm::Columns => [n, 0],
            Algorithm::Blocked => Plan::counts(n, rhs, width),
        };
        let owners = Arc::new(cyclic::dealt(&Items::alike((of_a + of_b) as u64), &machines.parts(weights))?);
        // Rows that were sent lie beside those that are made of them until they all are.
        let copies = if self.system.a.is_some() { 2 } else { 1 };
        let panel = n as u128 * width as u128;
        let look_ahead = plan::look_ahead(machines.nodes.len());
        let memory = machines.pes().into_iter().map(|pes| {
            let own = owners.iter().filter(|owner| pes.contains(owner)).count() as u128;
            let held = self.numbers() * own / owners.len().max(1) as u128 * copies;
            let waiting = match self.algorithm {
                Algorithm::Columns => (n + rhs) as u128 * pes.len() as u128,
                Algorithm::Blocked => panel * plan::panels_waiting(&owners[..of_a], pes, look_ahead) as u128,
            };
            self.bytes(held + waiting)
        });
        let plan = self.plan(Arc::clone(&owners), None);
        let (shares, bytes) = match self.algorithm {
            // For each column a row is broadcast that is half as long as the longest, on average.
            Algorithm::Columns => (
                shares_by(&owners, weights.len(), |_| 1),
                self.broadcast(machines, n as f64 * (n as f64 / 2.0 + rhs as f64)),
            ),
            Algorithm::Blocked => (
                shares_by(&owners, weights.len(), |block| plan.columns_of(block as u32).len() as u64),
                bytes_of_blocks(self, machines, weights),
            ),
        };
        Ok(Division { weights: weights.to_vec(), shares, bytes, memory: memory.collect(), owners })
    }

    fn what(&self) -> String {
        let (n, sides, dtype) =
            (self.system.n, self.system.right_hand_sides(), self.system.dtype_or_default());
        format!("a system of {n} unknowns with {sides} in {dtype}")
    }

    fn of_launcher(&self, sends_elsewhere: bool) -> u64 {
        let given = if self.system.a.is_some() { self.numbers() } else { 0 };
        // What goes to the own host is counted where it arrives.
        let sent = if sends_elsewhere { given } else { 0 };
        self.bytes(given + sent + 3 * self.system.n as u128 * self.system.rhs as u128)
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take a smaller system or more nodes, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take a smaller system, `--dtype f32` or more hosts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::{Link, Machine};
    use clap::{Args as _, Command, FromArgMatches as _};

    const RATES: [f64; 4] = [200e9, 180e9, 110e9, 110e9];

    fn of(words: &[&str]) -> Gauss {
        let command = Gauss::augment_args(Command::new("gauss"));
        Gauss::from_arg_matches(&command.get_matches_from([&["gauss"], words].concat())).unwrap()
    }

    fn shares(n: &str, hosts: [&str; 4]) -> Vec<f64> {
        let gauss = of(&["--n", n, "--dtype", "f32"]);
        let rates: Vec<&[f64]> = RATES.chunks(1).collect();
        let mut machines = Machines::on_one_host(&rates, Link { latency_s: 1e-4, bytes_per_s: 1e9 });
        machines.nodes.iter_mut().zip(hosts).for_each(|(node, host)| node.host = host.into());
        let weights = divide(&gauss, &machines).unwrap().weights;
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }

    /// Nodes that nobody has measured, with so many PEs of these speeds.
    fn nodes(pes: &[usize], speeds: &[f64]) -> Machines {
        let mut speeds = speeds.iter().copied();
        let node = |&pes| Machine { rates: speeds.by_ref().take(pes).collect(), ..Machine::default() };
        Machines { nodes: pes.iter().map(node).collect(), ..Machines::default() }
    }

    #[test]
    fn slow_nodes_get_less_than_their_speed_says_and_the_less_the_smaller_the_system() {
        let by_speed = RATES[3] / RATES.iter().sum::<f64>();
        let [small, big] = ["8000", "60000"].map(|n| shares(n, ["a", "b", "c", "d"])[3]);
        assert!(small < big && big < by_speed, "{small} {big} {by_speed}");
        assert!(shares("8000", ["a"; 4])[3] > small);
    }

    #[test]
    fn bytes_that_are_sent_are_received() {
        for (count, algorithm) in (1..6).flat_map(|count| ["blocked", "columns"].map(|of| (count, of))) {
            let speeds: Vec<f64> = (1..=count).map(|pe| 1.0 / pe as f64).collect();
            let gauss = of(&["--n", "1000", "--algorithm", algorithm]);
            let bytes = divide(&gauss, &nodes(&vec![1; count], &speeds)).unwrap().bytes;
            let (sent, received) = bytes.iter().fold((0.0, 0.0), |(s, r), b| (s + b.sent, r + b.received));
            assert!((sent - received).abs() <= 1e-9 * sent && (count == 1 || sent > 0.0), "{bytes:?}");
        }
    }

    #[test]
    fn one_node_holds_the_system_and_some_panels() {
        let whole = 8 * 4096 * 4097;
        for algorithm in ["columns", "blocked"] {
            let gauss = of(&["--n", "4096", "--algorithm", algorithm]);
            let needs = divide(&gauss, &nodes(&[2], &[1.0, 1.0])).unwrap().memory;
            assert!((whole..whole + whole / 4).contains(&needs[0]), "{algorithm}: {needs:?} for {whole}");
        }
    }

    #[test]
    fn a_slow_node_holds_less_of_the_system_and_more_panels() {
        let needs =
            divide(&of(&["--n", "12800", "--block", "128"]), &nodes(&[1, 1], &[1.0, 0.25])).unwrap().memory;
        let (columns, panel) = (8 * 12_800 * 12_800, 8 * 12_800 * 128);
        assert!((columns / 5 + 5 * panel..columns / 5 + 12 * panel).contains(&needs[1]), "{needs:?}");
        assert!(needs[0] > columns * 4 / 5, "{needs:?}");
    }
}
