//! The process of one node: told who it is on its standard input, it listens, joins, works, and ends when
//! the launcher says so or is gone.

use super::bootstrap::Bootstrap;
use super::cores::{self, Cores};
use super::{limits, panics};
use crate::buffer;
use crate::checkpoint::Sight;
use crate::codec::{ControlToLauncher, ControlToNode, Order, WIRE_VERSION, decode, encode};
use crate::failure::Kind;
use crate::frame::{Class, Fabric, Frame, Receiver};
use crate::ids::NodeId;
use crate::launch::{self, Ready};
use crate::node::processors::allowed_cores;
use crate::node::{Node, NodeSettings};
use crate::object::ProgramTable;
use crate::pe::scheduler::{pin, start_pes};
use crate::progress::Progress;
use crate::proto::membership::{Build, ClusterTable, JoinAnswer, Member, counters_every, fingerprint};
use crate::transport::quic::QuicFabric;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// How often a node looks at the memory that it takes.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// How long the end waits for the last frames to leave.
const FLUSH: Duration = Duration::from_secs(1);
/// How long a node waits for the launcher to be told who it is and then to be welcomed, which takes as long as the
/// slowest node needs to start.
const START: Duration = Duration::from_secs(600);
/// How long a node goes on after SIGTERM: a little longer than its launcher may take to save the run.
const TERMINATE: Duration = Duration::from_secs(12);
/// No run shares more collections and variables than that with a node before it is welcomed.
const EARLY_MAX: usize = 1 << 16;

/// Runs this process as a node of somebody's run. Blocks until the run is over.
#[must_use]
pub fn node_process(program: ProgramTable) -> ExitCode {
    match run(Arc::new(program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            tracing::error!("{sentence}");
            // The launcher shows the last line of standard error of a node that ends too early.
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{sentence}\n"));
            ExitCode::from(Kind::Failed.exit_code())
        }
    }
}

/// Ends a node whose launcher is gone.
fn exit_orphaned() -> ! {
    std::process::exit(i32::from(Kind::Unavailable.exit_code()))
}

fn run(program: Arc<ProgramTable>) -> Result<(), String> {
    panics::end_this_node();
    limits::prepare_for_limits()?;
    let starting = launch::watch_start(START, || {
        eprintln!("nobody has welcomed this node in {} minutes; it ends itself", START.as_secs() / 60);
        exit_orphaned();
    });
    let starting = starting.map_err(|e| format!("no thread to watch over the start: {e}"))?;
    let blob = launch::read_bootstrap(&mut std::io::stdin().lock()).map_err(|e| e.to_string())?;
    let bootstrap = Bootstrap::decode(&blob)?;
    let watched = launch::watch_lifeline(|| exit_orphaned());
    watched.map_err(|e| format!("no thread to watch over the launcher: {e}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("the network thread cannot start: {e}"))?;
    let progress = Progress::new(runtime);
    progress
        .runtime()
        .spawn(outlive_signals(signals(&progress).map_err(|e| format!("signals cannot be heard: {e}"))?));
    let served = progress.runtime().spawn(serve(program, bootstrap, starting, Arc::clone(&progress)));
    progress.serve(served).map_err(|e| format!("the network thread failed: {e}"))?
}

/// Signals that are not meant for a node.
struct Signals {
    terminate: Signal,
    others: [Signal; 3],
}

fn signals(progress: &Progress) -> io::Result<Signals> {
    let _inside = progress.runtime().enter();
    let others = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::user_defined1()].map(signal);
    let [hangup, interrupt, user1] = others;
    Ok(Signals { terminate: signal(SignalKind::terminate())?, others: [hangup?, interrupt?, user1?] })
}

/// Who sends a signal to a whole group, as service managers and batch systems do, means the run, which its launcher ends or saves. It
/// cannot save what a node holds that ends at once; so SIGTERM ends a node only when there has been time for that, and the others
/// do not.
async fn outlive_signals(mut signals: Signals) {
    // As long as somebody listens they do not do what they do by default.
    let _others = signals.others;
    signals.terminate.recv().await;
    tokio::time::sleep(TERMINATE).await;
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTERM);
}

