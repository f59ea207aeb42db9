//! Shortest paths from one vertex to all others, by Dijkstra's algorithm (E. W. Dijkstra, 1959).
//!
//! A distance is the least, over all paths, of the sum of the weights added one by one from the source on. For
//! floating-point numbers too that sum is the same bits wherever and in whatever order vertices are looked at, because
//! rounding never makes the longer of two sums the shorter one.

use super::buckets::Buckets;
use super::distance::{Distance, DistanceType};
use super::graph::Graph;
use super::heap::Heap;
use chares::Bulk;
use serde::{Deserialize, Serialize};

/// What stands for the vertex before the source, and before what cannot be reached.
pub const NO_VERTEX: i32 = -1;

/// What the distances from one source add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The greatest of the finite distances.
    pub eccentricity: f64,
    /// Vertices that can be reached, the source included.
    pub reached: u64,
    /// All finite distances together, in the order of the vertices.
    pub total: f64,
}

impl Summary {
    /// Takes up a further distance.
    #[inline]
    pub fn add<D: Distance>(&mut self, distance: D) {
        if !distance.is_far() {
            let distance = distance.to_f64();
            self.eccentricity = if self.reached == 0 { distance } else { self.eccentricity.max(distance) };
            self.reached += 1;
            self.total += distance;
        }
    }

    /// Takes up what a further part of the distances adds up to.
    pub fn join(&mut self, part: &Self) {
        if part.reached > 0 {
            let both = self.eccentricity.max(part.eccentricity);
            self.eccentricity = if self.reached == 0 { part.eccentricity } else { both };
            self.reached += part.reached;
            self.total += part.total;
        }
    }

    /// Closeness as of Wasserman and Faust ("Social network analysis", 1994), by distances *from* the source: vertices
    /// reached per mean distance, times the part of all vertices that is reached; 0 if none is, infinite if all that
    /// are lie 0 away.
    #[must_use]
    pub fn closeness(&self, vertices: u64) -> f64 {
        let others = self.reached.saturating_sub(1) as f64;
        if others == 0.0 || vertices < 2 { 0.0 } else { others / self.total * others / (vertices - 1) as f64 }
    }
}

/// Bytes that searches keep on each PE, for a graph of so many vertices and arcs.
#[must_use]
pub fn scratch_bytes(vertices: usize, arcs: usize, kind: DistanceType) -> u64 {
    vertices as u64 * (kind.size_bytes() as u64 + 8) + 16 * arcs as u64
}

/// Searches one source after the other in memory that is taken once.
pub struct Search<D> {
    /// By place, as all here.
    near: Vec<D>,
    before: Vec<u32>,
    queue: Option<Queue>,
    with_predecessors: bool,
}

/// What is made for the first graph that is searched, and serves for all.
enum Queue {
    Heap(Heap),
    /// With the stretch that each vertex waits in.
    Buckets(Buckets, Vec<u32>),
}

/// Stands for the stretch of a vertex that does not wait. Stretches are told apart by their last bits: all that are
/// in the ring at a time lie near each other.
const NOWHERE: u32 = u32::MAX;

fn mark(stretch: u64) -> u32 {
    stretch as u32 & (u32::MAX >> 1)
}

/// The rows of a graph, and its weights as what they are.
struct Arcs<'a, D> {
    first: &'a [u32],
    ends: &'a [u32],
    weights: &'a [D],
}

impl<'a, D: Distance> Arcs<'a, D> {
    #[inline(always)]
    fn of(&self, place: u32) -> impl Iterator<Item = (u32, D)> + use<'a, D> {
        let arcs = self.first[place as usize] as usize..self.first[place as usize + 1] as usize;
        self.ends[arcs.clone()].iter().copied().zip(self.weights[arcs].iter().copied())
    }
}

impl<D: Distance> Search<D> {
    /// A search; `with_predecessors` if these are wanted.
    #[must_use]
    pub fn new(with_predecessors: bool) -> Self {
        Self { near: Vec::new(), before: Vec::new(), queue: None, with_predecessors }
    }

