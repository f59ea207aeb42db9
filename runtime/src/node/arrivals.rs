//! What a link may bring: every sender, id, count and number is checked here before anything acts on it.
//!
//! A node of the run has proven who it is, not that it is sound: it may be broken, or taken over. What is refused
//! ends the run with a sentence that names the sender. What a collection must say is checked as far as it
//! is known here; a message that arrives before its collection is checked again by the PE that runs it.
//!
//! What can be done once for many messages is: of all that arrives in one reading, what follows a message to the same
//! collection is checked against what was looked up for that one, and all of it goes to its PE under one lock. It
//! becomes envelopes on the thread that will free them.

mod told;

use super::catalogue::Catalogue;
use super::variables::INIT_OVER;
use crate::codec::{
    Announcement, ControlToLauncher, ControlToNode, MembersByPe, Order, Refusal, ScatterPart, Spread,
    VariableKind, WorkToLauncher, WorkToNode,
};
use crate::collection::Collection;
use crate::envelope::{CallbackTarget, CollectionId, ElementIndex, PartialHeader, PeOrder, ToPe};
use crate::ids::{NodeId, PeId};
use crate::object::ChareType;
use crate::proto::tree::TreeOver;
use crate::saved::{EXTENT_MAX_BYTES, RecordHeader, RecordOf, ToKeep};
use crate::scatter::PARTS_MAX;
use crate::topology::Topology;
use std::net::SocketAddr;
use std::sync::Arc;

/// The longest time for which PEs can be told to measure their speed.
const MEASURE_MAX_MS: u32 = 60_000;
/// The longest name of an entry method or phase, bytes.
const NAME_MAX_BYTES: usize = 1024;
/// The longest sentence about a failure that is shown, in characters.
const SENTENCE_MAX: usize = 2000;

pub(super) type Checked<T = ()> = Result<T, Refusal>;

pub(super) fn unknown<T>(what: impl Into<String>) -> Checked<T> {
    Err(Refusal::Unknown(what.into()))
}

pub(super) fn impossible<T>(what: impl Into<String>) -> Checked<T> {
    Err(Refusal::Impossible(what.into()))
}

/// What is known of the run on one node, to check against.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'a> {
    pub(super) me: NodeId,
    pub(super) topology: &'a Topology,
    pub(super) catalogue: &'a Catalogue,
}

impl<'a> Checks<'a> {
    /// Checks that `from` is another node of the run.
    pub(super) fn check_sender(&self, from: NodeId) -> Checked {
        if from == self.me || from.0 >= self.topology.node_count() {
            return unknown(format!("{from:?} as its sender"));
        }
        Ok(())
    }

    /// Checks work for a node with PEs.
    pub(super) fn check_work(&self, from: NodeId, header: &WorkToNode) -> Checked {
        match header {
            WorkToNode::ToPe { pe, mark, message, .. } => {
                if let Some(mark) = mark {
                    self.check_origin(from, mark.from)?;
                }
                self.check_to_pe(from, *pe, message)
            }
            WorkToNode::Spread { root, what } => self.check_spread(from, *root, what),
            WorkToNode::Multicast { collection, entry, members, .. } => {
                self.check_multicast(*collection, *entry, members)
            }
            WorkToNode::Record(sent) if from != NodeId::LAUNCHER => {
                self.check_handed_over(from, &sent.header)
            }
            WorkToNode::Record(sent) => self.check_saved(&sent.header),
            WorkToNode::Scatter { collection, entry, from: origin, parts, .. } => {
                self.check_origin(from, *origin)?;
                self.check_scatter(*collection, *entry, parts)
            }
        }
    }

    /// Checks what comes for the driver.
    pub(super) fn check_work_to_launcher(&self, from: NodeId, header: &WorkToLauncher) -> Checked {
        match header {
            WorkToLauncher::Result(_) | WorkToLauncher::Loads => Ok(()),
            WorkToLauncher::Announcement(announcement) => self.check_announcement(from, announcement),
            WorkToLauncher::Record(ToKeep { sent, .. }) if !self.is_or_was_node_of(from, sent.header.pe) => {
                impossible(format!("a record of {:?}", sent.header.pe))
            }
            WorkToLauncher::Record(ToKeep { sent, .. }) => self.check_saved_of(&sent.header.of),
        }
    }

