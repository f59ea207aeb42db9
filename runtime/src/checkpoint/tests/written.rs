//! Who sees the folder writes what he has there himself, and what he says of it is looked into.

use super::*;
use crate::digest::{CHUNK_BYTES, Digested, Digests, WrittenChunk, chunk_of};
use crate::ids::PeId;
use crate::object::ProgramTable;
use crate::saved::{Extent, FindSaved as _, FoundWriting, PAGE_BYTES};
use std::ops::Range;
use std::sync::Arc;

fn find(extent: &Extent) -> Result<FoundWriting, String> {
    Sight::new(Arc::new(ProgramTable::default())).find_writing(&extent.place)
}

/// PEs that have records, and write those with long values themselves if they may.
#[derive(Default)]
struct Pes {
    last: Digests,
    /// Only those of these PEs see the folder.
    see: Vec<u32>,
}

impl Pes {
    /// What is said of a record of which all that is new has been written to an extent of its own.
    fn written(&mut self, writer: &Writer, record: &mut Record, last: &Digests) -> Vec<Digested> {
        let (mut digested, new) = self.last.add(&mut record.packed, last, writer.has_last());
        let Some(extents) = writer.extents().filter(|_| self.see.contains(&record.pe)) else {
            return digested;
        };
        let place = extents.give(PeId(record.pe), 0).unwrap();
        let (mut how, mut file) = find(&place).unwrap();
        for (at, (value, new)) in digested.iter_mut().zip(new).enumerate() {
            let bytes = record.packed.value(at);
            if value.chunks.is_empty() || value.is_left_out {
                continue;
            }
            let mut stored = Vec::new();
            for number in new {
                let Range { start, end } = chunk_of(bytes.len() as u64, number);
                let offset = stored.len() as u64;
                let is_compressed = how.append(&bytes[start as usize..end as usize], &mut stored);
                let stored_bytes = (stored.len() as u64 - offset) as u32;
                value.written.push(WrittenChunk { number, offset, stored_bytes, is_compressed });
            }
            // Past what the system copies, and by that.
            let (mut memory, is_direct) = (vec![0u8; stored.len() + 2 * PAGE_BYTES], stored.len() % 2 == 0);
            let begin = memory.as_ptr().align_offset(PAGE_BYTES);
            memory[begin..begin + stored.len()].copy_from_slice(&stored);
            let length = if is_direct { stored.len().next_multiple_of(PAGE_BYTES) } else { stored.len() };
            let extent = extents.give(PeId(record.pe), length as u64).unwrap();
            file.write_at(extent.offset, &memory[begin..begin + length]).unwrap();
            value.written.iter_mut().for_each(|chunk| chunk.offset += extent.offset);
            value.is_left_out = true;
            record.packed.leave_out(at);
        }
        file.sync().unwrap();
        digested
    }

    fn write(&mut self, store: &Store, records: &[Record]) -> Written {
        let mut writer = store.begin(about()).unwrap();
        let last = std::mem::take(&mut self.last);
        for record in records {
            let mut record = record.clone();
            let digested = self.written(&writer, &mut record, &last);
            writer.put_digested(&record, &digested).unwrap();
        }
        writer.commit().unwrap()
    }
}

#[test]
fn what_some_write_and_others_send_is_one_generation() {
    for see in [vec![0, 1, 2], vec![1], vec![]] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let mut records: Vec<Record> = (0..30)
            .map(|n| chare(n, [10, 3000, 100_000][n as usize % 3], 150_000 * (n as usize % 2)))
            .collect();
        // Some are alike, and one, before others that are not, has twice the same, which compression makes shorter.
        records[7].packed.attachments = records[3].packed.attachments.clone();
        records[1].packed.attachments = vec![Buffer::from_slice(&vec![7u8; 3 * CHUNK_BYTES])];
        let mut pes = Pes { see: see.clone(), ..Pes::default() };
        let first = pes.write(&store, &records);
        let sent = write(&Store::create(&folder.path().join("sent")).unwrap(), &records);
        assert_eq!(first.bytes, sent.bytes);
        assert!(first.new_bytes.abs_diff(sent.new_bytes) < 1000, "{see:?}: {first:?} {sent:?}");
        for (round, changed) in [(1u8, 5), (2, 11), (3, 13), (4, 5)] {
            let saved = store.latest().unwrap();
            assert_eq!(read(&saved), sorted(records.clone()), "{see:?}, {round}");
            assert!(saved.verify(|_| {}).unwrap().damages.is_empty());
            let files = files::Files::of(folder.path(), saved.generation());
            assert!(!files.token.exists());
            let file = records[changed].packed.attachments.first_mut().unwrap();
            file.bytes_mut()[70_000] ^= round;
            let next = pes.write(&store, &records);
            let one_chunk = CHUNK_BYTES as u64..CHUNK_BYTES as u64 + 30_000;
            assert!(one_chunk.contains(&next.new_bytes), "{see:?}, {round}: {next:?}");
        }
    }
}

