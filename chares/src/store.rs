//! The elements of one collection on one PE, behind the runtime's trait.

use crate::chare::{Chare, EntryTable, Index};
use crate::ctx::{Ctx, Site};
use crate::entries::open;
use runtime::envelope::{CollectionId, ElementIndex, Packed, Payload};
use runtime::object::{ChareType, PupError, Store, Undelivered};
use runtime::pe::Pe;
use rustc_hash::{FxHashMap, FxHashSet};

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
        gone: FxHashSet::default(),
    })
}

struct TypedStore<C> {
    collection: CollectionId,
    places: FxHashMap<ElementIndex, usize>,
    /// A slot is empty when its chare was destroyed, until another takes it.
    slots: Vec<Option<Slot<C>>>,
    empty: Vec<usize>,
    /// Single chares that were destroyed here: what comes for them is dropped. 12 bytes each.
    gone: FxHashSet<ElementIndex>,
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
            let is_gone = self.gone.contains(&index);
            return Err(if is_gone { Undelivered::Gone } else { Undelivered::Missing(payload) });
        };
        let Some(slot) = &mut self.slots[place] else { return Err(Undelivered::Gone) };
        slot.run(entry, payload, pe).map_err(Undelivered::Bad)?;
        if slot.site.is_leaving {
            self.slots[place] = None;
            self.empty.push(place);
            self.places.remove(&index);
            self.gone.insert(index);
            pe.chare_left();
        }
        Ok(())
    }

    fn deliver_all(&mut self, entry: u16, payload: &Packed, pe: &mut Pe) -> Result<u64, PupError> {
        let mut count = 0;
        for slot in self.slots.iter_mut().flatten() {
            slot.run(entry, Payload::Packed(payload.clone()), pe)?;
            count += 1;
        }
        Ok(count)
    }

    fn insert(&mut self, index: ElementIndex, init: Payload, pe: &mut Pe) -> Result<(), PupError> {
        if self.places.contains_key(&index) || self.gone.contains(&index) {
            let at = &index.0[..C::Index::DIMENSIONS];
            pe.fail(format!("element {at:?} of an array of {} was made twice", <C as EntryTable>::NAME));
            return Ok(());
        }
        pe.runs(index);
        let collection = self.collection;
        let mut site = Site { collection, index, sequence: 0, sections: Vec::new(), is_leaving: false };
        let chare = C::new(open(init)?, &mut Ctx::new(pe, &mut site));
        if site.is_leaving {
            // Destroyed by its own constructor.
            self.gone.insert(index);
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
