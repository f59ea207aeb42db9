//! What is put comes back, whatever happens between.

mod copies;
mod decoder;
mod faults;
mod layouts;
mod left_out;
mod objects;
mod sight;
mod written;

use super::files::committed;
use super::*;
use crate::architecture::Architecture;
use crate::buffer::Buffer;
use crate::envelope::Packed;
use crate::schema::{Number, Shape};
use std::fs;

fn about() -> About {
    About {
        program: "stencil".into(),
        version: "1.2".into(),
        arguments: vec!["run".into(), "--n".into(), "8".into()],
        pes: 3,
        nodes: vec![Machine { name: "a".into(), architecture: Architecture::here(), pes: 3 }],
        progress: "step 7 of 9".into(),
        taken_ms: 1_700_000_000_000,
        edited: Vec::new(),
    }
}

/// Deterministic numbers that no two chunks have in common.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn chare(n: u32, body: usize, array: usize) -> Record {
    let attachments =
        if array == 0 { vec![] } else { vec![Buffer::from_slice(&bytes(u64::from(n) + 1, array))] };
    Record {
        kind: Kind::Chare,
        pe: n % 3,
        type_name: if n.is_multiple_of(2) { "Block" } else { "Cell" }.into(),
        collection: 5,
        index: [n, n / 2, 0],
        packed: Packed { body: bytes(u64::from(n) + 1000, body).into(), attachments },
    }
}

fn of_kind(kind: Kind) -> Record {
    let packed = Packed { body: bytes(9, 40).into(), attachments: vec![Buffer::default()] };
    Record { kind, pe: 0, type_name: "state".into(), collection: 0, index: [0; 3], packed }
}

/// The folder of a run that had these records at each checkpoint, with the generations 2 and 3. Both need chunks of the first,
/// which was removed.
fn source_of(records: fn(u32) -> Vec<Record>) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    (1..=3).for_each(|generation| assert_eq!(write(&store, &records(generation)).generation, generation));
    let needed = store.latest().unwrap().places().unwrap().iter().map(|place| place.generation).min();
    assert!(needed == Some(1) && committed(folder.path()).unwrap().into_iter().eq([2, 3]));
    (folder, store)
}

fn write(store: &Store, records: &[Record]) -> Written {
    let mut writer = store.begin(about()).unwrap();
    records.iter().for_each(|record| writer.put(record).unwrap());
    writer.commit().unwrap()
}

fn read(saved: &Saved) -> Vec<Record> {
    sorted(saved.records().map(Result::unwrap).collect())
}

fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| (record.kind, record.pe, record.index));
    records
}

#[test]
fn what_was_put_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [(0, 0), (1, 1), (1024, 1025), (1025, 65_536), (70_000, 200_000), (3, 65_537)];
    let mut records: Vec<Record> = (0..60)
        .map(|n| sizes[n as usize % sizes.len()])
        .enumerate()
        .map(|(n, (body, array))| chare(n as u32, body, array))
        .collect();
    records.extend([Kind::Pe, Kind::Node, Kind::Driver].map(of_kind));
    let dir = folder.path().join("deep/er");
    let written = write(&Store::create(&dir).unwrap(), &records);
    let store = Store::open(&dir).unwrap();
    let saved = store.latest().unwrap();
    assert_eq!((written.generation, saved.generation(), saved.about()), (1, 1, &about()));
    assert_eq!(read(&saved), sorted(records.clone()));
    let of_one = saved.records_of(1).map(Result::unwrap).collect();
    assert_eq!(sorted(of_one), sorted(records.iter().filter(|r| r.pe == 1).cloned().collect()));
    let of_chares =
        records.iter().filter(|record| record.kind == Kind::Chare).map(|record| record.pe).collect();
    assert_eq!(saved.pes_where(|kind| kind == Kind::Chare), of_chares);
    let driver: Vec<Record> = saved.records_of_kind(Kind::Driver).map(Result::unwrap).collect();
    assert_eq!(driver, [of_kind(Kind::Driver)]);
    let total: usize = records.iter().map(|record| record.packed.len_bytes()).sum();
    assert_eq!((written.bytes, saved.bytes(), saved.record_count()), (total as u64, total as u64, 63));
    assert_eq!(
        saved.types().iter().map(|of| (of.records, of.bytes)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        (63, total as u64)
    );
}

