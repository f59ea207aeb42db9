//! What a chare is: state, a constructor, and an entry method for each message that it takes.

use crate::ctx::Ctx;
use runtime::envelope::{ElementIndex, Packed, Value};
use runtime::object::{PupError, Reducer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{self, Debug};

/// Anything that can be sent: serde's two traits, and no borrowed data. How long it may be: see the
/// [limits](crate#limits).
///
/// # Examples
/// A message moves to other threads, so that nothing in it may be bound to one.
///
/// ```
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
/// #[derive(Serialize, Deserialize)]
/// struct Shared {
///     text: std::sync::Arc<str>,
/// }
/// fn is_message<M: chares::Message>() {}
/// fn check() {
///     is_message::<Shared>();
/// }
/// # fn main() {}
/// ```
///
/// What is bound to one is refused: "`Rc<str>` cannot be sent between threads safely".
///
/// ```compile_fail,E0277
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
/// #[derive(Serialize, Deserialize)]
/// struct Shared {
///     text: std::rc::Rc<str>,
/// }
/// fn is_message<M: chares::Message>() {}
/// fn check() {
///     is_message::<Shared>();
/// }
/// # fn main() {}
/// ```
///
/// It travels to other machines as bytes, so it derives both traits of serde.
///
/// ```
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
/// #[derive(Serialize, Deserialize)]
/// struct Note {
///     text: String,
/// }
/// fn is_message<M: chares::Message>() {}
/// fn check() {
///     is_message::<Note>();
/// }
/// # fn main() {}
/// ```
///
/// One alone is refused: "`Note` is not a message".
///
/// ```compile_fail,E0277
/// # #![allow(unused)]
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
/// #[derive(Serialize)]
/// struct Note {
///     text: String,
/// }
/// fn is_message<M: chares::Message>() {}
/// fn check() {
///     is_message::<Note>();
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not serde data that can go to another thread and another machine",
    note = "say `#[message]` before it, or derive `serde::Serialize` and `serde::Deserialize`, and hold neither references nor `Rc`"
)]
pub trait Message: Serialize + DeserializeOwned + Send + 'static {}

impl<M: Serialize + DeserializeOwned + Send + 'static> Message for M {}

/// An object that lives on one PE and reacts to messages, one at a time, each to its end.
///
/// Its state is serde data, so that it can be moved ([`Ctx::migrate_to`], [`Cx::migrate`](crate::Cx::migrate)) and saved
/// between any two entry methods; it notices nothing but that [`Ctx::pe_id`] says another PE. What need not travel is a
/// [`Scratch`](crate::Scratch), a moment a [`Stopwatch`](crate::Stopwatch); fields that serde skips would be lost. Under
/// `always_pup` (`--always-pup`) state is packed and unpacked before each entry method, which finds them. List its entry methods with
/// [`entries!`](crate::entries!) and implement [`Entry`] for each.
pub trait Chare: EntryTable + Serialize + DeserializeOwned + Send {
    /// How elements of an array of this type are numbered: `u32`, `[u32; 2]`, `[u32; 3]`, or `()` for
    /// chares that are only ever single.
    type Index: Index;
    /// What the constructor is given; every element of an array gets a copy, so keep it small.
    type Init: Message;

    /// Raised when what a saved state says changes, so that older states are refused, or taken in by what
    /// [`Program::migrate`](crate::Program::migrate) names.
    const VERSION: u16 = 1;

    /// Constructs the chare on the PE where it will live.
    fn new(init: Self::Init, ctx: &mut Ctx<'_, Self>) -> Self;

    /// Called when the state has been unpacked, before the next entry method runs: where the chare has come to another PE, or
    /// its PE to another node, where a run goes on from a checkpoint, and under `always_pup` before each entry method. Here is
    /// made anew what did not travel and depends on the state or the place. The constructor calls it only if it says so.
    ///
    /// Results must not depend on how often it is called: whoever sends from here sends again each time.
    fn arrived(&mut self, ctx: &mut Ctx<'_, Self>) {
        let _ = ctx;
    }
}

/// The entry method of a chare for messages of type `M`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no entry method for `{M}`",
    label = "`impl Entry<{M}> for {Self}` is missing"
)]
pub trait Entry<M: Message>: Chare + Listed<M> {
    /// Reacts to a message. Runs to its end; nothing else touches the chare meanwhile. It must not block.
    fn receive(&mut self, message: M, ctx: &mut Ctx<'_, Self>);
}

/// That a chare type lists a message in its [`entries!`](crate::entries!); written by that macro.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not list `{M}` in its `entries!`",
    label = "add `{M}` to the `chares::entries!` of `{Self}`"
)]
pub trait Listed<M> {
    /// Number of the entry method.
    const INDEX: u16;
}

