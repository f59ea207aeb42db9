//! A small program on the runtime alone, with all that can be under way between nodes: arrays, a deferred
//! array, a group, single chares, sections, reductions of both kinds, and every kind of shared variable.

use runtime::codec::VariableKind;
use runtime::collection::Placement;
use runtime::envelope::{Arrived, CallbackTarget, CollectionId, ElementIndex, Packed, Payload, ToPe, Value};
use runtime::ids::PeId;
use runtime::monitor::wire::Phase;
use runtime::object::{ChareType, ProgramTable, PupError, Reducer, Store, StoreFor};
use runtime::pe::Pe;
use runtime::pe::combine::Contribution;
use runtime::pe::ending::Remains;
use runtime::pe::queue::QueueOrder;
use runtime::schema::Schema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entry methods of a cell, in their order.
pub(crate) const ADD: u16 = 0;
pub(crate) const PASS: u16 = 1;
pub(crate) const ASK: u16 = 2;
pub(crate) const MEET: u16 = 3;
pub(crate) const SHARE: u16 = 4;
const ENTRIES: [&str; 5] = ["Add", "Pass", "Ask", "Meet", "Share"];

/// Goes from element to element.
#[derive(Serialize, Deserialize)]
pub(crate) struct Pass {
    pub(crate) hops: u32,
    pub(crate) done: CallbackTarget,
}

/// Makes all elements contribute what they hold.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) is_ordered: bool,
    pub(crate) done: CallbackTarget,
}

/// Makes the members of a section contribute.
#[derive(Serialize, Deserialize)]
pub(crate) struct Meet {
    pub(crate) section: u64,
    pub(crate) members: Vec<ElementIndex>,
    pub(crate) done: CallbackTarget,
}

/// Reads and changes variables.
#[derive(Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) readonly: u64,
    pub(crate) monotonic: u64,
    pub(crate) sum: u64,
    pub(crate) done: CallbackTarget,
}

pub(crate) fn table() -> ProgramTable {
    let cell = |name: &str| ChareType {
        type_id: TypeId::of::<Pass>(),
        name: name.into(),
        entries: ENTRIES.map(Into::into).into(),
        pack_message: |_, _| Err(PupError::new("a message", "no message is moved here")),
        dimensions: 2,
        reducers: vec![("Sum".into(), SUM)],
        new_store,
        schema: Schema::default(),
        mobility: |_| Default::default(),
    };
    ProgramTable {
        name: "cells".into(),
        version: "1".into(),
        chare_types: vec![cell("Cell"), cell("Office")],
        variable_migrations: Vec::new(),
        kernels: Vec::new(),
        queue_order: QueueOrder::default(),
    }
}

const SUM: Reducer =
    Reducer { combine: add, pack: pack_sum, unpack: unpack_sum, is_own: |value| value.is::<u64>() };

fn add(into: &mut Value, other: Value) {
    if let (Some(into), Ok(other)) = (into.downcast_mut::<u64>(), other.downcast::<u64>()) {
        *into = into.wrapping_add(*other);
    }
}

fn pack_sum(value: &Value) -> Packed {
    value.downcast_ref::<u64>().map(pack).unwrap_or_default()
}

fn unpack_sum(packed: &Packed) -> Result<Value, PupError> {
    Ok(Box::new(unpack::<u64>(packed)?))
}

pub(crate) fn pack<T: Serialize>(value: &T) -> Packed {
    Packed { body: postcard::to_stdvec(value).unwrap().into(), attachments: Vec::new() }
}

pub(crate) fn unpack<T: DeserializeOwned>(packed: &Packed) -> Result<T, PupError> {
    let wrong = |e: postcard::Error| PupError::new(std::any::type_name::<T>(), e.to_string());
    postcard::from_bytes(&packed.body).map_err(wrong)
}

fn open<T: DeserializeOwned>(message: &Arrived<'_>) -> Result<T, PupError> {
    match message {
        Arrived::Packed(packed) => unpack(packed),
        Arrived::Value(_) => Err(PupError::new("bytes", "a value was moved")),
    }
}

/// Elements of one collection on one PE: each holds a number.
struct Cells {
    id: CollectionId,
    cells: BTreeMap<ElementIndex, Cell>,
}

#[derive(Serialize, Deserialize)]
struct Cell {
    home: PeId,
    has_moved: bool,
    number: u64,
    sequence: u32,
    meetings: BTreeMap<u64, u32>,
}

fn new_store(StoreFor { id, .. }: StoreFor) -> Box<dyn Store> {
    Box::new(Cells { id, cells: BTreeMap::new() })
}

impl Store for Cells {
    fn find(&self, index: ElementIndex) -> Option<usize> {
        self.cells.keys().position(|found| *found == index)
    }

    fn is_gone(&self, _: ElementIndex) -> bool {
        false
    }

