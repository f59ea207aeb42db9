//! What the runtime knows of user types: tables of function pointers, and the elements of a PE behind a trait.

use crate::collection::Collection;
use crate::envelope::{Arrived, CollectionId, ElementIndex, Packed, Value};
use crate::ids::PeId;
use crate::pe::Pe;
use crate::pe::ending::Remains;
use crate::pe::queue::QueueOrder;
use crate::proto::number_set::NumberSet;
use crate::schema::{Migration, Schema, Shape};
use loadbalance::balance::Mobility;
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// The error for bytes that do not hold what their receiver expects: the sender was built differently or is broken. It
/// is one word long, because every message passes a place that may return it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message does not decode as {}: {}", .0.expected, .0.reason)]
pub struct PupError(Box<Mismatch>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mismatch {
    expected: &'static str,
    reason: String,
}

impl PupError {
    /// What type was expected, and what was wrong.
    #[must_use]
    #[cold]
    pub fn new(expected: &'static str, reason: impl Into<String>) -> Self {
        Self(Box::new(Mismatch { expected, reason: reason.into() }))
    }
}

/// How values of a reduction are combined and travel.
#[derive(Clone, Copy)]
pub struct Reducer {
    /// Adds the second to the first.
    pub combine: fn(&mut Value, Value),
    /// Value to bytes.
    pub pack: fn(&Value) -> Packed,
    /// Bytes to value.
    pub unpack: fn(&Packed) -> Result<Value, PupError>,
    /// Whether a value is one of this reduction's.
    pub is_own: fn(&Value) -> bool,
}

/// A chare type of the program.
#[derive(Clone)]
pub struct ChareType {
    /// Identity of the Rust type, by which this node looks the chare type up.
    pub type_id: TypeId,
    /// Its name, unique in the program.
    pub name: String,
    /// Names of its entry methods; their position is the entry's number on the wire.
    pub entries: Vec<String>,
    /// A message for the entry method of that number, or the argument of the [constructor](CONSTRUCTOR), as bytes.
    pub pack_message: fn(u16, &Value) -> Result<Packed, PupError>,
    /// Dimensions of its index, 0 to 3.
    pub dimensions: usize,
    /// Its reductions, with the names of the contributed types; their position is the reducer's number on the wire.
    pub reducers: Vec<(String, Reducer)>,
    /// An empty store for elements of this type.
    pub new_store: fn(StoreFor) -> Box<dyn Store>,
    /// How its records are understood.
    pub schema: Schema,
    /// Where a chare may go, by its record; anywhere if that is none.
    pub mobility: fn(&Packed) -> Mobility,
}

#[cfg(test)]
impl ChareType {
    /// One with these entry methods, whose messages are bytes from the start. All that are made so have the same identity.
    pub(crate) fn of_test(name: &str, entries: &[&str], new_store: fn(StoreFor) -> Box<dyn Store>) -> Self {
        Self {
            type_id: TypeId::of::<()>(),
            name: name.into(),
            entries: entries.iter().map(|&entry| entry.into()).collect(),
            pack_message: |_, _| unreachable!("all messages are packed"),
            dimensions: 1,
            reducers: Vec::new(),
            new_store,
            schema: Schema::default(),
            mobility: |_| Mobility::default(),
        }
    }
}

/// Tells a new store which elements it will hold.
#[derive(Clone, Debug)]
pub struct StoreFor {
    /// Their collection.
    pub id: CollectionId,
    /// Description of the collection; `None` for single chares.
    pub collection: Option<Arc<Collection>>,
    /// The PE where they live.
    pub pe: PeId,
    /// Count of PEs of the run.
    pub pe_count: u32,
}

/// Part of an application that measures a PE's speed: one call does a piece of the application's own work
/// and returns how many units of work that was.
pub type KernelCall = Box<dyn FnMut() -> f64>;

/// The kernel by which speeds are measured.
#[derive(Clone)]
pub struct Kernel {
    /// Name, part of the key under which measured speeds are kept.
    pub name: String,
    /// Prepares the kernel from the application's packed arguments.
    pub prepare: Prepare,
}

/// Makes a kernel ready to run from the application's packed arguments.
pub type Prepare = Arc<dyn Fn(&[u8]) -> Result<KernelCall, PupError> + Send + Sync>;

/// How values of shared variables become ones of a type that the program has today.
#[derive(Clone)]
pub struct VariableMigration {
    /// That type.
    pub into: TypeId,
    /// Its name.
    pub name: String,
    /// What its values are made of.
    pub shape: fn() -> Shape,
    /// How others become such.
    pub migration: Migration,
}

/// Everything that all nodes of a run must agree on, in order.
#[derive(Clone, Default)]
pub struct ProgramTable {
    /// Name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its chare types.
    pub chare_types: Vec<ChareType>,
    /// How values of shared variables that were saved as another type become ones of the program's.
    pub variable_migrations: Vec<VariableMigration>,
    /// Its kernels.
    pub kernels: Vec<Kernel>,
    /// Which of equally urgent messages a PE takes first.
    pub queue_order: QueueOrder,
}

impl ProgramTable {
    /// One line per chare type, in order; nodes that differ in a line are refused.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let type_line = |t: &ChareType| {
            let reducers: Vec<_> = t.reducers.iter().map(|(name, _)| name.as_str()).collect();
            format!("{}: {}; reduces {}", t.name, t.entries.join(" "), reducers.join(" "))
        };
        let head = format!("program {} {}", self.name, self.version);
        let kernels = self.kernels.iter().map(|k| format!("kernel {}", k.name));
        std::iter::once(head).chain(self.chare_types.iter().map(type_line)).chain(kernels).collect()
    }

    /// How values of shared variables of that type are understood. Its version is one more than the newest from which there is a
    /// migration, and 1 where there is none.
    #[must_use]
    pub fn variable_schema(&self, of: TypeId, shape: fn() -> Shape) -> Schema {
        let own = self.variable_migrations.iter().filter(|one| one.into == of);
        let migrations: Vec<Migration> = own.map(|one| one.migration.clone()).collect();
        let newest = migrations.iter().map(|migration| migration.from).max();
        Schema { version: newest.unwrap_or_default().saturating_add(1), shape, migrations, earlier: None }
    }

    /// `Type: Entry`, for people.
    #[must_use]
    pub fn entry_name(&self, chare_type: u16, entry: u16) -> String {
        let Some(t) = self.chare_types.get(usize::from(chare_type)) else { return "?".into() };
        let entry = match entry {
            CONSTRUCTOR => "(constructor)",
            REDUCTION => "(reduction)",
            entry => t.entries.get(usize::from(entry)).map_or("?", String::as_str),
        };
        format!("{}: {entry}", t.name)
    }

    /// For each chare type the place of its first entry method in [`entry_names`](Self::entry_names).
    #[must_use]
    pub fn first_entries(&self) -> Vec<usize> {
        let mut next = 0;
        let place = |known: &ChareType| {
            let first = next;
            next += known.entries.len() + 2;
            first
        };
        self.chare_types.iter().map(place).collect()
    }

    /// `Type: Entry` of all that PEs run: of each chare type its entry methods, its constructor and its reductions.
    #[must_use]
    pub fn entry_names(&self) -> Vec<String> {
        let of_type = |(chare_type, known): (u16, &ChareType)| {
            let entries = 0..u16::try_from(known.entries.len()).unwrap_or(u16::MAX);
            let all = entries.chain([CONSTRUCTOR, REDUCTION]);
            all.map(|entry| self.entry_name(chare_type, entry)).collect::<Vec<_>>()
        };
        (0..).zip(&self.chare_types).flat_map(of_type).collect()
    }

    /// An index with as many dimensions as the chare type has, for people.
    #[must_use]
    pub fn index_name(&self, chare_type: u16, index: ElementIndex) -> String {
        let dimensions = self.chare_types.get(usize::from(chare_type)).map_or(3, |t| t.dimensions.min(3));
        format!("{:?}", &index.0[..dimensions])
    }
}

