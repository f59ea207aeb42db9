//! What a store does to its folder, so that tests can have it fail at any point.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The system would keep that much and more in memory until the end, and the disk would stand idle while chunks are hashed.
const AHEAD_BYTES: usize = 32 << 20;

/// Changes to files and folders. Nothing is sure to outlast a crash before it has been synchronised: the bytes of a file
/// by the file, and names by their folder.
pub(super) trait Disk: Debug + Send + Sync {
    /// Makes a new file; one that is there is an error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Opens a file to write to any places of it; one that is not there is made.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Patch>>;
    /// Makes a folder; one that is there is an error.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Gives a file another name; a file of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Waits until the names in a folder outlast a crash.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is being written.
pub(super) trait Output: Write + Debug + Send {
    /// Waits until what was written outlasts a crash.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file of which parts are written.
pub(super) trait Patch: Debug + Send {
    /// Writes all of the bytes to that place.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Gives the file that length.
    fn set_length(&mut self, bytes: u64) -> io::Result<()>;
    /// Waits until what was written outlasts a crash.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Debug)]
pub(super) struct System;

impl Disk for System {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Patch>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        Ok(Box::new(SystemFile::new(file)))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// A file whose bytes go to the disk while more are written.
#[derive(Debug)]
pub(super) struct SystemFile {
    file: Arc<File>,
    /// Written since somebody last began to wait for the disk.
    waiting_bytes: usize,
    ahead: Option<JoinHandle<io::Result<()>>>,
}

impl SystemFile {
    pub(super) fn new(file: File) -> Self {
        Self { file: Arc::new(file), waiting_bytes: 0, ahead: None }
    }

    /// So many bytes more have been written: sees that the disk does not stand idle.
    fn go_ahead(&mut self, bytes: usize) -> io::Result<()> {
        self.waiting_bytes += bytes;
        if self.waiting_bytes >= AHEAD_BYTES && self.ahead.as_ref().is_none_or(JoinHandle::is_finished) {
            self.join()?;
            let file = Arc::clone(&self.file);
            self.ahead = Some(thread::Builder::new().spawn(move || file.sync_data())?);
            self.waiting_bytes = 0;
        }
        Ok(())
    }

    /// Waits for who waits for the disk. The system tells of a failure once, so nobody may miss it.
    fn join(&mut self) -> io::Result<()> {
        let ahead = self.ahead.take().map(JoinHandle::join);
        ahead.map_or(Ok(()), |done| done.unwrap_or_else(|_| Err(io::Error::other("a thread has failed"))))
    }
}

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Patch for SystemFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        self.go_ahead(bytes.len())
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.join()?;
        self.file.sync_all()
    }
}