    fn run(&mut self, slot: usize, entry: u16, message: Value, pe: &mut Pe) -> Result<(), PupError> {
        let Some((&index, cell)) = self.cells.iter_mut().nth(slot) else { return Ok(()) };
        cell.run(self.id, index, entry, &Arrived::Value(message), pe)
    }

    fn run_packed(&mut self, slot: usize, entry: u16, message: &Packed, pe: &mut Pe) -> Result<(), PupError> {
        let Some((&index, cell)) = self.cells.iter_mut().nth(slot) else { return Ok(()) };
        cell.run(self.id, index, entry, &Arrived::Packed(message), pe)
    }

    fn run_all(&mut self, entry: u16, packed: &Packed, pe: &mut Pe) -> Result<u64, PupError> {
        for (&index, cell) in self.cells.iter_mut().filter(|(_, cell)| !cell.has_moved) {
            cell.run(self.id, index, entry, &Arrived::Packed(packed), pe)?;
        }
        Ok(self.cells.len() as u64)
    }

    fn insert(
        &mut self,
        index: ElementIndex,
        _: Option<Remains>,
        init: Arrived<'_>,
        pe: &mut Pe,
    ) -> Result<(), PupError> {
        let (number, meetings) = (open(&init)?, BTreeMap::new());
        let cell = Cell { home: pe.id(), has_moved: false, number, sequence: 0, meetings };
        match self.cells.insert(index, cell) {
            None => Ok(()),
            Some(_) => Err(PupError::new("a new element", "it was inserted twice")),
        }
    }

    fn take(&mut self, slot: usize) -> Option<(PeId, Packed)> {
        let index = *self.cells.keys().nth(slot)?;
        let cell = self.cells.remove(&index)?;
        Some((cell.home, pack(&Cell { has_moved: true, ..cell })))
    }

    fn packed_bytes(&self, _: usize) -> u64 {
        0
    }

    fn put(&mut self, index: ElementIndex, state: &Packed) -> Result<(), PupError> {
        self.cells.insert(index, open(&Arrived::Packed(state))?);
        Ok(())
    }

    fn save(&self, each: &mut dyn FnMut(ElementIndex, Packed)) {
        self.cells.iter().for_each(|(index, cell)| each(*index, pack(cell)));
    }

    fn len(&self) -> usize {
        self.cells.len()
    }
}

impl Cell {
    fn run(
        &mut self,
        id: CollectionId,
        index: ElementIndex,
        entry: u16,
        message: &Arrived<'_>,
        pe: &mut Pe,
    ) -> Result<(), PupError> {
        match entry {
            ADD => self.number = self.number.wrapping_add(open(message)?),
            PASS => pass(id, index, open(message)?, pe),
            ASK => self.ask(id, index, &open(message)?, pe),
            MEET => self.meet(id, index, &open(message)?, pe),
            SHARE => share(&open(message)?, pe)?,
            other => return Err(PupError::new("an entry method", format!("not {other}"))),
        }
        Ok(())
    }

    fn ask(&mut self, id: CollectionId, index: ElementIndex, ask: &Ask, pe: &mut Pe) {
        let Some(linear) = pe.collection(id).and_then(|c| c.linear(index)) else { return };
        self.sequence = self.sequence.wrapping_add(1);
        pe.contribute(Contribution {
            collection: id,
            home: self.home,
            section: None,
            sequence: self.sequence - 1,
            reducer: 0,
            callback: ask.done,
            is_ordered: ask.is_ordered,
            linear,
            value: Box::new(self.number),
        });
    }

    fn meet(&mut self, id: CollectionId, index: ElementIndex, meet: &Meet, pe: &mut Pe) {
        let Some(linear) = meet.members.iter().position(|member| *member == index) else { return };
        let members = Arc::new(meet.members.clone());
        let Some(plan) = pe.section_plan(meet.section, id, &members, self.home) else { return };
        let sequence = self.meetings.entry(meet.section).or_default();
        *sequence = sequence.wrapping_add(1);
        pe.contribute(Contribution {
            collection: id,
            home: self.home,
            section: Some(plan),
            sequence: *sequence - 1,
            reducer: 0,
            callback: meet.done,
            is_ordered: true,
            linear: linear as u64,
            value: Box::new(self.number),
        });
    }
}

fn pass(id: CollectionId, index: ElementIndex, message: Pass, pe: &mut Pe) {
    if message.hops == 0 {
        return pe.reply(message.done, |_| Payload::packed(pack(&u64::from(index.0[0]))));
    }
    let Some(known) = pe.collection(id) else { return };
    let next = known.index_at((known.linear(index).unwrap_or_default() + 1) % known.len());
    let message = Pass { hops: message.hops - 1, ..message };
    pe.send_element((id, next, None), PASS, 0, |_| Payload::packed(pack(&message)));
}

