//! Undirected graphs as rows of bits, and what is searched: the complement, its vertices in an order that makes bounds tight.

use crate::matrix::generate::hash;
use chares::Bulk;
use serde::{Deserialize, Serialize};

/// Most vertices: the rows then take 512 MiB.
pub const VERTICES_MAX: usize = 1 << 16;

/// An undirected graph without loops.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Count of vertices.
    pub vertices: usize,
    /// The names of the vertices where they are not consecutive numbers, in ascending order.
    pub names: Option<Vec<u64>>,
    /// The name of the first vertex where they are.
    pub first: u64,
    bits: Vec<u64>,
}

impl Graph {
    /// With so many vertices and no edges.
    #[must_use]
    pub fn new(vertices: usize) -> Self {
        Self { vertices, names: None, first: 0, bits: vec![0; vertices * words_of(vertices)] }
    }

    /// Each pair of vertices has an edge with this probability; a function of the arguments.
    #[must_use]
    pub fn random(vertices: usize, density: f64, seed: u64) -> Self {
        let mut graph = Self::new(vertices);
        for one in 0..vertices {
            let others = (0..one).filter(|&other| is_joined_at_random(density, seed, (one, other)));
            others.for_each(|other| graph.join(one, other));
        }
        graph
    }

    /// Adds an edge, unless it is a loop.
    pub fn join(&mut self, one: usize, other: usize) {
        if one != other {
            let words = words_of(self.vertices);
            self.bits[one * words + other / 64] |= 1 << (other % 64);
            self.bits[other * words + one / 64] |= 1 << (one % 64);
        }
    }

    /// Whether there is an edge.
    #[must_use]
    pub fn has_edge(&self, one: usize, other: usize) -> bool {
        holds(self.row(one), other)
    }

    /// The neighbours of a vertex.
    #[must_use]
    pub fn row(&self, vertex: usize) -> &[u64] {
        let words = words_of(self.vertices);
        &self.bits[vertex * words..(vertex + 1) * words]
    }

    /// Count of edges.
    #[must_use]
    pub fn edges(&self) -> u64 {
        count(&self.bits) as u64 / 2
    }

    /// Edges for each pair of vertices, 0 to 1.
    #[must_use]
    pub fn density(&self) -> f64 {
        let pairs = self.vertices * self.vertices.saturating_sub(1) / 2;
        self.edges() as f64 / pairs.max(1) as f64
    }

    /// The graph that has the edges that this one has not.
    #[must_use]
    pub fn complement(mut self) -> Self {
        let all = all(self.vertices);
        for (vertex, row) in self.bits.chunks_exact_mut(all.len().max(1)).enumerate() {
            row.iter_mut().zip(&all).for_each(|(word, all)| *word = !*word & all);
            remove(row, vertex);
        }
        self
    }

    /// What the user calls a vertex.
    #[must_use]
    pub fn name(&self, vertex: usize) -> u64 {
        self.names.as_ref().map_or(self.first + vertex as u64, |names| names[vertex])
    }
}

/// Whether a random graph has this edge.
pub(super) fn is_joined_at_random(density: f64, seed: u64, (one, other): (usize, usize)) -> bool {
    let (low, high) = (one.min(other), one.max(other));
    let part = (hash(seed, high as u64, low as u64) >> 11) as f64 / (1u64 << 53) as f64;
    part < density
}

/// The complement of a graph or of a part of it, in which an independent set is a clique. Its vertices may be renumbered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Complement {
    /// The vertex of the graph at each place.
    pub vertices: Bulk<u32>,
    /// Words of a row.
    pub words: usize,
    rows: Bulk<u64>,
}

impl Complement {
    /// Of a graph. Of what is left when all behind it are taken away, each vertex has the fewest neighbours (the degeneracy
    /// order), so that the last, which are tried first, have few candidates.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        Self::renumbered(graph, degeneracy_order(graph))
    }

    /// Of a graph, each vertex at its own place.
    #[must_use]
    pub fn in_place(graph: &Graph) -> Self {
        Self::renumbered(graph, (0..graph.vertices as u32).collect())
    }

    /// Of the part of a graph that has these vertices; `rows` has what may be in a set with each, by their places here. None
    /// if they do not fit together.
    #[must_use]
    pub fn of_part(vertices: Vec<u32>, rows: Vec<u64>) -> Option<Self> {
        let words = words_of(vertices.len());
        let fits = rows.len() == vertices.len() * words;
        fits.then(|| Self { vertices: vertices.into(), words, rows: rows.into() })
    }

    fn renumbered(graph: &Graph, order: Vec<u32>) -> Self {
        let mut places = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, &vertex)| places[vertex as usize] = place);
        let words = words_of(order.len());
        let mut rows = Bulk::zeros(order.len() * words);
        let bits: &mut [u64] = rows.as_mut_slice();
        let all = all(order.len());
        for (place, &vertex) in order.iter().enumerate() {
            let row = &mut bits[place * words..(place + 1) * words];
            row.copy_from_slice(&all);
            remove(row, place);
            members(graph.row(vertex as usize)).for_each(|other| remove(row, places[other]));
        }
        Self { vertices: order.into(), words, rows }
    }

    /// Count of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether there is no vertex.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// The vertices that may be in a set with this one.
    #[must_use]
    pub fn row(&self, place: usize) -> &[u64] {
        &self.rows[place * self.words..(place + 1) * self.words]
    }

    /// Units of work of reading so many rows.
    #[must_use]
    pub fn work(&self, rows: u64) -> f64 {
        work(self.words, rows)
    }
}

