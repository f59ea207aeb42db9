//! Where results go.

use crate::chare::{Entry, Message};
use crate::ctx::{Cx, Out};
use crate::proxy::{Array, Element, Section};
use runtime::envelope::CallbackTarget;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// Who gets a result of type `M`: an element, all elements of an array, all members of a section, or the driver. Can
/// be sent.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Callback<M> {
    target: CallbackTarget,
    message: PhantomData<fn(M)>,
}

impl<M> Clone for Callback<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Callback<M> {}

impl<M> fmt::Debug for Callback<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

impl<M: Message> Callback<M> {
    /// Nobody wants the result.
    #[must_use]
    pub fn ignore() -> Self {
        Self::over(CallbackTarget::Ignore)
    }

    /// The entry method of one element.
    #[must_use]
    pub fn element<C: Entry<M>>(element: &Element<C>) -> Self {
        let (collection, index, home) = element.parts();
        Self::over(CallbackTarget::Element { collection, index, entry: C::INDEX, home })
    }

    /// The entry method of every element of an array.
    #[must_use]
    pub fn broadcast<C: Entry<M>>(array: &Array<C>) -> Self {
        Self::over(CallbackTarget::All { collection: array.id(), entry: C::INDEX })
    }

    /// The entry method of every member of a section, for results of reductions over that same section
    /// ([`contribute_in`](crate::Ctx::contribute_in)): only those know its members, anything else that is given to
    /// this callback ends the run with a sentence.
    #[must_use]
    pub fn multicast<C: Entry<M>>(section: &Section<C>) -> Self {
        let (collection, section) = section.identity();
        Self::over(CallbackTarget::Members { collection, section, entry: C::INDEX })
    }

    /// Sends the result to whoever this callback names.
    pub fn send(&self, cx: &mut impl Cx, message: M) {
        cx.pe().reply(self.target, Out(message));
    }

    pub(crate) fn slot(number: u64) -> Self {
        Self::over(CallbackTarget::Slot(number))
    }

    pub(crate) fn target(&self) -> CallbackTarget {
        self.target
    }

    pub(crate) fn over(target: CallbackTarget) -> Self {
        Self { target, message: PhantomData }
    }
}
