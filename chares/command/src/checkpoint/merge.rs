//! `checkpoint merge`: two runs of one program put together.
//!
//! A checkpoint holds what a run has computed, and how far it is: messages that wait, half-done reductions, the driver's log.
//! Two of the latter cannot be made one. So the run that goes on is that of A, and what B gives is values: the own states of
//! chares that both have, shared variables, and what has been added to accumulators.

use super::values::{Which, describe_as, name, read, unfound, wrong};
use super::{folder, followed};
use crate::report::unix_ms;
use crate::say;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use runtime::checkpoint::{Change, Finder, Kind as RecordKind, Record, Saved, Store};
use runtime::failure::{Failure, Kind};
use runtime::schema::{Path as Part, STATE, difference};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(super) fn command() -> Command {
    let prefer = Arg::new("prefer").long("prefer").value_name("a|b");
    let prefer = prefer.value_parser(PossibleValuesParser::new(["a", "b"]));
    let take =
        Arg::new("take").long("take").value_name("TYPE[INDEX].PATH").value_parser(value_parser!(Which));
    Command::new("merge")
        .about("Put values of another run of the same program into a checkpoint")
        .arg(folder("a", "A", "The folder whose newest checkpoint is taken, with all that is under way"))
        .arg(folder("b", "B", "The folder whose newest checkpoint gives values"))
        .arg(folder("out", "OUT", "The folder for the new checkpoint"))
        .arg(prefer.help("Whose values to take where both have one and they differ"))
        .arg(take.action(ArgAction::Append).help("Take these values from B, whatever `--prefer` says"))
}

pub(super) fn merge(matches: &ArgMatches) -> Result<u8, Failure> {
    let dir = |id: &str| matches.get_one::<PathBuf>(id).map_or(Path::new(""), PathBuf::as_path);
    let [a, b] = [dir("a"), dir("b")].map(|dir| Store::open(dir).and_then(|store| store.latest()));
    let (a, b) = (a?, b?);
    let prefers_b = matches.get_one::<String>("prefer").map(|of| of == "b");
    let taken = matches.get_many::<Which>("take").unwrap_or_default().cloned().collect();
    let merging = Merging::new((&a, &b), prefers_b, taken)?;
    say(&merging.write(dir("out"), dir("b"))?)?;
    Ok(0)
}

/// Whose a variable or a sum is: its type and number.
type Variable = (String, u64);

struct Merging<'a> {
    a: &'a Saved,
    b: &'a Saved,
    of_b: Finder<'a>,
    /// Whether B's values are taken where they differ; nothing if nobody has said.
    prefers_b: Option<bool>,
    taken: Vec<Which>,
    /// Chares whose records differ.
    changed: BTreeSet<(String, u64, [u32; 3])>,
    /// What differs, and nobody has said whose to take.
    undecided: Vec<String>,
    /// Which of those that are to be taken are there.
    is_taken: Vec<bool>,
}

impl<'a> Merging<'a> {
    fn new(
        (a, b): (&'a Saved, &'a Saved),
        prefers_b: Option<bool>,
        taken: Vec<Which>,
    ) -> Result<Self, Failure> {
        check_types(a, b)?;
        let mut changed = BTreeSet::new();
        for of in a.differences(b)? {
            let identity = of.identity;
            let is_of_run = identity.kind == RecordKind::Node && identity.type_name == "collection";
            let is_chare = identity.kind == RecordKind::Chare;
            match of.change {
                Change::Added | Change::Removed if is_chare || is_of_run => {
                    let whose = if of.change == Change::Added { "B" } else { "A" };
                    return Err(wrong(format!(
                        "{identity} is only in {whose}: only runs that have the same chares can be put together"
                    )));
                }
                Change::Changed if is_of_run => {
                    return Err(wrong(
                        "the collections of A and B are not the same: only runs that have the same chares can be put together",
                    ));
                }
                Change::Changed if is_chare => {
                    changed.insert((identity.type_name, identity.collection, identity.index));
                }
                _ => {}
            }
        }
        let is_taken = vec![false; taken.len()];
        let of_b = b.finder()?;
        let undecided = Vec::new();
        Ok(Self { a, b, of_b, prefers_b, taken, changed, undecided, is_taken })
    }

