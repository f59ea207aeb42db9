//! A node: what the PEs of one process share, and how envelopes leave and enter it.

mod arranging;
mod arrivals;
mod catalogue;
mod control_groups;
mod counters;
mod cutting;
mod extents;
mod held;
mod links;
mod listeners;
mod local_pes;
mod memory;
mod moving;
mod multicast;
pub(crate) mod naming;
pub(crate) mod processors;
mod router;
mod run_state;
mod saving;
mod sharing;
mod sums;
mod telling;
pub mod variables;

pub use arranging::Recruit;
pub use listeners::{BalancingEvent, DriverEvent, LauncherEvent, Listeners};
pub use variables::INIT_OVER;

use crate::codec::{Announcement, ControlToLauncher, ControlToNode, Order, Spread};
use crate::collection::Collection;
use crate::envelope::{CollectionId, Packed, Payload};
use crate::failure::Failure;
use crate::frame::{Fabric, SendError};
use crate::ids::{NodeId, PeId};
use crate::loads::KnownLoads;
use crate::monitor::Detail;
use crate::monitor::requests::Asked;
use crate::monitor::wire::Phase;
use crate::object::{ChareType, ProgramTable};
use crate::progress::Progress;
use crate::proto::quiescence::Quiescence;
use crate::proto::snapshot::Colour;
use crate::saved::FindSaved;
use crate::spin::Spin;
use crate::topology::Topology;
use arranging::Tables;
use arrivals::Checks;
use catalogue::Catalogue;
use cutting::Cutting;
use extents::Extents;
use held::Held;
use links::Links;
use listeners::Hearing;
use local_pes::LocalPes;
use naming::Named;
use processors::{HostProcessors, Quota};
use run_state::RunState;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sums::Sums;
use variables::Variables;

/// How a node behaves; the same on all nodes of a run unless the nodes file says otherwise.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Pack and unpack every message and constructor argument, also inside the process, and the state of chares before each
    /// of their entry methods (for tests).
    pub always_pup: bool,
    /// Say what chares cost, so that somebody can balance.
    pub balances: bool,
    /// Say who talks to whom, too.
    pub counts_traffic: bool,
    /// How much PEs find out about what they do.
    pub detail: Detail,
    /// From this seed on, chares move to other PEs at random moments (for tests).
    pub wander: Option<u64>,
    /// How long an idle PE stays awake before it sleeps, while nobody else wants its core; zero where a quota of CPU time
    /// is below what PEs could use.
    pub spin: Duration,
    /// Whether the network's thread has a core for itself. If not, idle PEs do its work.
    pub has_spare_core: bool,
    /// Cores that PEs are pinned to, in their order; not pinned where there are fewer than PEs.
    pub cores: Vec<usize>,
    /// Cores that the process may use; threads that work beside PEs run on any of them.
    pub allowed_cores: Vec<usize>,
    /// PEs use at most this share of their core, 0 to 1.
    pub cpu_share: f64,
    /// Memory that the process may take; balancers are told how much is left.
    pub memory_bytes: Option<u64>,
    /// The application's arguments, for its kernel.
    pub kernel_arguments: Vec<u8>,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            always_pup: false,
            balances: false,
            counts_traffic: false,
            detail: Detail::default(),
            wander: None,
            spin: Duration::ZERO,
            has_spare_core: false,
            cores: Vec::new(),
            allowed_cores: Vec::new(),
            cpu_share: 1.0,
            memory_bytes: None,
            kernel_arguments: Vec::new(),
        }
    }
}

/// One process of the run. What changes together is a part with a type of its own; the node connects them.
pub struct Node {
    id: NodeId,
    /// Itself, for the threads that it starts.
    this: Weak<Self>,
    tables: Tables,
    /// Orders to PEs are given while nobody changes where these are.
    arranging: RwLock<()>,
    settings: NodeSettings,
    spin: Arc<Spin>,
    start: Instant,
    catalogue: Catalogue,
    pes: LocalPes,
    links: Links,
    listeners: Hearing,
    state: RunState,
    variables: Variables,
    sums: Sums,
    cutting: Cutting,
    quiescence: Mutex<Quiescence>,
    host_memory: memory::HostMemory,
    host_processors: HostProcessors,
    quota: Mutex<Quota>,
    /// How many snapshots have been taken.
    snapshots: AtomicU64,
    /// When the launcher was told loads last, nanoseconds since the node's start.
    told_loads_ns: AtomicU64,
    held: Held,
    extents: Extents,
    finder: OnceLock<Box<dyn FindSaved>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with PEs {:?}", self.id, self.topology().pes(self.id))
    }
}

