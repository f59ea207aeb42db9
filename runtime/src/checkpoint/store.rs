//! The folder of checkpoints: which generations it has, whose it is, and which are removed.

use super::disk::{Disk, System};
use super::manifest::About;
use super::saved::{Files, Saved};
use super::writer::{Known, Writer};
use super::{ReadError, WriteError};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file that a run which writes into the folder holds locked.
const LOCK: &str = "LOCK";
/// How many generations are kept at least: one that turns out to be damaged is not the only one.
const KEPT_MIN: usize = 2;

/// A folder of checkpoints.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

/// What a store and its writer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dir: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    kept: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Held for as long as the store is there.
    lock: Option<File>,
    is_writing: bool,
    /// The chunks of the last generation that this process has written.
    pub(super) known: Option<Known>,
}

/// A generation that was committed.
#[derive(Debug)]
pub struct Generation {
    /// Its number; later ones have higher ones.
    pub number: u32,
    /// What it holds, or what is wrong with it. Its chunks have not been looked at.
    pub saved: Result<Saved, ReadError>,
}

impl Store {
    /// The checkpoints in a folder, to read.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn open(dir: &Path) -> Result<Self, ReadError> {
        let none = |why: &str| ReadError::None { dir: dir.into(), why: why.into() };
        match fs::metadata(dir) {
            Ok(there) if there.is_dir() => Ok(Self::on(dir, Arc::new(System), KEPT_MIN)),
            Ok(_) => Err(none("it is not a folder")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(none("it is not there")),
            Err(error) => Err(ReadError::io(dir, error)),
        }
    }

    /// A folder to write checkpoints into, made if need be. Nobody else can write into it as long as this is there.
    /// Keeps the newest two generations.
    ///
    /// # Errors
    /// If the folder cannot be made, or another run writes into it.
    pub fn create(dir: &Path) -> Result<Self, WriteError> {
        Self::create_keeping(dir, KEPT_MIN)
    }

    /// The same, but keeps the newest `kept` generations, at least two.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_keeping(dir: &Path, kept: usize) -> Result<Self, WriteError> {
        fs::create_dir_all(dir).map_err(|error| WriteError::io(dir, error))?;
        let store = Self::on(dir, Arc::new(System), kept.max(KEPT_MIN));
        store.shared.lock_folder(&mut store.shared.state())?;
        Ok(store)
    }

    pub(super) fn on(dir: &Path, disk: Arc<dyn Disk>, kept: usize) -> Self {
        Self { shared: Arc::new(Shared { dir: dir.into(), disk, kept, state: Mutex::default() }) }
    }

    /// Begins a new generation. One at a time.
    ///
    /// # Errors
    /// If another run or another writer writes into the folder, or the file system refuses.
    pub fn begin(&self, about: About) -> Result<Writer, WriteError> {
        let known = {
            let mut state = self.shared.state();
            self.shared.lock_folder(&mut state)?;
            if std::mem::replace(&mut state.is_writing, true) {
                return Err(WriteError::Busy { dir: self.shared.dir.clone() });
            }
            state.known.take()
        };
        Writer::begin(Arc::clone(&self.shared), about, known).inspect_err(|_| self.shared.writer_ended(None))
    }

    /// The generations that were committed, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn generations(&self) -> Result<Vec<Generation>, ReadError> {
        let dir = &self.shared.dir;
        let numbers = committed(dir).map_err(|error| ReadError::io(dir, error))?;
        Ok(numbers.into_iter().map(|number| Generation { number, saved: Saved::open(dir, number) }).collect())
    }

    /// The newest generation.
    ///
    /// # Errors
    /// If there is none, or it is damaged; then the error says which one is there instead.
    pub fn latest(&self) -> Result<Saved, ReadError> {
        let dir = &self.shared.dir;
        let numbers = committed(dir).map_err(|error| ReadError::io(dir, error))?;
        match numbers.last() {
            Some(newest) => Saved::open(dir, *newest),
            None => Err(ReadError::None { dir: dir.clone(), why: "no generation was completed".into() }),
        }
    }

    /// The generation of that number.
    ///
    /// # Errors
    /// If it is not there, or damaged; then the error says which one is there instead.
    pub fn generation(&self, number: u32) -> Result<Saved, ReadError> {
        let dir = &self.shared.dir;
        let numbers = committed(dir).map_err(|error| ReadError::io(dir, error))?;
        if numbers.contains(&number) {
            return Saved::open(dir, number);
        }
        let there = match numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "none".into(),
            there => there,
        };
        Err(ReadError::NoSuch { dir: dir.clone(), number, there })
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer is done; `known` are the chunks of what it has committed.
    pub(super) fn writer_ended(&self, known: Option<Known>) {
        let mut state = self.state();
        (state.is_writing, state.known) = (false, known);
    }

    fn lock_folder(&self, state: &mut State) -> Result<(), WriteError> {
        if state.lock.is_some() {
            return Ok(());
        }
        let path = self.dir.join(LOCK);
        let unlocked = |error| WriteError::io(&path, error);
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(unlocked)?;
        match file.try_lock() {
            Ok(()) => state.lock = Some(file),
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
                Err(ReadError::Version { .. }) => drop(unknown.insert(number)),
                _ => {}
            }
        }
        if !unknown.is_empty() {
            return Ok(());
        }
        let oldest = kept.first().copied().unwrap_or(0);
        for number in numbers(&self.dir)? {
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
        let rest = [&files.uncommitted, &files.manifest, &files.index];
        for file in rest.into_iter().chain((!chunks_stay).then_some(&files.chunks)) {
            if file.exists() {
                self.disk.remove(file)?;
            }
        }
        if chunks_stay { Ok(()) } else { self.disk.remove_folder(&files.folder) }
    }
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
