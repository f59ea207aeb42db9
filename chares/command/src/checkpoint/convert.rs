//! `checkpoint convert`: a checkpoint as this program would write it today.
//!
//! A program reads older checkpoints as long as it lists the migrations from their types. Who wants to drop these, or to read old
//! values by their new names, has what he keeps converted.

use super::values::{describe_as, wrong};
use super::{CommandLine, chosen, folder, followed};
use crate::say;
use chares::checkpoint::pe_counts;
use clap::{Arg, ArgMatches, Command};
use runtime::checkpoint::{
    Kind as RecordKind, Saved, SavedVariable, Store, Understood, Writer, listed_variables, schemas,
};
use runtime::failure::Failure;
use runtime::object::ProgramTable;
use runtime::schema::Migrate;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn command(generation: &Arg) -> Command {
    Command::new("convert")
        .about("Write a checkpoint anew, with the types that this program has today and in today's format")
        .arg(folder("dir", "DIR", "The folder of checkpoints"))
        .arg(folder("out", "OUT", "The folder for the new checkpoint"))
        .arg(generation.clone())
}

pub(super) fn convert(program: &CommandLine, matches: &ArgMatches) -> Result<u8, Failure> {
    let dir = |id: &str| matches.get_one::<PathBuf>(id).map_or(Path::new(""), PathBuf::as_path);
    let saved = chosen(&Store::open(dir("dir"))?, matches.get_one("generation").copied())?;
    say(&converted(program.program.table(), &saved, dir("dir"), dir("out"))?)?;
    Ok(0)
}

/// Writes what was saved as that program would have; what was done. Nothing counts if something cannot be taken in.
pub(super) fn converted(
    program: &ProgramTable,
    saved: &Saved,
    from: &Path,
    out: &Path,
) -> Result<String, Failure> {
    let mut about = saved.about().clone();
    if about.program != program.name {
        let from = from.display();
        return Err(wrong(format!("{from} holds a run of {}, and this is {}", about.program, program.name)));
    }
    let understood = Understood::new(saved, program)?;
    let variables = listed_variables(saved, program)?;
    saved.fits(usize::BITS)?;
    check_driver(saved)?;
    let changes = changes(saved, program, &variables);
    let of = format!("of generation {} of {}", saved.generation(), from.display());
    about.version.clone_from(&program.version);
    if !changes.is_empty() {
        about.edited.push(format!("{}, {of}", changes.join(", ")));
    }
    let store = Store::create_keeping_all(out)?;
    let mut writer = store.begin(about)?;
    describe(&mut writer, saved, program, &variables);
    for record in followed("converted", saved, saved.records()) {
        let mut record = record?;
        record.packed = understood.take_in(&record)?;
        if let Some((variable, Some(migrate))) = record.variable().and_then(|id| variables.get(&id)) {
            let whose = format!("{}@{} ({})", record.type_name, record.collection, variable.name);
            let migrated = migrate(&record.packed);
            record.packed = migrated.map_err(|why| wrong(format!("{whose} cannot be migrated: {why}")))?;
        }
        writer.put(&record)?;
    }
    let number = writer.commit()?.generation;
    let changes = if changes.is_empty() { "no type has changed".into() } else { changes.join(", ") };
    Ok(format!(
        "generation {number} is what {} {} would have written {of}: {changes}\n",
        program.name, program.version
    ))
}

/// Sees to it that this program reads the driver's log, as far as that can be known before the driver runs.
fn check_driver(saved: &Saved) -> Result<(), Failure> {
    for record in saved.records_of_kind(RecordKind::Driver) {
        pe_counts(&record?.packed)?;
    }
    Ok(())
}

type Variables = BTreeMap<u64, (SavedVariable, Option<Migrate>)>;

/// Which types are of other versions than they were.
fn changes(saved: &Saved, program: &ProgramTable, variables: &Variables) -> Vec<String> {
    let own = schemas(program);
    let of_chares = saved.types().iter().filter_map(|of| {
        let was = of.schema.as_ref().filter(|_| of.kind == RecordKind::Chare.to_string())?;
        let (_, is) = own.iter().find(|(name, _)| *name == of.name)?;
        (was.version != is.version)
            .then(|| format!("{} from version {} to {}", of.name, was.version, is.version))
    });
    let of_variables = saved.variables().iter().filter_map(|was| {
        let (is, _) = variables.get(&was.id).filter(|(_, migrate)| migrate.is_some())?;
        let versions = format!("from version {} to {}", was.schema.version, is.schema.version);
        Some(format!("{}@{} {versions}", was.name, was.id))
    });
    of_chares.chain(of_variables).collect()
}

/// Says what the records are made of now. Of what the checkpoint does not describe, nobody knows what it is made of.
fn describe(writer: &mut Writer, saved: &Saved, program: &ProgramTable, variables: &Variables) {
    describe_as(writer, saved);
    let kind = RecordKind::Chare;
    let is_described = |name: &str| {
        saved.types().iter().any(|of| of.kind == kind.to_string() && of.name == name && of.schema.is_some())
    };
    for (name, schema) in schemas(program).into_iter().filter(|(name, _)| is_described(name)) {
        writer.describe(kind, &name, schema);
    }
    variables.values().for_each(|(variable, _)| writer.describe_variable(variable.clone()));
}
