//! Generations in an object store, such as S3: copies there and back.
//!
//! `FORMAT.md` says which objects there are. Files of chunks go there in pieces, each named by the checksum of its bytes, so
//! that what is there already is not sent again, neither by a copy that was cut off nor for the next generation. `COMMIT` is
//! put last. Nothing is ever removed from there.

use super::super::format::{Index, Place, Row, read_table};
use super::super::manifest::{FileSum, Listed, Manifest};
use super::super::saved::{Saved, Trouble, is_committed_by, manifest_of};
use super::error::CopyError;
use super::messages::{Copied, Ends, Message, Offer};
use super::take::take_here;
use crate::failure::{Failure, Kind};
use crate::size::Size;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Chunks that begin in the same so many bytes of a file are in the same piece.
const PIECE_BYTES: u64 = if cfg!(test) { 128 << 10 } else { 8 << 20 };
/// No object is longer: a piece ends with its last chunk, which may be a table of records.
const OBJECT_MAX_BYTES: u64 = 1 << 30;
const PIECES: &str = "pieces/";
/// Says which pieces a generation needs.
const LIST: &str = "PIECES.json";
const NONE: &str = "there is no checkpoint: no generation was completed";

/// What a copy needs of an object store: whole objects by name. An object once put is never changed, but `COMMIT` may be put
/// again.
pub trait Objects: Send {
    /// The names of all objects that begin so, in any order.
    ///
    /// # Errors
    /// If the store is not reached, or refuses.
    fn names(&mut self, begin: &str) -> Result<Vec<String>, Failure>;

    /// An object's bytes, of which there must be at most so many; none if there is no such object.
    ///
    /// # Errors
    /// As for [`names`](Self::names), and if the object is longer.
    fn get(&mut self, name: &str, max_bytes: u64) -> Result<Option<Bytes>, Failure>;

    /// Makes an object. It is there when this returns.
    ///
    /// # Errors
    /// As for [`names`](Self::names).
    fn put(&mut self, name: &str, bytes: Bytes) -> Result<(), Failure>;
}

/// The name of a file of a generation.
fn name_of(generation: u32, file: &str) -> String {
    format!("generation-{generation:06}/{file}")
}

/// A stretch of a file of chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    /// In the folder of which generation the file is.
    generation: u32,
    /// Where in the file it begins.
    offset: u64,
    /// Its object is called after its checksum.
    #[serde(flatten)]
    sum: FileSum,
}

impl Piece {
    fn name(&self) -> String {
        format!("{PIECES}{}", self.sum.text())
    }

    fn can_be(&self) -> bool {
        let is_digit = |letter: &u8| matches!(letter, b'0'..=b'9' | b'a'..=b'f');
        let name = self.sum.text().as_bytes();
        name.len() == 64 && name.iter().all(is_digit) && self.sum.bytes <= OBJECT_MAX_BYTES
    }

    /// What of a list of pieces is in the order of files and of places in them.
    fn read_all(list: &[u8]) -> Option<Vec<Self>> {
        let pieces: Vec<Self> = serde_json::from_slice(list).ok()?;
        let at = |piece: &Self| (piece.generation, piece.offset);
        (pieces.iter().all(Self::can_be) && pieces.is_sorted_by_key(at) && !pieces.is_empty())
            .then_some(pieces)
    }
}

/// Copies a generation to an object store. `tell` hears how many bytes have been seen to, and of how many.
///
/// # Errors
/// If something of the generation is damaged, if another generation of that number is there, or the store is not reached or
/// refuses. The generation does not count there then, and what has been put is not sent again by the next copy.
pub fn push_to_objects(
    saved: &Saved,
    objects: &mut dyn Objects,
    mut tell: impl FnMut(u64, u64),
) -> Result<Copied, CopyError> {
    let generation = saved.generation();
    let commit = saved.commit_line();
    let commit_name = name_of(generation, "COMMIT");
    let before = objects.get(&commit_name, OBJECT_MAX_BYTES)?;
    if before.as_ref().is_some_and(|before| before != commit.as_bytes()) {
        return Err(CopyError::Taken { path: commit_name.into(), generation });
    }
    let mut there: BTreeSet<String> = objects.names(PIECES)?.into_iter().collect();
    let places = saved.places()?;
    let length = |of: &[Place]| of.iter().map(|place| u64::from(place.stored_bytes)).sum::<u64>();
    let bytes = length(&places);
    let mut copied = Copied { generation, chunks: places.len() as u64, bytes, ..Copied::default() };
    let mut list = Vec::new();
    let mut seen = 0;
    let key = |place: &Place| (place.generation, place.offset / PIECE_BYTES);
    for of in places.chunk_by(|a, b| key(a) == key(b)) {
        let (piece, stored) = read_piece(saved, of)?;
        if there.insert(piece.name()) {
            copied.sent_chunks += of.len() as u64;
            copied.sent_bytes += piece.sum.bytes;
            objects.put(&piece.name(), stored)?;
        }
        list.push(piece);
        seen += length(of);
        tell(seen, copied.bytes);
    }
    let list = serde_json::to_vec(&list).map_err(|error| Failure::new(Kind::Failed, error))?;
    let manifest = Bytes::copy_from_slice(saved.manifest_bytes());
    objects.put(&name_of(generation, "index"), saved.index_bytes().into())?;
    objects.put(&name_of(generation, LIST), list.into())?;
    objects.put(&name_of(generation, "MANIFEST.json"), manifest)?;
    objects.put(&commit_name, commit.into())?;
    Ok(copied)
}

