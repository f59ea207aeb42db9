//! Watching over a run: passes events to viewers, notices that something is wrong, names it, and ends
//! everything.

use super::launcher::Order;
use super::signals;
use crate::ids::NodeId;
use crate::launch::LaunchedNode;
use crate::monitor::hub::Hub;
use crate::monitor::wire::{MonitorEvent, OutputLine};
use crate::node::{LauncherEvent, Node};
use crate::transport::quic::QuicFabric;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

/// After the first sign of trouble: how long to wait for a better explanation of it.
const EXPLANATION: Duration = Duration::from_millis(300);
/// How long nodes may take to end in good order.
const GRACE: Duration = Duration::from_secs(3);
/// How long nodes may take to end when the run has failed.
const GRACE_FAILED: Duration = Duration::from_millis(100);
/// How often the launcher looks whether it was itself stopped, and for how long that is worth a word.
const PULSE: Duration = Duration::from_millis(250);
const STANDSTILL: Duration = Duration::from_secs(3);

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One sentence that names the node, if it was one.
    pub sentence: String,
    /// The exit code that says what kind it was.
    pub exit_code: u8,
    /// How well this explains the trouble; a better one replaces a worse one that came first.
    rank: u8,
}

impl Failure {
    fn new(rank: u8, exit_code: u8, sentence: String) -> Self {
        Self { sentence, exit_code, rank }
    }

    /// The user wanted the end.
    pub(super) fn interrupted(exit_code: u8) -> Self {
        Self::new(9, exit_code, signals::sentence(exit_code).into())
    }

