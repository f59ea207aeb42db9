//! What a node does with what links bring, and how things reach all nodes.

use super::arrivals::plain;
use super::links::{ByColour, place_of};
use super::variables::INIT_OVER;
use super::{BalancingEvent, DriverEvent, LauncherEvent, Node};
use crate::codec::{
    Announcement, ControlToLauncher, ControlToNode, Order, Refusal, ScatterPart, Spread, WorkToLauncher,
    WorkToNode, decode, decode_in,
};
use crate::collection::Collection;
use crate::envelope::{CollectionId, Envelope, Packed, Payload, PeOrder, Target, ToPe};
use crate::failure::{Failure, Kind};
use crate::frame::{Class, Frame, Receiver};
use crate::ids::{NodeId, PeId};
use crate::mark::Mark;
use crate::monitor::wire::Phase;
use crate::pe::inbox::Incoming;
use crate::priority::Priority;
use crate::proto::ProtocolError;
use crate::proto::quiescence::{QuiescenceMessage, QuiescenceOutput};
use crate::proto::snapshot::Colour;
use crate::proto::tree::TreeOver;
use crate::scatter;
use bytes::Bytes;
use std::sync::Arc;

impl Receiver for Node {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        self.receive_all(from, class, &mut vec![frame]);
    }

    fn receive_all(&self, from: NodeId, class: Class, frames: &mut Vec<Frame>) {
        let len_bytes = frames.iter().map(|frame| frame.len_bytes() as u64).sum::<u64>();
        if let Err(refusal) = self.checks().check_sender(from) {
            frames.clear();
            return self.refuse(from, &refusal);
        }
        let (mut batch, is_launcher) = (Batch::new(), self.id == NodeId::LAUNCHER);
        let mut counts = ByColour::default();
        for frame in frames.drain(..) {
            let accepted = match class {
                Class::Control if is_launcher => self.accept_control_to_launcher(from, frame).map(|()| None),
                Class::Control => self.accept_control(from, frame).map(|()| None),
                Class::Small | Class::Large if is_launcher => self.accept_work_to_launcher(from, frame),
                Class::Small | Class::Large => self.accept_work(from, frame, &mut batch),
            };
            match accepted {
                Ok(colour) => counts[place_of(colour)] += 1,
                Err(refusal) => {
                    counts[place_of(None)] += 1;
                    self.refuse(from, &refusal);
                }
            }
        }
        self.pass_batch(&mut batch);
        // Only now, so that what is counted has arrived where it goes: a checkpoint waits for that.
        self.links.received(class, counts, len_bytes);
    }

    fn backlog_bytes(&self) -> u64 {
        self.pes.backlog_bytes()
    }

    fn link_lost(&self, peer: NodeId, reason: String) {
        if self.has_ended() {
            return;
        }
        self.tell_launcher(ControlToLauncher::LinkLost(peer, reason));
    }
}

/// Messages of one colour that came one behind the other for one PE, and go into its inbox together.
struct Batch {
    pe: PeId,
    colour: Option<Colour>,
    messages: Vec<Incoming>,
    len_bytes: u64,
    /// The PE that sent the last message.
    from: PeId,
    /// The collection of the last message, and how many entry methods its elements have, once that message was found
    /// right.
    known: Option<(Arc<Collection>, usize)>,
}

impl Batch {
    fn new() -> Self {
        Self {
            pe: PeId::DRIVER,
            colour: None,
            messages: Vec::new(),
            len_bytes: 0,
            from: PeId::DRIVER,
            known: None,
        }
    }

    /// Whether a message needs no check, because all that would be checked is as in the one before.
    fn vouches_for(&self, header: &WorkToNode) -> bool {
        let WorkToNode::ToPe {
            pe,
            mark: None,
            message: ToPe::Element { collection, index, entry, from, .. },
            ..
        } = header
        else {
            return false;
        };
        self.known.as_ref().is_some_and(|(known, entries)| {
            *pe == self.pe
                && *from == self.from
                && known.id == *collection
                && usize::from(*entry) < *entries
                && known.is_on(*pe, *index)
        })
    }
}

