//! One generation, as it is read.

use super::error::{Damage, ReadError};
use super::files::{self, Files, committed};
use super::format::{
    BLAKE3_SINCE, Index, Malformed, NAME, OLDEST, Place, Row, TableEntry, VERSION, Value, read_table,
};
use super::manifest::{About, ChunkFile, Manifest, Overview, SavedType, SavedVariable};
use super::record::{Kind, Record};
use crate::buffer::Buffer;
use crate::digest::Digest;
use crate::payload::Packed;
use crate::saved::SavedPlace;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const WRONG_CHECKSUM: &str = "the checksum of a chunk is wrong";

/// What `COMMIT` says of a manifest of that version of the format: what the program `b3sum` would, and before version 3
/// `sha256sum`.
pub(super) fn commit_line(version: u32, manifest: &[u8]) -> String {
    let digest = if version < BLAKE3_SINCE { Digest::sha256(manifest) } else { Digest::of(manifest) };
    format!("{digest}  MANIFEST.json\n")
}

/// Whether that is what `COMMIT` says of a manifest of some version.
pub(super) fn is_committed_by(manifest: &[u8], commit: &[u8]) -> bool {
    [VERSION, OLDEST].iter().any(|version| commit == commit_line(*version, manifest).as_bytes())
}

/// A generation that was committed. Its files stay readable as long as this is there, also if it is removed meanwhile.
#[derive(Debug)]
pub struct Saved {
    dir: PathBuf,
    manifest: Manifest,
    manifest_bytes: Vec<u8>,
    index: Index,
    chunks: BTreeMap<u32, File>,
    /// Whether earlier generations are offered where this one is damaged.
    looks_back: bool,
}

/// Why a generation is not to be had, before it is known which one is there instead.
pub(super) enum Trouble {
    Damage(Damage),
    Other(ReadError),
}

impl From<Damage> for Trouble {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl Saved {
    pub(super) fn open(dir: &Path, generation: u32) -> Result<Self, ReadError> {
        Self::try_open(dir, generation).map_err(|trouble| match trouble {
            Trouble::Other(error) => error,
            Trouble::Damage(damage) => {
                ReadError::Damaged { generation, damage, before: whole_before(dir, generation, None) }
            }
        })
    }

    fn try_open(dir: &Path, generation: u32) -> Result<Self, Trouble> {
        let files = Files::of(dir, generation);
        let (manifest, manifest_bytes) = read_manifest(&files)?;
        Self::of_manifest(dir, &files, generation, (manifest, manifest_bytes))
    }

    /// The generation of which somebody else has the manifest, if the same one is there; why it is not. It may be in a folder
    /// where others write: all that is believed is what the checksum of that manifest vouches for.
    pub(super) fn open_same(place: &SavedPlace) -> Result<Self, String> {
        let dir = Path::new(&place.dir);
        let files = Files::of(dir, place.generation);
        let opened = read_whole(&files.manifest, Some(place.manifest_bytes)).and_then(|bytes| {
            if Digest::of(&bytes) != place.manifest {
                return Err(Damage::new(&files.manifest, "it is of another checkpoint").into());
            }
            let manifest = manifest_of(&files.manifest, &bytes)?;
            Self::of_manifest(dir, &files, place.generation, (manifest, bytes))
        });
        match opened {
            Ok(saved) => Ok(Self { looks_back: false, ..saved }),
            Err(Trouble::Damage(damage)) => Err(damage.to_string()),
            Err(Trouble::Other(error)) => Err(error.to_string()),
        }
    }

    fn of_manifest(
        dir: &Path,
        files: &Files,
        generation: u32,
        (manifest, manifest_bytes): (Manifest, Vec<u8>),
    ) -> Result<Self, Trouble> {
        if manifest.generation != generation {
            let what = format!("it belongs to generation {}", manifest.generation);
            return Err(Damage::new(&files.manifest, what).into());
        }
        let bytes = read_whole(&files.index, Some(manifest.index.bytes))?;
        if !manifest.index.is_of(&bytes) {
            return Err(Damage::new(&files.index, "its checksum is wrong").into());
        }
        let index = Index::read(&bytes).map_err(|error| malformed(&files.index, error, ""))?;
        Self::of(dir, (manifest, manifest_bytes), index)
    }

