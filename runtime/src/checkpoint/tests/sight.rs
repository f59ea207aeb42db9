//! Nodes read what they see themselves only where it is what the launcher has.

use super::super::{Kind, Record, Saved, Sight, Store, TakenIn};
use super::{about, bytes, of_kind};
use crate::ids::PeId;
use crate::object::ProgramTable;
use crate::payload::Packed;
use crate::saved::{FindSaved as _, RecordHeader, SavedPlace};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const PES: u32 = 3;
const OF_PE: u64 = 4;

/// Long records of each PE, no two of them alike.
fn write(dir: &Path, seed: u64) -> Store {
    let store = Store::create(dir).unwrap();
    let mut writer = store.begin(about()).unwrap();
    for number in 0..u64::from(PES) * OF_PE {
        let body = bytes(seed + number, 70_000).into();
        let packed = Packed { body, attachments: Vec::new() };
        let pe = (number / OF_PE) as u32;
        writer.put(&Record { pe, type_name: "PE".into(), packed, ..of_kind(Kind::Pe) }).unwrap();
    }
    writer.put(&of_kind(Kind::Driver)).unwrap();
    writer.commit().unwrap();
    store
}

fn sight() -> Sight {
    Sight::new(Arc::new(ProgramTable::default()))
}

/// The records of a PE that a node reads, and why it reads no more.
fn read(place: &SavedPlace, pe: PeId) -> (Vec<(RecordHeader, Packed)>, Option<String>) {
    let found = match sight().find(place) {
        Ok(found) => found,
        Err(why) => return (Vec::new(), Some(why)),
    };
    let mut records = Vec::new();
    for record in found.of_pe(pe) {
        match record {
            Ok(record) => records.push(record),
            Err(why) => return (records, Some(why.sentence)),
        }
    }
    (records, None)
}

fn place(saved: &Saved) -> SavedPlace {
    saved.place().expect("a folder with a name")
}

#[test]
fn a_pe_reads_its_own_records_and_the_launcher_has_the_rest_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let saved = Arc::new(write(folder.path(), 1).latest().unwrap());
    let launcher = TakenIn::new(Arc::clone(&saved), &ProgramTable::default()).unwrap();
    let counts: Vec<_> = launcher.counts().into_iter().collect();
    assert_eq!(counts, [0, 1, 2].map(|pe| (PeId(pe), OF_PE)));
    assert_eq!(launcher.bytes_of_pes(), u64::from(PES) * OF_PE * 70_000);
    for (pe, _) in counts {
        let (read, why) = read(&place(&saved), pe);
        assert_eq!((read.len() as u64, why), (OF_PE, None));
        for first in 0..=OF_PE {
            let mut bytes = 0;
            let rest =
                launcher.of_pe(pe, first, |read| bytes += read).map(Result::unwrap).collect::<Vec<_>>();
            assert!(rest == read[first as usize..], "after the first {first}");
            assert_eq!(bytes, (OF_PE - first) * 70_000);
            let heads = launcher.heads_of_pe(pe, first).map(|head| head.unwrap().0);
            assert!(heads.eq(read[..first as usize].iter().map(|(header, _)| header.clone())));
        }
    }
}

/// Of tables of which nothing is wanted nothing is read: they may be damaged.
#[test]
fn what_a_pe_has_is_left_out_whole_tables_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut writer = store.begin(about()).unwrap();
    let small = |number: u64| Packed { body: bytes(number, 900).into(), attachments: Vec::new() };
    for number in 0..200 {
        writer
            .put(&Record { packed: small(number), index: [number as u32; 3], ..of_kind(Kind::Pe) })
            .unwrap();
    }
    writer.put(&of_kind(Kind::Driver)).unwrap();
    writer.commit().unwrap();
    let saved = Arc::new(store.latest().unwrap());
    let tables: Vec<_> = saved.tables().iter().filter(|table| table.kind == Kind::Pe).copied().collect();
    assert!(tables.len() > 3, "{} tables", tables.len());
    let launcher = TakenIn::new(Arc::clone(&saved), &ProgramTable::default()).unwrap();
    let place = tables[1].place;
    flip(&folder.path().join("generation-000001/chunks"), place.offset as usize);
    let before = u64::from(tables[0].records + tables[1].records);
    let rest = launcher.of_pe(PeId(0), before, |_| {}).map(|record| record.unwrap().1);
    assert!(rest.eq((before..200).map(small)));
    assert!(launcher.of_pe(PeId(0), before - 1, |_| {}).next().unwrap().is_err());
}

#[test]
fn what_is_not_the_same_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other, copy] = ["one", "other", "copy"].map(|name| folder.path().join(name));
    let saved = write(&one, 1).latest().unwrap();
    drop(write(&other, 1000));
    let generation = copy.join("generation-000001");
    let copied = || {
        let _ = fs::remove_dir_all(&generation);
        fs::create_dir_all(&generation).unwrap();
        for name in ["chunks", "index", "MANIFEST.json"] {
            fs::copy(one.join("generation-000001").join(name), generation.join(name)).unwrap();
        }
    };
    let at = |dir: &Path| SavedPlace { dir: dir.to_str().unwrap().into(), ..place(&saved) };
    let refused = |what: &str, dir: &Path, expected: &str| {
        let (records, why) = read(&at(dir), PeId(1));
        let why = why.unwrap_or_else(|| panic!("{what}: it was read"));
        assert!(records.is_empty() && why.contains(expected), "{what}: {why}");
    };
    copied();
    assert_eq!(read(&at(&copy), PeId(1)).1, None, "a copy without COMMIT is as good");
    refused("another run", &other, "it is of another checkpoint");
    refused("nothing", &folder.path().join("nowhere"), "MANIFEST.json");
    fs::OpenOptions::new().append(true).open(generation.join("MANIFEST.json")).unwrap().set_len(9).unwrap();
    refused("a short manifest", &copy, "it has 9 bytes");
    copied();
    flip(&generation.join("index"), 40);
    refused("another index", &copy, "its checksum is wrong");
    copied();
    fs::OpenOptions::new().append(true).open(generation.join("chunks")).unwrap().set_len(99).unwrap();
    refused("a short file", &copy, "it has 99 bytes");
    for name in ["chunks", "index", "MANIFEST.json"] {
        copied();
        fs::remove_file(generation.join(name)).unwrap();
        mkfifo(&generation.join(name), Mode::S_IRWXU).unwrap();
        refused(name, &copy, "it is no file");
    }
}

#[test]
fn a_pe_reads_as_far_as_all_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let saved = write(folder.path(), 1).latest().unwrap();
    let (whole, _) = read(&place(&saved), PeId(1));
    // In the third record of the second PE.
    flip(&folder.path().join("generation-000001/chunks"), 6 * 70_000 + 5);
    let (records, why) = read(&place(&saved), PeId(1));
    assert!(records == whole[..2], "{} records", records.len());
    assert!(why.unwrap().contains("the checksum of a chunk is wrong"));
    assert_eq!(read(&place(&saved), PeId(2)).1, None, "the others are as they were");
}

#[test]
fn a_place_that_cannot_be_is_not_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let good = place(&write(folder.path(), 1).latest().unwrap());
    assert!(good.can_be());
    for dir in ["saved".to_string(), String::new(), "/a\0b".into(), format!("/{}", "a".repeat(5000))] {
        assert!(!SavedPlace { dir, ..good.clone() }.can_be());
    }
    assert!(!SavedPlace { manifest_bytes: u64::MAX, ..good }.can_be());
}

/// Changes a byte of a file.
fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}
