//! Watching over a run: passes events to viewers, notices that something is wrong, names it, and ends
//! everything.

use super::order::Order;
use super::processes::Processes;
use super::recruiting::{Outcome, Recruiting};
use crate::failure::{Failure, Kind};
use crate::ids::NodeId;
use crate::monitor::hub::Hub;
use crate::monitor::wire::{MonitorEvent, OutputLine};
use crate::node::{LauncherEvent, Node};
use crate::proto::lost_node::{Report, Verdict};
use crate::proto::membership::JoinAnswer;
use crate::proto::standstill::LOOK_PERIOD;
use crate::transport::quic::QuicFabric;
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior};

/// How long nodes may take to end in good order.
const GRACE: Duration = Duration::from_secs(3);
/// How long nodes may take to end when the run has failed.
const GRACE_FAILED: Duration = Duration::from_millis(100);

/// When a run is to be over.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    length: Duration,
    /// None if that is beyond what a clock counts.
    at: Option<Instant>,
}

impl TimeLimit {
    /// A deadline that is so long from now.
    pub(super) fn new(length: Duration) -> Self {
        Self { length, at: Instant::now().checked_add(length) }
    }

    /// When that is; `None` if it is beyond what a clock counts.
    pub(super) fn at(self) -> Option<std::time::Instant> {
        self.at.map(Instant::into_std)
    }
}