#[test]
fn what_cannot_have_been_written_gives_the_generation_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let refused = |change: &dyn Fn(&mut Vec<Digested>)| {
        let mut record = chare(1, 10, 3 * CHUNK_BYTES);
        let mut pes = Pes { see: vec![1], ..Pes::default() };
        let mut writer = store.begin(about()).unwrap();
        let extents = writer.extents().unwrap();
        let other = extents.give(PeId(2), 1 << 20).unwrap();
        assert_eq!(other.offset, 0);
        let mut digested = pes.written(&writer, &mut record, &Digests::default());
        assert_eq!(digested[1].written.len(), 3);
        change(&mut digested);
        let refused = writer.put_digested(&record, &digested).unwrap_err().to_string();
        drop(writer);
        assert!(extents.give(PeId(1), 1).is_none(), "nobody writes to what was given up");
        refused
    };
    let no_room = |change: &dyn Fn(&mut WrittenChunk)| {
        let why = refused(&|digested| change(&mut digested[1].written[2]));
        assert!(why.contains("a PE says that it wrote where it had no room"), "{why}");
    };
    no_room(&|chunk| chunk.offset = 0);
    no_room(&|chunk| chunk.offset += 1);
    no_room(&|chunk| chunk.offset = u64::MAX);
    no_room(&|chunk| chunk.stored_bytes += 1);
    no_room(&|chunk| chunk.stored_bytes -= 1);
    no_room(&|chunk| chunk.is_compressed = true);
    refused(&|digested| digested[1].written[2].number = 3);
    refused(&|digested| digested[1].written[2].number = 1);
    refused(&|digested| digested[1].is_left_out = false);
    let nowhere = refused(&|digested| digested[1].written.truncate(2));
    assert!(nowhere.contains("a value was left out that is nowhere"), "{nowhere}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["LOCK"]);
}

#[test]
fn what_is_not_there_is_no_checkpoint_and_from_then_on_all_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut pes = Pes { see: vec![1], ..Pes::default() };
    let mut record = chare(1, 10, 200_000);
    let mut writer = store.begin(about()).unwrap();
    let digested = pes.written(&writer, &mut record, &Digests::default());
    writer.put_digested(&record, &digested).unwrap();
    let chunks = files::Files::of(folder.path(), 1).chunks;
    let length = fs::metadata(&chunks).unwrap().len();
    fs::write(&chunks, vec![0; length as usize]).unwrap();
    let why = writer.commit().unwrap_err().to_string();
    assert!(why.contains("a node that sees the folder wrote to it, and that is not there"), "{why}");
    let record = chare(1, 10, 200_000);
    let mut writer = store.begin(about()).unwrap();
    assert!(writer.extents().is_none());
    writer.put(&record).unwrap();
    writer.commit().unwrap();
    assert_eq!(read(&store.latest().unwrap()), [record]);
}

#[test]
fn only_the_folder_that_is_written_to_is_seen_and_no_other_process_has_one() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stores = [&one, &other].map(|folder| Store::create(folder.path()).unwrap());
    let writers = [0, 1].map(|at| stores[at].begin(about()).unwrap());
    let places = [0, 1].map(|at| writers[at].extents().unwrap().give(PeId(0), 0).unwrap());
    assert!(places.iter().all(|place| find(place).is_ok()));
    let mut wrong = places[0].clone();
    wrong.place.token = places[1].place.token;
    assert!(find(&wrong).err().unwrap().ends_with("TOKEN is of another run"));
    wrong = places[0].clone();
    wrong.place.generation += 1;
    assert!(find(&wrong).err().unwrap().contains("No such file"));
    let [writer, _] = writers;
    let extents = writer.extents().unwrap();
    assert!(extents.give(PeId(0), u64::MAX).is_none(), "more than anybody is given");
    writer.commit().unwrap();
    assert!(find(&places[0]).is_err() && extents.give(PeId(0), 1).is_none(), "it is complete");
    let [store, _] = stores;
    drop((store, extents));
    let again = Store::create(one.path()).unwrap();
    assert!(again.begin(about()).unwrap().extents().is_none(), "what another process wrote is compared");
}
