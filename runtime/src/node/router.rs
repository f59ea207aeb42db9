//! What a node does with what links bring, and how things reach all nodes.

use super::arrivals::plain;
use super::{DriverEvent, LauncherEvent, Node, class_of};
use crate::codec::{Control, Header, Refusal, Spread, decode};
use crate::collection::Collection;
use crate::envelope::{CollectionId, Envelope, Packed, Payload, Target};
use crate::failure::{Failure, Kind};
use crate::frame::{Class, Frame, Receiver};
use crate::ids::{NodeId, PeId};
use crate::monitor::wire::Phase;
use crate::pe::inbox::{Inbox, Incoming};
use crate::proto::quiescence::QuiescenceOutput;
use crate::proto::tree::TreeOver;
use crate::scatter::{self, ScatterPart};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Receiver for Node {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        self.receive_all(from, class, &mut vec![frame]);
    }

    fn receive_all(&self, from: NodeId, class: Class, frames: &mut Vec<Frame>) {
        if class != Class::Control {
            let len_bytes = frames.iter().map(|frame| frame.len_bytes() as u64).sum();
            self.traffic.received_messages.fetch_add(frames.len() as u64, Ordering::Relaxed);
            self.traffic.received_bytes.fetch_add(len_bytes, Ordering::Relaxed);
        }
        let mut run = Run::new();
        for frame in frames.drain(..) {
            let len_bytes = frame.len_bytes() as u64;
            if let Err(refusal) = self.accept(from, class, frame, len_bytes, &mut run) {
                self.refuse(from, &refusal);
            }
        }
        self.pass_run(&mut run);
    }

    fn backlog_bytes(&self) -> u64 {
        self.backlog.load(Ordering::Relaxed)
    }

    fn link_lost(&self, peer: NodeId, reason: String) {
        if self.has_ended() {
            return;
        }
        self.control(NodeId::LAUNCHER, Control::LinkLost(peer, reason));
    }
}

/// Messages that came one behind the other for one PE, and go into its inbox together.
struct Run {
    pe: PeId,
    messages: Vec<Incoming>,
    len_bytes: u64,
    /// The collection of the last message, and how many entry methods its elements have, once that message was found
    /// right.
    known: Option<(Arc<Collection>, usize)>,
}

impl Run {
    fn new() -> Self {
        Self { pe: PeId::DRIVER, messages: Vec::new(), len_bytes: 0, known: None }
    }

    /// Whether a message needs no check, because all that would be checked is as in the one before.
    fn vouches_for(&self, header: &Header) -> bool {
        let Header::ToPe { pe, target: Target::Element { collection, index, entry }, .. } = header else {
            return false;
        };
        self.known.as_ref().is_some_and(|(known, entries)| {
            *pe == self.pe
                && known.id == *collection
                && usize::from(*entry) < *entries
                && known.is_on(*pe, *index)
        })
    }
}

impl Node {
    /// The inbox of a PE of this node.
    pub(super) fn inbox_of(&self, pe: PeId) -> &Inbox {
        self.inbox((pe.0 - self.first) as usize)
    }

    /// Puts a run into the inbox of its PE.
    fn pass_run(&self, run: &mut Run) {
        if run.messages.is_empty() {
            return;
        }
        self.backlog.fetch_add(std::mem::take(&mut run.len_bytes), Ordering::Relaxed);
        let inbox = self.inbox_of(run.pe);
        match run.messages.pop() {
            Some(only) if run.messages.is_empty() => inbox.push(only.into_envelope()),
            last => {
                run.messages.extend(last);
                inbox.push_run(std::mem::take(&mut run.messages));
            }
        }
    }

