//! The elements of one collection on one PE, behind the runtime's trait.

mod slots;

use crate::chare::{Chare, EntryMethod, Index, Message};
use crate::ctx::Ctx;
use crate::entries::{open, pack_moved};
use crate::pup::{pack, unpack};
use crate::site::Site;
use loadbalance::balance::Mobility;
use runtime::collection::{Collection, Placement};
use runtime::envelope::{Arrived, CollectionId, ElementId, ElementIndex, Packed, Value};
use runtime::ids::PeId;
use runtime::object::{CONSTRUCTOR, ChareType, PupError, Store, StoreFor};
use runtime::pe::Pe;
use runtime::pe::ending::Remains;
use runtime::pe::moving::Mover;
use runtime::proto::number_set::NumberSet;
use runtime::schema::{BESIDE, Migration, STATE, Schema, Shape, shape_of};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use slots::Slots;
use std::any::TypeId;
use std::cell::Cell;
use std::sync::Arc;

/// What the runtime has to know of chare type `C`.
pub(crate) fn chare_type<C: Chare>() -> ChareType {
    ChareType {
        type_id: TypeId::of::<C>(),
        name: C::name(),
        entries: C::entry_names(),
        pack_message: |entry, message| match entry {
            CONSTRUCTOR => pack_moved::<C::Init>(message),
            entry => (method::<C>(entry)?.pack)(message),
        },
        dimensions: C::Index::DIMENSIONS,
        reducers: C::reducers(),
        new_store: new_store::<C>,
        schema: Schema {
            version: C::VERSION,
            shape: record_shape::<C>,
            migrations: Vec::new(),
            earlier: Some(Site::EARLIER),
        },
        mobility: Site::mobility_of,
    }
}

/// What a record of a chare is made of: what the runtime keeps beside it, and its state.
fn record_shape<C: DeserializeOwned>() -> Shape {
    match (shape_of::<Site>(), shape_of::<C>()) {
        (Shape::Opaque, _) | (_, Shape::Opaque) => Shape::Opaque,
        (site, state) => Shape::Struct(vec![(BESIDE.into(), site), (STATE.into(), state)]),
    }
}

/// How records of chares that were `Old`s become ones of `C`s.
pub(crate) fn migration<Old, C>(from: u16, make: fn(Old) -> Result<C, String>) -> Migration
where
    Old: DeserializeOwned + 'static,
    C: Chare,
{
    let apply = move |packed: &Packed| {
        let (site, old): (Site, Old) = unpack(packed).map_err(|error| error.to_string())?;
        Ok(pack(&(site, make(old)?)))
    };
    Migration { from, shape: record_shape::<Old>, apply: Arc::new(apply) }
}

/// How values of shared variables that were `Old`s become `T`s.
pub(crate) fn variable_migration<Old, T>(from: u16, make: fn(Old) -> Result<T, String>) -> Migration
where
    Old: DeserializeOwned + 'static,
    T: Message,
{
    let apply = move |packed: &Packed| {
        let old = unpack(packed).map_err(|error| error.to_string())?;
        Ok(pack(&make(old)?))
    };
    Migration { from, shape: shape_of::<Old>, apply: Arc::new(apply) }
}

pub(crate) fn new_store<C: Chare>(what: StoreFor) -> Box<dyn Store> {
    Box::new(TypedStore::<C>::new(what))
}

/// Elements of an array that are inserted one by one, and may be many more than there ever are, are found by their
/// position only where all together are not more than this.
const POSITIONS_MAX: u64 = 1 << 16;

struct TypedStore<C> {
    collection: CollectionId,
    places: Places,
    /// One is empty when its chare was not made yet, or destroyed, until another takes it.
    slots: Slots<Slot<C>>,
    empty: Vec<usize>,
    count: usize,
    /// Single chares that have been made here, by their creator: what comes for one of them that is not there any
    /// more is dropped.
    made: FxHashMap<PeId, NumberSet>,
}

/// How the slot of an element is found.
enum Places {
    /// By its position among the elements of this PE, of which there may be so many; those that have come from other
    /// PEs behind them, by index.
    ByPosition {
        collection: Arc<Collection>,
        pe: PeId,
        own: usize,
        others: Box<ByIndex>,
    },
    ByIndex(Box<ByIndex>),
}