fn share(message: &Share, pe: &mut Pe) -> Result<(), PupError> {
    let node = Arc::clone(pe.node());
    let less = |a: &u64, b: &u64| a < b;
    let colour = pe.colour();
    let read = node.variables().read(colour, message.readonly, unpack::<u64>, |_, _| false)?;
    if node.variables().improve(colour, message.monotonic, u64::from(100 - pe.id().0 % 100), unpack, less)? {
        let best = pack(&u64::from(100 - pe.id().0 % 100));
        pe.set_variable(message.monotonic, VariableKind::Monotonic, best, false);
    }
    node.sums().add(colour, message.sum, Box::new(1u64), add, pack_sum);
    node.phase(Phase { name: "sharing".into(), done: 1, total: 2, ..Phase::default() });
    let once = pe.fresh_id().0;
    pe.set_write_once(once, pack(&7u64), message.done, || Payload::packed(pack(&read.map_or(0, |v| *v))));
    Ok(())
}

/// What the driver has made.
pub(crate) struct Made {
    pub(crate) cells: CollectionId,
    pub(crate) slots: u64,
}

/// Sets everything going: after it has calmed down, `slots` results have come, one for each slot from 1.
pub(crate) fn begin(main: &mut Pe, hops: u32) -> Made {
    let node = Arc::clone(main.node());
    let pes = node.topology().pe_count();
    let cyclic = Placement::Cyclic { pe_count: pes };
    let bounds: Vec<u64> = (0..=u64::from(pes)).collect();
    let cells = main.create(0, [4, 5, 1], (cyclic.clone(), false), Some(pack(&3u64))).unwrap();
    let office = main.create(1, [pes, 1, 1], (Placement::Bounds(bounds), true), Some(pack(&1u64))).unwrap();
    let explicit = Placement::Explicit((0..6).map(|i| PeId(i % pes)).collect());
    let late = main.create(0, [6, 1, 1], (explicit, false), None).unwrap();
    let mut slots = 0..;
    let mut done = || CallbackTarget::Slot(slots.next().unwrap_or_default() + 1);
    for is_ordered in [false, true, false] {
        main.broadcast(cells, ASK, 0, pack(&Ask { is_ordered, done: done() }));
        main.broadcast(office, ASK, -3, pack(&Ask { is_ordered, done: done() }));
    }
    main.broadcast(late, ASK, 0, pack(&Ask { is_ordered: true, done: done() }));
    for i in 0..6 {
        main.insert(late, ElementIndex([i, 0, 0]), |_| Payload::packed(pack(&u64::from(i))));
    }
    for i in 0..4 {
        let index = ElementIndex([i, i, 0]);
        let callback = CallbackTarget::Element { collection: cells, index, entry: ADD, home: None };
        let pass = |hops, done| Payload::packed(pack(&Pass { hops, done }));
        main.send_element((cells, index, None), PASS, 0, |_| pass(hops, callback));
        let place = CallbackTarget::All { collection: late, entry: ADD };
        main.send_element((cells, index, None), PASS, 1, |_| pass(3, place));
        main.send_element((cells, index, None), ADD, 7, |_| Payload::packed(pack(&9u64)));
    }
    for (at, to) in [([1, 1, 0], 0), ([2, 2, 0], pes - 1), ([1, 1, 0], pes / 2)] {
        main.migrate((cells, ElementIndex(at), None), PeId(to));
    }
    let members: Vec<ElementIndex> = [[0, 1, 0], [1, 4, 0], [3, 2, 0], [3, 3, 0]].map(ElementIndex).to_vec();
    let meet = Meet { section: main.fresh_id().0, members: members.clone(), done: done() };
    main.multicast(cells, &members, MEET, 0, &pack(&meet)).unwrap();
    let single = main.fresh_single(1, PeId(pes - 1));
    let singles = CollectionId::singles(1);
    let insert = ToPe::Insert { collection: singles, index: single };
    main.send_to(PeId(pes - 1), insert, 0, |_| Payload::packed(pack(&5u64)));
    let [readonly, monotonic, sum] = [main.fresh_id().0, main.fresh_id().0, main.fresh_id().0];
    main.set_variable(readonly, VariableKind::Once, pack(&11u64), true);
    main.broadcast(office, SHARE, 0, pack(&Share { readonly, monotonic, sum, done: CallbackTarget::Ignore }));
    let share = Share { readonly, monotonic, sum, done: done() };
    let target =
        ToPe::Element { collection: singles, index: single, entry: SHARE, from: PeId::DRIVER, number: 0 };
    main.send_to(PeId(pes - 1), target, 0, |_| Payload::packed(pack(&share)));
    node.ask_all(1);
    node.collect_all(sum);
    node.set_speeds((1..=pes).map(|pe| 1.0 / f64::from(pe)).collect());
    node.set_init_over(true);
    Made { cells, slots: 9 }
}
