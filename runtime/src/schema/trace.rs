//! Finds the shape of a type by deserialising it from nothing, as often as it takes to have seen all variants of all enums.
//!
//! The deserialiser is asked for one part after the other, notes what it is asked for, and answers with ones and with as
//! little as it can. The idea is that of the crate serde-reflection, which needs a table of all types, of which no two
//! may have the same name, and cannot tell `usize` from `u64`.

use super::shape::{Number, Shape};
use serde::de::value::{Error, U32Deserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer as _,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::fmt;

/// A newtype whose name is this and then the name of a number is a bulk array of such numbers.
pub const BULK: &str = "Bulk of ";

/// A type of which less than so many passes see all has more variants than anybody reads.
const PASSES_MAX: usize = 4096;
/// Types inside each other.
const TYPES_MAX: usize = 64;
/// A manifest is JSON, of which readers read 128 levels.
const LEVELS_MAX: usize = 100;
/// So deep a value of a type that holds itself is never ended.
const SCRATCH_MAX: u32 = 64;

/// The shape of `T`; [`Shape::Opaque`] if its `Deserialize` does not say: it takes whatever comes, or accepts only certain
/// values.
#[must_use]
pub fn shape_of<T: DeserializeOwned>() -> Shape {
    // Most types that do not take a one take a zero.
    [1, 0]
        .into_iter()
        .find_map(shape_from::<T>)
        .filter(|shape| levels(shape) <= LEVELS_MAX)
        .unwrap_or_default()
}

fn shape_from<T: DeserializeOwned>(number: u8) -> Option<Shape> {
    let mut shape = Shape::Opaque;
    for _ in 0..PASSES_MAX {
        let before = shape.clone();
        let mut pass = Pass { number, around: Vec::new(), scratch: 0 };
        T::deserialize(Tracer { pass: &mut pass, shape: &mut shape }).ok()?;
        if is_known(&shape) {
            return Some(shape);
        }
        if shape == before {
            return None;
        }
    }
    None
}

/// Whether all of it has been seen.
fn is_known(shape: &Shape) -> bool {
    match shape {
        Shape::Opaque => false,
        Shape::Option(of) | Shape::Seq(of) | Shape::Named(_, of) => is_known(of),
        Shape::Map(key, of) => is_known(key) && is_known(of),
        Shape::Tuple(parts) => parts.iter().all(is_known),
        Shape::Struct(parts) | Shape::Enum(parts) => parts.iter().all(|(_, part)| is_known(part)),
        _ => true,
    }
}

/// How many levels it has as JSON.
fn levels(shape: &Shape) -> usize {
    match shape {
        Shape::Option(of) | Shape::Seq(of) => 1 + levels(of),
        Shape::Named(_, of) => 2 + levels(of),
        Shape::Map(key, of) => 2 + levels(key).max(levels(of)),
        Shape::Tuple(parts) => 2 + parts.iter().map(levels).max().unwrap_or(0),
        Shape::Struct(parts) | Shape::Enum(parts) => {
            3 + parts.iter().map(|(_, part)| levels(part)).max().unwrap_or(0)
        }
        _ => 1,
    }
}

struct Pass {
    /// What numbers are.
    number: u8,
    /// The named types around the present part: what deserialises them, and their names.
    around: Vec<(&'static str, &'static str)>,
    /// How many values that only have to come to an end are inside each other.
    scratch: u32,
}

impl Pass {
    /// Begins with a type; what is inside it, or `None` if it is inside itself. No generic code: there would be a copy of it
    /// for each type.
    #[inline(never)]
    fn enter<'a>(
        &mut self,
        shape: &'a mut Shape,
        maker: &'static str,
        name: &'static str,
    ) -> Result<Option<&'a mut Shape>, Error> {
        if let Some(at) = self.around.iter().position(|(of, _)| *of == maker) {
            let nearest = self.around.iter().rposition(|(_, of)| *of == name);
            if nearest != Some(at) || self.scratch > SCRATCH_MAX {
                return Err(Error::custom("a type that holds itself has the name of another"));
            }
            note(shape, Shape::Again(name.into()))?;
            self.scratch += 1;
            return Ok(None);
        }
        if self.around.len() >= TYPES_MAX {
            return Err(Error::custom("too many types are inside each other"));
        }
        let Shape::Named(_, inside) = note(shape, Shape::Named(name.into(), unseen()))? else {
            return Err(Error::custom("it has no name"));
        };
        self.around.push((maker, name));
        Ok(Some(inside))
    }

    fn leave(&mut self, is_again: bool) {
        if is_again {
            self.scratch -= 1;
        } else {
            self.around.pop();
        }
    }
}

