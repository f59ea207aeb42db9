//! The memory of two processes: a ring for each direction and class of messages, and a word in which each says that it
//! sleeps.
//!
//! Who sleeps has said so before it looked a last time, and who has put something in looks at that word afterwards; with a
//! full fence between on both sides one of the two sees the other, so that nobody sleeps while something waits.

use super::mapping::Mapping;
use super::ring::{Consumer, Place, Producer};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Bytes of the rings of a direction: of control, small and large messages. Large ones go through theirs in pieces, which
/// caches hold if it is short.
const RINGS: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
/// Words that different processes write are so far apart, so that they do not lie in one cache line.
const LINE: usize = 128;
/// Words of a direction: what was put into its rings, what was taken out, and whether the process that puts in sleeps.
const WORDS: usize = 3 * LINE;
const DATA_AT: usize = 4096;
/// Bytes of a direction.
const DIRECTION: usize = RINGS[0] + RINGS[1] + RINGS[2];
/// Bytes of all. Not a multiple of a huge page: memory of huge pages, whose lack ends a process, is never taken for it.
const TOTAL: usize = DATA_AT + 2 * DIRECTION;

/// A file that has no name, and never becomes shorter than it was mapped.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// What a process that sleeps is to be woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::transport) enum Event {
    /// Something has come.
    Arrival = 1,
    /// The other process has taken something out, so that more can be put in. Who waits for this waits for arrivals, too.
    Room = 2,
}

/// One process's end of the memory.
pub(in crate::transport) struct Pair {
    mapping: Arc<Mapping>,
    /// 0 or 1; the direction of the same number is what this end puts in.
    me: usize,
}