/// The piece that has these chunks, all of which are what they should be, and its bytes.
fn read_piece(saved: &Saved, of: &[Place]) -> Result<(Piece, Bytes), CopyError> {
    let Some(Place { generation, offset, .. }) = of.first().copied() else {
        return Err(CopyError::Nonsense("a piece has no chunk"));
    };
    let offset = offset / PIECE_BYTES * PIECE_BYTES;
    let ends = of.iter().map(|place| place.offset.saturating_add(place.stored_bytes.into()));
    let end = ends.max().unwrap_or(offset).max(offset.saturating_add(PIECE_BYTES));
    if end - offset > OBJECT_MAX_BYTES {
        let sentence =
            format!("a table of records is longer than the longest object, {}", Size(OBJECT_MAX_BYTES));
        return Err(Failure::new(Kind::Input, sentence).into());
    }
    let stored = Bytes::from(saved.stored_between(generation, offset, end)?);
    for place in of {
        // Reading it again says best what is wrong.
        if !part(&stored, offset, place).is_some_and(|chunk| place.is_of(&chunk)) {
            saved.stored_chunk(place)?;
        }
    }
    Ok((Piece { generation, offset, sum: FileSum::of(&stored) }, stored))
}

/// The bytes of a chunk in those of a piece that begins there.
fn part(stored: &Bytes, offset: u64, place: &Place) -> Option<Bytes> {
    let begin = usize::try_from(place.offset.checked_sub(offset)?).ok()?;
    let end = begin.checked_add(place.stored_bytes as usize)?;
    (end <= stored.len()).then(|| stored.slice(begin..end))
}

/// Copies a generation from an object store into a folder of this machine; the newest if no number is given. `tell` hears how
/// many bytes have come, and of how many.
///
/// # Errors
/// If there is no such generation, if what comes is not what the checksums say, if the folder cannot be written or has another
/// generation of that number, or the store is not reached or refuses.
pub fn pull_from_objects(
    objects: &mut dyn Objects,
    generation: Option<u32>,
    to: &Path,
    tell: impl FnMut(u64, u64),
) -> Result<Copied, CopyError> {
    let kept = Kept::find(objects, generation)?;
    take_here(to, tell, |ends| kept.give(objects, ends).inspect_err(|error| ends.explain(error)))
}

/// The numbers of the generations that an object store has, ascending, each with what it holds or what is wrong with it. Only what
/// describes them is read.
///
/// # Errors
/// If there is none, or the store is not reached or refuses.
pub fn list_objects(objects: &mut dyn Objects) -> Result<Vec<Listed>, Failure> {
    let mut list = Vec::new();
    let numbers = generations(objects)?;
    if numbers.is_empty() {
        return Err(Failure::new(Kind::NoInput, NONE));
    }
    for number in numbers {
        let read = manifest(objects, number).and_then(|bytes| read_manifest(number, &bytes));
        match read.map_err(Failure::from) {
            Err(failure) if failure.kind != Kind::Input => return Err(failure),
            Err(failure) => list.push((number, Err(failure.sentence))),
            Ok(manifest) => list.push((number, Ok(manifest.overview()))),
        }
    }
    Ok(list)
}

/// The generations that count in an object store.
fn generations(objects: &mut dyn Objects) -> Result<BTreeSet<u32>, Failure> {
    let names = objects.names("generation-")?;
    let number = |name: &String| {
        let number = name.strip_prefix("generation-")?.strip_suffix("/COMMIT")?.parse().ok()?;
        (name_of(number, "COMMIT") == *name).then_some(number)
    };
    Ok(names.iter().filter_map(number).collect())
}

/// The bytes of a manifest for which `COMMIT` vouches.
fn manifest(objects: &mut dyn Objects, number: u32) -> Result<Bytes, CopyError> {
    let mut file = |file: &str| fetch(objects, &name_of(number, file), OBJECT_MAX_BYTES);
    let [commit, manifest] = [file("COMMIT")?, file("MANIFEST.json")?];
    if is_committed_by(&manifest, &commit) {
        Ok(manifest)
    } else {
        Err(damaged(&name_of(number, "MANIFEST.json"), "it is not what COMMIT says"))
    }
}

fn read_manifest(number: u32, bytes: &[u8]) -> Result<Manifest, CopyError> {
    let name = name_of(number, "MANIFEST.json");
    let manifest = manifest_of(Path::new(&name), bytes).map_err(|trouble| match trouble {
        Trouble::Other(error) => error.into(),
        Trouble::Damage(_) => damaged(&name, "it is malformed"),
    })?;
    if manifest.generation == number {
        Ok(manifest)
    } else {
        Err(damaged(&name, &format!("it belongs to generation {}", manifest.generation)))
    }
}

