//! A file that takes its name only when it is complete.
//!
//! Whoever looks at the target sees the old file or the whole new one; an interrupted run leaves the old one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new file beside `target`; removed again unless [`commit`](Self::commit)ted.
#[derive(Debug)]
pub(super) struct Replacement {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl Replacement {
    /// Creates the new file in the target's directory.
    ///
    /// # Errors
    /// If it cannot be created, or the target exists and is not a file (renaming would destroy a device).
    pub(super) fn create(target: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if fs::metadata(target).is_ok_and(|old| !old.is_file()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "exists and is not a file"));
        }
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}-{count}.part", std::process::id()));
        let temporary = target.with_file_name(beside);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary)?;
        Ok(Self { file, temporary, target: target.to_owned() })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the target's name.
    ///
    /// # Errors
    /// If the renaming fails; the new file is removed then.
    pub(super) fn commit(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.target)?;
        self.temporary.clear();
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // Nothing more can be done about a file that cannot be removed, and the target is untouched.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