async fn serve(
    program: Arc<ProgramTable>,
    bootstrap: Bootstrap,
    starting: Sender<()>,
    progress: Arc<Progress>,
) -> Result<(), String> {
    let (me, identity) = (bootstrap.node, bootstrap.identity.clone());
    let span = tracing::info_span!("start", node = me.0);
    let ip = launch::listen_ip(bootstrap.listen).map_err(|e| e.to_string())?;
    let settings = bootstrap.network.links();
    bootstrap.memory_bytes.into_iter().for_each(buffer::keep_within);
    let gate = Arc::new(Gate::new(program, bootstrap, Some(progress)));
    let receiver: Arc<dyn Receiver> = Arc::clone(&gate) as _;
    let fabric = QuicFabric::bind(SocketAddr::new(ip, 0), &identity, me, receiver, settings)
        .map_err(|e| launch::cannot_listen(ip, &e))?;
    // This is the only place that sets it, so it cannot be set already.
    let _ = gate.fabric.set(Arc::clone(&fabric));
    let address = fabric.local_addr();
    launch::announce_ready(&Ready::here(address, fingerprint(&gate.program.lines())))
        .map_err(|e| format!("cannot answer the launcher: {e}"))?;
    gate.joined.notified().await;
    drop((starting, span));
    if let Some(sentence) = gate.refusal.get().cloned() {
        fabric.close(FLUSH).await;
        return Err(sentence);
    }
    let Some(node) = gate.node.get().cloned() else { return Err("joined without a node".into()) };
    tracing::info!("{me:?} has joined with {} PEs", node.topology().pes(me).len());
    let every = |period| {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        ticks
    };
    let (mut look, mut tell) = (every(LOOK_PERIOD), every(counters_every(node.topology().node_count())));
    let has_limit = gate.bootstrap.memory_bytes.is_some();
    loop {
        tokio::select! {
            () = gate.ended.notified() => break,
            _ = tell.tick() => {
                node.publish();
                node.tell_loads();
            }
            _ = look.tick(), if has_limit => gate.check_memory(&node),
        }
    }
    let threads = node.stop_pes();
    let (over, joined) = tokio::sync::oneshot::channel();
    let join = move || {
        threads.into_iter().for_each(|thread| {
            // A PE catches the panics of entry methods; what it does not catch has been printed.
            let _ = thread.join();
        });
        // Sending fails only if nobody waits any longer.
        let _ = over.send(());
    };
    // Where the system has no thread for that, nobody waits for them.
    if std::thread::Builder::new().name("end".into()).spawn(join).is_ok() {
        let _ = tokio::time::timeout(FLUSH, joined).await;
    }
    fabric.close(FLUSH).await;
    Ok(())
}

/// Receives for a node that does not exist yet: it comes into being with the launcher's welcome.
struct Gate {
    me: NodeId,
    program: Arc<ProgramTable>,
    bootstrap: Bootstrap,
    member: Mutex<Member>,
    node: OnceLock<Arc<Node>>,
    fabric: OnceLock<Arc<QuicFabric>>,
    /// What its PEs can take turns at.
    progress: Option<Arc<Progress>>,
    /// What its PEs are pinned to.
    cores: OnceLock<Cores>,
    joined: Notify,
    ended: Arc<Notify>,
    /// Why this process ends without having joined.
    refusal: OnceLock<String>,
    /// What nodes share, where it overtakes the welcome of a node that joins a run under way.
    early: Mutex<Vec<(Class, Frame)>>,
}

