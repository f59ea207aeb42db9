//! What kind of machine a process runs on, as far as what it computes or keeps could depend on that.

use serde::{Deserialize, Serialize};

/// A kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Architecture {
    /// Its processor, such as `x86_64`.
    pub arch: String,
    /// Operating system, such as `linux`.
    pub os: String,
    /// `little` or `big`.
    pub endian: String,
    /// Width of a pointer.
    pub pointer_bits: u32,
}

impl Architecture {
    /// The one that this program was built for.
    #[must_use]
    pub fn here() -> Self {
        Self {
            arch: std::env::consts::ARCH.into(),
            os: std::env::consts::OS.into(),
            endian: if cfg!(target_endian = "little") { "little" } else { "big" }.into(),
            pointer_bits: usize::BITS,
        }
    }
}
