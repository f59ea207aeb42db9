//! The other queue of Dijkstra's algorithm: vertices sorted roughly by distance, into a ring of buckets.
//!
//! A bucket holds the vertices whose distances lie in one stretch as long as a short arc. The nearest bucket that is
//! not empty is emptied in any order; a vertex that gets nearer meanwhile is looked at once more. So every distance
//! ends as the least, as with a heap, without comparing vertices with each other. Arcs of a quarter of all at most are
//! shorter than a stretch, so that this happens rarely. Sources: R. B. Dial, "Algorithm 360: shortest-path forest with
//! topological ordering", 1969; U. Meyer and P. Sanders, "Delta-stepping", 2003.

use super::distance::Distance;

/// Most buckets of a ring: more would not stay in the nearest caches. Weights that are more unlike need a heap.
const BUCKETS_MAX: u64 = 1 << 14;
/// Bits of a word that says which buckets are not empty.
const WORD: u64 = 64;

/// How long the stretch of a bucket is: a power of two for whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    /// Its logarithm.
    pub shift: u32,
    /// One part in it.
    pub inverse: f64,
}

/// A ring of buckets.
#[derive(Debug)]
pub struct Buckets {
    width: Width,
    ring: Vec<Vec<u32>>,
    is_filled: Vec<u64>,
}

impl Buckets {
    /// For searches in a graph with these weights, none of them negative; `None` if a heap suits them better.
    #[must_use]
    pub fn for_weights<D: Distance>(weights: &[D]) -> Option<Self> {
        let mut lengths: Vec<f64> =
            weights.iter().map(|weight| weight.to_f64()).filter(|w| *w > 0.0).collect();
        let longest = lengths.iter().copied().fold(0.0, f64::max);
        let quarter = lengths.len() / 4;
        let is_any = quarter < lengths.len();
        let short = if is_any { *lengths.select_nth_unstable_by(quarter, f64::total_cmp).1 } else { 1.0 };
        let whole = (short / 2.0).max(1.0).log2() as u32;
        let width = Width { shift: whole, inverse: 2.0 / short };
        let needed = if D::TYPE.is_whole() {
            longest / f64::from(1 << whole.min(30))
        } else {
            longest * width.inverse
        };
        // Looked at before it is rounded up to a power of two, which there may be none of.
        let suits = needed <= (BUCKETS_MAX - 3) as f64 && whole <= 30 && width.inverse.is_finite();
        if !suits {
            return None;
        }
        let buckets = (needed.ceil() as u64 + 3).next_power_of_two().max(WORD);
        let ring = (0..buckets).map(|_| Vec::new()).collect();
        Some(Self { width, ring, is_filled: vec![0; (buckets / WORD) as usize] })
    }

    /// The stretch in which a distance lies.
    #[inline(always)]
    pub fn stretch<D: Distance>(&self, distance: D) -> u64 {
        distance.stretch(&self.width)
    }

    /// Puts a vertex into the bucket of a stretch that lies less than a longest arc beyond the nearest.
    #[inline(always)]
    pub fn put(&mut self, stretch: u64, vertex: u32) {
        let at = stretch as usize & (self.ring.len() - 1);
        self.is_filled[at / WORD as usize] |= 1 << (at as u64 % WORD);
        self.ring[at].push(vertex);
    }

    /// The nearest stretch from this one on that has vertices; `None` if none has.
    #[must_use]
    pub fn next(&self, from: u64) -> Option<u64> {
        let (words, first) = (self.is_filled.len(), from as usize & (self.ring.len() - 1));
        let in_first = self.is_filled[first / WORD as usize] & (u64::MAX << (first as u64 % WORD));
        if in_first != 0 {
            return Some(from + u64::from(in_first.trailing_zeros()) - first as u64 % WORD);
        }
        // The first word once more at the end: what is before the first bucket in it comes last in the ring.
        (1..=words).find_map(|step| {
            let word = self.is_filled[(first / WORD as usize + step) % words];
            let begin = from - first as u64 % WORD + step as u64 * WORD;
            (word != 0).then(|| begin + u64::from(word.trailing_zeros()))
        })
    }

    /// The `at`th vertex of a bucket.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, stretch: u64, at: usize) -> Option<u32> {
        self.ring[stretch as usize & (self.ring.len() - 1)].get(at).copied()
    }

    /// Empties a bucket.
    pub fn clear(&mut self, stretch: u64) {
        let at = stretch as usize & (self.ring.len() - 1);
        self.is_filled[at / WORD as usize] &= !(1 << (at as u64 % WORD));
        self.ring[at].clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_nearest_stretch_comes_next_all_round_the_ring(
            longest in 1i32..9000, gaps in prop::collection::vec((0.0f64..1.0, 0.0f64..1.0), 1..200),
        ) {
            let weights = [1, 1, 1, longest];
            let mut buckets = Buckets::for_weights(&weights).unwrap();
            let (mut nearest, mut waiting) = (0u64, std::collections::BTreeSet::new());
            for (at, (far, _)) in (0..).zip(&gaps) {
                let stretch = nearest + (far * f64::from(longest)) as u64;
                waiting.insert(stretch);
                buckets.put(stretch, at);
                if at % 3 == 2 {
                    prop_assert_eq!(buckets.next(nearest), waiting.pop_first());
                    nearest = buckets.next(nearest).unwrap();
                    prop_assert!(buckets.get(nearest, 0).is_some());
                    buckets.clear(nearest);
                    prop_assert!(buckets.get(nearest, 0).is_none());
                }
            }
            while let Some(stretch) = waiting.pop_first() {
                prop_assert_eq!(buckets.next(nearest), Some(stretch));
                nearest = stretch;
                buckets.clear(nearest);
            }
            prop_assert_eq!(buckets.next(nearest), None);
        }
    }

    /// A stretch is half of a short arc, for whole numbers rounded down to a power of two; the ring is as long as the
    /// longest arc and a little more, rounded up to one.
    #[test]
    fn rings_are_as_long_as_the_longest_arc() {
        let whole = Buckets::for_weights(&[100, 10_000, 100, 100]).unwrap();
        assert_eq!((whole.width.shift, whole.ring.len(), whole.is_filled.len()), (5, 512, 8));
        let real = Buckets::for_weights(&[100.0, 10_000.0, 100.0, 100.0]).unwrap();
        assert_eq!((real.width.inverse, real.ring.len()), (0.02, 256));
        assert_eq!(Buckets::for_weights(&[1, 1, 16_381]).unwrap().ring.len() as u64, BUCKETS_MAX);
        assert!(Buckets::for_weights(&[1, 1, 16_382]).is_none());
    }

    #[test]
    fn very_unlike_weights_want_a_heap() {
        assert!(Buckets::for_weights(&[1, 1, 1_000_000]).is_none());
        assert!(Buckets::for_weights(&[1e-9, 1.0]).is_none());
        // As unlike as numbers can be: more buckets than there are whole numbers.
        assert!(Buckets::for_weights(&[1e-300, 1e300]).is_none());
        assert!(Buckets::for_weights(&[5e-324, 1.0]).is_none());
        assert!(Buckets::for_weights(&[1i64, 1 << 60]).is_none());
        assert!(Buckets::for_weights::<f64>(&[]).is_some() && Buckets::for_weights(&[0, 0]).is_some());
        let some = Buckets::for_weights(&[500.0f32, 1.0, 1000.0, 800.0]).unwrap();
        assert_eq!((some.stretch(0.0f32), some.stretch(999.0f32)), (0, 3));
    }
}
