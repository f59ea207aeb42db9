//! How a PE makes elements: all of a collection that belong to it, or one by one.

use super::{Scheduler, check_home, entry_begins, moved_broadcast};
use crate::collection::Collection;
use crate::envelope::{Arrived, CollectionId, ElementId, ElementIndex, Envelope, Packed, Payload, ToPe};
use crate::object::{CONSTRUCTOR, PupError};
use crate::pe::ending::Remains;
use crate::pe::seeds::is_seed;
use crate::priority::Priority;

impl Scheduler {
    /// Makes what belongs here of a collection that has become known.
    pub(super) fn create(&mut self, id: CollectionId, payload: Payload) -> Result<(), PupError> {
        let Some(collection) = self.pe.collection(id) else { return Ok(()) };
        if !self.has_shelf(id) {
            return Ok(());
        }
        if !collection.is_deferred {
            let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
            entry_begins(&mut self.pe, collection.chare_type, CONSTRUCTOR);
            self.construct_all(&collection, &packed)?;
        }
        self.pe.unpark(id);
        self.release_early(id);
        Ok(())
    }

    fn construct_all(&mut self, collection: &Collection, packed: &Packed) -> Result<(), PupError> {
        let Some(shelf) = self.shelves.get_mut(collection.id) else { return Ok(()) };
        let mut count = 0_i64;
        for linear in collection.on_pe(self.pe.id) {
            let (index, init) = (collection.index_at(linear), Arrived::Packed(packed));
            shelf.store.insert(index, None, init, &mut self.pe)?;
            count += 1;
        }
        shelf.made += count.unsigned_abs();
        self.pe.account().chares(count);
        let waiting = shelf.early.drain().flat_map(|(_, waiting)| waiting).collect();
        self.release(waiting);
        Ok(())
    }

    /// Makes an element that was asked for by itself, perhaps at the place of one that was destroyed.
    pub(super) fn insert(
        &mut self,
        id: CollectionId,
        index: ElementIndex,
        priority: Priority,
        payload: Payload,
    ) -> Result<(), PupError> {
        if !self.has_shelf(id) {
            let target = ToPe::Insert { collection: id, index };
            return self.keep_early(id, Envelope::new(target, priority, payload));
        }
        check_home(&mut self.pe, id, index)?;
        let mut payload = Some(payload);
        if self.insert_later((id, index), &priority, &mut payload) {
            return Ok(());
        }
        if let Some(shelf) = self.shelves.get_mut(id) {
            shelf.made += 1;
        }
        payload.map_or(Ok(()), |payload| self.construct((id, index), None, payload))
    }

    /// Makes an element, at the place of one that was destroyed if something remains of that.
    pub(super) fn construct(
        &mut self,
        (id, index): (CollectionId, ElementIndex),
        remains: Option<Remains>,
        payload: Payload,
    ) -> Result<(), PupError> {
        let Some(shelf) = self.shelves.get_mut(id) else { return Ok(()) };
        entry_begins(&mut self.pe, shelf.chare_type, CONSTRUCTOR);
        self.pe.loads.made(ElementId { collection: id, index });
        payload.open(|init| shelf.store.insert(index, remains, init, &mut self.pe))?;
        let waiting = shelf.early.remove(&index).unwrap_or_default();
        self.pe.account().chares(1);
        if is_seed(ElementId { collection: id, index }) {
            self.pe.seed_made();
        }
        self.release(waiting);
        if !self.lacks_elements(id) {
            self.release_early(id);
        }
        Ok(())
    }

    /// Whether elements of a deferred collection that belong here have not been inserted yet. Broadcasts
    /// wait for them, so that "every element" does not depend on timing.
    pub(super) fn lacks_elements(&mut self, id: CollectionId) -> bool {
        if id.as_singles().is_some() {
            return false;
        }
        let Some(collection) = self.pe.collection(id) else { return true };
        let Some(shelf) = self.shelves.get(id) else { return true };
        shelf.made < collection.count_on(self.pe.id)
    }
}
