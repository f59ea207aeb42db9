//! The end of a copy that has the folder for it.

use super::super::disk::{Disk, Patch, System};
use super::super::error::{Damage, ReadError, WriteError};
use super::super::files::{Files, committed};
use super::super::folder::Folder;
use super::super::format::{Index, Place};
use super::super::manifest::Manifest;
use super::super::saved::{Saved, Trouble, manifest_of};
use super::error::CopyError;
use super::messages::{Copied, Ends, Message, Offer};
use crate::digest::Digest;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Takes a generation that the other end [gives](super::give()) into a folder, made if need be. What the folder has of it
/// already is compared with the checksums and not sent again. Generations that are there stay. `tell` hears how many bytes have
/// come, and of how many.
///
/// # Errors
/// If the folder cannot be written or is in use, if it has another generation of that number, if what comes is not what the
/// checksums say, or if the other end is lost. The generation does not count then, and what has come stays for the next copy.
pub(super) fn take(dir: &Path, ends: &mut Ends<'_>, tell: impl FnMut(u64, u64)) -> Result<Copied, CopyError> {
    take_on(Arc::new(System), dir, ends, tell)
}

/// [Takes](take) into a folder of this machine what another thread gives.
pub(super) fn take_here(
    to: &Path,
    tell: impl FnMut(u64, u64),
    give: impl FnOnce(&mut Ends<'_>) -> Result<(), CopyError> + Send,
) -> Result<Copied, CopyError> {
    let pipes = || Ok((io::pipe()?, io::pipe()?));
    let ((chunks, mut given), (asked, mut taken)) = pipes().map_err(CopyError::Lost)?;
    thread::scope(|scope| {
        let giver = scope.spawn(move || give(&mut Ends::new(&mut { asked }, &mut given)));
        let copied = take(to, &mut Ends::new(&mut { chunks }, &mut taken), tell);
        drop(taken);
        match (giver.join(), copied) {
            // Who is only told that something was wrong, or hears nothing any more, says it worse than who found it.
            (Ok(Err(error)), Err(CopyError::There(_) | CopyError::Lost(_))) => Err(error),
            (_, copied) => copied,
        }
    })
}

pub(crate) fn take_on(
    disk: Arc<dyn Disk>,
    dir: &Path,
    ends: &mut Ends<'_>,
    tell: impl FnMut(u64, u64),
) -> Result<Copied, CopyError> {
    try_take(disk, dir, ends, tell).inspect_err(|error| ends.explain(error))
}

fn try_take(
    disk: Arc<dyn Disk>,
    dir: &Path,
    ends: &mut Ends<'_>,
    tell: impl FnMut(u64, u64),
) -> Result<Copied, CopyError> {
    let offer = match ends.hear()? {
        Message::Offer(offer) => offer,
        other => return Err(other.unexpected()),
    };
    // None of those that are there is removed, so how many are kept does not matter.
    let folder = Folder::new(dir, disk, usize::MAX);
    let taking = Taking::new(&folder, offer)?;
    folder.make().map_err(|error| WriteError::io(dir, error))?;
    folder.lock()?;
    taking.check_room()?;
    let there = taking.there()?;
    let all = &taking.offer.places;
    let numbered = (0..).zip(all).filter(|(_, place)| !there.contains(place));
    let (numbers, wanted): (Vec<u32>, Vec<&Place>) = numbered.unzip();
    ends.say(&Message::Wants(numbers))?;
    let length = |places: &[&Place]| places.iter().map(|place| u64::from(place.stored_bytes)).sum();
    let copied = Copied {
        generation: taking.manifest.generation,
        chunks: all.len() as u64,
        bytes: length(&all.iter().collect::<Vec<_>>()),
        sent_chunks: wanted.len() as u64,
        sent_bytes: length(&wanted),
    };
    if !(wanted.is_empty() && Saved::open(dir, copied.generation).is_ok()) {
        taking.receive(&wanted, ends, (tell, copied.sent_bytes))?;
        taking.commit(there)?;
    }
    ends.say(&Message::Done(copied))?;
    Ok(copied)
}

/// A generation that is offered, and the folder that it is for.
struct Taking<'a> {
    folder: &'a Folder,
    offer: Offer,
    manifest: Manifest,
    index: Index,
    files: Files,
}

