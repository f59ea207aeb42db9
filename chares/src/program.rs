//! A program: its chare types, and why a run of it may not end well.

use crate::chare::Chare;
use crate::store;
use runtime::failure::{Failure, Kind};
use runtime::object::{Kernel, ProgramTable, PupError};
use runtime::pe::queue::QueueOrder;
use serde::de::DeserializeOwned;
use std::any::TypeId;
use std::fmt;

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run could not go on: a chare failed, or memory ran out.
    #[error("{0}")]
    Failed(String),
    /// A node was lost.
    #[error("{sentence}")]
    NodeLost {
        /// Its name in the nodes file.
        node: String,
        /// What happened to it.
        sentence: String,
    },
    /// The result was checked and is wrong.
    #[error("{0}")]
    Wrong(String),
    /// What the user asked for or gave is not usable.
    #[error("{0}")]
    Input(String),
    /// A result could not be written.
    #[error("{0}")]
    Output(String),
    /// A message was not what its receiver expected.
    #[error(transparent)]
    Pup(#[from] PupError),
    /// The run was ended from outside, by its user or its time limit; or so was another one that a command of the
    /// program's own had started.
    #[error(transparent)]
    Ended(Failure),
    /// The application's own error.
    #[error(transparent)]
    App(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl RunError {
    /// What kind of failure it is, from which the exit code follows.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Wrong(_) | Self::App(_) => Kind::Wrong,
            Self::Input(_) => Kind::Input,
            // Only the run itself knows how the loss was noticed.
            Self::NodeLost { .. } => Kind::Unavailable,
            Self::Failed(_) | Self::Pup(_) => Kind::Failed,
            Self::Output(_) => Kind::Output,
            Self::Ended(failure) => failure.kind.clone(),
        }
    }

    /// The exit code of a program that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.kind().exit_code()
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// What the driver's waits say when the run has failed.
impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        let Failure { kind, sentence } = failure;
        match kind {
            Kind::NodeLost { node, .. } => Self::NodeLost { node, sentence },
            Kind::Failed => Self::Failed(sentence),
            kind => Self::Ended(Failure { kind, sentence }),
        }
    }
}

/// A program under construction: list its chare types, then run it, inside this process or from a command line.
pub struct Program {
    name: &'static str,
    version: &'static str,
    table: ProgramTable,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl Program {
    /// A program of that name and version; nodes refuse to work with another version.
    #[must_use]
    pub fn new(name: &'static str, version: &'static str) -> Self {
        let table = ProgramTable { name: name.into(), version: version.into(), ..ProgramTable::default() };
        Self { name, version, table }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Lists a chare type. All types that are ever made must be listed.
    ///
    /// # Panics
    /// If another type of the same name is listed already.
    #[must_use]
    pub fn chare<C: Chare>(mut self) -> Self {
        let made = store::chare_type::<C>();
        let is_new = self.table.chare_types.iter().all(|t| t.name != made.name);
        assert!(
            is_new,
            "two chare types are named {}: name one with `entries!(… as \"Name\": …)`",
            made.name
        );
        self.table.chare_types.push(made);
        self
    }

    /// Says how a state that was saved as an `Old`, when [`Chare::VERSION`] of `C` was `from`, becomes one of today's. `Old` has
    /// the fields that the type had then, with their names and in their order. Where `make` returns an error the run does not
    /// go on, and says it.
    ///
    /// # Panics
    /// If `C` is not listed yet.
    #[must_use]
    pub fn migrate<Old, C>(mut self, from: u16, make: fn(Old) -> Result<C, String>) -> Self
    where
        Old: DeserializeOwned + 'static,
        C: Chare,
    {
        let listed = self.table.chare_types.iter_mut().find(|t| t.type_id == TypeId::of::<C>());
        let listed = listed.expect("list a chare type before its migrations");
        listed.schema.migrations.push(store::migration(from, make));
        self
    }

    /// Says which of the messages of the same priority that wait on a PE is the next; by itself it is the one that came
    /// first. With the last first a program gets deeper before it gets broader, and its queues stay short; but messages
    /// from one sender to one chare run in no order that is promised, and what is old may wait for long.
    #[must_use]
    pub fn queue_order(mut self, order: QueueOrder) -> Self {
        self.table.queue_order = order;
        self
    }

    /// Lists a function by which speeds are measured; its number among the program's.
    ///
    /// # Panics
    /// If there are more than 65,536.
    pub fn add_kernel(&mut self, kernel: Kernel) -> u16 {
        self.table.kernels.push(kernel);
        u16::try_from(self.table.kernels.len() - 1).expect("a program has few applications")
    }

    /// What nodes are given: types and kernels by their numbers.
    #[must_use]
    pub fn table(&self) -> &ProgramTable {
        &self.table
    }

    /// The finished tables, when all types are listed.
    #[must_use]
    pub fn into_table(self) -> ProgramTable {
        self.table
    }
}
