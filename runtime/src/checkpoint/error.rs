//! What can go wrong with a folder of checkpoints, each in one sentence.

use crate::failure::{Failure, Kind};
use std::io;
use std::path::{Path, PathBuf};

/// Why a checkpoint cannot be written. Generations that were committed before are as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Another run writes into the folder.
    #[error("{} is in use by another run: give each run a folder of its own", dir.display())]
    Busy {
        /// The folder.
        dir: PathBuf,
    },
    /// The file system refused.
    #[error("{} cannot be written: {source}{}{}", path.display(), mend(source), remaining(*last))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The last generation that was committed, if there is one.
        last: Option<u32>,
        /// Why.
        source: io::Error,
    },
    /// A write failed before, and this generation was given up.
    #[error("this checkpoint was given up when a write failed")]
    GivenUp,
}

/// What to do about it, where that does not go without saying.
fn mend(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room there",
        io::ErrorKind::NotFound => {
            "; the folder has been removed or moved: bring it back, or make an empty one there"
        }
        io::ErrorKind::PermissionDenied => "; whoever runs this has to be allowed to write there",
        _ => "",
    }
}

fn remaining(last: Option<u32>) -> String {
    last.map_or_else(String::new, |last| {
        format!("; the checkpoint before it, generation {last}, is as it was")
    })
}

impl WriteError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.into(), last: None, source }
    }

    pub(super) fn kind(&self) -> Kind {
        if matches!(self, Self::Busy { .. }) { Kind::Unavailable } else { Kind::Output }
    }

    /// The same, with what is left to restart from.
    pub(super) fn with_last(self, committed: Option<u32>) -> Self {
        match self {
            Self::Io { path, source, .. } => Self::Io { path, last: committed, source },
            other => other,
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// A part of a checkpoint is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Damage {
    pub(super) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }
}

/// Why a checkpoint cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no folder, or it holds no checkpoint.
    #[error("{} holds no checkpoint: {why}", dir.display())]
    None {
        /// The folder.
        dir: PathBuf,
        /// What is there instead.
        why: String,
    },
    /// The generation that was asked for is not there.
    #[error("{} has no generation {number}; it has {there}", dir.display())]
    NoSuch {
        /// The folder.
        dir: PathBuf,
        /// What was asked for.
        number: u32,
        /// Which there are.
        there: String,
    },
    /// Something is not what was written.
    #[error("generation {generation} is damaged: {damage}{}", offered(*before))]
    Damaged {
        /// The generation.
        generation: u32,
        /// Where, and what.
        damage: Damage,
        /// The newest generation before it of which no damage is known.
        before: Option<u32>,
    },
    /// It was written in a format that this program does not know.
    #[error(
        "{} is of format {version}, and this program reads formats {} to {}: use the version of the program that wrote it",
        path.display(), super::format::OLDEST, super::format::VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It holds chunks that are compressed in a way that this program does not know.
    #[error(
        "{} has chunks that are stored in way {codec}, which this program does not know: use the version of the program that \
         wrote it", path.display()
    )]
    Codec {
        /// The file.
        path: PathBuf,
        /// The number of the way.
        codec: u8,
    },
    /// The file system refused.
    #[error("{} cannot be read: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn offered(before: Option<u32>) -> String {
    before.map_or_else(String::new, |before| format!("; generation {before} is there, use that one"))
}

impl ReadError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::None { .. } | Self::NoSuch { .. } | Self::Io { .. } => Kind::NoInput,
            Self::Damaged { .. } | Self::Version { .. } | Self::Codec { .. } => Kind::Input,
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(error.kind(), error)
    }
}
