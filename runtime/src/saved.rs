//! What nodes and their launcher say to each other of a run that is saved, or taken up again.
//!
//! A run is saved while all of its PEs stand still and nothing is on its way: then all there is of it lies on PEs, in what
//! nodes share, and with the driver. Each PE gives a record for each of its chares, and one for itself. Or it is saved while it
//! goes on, as a [snapshot](crate::proto::snapshot): then there are also records of messages that were on their way.

use crate::buffer::Buffer;
use crate::digest::{Digest, Digested, Digests};
use crate::failure::Failure;
use crate::frame::{Frame, FrameLimits, FramingError};
use crate::ids::{ElementId, PeId};
use crate::payload::Packed;
use crate::variable::VariableKind;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;

/// What the payload beside it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The PE that it is of.
    pub pe: PeId,
    /// What of it.
    pub of: RecordOf,
}

/// On its way the body of a long record is the first of its attachments, because what is beside those may be no longer than
/// 64 MiB.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sent {
    /// What it is.
    pub header: RecordHeader,
    /// Whether its body is the first of its attachments.
    pub is_long: bool,
}

/// A record on its way to who keeps the checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToKeep {
    /// The number of the checkpoint in this run, from 1; 0 for what a node leaves behind that leaves the run.
    pub checkpoint: u32,
    /// What it is.
    pub sent: Sent,
    /// The checksums of its values, some of which may be left out.
    pub digested: Vec<Digested>,
}

impl ToKeep {
    /// Whether its PE has written some of it to the folder itself.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.digested.iter().any(|value| !value.written.is_empty())
    }

    /// What a node leaves behind that leaves the run: it is of no checkpoint.
    #[must_use]
    pub fn left_behind(sent: Sent) -> Self {
        Self { checkpoint: 0, sent, digested: Vec::new() }
    }
}

/// What is told to a PE that is to be saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Save {
    /// The number of the checkpoint in this run.
    pub checkpoint: u32,
    /// The checkpoint whose values can be left out, if there is one.
    pub since: Option<u32>,
    /// While so many bytes of its node are on their way that have not been kept, no more are sent.
    pub sent_bytes_max: u64,
    /// Whether it may write what it has itself, if it sees the folder.
    pub may_write: bool,
}

/// A PE has been cut: so many records are what it had, and packing them took so many nanoseconds; or why they cannot be saved.
pub type Cut = Result<(u64, u64), String>;

/// From this length on a body travels as an attachment.
const LONG_BYTES: usize = 1 << 20;

impl Sent {
    /// A record as it travels.
    ///
    /// # Errors
    /// If no message may be so long.
    pub(crate) fn new(header: RecordHeader, mut packed: Packed) -> Result<(Self, Packed), FramingError> {
        let is_long = packed.body.len() > LONG_BYTES;
        if is_long {
            let body = std::mem::take(&mut packed.body);
            packed.attachments.insert(0, Buffer::from_slice(&body));
        }
        let frame = Frame { body: packed.body, attachments: packed.attachments };
        FrameLimits::default().check_frame(&frame)?;
        Ok((Self { header, is_long }, Packed { body: frame.body, attachments: frame.attachments }))
    }

    /// The checksums of what travels as `packed`, from which is left out what the launcher has; and of each value, which chunks
    /// it does not have.
    pub(crate) fn digest(
        &self,
        packed: &mut Packed,
        digests: &mut Digests,
        last: &Digests,
        has_last: bool,
    ) -> (Vec<Digested>, Vec<Vec<u32>>) {
        let (mut digested, mut new) = digests.add(packed, last, has_last);
        if self.is_long {
            digested.remove(0);
            new.remove(0);
        }
        (digested, new)
    }

    /// The record that has travelled.
    #[must_use]
    pub fn open(self, mut packed: Packed) -> (RecordHeader, Packed) {
        if self.is_long && !packed.attachments.is_empty() {
            packed.body = Bytes::from_owner(packed.attachments.remove(0));
        }
        (self.header, packed)
    }
}

/// What a record is of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RecordOf {
    /// A chare between two of its entry methods.
    Chare(ElementId),
    /// All that a PE holds beside its chares: messages, reductions under way, places of those that have moved.
    Pe,
    /// What has been added to an accumulator on the PE's node.
    Sum(u64),
    /// The description of a collection.
    Collection,
    /// The value of a variable.
    Variable {
        /// The variable.
        id: u64,
        /// How it changes.
        kind: VariableKind,
        /// Where it came from.
        origin: PeId,
    },
    /// What is known of the loads of all chares, and of who talks to whom.
    Loads,
    /// Messages that were on their way to the PE when the run was saved.
    Late {
        /// Who received and saved them.
        by: PeId,
    },
}

/// A PE that stands still has done what it was told: so many records have left, or come; or why not.
pub type Paused = Result<u64, String>;

/// The longest path that systems take.
const PATH_MAX_BYTES: usize = 4096;
/// The longest manifest that nodes look for.
const MANIFEST_MAX_BYTES: u64 = 64 << 20;

