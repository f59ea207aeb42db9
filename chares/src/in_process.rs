//! A whole run inside one process: several nodes with their PEs as threads, and links that are calls. For
//! tests, and for programs that want chares without a machine park.

use crate::driver::Driver;
use crate::program::{Program, RunError};
use crate::timeline::Timeline;
use loadbalance::balance::Choice;
use runtime::balancing;
use runtime::ids::NodeId;
use runtime::node::{Listeners, Node, NodeSettings};
use runtime::pe::scheduler::start_pes;
use runtime::topology::Topology;
use runtime::transport::loopback::LoopbackNet;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How often nodes are asked to tell their loads.
const LOADS_EVERY: Duration = Duration::from_millis(50);

/// The nodes of a run inside one process.
#[derive(Clone, Debug)]
pub struct InProcess {
    /// PEs of each node.
    pub pes: Vec<u32>,
    /// Relative speeds to assume, one per PE; all equal if empty.
    pub speeds: Vec<f64>,
    /// Pack and unpack every message and constructor argument, also between PEs of one node, and the state of chares
    /// before each of their entry methods.
    pub always_pup: bool,
    /// Move chares to other PEs at random moments that follow from this seed.
    pub wander: Option<u64>,
    /// Counts of PEs of the nodes, launcher first, with which a run began that [goes on](Driver::go_on_from) here; empty for
    /// a new one.
    pub begun: Vec<u32>,
    /// A balancer moves chares while the program runs: `auto` or another, as `--balance` takes it.
    pub balance: Option<String>,
}

impl InProcess {
    /// Nodes with that many PEs each.
    #[must_use]
    pub fn new(pes: &[u32]) -> Self {
        Self {
            pes: pes.to_vec(),
            speeds: Vec::new(),
            always_pup: false,
            wander: None,
            begun: Vec::new(),
            balance: None,
        }
    }

    /// With every message packed and unpacked.
    #[must_use]
    pub fn always_pup(mut self) -> Self {
        self.always_pup = true;
        self
    }

    /// With chares that move at random moments.
    #[must_use]
    pub fn wander(mut self, seed: u64) -> Self {
        self.wander = Some(seed);
        self
    }

    /// With PEs that were together as these counts say when the run began that goes on.
    #[must_use]
    pub fn begun(mut self, pe_counts: &[u32]) -> Self {
        self.begun = pe_counts.to_vec();
        self
    }

    /// With a balancer, as `--balance` takes it.
    #[must_use]
    pub fn balance(mut self, choice: &str) -> Self {
        self.balance = Some(choice.into());
        self
    }

    /// With these relative speeds, one per PE.
    #[must_use]
    pub fn speeds(mut self, speeds: &[f64]) -> Self {
        self.speeds = speeds.to_vec();
        self
    }
}

