//! A disk that fails, or loses what was not synchronised when the machine goes down, and bits that flip.

use super::super::disk::{Disk, Output, Patch};
use super::super::files::{Files, committed};
use super::super::{ReadError, Record, Store, Written};
use super::{about, chare, read, sorted};
use crate::buffer::Buffer;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Does everything in a real folder, and knows what of it a crash would leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Faulty(Arc<Mutex<Model>>);

#[derive(Debug, Default)]
pub(super) struct Model {
    /// How many operations succeed before one fails.
    pub(super) left: Option<usize>,
    /// Whether all that follow fail as well.
    pub(super) is_fatal: bool,
    pub(super) has_failed: bool,
    /// What each folder holds, and what it held when it was last synchronised.
    folders: BTreeMap<PathBuf, [BTreeMap<PathBuf, Entry>; 2]>,
    files: Vec<Contents>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    Folder,
    File(usize),
}

#[derive(Debug, Default)]
struct Contents {
    bytes: Vec<u8>,
    synced: Vec<u8>,
}

/// What a crash leaves of what was not synchronised.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crash {
    /// All of it, as when only the process dies.
    Nothing,
    /// None of it.
    Everything,
    /// All names, but none of the bytes.
    Bytes,
    /// Of each name and file one or the other, by a seed.
    Some(u64),
}

impl Faulty {
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap()
    }

    /// Fails when its turn has come.
    fn step(&self) -> io::Result<MutexGuard<'_, Model>> {
        let mut model = self.model();
        let fails = model.left == Some(0) || model.has_failed && model.is_fatal;
        model.left = if fails { None } else { model.left.map(|left| left - 1) };
        if fails {
            model.has_failed = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(model)
    }

    fn put(model: &mut Model, path: &Path, entry: Option<Entry>) {
        let names = &mut model.folders.entry(path.parent().unwrap().into()).or_default()[0];
        match entry {
            Some(entry) => names.insert(path.into(), entry),
            None => names.remove(path),
        };
    }

    /// Puts what a crash leaves of `folder` there.
    pub(super) fn leave(&self, folder: &Path, crash: Crash, there: &Path) {
        let model = self.model();
        fs::create_dir(there).unwrap();
        let Some([now, synced]) = model.folders.get(folder) else { return };
        let names: std::collections::BTreeSet<&PathBuf> = now.keys().chain(synced.keys()).collect();
        let mut kept = Vec::new();
        for (number, &path) in names.iter().enumerate() {
            let is_now = crash.keeps(number, true);
            let entry = if is_now { now.get(path) } else { synced.get(path) };
            let Some(&entry) = entry else { continue };
            let to = there.join(path.file_name().unwrap());
            match entry {
                Entry::Folder => kept.push((path.clone(), to)),
                Entry::File(file) => {
                    let Contents { bytes, synced } = &model.files[file];
                    fs::write(to, if crash.keeps(file, false) { bytes } else { synced }).unwrap();
                }
            }
        }
        drop(model);
        kept.iter().for_each(|(path, to)| self.leave(path, crash, to));
    }
}