/// The checkpoint that a run goes on from, as the launcher has it. Whoever finds the same manifest in that folder has the same
/// checkpoint, because it says the checksums of all the rest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedPlace {
    /// The folder of checkpoints, from the root on.
    pub(crate) dir: String,
    /// The number of the checkpoint.
    pub(crate) generation: u32,
    /// How long its manifest is.
    pub(crate) manifest_bytes: u64,
    /// The checksum of its manifest.
    pub(crate) manifest: Digest,
}

impl SavedPlace {
    /// Whether it can be looked for.
    pub(crate) fn can_be(&self) -> bool {
        is_path(&self.dir) && self.manifest_bytes <= MANIFEST_MAX_BYTES
    }
}

/// Whether a folder can be called so, from the root on.
fn is_path(dir: &str) -> bool {
    dir.starts_with('/') && !dir.contains('\0') && dir.len() <= PATH_MAX_BYTES
}

/// The longest extent that a PE is given, bytes.
pub(crate) const EXTENT_MAX_BYTES: u64 = 64 << 20;

/// The checkpoint that is being written, as the launcher has it. Whoever finds this token in that folder sees the same one, because
/// it was put there for this checkpoint alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WritingPlace {
    /// The folder of checkpoints, from the root on.
    pub(crate) dir: String,
    /// The number of the checkpoint.
    pub(crate) generation: u32,
    /// Random bytes.
    pub(crate) token: [u8; 32],
}

impl WritingPlace {
    /// Whether it can be looked for.
    pub(crate) fn can_be(&self) -> bool {
        is_path(&self.dir)
    }
}

/// A part of the file of chunks of a checkpoint, for one PE to write to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Extent {
    /// Of which checkpoint.
    pub(crate) place: WritingPlace,
    /// Where it begins.
    pub(crate) offset: u64,
    /// How long it is.
    pub(crate) bytes: u64,
}

impl Extent {
    /// Whether it can be written to.
    pub(crate) fn can_be(&self) -> bool {
        let is_in_file = self.offset.checked_add(self.bytes).is_some_and(|end| i64::try_from(end).is_ok());
        self.place.can_be() && self.bytes <= EXTENT_MAX_BYTES && is_in_file
    }
}

/// Gives PEs room in the file of chunks of the checkpoint that is being written.
pub trait GiveExtents: Send + Sync {
    /// So many bytes for a PE, of which 0 say only where the file is; nothing if no PE is to write to it any more.
    fn give(&self, pe: PeId, bytes: u64) -> Option<Extent>;
}

/// Memory that is written from lies best at multiples of this, and so do its length and its place in the file: then the system
/// needs no copy of it.
pub(crate) const PAGE_BYTES: usize = 4096;

/// How chunks are stored.
pub trait StoreChunks: Send {
    /// Adds a chunk to `out` as it is stored, which is no longer than it is; whether that is compressed.
    fn append(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> bool;
}

/// The file of chunks of the checkpoint that is being written, where a node runs that sees it.
pub trait WriteHere: Send {
    /// Writes all of the bytes to that place.
    ///
    /// # Errors
    /// If the file system refuses.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until what was written outlasts a crash.
    ///
    /// # Errors
    /// If the file system refuses.
    fn sync(&mut self) -> io::Result<()>;
}

/// A checkpoint that is being written, where a node sees it.
pub type FoundWriting = (Box<dyn StoreChunks>, Box<dyn WriteHere>);

/// Records of a checkpoint; one that cannot be had is an error in its place.
pub type SavedRecords<'a> = Box<dyn Iterator<Item = Result<(RecordHeader, Packed), Failure>> + 'a>;

/// Finds checkpoints where a node runs.
pub trait FindSaved: Send + Sync {
    /// The checkpoint, if it is there and the same.
    ///
    /// # Errors
    /// Why it is not.
    fn find(&self, place: &SavedPlace) -> Result<Arc<dyn SavedHere>, String>;

    /// The checkpoint that is being written, if it is there and the same.
    ///
    /// # Errors
    /// Why it is not.
    fn find_writing(&self, place: &WritingPlace) -> Result<FoundWriting, String>;
}

/// A checkpoint that has been found where a node runs.
pub trait SavedHere: Send + Sync {
    /// The records of a PE and its chares, in the order in which the launcher has them.
    fn of_pe(&self, pe: PeId) -> SavedRecords<'_>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_length_arrive_as_they_were() {
        let header = RecordHeader { pe: PeId(3), of: RecordOf::Pe };
        for (body, attachments) in
            [(0, 0), (10, 2), (LONG_BYTES, 1), (LONG_BYTES + 1, 0), (3 * LONG_BYTES, 3)]
        {
            let packed = Packed {
                body: (0..body).map(|n| n as u8).collect::<Vec<u8>>().into(),
                attachments: (0..attachments).map(|n| Buffer::from_slice(&[n as u64; 5])).collect(),
            };
            let (sent, on_its_way) = Sent::new(header.clone(), packed.clone()).unwrap();
            assert!(on_its_way.body.len() <= LONG_BYTES, "{body} bytes");
            assert_eq!(sent.open(on_its_way), (header.clone(), packed));
        }
        let many = Packed { attachments: vec![Buffer::zeroed(0); 70_000], ..Packed::default() };
        assert!(Sent::new(header, many).is_err());
    }
}