/// Units of work of reading so many rows of so many words, each with what it takes beside its words.
#[must_use]
pub fn work(words: usize, rows: u64) -> f64 {
    rows as f64 * (words + ROW_WORDS) as f64
}

/// What a row costs beside its words, in words.
const ROW_WORDS: usize = 13;

/// Vertices such that in the complement each has the fewest neighbours among those before it; of equals the one whose
/// neighbours have fewest.
fn degeneracy_order(graph: &Graph) -> Vec<u32> {
    let vertices = graph.vertices;
    let mut degrees: Vec<usize> =
        (0..vertices).map(|vertex| vertices - 1 - count(graph.row(vertex))).collect();
    let total: usize = degrees.iter().sum();
    let of_neighbours = |vertex: usize| {
        let others: usize = members(graph.row(vertex)).map(|other| degrees[other]).sum();
        total - degrees[vertex] - others
    };
    let support: Vec<usize> = (0..vertices).map(of_neighbours).collect();
    let mut left: Vec<usize> = (0..vertices).collect();
    let mut order = Vec::with_capacity(vertices);
    while let Some(at) = (0..left.len()).min_by_key(|&at| (degrees[left[at]], support[left[at]], left[at])) {
        let vertex = left.swap_remove(at);
        left.iter().for_each(|&other| degrees[other] -= usize::from(!graph.has_edge(vertex, other)));
        order.push(u32::try_from(vertex).unwrap_or(u32::MAX));
    }
    order.reverse();
    order
}

/// Words of a row of so many bits.
#[must_use]
pub fn words_of(vertices: usize) -> usize {
    vertices.div_ceil(64)
}

/// All of so many vertices.
#[must_use]
pub fn all(vertices: usize) -> Vec<u64> {
    let mut all = vec![!0; words_of(vertices)];
    if let (Some(last), used @ 1..) = (all.last_mut(), vertices % 64) {
        *last = (1 << used) - 1;
    }
    all
}

/// Count of the members of a set.
#[must_use]
pub fn count(set: &[u64]) -> usize {
    set.iter().map(|word| word.count_ones() as usize).sum()
}

/// Whether a set has this member.
#[must_use]
pub fn holds(set: &[u64], member: usize) -> bool {
    set[member / 64] >> (member % 64) & 1 == 1
}

/// Adds a member to a set.
pub fn insert(set: &mut [u64], member: usize) {
    set[member / 64] |= 1 << (member % 64);
}

/// Takes a member out of a set.
pub fn remove(set: &mut [u64], member: usize) {
    set[member / 64] &= !(1 << (member % 64));
}

/// The members of a set, ascending.
pub fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(at, &word)| {
        let next = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
        let bits = std::iter::successors(Some(word).filter(|word| *word != 0), next);
        bits.map(move |left| at * 64 + left.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::super::neighbours::addable;
    use super::*;

    #[test]
    fn the_complement_has_every_edge_that_the_graph_has_not_in_whatever_order() {
        for vertices in [0, 1, 63, 64, 65, 130] {
            let graph = Graph::random(vertices, 0.3, 7);
            let (complement, searched) = (graph.clone().complement(), Complement::of(&graph));
            let in_place = Complement::in_place(&graph);
            assert!((0..vertices).all(|vertex| in_place.row(vertex) == complement.row(vertex)));
            let pairs = (vertices * vertices.saturating_sub(1) / 2) as u64;
            assert_eq!((graph.edges() + complement.edges(), searched.len()), (pairs, vertices));
            for (one, &first) in searched.vertices.iter().enumerate() {
                for (other, &second) in searched.vertices.iter().enumerate() {
                    let [first, second] = [first as usize, second as usize];
                    let expected = one != other && !graph.has_edge(first, second);
                    assert_eq!(holds(searched.row(one), other), expected);
                    assert_eq!(complement.has_edge(first, second), expected);
                }
            }
            assert_eq!(complement.complement(), graph);
        }
    }

    #[test]
    fn what_may_be_added_to_a_set_is_found_and_so_is_an_edge_in_it() {
        let mut path = Graph::new(5);
        (0..4).for_each(|at| path.join(at, at + 1));
        path.join(2, 2);
        assert_eq!(path.edges(), 4, "a loop is none");
        assert_eq!(addable(&path, &[1]), Ok(vec![3, 4]));
        assert_eq!(addable(&path, &[1, 3]), Ok(vec![]));
        assert_eq!(addable(&path, &[0, 2, 3]), Err((2, 3)));
        assert_eq!(members(&all(70)).collect::<Vec<_>>(), (0..70).collect::<Vec<_>>());
    }

    #[test]
    fn random_graphs_have_about_the_density_that_is_asked_for() {
        for density in [0.0, 0.1, 0.54, 1.0] {
            let found = Graph::random(300, density, 5).density();
            assert!((found - density).abs() < 0.02, "{found} of {density}");
        }
    }
}
