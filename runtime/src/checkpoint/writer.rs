//! One generation, as it is written.

use super::codec::{Codec, Compressor};
use super::disk::Patch;
use super::error::WriteError;
use super::extents::Extents;
use super::files::{Files, committed, numbers};
use super::folder::Folder;
use super::format::{Index, NAME, Place, TableEntry, VERSION, Value, write_row};
use super::known::{Known, KnownChunk};
use super::manifest::{About, ChunkFile, FileSum, Manifest, SavedSchema, SavedType, SavedVariable};
use super::record::{Kind, Record};
use super::saved::commit_line;
use crate::digest::{CHUNK_BYTES, ChunkBytes, Digest, Digested, INSIDE_MAX_BYTES, WrittenChunk};
use crate::ids::PeId;
use crate::saved::GiveExtents;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A table of records is ended after one whose identity says so once it has [`TABLE_MIN_BYTES`], and in any case when it
/// has [`TABLE_MAX_BYTES`]. So that a record which comes, goes or grows does not shift all tables after it.
const TABLE_MIN_BYTES: usize = 2 << 10;
const TABLE_MAX_BYTES: usize = 16 << 10;
/// One in so many records ends its table.
const TABLE_ENDS: u8 = 16;

/// Writes one generation. If this is dropped before it is [committed](Self::commit), nothing has happened.
#[derive(Debug)]
pub struct Writer {
    folder: Arc<Folder>,
    about: About,
    generation: u32,
    /// The newest generation there was before.
    last: Option<u32>,
    files: Files,
    known: Known,
    chunks: Chunks,
    open: BTreeMap<(Kind, u32), Table>,
    tables: BTreeMap<(Kind, u32), Vec<TableEntry>>,
    types: BTreeMap<(Kind, String), SavedType>,
    schemas: BTreeMap<(Kind, String), SavedSchema>,
    variables: BTreeMap<u64, SavedVariable>,
    records: u64,
    bytes: u64,
    state: State,
    began: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Writing,
    GivenUp,
    Committed,
}

/// The chunks of this generation.
#[derive(Debug)]
struct Chunks {
    file: Box<dyn Patch>,
    extents: Arc<Extents>,
    /// What has not been written of the launcher's own, where that begins, and where its room ends.
    buffer: Vec<u8>,
    buffer_at: u64,
    room_end: u64,
    /// Bytes of chunks that this generation has added, and where the last of them ends.
    new_bytes: u64,
    end: u64,
    by_nodes_bytes: u64,
    /// The last chunk that each PE has written itself.
    of_pes: BTreeMap<PeId, Place>,
    compressor: Compressor,
    /// Room for what is compressed.
    compressed: Vec<u8>,
    used: FxHashMap<Digest, KnownChunk>,
    used_bytes: BTreeMap<u32, u64>,
}

/// A table that more records may come into.
#[derive(Debug, Default)]
struct Table {
    bytes: Vec<u8>,
    records: u32,
}

/// What a checkpoint was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// Its number.
    pub generation: u32,
    /// Bytes of all records.
    pub bytes: u64,
    /// Bytes that were added to the folder.
    pub new_bytes: u64,
    /// How many of them nodes have written themselves.
    pub by_nodes_bytes: u64,
    /// From [`Store::begin`](super::Store::begin) to the end of [`Writer::commit`].
    pub seconds: f64,
}

/// What a chunk is, and where its bytes are.
type Chunk<'a> = (Digest, u32, ChunkBytes<'a>);

impl Chunks {
    fn new(file: Box<dyn Patch>, extents: Extents) -> Self {
        Self {
            file,
            extents: Arc::new(extents),
            buffer: Vec::with_capacity(CHUNK_BYTES),
            buffer_at: 0,
            room_end: 0,
            new_bytes: 0,
            end: 0,
            by_nodes_bytes: 0,
            of_pes: BTreeMap::new(),
            compressor: Compressor::default(),
            compressed: Vec::new(),
            used: FxHashMap::default(),
            used_bytes: BTreeMap::new(),
        }
    }

