//! What [`#[chare]`](macro@crate::chare) needs of proxies: sending by the number of an entry method, and asking.

use crate::callback::Callback;
use crate::chare::{Chare, EntryTable as _, Message, Reduces};
use crate::ctx::{Ctx, Cx, Out};
use crate::driver::{Driver, Pending};
use crate::program::RunError;
use crate::proxy::{Array, Element, Group, NodeGroup, Section};
use crate::pup;
use crate::reduce::Reduce;
use runtime::envelope::CallbackTarget;
use runtime::priority::Priority;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// The address of one chare or of many. What [`#[chare]`](macro@crate::chare) writes gives it a method for
/// each entry method of [`Chare`](Self::Chare).
pub trait Proxy: Clone {
    /// Whose address it is.
    type Chare: Chare;

    /// Sends to the entry method of that number.
    #[doc(hidden)]
    fn deliver<M: Message>(&self, cx: &mut impl Cx, entry: u16, priority: impl Into<Priority>, message: M);

    /// Where results go to the entry method of that number.
    #[doc(hidden)]
    fn callback<M: Message>(&self, entry: u16) -> Callback<M>;

    /// The same address for what is sent with a [priority](crate#priorities): `blocks.at(7).with(-1).advance(ctx, 3)`.
    fn with(&self, priority: impl Into<Priority>) -> Prioritised<Self> {
        Prioritised { proxy: self.clone(), priority: priority.into() }
    }
}

/// The address of a chare, or of all of an array, which can be asked for something that is combined.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be asked",
    label = "all elements of an array or one of them can be, but no section"
)]
pub trait Askable: Proxy {
    /// Whether all elements are asked.
    #[doc(hidden)]
    const IS_ALL: bool;
}

/// The address of one chare.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the address of one chare",
    label = "each of several would give an answer",
    note = "ask one element, `.at(index)`; for one answer of all say `#[reduce]` in place of `#[entry]`, and what they give \
            is combined"
)]
pub trait One: Askable {}

/// An address for what is sent with a priority; made by [`Proxy::with`].
#[derive(Clone, Debug)]
pub struct Prioritised<P> {
    proxy: P,
    priority: Priority,
}

impl<C: Chare> Proxy for Element<C> {
    type Chare = C;

    #[inline]
    fn deliver<M: Message>(&self, cx: &mut impl Cx, entry: u16, priority: impl Into<Priority>, message: M) {
        cx.pe().send_element(self.parts(), entry, priority, Out(message));
    }

    fn callback<M: Message>(&self, entry: u16) -> Callback<M> {
        let (collection, index, home) = self.parts();
        Callback::over(CallbackTarget::Element { collection, index, entry, home })
    }
}

impl<C: Chare> One for Element<C> {}

impl<C: Chare> Askable for Element<C> {
    const IS_ALL: bool = false;
}

impl<C: Chare> Proxy for Array<C> {
    type Chare = C;

    fn deliver<M: Message>(&self, cx: &mut impl Cx, entry: u16, priority: impl Into<Priority>, message: M) {
        cx.pe().broadcast(self.id(), entry, priority, pup::pack(&message));
    }

    fn callback<M: Message>(&self, entry: u16) -> Callback<M> {
        Callback::over(CallbackTarget::All { collection: self.id(), entry })
    }
}

impl<C: Chare> Askable for Array<C> {
    const IS_ALL: bool = true;
}

macro_rules! groups {
    ($($group:ident)*) => { $(
        impl<C: Chare<Index = u32>> Proxy for $group<C> {
            type Chare = C;

            fn deliver<M: Message>(&self, cx: &mut impl Cx, entry: u16, priority: impl Into<Priority>, message: M) {
                self.as_array().deliver(cx, entry, priority, message);
            }

            fn callback<M: Message>(&self, entry: u16) -> Callback<M> {
                self.as_array().callback(entry)
            }
        }

        impl<C: Chare<Index = u32>> Askable for $group<C> {
            const IS_ALL: bool = true;
        }
    )* };
}
groups!(Group NodeGroup);

impl<C: Chare> Proxy for Section<C> {
    type Chare = C;

    fn deliver<M: Message>(&self, cx: &mut impl Cx, entry: u16, priority: impl Into<Priority>, message: M) {
        self.multicast(cx, entry, priority.into(), message);
    }

    fn callback<M: Message>(&self, entry: u16) -> Callback<M> {
        let (collection, section) = self.identity();
        Callback::over(CallbackTarget::Members { collection, section, entry })
    }
}

