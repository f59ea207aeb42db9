//! Where two shapes differ, and which values do not fit on a machine.

use super::path::Path;
use super::shape::{Number, Scope, Shape};
use super::value::Value;

/// A part that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {what}")]
pub struct Change {
    /// Which part.
    pub path: Path,
    /// What it was and is now.
    pub what: String,
}

/// A number that a machine has no room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is {value}, and machines of {pointer_bits} bits have no such {number}")]
pub struct Misfit {
    /// Where it is.
    pub path: Path,
    /// The number.
    pub value: String,
    /// `usize` or `isize`.
    pub number: &'static str,
    /// The width of the machine's addresses.
    pub pointer_bits: u32,
}

/// The first part that values of shape `was` cannot be read as if they were of shape `is`. Names of types make no difference,
/// and those of fields and variants do: two numbers that have changed places would be taken for each other.
#[must_use]
pub fn difference(was: &Shape, is: &Shape) -> Option<Change> {
    differs(Side { shape: was, scope: None }, Side { shape: is, scope: None }, &Path::default())
}

#[derive(Clone, Copy)]
struct Side<'a> {
    shape: &'a Shape,
    scope: Option<&'a Scope<'a>>,
}

impl<'a> Side<'a> {
    fn of(self, shape: &'a Shape) -> Self {
        Self { shape, ..self }
    }
}

fn differs(was: Side<'_>, is: Side<'_>, path: &Path) -> Option<Change> {
    match (was.shape, is.shape) {
        (Shape::Named(name, inside), _) => {
            let scope = Scope { name, shape: inside, outer: was.scope };
            match is.shape {
                Shape::Named(name, own) => {
                    let own_scope = Scope { name, shape: own, outer: is.scope };
                    let is = Side { shape: own, scope: Some(&own_scope) };
                    differs(Side { shape: inside, scope: Some(&scope) }, is, path)
                }
                _ => differs(Side { shape: inside, scope: Some(&scope) }, is, path),
            }
        }
        (_, Shape::Named(name, inside)) => {
            let scope = Scope { name, shape: inside, outer: is.scope };
            differs(was, Side { shape: inside, scope: Some(&scope) }, path)
        }
        (Shape::Again(a), Shape::Again(b)) => {
            let level = |side: Side<'_>, name: &str| Scope::find(side.scope, name).map(|(_, inside)| inside);
            if level(was, a) == level(is, b) { None } else { Some(changed(was, is, path)) }
        }
        (Shape::Option(a), Shape::Option(b)) => differs(was.of(a), is.of(b), path),
        (Shape::Seq(a), Shape::Seq(b)) => differs(was.of(a), is.of(b), &path.each()),
        (Shape::Map(key, a), Shape::Map(own, b)) => differs(was.of(key), is.of(own), &path.each())
            .or_else(|| differs(was.of(a), is.of(b), &path.each())),
        (Shape::Tuple(a), Shape::Tuple(b)) if a.len() == b.len() => (a.iter().zip(b).enumerate())
            .find_map(|(at, (a, b))| differs(was.of(a), is.of(b), &path.field(&at.to_string()))),
        (Shape::Struct(a), Shape::Struct(b)) | (Shape::Enum(a), Shape::Enum(b)) => {
            parts_differ((was, a), (is, b), path)
        }
        (a, b) if same_bytes(a, b) => None,
        _ => Some(changed(was, is, path)),
    }
}

type Parts<'a> = (Side<'a>, &'a [(String, Shape)]);

fn parts_differ((was, a): Parts<'_>, (is, b): Parts<'_>, path: &Path) -> Option<Change> {
    let at = |name: &String, parts: &[(String, Shape)]| parts.iter().position(|(own, _)| own == name);
    for (number, (name, shape)) in a.iter().enumerate() {
        let path = path.field(name);
        let what = match at(name, b) {
            None => format!("was {shape} and is not there now"),
            Some(now) if now != number && b.iter().all(|(own, _)| at(own, a).is_some()) => {
                format!("was number {} and is number {} now", number + 1, now + 1)
            }
            Some(now) => match differs(was.of(shape), is.of(&b[now].1), &path) {
                Some(change) => return Some(change),
                None => continue,
            },
        };
        return Some(Change { path, what });
    }
    let (name, shape) = b.iter().find(|(name, _)| at(name, a).is_none())?;
    Some(Change { path: path.field(name), what: format!("is {shape} now and was not there") })
}

fn same_bytes(a: &Shape, b: &Shape) -> bool {
    let wide = |shape: &Shape| match shape {
        Shape::Number(Number::Usize) => Shape::Number(Number::U64),
        Shape::Number(Number::Isize) => Shape::Number(Number::I64),
        Shape::Struct(_) | Shape::Enum(_) | Shape::Tuple(_) => Shape::Opaque,
        other => other.clone(),
    };
    std::mem::discriminant(a) == std::mem::discriminant(b) && wide(a) == wide(b)
}

fn changed(was: Side<'_>, is: Side<'_>, path: &Path) -> Change {
    Change { path: path.clone(), what: format!("was {} and is {} now", was.shape, is.shape) }
}

/// The first number of a value that machines with addresses of so many bits cannot have as it is.
#[must_use]
pub fn fits(value: &Value, pointer_bits: u32) -> Option<Misfit> {
    if pointer_bits >= 64 {
        return None;
    }
    misfit(value, pointer_bits, &Path::default())
}

fn misfit(value: &Value, pointer_bits: u32, path: &Path) -> Option<Misfit> {
    match value {
        Value::Option(Some(of)) => misfit(of, pointer_bits, path),
        Value::Seq(values) => {
            (values.iter().enumerate()).find_map(|(at, value)| misfit(value, pointer_bits, &path.at(at)))
        }
        Value::Tuple(values) => (values.iter().enumerate())
            .find_map(|(at, value)| misfit(value, pointer_bits, &path.field(&at.to_string()))),
        Value::Map(pairs) => pairs.iter().find_map(|(key, value)| {
            let path = path.each();
            misfit(key, pointer_bits, &path).or_else(|| misfit(value, pointer_bits, &path))
        }),
        Value::Struct(fields) => {
            (fields.iter()).find_map(|(name, field)| misfit(field, pointer_bits, &path.field(name)))
        }
        Value::Variant(_, name, inside) => misfit(inside, pointer_bits, &path.field(name)),
        Value::Number(number @ (Number::Usize | Number::Isize), bits) => {
            let is_signed = *number == Number::Isize;
            let width = pointer_bits - u32::from(is_signed);
            // What is left of a number that fits is all zeros, or all of the sign.
            let left = (*bits as i128) >> width;
            let is_fit = left == 0 || is_signed && left == -1;
            let value = if is_signed { (*bits as i128).to_string() } else { bits.to_string() };
            (!is_fit).then(|| Misfit { path: path.clone(), value, number: number.name(), pointer_bits })
        }
        _ => None,
    }
}
