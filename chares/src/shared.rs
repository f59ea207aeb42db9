//! The four kinds of shared data of 1995: readonly, write-once, accumulator and monotonic variables.
//!
//! Each is one value per node, shared by its PEs without copies. Handles are small and can be sent.
//!
//! Variables need no registration: their values travel as bytes, and the first who reads one on a node unpacks it
//! there.

use crate::callback::Callback;
use crate::chare::Message;
use crate::ctx::private::HasPe;
use crate::ctx::{Cx, Out};
use crate::driver::Driver;
use crate::program::RunError;
use crate::pup;
use crate::reduce::{Better, Reduce};
use runtime::codec::VariableKind;
use runtime::envelope::Outgoing as _;
use runtime::object::PupError;
use runtime::pe::Pe;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Serialize, Deserialize)]
        #[serde(bound = "")]
        pub struct $name<T> {
            id: u64,
            value: PhantomData<fn(T)>,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:x})", stringify!($name), self.id)
            }
        }

        impl<T> $name<T> {
            fn fresh(pe: &mut Pe) -> Self {
                Self { id: pe.fresh_id().0, value: PhantomData }
            }
        }
    )* };
}

handles! {
    /// A value that the driver set and that every node has before [`Driver::readonly`] returns.
    Readonly
    /// A value that any chare sets once, by making the variable; other nodes have it a little later.
    WriteOnce
    /// A value that many add to and the driver collects.
    Accumulator
    /// A value that only gets better; every node knows nearly the best.
    Monotonic
}

impl<T: Message + Sync> Readonly<T> {
    /// The value. No copy is made; all PEs of the node share it.
    ///
    /// # Panics
    /// If the handle is from another run, which no message can bring.
    pub fn read(&self, cx: &mut impl Cx) -> Arc<T> {
        read_once(cx.pe(), self.id).expect("a readonly value is on every node before its handle exists")
    }

    pub(crate) fn spread(main: &mut Driver, value: T) -> Result<Self, RunError> {
        let handle = Self::fresh(main.pe());
        main.note_variable::<T>(handle.id);
        let packed = pup::pack(&value);
        if !main.pe().always_pup() {
            main.pe().node().variables().set(handle.id, Arc::new(value));
        }
        main.pe().set_variable(handle.id, VariableKind::Once, packed, true);
        main.wait_for_variable(handle.id)?;
        Ok(handle)
    }
}

impl<T: Message + Sync> WriteOnce<T> {
    /// The value, or `None` while it is still on its way to this node.
    pub fn read(&self, cx: &mut impl Cx) -> Option<Arc<T>> {
        let id = self.id;
        cx.witness("a write-once variable", move |pe| read_once(pe, id))
    }

    pub(crate) fn spread(pe: &mut Pe, value: T, ready: Callback<Self>) -> Self {
        let handle = Self::fresh(pe);
        pe.set_write_once(handle.id, pup::pack(&value), ready.target(), || Out(handle).payload(false));
        handle
    }
}

impl<T> WriteOnce<T> {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl<T: Reduce> Accumulator<T> {
    /// Adds to the variable on this node. Costs no message.
    pub fn add(&self, cx: &mut impl Cx, value: T) {
        let pe = cx.pe();
        let (combine, pack) = (crate::entries::combine::<T>, crate::entries::pack::<T>);
        pe.node().sums().add(pe.colour(), self.id, Box::new(value), combine, pack);
    }

    pub(crate) fn new(main: &mut Driver) -> Self {
        let handle = Self::fresh(main.pe());
        main.note_variable::<T>(handle.id);
        handle
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl<T: Message + Sync + Better + Clone> Monotonic<T> {
    /// Proposes a value; if it is the best that this node knows, all nodes are told.
    pub fn propose(&self, cx: &mut impl Cx, value: T) {
        let pe = cx.pe();
        let better = |a: &T, b: &T| a.better_than(b);
        match pe.node().variables().improve(pe.colour(), self.id, value.clone(), pup::unpack, better) {
            Ok(false) => {}
            Ok(true) => {
                pe.set_variable(self.id, VariableKind::Monotonic, pup::pack(&value), false);
            }
            Err(error) => pe.fail(format!("a monotonic variable cannot be read: {error}")),
        }
    }

    /// The best value that this node knows; `None` if it has heard of none.
    pub fn best(&self, cx: &mut impl Cx) -> Option<Arc<T>> {
        let id = self.id;
        cx.witness("a monotonic variable", move |pe| {
            let read =
                pe.node().variables().read(pe.colour(), id, pup::unpack, |a: &T, b: &T| a.better_than(b));
            report(pe, read)
        })
    }

    pub(crate) fn new(main: &mut Driver) -> Self {
        let handle = Self::fresh(main.pe());
        main.note_variable::<T>(handle.id);
        handle
    }
}

fn read_once<T: Message + Sync>(pe: &mut Pe, id: u64) -> Option<Arc<T>> {
    let read = pe.node().variables().read(pe.colour(), id, pup::unpack, |_: &T, _: &T| false);
    report(pe, read)
}

fn report<T>(pe: &Pe, read: Result<Option<Arc<T>>, PupError>) -> Option<Arc<T>> {
    read.unwrap_or_else(|error| {
        pe.fail(format!("a shared variable cannot be read: {error}"));
        None
    })
}