impl Node {
    /// Puts a batch into the inbox of its PE.
    fn pass_batch(&self, batch: &mut Batch) {
        if !batch.messages.is_empty() {
            let len_bytes = std::mem::take(&mut batch.len_bytes);
            self.pes.push_run((batch.pe, batch.colour), &mut batch.messages, len_bytes);
        }
    }

    /// Does what a frame says; its colour.
    fn accept_work(&self, from: NodeId, frame: Frame, batch: &mut Batch) -> Result<Option<Colour>, Refusal> {
        let len_bytes = frame.len_bytes() as u64;
        let (colour, header, payload) = decode_in::<WorkToNode>(frame)?;
        if !batch.vouches_for(&header) {
            self.checks().check_work(from, &header)?;
            batch.known = None;
        }
        if !matches!(header, WorkToNode::ToPe { .. }) || colour != batch.colour {
            // What comes later must not overtake it.
            self.pass_batch(batch);
            batch.colour = colour;
        }
        match header {
            WorkToNode::ToPe { pe, priority, mark, mut message } => {
                if let Some(mark) = mark {
                    message.set_mark(mark);
                }
                if pe != batch.pe {
                    self.pass_batch(batch);
                    batch.pe = pe;
                }
                if batch.known.is_none()
                    && let ToPe::Element { collection, from, .. } = &message
                    && let Some(known) = self.collection(*collection)
                {
                    batch.from = *from;
                    let entries = self.program().chare_types[usize::from(known.chare_type)].entries.len();
                    batch.known = Some((known, entries));
                }
                batch.len_bytes += len_bytes;
                let (target, packed) = (message.into(), payload);
                batch.messages.push(Incoming { target, priority, packed, backlog_bytes: len_bytes });
            }
            WorkToNode::Spread { root, what } => {
                self.pass_on((root, colour), &what, &payload);
                self.take_spread(colour, what, payload);
            }
            WorkToNode::Multicast { collection, entry, priority, mark, members } => {
                self.multicast(colour, (collection, entry, mark), priority, members, &payload);
            }
            WorkToNode::Scatter { collection, entry, from, number, parts } => {
                let messages = scatter::open(parts, &payload)?;
                self.take_scatter((collection, entry), Mark { from, number }, messages, batch);
            }
            WorkToNode::Record(sent) => {
                let (header, packed) = sent.open(payload);
                self.take_record(header, packed)?;
            }
        }
        Ok(colour)
    }

    fn accept_work_to_launcher(&self, from: NodeId, frame: Frame) -> Result<Option<Colour>, Refusal> {
        let (colour, header, payload) = decode_in::<WorkToLauncher>(frame)?;
        self.checks().check_work_to_launcher(from, &header)?;
        match header {
            WorkToLauncher::Result(slot) => self.take_result(colour, slot, Payload::packed(payload)),
            WorkToLauncher::Announcement(announcement) => {
                self.take_announcement(colour, announcement, payload);
            }
            WorkToLauncher::Loads => {
                let unreadable = |error| Refusal::Impossible(format!("loads that do not decode: {error}"));
                let loads = postcard::from_bytes(&payload.body).map_err(unreadable)?;
                self.checks().check_loads(from, &loads)?;
                let bytes = payload.len_bytes() as u64;
                self.listeners.tell_balancing(BalancingEvent::Told { from, loads, bytes });
            }
            WorkToLauncher::Record(record) => {
                self.listeners.tell_driver(DriverEvent::Record(from, record, payload));
            }
        }
        Ok(colour)
    }

    fn accept_control(&self, from: NodeId, frame: Frame) -> Result<(), Refusal> {
        let (control, payload) = decode(frame)?;
        self.checks().check_control(from, &control)?;
        match control {
            ControlToNode::Order(order) => self.obey(order, payload),
            ControlToNode::InitOver(is_over) => {
                let below = TreeOver::at_first(self.topology().compute_nodes())
                    .into_iter()
                    .flat_map(|tree| tree.children(self.id));
                below.for_each(|node| self.control(node, ControlToNode::InitOver(is_over)));
                self.take_init_over(is_over);
            }
            ControlToNode::Quiescence(message) => self.take_quiescence(from, message)?,
            ControlToNode::VariableSet(id) => self.acknowledged(from, id),
        }
        Ok(())
    }

