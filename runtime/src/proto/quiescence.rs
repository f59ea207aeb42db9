//! Quiescence detection: no entry method runs and no message is anywhere.
//!
//! Mattern's four-counter method ("Algorithms for distributed termination detection", Distributed Computing
//! 2, 1987), over a tree of nodes. A wave sums what every node has created and processed. The counters only
//! grow, and a wave begins only after the one before has ended. Let `t` be a moment between two such waves
//! with equal sums and with created = processed. Whatever was created before `t` is in the second wave's
//! sum, whatever the first wave counted as processed was processed before `t`; hence at `t`
//! created ≤ created(second) = processed(first) ≤ processed, and since nothing is processed that was not
//! created, both are equal at `t`: nothing was under way. When exactly a node reads its counters inside a
//! wave does not matter; it does so after its children have answered, so that the sums are as fresh as can be.
//!
//! Invariant that the caller keeps: a node counts a message as created before it can be seen elsewhere, and
//! as processed only after everything that its processing created has been counted.

use super::ProtocolError;
use super::tree::TreeOver;
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::AddAssign;
use std::time::Duration;

/// Shortest and longest pause between waves that did not find quiescence.
const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// The same for a search in no hurry.
const PAUSE_SLOW: Duration = Duration::from_millis(500);

/// Messages created and processed; the created ones count once for each receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Created.
    pub created: u64,
    /// Processed.
    pub processed: u64,
    /// Kept for elements that are not there yet; these count as processed, and as created anew when they
    /// are taken up again.
    pub held: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        // What comes from afar may be nonsense; it must not panic.
        self.created = self.created.wrapping_add(other.created);
        self.processed = self.processed.wrapping_add(other.processed);
        self.held = self.held.wrapping_add(other.held);
    }
}

/// What nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuiescenceMessage {
    /// Sent down the tree: count your messages.
    Probe {
        /// Number of the wave, over the whole run, from 1.
        wave: u64,
    },
    /// Sent up the tree: the sum of the counts of a subtree.
    Sum {
        /// Number of the wave that this answers.
        wave: u64,
        /// Sum over the subtree.
        counts: Counts,
    },
}

/// What the state machine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuiescenceOutput {
    /// Send this.
    Send {
        /// The receiving node.
        to: NodeId,
        /// The message.
        message: QuiescenceMessage,
    },
    /// At the root: there was a moment since that search began when nothing was under way.
    Quiescent {
        /// The number that [`Quiescence::start`] gave.
        search: u64,
        /// Messages that were kept for elements that were not there.
        held: u64,
    },
}

/// One node's part in the detection. The launcher, node 0, is the root of the tree over all nodes.
#[derive(Debug)]
pub struct Quiescence {
    me: NodeId,
    /// The nodes of the tree, in its order: the launcher and all with PEs.
    members: Vec<NodeId>,
    outputs: VecDeque<QuiescenceOutput>,
    /// The wave this node takes part in, the children whose answers it awaits, and the sum so far.
    wave: u64,
    awaited: Vec<NodeId>,
    sum: Counts,
    searches: u64,
    detection: Option<Detection>,
    /// No wave begins.
    is_paused: bool,
}

/// The root's search.
#[derive(Debug)]
struct Detection {
    /// Sum of the wave before, if it ended after the latest start.
    last: Option<Counts>,
    pause: Duration,
    pause_max: Duration,
    /// When to begin the next wave; `None` while one is under way.
    next_wave: Option<Duration>,
    /// Whether the latest wave followed a balanced one without a pause.
    is_confirming: bool,
}

impl Quiescence {
    /// The part of node `me` of `node_count`, launcher included.
    #[must_use]
    pub fn new(me: NodeId, node_count: u16) -> Self {
        Self::among(me, (0..node_count).map(NodeId).collect())
    }

    /// The part of node `me` of these, launcher included, in order.
    #[must_use]
    pub fn among(me: NodeId, members: Vec<NodeId>) -> Self {
        Self {
            me,
            members,
            outputs: VecDeque::new(),
            wave: 0,
            awaited: Vec::new(),
            sum: Counts::default(),
            searches: 0,
            detection: None,
            is_paused: false,
        }
    }

