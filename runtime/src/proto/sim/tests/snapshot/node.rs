//! A node: its PEs, what its threads do with what links bring, and what it counts.

use super::Mistake;
use super::launcher::Launcher;
use super::pe::{Deed, Habits, Incoming, Letter, Order, Pe, State};
use crate::class::Class;
use crate::ids::{NodeId, PeId};
use crate::proto::sim::{Machine, Outbox, Random};
use crate::proto::snapshot::{Carried, Colour};
use crate::proto::tree::TreeOver;
use crate::topology::Topology;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

pub(super) enum Wire {
    Frame(Frame),
    Order(PeId, Order),
    /// Asks for what has been carried of a colour.
    Count(u32, Colour),
    ToLauncher(Said),
}

/// What a node says to the launcher: of PEs with the number of the snapshot.
pub(super) enum Said {
    HasCut { pe: PeId, number: u32, state: Box<State> },
    HasClosed { pe: PeId, number: u32, late: Vec<Letter> },
    Counted(u32, Carried),
}

#[derive(Clone, Copy)]
pub(super) struct Frame {
    to: Audience,
    colour: Colour,
    letter: Letter,
}

#[derive(Clone, Copy)]
enum Audience {
    One(PeId),
    /// All on the tree with this root.
    All(NodeId),
}

/// A step of what a thread does with a frame.
enum Task {
    Forward(NodeId),
    CountSent,
    Deliver,
    CountReceived,
}

/// What is left to do with the frames of a link and class. Other threads go on meanwhile.
#[derive(Default)]
struct Thread {
    /// Each with how long the thread is stopped after it.
    tasks: VecDeque<(Task, Frame, Duration)>,
    next_at: Duration,
}

pub(super) struct Node {
    me: NodeId,
    topology: Rc<Topology>,
    /// Those that are here, and the driver.
    pub(super) pes: Vec<Pe>,
    threads: BTreeMap<(NodeId, bool), Thread>,
    /// Frames that were white and red.
    carried: [Carried; 2],
    pub(super) launcher: Option<Launcher>,
    random: Random,
    habits: Habits,
}

impl Node {
    pub(super) fn new(
        me: NodeId,
        topology: &Rc<Topology>,
        states: &BTreeMap<PeId, State>,
        seed: u64,
        habits: Habits,
    ) -> Self {
        let mut random = Random::new(seed ^ u64::from(me.0) << 32);
        let is_launcher = me == NodeId::LAUNCHER;
        let ids = topology.pes(me).iter().copied().map(PeId).chain(is_launcher.then_some(PeId::DRIVER));
        let pe = |id| Pe::new(id, states[&id].clone(), random.bits(), habits);
        Self {
            me,
            pes: ids.map(pe).collect(),
            topology: Rc::clone(topology),
            threads: BTreeMap::new(),
            carried: [Carried::default(); 2],
            launcher: is_launcher.then(|| Launcher::new(Rc::clone(topology), habits.mistake)),
            random,
            habits,
        }
    }

    fn pe(&mut self, pe: PeId) -> &mut Pe {
        self.pes.iter_mut().find(|one| one.me == pe).unwrap()
    }

    fn carried(&mut self, colour: Colour) -> &mut Carried {
        &mut self.carried[usize::from(colour == Colour::Red)]
    }

    /// At the launcher: begins a snapshot, first of all of the driver.
    pub(super) fn begin(&mut self, out: &mut Outbox<Wire>) {
        let old = self.pe(PeId::DRIVER).side.colour();
        if !self.habits.make(Mistake::CutsDriverLikeOthers) {
            self.pe(PeId::DRIVER).obey(Order::Cut);
        }
        self.launcher.as_mut().unwrap().begin(old, out);
        self.carry_out(PeId::DRIVER, out);
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        self.pes.iter().all(Pe::is_done) && self.threads.is_empty()
    }

    fn send(&mut self, to: NodeId, frame: Frame, out: &mut Outbox<Wire>) {
        if self.me != NodeId::LAUNCHER || !self.habits.make(Mistake::DriverIsNotCounted) {
            self.carried(frame.colour).sent += 1;
        }
        out.send(to, frame.letter.kind.class(), Wire::Frame(frame));
    }

    /// Does what a PE wants done.
    fn carry_out(&mut self, pe: PeId, out: &mut Outbox<Wire>) {
        let number = self.pe(pe).cuts;
        for deed in std::mem::take(&mut self.pe(pe).deeds) {
            match deed {
                Deed::Send(to, colour, letter) if self.topology.node_of(to) == self.me => {
                    let colour = (!self.habits.make(Mistake::NeighboursSeeNoColour)).then_some(colour);
                    self.pe(to).put(Incoming::Letter(colour, letter));
                }
                Deed::Send(to, colour, letter) => {
                    let frame = Frame { to: Audience::One(to), colour, letter };
                    self.send(self.topology.node_of(to), frame, out);
                }
                Deed::Give(to, letter) => {
                    let order = Wire::Order(to, Order::Take(letter));
                    out.send(self.topology.node_of(to), Class::Control, order);
                }
                Deed::Say(colour, letter) => self.say(colour, letter, out),
                Deed::HasCut(state) => self.tell_launcher(Said::HasCut { pe, number, state }, out),
                Deed::HasClosed(late) => self.tell_launcher(Said::HasClosed { pe, number, late }, out),
            }
        }
    }

