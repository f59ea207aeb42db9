//! Whether a program understands the records of a checkpoint, and how it takes them in: said before anything is started.

use super::error::ReadError;
use super::manifest::{SavedSchema, SavedType};
use super::record::{Kind, Record};
use super::saved::Saved;
use crate::envelope::Packed;
use crate::failure::{Failure, Kind as FailureKind};
use crate::object::ProgramTable;
use crate::schema::{Change, Migrate, Path, STATE, Value, difference, fits};
use std::collections::BTreeMap;
use std::fmt;

/// What the records of each chare type of a program are made of, by the name of the type.
#[must_use]
pub fn schemas(program: &ProgramTable) -> Vec<(String, SavedSchema)> {
    let schema = |of: &crate::schema::Schema| SavedSchema { version: of.version, shape: (of.shape)() };
    program.chare_types.iter().map(|of| (of.name.clone(), schema(&of.schema))).collect()
}

/// How a program takes in the records of a checkpoint: as they are, or migrated.
pub struct Understood {
    migrations: BTreeMap<String, Migrate>,
}

impl fmt::Debug for Understood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Understood with migrations of {:?}", self.migrations.keys())
    }
}

/// Why a program does not understand a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// It does not have the type.
    #[error("{name} is no type of this program: go on with the program that wrote it")]
    Unknown {
        /// The type.
        name: String,
    },
    /// The type has changed.
    #[error(
        "{} {}: go on with the program that wrote it, or list a migration from version {version} of {name}",
        part(name, &change.path), change.what
    )]
    Changed {
        /// The type.
        name: String,
        /// Its version when it was saved.
        version: u16,
        /// Where it differs first.
        change: Change,
    },
    /// The type says of itself that it has changed.
    #[error(
        "{name} was of version {was} and is of {is} now: go on with the program that wrote it, or list a migration from \
         version {was}"
    )]
    Version {
        /// The type.
        name: String,
        /// Its version when it was saved.
        was: u16,
        /// Its version now.
        is: u16,
    },
    /// The migration is from something else.
    #[error("{} {} in its migration from version {version}: that is not from what was saved", part(name, &change.path), change.what)]
    OtherMigration {
        /// The type.
        name: String,
        /// Its version when it was saved.
        version: u16,
        /// Where what was saved and what the migration begins with differ first.
        change: Change,
    },
    /// A migration failed.
    #[error("{name}{index:?} cannot be migrated: {why}")]
    Migration {
        /// The type.
        name: String,
        /// The index of the chare.
        index: [u32; 3],
        /// What the migration said.
        why: String,
    },
    /// A number is too big for a machine that is to have it.
    #[error("{name}{index:?}: {misfit}")]
    Narrow {
        /// The type.
        name: String,
        /// The index of the chare.
        index: [u32; 3],
        /// Which number.
        misfit: crate::schema::Misfit,
    },
    /// It cannot be read.
    #[error(transparent)]
    Unread(#[from] ReadError),
}

impl From<Foreign> for Failure {
    fn from(error: Foreign) -> Self {
        match error {
            Foreign::Unread(error) => error.into(),
            other => Self::new(FailureKind::Input, other),
        }
    }
}

/// A part of a chare by the name of its type; of its own state if it does not say otherwise.
fn part(name: &str, path: &Path) -> String {
    let own = path.inside(STATE).unwrap_or_else(|| path.clone()).to_string();
    if own.is_empty() || own.starts_with('[') { format!("{name}{own}") } else { format!("{name}.{own}") }
}

impl Understood {
    /// Compares the types of a checkpoint with those of a program. Of types whose shape the checkpoint does not have, only the
    /// name is compared.
    ///
    /// # Errors
    /// The first type that the program does not understand.
    pub fn new(saved: &Saved, program: &ProgramTable) -> Result<Self, Foreign> {
        let mut migrations = BTreeMap::new();
        for saved in saved.types().iter().filter(|of| of.kind == Kind::Chare.to_string()) {
            if let Some(migrate) = understand(saved, program)? {
                migrations.insert(saved.name.clone(), migrate);
            }
        }
        Ok(Self { migrations })
    }

    /// The value of a record, as the program has it today.
    ///
    /// # Errors
    /// If its migration says that it cannot be.
    pub fn take_in(&self, record: &Record) -> Result<Packed, Foreign> {
        let migrate = self.migrations.get(&record.type_name).filter(|_| record.kind == Kind::Chare);
        let Some(migrate) = migrate else { return Ok(record.packed.clone()) };
        let Record { type_name, index, .. } = record;
        migrate(&record.packed).map_err(|why| Foreign::Migration {
            name: type_name.clone(),
            index: *index,
            why,
        })
    }
}

fn understand(saved: &SavedType, program: &ProgramTable) -> Result<Option<Migrate>, Foreign> {
    let name = saved.name.clone();
    let own = program.chare_types.iter().find(|own| own.name == name).map(|own| &own.schema);
    let own = own.ok_or_else(|| Foreign::Unknown { name: name.clone() })?;
    let Some(SavedSchema { version, shape }) = &saved.schema else { return Ok(None) };
    let version = *version;
    let change = difference(shape, &(own.shape)());
    if version == own.version && change.is_none() {
        return Ok(None);
    }
    if let Some(migration) = own.migrations.iter().find(|migration| migration.from == version) {
        return match difference(shape, &(migration.shape)()) {
            None => Ok(Some(migration.apply.clone())),
            Some(change) => Err(Foreign::OtherMigration { name, version, change }),
        };
    }
    Err(match change {
        Some(change) => Foreign::Changed { name, version, change },
        None => Foreign::Version { name, was: version, is: own.version },
    })
}

impl Saved {
    /// Whether machines whose addresses have so many bits have room for all numbers of all chares.
    ///
    /// # Errors
    /// The first number that is too big for them; or if the checkpoint cannot be read.
    pub fn fits(&self, pointer_bits: u32) -> Result<(), Foreign> {
        if pointer_bits >= u64::BITS {
            return Ok(());
        }
        for record in self.records_of_kind(Kind::Chare) {
            let record = record?;
            let value = self.schema_of(&record).and_then(|of| Value::read(&of.shape, &record.packed).ok());
            if let Some(misfit) = value.and_then(|value| fits(&value, pointer_bits)) {
                let Record { type_name, index, .. } = record;
                return Err(Foreign::Narrow { name: type_name, index, misfit });
            }
        }
        Ok(())
    }

    /// What a record is made of, where that is known.
    #[must_use]
    pub fn schema_of(&self, record: &Record) -> Option<&SavedSchema> {
        let kind = record.kind.to_string();
        let of = self.types().iter().find(|of| of.kind == kind && of.name == record.type_name)?;
        of.schema.as_ref()
    }
}