    /// A generation of which all is there but `COMMIT`.
    pub(super) fn uncommitted(
        dir: &Path,
        manifest: (Manifest, Vec<u8>),
        index: Index,
    ) -> Result<Self, ReadError> {
        let generation = manifest.0.generation;
        Self::of(dir, manifest, index).map_err(|trouble| match trouble {
            Trouble::Other(error) => error,
            Trouble::Damage(damage) => ReadError::Damaged { generation, damage, before: None },
        })
    }

    /// A generation of which the files beside its chunks have been read.
    fn of(
        dir: &Path,
        (manifest, manifest_bytes): (Manifest, Vec<u8>),
        index: Index,
    ) -> Result<Self, Trouble> {
        let mut chunks = BTreeMap::new();
        for ChunkFile { generation, bytes, .. } in &manifest.chunk_files {
            let path = Files::of(dir, *generation).chunks;
            let file = files::open(&path).map_err(|error| unread(&path, error))?;
            let length = file.metadata().map_err(|error| unread(&path, error))?.len();
            if length != *bytes {
                return Err(
                    Damage::new(&path, format!("it has {length} bytes, and {bytes} were written")).into()
                );
            }
            chunks.insert(*generation, file);
        }
        Ok(Self { dir: dir.into(), manifest, manifest_bytes, index, chunks, looks_back: true })
    }

    /// What `COMMIT` says of it.
    pub(super) fn commit_line(&self) -> String {
        commit_line(self.manifest.version, &self.manifest_bytes)
    }

    /// Where its manifest is.
    #[must_use]
    pub fn manifest_path(&self) -> PathBuf {
        Files::of(&self.dir, self.generation()).manifest
    }

    /// By what others find it, if they can.
    #[must_use]
    pub fn place(&self) -> Option<SavedPlace> {
        let dir = std::path::absolute(&self.dir).ok()?.into_os_string().into_string().ok()?;
        let manifest_bytes = self.manifest_bytes.len() as u64;
        let manifest = Digest::of(&self.manifest_bytes);
        let place = SavedPlace { dir, generation: self.generation(), manifest_bytes, manifest };
        place.can_be().then_some(place)
    }

    /// What it is, in a few words and numbers.
    #[must_use]
    pub fn overview(&self) -> Overview {
        self.manifest.overview()
    }

    /// Its number.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.manifest.generation
    }