    fn accept_control_to_launcher(&self, from: NodeId, frame: Frame) -> Result<(), Refusal> {
        let (control, payload) = decode(frame)?;
        self.checks().check_control_to_launcher(from, &control)?;
        self.hear(from, control, payload)
    }

    /// Gives each PE its messages, which lie together. The first one has the mark.
    fn take_scatter(
        &self,
        (collection, entry): (CollectionId, u16),
        Mark { from, mut number }: Mark,
        messages: Vec<(ScatterPart, Bytes)>,
        batch: &mut Batch,
    ) {
        for (ScatterPart { pe, index, .. }, body) in messages {
            if pe != batch.pe {
                self.pass_batch(batch);
                batch.pe = pe;
            }
            // A message without a body takes memory too until it is dealt with.
            let backlog_bytes = (size_of::<ScatterPart>() + body.len()) as u64;
            let number = std::mem::take(&mut number);
            let target = ToPe::Element { collection, index, entry, from, number }.into();
            let packed = Packed { body, attachments: Vec::new() };
            batch.len_bytes += backlog_bytes;
            batch.messages.push(Incoming { target, priority: Priority::ORDINARY, packed, backlog_bytes });
        }
        self.pass_batch(batch);
    }

    /// Ends the run because of what `from` sent.
    fn refuse(&self, from: NodeId, why: &Refusal) {
        self.fail(format!("{from:?} sent {:?} a message that it refuses: {why}", self.id));
    }

    /// Makes something reach every node that has PEs, this one included if it has, in the colour of who says it. Bytes that left
    /// from here for that.
    pub(crate) fn spread(&self, colour: Colour, what: Spread, payload: Packed) -> u64 {
        let (mut bytes, colour) = (0, Some(colour));
        if self.id == NodeId::LAUNCHER {
            // It is not part of the tree: whatever it spreads begins at the first node.
            if let Some(root) = self.topology().compute_nodes().first().copied() {
                let header = WorkToNode::Spread { root, what: what.clone() };
                bytes += self.send_frame((root, colour), &header, payload.clone());
            }
        } else {
            bytes += self.pass_on((self.id, colour), &what, &payload);
            if let Spread::Announcement(announcement) = &what {
                // The driver may be handed a proxy of it, so the launcher has to know it too.
                let header = WorkToLauncher::Announcement(announcement.clone());
                bytes += self.send_frame((NodeId::LAUNCHER, colour), &header, payload.clone());
            }
        }
        self.take_spread(colour, what, payload);
        bytes
    }

    fn pass_on(&self, (root, colour): (NodeId, Option<Colour>), what: &Spread, payload: &Packed) -> u64 {
        let Some(tree) = TreeOver::new(self.topology().compute_nodes(), root) else { return 0 };
        let header = || WorkToNode::Spread { root, what: what.clone() };
        let pass = |child| self.send_frame((child, colour), &header(), payload.clone());
        tree.children(self.id).map(pass).sum()
    }

    fn take_spread(&self, colour: Option<Colour>, what: Spread, payload: Packed) {
        match what {
            Spread::Broadcast { collection, entry, priority, mark } => {
                self.pes.push_to_all(
                    (self.topology().pes(self.id), colour),
                    &Target::All { collection, entry, mark },
                    &priority,
                    &payload,
                );
            }
            Spread::Announcement(announcement) => self.take_announcement(colour, announcement, payload),
        }
    }

    fn take_announcement(&self, colour: Option<Colour>, announcement: Announcement, payload: Packed) {
        match announcement {
            Announcement::Collection(collection) => {
                let id = collection.id;
                self.catalogue.add(colour, collection);
                let here = (self.topology().pes(self.id), colour);
                self.pes.push_to_all(here, &Target::Create(id), &Priority::ORDINARY, &payload);
            }
            Announcement::Variable { id, kind, origin, acknowledge } => {
                let is_in_place = self.variables.arrive(colour, (id, kind, origin), payload, acknowledge);
                if let Some(node) = acknowledge.filter(|_| is_in_place) {
                    self.acknowledge(node, id);
                }
            }
        }
    }

    pub(super) fn take_init_over(&self, is_over: bool) {
        self.state.set_init(!is_over);
        self.tell_launcher(ControlToLauncher::VariableSet(INIT_OVER));
    }

