//! The launcher: what it tells and hears in a snapshot, and what is saved.

use super::Mistake;
use super::node::{Said, Wire};
use super::pe::{Letter, Order, State};
use crate::class::Class;
use crate::ids::{NodeId, PeId};
use crate::proto::sim::Outbox;
use crate::proto::snapshot::{Carried, Colour, Snapshot, Step};
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// What a snapshot has saved, of PEs and driver.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoint {
    pub(super) states: BTreeMap<PeId, State>,
    pub(super) late: BTreeMap<PeId, Vec<Letter>>,
}

impl Checkpoint {
    /// The states with which a run goes on.
    pub(super) fn restored(&self, mistake: Option<Mistake>) -> BTreeMap<PeId, State> {
        let mut states = self.states.clone();
        for (pe, late) in &self.late {
            let queue = &mut states.get_mut(pe).unwrap().queue;
            let at = if mistake == Some(Mistake::RestoresLateFirst) { 0 } else { queue.len() };
            let behind = queue.split_off(at);
            queue.extend(late.iter().chain(&behind));
        }
        states
    }
}

pub(super) struct Launcher {
    topology: Rc<Topology>,
    pub(super) snapshot: Option<Snapshot>,
    /// The colour before the last snapshot.
    old: Colour,
    /// What each node has answered last.
    answers: BTreeMap<NodeId, Carried>,
    /// One for each snapshot so far.
    pub(super) checkpoints: Vec<Checkpoint>,
    /// All PEs have been told that nothing comes any more.
    pub(super) is_closing: bool,
    mistake: Option<Mistake>,
}

impl Launcher {
    pub(super) fn new(topology: Rc<Topology>, mistake: Option<Mistake>) -> Self {
        Self {
            topology,
            snapshot: None,
            old: Colour::default(),
            answers: BTreeMap::new(),
            checkpoints: Vec::new(),
            is_closing: false,
            mistake,
        }
    }

    /// All PEs, and the driver, which sends and receives like them.
    fn pes(&self) -> impl Iterator<Item = PeId> + use<> {
        (0..self.topology.pe_count()).map(PeId).chain([PeId::DRIVER])
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.topology.node_count()).map(NodeId)
    }

    fn order(&self, pe: PeId, order: Order, out: &mut Outbox<Wire>) {
        out.send(self.topology.node_of(pe), Class::Control, Wire::Order(pe, order));
    }

    /// Begins a snapshot of all that have this colour; the driver has changed it.
    pub(super) fn begin(&mut self, old: Colour, out: &mut Outbox<Wire>) {
        (self.old, self.is_closing) = (old, false);
        self.checkpoints.push(Checkpoint::default());
        let (pes, nodes) = (self.pes().collect(), self.nodes().collect());
        self.snapshot = Some(Snapshot::new(pes, nodes, Carried::default()));
        let is_told = |pe: &PeId| *pe != PeId::DRIVER || self.mistake == Some(Mistake::CutsDriverLikeOthers);
        self.pes().filter(is_told).for_each(|pe| self.order(pe, Order::Cut, out));
    }

    /// Takes what a node says.
    pub(super) fn hear(&mut self, from: NodeId, said: Said, out: &mut Outbox<Wire>) {
        let step = match said {
            Said::HasCut { pe, number, state } => {
                self.checkpoints[number as usize - 1].states.insert(pe, *state);
                self.snapshot.as_mut().and_then(|snapshot| snapshot.has_cut(pe))
            }
            Said::HasClosed { pe, number, late } => {
                self.checkpoints[number as usize - 1].late.insert(pe, late);
                self.snapshot.as_mut().and_then(|snapshot| snapshot.has_closed(pe))
            }
            Said::Counted(round, carried) => self.hear_count(from, round, carried, out.now()),
        };
        self.carry_out(step, out);
    }

    fn hear_count(&mut self, node: NodeId, round: u32, carried: Carried, now: Duration) -> Option<Step> {
        let snapshot = self.snapshot.as_mut()?;
        self.answers.insert(node, carried);
        let step = snapshot.has_counted(node, round, carried, now);
        match snapshot.timeout() {
            Some(until) if self.mistake == Some(Mistake::ClosesAtFirstEqualCount) => {
                // As if all had been asked again, and had answered the same.
                let Some(Step::Count(again)) = snapshot.wake(until) else { unreachable!() };
                let mut answers = self.answers.iter();
                answers.find_map(|(node, carried)| snapshot.has_counted(*node, again, *carried, until))
            }
            _ => step,
        }
    }

    pub(super) fn wake(&mut self, out: &mut Outbox<Wire>) {
        let step = self.snapshot.as_mut().and_then(|snapshot| snapshot.wake(out.now()));
        self.carry_out(step, out);
    }

    fn carry_out(&mut self, step: Option<Step>, out: &mut Outbox<Wire>) {
        match step {
            Some(Step::Count(round)) => {
                self.nodes().for_each(|to| out.send(to, Class::Control, Wire::Count(round, self.old)));
            }
            Some(Step::Close) => {
                self.is_closing = true;
                self.pes().for_each(|pe| self.order(pe, Order::Close, out));
            }
            Some(Step::Over) => self.snapshot = None,
            None => {}
        }
    }
}
