//! What a node knows of the chares of its run: their types, from the program, and the collections that have been made.

use crate::collection::Collection;
use crate::envelope::CollectionId;
use crate::object::ProgramTable;
use dashmap::DashMap;
use std::sync::Arc;

/// The program's chare types, and the collections whose descriptions have arrived.
#[derive(Debug)]
pub(crate) struct Catalogue {
    program: Arc<ProgramTable>,
    collections: DashMap<CollectionId, Arc<Collection>>,
}

impl Catalogue {
    /// A program without any collection.
    pub(super) fn new(program: Arc<ProgramTable>) -> Self {
        Self { program, collections: DashMap::new() }
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

    /// All descriptions that have arrived.
    pub(super) fn all(&self) -> Vec<Arc<Collection>> {
        self.collections.iter().map(|known| Arc::clone(&known)).collect()
    }

    /// A description has arrived.
    pub(super) fn add(&self, collection: Collection) {
        self.collections.insert(collection.id, Arc::new(collection));
    }
}
