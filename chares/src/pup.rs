//! Packing and unpacking (pup): values to bytes and back, with bulk arrays beside the body.

use postcard::{Deserializer, Serializer, ser_flavors};
use runtime::buffer::Buffer;
use runtime::envelope::Packed;
use runtime::object::PupError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::{Cell, RefCell};

/// Bulk arrays of a message for one other node that are together no longer than this go inside the body, by a copy. An
/// array beside it costs both ends memory of its own, its length on the wire, and the quick way for messages without any.
const INSIDE_BYTES: usize = 4096;

thread_local! {
    /// The bulk arrays of the value that this thread is packing or unpacking, if it is.
    static ATTACHMENTS: RefCell<Option<Vec<Buffer>>> = const { RefCell::new(None) };
    /// Whether a value is being packed or unpacked. It is kept apart because it is quicker to look at than a value
    /// that has a destructor.
    static IS_UNDER_WAY: Cell<bool> = const { Cell::new(false) };
    /// How many bytes of bulk arrays may still go inside the body.
    static ROOM_INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// A value is being packed or unpacked by this thread, with bulk arrays of its own; what was before is kept, as a value may hold
/// packed ones. No generic code: there would be a copy of it for each type of message.
struct UnderWay {
    outer: Option<Vec<Buffer>>,
    was_under_way: bool,
    room: usize,
}

impl UnderWay {
    /// Begins with these bulk arrays; so many bytes of others may go inside the body.
    fn begin(attachments: Vec<Buffer>, inside: usize) -> Self {
        Self {
            outer: ATTACHMENTS.replace(Some(attachments)),
            was_under_way: IS_UNDER_WAY.replace(true),
            room: ROOM_INSIDE.replace(inside),
        }
    }

    /// What the bulk arrays have become.
    fn end(self) -> Vec<Buffer> {
        IS_UNDER_WAY.set(self.was_under_way);
        ROOM_INSIDE.set(self.room);
        ATTACHMENTS.replace(self.outer).unwrap_or_default()
    }
}

/// Where the bytes of a value's body go: kept, or only counted. It is one type for both, because for each type there would be
/// another copy of the code that serialises a message.
struct Body {
    bytes: Vec<u8>,
    /// How many there were before those in `bytes`, if they are only counted.
    counted: Option<usize>,
}

impl Body {
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, bytes: usize) {
        if let Some(counted) = &mut self.counted {
            *counted += self.bytes.len();
            self.bytes.clear();
        }
        self.bytes.reserve(bytes);
    }

    fn len(&self) -> usize {
        self.counted.unwrap_or_default() + self.bytes.len()
    }
}

impl ser_flavors::Flavor for Body {
    type Output = Self;

    #[inline(always)]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        if self.bytes.len() == self.bytes.capacity() {
            self.make_room(1);
        }
        self.bytes.push(byte);
        Ok(())
    }

    #[inline(always)]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        if bytes.len() > self.bytes.capacity() - self.bytes.len() {
            self.make_room(bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Self> {
        Ok(self)
    }
}

/// A value that is being packed. No generic code either.
struct Packing {
    under: UnderWay,
    to: Serializer<Body>,
}

impl Packing {
    /// Begins behind these bytes; so many of bulk arrays may go inside.
    fn begin(bytes: Vec<u8>, inside: usize) -> Self {
        Self::into_body(Body { bytes, counted: None }, inside)
    }

    fn into_body(output: Body, inside: usize) -> Self {
        Self { under: UnderWay::begin(Vec::new(), inside), to: Serializer { output } }
    }

    /// The body, and the bulk arrays beside it.
    ///
    /// # Panics
    /// If the value was not written.
    fn end(self, written: &postcard::Result<()>) -> (Body, Vec<Buffer>) {
        if let Err(error) = written {
            panic!("a message must be serialisable: no map or sequence of unknown length: {error}");
        }
        (self.to.output, self.under.end())
    }
}

