//! Values as people and scripts read and write them.

use super::shape::{Number, Scope, Shape};
use super::value::Value;
use crate::buffer::Buffer;
use serde_json::{Value as Json, json};

/// A text that is no value of the shape that is needed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not {wanted}")]
pub struct Unfit {
    /// What was given.
    pub text: String,
    /// What is needed.
    pub wanted: String,
}

/// The most characters of a text that is not what is needed.
const SHOWN_MAX: usize = 60;

impl Value {
    /// The value as JSON: structs as objects, tuples, sequences and bulk arrays as lists, maps as lists of pairs, variants by
    /// name, with what they hold in an object; numbers that JSON does not have, as text.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Unit | Self::Option(None) => Json::Null,
            Self::Bool(is_so) => json!(is_so),
            Self::Char(one) => json!(one),
            Self::Text(text) => json!(text),
            Self::Bytes(bytes) => json!(bytes),
            Self::Option(Some(of)) => of.to_json(),
            Self::Seq(values) | Self::Tuple(values) => values.iter().map(Self::to_json).collect(),
            Self::Map(pairs) => pairs.iter().map(|(key, of)| json!([key.to_json(), of.to_json()])).collect(),
            Self::Struct(fields) => {
                Json::Object(fields.iter().map(|(name, of)| (name.clone(), of.to_json())).collect())
            }
            Self::Variant(_, name, inside) => match &**inside {
                Self::Unit => json!(name),
                inside => json!({ name: inside.to_json() }),
            },
            Self::Number(number, bits) => number_to_json(*number, *bits),
            Self::Bulk(number, buffer) => {
                let numbers = buffer.bytes().chunks_exact(number.size_bytes());
                numbers.map(|one| number_to_json(*number, number.of_bytes(one))).collect()
            }
        }
    }

    /// The value of that shape that JSON as [`to_json`](Self::to_json) makes it says.
    ///
    /// # Errors
    /// If it says none.
    pub fn from_json(shape: &Shape, json: &Json) -> Result<Self, Unfit> {
        of_json(shape, None, json)
    }

    /// How a key of a map is written in a path.
    pub(super) fn plain_text(&self) -> String {
        match self.to_json() {
            Json::String(text) => text,
            other => other.to_string(),
        }
    }
}

fn number_to_json(number: Number, bits: u128) -> Json {
    let float = match number {
        Number::F32 => f64::from(f32::from_bits(bits as u32)),
        Number::F64 => f64::from_bits(bits as u64),
        _ if number.is_signed() => {
            let value = bits as i128;
            return i64::try_from(value).map_or_else(|_| json!(value.to_string()), Json::from);
        }
        _ => return u64::try_from(bits).map_or_else(|_| json!(bits.to_string()), Json::from),
    };
    // JSON has no numbers for infinities and what is no number.
    serde_json::Number::from_f64(float).map_or_else(|| json!(float.to_string()), Json::Number)
}

fn number_of_json(number: Number, json: &Json) -> Option<u128> {
    let text = match json {
        Json::Number(of) => of.to_string(),
        Json::String(text) => text.clone(),
        _ => return None,
    };
    let bits = number.size_bytes() * 8;
    match number {
        Number::F32 => text.parse::<f64>().ok().map(|float| (float as f32).to_bits().into()),
        Number::F64 => text.parse::<f64>().ok().map(|float| float.to_bits().into()),
        _ if number.is_signed() => {
            let value = text.parse::<i128>().ok()?;
            let left = value >> (bits - 1);
            (left == 0 || left == -1).then_some(value as u128)
        }
        _ => text.parse::<u128>().ok().filter(|value| bits == 128 || value >> bits == 0),
    }
}

fn unfit(shape: &Shape, json: &Json) -> Unfit {
    let text = json.to_string();
    let text = match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    };
    Unfit { text, wanted: shape.to_string() }
}

/// The name of a variant, and what it holds.
fn variant_of_json(json: &Json) -> Option<(&str, &Json)> {
    if let Some(name) = json.as_str() {
        return Some((name, &Json::Null));
    }
    let (name, inside) = json.as_object().filter(|object| object.len() == 1)?.iter().next()?;
    Some((name, inside))
}

fn of_json(shape: &Shape, scope: Option<&Scope<'_>>, json: &Json) -> Result<Value, Unfit> {
    let no = || unfit(shape, json);
    let list = || json.as_array().ok_or_else(no);
    Ok(match shape {
        Shape::Opaque => return Err(no()),
        Shape::Unit => json.is_null().then_some(Value::Unit).ok_or_else(no)?,
        Shape::Bool => Value::Bool(json.as_bool().ok_or_else(no)?),
        Shape::Char => {
            let mut characters = json.as_str().ok_or_else(no)?.chars();
            let one = characters.next().filter(|_| characters.next().is_none());
            Value::Char(one.ok_or_else(no)?)
        }
        Shape::Text => Value::Text(json.as_str().ok_or_else(no)?.into()),
        Shape::Bytes => {
            let byte = |one: &Json| number_of_json(Number::U8, one).map(|byte| byte as u8).ok_or_else(no);
            Value::Bytes(list()?.iter().map(byte).collect::<Result<_, _>>()?)
        }
        Shape::Option(_) if json.is_null() => Value::Option(None),
        Shape::Option(of) => Value::Option(Some(Box::new(of_json(of, scope, json)?))),
        Shape::Seq(of) => {
            Value::Seq(list()?.iter().map(|one| of_json(of, scope, one)).collect::<Result<_, _>>()?)
        }
        Shape::Tuple(parts) => {
            let values = list()?.iter();
            if values.len() != parts.len() {
                return Err(no());
            }
            let values = parts.iter().zip(values).map(|(part, one)| of_json(part, scope, one));
            Value::Tuple(values.collect::<Result<_, _>>()?)
        }
        Shape::Map(key, of) => {
            let pair = |pair: &Json| match pair.as_array().map(Vec::as_slice) {
                Some([a, b]) => Ok((of_json(key, scope, a)?, of_json(of, scope, b)?)),
                _ => Err(no()),
            };
            Value::Map(list()?.iter().map(pair).collect::<Result<_, _>>()?)
        }
        Shape::Struct(fields) => {
            let object = json.as_object().filter(|object| object.len() == fields.len()).ok_or_else(no)?;
            let field = |(name, of): &(String, Shape)| {
                Ok((name.clone(), of_json(of, scope, object.get(name).ok_or_else(no)?)?))
            };
            Value::Struct(fields.iter().map(field).collect::<Result<_, _>>()?)
        }
        Shape::Enum(variants) => {
            let (name, inside) = variant_of_json(json).ok_or_else(no)?;
            let number = variants.iter().position(|(own, _)| own == name).ok_or_else(no)?;
            Value::Variant(number as u32, name.into(), Box::new(of_json(&variants[number].1, scope, inside)?))
        }
        Shape::Named(name, inside) => {
            of_json(inside, Some(&Scope { name, shape: inside, outer: scope }), json)?
        }
        Shape::Again(name) => {
            let (again, _) = Scope::find(scope, name).ok_or_else(no)?;
            of_json(again.shape, Some(again), json)?
        }
        Shape::Number(number) => Value::Number(*number, number_of_json(*number, json).ok_or_else(no)?),
        Shape::Bulk(number) => {
            let mut bytes = Vec::new();
            for one in list()? {
                let bits = number_of_json(*number, one).ok_or_else(|| unfit(&Shape::Number(*number), one))?;
                bytes.extend_from_slice(&bits.to_le_bytes()[..number.size_bytes()]);
            }
            Value::Bulk(*number, Buffer::from_slice(&bytes))
        }
    })
}
