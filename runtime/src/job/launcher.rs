//! The launcher: starts the nodes of a run, connects them, and hands the run to the driver.
//!
//! The launcher is node 0 and has no PEs. The driver runs in it, so files are read and written where the command was
//! typed. It dials all nodes and is dialled by none, so it may sit behind a firewall.

use super::bootstrap::Bootstrap;
use super::join::Start;
use super::order::Order;
use super::processes::Processes;
use super::signals;
use super::start_error::{StartError, local};
use super::supervise::{Supervisor, TimeLimit, over};
use crate::balancing;
use crate::config::{ClusterConfig, LaunchMethod, NodeConfig};
use crate::failure::{Failure, Interruption, Kind};
use crate::frame::{Fabric, Receiver};
use crate::ids::NodeId;
use crate::launch::{self, LaunchOptions, LaunchedNode};
use crate::monitor::hub::Hub;
use crate::monitor::wire::{MONITOR_VERSION, NodeInfo, OutputLine, RunInfo};
use crate::node::{DriverEvent, Listeners, Node, NodeSettings};
use crate::object::ProgramTable;
use crate::proto::membership::{ClusterTable, NodeEntry};
use crate::transport::quic::{LinkSettings, QuicFabric};
use crate::transport::tls::RunAuthority;
use loadbalance::balance::{Choice, Stay};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver as Events};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tracing::Instrument as _;

/// What is to be run, and where.
#[derive(Debug)]
pub struct JobPlan {
    /// Chare types and kernels.
    pub program: Arc<ProgramTable>,
    /// The application's name.
    pub app: String,
    /// What the run is called, where runs are watched; if absent, the application and some digits. No other run of the
    /// user on this machine may be called so.
    pub name: Option<String>,
    /// The command line, for people.
    pub arguments: Vec<String>,
    /// The application's arguments, for its kernel.
    pub kernel_arguments: Vec<u8>,
    /// The nodes.
    pub config: ClusterConfig,
    /// How to start them.
    pub launch: LaunchOptions,
    /// Pack every message (for tests).
    pub always_pup: bool,
    /// Who balances, and how the user wrote that; nobody does without.
    pub balance: Option<(Choice, String)>,
    /// Whether what chares cost and who talks to whom is to be known in any case, to be saved.
    pub keeps_loads: bool,
    /// The seed from which chares move at random moments (for tests).
    pub wander: Option<u64>,
    /// Counts of PEs of the nodes, launcher first, with which the run began that goes on; empty for a new one.
    pub begun: Vec<u32>,
    /// The run is ended after so long, counted from the start of its nodes.
    pub timeout: Option<Duration>,
}

impl JobPlan {
    /// Whether somebody wants to know what chares cost.
    fn wants_loads(&self) -> bool {
        self.keeps_loads || self.balance.is_some()
    }
}

/// A run that has started. Dropping it ends the nodes at once; [`finish`](Self::finish) ends them in order.
#[derive(Debug)]
pub struct Job {
    node: Arc<Node>,
    hub: Arc<Hub>,
    events: Option<Events<DriverEvent>>,
    orders: UnboundedSender<Order>,
    thread: Option<JoinHandle<Option<Failure>>>,
}

