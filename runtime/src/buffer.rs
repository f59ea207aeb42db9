//! Shared, aligned bytes: what bulk numeric data is made of, inside a process and on the wire.

use bytemuck::{AnyBitPattern, NoUninit, Pod};
use memmap2::MmapMut;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::alloc::{Layout, handle_alloc_error};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Storing these keeps every buffer aligned for any numeric type. Not more than 16 bytes: for wider alignment the
/// system's allocator cannot hand out fresh zero pages and would touch every byte of a buffer at once.
type Line = u128;
// Less on s390x, where no number needs more than 8.
const _: () = assert!(align_of::<Line>() <= 16 && align_of::<Line>() >= align_of::<u64>());

/// From this length on a buffer is a mapping of its own, in huge pages where the system has them: touching fresh
/// memory page by page of 4 KiB costs a processor a second per GB, as much as receiving it.
const MAPPED_FROM_BYTES: usize = 4 << 20;

/// From this length on the memory of an arrival is a mapping that is kept for the next one. The allocator gives that much
/// back to the system at once, which clears it again for the next: at 1 MiB a third of a round trip.
const KEPT_FROM_BYTES: usize = 256 << 10;

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
        if len_bytes < KEPT_FROM_BYTES {
            return;
        }
        self.lock().reserved_bytes += len_bytes * count;
        for mut mapping in (0..count).map_while(|_| mapping(len_bytes)) {
            mapping.fill(0);
            self.put(mapping);
        }
    }
}

/// Takes memory from the system for `count` buffers of `len_bytes` that will come from other nodes, so that it need
/// not be taken while they come. Short ones have enough memory as it is. What the system does not have is not taken.
pub fn reserve(len_bytes: usize, count: usize) {
    SPARE.reserve(len_bytes, count);
}

/// From now on this process, which may take `memory_bytes` in all, keeps at most a sixteenth of them, and never more than
/// 256 MiB, for arrivals that are to come, unless more is [reserved](reserve).
pub(crate) fn keep_within(memory_bytes: u64) {
    SPARE.fit(memory_bytes);
}

/// Memory that is kept for the next arrival when this one is dropped.
struct Arrival(Option<MmapMut>);

impl Drop for Arrival {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|mapping| SPARE.put(mapping));
    }
}

enum Memory {
    Allocated(Vec<Line>),
    Mapped(MmapMut),
    Arrived(Arrival),
}

impl Memory {
    fn zeroed(len_bytes: usize) -> Self {
        match (len_bytes >= MAPPED_FROM_BYTES).then(|| mapping(len_bytes)).flatten() {
            Some(mapping) => Self::Mapped(mapping),
            None => Self::Allocated(allocated(len_bytes.div_ceil(size_of::<Line>()))),
        }
    }

