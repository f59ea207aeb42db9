//! The list of a chare type's entry methods and reductions, and the tables made of it.

use crate::chare::{Entry, EntryMethod, Listed, Message};
use crate::ctx::Ctx;
use crate::pup;
use crate::reduce::Reduce;
use crate::type_name::type_name;
use runtime::envelope::{Arrived, Packed, Value};
use runtime::object::{PupError, Reducer};
use std::marker::PhantomData;

/// Lists the messages that a chare type takes and the types that its elements contribute to reductions.
///
/// `entries!(Block: Advance, Ghost; reduces Max<f64>)` lists two messages and one reduction. The order is the
/// numbering on the wire. Nodes compare the lists, by name, when they start, and refuse to work with a node
/// whose lists differ. Names are those of the types, without the modules that they are in; `as "Name"` gives another:
/// `entries!(Grid as "heat::Grid": Fill, Look as "Show")`.
///
/// # Types with parameters
/// A list holds for all of them if the parameters stand before it as they do in an `impl`:
/// `entries!(impl<T: Number> Grid<T>: Fill<T>, Look; reduces Max<T>)`. Each parameter has bounds, with `+` between
/// them. The program lists each type that there will be, `.chare::<Grid<f32>>().chare::<Grid<f64>>()`, and each has
/// its arguments in its name, `Grid<f32>`, also behind another one that `as` gives.
///
/// ```
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/shelf.rs"));
/// chares::entries!(impl<T: Number> Shelf<T>: Fill<T>, Clear; reduces Sum<u64>);
///
/// fn program() -> Program {
///     Program::new("shelves", "1").chare::<Shelf<f32>>().chare::<Shelf<f64>>()
/// }
/// # fn main() {
/// #     assert!(format!("{:?}", program()).contains("Shelf<f32>: Fill<f32> Clear; reduces Sum<u64>"));
/// # }
/// ```
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
/// An entry method that is not listed is refused: "`Lamp` does not list `Off` in its `entries!`",
///
/// ```compile_fail,E0277
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/lamp.rs"));
/// chares::entries!(Lamp: On);
/// # fn main() {}
/// ```
///
/// of types with parameters too, whether or not there is ever one of them: "`Shelf<T>` does not list `Clear` in its
/// `entries!`".
///
/// ```compile_fail,E0277
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/shelf.rs"));
/// chares::entries!(impl<T: Number> Shelf<T>: Fill<T>; reduces Sum<u64>);
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
/// "`Shelf<T>` has no entry method for `Dust`",
///
/// ```compile_fail,E0277
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/shelf.rs"));
/// chares::entries!(impl<T: Number> Shelf<T>: Fill<T>, Clear, Dust; reduces Sum<u64>);
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
///
/// ```compile_fail,E0119
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/shelf.rs"));
/// chares::entries!(impl<T: Number> Shelf<T>: Fill<T>, Clear, Fill<T>; reduces Sum<u64>);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! entries {
    (impl<$($parameter:ident: $($bound:ident)::+ $(+ $($more:ident)::+)*),+ $(,)?>
        $chare:ty $(as $name:literal)? : $($lists:tt)*) => {
        $crate::entries!(@tables [$($parameter: $($bound)::+ $(+ $($more)::+)*),+] $chare,
            $crate::entries!(@generic_name $chare $(, $name)?); $($lists)*);
    };
    (impl $($rest:tt)*) => {
        ::std::compile_error!("the list of a generic type begins `impl<T: Bound> Type<T>: …`, with bounds for each parameter");
    };
    ($chare:ty $(as $name:literal)? : $($lists:tt)*) => {
        $crate::entries!(@tables [] $chare, $crate::entries!(@name $chare $(, $name)?); $($lists)*);
    };
    (@tables [$($generics:tt)*] $chare:ty, $name:expr; $($message:ty $(as $message_name:literal)?),* $(,)?
        $(; reduces $($reduced:ty $(as $reduced_name:literal)?),+ $(,)?)?) => {
        impl<$($generics)*> $crate::EntryTable for $chare {
            const ENTRIES: &'static [$crate::EntryMethod<Self>] =
                &[$($crate::entry_method::<$chare, $message>()),*];

            fn name() -> ::std::string::String {
                $name
            }

            fn entry_names() -> ::std::vec::Vec<::std::string::String> {
                ::std::vec![$($crate::entries!(@name $message $(, $message_name)?)),*]
            }

            fn reducers() -> ::std::vec::Vec<(::std::string::String, $crate::Reducer)> {
                ::std::vec![$($(($crate::entries!(@name $reduced $(, $reduced_name)?),
                    $crate::reducer::<$reduced>())),+)?]
            }
        }
        $crate::entries!(@listed [$($generics)*] $chare, 0u16, $($message,)*);
        $crate::entries!(@reduces [$($generics)*] $chare, 0u16, $($($reduced,)+)?);
    };
    (@name $type:ty) => { $crate::type_name::<$type>() };
    (@name $type:ty, $name:literal) => { ::std::string::String::from($name) };
    (@generic_name $type:ty) => { $crate::type_name::<$type>() };
    (@generic_name $type:ty, $name:literal) => { $crate::renamed::<$type>($name) };
    (@listed [$($generics:tt)*] $chare:ty, $number:expr,) => {};
    (@listed [$($generics:tt)*] $chare:ty, $number:expr, $message:ty, $($rest:ty,)*) => {
        impl<$($generics)*> $crate::Listed<$message> for $chare { const INDEX: u16 = $number; }
        $crate::entries!(@listed [$($generics)*] $chare, $number + 1u16, $($rest,)*);
    };
    (@reduces [$($generics:tt)*] $chare:ty, $number:expr,) => {};
    (@reduces [$($generics:tt)*] $chare:ty, $number:expr, $reduced:ty, $($rest:ty,)*) => {
        impl<$($generics)*> $crate::Reduces<$reduced> for $chare { const INDEX: u16 = $number; }
        $crate::entries!(@reduces [$($generics)*] $chare, $number + 1u16, $($rest,)*);
    };
}