impl<'a> Taking<'a> {
    fn new(folder: &'a Folder, offer: Offer) -> Result<Self, CopyError> {
        let dir = &folder.dir;
        let manifest =
            manifest_of(Path::new("MANIFEST.json"), &offer.manifest).map_err(|trouble| match trouble {
                Trouble::Other(error) => CopyError::Read(error),
                Trouble::Damage(_) => CopyError::Nonsense("its manifest is malformed"),
            })?;
        let files = Files::of(dir, manifest.generation);
        if !manifest.index.is_of(&offer.index) {
            return Err(CopyError::Nonsense("its index is not that of its manifest"));
        }
        let index = Index::read(&offer.index).map_err(|_| CopyError::Nonsense("its index is malformed"))?;
        let lengths: BTreeMap<u32, u64> =
            manifest.chunk_files.iter().map(|file| (file.generation, file.bytes)).collect();
        let end = |place: &Place| place.offset.checked_add(u64::from(place.stored_bytes));
        let is_inside = |place: &Place| {
            place.can_be()
                && end(place).zip(lengths.get(&place.generation)).is_some_and(|(end, length)| end <= *length)
        };
        let is_apart = |pair: &[Place]| {
            (pair[0].generation, end(&pair[0])) <= (pair[1].generation, Some(pair[1].offset))
                && pair[0] < pair[1]
        };
        if !offer.places.iter().all(is_inside) || !offer.places.windows(2).all(is_apart) {
            return Err(CopyError::Nonsense("its chunks are not where chunks can be"));
        }
        Ok(Self { folder, offer, manifest, index, files })
    }

    /// Sees to it that no generation that counts loses anything by this one.
    fn check_room(&self) -> Result<(), CopyError> {
        let dir = &self.folder.dir;
        let own = self.manifest.generation;
        let numbers = committed(dir).map_err(|error| ReadError::io(dir, error))?;
        if numbers.contains(&own)
            && fs::read(&self.files.manifest).ok().as_deref() != Some(&self.offer.manifest)
        {
            return Err(CopyError::Taken { path: self.files.folder.clone(), generation: own });
        }
        for number in numbers {
            let saved = match Saved::open(dir, number) {
                Ok(saved) => saved,
                Err(error @ (ReadError::Version { .. } | ReadError::Codec { .. })) => {
                    return Err(error.into());
                }
                // Nothing is lost where that is damaged.
                Err(_) => continue,
            };
            let claimed: BTreeSet<Place> = saved.places().unwrap_or_default().into_iter().collect();
            let lengths: BTreeMap<u32, u64> =
                saved.chunk_files().map(|file| (file.generation, file.bytes)).collect();
            let taken = |generation| CopyError::Taken { path: Files::of(dir, generation).chunks, generation };
            for file in &self.manifest.chunk_files {
                if lengths.get(&file.generation).is_some_and(|length| *length != file.bytes) {
                    return Err(taken(file.generation));
                }
            }
            for place in &self.offer.places {
                let end = place.offset + u64::from(place.stored_bytes);
                let after = Place { offset: end, stored_bytes: 0, digest: Digest([0; 32]), ..*place };
                let last = claimed.range(..after).next_back();
                let is_over = |of: &&Place| {
                    of.generation == place.generation && of.offset + u64::from(of.stored_bytes) > place.offset
                };
                if last.filter(is_over).is_some_and(|of| of != place) {
                    return Err(taken(place.generation));
                }
            }
        }
        Ok(())
    }