impl<P: Proxy> Proxy for Prioritised<P> {
    type Chare = P::Chare;

    fn deliver<M: Message>(&self, cx: &mut impl Cx, entry: u16, _: impl Into<Priority>, message: M) {
        self.proxy.deliver(cx, entry, self.priority.clone(), message);
    }

    fn callback<M: Message>(&self, entry: u16) -> Callback<M> {
        self.proxy.callback(entry)
    }
}

impl<P: One> One for Prioritised<P> {}

impl<P: Askable> Askable for Prioritised<P> {
    const IS_ALL: bool = P::IS_ALL;
}

/// A question that an entry method with an answer of type `R` can give. It has not been sent yet.
#[must_use = "a question is sent by `.ask(main)?`, `.pending(main)` or `.reply_to(ctx, callback)`"]
pub struct Ask<P, M, R> {
    proxy: P,
    entry: u16,
    message: M,
    answer: PhantomData<fn() -> R>,
}

impl<P: Proxy, M, R> fmt::Debug for Ask<P, M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = P::Chare::entry_names().into_iter().nth(usize::from(self.entry)).unwrap_or_default();
        write!(f, "Ask({}: {name})", P::Chare::name())
    }
}

impl<P: Askable, M: Message, R: Message> Ask<P, M, R> {
    #[doc(hidden)]
    pub fn new(proxy: &P, entry: u16, message: M) -> Self {
        Self { proxy: proxy.clone(), entry, message, answer: PhantomData }
    }

    /// Asks, and waits for the answer: of all elements of an array it is what they give together.
    ///
    /// # Errors
    /// If the run fails meanwhile, or if nothing is left anywhere that could give the answer.
    pub fn ask(self, main: &mut Driver) -> Result<R, RunError> {
        self.pending(main).wait(main)
    }

    /// Asks; the driver can wait for the answer later, and ask others meanwhile.
    pub fn pending(self, main: &mut Driver) -> Pending<R> {
        let (callback, pending) = main.pending();
        self.reply_to(main, callback);
        pending
    }

    /// Asks, and has the answer sent where `callback` says: a chare names one of its own entry methods, by
    /// `ctx.this().…_callback()`, as it cannot wait.
    pub fn reply_to(self, cx: &mut impl Cx, callback: Callback<R>) {
        let reply = Reply { callback, is_of_all: P::IS_ALL };
        self.proxy.deliver(cx, self.entry, 0, (self.message, reply));
    }
}

/// Where an answer goes; travels with each question.
#[doc(hidden)]
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Reply<R> {
    callback: Callback<R>,
    is_of_all: bool,
}

impl<R: Message> Reply<R> {
    /// Gives the answer of one.
    pub fn give(self, cx: &mut impl Cx, answer: R) {
        self.callback.send(cx, answer);
    }

    /// Gives the answer of one, or adds it to that of all.
    pub fn combine<C: Chare + Reduces<R>>(self, ctx: &mut Ctx<'_, C>, answer: R, is_ordered: bool)
    where
        R: Reduce,
    {
        match (self.is_of_all, is_ordered) {
            (false, _) => self.give(ctx, answer),
            (true, false) => ctx.contribute(answer, self.callback),
            (true, true) => ctx.contribute_ordered(answer, self.callback),
        }
    }
}

/// Nobody contributes it; for [`#[chare]`](macro@crate::chare).
#[doc(hidden)]
#[derive(Debug)]
pub struct Nothing;

/// That values of a type can be sent, in the words of [`#[chare]`](macro@crate::chare). It has no traits above it, of
/// which the compiler would speak in its place; nor have the next two.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not serde data that can go to another thread and another machine",
    note = "say `#[message]` before it, or derive serde's two traits; it holds neither references nor `Rc`"
)]
pub trait Sent {}

impl<M: Message> Sent for M {}

/// That values of a type are combined, in the words of [`#[chare]`](macro@crate::chare).
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with others of its kind",
    label = "what `#[reduce]` gives is a `Sum`, `Min`, `Max`, `Gather`, or implements `chares::Reduce`"
)]
pub trait Reduced {}

impl<R: Reduce> Reduced for R {}

/// That a field can be a part of a chare's state, in the words of [`#[chare]`](macro@crate::chare).
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel with a chare",
    label = "not serde data that can go to another thread and another machine",
    note = "a moment is a `Stopwatch`, working memory a `Scratch`, own types say `#[message]`; anything else is made anew on \
            arrival by a function that `#[rebuild(function)]` names"
)]
pub trait Travels {}

impl<T: Message> Travels for T {}