    fn take_quiescence(&self, from: NodeId, message: QuiescenceMessage) -> Result<(), ProtocolError> {
        self.quiescence().handle(from, message, self.now(), || self.pes.counts())?;
        if self.pump_quiescence().is_some() {
            // This thread does not wait for moments; the driver does, and must not oversleep.
            self.listeners.tell_driver(DriverEvent::QuiescenceDue);
        }
        Ok(())
    }

    /// Does what the launcher says.
    fn obey(&self, order: Order, payload: Packed) {
        match order {
            Order::Ask(mark) => {
                let snapshot = self.snapshot();
                if self.settings.detail.tells_single() {
                    // Whoever asks may be about to end the run.
                    self.tell_samples(self.pes.under_way(snapshot.uptime_ns));
                }
                self.tell_launcher(ControlToLauncher::Answer(mark, Box::new(snapshot)));
            }
            Order::Speeds(speeds) => self.state.set_speeds(speeds),
            Order::Arrange(moves) => self.adopt(&moves),
            Order::Admit(node, entry) => self.take_in(node, &entry),
            Order::Collect(id) => {
                let sum = self.sums.collect(id).unwrap_or_default();
                self.send_frame((NodeId::LAUNCHER, None), &ControlToLauncher::Collected(id), sum);
            }
            Order::Kept(bytes) => self.held.kept(bytes),
            Order::Extent(pe, extent) => self.extent_came(pe, extent),
            Order::Cut(save) => self.cut_all(save),
            Order::Count(round, colour) => {
                self.tell_launcher(ControlToLauncher::Counted(round, self.carried(colour)));
            }
            Order::Close => self.close_all(),
            Order::ToPe(pe, order) => {
                if matches!(order, PeOrder::HandOver { .. }) {
                    // What others have taken over is not to be told by this node as well.
                    self.state.leave();
                }
                let len_bytes = payload.len_bytes() as u64;
                // Chares that wait behind others here are those that are to go, and who is to stand still has much to do.
                // Nobody waits until a kernel has been dropped, and that must not be left for after a pause in which counts
                // are restored, because they do not know of the order.
                let is_urgent = matches!(order, PeOrder::Migrate | PeOrder::Pause | PeOrder::DropKernel);
                let priority = if is_urgent { i32::MIN } else { 0 };
                let envelope = Envelope::new(Target::Order(order), priority, Payload::packed(payload));
                self.pes.push_arrived(pe, None, envelope, len_bytes);
            }
            Order::End => {
                self.state.told_to_end();
            }
            Order::Welcome(_) => {}
        }
    }

    /// Takes what a node says to the launcher, which this is.
    fn hear(&self, from: NodeId, said: ControlToLauncher, payload: Packed) -> Result<(), Refusal> {
        match said {
            ControlToLauncher::Joining(answer) => {
                self.listeners.tell_supervision(LauncherEvent::Joining(from, answer));
            }
            ControlToLauncher::Snapshot(snapshot) => {
                self.listeners.tell_supervision(LauncherEvent::Snapshot(snapshot));
            }
            ControlToLauncher::Samples(samples) => {
                self.listeners.tell_supervision(LauncherEvent::Samples(samples));
            }
            ControlToLauncher::Collectives(collectives) => {
                self.listeners.tell_supervision(LauncherEvent::Collectives(collectives));
            }
            ControlToLauncher::Answer(mark, snapshot) => {
                self.listeners.tell_driver(DriverEvent::Answer(mark, snapshot));
            }
            ControlToLauncher::Fault(sentence) => {
                // A supervising launcher adds the node's name before it tells the driver.
                let sentence = plain(&sentence);
                if self.listeners.is_supervised() {
                    self.listeners.tell_supervision(LauncherEvent::Fault(from, sentence));
                } else {
                    self.tell_failed(Failure::new(Kind::Failed, sentence));
                }
            }
            ControlToLauncher::LinkLost(peer, reason) => {
                let reason = plain(&reason);
                self.listeners.tell_supervision(LauncherEvent::LinkLost { by: from, peer, reason });
            }
            ControlToLauncher::VariableSet(id) => {
                self.acknowledged(from, id);
                self.listeners.tell_driver(DriverEvent::VariableSet(from, id));
            }
            ControlToLauncher::Speed(pe, rate, cpu_rate) => {
                self.state.set_cpu_rate(pe, cpu_rate);
                self.listeners.tell_driver(DriverEvent::Speed(pe, rate));
            }
            ControlToLauncher::Collected(id) => {
                let sum = (!payload.body.is_empty() || !payload.attachments.is_empty()).then_some(payload);
                self.listeners.tell_driver(DriverEvent::Collected(from, id, sum));
            }
            ControlToLauncher::Phase(phase) => {
                self.listeners.tell_supervision(LauncherEvent::Phase(Phase {
                    name: plain(&phase.name),
                    detail: plain(&phase.detail),
                    ..phase
                }));
            }
            ControlToLauncher::Quiescence(message) => self.take_quiescence(from, message)?,
            of_saving @ (ControlToLauncher::Reading(..)
            | ControlToLauncher::HasCut(..)
            | ControlToLauncher::Counted(..)
            | ControlToLauncher::Closed(..)
            | ControlToLauncher::WantsExtent { .. }
            | ControlToLauncher::Wrote(..)
            | ControlToLauncher::GoodMoment
            | ControlToLauncher::Paused(..)) => self.hear_of_saving(from, of_saving),
        }
        Ok(())
    }

