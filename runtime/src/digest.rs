//! What the values of checkpoints are known by: the checksums of their chunks. Whoever has them computes these, and need not
//! send what a folder has already.

use crate::buffer::{Buffer, Unwritten};
use crate::payload::Packed;
use ring::digest::{SHA256, digest};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// Values longer than [`INSIDE_MAX_BYTES`] are cut into chunks of this length, the last one shorter. A reference to one
/// takes less than a thousandth of it, and of an array of which a part has changed little is written again.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// Values up to this length are inside their table: a chunk of their own would cost a twentieth of it and more.
pub(crate) const INSIDE_MAX_BYTES: usize = 1 << 10;

/// The BLAKE3 of some bytes, or their SHA-256 in what was written before version 3 of the format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// What it was before version 3.
    pub(crate) fn sha256(bytes: &[u8]) -> Self {
        let mut digest32 = [0; 32];
        digest32.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(digest32)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_char('…')
    }
}

/// A body or an attachment, by the checksums of its chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digested {
    pub(crate) len_bytes: u64,
    /// None of what is short enough to be inside its table.
    pub(crate) chunks: Vec<Digest>,
    /// Its bytes are not beside this: they are in the folder.
    pub(crate) is_left_out: bool,
    /// Of what is left out, the chunks that whoever had them has written there himself, in their order.
    pub(crate) written: Vec<WrittenChunk>,
}

/// A chunk that is in the file of chunks of the generation that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenChunk {
    /// Which one of its value, from 0.
    pub(crate) number: u32,
    /// Where it begins.
    pub(crate) offset: u64,
    /// How many bytes it has there.
    pub(crate) stored_bytes: u32,
    /// Whether these are compressed.
    pub(crate) is_compressed: bool,
}

/// Where a chunk is in a value of that length; nowhere behind its end.
pub(crate) fn chunk_of(len_bytes: u64, number: u32) -> Range<u64> {
    let chunk_bytes = CHUNK_BYTES as u64;
    let begin = (u64::from(number) * chunk_bytes).min(len_bytes);
    begin..(begin + chunk_bytes).min(len_bytes)
}

/// Where the bytes of a chunk are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChunkBytes<'a> {
    /// Here.
    Here(&'a [u8]),
    /// In the folder since now.
    Written(WrittenChunk),
    /// In the folder since an earlier record.
    Known,
}

impl Digested {
    fn of(bytes: &[u8]) -> Self {
        let in_chunks = if bytes.len() <= INSIDE_MAX_BYTES { &[] } else { bytes };
        let chunks = in_chunks.chunks(CHUNK_BYTES).map(Digest::of).collect();
        Self { len_bytes: bytes.len() as u64, chunks, is_left_out: false, written: Vec::new() }
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

    /// The length of each chunk, and where its bytes are; `None` if `bytes` are not what this says.
    pub(crate) fn chunks_of<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> Option<impl Iterator<Item = (Digest, u32, ChunkBytes<'a>)>> {
        let is_in_order = self.written.is_sorted_by(|one, next| one.number < next.number);
        let is_of_value = self.written.last().is_none_or(|last| (last.number as usize) < self.chunks.len());
        let is_right = self.chunks.len() as u64 == self.len_bytes.div_ceil(CHUNK_BYTES as u64)
            && bytes.len() as u64 == if self.is_left_out { 0 } else { self.len_bytes }
            && (self.is_left_out || self.written.is_empty())
            && is_in_order
            && is_of_value;
        let mut written = self.written.iter().peekable();
        is_right.then(|| {
            (0..).zip(&self.chunks).map(move |(number, digest)| {
                let Range { start, end } = chunk_of(self.len_bytes, number);
                let there = bytes.get(start as usize..end as usize).map(ChunkBytes::Here);
                let is_written = written.next_if(|chunk| chunk.number == number);
                let elsewhere = is_written.map_or(ChunkBytes::Known, |chunk| ChunkBytes::Written(*chunk));
                (*digest, (end - start) as u32, there.unwrap_or(elsewhere))
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
    /// chunks were all in the last checkpoint are left out of `packed` if `has_last` says that its receiver has that. Of each
    /// value besides, which of its chunks its receiver has neither from that nor from what was added before.
    pub(crate) fn add(
        &mut self,
        packed: &mut Packed,
        last: &Self,
        has_last: bool,
    ) -> (Vec<Digested>, Vec<Vec<u32>>) {
        let mut digested = Digested::all_with(packed, |buffer| self.of_attachment(buffer, last));
        let mut new = Vec::with_capacity(digested.len());
        for (at, value) in digested.iter_mut().enumerate() {
            let is_in_last = |chunk: &Digest| has_last && last.chunks.contains(chunk);
            let chunks = (0..).zip(&value.chunks);
            let chunks = chunks.filter(|(_, chunk)| self.chunks.insert(**chunk) && !is_in_last(chunk));
            new.push(chunks.map(|(number, _)| number).collect());
            let is_known = value.chunks.iter().all(is_in_last);
            value.is_left_out = is_known && !value.chunks.is_empty();
            if value.is_left_out {
                packed.leave_out(at);
            }
        }
        (digested, new)
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
