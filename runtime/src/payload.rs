//! What messages say: values that are moved, or packed bytes.

use crate::buffer::Buffer;
use bytes::Bytes;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A message, constructor argument or contribution as a value of the type that its receiver expects.
pub type Value = Box<dyn Any + Send>;

/// The same as bytes: a small body, and bulk buffers that are shared instead of copied; copied only where all of it is
/// written as one, to be saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Packed {
    /// postcard.
    pub body: Bytes,
    /// Bulk numeric data, in the order in which the body refers to them.
    pub attachments: Vec<Buffer>,
}

impl Packed {
    /// Bytes of body and attachments.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.body.len() + self.attachments.iter().map(Buffer::len).sum::<usize>()
    }

    /// The bytes of one of its values: the body is number 0, and the attachments follow. None of a value that it does not have.
    pub(crate) fn value(&self, number: usize) -> &[u8] {
        match number.checked_sub(1) {
            None => &self.body,
            Some(at) => self.attachments.get(at).map_or(&[], Buffer::bytes),
        }
    }

    /// The same values, of which that one has no bytes any more.
    pub(crate) fn leave_out(&mut self, number: usize) {
        match number.checked_sub(1) {
            None => self.body = Bytes::new(),
            Some(at) => self.attachments[at] = Buffer::default(),
        }
    }
}

/// What a message says, moved or packed.
pub enum Payload {
    /// Moved by ownership inside a process.
    Value(Value),
    /// Came from another process, will go there, or is shared by several receivers.
    Packed(Arc<Packed>),
}

impl Payload {
    /// Bytes for one receiver.
    #[must_use]
    pub fn packed(packed: Packed) -> Self {
        Self::Packed(Arc::new(packed))
    }

    /// Gives it to its only receiver.
    pub fn open<T>(self, take: impl FnOnce(Arrived<'_>) -> T) -> T {
        match self {
            Self::Value(value) => take(Arrived::Value(value)),
            Self::Packed(packed) => take(Arrived::Packed(&packed)),
        }
    }
}

/// Of bytes only.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Packed(packed) => packed.serialize(serializer),
            Self::Value(_) => Err(S::Error::custom("it was not packed")),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Packed::deserialize(deserializer).map(Self::packed)
    }
}

/// What a message says, as one of its receivers gets it.
pub enum Arrived<'a> {
    /// Moved: it is the receiver's own.
    Value(Value),
    /// To be unpacked; others may unpack it too.
    Packed(&'a Packed),
}

/// A message on its way out, which becomes a value or bytes as its receiver needs it. A closure that makes the payload,
/// given whether that may be moved, is one.
pub trait Outgoing: Sized {
    /// The payload: moved if it may be.
    fn payload(self, may_move: bool) -> Payload;

    /// How many bytes the message has when it is packed, in its body and in bulk buffers; 0 as far as that cannot be told
    /// without making the payload.
    fn packed_bytes(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Appends the message to `out` as the bytes that [`payload`](Self::payload) would have, and returns its bulk
    /// buffers.
    ///
    /// # Errors
    /// The message itself, with `out` as it was, where the bytes cannot be had without making the payload.
    fn write(self, out: &mut Vec<u8>) -> Result<Vec<Buffer>, Self> {
        let _ = out;
        Err(self)
    }
}

impl<F: FnOnce(bool) -> Payload> Outgoing for F {
    #[inline]
    fn payload(self, may_move: bool) -> Payload {
        self(may_move)
    }
}

/// A message of any type on its way out. What takes one of these exists once and not once for each type of message; the
/// quickest way, to an element of the same PE, does not take it.
pub(crate) trait Unsent {
    /// As [`Outgoing::payload`], which is to be asked for once: it is empty afterwards.
    fn payload(&mut self, may_move: bool) -> Payload;

    /// As [`Outgoing::write`]; `None` where the payload has to be made.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<Vec<Buffer>>;
}

impl<M: Outgoing> Unsent for Option<M> {
    fn payload(&mut self, may_move: bool) -> Payload {
        match self.take() {
            Some(message) => message.payload(may_move),
            None => Payload::packed(Packed::default()),
        }
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<Vec<Buffer>> {
        match self.take()?.write(out) {
            Ok(attachments) => Some(attachments),
            Err(message) => {
                *self = Some(message);
                None
            }
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value"),
            Self::Packed(packed) => packed.fmt(f),
        }
    }
}
