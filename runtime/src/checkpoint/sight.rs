//! Nodes that see the folder of the checkpoint from which a run goes on: each PE reads its own records there.
//!
//! The launcher says where it reads the checkpoint, and the checksum of the manifest, which has those of all the rest. So it
//! does not matter to whom the folder belongs: a node that finds anything else there is given its records by the launcher,
//! from the first on that it cannot read. Should that be damaged for the launcher as well, the run ends with its sentence.
//!
//! The same for a checkpoint that is being written: there the launcher has put a token, by which a node knows that it sees the same.

use super::codec::Compressor;
use super::disk::{Patch as _, SystemFile};
use super::files::{Files, open};
use super::saved::Saved;
use super::taken_in::TakenIn;
use crate::ids::PeId;
use crate::object::ProgramTable;
use crate::saved::{
    FindSaved, FoundWriting, PAGE_BYTES, SavedHere, SavedPlace, SavedRecords, StoreChunks, WriteHere,
    WritingPlace,
};
use nix::fcntl::OFlag;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
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

    fn find_writing(&self, place: &WritingPlace) -> Result<FoundWriting, String> {
        let files = Files::of(Path::new(&place.dir), place.generation);
        let mut token = Vec::new();
        let read = open(&files.token)
            .and_then(|file| file.take(1 + place.token.len() as u64).read_to_end(&mut token));
        read.map_err(|error| format!("{}: {error}", files.token.display()))?;
        if token != place.token {
            return Err(format!("{} is of another run", files.token.display()));
        }
        let file = File::options().write(true).open(&files.chunks);
        let file = file.map_err(|error| format!("{}: {error}", files.chunks.display()))?;
        // Not every file system has that.
        let direct =
            File::options().write(true).custom_flags(OFlag::O_DIRECT.bits()).open(&files.chunks).ok();
        Ok((Box::new(Stored::default()), Box::new(Chunks { file: SystemFile::new(file), direct })))
    }
}

/// What compresses chunks, and room for one.
#[derive(Default)]
struct Stored {
    compressor: Compressor,
    compressed: Vec<u8>,
}

impl StoreChunks for Stored {
    fn append(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> bool {
        let is_compressed = self.compressor.compress(chunk, &mut self.compressed);
        out.extend_from_slice(if is_compressed { &self.compressed } else { chunk });
        is_compressed
    }
}

/// The file of chunks of a generation that somebody else writes.
struct Chunks {
    file: SystemFile,
    /// The same, for what the disk can fetch itself from where it lies. To copy it into the system's memory first would cost as much
    /// of a core as its checksums, beside PEs that have none to spare.
    direct: Option<File>,
}

impl WriteHere for Chunks {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let page = PAGE_BYTES as u64;
        let is_aligned =
            [offset, bytes.len() as u64, bytes.as_ptr().addr() as u64].map(|at| at % page == 0) == [true; 3];
        if let Some(direct) = self.direct.as_ref().filter(|_| is_aligned) {
            match direct.write_all_at(bytes, offset) {
                // Some systems want more than that.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.direct = None,
                written => return written,
            }
        }
        self.file.write_at(offset, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl SavedHere for TakenIn {
    fn of_pe(&self, pe: PeId) -> SavedRecords<'_> {
        Box::new(self.of_pe(pe, 0, |_| {}))
    }
}