/// The name of a type with parameters, with `name` before its arguments; for [`entries!`](crate::entries!).
#[doc(hidden)]
#[must_use]
pub fn renamed<T>(name: &str) -> String {
    let own = type_name::<T>();
    own.find('<').map_or(name.into(), |at| format!("{name}{}", &own[at..]))
}

/// The entry method of `C` for `M`; for [`entries!`](crate::entries!).
#[doc(hidden)]
#[must_use]
pub const fn entry_method<C: Entry<M>, M: Message>() -> EntryMethod<C> {
    method::<C, ByMessage<M>>()
}

/// An entry method; for [`#[chare]`](macro@crate::chare).
#[doc(hidden)]
#[must_use]
pub const fn method<C, W: Method<C>>() -> EntryMethod<C> {
    EntryMethod { moved: receive::<C, W>, packed: receive_packed::<C, W>, pack: pack_moved::<W::Message> }
}

/// What is called for one kind of messages; for [`#[chare]`](macro@crate::chare).
#[doc(hidden)]
pub trait Method<C> {
    /// What is sent.
    type Message: Message;
    /// Number of the entry method.
    const INDEX: u16;

    /// Calls it.
    fn call(chare: &mut C, message: Self::Message, ctx: &mut Ctx<'_, C>);
}

/// The entry method that is found by the type of its messages.
struct ByMessage<M>(PhantomData<M>);

impl<C: Entry<M>, M: Message> Method<C> for ByMessage<M> {
    type Message = M;
    const INDEX: u16 = <C as Listed<M>>::INDEX;

    #[inline]
    fn call(chare: &mut C, message: M, ctx: &mut Ctx<'_, C>) {
        chare.receive(message, ctx);
    }
}

fn receive<C, W: Method<C>>(chare: &mut C, message: Value, ctx: &mut Ctx<'_, C>) -> Result<(), PupError> {
    match message.downcast::<W::Message>() {
        Ok(message) => W::call(chare, *message, ctx),
        Err(_) => return Err(moved_another::<W::Message>()),
    }
    Ok(())
}

fn receive_packed<C, W: Method<C>>(
    chare: &mut C,
    message: &Packed,
    ctx: &mut Ctx<'_, C>,
) -> Result<(), PupError> {
    W::call(chare, pup::unpack(message)?, ctx);
    Ok(())
}

pub(crate) fn pack_moved<M: Message>(message: &Value) -> Result<Packed, PupError> {
    message.downcast_ref::<M>().map(pup::pack).ok_or_else(moved_another::<M>)
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
pub fn reducer<R: Reduce>() -> Reducer {
    Reducer { combine: combine::<R>, pack: pack::<R>, unpack: unpack::<R>, is_own: |value| value.is::<R>() }
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

#[cfg(test)]
mod tests {
    use super::{renamed, type_name};

    struct Pair<A, B>(A, B);

    #[test]
    fn names_of_types_have_no_modules_in_them() {
        type Nested = Pair<Option<[u32; 2]>, Box<dyn Fn(std::num::NonZeroU8) -> super::Value>>;
        struct Inside;
        assert_eq!((type_name::<f64>(), type_name::<Inside>()), ("f64".into(), "Inside".into()));
        assert_eq!(type_name::<Pair<f32, ()>>(), "Pair<f32, ()>");
        assert!(type_name::<Nested>().starts_with("Pair<Option<[u32; 2]>, Box<dyn Fn(NonZero<u8>) -> Box<"));
        assert!(!type_name::<Nested>().contains("::"));
        assert_eq!(renamed::<Pair<f32, Option<u8>>>("Two"), "Two<f32, Option<u8>>");
        assert_eq!(renamed::<Inside>("Outside"), "Outside");
    }
}
