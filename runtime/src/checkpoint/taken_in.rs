//! The records of a checkpoint, as a run takes them in that goes on from it.

use super::error::ReadError;
use super::record::{Kind, Record};
use super::saved::{Records, Saved};
use super::understood::{Foreign, Understood};
use crate::failure::{Failure, Kind as FailureKind};
use crate::ids::PeId;
use crate::object::ProgramTable;
use crate::payload::Packed;
use crate::saved::RecordHeader;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A checkpoint and how a program takes it in. Records are read one after the other, as they are asked for.
#[derive(Debug)]
pub struct TakenIn {
    saved: Arc<Saved>,
    understood: Understood,
}

/// A record, or why it cannot be had.
type Taken = Result<(RecordHeader, Packed), Failure>;

/// Whether it belongs to a PE.
fn is_of_pe(kind: Kind) -> bool {
    matches!(kind, Kind::Chare | Kind::Pe)
}

impl TakenIn {
    /// That of a program.
    ///
    /// # Errors
    /// The first type that the program does not understand.
    pub fn new(saved: Arc<Saved>, program: &ProgramTable) -> Result<Self, Foreign> {
        let understood = Understood::new(&saved, program)?;
        Ok(Self { saved, understood })
    }

    /// The checkpoint.
    #[must_use]
    pub fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The driver's part, if there is one.
    ///
    /// # Errors
    /// If it is damaged, or the file system refuses.
    pub fn driver(&self) -> Result<Option<Packed>, ReadError> {
        let log = self.saved.records_of_kind(Kind::Driver).next().transpose()?;
        Ok(log.map(|record| record.packed))
    }

    /// What nodes share. Of each record it is told how many bytes it had.
    pub fn shared(&self, read: impl FnMut(u64)) -> impl Iterator<Item = Taken> {
        self.all_taken_in(self.saved.records_of_kind(Kind::Node), read)
    }

    /// How many records each PE has, of itself and its chares.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<PeId, u64> {
        let mut counts = BTreeMap::new();
        for table in self.saved.tables().iter().filter(|table| is_of_pe(table.kind)) {
            *counts.entry(PeId(table.pe)).or_default() += u64::from(table.records);
        }
        counts
    }

    /// Bytes of the records of all PEs.
    #[must_use]
    pub fn bytes_of_pes(&self) -> u64 {
        let of_pes = |name: &str| Kind::of_name(name).is_some_and(is_of_pe);
        self.saved.types().iter().filter(|of| of_pes(&of.kind)).map(|of| of.bytes).sum()
    }

    /// The records of a PE after the first so many; in the same way.
    pub fn of_pe(&self, pe: PeId, first: u64, read: impl FnMut(u64)) -> impl Iterator<Item = Taken> {
        self.all_taken_in(self.all_of(pe).after(first), read)
    }

    /// The first so many records of a PE, without their attachments where nobody needs them to understand the rest.
    pub fn heads_of_pe(&self, pe: PeId, count: u64) -> impl Iterator<Item = Taken> {
        let all = self.all_of(pe);
        let all = if self.understood.migrates() { all } else { all.bodies() };
        self.all_taken_in(all, |_| {}).take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn all_of(&self, pe: PeId) -> Records<'_> {
        self.saved.records_where(|kind, of| of == pe.0 && is_of_pe(kind))
    }

    fn all_taken_in(
        &self,
        records: impl Iterator<Item = Result<Record, ReadError>>,
        mut read: impl FnMut(u64),
    ) -> impl Iterator<Item = Taken> {
        records.map(move |record| {
            let record = record?;
            read(record.packed.len_bytes() as u64);
            self.take_in(&record)
        })
    }

    fn take_in(&self, record: &Record) -> Taken {
        let header = record.header().ok_or_else(|| {
            let sentence = format!("the checkpoint has a record of kind {} that is none", record.kind);
            Failure::new(FailureKind::Input, sentence)
        })?;
        Ok((header, self.understood.take_in(record)?))
    }
}
