//! Bytes from one process to another through a ring in memory that both have mapped.
//!
//! Two numbers say how many bytes were ever put in and taken out; each is written by one side. The other side reads it
//! once, and believes it only if it is what an honest one could say: no less than before, and no more than the ring holds.
//! Bytes at wrong places cannot follow from anything that is written there, only wrong bytes, which whoever takes them
//! checks as it would those from a network.

use super::mapping::Mapping;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where a ring is in the shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Of the word with the count of bytes that were put in.
    pub(super) put_at: usize,
    /// Of the word with the count of bytes that were taken out.
    pub(super) taken_at: usize,
    pub(super) data_at: usize,
    /// Bytes of the ring, a power of two.
    pub(super) len: usize,
}

/// The other process wrote a number that it cannot mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory shared with it is damaged: {count} bytes in a ring of {len}")]
pub(in crate::transport) struct Damaged {
    count: u64,
    len: usize,
}

impl Place {
    /// How many bytes are in the ring; more than it holds if somebody has damaged it.
    fn count(&self, put: u64, taken: u64) -> Result<usize, Damaged> {
        let (count, len) = (put.wrapping_sub(taken), self.len);
        usize::try_from(count).ok().filter(|count| *count <= len).ok_or(Damaged { count, len })
    }

    /// The parts of the memory in which `len` bytes are that begin with number `from`; the second is mostly empty.
    fn parts(&self, from: u64, len: usize) -> [(usize, usize); 2] {
        let start = (from & (self.len as u64 - 1)) as usize;
        let first = len.min(self.len - start);
        [(self.data_at + start, first), (self.data_at, len - first)]
    }

    /// Whether there is anything in it, as far as can be seen without being one of its ends.
    pub(super) fn has_bytes(&self, mapping: &Mapping) -> bool {
        let (put, taken) = (mapping.word(self.put_at), mapping.word(self.taken_at));
        put.load(Ordering::Relaxed) != taken.load(Ordering::Relaxed)
    }
}

/// The end that puts bytes in.
pub(in crate::transport) struct Producer {
    mapping: Arc<Mapping>,
    place: Place,
    put: u64,
    shown: u64,
    /// What the other end said last.
    taken: u64,
}

impl Producer {
    /// Of a ring that was never used.
    pub(super) fn new(mapping: &Arc<Mapping>, place: Place) -> Self {
        Self { mapping: Arc::clone(mapping), place, put: 0, shown: 0, taken: 0 }
    }

    /// How many bytes can be put in now; asks the other end only if it may be fewer than `wanted`.
    pub(in crate::transport) fn room(&mut self, wanted: usize) -> Result<usize, Damaged> {
        let known = self.place.len - self.place.count(self.put, self.taken)?;
        if known >= wanted {
            return Ok(known);
        }
        let taken = self.mapping.word(self.place.taken_at).load(Ordering::Acquire);
        // It takes no more than it was shown, and gives nothing back.
        self.place.count(self.shown, taken)?;
        self.place.count(taken, self.taken)?;
        self.taken = taken;
        Ok(self.place.len - self.place.count(self.put, taken)?)
    }

    /// Puts in as many of the bytes as there is known to be room for; how many.
    pub(in crate::transport) fn put(&mut self, bytes: &[u8]) -> Result<usize, Damaged> {
        let len = self.room(bytes.len())?.min(bytes.len());
        let [(at, first), (again_at, second)] = self.place.parts(self.put, len);
        self.mapping.copy_in(at, &bytes[..first]);
        if second > 0 {
            self.mapping.copy_in(again_at, &bytes[first..len]);
        }
        self.put += len as u64;
        Ok(len)
    }

    /// Lets the other end have what was put in.
    pub(in crate::transport) fn show(&mut self) {
        self.shown = self.put;
        self.mapping.word(self.place.put_at).store(self.put, Ordering::Release);
    }

    /// How many bytes were put in that the other end does not know of.
    pub(in crate::transport) fn unshown(&self) -> u64 {
        self.put - self.shown
    }

    /// Whether the other end has taken everything.
    pub(in crate::transport) fn is_empty(&mut self) -> Result<bool, Damaged> {
        Ok(self.room(self.place.len)? == self.place.len)
    }
}

/// The end that takes bytes out.
pub(in crate::transport) struct Consumer {
    mapping: Arc<Mapping>,
    place: Place,
    taken: u64,
    /// What the other end said last.
    put: u64,
}

impl Consumer {
    /// Of a ring that was never used.
    pub(super) fn new(mapping: &Arc<Mapping>, place: Place) -> Self {
        Self { mapping: Arc::clone(mapping), place, taken: 0, put: 0 }
    }

    /// How many bytes can be taken out now.
    pub(in crate::transport) fn count(&mut self) -> Result<usize, Damaged> {
        let put = self.mapping.word(self.place.put_at).load(Ordering::Acquire);
        self.place.count(put, self.put)?;
        let count = self.place.count(put, self.taken)?;
        self.put = put;
        Ok(count)
    }