    fn for_arrival(len_bytes: usize) -> Self {
        if len_bytes < KEPT_FROM_BYTES {
            return Self::zeroed(len_bytes);
        }
        match SPARE.take(len_bytes).or_else(|| mapping(len_bytes)) {
            Some(mapping) => Self::Arrived(Arrival(Some(mapping))),
            None => Self::zeroed(len_bytes),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Allocated(lines) => bytemuck::cast_slice(lines),
            Self::Mapped(mapping) => mapping,
            Self::Arrived(arrival) => arrival.0.as_deref().unwrap_or_default(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Allocated(lines) => bytemuck::cast_slice_mut(lines),
            Self::Mapped(mapping) => mapping,
            Self::Arrived(arrival) => arrival.0.as_deref_mut().unwrap_or_default(),
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
    if len_bytes >= MAPPED_FROM_BYTES {
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

/// A run of bytes that can be shared without copying and viewed as a slice of any plain number type.
///
/// Cloning shares the bytes. Writing copies them first only if they are shared at that moment.
#[derive(Clone, Default)]
pub struct Buffer {
    memory: Arc<Memory>,
    len_bytes: usize,
}

impl Buffer {
    /// `len_bytes` zero bytes, aligned to 16. Memory is taken from the system only as it is written to.
    #[must_use]
    pub fn zeroed(len_bytes: usize) -> Self {
        Self { memory: Arc::new(Memory::zeroed(len_bytes)), len_bytes }
    }

    /// `len_bytes` bytes that will all be written before anybody reads them: a long one may hold what an earlier
    /// one held, and when nobody needs it any more it is kept for the next.
    #[must_use]
    pub fn for_arrival(len_bytes: usize) -> Self {
        Self { memory: Arc::new(Memory::for_arrival(len_bytes)), len_bytes }
    }

    /// A copy of `values` as bytes in this machine's byte order.
    #[must_use]
    pub fn from_slice<T: NoUninit>(values: &[T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut buffer = Self::zeroed(bytes.len());
        buffer.bytes_mut().copy_from_slice(bytes);
        buffer
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len_bytes
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.len_bytes]
    }

    /// The bytes, to write to; copies them first if another clone shares them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len_bytes = self.len_bytes;
        &mut Arc::make_mut(&mut self.memory).bytes_mut()[..len_bytes]
    }

    /// The bytes as numbers; bytes beyond the last whole number are left out.
    #[must_use]
    pub fn as_slice<T: AnyBitPattern>(&self) -> &[T] {
        let whole = self.len_bytes / size_of::<T>() * size_of::<T>();
        bytemuck::cast_slice(&self.bytes()[..whole])
    }

    /// The bytes as numbers, to write to; copies them first if another clone shares them.
    pub fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        let whole = self.len_bytes / size_of::<T>() * size_of::<T>();
        bytemuck::cast_slice_mut(&mut self.bytes_mut()[..whole])
    }

    /// Whether both are the same bytes in memory, not merely equal ones.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

/// Knows a buffer again for as long as nobody writes to it: whoever does finds that it is known, and gets other memory or
/// moves what there is, which takes no copy. It does not keep the bytes.
#[derive(Debug)]
pub(crate) struct Unwritten {
    memory: Weak<Memory>,
    len_bytes: usize,
}

impl Unwritten {
    /// What the buffer is now.
    pub(crate) fn of(buffer: &Buffer) -> Self {
        Self { memory: Arc::downgrade(&buffer.memory), len_bytes: buffer.len_bytes }
    }

    /// Whether this is that buffer, and nobody has written to it since.
    pub(crate) fn is(&self, buffer: &Buffer) -> bool {
        self.memory.as_ptr() == Arc::as_ptr(&buffer.memory) && self.len_bytes == buffer.len_bytes
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// As bytes, in the order in which they lie.
impl Serialize for Buffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.bytes())
    }
}

impl<'de> Deserialize<'de> for Buffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BytesOfBuffer)
    }
}

struct BytesOfBuffer;