/// A table of slots, before which stands a small one of those that were looked up last: most messages are for few
/// elements, and hashing takes longer than the rest of the way to one.
struct ByIndex {
    all: FxHashMap<ElementIndex, usize>,
    recent: [Cell<(ElementIndex, usize)>; Self::RECENT],
}

impl ByIndex {
    const RECENT: usize = 64;
    /// A number that is no slot.
    const NONE: usize = usize::MAX;

    fn new() -> Self {
        let nobody = || Cell::new((ElementIndex([u32::MAX; 3]), Self::NONE));
        Self { all: FxHashMap::default(), recent: std::array::from_fn(|_| nobody()) }
    }

    #[inline]
    fn recent(&self, index: ElementIndex) -> &Cell<(ElementIndex, usize)> {
        // Indices of arrays and serial numbers of single chares differ most in one of these.
        let [a, b, c] = index.0;
        &self.recent[(a ^ b.rotate_left(3) ^ c) as usize % Self::RECENT]
    }

    #[inline]
    fn get(&self, index: ElementIndex) -> Option<usize> {
        let recent = self.recent(index);
        let (found, slot) = recent.get();
        if found == index {
            return (slot != Self::NONE).then_some(slot);
        }
        let slot = *self.all.get(&index)?;
        recent.set((index, slot));
        Some(slot)
    }

    fn insert(&mut self, index: ElementIndex, slot: usize) {
        self.all.insert(index, slot);
        self.recent(index).set((index, slot));
    }

    fn remove(&mut self, index: ElementIndex) {
        self.all.remove(&index);
        self.recent(index).set((index, Self::NONE));
    }
}

impl Places {
    fn new(StoreFor { collection, pe, .. }: StoreFor) -> Self {
        let has_positions = |known: &Arc<Collection>| {
            let is_listed = matches!(known.placement, Placement::Explicit(_));
            !is_listed && (!known.is_deferred || known.len() <= POSITIONS_MAX)
        };
        match collection.filter(has_positions) {
            Some(collection) => {
                let own = usize::try_from(collection.count_on(pe)).unwrap_or(usize::MAX);
                Self::ByPosition { collection, pe, own, others: Box::new(ByIndex::new()) }
            }
            None => Self::ByIndex(Box::new(ByIndex::new())),
        }
    }

    #[inline(always)]
    fn find(&self, index: ElementIndex) -> Option<usize> {
        match self {
            Self::ByPosition { collection, pe, others, .. } => match collection.position_on(*pe, index) {
                Some(position) => usize::try_from(position).ok(),
                None => others.get(index),
            },
            Self::ByIndex(places) => places.get(index),
        }
    }
}

struct Slot<C> {
    chare: C,
    site: Site,
}

impl<C: Chare> Slot<C> {
    /// Between any two entry methods a chare may move. Where all is to be packed this does to its state what a move does, so
    /// that tests find state that does not travel. Messages are packed then too, so whoever is sent a moved one never asks.
    fn repack_if_asked(&mut self, pe: &mut Pe) -> Result<(), PupError> {
        if pe.always_pup() {
            self.chare = unpack(&pack(&self.chare))?;
            self.arrived(pe);
        }
        Ok(())
    }

    /// Its state has been unpacked.
    fn arrived(&mut self, pe: &mut Pe) {
        pe.runs(self.site.index);
        if self.site.mover.is_some() {
            self.run_as_mover(pe, C::arrived);
        } else {
            self.chare.arrived(&mut Ctx::new(pe, &mut self.site));
        }
    }

