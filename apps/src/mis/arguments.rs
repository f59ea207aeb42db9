//! What a user says of a run, and whether it makes sense.

use super::bound::Choice;
use super::graph::{Graph, VERTICES_MAX};
use super::neighbours::Random;
use super::read;
use crate::output::{check_option, read as read_files, written};
use chares::RunError;
use clap::{Args, ValueEnum};
use command::NamedFile;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Most vertices of the graph that speeds are measured with.
const KERNEL_VERTICES: usize = 2048;

/// Arguments of `run mis`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Mis {
    /// The graph: DIMACS (.col, .clq), an edge list (.txt, .tsv, .el, .edges) or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,
    /// Vertices of the random graph that is taken if none is given
    #[arg(long, value_name = "N", default_value_t = 300, conflicts_with = "graph")]
    pub vertices: usize,
    /// Probability of each of its edges
    #[arg(long, value_name = "D", default_value_t = 0.3, conflicts_with = "graph")]
    pub density: f64,
    /// Its seed
    #[arg(long, default_value_t = 1, conflicts_with = "graph")]
    pub seed: u64,
    /// Search in the complement of the graph: find a maximum clique
    #[arg(long)]
    pub complement: bool,
    /// Try so many vertices only at each depth, those with the fewest neighbours among what is left, such as 8,4,2,1; the
    /// last number counts for all that follow. What is found need not be the largest
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub lim: Option<Vec<u32>>,
    /// Where the graph is kept
    #[arg(long, value_enum, default_value = "basic")]
    pub adjacency: Adjacency,
    /// Of the largest sets find the one that a single search meets first, whatever the nodes: a second search
    #[arg(long)]
    pub deterministic: bool,
    /// Write the set: the names of its vertices, one a line
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Check that the set is independent and that no vertex can be added; a wrong one gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
    /// Vertices and density of the graph in the file, for nodes that do not have it.
    #[arg(skip)]
    pub announced: Option<(usize, f64)>,
}

/// Where the graph is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Adjacency {
    /// The whole on every node
    Basic,
    /// Equally many rows on each node: for graphs that are too large for one. With --lim
    Partitioned,
}

impl Mis {
    /// The graph that an independent set is wanted of.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn graph(&self) -> Result<Graph, RunError> {
        let graph = match &self.graph {
            Some(path) => read::read(path).map_err(|e| RunError::Input(e.to_string()))?,
            None => Graph::random(self.vertices, self.density, self.seed),
        };
        Ok(if self.complement { graph.complement() } else { graph })
    }

    /// The graph as numbers that any row can be made of; `None` if it is in a file.
    #[must_use]
    pub fn random(&self) -> Option<Random> {
        let Self { vertices, density, seed, complement: is_complement, .. } = *self;
        self.graph.is_none().then_some(Random { vertices, density, seed, is_complement })
    }

    /// Count of vertices of the graph, as far as it is known without its file.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.announced.map_or(self.vertices, |(vertices, _)| vertices)
    }

    /// Edges for each pair of vertices of the graph that an independent set is wanted of.
    #[must_use]
    pub fn density(&self) -> f64 {
        let density = self.announced.map_or(self.density, |(_, density)| density);
        if self.complement { 1.0 - density } else { density }
    }

    /// The graph that speeds are measured with: the same, but one like it where that is in a file or large.
    #[must_use]
    pub fn sample(&self) -> Graph {
        let (vertices, density) = self.announced.unwrap_or((self.vertices, self.density));
        let graph = Graph::random(vertices.min(KERNEL_VERTICES), density, self.seed);
        if self.complement { graph.complement() } else { graph }
    }

    /// How branches are chosen.
    #[must_use]
    pub fn choice(&self) -> Choice {
        self.lim.clone().map_or(Choice::Bound, Choice::Beam)
    }

    /// What a PE's speed depends on.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        let (vertices, density) = self.announced.unwrap_or((self.vertices, self.density));
        format!("{vertices} {density} {} {} {:?}", self.seed, self.complement, self.choice())
    }

    /// The same with what nodes, which do not see the file, need to know of it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn completed(mut self) -> Result<Self, RunError> {
        if let Some(path) = &self.graph {
            let graph = read::read(path).map_err(|e| RunError::Input(e.to_string()))?;
            self.announced = Some((graph.vertices, graph.density()));
        }
        Ok(self)
    }

    /// The files that are read and written.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        read_files([("--graph", &self.graph)]).chain(written([("--out", &self.out)])).collect()
    }
}

/// Checks arguments before any node is started.
pub(super) fn check(mis: &Mis) -> Result<(), RunError> {
    let wrong = |sentence: String| Err(RunError::Input(sentence));
    if !(1..=VERTICES_MAX).contains(&mis.vertices) {
        return wrong(format!("--vertices {}: give 1 to {VERTICES_MAX}", mis.vertices));
    }
    if !(0.0..=1.0).contains(&mis.density) {
        return wrong(format!("--density {}: give a probability from 0 to 1", mis.density));
    }
    if mis.lim.as_ref().is_some_and(|lim| lim.is_empty() || lim.contains(&0)) {
        return wrong("--lim: at each depth at least 1 vertex must be tried".into());
    }
    if mis.adjacency == Adjacency::Partitioned && mis.lim.is_none() {
        let why = "because a search that is exhaustive reads all rows all the time";
        return wrong(format!("--adjacency partitioned: give --lim, {why}"));
    }
    mis.out.as_ref().map_or(Ok(()), |out| check_option("--out", out))
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        let sentence = |words: &[&str]| check(&of(words)).unwrap_err().to_string();
        assert_eq!(sentence(&["--vertices", "0"]), "--vertices 0: give 1 to 65536");
        assert_eq!(sentence(&["--density", "1.5"]), "--density 1.5: give a probability from 0 to 1");
        assert_eq!(sentence(&["--density", "nan"]), "--density NaN: give a probability from 0 to 1");
        assert!(sentence(&["--lim", "4,0"]).contains("at least 1 vertex"));
        let refused = sentence(&["--adjacency", "partitioned"]);
        assert!(refused.starts_with("--adjacency partitioned: give --lim, because"), "{refused}");
        check(&of(&["--adjacency", "partitioned", "--lim", "2"])).unwrap();
        assert_eq!(of(&["--lim", "8,4"]).choice(), Choice::Beam(vec![8, 4]));
    }
}
