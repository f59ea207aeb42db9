//! From bytes to values, by their shape.

use super::shape::{Number, Scope, Shape};
use super::value::Value;
use crate::buffer::Buffer;
use crate::payload::Packed;

/// Values inside each other.
const LEVELS_MAX: u32 = 256;
/// So many values may have no bytes at all, where nothing bounds their count.
const EMPTY_MAX: usize = 1 << 16;

/// Bytes that are not of the shape that they are said to have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at} is not of the shape that its type has: {what}")]
pub struct Malformed {
    /// Where in the body.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl Value {
    /// The value that bytes of that shape hold.
    ///
    /// # Errors
    /// If the bytes are not of that shape, more or less than one value, or the shape is opaque.
    pub fn read(shape: &Shape, packed: &Packed) -> Result<Self, Malformed> {
        let mut reader = Reader { body: &packed.body, at: 0, attachments: &packed.attachments, levels: 0 };
        let value = reader.value(shape, None)?;
        if reader.at < packed.body.len() {
            return Err(reader.wrong("something follows its end"));
        }
        Ok(value)
    }
}

struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    attachments: &'a [Buffer],
    levels: u32,
}

impl<'a> Reader<'a> {
    fn wrong(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, what }
    }

    fn value(&mut self, shape: &Shape, scope: Option<&Scope<'_>>) -> Result<Value, Malformed> {
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            return Err(self.wrong("too many values are inside each other"));
        }
        let value = self.of_shape(shape, scope);
        self.levels -= 1;
        value
    }

    fn of_shape(&mut self, shape: &Shape, scope: Option<&Scope<'_>>) -> Result<Value, Malformed> {
        Ok(match shape {
            Shape::Opaque => return Err(self.wrong("the shape is opaque")),
            Shape::Unit => Value::Unit,
            Shape::Bool => Value::Bool(self.flag()?),
            Shape::Char => Value::Char(self.character()?),
            Shape::Text => Value::Text(self.text()?.to_string()),
            Shape::Bytes => Value::Bytes(self.bytes()?.to_vec()),
            Shape::Number(number) => Value::Number(*number, self.number(*number)?),
            Shape::Option(of) => {
                let is_some = self.flag()?;
                Value::Option(is_some.then(|| self.value(of, scope)).transpose()?.map(Box::new))
            }
            Shape::Seq(of) => {
                let count = self.count()?;
                Value::Seq((0..count).map(|_| self.value(of, scope)).collect::<Result<_, _>>()?)
            }
            Shape::Map(key, of) => {
                let count = self.count()?;
                let pairs = (0..count).map(|_| Ok((self.value(key, scope)?, self.value(of, scope)?)));
                Value::Map(pairs.collect::<Result<_, Malformed>>()?)
            }
            Shape::Tuple(parts) => {
                Value::Tuple(parts.iter().map(|part| self.value(part, scope)).collect::<Result<_, _>>()?)
            }
            Shape::Struct(fields) => {
                let fields = fields.iter().map(|(name, field)| Ok((name.clone(), self.value(field, scope)?)));
                Value::Struct(fields.collect::<Result<_, Malformed>>()?)
            }
            Shape::Enum(variants) => {
                let number = self.number(Number::U32)? as u32;
                let variant =
                    variants.get(number as usize).ok_or_else(|| self.wrong("there is no such variant"))?;
                Value::Variant(number, variant.0.clone(), Box::new(self.value(&variant.1, scope)?))
            }
            Shape::Named(name, inside) => {
                self.value(inside, Some(&Scope { name, shape: inside, outer: scope }))?
            }
            Shape::Again(name) => match Scope::find(scope, name) {
                Some((again, _)) => self.value(again.shape, Some(again))?,
                None => return Err(self.wrong("the shape names a type that is not around it")),
            },
            Shape::Bulk(number) => Value::Bulk(*number, self.bulk(*number)?),
        })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.body.get(self.at..).and_then(|rest| rest.get(..count));
        let taken = rest.ok_or_else(|| self.wrong("it ends too early"))?;
        self.at += count;
        Ok(taken)
    }

    fn varint(&mut self, bits: u32) -> Result<u128, Malformed> {
        let mut value = 0u128;
        for shift in (0..bits).step_by(7) {
            let byte = self.take(1)?[0];
            let part = u128::from(byte & 0x7f);
            if shift + 7 > bits && part >> (bits - shift) != 0 {
                return Err(self.wrong("a number is too big"));
            }
            value |= part << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number is too long"))
    }

    fn number(&mut self, number: Number) -> Result<u128, Malformed> {
        let size = number.size_bytes();
        if size == 1 || number.is_float() {
            return Ok(number.of_bytes(self.take(size)?));
        }
        let value = self.varint(size as u32 * 8)?;
        // Signed ones are in zigzag: 0, -1, 1, -2, ….
        Ok(if number.is_signed() { (value >> 1) ^ (value & 1).wrapping_neg() } else { value })
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.wrong("it is neither 0 nor 1")),
        }
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        let length = self.varint(64)?;
        usize::try_from(length).map_err(|_| self.wrong("a length is impossible"))
    }

    /// A count of values, of which not each need have bytes.
    fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.length()?;
        if count > EMPTY_MAX.max(self.body.len() - self.at) {
            return Err(self.wrong("it ends too early for so many values"));
        }
        Ok(count)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        let at = self.at;
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed { at, what: "text is not UTF-8" })
    }

    fn character(&mut self) -> Result<char, Malformed> {
        let at = self.at;
        let mut characters = self.text()?.chars();
        match (characters.next(), characters.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(Malformed { at, what: "it is not one character" }),
        }
    }

    fn bulk(&mut self, number: Number) -> Result<Buffer, Malformed> {
        let buffer = match self.varint(32)? {
            0 => {
                let (which, count) = (self.varint(32)?, self.varint(64)?);
                let attached = usize::try_from(which).ok().and_then(|which| self.attachments.get(which));
                let attached = attached.ok_or_else(|| self.wrong("a bulk array is missing"))?;
                let length = count.checked_mul(number.size_bytes() as u128);
                if length != Some(attached.len() as u128) {
                    return Err(self.wrong("a bulk array has another length"));
                }
                attached.clone()
            }
            1 => Buffer::from_slice(self.bytes()?),
            _ => return Err(self.wrong("a bulk array is in an unknown place")),
        };
        if buffer.len() % number.size_bytes() != 0 {
            return Err(self.wrong("a bulk array has a part of a number"));
        }
        Ok(buffer)
    }
}
