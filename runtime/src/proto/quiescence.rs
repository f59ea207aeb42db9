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

use super::{ProtocolError, tree};
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
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
        /// Number of the wave, over the whole run, from 1.
        wave: u64,
    },
    /// Up the tree: the counts of a subtree.
    Sum {
        /// The wave that it answers.
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
        /// To that node.
        to: NodeId,
        /// The message.
        message: QuiescenceMessage,
    },
    /// At the root: there was a moment since the latest [`Quiescence::start`] when nothing was under way.
    Quiescent,
}

/// One node's part in the detection. The launcher, node 0, is the root of the tree over all nodes.
#[derive(Debug)]
pub struct Quiescence {
    me: u32,
    count: u32,
    outputs: VecDeque<QuiescenceOutput>,
    /// The wave this node takes part in, the children whose answers it awaits, and the sum so far.
    wave: u64,
    awaited: Vec<u32>,
    sum: Counts,
    detection: Option<Detection>,
}

/// The root's search.
#[derive(Debug)]
struct Detection {
    /// Sum of the wave before, if it began after the latest start.
    last: Option<Counts>,
    pause: Duration,
    /// When to begin the next wave; set by a start even while a wave is under way, which is then too old.
    next_wave: Option<Duration>,
    is_wave_under_way: bool,
    /// The latest wave followed a balanced one without a pause.
    is_confirming: bool,
}

impl Quiescence {
    /// The part of node `me` of `node_count`, launcher included.
    #[must_use]
    pub fn new(me: NodeId, node_count: u16) -> Self {
        Self {
            me: u32::from(me.0),
            count: u32::from(node_count),
            outputs: VecDeque::new(),
            wave: 0,
            awaited: Vec::new(),
            sum: Counts::default(),
            detection: None,
        }
    }

    /// At the root: begins to look for a moment of quiescence later than this call. A search under way
    /// begins anew, since what it has seen may be older; one answer then serves all who wait. Elsewhere this
    /// does nothing.
    pub fn start(&mut self) {
        if self.me != 0 {
            return;
        }
        self.detection = Some(Detection {
            last: None,
            pause: PAUSE_MIN,
            next_wave: Some(Duration::ZERO),
            is_wave_under_way: self.detection.as_ref().is_some_and(|d| d.is_wave_under_way),
            is_confirming: false,
        });
    }

    /// Takes a message; `local` reads this node's counters, when it is this node's turn to be counted.
    /// Repeated and stale messages change nothing.
    ///
    /// # Errors
    /// If the message comes from a node that is not next to this one in the tree, or answers a wave that has
    /// not begun.
    pub fn handle(
        &mut self,
        from: NodeId,
        message: QuiescenceMessage,
        now: Duration,
        local: impl Fn() -> Counts,
    ) -> Result<(), ProtocolError> {
        let sender = u32::from(from.0);
        match message {
            QuiescenceMessage::Probe { wave } => {
                if tree::parent(0, self.me, self.count) != Some(sender) {
                    return Err(ProtocolError(format!(
                        "a quiescence probe came from {from:?}, not from above"
                    )));
                }
                if wave > self.wave {
                    self.begin(wave);
                    self.finish_if_complete(now, local);
                }
            }
            QuiescenceMessage::Sum { wave, counts } => {
                if tree::parent(0, sender, self.count) != Some(self.me) {
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
                let waits_for = self.awaited.iter().position(|&child| child == sender);
                if let Some(at) = waits_for.filter(|_| wave == self.wave) {
                    self.awaited.swap_remove(at);
                    self.add(counts);
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
            && !detection.is_wave_under_way
            && detection.next_wave.is_some_and(|at| at <= now)
        {
            detection.next_wave = None;
            detection.is_wave_under_way = true;
            self.begin(self.wave.saturating_add(1));
            self.finish_if_complete(now, local);
        }
        self.outputs.pop_front()
    }

    /// When [`poll`](Self::poll) should be called again without any message.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.detection.as_ref().filter(|d| !d.is_wave_under_way).and_then(|d| d.next_wave)
    }

    fn begin(&mut self, wave: u64) {
        self.wave = wave;
        self.sum = Counts::default();
        self.awaited.clear();
        self.awaited.extend(tree::children(0, self.me, self.count));
        for at in 0..self.awaited.len() {
            self.send(self.awaited[at], QuiescenceMessage::Probe { wave });
        }
    }

    fn finish_if_complete(&mut self, now: Duration, local: impl Fn() -> Counts) {
        if !self.awaited.is_empty() {
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
        detection.is_wave_under_way = false;
        if detection.next_wave.is_some() {
            return;
        }
        let is_balanced = counts.created == counts.processed;
        if is_balanced && detection.last == Some(counts) {
            self.detection = None;
            self.outputs.push_back(QuiescenceOutput::Quiescent);
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
            detection.pause = (detection.pause * 2).min(PAUSE_MAX);
        }
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