/// That a chare type lists a contribution under `reduces`; written by [`entries!`](crate::entries!).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not list `{R}` under `reduces`",
    label = "add `{R}` to the `reduces` of `{Self}`, in its `#[chare(…)]` or its `chares::entries!`"
)]
pub trait Reduces<R> {
    /// Number of the reduction.
    const INDEX: u16;
}

/// The tables that [`entries!`](crate::entries!) writes.
pub trait EntryTable: Sized + 'static {
    /// Entry methods, in order.
    const ENTRIES: &'static [EntryMethod<Self>];

    /// Name of the chare type, unique in a program.
    fn name() -> String;
    /// Names of the messages, in the order of their entry methods.
    fn entry_names() -> Vec<String>;
    /// The reductions with their names, in order.
    fn reducers() -> Vec<(String, Reducer)>;
}

/// An entry method behind function pointers, for messages that were moved and for those that were packed. Neither
/// is made of the other: a message that is passed on inside something else is copied once more, which the processor
/// has to wait for.
pub struct EntryMethod<C> {
    pub(crate) moved: fn(&mut C, Value, &mut Ctx<'_, C>) -> Result<(), PupError>,
    pub(crate) packed: fn(&mut C, &Packed, &mut Ctx<'_, C>) -> Result<(), PupError>,
    /// A message that was moved, as bytes, for a chare that has moved to another process.
    pub(crate) pack: fn(&Value) -> Result<Packed, PupError>,
}

impl<C> Debug for EntryMethod<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryMethod<{}>", std::any::type_name::<C>())
    }
}

/// Places in an array: one, two or three dimensions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot number the elements of an array",
    note = "an index is `u32`, `[u32; 2]`, `[u32; 3]`, or `()` for chares that are only ever single"
)]
pub trait Index: Copy + Debug + Send + 'static {
    /// Number of dimensions.
    const DIMENSIONS: usize;

    /// Converts to the numbering of the runtime, in which unused dimensions are 0.
    fn to_element(self) -> ElementIndex;
    /// Converts back from the numbering of the runtime.
    fn from_element(element: ElementIndex) -> Self;
    /// Elements along each dimension of an array of this shape; unused dimensions are 1.
    fn shape(self) -> [u32; 3];
}

impl Index for () {
    const DIMENSIONS: usize = 0;

    fn to_element(self) -> ElementIndex {
        ElementIndex([0; 3])
    }
    fn from_element(_: ElementIndex) -> Self {}
    fn shape(self) -> [u32; 3] {
        [1; 3]
    }
}

impl Index for u32 {
    const DIMENSIONS: usize = 1;

    fn to_element(self) -> ElementIndex {
        ElementIndex([self, 0, 0])
    }
    fn from_element(element: ElementIndex) -> Self {
        element.0[0]
    }
    fn shape(self) -> [u32; 3] {
        [self, 1, 1]
    }
}

impl Index for [u32; 2] {
    const DIMENSIONS: usize = 2;

    fn to_element(self) -> ElementIndex {
        ElementIndex([self[0], self[1], 0])
    }
    fn from_element(element: ElementIndex) -> Self {
        [element.0[0], element.0[1]]
    }
    fn shape(self) -> [u32; 3] {
        [self[0], self[1], 1]
    }
}

impl Index for [u32; 3] {
    const DIMENSIONS: usize = 3;

    fn to_element(self) -> ElementIndex {
        ElementIndex(self)
    }
    fn from_element(element: ElementIndex) -> Self {
        element.0
    }
    fn shape(self) -> [u32; 3] {
        self
    }
}