    fn accept(
        &self,
        from: NodeId,
        class: Class,
        frame: Frame,
        len_bytes: u64,
        run: &mut Run,
    ) -> Result<(), Refusal> {
        let (header, payload) = decode(frame)?;
        if class == Class::Control || !run.vouches_for(&header) {
            self.check(from, class, &header)?;
            run.known = None;
        }
        match header {
            Header::ToPe { pe, priority, target } if pe != PeId::DRIVER => {
                if pe != run.pe {
                    self.pass_run(run);
                    run.pe = pe;
                }
                if run.known.is_none()
                    && let Target::Element { collection, .. } = &target
                    && let Some(known) = self.collection(*collection)
                {
                    let entries = self.program.chare_types[usize::from(known.chare_type)].entries.len();
                    run.known = Some((known, entries));
                }
                run.len_bytes += len_bytes;
                run.messages.push(Incoming { target, priority, packed: payload, backlog_bytes: len_bytes });
                return Ok(());
            }
            // What comes later must not overtake it.
            _ => self.pass_run(run),
        }
        match header {
            Header::ToPe { pe, priority, target } => {
                self.push_arrived(pe, Envelope::new(target, priority, Payload::packed(payload)), len_bytes);
            }
            Header::Spread { root, what } => {
                self.pass_on(root, &what, &payload);
                self.take_spread(what, payload);
            }
            Header::Multicast { collection, entry, priority, members } => {
                self.multicast(collection, entry, priority, members, &payload);
            }
            Header::Scatter { collection, entry, parts } => {
                self.take_scatter((collection, entry), scatter::open(parts, &payload)?, run);
            }
            Header::Control(control) => self.handle_control(from, control, payload),
        }
        Ok(())
    }

    /// Gives each PE its messages, which lie together.
    fn take_scatter(
        &self,
        (collection, entry): (CollectionId, u16),
        messages: Vec<(ScatterPart, Bytes)>,
        run: &mut Run,
    ) {
        for (ScatterPart { pe, index, .. }, body) in messages {
            if pe != run.pe {
                self.pass_run(run);
                run.pe = pe;
            }
            // A message without a body takes memory too until it is dealt with.
            let backlog_bytes = (size_of::<ScatterPart>() + body.len()) as u64;
            let target = Target::Element { collection, index, entry };
            let packed = Packed { body, attachments: Vec::new() };
            run.len_bytes += backlog_bytes;
            run.messages.push(Incoming { target, priority: 0, packed, backlog_bytes });
        }
        self.pass_run(run);
    }

    /// Ends the run because of what `from` sent.
    fn refuse(&self, from: NodeId, why: &Refusal) {
        self.fail(format!("{from:?} sent {:?} a message that it refuses: {why}", self.id));
    }

    pub(super) fn push_arrived(&self, pe: PeId, mut envelope: Envelope, len_bytes: u64) {
        if pe != PeId::DRIVER {
            envelope.backlog_bytes = len_bytes;
            self.backlog.fetch_add(len_bytes, Ordering::Relaxed);
        }
        self.push(pe, envelope);
    }

    /// Makes something reach every node that has PEs, this one included if it has. Bytes that left from here
    /// for that.
    pub(crate) fn spread(&self, what: Spread, payload: Packed) -> u64 {
        let has_pes = !self.inboxes.is_empty();
        let mut bytes = 0;
        if has_pes {
            bytes += self.pass_on(self.id, &what, &payload);
            if matches!(what, Spread::Collection(_) | Spread::Variable { .. }) {
                // The driver may be handed a proxy of it, so the launcher has to know it too.
                let header = Header::Spread { root: self.id, what: what.clone() };
                let class = spread_class(&what, &payload);
                bytes += self.send_frame(NodeId::LAUNCHER, class, &header, payload.clone());
            }
        } else if let Some(root) = self.topology.compute_nodes().first().copied() {
            // The launcher is not part of the tree: whatever it spreads begins at the first node.
            let class = spread_class(&what, &payload);
            let header = Header::Spread { root, what: what.clone() };
            bytes += self.send_frame(root, class, &header, payload.clone());
        }
        self.take_spread(what, payload);
        bytes
    }

    fn pass_on(&self, root: NodeId, what: &Spread, payload: &Packed) -> u64 {
        let Some(tree) = TreeOver::new(self.topology.compute_nodes(), root) else { return 0 };
        let mut bytes = 0;
        for child in tree.children(self.id) {
            let header = Header::Spread { root, what: what.clone() };
            let class = spread_class(what, payload);
            bytes += self.send_frame(child, class, &header, payload.clone());
        }
        bytes
    }

