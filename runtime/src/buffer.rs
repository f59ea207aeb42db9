//! Shared, aligned bytes: what bulk numeric data is made of, inside a process and on the wire.

mod memory;

pub(crate) use memory::keep_within;
pub use memory::reserve;

use bytemuck::{AnyBitPattern, NoUninit, Pod};
use memory::Memory;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::{Arc, Weak};

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
    use super::memory::HUGE_FROM_BYTES;
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
        let mut a = Buffer::zeroed(HUGE_FROM_BYTES + 3);
        assert!(matches!(*a.memory, Memory::Mapped(_)));
        assert!(a.bytes().iter().all(|&byte| byte == 0));
        a.bytes_mut()[HUGE_FROM_BYTES + 2] = 7;
        let b = a.clone();
        a.bytes_mut()[0] = 9;
        assert_eq!((b.bytes()[0], b.bytes()[HUGE_FROM_BYTES + 2]), (0, 7));
        assert_eq!((a.bytes()[0], a.bytes()[HUGE_FROM_BYTES + 2]), (9, 7));
        assert_eq!(a.len(), HUGE_FROM_BYTES + 3);
        assert_eq!(a.as_slice::<f64>().len(), HUGE_FROM_BYTES / 8);
    }

    #[test]
    fn an_arrival_of_any_length_is_copied_before_it_is_written_to() {
        for len in [100, 8 << 10, 100_000, 256 << 10, HUGE_FROM_BYTES + 8] {
            let mut a = Buffer::for_arrival(len);
            a.bytes_mut().fill(0);
            let b = a.clone();
            a.bytes_mut()[len - 1] = 7;
            assert_eq!((a.bytes()[len - 1], b.bytes()[len - 1]), (7, 0));
            assert_eq!((a.len(), b.len()), (len, len));
        }
    }

    #[test]
    fn an_arrival_is_as_long_as_asked_and_stays_while_a_clone_has_it() {
        let mut first = Buffer::for_arrival(HUGE_FROM_BYTES + 7);
        assert!(matches!(*first.memory, Memory::Arrived(_)));
        first.bytes_mut()[HUGE_FROM_BYTES + 6] = 7;
        let kept = first.clone();
        drop(first);
        let mut second = Buffer::for_arrival(HUGE_FROM_BYTES);
        second.bytes_mut().fill(3);
        assert_eq!((kept.bytes()[HUGE_FROM_BYTES + 6], kept.len()), (7, HUGE_FROM_BYTES + 7));
        let mut copy = kept.clone();
        copy.bytes_mut()[0] = 1;
        drop(kept);
        assert_eq!((copy.bytes()[0], copy.bytes()[HUGE_FROM_BYTES + 6]), (1, 7));
        assert_eq!(Buffer::for_arrival(100).len(), 100);
    }

    #[test]
    fn odd_lengths_keep_their_bytes() {
        let buffer = Buffer::from_slice(&[1u8, 2, 3, 4, 5]);
        assert_eq!(buffer.bytes(), [1, 2, 3, 4, 5]);
        assert_eq!(buffer.as_slice::<u16>().len(), 2);
        assert!(Buffer::zeroed(0).is_empty());
    }
}
