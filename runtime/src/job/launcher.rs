//! The launcher: starts the nodes of a run, connects them, and hands the run to the driver.
//!
//! The launcher is node 0 and has no PEs. The driver runs in it, so files are read and written where the command was
//! typed. It dials all nodes and is dialled by none, so it may sit behind a firewall.

use super::join::Start;
use super::order::Order;
use super::panics;
use super::plan::JobPlan;
use super::processes::Processes;
use super::recruiting::Recruiting;
use super::signals;
use super::start_error::{StartError, local};
use super::starts::{self, Starts};
use super::supervise::{Supervisor, TimeLimit, over};
use crate::balancing::{self, News};
use crate::failure::{Failure, Interruption, Kind};
use crate::frame::{Fabric, Receiver};
use crate::ids::NodeId;
use crate::launch::{self, LaunchedNode};
use crate::monitor::hub::Hub;
use crate::monitor::wire::{MONITOR_VERSION, MonitorEvent, OutputLine, RunInfo};
use crate::node::{DriverEvent, Listeners, Node, NodeSettings};
use crate::proto::membership::{ClusterTable, NodeEntry};
use crate::transport::quic::{LinkSettings, QuicFabric};
use crate::transport::tls::RunAuthority;
use loadbalance::balance::{Choice, Stay};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver as Events};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tracing::Instrument as _;

/// A run that has started. Dropping it ends the nodes at once; [`finish`](Self::finish) ends them in order.
#[derive(Debug)]
pub struct Job {
    node: Arc<Node>,
    hub: Arc<Hub>,
    events: Option<Events<DriverEvent>>,
    orders: UnboundedSender<Order>,
    thread: Option<JoinHandle<Option<Failure>>>,
    limit: Option<TimeLimit>,
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
        let limit = plan.timeout.map(TimeLimit::new);
        let ends = orders.downgrade();
        let thread = std::thread::Builder::new().name("network".into()).spawn(move || {
            panics::end_the_run_by(ends);
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = started.send(Err(local("the network thread cannot start", &error)));
                    return None;
                }
            };
            runtime.block_on(async move {
                // What was started is killed when the start is dropped half-way.
                let outcome = tokio::select! {
                    outcome = start(plan, limit) => outcome,
                    failure = signals::ended(&mut inbox) => Err(StartError::Ended(failure)),
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
                Ok(Self { node, hub, events: Some(events), orders, thread: Some(thread), limit })
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

    /// When the time limit ends the run, which counts from before its nodes were started; `None` if nothing limits it.
    #[must_use]
    pub fn ends_at(&self) -> Option<Instant> {
        self.limit.and_then(TimeLimit::at)
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
    let starts = Starts::new(&plan, authority, output);
    let launched = starts.launch_from(1, None)?.instrument(span.clone()).await?;
    let table = table_of(&plan, &run_id, &launched);
    let widths = launched.iter().map(|node| node.ready.architecture.pointer_bits);
    let narrowest = widths.chain([usize::BITS]).min().unwrap_or(usize::BITS);
    let topology = table.topology().map_err(StartError::Local)?;
    let settings =
        NodeSettings { always_pup: plan.always_pup, detail: plan.detail, ..NodeSettings::default() };
    let node = Node::new(NodeId::LAUNCHER, topology, Arc::clone(&plan.program), settings);
    let (driver, events) = mpsc::channel();
    let (launcher, heard) = unbounded_channel();
    let (balancing, loads) = mpsc::channel();
    let balancing = plan.wants_loads().then_some(balancing);
    node.listen(Listeners { driver, supervision: Some(launcher), balancing });
    let identity = starts.authority().issue(NodeId::LAUNCHER).map_err(|e| local("no certificate", &e))?;
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
    let lines_of_program = plan.program.lines();
    start.join(lines_of_program.clone()).instrument(tracing::info_span!(parent: &span, "join")).await?;
    let Start { table, heard, processes, .. } = start;
    // Where nobody balances, somebody keeps count all the same.
    let nobody = plan.keeps_loads.then(|| Choice::Always(Box::new(Stay)));
    if let Some(choice) = plan.balance.map(|(choice, _)| choice).or(nobody) {
        if let Some(doubt) = choice.doubt(node.topology().pe_count()) {
            hub.find(format!("--balance: {doubt}"));
        }
        let (hub, told) = (Arc::clone(&hub), Arc::clone(&hub));
        let tell = move |news| match news {
            News::Decisions(balanced) => told.describe(|info| info.balanced = balanced),
            News::Cost(cost) => told.set_balancing_cost(cost),
            News::Heaviest(heaviest) => told.publish(MonitorEvent::Heaviest(heaviest)),
        };
        balancing::start(Arc::clone(&node), choice, loads, move || hub.left_s(), tell)
            .map_err(|e| local("there is no thread to balance on", &e))?;
    }
    let ready = Ready { node: Arc::clone(&node), hub: Arc::clone(&hub), events };
    let recruiting = Recruiting::new(starts, table, &lines_of_program, narrowest);
    let supervisor = Supervisor::new(node, fabric, hub, processes, recruiting, heard, lines, limit);
    Ok((supervisor, ready))
}

fn table_of(plan: &JobPlan, run_id: &str, launched: &[LaunchedNode]) -> ClusterTable {
    let here = NodeEntry { name: "launcher".into(), address: String::new(), pe_count: 0 };
    let there = plan.config.nodes.iter().zip(launched).map(|(config, started)| NodeEntry {
        name: config.name.clone(),
        address: started.ready.addr.to_string(),
        pe_count: starts::pes_of(config, started),
    });
    let nodes = std::iter::once(here).chain(there).collect();
    ClusterTable { begun: plan.begun.clone(), ..ClusterTable::new(run_id, nodes) }
}

fn info_of(plan: &JobPlan, run_id: &str, launched: &[LaunchedNode], node: &Node) -> RunInfo {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let nodes = plan.config.nodes.iter().zip(launched).map(|(config, started)| {
        let first_pe = node.topology().pes(started.node).first().copied().unwrap_or_default();
        starts::info_of(config, started, first_pe)
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
