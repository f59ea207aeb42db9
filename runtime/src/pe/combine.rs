//! Reductions on their way: element → PE → a combining PE of the node → up the tree of nodes → root.
//!
//! A place passes a partial on when it holds as many elements as take part below it. Counts follow the places
//! where elements were *created*, so that a moved element can go on contributing there, and `contributors` says how they
//! change where elements are destroyed.
//!
//! A contribution that only has to be combined joins the reduction under way as it is, without memory or a
//! description of its own.

use super::Pe;
use super::contributors::Headers;
use super::section::SectionPlan;
use crate::collection::Collection;
use crate::envelope::{
    CallbackTarget, CollectionId, ElementIndex, Packed, PartialHeader, Payload, ToPe, Value,
};
use crate::ids::{NodeId, PeId};
use crate::mark::Mark;
use crate::monitor::collectives::Stage;
use crate::moving::Moving;
use crate::object::{ProgramTable, PupError, Reducer};
use crate::proto::ProtocolError;
use crate::proto::reduction::{Partial, PartialValue, Reductions};
use crate::proto::tree::TreeOver;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::mem::take;
use std::sync::Arc;

/// Ordered values travel in messages of so many values, attachments and bytes at most: small enough for the limits
/// of a frame, and for a receiver that takes them while the next are under way.
const MESSAGE_VALUES: usize = 1 << 20;
const MESSAGE_ATTACHMENTS: usize = 1024;
const MESSAGE_BYTES: usize = 32 << 20;

/// What one element adds to a reduction.
pub struct Contribution {
    /// Its collection.
    pub collection: CollectionId,
    /// The PE where it was made.
    pub home: PeId,
    /// Its section, if the reduction is over one, as seen from its home.
    pub section: Option<Arc<SectionPlan>>,
    /// Which reduction of the collection or section this is for the element, from 0.
    pub sequence: u32,
    /// How values combine: position in the chare type's list.
    pub reducer: u16,
    /// Who gets the result; the same from all elements.
    pub callback: CallbackTarget,
    /// Combine in index order, at the root.
    pub is_ordered: bool,
    /// Row-major position of the element, or its position in the section.
    pub linear: u64,
    /// What it adds.
    pub value: Value,
}

/// The tables of a PE: for its own elements, and for its node and those below it.
#[derive(Default)]
pub(super) struct Places {
    pub(super) own: Place,
    pub(super) node: Place,
    below: FxHashMap<CollectionId, u64>,
    /// Reductions that are complete here before an earlier one: an element has moved between the two.
    early: BTreeMap<(u64, u32), (PartialHeader, Partial<Value>)>,
}

/// One of both tables.
#[derive(Default)]
pub(super) struct Place {
    pub(super) partials: Reductions<Value>,
    /// What is said of reductions of all elements of a collection that have begun here.
    pub(super) headers: Headers,
}

/// What is saved of them: each value with its chare type and reduction, which say how to unpack it.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedPlaces {
    own: Reductions<SavedValue>,
    node: Reductions<SavedValue>,
    early: Vec<((u64, u32), SavedPartial)>,
}

type SavedValue = (u16, u16, Payload);
type SavedPartial = (PartialHeader, Partial<SavedValue>);

impl Places {
    /// The collections and sections of which a reduction has begun here and not left.
    pub(super) fn under_way(&self) -> FxHashSet<u64> {
        let early = self.early.keys().map(|(key, _)| *key);
        self.own.partials.open().chain(self.node.partials.open()).chain(early).collect()
    }

    pub(super) fn save(&self, program: &ProgramTable) -> Result<SavedPlaces, PupError> {
        let mut save = |value: &Value| save_value(program, value);
        let early = self.early.iter().map(|(key, (header, partial))| {
            Ok((*key, (header.clone(), partial.try_map(&mut |value| save_value(program, value))?)))
        });
        let early = early.collect::<Result<_, PupError>>()?;
        let (own, node) = (self.own.partials.try_map(&mut save)?, self.node.partials.try_map(&mut save)?);
        Ok(SavedPlaces { own, node, early })
    }