impl Program {
    /// Runs `drive` on nodes inside this process and ends them.
    ///
    /// # Errors
    /// What `drive` returns, or why the run could not go on.
    pub fn run_in_process<R>(
        self,
        mix: &InProcess,
        drive: impl FnOnce(&mut Driver) -> Result<R, RunError>,
    ) -> Result<R, RunError> {
        let counts: Vec<u32> = std::iter::once(0).chain(mix.pes.iter().copied()).collect();
        let topology = Topology::new(&counts);
        let topology = if mix.begun.is_empty() { topology } else { topology.gone_on_from(&mix.begun) };
        let program = Arc::new(self.into_table());
        let net = LoopbackNet::new();
        let choice = mix.balance.as_ref().map(|choice| choice.parse::<Choice>()).transpose();
        let choice = choice.map_err(|e| RunError::Failed(e.to_string()))?;
        let settings = NodeSettings {
            always_pup: mix.always_pup,
            wander: mix.wander,
            balances: choice.is_some(),
            counts_traffic: choice.as_ref().is_some_and(Choice::uses_edges),
            ..NodeSettings::default()
        };
        let nodes: Vec<Arc<Node>> = (0..topology.node_count())
            .map(|id| Node::new(NodeId(id), topology.clone(), Arc::clone(&program), settings.clone()))
            .collect();
        for node in &nodes {
            let receiver: Arc<dyn runtime::frame::Receiver> = Arc::clone(node) as _;
            net.register(node.id(), &receiver);
            node.connect(net.fabric(node.id()));
        }
        let (driver, events) = mpsc::channel();
        let (balancing, loads) = mpsc::channel();
        let balancing = choice.is_some().then_some(balancing);
        nodes[0].listen(Listeners { driver, supervision: None, balancing });
        if let Some(choice) = choice {
            let telling = nodes[1..].to_vec();
            balancing::start(Arc::clone(&nodes[0]), choice, loads, || None, |_| {})
                .and_then(|()| std::thread::Builder::new().spawn(move || tell_loads(&telling)))
                .map_err(|e| RunError::Failed(format!("there is no thread to balance on: {e}")))?;
        }
        let started = nodes.iter().try_for_each(start_pes);
        started.map_err(|e| RunError::Failed(format!("a PE's thread cannot be started: {e}")))?;
        let mut main = Driver::new(&nodes[0], events, Timeline::new(Instant::now()));
        if !mix.speeds.is_empty() {
            let mut machines = main.machines().clone();
            let rates = machines.nodes.iter_mut().flat_map(|node| &mut node.rates);
            rates.zip(&mix.speeds).for_each(|(rate, speed)| *rate = *speed);
            main.set_machines(machines);
        }
        let result = drive(&mut main).and_then(|result| main.finish_keeping().map(|()| result));
        drop(main);
        let threads: Vec<_> = nodes.iter().flat_map(|node| node.stop_pes()).collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a PE's thread panicked outside of an entry method");
            }
        }
        result
    }
}

