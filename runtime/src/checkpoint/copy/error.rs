//! Why a checkpoint was not copied.

use super::super::error::{ReadError, WriteError};
use crate::failure::{Failure, Kind};
use std::io;
use std::path::PathBuf;

/// Why a checkpoint was not copied. What has arrived is kept, and is not sent again by the next copy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// It cannot be read, or what is there now is not what was given.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The other end has gone.
    #[error("the copy was cut off: {0}; the same command goes on from there")]
    Lost(io::Error),
    /// The other end does not do its part.
    #[error("the other end is no copy of checkpoints: {0}")]
    Nonsense(&'static str),
    /// A chunk is not what its checksum says.
    #[error(
        "{}: the chunk at byte {offset} ({bytes} bytes) did not arrive whole; the same command goes on from there",
        path.display()
    )]
    Damaged {
        /// The file that it is for.
        path: PathBuf,
        /// Its place there.
        offset: u64,
        /// Its length.
        bytes: u32,
    },
    /// Something else is where it would be.
    #[error(
        "{} belongs to another generation {generation} than the one that is copied, as of another run: copy to another folder",
        path.display()
    )]
    Taken {
        /// The file.
        path: PathBuf,
        /// The number of the generation.
        generation: u32,
    },
    /// What the other end says of itself.
    #[error("{}", .0.sentence)]
    There(#[from] Failure),
}

impl CopyError {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Write(error) => error.kind(),
            Self::There(failure) => failure.kind.clone(),
            Self::Lost(_) => Kind::Unavailable,
            Self::Nonsense(_) | Self::Damaged { .. } => Kind::Input,
            Self::Taken { .. } => Kind::Output,
        }
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        Self::new(error.kind(), error)
    }
}
