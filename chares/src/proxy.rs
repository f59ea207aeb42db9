//! Addresses of chares: they can be kept, copied and sent in messages.

use crate::chare::{Chare, Entry, Index, Message};
use crate::ctx::{Ctx, Cx, Out};
use crate::pup;
use runtime::envelope::{CollectionId, ElementIndex, Payload};
use runtime::ids::PeId;
use runtime::pe::Pe;
use runtime::pe::section::SectionPlan;
use runtime::priority::Priority;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An array of chares.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Array<C> {
    id: CollectionId,
    shape: [u32; 3],
    chare: PhantomData<fn(C)>,
}

/// One chare: an array element or a single chare.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Element<C> {
    collection: CollectionId,
    index: ElementIndex,
    home: Option<PeId>,
    chare: PhantomData<fn(C)>,
}

/// One chare on every PE.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Group<C>(Array<C>);

/// One chare on every node.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct NodeGroup<C>(Array<C>);

/// Some elements of an array, with multicasts and reductions of their own. Whoever is to contribute needs
/// it in a message, which then holds the list of members (12 bytes each). Multicasts and reductions go along a
/// tree over the nodes on which members live. A section is for its maker's array only, has each member once,
/// and may be empty: a multicast to nobody does nothing.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Section<C> {
    id: u64,
    collection: CollectionId,
    members: Arc<Vec<ElementIndex>>,
    chare: PhantomData<fn(C)>,
}

macro_rules! proxies {
    ($($proxy:ident)*) => { $(
        impl<C> fmt::Debug for $proxy<C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}<{}>", stringify!($proxy), std::any::type_name::<C>())
            }
        }
    )* };
}
proxies!(Array Element Group NodeGroup Section);

macro_rules! copies {
    ($($proxy:ident)*) => { $(
        impl<C> Clone for $proxy<C> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<C> Copy for $proxy<C> {}
    )* };
}
copies!(Array Element Group NodeGroup);

impl<C> Clone for Section<C> {
    fn clone(&self) -> Self {
        let members = Arc::clone(&self.members);
        Self { id: self.id, collection: self.collection, members, chare: PhantomData }
    }
}

impl<C: Chare> Array<C> {
    pub(crate) fn new(id: CollectionId, shape: [u32; 3]) -> Self {
        Self { id, shape, chare: PhantomData }
    }

    pub(crate) fn id(&self) -> CollectionId {
        self.id
    }

    /// Elements along each dimension; unused dimensions are 1.
    #[must_use]
    pub fn shape(&self) -> [u32; 3] {
        self.shape
    }

