//! Copies in object stores: all of it comes back, what is there is not sent again, and what is wrong there is named.

use super::super::copy::{Copied, CopyError, Objects, list_objects, pull_from_objects, push_to_objects};
use super::super::{Record, Saved, Store};
use super::{chare, read, sorted, source_of, write};
use crate::failure::{Failure, Kind};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// An object store in memory that fails after so many requests.
#[derive(Default)]
struct Memory {
    objects: BTreeMap<String, Bytes>,
    got: usize,
    put: usize,
    left: Option<usize>,
}

impl Memory {
    fn asked(&mut self) -> Result<(), Failure> {
        let is_over = self.left == Some(0);
        self.left = self.left.map(|left| left.saturating_sub(1));
        if is_over { Err(Failure::new(Kind::Unavailable, "nobody answers")) } else { Ok(()) }
    }
}

impl Objects for Memory {
    fn names(&mut self, begin: &str) -> Result<Vec<String>, Failure> {
        self.asked()?;
        Ok(self.objects.keys().filter(|name| name.starts_with(begin)).cloned().collect())
    }

    fn get(&mut self, name: &str, max_bytes: u64) -> Result<Option<Bytes>, Failure> {
        self.asked()?;
        self.got += 1;
        let object = self.objects.get(name).cloned();
        assert!(object.as_ref().is_none_or(|object| object.len() as u64 <= max_bytes), "{name}");
        Ok(object)
    }

    fn put(&mut self, name: &str, bytes: Bytes) -> Result<(), Failure> {
        self.asked()?;
        self.put += 1;
        self.objects.insert(name.into(), bytes);
        Ok(())
    }
}

/// A run's records at one checkpoint, of more than one piece: most are the same in all.
fn records(generation: u32) -> Vec<Record> {
    let same = (0..3).map(|n| chare(n, 200, 200_000));
    let changed = (4..6).map(|n| chare(n + 100 * generation, 30, 12_000));
    same.chain(changed).collect()
}

fn push(saved: &Saved, to: &mut Memory) -> Result<Copied, CopyError> {
    push_to_objects(saved, to, |_, _| ())
}

fn pull(from: &mut Memory, generation: Option<u32>, to: &Path) -> Result<Copied, CopyError> {
    pull_from_objects(from, generation, to, |_, _| ())
}

fn said(outcome: Result<Copied, CopyError>) -> String {
    outcome.unwrap_err().to_string()
}

fn assert_is(folder: &Path, generation: u32) {
    let saved = Store::open(folder).unwrap().generation(generation).unwrap();
    assert_eq!(read(&saved), sorted(records(generation)), "{generation}");
}

#[test]
fn generations_come_back_and_only_what_is_new_is_sent() {
    let (_folder, store) = source_of(records);
    let mut bucket = Memory::default();
    let first = push(&store.generation(2).unwrap(), &mut bucket).unwrap();
    assert_eq!((first.generation, first.sent_chunks), (2, first.chunks));
    let second = push(&store.generation(3).unwrap(), &mut bucket).unwrap();
    assert!(second.sent_bytes < second.bytes / 5, "{second:?}");
    assert_eq!(push(&store.generation(3).unwrap(), &mut bucket).unwrap().sent_bytes, 0);

    let to = tempfile::tempdir().unwrap();
    assert_eq!(pull(&mut bucket, Some(2), to.path()).unwrap().generation, 2);
    assert_is(to.path(), 2);
    let pulled = pull(&mut bucket, None, to.path()).unwrap();
    assert!(pulled.generation == 3 && pulled.sent_bytes < pulled.bytes / 5, "{pulled:?}");
    assert_is(to.path(), 3);
    assert_is(to.path(), 2);
    let other = tempfile::tempdir().unwrap();
    assert_eq!(
        push(&Store::open(to.path()).unwrap().latest().unwrap(), &mut Memory::default()).unwrap().generation,
        3
    );
    assert_eq!(said(pull(&mut bucket, Some(7), other.path())), "there is no generation 7; there is 2, 3");
    let empty = said(pull(&mut Memory::default(), None, other.path()));
    assert_eq!(empty, "there is no checkpoint: no generation was completed");
}