impl Node {
    /// A node whose PEs have not been started.
    #[must_use]
    pub fn new(
        id: NodeId,
        topology: Topology,
        program: Arc<ProgramTable>,
        settings: NodeSettings,
    ) -> Arc<Self> {
        let detail = settings.detail;
        Arc::new_cyclic(|this| Self {
            id,
            this: Weak::clone(this),
            arranging: RwLock::new(()),
            spin: Spin::new(settings.spin),
            settings,
            start: Instant::now(),
            pes: LocalPes::new(topology.pes(id), &topology, &program, detail),
            catalogue: Catalogue::new(program),
            links: Links::new(topology.node_count()),
            listeners: Hearing::default(),
            state: RunState::new(topology.pe_count()),
            variables: Variables::default(),
            sums: Sums::default(),
            cutting: Cutting::default(),
            quiescence: Mutex::new(Quiescence::among(id, topology.members().collect())),
            host_memory: memory::HostMemory::default(),
            host_processors: HostProcessors::allowed(),
            quota: Mutex::new(Quota::of_this_process()),
            snapshots: AtomicU64::new(0),
            told_loads_ns: AtomicU64::new(0),
            tables: Tables::new(topology),
            held: Held::default(),
            extents: Extents::default(),
            finder: OnceLock::new(),
        })
    }

    /// Connects the node with the others; once, before anything is sent.
    pub fn connect(&self, fabric: Arc<dyn Fabric>) {
        self.links.connect(fabric);
    }

    /// Makes this node tell a launcher what it hears; once, on the launcher.
    pub fn listen(&self, listeners: Listeners) {
        self.listeners.begin(listeners);
    }

