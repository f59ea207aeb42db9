//! Memory that another process writes to at the same time: the only place that touches it.
//!
//! No reference to its bytes ever exists, because the other process may change them at any moment: bytes are copied in
//! and out, and words are atomic. What is read is checked by whoever reads it.

#![expect(unsafe_code, reason = "memory that another process writes to cannot be borrowed")]

use memmap2::MmapRaw;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mapping of memory that is shared with another process. Its file never becomes shorter.
pub(super) struct Mapping(MmapRaw);

/// A word of it, little-endian: an emulated process may have the other order of bytes than its host.
#[derive(Clone, Copy)]
pub(super) struct Word<'a>(&'a AtomicU64);

impl Word<'_> {
    pub(super) fn load(self, order: Ordering) -> u64 {
        u64::from_le(self.0.load(order))
    }

    pub(super) fn store(self, value: u64, order: Ordering) {
        self.0.store(value.to_le(), order);
    }

    /// Stores a value; the one before.
    pub(super) fn swap(self, value: u64, order: Ordering) -> u64 {
        u64::from_le(self.0.swap(value.to_le(), order))
    }
}

impl Mapping {
    /// Maps all of `file`.
    ///
    /// # Errors
    /// If the system does not permit it, as where address space is limited.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        MmapRaw::map_raw(file).map(Self)
    }

    /// The word at `at`, a multiple of 8.
    pub(super) fn word(&self, at: usize) -> Word<'_> {
        let start = self.place(at, size_of::<AtomicU64>());
        assert!(start.addr().is_multiple_of(align_of::<AtomicU64>()), "a word lies across two");
        // SAFETY: the word is inside the mapping, which lives as long as `self`, and is aligned; all processes and threads
        // reach it by atomic operations only, as bytes are copied to and from other places.
        Word(unsafe { AtomicU64::from_ptr(start.cast()) })
    }

    /// Writes `bytes` from `at` on.
    pub(super) fn copy_in(&self, at: usize, bytes: &[u8]) {
        let start = self.place(at, bytes.len());
        // SAFETY: the place is inside the mapping, and private memory never overlaps with it. No reference to it exists in
        // this process; whatever another one does to these bytes, it reads or damages only what it is given anyway.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Reads as many bytes as there are in `into`, from `at` on: whatever stands there at the time.
    pub(super) fn copy_out(&self, at: usize, into: &mut [u8]) {
        let start = self.place(at, into.len());
        // SAFETY: as in `copy_in`; any bytes are valid bytes.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(start, into.len()) }
    }

    /// Where `len` bytes from `at` on are; it must be inside, which the caller has seen to.
    fn place(&self, at: usize, len: usize) -> *mut u8 {
        let is_inside = at.checked_add(len).is_some_and(|end| end <= self.0.len());
        assert!(is_inside, "{len} bytes at {at} are outside of the {} shared ones", self.0.len());
        self.0.as_mut_ptr().wrapping_add(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::Ordering;

    fn file(len: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        file
    }

    #[test]
    fn two_mappings_of_a_file_are_the_same_memory() {
        let file = file(4096);
        let [one, two] = [0, 1].map(|_| Mapping::of(&file).unwrap());
        one.copy_in(4090, b"abcdef");
        let mut bytes = [0; 6];
        two.copy_out(4090, &mut bytes);
        assert_eq!(&bytes, b"abcdef");
        two.word(8).store(7, Ordering::Release);
        assert_eq!(one.word(8).load(Ordering::Acquire), 7);
        one.copy_out(8, &mut bytes);
        assert_eq!(bytes, [7, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn nothing_outside_is_touched() {
        let mapping = Mapping::of(&file(4096)).unwrap();
        let is_refused = |touch: &dyn Fn()| catch_unwind(AssertUnwindSafe(touch)).is_err();
        for at in [4096, 4091, usize::MAX, usize::MAX - 3] {
            assert!(is_refused(&|| mapping.copy_in(at, b"abcdef")), "{at}");
            assert!(is_refused(&|| mapping.copy_out(at, &mut [0; 6])), "{at}");
            assert!(
                is_refused(&|| mapping.word(at & !7).store(1, Ordering::Relaxed)) == (at & !7 > 4088),
                "{at}"
            );
        }
        assert!(is_refused(&|| mapping.word(4).store(1, Ordering::Relaxed)), "across two words");
        mapping.copy_in(4096, b"");
    }
}
