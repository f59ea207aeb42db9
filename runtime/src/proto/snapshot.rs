//! A snapshot of a run that goes on meanwhile: what is of the state that is saved, and when all of it is known.
//!
//! Lai and Yang, "On distributed snapshots" (Information Processing Letters 25, 1987). Whoever receives messages, a PE or the
//! driver, has a colour, and each message has the colour that its sender had. The cut of a receiver is the moment between two
//! messages at which its state is saved; it changes its colour then, and goes on. What was sent before its sender's cut and comes
//! after its receiver's was on its way: it is saved beside the state, and dealt with. What was sent after its sender's cut
//! waits until its receiver has been cut, too: no state holds what follows from something that is in no state. So nobody stands
//! still for anybody. The next snapshot changes the colours back.
//!
//! When all have been cut, messages of the old colour are only those that links carry. Whoever passes one on keeps its colour,
//! and counts it as sent before it leaves, and what came as received only then. (Those who are cut may count what they send later,
//! if they do before they are.) So two counts after each other with the same sums, as many received as sent, show that none is left,
//! as in the search for [quiescence](super::quiescence). One that cannot be kept is not left off for that: all are of one colour
//! again before the next begins.

use crate::ids::{NodeId, PeId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long to wait before links are counted again, the first time and at most.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// On which side of the cut of its sender a message was sent. All begin white.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Colour {
    /// As all are in the beginning, and after every second snapshot.
    #[default]
    White,
    /// As all are after every other snapshot.
    Red,
}

impl Colour {
    /// What it becomes at the next cut.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::White => Self::Red,
            Self::Red => Self::White,
        }
    }
}

/// What a receiver does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Deals with it.
    Now,
    /// Keeps it until it has been cut.
    Aside,
    /// Saves it, and deals with it.
    Late,
}

/// Where a receiver of messages is in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    colour: Colour,
    /// It has been cut, and messages may come that were sent before their senders were.
    is_open: bool,
}

impl Side {
    /// One of this colour, while there is no snapshot.
    #[must_use]
    pub fn new(colour: Colour) -> Self {
        Self { colour, is_open: false }
    }

    /// The colour of what it sends now.
    #[must_use]
    #[inline]
    pub fn colour(self) -> Colour {
        self.colour
    }

    /// What it does with a message of a colour.
    #[must_use]
    pub fn turn(self, of: Colour) -> Turn {
        match (of == self.colour, self.is_open) {
            (true, _) => Turn::Now,
            (false, false) => Turn::Aside,
            (false, true) => Turn::Late,
        }
    }

    /// Its state has been saved.
    pub fn cut(&mut self) {
        *self = Self { colour: self.colour.other(), is_open: true };
    }

    /// All that was on its way has come.
    pub fn close(&mut self) {
        self.is_open = false;
    }

    /// Whether it has been cut, and the snapshot goes on.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.is_open
    }
}

/// Frames of one colour that a node has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Those that left.
    pub sent: u64,
    /// Those that came, and have been passed on to whom they are for.
    pub received: u64,
}

impl Carried {
    /// Both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        // What comes from afar may be nonsense; it must not panic.
        Self {
            sent: self.sent.wrapping_add(other.sent),
            received: self.received.wrapping_add(other.received),
        }
    }
}

/// What the launcher has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask all nodes for what they have [`Carried`] of the old colour, in the round of this number.
    Count(u32),
    /// Tell all PEs that nothing of the old colour comes any more.
    Close,
    /// All that was on its way has been said: the snapshot is over.
    Over,
}

/// A snapshot, as the launcher knows it. It begins when the driver has been cut, and all nodes have been told to have their PEs
/// cut; a node that ends meanwhile ends it with the run.
#[derive(Debug)]
pub struct Snapshot {
    pes: BTreeSet<PeId>,
    nodes: BTreeSet<NodeId>,
    /// What nodes have carried that have left the run.
    left: Carried,
    state: State,
}

#[derive(Debug)]
enum State {
    /// These PEs have not been cut.
    Cutting(BTreeSet<PeId>),
    /// Nodes count what they have carried.
    Counting {
        round: u32,
        said: BTreeMap<NodeId, Carried>,
        last: Option<Carried>,
    },
    /// They are asked again at this time.
    Waiting {
        until: Duration,
        round: u32,
        last: Carried,
    },
    /// These PEs have not said what was on its way to them.
    Closing(BTreeSet<PeId>),
    Over,
}

impl Snapshot {
    /// One of these PEs on these nodes, the launcher among them; `left` is what nodes have carried that are not there any more.
    #[must_use]
    pub fn new(pes: BTreeSet<PeId>, nodes: BTreeSet<NodeId>, left: Carried) -> Self {
        let state = State::Cutting(pes.clone());
        Self { pes, nodes, left, state }
    }

