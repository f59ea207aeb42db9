//! A node: what the PEs of one process share, and how envelopes leave and enter it.

mod arrivals;
mod memory;
mod multicast;
pub(crate) mod naming;
mod router;
pub mod variables;

pub use router::INIT_OVER;

use crate::codec::{Control, Header, Spread};
use crate::collection::Collection;
use crate::envelope::{CollectionId, Envelope, Packed, Payload, Target};
use crate::failure::Failure;
use crate::frame::{BULK_BYTES, Class, Fabric, SendError};
use crate::ids::{NodeId, PeId};
use crate::monitor::wire::{NodeSnapshot, Phase};
use crate::object::ProgramTable;
use crate::pe::account::Account;
use crate::pe::inbox::Inbox;
use crate::progress::Progress;
use crate::proto::membership::MembershipMessage;
use crate::proto::quiescence::{Counts, Quiescence};
use crate::spin::Spin;
use crate::topology::Topology;
use dashmap::DashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use variables::{Unacknowledged, Variables};

/// How a node behaves; the same on all nodes of a run unless the nodes file says otherwise.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Pack and unpack every message and constructor argument, also inside the process (for tests).
    pub always_pup: bool,
    /// How long an idle PE stays awake before it sleeps, while nobody else wants its core; zero where a quota of CPU time
    /// is below what PEs could use.
    pub spin: Duration,
    /// Whether the network's thread has a core for itself. If not, idle PEs do its work.
    pub has_spare_core: bool,
    /// Cores that PEs are pinned to, in their order; not pinned where there are fewer than PEs.
    pub cores: Vec<usize>,
    /// PEs use at most this share of their core, 0 to 1.
    pub cpu_share: f64,
    /// The application's arguments, for its kernel.
    pub kernel_arguments: Vec<u8>,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            always_pup: false,
            spin: Duration::ZERO,
            has_spare_core: false,
            cores: Vec::new(),
            cpu_share: 1.0,
            kernel_arguments: Vec::new(),
        }
    }
}

/// What the driver's waits react to.
#[derive(Debug)]
pub enum DriverEvent {
    /// A result for one of its waiting places.
    Slot(u64, Payload),
    /// The search for quiescence waits for a moment that [`Node::pump_quiescence`] tells.
    QuiescenceDue,
    /// No message was anywhere at a moment since that search began, except those held for elements that
    /// have not been made.
    Quiescent {
        /// The number of the search, as returned by [`Node::start_quiescence`].
        search: u64,
        /// How many messages wait for elements that have not been made.
        held: u64,
    },
    /// A variable is in place on that node.
    VariableSet(NodeId, u64),
    /// What a node had added to an accumulator.
    Collected(NodeId, u64, Option<Packed>),
    /// The rate that a PE reached with the kernel, in units of work per second.
    Speed(PeId, f64),
    /// A snapshot that was asked for.
    Answer(u32, Box<NodeSnapshot>),
    /// The run cannot go on.
    Failed(Failure),
}

/// What the launcher's supervision reacts to.
#[derive(Debug)]
pub enum LauncherEvent {
    /// An answer to the launcher's welcome.
    Membership(NodeId, MembershipMessage),
    /// Counters of a node.
    Snapshot(Box<NodeSnapshot>),
    /// What the application is doing.
    Phase(Phase),
    /// The application begins work of so many units, of which its chares will say how many they have done.
    Counted {
        /// Name of the work, for people.
        name: String,
        /// How many units of work there are.
        total: u64,
        /// Sum of the progress of all PEs when the work begins.
        before: u64,
    },
    /// A node says that the run cannot go on, and why.
    Fault(NodeId, String),
    /// A node lost its link to another.
    LinkLost {
        /// The node that reports it.
        by: NodeId,
        /// The node at the other end of the link.
        peer: NodeId,
        /// Why the link broke.
        reason: String,
    },
}

/// Where a launcher hears of its run.
#[derive(Debug)]
pub struct Ears {
    /// The driver.
    pub driver: Sender<DriverEvent>,
    /// The supervision, if there is one.
    pub launcher: Option<UnboundedSender<LauncherEvent>>,
}

/// Messages and bytes between this node and others.
#[derive(Debug, Default)]
struct Traffic {
    sent_messages: AtomicU64,
    sent_bytes: AtomicU64,
    received_messages: AtomicU64,
    received_bytes: AtomicU64,
    snapshots: AtomicU64,
}

