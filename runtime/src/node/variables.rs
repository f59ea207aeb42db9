//! Values that all PEs of a node share without copies: readonly, write-once, monotonic.
//!
//! They arrive as bytes and are unpacked when somebody who knows their type first reads them. PEs read them without a message, so
//! that what follows from something that is not of a snapshot is not in their states: what was set after its maker's cut is
//! there when all PEs of the node have been cut.

use crate::codec::VariableKind;
use crate::envelope::{CallbackTarget, Packed};
use crate::ids::{NodeId, PeId};
use crate::object::PupError;
use crate::proto::snapshot::{Colour, Side, Turn};
use dashmap::DashMap;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Stands for the end of initialisation among the variables that nodes acknowledge; no variable has this number.
pub const INIT_OVER: u64 = 0;

type Shared = Arc<dyn Any + Send + Sync>;

/// The variables of one node.
#[derive(Default)]
pub struct Variables {
    values: DashMap<u64, Slot>,
    /// Write-once variables set here that some nodes have not acknowledged.
    unacknowledged: DashMap<u64, Unacknowledged>,
    /// The bytes of all values, once they are kept.
    bytes: OnceLock<DashMap<u64, Said>>,
    /// The colour of those whose values are there, for who reads it without a lock.
    is_red: AtomicBool,
    /// What has come of those who have been cut before all here were. Held while that changes.
    later: Mutex<Waiting>,
    /// While a snapshot is open.
    later_bytes: Mutex<Option<LaterBytes>>,
}

/// The colour of what is not of a snapshot, and the bytes of that, which are kept when it is over.
struct LaterBytes {
    colour: Colour,
    values: Vec<(Which, Packed)>,
}

/// A variable, how it changes, and who says its value.
pub(super) type Which = (u64, VariableKind, PeId);

/// Where the node is in a snapshot, and what is not of it.
#[derive(Default)]
struct Waiting {
    side: Side,
    values: Vec<Later>,
}

/// A value that is not there yet, and the node that waits until all have it.
struct Later {
    which: Which,
    packed: Packed,
    acknowledge: Option<NodeId>,
}

/// How a variable changes, and its last value from each origin.
type Said = (VariableKind, FxHashMap<PeId, Packed>);

/// A write-once variable that not all nodes have in place.
struct Unacknowledged {
    missing: BTreeSet<NodeId>,
    callback: CallbackTarget,
    ready: Packed,
    /// Who has set it, and the colour of the message that tells the callback.
    by: PeId,
    colour: Colour,
}

#[derive(Default)]
struct Slot {
    value: Option<Shared>,
    /// Values that have not been unpacked; at most one per origin, since a later value of an origin replaces its
    /// earlier one.
    arrived: FxHashMap<PeId, Packed>,
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variables({} values)", self.values.len())
    }
}

impl Variables {
    /// From now on keeps the bytes of all values that arrive, so that they can be saved.
    pub fn keep_bytes(&self) {
        self.bytes.get_or_init(DashMap::new);
    }

    /// The bytes of all values that have arrived, where they are kept: one for each variable that is set once, the last
    /// from each origin of the others.
    #[must_use]
    pub fn bytes(&self) -> Vec<(u64, VariableKind, PeId, Packed)> {
        let of = |id: u64, kind: VariableKind, values: &FxHashMap<PeId, Packed>| {
            let values = values.iter().map(move |(origin, packed)| (id, kind, *origin, packed.clone()));
            values.collect::<Vec<_>>()
        };
        let all = self.bytes.get().into_iter().flat_map(|bytes| bytes.iter());
        all.flat_map(|one| of(*one.key(), one.0, &one.1)).collect()
    }

    /// Whether write-once variables that were set here are not yet in place everywhere.
    #[must_use]
    pub fn are_acknowledged(&self) -> bool {
        self.unacknowledged.is_empty()
    }

    /// A value arrived of who has set it in that colour. A second value of a variable that is set once is ignored. Whether it is
    /// in place; if not, it [will be](Self::change_colour) when those of the other colour are, and `acknowledge` is to be told
    /// then.
    pub(super) fn arrive(
        &self,
        colour: Option<Colour>,
        which: Which,
        packed: Packed,
        acknowledge: Option<NodeId>,
    ) -> bool {
        self.keep(colour, which, &packed);
        let mut later = self.later();
        let is_later = colour.is_some_and(|colour| later.side.turn(colour) == Turn::Aside);
        if is_later {
            later.values.push(Later { which, packed, acknowledge });
        } else {
            self.put(which, packed);
        }
        !is_later
    }

