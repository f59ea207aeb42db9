//! The list of a chare type's entry methods and reductions, and the tables made of it.

use crate::chare::{Entry, EntryMethod, Message};
use crate::ctx::Ctx;
use crate::pup;
use crate::reduce::Reduce;
use runtime::envelope::{Arrived, Packed, Value};
use runtime::object::{PupError, Reducer};

/// Lists the messages that a chare type takes and the types that its elements contribute to reductions.
///
/// `entries!(Block: Advance, Ghost; reduces Max<f64>)` lists two messages and one reduction. The order is the
/// numbering on the wire. Nodes compare the lists, by name, when they start, and refuse to work with a node
/// whose lists differ. Names are what stands here; `as "Name"` gives another, which types with arguments
/// should have, because how the compiler writes those may change:
/// `entries!(Grid<f64> as "Grid64": Fill<f64> as "Fill64")`.
///
/// # Examples
/// The list and the `impl Entry` of a chare type say the same:
///
/// ```
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/lamp.rs"));
/// chares::entries!(Lamp: On, Off);
/// # fn main() {}
/// ```
///
/// An entry method that is not listed is refused: "`Lamp` does not list `Off` in its `entries!`".
///
/// ```compile_fail,E0277
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/lamp.rs"));
/// chares::entries!(Lamp: On);
/// # fn main() {}
/// ```
///
/// So is one that is listed and not there: "`Lamp` has no entry method for `Blink`",
///
/// ```compile_fail,E0277
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/lamp.rs"));
/// chares::entries!(Lamp: On, Off, Blink);
/// # fn main() {}
/// ```
///
/// and one that is listed twice: "conflicting implementations of trait `Listed<On>`".
///
/// ```compile_fail,E0119
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/lamp.rs"));
/// chares::entries!(Lamp: On, Off, On);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! entries {
    ($chare:ty $(as $name:literal)? : $($message:ty $(as $message_name:literal)?),* $(,)?
        $(; reduces $($reduced:ty $(as $reduced_name:literal)?),+ $(,)?)?) => {
        impl $crate::EntryTable for $chare {
            const NAME: &'static str = $crate::entries!(@name $chare $(, $name)?);
            const NAMES: &'static [&'static str] =
                &[$($crate::entries!(@name $message $(, $message_name)?)),*];
            const ENTRIES: &'static [$crate::EntryMethod<Self>] =
                &[$($crate::entry_method::<$chare, $message>()),*];

            fn reducers() -> ::std::vec::Vec<$crate::Reducer> {
                ::std::vec![$($($crate::reducer::<$reduced>(
                    $crate::entries!(@name $reduced $(, $reduced_name)?))),+)?]
            }
        }
        $crate::entries!(@listed $chare, 0u16, $($message,)*);
        $($crate::entries!(@reduces $chare, 0u16, $($reduced,)+);)?
    };
    (@name $type:ty) => { ::std::stringify!($type) };
    (@name $type:ty, $name:literal) => { $name };
    (@listed $chare:ty, $number:expr,) => {};
    (@listed $chare:ty, $number:expr, $message:ty, $($rest:ty,)*) => {
        impl $crate::Listed<$message> for $chare { const INDEX: u16 = $number; }
        $crate::entries!(@listed $chare, $number + 1u16, $($rest,)*);
    };
    (@reduces $chare:ty, $number:expr,) => {};
    (@reduces $chare:ty, $number:expr, $reduced:ty, $($rest:ty,)*) => {
        impl $crate::Reduces<$reduced> for $chare { const INDEX: u16 = $number; }
        $crate::entries!(@reduces $chare, $number + 1u16, $($rest,)*);
    };
}

/// The entry method of `C` for `M`; for [`entries!`](crate::entries!).
#[doc(hidden)]
#[must_use]
pub const fn entry_method<C: Entry<M>, M: Message>() -> EntryMethod<C> {
    EntryMethod { moved: receive::<C, M>, packed: receive_packed::<C, M> }
}

fn receive<C: Entry<M>, M: Message>(
    chare: &mut C,
    message: Value,
    ctx: &mut Ctx<'_, C>,
) -> Result<(), PupError> {
    match message.downcast::<M>() {
        Ok(message) => chare.receive(*message, ctx),
        Err(_) => return Err(moved_another::<M>()),
    }
    Ok(())
}

fn receive_packed<C: Entry<M>, M: Message>(
    chare: &mut C,
    message: &Packed,
    ctx: &mut Ctx<'_, C>,
) -> Result<(), PupError> {
    chare.receive(pup::unpack(message)?, ctx);
    Ok(())
}

fn moved_another<M>() -> PupError {
    PupError::new(std::any::type_name::<M>(), "a value of another type was moved")
}

/// The value that arrived, moved or unpacked.
pub(crate) fn open<M: Message>(message: Arrived<'_>) -> Result<M, PupError> {
    match message {
        Arrived::Value(value) => value.downcast::<M>().map(|boxed| *boxed).map_err(|_| moved_another::<M>()),
        Arrived::Packed(packed) => pup::unpack(packed),
    }
}

/// How values of `R` are combined and travel; for [`entries!`](crate::entries!).
#[doc(hidden)]
#[must_use]
pub fn reducer<R: Reduce>(name: &'static str) -> Reducer {
    Reducer { name, combine: combine::<R>, pack: pack::<R>, unpack: unpack::<R> }
}

pub(crate) fn combine<R: Reduce>(into: &mut Value, other: Value) {
    // Both come from `unpack::<R>` or from `contribute::<R>`, which box nothing else.
    if let (Some(into), Ok(other)) = (into.downcast_mut::<R>(), other.downcast::<R>()) {
        into.combine(*other);
    }
}

pub(crate) fn pack<R: Reduce>(value: &Value) -> runtime::envelope::Packed {
    value.downcast_ref::<R>().map(pup::pack).unwrap_or_default()
}

fn unpack<R: Reduce>(packed: &runtime::envelope::Packed) -> Result<Value, PupError> {
    Ok(Box::new(pup::unpack::<R>(packed)?))
}