/// One process of the run.
pub struct Node {
    id: NodeId,
    topology: Topology,
    program: Arc<ProgramTable>,
    settings: NodeSettings,
    spin: Arc<Spin>,
    start: Instant,
    /// Its first PE.
    first: u32,
    inboxes: Vec<Inbox>,
    accounts: Vec<Arc<Account>>,
    driver_account: Arc<Account>,
    fabric: OnceLock<Arc<dyn Fabric>>,
    ears: OnceLock<Ears>,
    collections: DashMap<CollectionId, Arc<Collection>>,
    variables: Variables,
    /// Write-once variables set here that some nodes have not acknowledged.
    unacknowledged: DashMap<u64, Unacknowledged>,
    speeds: RwLock<Arc<Vec<f64>>>,
    quiescence: Mutex<Quiescence>,
    is_init: AtomicBool,
    has_failed: AtomicBool,
    has_ended: AtomicBool,
    backlog: AtomicU64,
    traffic: Traffic,
    host_memory: memory::HostMemory,
    measuring: Barrier,
    on_end: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with PEs {:?}", self.id, self.topology.pes(self.id))
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
        let pes = topology.pes(id).len();
        let speeds = vec![1.0; topology.pe_count() as usize];
        Arc::new(Self {
            id,
            program,
            spin: Spin::new(settings.spin),
            settings,
            start: Instant::now(),
            first: topology.pes(id).start,
            inboxes: (0..pes).map(|_| Inbox::default()).collect(),
            accounts: (0..pes).map(|_| Arc::default()).collect(),
            driver_account: Arc::default(),
            fabric: OnceLock::new(),
            ears: OnceLock::new(),
            collections: DashMap::new(),
            variables: Variables::default(),
            unacknowledged: DashMap::new(),
            speeds: RwLock::new(Arc::new(speeds)),
            quiescence: Mutex::new(Quiescence::new(id, topology.node_count())),
            is_init: AtomicBool::new(true),
            has_failed: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            backlog: AtomicU64::new(0),
            traffic: Traffic::default(),
            host_memory: memory::HostMemory::default(),
            measuring: Barrier::new(pes.max(1)),
            on_end: OnceLock::new(),
            topology,
        })
    }

    /// Connects the node with the others; once, before anything is sent.
    pub fn connect(&self, fabric: Arc<dyn Fabric>) {
        if self.fabric.set(fabric).is_err() {
            tracing::error!("a node was connected twice");
        }
    }

    /// Makes this node tell a launcher what it hears; once, on the launcher.
    pub fn listen(&self, ears: Ears) {
        if self.ears.set(ears).is_err() {
            tracing::error!("a launcher listens twice");
        }
    }

    /// Calls `action` when the launcher says that the run is over; once.
    pub fn on_end(&self, action: impl Fn() + Send + Sync + 'static) {
        if self.on_end.set(Box::new(action)).is_err() {
            tracing::error!("a node's end was set twice");
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The PEs of all nodes.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Chare types and kernels of the program.
    #[must_use]
    pub fn program(&self) -> &ProgramTable {
        &self.program
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

    /// Where its idle PEs take turns at the network, if they do.
    pub(crate) fn progress(&self) -> Option<&Arc<Progress>> {
        self.fabric.get().and_then(|fabric| fabric.progress())
    }

    /// Values that its PEs share.
    #[must_use]
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Relative speeds of all PEs of the run, the fastest 1.0; all 1.0 until measured.
    #[must_use]
    pub fn speeds(&self) -> Arc<Vec<f64>> {
        Arc::clone(&self.speeds.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the speeds on every node.
    pub fn set_speeds(&self, speeds: Vec<f64>) {
        self.each_compute_node(|node| self.control(node, Control::Speeds(speeds.clone())));
        self.store_speeds(speeds);
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
        self.is_init.load(Ordering::Relaxed)
    }

    /// A collection, once its description has arrived here.
    #[must_use]
    pub fn collection(&self, id: CollectionId) -> Option<Arc<Collection>> {
        self.collections.get(&id).map(|c| Arc::clone(&c))
    }

    /// Counters of the node and its PEs now.
    #[must_use]
    pub fn snapshot(&self) -> NodeSnapshot {
        let now_ns = self.now_ns();
        let name = |t, e| self.program.entry_name(t, e);
        let pes = self.accounts.iter().zip(&self.inboxes).zip(self.first..);
        let pes = pes.map(|((account, inbox), pe)| account.snapshot(pe, inbox, now_ns, name)).collect();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let accounts = self.accounts.iter().chain([&self.driver_account]);
        let (messages, bytes) = accounts.fold((0, 0), |(messages, bytes), account| {
            let small = account.small();
            (messages + small.0, bytes + small.1)
        });
        NodeSnapshot {
            node: self.id.0,
            sequence: self.traffic.snapshots.fetch_add(1, Ordering::Relaxed),
            uptime_ns: now_ns,
            memory_bytes: memory::taken_bytes(),
            host_memory_bytes: self.host_memory.available_bytes(now_ns),
            sent_messages: read(&self.traffic.sent_messages) + messages,
            sent_bytes: read(&self.traffic.sent_bytes) + bytes,
            received_messages: read(&self.traffic.received_messages),
            received_bytes: read(&self.traffic.received_bytes),
            spins: self.spin.is_on(),
            pes,
        }
    }

    /// Memory that this process has taken, without pages of files, bytes.
    #[must_use]
    pub fn snapshot_memory(&self) -> u64 {
        memory::taken_bytes()
    }

    /// Sends the counters to the launcher.
    pub fn publish(&self) {
        self.control(NodeId::LAUNCHER, Control::Snapshot(Box::new(self.snapshot())));
    }

    /// Ends the run with one sentence, as soon as the launcher hears of it.
    pub fn fail(&self, sentence: String) {
        if !self.has_failed.swap(true, Ordering::SeqCst) {
            self.control(NodeId::LAUNCHER, Control::Fault(sentence));
        }
    }

    /// Tells the launcher what the application is doing.
    pub fn phase(&self, phase: Phase) {
        self.control(NodeId::LAUNCHER, Control::Phase(phase));
    }

    /// Has the progress of all PEs shown, out of `total` units; it adds up to `before` now. Only on the launcher.
    pub fn count_progress(&self, name: String, total: u64, before: u64) {
        self.tell_launcher(LauncherEvent::Counted { name, total, before });
    }

    /// Says on every node that initialisation is over; the driver hears `VariableSet` of [`INIT_OVER`] from each.
    pub fn set_init_over(&self, is_over: bool) {
        self.spread(Spread::InitOver(is_over), Packed::default());
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
            while let Some(output) = quiescence.poll(now, || self.counts()) {
                found.push(output);
            }
            quiescence.timeout()
        };
        self.act_on_quiescence(found);
        timeout.map(|at| at.saturating_sub(self.now()))
    }

    /// Asks every node with PEs for a snapshot; the driver hears an `Answer` with `mark` from each.
    pub fn ask_all(&self, mark: u32) {
        self.each_compute_node(|node| self.control(node, Control::Ask(mark)));
    }

    /// Asks every node for what it added to an accumulator; the driver hears `Collected` from each.
    pub fn collect_all(&self, id: u64) {
        self.each_compute_node(|node| self.control(node, Control::Collect(id)));
    }

    /// Makes a collection known here and on all nodes, whose PEs then construct its elements. Bytes that left
    /// from here for that.
    pub fn create(&self, collection: Collection, init: Packed) -> u64 {
        self.spread(Spread::Collection(collection), init)
    }

    /// Ends all nodes in good order.
    pub fn end_all(&self) {
        self.each_compute_node(|node| self.control(node, Control::End));
    }

    /// Stops this node's PEs after the entry methods that run now.
    pub fn stop_pes(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        for inbox in &self.inboxes {
            inbox.push(Envelope::new(Target::Stop, i32::MIN, Payload::packed(Packed::default())));
        }
    }

    /// Makes the driver's waits fail with this.
    pub fn tell_failed(&self, failure: Failure) {
        self.tell_driver(DriverEvent::Failed(failure));
    }

    /// Sends a message of the runtime itself to another node, past the queues of PEs.
    pub fn send_control(&self, to: NodeId, control: Control) {
        self.control(to, control);
    }

    /// Whether the run has ended here.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Puts an envelope into a PE of this node, or before the driver.
    pub(crate) fn push(&self, pe: PeId, envelope: Envelope) {
        if pe == PeId::DRIVER {
            match envelope.target {
                Target::Slot(slot) => self.tell_driver(DriverEvent::Slot(slot, envelope.payload)),
                other => tracing::error!("the driver was sent {other:?}"),
            }
            return;
        }
        self.inbox_of(pe).push(envelope);
    }

    pub(crate) fn inbox(&self, rank: usize) -> &Inbox {
        &self.inboxes[rank]
    }

    pub(crate) fn account(&self, pe: PeId) -> &Arc<Account> {
        if pe == PeId::DRIVER {
            return &self.driver_account;
        }
        &self.accounts[(pe.0 - self.first) as usize]
    }

    pub(crate) fn measuring(&self) -> &Barrier {
        &self.measuring
    }

    /// The PE at position `rank` has dealt with an envelope that came by a link.
    pub(crate) fn backlog_fell(&self, rank: usize, bytes: u64) {
        self.backlog.fetch_sub(bytes, Ordering::Relaxed);
        self.inbox(rank).dealt_with(bytes);
    }

    /// Counts a message or result that the driver took.
    pub fn driver_processed(&self) {
        self.driver_account.processed();
    }

    pub(crate) fn control(&self, to: NodeId, control: Control) {
        self.control_with(to, control, Packed::default());
    }

    pub(crate) fn control_with(&self, to: NodeId, control: Control, payload: Packed) {
        if to == self.id {
            self.handle_control(self.id, control, payload);
        } else {
            self.send_frame(to, Class::Control, &Header::Control(control), payload);
        }
    }

    fn tell_driver(&self, event: DriverEvent) {
        if let Some(ears) = self.ears.get() {
            // A driver that has gone needs no events.
            let _ = ears.driver.send(event);
        }
    }

    fn tell_launcher(&self, event: LauncherEvent) {
        if let Some(launcher) = self.ears.get().and_then(|ears| ears.launcher.as_ref()) {
            let _ = launcher.send(event);
        }
    }

    fn each_compute_node(&self, action: impl FnMut(NodeId)) {
        self.topology.compute_nodes().iter().copied().for_each(action);
    }

    fn store_speeds(&self, speeds: Vec<f64>) {
        *self.speeds.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(speeds);
    }

    fn quiescence(&self) -> MutexGuard<'_, Quiescence> {
        self.quiescence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> Counts {
        let mut sum = self.driver_account.counts();
        self.accounts.iter().for_each(|account| sum += account.counts());
        sum
    }

    /// Hands a message to the fabric and counts it; its bytes. One that the fabric refuses ends the run, named.
    pub(crate) fn send_frame(&self, to: NodeId, class: Class, header: &Header, payload: Packed) -> u64 {
        let Some(fabric) = self.fabric.get() else {
            tracing::error!("{:?} sends to {to:?} before it is connected", self.id);
            return 0;
        };
        let frame = crate::codec::encode(header, payload);
        let bytes = frame.len_bytes() as u64;
        if class != Class::Control {
            self.traffic.sent_messages.fetch_add(1, Ordering::Relaxed);
            self.traffic.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        if let Err(error) = fabric.send(to, class, frame) {
            self.not_sent(to, header, &error);
        }
        bytes
    }

    /// The same for a frame of class [`Class::Small`] that is nothing but `body`, which begins with `header`. Whoever
    /// sends counts it in his account, so that PEs do not wait for each other.
    pub(crate) fn send_small(&self, to: NodeId, header: &Header, body: &[u8]) -> u64 {
        match self.fabric.get() {
            None => tracing::error!("{:?} sends to {to:?} before it is connected", self.id),
            Some(fabric) => {
                if let Err(error) = fabric.send_small(to, body) {
                    self.not_sent(to, header, &error);
                }
            }
        }
        body.len() as u64
    }

    #[cold]
    fn not_sent(&self, to: NodeId, header: &Header, error: &SendError) {
        let what = self.name_of(header);
        self.fail(format!("{what} cannot be sent from {:?} to {to:?}: {error}", self.id));
    }
}

/// Class in which a message of that many bytes travels.
pub(crate) fn class_of(len_bytes: usize) -> Class {
    if len_bytes < BULK_BYTES { Class::Small } else { Class::Bulk }
}

#[cfg(test)]
mod tests;
