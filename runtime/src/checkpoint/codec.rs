//! How chunks are stored: as they are, or compressed where that saves enough.
//!
//! Compressed by LZ4: of bytes that have no repetitions, as most floats have none, it looks at few, and it compresses others about as
//! fast as disks write (400 MB/s and more where SHA-256 does 1 GB/s). DEFLATE gets a few percent more out of the same chunks at a fifth
//! of the speed. The format is so simple that a reader without a library for it has twenty lines more.

use crate::digest::Digest;
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use serde::{Deserialize, Serialize};

/// A chunk is stored compressed if that saves one byte in so many. What saves less takes longer to compress than to write.
const SAVED_PARTS: usize = 4;
/// So much from the middle of a longer chunk tells whether the rest is tried: what is hardly shorter takes the most time.
const SAMPLE_BYTES: usize = 8 << 10;
/// So many bytes of the checksum of what was compressed follow it: other bytes may expand to the same ones.
const SUM_BYTES: usize = 8;

/// How a chunk is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Codec {
    /// As it is.
    Plain,
    /// As a block of LZ4, and the first bytes of the SHA-256 of that block.
    Lz4,
}

impl Codec {
    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        [Self::Plain, Self::Lz4].get(usize::from(number)).copied()
    }
}

/// Puts a chunk compressed into `out`; whether that is worth while.
pub(super) fn compress(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let sample = bytes.get(bytes.len() / 2..).and_then(|rest| rest.first_chunk::<SAMPLE_BYTES>());
    if !sample.is_none_or(|sample| is_shorter(sample, out)) || !is_shorter(bytes, out) {
        return false;
    }
    let sum = Digest::of(out);
    out.extend(&sum.0[..SUM_BYTES]);
    true
}

/// Compresses bytes; whether that saves enough.
fn is_shorter(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    out.resize(get_maximum_output_size(bytes.len()), 0);
    let Ok(length) = compress_into(bytes, out) else { return false };
    out.truncate(length);
    length + SUM_BYTES <= bytes.len() - bytes.len() / SAVED_PARTS
}

/// Puts what was compressed into `out`, which is of its length; whether it is whole.
pub(super) fn expand(stored: &[u8], out: &mut [u8]) -> bool {
    let Some((block, sum)) = stored.split_last_chunk::<SUM_BYTES>() else { return false };
    Digest::of(block).0[..SUM_BYTES] == sum[..]
        && decompress_into(block, out).is_ok_and(|length| length == out.len())
}