    /// Finds the distances from a vertex; the vertices before each too if these are wanted.
    pub fn run(&mut self, graph: &Graph<D>, source: u32) {
        if self.with_predecessors {
            self.search::<true>(graph, source);
        } else {
            self.search::<false>(graph, source);
        }
    }

    /// What the distances add up to.
    #[must_use]
    pub fn summary(&self, graph: &Graph<D>) -> Summary {
        let mut summary = Summary::default();
        graph.places.iter().for_each(|&place| summary.add(self.near[place as usize]));
        summary
    }

    /// The distances, in the order of the vertices.
    #[must_use]
    pub fn distances(&self, graph: &Graph<D>) -> Bulk<D> {
        let mut row = Bulk::zeros(graph.len());
        for (distance, &place) in row.as_mut_slice().iter_mut().zip(graph.places.iter()) {
            *distance = self.near[place as usize];
        }
        row
    }

    /// The vertex before each on a shortest path, or [`NO_VERTEX`].
    #[must_use]
    pub fn predecessors(&self, graph: &Graph<D>) -> Bulk<i32> {
        let mut row = Bulk::zeros(graph.len());
        for (before, &place) in row.as_mut_slice().iter_mut().zip(graph.places.iter()) {
            let vertex = graph.vertices.get(self.before[place as usize] as usize);
            *before = vertex.map_or(NO_VERTEX, |vertex| vertex.cast_signed());
        }
        row
    }

    fn search<const WITH_PREDECESSORS: bool>(&mut self, graph: &Graph<D>, source: u32) {
        let arcs = Arcs { first: &graph.first, ends: &graph.ends, weights: &graph.weights };
        let start = graph.places[source as usize];
        self.near.clear();
        self.near.resize(graph.len(), D::UNREACHABLE);
        self.near[start as usize] = D::ZERO;
        if WITH_PREDECESSORS {
            self.before.clear();
            self.before.resize(graph.len(), u32::MAX);
        }
        let queue = self.queue.get_or_insert_with(|| match Buckets::for_weights(&graph.weights) {
            Some(buckets) => Queue::Buckets(buckets, vec![NOWHERE; graph.len()]),
            None => Queue::Heap(Heap::default()),
        });
        let (near, before) = (self.near.as_mut_slice(), self.before.as_mut_slice());
        match queue {
            Queue::Heap(heap) => by_heap::<D, WITH_PREDECESSORS>(&arcs, start, near, before, heap),
            Queue::Buckets(buckets, waits) => {
                by_buckets::<D, WITH_PREDECESSORS>(&arcs, start, near, before, (buckets, waits));
            }
        }
    }
}

fn by_heap<D: Distance, const WITH_PREDECESSORS: bool>(
    arcs: &Arcs<'_, D>,
    start: u32,
    near: &mut [D],
    before: &mut [u32],
    heap: &mut Heap,
) {
    heap.push(D::ZERO.key(), start);
    while let Some((key, place)) = heap.pop() {
        let distance = D::of_key(key);
        if distance > near[place as usize] {
            continue;
        }
        for (end, weight) in arcs.of(place) {
            let there = distance.plus(weight);
            if there < near[end as usize] {
                near[end as usize] = there;
                if WITH_PREDECESSORS {
                    before[end as usize] = place;
                }
                heap.push(there.key(), end);
            }
        }
    }
}

