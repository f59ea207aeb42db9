//! From 2 to 1,024 nodes: what the protocols cost each node grows as `scale.md` says, whose table is made here.

use super::{collective, membership};
use crate::class::Class;
use crate::ids::NodeId;
use crate::proto::quiescence::{Counts, Quiescence, QuiescenceMessage, QuiescenceOutput};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Simulation};
use crate::proto::tree::{self, ARITY};
use std::fmt;
use std::time::Duration;

const COUNTS: [u16; 4] = [2, 16, 128, 1024];
const DELAY: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(60);
const NOTES: &str = include_str!("../../scale.md");

/// What a protocol costs.
#[derive(Debug)]
struct Cost {
    protocol: &'static str,
    nodes: u16,
    /// Times that it ran.
    runs: u16,
    /// Messages of all nodes.
    messages: u64,
    /// Messages sent and received: by the node that has most of those that are not the launcher, and by the launcher.
    most: u64,
    launcher: u64,
    /// How many messages follow each other.
    hops: u64,
    /// Others that a node has to do with: of the node that has most of those that are not the launcher, and the launcher.
    peers: usize,
    launcher_peers: usize,
    /// What the node holds that holds most.
    state_bytes: usize,
}

impl Cost {
    fn of<M: Machine>(
        protocol: &'static str,
        runs: u16,
        sim: &Simulation<M>,
        state_bytes: impl Fn(&M) -> usize,
    ) -> Self {
        let at = |node| sim.sent(node) + sim.received(node);
        let peers = sim.peers();
        Self {
            protocol,
            nodes: u16::try_from(peers.len()).unwrap(),
            runs,
            messages: sim.ids().map(|node| sim.sent(node)).sum(),
            most: sim.ids().skip(1).map(at).max().unwrap(),
            launcher: at(NodeId::LAUNCHER),
            hops: u64::try_from(sim.now().as_micros() / DELAY.as_micros()).unwrap(),
            peers: peers[1..].iter().copied().max().unwrap(),
            launcher_peers: peers[0],
            state_bytes: sim.machines().map(state_bytes).max().unwrap(),
        }
    }

    fn messages_per_node(&self) -> f64 {
        self.messages as f64 / f64::from(self.nodes) / f64::from(self.runs)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, nodes, runs, most, launcher, hops, peers, launcher_peers, state_bytes, .. } =
            self;
        let each = |count: u64| format!("{:.1}", count as f64 / f64::from(*runs));
        write!(f, "| {protocol} | {nodes} | {:.2} | {} | ", self.messages_per_node(), each(*most))?;
        write!(f, "{} | {hops} | {peers} | {launcher_peers} | {state_bytes} |", each(*launcher))
    }
}

fn start(count: u16) -> Cost {
    let mut sim = membership::start(1, Network::steady(DELAY), count, None, |_| {});
    assert_eq!(sim.run(LIMIT, |sim| membership::result(sim).is_some()), Ended::Reached);
    assert_eq!(membership::result(&sim), Some(&Ok(())));
    Cost::of("start-up", 1, &sim, |process| match process {
        membership::Process::Node(member, _) => member.state_bytes(),
        membership::Process::Launcher { .. } => 0,
    })
}

/// Broadcasts from these nodes, all at once.
fn broadcast(protocol: &'static str, count: u16, roots: impl Iterator<Item = u16>) -> Cost {
    let members = collective::members(1, count, 0, 0, false);
    let mut sim = Simulation::new(1, Network::steady(DELAY), members);
    let mut runs = 0;
    for root in roots {
        let number = usize::from(runs);
        sim.act(NodeId(root), |member, out| member.broadcast(number, u32::from(root), 0, out));
        runs += 1;
    }
    assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle);
    assert!(sim.machines().all(|member| member.heard == vec![1; usize::from(runs)]));
    // A tree needs no state.
    let mut cost = Cost::of(protocol, runs, &sim, |_| 0);
    cost.hops = sim.machines().map(|member| member.hops).max().unwrap().into();
    cost
}

fn reduction(count: u16) -> Cost {
    let mut members = collective::members(1, count, u64::from(count), 1, false);
    members.iter_mut().for_each(collective::Member::contribute_at_once);
    let mut sim = Simulation::new(1, Network::steady(DELAY), members);
    assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle);
    assert_eq!(sim.machine(NodeId(0)).results.len(), 1);
    Cost::of("reduction", 1, &sim, |member| member.peak_bytes)
}

/// A node where nothing happens.
struct Quiet {
    part: Quiescence,
    has_found: bool,
    peak_bytes: usize,
}

impl Quiet {
    fn pump(&mut self, out: &mut Outbox<QuiescenceMessage>) {
        self.peak_bytes = self.peak_bytes.max(self.part.state_bytes());
        while let Some(output) = self.part.poll(out.now(), Counts::default) {
            match output {
                QuiescenceOutput::Send { to, message } => out.send(to, Class::Control, message),
                QuiescenceOutput::Quiescent { .. } => self.has_found = true,
            }
        }
        self.peak_bytes = self.peak_bytes.max(self.part.state_bytes());
    }
}

impl Machine for Quiet {
    type Message = QuiescenceMessage;