struct Tracer<'a> {
    pass: &'a mut Pass,
    shape: &'a mut Shape,
}

/// Notes what a part is, and fails if it was something else in an earlier pass.
#[inline(never)]
fn note(shape: &mut Shape, is: Shape) -> Result<&mut Shape, Error> {
    if *shape == Shape::Opaque {
        *shape = is;
        return Ok(shape);
    }
    let names = |parts: &[(String, Shape)]| parts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let is_same = match (&*shape, &is) {
        (Shape::Struct(a), Shape::Struct(b)) | (Shape::Enum(a), Shape::Enum(b)) => names(a) == names(b),
        (Shape::Tuple(a), Shape::Tuple(b)) => a.len() == b.len(),
        (Shape::Named(a, _), Shape::Named(b, _)) => a == b,
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    if is_same { Ok(shape) } else { Err(Error::custom("it is not always the same")) }
}

#[inline(never)]
fn fields_of<'a>(shape: &'a mut Shape, names: &[&str]) -> Result<&'a mut [(String, Shape)], Error> {
    match note(shape, Shape::Struct(parts(names)))? {
        Shape::Struct(fields) => Ok(fields),
        _ => Err(Error::custom("it is no struct")),
    }
}

fn unseen() -> Box<Shape> {
    Box::default()
}

fn parts(names: &[&str]) -> Vec<(String, Shape)> {
    names.iter().map(|name| ((*name).to_string(), Shape::Opaque)).collect()
}

/// What a visitor expects, in its own words: those for `usize` name it, and nothing else tells it from `u64`.
struct Expected<'a, V>(&'a V);

impl<'de, V: Visitor<'de>> fmt::Display for Expected<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}

impl<'a> Tracer<'a> {
    fn part<'b>(pass: &'b mut Pass, shape: &'b mut Shape) -> Tracer<'b> {
        Tracer { pass, shape }
    }