impl Job {
    /// Starts all nodes of `plan`, connects and admits them. Blocks until they are ready to work, or one
    /// failed; then none is left running.
    ///
    /// # Errors
    /// Which node failed at which step, and how to mend it.
    pub fn start(plan: JobPlan) -> Result<Self, StartError> {
        let (orders, mut inbox) = unbounded_channel();
        signals::send_to(orders.clone()).map_err(|e| local("signals cannot be heard", &e))?;
        let (started, outcome) = mpsc::channel();
        let thread = std::thread::Builder::new().name("network".into()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = started.send(Err(local("the network thread cannot start", &error)));
                    return None;
                }
            };
            runtime.block_on(async move {
                let limit = plan.timeout.map(TimeLimit::new);
                // What was started is killed when the start is dropped half-way.
                let outcome = tokio::select! {
                    outcome = start(plan, limit) => outcome,
                    by = signals::interrupted(&mut inbox) => {
                        Err(StartError::Ended(Failure::interrupted(by)))
                    }
                    mut failure = over(limit) => {
                        failure.sentence += ", and not all nodes have started";
                        Err(StartError::Ended(failure))
                    }
                };
                match outcome {
                    Ok((supervisor, ready)) => {
                        let _ = started.send(Ok(ready));
                        supervisor.supervise(inbox).await
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                        None
                    }
                }
            })
        });
        let thread = thread.map_err(|e| local("the network thread cannot start", &e))?;
        match outcome.recv() {
            Ok(Ok(Ready { node, hub, events })) => {
                Ok(Self { node, hub, events: Some(events), orders, thread: Some(thread) })
            }
            Ok(Err(error)) => {
                // With the thread everything ends that was started; a panic in it has been printed.
                let _ = thread.join();
                Err(error)
            }
            Err(error) => Err(local("the network thread ended early", &error)),
        }
    }

    /// The launcher's node: what the driver sends through.
    #[must_use]
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// What viewers are told.
    #[must_use]
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// What the driver waits for; once.
    pub fn take_events(&mut self) -> Option<Events<DriverEvent>> {
        self.events.take()
    }

    /// A way to end the run because the user wants it.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.orders.clone())
    }

    /// Whether all nodes have ended, which before [`finish`](Self::finish) means that the run has failed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends all nodes in good order and says what went wrong, if anything did before or now.
    pub fn finish(mut self) -> Option<Failure> {
        self.end(Order::Finish)
    }

    fn end(&mut self, order: Order) -> Option<Failure> {
        let _ = self.orders.send(order);
        let thread = self.thread.take()?;
        thread
            .join()
            .unwrap_or_else(|_| Some(Failure::new(Kind::Failed, "the launcher's network thread panicked")))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end(Order::Abandon);
    }
}

/// Ends a run because the user wants it.
#[derive(Clone, Debug)]
pub struct Interrupter(UnboundedSender<Order>);

impl Interrupter {
    /// Ends the run; the driver's waits fail with "interrupted".
    pub fn interrupt(&self) {
        let _ = self.0.send(Order::Interrupt(Interruption::Interrupt));
    }

    /// Ends the run because its terminal was closed, as SIGHUP does; for a terminal that sends none.
    pub fn hang_up(&self) {
        let _ = self.0.send(Order::Interrupt(Interruption::HangUp));
    }
}

/// What a started run hands to its owner.
struct Ready {
    node: Arc<Node>,
    hub: Arc<Hub>,
    events: Events<DriverEvent>,
}