    /// Calls `action` when the launcher says that the run is over; once.
    pub fn on_end(&self, action: impl Fn() + Send + Sync + 'static) {
        self.state.on_end(action);
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The PEs of all nodes.
    #[must_use]
    #[inline]
    pub fn topology(&self) -> &Topology {
        self.tables.latest()
    }

    /// Chare types and kernels of the program.
    #[must_use]
    pub fn program(&self) -> &Arc<ProgramTable> {
        self.catalogue.program()
    }

    /// How the node behaves.
    #[must_use]
    pub fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    /// How long its idle threads stay awake.
    #[must_use]
    pub fn spin(&self) -> &Arc<Spin> {
        &self.spin
    }

    /// What carries its frames to other nodes, once there is something.
    pub(crate) fn fabric(&self) -> Option<&Arc<dyn Fabric>> {
        self.links.any_fabric()
    }

    /// Where its idle PEs take turns at the network, if they do.
    pub(crate) fn progress(&self) -> Option<&Arc<Progress>> {
        self.links.progress()
    }

    /// Relative speeds of all PEs of the run, the fastest 1.0; all 1.0 until measured.
    #[must_use]
    pub fn speeds(&self) -> Arc<Vec<f64>> {
        self.state.speeds()
    }

    /// Work per second of processor time of each PE; the speeds where that was not measured. Only on the launcher.
    #[must_use]
    pub fn cpu_rates(&self) -> Vec<f64> {
        self.measured_cpu_rates().unwrap_or_else(|| self.speeds().to_vec())
    }

    /// Work per second of processor time of each PE, if that was measured in this run. Only on the launcher.
    #[must_use]
    pub fn measured_cpu_rates(&self) -> Option<Vec<f64>> {
        self.state.cpu_rates()
    }

    /// Sets the speeds on every node.
    pub fn set_speeds(&self, speeds: Vec<f64>) {
        self.order_all(&Order::Speeds(speeds.clone()));
        self.state.set_speeds(speeds);
    }

    /// Time since the node's start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The same in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether the program has not said `init_over` yet.
    #[must_use]
    pub fn is_init(&self) -> bool {
        self.state.is_init()
    }

    /// The type of a collection's chares, if that is known here.
    #[must_use]
    pub fn chare_type_of(&self, id: CollectionId) -> Option<&ChareType> {
        let number = self.catalogue.chare_type_of(id)?;
        self.program().chare_types.get(usize::from(number))
    }

    /// A collection, once its description has arrived here.
    #[must_use]
    pub fn collection(&self, id: CollectionId) -> Option<Arc<Collection>> {
        self.catalogue.collection(id)
    }

    /// Memory that this process has taken, without pages of files, bytes.
    #[must_use]
    pub fn snapshot_memory(&self) -> u64 {
        memory::taken_bytes()
    }

    /// What its `memory` limit leaves this process, bytes; `None` without a limit.
    fn memory_room_bytes(&self) -> Option<u64> {
        self.settings.memory_bytes.map(|limit| limit.saturating_sub(memory::taken_bytes()))
    }

    /// What is known of the loads of chares, where somebody collects that; only on the launcher.
    #[must_use]
    pub fn known_loads(&self) -> Option<KnownLoads> {
        let (known, answer) = mpsc::channel();
        self.listeners.tell_balancing(BalancingEvent::Asked(known));
        answer.recv().ok()
    }

    /// Ends the run with one sentence, as soon as the launcher hears of it.
    pub fn fail(&self, sentence: String) {
        if self.state.fail() {
            self.tell_launcher(ControlToLauncher::Fault(sentence));
        }
    }

    /// Tells the launcher what the application is doing.
    pub fn phase(&self, phase: Phase) {
        self.tell_launcher(ControlToLauncher::Phase(phase));
    }

    /// Has the progress of all PEs shown, out of `total` units; it adds up to `before` now. Only on the launcher.
    pub fn count_progress(&self, name: String, total: u64, before: u64) {
        self.listeners.tell_supervision(LauncherEvent::Counted { name, total, before });
    }

    /// Says on every node that initialisation is over; the driver hears `VariableSet` of [`INIT_OVER`] from each.
    pub fn set_init_over(&self, is_over: bool) {
        if let Some(first) = self.topology().compute_nodes().first() {
            self.control(*first, ControlToNode::InitOver(is_over));
        }
        self.take_init_over(is_over);
    }

    /// Begins to look for quiescence; the driver hears `Quiescent` with the number that this gives. A search
    /// without hurry costs next to nothing. Only on the launcher.
    pub fn start_quiescence(&self, in_hurry: bool) -> u64 {
        let search = if in_hurry { self.quiescence().start() } else { self.quiescence().start_slowly() };
        self.pump_quiescence();
        search
    }

    /// Goes on looking for quiescence; says when to call again.
    pub fn pump_quiescence(&self) -> Option<Duration> {
        let mut found = Vec::new();
        let timeout = {
            let mut quiescence = self.quiescence();
            let now = self.now();
            while let Some(output) = quiescence.poll(now, || self.pes.counts()) {
                found.push(output);
            }
            quiescence.timeout()
        };
        self.act_on_quiescence(found);
        timeout.map(|at| at.saturating_sub(self.now()))
    }

    /// Asks a node for a snapshot; the driver hears an `Answer` with `mark`.
    pub fn ask(&self, node: NodeId, mark: u32) {
        self.order(node, Order::Ask(mark), Packed::default());
    }

    /// Asks every node with PEs for a snapshot; the driver hears an `Answer` with `mark` from each.
    pub fn ask_all(&self, mark: u32) {
        self.order_all(&Order::Ask(mark));
    }

    /// Asks every node for what it added to an accumulator; the driver hears `Collected` from each.
    pub fn collect_all(&self, id: u64) {
        self.order_all(&Order::Collect(id));
    }

    /// Makes a collection known here and on all nodes, whose PEs then construct its elements, for somebody of that colour. Bytes
    /// that left from here for that.
    pub fn create(&self, colour: Colour, collection: Collection, init: Packed) -> u64 {
        self.spread(colour, Spread::Announcement(Announcement::Collection(collection)), init)
    }

    /// Ends all nodes in good order.
    pub fn end_all(&self) {
        self.order_all(&Order::End);
    }

    /// Stops this node's PEs after the entry methods that run now; their threads, all of them that were started.
    pub fn stop_pes(&self) -> Vec<JoinHandle<()>> {
        self.state.end();
        self.held.end();
        self.extents.end();
        self.pes.stop();
        self.pes.take_threads()
    }

    /// Ends a node that has no PEs any more, while the run goes on; only on the launcher. The driver hears `Left` when its
    /// process is gone, if somebody supervises the run; whether that is so.
    pub fn release(&self, node: NodeId) -> bool {
        self.listeners.tell_supervision(LauncherEvent::Released(node));
        self.order(node, Order::End, Packed::default());
        self.listeners.is_supervised()
    }

    /// Tells the driver that the process of a node has ended which was [released](Self::release).
    pub fn tell_left(&self, node: NodeId) {
        self.listeners.tell_driver(DriverEvent::Left(node));
    }

    /// Tells the driver of a process that was [wanted](Self::recruit).
    pub fn tell_recruited(&self, recruited: Result<Box<Recruit>, Failure>) {
        self.listeners.tell_driver(DriverEvent::Recruited(recruited));
    }

    /// Whether initialisation goes on where a node joins later, and the colour that all have there.
    pub(crate) fn begin_with(&self, is_init: bool, colour: Colour) {
        self.state.set_init(is_init);
        if colour != self.colour() {
            self.variables.change_colour();
            self.variables.close();
        }
    }

    /// Makes the driver's waits fail with this.
    pub fn tell_failed(&self, failure: Failure) {
        self.listeners.tell_driver(DriverEvent::Failed(failure));
    }

    /// Tells the driver that whoever keeps a checkpoint is done with it.
    pub fn tell_kept(&self) {
        self.listeners.tell_driver(DriverEvent::Kept);
    }

    /// Has the driver do what somebody asks for at another terminal, as soon as it waits.
    pub fn ask_driver(&self, asked: Asked) {
        self.listeners.tell_driver(DriverEvent::Asked(asked));
    }

    /// Tells a node with PEs to do something. Only on the launcher.
    pub fn order(&self, to: NodeId, order: Order, payload: Packed) {
        self.send_frame((to, None), &ControlToNode::Order(order), payload);
    }

    /// Whether the run has ended here.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state.has_ended()
    }

