//! The verdict on silent nodes: in time for those that are gone, and never for those that only stood still.

use crate::frame::Class;
use crate::ids::NodeId;
use crate::proto::liveness::{HEARTBEAT_PERIOD, LOOK_PERIOD, Liveness, SILENCE_LIMIT};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

enum Process {
    /// With the verdicts and when they were given.
    Launcher(Liveness, Vec<(NodeId, Duration)>),
    /// With the time of its next heartbeat.
    Node(Duration),
}

impl Machine for Process {
    type Message = ();

    fn receive(&mut self, from: NodeId, (): (), out: &mut Outbox<()>) {
        if let Self::Launcher(liveness, _) = self {
            liveness.heard(from, out.now());
        }
    }

    fn wake(&mut self, out: &mut Outbox<()>) {
        match self {
            Self::Node(next) => {
                out.send(NodeId::LAUNCHER, Class::Control, ());
                *next = out.now() + HEARTBEAT_PERIOD;
            }
            Self::Launcher(liveness, verdicts) => {
                for (node, _) in liveness.suspects(out.now()) {
                    verdicts.push((node, out.now()));
                    liveness.forget(node);
                }
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Node(next) => Some(*next),
            Self::Launcher(liveness, _) => liveness.timeout(),
        }
    }
}

/// The verdicts after a minute of 2 to 40 nodes on links with up to 150 ms of delay and losses.
fn verdicts(
    seed: u64,
    prepare: impl FnOnce(&mut Simulation<Process>, &mut Random, u16),
) -> Vec<(NodeId, Duration)> {
    let mut random = Random::new(seed);
    let count = u16::try_from(3 + random.below(38)).unwrap();
    let network = Network { delay_min: MS, delay_max: 50 * MS, lost_per_mille: 20, retransmission: 100 * MS };
    let liveness = Liveness::new((1..count).map(NodeId), SILENCE_LIMIT, Duration::ZERO);
    let node = |n: u16| Process::Node(u32::from(n) * MS);
    let machines = std::iter::once(Process::Launcher(liveness, Vec::new())).chain((1..count).map(node));
    let mut sim = Simulation::new(seed, network, machines);
    prepare(&mut sim, &mut random, count);
    let ended = sim.run(Duration::from_secs(60), |_| false);
    assert!(ended != Ended::Reached, "nobody asked for that");
    match sim.machine(NodeId::LAUNCHER) {
        Process::Launcher(_, verdicts) => verdicts.clone(),
        Process::Node(_) => Vec::new(),
    }
}

fn victim(random: &mut Random, count: u16) -> (NodeId, Duration) {
    (NodeId(1 + random.node(count - 1).0), Duration::from_millis(random.below(40_000)))
}

#[test]
fn a_dead_node_is_found_within_five_seconds_and_no_other() {
    for seed in 0..100 {
        let mut dead = (NodeId(0), Duration::ZERO);
        let found = verdicts(seed, |sim, random, count| {
            dead = victim(random, count);
            sim.kill(dead.0, dead.1);
        });
        assert_eq!(found.len(), 1, "seed {seed}: {found:?}");
        assert_eq!(found[0].0, dead.0, "seed {seed}");
        let after = found[0].1.saturating_sub(dead.1);
        assert!(after >= SILENCE_LIMIT - HEARTBEAT_PERIOD, "seed {seed}: {after:?}");
        assert!(after <= SILENCE_LIMIT + LOOK_PERIOD + 500 * MS, "seed {seed}: {after:?}");
    }
}

#[test]
fn nodes_frozen_for_three_seconds_are_not_suspected() {
    for seed in 0..100 {
        let found = verdicts(seed, |sim, random, count| {
            // Apart from each other: the same node may be frozen again.
            for at in [2, 20, 40] {
                let node = victim(random, count).0;
                let at = Duration::from_secs(at) + Duration::from_millis(random.below(10_000));
                sim.freeze(node, at, 3000 * MS);
            }
        });
        assert_eq!(found, [], "seed {seed}");
    }
}

#[test]
fn a_launcher_that_thaws_suspects_nobody_but_the_dead() {
    for seed in 0..100 {
        let mut dead = NodeId(0);
        let found = verdicts(seed, |sim, random, count| {
            dead = victim(random, count).0;
            sim.freeze(NodeId::LAUNCHER, 5000 * MS, 20_000 * MS);
            sim.kill(dead, 6000 * MS);
        });
        assert_eq!(found.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [dead], "seed {seed}");
    }
}