#[test]
fn a_manifest_says_what_shared_variables_are_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let number = |value: u8| Record {
        type_name: VARIABLE.into(),
        collection: u64::MAX,
        packed: Packed { body: vec![value].into(), attachments: Vec::new() },
        ..of_kind(Kind::Node)
    };
    let text = |saved: &Saved| std::fs::read_to_string(saved.manifest_path()).unwrap();
    write(&store, &[number(7)]);
    let saved = store.latest().unwrap();
    assert!(saved.variables().is_empty() && !text(&saved).contains("variables"), "{}", text(&saved));
    assert_eq!(saved.schema_of(&number(7)), None, "as in checkpoints of before there was this key");

    let shape = Shape::Struct(vec![("step".into(), Shape::Number(Number::Usize))]);
    let schema = SavedSchema { version: 3, shape };
    let variable = SavedVariable { id: u64::MAX, name: "Rates".into(), schema: schema.clone() };
    let mut writer = store.begin(about()).unwrap();
    writer.describe_variable(variable.clone());
    let wide = Record { type_name: SUM.into(), ..number(0) };
    let body = [0x80, 0x80, 0x80, 0x80, 0x10].to_vec().into();
    let wide = Record { packed: Packed { body, attachments: Vec::new() }, ..wide };
    [&number(7), &wide].into_iter().for_each(|record| writer.put(record).unwrap());
    writer.commit().unwrap();
    let saved = store.latest().unwrap();
    assert_eq!(saved.variables(), [variable]);
    assert_eq!((saved.schema_of(&number(7)), saved.schema_of(&wide)), (Some(&schema), Some(&schema)));
    let said = saved.fits(32).unwrap_err().to_string();
    assert_eq!(
        said,
        format!("sum@{}: step is 4294967296, and machines of 32 bits have no such usize", u64::MAX)
    );

    let flipped = text(&saved).replace("usize", "isize");
    assert_ne!(flipped, text(&saved));
    std::fs::write(saved.manifest_path(), flipped).unwrap();
    let said = store.generation(2).unwrap_err().to_string();
    assert!(said.contains("COMMIT beside it says something else"), "{said}");
}

#[test]
fn a_second_checkpoint_with_one_percent_changed_writes_three_at_most() {
    for (count, body, array) in [(2000, 4000, 0), (600, 200, 16_000), (120, 100, 300_000), (3, 50, 8_000_000)]
    {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let mut records: Vec<Record> = (0..count).map(|n| chare(n, body, array)).collect();
        let first = write(&store, &records);
        let changed = count.div_ceil(100).max(1);
        for n in 0..changed {
            let at = (n * 97 % count) as usize;
            if count > 100 {
                records[at] =
                    Record { packed: chare(at as u32 + 100_000, body, array).packed, ..records[at].clone() };
            } else {
                records[at].packed.attachments[0].bytes_mut()[5_000_000..5_240_000].fill(7);
            }
        }
        let second = write(&store, &records);
        assert!(second.new_bytes * 100 <= first.new_bytes * 3, "{count}: {first:?} {second:?}");
        // Another process begins with what it finds in the folder.
        drop(store);
        let store = Store::create(folder.path()).unwrap();
        let third = write(&store, &records);
        assert!(third.new_bytes * 100 <= first.new_bytes, "{count}: {first:?} {third:?}");
        for saved in store.generations().unwrap() {
            assert_eq!((saved.number > 1, saved.saved.as_ref().unwrap().bytes()), (true, first.bytes));
        }
        assert_eq!(read(&store.latest().unwrap()), sorted(records));
    }
}

#[test]
fn two_runs_do_not_write_into_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let said = Store::create(folder.path()).unwrap_err().to_string();
    assert!(said.contains("in use by another run"), "{said}");
    let reader = Store::open(folder.path()).unwrap();
    assert!(matches!(reader.begin(about()), Err(WriteError::Busy { .. })));
    let writer = store.begin(about()).unwrap();
    assert!(matches!(store.begin(about()), Err(WriteError::Busy { .. })));
    drop(writer);
    write(&store, &[chare(1, 1, 1)]);
    drop(store);
    write(&reader, &[chare(1, 1, 1)]);
}

#[test]
fn two_runs_do_not_write_into_one_folder_of_which_one_was_moved_away() {
    let around = tempfile::tempdir().unwrap();
    let (dir, moved) = (around.path().join("saved"), around.path().join("moved"));
    let first = Store::create(&dir).unwrap();
    write(&first, &[chare(1, 1, 1)]);
    let half = first.begin(about()).unwrap();
    fs::rename(&dir, &moved).unwrap();
    let second = Store::create(&dir).unwrap();
    // The second generation of each.
    write(&second, &[chare(1, 2, 2)]);
    write(&second, &[chare(1, 2, 2)]);
    assert!(matches!(half.commit(), Err(WriteError::Busy { .. })));
    assert!(matches!(first.begin(about()), Err(WriteError::Busy { .. })));
    let there = second.generations().unwrap();
    assert!(there.len() == 2 && there.iter().all(|generation| generation.saved.is_ok()), "{there:?}");
    // Once nobody is there any more, the folder is as good as another.
    drop(second);
    write(&first, &[chare(1, 3, 3)]);
    assert_eq!(read(&first.latest().unwrap()), [chare(1, 3, 3)]);
}

#[test]
fn what_was_not_committed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let said = store.latest().unwrap_err().to_string();
    assert!(said.contains("no generation was completed"), "{said}");
    write(&store, &[chare(1, 100, 5000)]);
    let mut writer = store.begin(about()).unwrap();
    writer.put(&chare(2, 5000, 70_000)).unwrap();
    drop(writer);
    assert_eq!(files::numbers(folder.path()).unwrap().into_iter().collect::<Vec<_>>(), [1]);
    assert_eq!(read(&store.latest().unwrap()), [chare(1, 100, 5000)]);
}

