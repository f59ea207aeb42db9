//! Which build of the program this is, and what its machine's clock says.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;
use std::time::SystemTime;

/// SHA-256 of this executable as hexadecimal text; empty if it cannot be read.
#[must_use]
pub fn own_hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let file = std::env::current_exe().and_then(std::fs::File::open);
        file.and_then(hash_of).unwrap_or_default()
    })
}

/// Tells this executable from any other file of this machine, and from what the file is after another build. Other than its
/// [hash](own_hash) it takes no time.
#[must_use]
pub fn own_stamp() -> String {
    let data = std::env::current_exe().and_then(std::fs::metadata);
    let of = |data: Metadata| {
        format!("{}:{} {} {}.{:09}", data.dev(), data.ino(), data.len(), data.mtime(), data.mtime_nsec())
    };
    data.map(of).unwrap_or_default()
}

/// SHA-256 of that as hexadecimal text.
pub(super) fn hash_of(mut content: impl Read) -> io::Result<String> {
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    let mut piece = vec![0; 64 << 10];
    loop {
        match content.read(&mut piece)? {
            0 => return Ok(hex(hash.finish().as_ref())),
            count => hash.update(&piece[..count]),
        }
    }
}

/// Bytes as hexadecimal text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds since 1970 by the clock of this machine.
pub(super) fn clock_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