/// A value as bytes, for any number of receivers. Bulk arrays inside it are shared, not copied.
///
/// # Panics
/// If the type's `Serialize` fails, which for derived ones means a map or sequence without a length.
#[must_use]
pub fn pack<T: Serialize + ?Sized>(value: &T) -> Packed {
    let mut packing = Packing::begin(Vec::with_capacity(64), 0);
    let written = value.serialize(&mut packing.to);
    let (body, attachments) = packing.end(&written);
    Packed { body: body.bytes.into(), attachments }
}

/// Appends a value for one receiver on another node to `out`; its bulk arrays, without those that are short enough to be
/// copied.
pub(crate) fn append_for_one<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Vec<Buffer> {
    let mut packing = Packing::begin(std::mem::take(out), INSIDE_BYTES);
    let written = value.serialize(&mut packing.to);
    let (body, attachments) = packing.end(&written);
    *out = body.bytes;
    attachments
}

/// How many bytes the body of a value has, and its bulk arrays, without keeping them.
pub(crate) fn packed_bytes<T: Serialize + ?Sized>(value: &T) -> (usize, usize) {
    let mut packing = Packing::into_body(Body { bytes: Vec::with_capacity(256), counted: Some(0) }, 0);
    let written = value.serialize(&mut packing.to);
    let attachments = packing.under.end();
    let body = if written.is_ok() { packing.to.output.len() } else { 0 };
    (body, attachments.iter().map(Buffer::len).sum())
}

/// The value that [`pack`] made bytes of.
///
/// # Errors
/// If the bytes do not hold a `T`, or more than one.
pub fn unpack<T: DeserializeOwned>(packed: &Packed) -> Result<T, PupError> {
    let under = begin_unpacking(packed);
    let mut from = Deserializer::from_bytes(&packed.body);
    let value = T::deserialize(&mut from);
    let rest = from.finalize().unwrap_or_default().len();
    under.map(UnderWay::end);
    match value {
        Ok(value) if rest == 0 => Ok(value),
        Ok(_) => Err(left_over(std::any::type_name::<T>(), rest)),
        Err(error) => Err(unreadable(std::any::type_name::<T>(), &error)),
    }
}

/// Most messages have no bulk arrays, and then none need be looked for.
fn begin_unpacking(packed: &Packed) -> Option<UnderWay> {
    let is_plain = packed.attachments.is_empty() && !IS_UNDER_WAY.get();
    (!is_plain).then(|| UnderWay::begin(packed.attachments.clone(), 0))
}

#[cold]
fn left_over(of: &'static str, bytes: usize) -> PupError {
    PupError::new(of, format!("{bytes} bytes are left over"))
}

#[cold]
fn unreadable(of: &'static str, error: &postcard::Error) -> PupError {
    PupError::new(of, error.to_string())
}

/// Puts a bulk array beside the body that is being packed; its number, or `None` if it is to go inside, as it is short
/// enough or nothing is being packed.
pub(crate) fn attach(buffer: &Buffer) -> Option<u32> {
    let room = ROOM_INSIDE.get();
    if room > 0 && buffer.len() <= room {
        ROOM_INSIDE.set(room - buffer.len());
        return None;
    }
    ATTACHMENTS.with_borrow_mut(|attachments| {
        let attachments = attachments.as_mut()?;
        attachments.push(buffer.clone());
        u32::try_from(attachments.len() - 1).ok()
    })
}