    /// The chunks that are there, whole.
    fn there(&self) -> Result<HashSet<Place>, CopyError> {
        let mut there = HashSet::new();
        let mut bytes = Vec::new();
        for of in self.offer.places.chunk_by(|a, b| a.generation == b.generation) {
            let path = Files::of(&self.folder.dir, of[0].generation).chunks;
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(ReadError::io(&path, error).into()),
            };
            let length = file.metadata().map_err(|error| ReadError::io(&path, error))?.len();
            for place in of {
                if place.offset + u64::from(place.stored_bytes) > length {
                    break;
                }
                bytes.resize(place.stored_bytes as usize, 0);
                file.read_exact_at(&mut bytes, place.offset).map_err(|error| ReadError::io(&path, error))?;
                if place.is_of(&bytes) {
                    there.insert(*place);
                }
            }
        }
        Ok(there)
    }

    /// Writes what comes to its place, and waits until it is on disk.
    fn receive(
        &self,
        wanted: &[&Place],
        ends: &mut Ends<'_>,
        (mut tell, total): (impl FnMut(u64, u64), u64),
    ) -> Result<(), CopyError> {
        let (dir, disk) = (&self.folder.dir, &self.folder.disk);
        let mut files: BTreeMap<u32, Box<dyn Patch>> = BTreeMap::new();
        let generations = self.manifest.chunk_files.iter().map(|file| (file.generation, file.bytes));
        for (generation, bytes) in generations {
            let Files { folder, chunks, .. } = Files::of(dir, generation);
            let opened = self.make_folder(&folder).and_then(|()| {
                let mut file = disk.open(&chunks)?;
                file.set_length(bytes)?;
                Ok(file)
            });
            files.insert(generation, opened.map_err(|error| WriteError::io(&chunks, error))?);
        }
        let mut come = 0;
        for place in wanted {
            let chunk = match ends.hear()? {
                Message::Chunk(chunk) => chunk,
                other => return Err(other.unexpected()),
            };
            let path = Files::of(dir, place.generation).chunks;
            if chunk.len() != place.stored_bytes as usize || !place.is_of(&chunk) {
                return Err(CopyError::Damaged { path, offset: place.offset, bytes: place.stored_bytes });
            }
            let file = files.get_mut(&place.generation);
            let file = file.ok_or(CopyError::Nonsense("a chunk is for no file"))?;
            file.write_at(place.offset, &chunk).map_err(|error| WriteError::io(&path, error))?;
            come += u64::from(place.stored_bytes);
            tell(come, total);
        }
        for (generation, mut file) in files {
            let Files { folder, chunks, .. } = Files::of(dir, generation);
            let synced = file.sync().and_then(|()| disk.sync_folder(&folder));
            synced.map_err(|error| WriteError::io(&chunks, error))?;
        }
        Ok(())
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() { Ok(()) } else { self.folder.disk.create_folder(folder) }
    }

    /// Makes the generation count, if all of it is what it should be. Those chunks have been compared already.
    fn commit(&self, compared: HashSet<Place>) -> Result<(), CopyError> {
        let (dir, disk, files) = (&self.folder.dir, &self.folder.disk, &self.files);
        let on = |path: &Path| {
            let path = path.to_path_buf();
            move |error| CopyError::from(WriteError::io(&path, error))
        };
        self.make_folder(&files.folder).map_err(on(&files.folder))?;
        self.put_file(&files.index, &self.offer.index).map_err(on(&files.index))?;
        self.put_file(&files.manifest, &self.offer.manifest).map_err(on(&files.manifest))?;
        disk.sync_folder(&files.folder).map_err(on(&files.folder))?;
        disk.sync_folder(dir).map_err(on(dir))?;
        let (manifest, index) = (self.offer.manifest.to_vec(), self.index.clone());
        let saved = Saved::uncommitted(dir, (self.manifest.clone(), manifest), index)?;
        if let Some(damage) = saved.verify_but(compared, |_| ())?.damages.into_iter().next() {
            let Damage { path, what } = damage;
            let what = format!("{what}, when what had been copied was read again");
            let damage = Damage { path, what };
            return Err(ReadError::Damaged { generation: saved.generation(), damage, before: None }.into());
        }
        let line = saved.commit_line();
        if fs::read(&files.commit).ok().as_deref() == Some(line.as_bytes()) {
            return Ok(());
        }
        self.put_file(&files.uncommitted, line.as_bytes()).map_err(on(&files.uncommitted))?;
        disk.rename(&files.uncommitted, &files.commit).map_err(on(&files.commit))?;
        disk.sync_folder(&files.folder).map_err(on(&files.folder))
    }

    /// Writes a file anew, unless the generation counts already and has it.
    fn put_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        if path.exists() {
            if self.files.commit.exists() && fs::read(path).ok().as_deref() == Some(contents) {
                return Ok(());
            }
            self.folder.disk.remove(path)?;
        }
        let mut out = self.folder.disk.create(path)?;
        out.write_all(contents)?;
        out.sync()
    }
}
