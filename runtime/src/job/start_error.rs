//! Why a run does not start.

use crate::failure::{Failure, Kind};
use crate::launch::LaunchError;
use crate::proto::membership::JoinError;
use std::net::SocketAddr;

/// Why a run did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A node was not started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A node did not join.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A node cannot be reached over the network.
    #[error(
        "node {name:?} at {address} is not reached over UDP: {reason}; open the firewall between the hosts, or set `address` of the node to one that is reachable"
    )]
    Unreachable {
        /// Its name.
        name: String,
        /// Where it listens.
        address: SocketAddr,
        /// What failed.
        reason: String,
    },
    /// A node was lost before the run began.
    #[error("node {name:?} was lost while it joined: {reason}")]
    Lost {
        /// Its name.
        name: String,
        /// What happened.
        reason: String,
    },
    /// This machine does not permit what a launcher needs.
    #[error("{0}")]
    Local(String),
    /// The run was ended while it started.
    #[error(transparent)]
    Ended(Failure),
}

impl StartError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Launch(_) | Self::Join(_) | Self::Unreachable { .. } | Self::Lost { .. } => {
                Kind::Unavailable
            }
            Self::Local(_) => Kind::Failed,
            Self::Ended(failure) => failure.kind.clone(),
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// What this machine does not permit.
pub(super) fn local(what: &str, error: &dyn std::fmt::Display) -> StartError {
    StartError::Local(format!("{what}: {error}"))
}