    /// Writes the new checkpoint, and says what it is. Nothing is written if something cannot be put together.
    fn write(mut self, out: &Path, from: &Path) -> Result<String, Failure> {
        let (a, b) = (self.a, self.b);
        let variables = self.variables()?;
        let mut chares = 0u64;
        for record in followed("compared", a, a.records_of_kind(RecordKind::Chare)) {
            chares += u64::from(self.chare(&record?)?.is_some());
        }
        self.check_decided()?;
        let mut about = a.about().clone();
        about.taken_ms = unix_ms();
        let what = format!("chares: {chares}, variables and sums: {}", variables.len());
        about.edited.push(format!("{what}, of generation {} of {}", b.generation(), from.display()));
        let store = Store::create_keeping_all(out)?;
        let mut writer = store.begin(about)?;
        describe_as(&mut writer, a);
        for record in followed("written", a, a.records()) {
            let record = record?;
            let merged = if record.kind == RecordKind::Chare { self.chare(&record)? } else { None };
            if !(is_variable(&record) && variables.contains_key(&key(&record))) {
                writer.put(merged.as_ref().unwrap_or(&record))?;
            }
        }
        for record in variables.values().flatten() {
            writer.put(record)?;
        }
        let number = writer.commit()?.generation;
        Ok(format!("generation {number} is that of A, with values of B ({what})\n"))
    }

    /// The variables and sums that are B's in what is written. All that nodes have of one belongs together.
    fn variables(&mut self) -> Result<BTreeMap<Variable, Vec<Record>>, Failure> {
        let own = variables_of(self.a)?;
        let mut chosen = BTreeMap::new();
        for (key, records) in variables_of(self.b)? {
            let Some(first) = records.first() else { continue };
            let values =
                |records: &[Record]| records.iter().map(|one| one.packed.clone()).collect::<Vec<_>>();
            match own.get(&key) {
                Some(own) if values(own) == values(&records) => continue,
                // Nobody may have added to a sum yet.
                None if first.type_name != "sum" => {
                    return Err(wrong(format!(
                        "{} is only in B: the run of A does not know it",
                        name(first)
                    )));
                }
                _ => {}
            }
            if self.takes(first)? {
                chosen.insert(key, records);
            }
        }
        Ok(chosen)
    }

    /// Whether all of a record is to be B's.
    fn takes(&mut self, record: &Record) -> Result<bool, Failure> {
        let mut is_taken = false;
        for (which, is_found) in self.taken.iter().zip(&mut self.is_taken) {
            if which.is_of(record) {
                *is_found = true;
                if which.path(record) != Part::default() {
                    return Err(wrong(format!("{} can only be taken as a whole", name(record))));
                }
                is_taken = true;
            }
        }
        if !is_taken && self.prefers_b.is_none() {
            self.undecided.push(name(record));
        }
        Ok(is_taken || self.prefers_b == Some(true))
    }