    /// Counts a message or result that the driver took.
    pub fn driver_processed(&self) {
        self.pes.account(PeId::DRIVER).processed();
    }

    /// Gives the driver a result for which it waits under this number, in the colour of who sent it.
    pub(crate) fn take_result(&self, colour: Option<Colour>, slot: u64, result: Payload) {
        self.listeners.tell_driver(DriverEvent::Slot(colour, slot, result));
    }

    /// Its PEs.
    #[inline]
    pub(crate) fn pes(&self) -> &LocalPes {
        &self.pes
    }

    /// What it knows of chare types and collections.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Checks of what comes by links, or inside a message.
    pub(crate) fn checks(&self) -> Checks<'_> {
        Checks { me: self.id, topology: self.topology(), catalogue: &self.catalogue }
    }

    fn order_all(&self, order: &Order) {
        let nodes = self.topology().compute_nodes().iter();
        nodes.for_each(|node| self.order(*node, order.clone(), Packed::default()));
    }

    fn quiescence(&self) -> MutexGuard<'_, Quiescence> {
        self.quiescence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a message to its link, in the colour of who sends it, if anybody does; its bytes. One that the link refuses ends the
    /// run, named.
    pub(crate) fn send_frame<H: Named>(
        &self,
        (to, colour): (NodeId, Option<Colour>),
        header: &H,
        payload: Packed,
    ) -> u64 {
        let (bytes, outcome) = self.links.send((to, colour), header, payload);
        if let Err(error) = outcome {
            self.not_sent(to, header, &error);
        }
        bytes
    }

    /// The same for a small frame that is nothing but `body`, which begins with `header`. Whoever sends counts it in his
    /// account, so that PEs do not wait for each other.
    pub(crate) fn send_small(&self, to: NodeId, header: &impl Named, body: &[u8]) -> u64 {
        if let Err(error) = self.links.send_small(to, body) {
            self.not_sent(to, header, &error);
        }
        body.len() as u64
    }

    #[cold]
    fn not_sent(&self, to: NodeId, header: &impl Named, error: &SendError) {
        let what = header.name_by(&self.catalogue);
        self.fail(format!("{what} cannot be sent from {:?} to {to:?}: {error}", self.id));
    }
}

#[cfg(test)]
mod tests;