/// A generation that an object store has.
struct Kept {
    number: u32,
    manifest: Bytes,
    index: Bytes,
    pieces: Vec<Piece>,
    /// The piece that was fetched last: chunks are wanted in the order in which they are in pieces.
    last: Option<(Piece, Bytes)>,
}

impl Kept {
    fn find(objects: &mut dyn Objects, generation: Option<u32>) -> Result<Self, CopyError> {
        let there = generations(objects)?;
        let number = generation.or_else(|| there.last().copied()).filter(|number| there.contains(number));
        let Some(number) = number else {
            let sentence = match generation.filter(|_| !there.is_empty()) {
                Some(asked) => {
                    let there: Vec<String> = there.iter().map(u32::to_string).collect();
                    format!("there is no generation {asked}; there is {}", there.join(", "))
                }
                None => NONE.into(),
            };
            return Err(Failure::new(Kind::NoInput, sentence).into());
        };
        let manifest = manifest(objects, number)?;
        let mut file = |file: &str| fetch(objects, &name_of(number, file), OBJECT_MAX_BYTES);
        let [index, list] = [file("index")?, file(LIST)?];
        let pieces = Piece::read_all(&list);
        let pieces = pieces.ok_or_else(|| damaged(&name_of(number, LIST), "it is no list of pieces"))?;
        Ok(Self { number, manifest, index, pieces, last: None })
    }

    /// Gives the generation to the other end, which [takes](super::take::take) it.
    fn give(mut self, objects: &mut dyn Objects, ends: &mut Ends<'_>) -> Result<(), CopyError> {
        let places = self.places(objects)?;
        let (manifest, index) = (self.manifest.clone(), self.index.clone());
        ends.say(&Message::Offer(Offer { manifest, index, places: places.clone() }))?;
        let wanted = match ends.hear()? {
            Message::Wants(wanted) => wanted,
            other => return Err(other.unexpected()),
        };
        for number in wanted {
            let place = places.get(number as usize);
            let place = place.ok_or(CopyError::Nonsense("it wants a chunk that there is not"))?;
            let chunk = self.chunk(objects, place)?;
            ends.say(&Message::Chunk(chunk))?;
        }
        match ends.hear()? {
            Message::Done(_) => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// All chunks, in the order of files and of places in them.
    fn places(&mut self, objects: &mut dyn Objects) -> Result<Vec<Place>, CopyError> {
        let manifest = read_manifest(self.number, &self.manifest)?;
        let name = name_of(self.number, "index");
        if !manifest.index.is_of(&self.index) {
            return Err(damaged(&name, "its checksum is wrong"));
        }
        let index = Index::read(&self.index).map_err(|error| damaged(&name, &error.to_string()))?;
        let tables = BTreeMap::from_iter(index.tables.iter().map(|table| (table.place, table.records)));
        let mut places: BTreeSet<Place> = tables.keys().copied().collect();
        for (place, records) in &tables {
            let table = self.chunk(objects, place)?;
            let rows = read_table(&table, *records, index.chunk_bytes);
            let rows = rows.map_err(|error| damaged(&name, &format!("of a table of records: {error}")))?;
            places.extend(rows.iter().flat_map(Row::places));
        }
        Ok(places.into_iter().collect())
    }

    /// The bytes of a chunk as they are stored, if they are what they should be.
    fn chunk(&mut self, objects: &mut dyn Objects, place: &Place) -> Result<Bytes, CopyError> {
        let at = (place.generation, place.offset);
        let behind = self.pieces.partition_point(|piece| (piece.generation, piece.offset) <= at);
        let piece = behind.checked_sub(1).and_then(|at| self.pieces.get(at));
        let lacking = || {
            let file = name_of(place.generation, "chunks");
            damaged(&file, &format!("its chunk at byte {} is in no piece", place.offset))
        };
        let piece = piece.filter(|piece| piece.generation == place.generation).ok_or_else(lacking)?;
        let stored = match &self.last {
            Some((of, stored)) if of == piece => stored.clone(),
            _ => {
                let stored = fetch(objects, &piece.name(), piece.sum.bytes)?;
                if !piece.sum.is_of(&stored) {
                    return Err(damaged(&piece.name(), "its checksum is wrong"));
                }
                self.last = Some((piece.clone(), stored.clone()));
                stored
            }
        };
        part(&stored, piece.offset, place).filter(|chunk| place.is_of(chunk)).ok_or_else(lacking)
    }
}

fn fetch(objects: &mut dyn Objects, name: &str, max_bytes: u64) -> Result<Bytes, CopyError> {
    objects.get(name, max_bytes)?.ok_or_else(|| damaged(name, "it is not there"))
}

/// An object is not what was put.
fn damaged(name: &str, what: &str) -> CopyError {
    Failure::new(
        Kind::Input,
        format!("{name}: {what}; remove that object there, and push the checkpoint again"),
    )
    .into()
}
