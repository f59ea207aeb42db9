//! The store of checkpoints: the records of a run in a folder, whole generations of them, for any machine to read.
//!
//! `FORMAT.md` beside this file specifies what is on disk. [`Store`] keeps the generations of one folder, [`Writer`] writes
//! one, and [`Saved`] reads one. What has not changed since the last generation is not written again. A generation counts
//! once it is committed; whatever happens before that, the ones before it stay whole.

mod check;
mod codec;
mod copy;
mod disk;
mod error;
mod extents;
mod files;
mod find;
mod folder;
mod format;
mod known;
mod manifest;
mod record;
mod saved;
mod sight;
mod store;
mod taken_in;
mod understood;
mod writer;

pub use check::{Change, Difference, Identity, Verified};
pub use copy::{
    Copied, CopyError, Ends, Objects, answer, copy, list_objects, pull, pull_from_objects, push,
    push_to_objects,
};
pub use error::{Damage, ReadError, WriteError};
pub use find::Finder;
pub use manifest::{About, Listed, Machine, Overview, SavedSchema, SavedType, SavedVariable};
pub use record::{Kind, Record, SUM, VARIABLE};
pub use saved::{Records, Saved};
pub use sight::Sight;
pub use store::{Generation, Store};
pub use taken_in::TakenIn;
pub use understood::{Foreign, Understood, listed_variables, schemas, understand_variable};
pub use writer::{Writer, Written};

#[cfg(test)]
mod tests;
