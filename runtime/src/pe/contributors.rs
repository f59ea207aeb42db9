//! How many elements take part in reductions where some are destroyed, and inserted again.
//!
//! When an element has ended, each place on the way of a reduction, from its home up to the root, is told to wait for one
//! fewer from the reduction on to which it would have contributed next. So one that others had begun goes on without it.
//!
//! One that is to be inserted again is counted before it is made. On the way up each place waits for one more, from the
//! first reduction on that has begun neither there nor at a place before; where the root comes to is where the element
//! begins. On the way down each place is told that, and does not wait for it in the reductions between. So no reduction
//! can be complete anywhere that the new element takes part in, and none waits for it that had begun before.

use super::Pe;
use super::combine::{Place, Places};
use crate::envelope::{CollectionId, ElementIndex, Packed, PartialHeader, Payload, ToPe, Value};
use crate::ids::PeId;
use crate::proto::ProtocolError;
use crate::proto::contributors::Changes;
use crate::proto::reduction::Partial;
use crate::results::{Change, Contributors};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// What is said of reductions that have begun at one place: a reduction can be complete there because somebody is no longer
/// waited for.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Headers(FxHashMap<(CollectionId, u32), PartialHeader>);

impl Headers {
    /// A part of a reduction has come.
    pub(super) fn note(&mut self, header: &PartialHeader) {
        if header.section == 0 {
            let noted = || PartialHeader { parts: Vec::new(), ..header.clone() };
            self.0.entry((header.collection, header.sequence)).or_insert_with(noted);
        }
    }

    /// All of it has come.
    pub(super) fn forget(&mut self, header: &PartialHeader) {
        if header.section == 0 {
            self.0.remove(&(header.collection, header.sequence));
        }
    }
}

/// What is saved of both places of a PE.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SavedContributors([(FxHashMap<u64, Changes>, Headers); 2]);

impl Places {
    pub(super) fn saved_contributors(&self) -> SavedContributors {
        let saved = |place: &Place| (place.partials.changes().clone(), place.headers.clone());
        SavedContributors([&self.own, &self.node].map(saved))
    }

    pub(super) fn set_contributors(&mut self, saved: SavedContributors) {
        for (place, (changes, headers)) in [&mut self.own, &mut self.node].into_iter().zip(saved.0) {
            place.partials.set_changes(changes);
            place.headers = headers;
        }
    }
}

impl Place {
    /// So many more elements take part from a reduction on, or fewer; what had waited for no others.
    fn alter(
        &mut self,
        id: CollectionId,
        from: u32,
        by: i64,
    ) -> Result<Vec<(PartialHeader, Partial<Value>)>, ProtocolError> {
        let full = self.partials.alter(id.0, from, by)?;
        let with_header = |(sequence, partial)| match self.headers.0.remove(&(id, sequence)) {
            Some(header) => Ok((header, partial)),
            None => Err(ProtocolError(format!(
                "reduction {sequence} had begun when a program saved it whose elements could not be destroyed"
            ))),
        };
        full.into_iter().map(with_header).collect()
    }
}

impl Pe {
    /// So many elements that are at home here have ended, and take part in no reduction from that one on.
    pub(super) fn are_gone(&mut self, id: CollectionId, from: u32, count: u64) {
        self.alter_own(id, from, decrease(count));
        let to = self.combiner_here(id.0);
        self.say_of_contributors(to, id, Change::Fewer { from, count });
    }

    /// Has an element that is at home here and has ended be counted again, but in no reduction before `from`. The answer is
    /// a [`Change::Joined`] to this PE.
    pub(super) fn count_in(&mut self, id: CollectionId, index: ElementIndex, from: u32) {
        let from = from.max(self.reductions.own.partials.first_not_begun(id.0));
        self.alter_own(id, from, 1);
        let to = self.combiner_here(id.0);
        self.say_of_contributors(to, id, Change::Joins { index, from, via: vec![(self.id, from)] });
    }

    /// Takes what another place says of who takes part; the element that may be made now, and where it begins.
    pub(super) fn take_contributors(&mut self, said: Contributors) -> Option<(ElementIndex, u32)> {
        let Contributors { collection: id, change } = said;
        let above = self.combiner_above(id.0).and_then(Result::ok);
        match change {
            Change::Fewer { from, count } => {
                self.alter_below(id, from, decrease(count));
                if let Some(to) = above {
                    self.say_of_contributors(to, id, Change::Fewer { from, count });
                }
            }
            Change::Joins { index, from, mut via } => {
                let from = from.max(self.reductions.node.partials.first_not_begun(id.0));
                self.alter_below(id, from, 1);
                via.push((self.id, from));
                match above {
                    Some(to) => self.say_of_contributors(to, id, Change::Joins { index, from, via }),
                    None => self.say_of_contributors(self.id, id, Change::Joined { index, from, via }),
                }
            }
            Change::Joined { index, from, mut via } => {
                let (_, counted_from) = via.pop()?;
                let is_own = via.is_empty();
                // First more and then fewer, so that nothing seems complete in between.
                for (at, by) in [(from, 1), (counted_from, -1)] {
                    if is_own { self.alter_own(id, at, by) } else { self.alter_below(id, at, by) }
                }
                let Some(&(to, _)) = via.last() else { return Some((index, from)) };
                self.say_of_contributors(to, id, Change::Joined { index, from, via });
            }
        }
        None
    }

    fn alter_own(&mut self, id: CollectionId, from: u32, by: i64) {
        let Some(known) = self.collection(id) else { return };
        match self.reductions.own.alter(id, from, by) {
            Ok(full) => {
                let base = known.count_on(self.id);
                full.into_iter().for_each(|complete| self.own_are_in(&known, base, complete));
            }
            Err(error) => self.reduction_failed(&known, &error),
        }
    }

    fn alter_below(&mut self, id: CollectionId, from: u32, by: i64) {
        let Some(known) = self.collection(id) else { return };
        match self.reductions.node.alter(id, from, by) {
            Ok(full) => {
                let base = self.elements_below(id);
                for complete in full {
                    let Some(table) = self.reducer(&known, complete.0.reducer) else { return };
                    self.all_below_are_in(base, complete, table);
                }
            }
            Err(error) => self.reduction_failed(&known, &error),
        }
    }

    fn say_of_contributors(&mut self, to: PeId, collection: CollectionId, change: Change) {
        let said = ToPe::Contributors(Box::new(Contributors { collection, change }));
        self.send_to(to, said, i32::MIN, |_| Payload::packed(Packed::default()));
    }
}

fn decrease(count: u64) -> i64 {
    i64::try_from(count).map_or(i64::MIN, i64::wrapping_neg)
}