    /// Runs something of a chare that has moved: what it sends is numbered as its own.
    #[inline(never)]
    fn run_as_mover<R>(&mut self, pe: &mut Pe, run: impl FnOnce(&mut C, &mut Ctx<'_, C>) -> R) -> R {
        as_mover(&mut self.site, pe, |ctx| run(&mut self.chare, ctx))
    }
}

/// Runs something at the site of a chare that has moved.
fn as_mover<C: Chare, R>(site: &mut Site, pe: &mut Pe, run: impl FnOnce(&mut Ctx<'_, C>) -> R) -> R {
    pe.lend_mover(site.mover.take());
    let result = run(&mut Ctx::new(pe, site));
    site.mover = pe.take_mover();
    result
}

impl<C: Chare> Store for TypedStore<C> {
    fn find(&self, index: ElementIndex) -> Option<usize> {
        let place = self.places.find(index)?;
        self.slots.get(place).map(|_| place)
    }

    fn is_gone(&self, index: ElementIndex) -> bool {
        // Only of single chares it is remembered that they were made.
        let (creator, serial) = index.as_single();
        self.made.get(&creator).is_some_and(|made| made.contains(serial)) && self.find(index).is_none()
    }

    fn run(&mut self, place: usize, entry: u16, message: Value, pe: &mut Pe) -> Result<(), PupError> {
        let Some(slot) = self.slots.get_mut(place) else { return Ok(()) };
        pe.runs(slot.site.index);
        let method = method::<C>(entry)?.moved;
        if slot.site.mover.is_some() {
            slot.run_as_mover(pe, |chare, ctx| method(chare, message, ctx))?;
        } else {
            method(&mut slot.chare, message, &mut Ctx::new(pe, &mut slot.site))?;
        }
        if slot.site.is_leaving {
            self.remove(place, pe);
        }
        Ok(())
    }

    fn run_packed(
        &mut self,
        place: usize,
        entry: u16,
        message: &Packed,
        pe: &mut Pe,
    ) -> Result<(), PupError> {
        let Some(slot) = self.slots.get_mut(place) else { return Ok(()) };
        slot.repack_if_asked(pe)?;
        pe.runs(slot.site.index);
        let method = method::<C>(entry)?.packed;
        if slot.site.mover.is_some() {
            slot.run_as_mover(pe, |chare, ctx| method(chare, message, ctx))?;
        } else {
            method(&mut slot.chare, message, &mut Ctx::new(pe, &mut slot.site))?;
        }
        if slot.site.is_leaving {
            self.remove(place, pe);
        }
        Ok(())
    }

    fn run_all(&mut self, entry: u16, message: &Packed, pe: &mut Pe) -> Result<u64, PupError> {
        let (method, mut count, mut leaving) = (method::<C>(entry)?.packed, 0, Vec::new());
        for (place, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.site.mover.is_none()) {
            slot.repack_if_asked(pe)?;
            pe.runs_next(ElementId { collection: self.collection, index: slot.site.index });
            method(&mut slot.chare, message, &mut Ctx::new(pe, &mut slot.site))?;
            if slot.site.is_leaving {
                leaving.push(place);
            }
            count += 1;
        }
        leaving.into_iter().for_each(|place| self.remove(place, pe));
        Ok(count)
    }

    fn insert(
        &mut self,
        index: ElementIndex,
        remains: Option<Remains>,
        init: Arrived<'_>,
        pe: &mut Pe,
    ) -> Result<(), PupError> {
        let place = self.places.find(index);
        let is_there = place.is_some_and(|place| self.slots.get(place).is_some());
        if is_there || self.is_gone(index) {
            let at = &index.0[..C::Index::DIMENSIONS];
            pe.fail(format!("element {at:?} of an array of {} was made twice", C::name()));
            return Ok(());
        }
        pe.runs(index);
        let collection = self.collection;
        let (init, mut site) = (open(init)?, Site::new(collection, index, pe.id()));
        let chare = match remains {
            None => C::new(init, &mut Ctx::new(pe, &mut site)),
            Some(remains) => {
                site = site.after(remains);
                as_mover(&mut site, pe, |ctx| C::new(init, ctx))
            }
        };
        if self.collection.as_singles().is_some() {
            let (creator, serial) = index.as_single();
            self.made.entry(creator).or_default().insert(serial);
        }
        if site.is_leaving {
            // The chare was destroyed by its own constructor.
            ended(site, pe);
            return Ok(());
        }
        self.fill(index, place, Slot { chare, site });
        Ok(())
    }

    fn take(&mut self, place: usize) -> Option<(PeId, Packed)> {
        let Slot { chare, mut site } = self.vacate(place)?;
        let element = ElementId { collection: site.collection, index: site.index };
        site.mover.get_or_insert_with(|| Box::new(Mover::new(element, site.home)));
        Some((site.home, pack(&(site, chare))))
    }

    fn packed_bytes(&self, place: usize) -> u64 {
        let slot = self.slots.get(place);
        slot.map_or(0, |slot| pack(&slot.chare).len_bytes() as u64)
    }

    fn mobility(&self, place: usize) -> Mobility {
        let slot = self.slots.get(place);
        slot.map(|slot| slot.site.mobility().clone()).unwrap_or_default()
    }

    fn put(&mut self, index: ElementIndex, state: &Packed) -> Result<(), PupError> {
        let (site, chare): (Site, C) = unpack(state)?;
        if (site.collection, site.index) != (self.collection, index) || self.find(index).is_some() {
            return Err(PupError::new(std::any::type_name::<C>(), format!("it is not element {index:?}")));
        }
        self.fill(index, self.places.find(index), Slot { chare, site });
        Ok(())
    }

    fn arrived(&mut self, index: ElementIndex, pe: &mut Pe) {
        let Some(place) = self.find(index) else { return };
        let Some(slot) = self.slots.get_mut(place) else { return };
        slot.arrived(pe);
        if slot.site.is_leaving {
            self.remove(place, pe);
        }
    }

    fn save(&self, each: &mut dyn FnMut(ElementIndex, Packed)) {
        for slot in self.slots.iter() {
            each(slot.site.index, pack(&(&slot.site, &slot.chare)));
        }
    }

    fn made(&self) -> Vec<(PeId, NumberSet)> {
        self.made.iter().map(|(creator, made)| (*creator, made.clone())).collect()
    }

    fn set_made(&mut self, made: Vec<(PeId, NumberSet)>) {
        self.made = made.into_iter().collect();
    }

    fn len(&self) -> usize {
        self.count
    }
}

impl<C> TypedStore<C> {
    fn new(what: StoreFor) -> Self {
        let (collection, places) = (what.id, Places::new(what));
        let made_together = match &places {
            Places::ByPosition { collection, own, .. } if !collection.is_deferred => *own,
            _ => 0,
        };
        Self {
            collection,
            places,
            slots: Slots::with_room(made_together),
            empty: Vec::new(),
            count: 0,
            made: FxHashMap::default(),
        }
    }

    #[inline(always)]
    fn fill(&mut self, index: ElementIndex, place: Option<usize>, slot: Slot<C>) {
        let place = place.unwrap_or_else(|| self.new_place(index));
        self.count += 1;
        self.slots.put(place, slot);
    }

    /// Notes a place for an element that is not found by its position.
    fn new_place(&mut self, index: ElementIndex) -> usize {
        let (places, least) = match &mut self.places {
            Places::ByPosition { own, others, .. } => (others, *own),
            Places::ByIndex(places) => (places, 0),
        };
        let place = self.empty.pop().unwrap_or(self.slots.len().max(least));
        places.insert(index, place);
        place
    }

    #[cold]
    fn remove(&mut self, place: usize, pe: &mut Pe) {
        if let Some(Slot { site, .. }) = self.vacate(place) {
            ended(site, pe);
        }
    }

    fn vacate(&mut self, place: usize) -> Option<Slot<C>> {
        let slot = self.slots.take(place)?;
        match &mut self.places {
            Places::ByPosition { own, .. } if place < *own => {}
            Places::ByPosition { others: places, .. } | Places::ByIndex(places) => {
                places.remove(slot.site.index);
                self.empty.push(place);
            }
        }
        self.count -= 1;
        Some(slot)
    }
}

/// A chare has been destroyed. Of single chares nothing is kept.
fn ended(site: Site, pe: &mut Pe) {
    pe.chare_left();
    let element = ElementId { collection: site.collection, index: site.index };
    if site.collection.as_singles().is_some() {
        pe.single_ended(element, site.mover.as_deref());
    } else {
        pe.element_ended(element, site.home, site.remains());
    }
}

#[inline]
fn method<C: Chare>(entry: u16) -> Result<&'static EntryMethod<C>, PupError> {
    let missing =
        || PupError::new(std::any::type_name::<C>(), format!("there is no entry method number {entry}"));
    C::ENTRIES.get(usize::from(entry)).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctx::private::HasPe;
    use crate::{Callback, Cx, Element, Entry, InProcess, On, Program};
    use runtime::node::{Node, NodeSettings};
    use runtime::object::ProgramTable;
    use runtime::topology::Topology;
    use serde::{Deserialize, Serialize};
    use std::time::{Duration, Instant};

    /// Ends itself when it is told to, or at once.
    #[derive(Serialize, Deserialize)]
    struct Mayfly;
    #[derive(Serialize, Deserialize)]
    struct Die;
    /// Work for a moment, and say so.
    #[derive(Serialize, Deserialize)]
    struct Work(Callback<()>);
    crate::entries!(Mayfly: Die, Work);
    impl Chare for Mayfly {
        type Index = ();
        type Init = bool;
        fn new(dies_at_once: bool, ctx: &mut Ctx<'_, Self>) -> Self {
            if dies_at_once {
                ctx.destroy();
            }
            Self
        }
    }
    impl Entry<Die> for Mayfly {
        fn receive(&mut self, _: Die, ctx: &mut Ctx<'_, Self>) {
            ctx.destroy();
        }
    }

    impl Entry<Work> for Mayfly {
        fn receive(&mut self, Work(to): Work, ctx: &mut Ctx<'_, Self>) {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(1) {
                std::hint::spin_loop();
            }
            to.send(ctx, ());
        }
    }

