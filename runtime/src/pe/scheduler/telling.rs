//! What a PE says of the loads of its chares, and what it is told to do about them.

use super::{Pe, Scheduler, moved_broadcast};
use crate::envelope::{Envelope, Packed, Payload, PeOrder, Target};
use crate::ids::{CollectionId, ElementId, PeId};
use crate::node::naming::Brief;
use crate::object::PupError;
use crate::pe::tally::Timed;
use loadbalance::balance::Mobility;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Finding out how large chares are takes at most this part of the PE's time.
const SIZES: u64 = 1000;

/// How large the chares of a collection are, by one of them, and when one is to be looked at again.
#[derive(Default)]
pub(super) struct Sizes {
    of: FxHashMap<CollectionId, u64>,
    again_ns: u64,
}

impl Scheduler {
    /// The entry method that ran last, and those for which it stands, took so long.
    #[cold]
    pub(super) fn timed(&mut self, timed: Timed) {
        let Brief { collection, index, .. } = self.pe.doing.brief;
        let (many, element) = (self.pe.doing.many, index.or(self.pe.running));
        if many.is_none()
            && let (Some(collection), Some(index)) = (collection, element)
        {
            self.pe.loads.worked(ElementId { collection, index }, timed);
        }
        let account = self.pe.account();
        if let Some(ran) = account.running() {
            let (count, begun) = many.unwrap_or((1, 1));
            let calls = u64::from(timed.stands_for - 1) * count / begun.max(1) + count;
            let element = element.filter(|_| many.is_none());
            account.tally().ran(ran, timed, (calls, element), account.switched_ns());
            self.pe.sample(ran, timed);
        }
        let now_ns = self.pe.account().switched_ns();
        if self.pe.loads.is_due(now_ns) {
            self.give_up_waiting(now_ns);
        }
        self.say_loads();
    }

    /// If the message that comes next is followed, what it starts is told of.
    #[inline]
    pub(super) fn looks_for_mark(&mut self, target: &Target, bytes: u64) {
        let mark = match target {
            Target::Message(message) => message.mark(),
            Target::All { mark, .. } => *mark,
            Target::Section(section) => section.mark,
            _ => return,
        };
        if !mark.is_none() {
            self.pe.started_by(mark, bytes);
        }
    }

    /// A message for so many has reached all of them, for which an entry method began so often.
    pub(super) fn many_end(&mut self, count: u64, begun: u64) {
        self.pe.doing.many = Some((count, begun));
        let Pe { loads, node, .. } = &mut self.pe;
        loads.many_end(|| node.now_ns());
    }

    /// The PE, which has just switched from being idle, has something to do again.
    pub(super) fn stretch_begins(&mut self) {
        let now_ns = self.pe.account().switched_ns();
        self.pe.loads.stretch_begins(now_ns);
    }

    /// The PE, which has just switched to being idle, has nothing to do.
    pub(super) fn stretch_ends(&mut self) {
        let now_ns = self.pe.account().switched_ns();
        self.pe.loads.stretch_ends(now_ns);
        self.say_loads();
    }

    /// Has chares move that were given time to say when, and have not. Only of a PE that goes on: one that is about to sleep
    /// would not see what it tells itself.
    fn give_up_waiting(&mut self, now_ns: u64) {
        if self.pe.points.is_empty() {
            return;
        }
        let moves = self.pe.points.given_up(now_ns);
        if !moves.is_empty() {
            let body = postcard::to_stdvec(&moves).expect("moves hold nothing that postcard refuses");
            let payload = Payload::packed(Packed { body: body.into(), attachments: Vec::new() });
            self.pe.queue.push(Envelope::new(Target::Order(PeOrder::Migrate), i32::MIN, payload));
        }
    }

    /// Says what chares did, if it is time. The PE has just looked at the clock, to switch.
    fn say_loads(&mut self) {
        let now_ns = self.pe.account().switched_ns();
        let population = self.pe.account().population();
        if population != self.counted {
            self.counted = population;
            let counts = self.shelves.iter().map(|(_, shelf)| (shelf.chare_type, shelf.store.len()));
            self.pe.account().tally().holds(counts);
        }
        if !self.pe.loads.is_due(now_ns) {
            return;
        }
        let (node, busy_ns) = (Arc::clone(&self.pe.node), self.pe.account().busy_ns());
        let (shelves, sizes) = (&self.shelves, &mut self.sizes);
        let bytes = |element: ElementId| {
            sizes.of(element, now_ns, || {
                let shelf = shelves.get(element.collection)?;
                let slot = shelf.store.find(element.index)?;
                let begin_ns = node.now_ns();
                let bytes = shelf.store.packed_bytes(slot);
                Some((bytes, node.now_ns().saturating_sub(begin_ns)))
            })
        };
        let Pe { id, loads, traffic, .. } = &mut self.pe;
        let has_limited = loads.has_limited;
        let mobility = |element: ElementId| match shelves.get(element.collection) {
            Some(shelf) if shelf.is_fixed => None,
            Some(shelf) if has_limited => Some(shelf.mobility(element.index)),
            _ => Some(Mobility::Anywhere),
        };
        loads.say((now_ns, busy_ns), node.pes().said(*id), traffic, mobility, bytes);
    }

    /// Sends elements to other PEs, as the launcher says; those that may not go there stay.
    pub(super) fn migrate(&mut self, payload: Payload) -> Result<(), PupError> {
        let Payload::Packed(packed) = payload else { return Err(moved_broadcast()) };
        let moves: Vec<(ElementId, PeId)> = postcard::from_bytes(&packed.body)
            .map_err(|error| PupError::new("elements that are to move", error.to_string()))?;
        let now_ns = self.pe.node.now_ns();
        for (element, to) in moves {
            if !self.pe.points.wait(element, to, now_ns) {
                self.pe.leave_for(element, to);
            }
        }
        // The launcher sends this without counting it, and what is processed has to have been created.
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