    pub(super) fn open(saved: &SavedPlaces, program: &ProgramTable) -> Result<Self, PupError> {
        let mut open = |value: &SavedValue| open_value(program, value);
        let early = saved.early.iter().map(|(key, (header, partial))| {
            let partial = partial.try_map(&mut |value| open_value(program, value))?;
            let terms = terms(header.reducer, &header.callback);
            Ok((*key, (header.clone(), Partial { terms, ..partial })))
        });
        let early = early.collect::<Result<_, PupError>>()?;
        let mut place = |saved: &Reductions<SavedValue>| {
            let mut partials = saved.try_map(&mut open)?;
            partials.forget_terms();
            Ok::<_, PupError>(Place { partials, headers: Headers::default() })
        };
        let (own, node) = (place(&saved.own)?, place(&saved.node)?);
        Ok(Self { own, node, below: FxHashMap::default(), early })
    }
}

/// A value of whichever reduction of the program it is of.
fn save_value(program: &ProgramTable, value: &Value) -> Result<SavedValue, PupError> {
    for (chare_type, known) in (0..).zip(&program.chare_types) {
        let own = (0..).zip(&known.reducers).find(|(_, (_, reducer))| (reducer.is_own)(value));
        if let Some((number, (_, reducer))) = own {
            return Ok((chare_type, number, Payload::packed((reducer.pack)(value))));
        }
    }
    Err(wrong("it is of no reduction of the program".into()))
}

fn open_value(program: &ProgramTable, saved: &SavedValue) -> Result<Value, PupError> {
    let (chare_type, number, payload) = saved;
    let known = program.chare_types.get(usize::from(*chare_type));
    let reducer = known.and_then(|known| known.reducers.get(usize::from(*number)));
    let (Some((_, reducer)), Payload::Packed(packed)) = (reducer, payload) else {
        return Err(wrong(format!("there is no reduction {number} of chare type {chare_type}")));
    };
    (reducer.unpack)(packed)
}

impl Pe {
    /// Adds the value of an element to reduction `sequence` of its whole collection by `add`, if others have contributed
    /// here and others will: then nothing else is to be done. False, with nothing done, where
    /// [`contribute`](Self::contribute) has to be called.
    #[inline]
    pub fn join_reduction(
        &mut self,
        collection: CollectionId,
        sequence: u32,
        (reducer, callback): (u16, &CallbackTarget),
        add: impl FnOnce(&mut Value),
    ) -> bool {
        self.reductions.own.partials.join(collection.0, sequence, terms(reducer, callback), add)
    }

    /// Adds an element's value to a reduction. What follows from it is not said by the element.
    pub fn contribute(&mut self, contribution: Contribution) {
        let mover = self.take_mover();
        self.contribute_at_home(contribution);
        self.lend_mover(mover);
    }

    /// Adds it where the element is at home, wherever it is now: so each place knows how many values it waits for.
    fn contribute_at_home(&mut self, contribution: Contribution) {
        let Contribution {
            collection,
            home,
            section,
            sequence,
            reducer,
            callback,
            is_ordered,
            linear,
            value,
        } = contribution;
        let Some(known) = self.collection(collection) else {
            return self.fail(format!("an element of an unknown collection {collection:?} contributed"));
        };
        let expected = section.as_ref().map_or(0, |plan| plan.here);
        let members = section.as_ref().map(|plan| Arc::clone(&plan.members));
        let header = PartialHeader {
            collection,
            section: section.as_ref().map_or(0, |plan| plan.id),
            sequence,
            reducer,
            count: 1,
            expected,
            then: section.map_or_else(Vec::new, |plan| plan.path.clone()),
            callback,
            parts: Vec::new(),
            ordered: is_ordered,
            mark: Mark::NONE,
        };
        let Some(table) = self.reducer(&known, reducer) else { return };
        let value = if is_ordered {
            PartialValue::Ordered(vec![(linear, value)])
        } else {
            PartialValue::Combined(value)
        };
        let partial = Partial { count: 1, terms: terms(header.reducer, &header.callback), value };
        if home == self.id {
            return self.add_own(&known, header, partial, table);
        }
        let members = members.filter(|_| matches!(header.callback, CallbackTarget::Members { .. }));
        let members = members.map_or_else(Vec::new, Arc::unwrap_or_clone);
        self.account().created(1);
        for (header, payload) in self.seal(home, header, partial, table) {
            self.say(home, Moving::Contribution(header, members.clone()), payload);
        }
    }

