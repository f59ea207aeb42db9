//! Starting node processes, on this machine and over the system's `ssh`, and the first words between them.

mod bootstrap;
mod check;
mod child;
mod copy;
mod diagnose;
mod echo;
mod process;
mod reach;
mod ssh;
mod stage;

pub use bootstrap::{BootstrapError, Ready, announce_ready, read_bootstrap, watch_lifeline, watch_start};
pub(crate) use check::check_nodes;
pub use check::{CheckResult, Problem};
pub use child::{LOG_MARK, LogLine};
pub use copy::Copying;
pub use echo::answer_check;
pub use process::{ExitReason, LaunchError, LaunchOptions, LaunchedNode, launch_all};
pub(crate) use reach::dialling_ip;
pub use reach::{NoAddress, listen_ip, source_ip};

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
    format!("metachare-hello {} {}", crate::codec::WIRE_VERSION, own_hash())
}

fn hash_of(mut content: impl Read) -> io::Result<String> {
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    let mut piece = vec![0; 64 << 10];
    loop {
        match content.read(&mut piece)? {
            0 => return Ok(hex(hash.finish().as_ref())),
            count => hash.update(&piece[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn clock_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
