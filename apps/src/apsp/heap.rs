//! The queue of Dijkstra's algorithm for weights of any kind: a radix heap.
//!
//! What comes out is never less than what came out last, so a key is only sorted by the first bit in which it differs
//! from that one: into a list for each bit. When the lists of low bits are empty, the next is sorted anew; a key moves
//! down at most once for each bit, and lists are written and read from end to end. A vertex that gets nearer is put in
//! once more; what is out of date is passed over when it comes out. Source: R. K. Ahuja, K. Mehlhorn, J. B. Orlin,
//! R. E. Tarjan, "Faster algorithms for the shortest path problem", 1990.

/// Lists: one for keys that are equal to the last, and one for each bit.
const LISTS: usize = 65;

/// Keys with a vertex each, of which one of the least keys comes out first.
#[derive(Debug)]
pub struct Heap {
    lists: Vec<Vec<(u64, u32)>>,
    last: u64,
    /// The lists that are not empty, but for the first.
    is_filled: u64,
}

impl Default for Heap {
    fn default() -> Self {
        Self { lists: vec![Vec::new(); LISTS], last: 0, is_filled: 0 }
    }
}

impl Heap {
    /// Puts in a vertex with a key that is not less than the one that came out last.
    #[inline]
    pub fn push(&mut self, key: u64, vertex: u32) {
        let bits = u64::BITS - (key ^ self.last).leading_zeros();
        if bits > 0 {
            self.is_filled |= 1 << (bits - 1);
        }
        self.lists[bits as usize].push((key, vertex));
    }

    /// Takes one of the least keys out; begins anew when there is none.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        if let Some(least) = self.lists[0].pop() {
            return Some(least);
        }
        if self.is_filled == 0 {
            self.last = 0;
            return None;
        }
        let at = self.is_filled.trailing_zeros() as usize;
        self.is_filled &= self.is_filled - 1;
        let mut list = std::mem::take(&mut self.lists[at + 1]);
        self.last = list.iter().map(|entry| entry.0).min().unwrap_or(self.last);
        list.drain(..).for_each(|(key, vertex)| self.push(key, vertex));
        self.lists[at + 1] = list;
        self.lists[0].pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        /// Puts in (some, by so much more than what came out last) and takes out (none) in any order, twice.
        #[test]
        fn the_least_comes_out_first(moves in prop::collection::vec(prop::option::weighted(0.6, (0u32..64, 0u64..9)), 0..300)) {
            let mut heap = Heap::default();
            for _ in 0..2 {
                let (mut other, mut last) = (BinaryHeap::new(), 0u64);
                for step in &moves {
                    if let Some((shift, more)) = step {
                        let key = last.saturating_add(more << shift);
                        heap.push(key, *shift);
                        other.push(Reverse(key));
                    } else if let Some(Reverse(key)) = other.pop() {
                        prop_assert_eq!(heap.pop().map(|entry| entry.0), Some(key));
                        last = key;
                    }
                }
                while let Some(Reverse(key)) = other.pop() {
                    prop_assert_eq!(heap.pop().map(|entry| entry.0), Some(key));
                }
                prop_assert_eq!(heap.pop(), None);
            }
        }
    }
}
