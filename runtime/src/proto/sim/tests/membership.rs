//! The start of a run on nodes of which some are dead, slow or of another build.

use crate::class::Class;
use crate::ids::NodeId;
use crate::proto::membership::{
    Build, ClusterTable, JoinAnswer, JoinError, Joining, Member, NodeEntry, Welcome, counters_every,
};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

/// What a welcome costs a launcher at most: ten times as much as in a build for testing.
const WELCOME_WORK: Duration = Duration::from_millis(1);

pub(super) enum Process {
    Launcher {
        joining: Joining,
        /// When there is one.
        result: Option<Result<(), JoinError>>,
        /// What it has to do for each message, besides taking it.
        work: Duration,
    },
    /// With the time when it will say again what it counts, once it has joined.
    Node(Member, Option<Duration>),
}

#[derive(Clone)]
pub(super) enum Said {
    Welcome(Welcome),
    Answer(JoinAnswer),
    /// Of a node that works: nobody waits for these at the start, and they come all the same.
    Counters,
}

impl Machine for Process {
    type Message = Said;

    fn receive(&mut self, from: NodeId, message: Said, out: &mut Outbox<Said>) {
        match (&mut *self, message) {
            (Self::Node(member, next), Said::Welcome(welcome)) => {
                let answer = member.handle(from, welcome).unwrap();
                *next = next_counters(member, out.now());
                out.send(from, Class::Control, Said::Answer(answer));
            }
            (Self::Launcher { joining, result: result @ None, work }, message) => {
                out.work(*work);
                let taken = match message {
                    Said::Answer(answer) => joining.handle(from, answer),
                    Said::Counters | Said::Welcome(_) => Ok(false),
                };
                match taken.and_then(|all| joining.check(out.now()).map(|()| all)) {
                    Ok(false) => {}
                    Ok(true) => *result = Some(Ok(())),
                    Err(error) => *result = Some(Err(error)),
                }
            }
            (Self::Launcher { .. } | Self::Node(..), _) => {}
        }
    }

    fn wake(&mut self, out: &mut Outbox<Said>) {
        match self {
            Self::Node(member, next) => {
                *next = next_counters(member, out.now());
                out.send(NodeId::LAUNCHER, Class::Control, Said::Counters);
            }
            Self::Launcher { joining, result: result @ None, .. } => {
                *result = joining.check(out.now()).err().map(Err);
            }
            Self::Launcher { .. } => {}
        }
    }

    fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Launcher { joining, result: None, .. } => joining.timeout(),
            Self::Launcher { .. } => None,
            Self::Node(_, next) => *next,
        }
    }
}

fn next_counters(member: &Member, now: Duration) -> Option<Duration> {
    let count = u16::try_from(member.table()?.nodes.len()).unwrap();
    Some(now + counters_every(count))
}

pub(super) fn table(count: u16) -> ClusterTable {
    let entry = |n: u16| NodeEntry {
        name: format!("ws{n}"),
        address: format!("10.0.{}.{}:4000", n / 256, n % 256),
        pe_count: u32::from(n.min(1)) * 2,
    };
    let nodes = (0..count).map(entry).collect();
    ClusterTable::new("matmul-1a2b3c", nodes)
}

/// The launcher and its nodes, of which `misbuilt` has another program; all have been welcomed.
pub(super) fn start(
    seed: u64,
    network: Network,
    count: u16,
    misbuilt: Option<NodeId>,
    prepare: impl FnOnce(&mut Simulation<Process>),
) -> Simulation<Process> {
    start_with_work(Duration::ZERO, (seed, network), count, misbuilt, prepare)
}

/// The same with a launcher that is busy for so long with each message.
fn start_with_work(
    work: Duration,
    (seed, network): (u64, Network),
    count: u16,
    misbuilt: Option<NodeId>,
    prepare: impl FnOnce(&mut Simulation<Process>),
) -> Simulation<Process> {
    let build = |is_other: bool| {
        let entries = format!("Block: Tick{}", if is_other { ", Tock" } else { "" });
        Build { wire_version: 1, lines: vec!["demo 1".into(), entries] }
    };
    let table = table(count);
    let joining = Joining::new(&table, build(false), Duration::ZERO, LIMIT);
    let welcome = joining.welcome(table);
    let node = |n: u16| {
        let id = NodeId(n);
        Process::Node(Member::new(id, count, build(misbuilt == Some(id))), None)
    };
    let launcher = Process::Launcher { joining, result: None, work };
    let machines = std::iter::once(launcher).chain((1..count).map(node));
    let mut sim = Simulation::new(seed, network, machines);
    prepare(&mut sim);
    sim.run(Duration::from_micros(1), |_| false);
    for to in (1..count).map(NodeId) {
        sim.act(NodeId::LAUNCHER, |_, out| {
            out.work(work.min(WELCOME_WORK));
            out.send(to, Class::Control, Said::Welcome(welcome.clone()));
        });
    }
    sim
}

pub(super) fn result(sim: &Simulation<Process>) -> Option<&Result<(), JoinError>> {
    match sim.machine(NodeId::LAUNCHER) {
        Process::Launcher { result, .. } => result.as_ref(),
        Process::Node(..) => None,
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
                    |m: &Process| matches!(m, Process::Node(m, _) if m.table() == Some(&table(count)));
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

/// How a start ends on a good network where each message keeps the launcher busy for so long.
fn outcome(work: Duration, count: u16) -> Result<(), JoinError> {
    let network = Network::steady(Duration::from_micros(100));
    let mut sim = start_with_work(work, (1, network), count, None, |_| {});
    assert_eq!(sim.run(10 * LIMIT, |sim| result(sim).is_some()), Ended::Reached);
    result(&sim).unwrap().clone()
}

/// What a message costs a launcher may not depend on how many nodes there are: those that have joined never fall silent.
#[test]
fn a_thousand_nodes_join_while_those_that_have_say_what_they_count() {
    // Ten times what a frame costs a build for testing.
    assert_eq!(outcome(Duration::from_millis(1), 1024), Ok(()));
    // A launcher that looks at each process in turn after every message, for one tick of its timer, as long as it needs.
    let tick = Duration::from_millis(1);
    assert_eq!(outcome(tick * 16, 16), Ok(()));
    assert!(matches!(outcome(tick * 512, 512), Err(JoinError::Silent { .. })));
}