impl Crash {
    fn keeps(self, number: usize, is_name: bool) -> bool {
        match self {
            Self::Nothing => true,
            Self::Everything => false,
            Self::Bytes => is_name,
            Self::Some(seed) => {
                let mixed = (number as u64 * 2 + u64::from(is_name) + 1)
                    .wrapping_mul(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                mixed >> 61 & 1 == 1
            }
        }
    }
}

impl Disk for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let mut model = self.step()?;
        let file = fs::File::create_new(path)?;
        model.files.push(Contents::default());
        let number = model.files.len() - 1;
        Self::put(&mut model, path, Some(Entry::File(number)));
        Ok(Box::new(FaultyFile { disk: self.clone(), number, file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Patch>> {
        let mut model = self.step()?;
        let file = fs::File::options().create(true).truncate(false).write(true).open(path)?;
        let known = model.folders.get(path.parent().unwrap()).and_then(|names| names[0].get(path)).copied();
        let number = match known {
            Some(Entry::File(number)) => number,
            _ => {
                model.files.push(Contents::default());
                let number = model.files.len() - 1;
                Self::put(&mut model, path, Some(Entry::File(number)));
                number
            }
        };
        Ok(Box::new(FaultyFile { disk: self.clone(), number, file }))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let mut model = self.step()?;
        fs::create_dir(path)?;
        model.folders.insert(path.into(), Default::default());
        Self::put(&mut model, path, Some(Entry::Folder));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut model = self.step()?;
        fs::rename(from, to)?;
        let entry = model.folders[from.parent().unwrap()][0].get(from).copied();
        Self::put(&mut model, from, None);
        Self::put(&mut model, to, entry);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut model = self.step()?;
        fs::remove_file(path)?;
        Self::put(&mut model, path, None);
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut model = self.step()?;
        fs::remove_dir(path)?;
        Self::put(&mut model, path, None);
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut model = self.step()?;
        let [now, synced] = model.folders.entry(path.into()).or_default();
        synced.clone_from(now);
        Ok(())
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: Faulty,
    number: usize,
    file: fs::File,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A write that fails has written half.
        let (written, failed) = match self.disk.step() {
            Ok(_) => (bytes, None),
            Err(error) => (&bytes[..bytes.len() / 2], Some(error)),
        };
        self.file.write_all(written)?;
        self.disk.model().files[self.number].bytes.extend(written);
        failed.map_or(Ok(bytes.len()), Err)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut model = self.disk.step()?;
        let contents = &mut model.files[self.number];
        contents.synced.clone_from(&contents.bytes);
        Ok(())
    }
}

impl Patch for FaultyFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (written, failed) = match self.disk.step() {
            Ok(_) => (bytes, None),
            Err(error) => (&bytes[..bytes.len() / 2], Some(error)),
        };
        self.file.write_all_at(written, offset)?;
        let (mut model, offset) = (self.disk.model(), offset as usize);
        let there = &mut model.files[self.number].bytes;
        there.resize(there.len().max(offset + written.len()), 0);
        there[offset..offset + written.len()].copy_from_slice(written);
        failed.map_or(Ok(()), Err)
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        let mut model = self.disk.step()?;
        model.files[self.number].bytes.resize(bytes as usize, 0);
        self.file.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        Output::sync(self)
    }
}

/// A run's records at one checkpoint: most are the same at all, some come, change and go.
fn records(generation: u32) -> Vec<Record> {
    let changed =
        (0..3).map(|n| Record { packed: chare(n + 100 * generation, 300, 70_000).packed, ..chare(n, 0, 0) });
    let same = (3..12).map(|n| chare(n, 200, 3000));
    let new = (generation * 10 + 20..generation * 10 + 23).map(|n| chare(n, 5000, 10));
    changed.chain(same).chain(new).collect()
}

fn try_write(store: &Store, generation: u32) -> Result<Written, super::WriteError> {
    let mut writer = store.begin(about())?;
    records(generation).iter().try_for_each(|record| writer.put(record))?;
    writer.commit()
}

/// A folder with three checkpoints, of which the first has been removed, on a disk that fails later.
fn three_checkpoints(dir: &Path) -> (Faulty, Store) {
    let disk = Faulty::default();
    let store = Store::on(dir, Arc::new(disk.clone()), 2);
    for generation in 1..=3 {
        assert_eq!(try_write(&store, generation).unwrap().generation, generation);
    }
    (disk, store)
}

/// Of the newest generation that is there: which it is. It and the one before it are what was written.
fn newest_whole(dir: &Path, context: &str) -> u32 {
    let store = Store::open(dir).unwrap();
    let latest = store.latest().unwrap_or_else(|error| panic!("{context}: {error}"));
    let newest = latest.generation();
    // What is being removed does not count any more before anything of it is gone.
    let mut generations = store.generations().unwrap().into_iter();
    assert!(generations.all(|one| one.saved.is_ok()), "{context}");
    for number in [newest - 1, newest] {
        let saved = store.generation(number).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(read(&saved), sorted(records(number)), "{context}, generation {number}");
    }
    newest
}

/// Wherever the writing ends, and whatever of it the machine loses, the last generation that was committed is whole, and
/// so is the one before; and the next run can go on from there.
#[test]
fn whenever_the_machine_goes_down_the_last_checkpoint_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let crashes =
        [Crash::Nothing, Crash::Everything, Crash::Bytes].into_iter().chain((1..4).map(Crash::Some));
    let crashes: Vec<Crash> = crashes.collect();
    let mut ends = [0, 0];
    for at in 0.. {
        let dir = folder.path().join(format!("{at}"));
        fs::create_dir(&dir).unwrap();
        let (disk, store) = three_checkpoints(&dir);
        (disk.model().left, disk.model().is_fatal) = (Some(at), true);
        let written = try_write(&store, 4);
        drop(store);
        for (number, crash) in crashes.iter().enumerate() {
            let left = folder.path().join(format!("{at}-{number}"));
            disk.leave(&dir, *crash, &left);
            let context = format!("operation {at}, {crash:?} lost");
            let newest = newest_whole(&left, &context);
            assert!(newest == 4 || newest == 3 && written.is_err(), "{context}: {newest}");
            ends[usize::from(newest == 4)] += 1;
            let store = Store::on(&left, Arc::new(Faulty::default()), 2);
            let mut writer = store.begin(about()).unwrap();
            records(newest + 1).iter().for_each(|record| writer.put(record).unwrap());
            let after = writer.commit().unwrap().generation;
            assert_eq!(read(&store.latest().unwrap()), sorted(records(newest + 1)), "{context}");
            assert!(committed(&left).unwrap().into_iter().eq([newest, after]), "{context}");
        }
        if !disk.model().has_failed {
            assert!(written.is_ok() && at > 20, "{at} operations");
            break;
        }
    }
    assert!(ends.iter().all(|count| *count > 20), "{ends:?}");
}