    /// Takes what a node says of a run that is saved, or comes back.
    fn hear_of_saving(&self, from: NodeId, said: ControlToLauncher) {
        match said {
            ControlToLauncher::Reading(pe, bytes) => {
                self.listeners.tell_driver(DriverEvent::Reading(pe, bytes));
            }
            ControlToLauncher::HasCut(pe, cut) => {
                let cut = cut.map_err(|why| plain(&why));
                self.listeners.tell_driver(DriverEvent::HasCut(pe, cut));
            }
            ControlToLauncher::Counted(round, carried) => {
                self.listeners.tell_driver(DriverEvent::Counted(from, round, carried));
            }
            ControlToLauncher::Closed(pe, closed) => {
                let closed = closed.map_err(|why| plain(&why));
                self.listeners.tell_driver(DriverEvent::Closed(pe, closed));
            }
            ControlToLauncher::WantsExtent { pe, checkpoint, bytes } => {
                self.extent_is_wanted(from, (pe, checkpoint), bytes);
            }
            ControlToLauncher::Wrote(pe, checkpoint, wrote) => {
                let wrote = wrote.map_err(|why| plain(&why));
                self.listeners.tell_driver(DriverEvent::Wrote(pe, checkpoint, wrote));
            }
            ControlToLauncher::GoodMoment => self.listeners.tell_driver(DriverEvent::GoodMoment),
            ControlToLauncher::Paused(pe, paused) => {
                let paused = paused.map_err(|why| plain(&why));
                self.listeners.tell_driver(DriverEvent::Paused(pe, paused));
            }
            _ => {}
        }
    }

    /// Sends a message of the runtime itself to a node with PEs.
    pub(super) fn control(&self, to: NodeId, control: ControlToNode) {
        self.send_frame((to, None), &control, Packed::default());
    }

    /// Tells the launcher something, which may be this node.
    pub(crate) fn tell_launcher(&self, said: ControlToLauncher) {
        if self.id == NodeId::LAUNCHER {
            if let Err(refusal) = self.hear(self.id, said, Packed::default()) {
                self.refuse(self.id, &refusal);
            }
        } else {
            self.send_frame((NodeId::LAUNCHER, None), &said, Packed::default());
        }
    }

    pub(super) fn act_on_quiescence(&self, outputs: Vec<QuiescenceOutput>) {
        for output in outputs {
            match output {
                QuiescenceOutput::Send { to: NodeId::LAUNCHER, message } => {
                    self.tell_launcher(ControlToLauncher::Quiescence(message));
                }
                QuiescenceOutput::Send { to, message } => {
                    self.control(to, ControlToNode::Quiescence(message));
                }
                QuiescenceOutput::Quiescent { search, held } => {
                    self.listeners.tell_driver(DriverEvent::Quiescent { search, held });
                }
            }
        }
    }
}
