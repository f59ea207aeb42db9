//! What a store does to its folder, so that tests can have it fail at any point.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Changes to files and folders. Nothing is sure to outlast a crash before it has been synchronised: the bytes of a file
/// by the file, and names by their folder.
pub(super) trait Disk: Debug + Send + Sync {
    /// Makes a new file; one that is there is an error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
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

/// The file system of this machine.
#[derive(Debug)]
pub(super) struct System;

impl Disk for System {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(File::create_new(path)?))
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

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
