//! The chunks that are on disk already, and need not be written again.

use super::files::{Files, committed, open};
use super::format::Place;
use super::saved::Saved;
use crate::digest::Digest;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A file of chunks of which less than one in so many bytes is needed is not referred to any more: what of it is needed is
/// written again, so that the file can be removed.
const USED_PARTS_MAX: u64 = 2;

/// Chunks that are on disk.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) chunks: FxHashMap<Digest, KnownChunk>,
    /// Lengths of the files of chunks.
    pub(super) files: BTreeMap<u32, u64>,
    /// Those of them that are not to be referred to any more.
    sparse: BTreeSet<u32>,
    /// What they are read from.
    pub(super) saved: Option<Saved>,
    /// These are all chunks of the last generation, and this process has written it.
    pub(super) is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KnownChunk {
    pub(super) place: Place,
    /// Whether this process has written or read it, so that it is what it should be.
    pub(super) is_certain: bool,
}

impl Known {
    /// The chunks of the newest generation that can be read, if there is one.
    pub(super) fn of_newest(dir: &Path) -> io::Result<Self> {
        let newest = committed(dir)?.into_iter().rev().find_map(|number| Saved::open(dir, number).ok());
        let mut known = Self {
            chunks: FxHashMap::default(),
            files: BTreeMap::new(),
            sparse: BTreeSet::new(),
            saved: None,
            is_whole: false,
        };
        let Some(saved) = newest else { return Ok(known) };
        known.files = saved.chunk_files().map(|file| (file.generation, file.bytes)).collect();
        for table in saved.tables() {
            // The chunks of a table that is damaged are written again.
            let Ok(rows) = saved.rows(table) else { continue };
            known.chunks.insert(table.place.digest, KnownChunk { place: table.place, is_certain: true });
            for place in rows.iter().flat_map(|row| row.places()) {
                known.chunks.insert(place.digest, KnownChunk { place: *place, is_certain: false });
            }
        }
        known.mark_sparse(|generation| {
            saved.chunk_files().find(|f| f.generation == generation).map_or(0, |f| f.used_bytes)
        });
        known.saved = Some(saved);
        Ok(known)
    }

    /// Whether the files are still there: who tidies up by hand must not ruin what is written next.
    pub(super) fn is_there(&self, dir: &Path) -> bool {
        let is_there = |(generation, bytes): (&u32, &u64)| {
            let file = fs::metadata(Files::of(dir, *generation).chunks);
            file.is_ok_and(|file| file.len() == *bytes)
        };
        self.files.iter().all(is_there)
    }

    /// The chunks of the generation that this process has written last.
    pub(super) fn of_own(
        chunks: FxHashMap<Digest, KnownChunk>,
        files: BTreeMap<u32, u64>,
        used_bytes: impl Fn(u32) -> u64,
    ) -> Self {
        let mut known = Self { chunks, files, sparse: BTreeSet::new(), saved: None, is_whole: true };
        known.mark_sparse(used_bytes);
        known
    }

    /// Finds the files that are hardly needed.
    fn mark_sparse(&mut self, used_bytes: impl Fn(u32) -> u64) {
        // One of which nothing is needed may be removed at any time.
        self.files.retain(|generation, _| used_bytes(*generation) > 0);
        let sparse = self
            .files
            .iter()
            .filter(|(generation, bytes)| used_bytes(**generation) < **bytes / USED_PARTS_MAX);
        self.sparse = sparse.map(|(generation, _)| *generation).collect();
    }

    /// What is stored of a chunk in a file that is not to be referred to any more, and its place there; nothing if there is no such
    /// chunk.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub(super) fn stored_in_sparse(
        &self,
        dir: &Path,
        digest: &Digest,
    ) -> io::Result<Option<(Place, Vec<u8>)>> {
        let Some(KnownChunk { place, .. }) = self.chunks.get(digest) else { return Ok(None) };
        if !self.sparse.contains(&place.generation) {
            return Ok(None);
        }
        let mut stored = vec![0; place.stored_bytes as usize];
        open(&Files::of(dir, place.generation).chunks)?.read_exact_at(&mut stored, place.offset)?;
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, "a chunk of an earlier generation is damaged");
        if place.is_of(&stored) { Ok(Some((*place, stored))) } else { Err(damaged()) }
    }

    /// The chunk with these bytes, if it is on disk. One that this process has not written is read once and compared:
    /// what has been damaged there must not be relied on for longer.
    pub(super) fn find(&self, digest: &Digest, bytes: Option<&[u8]>) -> Option<KnownChunk> {
        let chunk =
            *self.chunks.get(digest).filter(|chunk| !self.sparse.contains(&chunk.place.generation))?;
        let is_there = || {
            let mut there = Vec::new();
            let read = self.saved.as_ref().map(|saved| saved.read_chunk(&chunk.place, &mut there));
            matches!(read, Some(Ok(()))) && bytes == Some(&there[..])
        };
        (chunk.is_certain || is_there()).then_some(KnownChunk { is_certain: true, ..chunk })
    }
}