    /// Checks what the launcher has a node take in.
    pub(crate) fn check_saved(&self, header: &RecordHeader) -> Checked {
        if header.pe != PeId::DRIVER {
            self.check_own(header.pe)?;
        }
        self.check_saved_of(&header.of)
    }

    /// Checks what a PE sends that has gone from another node to this one.
    fn check_handed_over(&self, from: NodeId, header: &RecordHeader) -> Checked {
        let is_of_pe = matches!(header.of, RecordOf::Chare(_) | RecordOf::Pe);
        if !is_of_pe || self.topology.before().node_of(header.pe) != from {
            return impossible("a record, which only the launcher sends");
        }
        self.check_saved(header)
    }

    fn check_saved_of(&self, of: &RecordOf) -> Checked {
        match of {
            RecordOf::Chare(element) => self.kind_of(element.collection).map(|_| ()),
            RecordOf::Variable { id, .. } | RecordOf::Sum(id) => self.check_id(CollectionId(*id)).map(|_| ()),
            RecordOf::Pe | RecordOf::Late { .. } | RecordOf::Collection | RecordOf::Loads => Ok(()),
        }
    }

    /// Checks a message to a section: what is for this node, and what it is to pass on.
    fn check_multicast(&self, id: CollectionId, entry: u16, members: &MembersByPe) -> Checked {
        for (pe, members) in members {
            if !self.is_pe(*pe) || *pe == PeId::DRIVER {
                return unknown(format!("{pe:?}"));
            }
            self.check_members(*pe, id, members, Some(entry))?;
        }
        Ok(())
    }

    /// Checks messages for elements of this node.
    fn check_scatter(&self, id: CollectionId, entry: u16, parts: &[ScatterPart]) -> Checked {
        if parts.len() > PARTS_MAX {
            return impossible(format!("a scatter to {} elements at once", parts.len()));
        }
        if let Some(part) = parts.iter().find(|part| !self.is_node_of(self.me, part.pe)) {
            return unknown(format!("{:?} on {:?}", part.pe, self.me));
        }
        self.check_homes(id, parts.iter().map(|part| (part.pe, part.index)), Some(entry))
    }

    fn check_to_pe(&self, from: NodeId, pe: PeId, message: &ToPe) -> Checked {
        self.check_own(pe)?;
        match message {
            ToPe::Element { collection, index, entry, from: origin, .. } => {
                self.check_origin(from, *origin)?;
                self.check_members(pe, *collection, std::slice::from_ref(index), Some(*entry))
            }
            // That the element is there already is said by the PE, in the user's terms.
            ToPe::Insert { collection, index } => {
                self.check_members(pe, *collection, std::slice::from_ref(index), None)
            }
            ToPe::Partial(header) => self.check_partial(from, pe, header),
            ToPe::Relay(callback) => self.check_callback(callback),
            ToPe::Moving(moving) => self.check_moving(pe, moving),
            ToPe::Contributors(said) => self.check_contributors(from, pe, said),
        }
    }

    /// Checks that a message that came from a node says that it is from a PE there, or from the driver.
    fn check_origin(&self, from: NodeId, origin: PeId) -> Checked {
        let is_there = self.is_pe(origin) && self.topology.node_of(origin) == from;
        if is_there { Ok(()) } else { impossible(format!("in the name of {origin:?}")) }
    }

    /// Checks that a PE is one of this node.
    fn check_own(&self, pe: PeId) -> Checked {
        if self.is_node_of(self.me, pe) { Ok(()) } else { unknown(format!("{pe:?} on {:?}", self.me)) }
    }

    /// Checks that the elements live on `pe` and have that entry method, as far as that is known here.
    fn check_members(
        &self,
        pe: PeId,
        id: CollectionId,
        members: &[ElementIndex],
        entry: Option<u16>,
    ) -> Checked {
        self.check_homes(id, members.iter().map(|&index| (pe, index)), entry)
    }

