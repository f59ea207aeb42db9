//! Which vertices must be branched on: those that a colouring leaves over.
//!
//! In the complement of the graph a set is a clique, and a clique has at most one vertex of each colour. Vertices that fit
//! into as many colours as the set may still grow without becoming larger than the best need not be tried. Colours are given
//! greedily, a whole colour at a time, on rows of bits (P. San Segundo, D. Rodríguez-Losada, A. Jiménez, "An exact
//! bit-parallel algorithm for the maximum clique problem", Computers & OR 38, 2011); a vertex that is left over may take the
//! place of one that finds another (E. Tomita, Y. Sutani, T. Higashi, S. Takahashi, M. Wakatsuki, "A simple and faster
//! branch-and-bound algorithm for finding a maximum clique", WALCOM 2010).

use super::graph::{Complement, Graph, count, holds, insert, members, remove};
use serde::{Deserialize, Serialize};

/// A vertex to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Its place.
    pub vertex: u32,
    /// A clique of this vertex and candidates that are tried later has at most so many.
    pub bound: u32,
}

/// How the vertices to be tried are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// All that a colouring leaves over: nothing that could be better is missed.
    #[default]
    Bound,
    /// So many at each depth, those with the most neighbours in the complement; behind the last number it counts on. What is
    /// found need not be the best.
    Beam(Vec<u32>),
}

impl Choice {
    /// At most so many vertices are tried at this depth.
    #[must_use]
    pub fn limit(&self, depth: usize) -> u32 {
        match self {
            Self::Bound => u32::MAX,
            Self::Beam(limits) => limits.get(depth).or(limits.last()).copied().unwrap_or(1),
        }
    }

    /// What is searched for sets of this graph. For a beam its vertices stay at their places: of those with equally many
    /// neighbours it tries the first, so that what it finds follows from the graph alone.
    #[must_use]
    pub fn complement(&self, graph: &Graph) -> Complement {
        match self {
            Self::Bound => Complement::of(graph),
            Self::Beam(_) => Complement::in_place(graph),
        }
    }
}

/// Workspace.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// The colours, each a set.
    colours: Vec<u64>,
    left: Vec<u64>,
    open: Vec<u64>,
    degrees: Vec<(u32, u32)>,
    /// Rows that have been read.
    pub rows: u64,
}

impl Bound {
    /// The candidates to be tried at this depth where only cliques of more than `beaten` of them count, from the last to the
    /// first. Bounds ascend.
    pub fn branches(
        &mut self,
        graph: &Complement,
        choice: &Choice,
        depth: usize,
        (candidates, beaten): (&[u64], usize),
        branches: &mut Vec<Branch>,
    ) {
        branches.clear();
        match choice {
            Choice::Bound => self.colour(graph, candidates, beaten, branches),
            Choice::Beam(_) => self.of_high_degree(graph, candidates, choice.limit(depth), branches),
        }
    }

    /// Colours that are enough for the candidates: no clique of them is larger.
    pub fn colours(&mut self, graph: &Complement, candidates: &[u64]) -> usize {
        let mut branches = Vec::new();
        self.colour(graph, candidates, 0, &mut branches);
        branches.last().map_or(0, |branch| branch.bound as usize)
    }

    fn colour(&mut self, graph: &Complement, candidates: &[u64], beaten: usize, branches: &mut Vec<Branch>) {
        let words = graph.words;
        self.left.clear();
        self.left.extend_from_slice(candidates);
        self.colours.resize(self.colours.len().max(beaten * words), 0);
        let mut start = 0;
        for colour in 0..beaten {
            start += self.left[start..].iter().take_while(|word| **word == 0).count();
            if start == words {
                return;
            }
            self.open.clone_from(&self.left);
            let colour = &mut self.colours[colour * words..(colour + 1) * words];
            colour.fill(0);
            for at in start..words {
                while self.open[at] != 0 {
                    let vertex = at * 64 + self.open[at].trailing_zeros() as usize;
                    insert(colour, vertex);
                    without(&mut self.open, graph.row(vertex), at);
                    remove(&mut self.open, vertex);
                    self.rows += 1;
                }
                self.left[at] &= !colour[at];
            }
        }
        self.left_over(graph, beaten, start, branches);
    }