    /// The colour of those whose values are there.
    pub(super) fn colour(&self) -> Colour {
        if self.is_red.load(Ordering::Acquire) { Colour::Red } else { Colour::White }
    }

    fn later(&self) -> MutexGuard<'_, Waiting> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All PEs of the node have been cut, or the driver has: the values of their new colour are in place from now on; who waits
    /// for which.
    pub(super) fn change_colour(&self) -> Vec<(NodeId, u64)> {
        let mut later = self.later();
        let come = std::mem::take(&mut later.values);
        let told = come.iter().filter_map(|value| Some((value.acknowledge?, value.which.0))).collect();
        come.into_iter().for_each(|value| self.put(value.which, value.packed));
        later.side.cut();
        self.is_red.store(later.side.colour() == Colour::Red, Ordering::Release);
        told
    }

    /// Nothing comes any more of who had not been cut when it was said.
    pub(super) fn close(&self) {
        self.later().side.close();
    }

    /// Keeps the bytes of a value, where they are kept.
    fn keep(&self, colour: Option<Colour>, which: Which, packed: &Packed) {
        let Some(bytes) = self.bytes.get() else { return };
        let mut later = self.later_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(later) = later.as_mut().filter(|later| colour == Some(later.colour)) {
            return later.values.push((which, packed.clone()));
        }
        drop(later);
        let (id, kind, origin) = which;
        let mut known = bytes.entry(id).or_insert_with(|| (kind, FxHashMap::default()));
        if kind == VariableKind::Monotonic || known.1.is_empty() {
            known.1.insert(origin, packed.clone());
        }
    }

    /// A snapshot begins, of which those are not that will be set in this colour; or it is over.
    pub(super) fn set_later(&self, colour: Option<Colour>) {
        let mut later = self.later_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let next = colour.map(|colour| LaterBytes { colour, values: Vec::new() });
        let before = std::mem::replace(&mut *later, next);
        drop(later);
        for (which, packed) in before.into_iter().flat_map(|before| before.values) {
            self.keep(None, which, &packed);
        }
    }

    fn put(&self, (id, kind, origin): Which, packed: Packed) {
        let mut slot = self.values.entry(id).or_default();
        let is_set = slot.value.is_some() || !slot.arrived.is_empty();
        if kind == VariableKind::Monotonic || !is_set {
            slot.arrived.insert(origin, packed);
        }
    }

