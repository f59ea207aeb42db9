//! Quiescence detection: no entry method runs and no message is anywhere.
//!
//! Mattern's four-counter method ("Algorithms for distributed termination detection", 1987), over a tree of
//! nodes. A wave sums what every node has created and processed. Counters only grow. If the sums of two
//! successive waves are equal and created equals processed in both, then nothing was under way at the
//! moment between the waves: a message in flight at that moment would have been counted as created by the
//! second wave and could not have been counted as processed by the first.
//!
//! Invariant: a node counts a message as created before it can be seen elsewhere, and as processed only
//! after everything that its processing created has been counted.

use super::{ProtocolError, tree};
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Shortest and longest pause between waves that did not find quiescence.
const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Messages created and processed; the created ones count once for each receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Created.
    pub created: u64,
    /// Processed.
    pub processed: u64,
}

/// What nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuiescenceMessage {
    /// Down the tree: count.
    Probe {
        /// Number of the wave, over the whole run.
        wave: u32,
    },
    /// Up the tree: the counts of a subtree.
    Sum {
        /// The wave that it answers.
        wave: u32,
        /// Sum over the subtree.
        counts: Counts,
    },
}

/// What the state machine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuiescenceOutput {
    /// Send this.
    Send {
        /// To that node.
        to: NodeId,
        /// The message.
        message: QuiescenceMessage,
    },
    /// At the root: nothing was under way since the latest [`Quiescence::start`].
    Quiescent,
}

/// One node's part in the detection. The launcher, node 0, is the root.
#[derive(Debug)]
pub struct Quiescence {
    me: u32,
    count: u32,
    outputs: std::collections::VecDeque<QuiescenceOutput>,
    /// The wave this node takes part in, answers still awaited, and the sum so far.
    wave: u32,
    awaited: u32,
    sum: Counts,
    detection: Option<Detection>,
}

/// The root's search.
#[derive(Debug)]
struct Detection {
    last: Option<Counts>,
    pause: Duration,
    next_wave: Option<Duration>,
    is_waiting: bool,
}

impl Quiescence {
    /// The part of node `me` of `node_count`.
    #[must_use]
    pub fn new(me: NodeId, node_count: u16) -> Self {
        Self {
            me: u32::from(me.0),
            count: u32::from(node_count),
            outputs: Default::default(),
            wave: 0,
            awaited: 0,
            sum: Counts::default(),
            detection: None,
        }
    }

    /// At the root: begins to look for a moment of quiescence later than this call. A search under way
    /// begins anew, since what it has seen may be older.
    pub fn start(&mut self) {
        let is_waiting = self.detection.as_ref().is_some_and(|d| d.is_waiting);
        self.detection =
            Some(Detection { last: None, pause: PAUSE_MIN, next_wave: Some(Duration::ZERO), is_waiting });
    }

    /// Takes a message; `local` reads this node's counters, when it is this node's turn to be counted.
    ///
    /// # Errors
    /// If the message comes from a node that is not next to this one in the tree.
    pub fn handle(
        &mut self,
        from: NodeId,
        message: QuiescenceMessage,
        now: Duration,
        local: impl Fn() -> Counts,
    ) -> Result<(), ProtocolError> {
        let from = u32::from(from.0);
        match message {
            QuiescenceMessage::Probe { wave } => {
                if tree::parent(0, self.me, self.count) != Some(from) {
                    return Err(ProtocolError(format!("a quiescence probe came from node {from}, not from above")));
                }
                if wave > self.wave {
                    self.begin(wave);
                    self.finish_if_complete(now, local);
                }
            }
            QuiescenceMessage::Sum { wave, counts } => {
                if from >= self.count || tree::parent(0, from, self.count) != Some(self.me) {
                    return Err(ProtocolError(format!("a quiescence sum came from node {from}, not from below")));
                }
                if wave == self.wave && self.awaited > 0 {
                    self.awaited -= 1;
                    self.add(counts);
                    self.finish_if_complete(now, local);
                }
            }
        }
        Ok(())
    }

    /// What is to be done next, if anything; `local` as for [`handle`](Self::handle).
    pub fn poll(&mut self, now: Duration, local: impl Fn() -> Counts) -> Option<QuiescenceOutput> {
        if let Some(detection) = &mut self.detection
            && !detection.is_waiting
            && detection.next_wave.is_some_and(|at| at <= now)
        {
            detection.next_wave = None;
            detection.is_waiting = true;
            self.begin(self.wave + 1);
            self.finish_if_complete(now, local);
        }
        self.outputs.pop_front()
    }

    /// When [`poll`](Self::poll) should be called again without any message.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.detection.as_ref().filter(|d| !d.is_waiting).and_then(|d| d.next_wave)
    }

    fn begin(&mut self, wave: u32) {
        self.wave = wave;
        self.sum = Counts::default();
        self.awaited = 0;
        for child in tree::children(0, self.me, self.count) {
            self.awaited += 1;
            self.send(child, QuiescenceMessage::Probe { wave });
        }
    }

    fn finish_if_complete(&mut self, now: Duration, local: impl Fn() -> Counts) {
        if self.awaited > 0 {
            return;
        }
        self.add(local());
        let (wave, counts) = (self.wave, self.sum);
        match tree::parent(0, self.me, self.count) {
            Some(parent) => self.send(parent, QuiescenceMessage::Sum { wave, counts }),
            None => self.judge(counts, now),
        }
    }

    fn judge(&mut self, counts: Counts, now: Duration) {
        let Some(detection) = &mut self.detection else { return };
        detection.is_waiting = false;
        // A restart while the wave was under way left `next_wave` set; what this wave saw is then too old.
        if detection.next_wave.is_some() {
            return;
        }
        if counts.created == counts.processed && detection.last == Some(counts) {
            self.detection = None;
            self.outputs.push_back(QuiescenceOutput::Quiescent);
            return;
        }
        let is_settled = counts.created == counts.processed;
        detection.last = Some(counts);
        let pause = if is_settled { Duration::ZERO } else { detection.pause };
        if !is_settled {
            detection.pause = (detection.pause * 2).min(PAUSE_MAX);
        }
        detection.next_wave = Some(now + pause);
    }

    fn add(&mut self, counts: Counts) {
        self.sum.created = self.sum.created.wrapping_add(counts.created);
        self.sum.processed = self.sum.processed.wrapping_add(counts.processed);
    }

    fn send(&mut self, to: u32, message: QuiescenceMessage) {
        let to = NodeId(u16::try_from(to).expect("a node below a u16 count"));
        self.outputs.push_back(QuiescenceOutput::Send { to, message });
    }
}
