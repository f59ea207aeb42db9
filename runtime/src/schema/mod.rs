//! What types are made of, so that bytes without names can be read by name: also by a program that has changed, by one that
//! does not have the type, and by people.
//!
//! [`shape_of`] finds the [`Shape`] of a type from its `Deserialize`; [`Value`] is a value of any shape; [`difference`] says
//! where two shapes differ. The encoding itself is [postcard](https://postcard.jamesmunns.com/wire-format).

mod compare;
mod json;
mod path;
mod read;
mod shape;
mod trace;
mod value;
mod write;

pub use compare::{Change, Misfit, difference, fits};
pub use json::Unfit;
pub use path::{Path, Unreachable};
pub use read::Malformed;
pub use shape::{Number, Shape};
pub use trace::{BULK, shape_of};
pub use value::Value;

use crate::payload::Packed;
use std::sync::Arc;

/// The field of a chare's record that holds what the runtime keeps beside its state.
pub const BESIDE: &str = "runtime";
/// The field of a chare's record that holds the state of the chare itself.
pub const STATE: &str = "state";

/// How records of a type are understood.
#[derive(Clone)]
pub struct Schema {
    /// The program's number for what the type is now.
    pub version: u16,
    /// What its records are made of.
    pub shape: fn() -> Shape,
    /// How records of other versions become such.
    pub migrations: Vec<Migration>,
    /// What the runtime kept beside a state before it kept what it does today.
    pub earlier: Option<Earlier>,
}

/// What the runtime kept beside the state of a chare in an earlier version of itself.
#[derive(Clone, Copy)]
pub struct Earlier {
    /// What that was made of.
    pub shape: fn() -> Shape,
    /// A record with what it keeps today, and the state as it was.
    pub renew: fn(&Packed) -> Result<Packed, String>,
}

impl Schema {
    /// The shape of records that were saved with what the runtime kept beside a state before, once that is renewed; `None` if
    /// they were not.
    #[must_use]
    pub fn renewed(&self, saved: &Shape) -> Option<(Shape, Earlier)> {
        let earlier = self.earlier?;
        let (Shape::Struct(was), Shape::Struct(mut is)) = (saved, (self.shape)()) else { return None };
        let ([(beside, kept), state], [own, _]) = (&was[..], &is[..]) else { return None };
        if beside != BESIDE || own.0 != BESIDE || difference(kept, &(earlier.shape)()).is_some() {
            return None;
        }
        is[1] = state.clone();
        Some((Shape::Struct(is), earlier))
    }
}

/// How records of an older version become ones of today's.
#[derive(Clone)]
pub struct Migration {
    /// The older version.
    pub from: u16,
    /// What its records were made of.
    pub shape: fn() -> Shape,
    /// A record of today.
    pub apply: Migrate,
}

/// Makes a record of an older version one of today's.
pub type Migrate = Arc<dyn Fn(&Packed) -> Result<Packed, String> + Send + Sync>;

/// Of version 1, and not to be read by name.
impl Default for Schema {
    fn default() -> Self {
        Self { version: 1, shape: Shape::default, migrations: Vec::new(), earlier: None }
    }
}

#[cfg(test)]
mod tests;