impl Pair {
    /// Makes the memory; its file is for the other process.
    ///
    /// # Errors
    /// If the system does not permit it.
    pub(super) fn make() -> io::Result<(Self, File)> {
        let file = File::from(memfd_create("metachare", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        ftruncate(&file, TOTAL as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok((Self { mapping: Arc::new(Mapping::of(&file)?), me: 0 }, file))
    }

    /// Takes the memory that the other process has made.
    ///
    /// # Errors
    /// If it is not what [`make`](Self::make) makes, or the system does not permit it.
    pub(super) fn take(file: &File) -> io::Result<Self> {
        let is_sealed = fcntl_get_seals(file)?.contains(SEALS);
        let size = fstat(file)?.st_size;
        if !is_sealed || u64::try_from(size).ok() != Some(TOTAL as u64) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not memory to be shared"));
        }
        Ok(Self { mapping: Arc::new(Mapping::of(file)?), me: 1 })
    }

    /// The ends by which this process sends, by class; to be called once.
    pub(in crate::transport) fn producers(&self) -> [Producer; 3] {
        [0, 1, 2].map(|class| Producer::new(&self.mapping, place(self.me, class)))
    }

    /// The ends by which this process receives, by class; to be called once.
    pub(in crate::transport) fn consumers(&self) -> [Consumer; 3] {
        [0, 1, 2].map(|class| Consumer::new(&self.mapping, place(1 - self.me, class)))
    }

    /// Whether something has come in any class.
    #[inline]
    pub(in crate::transport) fn has_arrivals(&self) -> bool {
        (0..3).any(|class| place(1 - self.me, class).has_bytes(&self.mapping))
    }

    /// Writes something into what both ends rely on.
    #[cfg(test)]
    pub(in crate::transport) fn damage(&self, random: &mut crate::proto::sim::Random) {
        let (direction, class) = (random.below(2) as usize, random.below(3) as usize);
        let place = place(direction, class);
        let word = self.mapping.word([place.put_at, place.taken_at][random.below(2) as usize]);
        match random.below(3) {
            0 => word.store(random.bits(), Ordering::Relaxed),
            1 => {
                let more = word.load(Ordering::Relaxed).wrapping_add(random.below(5_000));
                word.store(more, Ordering::Relaxed);
            }
            _ => {
                let bytes = random.bytes(64);
                self.mapping.copy_in(place.data_at + random.below(60_000) as usize, &bytes);
            }
        }
    }

    /// Says that nobody here looks any more. Whoever calls this looks once more before it sleeps.
    pub(in crate::transport) fn sleeps_until(&self, event: Event) {
        self.mapping.word(asleep_at(self.me)).store(event as u64, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that somebody here looks again.
    pub(in crate::transport) fn looks(&self) {
        self.mapping.word(asleep_at(self.me)).store(0, Ordering::Relaxed);
    }

    /// Whether the other process sleeps until there is such an event, and is to be woken: said once for each sleep. To be
    /// called after what the event is about.
    pub(in crate::transport) fn must_wake(&self, event: Event) -> bool {
        fence(Ordering::SeqCst);
        let asleep = self.mapping.word(asleep_at(1 - self.me));
        // Whatever another process writes there, it only wakes itself too often or too seldom.
        let sleeps_until = asleep.load(Ordering::Relaxed);
        sleeps_until >= event as u64 && asleep.swap(0, Ordering::Relaxed) != 0
    }
}

/// The place of a class's ring in a direction.
const fn place(direction: usize, class: usize) -> Place {
    let words = direction * WORDS + class * size_of::<u64>();
    let mut data_at = DATA_AT + direction * DIRECTION;
    let mut before = 0;
    while before < class {
        data_at += RINGS[before];
        before += 1;
    }
    Place { put_at: words, taken_at: words + LINE, data_at, len: RINGS[class] }
}

/// The word in which that process says that it sleeps.
const fn asleep_at(process: usize) -> usize {
    process * WORDS + 2 * LINE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::sim::Random;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    fn ends() -> [Pair; 2] {
        let (made, file) = Pair::make().unwrap();
        [made, Pair::take(&file).unwrap()]
    }

    #[test]
    fn each_direction_and_class_has_memory_of_its_own() {
        let pairs = ends();
        let mut producers = pairs.each_ref().map(Pair::producers);
        let mut consumers = pairs.each_ref().map(Pair::consumers);
        assert!(!pairs[0].has_arrivals() && !pairs[1].has_arrivals());
        for (end, producers) in producers.iter_mut().enumerate() {
            for (class, producer) in producers.iter_mut().enumerate() {
                let byte = (1 + 3 * end + class) as u8;
                let filled = producer.put(&vec![byte; RINGS[class] + 1]).unwrap();
                assert_eq!(filled, RINGS[class], "all of it can be used");
                producer.show();
            }
        }
        assert!(pairs[0].has_arrivals() && pairs[1].has_arrivals());
        for (end, consumers) in consumers.iter_mut().enumerate() {
            for (class, consumer) in consumers.iter_mut().enumerate() {
                let mut bytes = vec![0; RINGS[class] + 1];
                assert_eq!(consumer.take(&mut bytes).unwrap(), RINGS[class]);
                let byte = (1 + 3 * (1 - end) + class) as u8;
                assert!(bytes[..RINGS[class]].iter().all(|b| *b == byte), "end {end}, class {class}");
            }
        }
    }

    #[test]
    fn only_sealed_memory_of_the_right_size_is_taken() {
        let memory = |bytes: usize, seals| {
            let file = File::from(memfd_create("t", MemfdFlags::ALLOW_SEALING).unwrap());
            ftruncate(&file, bytes as u64).unwrap();
            fcntl_add_seals(&file, seals).unwrap();
            file
        };
        assert!(Pair::take(&memory(TOTAL, SEALS)).is_ok());
        assert!(Pair::take(&memory(TOTAL - 1, SEALS)).is_err());
        assert!(Pair::take(&memory(0, SEALS)).is_err());
        assert!(Pair::take(&memory(TOTAL, SealFlags::GROW)).is_err(), "it could be made shorter");
        let named = tempfile::tempfile().unwrap();
        named.set_len(TOTAL as u64).unwrap();
        assert!(Pair::take(&named).is_err(), "a file of some file system");
        assert!(Pair::take(&File::open("/dev/zero").unwrap()).is_err());
        let (_, made) = Pair::make().unwrap();
        assert!(made.set_len(10).is_err(), "nobody makes it shorter");
    }

    /// All orders of the two steps of each side: one of them notices the other.
    #[test]
    fn whoever_sleeps_is_woken_or_has_seen_what_came() {
        for order in [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]] {
            let [one, two] = ends();
            let [mut producer, ..] = one.producers();
            producer.put(b"x").unwrap();
            let (mut steps, mut is_woken, mut has_seen) = ([0, 0], false, false);
            for side in order {
                match (side, steps[side]) {
                    (0, 0) => producer.show(),
                    (0, _) => is_woken = one.must_wake(Event::Arrival),
                    (_, 0) => two.sleeps_until(Event::Arrival),
                    _ => has_seen = two.has_arrivals(),
                }
                steps[side] += 1;
            }
            assert!(is_woken || has_seen, "{order:?}");
        }
    }

    #[test]
    fn it_is_woken_once_for_each_sleep_and_for_what_it_waits_for() {
        let [one, two] = ends();
        assert!(!one.must_wake(Event::Arrival), "it looks");
        two.sleeps_until(Event::Arrival);
        assert!(
            !one.must_wake(Event::Room) && one.must_wake(Event::Arrival) && !one.must_wake(Event::Arrival)
        );
        two.sleeps_until(Event::Room);
        assert!(one.must_wake(Event::Room) && !one.must_wake(Event::Arrival));
        two.sleeps_until(Event::Room);
        assert!(!two.must_wake(Event::Arrival), "the other does not");
        assert!(one.must_wake(Event::Arrival));
        two.sleeps_until(Event::Arrival);
        two.looks();
        assert!(!one.must_wake(Event::Arrival));
    }

    /// Two threads pass pieces to each other, and sleep whenever nothing has come or nothing more fits.
    #[test]
    fn no_sleep_is_endless_however_often_both_sleep() {
        const BYTES: usize = 20_000_000;
        let (pairs, bells) = (ends(), [channel::<()>(), channel()]);
        let [(to_one, at_one), (to_two, at_two)] = bells;
        let [one, two] = pairs;
        let deadline = Duration::from_secs(30);
        let sender = std::thread::spawn(move || {
            let ([mut producer, ..], mut random, mut sent) = (one.producers(), Random::new(1), 0);
            while sent < BYTES {
                let bytes = vec![7; (1 + random.below(50_000) as usize).min(BYTES - sent)];
                let mut at = 0;
                while at < bytes.len() {
                    at += producer.put(&bytes[at..]).unwrap();
                    producer.show();
                    if one.must_wake(Event::Arrival) {
                        to_two.send(()).unwrap();
                    }
                    if at < bytes.len() {
                        one.sleeps_until(Event::Room);
                        if producer.room(1).unwrap() == 0 {
                            at_one.recv_timeout(deadline).expect("there is room, and nobody said so");
                        }
                        one.looks();
                    }
                }
                sent += at;
                if random.below(4) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let ([mut consumer, ..], mut random, mut taken) = (two.consumers(), Random::new(2), 0);
        while taken < BYTES {
            let count = consumer.take(&mut vec![0; 1 + random.below(50_000) as usize]).unwrap();
            taken += count;
            if count > 0 {
                // The sender may have ended, and then nobody hears it.
                if two.must_wake(Event::Room) {
                    let _ = to_one.send(());
                }
                continue;
            }
            two.sleeps_until(Event::Arrival);
            if !two.has_arrivals() {
                at_two.recv_timeout(deadline).expect("something has come, and nobody said so");
            }
            two.looks();
        }
        sender.join().unwrap();
    }
}
