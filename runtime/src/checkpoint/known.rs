//! The chunks that are on disk already, and need not be written again.

use super::files::{Files, committed};
use super::format::Place;
use super::saved::Saved;
use crate::digest::Digest;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs;
use std::io;
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
        let mut known =
            Self { chunks: FxHashMap::default(), files: BTreeMap::new(), saved: None, is_whole: false };
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
        known.forget_sparse(|generation| {
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

    /// Forgets the chunks in files that are hardly needed.
    pub(super) fn forget_sparse(&mut self, used_bytes: impl Fn(u32) -> u64) {
        let is_sparse = |generation: &u32, bytes: &u64| {
            let used = used_bytes(*generation);
            // One of which nothing is needed may be removed at any time.
            used == 0 || used < bytes / USED_PARTS_MAX
        };
        self.files.retain(|generation, bytes| !is_sparse(generation, bytes));
        self.chunks.retain(|_, chunk| self.files.contains_key(&chunk.place.generation));
    }

    /// The chunk with these bytes, if it is on disk. One that this process has not written is read once and compared:
    /// what has been damaged there must not be relied on for longer.
    pub(super) fn find(&self, digest: &Digest, bytes: Option<&[u8]>) -> Option<KnownChunk> {
        let chunk = *self.chunks.get(digest)?;
        let is_there = || {
            let mut there = Vec::new();
            let read = self.saved.as_ref().map(|saved| saved.read_chunk(&chunk.place, &mut there));
            matches!(read, Some(Ok(()))) && bytes == Some(&there[..])
        };
        (chunk.is_certain || is_there()).then_some(KnownChunk { is_certain: true, ..chunk })
    }
}