    /// Takes what an element adds that is at home here and lives elsewhere.
    ///
    /// # Errors
    /// If the payload is not what the header says.
    pub(super) fn take_contribution(
        &mut self,
        header: PartialHeader,
        members: Vec<ElementIndex>,
        payload: Payload,
    ) -> Result<(), PupError> {
        let known = self.collection(header.collection);
        let known = known.ok_or_else(|| wrong(format!("{:?} is not known", header.collection)))?;
        if header.section != 0 && !members.is_empty() {
            // If the result is for the members, whoever has it has to know them.
            let _ = self.section_plan(header.section, header.collection, &Arc::new(members), self.id);
        }
        if let Some((partial, table)) = self.open_partial(&known, &header, payload)? {
            self.add_own(&known, header, partial, table);
        }
        Ok(())
    }

    /// Adds a value of an element that is at home here, and passes on what is complete.
    fn add_own(
        &mut self,
        known: &Collection,
        header: PartialHeader,
        partial: Partial<Value>,
        table: Reducer,
    ) {
        let (key, sequence) = (key(&header), header.sequence);
        let expected = match header.section {
            0 => known.count_on(self.id),
            _ => header.expected,
        };
        self.gathers(&header, true);
        let own = &mut self.reductions.own;
        let combine = &mut |a: &mut Value, b| (table.combine)(a, b);
        match own.partials.contribute(key, sequence, expected, partial, combine) {
            Ok(None) => own.headers.note(&header),
            Ok(Some(partial)) => {
                own.headers.forget(&header);
                self.own_are_in(known, expected, (header, partial));
            }
            Err(error) => self.reduction_failed(known, &error),
        }
    }

    /// Passes on what all elements have added that take part here, of so many to begin with: each reduction behind those
    /// before it.
    pub(super) fn own_are_in(
        &mut self,
        known: &Collection,
        base: u64,
        (header, partial): (PartialHeader, Partial<Value>),
    ) {
        let key = key(&header);
        self.reductions.early.insert((key, header.sequence), (header, partial));
        loop {
            let Places { own, early, .. } = &mut self.reductions;
            let next = early.range((key, 0)..=(key, u32::MAX)).next().map(|(&(_, next), _)| next);
            let Some(next) = next.filter(|next| own.partials.is_next(key, base, *next)) else { return };
            let Some((header, partial)) = early.remove(&(key, next)) else { return };
            let Some(table) = self.reducer(known, header.reducer) else { return };
            self.pass_own(header, partial, table);
        }
    }

    /// Passes on what all elements have added that are at home here.
    fn pass_own(&mut self, header: PartialHeader, partial: Partial<Value>, table: Reducer) {
        self.has_gathered(&header, Stage::Own);
        if header.section != 0 {
            return self.pass_along(header, partial, table);
        }
        let to = self.combiner_here(key(&header));
        self.pass_partial(to, header, partial, table);
    }

    /// The PE on which reductions of its own node come together.
    pub(super) fn combiner_here(&self, key: u64) -> PeId {
        let begun = self.node.topology().begun();
        begun.combiner(begun.node_of(self.id), key).unwrap_or(self.id)
    }

    pub(super) fn reduction_failed(&self, known: &Collection, error: &ProtocolError) {
        let name = self
            .node
            .program()
            .chare_types
            .get(usize::from(known.chare_type))
            .map_or("?", |t| t.name.as_str());
        self.fail(format!("a reduction over elements of {name} went wrong on {:?}: {error}", self.id));
    }

