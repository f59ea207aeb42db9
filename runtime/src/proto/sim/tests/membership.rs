//! The start of a run on nodes of which some are dead, slow or of another build.

use crate::frame::Class;
use crate::ids::NodeId;
use crate::proto::membership::{ClusterTable, JoinError, Joining, Member, MembershipMessage, NodeEntry};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

pub(super) enum Process {
    /// With the result, when there is one.
    Launcher(Joining, Option<Result<(), JoinError>>),
    Node(Member),
}

impl Machine for Process {
    type Message = MembershipMessage;

    fn receive(&mut self, from: NodeId, message: MembershipMessage, out: &mut Outbox<MembershipMessage>) {
        match self {
            Self::Node(member) => {
                let answer = member.handle(from, message).unwrap();
                out.send(from, Class::Control, answer);
            }
            Self::Launcher(joining, result) => match joining.handle(from, message) {
                Ok(false) => {}
                Ok(true) => *result = Some(Ok(())),
                Err(error) => *result = result.take().or(Some(Err(error))),
            },
        }
    }

    fn wake(&mut self, out: &mut Outbox<MembershipMessage>) {
        if let Self::Launcher(joining, result) = self
            && let Err(error) = joining.check(out.now())
        {
            *result = result.take().or(Some(Err(error)));
        }
    }

    fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Launcher(joining, None) => joining.timeout(),
            _ => None,
        }
    }
}

pub(super) fn table(count: u16) -> ClusterTable {
    let entry = |n: u16| NodeEntry {
        name: format!("ws{n}"),
        address: format!("10.0.{}.{}:4000", n / 256, n % 256),
        pe_count: u32::from(n.min(1)) * 2,
    };
    ClusterTable { run_id: "matmul-1a2b3c".into(), nodes: (0..count).map(entry).collect() }
}

/// The launcher and its nodes, of which `misbuilt` has another program; all have been welcomed.
pub(super) fn start(
    seed: u64,
    network: Network,
    count: u16,
    misbuilt: Option<NodeId>,
    prepare: impl FnOnce(&mut Simulation<Process>),
) -> Simulation<Process> {
    let lines = |is_other: bool| {
        vec!["demo 1".into(), format!("Block: Tick{}", if is_other { ", Tock" } else { "" })]
    };
    let table = table(count);
    let launcher = Joining::new(&table, lines(false), Duration::ZERO, LIMIT);
    let welcome = launcher.welcome(table);
    let node = |n: u16| {
        let id = NodeId(n);
        Process::Node(Member::new(id, count, lines(misbuilt == Some(id))))
    };
    let machines = std::iter::once(Process::Launcher(launcher, None)).chain((1..count).map(node));
    let mut sim = Simulation::new(seed, network, machines);
    prepare(&mut sim);
    sim.run(Duration::from_micros(1), |_| false);
    for to in (1..count).map(NodeId) {
        sim.act(NodeId::LAUNCHER, |_, out| out.send(to, Class::Control, welcome.clone()));
    }
    sim
}

pub(super) fn result(sim: &Simulation<Process>) -> Option<&Result<(), JoinError>> {
    match sim.machine(NodeId::LAUNCHER) {
        Process::Launcher(_, result) => result.as_ref(),
        Process::Node(_) => None,
    }
}

#[test]
fn all_start_or_the_error_names_the_node() {
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let count = u16::try_from(2 + random.below(39)).unwrap();
        let network = Network { lost_per_mille: 20, ..Network::any(&mut random) };
        let victim = NodeId(1 + random.node(count - 1).0);
        let kind = seed % 4;
        let misbuilt = (kind == 1).then_some(victim);
        let mut sim = start(seed, network, count, misbuilt, |sim| match kind {
            2 => sim.kill(victim, Duration::ZERO),
            3 => sim.freeze(victim, Duration::ZERO, Duration::from_secs(3)),
            _ => {}
        });
        let ended = sim.run(2 * LIMIT, |sim| result(sim).is_some());
        assert_eq!(ended, Ended::Reached, "seed {seed}: no end of the start");
        let name = format!("node \"ws{}\"", victim.0);
        match (kind, result(&sim).unwrap()) {
            (0 | 3, result) => {
                assert_eq!(*result, Ok(()), "seed {seed}");
                let has_joined =
                    |m: &Process| matches!(m, Process::Node(m) if m.table() == Some(&table(count)));
                assert!(sim.machines().skip(1).all(has_joined), "seed {seed}");
            }
            (1, Err(error @ JoinError::OtherBuild { .. })) => {
                let text = error.to_string();
                assert!(text.contains(&name) && text.contains("Tick, Tock"), "seed {seed}: {text}");
            }
            (2, Err(error @ JoinError::Silent { .. })) => {
                assert_eq!(error.to_string(), format!("{name} said nothing for 10 s after the start"));
            }
            (_, other) => panic!("seed {seed}: {other:?}"),
        }
    }
}