    /// Whose it is, and when it was taken.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.manifest.about
    }

    /// How many records it has.
    #[must_use]
    pub fn record_count(&self) -> u64 {
        self.manifest.records
    }

    /// Bytes of all records.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.manifest.bytes
    }

    /// The types that have records in it.
    #[must_use]
    pub fn types(&self) -> &[SavedType] {
        &self.manifest.types
    }

    /// What shared variables are made of that have records in it, where that is known.
    #[must_use]
    pub fn variables(&self) -> &[SavedVariable] {
        &self.manifest.variables
    }

    /// All records, those of one kind and PE after each other, as they were put.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        self.records_where(|_, _| true)
    }

    /// The records that belong to that PE, of whatever kind.
    #[must_use]
    pub fn records_of(&self, pe: u32) -> Records<'_> {
        self.records_where(|_, of| of == pe)
    }

    /// The PEs that have records of the kinds that are wanted.
    #[must_use]
    pub fn pes_where(&self, is_wanted: impl Fn(Kind) -> bool) -> BTreeSet<u32> {
        self.tables().iter().filter(|table| is_wanted(table.kind)).map(|table| table.pe).collect()
    }

    /// The records of that kind, of whatever PE.
    #[must_use]
    pub fn records_of_kind(&self, kind: Kind) -> Records<'_> {
        self.records_where(|of, _| of == kind)
    }

    /// The records whose kind and PE are wanted. The others are not read.
    #[must_use]
    pub fn records_where(&self, is_wanted: impl Fn(Kind, u32) -> bool) -> Records<'_> {
        let tables = self.index.tables.iter().filter(|table| is_wanted(table.kind, table.pe));
        let tables = tables.copied().collect::<Vec<_>>().into_iter();
        Records { saved: self, tables, table: None, left_out: 0, has_bodies_only: false }
    }

    pub(super) fn chunk_files(&self) -> impl Iterator<Item = &ChunkFile> {
        self.manifest.chunk_files.iter()
    }

    pub(super) fn manifest_bytes(&self) -> &[u8] {
        &self.manifest_bytes
    }

    pub(super) fn index_bytes(&self) -> Vec<u8> {
        self.index.write()
    }

    /// All its chunks, in the order of files and of places in them.
    pub(super) fn places(&self) -> Result<Vec<Place>, ReadError> {
        let mut places: BTreeSet<Place> = self.tables().iter().map(|table| table.place).collect();
        for table in self.tables() {
            places.extend(self.rows(table)?.iter().flat_map(Row::places));
        }
        Ok(places.into_iter().collect())
    }

    pub(super) fn tables(&self) -> &[TableEntry] {
        &self.index.tables
    }

    pub(super) fn rows(&self, table: &TableEntry) -> Result<Vec<Row>, ReadError> {
        let mut bytes = Vec::new();
        self.read_chunk(&table.place, &mut bytes)?;
        let rows = read_table(&bytes, table.records, self.index.chunk_bytes);
        rows.map_err(|error| {
            let place = &table.place;
            let path = Files::of(&self.dir, place.generation).chunks;
            let trouble = match malformed(&path, error, "a table of records is malformed: ") {
                Trouble::Damage(Damage { what, .. }) => self.damage(place, &what).into(),
                other => other,
            };
            self.told(place, trouble)
        })
    }

    /// Appends the bytes of a chunk.
    pub(super) fn read_chunk(&self, place: &Place, out: &mut Vec<u8>) -> Result<(), ReadError> {
        self.try_read_chunk(place, out).map_err(|trouble| self.told(place, trouble))
    }

    fn try_read_chunk(&self, place: &Place, out: &mut Vec<u8>) -> Result<(), Trouble> {
        let before = out.len();
        let file = self.chunk_file(place)?;
        out.resize(before + place.bytes as usize, 0);
        self.fill(file, place, &mut out[before..])
    }

    /// The bytes of a chunk as they are stored, if it is what it should be.
    pub(super) fn stored_chunk(&self, place: &Place) -> Result<Vec<u8>, ReadError> {
        self.chunk_file(place)
            .and_then(|file| self.read_stored(file, place))
            .and_then(|stored| match place.is_of(&stored) {
                true => Ok(stored),
                false => Err(self.damage(place, WRONG_CHECKSUM).into()),
            })
            .map_err(|trouble| self.told(place, trouble))
    }

    /// What there is between two places of the file of chunks of a generation, in which nobody has looked at checksums.
    pub(super) fn stored_between(&self, generation: u32, begin: u64, end: u64) -> Result<Vec<u8>, ReadError> {
        let listed = self.chunk_files().find(|file| file.generation == generation);
        let (Some(file), Some(listed)) = (self.chunks.get(&generation), listed) else {
            return Ok(Vec::new());
        };
        let length = end.min(listed.bytes).saturating_sub(begin);
        let mut stored = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = file.read_exact_at(&mut stored, begin);
        read.map_err(|error| ReadError::io(&Files::of(&self.dir, generation).chunks, error))?;
        Ok(stored)
    }

    fn read_stored(&self, file: &File, place: &Place) -> Result<Vec<u8>, Trouble> {
        let mut stored = vec![0; place.stored_bytes as usize];
        let read = file.read_exact_at(&mut stored, place.offset);
        read.map_err(|error| unread(&Files::of(&self.dir, place.generation).chunks, error))?;
        Ok(stored)
    }

    /// The file that a chunk is in, if it is long enough for it.
    fn chunk_file(&self, place: &Place) -> Result<&File, Trouble> {
        let end = place.offset.checked_add(u64::from(place.stored_bytes));
        let listed = self.chunk_files().find(|file| file.generation == place.generation);
        let is_inside = listed.zip(end).is_some_and(|(file, end)| end <= file.bytes);
        let file = self.chunks.get(&place.generation).filter(|_| is_inside);
        Ok(file.ok_or_else(|| self.damage(place, "a chunk would be beyond its end"))?)
    }

    fn fill(&self, file: &File, place: &Place, out: &mut [u8]) -> Result<(), Trouble> {
        let is_whole = if place.codec.is_plain() {
            let path = || Files::of(&self.dir, place.generation).chunks;
            file.read_exact_at(out, place.offset).map_err(|error| unread(&path(), error))?;
            true
        } else {
            place.codec.expand(&self.read_stored(file, place)?, out)
        };
        if is_whole && place.codec.digest(out) == place.digest {
            return Ok(());
        }
        Err(self.damage(place, WRONG_CHECKSUM).into())
    }

    pub(super) fn record(&self, table: &TableEntry, row: Row) -> Result<Record, ReadError> {
        let Row { type_name, collection, index, values } = row;
        let mut values = values.into_iter();
        let body = match values.next() {
            Some(Value::Inside(bytes)) => bytes,
            Some(Value::Chunks { places, .. }) => {
                let mut bytes = Vec::new();
                places.iter().try_for_each(|place| self.read_chunk(place, &mut bytes))?;
                bytes
            }
            None => return Err(self.malformed(table, "a record has no body")),
        };
        let attachments = values.map(|value| self.attachment(table, value)).collect::<Result<_, _>>()?;
        let packed = Packed { body: body.into(), attachments };
        Ok(Record { kind: table.kind, pe: table.pe, type_name, collection, index, packed })
    }

    fn attachment(&self, table: &TableEntry, value: Value) -> Result<Buffer, ReadError> {
        let (len_bytes, places) = match value {
            Value::Inside(bytes) => return Ok(Buffer::from_slice(&bytes)),
            Value::Chunks { len_bytes, places } => (len_bytes, places),
        };
        // Memory is taken for no more than all records are together.
        let room = usize::try_from(len_bytes).ok().filter(|_| len_bytes <= self.manifest.bytes);
        let len_bytes = room.ok_or_else(|| self.malformed(table, "an array is longer than all records"))?;
        let mut buffer = Buffer::zeroed(len_bytes);
        let mut rest = buffer.bytes_mut();
        for place in &places {
            let (part, after) = rest.split_at_mut(place.bytes as usize);
            let filled = self.chunk_file(place).and_then(|file| self.fill(file, place, part));
            filled.map_err(|trouble| self.told(place, trouble))?;
            rest = after;
        }
        Ok(buffer)
    }

    fn damage(&self, place: &Place, what: &str) -> Damage {
        let path = Files::of(&self.dir, place.generation).chunks;
        Damage::new(&path, format!("{what} (byte {}, {} bytes)", place.offset, place.stored_bytes))
    }

    /// What is said about a chunk that is not to be had.
    fn told(&self, place: &Place, trouble: Trouble) -> ReadError {
        match trouble {
            Trouble::Other(error) => error,
            Trouble::Damage(damage) => {
                let generation = self.generation();
                let find = || whole_before(&self.dir, generation, Some(*place));
                let before = self.looks_back.then(find).flatten();
                ReadError::Damaged { generation, damage, before }
            }
        }
    }

    fn malformed(&self, table: &TableEntry, what: &str) -> ReadError {
        self.told(&table.place, self.damage(&table.place, what).into())
    }

    /// Whether something in it is in that place; true where a table cannot be read.
    fn refers_to(&self, place: &Place) -> bool {
        let in_row = |row: &Row| row.places().any(|of| of == place);
        self.tables().iter().any(|table| {
            let mut bytes = Vec::new();
            let is_read = table.place != *place && self.try_read_chunk(&table.place, &mut bytes).is_ok();
            let rows = read_table(&bytes, table.records, self.index.chunk_bytes);
            !is_read || rows.map_or(true, |rows| rows.iter().any(in_row))
        })
    }
}

