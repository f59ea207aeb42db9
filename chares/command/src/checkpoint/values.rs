//! Values in checkpoints by name: shown, taken out, changed.

use super::{followed, npy};
use crate::output;
use crate::report::unix_ms;
use runtime::checkpoint::{About, Kind as RecordKind, Record, Saved, Store, Writer};
use runtime::envelope::Packed;
use runtime::failure::{Failure, Kind};
use runtime::schema::{Path as Part, STATE, Shape, Value};
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// Which values are meant: `TYPE@COLLECTION[INDEX].path`, of which all but the type may be left out.
#[derive(Clone, Debug)]
pub(super) struct Which {
    text: String,
    type_name: String,
    collection: Option<u64>,
    index: Option<[u32; 3]>,
    path: Part,
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` names no value: write TYPE[INDEX].path, such as `Block[3].rows.left`");
        // Brackets between angle brackets are of the type.
        let mut depth = 0;
        let end = text.find(|c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0 && matches!(c, '@' | '[' | '.')
        });
        let (type_name, mut rest) = text.split_at(end.unwrap_or(text.len()));
        let mut which = Self {
            text: text.into(),
            type_name: type_name.into(),
            collection: None,
            index: None,
            path: Part::default(),
        };
        if let Some(after) = rest.strip_prefix('@') {
            let (number, after) = after.split_at(after.find(['[', '.']).unwrap_or(after.len()));
            which.collection = Some(number.parse().map_err(|_| wrong())?);
            rest = after;
        }
        if let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let mut parts = [0; 3];
            let given: Vec<_> = index.split(',').map(|part| part.trim().parse()).collect();
            if given.len() > parts.len() {
                return Err(wrong());
            }
            for (part, given) in parts.iter_mut().zip(given) {
                *part = given.map_err(|_| wrong())?;
            }
            which.index = Some(parts);
            rest = after;
        }
        which.path = rest.parse().map_err(|_| wrong())?;
        if type_name.is_empty() { Err(wrong()) } else { Ok(which) }
    }
}

impl Which {
    pub(super) fn is_of(&self, record: &Record) -> bool {
        record.type_name == self.type_name
            && self.collection.is_none_or(|collection| collection == record.collection)
            && self.index.is_none_or(|index| index == place(record))
    }

    /// The way into a record: that into a chare begins at its own state.
    pub(super) fn path(&self, record: &Record) -> Part {
        if record.kind == RecordKind::Chare { self.path.outside(STATE) } else { self.path.clone() }
    }
}

/// What tells a record from others of its type and collection. All that PEs have beside chares is of one type, so that it is
/// their numbers.
fn place(record: &Record) -> [u32; 3] {
    let [first, second, _] = record.index;
    if record.kind == RecordKind::Pe { [record.pe, first, second] } else { record.index }
}

/// A record by the name that [`Which`] reads.
pub(super) fn name(record: &Record) -> String {
    named(&record.type_name, record.collection, place(record))
}

pub(super) fn named(type_name: &str, collection: u64, [x, y, z]: [u32; 3]) -> String {
    format!("{type_name}@{collection}[{x},{y},{z}]")
}

pub(super) fn wrong(what: impl Into<String>) -> Failure {
    Failure::new(Kind::Input, what.into())
}

/// The shape of a record, and its value.
pub(super) fn read(saved: &Saved, record: &Record) -> Result<(Shape, Value), Failure> {
    let schema = saved.schema_of(record).filter(|of| of.shape != Shape::Opaque);
    let schema = schema.ok_or_else(|| {
        wrong(format!("{} is opaque: the checkpoint does not say what it is made of", name(record)))
    })?;
    let value = Value::read(&schema.shape, &record.packed);
    let value = value.map_err(|error| wrong(format!("{}: {error}", name(record))))?;
    Ok((schema.shape.clone(), value))
}

/// Writes a line for each value that is meant: `NAME = JSON`, or all of it as JSON.
pub(super) fn print(saved: &Saved, which: Option<&Which>, is_json: bool) -> Result<(), Failure> {
    let mut found = 0u64;
    for record in saved.records() {
        let record = record?;
        if which.is_some_and(|which| !which.is_of(&record)) {
            continue;
        }
        found += 1;
        crate::say(&line(saved, &record, which, is_json)?)?;
    }
    match which {
        Some(which) if found == 0 => Err(unfound(which, saved)),
        _ => Ok(()),
    }
}

fn line(saved: &Saved, record: &Record, which: Option<&Which>, is_json: bool) -> Result<String, Failure> {
    let is_opaque = saved.schema_of(record).is_none_or(|of| of.shape == Shape::Opaque);
    let json = if is_opaque && which.is_none_or(|which| which.path == Part::default()) {
        None
    } else {
        let (shape, mut value) = read(saved, record)?;
        let whole = Part::default();
        // All of a record is all of it where it is shown as JSON, and a chare's own state for people.
        let path = match which {
            None if !is_json && record.kind == RecordKind::Chare => whole.outside(STATE),
            None => whole,
            Some(which) => which.path(record),
        };
        let part = value.part(&shape, &path);
        Some(part.map_err(|error| wrong(format!("{}: {error}", name(record))))?.to_json())
    };
    let Record { kind, pe, type_name, collection, index, packed } = record;
    if is_json {
        let mut line = json!({
            "kind": kind.to_string(), "pe": pe, "type": type_name, "collection": collection, "index": index,
        });
        match json {
            Some(json) => line["value"] = json,
            None => line["opaque_bytes"] = json!(packed.len_bytes()),
        }
        return Ok(format!("{line}\n"));
    }
    let path = which.map(|which| which.path.to_string()).filter(|path| !path.is_empty());
    let path =
        path.map_or_else(String::new, |path| if path.starts_with('[') { path } else { format!(".{path}") });
    Ok(match json {
        Some(json) => format!("{}{path} = {json}\n", name(record)),
        None => format!("{} is opaque, {} bytes\n", name(record), packed.len_bytes()),
    })
}

pub(super) fn unfound(which: &Which, saved: &Saved) -> Failure {
    let names: Vec<&str> = saved.types().iter().map(|of| of.name.as_str()).collect();
    let sentence = if names.contains(&which.type_name.as_str()) {
        format!("there is no {}: the checkpoint has other records of {}", which.text, which.type_name)
    } else {
        format!("there is no {}: the checkpoint has records of {}", which.text, names.join(", "))
    };
    Failure::new(Kind::NoInput, sentence)
}

/// The only record that is meant.
fn only(saved: &Saved, which: &Which) -> Result<Record, Failure> {
    let mut found: Option<Record> = None;
    for record in followed("read", saved, saved.records()) {
        let record = record?;
        if !which.is_of(&record) {
            continue;
        }
        if let Some(first) = found {
            let (first, second) = (name(&first), name(&record));
            let several = format!("{} means several, such as {first} and {second}: say which", which.text);
            return Err(wrong(several));
        }
        found = Some(record);
    }
    found.ok_or_else(|| unfound(which, saved))
}

/// Writes the value that is meant into a file: numbers as `.npy` if it is named so, and anything else as JSON.
pub(super) fn extract(saved: &Saved, which: &Which, to: &Path) -> Result<(), Failure> {
    let record = only(saved, which)?;
    let (shape, mut value) = read(saved, &record)?;
    let part = value.part(&shape, &which.path(&record));
    let part = part.map_err(|error| wrong(format!("{}: {error}", name(&record))))?;
    let contents = if is_npy(to) {
        npy::write(&part).ok_or_else(|| {
            wrong(format!(
                "{} is no array of numbers of one type, which is what {} can hold: give the file another ending, and it is \
                 written as JSON",
                which.text,
                to.display()
            ))
        })?
    } else {
        format!("{}\n", part.to_json()).into_bytes()
    };
    output::write("value", to, contents)
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "npy")
}

/// What a user gives as a new value: a file by its name, or JSON, or a text.
fn given(from: &str) -> Result<Json, Failure> {
    let path = Path::new(from);
    let is_file = is_npy(path) || path.extension().is_some_and(|ending| ending == "json");
    if !is_file {
        return Ok(serde_json::from_str(from).unwrap_or_else(|_| json!(from)));
    }
    let bytes = fs::read(path)
        .map_err(|error| Failure::new(Kind::NoInput, format!("{from} cannot be read: {error}")))?;
    let read = if is_npy(path) {
        npy::read(&bytes)
    } else {
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    };
    read.map_err(|what| wrong(format!("{from}: {what}")))
}

/// Writes a new generation with one value changed; its number.
pub(super) fn set(dir: &Path, saved: &Saved, which: &Which, from: &str) -> Result<u32, Failure> {
    let new = given(from)?;
    let record = only(saved, which)?;
    let (shape, mut value) = read(saved, &record)?;
    let changed = value.change(&shape, &which.path(&record), &mut |shape, part| {
        *part = Value::from_json(shape, &new).map_err(|error| error.to_string())?;
        Ok(())
    });
    changed.map_err(|error| wrong(format!("{}: {error}", name(&record))))?;
    written(dir, saved, which, (&record, value.write()))
}

fn written(dir: &Path, saved: &Saved, which: &Which, (of, new): (&Record, Packed)) -> Result<u32, Failure> {
    let mut about: About = saved.about().clone();
    about.taken_ms = unix_ms();
    about.edited.push(format!("{}, of generation {}", which.text, saved.generation()));
    let store = Store::create_keeping_all(dir)?;
    let mut writer = store.begin(about)?;
    describe_as(&mut writer, saved);
    let is_changed = |record: &Record| {
        (record.kind, record.pe, record.collection, record.index) == (of.kind, of.pe, of.collection, of.index)
            && record.type_name == of.type_name
    };
    for record in followed("written", saved, saved.records()) {
        let record = record?;
        let record = if is_changed(&record) { Record { packed: new.clone(), ..record } } else { record };
        writer.put(&record)?;
    }
    Ok(writer.commit()?.generation)
}

/// Says that records are made of what they were made of there.
pub(super) fn describe_as(writer: &mut Writer, saved: &Saved) {
    for of in saved.types() {
        if let (Some(kind), Some(schema)) = (RecordKind::of_name(&of.kind), &of.schema) {
            writer.describe(kind, &of.name, schema.clone());
        }
    }
    saved.variables().iter().cloned().for_each(|variable| writer.describe_variable(variable));
}

#[cfg(test)]
mod tests;
