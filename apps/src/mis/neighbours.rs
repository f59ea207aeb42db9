//! Graphs whose rows are asked for one by one: that a set is independent, and what can be added to it, is known from the rows
//! of its vertices alone.

use super::graph::{Graph, all, holds, insert, is_joined_at_random, members, remove, words_of};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Who can tell the neighbours of a vertex.
pub trait Neighbours {
    /// Count of vertices.
    fn vertices(&self) -> usize;

    /// The neighbours of a vertex, as a set.
    fn neighbours(&self, vertex: usize) -> Cow<'_, [u64]>;

    /// What the user calls a vertex.
    fn name(&self, vertex: usize) -> u64;
}

impl Neighbours for Graph {
    fn vertices(&self) -> usize {
        self.vertices
    }

    fn neighbours(&self, vertex: usize) -> Cow<'_, [u64]> {
        self.row(vertex).into()
    }

    fn name(&self, vertex: usize) -> u64 {
        Self::name(self, vertex)
    }
}

/// A graph in which each pair of vertices has an edge with some probability; which have is a function of the numbers here, so
/// that any row can be made anywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Random {
    /// Count of vertices.
    pub vertices: usize,
    /// The probability, 0 to 1.
    pub density: f64,
    /// Whatever makes it another one.
    pub seed: u64,
    /// Whether it has just those edges that it would not have otherwise.
    pub is_complement: bool,
}

impl Random {
    /// Whether two different vertices have an edge.
    #[must_use]
    pub fn has_edge(&self, one: usize, other: usize) -> bool {
        is_joined_at_random(self.density, self.seed, (one, other)) != self.is_complement
    }
}

impl Neighbours for Random {
    fn vertices(&self) -> usize {
        self.vertices
    }

    fn neighbours(&self, vertex: usize) -> Cow<'_, [u64]> {
        let mut row = vec![0; words_of(self.vertices)];
        let others = (0..self.vertices).filter(|&other| other != vertex && self.has_edge(vertex, other));
        others.for_each(|other| insert(&mut row, other));
        row.into()
    }

    fn name(&self, vertex: usize) -> u64 {
        vertex as u64
    }
}

/// Which vertices have no neighbour in this set and are not in it themselves: it is maximal if there are none.
///
/// # Errors
/// Two of the set that are neighbours.
pub fn addable(graph: &dyn Neighbours, set: &[u32]) -> Result<Vec<usize>, (usize, usize)> {
    let mut free = all(graph.vertices());
    for &vertex in set {
        let vertex = vertex as usize;
        let row = graph.neighbours(vertex);
        if let Some(&other) = set.iter().find(|&&other| holds(&row, other as usize)) {
            return Err((vertex, other as usize));
        }
        remove(&mut free, vertex);
        free.iter_mut().zip(row.iter()).for_each(|(free, row)| *free &= !row);
    }
    Ok(members(&free).collect())
}

/// Adds vertices as long as one can be added, the first each time.
pub(super) fn complete(graph: &dyn Neighbours, set: &mut Vec<u32>) {
    while let Ok(free) = addable(graph, set)
        && let Some(&vertex) = free.first()
    {
        set.push(vertex as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_made_one_by_one_are_those_of_the_whole_graph() {
        for vertices in [1, 64, 130] {
            let graph = Graph::random(vertices, 0.4, 3);
            for (is_complement, graph) in [(false, graph.clone()), (true, graph.complement())] {
                let random = Random { vertices, density: 0.4, seed: 3, is_complement };
                (0..vertices).for_each(|at| assert_eq!(random.neighbours(at), graph.neighbours(at)));
                assert_eq!(addable(&random, &[0]), addable(&graph, &[0]));
                let mut sets = [vec![0], vec![0]];
                complete(&random, &mut sets[0]);
                complete(&graph, &mut sets[1]);
                assert_eq!((&sets[0], addable(&random, &sets[0])), (&sets[1], Ok(vec![])));
            }
        }
    }
}
