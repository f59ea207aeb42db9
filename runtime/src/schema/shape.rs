//! What types are made of.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a type is made of, as far as its encoding goes, with the names of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// It could not be found out.
    #[default]
    Opaque,
    /// No bytes.
    Unit,
    /// True or false.
    Bool,
    /// A character.
    Char,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
    /// Nothing, or one of these.
    Option(Box<Self>),
    /// Any count of these.
    Seq(Box<Self>),
    /// Any count of pairs of key and value.
    Map(Box<Self>, Box<Self>),
    /// One of each, in order.
    Tuple(Vec<Self>),
    /// The same, with names.
    Struct(Vec<(String, Self)>),
    /// One of these variants, by its name.
    Enum(Vec<(String, Self)>),
    /// A type with a name that is made of this.
    Named(String, Box<Self>),
    /// The same as the innermost named type of that name around it.
    Again(String),
    /// A bulk array of numbers.
    Bulk(Number),
    /// One number.
    #[serde(untagged)]
    Number(Number),
}

/// Kinds of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "these are Rust's own names")]
pub enum Number {
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    I128,
    /// As wide as the machine's addresses, and saved as if that were 64 bits.
    Usize,
    /// The same, signed.
    Isize,
    F32,
    F64,
}

impl Number {
    const ALL: [(Self, &'static str, usize); 14] = [
        (Self::U8, "u8", 1),
        (Self::U16, "u16", 2),
        (Self::U32, "u32", 4),
        (Self::U64, "u64", 8),
        (Self::U128, "u128", 16),
        (Self::I8, "i8", 1),
        (Self::I16, "i16", 2),
        (Self::I32, "i32", 4),
        (Self::I64, "i64", 8),
        (Self::I128, "i128", 16),
        (Self::Usize, "usize", 8),
        (Self::Isize, "isize", 8),
        (Self::F32, "f32", 4),
        (Self::F64, "f64", 8),
    ];

    /// Rust's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Bytes of one, where it has as many as any other.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        Self::ALL[self as usize].2
    }

    /// The one of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own, _)| *own == name).map(|(number, ..)| *number)
    }

    /// Whether it has a sign and is whole.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::I128 | Self::Isize)
    }

    /// Whether it is a floating-point number.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The number in so many little-endian bytes: its bits, a sign being carried on to the left.
    ///
    /// # Panics
    /// If there are more than 16.
    #[must_use]
    pub fn of_bytes(self, little: &[u8]) -> u128 {
        let is_negative = self.is_signed() && little.last().is_some_and(|last| *last >= 0x80);
        let mut bytes = if is_negative { [0xff; 16] } else { [0; 16] };
        bytes[..little.len()].copy_from_slice(little);
        u128::from_le_bytes(bytes)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opaque => f.write_str("opaque"),
            Self::Unit => f.write_str("nothing"),
            Self::Bool => f.write_str("bool"),
            Self::Char => f.write_str("a character"),
            Self::Text => f.write_str("text"),
            Self::Bytes => f.write_str("bytes"),
            Self::Option(of) => write!(f, "optional {of}"),
            Self::Seq(of) => write!(f, "a list of {of}"),
            Self::Map(key, of) => write!(f, "a map from {key} to {of}"),
            Self::Tuple(parts) => write!(f, "a tuple of {}", parts.len()),
            Self::Struct(fields) => write!(f, "a struct of {}", fields.len()),
            Self::Enum(variants) => write!(f, "an enum of {}", variants.len()),
            Self::Named(name, _) | Self::Again(name) => f.write_str(name),
            Self::Bulk(number) => write!(f, "a bulk array of {}", number.name()),
            Self::Number(number) => f.write_str(number.name()),
        }
    }
}

/// The named types around a shape, innermost first.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) name: &'a str,
    pub(super) shape: &'a Shape,
    pub(super) outer: Option<&'a Self>,
}

impl<'a> Scope<'a> {
    /// The innermost of that name, and how many lie inside it.
    pub(super) fn find(scope: Option<&'a Self>, name: &str) -> Option<(&'a Self, usize)> {
        let around = std::iter::successors(scope, |scope| scope.outer).enumerate();
        around.into_iter().find(|(_, scope)| scope.name == name).map(|(inside, scope)| (scope, inside))
    }
}
