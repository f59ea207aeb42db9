//! What PEs of a node have added to accumulators. They add without a message, so that what they add is told apart by their
//! colours while some have been cut and others have not.

use crate::envelope::{Packed, Value};
use crate::proto::snapshot::Colour;
use dashmap::DashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The sums of one node.
#[derive(Default)]
pub struct Sums {
    /// What was added in each colour. After a snapshot all is in one of them again.
    of: [DashMap<u64, Sum>; 2],
    /// While PEs are being cut. Held whenever sums are taken away.
    saving: Mutex<Option<Saving>>,
}

/// What is to be saved of sums.
struct Saving {
    /// The colour of those who have not been cut.
    old: Colour,
    /// What was collected meanwhile of what they had added.
    collected: Vec<(u64, Packed)>,
}

struct Sum {
    value: Mutex<Value>,
    combine: fn(&mut Value, Value),
    pack: fn(&Value) -> Packed,
}

impl Sum {
    fn into_value(self) -> Value {
        self.value.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn packed(&self) -> Packed {
        (self.pack)(&self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sums({} and {})", self.of[0].len(), self.of[1].len())
    }
}

impl Sums {
    /// Somebody of that colour adds to an accumulator.
    pub fn add(
        &self,
        colour: Colour,
        id: u64,
        value: Value,
        combine: fn(&mut Value, Value),
        pack: fn(&Value) -> Packed,
    ) {
        match self.of[colour as usize].entry(id) {
            dashmap::Entry::Occupied(mut sum) => {
                combine(sum.get_mut().value.get_mut().unwrap_or_else(PoisonError::into_inner), value);
            }
            dashmap::Entry::Vacant(empty) => {
                empty.insert(Sum { value: Mutex::new(value), combine, pack });
            }
        }
    }

    /// What has been added to each accumulator, which stays; one part or two of each.
    #[must_use]
    pub fn all(&self) -> Vec<(u64, Packed)> {
        self.of.iter().flat_map(DashMap::iter).map(|sum| (*sum.key(), sum.packed())).collect()
    }

    /// What has been added to an accumulator since the last time; nothing remains.
    #[must_use]
    pub fn collect(&self, id: u64) -> Option<Packed> {
        let mut saving = self.saving();
        let parts = self.of.each_ref().map(|sums| sums.remove(&id).map(|(_, sum)| sum));
        if let Some(Saving { old, collected }) = &mut *saving
            && let Some(part) = &parts[*old as usize]
        {
            collected.push((id, part.packed()));
        }
        match parts {
            [Some(mut sum), Some(other)] => {
                (sum.combine)(
                    sum.value.get_mut().unwrap_or_else(PoisonError::into_inner),
                    other.into_value(),
                );
                Some(sum.packed())
            }
            [sum, other] => sum.or(other).map(|sum| sum.packed()),
        }
    }

    /// PEs of that colour are to be cut.
    pub(super) fn begin(&self, old: Colour) {
        *self.saving() = Some(Saving { old, collected: Vec::new() });
    }

    /// All have been cut: what had been added before, by parts.
    pub(super) fn cut(&self) -> Vec<(u64, Packed)> {
        // Whoever collects after this has been taken notes nothing down, so that the lock is held until the rest has been read.
        let mut saving = self.saving();
        let Some(Saving { old, collected }) = saving.take() else { return Vec::new() };
        let left = self.of[old as usize].iter().map(|sum| (*sum.key(), sum.packed()));
        left.chain(collected).collect()
    }

    /// Nobody has that colour any more: what was added in it is added to the rest.
    pub(super) fn close(&self, old: Colour) {
        let _kept = self.saving();
        let ids: Vec<u64> = self.of[old as usize].iter().map(|sum| *sum.key()).collect();
        for id in ids {
            if let Some((_, sum)) = self.of[old as usize].remove(&id) {
                let (combine, pack) = (sum.combine, sum.pack);
                self.add(old.other(), id, sum.into_value(), combine, pack);
            }
        }
    }

    fn saving(&self) -> MutexGuard<'_, Option<Saving>> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    fn packed(value: u64) -> Packed {
        Packed { body: value.to_le_bytes().to_vec().into(), attachments: Vec::new() }
    }

    fn number(packed: &Packed) -> u64 {
        u64::from_le_bytes(packed.body[..].try_into().unwrap())
    }

    fn add(sums: &Sums, colour: Colour, value: u64) {
        let combine: fn(&mut Value, Value) =
            |a, b| *a.downcast_mut::<u64>().unwrap() += *b.downcast_ref::<u64>().unwrap();
        sums.add(colour, 1, Box::new(value), combine, |v| packed(*v.downcast_ref::<u64>().unwrap()));
    }

    fn sum(parts: Vec<(u64, Packed)>) -> u64 {
        parts.iter().map(|(_, packed)| number(packed)).sum()
    }

    #[test]
    fn they_are_emptied_by_collecting() {
        let sums = Sums::default();
        add(&sums, Colour::White, 2);
        add(&sums, Colour::White, 3);
        assert_eq!(sum(sums.all()), 5);
        assert_eq!(sums.collect(1).as_ref().map(number), Some(5));
        assert!(sums.collect(1).is_none());
    }

    static PACKS: AtomicBool = AtomicBool::new(false);

    /// Takes its time once, so that others may come between.
    fn slowly(_: &Value) -> Packed {
        if !PACKS.swap(true, Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(30));
        }
        packed(1)
    }

    #[test]
    fn what_is_collected_while_the_last_pe_is_cut_is_of_the_snapshot_too() {
        let ids = || 0..200;
        let sums = Sums::default();
        ids().for_each(|id| sums.add(Colour::White, id, Box::new(()), |_, _| {}, slowly));
        sums.begin(Colour::White);
        let saved = std::thread::scope(|scope| {
            let saved = scope.spawn(|| sums.cut());
            while !PACKS.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            assert!(ids().all(|id| sums.collect(id).is_some()));
            saved.join().unwrap()
        });
        assert_eq!(saved.len(), ids().count());
    }

    #[test]
    fn a_snapshot_has_what_was_added_before_it_whatever_is_collected_meanwhile() {
        let sums = Sums::default();
        let (white, red) = (Colour::White, Colour::Red);
        add(&sums, white, 1);
        sums.begin(white);
        // One PE has been cut, the other has not.
        add(&sums, red, 10);
        add(&sums, white, 2);
        assert_eq!(sums.collect(1).as_ref().map(number), Some(13));
        add(&sums, white, 4);
        add(&sums, red, 20);
        assert_eq!(sum(sums.cut()), 7);
        add(&sums, red, 40);
        sums.close(white);
        // The next one counts all of it as one sum.
        sums.begin(red);
        add(&sums, white, 100);
        assert_eq!(sum(sums.cut()), 64);
        assert_eq!(sums.collect(1).as_ref().map(number), Some(164));
        sums.close(red);
        assert!(sums.collect(1).is_none() && sums.cut().is_empty());
    }
}
