//! Why a run cannot go on: of all that is reported when something breaks, one sentence, which names what broke first.
//!
//! One trouble is reported several times and in any order: a node whose process has died is missed by every node that
//! has a link to it, by the launcher, and by whoever attends its process; a chare that fails may take its node with it.
//! So the launcher waits for a moment after the first report, and then tells the one that explains the others. Once the
//! driver is done and nothing has been reported, the nodes are told to end, and nobody misses them any more.
//!
//! When two nodes have lost their link either may be the one in trouble, and the one that says so first is not more
//! likely to be right: a node that stood still finds all others silent when it goes on. The one is named at which more
//! of the broken links end.

use super::standstill::Standstill;
use crate::failure::{Failure, Kind, Sign};
use crate::ids::NodeId;
use std::collections::BTreeSet;
use std::time::Duration;

/// After the first report: how long to wait for one that explains it.
pub const EXPLANATION: Duration = Duration::from_millis(300);

/// What speaks against a run's going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The process of a node has ended by itself.
    Exited {
        /// The node.
        node: NodeId,
        /// How it ended, as the words behind the node's name.
        reason: String,
    },
    /// A node, or the launcher, has lost its link to another.
    LinkLost {
        /// Who reports it.
        by: NodeId,
        /// The node at the other end of the link.
        peer: NodeId,
        /// Why the link broke.
        reason: String,
    },
    /// A node, or the launcher, says that the run has failed, and why.
    Fault {
        /// Who says so.
        by: NodeId,
        /// Why.
        sentence: String,
    },
    /// The user or a limit ends the run, which is no fault of a node.
    Ended(Failure),
}

/// What the launcher knows of a run's end.
#[derive(Debug)]
pub struct Verdict {
    /// Names of all nodes, the launcher's first.
    names: Vec<String>,
    own: Standstill,
    failure: Option<Failure>,
    /// Links between nodes that were reported as lost: by whom, and to whom.
    lost_links: BTreeSet<(NodeId, NodeId)>,
    /// The node that is named because of these.
    suspect: Option<NodeId>,
    due: Option<Duration>,
    /// Whether the nodes have been told to end, so that none of them is missed.
    has_ended: bool,
}

impl Verdict {
    /// Nothing is known against a run of nodes with these names, launcher first.
    #[must_use]
    pub fn new(names: Vec<String>, now: Duration) -> Self {
        Self {
            names,
            own: Standstill::new(now),
            failure: None,
            lost_links: BTreeSet::new(),
            suspect: None,
            due: None,
            has_ended: false,
        }
    }

    /// One more node is of the run, with the next number.
    pub fn add(&mut self, name: String) {
        self.names.push(name);
    }

    /// Looks at the clock; to be called at least every [`LOOK_PERIOD`](super::standstill::LOOK_PERIOD), so that the
    /// launcher notices when it stood still itself.
    pub fn look(&mut self, now: Duration) {
        self.own.look(now);
    }

    /// Takes a report.
    pub fn hear(&mut self, now: Duration, report: Report) {
        self.own.look(now);
        if self.has_ended && !matches!(report, Report::Ended(_)) {
            return;
        }
        let (failure, suspect) = self.failure_of(report);
        let failure = self.own_part_in(failure, now);
        let at = now + if failure.kind.is_final() { Duration::ZERO } else { EXPLANATION };
        self.due = Some(self.due.map_or(at, |before| before.min(at)));
        let is_likelier = suspect
            .zip(self.suspect)
            .is_some_and(|(other, known)| self.lost_links_of(other) > self.lost_links_of(known));
        if is_likelier || self.failure.as_ref().is_none_or(|known| failure.explains_better_than(known)) {
            (self.failure, self.suspect) = (Some(failure), suspect);
        }
    }

    /// The driver is done. True if the run has ended well: what is reported from now on is no fault. False if something
    /// has been reported, which is still to be explained.
    pub fn finish(&mut self) -> bool {
        self.has_ended |= self.due.is_none();
        self.has_ended
    }

    /// When the verdict is final; `None` as long as nothing speaks against the run.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Why the run cannot go on, as far as that is known.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The same, for whoever waits for nothing more.
    #[must_use]
    pub fn into_failure(self) -> Option<Failure> {
        self.failure
    }

    /// What a report says, and whom it makes a suspect.
    fn failure_of(&mut self, report: Report) -> (Failure, Option<NodeId>) {
        let failure = match report {
            Report::Exited { node, reason } => {
                let sentence = format!("node {:?} {reason}", self.name(node));
                Failure::new(self.lost(node, Sign::Exit), sentence)
            }
            Report::LinkLost { by: NodeId::LAUNCHER, peer, reason } => {
                let sentence = format!("node {:?} was lost: {reason}", self.name(peer));
                Failure::new(self.lost(peer, Sign::SilentToLauncher), sentence)
            }
            Report::LinkLost { by, peer, reason } => {
                self.lost_links.insert((by, peer));
                let (by_name, peer_name) = (self.name(by), self.name(peer));
                let (suspect, sentence) = if self.lost_links_of(by) > self.lost_links_of(peer) {
                    (
                        by,
                        format!("node {by_name:?} lost its link to node {peer_name:?}, and others: {reason}"),
                    )
                } else {
                    (peer, format!("node {peer_name:?} was lost by node {by_name:?}: {reason}"))
                };
                return (Failure::new(self.lost(suspect, Sign::SilentToNode), sentence), Some(suspect));
            }
            Report::Fault { by: NodeId::LAUNCHER, sentence } => Failure::new(Kind::Failed, sentence),
            Report::Fault { by, sentence } => {
                Failure::new(Kind::Failed, format!("node {:?}: {sentence}", self.name(by)))
            }
            Report::Ended(failure) => failure,
        };
        (failure, None)
    }

    fn lost(&self, node: NodeId, sign: Sign) -> Kind {
        Kind::NodeLost { node: self.name(node).into(), sign }
    }

    fn lost_links_of(&self, node: NodeId) -> usize {
        self.lost_links.iter().filter(|(by, peer)| [by, peer].contains(&&node)).count()
    }

    /// Names the launcher as the cause if nodes were lost because it stood still itself.
    fn own_part_in(&self, failure: Failure, now: Duration) -> Failure {
        match self.own.explains(now) {
            Some(length) if matches!(failure.kind, Kind::NodeLost { .. }) => {
                let sentence = format!(
                    "the launcher itself stood still for {:.1} s, longer than its nodes wait for it; a run cannot \
                     be stopped or suspended",
                    length.as_secs_f64()
                );
                Failure::new(Kind::Standstill, sentence)
            }
            _ => failure,
        }
    }

    fn name(&self, node: NodeId) -> &str {
        self.names.get(node.as_usize()).map_or("?", String::as_str)
    }
}
