//! The bytes of tables and of the index, as `FORMAT.md` specifies them. All numbers are little-endian.

use super::codec::Codec;
use super::record::{Kind, Record};
use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// What the manifest says the folder is.
pub(super) const NAME: &str = "metachare checkpoint";
/// Version of the format, and the oldest that is read. Before 2 no chunk was compressed.
pub(super) const VERSION: u32 = 3;
pub(super) const OLDEST: u32 = 1;
/// Before this version all checksums were SHA-256.
pub(super) const BLAKE3_SINCE: u32 = 3;
/// The first bytes of every index; not text, and changed by what changes the ends of lines.
pub(super) const MAGIC: [u8; 8] = *b"\x93mcckp\r\n";

/// The longest chunk that a reader takes.
const CHUNK_MAX_BYTES: u32 = 64 << 20;
const HEADER_BYTES: usize = 24;
const PLACE_BYTES: usize = 49;
const TABLE_BYTES: usize = 1 + 4 + 4 + PLACE_BYTES;

/// Where a chunk is, and what it must be. They are in the order of files and of places in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Place {
    /// The generation in whose folder it is.
    pub(super) generation: u32,
    /// Where in that file it begins.
    pub(super) offset: u64,
    /// How many bytes it has there.
    pub(super) stored_bytes: u32,
    /// How it is stored there.
    pub(super) codec: Codec,
    /// How many bytes it has itself.
    pub(super) bytes: u32,
    /// Of its own bytes.
    pub(super) digest: Digest,
}

impl Place {
    /// Whether a chunk can have these lengths; before that is known no memory is taken for it.
    pub(super) fn can_be(&self) -> bool {
        if self.codec.is_plain() {
            self.bytes == self.stored_bytes
        } else {
            self.stored_bytes < self.bytes && self.bytes <= CHUNK_MAX_BYTES
        }
    }

    /// Whether that is what is stored there.
    pub(super) fn is_of(&self, stored: &[u8]) -> bool {
        if self.codec.is_plain() {
            return self.codec.digest(stored) == self.digest;
        }
        let mut own = vec![0; self.bytes as usize];
        self.codec.expand(stored, &mut own) && self.codec.digest(&own) == self.digest
    }
}

/// A table of records, as the index lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableEntry {
    pub(super) kind: Kind,
    pub(super) pe: u32,
    /// How many records it has.
    pub(super) records: u32,
    pub(super) place: Place,
}

/// A record as a table holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) type_name: String,
    pub(super) collection: u64,
    pub(super) index: [u32; 3],
    /// The body, then each attachment.
    pub(super) values: Vec<Value>,
}

impl Row {
    /// Where its chunks are.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        self.values.iter().flat_map(|value| match value {
            Value::Inside(_) => &[][..],
            Value::Chunks { places, .. } => places,
        })
    }
}

/// Bytes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Inside(Vec<u8>),
    Chunks { len_bytes: u64, places: Vec<Place> },
}

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it ends too early")]
    Short,
    #[error("something follows its end")]
    Long,
    #[error("it does not begin as an index does")]
    Magic,
    #[error("it is of format {0}")]
    Version(u32),
    #[error("its chunks are too long")]
    ChunkBytes,
    #[error("a kind of record is unknown")]
    Kind,
    #[error("a name is not UTF-8")]
    Name,
    #[error("chunks are stored in a way that is not known, number {0}")]
    Codec(u8),
    #[error("a value is marked in an unknown way")]
    Mark,
    #[error("a value has another length than its chunks")]
    Length,
}

/// What an index says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    /// Of the format.
    pub(super) version: u32,
    /// All chunks of a value but its last have this length.
    pub(super) chunk_bytes: u32,
    pub(super) tables: Vec<TableEntry>,
}

impl Index {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.tables.len() * TABLE_BYTES);
        out.extend(MAGIC);
        out.extend(self.version.to_le_bytes());
        out.extend(self.chunk_bytes.to_le_bytes());
        out.extend((self.tables.len() as u64).to_le_bytes());
        for table in &self.tables {
            out.push(table.kind.number());
            out.extend(table.pe.to_le_bytes());
            out.extend(table.records.to_le_bytes());
            write_place(&table.place, &mut out);
        }
        out
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Bytes(bytes);
        if from.array()? != MAGIC {
            return Err(Malformed::Magic);
        }
        let version = from.u32()?;
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(Malformed::Version(version));
        }
        let chunk_bytes = from.u32()?;
        if !(1..=CHUNK_MAX_BYTES).contains(&chunk_bytes) {
            return Err(Malformed::ChunkBytes);
        }
        let count = from.u64()?;
        let room = (from.0.len() / TABLE_BYTES) as u64;
        if count > room {
            return Err(Malformed::Short);
        }
        let table = |from: &mut Bytes<'_>| {
            let kind = Kind::of_number(from.u8()?).ok_or(Malformed::Kind)?;
            Ok(TableEntry { kind, pe: from.u32()?, records: from.u32()?, place: from.place(None)? })
        };
        let tables = (0..count).map(|_| table(&mut from)).collect::<Result<_, _>>()?;
        from.end()?;
        Ok(Self { version, chunk_bytes, tables })
    }
}

