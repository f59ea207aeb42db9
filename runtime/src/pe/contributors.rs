//! How many elements take part in reductions, at both places of a PE where these come together; see the
//! [protocol](crate::proto::contributors).

use super::Pe;
use super::combine::{Place, Places};
use crate::collection::Collection;
use crate::envelope::{
    CollectionId, Contributors, ElementIndex, Packed, PartialHeader, Payload, ToPe, Value,
};
use crate::ids::PeId;
use crate::proto::ProtocolError;
use crate::proto::contributors::{Altered, Change};
use crate::proto::head_count::HeadCount;
use crate::proto::reduction::Partial;
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

/// A reduction of which all parts have come.
type Complete = (PartialHeader, Partial<Value>);

/// What is saved of both places of a PE.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SavedContributors([(FxHashMap<u64, HeadCount>, Headers); 2]);

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
    /// Takes what is said to this place: the reductions that go on because of it, and what else follows.
    fn take(
        &mut self,
        id: CollectionId,
        at: (PeId, Option<PeId>),
        change: Change,
    ) -> Result<(Vec<Complete>, Altered<Value>), ProtocolError> {
        let mut altered = self.partials.take(id.0, at, change)?;
        let with_header = |(sequence, partial)| match self.headers.0.remove(&(id, sequence)) {
            Some(header) => Ok((header, partial)),
            None => Err(ProtocolError(format!(
                "reduction {sequence} had begun when a program saved it whose elements could not be destroyed"
            ))),
        };
        let full =
            std::mem::take(&mut altered.full).into_iter().map(with_header).collect::<Result<_, _>>()?;
        Ok((full, altered))
    }
}

impl Pe {
    /// So many elements that are at home here have ended, and take part in no reduction from that one on.
    pub(super) fn are_gone(&mut self, id: CollectionId, from: u32, count: u64) {
        self.take_own(id, Change::Fewer { from, count });
    }

    /// Has an element that is at home here and has ended be counted again, but in no reduction before `from`. The answer is
    /// a [`Change::Joined`] to this PE.
    pub(super) fn count_in(&mut self, id: CollectionId, index: ElementIndex, from: u32) {
        self.take_own(id, Change::Joins { index, from, via: Vec::new() });
    }

    /// Takes what another place says of who takes part; the element that may be made now, and where it begins.
    pub(super) fn take_contributors(&mut self, said: Contributors) -> Option<(ElementIndex, u32)> {
        let Contributors { collection: id, change } = said;
        if matches!(&change, Change::Joined { via, .. } if via.len() == 1) {
            return self.take_own(id, change);
        }
        let known = self.collection(id)?;
        let above = self.combiner_above(id.0).and_then(Result::ok);
        let taken = self.reductions.node.take(id, (self.id, above), change);
        let (full, altered) = self.understood(&known, taken)?;
        let base = self.elements_below(id);
        for complete in full {
            let table = self.reducer(&known, complete.0.reducer)?;
            self.all_below_are_in(base, complete, table);
        }
        self.follows(id, altered)
    }

    fn take_own(&mut self, id: CollectionId, change: Change) -> Option<(ElementIndex, u32)> {
        let known = self.collection(id)?;
        let above = Some(self.combiner_here(id.0));
        let taken = self.reductions.own.take(id, (self.id, above), change);
        let (full, altered) = self.understood(&known, taken)?;
        let base = known.count_on(self.id);
        full.into_iter().for_each(|complete| self.own_are_in(&known, base, complete));
        self.follows(id, altered)
    }

    fn understood<T>(&self, known: &Collection, taken: Result<T, ProtocolError>) -> Option<T> {
        taken.map_err(|error| self.reduction_failed(known, &error)).ok()
    }

    fn follows(&mut self, collection: CollectionId, altered: Altered<Value>) -> Option<(ElementIndex, u32)> {
        if let Some((to, change)) = altered.say {
            let said = ToPe::Contributors(Box::new(Contributors { collection, change }));
            self.send_to(to, said, i32::MIN, |_| Payload::packed(Packed::default()));
        }
        altered.begins
    }
}
