//! Where the bytes of buffers are; memory for what comes from other nodes is kept from one arrival to the next.
//!
//! The system clears the pages of fresh memory, and each is a fault for the processor: for arrivals of 64 KiB that took twice
//! as long as receiving them did. Long arrivals are mappings of their own, which are kept in the order in which they came;
//! middling ones are pieces of the allocator's memory, and lie on shelves by their length.

use bytemuck::{cast_slice, cast_slice_mut};
use memmap2::MmapMut;
use std::alloc::{Layout, handle_alloc_error};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Storing these keeps every buffer aligned for any numeric type. Not more than 16 bytes: for wider alignment the
/// system's allocator cannot hand out fresh zero pages and would touch every byte of a buffer at once.
type Line = u128;
// Less on s390x, where no number needs more than 8.
const _: () = assert!(align_of::<Line>() <= 16 && align_of::<Line>() >= align_of::<u64>());

/// From this length on a buffer is a mapping of its own, in huge pages where the system has them: touching fresh
/// memory page by page of 4 KiB costs a processor a second per GB, as much as receiving it.
pub(super) const HUGE_FROM_BYTES: usize = 4 << 20;

/// Where the bytes of a buffer are.
pub(super) enum Memory {
    Allocated(Vec<Line>),
    Mapped(MmapMut),
    Arrived(Arrival),
}

impl Memory {
    pub(super) fn zeroed(len_bytes: usize) -> Self {
        match (len_bytes >= HUGE_FROM_BYTES).then(|| mapping(len_bytes)).flatten() {
            Some(mapping) => Self::Mapped(mapping),
            None => Self::Allocated(allocated(len_bytes.div_ceil(size_of::<Line>()))),
        }
    }

    pub(super) fn for_arrival(len_bytes: usize) -> Self {
        Arrival::new(len_bytes).map_or_else(|| Self::zeroed(len_bytes), Self::Arrived)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Allocated(lines) => cast_slice(lines),
            Self::Mapped(mapping) => mapping,
            Self::Arrived(arrival) => arrival.bytes(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Allocated(lines) => cast_slice_mut(lines),
            Self::Mapped(mapping) => mapping,
            Self::Arrived(arrival) => arrival.bytes_mut(),
        }
    }
}

/// So many lines of zero bytes. The allocator either has the memory or ends the process, as for any allocation.
fn allocated(count: usize) -> Vec<Line> {
    bytemuck::allocation::try_zeroed_vec(count).unwrap_or_else(|()| match Layout::array::<Line>(count) {
        Ok(layout) => handle_alloc_error(layout),
        Err(_) => panic!("a buffer of {count} lines is longer than any can be"),
    })
}

/// A mapping of zero bytes, if the system has one.
fn mapping(len_bytes: usize) -> Option<MmapMut> {
    let mapping = MmapMut::map_anon(len_bytes).ok()?;
    #[cfg(target_os = "linux")]
    if len_bytes >= HUGE_FROM_BYTES {
        // Where it is refused, small pages are slower, not wrong.
        let _ = mapping.advise(memmap2::Advice::HugePage);
    }
    Some(mapping)
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.bytes().len())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Allocated(Vec::new())
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        let bytes = self.bytes();
        let mut copy = Self::zeroed(bytes.len());
        // What is allocated is whole lines.
        copy.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        copy
    }
}

/// From this length on the memory of an arrival is kept for the next one. The allocator gives back to the system what is free
/// at the end of its memory, page by page; shorter arrivals have too few of them to matter.
const SHELVED_FROM_BYTES: usize = 8 << 10;

/// From this length on the memory of an arrival is a mapping that is kept for the next one. The allocator gives that much
/// back to the system at once, which clears it again for the next: at 1 MiB a third of a round trip.
const MAPPED_FROM_BYTES: usize = 256 << 10;

/// Lengths on shelves grow by a quarter of a power of two, so that no more than a fifth of a piece is unused.
const STEPS: usize = 4;
const SHELVES: usize = STEPS * (MAPPED_FROM_BYTES / SHELVED_FROM_BYTES).ilog2() as usize + 1;
/// Most bytes on a shelf: what a PE can leave waiting for some hundred microseconds.
const SHELF_MAX_BYTES: usize = 4 << 20;
/// Of the memory that a node may take, no more than one in so many parts: a fiftieth on all shelves.
const SHELF_PARTS: u64 = 1024;