    /// Of the type that `V` makes. Where that is inside itself, a value of it is made that ends soon.
    fn named<'de, V: Visitor<'de>>(
        self,
        name: &'static str,
        trace: impl FnOnce(Tracer<'_>) -> Result<V::Value, Error>,
    ) -> Result<V::Value, Error> {
        let inside = self.pass.enter(self.shape, std::any::type_name::<V>(), name)?;
        let is_again = inside.is_none();
        let mut unheeded = Shape::Opaque;
        let value = trace(Self::part(self.pass, inside.unwrap_or(&mut unheeded)));
        self.pass.leave(is_again);
        value
    }

    fn leaf(&mut self, is: Shape) -> Result<(), Error> {
        note(self.shape, is).map(drop)
    }

    fn tuple<'de, V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        let Shape::Tuple(parts) = note(self.shape, Shape::Tuple(vec![Shape::Opaque; len]))? else {
            return Err(Error::custom("it is no tuple"));
        };
        visitor.visit_seq(Parts { pass: self.pass, left: &mut parts.iter_mut() })
    }

    fn fields<'de, V: Visitor<'de>>(self, names: &[&str], visitor: V) -> Result<V::Value, Error> {
        let fields = fields_of(self.shape, names)?;
        visitor.visit_seq(Parts { pass: self.pass, left: &mut fields.iter_mut().map(|(_, field)| field) })
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $number:ident;)*) => { $(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
            self.leaf(Shape::Number(Number::$number))?;
            visitor.$visit(self.pass.number.into())
        }
    )* };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    numbers! {
        deserialize_u8 visit_u8 U8;
        deserialize_u16 visit_u16 U16;
        deserialize_u32 visit_u32 U32;
        deserialize_u128 visit_u128 U128;
        deserialize_i16 visit_i16 I16;
        deserialize_i32 visit_i32 I32;
        deserialize_i128 visit_i128 I128;
        deserialize_f32 visit_f32 F32;
        deserialize_f64 visit_f64 F64;
    }

    fn deserialize_i8<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.leaf(Shape::Number(Number::I8))?;
        visitor.visit_i8(i8::from(self.pass.number == 1))
    }

    fn deserialize_u64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let is_address = Expected(&visitor).to_string().ends_with("usize");
        self.leaf(Shape::Number(if is_address { Number::Usize } else { Number::U64 }))?;
        visitor.visit_u64(self.pass.number.into())
    }

    fn deserialize_i64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let is_address = Expected(&visitor).to_string().ends_with("isize");
        self.leaf(Shape::Number(if is_address { Number::Isize } else { Number::I64 }))?;
        visitor.visit_i64(self.pass.number.into())
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("it takes whatever comes"))
    }

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.leaf(Shape::Bool)?;
        visitor.visit_bool(false)
    }

    fn deserialize_char<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.leaf(Shape::Char)?;
        visitor.visit_char('1')
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.leaf(Shape::Text)?;
        visitor.visit_str("")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.leaf(Shape::Bytes)?;
        visitor.visit_bytes(&[])
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.leaf(Shape::Bytes)?;
        visitor.visit_byte_buf(Vec::new())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Shape::Option(of) = note(self.shape, Shape::Option(unseen()))? else {
            return Err(Error::custom("it is not optional"));
        };
        if self.pass.scratch > 0 || is_known(of) {
            return visitor.visit_none();
        }
        visitor.visit_some(Self::part(self.pass, of))
    }

    fn deserialize_unit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.leaf(Shape::Unit)?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.named::<V>(name, |inside| inside.deserialize_unit(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Some(number) = name.strip_prefix(BULK).and_then(Number::of_name) else {
            return self.named::<V>(name, |inside| visitor.visit_newtype_struct(inside));
        };
        self.leaf(Shape::Bulk(number))?;
        // As in a type that holds itself, its last variant is taken: the one with all numbers inside.
        let outer = std::mem::replace(&mut self.pass.scratch, 1);
        let array = visitor.visit_newtype_struct(Self::part(self.pass, &mut Shape::Opaque));
        self.pass.scratch = outer;
        array
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Shape::Seq(of) = note(self.shape, Shape::Seq(unseen()))? else {
            return Err(Error::custom("it is no sequence"));
        };
        let is_seen = self.pass.scratch > 0 || is_known(of);
        visitor.visit_seq(Parts { pass: self.pass, left: &mut (!is_seen).then_some(&mut **of).into_iter() })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.tuple(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.named::<V>(name, |inside| inside.tuple(len, visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Shape::Map(key, of) = note(self.shape, Shape::Map(unseen(), unseen()))? else {
            return Err(Error::custom("it is no map"));
        };
        let is_seen = self.pass.scratch > 0 || is_known(key) && is_known(of);
        visitor.visit_map(Pair { pass: self.pass, key: (!is_seen).then_some(key), value: Some(of) })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.named::<V>(name, |inside| inside.fields(fields, visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.named::<V>(name, |inside| {
            let Shape::Enum(known) = note(inside.shape, Shape::Enum(parts(variants)))? else {
                return Err(Error::custom("it is no enum"));
            };
            let unseen = known.iter().position(|(_, variant)| !is_known(variant)).unwrap_or(0);
            // A value that has to end takes another variant at each level: one of them does not hold the type itself.
            let deep = inside.pass.scratch as usize;
            let number = if deep > 0 {
                known.len().saturating_sub(1 + (deep - 1) % known.len().max(1))
            } else {
                unseen
            };
            let Some((_, variant)) = known.get_mut(number) else {
                return Err(Error::custom("there is none of it"));
            };
            visitor.visit_enum(Variant { pass: inside.pass, number: number as u32, shape: variant })
        })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("it reads its own names"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Parts in their order. The iterators of a tuple's and a struct's are not of one type, and behind a pointer they need no
/// code of their own for each type of a part.
struct Parts<'a> {
    pass: &'a mut Pass,
    left: &'a mut dyn Iterator<Item = &'a mut Shape>,
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        match self.left.next() {
            Some(shape) => seed.deserialize(Tracer::part(self.pass, shape)).map(Some),
            None => Ok(None),
        }
    }
}

/// A map of one pair at most.
struct Pair<'a> {
    pass: &'a mut Pass,
    key: Option<&'a mut Box<Shape>>,
    value: Option<&'a mut Box<Shape>>,
}

impl<'de> MapAccess<'de> for Pair<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        self.key.take().map(|shape| seed.deserialize(Tracer::part(self.pass, shape))).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let shape = self.value.take().ok_or_else(|| Error::custom("it wants a value without a key"))?;
        seed.deserialize(Tracer::part(self.pass, shape))
    }
}

struct Variant<'a> {
    pass: &'a mut Pass,
    number: u32,
    shape: &'a mut Shape,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let number: U32Deserializer<Error> = self.number.into_deserializer();
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        note(self.shape, Shape::Unit).map(drop)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(Tracer::part(self.pass, self.shape))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        Tracer::part(self.pass, self.shape).tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        Tracer::part(self.pass, self.shape).fields(fields, visitor)
    }
}