    /// What a chare of A becomes, if something of it is B's: its place in the run and its counts stay.
    fn chare(&mut self, record: &Record) -> Result<Option<Record>, Failure> {
        let Record { kind, type_name, collection, index, .. } = record;
        let taken: Vec<usize> = (0..self.taken.len()).filter(|at| self.taken[*at].is_of(record)).collect();
        taken.iter().for_each(|at| self.is_taken[*at] = true);
        if !self.changed.contains(&(type_name.clone(), *collection, *index))
            || (taken.is_empty() && self.prefers_b == Some(false))
        {
            return Ok(None);
        }
        let others = self.of_b.find((*kind, type_name, *collection), Some(*index))?;
        let Some(other) = others.first() else { return Ok(None) };
        let told = |error: &dyn std::fmt::Display| wrong(format!("{}: {error}", name(record)));
        let (shape, mut value) = read(self.a, record)?;
        let (_, mut given) = read(self.b, other)?;
        let state = Part::default().outside(STATE);
        let [own_state, other_state] = [&mut value, &mut given].map(|value| value.part(&shape, &state));
        if own_state.map_err(|e| told(&e))? == other_state.map_err(|e| told(&e))? {
            return Ok(None);
        }
        let paths = match self.prefers_b {
            _ if !taken.is_empty() => taken.iter().map(|at| self.taken[*at].path(record)).collect(),
            Some(true) => vec![state],
            Some(false) => return Ok(None),
            None => {
                self.undecided.push(name(record));
                return Ok(None);
            }
        };
        for path in &paths {
            let part = given.part(&shape, path).map_err(|error| told(&error))?;
            let put = value.change(&shape, path, &mut |_, own| {
                *own = part.clone();
                Ok(())
            });
            put.map_err(|error| told(&error))?;
        }
        Ok(Some(Record { packed: value.write(), ..record.clone() }))
    }

    /// Sees to it that everything that differs has been decided, and everything that was asked for is there.
    fn check_decided(&self) -> Result<(), Failure> {
        if let Some((which, _)) = self.taken.iter().zip(&self.is_taken).find(|(_, is_taken)| !**is_taken) {
            return Err(unfound(which, self.a));
        }
        let Some(first) = self.undecided.first() else { return Ok(()) };
        let what = match self.undecided.len() - 1 {
            0 => format!("{first} differs"),
            count => format!("{first} and {count} others differ"),
        };
        Err(Failure::new(
            Kind::Usage,
            format!(
                "{what} between A and B: say whose to take with --prefer a or --prefer b, or name those of B with \
                 --take"
            ),
        ))
    }
}

fn is_variable(record: &Record) -> bool {
    record.variable().is_some()
}

fn variables_of(saved: &Saved) -> Result<BTreeMap<Variable, Vec<Record>>, Failure> {
    let mut all: BTreeMap<Variable, Vec<Record>> = BTreeMap::new();
    for record in saved.records_of_kind(RecordKind::Node) {
        let record = record?;
        if is_variable(&record) {
            all.entry(key(&record)).or_default().push(record);
        }
    }
    Ok(all)
}

fn key(record: &Record) -> Variable {
    (record.type_name.clone(), record.collection)
}

/// Sees to it that values of one mean the same in the other.
fn check_types(a: &Saved, b: &Saved) -> Result<(), Failure> {
    let [of_a, of_b] = [a, b].map(|saved| &saved.about().program);
    if of_a != of_b {
        return Err(wrong(format!(
            "A is of {of_a} and B of {of_b}: only runs of one program can be put together"
        )));
    }
    let one = "only runs of one version of the program can be put together";
    let of_types = a.types().iter().filter_map(|own| {
        let other = b.types().iter().find(|other| (&other.kind, &other.name) == (&own.kind, &own.name))?;
        Some((&own.name, own.schema.as_ref()?, other.schema.as_ref()?))
    });
    let of_variables = a.variables().iter().filter_map(|own| {
        let other = b.variables().iter().find(|other| other.id == own.id)?;
        Some((&own.name, &own.schema, &other.schema))
    });
    for (name, own_schema, schema) in of_types.chain(of_variables) {
        if let Some(change) = difference(&own_schema.shape, &schema.shape) {
            let path = change.path.inside(STATE).unwrap_or(change.path).to_string();
            let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
            return Err(wrong(format!("{name}{dot}{path} {}, from A to B: {one}", change.what)));
        }
        if own_schema.version != schema.version {
            let [was, is] = [own_schema.version, schema.version];
            return Err(wrong(format!("{name} is of version {was} in A and of {is} in B: {one}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