/// Waits until a run has lasted too long, if there is a limit.
pub(super) async fn over(limit: Option<TimeLimit>) -> Failure {
    match limit.and_then(|limit| limit.at) {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
    let seconds = limit.map_or(0.0, |limit| limit.length.as_secs_f64());
    Failure::new(Kind::Timeout, format!("the time limit of {seconds} s is over"))
}

/// The launcher's network thread, once the run has started.
pub(super) struct Supervisor {
    node: Arc<Node>,
    fabric: Arc<QuicFabric>,
    hub: Arc<Hub>,
    heard: UnboundedReceiver<LauncherEvent>,
    lines: UnboundedReceiver<OutputLine>,
    processes: Processes,
    limit: Option<TimeLimit>,
    verdict: Verdict,
    /// Nodes that were told to end while the run goes on: nobody misses them.
    released: BTreeSet<NodeId>,
    recruiting: Recruiting,
}

impl Supervisor {
    #[allow(clippy::too_many_arguments, reason = "called once, with everything that the start has made")]
    pub(super) fn new(
        node: Arc<Node>,
        fabric: Arc<QuicFabric>,
        hub: Arc<Hub>,
        processes: Processes,
        recruiting: Recruiting,
        heard: UnboundedReceiver<LauncherEvent>,
        lines: UnboundedReceiver<OutputLine>,
        limit: Option<TimeLimit>,
    ) -> Self {
        let verdict = Verdict::new(recruiting.names(), clock());
        let released = BTreeSet::new();
        Self { node, fabric, hub, heard, lines, processes, limit, verdict, released, recruiting }
    }

    /// Runs until all nodes have ended; says what went wrong, if anything did.
    pub(super) async fn supervise(mut self, mut orders: UnboundedReceiver<Order>) -> Option<Failure> {
        let mut look = tokio::time::interval(LOOK_PERIOD);
        look.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let limit = self.limit.filter(|_| self.verdict.due().is_none());
            tokio::select! {
                // In this order: after a standstill everything is due at once, and it explains the rest.
                biased;
                _ = look.tick() => self.verdict.look(clock()),
                order = orders.recv() => match order {
                    Some(Order::Finish) => {
                        // The driver may have given up because of something that was heard here and has not been
                        // looked at yet.
                        self.take_all();
                        if self.verdict.finish() {
                            break;
                        }
                    }
                    Some(Order::Interrupt(by)) => self.hear(Report::Ended(Failure::interrupted(by))),
                    Some(Order::Fail(failure)) => self.hear(Report::Ended(failure)),
                    Some(Order::Abandon) | None => return self.end_nodes(Duration::ZERO, orders).await,
                },
                Some(event) = self.heard.recv() => self.take(event),
                Some(line) = self.lines.recv() => self.hub.publish(MonitorEvent::Output(line)),
                Some((node, reason)) = self.processes.exits.recv() => self.take_exit(node, reason),
                Some(outcome) = self.recruiting.outcomes.recv() => self.take_recruit(outcome),
                () = until(self.verdict.due()) => break,
                failure = over(limit) => self.hear(Report::Ended(failure)),
            }
        }
        let grace = if self.verdict.failure().is_none() { GRACE } else { GRACE_FAILED };
        if let Some(failure) = self.verdict.failure() {
            self.node.tell_failed(failure.clone());
        }
        self.end_nodes(grace, orders).await
    }

    async fn end_nodes(mut self, grace: Duration, mut orders: UnboundedReceiver<Order>) -> Option<Failure> {
        self.node.stop_pes();
        self.node.end_all();
        self.processes.end_within(grace);
        let limit = Instant::now() + grace + Duration::from_secs(2);
        while self.processes.running > 0 {
            tokio::select! {
                Some(()) = self.processes.ended.recv() => self.processes.running -= 1,
                Some(line) = self.lines.recv() => self.hub.publish(MonitorEvent::Output(line)),
                Some(order) = orders.recv() => match order {
                    // A second order to end means that the user is in a hurry; dropping the nodes kills them.
                    Order::Interrupt(by) => {
                        self.hear(Report::Ended(Failure::interrupted(by)));
                        return self.verdict.into_failure();
                    }
                    Order::Abandon => return self.verdict.into_failure(),
                    Order::Finish | Order::Fail(_) => {}
                },
                () = tokio::time::sleep_until(limit) => break,
            }
        }
        while let Ok(line) = self.lines.try_recv() {
            self.hub.publish(MonitorEvent::Output(line));
        }
        self.fabric.close(Duration::from_millis(100)).await;
        self.verdict.into_failure()
    }

    fn take_all(&mut self) {
        while let Ok(event) = self.heard.try_recv() {
            self.take(event);
        }
        while let Ok((node, reason)) = self.processes.exits.try_recv() {
            self.take_exit(node, reason);
        }
    }

    fn take_exit(&mut self, node: NodeId, reason: String) {
        if self.released.contains(&node) {
            tracing::info!("{node:?} has left: {reason}");
            return self.node.tell_left(node);
        }
        self.hub.publish(MonitorEvent::NodeLost { node: node.0, reason: reason.clone() });
        self.hear(Report::Exited { node, reason });
    }

    fn take(&mut self, event: LauncherEvent) {
        match event {
            LauncherEvent::Snapshot(snapshot) => self.hub.publish(MonitorEvent::Snapshot(*snapshot)),
            LauncherEvent::Samples(samples) => self.hub.publish(MonitorEvent::Samples(*samples)),
            LauncherEvent::Collectives(collectives) => {
                self.hub.publish(MonitorEvent::Collectives(*collectives));
            }
            LauncherEvent::Phase(phase) => self.hub.publish(MonitorEvent::Phase(phase)),
            LauncherEvent::Counted { name, total, before } => self.hub.count(name, total, before),
            LauncherEvent::Joining(_, JoinAnswer::Joined) => {}
            LauncherEvent::Joining(by, JoinAnswer::Differs(_)) => {
                self.hear(Report::Fault { by, sentence: "it runs another build of the program".into() });
            }
            LauncherEvent::Wanted(config) => {
                self.recruiting.want(*config, self.node.topology(), &self.fabric)
            }
            LauncherEvent::Admitted => {
                if let Some(started) = self.recruiting.admitted() {
                    self.verdict.add(started.name.clone());
                    self.processes.add(started);
                }
            }
            LauncherEvent::Dismissed => self.recruiting.dismissed(&self.fabric),
            // Who is not of the run yet is not missed, but cannot be admitted any more.
            LauncherEvent::LinkLost { peer, reason, .. } if !self.recruiting.knows(peer) => {
                if let Some(error) = self.recruiting.lost(peer, &reason) {
                    self.node.tell_recruited(Err(error.into()));
                }
            }
            LauncherEvent::Fault(by, sentence) => self.hear(Report::Fault { by, sentence }),
            LauncherEvent::Released(node) => drop(self.released.insert(node)),
            LauncherEvent::LinkLost { peer, .. } if self.released.contains(&peer) => {}
            LauncherEvent::LinkLost { by, peer, reason } => {
                if by == NodeId::LAUNCHER {
                    self.hub.publish(MonitorEvent::NodeLost { node: peer.0, reason: reason.clone() });
                }
                self.hear(Report::LinkLost { by, peer, reason });
            }
        }
    }

    fn take_recruit(&mut self, outcome: Outcome) {
        let recruit = outcome.and_then(|started| self.recruiting.has_come(started, self.node.topology()));
        let recruit = match recruit {
            Ok(Some(recruit)) => Ok(Box::new(recruit)),
            Ok(None) => Err(Failure::new(Kind::Unavailable, "nobody was wanted")),
            Err(error) => {
                self.recruiting.dismissed(&self.fabric);
                Err(error.into())
            }
        };
        self.node.tell_recruited(recruit);
    }

    fn hear(&mut self, report: Report) {
        self.verdict.hear(clock(), report);
    }
}