    /// Where a chunk is, of a value of that PE or of a table; it is written if it is nowhere. Tables are stored as they
    /// are, so that what is needed to list or compare a checkpoint is read without more ado.
    fn place(
        &mut self,
        (digest, length, bytes): Chunk<'_>,
        of: Option<PeId>,
        (generation, known): (u32, &Known),
    ) -> io::Result<Place> {
        let suits = |chunk: &KnownChunk| of.is_some() || chunk.place.codec.is_plain();
        if let Some(chunk) = self.used.get(&digest).filter(|chunk| suits(chunk)) {
            return of_length(chunk.place, length);
        }
        let found = || {
            let bytes = if let ChunkBytes::Here(bytes) = bytes { Some(bytes) } else { None };
            known.find(&digest, bytes).filter(suits)
        };
        let chunk = match (bytes, of) {
            // It is not compared with what earlier generations have: these are not there, or who has written it knows them.
            (ChunkBytes::Written(written), Some(pe)) => {
                let place = Place { bytes: length, digest, ..of_written(&written, generation) };
                KnownChunk { place: self.written_by(pe, place)?, is_certain: true }
            }
            (ChunkBytes::Here(bytes), _) => match found() {
                Some(chunk) => chunk,
                None => {
                    let (offset, stored_bytes, codec) = self.store(bytes, of.is_some())?;
                    let place = Place { generation, offset, stored_bytes, codec, bytes: length, digest };
                    KnownChunk { place, is_certain: true }
                }
            },
            _ => match found() {
                Some(chunk) => chunk,
                None => KnownChunk { place: self.copy(digest, (generation, known))?, is_certain: true },
            },
        };
        self.used.insert(digest, chunk);
        *self.used_bytes.entry(chunk.place.generation).or_default() += u64::from(chunk.place.stored_bytes);
        of_length(chunk.place, length)
    }

    /// A PE says that it has written a chunk there.
    fn written_by(&mut self, pe: PeId, place: Place) -> io::Result<Place> {
        if !(place.can_be() && self.extents.has_room(pe, &place)) {
            return Err(invalid("a PE says that it wrote where it had no room"));
        }
        self.of_pes.insert(pe, place);
        self.by_nodes_bytes += u64::from(place.stored_bytes);
        self.count(place.offset, place.stored_bytes);
        Ok(place)
    }

    /// Writes what was left out and is in a file of which hardly anything is needed.
    fn copy(&mut self, digest: Digest, (generation, known): (u32, &Known)) -> io::Result<Place> {
        let there = known.stored_in_sparse(&self.extents.folder().dir, &digest)?;
        let (place, stored) = there.ok_or_else(|| invalid("a value was left out that is nowhere"))?;
        let offset = self.append(&stored)?;
        self.count(offset, place.stored_bytes);
        Ok(Place { generation, offset, ..place })
    }

    /// Writes a chunk; where it begins, its length there, and how it is stored.
    fn store(&mut self, bytes: &[u8], may_compress: bool) -> io::Result<(u64, u32, Codec)> {
        let mut compressed = std::mem::take(&mut self.compressed);
        let is_compressed = may_compress && self.compressor.compress(bytes, &mut compressed);
        let (codec, stored) =
            if is_compressed { (Codec::Zstd, &compressed[..]) } else { (Codec::Plain, bytes) };
        let stored_bytes = stored.len() as u32;
        let offset = self.append(stored);
        self.compressed = compressed;
        let offset = offset?;
        self.count(offset, stored_bytes);
        Ok((offset, stored_bytes, codec))
    }

    fn count(&mut self, offset: u64, stored_bytes: u32) {
        self.new_bytes += u64::from(stored_bytes);
        self.end = self.end.max(offset + u64::from(stored_bytes));
    }

