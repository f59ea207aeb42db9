//! The processes of a run's nodes: each is attended by a task, which says when it has ended by itself, or ends it when
//! told. Nobody has to look at them in turn.

use crate::ids::NodeId;
use crate::launch::LaunchedNode;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// All processes that were started and have answered. They are killed with the runtime that attends them.
pub(super) struct Processes {
    /// Which node's process has ended by itself, and how.
    pub(super) exits: UnboundedReceiver<(NodeId, String)>,
    /// Receives one message for each process that is over, however it ended.
    pub(super) ended: UnboundedReceiver<()>,
    /// How many processes still run.
    pub(super) running: usize,
    end: watch::Sender<Option<Duration>>,
    /// What tasks say of those that are attended from later on.
    exit: UnboundedSender<(NodeId, String)>,
    gone: UnboundedSender<()>,
}

impl Processes {
    /// Waits for the ends of these processes from now on.
    pub(super) fn attend(launched: Vec<LaunchedNode>) -> Self {
        let (end, _) = watch::channel(None);
        let (exit, exits) = unbounded_channel();
        let (gone, ended) = unbounded_channel();
        let mut processes = Self { exits, ended, running: 0, end, exit, gone };
        launched.into_iter().for_each(|started| processes.add(started));
        processes
    }

    /// Waits for the end of one more process.
    pub(super) fn add(&mut self, started: LaunchedNode) {
        self.running += 1;
        tokio::spawn(attend(started, self.end.subscribe(), self.exit.clone(), self.gone.clone()));
    }

    /// Ends all that have not ended by themselves within `grace`.
    pub(super) fn end_within(&self, grace: Duration) {
        let _ = self.end.send(Some(grace));
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