    fn pe() -> Pe {
        let program = ProgramTable { chare_types: vec![chare_type::<Mayfly>()], ..ProgramTable::default() };
        let node = Node::new(
            runtime::ids::NodeId(1),
            Topology::new(&[0, 1]),
            Arc::new(program),
            NodeSettings::default(),
        );
        Pe::new(PeId(0), node)
    }

    #[test]
    fn nothing_is_kept_of_single_chares_that_are_gone() {
        let (mut pe, collection) = (pe(), CollectionId::singles(0));
        let mut store = TypedStore::<Mayfly>::new(StoreFor {
            id: collection,
            collection: None,
            pe: PeId(0),
            pe_count: 1,
        });
        for n in 0..10_000 {
            let (index, dies_at_once) = (pe.fresh_single(0, PeId(0)), n % 2 == 0);
            assert_eq!((store.find(index), store.is_gone(index)), (None, false), "it has not been made yet");
            store.insert(index, None, Arrived::Value(Box::new(dies_at_once)), &mut pe).unwrap();
            assert_eq!(store.len(), usize::from(!dies_at_once));
            if !dies_at_once {
                let slot = store.find(index).unwrap();
                store.run(slot, 0, Box::new(Die), &mut pe).unwrap();
            }
            assert_eq!((store.find(index), store.is_gone(index)), (None, true));
        }
        let kept: usize = store.made.values().map(NumberSet::out_of_order).sum();
        assert_eq!((store.len(), store.slots.len(), store.made.len(), kept), (0, 1, 1, 0));
    }