    /// Writes behind what the launcher has written, or where there is room; where that is.
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let next = self.buffer_at + self.buffer.len() as u64;
        let (offset, room_end) = self.extents.take(next, self.room_end, bytes.len() as u64);
        self.room_end = room_end;
        if offset != next || self.buffer.len() + bytes.len() > CHUNK_BYTES {
            self.flush()?;
            self.buffer_at = offset;
        }
        if bytes.len() >= CHUNK_BYTES {
            self.file.write_at(offset, bytes)?;
            self.buffer_at = offset + bytes.len() as u64;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(offset)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.file.write_at(self.buffer_at, &self.buffer)?;
            self.buffer_at += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// The place of a chunk that a PE has written, without what it must be.
fn of_written(written: &WrittenChunk, generation: u32) -> Place {
    let WrittenChunk { offset, stored_bytes, is_compressed, .. } = *written;
    let codec = if is_compressed { Codec::Zstd } else { Codec::Plain };
    Place { generation, offset, stored_bytes, codec, bytes: 0, digest: Digest([0; 32]) }
}

fn of_length(place: Place, length: u32) -> io::Result<Place> {
    if place.bytes == length { Ok(place) } else { Err(invalid("a chunk has another length than was said")) }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Writer {
    pub(super) fn begin(folder: Arc<Folder>, about: About, known: Option<Known>) -> Result<Self, WriteError> {
        let dir = folder.dir.clone();
        let on_dir = |error| WriteError::io(&dir, error);
        let known = match known.filter(|known| known.is_there(&dir)) {
            Some(known) => known,
            None => {
                folder.remove_old().map_err(on_dir)?;
                Known::of_newest(&dir).map_err(on_dir)?
            }
        };
        let last = committed(&dir).map_err(on_dir)?.last().copied();
        let newest = numbers(&dir).map_err(on_dir)?.last().copied().unwrap_or(0);
        let generation =
            newest.checked_add(1).ok_or_else(|| on_dir(io::Error::other("no number is left")))?;
        let files = Files::of(&dir, generation);
        let made = folder.disk.create_folder(&files.folder);
        let file = made.and_then(|()| folder.disk.open(&files.chunks));
        let file = file.map_err(|error| WriteError::io(&files.chunks, error).with_last(last))?;
        let chunks = Chunks::new(file, Extents::new(Arc::clone(&folder), files.clone(), generation));
        Ok(Self {
            folder,
            about,
            generation,
            last,
            files,
            known,
            chunks,
            open: BTreeMap::new(),
            tables: BTreeMap::new(),
            types: BTreeMap::new(),
            schemas: BTreeMap::new(),
            variables: BTreeMap::new(),
            records: 0,
            bytes: 0,
            state: State::Writing,
            began: Instant::now(),
        })
    }

    /// Says what the records of a type are made of.
    pub fn describe(&mut self, kind: Kind, type_name: &str, schema: SavedSchema) {
        self.schemas.insert((kind, type_name.into()), schema);
    }

    /// Says what the values of a shared variable are made of, or what is added to an accumulator.
    pub fn describe_variable(&mut self, variable: SavedVariable) {
        self.variables.insert(variable.id, variable);
    }

    /// Adds a record. Records of one PE should come in the same order as for the generation before: what has not changed
    /// is then not written again.
    ///
    /// # Errors
    /// If the file system refuses. The generation is given up then.
    pub fn put(&mut self, record: &Record) -> Result<(), WriteError> {
        self.put_digested(record, &Digested::all(&record.packed))
    }

    /// The same for a record whose checksums are known, and of which values may be [left out](Self::has_last) that are in
    /// the generation before.
    ///
    /// # Errors
    /// As for [`put`](Self::put), and if the checksums are not of such a record.
    pub fn put_digested(&mut self, record: &Record, digested: &[Digested]) -> Result<(), WriteError> {
        if self.state != State::Writing {
            return Err(WriteError::GivenUp);
        }
        let put = self.try_put(record, digested);
        put.map_err(|error| self.given_up(&self.files.chunks.clone(), error))
    }

    /// Whether all of the generation that this process wrote last is at hand, so that who still has the checksums of its
    /// values need not give them again.
    #[must_use]
    pub fn has_last(&self) -> bool {
        self.known.is_whole
    }

    /// From what PEs get room that see the folder, and write to it what they have. Nobody does where the values of a generation
    /// that another process has written have to be compared with what is there.
    #[must_use]
    pub fn extents(&self) -> Option<Arc<dyn GiveExtents>> {
        let may_write = self.known.saved.is_none() && !self.folder.is_hidden();
        may_write.then(|| Arc::clone(&self.chunks.extents) as Arc<dyn GiveExtents>)
    }

    fn try_put(&mut self, record: &Record, digested: &[Digested]) -> io::Result<()> {
        if digested.len() != 1 + record.packed.attachments.len() {
            return Err(invalid("checksums are not of this record"));
        }
        let body: &[u8] = &record.packed.body;
        let attachments = record.packed.attachments.iter().map(|buffer| buffer.bytes());
        let values = std::iter::once(body).chain(attachments).zip(digested);
        let values = values.map(|(bytes, digested)| self.value(PeId(record.pe), bytes, digested));
        let values = values.collect::<io::Result<Vec<_>>>()?;
        let key = (record.kind, record.pe);
        let table = self.open.entry(key).or_default();
        write_row(record, &values, &mut table.bytes);
        table.records += 1;
        let is_end = table.bytes.len() >= TABLE_MIN_BYTES && ends_table(record);
        if is_end || table.bytes.len() >= TABLE_MAX_BYTES {
            let table = std::mem::take(table);
            self.end_table(key, &table)?;
        }
        self.count(record, digested.iter().map(|value| value.len_bytes).sum());
        Ok(())
    }

    fn count(&mut self, record: &Record, bytes: u64) {
        let of_type =
            self.types.entry((record.kind, record.type_name.clone())).or_insert_with(|| SavedType {
                kind: record.kind.to_string(),
                name: record.type_name.clone(),
                ..SavedType::default()
            });
        of_type.records += 1;
        of_type.bytes += bytes;
        self.records += 1;
        self.bytes += bytes;
    }

    fn value(&mut self, of: PeId, bytes: &[u8], digested: &Digested) -> io::Result<Value> {
        if digested.len_bytes <= INSIDE_MAX_BYTES as u64 && bytes.len() as u64 == digested.len_bytes {
            return Ok(Value::Inside(bytes.into()));
        }
        let chunks = digested.chunks_of(bytes).ok_or_else(|| invalid("checksums are not of this value"))?;
        let places = chunks.map(|chunk| self.chunks.place(chunk, Some(of), (self.generation, &self.known)));
        Ok(Value::Chunks { len_bytes: digested.len_bytes, places: places.collect::<io::Result<_>>()? })
    }

    fn end_table(&mut self, key: (Kind, u32), table: &Table) -> io::Result<()> {
        let chunk = (Digest::of(&table.bytes), table.bytes.len() as u32, ChunkBytes::Here(&table.bytes));
        let place = self.chunks.place(chunk, None, (self.generation, &self.known))?;
        let (kind, pe) = key;
        self.tables.entry(key).or_default().push(TableEntry { kind, pe, records: table.records, place });
        Ok(())
    }

    /// Makes the generation count. When this returns it outlasts a crash, and generations that are older than those to be
    /// kept have been removed.
    ///
    /// # Errors
    /// If the file system refuses; then nothing has happened.
    pub fn commit(mut self) -> Result<Written, WriteError> {
        if self.state != State::Writing {
            return Err(WriteError::GivenUp);
        }
        if let Err(error) = self.folder.lock() {
            self.state = State::GivenUp;
            return Err(error);
        }
        let new_bytes = match self.try_commit() {
            Ok(new_bytes) => new_bytes,
            Err((path, error)) => return Err(self.given_up(&path, error)),
        };
        self.state = State::Committed;
        // What could not be removed now is removed after the next one.
        let _ = self.folder.remove_old();
        let Self { generation, bytes, .. } = self;
        let by_nodes_bytes = self.chunks.by_nodes_bytes;
        let seconds = self.began.elapsed().as_secs_f64();
        Ok(Written { generation, bytes, new_bytes, by_nodes_bytes, seconds })
    }

    fn try_commit(&mut self) -> Result<u64, (std::path::PathBuf, io::Error)> {
        let files = self.files.clone();
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |error| (path, error)
        };
        for (key, table) in std::mem::take(&mut self.open) {
            if table.records > 0 {
                self.end_table(key, &table).map_err(at(&files.chunks))?;
            }
        }
        self.end_chunks().map_err(at(&files.chunks))?;
        let tables = std::mem::take(&mut self.tables).into_values().flatten().collect();
        let index = Index { version: VERSION, chunk_bytes: CHUNK_BYTES as u32, tables }.write();
        self.write_file(&files.index, &index).map_err(at(&files.index))?;
        let new_bytes = self.chunks.new_bytes + index.len() as u64;
        let manifest = self.manifest(FileSum::of(&index), new_bytes).map_err(at(&files.manifest))?;
        self.write_file(&files.manifest, &manifest).map_err(at(&files.manifest))?;
        let disk = &self.folder.disk;
        disk.sync_folder(&files.folder).map_err(at(&files.folder))?;
        disk.sync_folder(&self.folder.dir).map_err(at(&self.folder.dir))?;
        let commit = commit_line(VERSION, &manifest);
        self.write_file(&files.uncommitted, commit.as_bytes()).map_err(at(&files.uncommitted))?;
        disk.rename(&files.uncommitted, &files.commit).map_err(at(&files.commit))?;
        disk.sync_folder(&files.folder).map_err(at(&files.folder))?;
        Ok(new_bytes + (manifest.len() + commit.len()) as u64)
    }

    /// All chunks are in their file for good, those that PEs have written, too.
    fn end_chunks(&mut self) -> io::Result<()> {
        let chunks = &mut self.chunks;
        chunks.flush()?;
        if chunks.extents.close()? {
            // What is behind the last of them has not been written by anybody.
            chunks.file.set_length(chunks.end)?;
        }
        chunks.file.sync()?;
        if !chunks.of_pes.is_empty() && !chunks.extents.are_there(chunks.of_pes.values())? {
            self.folder.hide();
            return Err(io::Error::other("a node that sees the folder wrote to it, and that is not there"));
        }
        Ok(())
    }

    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let mut out = self.folder.disk.create(path)?;
        out.write_all(contents)?;
        out.sync()
    }

    fn manifest(&mut self, index: FileSum, new_bytes: u64) -> io::Result<Vec<u8>> {
        let used = &self.chunks.used_bytes;
        let length = |generation: u32| match self.known.files.get(&generation) {
            Some(bytes) if generation != self.generation => *bytes,
            _ => self.chunks.end,
        };
        let chunk_files = used.iter().map(|(&generation, &used_bytes)| ChunkFile {
            generation,
            bytes: length(generation),
            used_bytes,
        });
        let schemas = &self.schemas;
        let types = std::mem::take(&mut self.types).into_iter();
        let types = types.map(|(key, of)| SavedType { schema: schemas.get(&key).cloned(), ..of }).collect();
        let manifest = Manifest {
            format: NAME.into(),
            version: VERSION,
            generation: self.generation,
            about: std::mem::take(&mut self.about),
            records: self.records,
            bytes: self.bytes,
            new_bytes,
            types,
            variables: std::mem::take(&mut self.variables).into_values().collect(),
            index,
            chunk_files: chunk_files.collect(),
        };
        let mut bytes = serde_json::to_vec(&manifest)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn given_up(&mut self, path: &Path, error: io::Error) -> WriteError {
        self.state = State::GivenUp;
        WriteError::io(path, error).with_last(self.last)
    }

    /// The chunks that the next generation may refer to.
    fn chunks_for_next(&mut self) -> Known {
        let mut files = std::mem::take(&mut self.known.files);
        files.insert(self.generation, self.chunks.end);
        let chunks = std::mem::take(&mut self.chunks.used);
        let used = std::mem::take(&mut self.chunks.used_bytes);
        Known::of_own(chunks, files, |generation| used.get(&generation).copied().unwrap_or(0))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.state == State::Committed {
            let known = self.chunks_for_next();
            return self.folder.writer_ended(Some(known));
        }
        let _ = self.chunks.extents.close();
        // Whatever cannot be removed now is removed when the next run begins to write. A folder that others write into by now
        // has nothing of this one.
        if self.folder.is_locked() {
            let _ = self.folder.remove_generation(self.generation, false);
        }
        self.folder.writer_ended(None);
    }
}

/// Whether a record may be the last of its table, by who it is of: the same in all generations.
fn ends_table(record: &Record) -> bool {
    let mut identity = record.collection.to_le_bytes().to_vec();
    record.index.iter().for_each(|part| identity.extend(part.to_le_bytes()));
    Digest::of(&identity).0[0].is_multiple_of(TABLE_ENDS)
}