    /// Checks that each of the elements lives where it is said to, and that they have that entry method.
    fn check_homes(
        &self,
        id: CollectionId,
        mut homes: impl Iterator<Item = (PeId, ElementIndex)>,
        entry: Option<u16>,
    ) -> Checked {
        let (chare_type, collection) = self.kind_of(id)?;
        check_entry(chare_type, entry)?;
        let is_home = |pe, index: ElementIndex| match &collection {
            Some(known) => known.pe_of(index) == Some(pe),
            // A single chare's index begins with the PE that made it.
            None => id.as_singles().is_none() || self.is_pe(PeId(index.0[0])),
        };
        match homes.find(|&(pe, index)| !is_home(pe, index)) {
            Some((pe, index)) => unknown(format!(
                "element {index:?} of {} on {pe:?}",
                chare_type.map_or("?", |t| t.name.as_str())
            )),
            None => Ok(()),
        }
    }

    /// Checks the parts of a reduction: they come up the tree, or from a node with members of the section.
    fn check_partial(&self, from: NodeId, pe: PeId, header: &PartialHeader) -> Checked {
        if header.section == 0 {
            self.check_below(from, pe)?;
        }
        self.check_partial_content(header)
    }

    /// Checks that what comes to a PE, at which reductions come together, comes from its node or one below it in their tree.
    pub(super) fn check_below(&self, from: NodeId, pe: PeId) -> Checked {
        let begun = self.topology.begun();
        let (tree, here) = (TreeOver::at_first(begun.compute_nodes()), begun.node_of(pe));
        let is_below = |sender: u32| {
            let there = begun.node_of(PeId(sender));
            there == here || tree.as_ref().and_then(|tree| tree.parent(there)) == Some(here)
        };
        if self.topology.pes(from).iter().any(|pe| is_below(*pe)) {
            Ok(())
        } else {
            impossible("a part of a reduction that is not for this node")
        }
    }

    /// Checks the parts of a reduction, wherever they come from.
    pub(super) fn check_partial_content(&self, header: &PartialHeader) -> Checked {
        let (chare_type, collection) = self.array(header.collection)?;
        if let Some(known) = chare_type
            && usize::from(header.reducer) >= known.reducers.len()
        {
            return unknown(format!("reduction {} of {}", header.reducer, known.name));
        }
        let values = header.parts.len() as u64;
        let is_whole = if header.ordered { values == header.count } else { values == 1 };
        if header.count == 0 || !is_whole {
            return impossible(format!("{values} values of a reduction for {} elements", header.count));
        }
        if let Some((pe, _)) = header.then.iter().find(|(pe, _)| !self.is_pe(*pe) || *pe == PeId::DRIVER) {
            return unknown(format!("{pe:?} on the way of a reduction"));
        }
        if header.then.len() > self.topology.node_count() as usize {
            return impossible("a part of a reduction that goes in a circle");
        }
        if header.section == 0 {
            if let Some(known) = collection.filter(|c| header.count > c.len()) {
                return impossible(format!("{} of {} elements in a reduction", header.count, known.len()));
            }
        } else {
            self.check_id(CollectionId(header.section))?;
            if let CallbackTarget::Members { collection, section, .. } = header.callback
                && (collection, section) != (header.collection, header.section)
            {
                return impossible("a reduction whose result is for the members of another section");
            }
        }
        self.check_callback(&header.callback)
    }

    /// Checks a callback that came by a link, or inside a message.
    pub(crate) fn check_callback(&self, callback: &CallbackTarget) -> Checked {
        match *callback {
            CallbackTarget::Ignore | CallbackTarget::Slot(_) => Ok(()),
            CallbackTarget::Element { collection, index, entry, home } => {
                let (chare_type, known) = self.kind_of(collection)?;
                check_entry(chare_type, Some(entry))?;
                let has_place = match (home, known) {
                    (Some(home), _) => home != PeId::DRIVER && self.is_pe(home),
                    (None, Some(known)) => known.linear(index).is_some(),
                    (None, None) => collection.as_singles().is_none(),
                };
                if has_place { Ok(()) } else { unknown(format!("element {index:?} for a callback")) }
            }
            CallbackTarget::All { collection, entry } => check_entry(self.array(collection)?.0, Some(entry)),
            CallbackTarget::Members { collection, section, entry } => {
                self.check_id(CollectionId(section))?;
                check_entry(self.array(collection)?.0, Some(entry))
            }
        }
    }