    /// A fault of our own.
    pub(super) fn internal(sentence: &str) -> Self {
        Self::new(9, 70, sentence.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// The launcher's network thread, once the run has started.
pub(super) struct Supervisor {
    node: Arc<Node>,
    fabric: Arc<QuicFabric>,
    hub: Arc<Hub>,
    heard: UnboundedReceiver<LauncherEvent>,
    lines: UnboundedReceiver<OutputLine>,
    exits: UnboundedReceiver<(NodeId, String)>,
    end: watch::Sender<Option<Duration>>,
    ended: UnboundedReceiver<()>,
    running: usize,
    names: Vec<String>,
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    failure: Option<Failure>,
    verdict_at: Option<Instant>,
    stood_still: Option<(Duration, Instant)>,
}

impl Supervisor {
    #[allow(clippy::too_many_arguments, reason = "called once, with everything that the start has made")]
    pub(super) fn new(
        node: Arc<Node>,
        fabric: Arc<QuicFabric>,
        hub: Arc<Hub>,
        launched: Vec<LaunchedNode>,
        heard: UnboundedReceiver<LauncherEvent>,
        lines: UnboundedReceiver<OutputLine>,
        timeout: Option<Duration>,
    ) -> Self {
        let (end, told) = watch::channel(None);
        let (exit, exits) = unbounded_channel();
        let (gone, ended) = unbounded_channel();
        let names =
            std::iter::once("launcher".into()).chain(launched.iter().map(|n| n.name.clone())).collect();
        let running = launched.len();
        for started in launched {
            tokio::spawn(attend(started, told.clone(), exit.clone(), gone.clone()));
        }
        let deadline = timeout.map(|limit| Instant::now() + limit);
        Self {
            node,
            fabric,
            hub,
            heard,
            lines,
            exits,
            end,
            ended,
            running,
            names,
            deadline,
            timeout,
            failure: None,
            verdict_at: None,
            stood_still: None,
        }
    }

    /// Runs until all nodes have ended; says what went wrong, if anything did.
    pub(super) async fn supervise(mut self, mut orders: UnboundedReceiver<Order>) -> Option<Failure> {
        let mut pulse = tokio::time::interval(PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut awake_at = Instant::now();
        loop {
            let verdict = self.verdict_at.or(self.deadline);
            tokio::select! {
                // In this order: after a standstill everything is due at once, and it explains the rest.
                biased;
                _ = pulse.tick() => {
                    let now = Instant::now();
                    self.notice(now - awake_at, now);
                    awake_at = now;
                }
                order = orders.recv() => match order {
                    Some(Order::Finish) => break,
                    Some(Order::Interrupt(code)) => self.blame(Failure::interrupted(code)),
                    Some(Order::Abandon) | None => return self.end_nodes(Duration::ZERO, orders).await,
                },
                Some(event) = self.heard.recv() => self.take(event),
                Some(line) = self.lines.recv() => self.hub.publish(MonitorEvent::Output(line)),
                Some((node, reason)) = self.exits.recv() => {
                    let sentence = format!("node {:?} {reason}", self.name(node));
                    self.hub.publish(MonitorEvent::NodeLost { node: node.0, reason });
                    self.blame(Failure::new(5, 69, sentence));
                }
                () = until(verdict) => {
                    if self.verdict_at.is_none() {
                        let limit = self.timeout.unwrap_or_default().as_secs_f64();
                        self.blame(Failure::new(9, 110, format!("the time limit of {limit} s is over")));
                    }
                    break;
                }
            }
        }
        let grace = if self.failure.is_none() { GRACE } else { GRACE_FAILED };
        if let Some(failure) = &self.failure {
            self.node.tell_failed(failure.sentence.clone());
        }
        self.end_nodes(grace, orders).await
    }

    async fn end_nodes(mut self, grace: Duration, mut orders: UnboundedReceiver<Order>) -> Option<Failure> {
        self.node.stop_pes();
        self.node.end_all();
        let _ = self.end.send(Some(grace));
        let limit = Instant::now() + grace + Duration::from_secs(2);
        while self.running > 0 {
            tokio::select! {
                Some(()) = self.ended.recv() => self.running -= 1,
                Some(line) = self.lines.recv() => self.hub.publish(MonitorEvent::Output(line)),
                Some(order) = orders.recv() => match order {
                    // Whoever asks during the end is in a hurry; dropping the nodes kills them.
                    Order::Interrupt(code) => {
                        self.blame(Failure::interrupted(code));
                        return self.failure;
                    }
                    Order::Abandon => return self.failure,
                    Order::Finish => {}
                },
                () = until(Some(limit)) => break,
            }
        }
        while let Ok(line) = self.lines.try_recv() {
            self.hub.publish(MonitorEvent::Output(line));
        }
        self.fabric.close(Duration::from_millis(100)).await;
        self.failure
    }

    /// Whether the launcher itself stood still, as after ctrl-Z, SIGSTOP or with a suspended machine: its nodes
    /// may have given it up meanwhile.
    fn notice(&mut self, gap: Duration, now: Instant) {
        if gap >= STANDSTILL {
            tracing::warn!("the launcher stood still for {:.1} s", gap.as_secs_f64());
            self.stood_still = Some((gap, now));
        }
    }

    fn take(&mut self, event: LauncherEvent) {
        match event {
            LauncherEvent::Snapshot(snapshot) => self.hub.publish(MonitorEvent::Snapshot(*snapshot)),
            LauncherEvent::Phase(phase) => self.hub.publish(MonitorEvent::Phase(phase)),
            LauncherEvent::Counted { name, total, before } => self.hub.count(name, total, before),
            LauncherEvent::Membership(..) => {}
            LauncherEvent::Fault(node, sentence) => {
                let sentence = match node {
                    NodeId::LAUNCHER => sentence,
                    node => format!("node {:?}: {sentence}", self.name(node)),
                };
                self.blame(Failure::new(7, 70, sentence));
            }
            LauncherEvent::LinkLost { by, peer, reason } => {
                let lost = self.name(peer).to_string();
                let (rank, sentence) = if by == NodeId::LAUNCHER {
                    self.hub.publish(MonitorEvent::NodeLost { node: peer.0, reason: reason.clone() });
                    (4, format!("node {lost:?} was lost: {reason}"))
                } else {
                    (3, format!("node {lost:?} was lost by node {:?}: {reason}", self.name(by)))
                };
                self.blame(Failure::new(rank, 69, sentence));
            }
        }
    }

    fn blame(&mut self, mut failure: Failure) {
        if failure.exit_code == 69
            && let Some((gap, at)) = self.stood_still
            && at.elapsed() < STANDSTILL
        {
            let seconds = gap.as_secs();
            let sentence = format!("the launcher was stopped for {seconds} s, so that its nodes gave it up");
            failure = Failure::new(6, 69, sentence);
        }
        let is_better = self.failure.as_ref().is_none_or(|known| failure.rank > known.rank);
        let is_final = failure.rank >= 9;
        if is_better {
            self.failure = Some(failure);
        }
        let at = Instant::now() + if is_final { Duration::ZERO } else { EXPLANATION };
        self.verdict_at = Some(self.verdict_at.map_or(at, |before| before.min(at)));
    }

    fn name(&self, node: NodeId) -> &str {
        self.names.get(node.as_usize()).map_or("?", String::as_str)
    }
}

/// Waits for a node's process to end by itself, or ends it when told.
async fn attend(
    mut started: LaunchedNode,
    mut told: watch::Receiver<Option<Duration>>,
    exits: UnboundedSender<(NodeId, String)>,
    gone: UnboundedSender<()>,
) {
    let node = started.node;
    let early = tokio::select! {
        reason = started.exited() => Some(reason.to_string()),
        _ = told.wait_for(Option::is_some) => None,
    };
    match early {
        Some(reason) => {
            let _ = exits.send((node, reason));
        }
        None => {
            let grace = told.borrow().unwrap_or_default();
            started.end(grace).await;
        }
    }
    let _ = gone.send(());
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