    /// The element at `index`. Sending to a place outside the shape ends the run with a sentence.
    ///
    /// # Examples
    /// The index has as many dimensions as the chare type says.
    ///
    /// ```
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn corner(blocks: &Array<Block>) -> Element<Block> {
    ///     blocks.at([0, 7])
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// Another number of them is refused: "expected `[u32; 2]`, found integer".
    ///
    /// ```compile_fail,E0308
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn corner(blocks: &Array<Block>) -> Element<Block> {
    ///     blocks.at(7)
    /// }
    /// # fn main() {}
    /// ```
    #[must_use]
    pub fn at(&self, index: C::Index) -> Element<C> {
        Element::new(self.id, index.to_element(), None)
    }

    /// Sends a message to every element. It is packed once; each element unpacks its own, except for
    /// [`Bulk`](crate::Bulk) data in it, which all elements of a node share.
    pub fn broadcast<M: Message>(&self, cx: &mut impl Cx, message: M)
    where
        C: Entry<M>,
    {
        self.broadcast_with(cx, 0, message);
    }

    /// Sends a message to every element, with a [priority](crate#priorities): a number (smaller is more urgent; 0 is
    /// ordinary), [`Bits`](crate::Bits), or both.
    pub fn broadcast_with<M: Message>(&self, cx: &mut impl Cx, priority: impl Into<Priority>, message: M)
    where
        C: Entry<M>,
    {
        cx.pe().broadcast(self.id, C::INDEX, priority, pup::pack(&message));
    }

    /// Sends every element a message of its own, which `message_for` makes of its index, in index order. It is as if
    /// each were sent by itself: to elements of the same PE or process they move, and their order to an element is that
    /// of messages sent to it directly. Those below 1 KiB for the same other node travel together, up to 32 at a time, so
    /// that the first have arrived when the last are made.
    pub fn scatter<M: Message>(&self, cx: &mut impl Cx, mut message_for: impl FnMut(C::Index) -> M)
    where
        C: Entry<M>,
    {
        let [rows, columns, layers] = self.shape;
        let plane =
            move |i| (0..columns).flat_map(move |j| (0..layers).map(move |k| ElementIndex([i, j, k])));
        let message = |index| (index, Out(message_for(C::Index::from_element(index))));
        cx.pe().scatter(self.id, C::INDEX, (0..rows).flat_map(plane).map(message));
    }

    /// Count of elements.
    pub(crate) fn len(&self) -> u64 {
        self.shape.iter().map(|&side| u64::from(side)).product()
    }

    /// Which element that is in index order, counted from 0.
    pub(crate) fn position(&self, index: C::Index) -> u64 {
        let ElementIndex(at) = index.to_element();
        let row_major = |sum: u64, (&at, &side): (&u32, &u32)| sum * u64::from(side) + u64::from(at);
        at.iter().zip(&self.shape).fold(0, row_major)
    }

    /// The elements at `indices` as a section, in index order and each once. Sending to a section with an index
    /// outside the array ends the run with a sentence.
    pub fn section(&self, cx: &mut impl Cx, indices: impl IntoIterator<Item = C::Index>) -> Section<C> {
        let mut members: Vec<ElementIndex> = indices.into_iter().map(Index::to_element).collect();
        members.sort_unstable();
        members.dedup();
        let id = cx.pe().fresh_id().0;
        Section { id, collection: self.id, members: Arc::new(members), chare: PhantomData }
    }
}

impl<C: Chare> Element<C> {
    pub(crate) fn new(collection: CollectionId, index: ElementIndex, home: Option<PeId>) -> Self {
        Self { collection, index, home, chare: PhantomData }
    }

    /// An element that takes the place of one that could not be made; the run is already ending.
    pub(crate) fn nowhere() -> Self {
        Self::new(CollectionId(u64::MAX), ElementIndex([0; 3]), None)
    }

    pub(crate) fn parts(&self) -> (CollectionId, ElementIndex, Option<PeId>) {
        (self.collection, self.index, self.home)
    }

    /// Sends a message. Returns at once; see the crate's documentation for what is guaranteed of its order.
    ///
    /// # Examples
    /// Only what the chare type lists can be sent to it.
    ///
    /// ```
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn go_on(block: &Element<Block>, done: Callback<Max<f64>>, cx: &mut impl Cx) {
    ///     block.send(cx, Advance(3, done));
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// Anything else is refused: "`Block` has no entry method for `Rewind`".
    ///
    /// ```compile_fail,E0277
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn go_on(block: &Element<Block>, done: Callback<Max<f64>>, cx: &mut impl Cx) {
    ///     block.send(cx, Rewind(3, done));
    /// }
    /// # fn main() {}
    /// ```
    pub fn send<M: Message>(&self, cx: &mut impl Cx, message: M)
    where
        C: Entry<M>,
    {
        self.send_with(cx, 0, message);
    }

    /// Sends a message with a [priority](crate#priorities).
    pub fn send_with<M: Message>(&self, cx: &mut impl Cx, priority: impl Into<Priority>, message: M)
    where
        C: Entry<M>,
    {
        cx.pe().send_element(self.parts(), C::INDEX, priority, Out(message));
    }
}

macro_rules! groups {
    ($($group:ident, $on:literal, $elements:literal, $number:literal;)*) => { $(
        impl<C: Chare<Index = u32>> $group<C> {
            pub(crate) fn new(array: Array<C>) -> Self {
                Self(array)
            }

            #[doc = $on]
            #[must_use]
            pub fn on(&self, number: u32) -> Element<C> {
                self.0.at(number)
            }

            #[doc = $elements]
            #[must_use]
            pub fn as_array(&self) -> &Array<C> {
                &self.0
            }

            /// Sends a message to every element.
            pub fn broadcast<M: Message>(&self, cx: &mut impl Cx, message: M)
            where
                C: Entry<M>,
            {
                self.0.broadcast(cx, message);
            }

            /// Sends a message to every element, with a [priority](crate#priorities).
            pub fn broadcast_with<M: Message>(&self, cx: &mut impl Cx, priority: impl Into<Priority>, message: M)
            where
                C: Entry<M>,
            {
                self.0.broadcast_with(cx, priority, message);
            }

            #[doc = $number]
            /// [`Array::scatter`].
            pub fn scatter<M: Message>(&self, cx: &mut impl Cx, message_for: impl FnMut(u32) -> M)
            where
                C: Entry<M>,
            {
                self.0.scatter(cx, message_for);
            }
        }
    )* };
}
groups! {
    Group, "The element on that PE; chares turn to that of [`Ctx::group_pe`](crate::Ctx::group_pe).",
        "The group as an array with one element per PE.",
        "Sends every element a message of its own, which `message_for` makes of its PE's number; see";
    NodeGroup, "The element on that node, counted from 0 over the nodes that have PEs.",
        "The group as an array with one element per node.",
        "Sends every element a message of its own, which `message_for` makes of its node's number; see";
}

impl<C: Chare> Section<C> {
    /// Count of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Sends a message to every member.
    pub fn send<M: Message>(&self, cx: &mut impl Cx, message: M)
    where
        C: Entry<M>,
    {
        self.send_with(cx, 0, message);
    }

    /// Sends a message to every member, with a [priority](crate#priorities).
    pub fn send_with<M: Message>(&self, cx: &mut impl Cx, priority: impl Into<Priority>, message: M)
    where
        C: Entry<M>,
    {
        self.multicast(cx, C::INDEX, priority.into(), message);
    }

    pub(crate) fn multicast<M: Message>(&self, cx: &mut impl Cx, entry: u16, priority: Priority, message: M) {
        let packed = pup::pack(&message);
        let pe = cx.pe();
        match pe.multicast(self.collection, &self.members, entry, priority.clone(), &packed) {
            Ok(()) => {}
            Err(Some(index)) => pe.fail(format!("a section of {} has no element {index:?}", C::name())),
            // The array is not known here yet: element by element, these wait for it.
            Err(None) => {
                for &index in self.members.iter() {
                    let copy = Payload::packed(packed.clone());
                    pe.send_element((self.collection, index, None), entry, priority.clone(), |_| copy);
                }
            }
        }
    }

    /// Sends every member a message of its own, which `message_for` makes of its index, in index order, as
    /// [`Array::scatter`] does.
    pub fn scatter<M: Message>(&self, cx: &mut impl Cx, mut message_for: impl FnMut(C::Index) -> M)
    where
        C: Entry<M>,
    {
        let message = |&index| (index, Out(message_for(C::Index::from_element(index))));
        cx.pe().scatter(self.collection, C::INDEX, self.members.iter().map(message));
    }

    /// The collection and the identity of the section.
    pub(crate) fn identity(&self) -> (CollectionId, u64) {
        (self.collection, self.id)
    }

    /// Which of the members this chare is, in index order; if it is none the run ends with a sentence.
    pub(crate) fn position(&self, ctx: &mut Ctx<'_, C>) -> Option<u64> {
        let (collection, index) = ctx.place();
        let found = self.members.binary_search(&index).ok().filter(|_| collection == self.collection);
        if found.is_none() {
            let at = &index.0[..C::Index::DIMENSIONS];
            ctx.fail(&format!("element {at:?} of {} takes part in a section that it is not in", C::name()));
        }
        found.map(|position| position as u64)
    }

    /// How a reduction goes from members that are at home on that PE; `None` while the array is not known here.
    pub(crate) fn plan(&self, pe: &mut Pe, home: PeId) -> Option<Arc<SectionPlan>> {
        pe.section_plan(self.id, self.collection, &self.members, home)
    }
}