/// The newest generation before that one which can be opened and has nothing in that place, which is damaged.
fn whole_before(dir: &Path, generation: u32, damaged: Option<Place>) -> Option<u32> {
    let before = committed(dir).ok()?;
    before.range(..generation).rev().copied().find(|number| {
        let Ok(saved) = Saved::try_open(dir, *number) else { return false };
        damaged.is_none_or(|place| !saved.refers_to(&place))
    })
}

/// What is wrong with bytes whose checksum is right.
fn malformed(path: &Path, error: Malformed, where_: &str) -> Trouble {
    match error {
        Malformed::Codec(codec) => Trouble::Other(ReadError::Codec { path: path.into(), codec }),
        other => Damage::new(path, format!("{where_}{other}")).into(),
    }
}

fn unread(path: &Path, error: io::Error) -> Trouble {
    if error.kind() == io::ErrorKind::NotFound {
        return Damage::new(path, "it is missing").into();
    }
    Trouble::Other(ReadError::io(path, error))
}

/// A file, of which the length was written down.
fn read_whole(path: &Path, expected_bytes: Option<u64>) -> Result<Vec<u8>, Trouble> {
    let unread = |error| unread(path, error);
    let file = files::open(path).map_err(unread)?;
    let length = file.metadata().map_err(unread)?.len();
    if let Some(expected) = expected_bytes.filter(|expected| *expected != length) {
        let what = format!("it has {length} bytes, and {expected} were written");
        return Err(Damage::new(path, what).into());
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(unread)?;
    Ok(bytes)
}

/// Which format a manifest is of, whatever else it says.
#[derive(Deserialize)]
struct Format {
    format: String,
    version: u32,
}

/// A manifest that was committed, and its bytes.
fn read_manifest(files: &Files) -> Result<(Manifest, Vec<u8>), Trouble> {
    let commit = read_whole(&files.commit, None)?;
    let manifest = read_whole(&files.manifest, None)?;
    if !is_committed_by(&manifest, &commit) {
        let what = "COMMIT beside it says something else: one of the two is damaged";
        return Err(Damage::new(&files.manifest, what).into());
    }
    Ok((manifest_of(&files.manifest, &manifest)?, manifest))
}

/// What the bytes of a manifest say.
pub(super) fn manifest_of(path: &Path, bytes: &[u8]) -> Result<Manifest, Trouble> {
    let damage = |error: serde_json::Error| Damage::new(path, error.to_string());
    let Format { format, version } = serde_json::from_slice(bytes).map_err(damage)?;
    if format != NAME {
        return Err(Damage::new(path, "it is of something else").into());
    }
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(Trouble::Other(ReadError::Version { path: path.into(), version }));
    }
    Ok(serde_json::from_slice(bytes).map_err(damage)?)
}