#[test]
fn generations_are_compared_record_by_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut records: Vec<Record> = (0..6).map(|n| chare(n, 100, 3000)).collect();
    records.push(of_kind(Kind::Driver));
    write(&store, &records);
    records[1].packed.attachments[0].bytes_mut()[2999] ^= 1;
    records[2].pe = 1;
    records.remove(4);
    records.push(chare(9, 1, 1));
    write(&store, &records);
    let [one, two] = [1, 2].map(|number| store.generation(number).unwrap());
    let said = one.differences(&two).unwrap();
    let said: Vec<String> = said.iter().map(|of| format!("{:?} {}", of.change, of.identity)).collect();
    assert_eq!(
        said,
        [
            "Changed Cell[1, 0, 0] of collection 5 on PE 1",
            "Moved { from: 2 } Block[2, 1, 0] of collection 5 on PE 1",
            "Removed Block[4, 2, 0] of collection 5 on PE 1",
            "Added Cell[9, 4, 0] of collection 5 on PE 0",
        ]
    );
    assert_eq!(two.differences(&two).unwrap(), []);
    let verified = two.verify(|_| ()).unwrap();
    assert_eq!((verified.whole, verified.damages.len()), (7, 0));
}

/// Who removes a generation by hand while a run goes on loses that one only.
#[test]
fn what_was_removed_by_hand_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let records: Vec<Record> = (0..6).map(|n| chare(n, 100, 3000)).collect();
    write(&store, &records);
    std::fs::remove_dir_all(files::Files::of(folder.path(), 1).folder).unwrap();
    write(&store, &records);
    assert_eq!(read(&store.latest().unwrap()), sorted(records));
}

/// Of a file of which most is not needed any more the rest is written again, and the file goes.
#[test]
fn the_folder_does_not_grow_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut records: Vec<Record> = (0..40).map(|n| chare(n, 100, 3000)).collect();
    let state = write(&store, &records).bytes;
    for round in 1..60u32 {
        for n in 0..4 {
            let at = (round * 4 + n) as usize % 40;
            records[at].packed = chare(round * 100 + n, 100, 3000).packed;
        }
        write(&store, &records);
        let files = files::numbers(folder.path()).unwrap();
        let sizes = files
            .iter()
            .flat_map(|number| std::fs::read_dir(files::Files::of(folder.path(), *number).folder).unwrap());
        let total: u64 = sizes.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(total < state * 3, "round {round}: {total} of {state}, {} folders", files.len());
    }
    assert_eq!(read(&store.latest().unwrap()), sorted(records));
}

/// What is shorter compressed is stored so, and nobody notices but the disk: it is read, compared, copied, found again and not
/// written twice.
#[test]
fn what_is_shorter_compressed_is_stored_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let numbers: Vec<u32> = (0..100_000).map(|n| n / 7).collect();
    let of_numbers = |n: u32| {
        let mut record = chare(n, 70_000, 0);
        record.packed.attachments = vec![Buffer::from_slice(&numbers), Buffer::from_slice(&bytes(9, 90_000))];
        record
    };
    let records: Vec<Record> = (0..3).map(of_numbers).collect();
    let written = write(&store, &records);
    let saved = store.latest().unwrap();
    let noise: u64 = 3 * 70_000 + 90_000;
    assert_eq!(
        saved.overview().stored_bytes,
        written.new_bytes - saved.index_bytes().len() as u64 - files_bytes(&saved)
    );
    assert!(
        (noise..noise + 250_000).contains(&saved.overview().stored_bytes),
        "{}",
        saved.overview().stored_bytes
    );
    assert_eq!((read(&saved), saved.bytes()), (sorted(records.clone()), written.bytes));
    assert_eq!(saved.verify(|_| ()).unwrap().damages, []);
    assert_eq!(saved.verify(|_| ()).unwrap().read_bytes, saved.overview().stored_bytes);
    let codecs: Vec<codec::Codec> = saved.places().unwrap().iter().map(|place| place.codec).collect();
    assert!([codec::Codec::Plain, codec::Codec::Zstd].iter().all(|codec| codecs.contains(codec)));

    let copy_to = tempfile::tempdir().unwrap();
    assert_eq!(copy(&saved, copy_to.path(), |_, _| ()).unwrap().bytes, saved.overview().stored_bytes);
    let copied = Store::open(copy_to.path()).unwrap().latest().unwrap();
    assert_eq!((read(&copied), copied.differences(&saved).unwrap()), (sorted(records.clone()), vec![]));
    drop(store);
    let store = Store::create(folder.path()).unwrap();
    assert!(write(&store, &records).new_bytes < 5000, "another process finds the same chunks");
}

/// The length of what is beside the chunks and the index.
fn files_bytes(saved: &Saved) -> u64 {
    let manifest = saved.manifest_bytes();
    (manifest.len() + saved.commit_line().len()) as u64
}