/// The memory of an arrival serves one that has this part of its length, too: where each is a little shorter than the last,
/// like the panels of an elimination, memory that only the same length could use again would soon be of use to none.
const SHORTEST_PART: usize = 4;

/// Most bytes that are kept for arrivals, unless more have been asked for.
const SPARE_MAX_BYTES: usize = 256 << 20;
/// Of the memory that a node may take, no more than one in so many parts.
const SPARE_PARTS: u64 = 16;

/// Mappings of arrivals that nobody needs any more. The system clears the pages of a fresh one, which took a third
/// of the time that receiving takes, and half of it on virtual machines that give unused memory back to their host.
static SPARE: Spare = Spare::new();

struct Spare(Mutex<Kept>);

struct Kept {
    /// In the order in which they came.
    mappings: VecDeque<MmapMut>,
    /// As much has been asked for in advance.
    reserved_bytes: usize,
    most_bytes: usize,
}

impl Spare {
    const fn new() -> Self {
        Self(Mutex::new(Kept { mappings: VecDeque::new(), reserved_bytes: 0, most_bytes: SPARE_MAX_BYTES }))
    }

    /// Keeps no more than fits into a process that may take `memory_bytes`.
    fn fit(&self, memory_bytes: u64) {
        let part = usize::try_from(memory_bytes / SPARE_PARTS).unwrap_or(usize::MAX);
        self.lock().most_bytes = part.min(SPARE_MAX_BYTES);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shortest that is at least so long, and not very much longer.
    fn take(&self, len_bytes: usize) -> Option<MmapMut> {
        let mut kept = self.lock();
        let fits = |one: &MmapMut| (len_bytes..=len_bytes.saturating_mul(SHORTEST_PART)).contains(&one.len());
        let fitting = kept.mappings.iter().enumerate().filter(|(_, one)| fits(one));
        let (at, _) = fitting.min_by_key(|(_, one)| one.len())?;
        kept.mappings.remove(at)
    }

    /// Keeps it, instead of the oldest where all together are too many: those have lengths that nothing has now.
    fn put(&self, mapping: MmapMut) {
        let mut kept = self.lock();
        let most_bytes = kept.reserved_bytes.max(kept.most_bytes);
        kept.mappings.push_back(mapping);
        let mut total = kept.mappings.iter().map(|one| one.len()).sum::<usize>();
        while total > most_bytes
            && let Some(oldest) = kept.mappings.pop_front()
        {
            total -= oldest.len();
        }
    }

    fn reserve(&self, len_bytes: usize, count: usize) {
        if len_bytes < MAPPED_FROM_BYTES {
            return;
        }
        self.lock().reserved_bytes += len_bytes * count;
        for mut mapping in (0..count).map_while(|_| mapping(len_bytes)) {
            mapping.fill(0);
            self.put(mapping);
        }
    }
}

/// Pieces of the allocator's memory that nobody needs any more, by length.
struct Shelves {
    pieces: [Mutex<Vec<Vec<Line>>>; SHELVES],
    most_bytes: AtomicUsize,
}

static SHELVED: Shelves = Shelves::new();

/// The shelf on which pieces for `len_bytes` lie, and how long these are; nothing for arrivals that are not shelved.
fn shelf(len_bytes: usize) -> Option<(usize, usize)> {
    if !(SHELVED_FROM_BYTES..MAPPED_FROM_BYTES).contains(&len_bytes) {
        return None;
    }
    let power = len_bytes.ilog2();
    let step = (1 << power) / STEPS;
    let steps = (len_bytes - (1 << power)).div_ceil(step);
    let number = STEPS * (power - SHELVED_FROM_BYTES.ilog2()) as usize + steps;
    Some((number, (1 << power) + steps * step))
}

impl Shelves {
    const fn new() -> Self {
        Self {
            pieces: [const { Mutex::new(Vec::new()) }; SHELVES],
            most_bytes: AtomicUsize::new(SHELF_MAX_BYTES),
        }
    }

    fn fit(&self, memory_bytes: u64) {
        let part = usize::try_from(memory_bytes / SHELF_PARTS).unwrap_or(usize::MAX);
        self.most_bytes.store(part.min(SHELF_MAX_BYTES), Ordering::Relaxed);
    }