/// Has nodes tell their loads until they end.
fn tell_loads(nodes: &[Arc<Node>]) {
    while !nodes[0].has_ended() {
        std::thread::sleep(LOADS_EVERY);
        nodes.iter().for_each(|node| node.tell_loads());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, Callback, Chare, Ctx, Cx, Element, Entry, On, Placement, Sum};
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Bee;
    #[derive(Clone, Serialize, Deserialize)]
    struct Hum(Callback<Sum<u64>>);
    #[derive(Clone, Serialize, Deserialize)]
    struct Leave;
    #[derive(Clone, Serialize, Deserialize)]
    struct Buzz;
    crate::entries!(Bee: Hum, Leave, Buzz; reduces Sum<u64> as "Sum");
    impl Chare for Bee {
        type Index = u32;
        type Init = bool;
        fn new(leaves_at_once: bool, ctx: &mut Ctx<'_, Self>) -> Self {
            if leaves_at_once {
                ctx.destroy();
            }
            Self
        }
    }
    impl Entry<Hum> for Bee {
        fn receive(&mut self, Hum(to): Hum, ctx: &mut Ctx<'_, Self>) {
            ctx.contribute(Sum(1), to);
        }
    }
    impl Entry<Leave> for Bee {
        fn receive(&mut self, _: Leave, ctx: &mut Ctx<'_, Self>) {
            ctx.destroy();
        }
    }

    impl Entry<Buzz> for Bee {
        fn receive(&mut self, _: Buzz, _: &mut Ctx<'_, Self>) {}
    }

    #[derive(Serialize, Deserialize)]
    struct Spinner;
    #[derive(Clone, Serialize, Deserialize)]
    struct Turn(Duration, Callback<Sum<u64>>);
    crate::entries!(Spinner: Turn; reduces Sum<u64> as "Sum");
    impl Chare for Spinner {
        type Index = u32;
        type Init = ();
        fn new(_: (), _: &mut Ctx<'_, Self>) -> Self {
            Self
        }
    }
    impl Entry<Turn> for Spinner {
        fn receive(&mut self, Turn(time, to): Turn, ctx: &mut Ctx<'_, Self>) {
            let begin = std::time::Instant::now();
            while begin.elapsed() < time {}
            ctx.contribute(Sum(1), to);
        }
    }

    /// All calls are so long that those are timed that follow the first few.
    #[test]
    fn a_profile_says_what_entry_methods_cost_where_chares_are_and_who_sends_to_whom() {
        let (short, long) = (Duration::from_millis(1), Duration::from_millis(10));
        let program = Program::new("profile", "1").chare::<Bee>().chare::<Spinner>();
        let names = program.table().entry_names();
        let nodes = program.run_in_process(&InProcess::new(&[2, 1]), |main| {
            let spinners: Array<Spinner> = main.array(6, ());
            for round in 0..5 {
                let (to, sum) = main.pending();
                for at in 0..6 {
                    let time = if (at, round) == (4, 3) { long } else { short };
                    spinners.at(at).send(main, Turn(time, to));
                }
                sum.wait(main)?;
            }
            main.quiescence()?;
            main.snapshots()
        });
        let nodes = nodes.unwrap();
        let profiles: Vec<_> = nodes.iter().filter_map(|node| node.profile.as_ref()).collect();
        let turns = || {
            let all = profiles.iter().flat_map(|profile| &profile.entries);
            all.filter(|entry| names[usize::from(entry.name)] == "Spinner: Turn")
        };
        let calls = turns().map(|entry| entry.calls).sum::<u64>();
        assert!((15..=45).contains(&calls), "{calls} of 30");
        assert!(turns().map(|entry| entry.ns).sum::<u64>() >= long.as_nanos() as u64);
        // Which one it is depends on who else wants the core.
        let slowest = turns().map(|entry| &entry.slowest).max_by_key(|call| call.ns).unwrap();
        assert!(slowest.ns >= long.as_nanos() as u64 && slowest.at_ns > slowest.ns, "{slowest:?}");
        assert!((0..6).any(|at| slowest.element == format!("[{at}]")), "{slowest:?}");
        let chares = profiles.iter().flat_map(|profile| &profile.chares);
        assert_eq!(
            chares
                .map(|count| (count.chare_type, count.chares))
                .fold((1, 0), |sum, one| (one.0, sum.1 + one.1)),
            (1, 6)
        );
        for node in nodes.iter().filter(|node| node.node > 0) {
            let sent = &node.profile.as_ref().unwrap().sent_to;
            assert!(
                !sent.is_empty() && sent.iter().all(|to| to.node != node.node && to.messages > 0),
                "{sent:?}"
            );
            assert_eq!(sent.iter().map(|to| to.bytes).sum::<u64>(), node.sent_bytes);
        }
    }

    /// Neither constructors nor reductions count, nor messages that wait or are dropped.
    #[test]
    fn entry_methods_are_counted_when_they_have_run() {
        for pes in [&[1][..], &[2, 1], &[1, 1, 2]] {
            let program = Program::new("count", "1").chare::<Bee>();
            let counted = program.run_in_process(&InProcess::new(pes), |main| {
                let hive: Array<Bee> = main.array_deferred(7, Placement::Block);
                let (to, sum) = main.pending();
                hive.broadcast(main, Hum(to));
                (0..7).for_each(|at| hive.at(at).send(main, Buzz));
                (0..7).for_each(|at| main.insert(&hive, at, false));
                sum.wait(main)?;
                let ready: Array<Bee> = main.array(20, false);
                ready.broadcast(main, Hum(Callback::ignore()));
                for leaves_at_once in [false, true] {
                    let solo: Element<Bee> = main.chare(leaves_at_once, On::BySpeed);
                    (0..3).for_each(|_| solo.send(main, Leave));
                }
                main.quiescence()?;
                let snapshots = main.snapshots()?;
                let pes: Vec<_> = snapshots.iter().flat_map(|node| &node.pes).collect();
                Ok((
                    pes.iter().map(|pe| pe.entries).sum::<u64>(),
                    pes.iter().map(|pe| pe.chares).sum::<u64>(),
                ))
            });
            assert_eq!(counted.unwrap(), (7 + 7 + 20 + 1, 7 + 20), "entry methods and chares on {pes:?}");
        }
    }
}