/// A disk that is full for a moment: one sentence, the last generation whole, and the next one is written.
#[test]
fn a_write_that_fails_gives_up_one_checkpoint_only() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0.. {
        let dir = folder.path().join(format!("{at}"));
        fs::create_dir(&dir).unwrap();
        let (disk, store) = three_checkpoints(&dir);
        disk.model().left = Some(at);
        let written = try_write(&store, 4);
        disk.model().left = None;
        if let Err(error) = &written {
            let said = error.to_string();
            assert!(said.contains("cannot be written: no storage space"), "{said}");
            assert!(said.ends_with("the checkpoint before it, generation 3, is as it was"), "{said}");
            assert_eq!(newest_whole(&dir, &said), 3);
        }
        let last = committed(&dir).unwrap().last().copied().unwrap();
        let mut writer = store.begin(about()).unwrap();
        records(5).iter().for_each(|record| writer.put(record).unwrap());
        writer.commit().unwrap();
        let generations: Vec<u32> = committed(&dir).unwrap().into_iter().collect();
        assert!(generations.len() == 2 && generations[0] == last, "{at}: {generations:?}");
        assert_eq!(read(&store.latest().unwrap()), sorted(records(5)));
        if !disk.model().has_failed {
            assert!(written.is_ok() && at > 20, "{at} operations");
            break;
        }
    }
}

/// A record whose chunk is stored compressed.
fn compressible() -> Record {
    let mut record = chare(2, 30, 0);
    record.packed.attachments = vec![Buffer::from_slice(&[7u8; 1100])];
    record
}

