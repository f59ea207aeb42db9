//! Graphs: a list of edges as files and generators give them, and compressed rows as searches want them.

use super::distance::{Distance, DistanceType};
use chares::Bulk;
use serde::{Deserialize, Serialize};

/// Most vertices of a graph: row and column numbers of results are 32 bits, and negative ones say that there is none.
pub const VERTICES_MAX: usize = 1 << 30;
/// Most edges, the reverse ones of undirected graphs included.
pub const EDGES_MAX: usize = u32::MAX as usize;

/// Weights as they were read.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// Whole numbers all.
    Whole(Vec<i64>),
    /// With fractions.
    Real(Vec<f64>),
}

/// Directed edges in any order; parallel ones and loops included.
#[derive(Clone, Debug, PartialEq)]
pub struct Edges {
    /// Vertices, numbered from 0.
    pub vertices: usize,
    /// Where each edge begins.
    pub from: Vec<u32>,
    /// Where it ends.
    pub to: Vec<u32>,
    /// How long it is.
    pub weights: Weights,
    /// The names of the vertices in the file, ascending, where they are not just the numbers.
    pub names: Option<Vec<u64>>,
    /// The line of the first edge with a negative weight.
    pub negative: Option<Negative>,
}

/// A negative weight, and where it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Negative {
    /// The line in the file, from 1.
    pub line: u64,
    /// As it was written.
    pub weight: String,
}

impl Edges {
    /// Count of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.from.len()
    }

    /// Whether there is no edge.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from.is_empty()
    }

    /// Adds the reverse of every edge that is not a loop.
    pub fn make_undirected(&mut self) {
        for at in 0..self.len() {
            let (from, to) = (self.from[at], self.to[at]);
            if from == to {
                continue;
            }
            self.from.push(to);
            self.to.push(from);
            match &mut self.weights {
                Weights::Whole(weights) => weights.push(weights[at]),
                Weights::Real(weights) => weights.push(weights[at]),
            }
        }
    }

    /// The weight of the edge with this number in the list.
    #[must_use]
    pub fn weight<D: Distance>(&self, at: usize) -> D {
        match &self.weights {
            Weights::Whole(weights) => D::of_whole(weights[at]),
            Weights::Real(weights) => D::of_real(weights[at]),
        }
    }

    /// The greatest magnitude of a weight.
    #[must_use]
    pub fn heaviest(&self) -> f64 {
        match &self.weights {
            Weights::Whole(weights) => {
                weights.iter().fold(0.0, |most, w| w.unsigned_abs().max(most as u64) as f64)
            }
            Weights::Real(weights) => weights.iter().fold(0.0, |most, w| w.abs().max(most)),
        }
    }

    /// No path without a cycle is longer.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.heaviest() * self.vertices.saturating_sub(1).max(1) as f64
    }

    /// The smallest type that holds every distance exactly, or as well as the weights are known.
    #[must_use]
    pub fn natural_type(&self) -> DistanceType {
        match &self.weights {
            Weights::Whole(_) if self.longest() <= DistanceType::I32.longest() => DistanceType::I32,
            Weights::Whole(_) => DistanceType::I64,
            Weights::Real(_) => DistanceType::F64,
        }
    }
}

/// A graph in compressed rows: what a search from one vertex walks through.
///
/// Vertices have *places* in it: numbered so that neighbours lie near each other (breadth first, component by
/// component), which spares searches most of their misses in the caches. Of parallel edges the shortest is kept,
/// loops are left out unless one is negative; neither is on a shortest path.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct Graph<D> {
    /// The arcs of place `p` are `first[p]..first[p + 1]`.
    pub first: Bulk<u32>,
    /// Where each arc ends, a place.
    pub ends: Bulk<u32>,
    /// How long each arc is.
    pub weights: Bulk<D>,
    /// The place of each vertex.
    pub places: Bulk<u32>,
    /// The vertex at each place.
    pub vertices: Bulk<u32>,
}