impl<'de> Visitor<'de> for BytesOfBuffer {
    type Value = Buffer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of an array")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Buffer, E> {
        Ok(Buffer::from_slice(bytes))
    }

    /// From formats that have no bytes, as JSON.
    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Buffer, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element::<u8>()? {
            bytes.push(byte);
        }
        Ok(Buffer::from_slice(&bytes))
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_share_memory_until_written() {
        let mut a = Buffer::from_slice(&[1.0f64, 2.0, 3.0]);
        let b = a.clone();
        assert!(a.is_same(&b));
        a.as_mut_slice::<f64>()[1] = 5.0;
        assert!(!a.is_same(&b));
        assert_eq!(b.as_slice::<f64>(), [1.0, 2.0, 3.0]);
        assert_eq!(a.as_slice::<f64>(), [1.0, 5.0, 3.0]);
        assert_eq!(a.bytes().as_ptr() as usize % 16, 0);
    }

    #[test]
    fn a_buffer_is_known_again_until_it_is_written() {
        let mut a = Buffer::from_slice(&[1u8; 100]);
        let address = a.bytes().as_ptr();
        let known = Unwritten::of(&a);
        assert!(known.is(&a) && known.is(&a.clone()) && !known.is(&Buffer::from_slice(&[1u8; 100])));
        a.bytes_mut();
        assert!(!known.is(&a), "somebody may have written");
        assert_eq!(a.bytes().as_ptr(), address, "and nothing was copied for that");
        let known = Unwritten::of(&a);
        drop(a);
        let others: Vec<_> = (0..100).map(|_| Buffer::from_slice(&[1u8; 100])).collect();
        assert!(!others.iter().any(|other| known.is(other)), "its place is not another's");
    }

    #[test]
    fn a_long_buffer_is_zero_shared_and_copied_like_a_short_one() {
        let mut a = Buffer::zeroed(MAPPED_FROM_BYTES + 3);
        assert!(matches!(*a.memory, Memory::Mapped(_)));
        assert!(a.bytes().iter().all(|&byte| byte == 0));
        a.bytes_mut()[MAPPED_FROM_BYTES + 2] = 7;
        let b = a.clone();
        a.bytes_mut()[0] = 9;
        assert_eq!((b.bytes()[0], b.bytes()[MAPPED_FROM_BYTES + 2]), (0, 7));
        assert_eq!((a.bytes()[0], a.bytes()[MAPPED_FROM_BYTES + 2]), (9, 7));
        assert_eq!(a.len(), MAPPED_FROM_BYTES + 3);
        assert_eq!(a.as_slice::<f64>().len(), MAPPED_FROM_BYTES / 8);
    }

    #[test]
    fn an_arrival_of_any_length_is_copied_before_it_is_written_to() {
        let mut a = Buffer::for_arrival(KEPT_FROM_BYTES + 8);
        let b = a.clone();
        a.bytes_mut()[KEPT_FROM_BYTES + 7] = 7;
        assert_eq!((a.bytes()[KEPT_FROM_BYTES + 7], b.bytes()[KEPT_FROM_BYTES + 7]), (7, 0));
        assert_eq!((a.len(), b.len()), (KEPT_FROM_BYTES + 8, KEPT_FROM_BYTES + 8));
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
        let first = KEPT_FROM_BYTES * SHORTEST_PART;
        let mut fresh = 0;
        let mut waiting = VecDeque::new();
        for len_bytes in (KEPT_FROM_BYTES..=first).rev().step_by(first / 100) {
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
    fn an_arrival_is_as_long_as_asked_and_stays_while_a_clone_has_it() {
        let mut first = Buffer::for_arrival(MAPPED_FROM_BYTES + 7);
        assert!(matches!(*first.memory, Memory::Arrived(_)));
        first.bytes_mut()[MAPPED_FROM_BYTES + 6] = 7;
        let kept = first.clone();
        drop(first);
        let mut second = Buffer::for_arrival(MAPPED_FROM_BYTES);
        second.bytes_mut().fill(3);
        assert_eq!((kept.bytes()[MAPPED_FROM_BYTES + 6], kept.len()), (7, MAPPED_FROM_BYTES + 7));
        let mut copy = kept.clone();
        copy.bytes_mut()[0] = 1;
        drop(kept);
        assert_eq!((copy.bytes()[0], copy.bytes()[MAPPED_FROM_BYTES + 6]), (1, 7));
        assert_eq!(Buffer::for_arrival(100).len(), 100);
    }

    #[test]
    fn odd_lengths_keep_their_bytes() {
        let buffer = Buffer::from_slice(&[1u8, 2, 3, 4, 5]);
        assert_eq!(buffer.bytes(), [1, 2, 3, 4, 5]);
        assert_eq!(buffer.as_slice::<u16>().len(), 2);
        assert!(Buffer::zeroed(0).is_empty());
    }

    #[test]
    fn a_node_with_a_limit_keeps_no_more_than_a_part_of_it() {
        let kept_bytes = |spare: &Spare| {
            (0..6).for_each(|_| spare.put(mapping(KEPT_FROM_BYTES).expect("the system has memory")));
            lengths(spare).iter().sum::<usize>()
        };
        let spare = Spare::new();
        assert_eq!(kept_bytes(&spare), 6 * KEPT_FROM_BYTES);
        spare.fit(SPARE_PARTS * 3 * KEPT_FROM_BYTES as u64);
        assert_eq!(kept_bytes(&spare), 3 * KEPT_FROM_BYTES);
        spare.fit(0);
        assert_eq!(kept_bytes(&spare), 0);
        spare.reserve(KEPT_FROM_BYTES, 2);
        assert_eq!(kept_bytes(&spare), 2 * KEPT_FROM_BYTES, "what was asked for in advance is planned");
    }
}