/// Every byte of every file that the newest generation needs: a flipped bit, whichever of the eight, is found, the file is named,
/// and a generation before is offered if the bit is none of its own.
#[test]
fn every_flipped_bit_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let write = |seeds: std::ops::Range<u32>| {
        let mut writer = store.begin(about()).unwrap();
        writer.put(&chare(0, 30, 1100)).unwrap();
        writer.put(&compressible()).unwrap();
        seeds.for_each(|n| writer.put(&chare(n, 20, 1200)).unwrap());
        writer.commit().unwrap()
    };
    write(10..11);
    write(20..21);
    let files: Vec<PathBuf> = [1, 2]
        .map(|number| Files::of(folder.path(), number))
        .into_iter()
        .flat_map(|files| [files.chunks, files.index, files.manifest, files.commit])
        .collect();
    let is_of_first = |path: &Path| path.to_str().unwrap().contains("generation-000001");
    let mut offered = [0, 0];
    for path in &files {
        let whole = fs::read(path).unwrap();
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let byte = whole[at];
            let put = |byte: u8| {
                let file = fs::File::options().write(true).open(path).unwrap();
                file.write_all_at(&[byte], at as u64).unwrap();
            };
            put(byte ^ 1 << bit);
            let found =
                store.latest().and_then(|saved| saved.verify(|_| ())).map(|verified| verified.damages);
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_needed = !is_of_first(path) || name == "chunks";
            let is_read =
                || store.latest().and_then(|saved| saved.records().try_for_each(|one| one.map(drop)));
            match (found, is_read()) {
                (Ok(none), Ok(())) if none.is_empty() => {
                    // What only the first one needs, the first one finds.
                    assert!(is_of_first(path), "{}, byte {at}", path.display());
                    let first = store
                        .generation(1)
                        .and_then(|saved| saved.records().try_for_each(|one| one.map(drop)));
                    assert!(first.unwrap_err().to_string().contains("generation 1 is damaged"));
                }
                (found, read) => {
                    assert!(is_needed, "{}", path.display());
                    let read = read.unwrap_err();
                    let said = read.to_string();
                    let named = if name == "COMMIT" { "COMMIT" } else { path.to_str().unwrap() };
                    assert!(said.contains(named) && said.contains("generation 2 is damaged"), "{said}");
                    assert!(found.map_or(true, |damages| damages.iter().all(|damage| damage.path == *path)));
                    let ReadError::Damaged { before, .. } = read else { panic!("{said}") };
                    assert_eq!(before, (!is_of_first(path)).then_some(1), "{said}");
                    offered[usize::from(before.is_some())] += 1;
                }
            }
            put(byte);
        }
        for wrong in [&whole[..whole.len() - 1], &[&whole[..], b"x"].concat(), b""] {
            fs::write(path, wrong).unwrap();
            let number = if is_of_first(path) { 1 } else { 2 };
            let said = store.generation(number).unwrap_err().to_string();
            assert!(said.contains("is damaged"), "{said}");
        }
        fs::write(path, &whole).unwrap();
    }
    assert!(offered.iter().all(|count| *count > 1000), "{offered:?}");
    store.latest().unwrap().verify(|_| ()).unwrap();
    fs::remove_file(&files[0]).unwrap();
    let said = store.latest().unwrap_err().to_string();
    assert!(said.ends_with("chunks: it is missing"), "{said}");
}

/// What has been damaged on disk is not relied on by a later generation: its run writes it again.
#[test]
fn damage_is_not_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let kept: Vec<Record> = (0..6).map(|n| chare(n, 100, 3000)).collect();
    let write = |store: &Store| {
        let mut writer = store.begin(about()).unwrap();
        kept.iter().for_each(|record| writer.put(record).unwrap());
        writer.commit().unwrap()
    };
    write(&Store::create(folder.path()).unwrap());
    let path = Files::of(folder.path(), 1).chunks;
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 4;
    fs::write(&path, bytes).unwrap();
    let store = Store::create(folder.path()).unwrap();
    assert!(store.latest().unwrap().records().any(|record| record.is_err()));
    let written = write(&store);
    assert!((3000..6000).contains(&written.new_bytes), "{written:?}");
    assert_eq!(read(&store.latest().unwrap()), sorted(kept));
}