    /// At the root: whether no wave is under way. If so, none begins until [`resume`](Self::resume).
    pub fn pause(&mut self) -> bool {
        self.is_paused = self.detection.as_ref().is_none_or(|detection| detection.next_wave.is_some());
        self.is_paused
    }

    /// At the root: goes on. What a search under way has seen is forgotten.
    pub fn resume(&mut self) {
        self.is_paused = false;
        if let Some(detection) = &mut self.detection {
            let next_wave = Some(Duration::ZERO);
            *detection = Detection { last: None, next_wave, is_confirming: false, ..*detection };
        }
    }

    /// Other nodes take part from now on. To be called on all of them while it is [paused](Self::pause).
    pub fn regroup(&mut self, members: Vec<NodeId>) {
        self.members = members;
        self.wave = 0;
        self.awaited.clear();
    }

    /// At the root: begins to look for a moment of quiescence later than this call, and gives the search a
    /// number by which its verdict is known. What a search under way has seen is forgotten, but a wave under
    /// way counts: the moments that the proof is about lie after its end. Elsewhere this does nothing.
    pub fn start(&mut self) -> u64 {
        self.search(PAUSE_MIN, PAUSE_MAX)
    }

    /// As [`start`](Self::start), but in no hurry: one or two waves a second, for who only wants to notice
    /// some time that nothing goes on any more.
    pub fn start_slowly(&mut self) -> u64 {
        self.search(PAUSE_SLOW, PAUSE_SLOW)
    }

    fn search(&mut self, pause: Duration, pause_max: Duration) -> u64 {
        if self.me != NodeId::LAUNCHER {
            return 0;
        }
        self.searches += 1;
        // A verdict that nobody has taken yet is older than this call.
        self.outputs.retain(|output| !matches!(output, QuiescenceOutput::Quiescent { .. }));
        let is_wave_under_way = self.detection.as_ref().is_some_and(|d| d.next_wave.is_none());
        let next_wave = (!is_wave_under_way).then_some(Duration::ZERO);
        self.detection = Some(Detection { last: None, pause, pause_max, next_wave, is_confirming: false });
        self.searches
    }

    /// Takes a message; `local` reads this node's counters, when it is this node's turn to be counted.
    /// Repeated and stale messages change nothing.
    ///
    /// # Errors
    /// If the message comes from a node that is not next to this one in the tree, answers a wave that has not
    /// begun, or begins one before its turn.
    pub fn handle(
        &mut self,
        from: NodeId,
        message: QuiescenceMessage,
        now: Duration,
        local: impl Fn() -> Counts,
    ) -> Result<(), ProtocolError> {
        match message {
            QuiescenceMessage::Probe { wave } => {
                if self.parent(self.me) != Some(from) {
                    return Err(ProtocolError(format!(
                        "a quiescence probe came from {from:?}, not from above"
                    )));
                }
                // The root begins a wave only after the one before has ended, and every node takes part in every wave.
                if wave > self.wave.saturating_add(1) {
                    return Err(ProtocolError(format!(
                        "quiescence wave {wave} came where {} is the latest",
                        self.wave
                    )));
                }
                if wave > self.wave {
                    self.begin(wave);
                    self.finish_if_complete(now, local);
                }
            }
            QuiescenceMessage::Sum { wave, counts } => {
                if self.parent(from) != Some(self.me) {
                    return Err(ProtocolError(format!(
                        "a quiescence sum came from {from:?}, not from below"
                    )));
                }
                if wave > self.wave {
                    return Err(ProtocolError(format!(
                        "{from:?} answered quiescence wave {wave}, but {} is the latest",
                        self.wave
                    )));
                }
                let waits_for = self.awaited.iter().position(|&child| child == from);
                if let Some(at) = waits_for.filter(|_| wave == self.wave) {
                    self.awaited.swap_remove(at);
                    self.sum += counts;
                    self.finish_if_complete(now, local);
                }
            }
        }
        Ok(())
    }

