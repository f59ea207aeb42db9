//! What shared variables are made of that the driver makes: checkpoints say it, and a run goes on only from values that it
//! understands.

use super::Driver;
use super::checkpoint::History;
use crate::chare::Message;
use crate::program::RunError;
use crate::type_name::type_name;
use runtime::checkpoint::{Foreign, SavedSchema, SavedVariable, understand_variable};
use runtime::envelope::Packed;
use runtime::failure::Failure;
use runtime::object::ProgramTable;
use runtime::saved::{RecordHeader, RecordOf};
use runtime::schema::{Migrate, Shape, shape_of};
use std::any::TypeId;
use std::collections::BTreeMap;

/// The type of a variable. Its shape is only found out where a checkpoint is taken, or gone on from.
#[derive(Clone, Copy)]
pub(super) struct Made {
    of: TypeId,
    pub(super) name: fn() -> String,
    pub(super) shape: fn() -> Shape,
}

impl Made {
    pub(super) fn of<T: Message>() -> Self {
        Self { of: TypeId::of::<T>(), name: type_name::<T>, shape: shape_of::<T> }
    }
}

/// What a run that goes on does with the variables of its checkpoint.
#[derive(Default)]
pub(super) struct Variables {
    /// Those that the driver has not made again yet, by their numbers.
    saved: BTreeMap<u64, SavedVariable>,
    migrations: BTreeMap<u64, (String, Migrate)>,
}

impl Variables {
    pub(super) fn new(saved: Vec<SavedVariable>) -> Self {
        let saved = saved.into_iter().map(|of| (of.id, of)).collect();
        Self { saved, migrations: BTreeMap::new() }
    }

    /// A record as the program has it today.
    pub(super) fn take_in(
        &self,
        (header, packed): (RecordHeader, Packed),
    ) -> Result<(RecordHeader, Packed), Failure> {
        let (RecordOf::Sum(id) | RecordOf::Variable { id, .. }) = header.of else {
            return Ok((header, packed));
        };
        let Some((name, migrate)) = self.migrations.get(&id) else { return Ok((header, packed)) };
        let whose = format!("{name} of variable {id}");
        let migrated = migrate(&packed).map_err(|why| Foreign::Migration { whose, why })?;
        Ok((header, migrated))
    }
}

/// What variables are made of.
pub(super) fn saved_variables(
    program: &ProgramTable,
    made: impl Iterator<Item = (u64, Made)>,
) -> Vec<SavedVariable> {
    let saved = made.map(|(id, Made { of, name, shape })| SavedVariable {
        id,
        name: name(),
        schema: SavedSchema { version: program.variable_schema(of, shape).version, shape: shape() },
    });
    saved.collect()
}

impl Driver {
    /// Looks whether the variables that were made since the last time are of the types that they were of in the checkpoint.
    pub(super) fn understand_variables(&mut self) -> Result<(), RunError> {
        let History { replay: Some(replay), variables, .. } = &mut self.history else { return Ok(()) };
        let program = self.pe.node().program();
        for (id, saved) in replay.variables.saved.extract_if(.., |id, _| variables.contains_key(id)) {
            let Made { of, shape, .. } = variables[&id];
            let own = program.variable_schema(of, shape);
            let refused = |why| RunError::Input(format!("the checkpoint is not of this program: {why}"));
            if let Some(migrate) = understand_variable(&saved, &own).map_err(refused)? {
                replay.variables.migrations.insert(id, (saved.name, migrate));
            }
        }
        Ok(())
    }
}

impl History {
    /// Takes note of the type of a variable, if anybody will ask for it.
    pub(super) fn note_variable(&mut self, id: u64, made: Made) {
        if self.is_kept() || self.replay.is_some() {
            self.variables.insert(id, made);
        }
    }
}
