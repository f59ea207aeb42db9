//! 1,024 nodes: messages of each node are bounded and time grows with the depth of the tree.

use super::{collective, membership};
use crate::frame::Class;
use crate::ids::NodeId;
use crate::proto::quiescence::{Counts, Quiescence, QuiescenceMessage, QuiescenceOutput};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Simulation};
use crate::proto::tree::{ARITY, parent};
use std::time::Duration;

const COUNT: u16 = 1024;
const DELAY: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(60);
/// Levels below the root: 4 + 16 + 64 + 256 + 683 of 1,024 nodes.
const DEPTH: u32 = 5;
/// Per level, for simulated steps between deliveries.
const SLACK: Duration = Duration::from_micros(10);

fn most_sent<M: Machine>(sim: &Simulation<M>, nodes: impl Iterator<Item = NodeId>) -> u64 {
    nodes.map(|node| sim.sent(node)).max().unwrap_or_default()
}

#[test]
fn the_start_costs_each_node_one_message() {
    let mut sim = membership::start(1, Network::steady(DELAY), COUNT, None, |_| {});
    assert_eq!(sim.run(LIMIT, |sim| membership::result(sim).is_some()), Ended::Reached);
    assert_eq!(membership::result(&sim), Some(&Ok(())));
    assert_eq!(sim.sent(NodeId::LAUNCHER), u64::from(COUNT) - 1);
    assert_eq!(most_sent(&sim, sim.ids().skip(1)), 1);
    assert!(sim.now() <= 2 * (DELAY + SLACK), "one round trip: {:?}", sim.now());
}

#[test]
fn a_broadcast_costs_each_node_as_many_messages_as_it_has_children() {
    let members = collective::members(1, COUNT, 0, 0, false);
    let mut sim = Simulation::new(1, Network::steady(DELAY), members);
    let root = NodeId(777);
    sim.act(root, |member, out| member.broadcast(0, u32::from(root.0), 0, out));
    assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle);
    assert!(sim.machines().all(|member| member.heard == [1]));
    assert_eq!(most_sent(&sim, sim.ids()), u64::from(ARITY));
    assert_eq!(sim.machines().map(|member| member.hops).max(), Some(DEPTH));
    assert!(sim.now() <= DEPTH * (DELAY + SLACK), "{:?}", sim.now());
}

#[test]
fn a_reduction_costs_each_node_one_message() {
    let members = collective::members(1, COUNT, u64::from(COUNT), 1, true);
    let mut sim = Simulation::new(1, Network::steady(DELAY), members);
    assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle);
    assert_eq!(sim.machine(NodeId(0)).results.len(), 1);
    assert!(sim.ids().all(|node| sim.sent(node) == u64::from(node.0 > 0)));
    assert!(sim.ids().all(|node| sim.received(node) <= u64::from(ARITY)));
}

/// A node where nothing happens.
struct Quiet(Quiescence, bool);

impl Quiet {
    fn pump(&mut self, out: &mut Outbox<QuiescenceMessage>) {
        while let Some(output) = self.0.poll(out.now(), Counts::default) {
            match output {
                QuiescenceOutput::Send { to, message } => out.send(to, Class::Control, message),
                QuiescenceOutput::Quiescent { .. } => self.1 = true,
            }
        }
    }
}

impl Machine for Quiet {
    type Message = QuiescenceMessage;

    fn receive(&mut self, from: NodeId, message: QuiescenceMessage, out: &mut Outbox<QuiescenceMessage>) {
        self.0.handle(from, message, out.now(), Counts::default).unwrap();
        self.pump(out);
    }

    fn wake(&mut self, out: &mut Outbox<QuiescenceMessage>) {
        self.pump(out);
    }

    fn timeout(&self) -> Option<Duration> {
        self.0.timeout()
    }
}

#[test]
fn a_wave_of_quiescence_costs_each_node_its_neighbours_and_two_waves_suffice() {
    let quiet = |n| Quiet(Quiescence::new(NodeId(n), COUNT), false);
    let mut sim = Simulation::new(1, Network::steady(DELAY), (0..COUNT).map(quiet));
    sim.act(NodeId::LAUNCHER, |root, out| {
        root.0.start();
        root.pump(out);
    });
    assert_eq!(sim.run(LIMIT, |sim| sim.machine(NodeId::LAUNCHER).1), Ended::Reached);
    let waves = 2;
    assert!(most_sent(&sim, sim.ids()) <= waves * u64::from(ARITY + 1));
    let total: u64 = sim.ids().map(|node| sim.sent(node)).sum();
    assert_eq!(total, waves * 2 * u64::from(COUNT - 1), "down and up each edge once a wave");
    assert!(sim.now() <= 4 * DEPTH * (DELAY + SLACK), "{:?}", sim.now());
}

#[test]
fn the_depth_is_that_of_the_tree() {
    let depth = |node: u32| std::iter::successors(Some(node), |&at| parent(0, at, COUNT.into())).count() - 1;
    assert_eq!((0..COUNT.into()).map(depth).max(), usize::try_from(DEPTH).ok());
}
