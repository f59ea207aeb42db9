//! Values of any shape.

use super::shape::Number;
use crate::buffer::Buffer;

/// A value of any shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Unit,
    /// True or false.
    Bool(bool),
    /// A character.
    Char(char),
    /// UTF-8.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Nothing, or a value.
    Option(Option<Box<Self>>),
    /// Values of one shape, any count.
    Seq(Vec<Self>),
    /// Values of a tuple.
    Tuple(Vec<Self>),
    /// Pairs of key and value.
    Map(Vec<(Self, Self)>),
    /// Fields with their names.
    Struct(Vec<(String, Self)>),
    /// Number and name of a variant, and what it holds.
    Variant(u32, String, Box<Self>),
    /// A number by its bits; where it has a sign that is carried on to the left.
    Number(Number, u128),
    /// Numbers, little-endian.
    Bulk(Number, Buffer),
}
