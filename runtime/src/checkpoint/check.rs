//! Looking through whole generations: whether one is what was written, and how two differ.

use super::error::{Damage, ReadError};
use super::format::{Place, Row, Value};
use super::record::Kind;
use super::saved::Saved;
use crate::digest::Digest;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Whose a record is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// What the record is of.
    pub kind: Kind,
    /// The collection of the chare.
    pub collection: u64,
    /// The index of the chare in its collection.
    pub index: [u32; 3],
    /// The type of the value.
    pub type_name: String,
    /// The PE to which it belongs.
    pub pe: u32,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, collection, index: [x, y, z], type_name, pe } = self;
        match kind {
            Kind::Chare => write!(f, "{type_name}[{x}, {y}, {z}] of collection {collection} on PE {pe}"),
            Kind::Pe => write!(f, "{type_name} of PE {pe}"),
            Kind::Node if *collection != 0 => {
                write!(f, "{type_name}@{collection}[{x}, {y}, {z}] of all nodes")
            }
            Kind::Node => write!(f, "{type_name} of all nodes"),
            Kind::Driver => write!(f, "{type_name} of the driver"),
        }
    }
}

/// What a generation has been found to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many records are whole.
    pub whole: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// All that is wrong, with whose it is.
    pub damages: Vec<Damage>,
}

/// How a record differs between two generations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Whose it is, in the later one if it is there.
    pub identity: Identity,
    /// What has become of it.
    pub change: Change,
}

/// What has become of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Added,
    /// It is not there any more.
    Removed,
    /// It says something else.
    Changed,
    /// It says the same, and belongs to another PE.
    Moved {
        /// The PE to which it belonged.
        from: u32,
    },
}

/// What records say, by who they are of and which of several they are.
type Contents = BTreeMap<(Identity, u32), (Identity, Vec<Sum>)>;

impl Saved {
    /// Reads all of it, and tells after each table how many bytes have been read.
    ///
    /// # Errors
    /// If the file system refuses; what is damaged is in the result.
    pub fn verify(&self, read: impl FnMut(u64)) -> Result<Verified, ReadError> {
        self.verify_but(HashSet::new(), read)
    }

    /// The same, but does not read the values in those chunks.
    pub(super) fn verify_but(
        &self,
        mut seen: HashSet<Place>,
        mut read: impl FnMut(u64),
    ) -> Result<Verified, ReadError> {
        let mut verified = Verified::default();
        for table in self.tables() {
            verified.read_bytes += u64::from(table.place.stored_bytes);
            let rows = match self.rows(table) {
                Ok(rows) => rows,
                Err(ReadError::Damaged { damage, .. }) => {
                    verified.damages.push(damage);
                    continue;
                }
                Err(error) => return Err(error),
            };
            for row in rows {
                let damages = verified.damages.len();
                for place in row.places().filter(|place| seen.insert(**place)) {
                    verified.read_bytes += u64::from(place.stored_bytes);
                    match self.read_chunk(place, &mut Vec::new()) {
                        Err(ReadError::Damaged { damage: Damage { path, what }, .. }) => {
                            let identity = identity(table.kind, table.pe, &row);
                            verified.damages.push(Damage { path, what: format!("{what}: {identity}") });
                        }
                        result => result?,
                    }
                }
                verified.whole += u64::from(verified.damages.len() == damages);
            }
            read(verified.read_bytes);
        }
        if verified.damages.is_empty() && verified.whole != self.record_count() {
            let what = format!("it counts {} records, and {} are there", self.record_count(), verified.whole);
            verified.damages.push(Damage::new(&self.manifest_path(), what));
        }
        Ok(verified)
    }

    /// How `later` differs from this one. Only tables are read: long values are the same if their checksums are.
    ///
    /// # Errors
    /// If one of them is damaged, or the file system refuses.
    pub fn differences(&self, later: &Self) -> Result<Vec<Difference>, ReadError> {
        let mut before = self.contents()?;
        let mut differences = Vec::new();
        for (key, (identity, values)) in later.contents()? {
            let change = match before.remove(&key) {
                None => Change::Added,
                Some((_, old)) if old != values => Change::Changed,
                Some((old, _)) if old.pe != identity.pe => Change::Moved { from: old.pe },
                Some(_) => continue,
            };
            differences.push(Difference { identity, change });
        }
        let removed = before.into_values();
        differences.extend(removed.map(|(identity, _)| Difference { identity, change: Change::Removed }));
        differences.sort_by(|a, b| a.identity.cmp(&b.identity));
        Ok(differences)
    }

    /// What each record says, by checksum. The key is the same wherever a chare is, and different for several records of
    /// one owner.
    fn contents(&self) -> Result<Contents, ReadError> {
        let mut contents = BTreeMap::new();
        for table in self.tables() {
            for row in self.rows(table)? {
                let identity = identity(table.kind, table.pe, &row);
                let pe = if table.kind == Kind::Chare { 0 } else { table.pe };
                let key = Identity { pe, ..identity.clone() };
                let mut repeated = 0;
                while contents.contains_key(&(key.clone(), repeated)) {
                    repeated += 1;
                }
                contents.insert((key, repeated), (identity, row.values.into_iter().map(Sum::of).collect()));
            }
        }
        Ok(contents)
    }
}

/// What stands for a value in a comparison.
#[derive(PartialEq, Eq)]
enum Sum {
    Inside(Vec<u8>),
    Chunks(Vec<Digest>),
}

impl Sum {
    fn of(value: Value) -> Self {
        match value {
            Value::Inside(bytes) => Self::Inside(bytes),
            Value::Chunks { places, .. } => {
                Self::Chunks(places.iter().map(|Place { digest, .. }| *digest).collect())
            }
        }
    }
}

fn identity(kind: Kind, pe: u32, row: &Row) -> Identity {
    let Row { type_name, collection, index, .. } = row;
    Identity { kind, collection: *collection, index: *index, type_name: type_name.clone(), pe }
}
