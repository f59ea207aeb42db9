//! Ways to the parts of values: `rows.left[3].x`.

use super::shape::{Scope, Shape};
use super::value::Value;
use crate::buffer::Buffer;
use std::fmt;
use std::str::FromStr;

/// The way from a value to a part of it. Options and the names of types take no step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A field, a variant or a part of a tuple.
    Field(String),
    /// An element, or the value of a key.
    At(String),
}

/// There is no such part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

impl Path {
    pub(super) fn field(&self, name: &str) -> Self {
        self.and(Step::Field(name.into()))
    }

    pub(super) fn at(&self, number: usize) -> Self {
        self.and(Step::At(number.to_string()))
    }

    /// Any element.
    pub(super) fn each(&self) -> Self {
        self.and(Step::At(String::new()))
    }

    fn and(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// The same from inside the field of that name, if it leads there.
    #[must_use]
    pub fn inside(&self, field: &str) -> Option<Self> {
        let (first, rest) = self.0.split_first()?;
        (*first == Step::Field(field.into())).then(|| Self(rest.to_vec()))
    }

    /// The same from outside the field of that name.
    #[must_use]
    pub fn outside(&self, field: &str) -> Self {
        Self([Step::Field(field.into())].into_iter().chain(self.0.iter().cloned()).collect())
    }

    /// The part of a value by the name of the value, or of its type.
    #[must_use]
    pub fn of(&self, name: &str) -> String {
        let dot = if matches!(self.0.first(), Some(Step::Field(_))) { "." } else { "" };
        format!("{name}{dot}{self}")
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if number == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::At(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Path {
    type Err = Unreachable;

    fn from_str(text: &str) -> Result<Self, Unreachable> {
        let wrong =
            || Unreachable(format!("`{text}` is no path: write fields and elements as in `rows.left[3]`"));
        let (mut steps, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (key, after) = inside.split_once(']').ok_or_else(wrong)?;
                steps.push(Step::At(key.into()));
                rest = after;
                continue;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            if name.is_empty() {
                return Err(wrong());
            }
            steps.push(Step::Field(name.into()));
            rest = after;
        }
        Ok(Self(steps))
    }
}

/// What is made of a part, of which the shape is known.
type Act<'a> = &'a mut dyn FnMut(&Shape, &mut Value) -> Result<(), String>;

impl Value {
    /// A copy of the part of this value, which is of that shape, to which a path leads.
    ///
    /// # Errors
    /// If there is no such part.
    pub fn part(&mut self, shape: &Shape, path: &Path) -> Result<Self, Unreachable> {
        let mut found = Self::Unit;
        self.change(shape, path, &mut |_, part| {
            found = part.clone();
            Ok(())
        })?;
        Ok(found)
    }

    /// Has the part to which a path leads changed by `act`, which is given the shape of the part, where names of types around
    /// it are not known any more.
    ///
    /// # Errors
    /// If there is no such part, or what `act` says.
    pub fn change(&mut self, shape: &Shape, path: &Path, act: Act<'_>) -> Result<(), Unreachable> {
        reach(self, (shape, None), &path.0, act).map_err(|what| Unreachable(format!("{path}: {what}")))
    }
}

fn reach(
    value: &mut Value,
    (shape, scope): (&Shape, Option<&Scope<'_>>),
    path: &[Step],
    act: Act<'_>,
) -> Result<(), String> {
    match shape {
        Shape::Named(name, inside) => {
            let own = Scope { name, shape: inside, outer: scope };
            return reach(value, (inside, Some(&own)), path, act);
        }
        Shape::Again(name) => {
            let (again, _) = Scope::find(scope, name).ok_or("its shape is not known")?;
            return reach(value, (again.shape, Some(again)), path, act);
        }
        _ => {}
    }
    let Some((step, rest)) = path.split_first() else { return act(shape, value) };
    match (value, shape, step) {
        (Value::Option(Some(inside)), Shape::Option(of), _) => reach(inside, (of, scope), path, act),
        (Value::Option(None), ..) => Err("there is nothing".into()),
        (Value::Struct(fields), Shape::Struct(shapes), Step::Field(name)) => {
            let at = fields.iter().position(|(own, _)| own == name);
            let names = || fields.iter().map(|(own, _)| own.as_str()).collect::<Vec<_>>().join(", ");
            let at = at.ok_or_else(|| format!("there is no field {name}; there are {}", names()))?;
            reach(&mut fields[at].1, (&shapes[at].1, scope), rest, act)
        }
        (Value::Variant(number, own, inside), Shape::Enum(shapes), Step::Field(name)) => {
            if own != name {
                return Err(format!("it is {own} and not {name}"));
            }
            reach(inside, (&shapes[*number as usize].1, scope), rest, act)
        }
        (Value::Tuple(parts), Shape::Tuple(shapes), Step::Field(at) | Step::At(at)) => {
            let at = element(at, parts.len())?;
            reach(&mut parts[at], (&shapes[at], scope), rest, act)
        }
        (Value::Seq(values), Shape::Seq(of), Step::At(at)) => {
            let at = element(at, values.len())?;
            reach(&mut values[at], (of, scope), rest, act)
        }
        (Value::Map(pairs), Shape::Map(_, of), Step::At(key)) => {
            let found = pairs.iter_mut().find(|(own, _)| own.plain_text() == *key);
            let (_, inside) = found.ok_or_else(|| format!("there is no key {key}"))?;
            reach(inside, (of, scope), rest, act)
        }
        (Value::Bulk(number, buffer), Shape::Bulk(_), Step::At(at)) if rest.is_empty() => {
            let size = number.size_bytes();
            let at = element(at, buffer.len() / size)? * size;
            let before = number.of_bytes(&buffer.bytes()[at..at + size]);
            let mut one = Value::Number(*number, before);
            act(&Shape::Number(*number), &mut one)?;
            if let Value::Number(_, bits) = one
                && bits != before
            {
                let mut changed = Buffer::from_slice(buffer.bytes());
                changed.bytes_mut()[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
                *buffer = changed;
            }
            Ok(())
        }
        (_, shape, Step::Field(name)) => Err(format!("{shape} has no field {name}")),
        (_, shape, Step::At(at)) => Err(format!("{shape} has no element [{at}]")),
    }
}

fn element(at: &str, len: usize) -> Result<usize, String> {
    let number = at.parse().ok().filter(|number| *number < len);
    number.ok_or_else(|| format!("there is no element {at}, only {len} from 0"))
}
