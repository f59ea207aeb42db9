//! SHA-256: what a chunk is known by, and the checksum of every file.

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Digest(pub(super) [u8; 32]);

impl Digest {
    pub(super) fn of(bytes: &[u8]) -> Self {
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
