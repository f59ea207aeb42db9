//! Copies of generations that are cut off, on disks that fail, beside other generations, and of what is damaged.

use super::super::copy::{Copied, CopyError, Ends, answer, copy, give, pull, push, take_on};
use super::super::disk::Disk;
use super::super::files::{Files, committed};
use super::super::{Record, Saved, Store};
use super::faults::{Crash, Faulty};
use super::{chare, read, sorted, source_of, write};
use crate::failure::Failure;
use crate::proto::sim::Random;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// A run's records at one checkpoint: most are the same in all.
fn records(generation: u32) -> Vec<Record> {
    let same = (0..9).map(|n| chare(n, 200, 9000));
    let changed = (1..3).map(|n| chare(n + 100 * generation, 30, 12_000));
    same.chain(changed).collect()
}

/// Lets so many bytes pass, and then nothing any more.
struct Cut<W> {
    to: W,
    left: usize,
}

impl<W: Write> Write for Cut<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let written = self.to.write(&bytes[..bytes.len().min(self.left)])?;
        self.left -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

type Outcome = Result<Copied, CopyError>;

/// Gives a generation through pipes to a folder on that disk, and cuts the line after so many bytes: how many chunks were
/// given whole, and what the giver and the taker say.
fn given(saved: &Saved, disk: Arc<dyn Disk>, to: &Path, left: usize) -> (u64, Outcome, Outcome) {
    let (chunks, line) = io::pipe().unwrap();
    let (asked, answers) = io::pipe().unwrap();
    thread::scope(|scope| {
        let giver = scope.spawn(move || {
            let mut whole = 0;
            let mut line = Cut { to: line, left };
            let gave = give(saved, &mut Ends::new(&mut { asked }, &mut line), |_, _| whole += 1);
            (whole, gave)
        });
        let took = take_on(disk, to, &mut Ends::new(&mut { chunks }, &mut { answers }), |_, _| ());
        let (whole, gave) = giver.join().unwrap();
        (whole, gave, took)
    })
}

fn said(outcome: Outcome) -> String {
    outcome.unwrap_err().to_string()
}

fn assert_is(saved: &Saved, generation: u32, context: &str) {
    assert_eq!(read(saved), sorted(records(generation)), "{context}");
}

#[test]
fn a_copy_that_was_cut_off_goes_on_where_it_was() {
    let (_folder, store) = source_of(records);
    let saved = store.latest().unwrap();
    let bytes = saved.places().unwrap().iter().map(|place| place.stored_bytes as usize).sum::<usize>();
    let mut arrived = Vec::new();
    for left in (0..bytes).step_by(bytes / 23) {
        let to = tempfile::tempdir().unwrap();
        let (whole, gave, took) = given(&saved, Arc::new(Faulty::default()), to.path(), left);
        for outcome in [gave, took] {
            let said = said(outcome);
            assert!(
                said.starts_with("the copy was cut off: ") && said.ends_with(" goes on from there"),
                "{said}"
            );
        }
        assert!(committed(to.path()).unwrap().is_empty(), "what was cut off does not count");
        let copied = given(&saved, Arc::new(Faulty::default()), to.path(), usize::MAX).2.unwrap();
        assert_eq!(copied.chunks, saved.places().unwrap().len() as u64);
        assert_eq!(whole + copied.sent_chunks, copied.chunks, "{left}: no chunk that arrived is sent again");
        assert_is(&Store::open(to.path()).unwrap().latest().unwrap(), 3, "after the second time");
        arrived.push(whole);
    }
    assert!(arrived[0] == 0 && arrived.is_sorted() && arrived.last() > Some(&10), "{arrived:?}");
}

