//! How chunks are stored: as they are, or compressed where that saves enough.
//!
//! Compressed by zstd at the level that is quickest of those that save as much: of bytes that have no repetitions, as most floats
//! have none, a sample says so. Before version 3 of the format it was LZ4, and all checksums were SHA-256: such chunks are
//! still read, and copied as they are.

use crate::digest::Digest;
use lz4_flex::block::decompress_into;
use serde::{Deserialize, Serialize};
use std::fmt;
use zstd::bulk;

/// A chunk is stored compressed if that saves one byte in so many. What saves less takes longer to compress than to write.
const SAVED_PARTS: usize = 4;
/// So much from the middle of a longer chunk tells whether the rest is tried: what is hardly shorter takes the most time.
const SAMPLE_BYTES: usize = 8 << 10;
/// After so many chunks in a row that stayed as they are, one in so many is tried: a sample takes more than half as long as the
/// checksum of its chunk.
const FAILURES: u32 = 8;
/// So many bytes of the checksum of what was compressed follow it: other bytes may expand to the same ones.
const SUM_BYTES: usize = 8;
/// Of zstd.
const LEVEL: i32 = 1;

/// How a chunk is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Codec {
    /// As it is, in versions 1 and 2.
    OldPlain,
    /// As a block of LZ4, and the first bytes of the SHA-256 of that block: in version 2.
    OldLz4,
    /// As it is.
    Plain,
    /// As a frame of zstd, and the first bytes of the BLAKE3 of that frame.
    Zstd,
}

impl Codec {
    pub(super) const ALL: [Self; 4] = [Self::OldPlain, Self::OldLz4, Self::Plain, Self::Zstd];

    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub(super) fn is_plain(self) -> bool {
        matches!(self, Self::OldPlain | Self::Plain)
    }

    /// The checksum of a chunk that is stored so, or of what there is instead of it.
    pub(super) fn digest(self, bytes: &[u8]) -> Digest {
        match self {
            Self::OldPlain | Self::OldLz4 => Digest::sha256(bytes),
            Self::Plain | Self::Zstd => Digest::of(bytes),
        }
    }

    /// Puts what was compressed into `out`, which is of its length; whether it is whole.
    pub(super) fn expand(self, stored: &[u8], out: &mut [u8]) -> bool {
        let Some((block, sum)) = stored.split_last_chunk::<SUM_BYTES>() else { return false };
        self.digest(block).0[..SUM_BYTES] == sum[..]
            && match self {
                Self::OldLz4 => decompress_into(block, out).is_ok_and(|length| length == out.len()),
                Self::Zstd => bulk::decompress_to_buffer(block, out).is_ok_and(|length| length == out.len()),
                Self::OldPlain | Self::Plain => false,
            }
    }
}

/// What compresses one chunk after the other.
pub(super) struct Compressor {
    /// Nothing if there is no memory for it: chunks are stored as they are then.
    zstd: Option<bulk::Compressor<'static>>,
    /// For how many chunks in a row it was not worth while, or not tried.
    failures: u32,
}

impl Default for Compressor {
    fn default() -> Self {
        Self { zstd: bulk::Compressor::new(LEVEL).ok(), failures: 0 }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// Puts a chunk compressed into `out`; whether that is worth while.
    pub(super) fn compress(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        let is_tried = self.failures < FAILURES || self.failures.is_multiple_of(FAILURES);
        let sample = bytes.get(bytes.len() / 2..).and_then(|rest| rest.first_chunk::<SAMPLE_BYTES>());
        let is_worth_while = is_tried
            && sample.is_none_or(|sample| self.is_shorter(sample, out))
            && self.is_shorter(bytes, out);
        self.failures = if is_worth_while { 0 } else { self.failures.wrapping_add(1) };
        if !is_worth_while {
            return false;
        }
        let sum = Codec::Zstd.digest(out);
        out.extend(&sum.0[..SUM_BYTES]);
        true
    }

    /// Compresses bytes; whether that saves enough.
    fn is_shorter(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        // What needs more room than that is not worth while, and is given up as soon as it does.
        let most = (bytes.len() - bytes.len() / SAVED_PARTS).saturating_sub(SUM_BYTES);
        out.resize(most, 0);
        let length = self.zstd.as_mut().and_then(|zstd| zstd.compress_to_buffer(bytes, &mut out[..]).ok());
        out.truncate(length.unwrap_or(0));
        length.is_some()
    }
}