impl Receiver for Gate {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        if let Some(node) = self.node.get() {
            return node.receive(from, class, frame);
        }
        if self.refusal.get().is_some() {
            return;
        }
        let Some(frame) = self.keep_early(from, class, frame) else { return };
        match self.receive_first(from, class, frame) {
            Ok(answer) => {
                let has_joined = answer == JoinAnswer::Joined;
                self.tell_launcher(&ControlToLauncher::Joining(answer));
                if has_joined {
                    self.joined.notify_one();
                }
            }
            Err(sentence) => {
                self.tell_launcher(&ControlToLauncher::Fault(sentence.clone()));
                // It was checked above that there is no earlier refusal.
                let _ = self.refusal.set(sentence);
                self.joined.notify_one();
            }
        }
    }

    fn receive_all(&self, from: NodeId, class: Class, frames: &mut Vec<Frame>) {
        match self.node.get() {
            Some(node) => node.receive_all(from, class, frames),
            None => frames.drain(..).for_each(|frame| self.receive(from, class, frame)),
        }
    }

    fn backlog_bytes(&self) -> u64 {
        self.node.get().map_or(0, |node| node.backlog_bytes())
    }

    fn link_lost(&self, peer: NodeId, reason: String) {
        if peer == NodeId::LAUNCHER {
            if self.node.get().is_some_and(|node| node.has_ended()) {
                return;
            }
            tracing::error!("the launcher is gone: {reason}");
            exit_orphaned();
        }
        if let Some(node) = self.node.get() {
            node.link_lost(peer, reason);
        }
    }
}

impl Gate {
    fn new(program: Arc<ProgramTable>, bootstrap: Bootstrap, progress: Option<Arc<Progress>>) -> Self {
        let me = bootstrap.node;
        let build = Build { wire_version: WIRE_VERSION, lines: program.lines() };
        Self {
            me,
            member: Mutex::new(Member::new(me, bootstrap.node_count, build)),
            program,
            bootstrap,
            node: OnceLock::new(),
            fabric: OnceLock::new(),
            progress,
            cores: OnceLock::new(),
            joined: Notify::new(),
            ended: Arc::new(Notify::new()),
            refusal: OnceLock::new(),
            early: Mutex::default(),
        }
    }

    /// Keeps what the launcher sends on another stream than the welcome, or gives it to the node if that is there by now; any other
    /// frame comes back.
    fn keep_early(&self, from: NodeId, class: Class, frame: Frame) -> Option<Frame> {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = self.node.get() {
            node.receive(from, class, frame);
            return None;
        }
        let may_wait = from == NodeId::LAUNCHER && class != Class::Control && early.len() < EARLY_MAX;
        if !may_wait {
            return Some(frame);
        }
        early.push((class, frame));
        None
    }

    /// Takes what arrives before there is a node: a welcome. Others' work cannot come before it, because nobody works
    /// before all have joined.
    fn receive_first(&self, from: NodeId, class: Class, frame: Frame) -> Result<JoinAnswer, String> {
        let me = self.me;
        let refused = |why: String| format!("{from:?} sent {me:?} a message that it refuses: {why}");
        let is_control = class == Class::Control;
        let control = is_control.then(|| decode(frame)).transpose().map_err(|e| refused(e.to_string()))?;
        let Some((ControlToNode::Order(Order::Welcome(welcome)), _)) = control else {
            return Err(refused("it is work before the launcher's welcome".into()));
        };
        let mut member = self.member.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = member.handle(from, *welcome).map_err(|e| refused(e.to_string()))?;
        if let Some(table) = member.table() {
            self.join(table)?;
        }
        Ok(answer)
    }

    fn tell_launcher(&self, said: &ControlToLauncher) {
        if let Some(fabric) = self.fabric.get() {
            let frame = encode(said, Default::default());
            // Such words are short, and a link that is lost ends this process.
            let _ = fabric.send(NodeId::LAUNCHER, Class::Control, frame);
        }
    }