#[test]
fn whenever_the_disk_of_a_copy_fails_what_was_there_is_whole_and_the_next_one_goes_on() {
    let (_folder, store) = source_of(records);
    let [before, saved] = [2, 3].map(|number| store.generation(number).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut ends = [0, 0];
    for at in 0.. {
        let dir = folder.path().join(format!("{at}"));
        fs::create_dir(&dir).unwrap();
        let disk = Faulty::default();
        given(&before, Arc::new(disk.clone()), &dir, usize::MAX).2.unwrap();
        (disk.model().left, disk.model().is_fatal) = (Some(at), true);
        let (_, gave, took) = given(&saved, Arc::new(disk.clone()), &dir, usize::MAX);
        if let Err(error) = &took {
            let said = error.to_string();
            assert!(said.contains(" cannot be written: no storage space"), "{said}");
            assert_eq!(gave.unwrap_err().to_string(), said, "the giver hears it");
        }
        let crashes = [Crash::Nothing, Crash::Everything, Crash::Bytes, Crash::Some(at as u64)];
        for (number, crash) in crashes.into_iter().enumerate() {
            let left = folder.path().join(format!("{at}-{number}"));
            disk.leave(&dir, crash, &left);
            let context = format!("operation {at}, {crash:?} lost");
            let there = Store::open(&left).unwrap();
            assert_is(&there.generation(2).unwrap(), 2, &context);
            let newest = there.latest().unwrap();
            assert!(took.is_err() || newest.generation() == 3, "{context}");
            assert_is(&newest, newest.generation(), &context);
            ends[usize::from(newest.generation() == 3)] += 1;
            given(&saved, Arc::new(Faulty::default()), &left, usize::MAX).2.unwrap();
            assert_is(&there.latest().unwrap(), 3, &context);
            assert!(committed(&left).unwrap().into_iter().eq([2, 3]), "{context}");
        }
        if !disk.model().has_failed {
            assert!(took.is_ok() && at > 20, "{at} operations");
            break;
        }
    }
    assert!(ends.iter().all(|count| *count > 3), "{ends:?}");
}

fn flip(path: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 8], at).unwrap();
}

#[test]
fn damage_is_named_and_not_passed_on_and_a_copy_mends_what_is_damaged_where_it_goes() {
    let (from, store) = source_of(records);
    let saved = store.latest().unwrap();
    let to = tempfile::tempdir().unwrap();
    let place = *saved.places().unwrap().iter().find(|place| place.generation == 3).unwrap();
    let [damaged, there] = [from.path(), to.path()].map(|dir| Files::of(dir, 3).chunks);
    flip(&damaged, place.offset + 5);
    let sentence = said(copy(&saved, to.path(), |_, _| ()));
    let expected = format!(
        "generation 3 is damaged: {}: the checksum of a chunk is wrong (byte {}, {} bytes)",
        damaged.display(),
        place.offset,
        place.stored_bytes
    );
    assert!(sentence.starts_with(&expected) && committed(to.path()).unwrap().is_empty(), "{sentence}");
    flip(&damaged, place.offset + 5);
    assert!(copy(&saved, to.path(), |_, _| ()).unwrap().sent_chunks > 1);
    assert_eq!(copy(&saved, to.path(), |_, _| ()).unwrap().sent_chunks, 0);
    flip(&there, place.offset + 7);
    assert_eq!(copy(&saved, to.path(), |_, _| ()).unwrap().sent_chunks, 1);
    for file in [Files::of(to.path(), 3).index, Files::of(to.path(), 3).commit] {
        flip(&file, 3);
        assert_eq!(copy(&saved, to.path(), |_, _| ()).unwrap().sent_chunks, 0);
        assert_is(&Store::open(to.path()).unwrap().latest().unwrap(), 3, "mended");
    }
}

/// What a giver of that generation says to who has nothing of it.
fn words(saved: &Saved) -> Vec<u8> {
    let numbers: Vec<u32> = (0..saved.places().unwrap().len() as u32).collect();
    let wants = postcard::to_stdvec(&(2u8, numbers)).unwrap();
    let answers = [&(wants.len() as u32).to_le_bytes()[..], &wants].concat();
    let mut said = Vec::new();
    give(saved, &mut Ends::new(&mut &answers[..], &mut said), |_, _| ()).unwrap_err();
    said
}

#[test]
fn words_of_any_content_are_refused_or_make_a_whole_generation() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    write(&store, &(0..4).map(|n| chare(n, 30, 1100)).collect::<Vec<_>>());
    let words = words(&store.latest().unwrap());
    let (mut random, mut kinds) = (Random::new(77), [0, 0, 0]);
    for number in 0..400 {
        let to = tempfile::tempdir().unwrap();
        let heard = if number == 0 { words.clone() } else { random.mutated(&words) };
        let disk = Arc::new(Faulty::default());
        let took = take_on(disk, to.path(), &mut Ends::new(&mut &heard[..], &mut io::sink()), |_, _| ());
        let kind = match took {
            Ok(_) => {
                let verified = Store::open(to.path()).unwrap().latest().unwrap().verify(|_| ()).unwrap();
                assert_eq!((verified.whole, verified.damages.len()), (4, 0));
                0
            }
            Err(CopyError::Lost(_)) => 1,
            Err(_) => 2,
        };
        assert!(kind == 0 || committed(to.path()).unwrap().is_empty());
        kinds[kind] += 1;
    }
    assert!(kinds[0] > 0 && kinds[1] > 20 && kinds[2] > 100, "{kinds:?}");
}

