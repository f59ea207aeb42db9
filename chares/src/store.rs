//! The elements of one collection on one PE, behind the runtime's trait.

use crate::chare::{Chare, EntryTable, Index};
use crate::ctx::{Ctx, Site};
use crate::entries::open;
use runtime::collection::{Collection, Placement};
use runtime::envelope::{CollectionId, ElementIndex, Packed, Payload};
use runtime::ids::PeId;
use runtime::object::{ChareType, PupError, Store, StoreFor, Undelivered};
use runtime::pe::Pe;
use runtime::proto::past::Past;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What the runtime has to know of chare type `C`.
pub(crate) fn chare_type<C: Chare>() -> ChareType {
    ChareType {
        name: C::NAME,
        entries: C::NAMES,
        dimensions: C::Index::DIMENSIONS,
        reducers: C::reducers(),
        new_store: new_store::<C>,
    }
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
    /// A slot is empty when its chare was not made yet, or destroyed, until another takes it.
    slots: Vec<Option<Slot<C>>>,
    empty: Vec<usize>,
    count: usize,
    /// Single chares that have been made here, by their creator: what comes for one of them that is not there any
    /// more is dropped.
    made: FxHashMap<PeId, Past>,
}

/// In which slot an element is.
enum Places {
    /// Where its position among those of this PE says.
    ByPosition(Arc<Collection>, PeId),
    ByIndex(FxHashMap<ElementIndex, usize>),
}

impl Places {
    fn new(StoreFor { collection, pe, .. }: StoreFor) -> Self {
        let has_positions = |known: &Arc<Collection>| {
            let is_listed = matches!(known.placement, Placement::Explicit(_));
            !is_listed && (!known.is_deferred || known.len() <= POSITIONS_MAX)
        };
        match collection.filter(has_positions) {
            Some(known) => Self::ByPosition(known, pe),
            None => Self::ByIndex(FxHashMap::default()),
        }
    }

    #[inline]
    fn find(&self, index: ElementIndex) -> Option<usize> {
        match self {
            Self::ByPosition(known, pe) => usize::try_from(known.position_on(*pe, index)?).ok(),
            Self::ByIndex(places) => places.get(&index).copied(),
        }
    }
}

struct Slot<C> {
    chare: C,
    site: Site,
}

impl<C: Chare> Store for TypedStore<C> {
    fn deliver(
        &mut self,
        index: ElementIndex,
        entry: u16,
        payload: Payload,
        pe: &mut Pe,
    ) -> Result<(), Undelivered> {
        let place = self.places.find(index);
        let Some(slot) = place.and_then(|place| self.slots.get_mut(place)?.as_mut()) else {
            return Err(if self.was_made(index) { Undelivered::Gone } else { Undelivered::Missing(payload) });
        };
        slot.run(entry, payload, pe).map_err(Undelivered::Bad)?;
        if slot.site.is_leaving {
            self.remove(index, pe);
        }
        Ok(())
    }

    fn deliver_all(&mut self, entry: u16, payload: &Arc<Packed>, pe: &mut Pe) -> Result<u64, PupError> {
        let mut count = 0;
        for slot in self.slots.iter_mut().flatten() {
            slot.run(entry, Payload::Packed(Arc::clone(payload)), pe)?;
            count += 1;
        }
        Ok(count)
    }

    fn insert(&mut self, index: ElementIndex, init: Payload, pe: &mut Pe) -> Result<(), PupError> {
        if self.has(index) || self.was_made(index) {
            let at = &index.0[..C::Index::DIMENSIONS];
            pe.fail(format!("element {at:?} of an array of {} was made twice", <C as EntryTable>::NAME));
            return Ok(());
        }
        pe.runs(index);
        let collection = self.collection;
        let mut site = Site { collection, index, sequence: 0, sections: Vec::new(), is_leaving: false };
        let chare = C::new(open(init)?, &mut Ctx::new(pe, &mut site));
        if self.collection.as_singles().is_some() {
            let (creator, serial) = index.as_single();
            self.made.entry(creator).or_default().insert(serial);
        }
        if site.is_leaving {
            // Destroyed by its own constructor.
            pe.chare_left();
            return Ok(());
        }
        self.put(index, Slot { chare, site });
        Ok(())
    }