async fn start(plan: JobPlan, limit: Option<TimeLimit>) -> Result<(Supervisor, Ready), StartError> {
    let run_id = plan.name.clone().unwrap_or_else(|| format!("{}-{}", plan.app, unique()));
    let authority =
        RunAuthority::new(&run_id).map_err(|e| local("the run's certificates cannot be made", &e))?;
    // Only parts are inside it: the network's own tasks would keep the span that they begin in until they end.
    let span = tracing::info_span!("start");
    tracing::info!(parent: &span, "{} nodes are started for {run_id}", plan.config.nodes.len());
    let (output, lines) = unbounded_channel::<OutputLine>();
    let launched = launch_nodes(&plan, &authority, output).instrument(span.clone()).await?;
    let table = table_of(&plan, &run_id, &launched);
    let topology = table.topology().map_err(StartError::Local)?;
    let settings = NodeSettings { always_pup: plan.always_pup, ..NodeSettings::default() };
    let node = Node::new(NodeId::LAUNCHER, topology, Arc::clone(&plan.program), settings);
    let (driver, events) = mpsc::channel();
    let (launcher, heard) = unbounded_channel();
    let (balancing, loads) = mpsc::channel();
    let balancing = plan.wants_loads().then_some(balancing);
    node.listen(Listeners { driver, supervision: Some(launcher), balancing });
    let identity = authority.issue(NodeId::LAUNCHER).map_err(|e| local("no certificate", &e))?;
    let receiver: Arc<dyn Receiver> = Arc::clone(&node) as _;
    // The launcher dials all nodes, so that it may sit behind a firewall, and no one dials it.
    let here = SocketAddr::new(launch::dialling_ip(launched.iter().map(|n| n.ready.addr.ip())), 0);
    let settings = LinkSettings { is_dialled: false, ports: None, ..plan.config.network.links() };
    let fabric = QuicFabric::bind(here, &identity, NodeId::LAUNCHER, receiver, settings)
        .map_err(|e| local(&format!("the launcher cannot dial from {}", here.ip()), &e))?;
    let address = |entry: &NodeEntry| entry.address.parse::<SocketAddr>().ok();
    fabric.set_addresses(table.nodes.iter().map(address).collect());
    node.connect(Arc::clone(&fabric) as Arc<dyn Fabric>);
    let hub = Arc::new(Hub::new(info_of(&plan, &run_id, &launched, &node)));
    let mut start =
        Start { node: &node, fabric: &fabric, table, heard, processes: Processes::attend(launched) };
    start.join(plan.program.lines()).instrument(tracing::info_span!(parent: &span, "join")).await?;
    let Start { table, heard, processes, .. } = start;
    // Where nobody balances, somebody keeps count all the same.
    let nobody = plan.keeps_loads.then(|| Choice::Always(Box::new(Stay)));
    if let Some(choice) = plan.balance.map(|(choice, _)| choice).or(nobody) {
        let (hub, told) = (Arc::clone(&hub), Arc::clone(&hub));
        let tell = move |balanced| told.describe(|info| info.balanced = balanced);
        balancing::start(Arc::clone(&node), choice, loads, move || hub.left_s(), tell)
            .map_err(|e| local("there is no thread to balance on", &e))?;
    }
    let names = table.nodes.into_iter().map(|entry| entry.name).collect();
    let ready = Ready { node: Arc::clone(&node), hub: Arc::clone(&hub), events };
    let supervisor = Supervisor::new(node, fabric, hub, processes, names, heard, lines, limit);
    Ok((supervisor, ready))
}

async fn launch_nodes(
    plan: &JobPlan,
    authority: &RunAuthority,
    output: UnboundedSender<OutputLine>,
) -> Result<Vec<LaunchedNode>, StartError> {
    let numbered: Vec<(NodeId, NodeConfig)> =
        (1u16..).map(NodeId).zip(plan.config.nodes.iter().cloned()).collect();
    let node_count =
        u16::try_from(numbered.len() + 1).map_err(|_| StartError::Local("too many nodes".into()))?;
    let shares = shared_hosts(&plan.config);
    let mut bootstraps = HashMap::new();
    for (at, (id, config)) in numbered.iter().enumerate() {
        let identity = authority.issue(*id).map_err(|e| local("no certificate", &e))?;
        let bootstrap = Bootstrap {
            node: *id,
            node_count,
            identity,
            listen: config.address,
            first_core: shares[at].first_core,
            nodes_before: shares[at].nodes_before,
            threads_on_host: shares[at].threads_on_host,
            used_cores_on_host: shares[at].used_cores,
            cpu_share: config.cpu_share.unwrap_or(1.0),
            memory_bytes: config.memory_bytes,
            network: plan.config.network.clone(),
            always_pup: plan.always_pup,
            balances: plan.wants_loads(),
            counts_traffic: plan.keeps_loads
                || plan.balance.as_ref().is_some_and(|(choice, _)| choice.uses_edges()),
            wander: plan.wander,
            kernel_arguments: plan.kernel_arguments.clone(),
        };
        bootstraps.insert(*id, bootstrap);
    }
    let first_words = |id: NodeId, local_ip: Option<IpAddr>| {
        let mut bootstrap = bootstraps.remove(&id)?;
        bootstrap.listen = bootstrap.listen.or(local_ip);
        postcard::to_stdvec(&bootstrap).ok()
    };
    Ok(launch::launch_all(&numbered, first_words, output, plan.launch.clone()).await?)
}

/// What a node has of its host; see [`Bootstrap`].
struct HostShare {
    /// None if its host has too few cores for all PEs.
    first_core: Option<u32>,
    nodes_before: u32,
    threads_on_host: u32,
    used_cores: f64,
}