    /// What is to be done next, if anything; `local` as for [`handle`](Self::handle). To be called until it
    /// gives `None`, after every other call and at [`timeout`](Self::timeout).
    pub fn poll(&mut self, now: Duration, local: impl Fn() -> Counts) -> Option<QuiescenceOutput> {
        if let Some(detection) = &mut self.detection
            && !self.is_paused
            && detection.next_wave.is_some_and(|at| at <= now)
        {
            detection.next_wave = None;
            self.begin(self.wave.saturating_add(1));
            self.finish_if_complete(now, local);
        }
        self.outputs.pop_front()
    }

    /// When [`poll`](Self::poll) should be called again without any message.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.detection.as_ref().filter(|_| !self.is_paused).and_then(|d| d.next_wave)
    }

    /// What it holds beside the list of nodes, bytes.
    #[cfg(test)]
    pub(super) fn state_bytes(&self) -> usize {
        let outputs = self.outputs.capacity() * size_of::<QuiescenceOutput>();
        size_of::<Self>() + outputs + self.awaited.capacity() * size_of::<NodeId>()
    }

    fn begin(&mut self, wave: u64) {
        self.wave = wave;
        self.sum = Counts::default();
        self.awaited.clear();
        let children = TreeOver::new(&self.members, NodeId::LAUNCHER);
        self.awaited.extend(children.into_iter().flat_map(|tree| tree.children(self.me)));
        for at in 0..self.awaited.len() {
            self.send(self.awaited[at], QuiescenceMessage::Probe { wave });
        }
    }

    fn finish_if_complete(&mut self, now: Duration, local: impl Fn() -> Counts) {
        if !self.awaited.is_empty() {
            return;
        }
        self.sum += local();
        let (wave, counts) = (self.wave, self.sum);
        match self.parent(self.me) {
            Some(parent) => self.send(parent, QuiescenceMessage::Sum { wave, counts }),
            None => self.judge(counts, now),
        }
    }

    fn judge(&mut self, counts: Counts, now: Duration) {
        let Some(detection) = &mut self.detection else { return };
        let is_balanced = counts.created == counts.processed;
        if is_balanced && detection.last == Some(counts) {
            self.detection = None;
            let verdict = QuiescenceOutput::Quiescent { search: self.searches, held: counts.held };
            self.outputs.push_back(verdict);
            return;
        }
        detection.last = Some(counts);
        // A balanced wave is confirmed at once, but a balance that moves on must not make waves chase each
        // other without a pause.
        detection.is_confirming = is_balanced && !detection.is_confirming;
        if detection.is_confirming {
            detection.next_wave = Some(now);
        } else {
            detection.next_wave = Some(now + detection.pause);
            detection.pause = (detection.pause * 2).min(detection.pause_max);
        }
    }

    /// The node above another in the tree; none above who is not in it.
    fn parent(&self, node: NodeId) -> Option<NodeId> {
        TreeOver::new(&self.members, NodeId::LAUNCHER)?.parent(node)
    }

    fn send(&mut self, to: NodeId, message: QuiescenceMessage) {
        self.outputs.push_back(QuiescenceOutput::Send { to, message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::sim::Random;
    use crate::proto::tree;

    const NOW: Duration = Duration::from_secs(1);

    fn counts(created: u64, processed: u64) -> Counts {
        Counts { created, processed, held: 0 }
    }

    fn outputs(one: &mut Quiescence, local: Counts) -> Vec<QuiescenceOutput> {
        std::iter::from_fn(|| one.poll(NOW, || local)).collect()
    }

    fn sum(wave: u64, counts: Counts) -> QuiescenceMessage {
        QuiescenceMessage::Sum { wave, counts }
    }

    #[test]
    fn a_repeated_or_stale_sum_is_counted_once() {
        let mut root = Quiescence::new(NodeId(0), 3);
        root.start();
        assert_eq!(outputs(&mut root, counts(1, 0)).len(), 2, "both children are probed");
        for _ in 0..3 {
            root.handle(NodeId(1), sum(0, counts(7, 0)), NOW, || counts(1, 0)).unwrap();
            root.handle(NodeId(1), sum(1, counts(0, 1)), NOW, || counts(1, 0)).unwrap();
        }
        assert_eq!(outputs(&mut root, counts(1, 0)), [], "node 2 has not answered yet");
        root.handle(NodeId(2), sum(1, counts(0, 0)), NOW, || counts(1, 0)).unwrap();
        assert_eq!(outputs(&mut root, counts(1, 0)).len(), 2, "balanced, so it is confirmed at once");
        root.handle(NodeId(1), sum(2, counts(0, 1)), NOW, || counts(1, 0)).unwrap();
        root.handle(NodeId(2), sum(2, counts(0, 0)), NOW, || counts(1, 0)).unwrap();
        let verdict = QuiescenceOutput::Quiescent { search: 1, held: 0 };
        assert_eq!(outputs(&mut root, counts(1, 0)), [verdict]);
        assert_eq!(root.timeout(), None);
    }

    #[test]
    fn a_search_goes_on_with_those_that_are_left_and_begins_no_wave_meanwhile() {
        let mut root = Quiescence::new(NodeId(0), 3);
        let search = root.start();
        assert_eq!(outputs(&mut root, counts(1, 1)).len(), 2, "both children are probed");
        assert!(!root.pause(), "a wave is under way");
        for node in [1, 2] {
            root.handle(NodeId(node), sum(1, counts(3, 3)), NOW, || counts(1, 1)).unwrap();
        }
        assert!(root.pause());
        assert_eq!((outputs(&mut root, counts(1, 1)), root.timeout()), (vec![], None));
        root.regroup(vec![NodeId(0), NodeId(2)]);
        root.resume();
        let probe =
            |wave| QuiescenceOutput::Send { to: NodeId(2), message: QuiescenceMessage::Probe { wave } };
        assert_eq!(outputs(&mut root, counts(1, 1)), [probe(1)], "all is counted anew");
        assert!(root.handle(NodeId(1), sum(1, counts(3, 3)), NOW, || counts(1, 1)).is_err(), "it has left");
        root.handle(NodeId(2), sum(1, counts(6, 6)), NOW, || counts(1, 1)).unwrap();
        assert_eq!(outputs(&mut root, counts(1, 1)), [probe(2)], "what was found before does not count");
        root.handle(NodeId(2), sum(2, counts(6, 6)), NOW, || counts(1, 1)).unwrap();
        assert_eq!(outputs(&mut root, counts(1, 1)), [QuiescenceOutput::Quiescent { search, held: 0 }]);
    }

    #[test]
    fn strangers_and_answers_to_the_future_are_refused() {
        let mut one = Quiescence::new(NodeId(1), 40);
        let mut refused = |from, message| one.handle(NodeId(from), message, NOW, Counts::default).is_err();
        assert!(refused(2, QuiescenceMessage::Probe { wave: 1 }));
        assert!(refused(1, QuiescenceMessage::Probe { wave: 1 }));
        assert!(refused(5, sum(1, Counts::default())), "wave 1 has not reached this node");
        assert!(refused(0, sum(0, Counts::default())) && refused(4000, sum(0, Counts::default())));
        assert!(refused(0, QuiescenceMessage::Probe { wave: 2 }), "wave 1 comes first");
        assert!(!refused(0, QuiescenceMessage::Probe { wave: 1 }));
        assert!(refused(0, QuiescenceMessage::Probe { wave: u64::MAX }), "it would hide all real ones");
        assert!(!refused(5, sum(1, Counts::default())));
    }

    /// Both while nothing is balanced and while a balance moves on from wave to wave.
    #[test]
    fn waves_become_rare_while_there_is_work() {
        for is_balanced in [false, true] {
            let mut root = Quiescence::new(NodeId(0), 1);
            let (mut now, waves) = (Duration::ZERO, std::cell::Cell::new(0));
            root.start();
            while now < Duration::from_secs(10) {
                let local = || {
                    waves.set(waves.get() + 1);
                    counts(waves.get(), if is_balanced { waves.get() } else { 0 })
                };
                assert_eq!(root.poll(now, local), None);
                now = root.timeout().unwrap().max(now + Duration::from_nanos(1));
            }
            let pauses = 7 + 10_000 / 20;
            assert!(waves.get() <= 2 * pauses + 2, "{} waves in 10 s", waves.get());
            assert!(waves.get() >= pauses - 1, "{} waves in 10 s", waves.get());
        }
    }

    #[test]
    fn random_messages_cause_no_panic_and_go_to_neighbours_only() {
        let mut random = Random::new(9);
        for me in [0, 1, 2, 9, 11] {
            let mut one = Quiescence::new(NodeId(me), 12);
            let mut now = Duration::ZERO;
            for _ in 0..10_000 {
                let edge = [0, 1, 2, 3, u64::MAX - 1, u64::MAX];
                let wave = edge[usize::try_from(random.below(6)).unwrap()];
                let message = match random.below(3) {
                    0 => QuiescenceMessage::Probe { wave },
                    _ => sum(wave, counts(random.bits(), random.bits())),
                };
                if random.below(20) == 0 {
                    one.start();
                }
                now += Duration::from_micros(random.below(1000));
                let _refused = one.handle(random.node(14), message, now, || counts(1, 0));
                while let Some(output) = one.poll(now, || counts(1, 0)) {
                    let QuiescenceOutput::Send { to, .. } = output else {
                        panic!("node {me} found quiescence in random numbers");
                    };
                    let (me, to) = (u32::from(me), u32::from(to.0));
                    assert!(tree::parent(0, me, 12) == Some(to) || tree::parent(0, to, 12) == Some(me));
                }
            }
        }
    }

    #[test]
    fn a_verdict_not_yet_taken_does_not_answer_a_later_request() {
        let mut root = Quiescence::new(NodeId(0), 2);
        root.start();
        for wave in [1, 2] {
            assert_eq!(outputs(&mut root, Counts::default()).len(), 1, "a probe");
            root.handle(NodeId(1), sum(wave, counts(0, 0)), NOW, Counts::default).unwrap();
        }
        root.start();
        assert_eq!(outputs(&mut root, counts(1, 0)).len(), 1, "a probe, no verdict");
    }

    #[test]
    fn a_wave_that_began_before_the_request_confirms_nothing() {
        let mut root = Quiescence::new(NodeId(0), 2);
        root.start();
        for wave in [1, 2, 3] {
            assert_eq!(outputs(&mut root, Counts::default()).len(), 1, "a probe");
            if wave == 2 {
                root.start();
            }
            root.handle(NodeId(1), sum(wave, counts(0, 0)), NOW, Counts::default).unwrap();
        }
        let verdict = QuiescenceOutput::Quiescent { search: 2, held: 0 };
        assert_eq!(outputs(&mut root, Counts::default()), [verdict]);
    }

    /// A message kept for an element that never comes hides nothing, and is told of.
    #[test]
    fn held_messages_are_summed_over_the_nodes() {
        let mut root = Quiescence::new(NodeId(0), 2);
        root.start_slowly();
        for wave in [1, 2] {
            assert_eq!(outputs(&mut root, counts(5, 1)).len(), 1, "a probe");
            let below = Counts { created: 1, processed: 5, held: 3 };
            root.handle(NodeId(1), sum(wave, below), NOW, || counts(5, 1)).unwrap();
        }
        let verdict = QuiescenceOutput::Quiescent { search: 1, held: 3 };
        assert_eq!(outputs(&mut root, counts(5, 1)), [verdict]);
    }

    #[test]
    fn only_the_root_searches() {
        let mut leaf = Quiescence::new(NodeId(3), 5);
        leaf.start();
        assert_eq!((leaf.poll(NOW, Counts::default), leaf.timeout()), (None, None));
    }
}
