//! The folder of a store: who writes into it, and what is removed from it.

use super::disk::Disk;
use super::error::{ReadError, WriteError};
use super::files::{Files, committed, numbers};
use super::known::Known;
use super::saved::Saved;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file that a run which writes into the folder holds locked.
const LOCK: &str = "LOCK";

/// What a store and its writer share.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) dir: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    /// How many generations are kept.
    kept: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Held for as long as the store is there.
    lock: Option<File>,
    is_writing: bool,
    /// What nodes said that they had written was not there: they are not to write themselves any more.
    is_hidden: bool,
    /// The chunks of the last generation that this process has written.
    known: Option<Known>,
}

impl Folder {
    pub(super) fn new(dir: &Path, disk: Arc<dyn Disk>, kept: usize) -> Self {
        Self { dir: dir.into(), disk, kept, state: Mutex::default() }
    }

    /// Keeps all others from writing into the folder.
    pub(super) fn lock(&self) -> Result<(), WriteError> {
        self.lock_in(&mut self.state())
    }

    /// A writer is to begin; what the one before it knew.
    pub(super) fn writer_begins(&self) -> Result<Option<Known>, WriteError> {
        let mut state = self.state();
        self.lock_in(&mut state)?;
        if std::mem::replace(&mut state.is_writing, true) {
            return Err(WriteError::Busy { dir: self.dir.clone() });
        }
        Ok(state.known.take())
    }

    /// Nodes that say that they see the folder do not.
    pub(super) fn hide(&self) {
        self.state().is_hidden = true;
    }

    /// Whether nodes that see the folder may write to it themselves.
    pub(super) fn is_hidden(&self) -> bool {
        self.state().is_hidden
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer is done; `known` are the chunks of what it has committed.
    pub(super) fn writer_ended(&self, known: Option<Known>) {
        let mut state = self.state();
        (state.is_writing, state.known) = (false, known);
    }

    /// Makes the folder and those around it that are missing, so that they outlast a crash.
    pub(super) fn make(&self) -> io::Result<()> {
        let dir = std::path::absolute(&self.dir)?;
        let missing: Vec<&Path> = dir.ancestors().take_while(|folder| !folder.is_dir()).collect();
        for folder in missing.into_iter().rev() {
            match self.disk.create_folder(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => self.disk.sync_folder(folder.parent().unwrap_or(folder))?,
            }
        }
        Ok(())
    }

    /// Whether the folder at its path is the one that others are kept from: it may have been moved away since, and
    /// another run may write into the one that is there now.
    pub(super) fn is_locked(&self) -> bool {
        is_at(self.state().lock.as_ref(), &self.dir.join(LOCK))
    }

    fn lock_in(&self, state: &mut State) -> Result<(), WriteError> {
        let path = self.dir.join(LOCK);
        if is_at(state.lock.as_ref(), &path) {
            return Ok(());
        }
        let unlocked = |error| WriteError::io(&path, error);
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(unlocked)?;
        match file.try_lock() {
            // What was known is of another folder, if there was one.
            Ok(()) => (state.lock, state.known) = (Some(file), None),
            Err(TryLockError::WouldBlock) => return Err(WriteError::Busy { dir: self.dir.clone() }),
            Err(TryLockError::Error(error)) => return Err(unlocked(error)),
        }
        Ok(())
    }

    /// Removes what no generation that is kept needs: generations that are older than those, and what runs that were
    /// killed have left. A generation in a format of the future is left alone.
    pub(super) fn remove_old(&self) -> io::Result<()> {
        let committed = committed(&self.dir)?;
        let mut kept = BTreeSet::new();
        let mut needed = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for &number in committed.iter().rev() {
            match Saved::open(&self.dir, number) {
                Ok(saved) if kept.len() < self.kept => {
                    kept.insert(number);
                    needed.extend(saved.chunk_files().map(|file| file.generation));
                }
                Err(ReadError::Version { .. } | ReadError::Codec { .. }) => drop(unknown.insert(number)),
                _ => {}
            }
        }
        if !unknown.is_empty() {
            return Ok(());
        }
        let oldest = kept.first().copied().unwrap_or(0);
        // A generation refers to chunks of older ones: it goes before they do.
        for number in numbers(&self.dir)?.into_iter().rev() {
            let is_old = number < oldest || !committed.contains(&number);
            if is_old && !kept.contains(&number) {
                self.remove_generation(number, needed.contains(&number))?;
            }
        }
        Ok(())
    }

    /// Removes a generation; its chunks stay if others need them. That it was committed goes first and for good, so that
    /// no crash leaves half of one that counts.
    pub(super) fn remove_generation(&self, number: u32, chunks_stay: bool) -> io::Result<()> {
        let files = Files::of(&self.dir, number);
        if files.commit.exists() {
            self.disk.remove(&files.commit)?;
            self.disk.sync_folder(&files.folder)?;
        }
        let rest = [&files.uncommitted, &files.manifest, &files.index, &files.token];
        for file in rest.into_iter().chain((!chunks_stay).then_some(&files.chunks)) {
            if file.exists() {
                self.disk.remove(file)?;
            }
        }
        if chunks_stay { Ok(()) } else { self.disk.remove_folder(&files.folder) }
    }
}

/// Whether this file is the one at that path.
fn is_at(held: Option<&File>, path: &Path) -> bool {
    let held = held.and_then(|file| file.metadata().ok());
    let there = fs::metadata(path);
    held.zip(there.ok()).is_some_and(|(held, there)| (held.dev(), held.ino()) == (there.dev(), there.ino()))
}
