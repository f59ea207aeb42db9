//! Where the files of generations are, and which generations there are.

use nix::fcntl::OFlag;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The files of one generation.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    pub(super) chunks: PathBuf,
    pub(super) index: PathBuf,
    pub(super) manifest: PathBuf,
    pub(super) commit: PathBuf,
    /// The commit before it gets its name.
    pub(super) uncommitted: PathBuf,
    /// By what nodes know that they see this folder, while it is being written to.
    pub(super) token: PathBuf,
}

impl Files {
    pub(super) fn of(dir: &Path, generation: u32) -> Self {
        let folder = dir.join(format!("generation-{generation:06}"));
        let [chunks, index, manifest, commit, uncommitted, token] =
            ["chunks", "index", "MANIFEST.json", "COMMIT", "COMMIT.new", "TOKEN"]
                .map(|name| folder.join(name));
        Self { folder, chunks, index, manifest, commit, uncommitted, token }
    }
}

/// Opens a file to read. What only looks like one, such as a pipe in which nobody writes, must not make anybody wait.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

/// The numbers of all folders for generations, in order.
pub(super) fn numbers(dir: &Path) -> io::Result<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("generation-")?.parse().ok());
        numbers.extend(number.filter(|number| Files::of(dir, *number).folder.file_name() == Some(&name)));
    }
    Ok(numbers)
}

/// The numbers of the generations that were committed, in order.
pub(super) fn committed(dir: &Path) -> io::Result<BTreeSet<u32>> {
    let mut numbers = numbers(dir)?;
    numbers.retain(|number| Files::of(dir, *number).commit.exists());
    Ok(numbers)
}
