//! Who has fallen silent: a verdict on failure from when each node was last heard.
//!
//! Silence alone tells a dead node from a slow one only by a limit (there is no perfect failure detector in
//! an asynchronous system: Chandra and Toueg, "Unreliable failure detectors for reliable distributed systems",
//! 1996). The limit is above the 3 s for which a node may freeze unharmed, and low enough that a run whose
//! node is gone ends within 5 s. An observer that was itself frozen knows nothing of that time: when it
//! wakes, words that reached it meanwhile are still unread, so it grants everyone a fresh period.

use crate::ids::NodeId;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a node should be heard at least, so that a freeze of 3 s stays clear of [`SILENCE_LIMIT`].
pub const HEARTBEAT_PERIOD: Duration = Duration::from_millis(250);

/// Silence after which a node counts as gone, unless the caller sets another limit.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(4);

/// How often the observer should look, so that a verdict comes soon after the limit.
pub const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// A longer gap between two looks means that the observer itself stood still.
const OWN_FREEZE: Duration = Duration::from_secs(1);

/// When each watched node was last heard.
#[derive(Clone, Debug)]
pub struct Liveness {
    heard: BTreeMap<NodeId, Duration>,
    limit: Duration,
    last_look: Duration,
}

impl Liveness {
    /// Watches `nodes`, all taken as heard at `now`; one that is silent for `limit` becomes suspect.
    #[must_use]
    pub fn new(nodes: impl IntoIterator<Item = NodeId>, limit: Duration, now: Duration) -> Self {
        Self { heard: nodes.into_iter().map(|node| (node, now)).collect(), limit, last_look: now }
    }

    /// Something came from `node`; whatever it was, it shows life. Nodes not watched are ignored.
    pub fn heard(&mut self, node: NodeId, now: Duration) {
        if let Some(at) = self.heard.get_mut(&node) {
            *at = now.max(*at);
        }
    }

    /// Stops watching a node that has left or whose loss has been reported.
    pub fn forget(&mut self, node: NodeId) {
        self.heard.remove(&node);
    }

    /// Nodes that have been silent for the limit, with how long, in order of their ids. To be asked every
    /// [`LOOK_PERIOD`]; after a gap above 1 s everyone gets a fresh period, since the observer was frozen.
    pub fn suspects(&mut self, now: Duration) -> Vec<(NodeId, Duration)> {
        if now.saturating_sub(self.last_look) > OWN_FREEZE {
            self.heard.values_mut().for_each(|at| *at = now);
        }
        self.last_look = now;
        let silence = |(&node, &at): (&NodeId, &Duration)| (node, now.saturating_sub(at));
        self.heard.iter().map(silence).filter(|&(_, silence)| silence >= self.limit).collect()
    }

    /// When to ask for [`suspects`](Self::suspects) next; `None` when nobody is watched.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        (!self.heard.is_empty()).then(|| self.last_look + LOOK_PERIOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    /// Looks every period from `from` to `to` (ms), `B` being heard each time; the first verdict, if any.
    fn watch(liveness: &mut Liveness, from: u32, to: u32) -> Option<(u32, NodeId)> {
        (from..to).step_by(250).find_map(|at| {
            liveness.heard(B, at * MS);
            liveness.suspects(at * MS).first().map(|&(node, _)| (at, node))
        })
    }

    #[test]
    fn a_silent_node_is_suspected_within_the_limit_and_one_look() {
        let mut liveness = Liveness::new([A, B], SILENCE_LIMIT, Duration::ZERO);
        assert_eq!(watch(&mut liveness, 0, 20_000), Some((4000, A)));
        assert_eq!(liveness.suspects(4100 * MS), [(A, 4100 * MS)]);
        liveness.forget(A);
        assert_eq!(watch(&mut liveness, 4250, 20_000), None);
    }

    #[test]
    fn a_node_frozen_for_three_seconds_is_not_suspected() {
        let mut liveness = Liveness::new([A, B], SILENCE_LIMIT, Duration::ZERO);
        assert_eq!(watch(&mut liveness, 0, 3250), None);
        liveness.heard(A, 3250 * MS);
        assert_eq!(watch(&mut liveness, 3250, 6500), None);
    }

    #[test]
    fn an_observer_that_was_frozen_suspects_nobody_at_once() {
        let mut liveness = Liveness::new([A, B], SILENCE_LIMIT, Duration::ZERO);
        assert_eq!(watch(&mut liveness, 0, 500), None);
        assert_eq!(liveness.suspects(30_000 * MS), []);
        assert_eq!(watch(&mut liveness, 30_250, 60_000), Some((34_000, A)));
    }

    #[test]
    fn strangers_and_a_clock_that_steps_back_do_no_harm() {
        let mut liveness = Liveness::new([A], SILENCE_LIMIT, 9000 * MS);
        liveness.heard(NodeId(77), 9000 * MS);
        assert_eq!(liveness.suspects(1000 * MS), []);
        liveness.heard(A, 2000 * MS);
        assert_eq!(liveness.timeout(), Some(1250 * MS));
        liveness.forget(A);
        assert_eq!(liveness.timeout(), None);
    }
}
