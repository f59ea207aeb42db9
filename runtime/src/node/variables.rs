//! Values that all PEs of a node share without copies: readonly, write-once, monotonic, accumulator.
//!
//! They arrive as bytes and are unpacked when somebody who knows their type first reads them.

use crate::codec::VariableKind;
use crate::envelope::{CallbackTarget, Packed, Value};
use crate::ids::{NodeId, PeId};
use crate::object::PupError;
use dashmap::DashMap;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Stands for the end of initialisation among the variables that nodes acknowledge; no variable has this number.
pub const INIT_OVER: u64 = 0;

type Shared = Arc<dyn Any + Send + Sync>;

/// The variables of one node.
#[derive(Default)]
pub struct Variables {
    values: DashMap<u64, Slot>,
    sums: DashMap<u64, Sum>,
    /// Write-once variables set here that some nodes have not acknowledged.
    unacknowledged: DashMap<u64, Unacknowledged>,
    /// The bytes of all values, once they are kept.
    bytes: OnceLock<DashMap<u64, Said>>,
}

/// How a variable changes, and its last value from each origin.
type Said = (VariableKind, FxHashMap<PeId, Packed>);

/// A write-once variable that not all nodes have in place.
struct Unacknowledged {
    missing: BTreeSet<NodeId>,
    callback: CallbackTarget,
    ready: Packed,
}

#[derive(Default)]
struct Slot {
    value: Option<Shared>,
    /// Values that have not been unpacked; at most one per origin, since a later value of an origin replaces its
    /// earlier one.
    arrived: FxHashMap<PeId, Packed>,
}

struct Sum {
    value: Mutex<Value>,
    pack: fn(&Value) -> Packed,
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variables({} values, {} sums)", self.values.len(), self.sums.len())
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

    /// What has been added to each accumulator on this node, which stays.
    #[must_use]
    pub fn sums(&self) -> Vec<(u64, Packed)> {
        let bytes = |sum: &Sum| (sum.pack)(&sum.value.lock().unwrap_or_else(PoisonError::into_inner));
        self.sums.iter().map(|sum| (*sum.key(), bytes(&sum))).collect()
    }

    /// Whether write-once variables that were set here are not yet in place everywhere.
    #[must_use]
    pub fn are_acknowledged(&self) -> bool {
        self.unacknowledged.is_empty()
    }

    /// A value arrived from `origin`. A second value of a variable that is set once is ignored.
    pub fn arrive(&self, id: u64, kind: VariableKind, origin: PeId, packed: Packed) {
        if let Some(bytes) = self.bytes.get() {
            let mut known = bytes.entry(id).or_insert_with(|| (kind, FxHashMap::default()));
            if kind == VariableKind::Monotonic || known.1.is_empty() {
                known.1.insert(origin, packed.clone());
            }
        }
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

    /// The value, shared with all readers on this node; `None` while it has not arrived. `better` says
    /// whether its first argument improves on its second (never, for variables that are set once).
    ///
    /// # Errors
    /// If the bytes that arrived are not a `T`, or the variable is of another type.
    pub fn read<T: Send + Sync + 'static>(
        &self,
        id: u64,
        unpack: impl Fn(&Packed) -> Result<T, PupError>,
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

    /// Improves a monotonic variable on this node; says whether `candidate` was an improvement here.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn improve<T: Send + Sync + 'static>(
        &self,
        id: u64,
        candidate: T,
        unpack: impl Fn(&Packed) -> Result<T, PupError>,
        better: impl Fn(&T, &T) -> bool,
    ) -> Result<bool, PupError> {
        let best = self.read(id, unpack, &better)?;
        // Between the read and this write another PE may have improved it; look again under the lock.
        let mut slot = self.values.entry(id).or_default();
        let current = slot.value.clone().and_then(|v| v.downcast::<T>().ok()).or(best);
        let is_better = current.is_none_or(|current| better(&candidate, &current));
        if is_better {
            slot.value = Some(Arc::new(candidate));
        }
        Ok(is_better)
    }

    /// Adds to an accumulator on this node.
    pub fn add(&self, id: u64, value: Value, combine: fn(&mut Value, Value), pack: fn(&Value) -> Packed) {
        match self.sums.entry(id) {
            dashmap::Entry::Occupied(mut sum) => {
                combine(sum.get_mut().value.get_mut().unwrap_or_else(PoisonError::into_inner), value);
            }
            dashmap::Entry::Vacant(empty) => {
                empty.insert(Sum { value: Mutex::new(value), pack });
            }
        }
    }