#[test]
fn what_is_in_the_folder_already_stays_and_other_runs_are_not_mixed_in() {
    let (_folder, store) = source_of(records);
    let to = tempfile::tempdir().unwrap();
    let there = || Store::open(to.path()).unwrap();
    for (number, sent) in [(3, true), (2, true), (3, false)] {
        let copied = copy(&store.generation(number).unwrap(), to.path(), |_, _| ()).unwrap();
        assert_eq!((copied.generation, copied.sent_chunks > 0), (number, sent));
        assert!(2 * copied.sent_chunks < copied.chunks || number == 3, "they share chunks: {copied:?}");
    }
    for number in [2, 3] {
        assert_is(&there().generation(number).unwrap(), number, "copied in another order");
    }
    // The run goes on there, and so does the one here: they part.
    for (store, first) in [(&store, 50), (&Store::create(to.path()).unwrap(), 60)] {
        let records: Vec<Record> = (first..first + 3).map(|n| chare(n, 10, 5000)).collect();
        assert_eq!(write(store, &records).generation, 4);
    }
    let latest = store.latest().unwrap();
    let sentence = said(copy(&latest, to.path(), |_, _| ()));
    let expected = "generation-000004 belongs to another generation 4 than the one that is copied, as of another run: copy \
                    to another folder";
    assert!(sentence.ends_with(expected), "{sentence}");
    // The next ones need chunks of the fourth.
    let more: Vec<Record> = (50..53).chain([70]).map(|n| chare(n, 10, 5000)).collect();
    assert_eq!(write(&store, &more).generation, 5);
    assert!(store.latest().unwrap().places().unwrap().iter().any(|place| place.generation == 4));
    let sentence = said(copy(&store.latest().unwrap(), to.path(), |_, _| ()));
    assert!(sentence.contains("chunks belongs to another generation 4 "), "{sentence}");
    let newest = there().latest().unwrap();
    assert!(newest.generation() == 4 && newest.verify(|_| ()).unwrap().damages.is_empty());
    let held = Store::create(to.path()).unwrap();
    let sentence = said(copy(&store.latest().unwrap(), to.path(), |_, _| ()));
    assert!(sentence.contains("in use by another run"), "{sentence}");
    drop(held);
}

/// Speaks with who answers at the other end of two pipes.
fn asked<T>(ask: impl FnOnce(&mut Ends<'_>) -> T) -> (T, Result<(), CopyError>) {
    let (heard, mut told) = io::pipe().unwrap();
    let (hears, mut tells) = io::pipe().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(move || answer(&mut Ends::new(&mut { heard }, &mut tells)));
        let done = ask(&mut Ends::new(&mut { hears }, &mut told));
        drop(told);
        (done, other.join().unwrap())
    })
}

#[test]
fn another_process_gives_and_takes_what_it_is_asked_for_and_says_what_is_wrong() {
    let (from, store) = source_of(records);
    let folder = tempfile::tempdir().unwrap();
    let [there, back] = ["there", "back"].map(|name| folder.path().join(name));
    let (pushed, answered) =
        asked(|ends| push(&store.latest().unwrap(), there.clone(), ends, |done, all| assert!(done <= all)));
    assert_eq!((pushed.unwrap().generation, answered.is_ok()), (3, true));
    let (pulled, _) = asked(|ends| pull((there.clone(), None), &back, ends, |_, _| ()));
    assert_eq!(pulled.unwrap().generation, 3);
    assert_is(&Store::open(&back).unwrap().latest().unwrap(), 3, "there and back");
    let (pulled, _) = asked(|ends| pull((from.path().into(), Some(2)), &back, ends, |_, _| ()));
    assert!(pulled.is_ok() && committed(&back).unwrap().into_iter().eq([2, 3]));
    for (dir, number, sentence) in [
        (folder.path().join("none"), None, "none holds no checkpoint: it is not there"),
        (there.clone(), Some(9), "there has no generation 9; it has 3"),
    ] {
        let (pulled, _) = asked(|ends| pull((dir, number), &back, ends, |_, _| ()));
        let failure = Failure::from(pulled.unwrap_err());
        assert!(failure.sentence.ends_with(sentence) && failure.exit_code() == 66, "{failure:?}");
    }
    let _held = Store::create(&there).unwrap();
    let (pushed, _) = asked(|ends| push(&store.generation(2).unwrap(), there.clone(), ends, |_, _| ()));
    let failure = Failure::from(pushed.unwrap_err());
    assert!(failure.sentence.contains("in use by another run") && failure.exit_code() == 69, "{failure:?}");
}
