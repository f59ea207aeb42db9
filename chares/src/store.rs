//! The elements of one collection on one PE, behind the runtime's trait.

use crate::chare::{Chare, EntryTable, Index};
use crate::ctx::{Ctx, Site};
use crate::entries::open;
use runtime::envelope::{CollectionId, ElementIndex, Packed, Payload};
use runtime::ids::PeId;
use runtime::object::{ChareType, PupError, Store, Undelivered};
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

pub(crate) fn new_store<C: Chare>(collection: CollectionId) -> Box<dyn Store> {
    Box::new(TypedStore::<C> {
        collection,
        places: FxHashMap::default(),
        slots: Vec::new(),
        empty: Vec::new(),
        made: FxHashMap::default(),
    })
}

struct TypedStore<C> {
    collection: CollectionId,
    places: FxHashMap<ElementIndex, usize>,
    /// A slot is empty when its chare was destroyed, until another takes it.
    slots: Vec<Option<Slot<C>>>,
    empty: Vec<usize>,
    /// Single chares that have been made here, by their creator: what comes for one of them that is not there any
    /// more is dropped.
    made: FxHashMap<PeId, Past>,
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
        let Some(&place) = self.places.get(&index) else {
            return Err(if self.was_made(index) { Undelivered::Gone } else { Undelivered::Missing(payload) });
        };
        let Some(slot) = &mut self.slots[place] else { return Err(Undelivered::Gone) };
        slot.run(entry, payload, pe).map_err(Undelivered::Bad)?;
        if slot.site.is_leaving {
            self.slots[place] = None;
            self.empty.push(place);
            self.places.remove(&index);
            pe.chare_left();
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
        if self.places.contains_key(&index) || self.was_made(index) {
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
        let slot = Some(Slot { chare, site });
        match self.empty.pop() {
            Some(place) => {
                self.places.insert(index, place);
                self.slots[place] = slot;
            }
            None => {
                self.places.insert(index, self.slots.len());
                self.slots.push(slot);
            }
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.places.len()
    }
}

impl<C> TypedStore<C> {
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
        let mut store = TypedStore::<Mayfly> {
            collection,
            places: FxHashMap::default(),
            slots: Vec::new(),
            empty: Vec::new(),
            made: FxHashMap::default(),
        };
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