    #[test]
    fn who_balances_forgets_single_chares_that_have_ended() {
        const COUNT: usize = 100;
        let program = Program::new("mayflies", "1").chare::<Mayfly>();
        let outcome = program.run_in_process(&InProcess::new(&[2]).balance("refine"), |main| {
            let all: Vec<Element<Mayfly>> =
                (0..COUNT).map(|at| main.chare(false, On::Pe(at as u32 % 2))).collect();
            let known = |main: &mut crate::Driver| {
                main.pe().node().known_loads().map_or(0, |known| known.chares.len())
            };
            // Has those on both PEs that are left work until so many are known.
            let until = |main: &mut crate::Driver, left: &[Element<Mayfly>], count: usize| {
                let deadline = Instant::now() + Duration::from_secs(20);
                while known(main) != count && Instant::now() < deadline {
                    let (to, done) = main.pending();
                    left.iter().for_each(|one| one.send(main, Work(to)));
                    (0..left.len()).try_for_each(|_| done.wait(main))?;
                }
                Ok::<_, crate::RunError>(known(main))
            };
            let before = until(main, &all, COUNT)?;
            all[2..].iter().for_each(|one| one.send(main, Die));
            Ok([before, until(main, &all[..2], 2)?])
        });
        assert_eq!(outcome.unwrap(), [COUNT, 2]);
    }
}
