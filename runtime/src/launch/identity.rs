//! Which build of the program this is, and what its machine's clock says.

use crate::codec::WIRE_VERSION;
use std::io::{self, Read};
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

/// This program and which build of it.
#[must_use]
pub fn hello_line() -> String {
    format!("metachare-hello {} {}", WIRE_VERSION, own_hash())
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