    /// Takes a partial that another PE or node sent.
    ///
    /// # Errors
    /// If the payload is not what the header says.
    pub(crate) fn take_partial(&mut self, header: PartialHeader, payload: Payload) -> Result<(), PupError> {
        let known = self.collection(header.collection);
        let known = known.ok_or_else(|| wrong(format!("{:?} is not known", header.collection)))?;
        if let Some((partial, table)) = self.open_partial(&known, &header, payload)? {
            self.merge_partial(header, partial, table);
        }
        Ok(())
    }

    /// The values that came with a header; `None` if the run is ending because of it.
    fn open_partial(
        &self,
        known: &Collection,
        header: &PartialHeader,
        payload: Payload,
    ) -> Result<Option<(Partial<Value>, Reducer)>, PupError> {
        let Some(table) = self.reducer(known, header.reducer) else { return Ok(None) };
        let of_section = header.then.last().map_or(header.expected, |(_, total)| *total);
        let size = if header.section == 0 { known.len() } else { of_section };
        if let Some((linear, ..)) = header.parts.iter().find(|(linear, ..)| *linear >= size) {
            return Err(wrong(format!("element {linear} of {size} is in it")));
        }
        let values = match payload {
            Payload::Value(values) => *values
                .downcast::<Vec<(u64, Value)>>()
                .map_err(|_| wrong("it was moved as something else".into()))?,
            Payload::Packed(packed) => unpack_parts(header, &packed, table)?,
        };
        let value = if header.ordered {
            PartialValue::Ordered(values)
        } else {
            let mut values = values;
            let only = values.pop().ok_or_else(|| wrong("it holds no value".into()))?;
            PartialValue::Combined(only.1)
        };
        let partial = Partial { count: header.count, terms: terms(header.reducer, &header.callback), value };
        Ok(Some((partial, table)))
    }

    /// Merges at this PE as the combiner of its node.
    fn merge_partial(&mut self, header: PartialHeader, partial: Partial<Value>, table: Reducer) {
        let is_section = header.section != 0;
        let expected = if is_section { header.expected } else { self.elements_below(header.collection) };
        self.gathers(&header, false);
        let place = &mut self.reductions.node;
        let combine = &mut |a: &mut Value, b| (table.combine)(a, b);
        match place.partials.contribute(key(&header), header.sequence, expected, partial, combine) {
            Ok(None) => place.headers.note(&header),
            Ok(Some(partial)) if is_section => self.pass_along(header, partial, table),
            Ok(Some(partial)) => {
                place.headers.forget(&header);
                self.all_below_are_in(expected, (header, partial), table);
            }
            Err(error) => {
                if let Some(known) = self.collection(header.collection) {
                    self.reduction_failed(&known, &error);
                }
            }
        }
    }

    /// Passes on what all elements of this node and those below it have added, of so many to begin with.
    pub(super) fn all_below_are_in(
        &mut self,
        base: u64,
        (header, partial): (PartialHeader, Partial<Value>),
        table: Reducer,
    ) {
        // Reductions in which nobody takes part here count as finished, so that those after them take no room.
        let _ = self.reductions.node.partials.is_next(key(&header), base, header.sequence);
        match self.combiner_above(key(&header)) {
            Some(Ok(to)) => {
                self.has_gathered(&header, Stage::Others);
                self.pass_partial(to, header, partial, table);
            }
            Some(Err(parent)) => self.fail(format!("{parent:?} has no PE to combine on")),
            None => self.finish(&header, partial, table),
        }
    }

    /// The PE on which reductions of the node above come together, or that node if it has none; `None` at the root.
    pub(super) fn combiner_above(&self, key: u64) -> Option<Result<PeId, NodeId>> {
        let parent = self.parent()?;
        Some(self.node.topology().begun().combiner(parent, key).ok_or(parent))
    }

