//! What a PE says of the loads of its chares, and what it is told to do about them.

use super::{Scheduler, moved_broadcast};
use crate::envelope::{ElementId, Payload};
use crate::ids::PeId;
use crate::node::naming::Brief;
use crate::object::PupError;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Finding out how large chares are takes at most this part of the PE's time.
const SIZES: u64 = 1000;

/// How large the chares of a collection are, by one of them, and when one is to be looked at again.
#[derive(Default)]
pub(super) struct Sizes {
    of: FxHashMap<crate::ids::CollectionId, u64>,
    again_ns: u64,
}

impl Scheduler {
    /// The entry method that ran last, and those for which it stands, took so long.
    #[cold]
    pub(super) fn timed(&mut self, took_ns: u64) {
        let Brief { collection, index, .. } = self.doing.brief;
        if !self.doing.is_many
            && let (Some(collection), Some(index)) = (collection, index.or(self.pe.running))
        {
            self.pe.loads.worked(ElementId { collection, index }, took_ns);
        }
        self.say_loads();
    }

    /// A message for many has reached all of them.
    pub(super) fn many_end(&mut self) {
        self.doing.is_many = true;
        let super::Pe { loads, node, .. } = &mut self.pe;
        loads.many_end(|| node.now_ns());
    }

    pub(super) fn stretch_begins(&mut self) {
        if self.pe.loads.is_on {
            let now_ns = self.pe.node.now_ns();
            self.pe.loads.stretch_begins(now_ns);
        }
    }

    pub(super) fn stretch_ends(&mut self) {
        if self.pe.loads.is_on {
            let now_ns = self.pe.node.now_ns();
            self.pe.loads.stretch_ends(now_ns);
            self.say_loads();
        }
    }

    /// Says what chares did, if it is time.
    fn say_loads(&mut self) {
        let now_ns = self.pe.node.now_ns();
        if !self.pe.loads.is_due(now_ns) {
            return;
        }
        let node = std::sync::Arc::clone(&self.pe.node);
        let busy_ns = self.pe.account().busy_ns();
        let sizes = RefCell::new(&mut self.sizes);
        let shelves = &self.shelves;
        let bytes = |element: ElementId| {
            sizes.borrow_mut().of(element, now_ns, || {
                let shelf = shelves.get(element.collection)?;
                let slot = shelf.store.find(element.index)?;
                let begin_ns = node.now_ns();
                let bytes = shelf.store.packed_bytes(slot);
                Some((bytes, node.now_ns().saturating_sub(begin_ns)))
            })
        };
        let is_fixed =
            |element: ElementId| node.collection(element.collection).is_some_and(|known| known.is_fixed);
        self.pe.loads.say((now_ns, busy_ns), node.pes().said(self.rank), is_fixed, bytes);
    }

    /// Sends elements to other PEs, as the launcher says.
    pub(super) fn migrate(&mut self, payload: Payload) -> Result<(), PupError> {
        let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
        let wrong = |why: String| PupError::new("elements that are to move", why);
        let moves: Vec<(ElementId, PeId)> =
            postcard::from_bytes(&packed.body).map_err(|e| wrong(e.to_string()))?;
        let pe_count = self.pe.node.topology().pe_count();
        for (element, to) in moves {
            if to.0 >= pe_count {
                return Err(wrong(format!("{to:?} does not exist")));
            }
            if self.pe.collection(element.collection).is_none_or(|known| !known.is_fixed) {
                self.pe.will_leave(element, to);
            }
        }
        // It does not count for quiescence that the launcher sent it, so that what it does must not either.
        self.pe.account().goes_on(1);
        Ok(())
    }
}

impl Sizes {
    /// How large an element is, by its collection; `find` tells it of that element, and how long that took.
    fn of(&mut self, element: ElementId, now_ns: u64, find: impl FnOnce() -> Option<(u64, u64)>) -> u64 {
        let known = self.of.get(&element.collection).copied();
        if (known.is_none() || now_ns >= self.again_ns)
            && let Some((bytes, took_ns)) = find()
        {
            self.again_ns = now_ns + took_ns * SIZES;
            self.of.insert(element.collection, bytes);
            return bytes;
        }
        known.unwrap_or_default()
    }
}