fn by_buckets<D: Distance, const WITH_PREDECESSORS: bool>(
    arcs: &Arcs<'_, D>,
    start: u32,
    near: &mut [D],
    before: &mut [u32],
    (buckets, waits): (&mut Buckets, &mut Vec<u32>),
) {
    let waits = waits.as_mut_slice();
    let mut nearest = 0;
    waits[start as usize] = mark(nearest);
    buckets.put(nearest, start);
    while let Some(stretch) = buckets.next(nearest) {
        nearest = stretch;
        let (mark_here, mut at) = (mark(stretch), 0);
        while let Some(place) = buckets.get(stretch, at) {
            at += 1;
            if waits[place as usize] != mark_here {
                continue;
            }
            waits[place as usize] = NOWHERE;
            let distance = near[place as usize];
            for (end, weight) in arcs.of(place) {
                let there = distance.plus(weight);
                if there < near[end as usize] {
                    near[end as usize] = there;
                    if WITH_PREDECESSORS {
                        before[end as usize] = place;
                    }
                    let stretch = buckets.stretch(there);
                    if waits[end as usize] != mark(stretch) {
                        waits[end as usize] = mark(stretch);
                        buckets.put(stretch, end);
                    }
                }
            }
        }
        buckets.clear(stretch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apsp::graph::{Edges, Weights};
    use proptest::prelude::*;

    fn summary(distances: &[f64]) -> Summary {
        let mut summary = Summary::default();
        distances.iter().for_each(|&distance| summary.add(distance));
        summary
    }

    #[test]
    fn distances_in_any_order_and_parts_add_up() {
        let far = f64::UNREACHABLE;
        for distances in [[2.0, 5.0, far, 1.0], [-4.0, -2.0, far, -3.0], [far, far, far, 0.0]] {
            let whole = summary(&distances);
            let reached: Vec<f64> = distances.into_iter().filter(|distance| *distance < far).collect();
            let eccentricity = reached.iter().copied().fold(-far, f64::max);
            let (reached, total) = (reached.len() as u64, reached.iter().sum());
            assert_eq!(whole, Summary { eccentricity, reached, total });
            for cut in 0..=distances.len() {
                let mut joined = summary(&distances[..cut]);
                joined.join(&summary(&distances[cut..]));
                assert_eq!(joined, whole, "{distances:?} cut at {cut}");
            }
        }
        assert_eq!(summary(&[0.0, 4.0]).closeness(2), 0.25);
        assert_eq!((summary(&[0.0]).closeness(1), summary(&[0.0, far]).closeness(2)), (0.0, 0.0));
    }

    proptest! {
        /// Weights of 0 and cycles of them included.
        #[test]
        fn both_queues_find_the_shortest_paths(
            vertices in 1u32..30, arcs in prop::collection::vec((0u32..30, 0u32..30, 0i64..6), 0..90), source in 0u32..30,
        ) {
            let source = source % vertices;
            let arcs = arcs.into_iter().map(|(from, to, weight)| (from % vertices, to % vertices, weight));
            // An arc between two more vertices, as unlike as only a heap takes.
            for (weight, is_heap) in [(1, false), (1 << 40, true)] {
                let all: Vec<_> = arcs.clone().chain([(vertices, vertices + 1, weight)]).collect();
                let edges = Edges {
                    vertices: vertices as usize + 2,
                    from: all.iter().map(|arc| arc.0).collect(),
                    to: all.iter().map(|arc| arc.1).collect(),
                    weights: Weights::Whole(all.iter().map(|arc| arc.2).collect()),
                    names: None,
                    negative: None,
                };
                let graph = Graph::<i64>::new(&edges);
                prop_assert!(!is_heap || Buckets::for_weights(&graph.weights).is_none());
                let mut expected = vec![i64::UNREACHABLE; edges.vertices];
                expected[source as usize] = 0;
                for _ in 0..vertices {
                    for &(from, to, weight) in all.iter().filter(|arc| arc.0 < vertices) {
                        let there = expected[from as usize].saturating_add(weight);
                        expected[to as usize] = expected[to as usize].min(there);
                    }
                }
                let mut search = Search::new(true);
                // Twice, for what the first search left behind.
                for from in [vertices - 1 - source, source] {
                    search.run(&graph, from);
                }
                prop_assert_eq!(&search.distances(&graph)[..], &expected);
                let before = search.predecessors(&graph);
                for end in 0..edges.vertices {
                    let (mut at, mut steps) = (end, 0);
                    while before[at] != NO_VERTEX && steps <= edges.vertices {
                        let (from, length) = (before[at] as u32, expected[at] - expected[before[at] as usize]);
                        prop_assert!(all.contains(&(from, at as u32, length)), "{from} before {at}");
                        (at, steps) = (from as usize, steps + 1);
                    }
                    let is_reached = expected[end] < i64::UNREACHABLE;
                    prop_assert_eq!(at == source as usize, is_reached, "the way back from {}", end);
                }
            }
        }
    }
}