    /// Passes a partial of a section on to the next place of its path.
    fn pass_along(&mut self, mut header: PartialHeader, partial: Partial<Value>, table: Reducer) {
        if header.then.is_empty() {
            return self.finish(&header, partial, table);
        }
        self.has_gathered(&header, Stage::Others);
        let (to, expected) = header.then.remove(0);
        header.expected = expected;
        self.pass_partial(to, header, partial, table);
    }

    fn pass_partial(&mut self, to: PeId, header: PartialHeader, partial: Partial<Value>, table: Reducer) {
        if to == self.id {
            return self.merge_partial(header, partial, table);
        }
        for (header, payload) in self.seal(to, header, partial, table) {
            self.send_to(to, ToPe::Partial(Box::new(header)), i32::MIN, |_| payload);
        }
    }

    /// What came from a PE of this process, as messages that can leave it.
    pub(super) fn packed_partial(
        &self,
        header: &PartialHeader,
        payload: Payload,
    ) -> Result<Vec<(PartialHeader, Payload)>, PupError> {
        let Payload::Value(values) = payload else { return Ok(vec![(header.clone(), payload)]) };
        let values = values.downcast::<Vec<(u64, Value)>>();
        let values = values.map_err(|_| wrong("it was moved as something else".into()))?;
        let known = self.node.collection(header.collection);
        let known = known.ok_or_else(|| wrong(format!("{:?} is not known", header.collection)))?;
        let Some(table) = self.reducer(&known, header.reducer) else { return Ok(Vec::new()) };
        Ok(messages(header, header.count, &values, table))
    }

    /// A partial as messages for another PE.
    fn seal(
        &self,
        to: PeId,
        mut header: PartialHeader,
        partial: Partial<Value>,
        table: Reducer,
    ) -> Vec<(PartialHeader, Payload)> {
        let values = match partial.value {
            PartialValue::Combined(value) => vec![(0, value)],
            PartialValue::Ordered(values) => values,
        };
        if self.moves_to(to) {
            header.count = partial.count;
            header.parts.clear();
            return vec![(header, Payload::Value(Box::new(values)))];
        }
        messages(&header, partial.count, &values, table)
    }

    fn finish(&mut self, header: &PartialHeader, partial: Partial<Value>, table: Reducer) {
        self.has_gathered(header, Stage::Result);
        let result = match partial.value {
            PartialValue::Combined(value) => Some(value),
            PartialValue::Ordered(values) => values.into_iter().map(|(_, value)| value).reduce(|mut a, b| {
                (table.combine)(&mut a, b);
                a
            }),
        };
        let Some(result) = result else { return };
        if let CallbackTarget::Members { section, entry, .. } = header.callback
            && section == header.section
        {
            return self.tell_members(header, entry, &(table.pack)(&result));
        }
        self.reply(header.callback, |may_move| {
            if may_move { Payload::Value(result) } else { Payload::packed((table.pack)(&result)) }
        });
    }

    /// Sends the result of a reduction over a section to all of its members. Some live here, and have contributed.
    fn tell_members(&mut self, header: &PartialHeader, entry: u16, result: &Packed) {
        let sent = self
            .plans
            .of_reduction((header.section, self.id))
            .and_then(|plan| self.multicast(header.collection, &plan.members, entry, 0, result).ok());
        if sent.is_none() {
            self.fail(format!("the members of section {:x} are not known on {:?}", header.section, self.id));
        }
    }

    pub(super) fn reducer(&self, collection: &Collection, reducer: u16) -> Option<Reducer> {
        let chare_type = &self.node.program().chare_types[usize::from(collection.chare_type)];
        let found = chare_type.reducers.get(usize::from(reducer)).map(|(_, reducer)| *reducer);
        if found.is_none() {
            self.fail(format!("{} has no reduction number {reducer}", chare_type.name));
        }
        found
    }

    /// Elements that were created on this node and on those below it in the tree.
    pub(super) fn elements_below(&mut self, id: CollectionId) -> u64 {
        if let Some(&count) = self.reductions.below.get(&id) {
            return count;
        }
        let Some(known) = self.collection(id) else { return 0 };
        let topology = self.node.topology().begun();
        let Some(tree) = self.tree() else { return 0 };
        let below = tree.subtree(topology.node_of(self.id)).flat_map(|node| topology.pes(node));
        let total = below.map(|pe| known.count_on(PeId(*pe))).sum();
        self.reductions.below.insert(id, total);
        total
    }