#[test]
fn what_is_there_is_listed_as_it_is_in_the_folder_and_damage_has_its_place_in_the_list() {
    let (_folder, store) = source_of(records);
    let mut bucket = Memory::default();
    let none = list_objects(&mut bucket).unwrap_err();
    assert_eq!(none, Failure::new(Kind::NoInput, "there is no checkpoint: no generation was completed"));
    let saved = [2, 3].map(|generation| store.generation(generation).unwrap());
    for saved in &saved {
        push(saved, &mut bucket).unwrap();
    }
    bucket.got = 0;
    let list = list_objects(&mut bucket).unwrap();
    assert_eq!(list, [2, 3].map(|number| (number, Ok(saved[number as usize - 2].overview()))));
    assert_eq!(bucket.got, 4, "of each its COMMIT and its manifest");

    let manifest = bucket.objects["generation-000003/MANIFEST.json"].clone();
    bucket.objects.insert("generation-000002/MANIFEST.json".into(), manifest);
    let list = list_objects(&mut bucket).unwrap();
    let damage = list[0].1.as_ref().unwrap_err();
    assert!(damage.starts_with("generation-000002/MANIFEST.json: it is not what COMMIT says"), "{damage}");
    assert_eq!(list[1].1, Ok(saved[1].overview()));
    for left in 0..5 {
        bucket.left = Some(left);
        assert_eq!(list_objects(&mut bucket).unwrap_err().sentence, "nobody answers", "after {left}");
    }
}

#[test]
fn whenever_the_store_stops_answering_nothing_counts_and_the_next_copy_goes_on() {
    let (_folder, store) = source_of(records);
    let saved = store.latest().unwrap();
    let mut whole = Memory::default();
    push(&saved, &mut whole).unwrap();
    let (mut bucket, mut arrived) = (Memory::default(), 0);
    for left in 0.. {
        bucket.left = Some(left);
        let outcome = push(&saved, &mut bucket);
        let pieces = bucket.objects.keys().filter(|name| name.starts_with("pieces/")).count();
        assert!(pieces >= arrived);
        arrived = pieces;
        if outcome.is_ok() {
            break;
        }
        assert_eq!(said(outcome), "nobody answers");
        bucket.left = None;
        let to = tempfile::tempdir().unwrap();
        assert!(said(pull(&mut bucket, None, to.path())).starts_with("there is no checkpoint"));
    }
    assert_eq!(bucket.objects, whole.objects);
    for left in 0.. {
        bucket.left = Some(left);
        let to = tempfile::tempdir().unwrap();
        if let Ok(copied) = pull(&mut bucket, None, to.path()) {
            assert_eq!(copied.generation, 3);
            return assert_is(to.path(), 3);
        }
        assert!(Store::open(to.path()).unwrap().latest().is_err());
        bucket.left = None;
        pull(&mut bucket, None, to.path()).unwrap();
        assert_is(to.path(), 3);
    }
}

#[test]
fn damage_here_or_there_is_named_and_not_passed_on() {
    let (folder, store) = source_of(records);
    let mut bucket = Memory::default();
    push(&store.latest().unwrap(), &mut bucket).unwrap();
    let names: Vec<String> = bucket.objects.keys().cloned().collect();
    assert!(names.len() > 6, "{names:?}");
    for name in &names {
        let whole = bucket.objects[name].clone();
        let mut bytes = whole.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        for wrong in [Some(Bytes::from(bytes)), Some(Bytes::new()), None] {
            match wrong {
                Some(wrong) => bucket.objects.insert(name.clone(), wrong),
                None => bucket.objects.remove(name),
            };
            let to = tempfile::tempdir().unwrap();
            let said = said(pull(&mut bucket, None, to.path()));
            let is_named = said.contains(&**name) || name.ends_with("COMMIT");
            assert!(is_named || said.contains("in no piece") || said.contains("pieces/"), "{name}: {said}");
            assert!(Store::open(to.path()).unwrap().latest().is_err(), "{name}");
        }
        bucket.objects.insert(name.clone(), whole);
    }

    let chunks = folder.path().join("generation-000001/chunks");
    let mut bytes = fs::read(&chunks).unwrap();
    bytes[5000] ^= 1;
    fs::write(&chunks, bytes).unwrap();
    let said = said(push(&store.latest().unwrap(), &mut Memory::default()));
    assert!(said.contains("generation-000001/chunks: the checksum of a chunk is wrong"), "{said}");
}

#[test]
fn another_run_does_not_write_over_a_generation() {
    let (_folder, store) = source_of(records);
    let other = tempfile::tempdir().unwrap();
    let other_store = Store::create(other.path()).unwrap();
    (1..=3).for_each(|generation| assert_eq!(write(&other_store, &records(9)).generation, generation));
    let mut bucket = Memory::default();
    push(&store.latest().unwrap(), &mut bucket).unwrap();
    let before = bucket.objects.clone();
    let said = said(push(&other_store.latest().unwrap(), &mut bucket));
    assert!(said.starts_with("generation-000003/COMMIT belongs to another generation 3"), "{said}");
    assert_eq!(bucket.objects, before);
}