    fn len(&self) -> usize {
        self.count
    }
}

impl<C> TypedStore<C> {
    fn new(what: StoreFor) -> Self {
        Self {
            collection: what.id,
            places: Places::new(what),
            slots: Vec::new(),
            empty: Vec::new(),
            count: 0,
            made: FxHashMap::default(),
        }
    }

    fn has(&self, index: ElementIndex) -> bool {
        self.places.find(index).is_some_and(|place| self.slots.get(place).is_some_and(Option::is_some))
    }

    fn put(&mut self, index: ElementIndex, slot: Slot<C>) {
        let place = match &mut self.places {
            Places::ByPosition(..) => self.places.find(index).unwrap_or(self.slots.len()),
            Places::ByIndex(places) => {
                let place = self.empty.pop().unwrap_or(self.slots.len());
                places.insert(index, place);
                place
            }
        };
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        self.slots[place] = Some(slot);
        self.count += 1;
    }

    #[cold]
    fn remove(&mut self, index: ElementIndex, pe: &Pe) {
        let Some(place) = self.places.find(index) else { return };
        self.slots[place] = None;
        if let Places::ByIndex(places) = &mut self.places {
            places.remove(&index);
            self.empty.push(place);
        }
        self.count -= 1;
        pe.chare_left();
    }

    /// Whether this is a single chare that has been here.
    fn was_made(&self, index: ElementIndex) -> bool {
        let (creator, serial) = index.as_single();
        self.made.get(&creator).is_some_and(|made| made.contains(serial))
    }
}

impl<C: Chare> Slot<C> {
    fn run(&mut self, entry: u16, payload: Payload, pe: &mut Pe) -> Result<(), PupError> {
        pe.runs(self.site.index);
        let method = C::ENTRIES.get(usize::from(entry)).ok_or_else(|| PupError {
            expected: <C as EntryTable>::NAME,
            reason: format!("there is no entry method number {entry}"),
        })?;
        method(&mut self.chare, payload, &mut Ctx::new(pe, &mut self.site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;
    use runtime::node::{Node, NodeSettings};
    use runtime::object::ProgramTable;
    use runtime::topology::Topology;
    use serde::{Deserialize, Serialize};

    /// Ends itself when it is told to, or at once.
    #[derive(Serialize, Deserialize)]
    struct Mayfly;
    #[derive(Serialize, Deserialize)]
    struct Die;
    crate::entries!(Mayfly: Die);
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
        let mut store = TypedStore::<Mayfly>::new(StoreFor { id: collection, collection: None, pe: PeId(0) });
        for n in 0..10_000 {
            let (index, dies_at_once) = (pe.fresh_single(0, PeId(0)), n % 2 == 0);
            let early = store.deliver(index, 0, Payload::Value(Box::new(Die)), &mut pe);
            assert!(matches!(early, Err(Undelivered::Missing(_))), "it has not been made yet");
            store.insert(index, Payload::Value(Box::new(dies_at_once)), &mut pe).unwrap();
            assert_eq!(store.len(), usize::from(!dies_at_once));
            if !dies_at_once {
                store.deliver(index, 0, Payload::Value(Box::new(Die)), &mut pe).unwrap();
            }
            let late = store.deliver(index, 0, Payload::Value(Box::new(Die)), &mut pe);
            assert!(matches!(late, Err(Undelivered::Gone)));
        }
        let kept: usize = store.made.values().map(Past::early).sum();
        assert_eq!((store.len(), store.slots.len(), store.made.len(), kept), (0, 1, 1, 0));
    }
}
