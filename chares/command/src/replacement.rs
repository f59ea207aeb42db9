//! A file that takes its name only when it is complete.
//!
//! Whoever looks at the target sees the old file or the whole new one; an interrupted run leaves the old one. What a
//! killed one leaves beside it the next one to the same target removes. For that, names and locks of unfinished files have to
//! be known here, and what is left for a crate such as `tempfile` is to create and to rename.

use nix::fcntl::OFlag;
use runtime::ownership::place_of;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
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
    /// Creates the new file in the target's directory, and removes those that killed processes have left for it.
    ///
    /// # Errors
    /// If it cannot be created, or the target exists and is not a file (renaming would destroy a device), or is reached by
    /// a link that another user may have put there.
    pub fn create(target: &Path) -> io::Result<Self> {
        if fs::metadata(target).is_ok_and(|old| !old.is_file()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "exists and is not a file"));
        }
        // A link stays one.
        let target = place_of(target)?;
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
        let mut unfinished = unfinished();
        let unfinished = unfinished.as_mut().ok_or_else(ending)?;
        remove_abandoned(&target, name);
        let (file, temporary) = beside(&target, name)?;
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

/// How the names of new files for a target begin and end; in between is what no two of them share.
fn first_part(name: &OsStr) -> OsString {
    [OsStr::new("."), name, OsStr::new(".")].into_iter().collect()
}
const LAST_PART: &str = ".part";

/// A new file beside the target. It stays locked as long as the process lives, so that others see that it is not abandoned.
fn beside(target: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut own = first_part(name);
        own.push(format!("{}-{}{LAST_PART}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let path = target.with_file_name(own);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        // Where there are no locks, nobody removes what is not locked.
        let _ = file.lock();
        // Somebody may have seen it before it was locked, and removed it.
        if file.metadata()?.nlink() > 0 {
            return Ok((file, path));
        }
    }
}

/// Removes new files of this user for the target whose processes were killed: a lock ends with its process, also on
/// another host, while its number may be another one's by now. What cannot be removed only stays.
fn remove_abandoned(target: &Path, name: &OsStr) {
    let first = first_part(name);
    let folder = target.parent().unwrap_or(Path::new("/"));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let other = entry.file_name();
        let middle = other.as_bytes().strip_prefix(first.as_bytes());
        let middle = middle.and_then(|rest| rest.strip_suffix(LAST_PART.as_bytes()));
        let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let mut numbers = middle.unwrap_or_default().split(|&byte| byte == b'-');
        let is_ours = numbers.next().is_some_and(is_number) && numbers.next().is_some_and(is_number);
        if !is_ours || numbers.next().is_some() {
            continue;
        }
        // Whatever else somebody has put there under such a name is neither waited for nor followed.
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(entry.path()) else { continue };
        let is_own = |data: fs::Metadata| data.is_file() && data.uid() == nix::unistd::geteuid().as_raw();
        if file.metadata().is_ok_and(is_own) && is_abandoned(&file) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether no process holds the file's lock. Where there are no locks that is not known.
fn is_abandoned(file: &File) -> bool {
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
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
    fn what_killed_processes_have_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let other_writer = Replacement::create(&at("c.npy")).unwrap();
        let locked = File::create(at(".c.npy.12-0.part")).unwrap();
        locked.lock().unwrap();
        let kept =
            [".c.npy.part", ".c.npy.1-2-3.part", ".c.npy.x-1.part", ".d.npy.7-0.part", "c.npy.7-0.part"];
        kept.iter().for_each(|name| fs::write(at(name), "").unwrap());
        std::os::unix::fs::symlink(at("d"), at(".c.npy.9-0.part")).unwrap();
        nix::unistd::mkfifo(&at(".c.npy.10-0.part"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let abandoned = [".c.npy.7-0.part", ".c.npy.4000000000-12.part"];
        abandoned.iter().for_each(|name| fs::write(at(name), "half").unwrap());
        can_be_written(&at("c.npy")).unwrap();
        assert!(abandoned.iter().all(|name| !at(name).exists()));
        assert!(kept.iter().all(|name| at(name).exists()) && at(".c.npy.12-0.part").exists());
        assert!(at(".c.npy.9-0.part").is_symlink() && at(".c.npy.10-0.part").exists());
        other_writer.file().write_all(b"new").unwrap();
        other_writer.commit().unwrap();
        assert_eq!(fs::read(at("c.npy")).unwrap(), b"new");
    }

    /// Each sees the other's new files, also in the moment before they are locked.
    #[test]
    fn two_writers_to_one_target_take_nothing_from_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("c.npy");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        Replacement::write(&target, |out| out.write_all(b"whole")).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

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