/// Records of a generation. One that is damaged is an error in its place, and the next may be whole.
#[derive(Debug)]
pub struct Records<'a> {
    saved: &'a Saved,
    tables: std::vec::IntoIter<TableEntry>,
    table: Option<(TableEntry, std::vec::IntoIter<Row>)>,
    /// So many of the next are left out.
    left_out: u64,
    has_bodies_only: bool,
}

impl Records<'_> {
    /// Without the first so many. Of those, no values are read, nor tables that hold no others.
    pub(super) fn after(self, first: u64) -> Self {
        Self { left_out: first, ..self }
    }

    /// The same, but of their values only bodies are read.
    pub(super) fn bodies(self) -> Self {
        Self { has_bodies_only: true, ..self }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((table, rows)) = &mut self.table
                && let Some(mut row) = rows.next()
            {
                if self.left_out > 0 {
                    self.left_out -= 1;
                    continue;
                }
                if self.has_bodies_only {
                    row.values.truncate(1);
                }
                return Some(self.saved.record(table, row));
            }
            let table = self.tables.next()?;
            if let Some(left) = self.left_out.checked_sub(u64::from(table.records)) {
                self.left_out = left;
                self.table = None;
                continue;
            }
            match self.saved.rows(&table) {
                Ok(rows) => self.table = Some((table, rows.into_iter())),
                Err(error) => {
                    self.table = None;
                    return Some(Err(error));
                }
            }
        }
    }
}