/// Entry number by which monitors show that a constructor runs.
pub const CONSTRUCTOR: u16 = u16::MAX;
/// Entry number by which monitors show that contributions are combined.
pub const REDUCTION: u16 = u16::MAX - 1;

impl fmt::Debug for ProgramTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lines()).finish()
    }
}

/// The elements of one collection that live on one PE.
pub trait Store: Send + Any {
    /// Slot of the element at `index`, valid until an element is inserted or an entry method runs; `None` if it is not
    /// there.
    fn find(&self, index: ElementIndex) -> Option<usize>;

    /// Whether the single chare at `index` was there and is gone for good.
    fn is_gone(&self, index: ElementIndex) -> bool;

    /// Runs entry method `entry` of the element in `slot`, with a message that was moved here, to its end. Does nothing
    /// where no element is.
    ///
    /// # Errors
    /// When the message is not what the entry method takes.
    fn run(&mut self, slot: usize, entry: u16, message: Value, pe: &mut Pe) -> Result<(), PupError>;

    /// As [`run`](Self::run), with a message that is to be unpacked.
    ///
    /// # Errors
    /// When the message is not what the entry method takes.
    fn run_packed(&mut self, slot: usize, entry: u16, message: &Packed, pe: &mut Pe) -> Result<(), PupError>;

    /// Runs entry method `entry` of every element that was made here and has never moved, in no order that is promised; says how many there
    /// were.
    ///
    /// # Errors
    /// When the message is not what the entry method takes.
    fn run_all(&mut self, entry: u16, message: &Packed, pe: &mut Pe) -> Result<u64, PupError>;

    /// Constructs the element at `index`; replaces none, but ends the run if one is there. Of one that was there before and
    /// was destroyed it takes over what remains.
    ///
    /// # Errors
    /// When `init` is not the constructor's argument.
    fn insert(
        &mut self,
        index: ElementIndex,
        remains: Option<Remains>,
        init: Arrived<'_>,
        pe: &mut Pe,
    ) -> Result<(), PupError>;

    /// Takes the element in `slot` out, to be put in on another PE; its home, and its state.
    fn take(&mut self, slot: usize) -> Option<(PeId, Packed)>;

    /// Bytes of the state of the element in `slot`; finding out takes as long as packing it.
    fn packed_bytes(&self, slot: usize) -> u64;

    /// Where the element in `slot` may go.
    fn mobility(&self, slot: usize) -> Mobility {
        let _ = slot;
        Mobility::Anywhere
    }

    /// Puts in an element that was taken out of another PE.
    ///
    /// # Errors
    /// When that is not its state.
    fn put(&mut self, index: ElementIndex, state: &Packed) -> Result<(), PupError>;

    /// Has an element that was put in make what did not travel, now that it may send.
    fn arrived(&mut self, index: ElementIndex, pe: &mut Pe) {
        let _ = (index, pe);
    }

    /// Gives each element's index and state, in an order that is kept when they are put in again so.
    fn save(&self, each: &mut dyn FnMut(ElementIndex, Packed));

    /// Which single chares have been made here, by who made them.
    fn made(&self) -> Vec<(PeId, NumberSet)> {
        Vec::new()
    }

    /// Takes over which single chares have been made.
    fn set_made(&mut self, made: Vec<(PeId, NumberSet)>) {
        let _ = made;
    }

    /// Count of elements.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
