//! What the folder has from the last checkpoint is not sent again.

use super::*;
use crate::digest::{Digested, Digests};

/// Who has records and sends them, as a PE does.
#[derive(Default)]
struct Sender {
    last: Digests,
}

impl Sender {
    /// Writes a generation of these records; how many bytes had to be sent.
    fn write(&mut self, store: &Store, records: &[Record]) -> usize {
        let mut writer = store.begin(about()).unwrap();
        let (last, has_last) = (std::mem::take(&mut self.last), writer.has_last());
        let mut sent_bytes = 0;
        for record in records {
            let mut record = record.clone();
            let (digested, _) = self.last.add(&mut record.packed, &last, has_last);
            sent_bytes += record.packed.len_bytes();
            writer.put_digested(&record, &digested).unwrap();
        }
        writer.commit().unwrap();
        sent_bytes
    }
}

#[test]
fn only_what_has_changed_is_sent_and_all_of_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut records: Vec<Record> = (0..20).map(|n| chare(n, 100 + 3000 * (n as usize % 2), 70_000)).collect();
    let all: usize = records.iter().map(|record| record.packed.len_bytes()).sum();
    let mut sender = Sender::default();
    assert_eq!(sender.write(&store, &records), all);
    let small = 10 * 100;
    assert_eq!(sender.write(&store, &records), small, "values inside tables are always sent");
    for round in 0..6 {
        let at = round * 3;
        records[at].packed.attachments[0].bytes_mut()[round * 10_000] ^= 1;
        // As it was, but in other memory.
        records[at + 1].packed.attachments[0] =
            Buffer::from_slice(records[at + 1].packed.attachments[0].bytes());
        assert_eq!(sender.write(&store, &records), small + 70_000, "round {round}");
        assert_eq!(read(&store.latest().unwrap()), sorted(records.clone()), "round {round}");
    }
    std::fs::remove_file(files::Files::of(folder.path(), 1).chunks).unwrap();
    assert_eq!(sender.write(&store, &records), all, "the folder has not all of the last one");
    assert_eq!(read(&store.latest().unwrap()), sorted(records));
}

#[test]
fn checksums_that_are_not_of_the_record_give_the_generation_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let record = chare(1, 2000, 70_000);
    let digested = Digested::all(&record.packed);
    let refused = |change: &dyn Fn(&mut Record, &mut Vec<Digested>)| {
        let (mut record, mut digested) = (record.clone(), digested.clone());
        change(&mut record, &mut digested);
        let mut writer = store.begin(about()).unwrap();
        let refused = writer.put_digested(&record, &digested).unwrap_err();
        assert!(matches!(writer.commit(), Err(WriteError::GivenUp)));
        refused.to_string()
    };
    let nowhere = refused(&|record, digested| {
        record.packed.attachments[0] = Buffer::default();
        digested[1].is_left_out = true;
    });
    assert!(nowhere.contains("a value was left out that is nowhere"), "{nowhere}");
    refused(&|record, _| record.packed.attachments.clear());
    refused(&|_, digested| drop(digested.pop()));
    refused(&|_, digested| digested[1].chunks.truncate(1));
    refused(&|_, digested| digested[1].len_bytes = u64::MAX);
    refused(&|_, digested| digested[0].is_left_out = true);
    refused(&|_, digested| digested[1].chunks[1] = digested[1].chunks[0]);
}

/// Records of which each but those that stay is another one.
fn changed(records: &mut [Record], stay: impl Fn(usize) -> bool, round: u8) {
    for (_, record) in records.iter_mut().enumerate().filter(|(at, _)| !stay(*at)) {
        record.packed.attachments[0].bytes_mut().iter_mut().for_each(|byte| *byte ^= round);
    }
}

/// Files of which little is needed are not referred to for ever: the launcher copies that, and it is not sent.
#[test]
fn what_is_left_of_old_files_is_copied_and_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut records: Vec<Record> = (0..20).map(|n| chare(n, 100, 70_000)).collect();
    let mut sender = Sender::default();
    let small = 20 * 100;
    assert_eq!(sender.write(&store, &records), small + 20 * 70_000);
    changed(&mut records, |at| at < 4, 1);
    assert_eq!(sender.write(&store, &records), small + 16 * 70_000);
    assert_eq!(sender.write(&store, &records), small, "what is left of the first one is copied");
    let saved = store.latest().unwrap();
    assert_eq!(read(&saved), sorted(records.clone()));
    assert!(saved.places().unwrap().iter().all(|place| place.generation > 1));
    assert!(saved.verify(|_| {}).unwrap().damages.is_empty());
    for round in 0..8 {
        changed(&mut records, |at| at % 8 == round, round as u8 + 2);
        let changed = (0..20).filter(|at| at % 8 != round).count();
        assert_eq!(sender.write(&store, &records), small + changed * 70_000, "{round}");
        assert_eq!(read(&store.latest().unwrap()), sorted(records.clone()), "{round}");
    }
}

#[test]
fn what_is_left_of_an_old_file_is_not_copied_if_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut records: Vec<Record> = (0..20).map(|n| chare(n, 100, 70_000)).collect();
    let mut sender = Sender::default();
    sender.write(&store, &records);
    changed(&mut records, |at| at < 4, 1);
    sender.write(&store, &records);
    let chunks = files::Files::of(folder.path(), 1).chunks;
    let mut bytes = std::fs::read(&chunks).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= 1);
    std::fs::write(&chunks, bytes).unwrap();
    let mut writer = store.begin(about()).unwrap();
    assert!(writer.has_last());
    let last = std::mem::take(&mut sender.last);
    let mut put = |record: &Record| {
        let mut record = record.clone();
        let (digested, _) = sender.last.add(&mut record.packed, &last, true);
        writer.put_digested(&record, &digested)
    };
    let why = records.iter().find_map(|record| put(record).err()).expect("it is damaged").to_string();
    assert!(why.contains("a chunk of an earlier generation is damaged"), "{why}");
    drop(writer);
    sender.write(&store, &records);
    assert_eq!(read(&store.latest().unwrap()), sorted(records));
}
