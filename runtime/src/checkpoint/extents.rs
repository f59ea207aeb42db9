//! Who writes where in the file of chunks of a generation. Nodes that see the folder write their chunks themselves, to extents that
//! they ask for; the rest is written by the launcher, which places what they say that they wrote.
//!
//! Extents begin at multiples of [`ALIGNED_BYTES`]: hosts that share a file system keep whole pages of a file, and no two write to
//! one. So there may be gaps, which take no room on most disks.

use super::files::{Files, open};
use super::folder::Folder;
use super::format::Place;
use crate::ids::PeId;
use crate::saved::{EXTENT_MAX_BYTES, Extent, GiveExtents, WritingPlace};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::absolute;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// No page of any system that runs is longer.
const ALIGNED_BYTES: u64 = 64 << 10;
/// The launcher takes so much for itself where it cannot go on behind what it has written.
const OWN_BYTES: u64 = 256 << 10;

/// The file of chunks of the generation that is being written, in parts.
#[derive(Debug)]
pub(super) struct Extents {
    folder: Arc<Folder>,
    files: Files,
    generation: u32,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    /// All before has been given to somebody.
    end: u64,
    /// Ends of the extents of PEs, by where they begin, and whose they are.
    given: BTreeMap<u64, (u64, PeId)>,
    /// By what nodes know the folder, as soon as one has asked.
    token: Option<[u8; 32]>,
    /// No PE is to write any more.
    is_closed: bool,
}

impl Extents {
    pub(super) fn new(folder: Arc<Folder>, files: Files, generation: u32) -> Self {
        Self { folder, files, generation, now: Mutex::default() }
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for so many bytes of the launcher's own, which is to begin at `next` and has some left from there up to `end`; where
    /// it begins, and ends. Elsewhere if somebody else was given what follows.
    pub(super) fn take(&self, next: u64, end: u64, bytes: u64) -> (u64, u64) {
        if next + bytes <= end {
            return (next, end);
        }
        let mut now = self.now();
        let begin = if now.end == end { next } else { now.end.next_multiple_of(ALIGNED_BYTES) };
        now.end = if begin == next { next + bytes } else { begin + bytes.max(OWN_BYTES) };
        (begin, now.end)
    }

    /// Whether a PE was given the room where it says that a chunk is.
    pub(super) fn has_room(&self, pe: PeId, place: &Place) -> bool {
        let now = self.now();
        let Some((_, (end, whose))) = now.given.range(..=place.offset).next_back() else { return false };
        let is_inside = place.offset.checked_add(place.stored_bytes.into()).is_some_and(|last| last <= *end);
        is_inside && *whose == pe
    }

    /// No PE writes any more, and none is to see the folder. Whether any has asked for room.
    pub(super) fn close(&self) -> io::Result<bool> {
        let mut now = self.now();
        now.is_closed = true;
        let was_seen = now.token.take().is_some();
        if was_seen {
            self.folder.disk.remove(&self.files.token)?;
        }
        Ok(was_seen)
    }

    /// Whether what PEs wrote is there, by these chunks. The file is opened anew, because systems that share it with others
    /// look then for what those have written.
    pub(super) fn are_there<'a>(&self, mut places: impl Iterator<Item = &'a Place>) -> io::Result<bool> {
        let file = open(&self.files.chunks)?;
        let mut stored = Vec::new();
        Ok(places.all(|place| {
            stored.resize(place.stored_bytes as usize, 0);
            file.read_exact_at(&mut stored, place.offset).is_ok() && place.is_of(&stored)
        }))
    }

    /// Puts the token into the folder. Nothing need outlast a crash of it; but it has to be closed, before others see it.
    fn token(&self, now: &mut Now) -> io::Result<[u8; 32]> {
        if let Some(token) = now.token {
            return Ok(token);
        }
        let mut token = [0; 32];
        SystemRandom::new().fill(&mut token).map_err(|_| io::Error::other("there are no random numbers"))?;
        let mut out = self.folder.disk.create(&self.files.token)?;
        now.token = Some(token);
        out.write_all(&token)?;
        Ok(token)
    }
}

impl GiveExtents for Extents {
    fn give(&self, pe: PeId, bytes: u64) -> Option<Extent> {
        let mut now = self.now();
        if now.is_closed || bytes > EXTENT_MAX_BYTES {
            return None;
        }
        let dir = absolute(&self.folder.dir).ok()?.to_str()?.to_string();
        let token = self.token(&mut now).ok()?;
        let place = WritingPlace { dir, generation: self.generation, token };
        let offset = now.end.next_multiple_of(ALIGNED_BYTES);
        if bytes > 0 {
            let end = offset + bytes;
            now.end = end;
            now.given.insert(offset, (end, pe));
        }
        Some(Extent { place, offset, bytes })
    }
}