    fn say(&mut self, colour: Colour, letter: Letter, out: &mut Outbox<Wire>) {
        let is_launcher = self.me == NodeId::LAUNCHER;
        // What the driver says begins at the first node that has PEs.
        let root = if is_launcher { self.topology.compute_nodes()[0] } else { self.me };
        let frame = Frame { to: Audience::All(root), colour, letter };
        if is_launcher {
            return self.send(root, frame, out);
        }
        self.below(root).into_iter().for_each(|child| self.send(child, frame, out));
        self.deliver(frame);
    }

    fn below(&self, root: NodeId) -> Vec<NodeId> {
        let tree = TreeOver::new(self.topology.compute_nodes(), root).unwrap();
        tree.children(self.me).collect()
    }

    fn tell_launcher(&mut self, said: Said, out: &mut Outbox<Wire>) {
        match &mut self.launcher {
            Some(launcher) => launcher.hear(self.me, said, out),
            None => out.send(NodeId::LAUNCHER, Class::Control, Wire::ToLauncher(said)),
        }
    }

    fn deliver(&mut self, Frame { to, colour, letter }: Frame) {
        let incoming = Incoming::Letter(Some(colour), letter);
        match to {
            Audience::One(pe) => self.pe(pe).put(incoming),
            Audience::All(_) => self.pes.iter_mut().for_each(|pe| pe.put(incoming)),
        }
    }

    /// A frame has come: says what its thread has to do.
    fn take(&mut self, from: NodeId, frame: Frame) {
        let below = match frame.to {
            Audience::All(root) => self.below(root),
            Audience::One(_) => Vec::new(),
        };
        let counts_later = self.habits.make(Mistake::CountsSentLater);
        let forward = |child| [Some(Task::Forward(child)), counts_later.then_some(Task::CountSent)];
        let mut tasks: Vec<Task> = below.into_iter().flat_map(forward).flatten().collect();
        match self.habits.mistake {
            Some(Mistake::CountsBeforeForwarding) => {
                tasks.splice(0..0, [Task::Deliver, Task::CountReceived]);
            }
            Some(Mistake::CountsBeforeDelivery) => tasks.extend([Task::CountReceived, Task::Deliver]),
            _ => tasks.extend([Task::Deliver, Task::CountReceived]),
        }
        let Self { random, habits, .. } = self;
        let stop = if random.below(habits.stops_one_in) == 0 { habits.stop } else { Duration::ZERO };
        let thread = self.threads.entry((from, frame.letter.kind.class() == Class::Large)).or_default();
        let stopped = tasks.into_iter().map(|task| (task, frame, random.between(Duration::ZERO, stop)));
        thread.tasks.extend(stopped);
    }

    /// Lets all threads do what there is to do now. Any of them may be stopped between two steps.
    fn run_threads(&mut self, out: &mut Outbox<Wire>) {
        for (key, mut thread) in std::mem::take(&mut self.threads) {
            while thread.next_at <= out.now()
                && let Some((task, frame, stop)) = thread.tasks.pop_front()
            {
                self.perform(task, frame, out);
                thread.next_at = out.now() + stop;
            }
            if !thread.tasks.is_empty() {
                self.threads.insert(key, thread);
            }
        }
    }

    fn perform(&mut self, task: Task, mut frame: Frame, out: &mut Outbox<Wire>) {
        match task {
            Task::Forward(child) => {
                if self.habits.make(Mistake::ForwardsInOwnColour) {
                    let newest = self.pes.iter().max_by_key(|pe| pe.cuts).unwrap();
                    frame.colour = newest.side.colour();
                }
                if self.habits.make(Mistake::CountsSentLater) {
                    out.send(child, frame.letter.kind.class(), Wire::Frame(frame));
                } else {
                    self.send(child, frame, out);
                }
            }
            Task::CountSent => self.carried(frame.colour).sent += 1,
            Task::Deliver => self.deliver(frame),
            Task::CountReceived => self.carried(frame.colour).received += 1,
        }
    }

    fn run_pes(&mut self, out: &mut Outbox<Wire>) {
        for at in 0..self.pes.len() {
            if self.pes[at].next().is_some_and(|next| next <= out.now()) {
                self.pes[at].step(out.now());
            }
            self.carry_out(self.pes[at].me, out);
        }
    }
}

impl Machine for Node {
    type Message = Wire;

    fn receive(&mut self, from: NodeId, wire: Wire, out: &mut Outbox<Wire>) {
        match wire {
            Wire::Frame(frame) => self.take(from, frame),
            Wire::Order(pe, order) => self.pe(pe).put(Incoming::Order(order)),
            Wire::Count(round, colour) => {
                let carried = *self.carried(colour);
                self.tell_launcher(Said::Counted(round, carried), out);
            }
            Wire::ToLauncher(said) => self.launcher.as_mut().unwrap().hear(from, said, out),
        }
        self.wake(out);
    }

    fn wake(&mut self, out: &mut Outbox<Wire>) {
        self.run_threads(out);
        self.run_pes(out);
        if let Some(launcher) = &mut self.launcher {
            launcher.wake(out);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let threads = self.threads.values();
        let snapshot = self.launcher.as_ref().and_then(|launcher| launcher.snapshot.as_ref());
        let pes = self.pes.iter().filter_map(Pe::next);
        pes.chain(threads.map(|thread| thread.next_at)).chain(snapshot.and_then(|one| one.timeout())).min()
    }
}
