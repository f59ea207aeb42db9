//! Whether a program understands the records of a checkpoint, and how it takes them in: said before anything is started.

use super::error::ReadError;
use super::manifest::{SavedSchema, SavedVariable};
use super::record::{Kind, Record};
use super::saved::Saved;
use crate::envelope::Packed;
use crate::failure::{Failure, Kind as FailureKind};
use crate::object::{ProgramTable, VariableMigration};
use crate::schema::{Change, Migrate, STATE, Schema, Value, difference, fits};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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
        change.path.of(name), change.what
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
    #[error("{} {} in its migration from version {version}: that is not from what was saved", change.path.of(name), change.what)]
    OtherMigration {
        /// The type.
        name: String,
        /// Its version when it was saved.
        version: u16,
        /// Where what was saved and what the migration begins with differ first.
        change: Change,
    },
    /// A migration failed.
    #[error("{whose} cannot be migrated: {why}")]
    Migration {
        /// Of which chare or variable.
        whose: String,
        /// What the migration said.
        why: String,
    },
    /// A number is too big for a machine that is to have it.
    #[error("{whose}: {misfit}")]
    Narrow {
        /// Of which chare or variable.
        whose: String,
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

impl Understood {
    /// Compares the types of a checkpoint with those of a program. Of types whose shape the checkpoint does not have, only the
    /// name is compared.
    ///
    /// # Errors
    /// The first type that the program does not understand.
    pub fn new(saved: &Saved, program: &ProgramTable) -> Result<Self, Foreign> {
        let mut migrations = BTreeMap::new();
        for saved in saved.types().iter().filter(|of| of.kind == Kind::Chare.to_string()) {
            let own = program.chare_types.iter().find(|own| own.name == saved.name).map(|own| &own.schema);
            let own = own.ok_or_else(|| Foreign::Unknown { name: saved.name.clone() })?;
            let Some(schema) = &saved.schema else { continue };
            let migrate = understand(&saved.name, schema, own).map_err(Foreign::of_state)?;
            if let Some(migrate) = migrate {
                migrations.insert(saved.name.clone(), migrate);
            }
        }
        Ok(Self { migrations })
    }

    /// Whether it takes in any records otherwise than they are.
    pub(super) fn migrates(&self) -> bool {
        !self.migrations.is_empty()
    }

    /// The value of a record, as the program has it today.
    ///
    /// # Errors
    /// If its migration says that it cannot be.
    pub fn take_in(&self, record: &Record) -> Result<Packed, Foreign> {
        let migrate = self.migrations.get(&record.type_name).filter(|_| record.kind == Kind::Chare);
        let Some(migrate) = migrate else { return Ok(record.packed.clone()) };
        let whose = format!("{}{:?}", record.type_name, record.index);
        migrate(&record.packed).map_err(|why| Foreign::Migration { whose, why })
    }
}

impl Foreign {
    /// What is found in a record of a chare is said of the chare's own state, unless it lies beside that.
    fn of_state(mut self) -> Self {
        if let Self::Changed { change, .. } | Self::OtherMigration { change, .. } = &mut self
            && let Some(inside) = change.path.inside(STATE)
        {
            change.path = inside;
        }
        self
    }
}

/// How a program takes in the values of a shared variable that it has made of a type with that schema: by a migration, or as they
/// are.
///
/// # Errors
/// Why it does not understand them.
pub fn understand_variable(saved: &SavedVariable, own: &Schema) -> Result<Option<Migrate>, Foreign> {
    understand(&saved.name, &saved.schema, own)
}

/// What the shared variables of a checkpoint are made of in a program, and how it takes in their values: of those to whose types it
/// lists migrations. Of all others only the driver knows the types, when it makes them.
///
/// # Errors
/// The first variable that the program does not understand.
pub fn listed_variables(
    saved: &Saved,
    program: &ProgramTable,
) -> Result<BTreeMap<u64, (SavedVariable, Option<Migrate>)>, Foreign> {
    let mut listed = BTreeMap::new();
    for variable in saved.variables() {
        let own = program.variable_migrations.iter().find(|own| own.name == variable.name);
        let Some(VariableMigration { into, shape, .. }) = own else { continue };
        let own = program.variable_schema(*into, *shape);
        let migrate = understand_variable(variable, &own)?;
        let schema = SavedSchema { version: own.version, shape: shape() };
        listed.insert(variable.id, (SavedVariable { schema, ..variable.clone() }, migrate));
    }
    Ok(listed)
}

fn understand(name: &str, saved: &SavedSchema, own: &Schema) -> Result<Option<Migrate>, Foreign> {
    let name = name.to_string();
    let version = saved.version;
    if let Some((shape, earlier)) = own.renewed(&saved.shape) {
        let migrate = understand(&name, &SavedSchema { version, shape }, own)?;
        return Ok(Some(Arc::new(move |packed| {
            let renewed = (earlier.renew)(packed)?;
            migrate.as_ref().map_or(Ok(renewed.clone()), |migrate| migrate(&renewed))
        })));
    }
    let shape = &saved.shape;
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
    /// Whether machines whose addresses have so many bits have room for all numbers of all chares and shared variables.
    ///
    /// # Errors
    /// The first number that is too big for them; or if the checkpoint cannot be read.
    pub fn fits(&self, pointer_bits: u32) -> Result<(), Foreign> {
        if pointer_bits >= u64::BITS {
            return Ok(());
        }
        for record in self.records_where(|kind, _| matches!(kind, Kind::Chare | Kind::Node)) {
            let record = record?;
            let value = self.schema_of(&record).and_then(|of| Value::read(&of.shape, &record.packed).ok());
            if let Some(misfit) = value.and_then(|value| fits(&value, pointer_bits)) {
                let Record { type_name, collection, index, .. } = &record;
                let whose = match record.variable() {
                    Some(_) => format!("{type_name}@{collection}"),
                    None => format!("{type_name}{index:?}"),
                };
                return Err(Foreign::Narrow { whose, misfit });
            }
        }
        Ok(())
    }

    /// What a record is made of, where that is known.
    #[must_use]
    pub fn schema_of(&self, record: &Record) -> Option<&SavedSchema> {
        if let Some(id) = record.variable() {
            return self.variables().iter().find(|of| of.id == id).map(|of| &of.schema);
        }
        let kind = record.kind.to_string();
        let of = self.types().iter().find(|of| of.kind == kind && of.name == record.type_name)?;
        of.schema.as_ref()
    }
}