/// A clock that nobody sets and that, unlike `Instant`, goes on while the machine is suspended.
fn clock() -> Duration {
    // Without one, everything seems to happen at once, and no standstill is ever found.
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Waits for a time of that clock.
async fn until(at: Option<Duration>) {
    match at {
        Some(at) => tokio::time::sleep(at.saturating_sub(clock())).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Sign;
    use crate::job::starts::Starts;
    use crate::monitor::wire::RunInfo;
    use crate::node::{DriverEvent, Listeners, NodeSettings};
    use crate::object::ProgramTable;
    use crate::proto::membership::{ClusterTable, NodeEntry};
    use crate::topology::Topology;
    use crate::transport::quic::LinkSettings;
    use crate::transport::tls::RunAuthority;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    /// Where a test speaks to a supervisor, and hears what its driver is told.
    type Ends = (UnboundedSender<LauncherEvent>, std::sync::mpsc::Receiver<DriverEvent>);

    /// A supervisor of no processes, with nodes "launcher" and "b".
    fn supervisor(limit: Option<TimeLimit>) -> (Supervisor, Ends) {
        let program = Arc::new(ProgramTable { name: "test".into(), ..ProgramTable::default() });
        let node = Node::new(NodeId::LAUNCHER, Topology::new(&[0]), program, NodeSettings::default());
        let (driver, told) = std::sync::mpsc::channel();
        node.listen(Listeners { driver, supervision: None, balancing: None });
        let authority = RunAuthority::new("test-1").unwrap();
        let identity = authority.issue(NodeId::LAUNCHER).unwrap();
        let receiver = Arc::clone(&node) as Arc<dyn crate::frame::Receiver>;
        let here = "127.0.0.1:0".parse().unwrap();
        let settings = LinkSettings::default();
        let fabric = QuicFabric::bind(here, &identity, NodeId::LAUNCHER, receiver, settings).unwrap();
        node.connect(Arc::clone(&fabric) as Arc<dyn crate::frame::Fabric>);
        let (hear, heard) = unbounded_channel();
        let (_, lines) = unbounded_channel();
        let hub = Arc::new(Hub::new(RunInfo::default()));
        let entry = |name: &str| NodeEntry { name: name.into(), address: String::new(), pe_count: 0 };
        let nodes = vec![entry("launcher"), entry("b")];
        let table = ClusterTable::new("test-1", nodes);
        let recruiting = Recruiting::new(Starts::of_nobody(authority), table, &[], usize::BITS);
        let processes = Processes::attend(Vec::new());
        let supervisor = Supervisor::new(node, fabric, hub, processes, recruiting, heard, lines, limit);
        (supervisor, (hear, told))
    }

    fn fault() -> LauncherEvent {
        LauncherEvent::Fault(NodeId(1), "Cell: Break on PE 3 of test failed".into())
    }

    fn lost() -> LauncherEvent {
        let (by, peer) = (NodeId::LAUNCHER, NodeId(1));
        LauncherEvent::LinkLost { by, peer, reason: "nothing was heard".into() }
    }

    #[tokio::test]
    async fn what_was_heard_before_the_driver_gave_up_explains_the_end() {
        let (orders, inbox) = unbounded_channel();
        let (supervisor, (hear, _told)) = supervisor(None);
        for event in [lost(), fault()] {
            assert!(hear.send(event).is_ok());
        }
        orders.send(Order::Finish).unwrap();
        let failure = supervisor.supervise(inbox).await.unwrap();
        assert_eq!(failure.sentence, "node \"b\": Cell: Break on PE 3 of test failed");
        assert_eq!(failure.kind, Kind::Failed);
    }

    #[tokio::test]
    async fn a_better_explanation_may_come_after_the_driver_gave_up() {
        let (orders, inbox) = unbounded_channel();
        let (supervisor, (hear, _told)) = supervisor(None);
        assert!(hear.send(lost()).is_ok());
        orders.send(Order::Finish).unwrap();
        let run = tokio::spawn(supervisor.supervise(inbox));
        tokio::task::yield_now().await;
        assert!(hear.send(fault()).is_ok());
        assert_eq!(run.await.unwrap().unwrap().kind, Kind::Failed);
    }

    #[tokio::test]
    async fn a_run_that_cannot_go_on_ends_and_its_driver_is_told_why() {
        let (orders, inbox) = unbounded_channel();
        let (supervisor, (_hear, told)) = supervisor(None);
        let why = Failure::new(Kind::Failed, "the launcher's network panicked");
        orders.send(Order::Fail(why.clone())).unwrap();
        assert_eq!(supervisor.supervise(inbox).await.as_ref(), Some(&why));
        assert!(told.try_iter().any(|event| matches!(event, DriverEvent::Failed(told) if told == why)));
    }

    #[tokio::test]
    async fn a_lost_node_is_told_to_the_driver_by_its_name() {
        let (_orders, inbox) = unbounded_channel();
        let (supervisor, (hear, told)) = supervisor(None);
        assert!(hear.send(lost()).is_ok());
        let failure = supervisor.supervise(inbox).await.unwrap();
        let kind = Kind::NodeLost { node: "b".into(), sign: Sign::SilentToLauncher };
        assert_eq!(failure, Failure::new(kind, "node \"b\" was lost: nothing was heard"));
        let is_told = |event| matches!(event, DriverEvent::Failed(told) if told == failure);
        assert!(told.try_iter().any(is_told));
    }

    #[tokio::test]
    async fn a_node_that_was_told_to_leave_is_not_missed() {
        let (orders, inbox) = unbounded_channel();
        let (supervisor, (hear, _told)) = supervisor(None);
        for event in [LauncherEvent::Released(NodeId(1)), lost()] {
            assert!(hear.send(event).is_ok());
        }
        orders.send(Order::Finish).unwrap();
        assert_eq!(supervisor.supervise(inbox).await, None);
    }

    #[tokio::test]
    async fn a_run_that_ends_well_before_its_limit_has_no_failure() {
        let (orders, inbox) = unbounded_channel();
        let (supervisor, _ends) = supervisor(Some(TimeLimit::new(Duration::MAX)));
        orders.send(Order::Finish).unwrap();
        assert_eq!(supervisor.supervise(inbox).await, None);
    }

    #[tokio::test]
    async fn a_run_that_lasts_too_long_is_ended() {
        let (_orders, inbox) = unbounded_channel();
        let (supervisor, _ends) = supervisor(Some(TimeLimit::new(Duration::from_millis(30))));
        let failure = supervisor.supervise(inbox).await.unwrap();
        assert_eq!(failure, Failure::new(Kind::Timeout, "the time limit of 0.03 s is over"));
    }
}