    /// Checks what goes to all nodes: that it comes from the node above in the tree that begins at `root`.
    fn check_spread(&self, from: NodeId, root: NodeId, what: &Spread) -> Checked {
        let Some(tree) = TreeOver::new(self.topology.compute_nodes(), root) else {
            return unknown(format!("{root:?} as the root of a tree"));
        };
        // What the launcher spreads begins at the first node.
        let above = if root == self.me {
            self.is_first(root).then_some(NodeId::LAUNCHER)
        } else {
            tree.parent(self.me)
        };
        if above != Some(from) {
            return impossible(format!("a broadcast that begins at {root:?} and comes from {from:?}"));
        }
        match what {
            Spread::Broadcast { collection, entry, .. } => {
                check_entry(self.array(*collection)?.0, Some(*entry))
            }
            Spread::Announcement(announcement) => self.check_announcement(root, announcement),
        }
    }

    /// Checks what begins at `root` for all nodes to know.
    fn check_announcement(&self, root: NodeId, announcement: &Announcement) -> Checked {
        let begins_at_root = |origin: PeId| {
            let is_ours =
                if origin == PeId::DRIVER { self.is_first(root) } else { self.is_node_of(root, origin) };
            if is_ours { Ok(()) } else { impossible(format!("in the name of {origin:?}")) }
        };
        match announcement {
            Announcement::Collection(collection) => {
                begins_at_root(self.check_id(collection.id)?)?;
                self.check_collection(collection)
            }
            Announcement::Variable { id, kind, origin, acknowledge } => {
                let creator = self.check_id(CollectionId(*id))?;
                begins_at_root(*origin)?;
                if *kind == VariableKind::Once && creator != *origin {
                    return impossible(format!("{origin:?} sets a variable that {creator:?} made"));
                }
                match acknowledge {
                    Some(node) if *node != self.topology.node_of(*origin) => unknown(format!("{node:?}")),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Whether it is the first node with PEs, where the launcher's broadcasts begin.
    fn is_first(&self, node: NodeId) -> bool {
        self.topology.compute_nodes().first() == Some(&node)
    }

    pub(super) fn check_collection(&self, collection: &Collection) -> Checked {
        if usize::from(collection.chare_type) >= self.catalogue.program().chare_types.len() {
            return unknown(format!("chare type {}", collection.chare_type));
        }
        if self.catalogue.collection(collection.id).is_some() {
            return impossible(format!("{:?} a second time", collection.id));
        }
        collection
            .check(self.topology.begun().pe_count())
            .map_err(|error| Refusal::Impossible(error.to_string()))
    }

    /// Checks what the runtime says to a node with PEs.
    pub(super) fn check_control(&self, from: NodeId, control: &ControlToNode) -> Checked {
        match control {
            ControlToNode::Order(_) if from != NodeId::LAUNCHER => {
                impossible("an order, which only the launcher sends")
            }
            ControlToNode::Order(order) => self.check_order(order),
            ControlToNode::InitOver(_) => {
                let tree = TreeOver::at_first(self.topology.compute_nodes());
                let above = tree.map(|tree| tree.parent(self.me).unwrap_or(NodeId::LAUNCHER));
                let is_above = above == Some(from);
                if is_above { Ok(()) } else { impossible(format!("the end of initialisation from {from:?}")) }
            }
            ControlToNode::Quiescence(_) => Ok(()),
            ControlToNode::VariableSet(id) => self.check_id(CollectionId(*id)).map(|_| ()),
        }
    }

    fn check_order(&self, order: &Order) -> Checked {
        match order {
            // There is no node before its welcome.
            Order::Welcome(_) => impossible("a second welcome"),
            Order::Speeds(speeds) => {
                let are_sane = speeds.iter().all(|speed| speed.is_finite() && *speed > 0.0);
                let is_complete = speeds.len() == self.topology.pe_count() as usize;
                if are_sane && is_complete { Ok(()) } else { impossible("not a speed above 0 for each PE") }
            }
            Order::Collect(id) => self.check_id(CollectionId(*id)).map(|_| ()),
            Order::ToPe(pe, order) => {
                self.check_own(*pe)?;
                match order {
                    PeOrder::PrepareKernel { kernel }
                        if usize::from(*kernel) >= self.catalogue.program().kernels.len() =>
                    {
                        unknown(format!("kernel {kernel}"))
                    }
                    PeOrder::Measure { budget_ms } if *budget_ms > MEASURE_MAX_MS => {
                        impossible(format!("an order to measure for {budget_ms} ms"))
                    }
                    PeOrder::HandOver { to } if *to == self.me => {
                        unknown(format!("{pe:?} on its way to where it is"))
                    }
                    PeOrder::HandOver { to } => self.check_moves(&[(*pe, *to)]),
                    PeOrder::Cut | PeOrder::Close => impossible("an order that only all PEs of a node get"),
                    PeOrder::PrepareKernel { .. }
                    | PeOrder::Measure { .. }
                    | PeOrder::DropKernel
                    | PeOrder::Migrate
                    | PeOrder::Probe
                    | PeOrder::Pause
                    | PeOrder::Save(_)
                    | PeOrder::ReadSaved
                    | PeOrder::Restore { .. }
                    | PeOrder::Resume
                    | PeOrder::NameHeld => Ok(()),
                }
            }
            Order::Extent(pe, extent) => {
                self.check_own(*pe)?;
                let can_be = extent.as_ref().is_none_or(|extent| extent.can_be());
                if can_be { Ok(()) } else { impossible("room in a file that cannot be") }
            }
            Order::Arrange(moves) => self.check_moves(moves),
            Order::Admit(node, entry) => {
                let (nodes, pes) = (self.topology.node_count(), self.topology.pe_count());
                if entry.can_join(*node, nodes, pes) && entry.address.parse::<SocketAddr>().is_ok() {
                    Ok(())
                } else {
                    impossible(format!("{node:?} as one more node"))
                }
            }
            Order::Ask(_) | Order::Kept(_) | Order::Cut(_) | Order::Count(..) | Order::Close | Order::End => {
                Ok(())
            }
        }
    }

    /// Checks what a node says to the launcher.
    pub(super) fn check_control_to_launcher(&self, from: NodeId, control: &ControlToLauncher) -> Checked {
        match control {
            ControlToLauncher::Snapshot(snapshot) | ControlToLauncher::Answer(_, snapshot) => {
                self.check_snapshot(from, snapshot)
            }
            ControlToLauncher::Samples(samples) => self.check_samples(from, samples),
            ControlToLauncher::Collectives(collectives) => self.check_collectives(from, collectives),
            ControlToLauncher::LinkLost(peer, _) if peer.0 >= self.topology.node_count() => {
                unknown(format!("{peer:?}"))
            }
            ControlToLauncher::VariableSet(INIT_OVER) => Ok(()),
            ControlToLauncher::VariableSet(id) | ControlToLauncher::Collected(id) => {
                self.check_id(CollectionId(*id)).map(|_| ())
            }
            ControlToLauncher::Speed(pe, rate, cpu_rate) => {
                let is_rate = |rate: &f64| rate.is_finite() && *rate >= 0.0;
                let is_sane = is_rate(rate) && is_rate(cpu_rate) && self.is_node_of(from, *pe);
                if is_sane { Ok(()) } else { impossible(format!("a speed of {rate} of {pe:?}")) }
            }
            ControlToLauncher::Phase(phase) if phase.name.len().max(phase.detail.len()) > NAME_MAX_BYTES => {
                impossible(format!("a name of {} bytes", phase.name.len().max(phase.detail.len())))
            }
            ControlToLauncher::Paused(pe, paused) | ControlToLauncher::Closed(pe, paused) => {
                self.check_done(from, *pe, paused.as_ref().err())
            }
            ControlToLauncher::Wrote(pe, _, wrote) => self.check_done(from, *pe, wrote.as_ref().err()),
            ControlToLauncher::WantsExtent { pe, bytes, .. } => {
                let is_sane = self.is_node_of(from, *pe) && *bytes <= EXTENT_MAX_BYTES;
                if is_sane { Ok(()) } else { impossible(format!("{bytes} bytes of a file for {pe:?}")) }
            }
            ControlToLauncher::HasCut(pe, cut) => self.check_done(from, *pe, cut.as_ref().err()),
            ControlToLauncher::Reading(pe, _) if !self.is_node_of(from, *pe) => {
                impossible(format!("said in the name of {pe:?}"))
            }
            ControlToLauncher::Joining(_)
            | ControlToLauncher::Reading(..)
            | ControlToLauncher::Counted(..)
            | ControlToLauncher::GoodMoment
            | ControlToLauncher::Quiescence(_)
            | ControlToLauncher::Fault(_)
            | ControlToLauncher::LinkLost(..)
            | ControlToLauncher::Phase(_) => Ok(()),
        }
    }

    /// Checks that a node says of one of its PEs that it has done something, or why not.
    fn check_done(&self, from: NodeId, pe: PeId, why_not: Option<&String>) -> Checked {
        let is_short = why_not.is_none_or(|why| why.len() <= NAME_MAX_BYTES);
        let is_sane = is_short && self.is_or_was_node_of(from, pe);
        if is_sane { Ok(()) } else { impossible(format!("said in the name of {pe:?}")) }
    }

    /// Checks the identity of a collection, section or variable; who made it.
    pub(crate) fn check_id(&self, id: CollectionId) -> Checked<PeId> {
        match id.creator().filter(|creator| self.is_pe(*creator)) {
            Some(creator) => Ok(creator),
            None => unknown(format!("{id:?}")),
        }
    }

    /// The chare type of a collection and its description, as far as they are known here.
    pub(super) fn kind_of(
        &self,
        id: CollectionId,
    ) -> Checked<(Option<&'a ChareType>, Option<Arc<Collection>>)> {
        let collection = self.catalogue.collection(id);
        let Some(chare_type) = id.as_singles().or(collection.as_ref().map(|c| c.chare_type)) else {
            self.check_id(id)?;
            return Ok((None, None));
        };
        match self.catalogue.program().chare_types.get(usize::from(chare_type)) {
            Some(known) => Ok((Some(known), collection)),
            None => unknown(format!("chare type {chare_type}")),
        }
    }

    /// The same for a collection that is not the single chares of a type.
    pub(super) fn array(
        &self,
        id: CollectionId,
    ) -> Checked<(Option<&'a ChareType>, Option<Arc<Collection>>)> {
        match id.as_singles() {
            Some(_) => impossible("for single chares, where only an array or group can be"),
            None => self.kind_of(id),
        }
    }

    pub(super) fn is_pe(&self, pe: PeId) -> bool {
        pe == PeId::DRIVER || pe.0 < self.topology.pe_count()
    }

    /// Whether a PE is there, or was until some went to other nodes.
    fn is_or_was_node_of(&self, node: NodeId, pe: PeId) -> bool {
        self.is_node_of(node, pe) || self.topology.before().node_of(pe) == node
    }

    /// Checks that it is known who goes where.
    fn check_moves(&self, moves: &[(PeId, NodeId)]) -> Checked {
        let is_known = |(pe, node): &&(PeId, NodeId)| {
            pe.0 < self.topology.pe_count() && self.topology.compute_nodes().contains(node)
        };
        match moves.iter().find(|step| !is_known(step)) {
            Some((pe, node)) => unknown(format!("{pe:?} on its way to {node:?}")),
            None => Ok(()),
        }
    }

    fn is_node_of(&self, node: NodeId, pe: PeId) -> bool {
        self.topology.node_of(pe) == node && pe != PeId::DRIVER
    }
}

pub(super) fn check_entry(chare_type: Option<&ChareType>, entry: Option<u16>) -> Checked {
    match (chare_type, entry) {
        (Some(known), Some(entry)) if usize::from(entry) >= known.entries.len() => {
            unknown(format!("entry method {entry} of {}", known.name))
        }
        _ => Ok(()),
    }
}

/// Makes a sentence from another node fit to be shown: cut to a length, and without what would move the cursor of a
/// terminal.
pub(super) fn plain(sentence: &str) -> String {
    sentence.chars().take(SENTENCE_MAX).map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}
