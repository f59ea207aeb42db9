//! The folder of checkpoints: which generations it has, whose it is, and which are removed.

use super::disk::{Disk, System};
use super::error::{ReadError, WriteError};
use super::files::committed;
use super::folder::Folder;
use super::manifest::About;
use super::saved::Saved;
use super::writer::Writer;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How many generations are kept at least: one that turns out to be damaged is not the only one.
const KEPT_MIN: usize = 2;

/// A folder of checkpoints.
#[derive(Clone, Debug)]
pub struct Store {
    folder: Arc<Folder>,
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

    /// The same, but keeps all generations.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_keeping_all(dir: &Path) -> Result<Self, WriteError> {
        Self::create_keeping(dir, usize::MAX)
    }

    /// The same, but keeps the newest `kept` generations, at least two.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_keeping(dir: &Path, kept: usize) -> Result<Self, WriteError> {
        let store = Self::on(dir, Arc::new(System), kept.max(KEPT_MIN));
        store.folder.make().map_err(|error| WriteError::io(dir, error))?;
        store.folder.lock()?;
        Ok(store)
    }

    pub(super) fn on(dir: &Path, disk: Arc<dyn Disk>, kept: usize) -> Self {
        Self { folder: Arc::new(Folder::new(dir, disk, kept)) }
    }

    /// The folder, as it was named.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.folder.dir
    }

    /// Begins a new generation. One at a time.
    ///
    /// # Errors
    /// If another run or another writer writes into the folder, or the file system refuses.
    pub fn begin(&self, about: About) -> Result<Writer, WriteError> {
        let known = self.folder.writer_begins()?;
        Writer::begin(Arc::clone(&self.folder), about, known).inspect_err(|_| self.folder.writer_ended(None))
    }

    /// The generations that were committed, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn generations(&self) -> Result<Vec<Generation>, ReadError> {
        let dir = &self.folder.dir;
        Ok(self
            .numbers()?
            .into_iter()
            .map(|number| Generation { number, saved: Saved::open(dir, number) })
            .collect())
    }

    /// The newest generation.
    ///
    /// # Errors
    /// If there is none, or it is damaged; then the error says which one is there instead.
    pub fn latest(&self) -> Result<Saved, ReadError> {
        let dir = &self.folder.dir;
        match self.numbers()?.last() {
            Some(newest) => Saved::open(dir, *newest),
            None => Err(ReadError::None { dir: dir.clone(), why: "no generation was completed".into() }),
        }
    }

    /// The generation of that number.
    ///
    /// # Errors
    /// If it is not there, or damaged; then the error says which one is there instead.
    pub fn generation(&self, number: u32) -> Result<Saved, ReadError> {
        let dir = &self.folder.dir;
        let numbers = self.numbers()?;
        if numbers.contains(&number) {
            return Saved::open(dir, number);
        }
        let there = match numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "none".into(),
            there => there,
        };
        Err(ReadError::NoSuch { dir: dir.clone(), number, there })
    }

    /// The numbers of the generations that were committed, oldest first.
    fn numbers(&self) -> Result<BTreeSet<u32>, ReadError> {
        let dir = &self.folder.dir;
        committed(dir).map_err(|error| ReadError::io(dir, error))
    }
}
