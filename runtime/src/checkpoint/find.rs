//! Records by whose they are.

use super::error::ReadError;
use super::format::Row;
use super::record::{Kind, Record};
use super::saved::Saved;
use std::collections::BTreeMap;

/// Whose records are: what they are of, their type, collection and index.
type Owner = (Kind, String, u64, [u32; 3]);

/// Finds the records of a generation by whose they are, and reads no others.
#[derive(Debug)]
pub struct Finder<'a> {
    saved: &'a Saved,
    /// The numbers of the tables that they are in.
    tables: BTreeMap<Owner, Vec<usize>>,
}

impl Saved {
    /// Looks through all tables, so that records can be found.
    ///
    /// # Errors
    /// If one of them is damaged, or the file system refuses.
    pub fn finder(&self) -> Result<Finder<'_>, ReadError> {
        let mut tables: BTreeMap<Owner, Vec<usize>> = BTreeMap::new();
        for (number, table) in self.tables().iter().enumerate() {
            for Row { type_name, collection, index, .. } in self.rows(table)? {
                let known = tables.entry((table.kind, type_name, collection, index)).or_default();
                if known.last() != Some(&number) {
                    known.push(number);
                }
            }
        }
        Ok(Finder { saved: self, tables })
    }

    /// Of each collection that has chares in it the name of their type. No values are read.
    ///
    /// # Errors
    /// If a table is damaged, or the file system refuses.
    pub fn types_of_collections(&self) -> Result<BTreeMap<u64, String>, ReadError> {
        let mut types = BTreeMap::new();
        for table in self.tables().iter().filter(|table| table.kind == Kind::Chare) {
            for Row { type_name, collection, .. } in self.rows(table)? {
                types.entry(collection).or_insert(type_name);
            }
        }
        Ok(types)
    }
}

impl Finder<'_> {
    /// The records of that type and collection, of that index or of all; in no certain order.
    ///
    /// # Errors
    /// If one is damaged, or the file system refuses.
    pub fn find(
        &self,
        (kind, type_name, collection): (Kind, &str, u64),
        index: Option<[u32; 3]>,
    ) -> Result<Vec<Record>, ReadError> {
        let [first, last] =
            [0, u32::MAX].map(|end| (kind, type_name.to_string(), collection, index.unwrap_or([end; 3])));
        let mut found = Vec::new();
        for ((.., index), numbers) in self.tables.range(first..=last) {
            for number in numbers {
                let Some(table) = self.saved.tables().get(*number) else { continue };
                for row in self.saved.rows(table)? {
                    let whose = (row.type_name.as_str(), row.collection, &row.index);
                    if whose == (type_name, collection, index) {
                        found.push(self.saved.record(table, row)?);
                    }
                }
            }
        }
        Ok(found)
    }
}
