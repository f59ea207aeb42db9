//! Graphs by seed, for trials and measurements: every one is a function of its kind, size and seed.

use super::graph::{Edges, Weights};
use crate::matrix::generate::hash;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The heaviest weight of a generated graph; the lightest is 1.
pub const WEIGHT_MAX: u64 = 1000;
/// Of a thousand vertices of a road network so many have roads to both neighbours before them: together 2.4 arcs a
/// vertex, as real road networks have.
const BOTH_IN_1000: u64 = 200;

/// A family of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// A square lattice, both ways
    Grid,
    /// As a road network: a lattice with many gaps, all in one piece, both ways
    Road,
    /// DEGREE arcs from each vertex to any others
    Random,
    /// An arc from each vertex to each other
    Dense,
}

/// A graph to be generated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Its family.
    pub family: Family,
    /// Its vertices.
    pub vertices: usize,
    /// Arcs from each vertex of a random graph.
    pub degree: usize,
    /// Its seed.
    pub seed: u64,
    /// Whole weights, or any.
    pub is_whole: bool,
}

impl Recipe {
    /// Count of arcs, at most.
    #[must_use]
    pub fn arcs(&self) -> usize {
        match self.family {
            Family::Grid => self.vertices.saturating_mul(4),
            Family::Road => self.vertices.saturating_mul(5) / 2,
            Family::Random => self.vertices.saturating_mul(self.degree),
            Family::Dense => self.vertices.saturating_mul(self.vertices.saturating_sub(1)),
        }
    }

    /// Its edges. There are as many as [`arcs`](Self::arcs) says, or a few less.
    #[must_use]
    pub fn edges(&self) -> Edges {
        let count = self.arcs();
        let weights = if self.is_whole {
            Weights::Whole(Vec::with_capacity(count))
        } else {
            Weights::Real(Vec::with_capacity(count))
        };
        let (from, to) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut edges = Edges { vertices: self.vertices, from, to, weights, names: None, negative: None };
        match self.family {
            Family::Grid => self.lattice(1000, &mut edges),
            Family::Road => self.lattice(BOTH_IN_1000, &mut edges),
            Family::Random => {
                for from in 0..self.vertices {
                    for at in 0..self.degree {
                        let bits = hash(self.seed, from as u64, 2 * at as u64);
                        let to = (u128::from(bits) * self.vertices as u128) >> 64;
                        add(&mut edges, from, to as usize, self.weight(from, 2 * at + 1));
                    }
                }
            }
            Family::Dense => {
                for from in 0..self.vertices {
                    let others = (0..self.vertices).filter(|&to| to != from);
                    others.for_each(|to| add(&mut edges, from, to, self.weight(from, to)));
                }
            }
        }
        edges
    }

    /// The weight of number `at` from this vertex: of a dense graph, of the arc to the vertex `at`.
    #[must_use]
    pub fn weight(&self, from: usize, at: usize) -> f64 {
        let bits = hash(self.seed ^ 0x5eed, from as u64, at as u64);
        if self.is_whole {
            (1 + ((u128::from(bits) * u128::from(WEIGHT_MAX)) >> 64)) as f64
        } else {
            1.0 + (bits >> 11) as f64 / (1u64 << 53) as f64 * (WEIGHT_MAX - 1) as f64
        }
    }

    /// Vertices row by row, each with the one before it in its row and in its column as neighbours: always with one of
    /// them, with both in so many of a thousand cases. So all hang together.
    fn lattice(&self, both_in_1000: u64, edges: &mut Edges) {
        let width = (self.vertices as f64).sqrt().ceil().max(1.0) as usize;
        for to in 1..self.vertices {
            let (left, up) = ((to % width > 0).then(|| to - 1), to.checked_sub(width));
            let bits = hash(self.seed, to as u64, 0);
            let is_both = bits % 1000 < both_in_1000;
            let takes_left = up.is_none() || (bits >> 32).is_multiple_of(2);
            for (at, from) in [left, up].into_iter().enumerate() {
                let is_chosen = is_both || (at == 0) == (takes_left && left.is_some());
                if let Some(from) = from.filter(|_| is_chosen) {
                    let length = self.weight(to, at);
                    add(edges, from, to, length);
                    add(edges, to, from, length);
                }
            }
        }
    }
}

fn add(edges: &mut Edges, from: usize, to: usize, length: f64) {
    edges.from.push(vertex(from));
    edges.to.push(vertex(to));
    match &mut edges.weights {
        Weights::Whole(weights) => weights.push(length as i64),
        Weights::Real(weights) => weights.push(length),
    }
}

fn vertex(at: usize) -> u32 {
    u32::try_from(at).expect("graphs have at most VERTICES_MAX vertices")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_the_arcs_that_it_promises() {
        for family in [Family::Grid, Family::Road, Family::Random, Family::Dense] {
            for vertices in [1, 2, 7, 100, 130] {
                let recipe = Recipe { family, vertices, degree: 3, seed: 5, is_whole: true };
                let edges = recipe.edges();
                assert!(edges.len() <= recipe.arcs() + 16, "{recipe:?}: {}", edges.len());
                assert!(
                    vertices < 100 || edges.len() * 10 >= recipe.arcs() * 9,
                    "{recipe:?}: {}",
                    edges.len()
                );
                assert!(edges.from.iter().chain(&edges.to).all(|&v| (v as usize) < vertices));
                let Weights::Whole(weights) = &edges.weights else { panic!("whole weights were asked for") };
                assert!(weights.iter().all(|w| (1..=WEIGHT_MAX as i64).contains(w)));
                let Weights::Real(real) = Recipe { is_whole: false, ..recipe }.edges().weights else {
                    panic!()
                };
                assert!(real.iter().all(|w| (1.0..=WEIGHT_MAX as f64).contains(w)));
            }
        }
    }
}
