//! Who hears what a node learns about its run: on the launcher the driver, and whoever supervises the run.

use super::arranging::Recruit;
use crate::config::NodeConfig;
use crate::envelope::{Packed, Payload};
use crate::failure::Failure;
use crate::ids::{NodeId, PeId};
use crate::loads::{KnownLoads, NodeLoads};
use crate::monitor::collectives::Collectives;
use crate::monitor::requests::Asked;
use crate::monitor::samples::Samples;
use crate::monitor::wire::{NodeSnapshot, Phase};
use crate::proto::membership::JoinAnswer;
use crate::proto::snapshot::{Carried, Colour};
use crate::saved::{Cut, Paused, ToKeep};
use std::sync::OnceLock;
use std::sync::mpsc::Sender;
use tokio::sync::mpsc::UnboundedSender;

/// What the driver's waits react to.
#[derive(Debug)]
pub enum DriverEvent {
    /// A result for one of its waiting places, in the colour of who sent it.
    Slot(Option<Colour>, u64, Payload),
    /// The search for quiescence waits for a moment that [`Node::pump_quiescence`](super::Node::pump_quiescence) tells.
    QuiescenceDue,
    /// No message was anywhere at a moment since that search began, except those held for elements that
    /// have not been made.
    Quiescent {
        /// The number of the search, as returned by [`Node::start_quiescence`](super::Node::start_quiescence).
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
    /// A PE that stands still has done what it was told.
    Paused(PeId, Paused),
    /// A PE has been cut.
    HasCut(PeId, Cut),
    /// What a node has carried of a colour, in the round of this number.
    Counted(NodeId, u32, Carried),
    /// A PE has said all that came late to it, in so many records.
    Closed(PeId, Paused),
    /// A PE has read so many bytes of what was saved of it so far.
    Reading(PeId, u64),
    /// What a PE has written to the folder itself is there for good, for the checkpoint of that number; or why it is not.
    Wrote(PeId, u32, Result<(), String>),
    /// A chare says that now is a good moment for a checkpoint.
    GoodMoment,
    /// A node sends something to be saved.
    Record(NodeId, ToKeep, Packed),
    /// Whoever keeps a checkpoint is done with it.
    Kept,
    /// The process of a node has ended that was told to.
    Left(NodeId),
    /// The process that was wanted for one more node, or why there is none.
    Recruited(Result<Box<Recruit>, Failure>),
    /// Somebody at another terminal wants something.
    Asked(Asked),
    /// The run cannot go on.
    Failed(Failure),
}

/// What the launcher's supervision reacts to.
#[derive(Debug)]
pub enum LauncherEvent {
    /// An answer to the launcher's welcome.
    Joining(NodeId, JoinAnswer),
    /// Counters of a node.
    Snapshot(Box<NodeSnapshot>),
    /// What its PEs ran and sent, of which little is kept.
    Samples(Box<Samples>),
    /// Reductions that its PEs passed on, of which few are told of.
    Collectives(Box<Collectives>),
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
    /// A node is told to end while the run goes on.
    Released(NodeId),
    /// A process is wanted for one more node.
    Wanted(Box<NodeConfig>),
    /// That node is of the run from now on.
    Admitted,
    /// It is not needed.
    Dismissed,
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

/// What whoever balances hears.
#[derive(Debug)]
pub enum BalancingEvent {
    /// What a node says of its loads.
    Told {
        /// The node.
        from: NodeId,
        /// What it says.
        loads: NodeLoads,
        /// The bytes of its message.
        bytes: u64,
    },
    /// Somebody wants to know what is known.
    Asked(Sender<KnownLoads>),
}

/// Where a launcher hears of its run.
#[derive(Debug)]
pub struct Listeners {
    /// The driver.
    pub driver: Sender<DriverEvent>,
    /// The supervision, if there is one.
    pub supervision: Option<UnboundedSender<LauncherEvent>>,
    /// Whoever balances, if anybody does.
    pub balancing: Option<Sender<BalancingEvent>>,
}

/// The listeners, once there are any; without them everything is told to nobody.
#[derive(Debug, Default)]
pub(super) struct Hearing(OnceLock<Listeners>);

impl Hearing {
    /// From now on these hear; once.
    pub(super) fn begin(&self, listeners: Listeners) {
        if self.0.set(listeners).is_err() {
            tracing::error!("a launcher listens twice");
        }
    }

    /// Whether somebody supervises the run.
    pub(super) fn is_supervised(&self) -> bool {
        self.0.get().is_some_and(|listeners| listeners.supervision.is_some())
    }

    pub(super) fn tell_driver(&self, event: DriverEvent) {
        if let Some(listeners) = self.0.get() {
            // A driver that has gone needs no events.
            let _ = listeners.driver.send(event);
        }
    }

    pub(super) fn tell_balancing(&self, event: BalancingEvent) {
        if let Some(balancing) = self.0.get().and_then(|listeners| listeners.balancing.as_ref()) {
            let _ = balancing.send(event);
        }
    }

    pub(super) fn tell_supervision(&self, event: LauncherEvent) {
        if let Some(supervision) = self.0.get().and_then(|listeners| listeners.supervision.as_ref()) {
            let _ = supervision.send(event);
        }
    }
}