impl<D: Distance> Graph<D> {
    /// Compressed rows of these edges.
    #[must_use]
    pub fn new(edges: &Edges) -> Self {
        let vertices = breadth_first(edges);
        let mut places = vec![0; vertices.len()];
        (0..).zip(&vertices).for_each(|(place, &vertex)| places[vertex as usize] = place);
        let place = |vertex: u32| places[vertex as usize];
        let (mut first, list) = rows(edges, |at| place(edges.from[at]));
        let (mut ends, mut weights) = (Vec::with_capacity(list.len()), Vec::<D>::with_capacity(list.len()));
        let mut row: Vec<(u32, D)> = Vec::new();
        for at in 0..edges.vertices {
            row.clear();
            let here = list[first[at] as usize..first[at + 1] as usize].iter();
            row.extend(here.map(|&edge| (place(edges.to[edge as usize]), edges.weight::<D>(edge as usize))));
            row.retain(|&(to, weight)| to as usize != at || weight < D::ZERO);
            // The shortest of parallel arcs comes first and stays.
            row.sort_by(|one, other| {
                one.0.cmp(&other.0).then(one.1.partial_cmp(&other.1).unwrap_or(std::cmp::Ordering::Equal))
            });
            row.dedup_by_key(|arc| arc.0);
            first[at] = count(ends.len());
            ends.extend(row.iter().map(|arc| arc.0));
            weights.extend(row.iter().map(|arc| arc.1));
        }
        first[edges.vertices] = count(ends.len());
        Self {
            first: first.into(),
            ends: ends.into(),
            weights: weights.into(),
            places: places.into(),
            vertices: vertices.into(),
        }
    }

    /// Count of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no vertex.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Count of arcs.
    #[must_use]
    pub fn arcs(&self) -> usize {
        self.ends.len()
    }
}

/// Bytes of a graph in compressed rows.
#[must_use]
pub fn graph_bytes(vertices: usize, arcs: usize, kind: DistanceType) -> u64 {
    12 * vertices as u64 + arcs as u64 * (4 + kind.size_bytes() as u64)
}

fn count(edges: usize) -> u32 {
    u32::try_from(edges).expect("readers and generators give at most EDGES_MAX edges")
}

/// Sorts edges by the row that `of` gives: where each row begins, and the numbers of its edges in their order.
fn rows(edges: &Edges, of: impl Fn(usize) -> u32) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; edges.vertices + 1];
    (0..edges.len()).for_each(|at| first[of(at) as usize + 1] += 1);
    (0..edges.vertices).for_each(|row| first[row + 1] += first[row]);
    let mut next = first.clone();
    let mut list = vec![0; edges.len()];
    for at in 0..edges.len() {
        let place = &mut next[of(at) as usize];
        list[*place as usize] = count(at);
        *place += 1;
    }
    (first, list)
}

/// All vertices, each near those that it has edges to.
fn breadth_first(edges: &Edges) -> Vec<u32> {
    let (first, list) = rows(edges, |at| edges.from[at]);
    let mut is_known = vec![false; edges.vertices];
    let mut order = Vec::with_capacity(edges.vertices);
    for root in 0..count(edges.vertices) {
        if std::mem::replace(&mut is_known[root as usize], true) {
            continue;
        }
        let mut next = order.len();
        order.push(root);
        while let Some(&vertex) = order.get(next) {
            next += 1;
            let at = vertex as usize;
            for &edge in &list[first[at] as usize..first[at + 1] as usize] {
                let to = edges.to[edge as usize];
                if !std::mem::replace(&mut is_known[to as usize], true) {
                    order.push(to);
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_edges_loops_and_vertices_without_edges_are_sorted_out() {
        let mut edges = Edges {
            vertices: 5,
            from: vec![0, 3, 0, 3, 3, 1],
            to: vec![3, 1, 3, 3, 0, 1],
            weights: Weights::Whole(vec![7, 2, 4, 5, 0, 9]),
            names: None,
            negative: None,
        };
        let graph = Graph::<i32>::new(&edges);
        assert_eq!(&graph.vertices[..], [0, 3, 1, 2, 4], "breadth first from 0, then what is left");
        assert_eq!(&graph.places[..], [0, 2, 3, 1, 4]);
        assert_eq!(&graph.first[..], [0, 1, 3, 3, 3, 3]);
        assert_eq!(&graph.ends[..], [1, 0, 2]);
        assert_eq!(&graph.weights[..], [4, 0, 2]);
        assert_eq!((edges.heaviest(), edges.longest(), edges.natural_type()), (9.0, 36.0, DistanceType::I32));
        edges.make_undirected();
        assert_eq!((edges.len(), Graph::<f64>::new(&edges).arcs()), (10, 4));
        edges.weights = Weights::Whole(vec![-1; 10]);
        assert_eq!(Graph::<i64>::new(&edges).arcs(), 6, "a negative loop is a negative cycle");
        edges.weights = Weights::Whole(vec![i64::from(i32::MAX) / 16; 10]);
        assert_eq!(edges.natural_type(), DistanceType::I64);
    }
}
