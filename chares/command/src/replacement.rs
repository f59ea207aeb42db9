//! A file that takes its name only when it is complete.
//!
//! Whoever looks at the target sees the old file or the whole new one; an interrupted run leaves the old one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the new files are that have not taken their targets' names; `None` when the process ends, and none may be
/// begun or completed any more.
static UNFINISHED: Mutex<Option<Vec<PathBuf>>> = Mutex::new(Some(Vec::new()));

/// A new file beside its target, which takes the target's name by [`commit`](Self::commit), and is removed when
/// it is dropped before.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl Replacement {
    /// Creates the new file in the target's directory.
    ///
    /// # Errors
    /// If it cannot be created, or the target exists and is not a file (renaming would destroy a device).
    pub fn create(target: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if fs::metadata(target).is_ok_and(|old| !old.is_file()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "exists and is not a file"));
        }
        // A link stays one.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}-{count}.part", std::process::id()));
        let temporary = target.with_file_name(beside);
        let mut unfinished = unfinished();
        let unfinished = unfinished.as_mut().ok_or_else(ending)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary)?;
        unfinished.push(temporary.clone());
        Ok(Self { file, temporary, target })
    }

    /// Writes a whole file: what `fill` puts into it, which takes the target's name if all went well.
    ///
    /// # Errors
    /// What [`create`](Self::create), `fill` or [`commit`](Self::commit) fails with; an old file stays then.
    pub fn write(target: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let new = Self::create(target)?;
        let mut out = BufWriter::new(&new.file);
        fill(&mut out)?;
        out.flush()?;
        drop(out);
        new.commit()
    }

    /// The new file, open for reading and writing.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the target's name. An old file of that name is replaced.
    ///
    /// # Errors
    /// If the renaming fails; the new file is removed then.
    pub fn commit(mut self) -> io::Result<()> {
        let mut unfinished = unfinished();
        let unfinished = unfinished.as_mut().ok_or_else(ending)?;
        fs::rename(&self.temporary, &self.target)?;
        unfinished.retain(|path| *path != self.temporary);
        self.temporary.clear();
        Ok(())
    }
}

/// Whether a file of that name could be written; leaves nothing behind and an old file as it is. A long computation
/// asks before it begins.
///
/// # Errors
/// Why [`Replacement::create`] would fail.
pub fn can_be_written(target: &Path) -> io::Result<()> {
    Replacement::create(target).map(drop)
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.temporary.as_os_str().is_empty() {
            return;
        }
        // Where the process ends they have been removed.
        if let Some(unfinished) = unfinished().as_mut() {
            unfinished.retain(|path| *path != self.temporary);
            // Nothing more can be done about a file that cannot be removed, and the target is untouched.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Removes the new files of threads that do not come to their end before the process does.
pub(crate) fn abandon_all() {
    for path in unfinished().take().into_iter().flatten() {
        let _ = fs::remove_file(path);
    }
}

fn unfinished() -> MutexGuard<'static, Option<Vec<PathBuf>>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ending() -> io::Error {
    io::Error::other("the program is about to end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_stays_until_the_new_one_is_complete_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let [target, link] = ["c.npy", "link"].map(|name| folder.path().join(name));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for path in [&target, &link] {
            let begun = Replacement::create(path).unwrap();
            begun.file().write_all(b"half").unwrap();
            drop(begun);
            can_be_written(path).unwrap();
        }
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let whole = Replacement::create(&link).unwrap();
        whole.file().write_all(b"new").unwrap();
        whole.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(
            can_be_written(folder.path()).is_err() && can_be_written(&folder.path().join("no/c")).is_err()
        );
    }
}