/// Appends the row of a record, whose body and attachments are these values.
pub(super) fn write_row(record: &Record, values: &[Value], out: &mut Vec<u8>) {
    let name = record.type_name.as_bytes();
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name);
    out.extend(record.collection.to_le_bytes());
    record.index.iter().for_each(|part| out.extend(part.to_le_bytes()));
    out.extend((values.len() as u32).to_le_bytes());
    for value in values {
        match value {
            Value::Inside(bytes) => {
                out.push(0);
                out.extend((bytes.len() as u64).to_le_bytes());
                out.extend(bytes);
            }
            Value::Chunks { len_bytes, places } => {
                out.push(1);
                out.extend(len_bytes.to_le_bytes());
                places.iter().for_each(|place| write_place(place, out));
            }
        }
    }
}

/// The rows of a table.
pub(super) fn read_table(bytes: &[u8], records: u32, chunk_bytes: u32) -> Result<Vec<Row>, Malformed> {
    let mut from = Bytes(bytes);
    let mut rows = Vec::new();
    for _ in 0..records {
        rows.push(read_row(&mut from, chunk_bytes)?);
    }
    from.end()?;
    Ok(rows)
}

fn read_row(from: &mut Bytes<'_>, chunk_bytes: u32) -> Result<Row, Malformed> {
    let name = u64::from(from.u32()?);
    let type_name = str::from_utf8(from.take(name)?).map_err(|_| Malformed::Name)?.into();
    let collection = from.u64()?;
    let index = [from.u32()?, from.u32()?, from.u32()?];
    let mut values = Vec::new();
    for _ in 0..from.u32()? {
        values.push(read_value(from, chunk_bytes)?);
    }
    Ok(Row { type_name, collection, index, values })
}

fn read_value(from: &mut Bytes<'_>, chunk_bytes: u32) -> Result<Value, Malformed> {
    let mark = from.u8()?;
    let len_bytes = from.u64()?;
    match mark {
        0 => Ok(Value::Inside(from.take(len_bytes)?.into())),
        1 => {
            let count = len_bytes.div_ceil(u64::from(chunk_bytes));
            if count > (from.0.len() / PLACE_BYTES) as u64 {
                return Err(Malformed::Short);
            }
            let chunk_bytes = u64::from(chunk_bytes);
            let length = |at: u64| (len_bytes - at * chunk_bytes).min(chunk_bytes) as u32;
            let places = (0..count).map(|at| from.place(Some(length(at))));
            Ok(Value::Chunks { len_bytes, places: places.collect::<Result<_, _>>()? })
        }
        _ => Err(Malformed::Mark),
    }
}

fn write_place(place: &Place, out: &mut Vec<u8>) {
    out.extend(place.generation.to_le_bytes());
    out.extend(place.offset.to_le_bytes());
    out.extend(place.stored_bytes.to_le_bytes());
    out.push(place.codec.number());
    out.extend(place.digest.0);
}

/// What has not been read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], Malformed> {
        let count = usize::try_from(count).map_err(|_| Malformed::Short)?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The place of a chunk of that length, or of a table: these are of any length, and stored as they are.
    fn place(&mut self, bytes: Option<u32>) -> Result<Place, Malformed> {
        let (generation, offset, stored_bytes) = (self.u32()?, self.u64()?, self.u32()?);
        let number = self.u8()?;
        let codec = Codec::of_number(number).filter(|codec| codec.is_plain() || bytes.is_some());
        let codec = codec.ok_or(Malformed::Codec(number))?;
        let digest = Digest(self.array()?);
        let bytes = bytes.unwrap_or(stored_bytes);
        let place = Place { generation, offset, stored_bytes, codec, bytes, digest };
        if place.can_be() { Ok(place) } else { Err(Malformed::Length) }
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Long) }
    }
}