/// The bulk array of that number, of the value that is being unpacked.
pub(crate) fn attached(number: u32) -> Option<Buffer> {
    ATTACHMENTS.with_borrow(|attachments| attachments.as_ref()?.get(number as usize).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bulk;
    use runtime::proto::sim::Random;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Any {
        Nothing,
        Text { of: String, by: BTreeMap<u32, Vec<i64>> },
        Numbers(Vec<Bulk<f32>>, Option<Bulk<u8>>),
    }

    /// However long arrays are, and how many: they come as they were sent and aligned, those that are together short
    /// enough inside the body, and for several receivers none is copied.
    #[test]
    fn short_arrays_for_one_go_inside_and_come_out_as_any_other() {
        let lengths = |total: usize| {
            let third = total / 3;
            [vec![total], vec![third, 0, total - third], vec![total - third, third], vec![1; total.min(300)]]
        };
        for total in [0, 1, 7, 64, 65, 300, 2048].into_iter().chain(INSIDE_BYTES - 17..INSIDE_BYTES + 18) {
            for lengths in lengths(total) {
                let total: usize = lengths.iter().sum();
                let bytes =
                    |at: usize, len: usize| (0..len).map(move |n| (n * 7 + at) as u8).collect::<Vec<_>>();
                let sent: Vec<Bulk<u8>> =
                    lengths.iter().enumerate().map(|(at, &len)| bytes(at, len).into()).collect();
                let wide = Bulk::from_slice(&[1.5f64, -0.0]);
                let mut out = b"what was there before".to_vec();
                let attachments = append_for_one(&(&sent, 3u8, &wide), &mut out);
                let beside: usize = attachments.iter().map(Buffer::len).sum();
                assert!(
                    attachments.is_empty() == (total + 16 <= INSIDE_BYTES),
                    "{lengths:?}: {beside} beside"
                );
                assert!(total + 16 - beside <= INSIDE_BYTES);
                let packed = Packed { body: out.split_off(21).into(), attachments };
                assert_eq!(out, b"what was there before");
                let (got, three, far) = unpack::<(Vec<Bulk<u8>>, u8, Bulk<f64>)>(&packed).unwrap();
                assert_eq!((&got, three, &far[..]), (&sent, 3, &wide[..]));
                assert!(
                    got.iter().all(|array| array.as_ptr().addr() % 16 == 0) && far.as_ptr().addr() % 16 == 0
                );
                let shared = pack(&sent);
                assert_eq!(shared.attachments.len(), sent.len());
                let mut pairs = shared.attachments.iter().zip(&sent);
                assert!(pairs.all(|(buffer, array)| buffer.bytes().as_ptr() == array.as_ptr()));
                assert_eq!(unpack::<Vec<Bulk<u8>>>(&shared).unwrap(), sent);
            }
        }
    }

    #[test]
    fn the_length_of_a_message_is_known_without_packing_it() {
        let text = Any::Text { of: "a text".into(), by: BTreeMap::from([(1, vec![-1, 2]), (9, vec![])]) };
        let long =
            Any::Text { of: "long ".repeat(100), by: (0..999).map(|key| (key, vec![-1; 9])).collect() };
        for any in [Any::Nothing, text, long, Any::Numbers(vec![Bulk::zeros(1000)], None)] {
            let (body, attachments) = packed_bytes(&any);
            let packed = pack(&any);
            assert_eq!((body, body + attachments), (packed.body.len(), packed.len_bytes()), "{any:?}");
        }
    }

    /// Bodies damaged and buffers exchanged: what still unpacks is what the bytes say, and holds no other bytes.
    #[test]
    fn messages_of_any_content_are_unpacked_or_refused() {
        let good = [
            Any::Nothing,
            Any::Text { of: "a text".into(), by: BTreeMap::from([(1, vec![-1, 2]), (9, vec![])]) },
            Any::Numbers(
                vec![Bulk::from_slice(&[1.0, 2.0]), Bulk::zeros(0)],
                Some(Bulk::from_slice(&[1, 2, 3])),
            ),
        ]
        .map(|any| pack(&any));
        let (mut random, mut unpacked, mut refused) = (Random::new(71), 0, 0);
        for number in 0..10_000 {
            let mut packed = good[number % 3].clone();
            packed.body =
                if number % 8 == 0 { random.bytes(60) } else { random.mutated(&packed.body) }.into();
            match random.below(4) {
                0 => drop(packed.attachments.pop()),
                1 => packed.attachments.push(Buffer::zeroed(usize::from(random.node(9).0))),
                _ => packed.attachments.reverse(),
            }
            match unpack::<Any>(&packed) {
                Ok(any) => {
                    unpacked += 1;
                    assert_eq!(
                        unpack::<Any>(&pack(&any)).map(|same| format!("{same:?}")),
                        Ok(format!("{any:?}"))
                    );
                }
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().len() < 300, "{error}");
                }
            }
        }
        assert!(unpacked > 500 && refused > 500, "{unpacked} unpacked, {refused} refused");
        assert!(ATTACHMENTS.with_borrow(Option::is_none), "nothing is left behind");
    }
}
