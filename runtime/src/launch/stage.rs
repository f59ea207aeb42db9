//! The executables that can be copied to nodes, known by the hash of their content.

use super::process::LaunchOptions;
use super::{hash_of, own_hash};
use std::path::PathBuf;

/// An executable for one architecture.
#[derive(Clone, Debug)]
pub(super) struct Build {
    /// As `uname` names it, e.g. `aarch64-linux`.
    pub(super) arch: String,
    /// SHA-256 of its content.
    pub(super) hash: String,
    /// Its length.
    pub(super) bytes: u64,
    /// Where it is on this machine.
    pub(super) file: PathBuf,
}

impl Build {
    #[cfg(test)]
    pub(super) fn of(arch: &str, file: PathBuf, content: &[u8]) -> Self {
        Self { arch: arch.into(), hash: hash_of(content), bytes: content.len() as u64, file }
    }
}

/// This executable, and those of the nodes file for other architectures. What cannot be read is left out: it
/// may not be needed.
pub(super) fn builds(options: &LaunchOptions) -> Vec<Build> {
    let here = here();
    let own = std::env::current_exe().ok().and_then(|file| {
        let bytes = std::fs::metadata(&file).ok()?.len();
        Some(Build { arch: here.clone(), hash: own_hash().into(), bytes, file })
    });
    let others = options.binaries.iter().filter(|(arch, _)| **arch != here).filter_map(|(arch, file)| {
        let content = std::fs::read(file).ok()?;
        let bytes = content.len() as u64;
        Some(Build { arch: arch.clone(), hash: hash_of(&content), bytes, file: file.clone() })
    });
    own.into_iter().chain(others).collect()
}

/// This machine's architecture.
pub(super) fn here() -> String {
    format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

/// The name of this program on other hosts.
pub(super) fn program_name() -> String {
    let exe = std::env::current_exe().unwrap_or_default();
    exe.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}