    fn take_spread(&self, what: Spread, payload: Packed) {
        match what {
            Spread::Envelope { priority, target } => self.push_to_all(&target, priority, &payload),
            Spread::Collection(collection) => {
                let id = collection.id;
                self.collections.insert(id, Arc::new(collection));
                self.push_to_all(&Target::Create(id), 0, &payload);
            }
            Spread::Variable { id, kind, origin, acknowledge } => {
                self.variables.arrive(id, kind, origin, payload);
                if let Some(node) = acknowledge {
                    self.control(node, Control::VariableSet(id));
                }
            }
            Spread::InitOver(is_over) => {
                self.is_init.store(!is_over, Ordering::Relaxed);
                self.control(NodeId::LAUNCHER, Control::VariableSet(INIT_OVER));
            }
        }
    }

    fn push_to_all(&self, target: &Target, priority: i32, payload: &Packed) {
        let payload = Arc::new(payload.clone());
        for pe in self.topology.pes(self.id) {
            let envelope = Envelope::new(target.clone(), priority, Payload::Packed(Arc::clone(&payload)));
            self.push_arrived(PeId(pe), envelope, payload.len_bytes() as u64);
        }
    }

    pub(crate) fn handle_control(&self, from: NodeId, control: Control, payload: Packed) {
        match control {
            Control::Membership(message) => self.tell_launcher(LauncherEvent::Membership(from, message)),
            Control::Quiescence(message) => {
                let (now, counts) = (self.now(), || self.counts());
                let result = self.quiescence().handle(from, message, now, counts);
                match result {
                    Ok(()) => {
                        if self.pump_quiescence().is_some() {
                            // This thread does not wait for moments; the driver does, and must not oversleep.
                            self.tell_driver(DriverEvent::QuiescenceDue);
                        }
                    }
                    Err(error) => self.refuse(from, &error.into()),
                }
            }
            Control::Snapshot(snapshot) => self.tell_launcher(LauncherEvent::Snapshot(snapshot)),
            Control::Ask(mark) => self.control(from, Control::Answer(mark, Box::new(self.snapshot()))),
            Control::Answer(mark, snapshot) => self.tell_driver(DriverEvent::Answer(mark, snapshot)),
            Control::Fault(sentence) => {
                // A supervising launcher adds the node's name before it tells the driver.
                let sentence = plain(&sentence);
                let is_supervised = self.ears.get().is_some_and(|ears| ears.launcher.is_some());
                if is_supervised {
                    self.tell_launcher(LauncherEvent::Fault(from, sentence));
                } else {
                    self.tell_failed(Failure::new(Kind::Failed, sentence));
                }
            }
            Control::LinkLost(peer, reason) => {
                self.tell_launcher(LauncherEvent::LinkLost { by: from, peer, reason: plain(&reason) });
            }
            Control::VariableSet(id) => {
                self.acknowledged(from, id);
                self.tell_driver(DriverEvent::VariableSet(from, id));
            }
            Control::Speed(pe, rate) => self.tell_driver(DriverEvent::Speed(pe, rate)),
            Control::Speeds(speeds) => self.store_speeds(speeds),
            Control::Collect(id) => {
                let sum = self.variables.collect(id);
                let payload = sum.unwrap_or_default();
                self.control_with(from, Control::Collected(id), payload);
            }
            Control::Collected(id) => {
                let sum = (!payload.body.is_empty() || !payload.attachments.is_empty()).then_some(payload);
                self.tell_driver(DriverEvent::Collected(from, id, sum));
            }
            Control::Phase(phase) => {
                self.tell_launcher(LauncherEvent::Phase(Phase {
                    name: plain(&phase.name),
                    detail: plain(&phase.detail),
                    ..phase
                }));
            }
            Control::End => {
                if let Some(action) = self.on_end.get() {
                    action();
                }
            }
        }
    }

    pub(super) fn act_on_quiescence(&self, outputs: Vec<QuiescenceOutput>) {
        for output in outputs {
            match output {
                QuiescenceOutput::Send { to, message } => self.control(to, Control::Quiescence(message)),
                QuiescenceOutput::Quiescent { search, held } => {
                    self.tell_driver(DriverEvent::Quiescent { search, held });
                }
            }
        }
    }
}

/// Stands for the end of initialisation among the variables that nodes acknowledge; no variable has this number.
pub const INIT_OVER: u64 = 0;

fn spread_class(what: &Spread, payload: &Packed) -> Class {
    match what {
        Spread::InitOver(_) => Class::Control,
        _ => class_of(payload.len_bytes()),
    }
}
