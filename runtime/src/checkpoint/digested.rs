//! What the values of a record are known by, so that whoever has them computes their checksums, and need not send what a
//! folder has already.

use super::format::{CHUNK_BYTES, INSIDE_MAX_BYTES};
use super::hash::Digest;
use crate::buffer::{Buffer, Unwritten};
use crate::envelope::Packed;
use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

/// A body or an attachment, by the checksums of its chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digested {
    pub(super) len_bytes: u64,
    /// None of what is short enough to be inside its table.
    pub(super) chunks: Vec<Digest>,
    /// Its bytes are not beside this: they are in the folder.
    pub(super) is_left_out: bool,
}

impl Digested {
    fn of(bytes: &[u8]) -> Self {
        let chunks = match bytes.len() <= INSIDE_MAX_BYTES {
            true => Vec::new(),
            false => bytes.chunks(CHUNK_BYTES).map(Digest::of).collect(),
        };
        Self { len_bytes: bytes.len() as u64, chunks, is_left_out: false }
    }

    /// Of a body, then of each of its attachments.
    #[must_use]
    pub fn all(packed: &Packed) -> Vec<Self> {
        Self::all_with(packed, |buffer| Self::of(buffer.bytes()))
    }

    /// The same, where somebody may know that of an attachment.
    fn all_with(packed: &Packed, of_attachment: impl FnMut(&Buffer) -> Self) -> Vec<Self> {
        std::iter::once(Self::of(&packed.body)).chain(packed.attachments.iter().map(of_attachment)).collect()
    }

    /// The bytes of each chunk, `None` where they are left out; or `None` if `bytes` are not what this says.
    pub(super) fn chunks_of<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> Option<impl Iterator<Item = (Digest, u32, Option<&'a [u8]>)>> {
        let chunk_bytes = CHUNK_BYTES as u64;
        let is_right = self.chunks.len() as u64 == self.len_bytes.div_ceil(chunk_bytes)
            && bytes.len() as u64 == if self.is_left_out { 0 } else { self.len_bytes };
        is_right.then(|| {
            self.chunks.iter().enumerate().map(move |(at, digest)| {
                let begin = at as u64 * chunk_bytes;
                let length = (self.len_bytes - begin).min(chunk_bytes);
                let there = bytes.get(begin as usize..(begin + length) as usize);
                (*digest, length as u32, there)
            })
        })
    }
}

/// What the sender of one checkpoint knows when the next is taken.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    /// All chunks that were in it.
    chunks: FxHashSet<Digest>,
    /// Attachments by the addresses of their bytes.
    attachments: FxHashMap<usize, (Unwritten, Digested)>,
}

impl Digests {
    /// The checksums of what is to be sent, for which `last` is asked of what nobody has written to since. Values whose
    /// chunks were all in the last checkpoint are left out of `packed` if `has_last` says that its receiver has that.
    pub(crate) fn add(&mut self, packed: &mut Packed, last: &Self, has_last: bool) -> Vec<Digested> {
        let mut digested = Digested::all_with(packed, |buffer| self.of_attachment(buffer, last));
        for (at, value) in digested.iter_mut().enumerate() {
            self.chunks.extend(&value.chunks);
            let is_known = value.chunks.iter().all(|chunk| last.chunks.contains(chunk));
            value.is_left_out = has_last && is_known && !value.chunks.is_empty();
            if !value.is_left_out {
                continue;
            }
            match at.checked_sub(1) {
                None => packed.body = Bytes::new(),
                Some(at) => packed.attachments[at] = Buffer::default(),
            }
        }
        digested
    }

    fn of_attachment(&mut self, buffer: &Buffer, last: &Self) -> Digested {
        if buffer.len() <= INSIDE_MAX_BYTES {
            return Digested::of(buffer.bytes());
        }
        let address = buffer.bytes().as_ptr().addr();
        let before = last.attachments.get(&address).filter(|(before, _)| before.is(buffer));
        let digested = before.map_or_else(|| Digested::of(buffer.bytes()), |(_, digested)| digested.clone());
        self.attachments.insert(address, (Unwritten::of(buffer), digested.clone()));
        digested
    }
}