    /// What has been added to an accumulator on this node since the last time; nothing remains.
    #[must_use]
    pub fn collect(&self, id: u64) -> Option<Packed> {
        self.sums
            .remove(&id)
            .map(|(_, Sum { value, pack })| pack(&value.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// `ready` is for `callback` when all of these nodes have acknowledged the variable.
    pub(super) fn expect(&self, id: u64, missing: BTreeSet<NodeId>, callback: CallbackTarget, ready: Packed) {
        self.unacknowledged.insert(id, Unacknowledged { missing, callback, ready });
    }

    /// A node has the variable in place. If it was the last, `tell` is told what is for whom, and only then all
    /// [are acknowledged](Self::are_acknowledged).
    pub(super) fn acknowledged(&self, by: NodeId, id: u64, tell: impl FnOnce(CallbackTarget, Packed)) {
        let dashmap::Entry::Occupied(mut waiting) = self.unacknowledged.entry(id) else { return };
        waiting.get_mut().missing.remove(&by);
        if waiting.get().missing.is_empty() {
            tell(waiting.get().callback, waiting.get().ready.clone());
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
        let read = || variables.read(1, unpack, |_, _| false).unwrap().map(|v| *v);
        assert_eq!(read(), None);
        variables.arrive(1, VariableKind::Once, PeId(0), packed(5));
        variables.arrive(1, VariableKind::Once, PeId(1), packed(6));
        assert_eq!(read(), Some(5));
        variables.arrive(1, VariableKind::Once, PeId(1), packed(7));
        assert_eq!(read(), Some(5));
    }

    #[test]
    fn monotonic_keeps_the_best_of_all_origins() {
        let variables = Variables::default();
        for (origin, value) in [(0, 9), (1, 4), (0, 7), (2, 8)] {
            variables.arrive(1, VariableKind::Monotonic, PeId(origin), packed(value));
        }
        let less = |a: &u64, b: &u64| a < b;
        assert_eq!(*variables.read(1, unpack, less).unwrap().unwrap(), 4);
        assert!(!variables.improve(1, 5, unpack, less).unwrap());
        assert!(variables.improve(1, 3, unpack, less).unwrap());
        assert_eq!(*variables.read(1, unpack, less).unwrap().unwrap(), 3);
    }

    #[test]
    fn who_waits_for_a_variable_is_told_once_when_the_last_node_has_it() {
        let variables = Variables::default();
        variables.expect(1, [NodeId(0), NodeId(2)].into(), CallbackTarget::Ignore, packed(5));
        let told = |by: u16| {
            let mut told = Vec::new();
            variables.acknowledged(NodeId(by), 1, |_, ready| told.push(unpack(&ready).unwrap()));
            (told, variables.are_acknowledged())
        };
        assert_eq!(told(0), (vec![], false));
        assert_eq!(told(0), (vec![], false));
        assert_eq!(told(2), (vec![5], true));
        assert_eq!(told(2), (vec![], true));
    }

    #[test]
    fn bytes_are_kept_from_when_that_was_asked() {
        let variables = Variables::default();
        variables.arrive(1, VariableKind::Once, PeId(0), packed(5));
        assert!(variables.bytes().is_empty());
        variables.keep_bytes();
        for (id, kind) in [(2, VariableKind::Once), (3, VariableKind::Monotonic)] {
            for value in [7, 8] {
                variables.arrive(id, kind, PeId(0), packed(value));
            }
        }
        let mut kept: Vec<_> =
            variables.bytes().iter().map(|(id, .., packed)| (*id, unpack(packed).unwrap())).collect();
        kept.sort_unstable();
        assert_eq!(kept, [(2, 7), (3, 8)]);
    }

    #[test]
    fn bytes_of_another_type_are_an_error() {
        let variables = Variables::default();
        variables.arrive(1, VariableKind::Once, PeId(0), Packed::default());
        assert!(variables.read(1, unpack, |_, _| false).is_err());
        variables.set(2, Arc::new("text"));
        assert!(variables.read(2, unpack, |_, _| false).is_err());
    }

    #[test]
    fn accumulators_are_emptied_by_collecting() {
        let variables = Variables::default();
        let combine: fn(&mut Value, Value) = |a, b| {
            let b = *b.downcast_ref::<u64>().unwrap();
            *a.downcast_mut::<u64>().unwrap() += b;
        };
        let pack: fn(&Value) -> Packed = |v| packed(*v.downcast_ref::<u64>().unwrap());
        variables.add(1, Box::new(2u64), combine, pack);
        variables.add(1, Box::new(3u64), combine, pack);
        assert_eq!(unpack(&variables.collect(1).unwrap()).unwrap(), 5);
        assert!(variables.collect(1).is_none());
    }
}
