//! The queue of Dijkstra's algorithm: an implicit heap with four children to a node.
//!
//! Four children make the heap half as deep as two do, and lie in one or two lines of the cache. A vertex that gets
//! nearer is put in once more; what is out of date is passed over when it comes out. Source: D. B. Johnson,
//! "Priority queues with update and finding minimum spanning trees", 1975 (d-ary heaps).

const CHILDREN: usize = 4;

/// Keys, of which the least comes out first.
#[derive(Debug)]
pub struct Heap<K> {
    keys: Vec<K>,
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self { keys: Vec::new() }
    }
}

impl<K: Copy + Ord> Heap<K> {
    /// Puts a key in.
    #[inline]
    pub fn push(&mut self, key: K) {
        let mut hole = self.keys.len();
        self.keys.push(key);
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            hole = parent;
        }
        self.keys[hole] = key;
    }

    /// Takes the least key out.
    #[inline]
    pub fn pop(&mut self) -> Option<K> {
        let last = self.keys.pop()?;
        let Some(&least) = self.keys.first() else { return Some(last) };
        let keys = self.keys.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = hole * CHILDREN + 1;
            let next = if let Some(&[a, b, c, d]) = keys.get(first..first + CHILDREN) {
                // Two by two, so that no comparison waits for more than one other.
                let (left, left_key) = if b < a { (1, b) } else { (0, a) };
                let (right, right_key) = if d < c { (3, d) } else { (2, c) };
                first + if right_key < left_key { right } else { left }
            } else {
                let Some(next) = (first..keys.len()).min_by_key(|&child| keys[child]) else { break };
                next
            };
            if keys[next] >= last {
                break;
            }
            keys[hole] = keys[next];
            hole = next;
        }
        keys[hole] = last;
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        /// Puts in (some) and takes out (none) in any order.
        #[test]
        fn the_least_comes_out_first(moves in prop::collection::vec(prop::option::weighted(0.6, 0u32..50), 0..300)) {
            let (mut heap, mut other) = (Heap::default(), BinaryHeap::default());
            for key in moves {
                match key {
                    Some(key) => {
                        heap.push(key);
                        other.push(Reverse(key));
                    }
                    None => prop_assert_eq!(heap.pop(), other.pop().map(|Reverse(key)| key)),
                }
            }
            while let Some(Reverse(key)) = other.pop() {
                prop_assert_eq!(heap.pop(), Some(key));
            }
            prop_assert_eq!(heap.pop(), None);
        }
    }
}