    fn join(&self, table: &ClusterTable) -> Result<(), String> {
        let topology = table.topology()?;
        let pes = topology.pes(self.me).len();
        let settings = self.settings(pes);
        let Some(fabric) = self.fabric.get() else { return Err("the network is not up".into()) };
        let node = Node::new(self.me, topology, Arc::clone(&self.program), settings);
        self.pin_network(node.settings());
        // Where there is a core for the network's thread, it works at the same time as the PEs.
        match &self.progress {
            Some(progress) if !node.settings().has_spare_core => fabric.share_turns(Arc::clone(progress)),
            _ if node.settings().has_spare_core => fabric.stay_awake_for(node.spin()),
            _ => {}
        }
        let address = |text: &str| text.parse::<SocketAddr>().ok();
        fabric.set_addresses(table.nodes.iter().map(|n| address(&n.address)).collect());
        node.connect(Arc::clone(fabric) as Arc<dyn Fabric>);
        node.begin_with(table.is_init, table.colour);
        node.find_saved_by(Sight::new(Arc::clone(&self.program)));
        let ended = Arc::clone(&self.ended);
        node.on_end(move || ended.notify_one());
        start_pes(&node).map_err(|e| format!("a PE's thread cannot be started: {e}"))?;
        // Whoever has something more waits for the lock, so that it comes after what came before it.
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        early.drain(..).for_each(|(class, frame)| node.receive(NodeId::LAUNCHER, class, frame));
        // A member joins once, so this is the first node.
        let _ = self.node.set(node);
        Ok(())
    }

    /// Pins the calling thread, which is the network's.
    fn pin_network(&self, settings: &NodeSettings) {
        let of_pes = settings.cores.len();
        let own = self.cores.get().and_then(|cores| cores.numbers.get(of_pes));
        let is_full = self.bootstrap.used_cores_on_host >= allowed_cores().len() as f64;
        match own {
            Some(core) => drop(pin(&[*core])),
            // Where every core has a PE, a network thread takes its time from one: from one of its own node, or by
            // chance two nodes' threads would meet on the core of a third, for which all others then wait.
            None if is_full && of_pes > 0 => drop(pin(&settings.cores)),
            None => {}
        }
    }

    fn settings(&self, pes: usize) -> NodeSettings {
        let allowed = allowed_cores();
        let first = self.bootstrap.first_core.map(|first| first as usize);
        let threads = self.bootstrap.threads_on_host as usize;
        let is_roomy = threads <= allowed.len();
        let cores = first.and_then(|first| {
            // Where each thread can have a core, that of the network is behind those of the PEs.
            let with_network = first + self.bootstrap.nodes_before as usize;
            let cores = is_roomy.then(|| cores::take(&allowed, with_network, pes + 1)).flatten();
            cores.or_else(|| cores::take(&allowed, first, pes))
        });
        // Who wanted cores of its own and got none shares them with another run; and cores are worth no more than the quota
        // of CPU time of the control group, which is in this figure, lets threads use.
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        let has_spare_core = is_roomy && threads <= usable && (first.is_none() || cores.is_some());
        // A member joins once, so these are the first.
        let cores = self.cores.get_or_init(|| cores.unwrap_or_default());
        NodeSettings {
            always_pup: self.bootstrap.always_pup,
            balances: self.bootstrap.balances,
            counts_traffic: self.bootstrap.counts_traffic,
            detail: self.bootstrap.detail,
            wander: self.bootstrap.wander,
            spin: if may_stay_awake(usable, allowed.len(), threads.max(pes + 1), self.bootstrap.cpu_share) {
                self.bootstrap.network.spin()
            } else {
                Duration::ZERO
            },
            has_spare_core,
            cores: cores.numbers.iter().copied().take(pes).collect(),
            allowed_cores: allowed,
            cpu_share: self.bootstrap.cpu_share,
            memory_bytes: self.bootstrap.memory_bytes,
            kernel_arguments: self.bootstrap.kernel_arguments.clone(),
        }
    }

    fn check_memory(&self, node: &Node) {
        let Some(limit) = self.bootstrap.memory_bytes else { return };
        let used = node.snapshot_memory();
        if used > limit {
            node.fail(format!(
                "uses {} MiB of memory, more than its limit of {} MiB; give it less data or raise `memory`",
                used >> 20,
                limit >> 20
            ));
        }
    }
}

/// Whether threads without work may stay awake, if those of `cores` are worth `usable` of them by a quota of CPU time:
/// what they use of a quota or share, others lack at work. On cores they give way to whoever has work.
fn may_stay_awake(usable: usize, cores: usize, threads: usize, cpu_share: f64) -> bool {
    cpu_share >= 1.0 && (usable >= cores || usable >= threads)
}

#[cfg(test)]
mod tests;