    /// Colours what is left with further colours, as far as it finds no place in those that there are.
    fn left_over(&mut self, graph: &Complement, beaten: usize, start: usize, branches: &mut Vec<Branch>) {
        let mut bound = u32::try_from(beaten).unwrap_or(u32::MAX);
        while self.left[start..].iter().any(|word| *word != 0) {
            let before = branches.len();
            self.open.clone_from(&self.left);
            for at in start..graph.words {
                while self.open[at] != 0 {
                    let vertex = at * 64 + self.open[at].trailing_zeros() as usize;
                    remove(&mut self.open, vertex);
                    remove(&mut self.left, vertex);
                    if self.finds_place(graph, vertex, beaten) {
                        continue;
                    }
                    without(&mut self.open, graph.row(vertex), at);
                    self.rows += 1;
                    branches.push(Branch { vertex: vertex as u32, bound: bound + 1 });
                }
            }
            bound += u32::from(branches.len() > before);
        }
    }

    /// Gives a vertex one of the first colours, if need be in place of a vertex that can have another of them.
    fn finds_place(&mut self, graph: &Complement, vertex: usize, colours: usize) -> bool {
        let words = graph.words;
        let row = graph.row(vertex);
        for one in 0..colours {
            let colour = &mut self.colours[one * words..(one + 1) * words];
            self.rows += 1;
            let Some(in_the_way) = at_most_one(colour, row) else { continue };
            let Some(other) = in_the_way else {
                insert(colour, vertex);
                return true;
            };
            let row = graph.row(other);
            let free =
                (one + 1..colours).find(|&at| is_disjoint(&self.colours[at * words..(at + 1) * words], row));
            self.rows += (free.unwrap_or(colours) - one) as u64;
            if let Some(free) = free {
                remove(&mut self.colours[one * words..], other);
                insert(&mut self.colours[one * words..], vertex);
                insert(&mut self.colours[free * words..], other);
                return true;
            }
        }
        false
    }

    /// The `limit` candidates with the most neighbours among those that are left, one after the other.
    fn of_high_degree(
        &mut self,
        graph: &Complement,
        candidates: &[u64],
        limit: u32,
        branches: &mut Vec<Branch>,
    ) {
        let degree = |vertex: usize| {
            let common = graph.row(vertex).iter().zip(candidates).map(|(row, all)| (row & all).count_ones());
            (common.sum(), vertex as u32)
        };
        self.degrees.clear();
        self.degrees.extend(members(candidates).map(degree));
        self.rows += self.degrees.len() as u64;
        for _ in 0..limit {
            let most = (0..self.degrees.len())
                .max_by_key(|&at| (self.degrees[at].0, std::cmp::Reverse(self.degrees[at].1)));
            let Some(most) = most else { break };
            let (degree, vertex) = self.degrees.swap_remove(most);
            branches.push(Branch { vertex, bound: degree + 1 });
            let row = graph.row(vertex as usize);
            for (degree, other) in &mut self.degrees {
                *degree -= u32::from(holds(row, *other as usize));
            }
        }
        branches.reverse();
    }
}

/// Candidates of each step of a descent to vertices with the most neighbours among those that are left, and what it finds.
#[must_use]
pub fn descent(graph: &Complement, mut candidates: Vec<u64>) -> (Vec<u32>, Vec<u32>) {
    let (mut bound, mut branches) = (Bound::default(), Vec::new());
    let (mut set, mut sizes) = (Vec::new(), Vec::new());
    loop {
        bound.of_high_degree(graph, &candidates, 1, &mut branches);
        let Some(branch) = branches.pop() else { return (set, sizes) };
        sizes.push(count(&candidates) as u32);
        candidates.iter_mut().zip(graph.row(branch.vertex as usize)).for_each(|(all, row)| *all &= row);
        set.push(branch.vertex);
    }
}

/// Takes a row out of a set, from a word on.
fn without(set: &mut [u64], row: &[u64], from: usize) {
    set[from..].iter_mut().zip(&row[from..]).for_each(|(word, row)| *word &= !row);
}

fn is_disjoint(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).all(|(one, other)| one & other == 0)
}

/// The only common member of two sets, if they have one or none.
fn at_most_one(one: &[u64], other: &[u64]) -> Option<Option<usize>> {
    let mut only = None;
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        let common = one & other;
        if common == 0 {
            continue;
        }
        if only.is_some() || !common.is_power_of_two() {
            return None;
        }
        only = Some(at * 64 + common.trailing_zeros() as usize);
    }
    Some(only)
}
