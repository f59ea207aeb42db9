//! The executables that can be copied to nodes, known by the hash of their content.

use super::identity::{hash_of, own_hash};
use super::options::LaunchOptions;
use crate::architecture::Architecture;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use tokio::process::Command;
use tokio::sync::OnceCell;

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
    /// What is sent to hosts that can unpack it, made when the first one wants it.
    packed: Arc<OnceCell<Vec<u8>>>,
}

impl Build {
    pub(super) fn of(arch: &str, file: PathBuf, content: &[u8]) -> Self {
        Self {
            hash: hash_of(content).unwrap_or_default(),
            ..Self::known(arch, file, "", content.len() as u64)
        }
    }

    fn known(arch: &str, file: PathBuf, hash: &str, bytes: u64) -> Self {
        Self { arch: arch.into(), hash: hash.into(), bytes, file, packed: Arc::default() }
    }

    /// What a host is sent that wants the executable: a line that says how and how many bytes, and the bytes.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) async fn parcel(&self, can_unpack: bool) -> io::Result<Vec<u8>> {
        if can_unpack {
            match self.packed.get_or_try_init(|| packed(self.file.clone())).await {
                Ok(bytes) => return Ok(parcel("gzip", bytes)),
                Err(error) => tracing::info!("the executable is sent as it is: gzip: {error}"),
            }
        }
        Ok(parcel("plain", &std::fs::read(&self.file)?))
    }
}

fn parcel(how: &str, bytes: &[u8]) -> Vec<u8> {
    [format!("{how} {}\n", bytes.len()).as_bytes(), bytes].concat()
}

/// A file as this machine's `gzip` packs it: a third of the size for a fraction of a second.
async fn packed(file: PathBuf) -> io::Result<Vec<u8>> {
    let file = std::fs::File::open(file)?;
    let done = Command::new("gzip").arg("-3").stdin(file).stderr(Stdio::null()).output().await?;
    if done.status.success() { Ok(done.stdout) } else { Err(io::Error::other(done.status.to_string())) }
}

/// This executable, and those of the nodes file for other architectures. What cannot be read is left out: it
/// may not be needed.
pub(super) fn builds(options: &LaunchOptions) -> Vec<Build> {
    let here = here();
    let own = std::env::current_exe().ok().and_then(|file| {
        let bytes = std::fs::metadata(&file).ok()?.len();
        Some(Build::known(&here, file, own_hash(), bytes))
    });
    let others = options
        .binaries
        .iter()
        .filter(|(arch, _)| **arch != here)
        .filter_map(|(arch, file)| Some(Build::of(arch, file.clone(), &std::fs::read(file).ok()?)));
    own.into_iter().chain(others).collect()
}

/// This program's architecture.
pub(super) fn here() -> String {
    name_of(&Architecture::here())
}

/// The name of an architecture as `uname -m` and `uname -s` of its machines say it, which is not always Rust's.
pub(super) fn name_of(of: &Architecture) -> String {
    let arch = match (of.arch.as_str(), of.endian.as_str()) {
        ("x86", _) => "i686",
        ("arm", _) => "armv7l",
        ("powerpc64", "little") => "ppc64le",
        ("powerpc64", _) => "ppc64",
        ("aarch64", _) if of.os == "macos" => "arm64",
        (arch, _) => arch,
    };
    format!("{arch}-{}", if of.os == "macos" { "darwin" } else { of.os.as_str() })
}

/// The name of this program on other hosts.
pub(super) fn program_name() -> String {
    let exe = std::env::current_exe().unwrap_or_default();
    exe.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn architectures_are_named_as_their_hosts_name_themselves() {
        let of = |arch: &str, os: &str, endian: &str| {
            name_of(&Architecture {
                arch: arch.into(),
                os: os.into(),
                endian: endian.into(),
                pointer_bits: 64,
            })
        };
        assert_eq!(of("aarch64", "linux", "little"), "aarch64-linux");
        assert_eq!(of("s390x", "linux", "big"), "s390x-linux");
        assert_eq!(of("x86", "linux", "little"), "i686-linux");
        assert_eq!(of("powerpc64", "linux", "little"), "ppc64le-linux");
        assert_eq!(of("aarch64", "macos", "little"), "arm64-darwin");
        let said = Command::new("uname").args(["-m", "-s"]).output().unwrap().stdout;
        let said = String::from_utf8(said).unwrap().to_lowercase();
        let (system, machine) = said.trim().split_once(' ').unwrap();
        // A program of 32 bits may run on a host of 64.
        assert!(here() == format!("{machine}-{system}") || usize::BITS < 64, "{} on {said}", here());
    }
}
