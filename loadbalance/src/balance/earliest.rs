//! The PE that would end a chare soonest, without asking all of them for each chare.

use super::view::{Times, key};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// PEs by speed, and among those of a speed the one that ends soonest first. With a chare more a fast PE may end before a
/// slow one that is idle, so one PE of each speed is asked.
pub(crate) struct Earliest {
    classes: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
}

impl Earliest {
    pub(crate) fn new(times: &Times, pes: impl IntoIterator<Item = u32>) -> Self {
        let pes: Vec<u32> = pes.into_iter().collect();
        let mut speeds: Vec<u64> = pes.iter().map(|pe| times.speed[*pe as usize].to_bits()).collect();
        speeds.sort_unstable();
        speeds.dedup();
        let shift = if speeds.len() > CLASSES_MAX { COARSE } else { 0 };
        let mut classes: BTreeMap<u64, BinaryHeap<_>> = BTreeMap::new();
        for pe in pes {
            let class = classes.entry(times.speed[pe as usize].to_bits() >> shift).or_default();
            class.push(Reverse((key(times.seconds(pe)), pe)));
        }
        Self { classes: classes.into_values().collect() }
    }

    /// The PE that has this load soonest; of equals the lowest number. `None` if there are no PEs.
    ///
    /// Where there are many speeds, PEs within an eighth of each other count as equally fast.
    pub(crate) fn for_load(&mut self, times: &Times, load: f64) -> Option<u32> {
        let mut best: Option<(u64, u32)> = None;
        for class in &mut self.classes {
            let Some(pe) = first(class, times) else { continue };
            let end = (key(times.seconds_with(pe, load)), pe);
            if best.is_none_or(|best| end < best) {
                best = Some(end);
            }
        }
        best.map(|(_, pe)| pe)
    }
}

/// The PE of a class that ends soonest. An entry is brought up to date when it comes to the top: times of PEs that
/// receive only grow.
fn first(class: &mut BinaryHeap<Reverse<(u64, u32)>>, times: &Times) -> Option<u32> {
    loop {
        let mut top = class.peek_mut()?;
        let Reverse((seconds, pe)) = *top;
        let now = key(times.seconds(pe));
        if now == seconds {
            return Some(pe);
        }
        *top = Reverse((now, pe));
    }
}

/// More speeds than that are put together.
const CLASSES_MAX: usize = 64;
/// Bits of a float's fraction that are left out then: three remain.
const COARSE: u32 = 49;