    /// The node above this PE's in the tree that reductions climb.
    fn parent(&self) -> Option<NodeId> {
        self.tree()?.parent(self.node.topology().begun().node_of(self.id))
    }

    /// The tree that reductions over all elements climb: it begins at the first node.
    fn tree(&self) -> Option<TreeOver<'_>> {
        TreeOver::at_first(self.node.topology().begun().compute_nodes())
    }
}

fn wrong(reason: String) -> PupError {
    PupError::new("a contribution", reason)
}

/// The number of the section, or of the collection where all its elements take part.
pub(super) fn key(header: &PartialHeader) -> u64 {
    if header.section == 0 { header.collection.0 } else { header.section }
}

/// A number that is equal for contributions that agree on everything that they must agree on.
#[inline]
fn terms(reducer: u16, callback: &CallbackTarget) -> u64 {
    let mut hasher = FxHasher::default();
    (reducer, callback).hash(&mut hasher);
    hasher.finish()
}

/// Where each value of a message stands: position of the element, length of the body, count of attachments.
type Parts = Vec<(u64, u32, u32)>;

/// Packs values into messages that stay far below the limits of a frame, unless one value alone breaks them.
fn pack_parts(values: &[(u64, Value)], table: Reducer) -> Vec<(Parts, Packed)> {
    let (mut messages, mut parts, mut body, mut attachments) =
        (Vec::new(), Parts::new(), Vec::new(), Vec::new());
    let mut len_bytes = 0;
    for (linear, value) in values {
        let packed = (table.pack)(value);
        let is_full = parts.len() == MESSAGE_VALUES
            || attachments.len() + packed.attachments.len() > MESSAGE_ATTACHMENTS
            || len_bytes + packed.len_bytes() > MESSAGE_BYTES;
        if is_full && !parts.is_empty() {
            let packed = Packed { body: take(&mut body).into(), attachments: take(&mut attachments) };
            messages.push((take(&mut parts), packed));
            len_bytes = 0;
        }
        let length = u32::try_from(packed.body.len()).unwrap_or(u32::MAX);
        let count = u32::try_from(packed.attachments.len()).unwrap_or(u32::MAX);
        parts.push((*linear, length, count));
        len_bytes += packed.len_bytes();
        body.extend_from_slice(&packed.body);
        attachments.extend(packed.attachments);
    }
    messages.push((parts, Packed { body: body.into(), attachments }));
    messages
}

/// The receiver counts elements, so that it does not matter in how many messages they come.
fn messages(
    header: &PartialHeader,
    count: u64,
    values: &[(u64, Value)],
    table: Reducer,
) -> Vec<(PartialHeader, Payload)> {
    let message = |(parts, packed): (Parts, Packed)| {
        let count = if header.ordered { parts.len() as u64 } else { count };
        (PartialHeader { count, parts, ..header.clone() }, Payload::packed(packed))
    };
    pack_parts(values, table).into_iter().map(message).collect()
}

fn unpack_parts(
    header: &PartialHeader,
    packed: &Packed,
    table: Reducer,
) -> Result<Vec<(u64, Value)>, PupError> {
    let wrong = || PupError::new("a contribution", "it is shorter or longer than its header says");
    let (mut body, mut attachments) = (packed.body.clone(), packed.attachments.iter());
    let mut values = Vec::new();
    for &(linear, length, count) in &header.parts {
        if body.len() < length as usize || attachments.len() < count as usize {
            return Err(wrong());
        }
        let part = Packed {
            body: body.split_to(length as usize),
            attachments: attachments.by_ref().take(count as usize).cloned().collect(),
        };
        values.push((linear, (table.unpack)(&part)?));
    }
    if body.is_empty() && attachments.len() == 0 { Ok(values) } else { Err(wrong()) }
}
