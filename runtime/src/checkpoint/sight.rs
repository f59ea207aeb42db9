//! Nodes that see the folder of the checkpoint from which a run goes on: each PE reads its own records there.
//!
//! The launcher says where it reads the checkpoint, and the checksum of the manifest, which has those of all the rest. So it
//! does not matter to whom the folder belongs: a node that finds anything else there is given its records by the launcher,
//! from the first on that it cannot read. Should that be damaged for the launcher as well, the run ends with its sentence.

use super::saved::Saved;
use super::taken_in::TakenIn;
use crate::ids::PeId;
use crate::object::ProgramTable;
use crate::saved::{FindSaved, SavedHere, SavedPlace, SavedRecords};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a node sees of checkpoints.
pub struct Sight {
    program: Arc<ProgramTable>,
    /// What is open, so that PEs which read at the same time share it.
    open: Mutex<Option<(SavedPlace, Weak<TakenIn>)>>,
}

impl Sight {
    /// That of a node which runs this program.
    #[must_use]
    pub fn new(program: Arc<ProgramTable>) -> Self {
        Self { program, open: Mutex::default() }
    }
}

impl FindSaved for Sight {
    fn find(&self, place: &SavedPlace) -> Result<Arc<dyn SavedHere>, String> {
        // Whoever comes meanwhile waits, and finds it open.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, taken_in)) = &*open
            && known == place
            && let Some(taken_in) = taken_in.upgrade()
        {
            return Ok(taken_in);
        }
        let saved = Saved::open_same(place)?;
        let taken_in = TakenIn::new(Arc::new(saved), &self.program).map_err(|why| why.to_string())?;
        let taken_in = Arc::new(taken_in);
        *open = Some((place.clone(), Arc::downgrade(&taken_in)));
        Ok(taken_in)
    }
}

impl SavedHere for TakenIn {
    fn of_pe(&self, pe: PeId) -> SavedRecords<'_> {
        Box::new(self.of_pe(pe, 0, |_| {}))
    }
}