    fn receive(&mut self, from: NodeId, message: QuiescenceMessage, out: &mut Outbox<QuiescenceMessage>) {
        self.part.handle(from, message, out.now(), Counts::default).unwrap();
        self.pump(out);
    }

    fn wake(&mut self, out: &mut Outbox<QuiescenceMessage>) {
        self.pump(out);
    }

    fn timeout(&self) -> Option<Duration> {
        self.part.timeout()
    }
}

fn quiescence(count: u16) -> Cost {
    let quiet = |n| Quiet { part: Quiescence::new(NodeId(n), count), has_found: false, peak_bytes: 0 };
    let mut sim = Simulation::new(1, Network::steady(DELAY), (0..count).map(quiet));
    sim.act(NodeId::LAUNCHER, |root, out| {
        root.part.start();
        root.pump(out);
    });
    assert_eq!(sim.run(LIMIT, |sim| sim.machine(NodeId::LAUNCHER).has_found), Ended::Reached);
    Cost::of("quiescence", 1, &sim, |node| node.peak_bytes)
}

/// Levels below the root of a heap of so many.
fn depth(count: u16) -> u64 {
    let count = u32::from(count);
    let depth = |node| std::iter::successors(Some(node), |&at| tree::parent(0, at, count)).count() - 1;
    (0..count).map(depth).max().unwrap() as u64
}

#[test]
fn the_start_costs_each_node_two_messages_and_the_launcher_two_for_each() {
    for cost in COUNTS.map(start) {
        let others = u64::from(cost.nodes) - 1;
        assert_eq!((cost.messages, cost.most, cost.launcher), (2 * others, 2, 2 * others), "{cost:?}");
        assert_eq!((cost.hops, cost.peers), (2, 1), "{cost:?}");
        assert!(
            cost.state_bytes <= 200 + 100 * usize::from(cost.nodes),
            "a small record for each node: {cost:?}"
        );
    }
}

#[test]
fn a_broadcast_costs_each_node_as_many_messages_as_it_has_children() {
    for count in COUNTS {
        let cost = broadcast("broadcast", count, std::iter::once(count / 4 * 3));
        assert_eq!(cost.messages, u64::from(count) - 1);
        assert!(cost.most <= u64::from(ARITY) + 1, "{cost:?}");
        let climb = if count > 64 { depth(count) } else { 0 };
        assert!(cost.hops <= depth(count) + climb, "{cost:?}");
    }
}

#[test]
fn whoever_broadcasts_no_node_has_to_do_with_many_others() {
    for count in COUNTS {
        let cost = broadcast("broadcast from each node", count, 0..count);
        let bound = if count > 64 { ARITY as usize + 1 } else { usize::from(count) - 1 };
        assert!(cost.peers.max(cost.launcher_peers) <= bound, "{cost:?}");
        assert_eq!(cost.messages, u64::from(count) * (u64::from(count) - 1));
    }
}

#[test]
fn a_reduction_costs_each_node_one_message_to_send_and_as_many_to_receive_as_it_has_children() {
    let costs = COUNTS.map(reduction);
    for cost in &costs {
        assert_eq!(cost.messages, u64::from(cost.nodes) - 1);
        assert!(cost.most.max(cost.launcher) <= u64::from(ARITY) + 1, "{cost:?}");
        assert_eq!(cost.hops, depth(cost.nodes), "{cost:?}");
        assert_eq!(cost.state_bytes, costs[0].state_bytes, "{cost:?}");
    }
}

#[test]
fn a_wave_of_quiescence_costs_each_node_its_neighbours_and_two_waves_suffice() {
    let costs = COUNTS.map(quiescence);
    for cost in &costs {
        let waves = 2;
        assert_eq!(
            cost.messages,
            waves * 2 * (u64::from(cost.nodes) - 1),
            "down and up each edge once a wave"
        );
        assert!(cost.most.max(cost.launcher) <= waves * 2 * u64::from(ARITY + 1), "{cost:?}");
        assert_eq!(cost.hops, waves * 2 * depth(cost.nodes), "{cost:?}");
        assert!(cost.peers.max(cost.launcher_peers) <= ARITY as usize + 1, "{cost:?}");
        assert!(cost.state_bytes <= 1024, "{cost:?}");
    }
    assert_eq!(costs[2].state_bytes, costs[3].state_bytes);
}

/// A change of the protocols that changes what they cost is to be seen where people read it.
#[test]
fn the_table_says_what_was_simulated() {
    let mut rows: Vec<String> = COUNTS.map(start).iter().map(ToString::to_string).collect();
    rows.extend(COUNTS.map(|n| broadcast("broadcast", n, std::iter::once(n / 4 * 3)).to_string()));
    rows.extend(COUNTS.map(|n| broadcast("broadcast from each node", n, 0..n).to_string()));
    rows.extend(COUNTS.map(|n| reduction(n).to_string()));
    rows.extend(COUNTS.map(|n| quiescence(n).to_string()));
    let table = rows.join("\n");
    let welcome = postcard::to_stdvec(&membership::table(1024)).unwrap().len();
    let welcome = format!("for 1,024 nodes {welcome} bytes");
    println!("{table}\n{welcome}");
    assert!(NOTES.contains(&table), "the table in runtime/src/proto/scale.md is another one than\n{table}");
    assert!(NOTES.contains(&welcome), "scale.md does not say that the table of nodes takes {welcome}");
}
