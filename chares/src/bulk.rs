//! Bulk numeric arrays: shared inside a process, raw little-endian bytes between processes.
//!
//! Short arrays are copied into their message, because on their own they would need memory and a length each. That
//! made 4.9 million messages a second of arrays of 72 bytes possible, where it was 2.5, and 1.3 million of 1 KiB,
//! where it was 0.84; at 4 KiB it makes no difference (`metachare bench --only link/rate`).

use crate::pup;
use bytemuck::Pod;
use runtime::buffer::Buffer;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A plain number that can be an element of a [`Bulk`] array.
pub trait Number: Pod + Send + Sync + fmt::Debug + PartialEq + sealed::Sealed {
    /// By this name [`shape_of`](runtime::schema::shape_of) knows that something is a bulk array of these.
    #[doc(hidden)]
    const BULK: &'static str;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl sealed::Sealed for $number {}
        impl Number for $number {
            const BULK: &'static str = concat!("Bulk of ", stringify!($number));
        }
    )* };
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

/// An array of numbers that costs nothing to clone or to send inside a process, and travels to another
/// node as raw bytes that are received into their final place; short ones, up to 4 KiB in a message, are copied on the
/// way, which is quicker.
///
/// It reads like a slice. [`as_mut_slice`](Self::as_mut_slice) copies the numbers first if they are shared.
///
/// A message to another node holds at most 65,535 such arrays and 4 GiB, 64 MiB of it beside the arrays; inside a
/// node there is no limit. A longer one ends the run with a sentence that names its entry method and the limit.
#[derive(Clone, PartialEq)]
pub struct Bulk<T> {
    buffer: Buffer,
    number: PhantomData<T>,
}

impl<T: Number> Bulk<T> {
    /// `len` zeros.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        Self::over(Buffer::zeroed(len * size_of::<T>()))
    }

    /// `len` numbers, whichever, that the caller writes before anybody reads them. Of many long arrays that are made and
    /// sent one after the other, each gets the memory of an earlier one, which costs far less than fresh memory.
    #[must_use]
    pub fn reused(len: usize) -> Self {
        Self::over(Buffer::for_arrival(len * size_of::<T>()))
    }

    /// A copy of `numbers`.
    #[must_use]
    pub fn from_slice(numbers: &[T]) -> Self {
        Self::over(Buffer::from_slice(numbers))
    }

    /// Takes memory from the system for `count` arrays of `len` numbers, or a few less, that will come from other
    /// nodes, so that it need not be taken while they come; each node has its own. What has been received before
    /// and is not needed any more is used again without this.
    pub fn reserve(len: usize, count: usize) {
        runtime::buffer::reserve(len * size_of::<T>(), count);
    }

    /// The numbers, to write to; copies them first if a clone of this array exists.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.buffer.as_mut_slice()
    }

    fn over(buffer: Buffer) -> Self {
        Self { buffer, number: PhantomData }
    }
}

impl<T> Default for Bulk<T> {
    fn default() -> Self {
        Self { buffer: Buffer::default(), number: PhantomData }
    }
}

impl<T: Number> Deref for Bulk<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.buffer.as_slice()
    }
}

impl<T: Number> From<Vec<T>> for Bulk<T> {
    fn from(numbers: Vec<T>) -> Self {
        Self::from_slice(&numbers)
    }
}

impl<T> fmt::Debug for Bulk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bulk({} numbers)", self.buffer.len() / size_of::<T>())
    }
}

/// The form that a bulk array has in the body of a message.
#[derive(Serialize, Deserialize)]
enum Wire<B> {
    /// The numbers are beside the body: which attachment it is, and how many numbers it has.
    Beside(u32, u64),
    /// The numbers are in the body, little-endian: the array is short, or there are no attachments, as in a file.
    Inside(B),
}

struct WireVisitor;

impl<'de> Visitor<'de> for WireVisitor {
    type Value = Wire<Buffer>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a bulk array")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        Wire::deserialize(deserializer)
    }
}

impl<T: Number> Serialize for Bulk<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let little = little_endian::<T>(&self.buffer);
        let wire = match pup::attach(&little) {
            Some(number) => Wire::Beside(number, self.len() as u64),
            None => Wire::Inside(little.as_ref()),
        };
        serializer.serialize_newtype_struct(T::BULK, &wire)
    }
}

impl<'de, T: Number> Deserialize<'de> for Bulk<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let buffer = match deserializer.deserialize_newtype_struct(T::BULK, WireVisitor)? {
            Wire::Inside(buffer) if buffer.len() % size_of::<T>() == 0 => buffer,
            Wire::Inside(_) => return Err(D::Error::custom("bulk data is not a whole number of elements")),
            Wire::Beside(number, len) => {
                let buffer = pup::attached(number).ok_or_else(|| D::Error::custom("bulk data is missing"))?;
                let expected = usize::try_from(len).ok().and_then(|len| len.checked_mul(size_of::<T>()));
                if expected != Some(buffer.len()) {
                    return Err(D::Error::custom("bulk data has another length than announced"));
                }
                buffer
            }
        };
        Ok(Self::over(little_endian::<T>(&buffer).into_owned()))
    }
}

/// The same numbers in little-endian order; the buffer itself on little-endian machines.
fn little_endian<T>(buffer: &Buffer) -> Cow<'_, Buffer> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(buffer);
    }
    let mut swapped = buffer.clone();
    swapped.bytes_mut().chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    Cow::Owned(swapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_rides_beside_the_body_without_a_copy() {
        let bulk = Bulk::from_slice(&[1.5f64, -2.0, 3.25]);
        let packed = pup::pack(&(7u32, bulk.clone(), Bulk::<u8>::zeros(0)));
        assert!(packed.body.len() < 16);
        assert!(packed.attachments[0].is_same(&bulk.buffer));
        let (n, back, empty): (u32, Bulk<f64>, Bulk<u8>) = pup::unpack(&packed).unwrap();
        assert_eq!((n, &back[..], empty.len()), (7, &bulk[..], 0));
        assert!(back.buffer.is_same(&bulk.buffer));
    }

    #[test]
    fn wrong_lengths_and_missing_data_are_errors() {
        let mut packed = pup::pack(&Bulk::from_slice(&[1u32, 2]));
        assert!(pup::unpack::<Bulk<u64>>(&packed).is_err());
        packed.attachments.clear();
        assert!(pup::unpack::<Bulk<u32>>(&packed).is_err());
    }

    #[test]
    fn without_a_message_the_numbers_are_inside() {
        let bulk = Bulk::from_slice(&[1u16, 513]);
        let bytes = postcard::to_stdvec(&bulk).unwrap();
        assert!(bytes.ends_with(&[1, 0, 1, 2]));
        assert_eq!(postcard::from_bytes::<Bulk<u16>>(&bytes).unwrap(), bulk);
        let text = serde_json::to_string(&bulk).unwrap();
        assert_eq!(text, "{\"Inside\":[1,0,1,2]}");
        assert_eq!(serde_json::from_str::<Bulk<u16>>(&text).unwrap(), bulk);
        assert!(serde_json::from_str::<Bulk<u16>>("{\"Inside\":[1,0,1]}").is_err());
    }
}
