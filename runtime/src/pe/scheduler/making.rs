//! How a PE makes elements: all of a collection that belong to it, or one by one.

use super::{Scheduler, check_home, entry_begins, moved_broadcast, shelf};
use crate::collection::Collection;
use crate::envelope::{Arrived, CollectionId, ElementId, ElementIndex, Envelope, Packed, Payload, ToPe};
use crate::object::{CONSTRUCTOR, PupError};
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
            shelf.store.insert(collection.index_at(linear), Arrived::Packed(packed), &mut self.pe)?;
            count += 1;
        }
        shelf.made += count.unsigned_abs();
        self.pe.account().chares(count);
        let waiting = shelf.early.drain().flat_map(|(_, waiting)| waiting).collect();
        self.release(waiting);
        Ok(())
    }

    /// Makes an element that was asked for by itself.
    pub(super) fn insert(
        &mut self,
        id: CollectionId,
        index: ElementIndex,
        priority: Priority,
        payload: Payload,
    ) -> Result<(), PupError> {
        let Some(shelf) = shelf(&mut self.shelves, &mut self.early, &mut self.pe, id) else {
            let target = ToPe::Insert { collection: id, index };
            return self.keep_early(id, Envelope::new(target, priority, payload));
        };
        check_home(&mut self.pe, id, index)?;
        if self.pe.moved.locations.is_away(ElementId { collection: id, index }) {
            return Err(PupError::new(
                "a new element",
                format!("element {index:?} was made before, and has moved"),
            ));
        }
        entry_begins(&mut self.pe, shelf.chare_type, CONSTRUCTOR);
        payload.open(|init| shelf.store.insert(index, init, &mut self.pe))?;
        shelf.made += 1;
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