    /// Sets a value that this process already has in its unpacked form.
    pub fn set<T: Send + Sync + 'static>(&self, id: u64, value: Arc<T>) {
        self.values.entry(id).or_default().value = Some(value);
    }

    /// The value for a reader of that colour, shared with all readers on this node; `None` while it has not arrived. `better`
    /// says whether its first argument improves on its second (never, for variables that are set once).
    ///
    /// # Errors
    /// If the bytes that arrived are not a `T`, or the variable is of another type.
    pub fn read<T: Send + Sync + 'static>(
        &self,
        colour: Colour,
        id: u64,
        unpack: impl Fn(&Packed) -> Result<T, PupError>,
        better: impl Fn(&T, &T) -> bool,
    ) -> Result<Option<Arc<T>>, PupError> {
        let read = self.read_in_place(id, &unpack, better)?;
        if read.is_some() || colour == self.colour() {
            return Ok(read);
        }
        // Who has set a variable himself finds it set, though it is not in place for the others.
        let later = self.later();
        let value = later.values.iter().find(|value| value.which.0 == id).map(|value| value.packed.clone());
        drop(later);
        value.map(|packed| unpack(&packed).map(Arc::new)).transpose()
    }

    fn read_in_place<T: Send + Sync + 'static>(
        &self,
        id: u64,
        unpack: &impl Fn(&Packed) -> Result<T, PupError>,
        better: impl Fn(&T, &T) -> bool,
    ) -> Result<Option<Arc<T>>, PupError> {
        let Some(known) = self.values.get(&id) else { return Ok(None) };
        let wrong_type =
            |_| PupError::new(std::any::type_name::<T>(), format!("variable {id:x} is of another type"));
        if known.arrived.is_empty() {
            return known.value.clone().map(|v| v.downcast::<T>().map_err(wrong_type)).transpose();
        }
        drop(known);
        let mut slot = self.values.entry(id).or_default();
        let mut best = slot.value.take().map(|v| v.downcast::<T>().map_err(wrong_type)).transpose()?;
        for (_, packed) in std::mem::take(&mut slot.arrived) {
            let candidate = unpack(&packed)?;
            if best.as_ref().is_none_or(|best| better(&candidate, best)) {
                best = Some(Arc::new(candidate));
            }
        }
        slot.value = best.clone().map(|v| v as Shared);
        Ok(best)
    }

    /// Somebody of that colour improves a monotonic variable on this node; whether `candidate` is an improvement here. Where the
    /// values of the other colour are in place, it is there when it arrives as others do.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn improve<T: Send + Sync + 'static>(
        &self,
        colour: Colour,
        id: u64,
        candidate: T,
        unpack: impl Fn(&Packed) -> Result<T, PupError>,
        better: impl Fn(&T, &T) -> bool,
    ) -> Result<bool, PupError> {
        let best = self.read_in_place(id, &unpack, &better)?;
        // Between the read and this write another PE may have improved it; look again under the lock.
        let mut slot = self.values.entry(id).or_default();
        let current = slot.value.clone().and_then(|v| v.downcast::<T>().ok()).or(best);
        let is_better = current.is_none_or(|current| better(&candidate, &current));
        if is_better && colour == self.colour() {
            slot.value = Some(Arc::new(candidate));
        }
        Ok(is_better)
    }

    /// `ready` is for `callback` when all of these nodes have acknowledged the variable, which was set by a PE of that colour.
    pub(super) fn expect(
        &self,
        id: u64,
        missing: BTreeSet<NodeId>,
        (callback, ready): (CallbackTarget, Packed),
        (by, colour): (PeId, Colour),
    ) {
        self.unacknowledged.insert(id, Unacknowledged { missing, callback, ready, by, colour });
    }

    /// A PE is being cut that has this colour from now on: whom it will have told of variables when all have them in place, and
    /// what, as if that were on its way already. What is sent then is not of the snapshot any more.
    pub(crate) fn cut(&self, by: PeId, colour: Colour) -> Vec<(CallbackTarget, Packed)> {
        let mut all = Vec::new();
        for mut waiting in self.unacknowledged.iter_mut().filter(|waiting| waiting.by == by) {
            waiting.colour = colour;
            all.push((waiting.callback, waiting.ready.clone()));
        }
        all
    }

    /// A node has the variable in place. If it was the last, `tell` is told what is for whom and in which colour, and only then
    /// all [are acknowledged](Self::are_acknowledged).
    pub(super) fn acknowledged(
        &self,
        by: NodeId,
        id: u64,
        tell: impl FnOnce(CallbackTarget, Packed, Colour),
    ) {
        let dashmap::Entry::Occupied(mut waiting) = self.unacknowledged.entry(id) else { return };
        waiting.get_mut().missing.remove(&by);
        if waiting.get().missing.is_empty() {
            let Unacknowledged { callback, ready, colour, .. } = waiting.get();
            tell(*callback, ready.clone(), *colour);
            waiting.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(packed: &Packed) -> Result<u64, PupError> {
        let bytes: [u8; 8] = packed.body[..]
            .try_into()
            .map_err(|_| PupError::new("u64", format!("{} bytes", packed.body.len())))?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn packed(value: u64) -> Packed {
        Packed { body: value.to_le_bytes().to_vec().into(), attachments: Vec::new() }
    }

    #[test]
    fn a_value_set_once_stays() {
        let variables = Variables::default();
        let read = || variables.read(Colour::White, 1, unpack, |_, _| false).unwrap().map(|v| *v);
        let arrive = |origin, value| {
            variables.arrive(None, (1, VariableKind::Once, PeId(origin)), packed(value), None);
        };
        assert_eq!(read(), None);
        arrive(0, 5);
        arrive(1, 6);
        assert_eq!(read(), Some(5));
        arrive(1, 7);
        assert_eq!(read(), Some(5));
    }

    #[test]
    fn monotonic_keeps_the_best_of_all_origins() {
        let variables = Variables::default();
        for (origin, value) in [(0, 9), (1, 4), (0, 7), (2, 8)] {
            variables.arrive(None, (1, VariableKind::Monotonic, PeId(origin)), packed(value), None);
        }
        let less = |a: &u64, b: &u64| a < b;
        let read = || *variables.read(Colour::White, 1, unpack, less).unwrap().unwrap();
        let improve = |value| variables.improve(Colour::White, 1, value, unpack, less).unwrap();
        assert_eq!(read(), 4);
        assert!(!improve(5) && improve(3));
        assert_eq!(read(), 3);
    }

    #[test]
    fn who_waits_for_a_variable_is_told_once_when_the_last_node_has_it() {
        let variables = Variables::default();
        let who = (PeId(3), Colour::White);
        variables.expect(1, [NodeId(0), NodeId(2)].into(), (CallbackTarget::Ignore, packed(5)), who);
        let told = |by: u16| {
            let mut told = Vec::new();
            variables.acknowledged(NodeId(by), 1, |_, ready, colour| {
                told.push((unpack(&ready).unwrap(), colour));
            });
            (told, variables.are_acknowledged())
        };
        assert_eq!(told(0), (vec![], false));
        assert_eq!(told(0), (vec![], false));
        assert!(variables.cut(PeId(4), Colour::Red).is_empty());
        let saved = variables.cut(PeId(3), Colour::Red);
        assert_eq!(saved.iter().map(|(_, ready)| unpack(ready).unwrap()).collect::<Vec<_>>(), [5]);
        // What is saved already is not of the snapshot when it is sent.
        assert_eq!(told(2), (vec![(5, Colour::Red)], true));
        assert_eq!(told(2), (vec![], true));
    }

    #[test]
    fn bytes_are_kept_from_when_that_was_asked() {
        let variables = Variables::default();
        let arrive = |colour, id, kind, value| {
            variables.arrive(colour, (id, kind, PeId(0)), packed(value), None);
        };
        arrive(None, 1, VariableKind::Once, 5);
        assert!(variables.bytes().is_empty());
        variables.keep_bytes();
        for (id, kind) in [(2, VariableKind::Once), (3, VariableKind::Monotonic)] {
            for value in [7, 8] {
                arrive(None, id, kind, value);
            }
        }
        let kept = || {
            let bytes = variables.bytes();
            let mut kept: Vec<_> =
                bytes.iter().map(|(id, .., packed)| (*id, unpack(packed).unwrap())).collect();
            kept.sort_unstable();
            kept
        };
        assert_eq!(kept(), [(2, 7), (3, 8)]);
        // What is not of a snapshot is kept when that is over.
        variables.set_later(Some(Colour::Red));
        arrive(Some(Colour::Red), 3, VariableKind::Monotonic, 10);
        arrive(Some(Colour::White), 3, VariableKind::Monotonic, 9);
        arrive(Some(Colour::Red), 4, VariableKind::Once, 1);
        assert_eq!(kept(), [(2, 7), (3, 9)]);
        variables.set_later(None);
        assert_eq!(kept(), [(2, 7), (3, 10), (4, 1)]);
    }

    #[test]
    fn bytes_of_another_type_are_an_error() {
        let variables = Variables::default();
        variables.arrive(None, (1, VariableKind::Once, PeId(0)), Packed::default(), None);
        let read = |id| variables.read(Colour::White, id, unpack, |_, _| false);
        assert!(read(1).is_err());
        variables.set(2, Arc::new("text"));
        assert!(read(2).is_err());
    }

    #[test]
    fn who_has_not_been_cut_does_not_see_what_was_set_after_a_cut() {
        let variables = Variables::default();
        let less = |a: &u64, b: &u64| a < b;
        let read = |colour, id| variables.read(colour, id, unpack, less).unwrap().map(|value| *value);
        let arrive = |colour, id, kind, value| {
            variables.arrive(Some(colour), (id, kind, PeId(0)), packed(value), Some(NodeId(1)))
        };
        let (white, red) = (Colour::White, Colour::Red);
        assert!(arrive(white, 1, VariableKind::Monotonic, 9));
        assert!(!arrive(red, 1, VariableKind::Monotonic, 4) && !arrive(red, 2, VariableKind::Once, 5));
        assert!(variables.improve(red, 1, 3, unpack, less).unwrap());
        assert_eq!((read(white, 1), read(white, 2)), (Some(9), None));
        // Whoever has set it himself finds it set.
        assert_eq!(read(red, 2), Some(5));
        assert_eq!(variables.change_colour(), [(NodeId(1), 1), (NodeId(1), 2)]);
        assert_eq!((read(red, 1), read(red, 2)), (Some(4), Some(5)));
        assert!(variables.improve(red, 1, 3, unpack, less).unwrap());
        assert_eq!(read(red, 1), Some(3));
        // What was said before, and comes late, is there.
        assert!(arrive(white, 3, VariableKind::Once, 6));
        variables.close();
        assert!(!arrive(white, 4, VariableKind::Once, 7));
        assert_eq!((read(red, 3), read(red, 4)), (Some(6), None));
    }
}