    /// A PE has been cut. One that is not expected changes nothing, here and below.
    pub fn has_cut(&mut self, pe: PeId) -> Option<Step> {
        let State::Cutting(left) = &mut self.state else { return None };
        left.remove(&pe);
        if !left.is_empty() {
            return None;
        }
        self.state = State::Counting { round: 1, said: BTreeMap::new(), last: None };
        Some(Step::Count(1))
    }

    /// A node has counted in this round.
    pub fn has_counted(
        &mut self,
        node: NodeId,
        in_round: u32,
        carried: Carried,
        now: Duration,
    ) -> Option<Step> {
        let State::Counting { round, said, last } = &mut self.state else { return None };
        if in_round != *round || !self.nodes.contains(&node) {
            return None;
        }
        said.insert(node, carried);
        if said.len() < self.nodes.len() {
            return None;
        }
        let sum = said.values().fold(self.left, |sum, one| sum.with(*one));
        if sum.sent == sum.received && *last == Some(sum) {
            self.state = State::Closing(self.pes.clone());
            return Some(Step::Close);
        }
        let pause = PAUSE.saturating_mul(*round).min(PAUSE_MAX);
        self.state = State::Waiting { until: now + pause, round: round.saturating_add(1), last: sum };
        None
    }

    /// A PE has said all that was on its way to it.
    pub fn has_closed(&mut self, pe: PeId) -> Option<Step> {
        let State::Closing(left) = &mut self.state else { return None };
        left.remove(&pe);
        if !left.is_empty() {
            return None;
        }
        self.state = State::Over;
        Some(Step::Over)
    }

    /// When to call [`wake`](Self::wake), if nothing is heard before.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        match self.state {
            State::Waiting { until, .. } => Some(until),
            _ => None,
        }
    }

    /// Goes on if it is time.
    pub fn wake(&mut self, now: Duration) -> Option<Step> {
        let State::Waiting { until, round, last } = self.state else { return None };
        if now < until {
            return None;
        }
        self.state = State::Counting { round, said: BTreeMap::new(), last: Some(last) };
        Some(Step::Count(round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_is_depends_on_both_cuts() {
        let mut side = Side::default();
        assert_eq!((side.turn(Colour::White), side.turn(Colour::Red)), (Turn::Now, Turn::Aside));
        side.cut();
        assert_eq!((side.turn(Colour::White), side.turn(Colour::Red)), (Turn::Late, Turn::Now));
        side.close();
        assert_eq!((side.turn(Colour::White), side.turn(Colour::Red)), (Turn::Aside, Turn::Now));
    }

    #[test]
    fn it_is_over_when_two_counts_agree_and_all_have_said_what_was_late() {
        let (pes, nodes) = ([PeId(0), PeId(1)].into(), [NodeId(0), NodeId(1)].into());
        let left = Carried { sent: 5, received: 2 };
        let mut snapshot = Snapshot::new(pes, nodes, left);
        let carried = |sent, received| Carried { sent, received };
        assert_eq!((snapshot.has_cut(PeId(1)), snapshot.has_cut(PeId(1))), (None, None));
        assert!(matches!(snapshot.state, State::Cutting(_)));
        assert_eq!(snapshot.has_cut(PeId(0)), Some(Step::Count(1)));
        let mut now = Duration::from_secs(1);
        // As many as were sent, twice in a row, whoever repeats himself or answers an earlier question.
        let rounds = [(0, 2), (0, 3), (1, 4), (1, 3), (0, 3), (0, 3)];
        for (round, (sent, received)) in (1..).zip(rounds) {
            assert_eq!(snapshot.has_counted(NodeId(0), round, carried(0, 0), now), None);
            assert_eq!(snapshot.has_counted(NodeId(0), round, carried(0, 0), now), None);
            assert_eq!(snapshot.has_counted(NodeId(1), round + 1, carried(9, 9), now), None);
            let step = snapshot.has_counted(NodeId(1), round, carried(sent, received), now);
            if round == 6 {
                assert_eq!(step, Some(Step::Close));
                break;
            }
            assert_eq!((step, snapshot.wake(now)), (None, None));
            now = snapshot.timeout().expect("they are asked again");
            assert_eq!(snapshot.wake(now), Some(Step::Count(round + 1)));
        }
        assert_eq!((snapshot.has_cut(PeId(0)), snapshot.has_closed(PeId(0))), (None, None));
        assert_eq!((snapshot.has_closed(PeId(1)), snapshot.has_closed(PeId(1))), (Some(Step::Over), None));
    }
}