fn shared_hosts(config: &ClusterConfig) -> Vec<HostShare> {
    let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let host_of = |n: &NodeConfig| match n.launch {
        LaunchMethod::Local => String::new(),
        LaunchMethod::Ssh => n.host.clone(),
    };
    // PEs, nodes and used cores of each host.
    let mut used: HashMap<String, (u32, u32, f64)> = HashMap::new();
    let mut before = Vec::new();
    for node in &config.nodes {
        let (pes, nodes, used_cores) = used.entry(host_of(node)).or_default();
        before.push((*pes, *nodes));
        let all = if node.launch == LaunchMethod::Local { cores } else { 0 };
        let own = node.pes.unwrap_or(all);
        *pes = pes.saturating_add(own);
        *nodes += 1;
        *used_cores += f64::from(own) * node.cpu_share.unwrap_or(1.0);
    }
    let share = |(node, (first, nodes_before)): (&NodeConfig, (u32, u32))| {
        let (pes, nodes, used_cores) = used[&host_of(node)];
        let fits = node.launch == LaunchMethod::Ssh || pes <= cores;
        let first_core = fits.then_some(first);
        HostShare { first_core, nodes_before, threads_on_host: pes.saturating_add(nodes), used_cores }
    };
    config.nodes.iter().zip(before).map(share).collect()
}

fn table_of(plan: &JobPlan, run_id: &str, launched: &[LaunchedNode]) -> ClusterTable {
    let here = NodeEntry { name: "launcher".into(), address: String::new(), pe_count: 0 };
    let there = plan.config.nodes.iter().zip(launched).map(|(config, started)| NodeEntry {
        name: config.name.clone(),
        address: started.ready.addr.to_string(),
        pe_count: config.pes.unwrap_or(started.ready.cores).max(1),
    });
    let nodes = std::iter::once(here).chain(there).collect();
    ClusterTable { run_id: run_id.into(), nodes, begun: plan.begun.clone() }
}

fn info_of(plan: &JobPlan, run_id: &str, launched: &[LaunchedNode], node: &Node) -> RunInfo {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let nodes = plan.config.nodes.iter().zip(launched).map(|(config, started)| {
        let pes = node.topology().pes(started.node);
        NodeInfo {
            node: started.node.0,
            name: config.name.clone(),
            host: config.host.clone(),
            cpu: started.ready.cpu_model.clone(),
            cores: started.ready.cores,
            allowed_cores: started.ready.allowed_cores.clone(),
            first_pe: pes.first().copied().unwrap_or_default(),
            pe_count: u32::try_from(pes.len()).unwrap_or(u32::MAX),
            pe_speeds: vec![0.0; pes.len()],
            pe_parts: Vec::new(),
            cpu_share: config.cpu_share.unwrap_or(1.0),
            share: None,
            holds: String::new(),
            memory_limit_bytes: config.memory_bytes,
            left: None,
        }
    });
    RunInfo {
        version: MONITOR_VERSION,
        run_id: run_id.into(),
        program: plan.program.name.clone(),
        app: plan.app.clone(),
        arguments: plan.arguments.clone(),
        started_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        nodes: nodes.collect(),
        balance: plan.balance.as_ref().map_or_else(String::new, |(_, text)| text.clone()),
        balanced: Vec::new(),
        slowdowns: Vec::new(),
        saved: None,
        chare_types: plan.program.chare_types.iter().map(|known| known.name.clone()).collect(),
        entry_names: plan.program.entry_names(),
    }
}

/// Six characters that no other run of this machine has at the same time.
fn unique() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mixed =
        (now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:06x}", mixed >> 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_used_by_the_pes_of_one_host_and_by_each_as_much_as_it_may() {
        let node = |name, more| format!("[[node]]\nname = {name:?}\n{more}\n");
        let nodes = [("a", "pes = 2"), ("b", "pes = 1\ncpu_share = 0.5"), ("c", "pes = 3\nhost = \"shark\"")];
        let text: String = nodes.iter().map(|(name, more)| node(name, more)).collect();
        let config = ClusterConfig::parse(&text, "test").unwrap();
        let used: Vec<f64> = shared_hosts(&config).iter().map(|share| share.used_cores).collect();
        assert_eq!(used, [2.5, 2.5, 3.0]);
    }
}
