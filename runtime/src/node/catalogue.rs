//! What a node knows of the chares of its run: their types, from the program, and the collections that have been made.

use crate::collection::Collection;
use crate::envelope::CollectionId;
use crate::object::ProgramTable;
use crate::proto::snapshot::Colour;
use dashmap::DashMap;
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The program's chare types, and the collections whose descriptions have arrived.
#[derive(Debug)]
pub(crate) struct Catalogue {
    program: Arc<ProgramTable>,
    collections: DashMap<CollectionId, Arc<Collection>>,
    /// While a snapshot is open: the colour of what is not of it, and those that were made in that.
    later: Mutex<Option<(Colour, FxHashSet<CollectionId>)>>,
}

impl Catalogue {
    /// A program without any collection.
    pub(super) fn new(program: Arc<ProgramTable>) -> Self {
        Self { program, collections: DashMap::new(), later: Mutex::default() }
    }

    /// Chare types and kernels of the program.
    pub(crate) fn program(&self) -> &Arc<ProgramTable> {
        &self.program
    }

    /// A collection, once its description has arrived.
    pub(crate) fn collection(&self, id: CollectionId) -> Option<Arc<Collection>> {
        self.collections.get(&id).map(|known| Arc::clone(&known))
    }

    /// The chare type of a collection, if that is known.
    pub(crate) fn chare_type_of(&self, id: CollectionId) -> Option<u16> {
        id.as_singles().or_else(|| self.collection(id).map(|known| known.chare_type))
    }

    /// All descriptions that have arrived, but for those that are not of a snapshot that is open.
    pub(super) fn all(&self) -> Vec<Arc<Collection>> {
        let later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        let is_later = |id: &CollectionId| later.as_ref().is_some_and(|(_, later)| later.contains(id));
        let known = self.collections.iter().filter(|known| !is_later(known.key()));
        known.map(|known| Arc::clone(&known)).collect()
    }

    /// A snapshot begins, of which those are not that will be made in this colour; or it is over.
    pub(super) fn set_later(&self, colour: Option<Colour>) {
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        *later = colour.map(|colour| (colour, FxHashSet::default()));
    }

    /// A description has arrived, of who has made it in that colour.
    pub(super) fn add(&self, colour: Option<Colour>, collection: Collection) {
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((later, made)) = &mut *later
            && colour == Some(*later)
        {
            made.insert(collection.id);
        }
        drop(later);
        self.collections.insert(collection.id, Arc::new(collection));
    }
}