    /// Takes out as many bytes as are there and fit into `into`; how many. The other end has their room from then on.
    pub(in crate::transport) fn take(&mut self, into: &mut [u8]) -> Result<usize, Damaged> {
        let len = self.count()?.min(into.len());
        let [(at, first), (again_at, second)] = self.place.parts(self.taken, len);
        self.mapping.copy_out(at, &mut into[..first]);
        if second > 0 {
            self.mapping.copy_out(again_at, &mut into[first..len]);
        }
        self.taken += len as u64;
        self.mapping.word(self.place.taken_at).store(self.taken, Ordering::Release);
        Ok(len)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::proto::sim::Random;

    const PLACE: Place = Place { put_at: 0, taken_at: 128, data_at: 256, len: 64 };

    /// Two mappings of the same memory, as two processes have them.
    pub(in super::super) fn mappings(len: u64) -> [Arc<Mapping>; 2] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        [0, 1].map(|_| Arc::new(Mapping::of(&file).unwrap()))
    }

    fn ring() -> (Producer, Consumer, Arc<Mapping>) {
        let [ours, theirs] = mappings(4096);
        (Producer::new(&ours, PLACE), Consumer::new(&theirs, PLACE), theirs)
    }

    #[test]
    fn bytes_come_out_as_they_went_in_whatever_the_pieces() {
        let (mut producer, mut consumer, memory) = ring();
        let mut random = Random::new(3);
        let (mut put, mut shown, mut taken) = (0u64, 0u64, 0u64);
        for _ in 0..100_000 {
            match random.below(3) {
                0 => {
                    let len = random.below(80) as usize;
                    let bytes: Vec<u8> = (put..put + len as u64).map(|n| (n % 251) as u8).collect();
                    let done = producer.put(&bytes).unwrap();
                    assert_eq!(done, len.min(64 - (put - taken) as usize));
                    put += done as u64;
                }
                1 => {
                    producer.show();
                    shown = put;
                }
                _ => {
                    let mut into = vec![0; random.below(80) as usize];
                    let done = consumer.take(&mut into).unwrap();
                    assert_eq!(done, into.len().min((shown - taken) as usize));
                    assert!((taken..).zip(&into[..done]).all(|(n, byte)| u64::from(*byte) == n % 251));
                    taken += done as u64;
                }
            }
            assert_eq!(PLACE.has_bytes(&memory), shown != taken);
            assert_eq!(producer.is_empty().unwrap(), put == taken);
        }
        assert!(taken > 100_000, "{taken}");
    }

    #[test]
    fn two_threads_pass_a_million_bytes_in_order() {
        let (mut producer, mut consumer, _) = ring();
        let sender = std::thread::spawn(move || {
            let mut random = Random::new(5);
            let mut n = 0u64;
            while n < 1_000_000 {
                let bytes: Vec<u8> = (n..n + 1 + random.below(60)).map(|n| (n % 251) as u8).collect();
                n += producer.put(&bytes).unwrap() as u64;
                producer.show();
            }
            n
        });
        let (mut n, mut into) = (0u64, [0; 37]);
        while n < 1_000_000 {
            let done = consumer.take(&mut into).unwrap();
            assert!((n..).zip(&into[..done]).all(|(n, byte)| u64::from(*byte) == n % 251));
            n += done as u64;
        }
        assert!(sender.join().unwrap() >= n);
    }

    /// One end is honest, and the other writes what it likes: at most it is found out.
    #[test]
    fn numbers_of_any_size_are_refused_or_harmless() {
        let mut random = Random::new(9);
        let (mut refused, mut survived) = (0, 0);
        for _ in 0..20_000 {
            let (mut producer, mut consumer, memory) = ring();
            for _ in 0..8 {
                let bytes = random.bytes(70);
                let outcome = producer.put(&bytes).and_then(|_| {
                    producer.show();
                    consumer.take(&mut vec![0; random.below(80) as usize])
                });
                let at = [PLACE.put_at, PLACE.taken_at][random.below(2) as usize];
                let word = memory.word(at).load(Ordering::Relaxed);
                let wrong = match random.below(4) {
                    0 => random.below(u64::MAX),
                    1 => word.wrapping_add(random.below(140)).wrapping_sub(70),
                    2 => word.wrapping_sub(1 + random.below(2)),
                    _ => word,
                };
                memory.word(at).store(wrong, Ordering::Relaxed);
                match outcome {
                    Ok(count) => assert!(count <= PLACE.len),
                    Err(damage) => {
                        refused += 1;
                        assert!(damage.to_string().contains("is damaged"));
                        break;
                    }
                }
                survived += 1;
            }
        }
        assert!(refused > 1000 && survived > 1000, "{refused} {survived}");
    }
}