    fn lock(&self, number: usize) -> MutexGuard<'_, Vec<Vec<Line>>> {
        self.pieces[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece that is at least so long; nothing for arrivals that are not shelved.
    fn take(&self, len_bytes: usize) -> Option<Vec<Line>> {
        let (number, shelf_bytes) = shelf(len_bytes)?;
        let kept = self.lock(number).pop();
        Some(kept.unwrap_or_else(|| allocated(shelf_bytes.div_ceil(size_of::<Line>()))))
    }

    /// Keeps a piece that [`take`](Self::take) gave, if there is room on its shelf.
    fn put(&self, piece: Vec<Line>) {
        let len_bytes = piece.len() * size_of::<Line>();
        // The longest pieces are as long as the shortest mappings, and have the last shelf.
        let number = shelf(len_bytes).map_or(SHELVES - 1, |(number, _)| number);
        let mut pieces = self.lock(number);
        if (pieces.len() + 1) * len_bytes <= self.most_bytes.load(Ordering::Relaxed) {
            pieces.push(piece);
        }
    }
}

/// Takes memory from the system for `count` buffers of `len_bytes` that will come from other nodes, so that it need
/// not be taken while they come. Short ones have enough memory as it is. What the system does not have is not taken.
pub fn reserve(len_bytes: usize, count: usize) {
    SPARE.reserve(len_bytes, count);
}

/// From now on this process, which may take `memory_bytes` in all, keeps at most a sixteenth of them, and never more than
/// 256 MiB, for long arrivals that are to come, unless more is [reserved](reserve), and a fiftieth for shorter ones.
pub(crate) fn keep_within(memory_bytes: u64) {
    SPARE.fit(memory_bytes);
    SHELVED.fit(memory_bytes);
}

/// Memory that is kept for the next arrival when this one is dropped.
pub(super) struct Arrival(Place);

enum Place {
    Mapping(MmapMut),
    Shelved(Vec<Line>),
    Nowhere,
}

impl Arrival {
    /// For an arrival of this length; nothing if it is so short that its memory need not be kept, or the system has none.
    fn new(len_bytes: usize) -> Option<Self> {
        if len_bytes < MAPPED_FROM_BYTES {
            return SHELVED.take(len_bytes).map(|piece| Self(Place::Shelved(piece)));
        }
        let mapping = SPARE.take(len_bytes).or_else(|| mapping(len_bytes))?;
        Some(Self(Place::Mapping(mapping)))
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Place::Mapping(mapping) => mapping,
            Place::Shelved(lines) => cast_slice(lines),
            Place::Nowhere => &[],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Place::Mapping(mapping) => mapping,
            Place::Shelved(lines) => cast_slice_mut(lines),
            Place::Nowhere => &mut [],
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.0, Place::Nowhere) {
            Place::Mapping(mapping) => SPARE.put(mapping),
            Place::Shelved(piece) => SHELVED.put(piece),
            Place::Nowhere => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_a_shelf_with_pieces_that_are_not_much_longer() {
        let mut last = 0;
        for len_bytes in SHELVED_FROM_BYTES..MAPPED_FROM_BYTES {
            let (number, shelf_bytes) = shelf(len_bytes).unwrap();
            assert!((len_bytes..=len_bytes * 5 / 4).contains(&shelf_bytes), "{len_bytes} {shelf_bytes}");
            assert!(number == last || number == last + 1, "{len_bytes}: {number} after {last}");
            let of_piece = shelf(shelf_bytes).map_or(SHELVES - 1, |(number, _)| number);
            assert_eq!(of_piece, number, "a piece goes back to where it came from: {len_bytes}");
            last = number;
        }
        assert_eq!(last, SHELVES - 1);
        assert!(shelf(SHELVED_FROM_BYTES - 1).is_none() && shelf(MAPPED_FROM_BYTES).is_none());
    }

    #[test]
    fn pieces_are_used_again_and_no_more_are_kept_than_may_be() {
        let shelves = Shelves::new();
        let len_bytes = 60_000;
        let piece = shelves.take(len_bytes).unwrap();
        let address = piece.as_ptr();
        assert!(piece.len() * size_of::<Line>() >= len_bytes);
        shelves.put(piece);
        let again = shelves.take(64 << 10).unwrap();
        assert_eq!(again.as_ptr(), address);
        shelves.put(again);
        let other = shelves.take(40_000).unwrap();
        assert_ne!(other.as_ptr(), address, "it is of another length");
        let on_shelf = |shelves: &Shelves| shelves.lock(shelf(len_bytes).unwrap().0).len();
        let many: Vec<_> = (0..200).map(|_| shelves.take(len_bytes).unwrap()).collect();
        many.into_iter().for_each(|piece| shelves.put(piece));
        assert_eq!(on_shelf(&shelves), SHELF_MAX_BYTES / (64 << 10));
        let tight = Shelves::new();
        tight.fit(SHELF_PARTS * (128 << 10));
        let many: Vec<_> = (0..5).map(|_| tight.take(len_bytes).unwrap()).collect();
        many.into_iter().for_each(|piece| tight.put(piece));
        assert_eq!(on_shelf(&tight), 2);
    }

    #[test]
    fn memory_is_kept_for_arrivals_of_about_its_length_and_not_much_of_it() {
        let spare = Spare::new();
        let mapping = |len: usize| MmapMut::map_anon(len).unwrap();
        spare.put(mapping(1200));
        spare.put(mapping(1000));
        assert_eq!(spare.take(960).unwrap().len(), 1000);
        assert_eq!(spare.take(1000).unwrap().len(), 1200);
        spare.put(mapping(1000));
        assert!(spare.take(1001).is_none() && spare.take(249).is_none());
        for _ in 0..3 {
            spare.put(mapping(SPARE_MAX_BYTES / 2));
        }
        assert_eq!(lengths(&spare), [SPARE_MAX_BYTES / 2; 2], "what comes last is what is needed next");
    }

    #[test]
    fn arrivals_that_get_shorter_share_the_memory_of_the_first() {
        let spare = Spare::new();
        let first = MAPPED_FROM_BYTES * SHORTEST_PART;
        let mut fresh = 0;
        let mut waiting = VecDeque::new();
        for len_bytes in (MAPPED_FROM_BYTES..=first).rev().step_by(first / 100) {
            waiting.push_back(spare.take(len_bytes).unwrap_or_else(|| {
                fresh += 1;
                mapping(len_bytes).expect("the system has memory")
            }));
            if waiting.len() == 5 {
                waiting.pop_front().into_iter().for_each(|mapping| spare.put(mapping));
            }
        }
        assert_eq!(fresh, 5);
    }

    #[test]
    fn what_was_reserved_is_there_and_stays() {
        let spare = Spare::new();
        spare.reserve(1000, 5);
        assert!(lengths(&spare).is_empty(), "short ones are not kept");
        let (long, count) = (SPARE_MAX_BYTES / 4, 6);
        spare.reserve(long, count);
        assert_eq!(lengths(&spare), vec![long; count]);
        let taken: Vec<_> = (0..count).map(|_| spare.take(long - 1).unwrap()).collect();
        assert!(spare.take(long).is_none());
        taken.into_iter().for_each(|mapping| spare.put(mapping));
        assert_eq!(lengths(&spare), vec![long; count]);
    }

    fn lengths(spare: &Spare) -> Vec<usize> {
        spare.lock().mappings.iter().map(|one| one.len()).collect()
    }

    #[test]
    fn a_node_with_a_limit_keeps_no_more_than_a_part_of_it() {
        let kept_bytes = |spare: &Spare| {
            (0..6).for_each(|_| spare.put(mapping(MAPPED_FROM_BYTES).expect("the system has memory")));
            lengths(spare).iter().sum::<usize>()
        };
        let spare = Spare::new();
        assert_eq!(kept_bytes(&spare), 6 * MAPPED_FROM_BYTES);
        spare.fit(SPARE_PARTS * 3 * MAPPED_FROM_BYTES as u64);
        assert_eq!(kept_bytes(&spare), 3 * MAPPED_FROM_BYTES);
        spare.fit(0);
        assert_eq!(kept_bytes(&spare), 0);
        spare.reserve(MAPPED_FROM_BYTES, 2);
        assert_eq!(kept_bytes(&spare), 2 * MAPPED_FROM_BYTES, "what was asked for in advance is planned");
    }
}
