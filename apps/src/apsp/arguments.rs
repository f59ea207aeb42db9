//! What a user says of a run, and whether it makes sense.

use super::distance::DistanceType;
use super::floyd;
use super::generate::{Family, Recipe, WEIGHT_MAX};
use super::graph::{EDGES_MAX, VERTICES_MAX};
use super::read::{self, Format, Wanted};
use crate::matrix::market;
use crate::output::{check_option, read, written};
use chares::RunError;
use clap::{Args, ValueEnum};
use command::NamedFile;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

/// Vertices of a generated graph, if the user does not say how many.
const VERTICES: usize = 16_384;
const VERTICES_DENSE: usize = 2048;

/// Arguments of `run apsp`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Apsp {
    /// How paths are found
    #[arg(long, value_enum, default_value = "dijkstra")]
    pub algorithm: Algorithm,
    /// The graph: DIMACS (.gr), an edge list (.txt, .tsv, .el, .edges) or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,
    /// Family of the graph that is generated if none is given; road, or dense for floyd-warshall
    #[arg(long, value_enum, conflicts_with = "graph")]
    pub generate: Option<Family>,
    /// Vertices of a generated graph
    #[arg(long, conflicts_with = "graph")]
    pub n: Option<usize>,
    /// Arcs from each vertex of a generated random graph
    #[arg(long, default_value_t = 8, conflicts_with = "graph")]
    pub degree: usize,
    /// Seed of a generated graph
    #[arg(long, default_value_t = 1, conflicts_with = "graph")]
    pub seed: u64,
    /// Take every edge both ways
    #[arg(long)]
    pub undirected: bool,
    /// Kind of weights: of files, int if all are whole; generated ones are int
    #[arg(long, value_enum)]
    pub weights: Option<WeightKind>,
    /// Type of distances; the smallest that surely holds them if absent (whole), f64 (float)
    #[arg(long, value_enum)]
    pub dtype: Option<DistanceType>,
    /// Write the distances as .npy, a row for each source
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the vertex before each on its path as .npy (-1: none)
    #[arg(long, value_name = "FILE")]
    pub predecessors: Option<PathBuf>,
    /// Write eccentricity, vertices reached and closeness of each source as .csv
    #[arg(long, value_name = "FILE")]
    pub statistics: Option<PathBuf>,
    /// Only paths from these vertices, counted from 0: A or A..B, without B (dijkstra)
    #[arg(long, value_name = "RANGE")]
    pub sources: Option<Sources>,
    /// Side of the blocks (floyd-warshall); chosen if absent
    #[arg(long, value_name = "VERTICES")]
    pub block: Option<usize>,
    /// Check the result by an independent computation; a wrong one gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
    /// Vertices and edges that the file announces, for nodes that do not have it.
    #[arg(skip)]
    pub announced: Option<(usize, usize)>,
}

/// How paths are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// From one source after the other; for sparse graphs, weights not negative
    Dijkstra,
    /// Between all at once, in blocks; for dense graphs, any weights
    FloydWarshall,
}

/// Kind of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WeightKind {
    /// Whole numbers
    Int,
    /// Any numbers
    Float,
}

/// Some vertices, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources(pub Range<u32>);

impl FromStr for Sources {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            |word: &str| word.parse::<u32>().map_err(|_| format!("'{word}' is no vertex: give A or A..B"));
        let range = match text.split_once("..") {
            Some((from, to)) => number(from)?..number(to)?,
            None => number(text).map(|at| at..at.saturating_add(1))?,
        };
        if range.is_empty() {
            Err(format!("there is nothing in {text}: give A or A..B, without B"))
        } else {
            Ok(Self(range))
        }
    }
}

impl Apsp {
    /// The graph that is generated where no file is given; for nodes that do not have the file, one like it.
    #[must_use]
    pub fn recipe(&self) -> Recipe {
        let is_whole =
            self.weights != Some(WeightKind::Float) && self.dtype.is_none_or(DistanceType::is_whole);
        let is_dense = self.algorithm == Algorithm::FloydWarshall;
        let recipe = Recipe {
            family: self.generate.unwrap_or(if is_dense { Family::Dense } else { Family::Road }),
            vertices: self.n.unwrap_or(if is_dense { VERTICES_DENSE } else { VERTICES }),
            degree: self.degree,
            seed: self.seed,
            is_whole,
        };
        match self.announced {
            // Few arcs a vertex are those of a road network or the like, more of anything.
            Some((vertices, arcs)) if arcs / vertices.max(1) <= 5 => {
                Recipe { family: Family::Road, vertices, ..recipe }
            }
            Some((vertices, arcs)) => {
                Recipe { family: Family::Random, vertices, degree: arcs / vertices.max(1), ..recipe }
            }
            None => recipe,
        }
    }

    /// Type of the distances of a generated graph; of a file's, as far as is known without reading it.
    #[must_use]
    pub fn likely_type(&self) -> DistanceType {
        let recipe = self.recipe();
        let longest = WEIGHT_MAX as f64 * recipe.vertices as f64;
        self.dtype.unwrap_or(match (recipe.is_whole, longest <= DistanceType::I32.longest()) {
            (true, true) => DistanceType::I32,
            (true, false) => DistanceType::I64,
            (false, _) => DistanceType::F64,
        })
    }

    /// What weights are to be read.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        match self.weights {
            None => Wanted::AsWritten,
            Some(WeightKind::Int) => Wanted::Whole,
            Some(WeightKind::Float) => Wanted::Real,
        }
    }

    /// How many sources there are, about, where only part of the vertices is.
    #[must_use]
    pub fn source_count(&self) -> usize {
        self.sources.as_ref().map_or(self.recipe().vertices, |Sources(range)| range.len())
    }

    /// Side of the blocks of Floyd and Warshall's algorithm.
    #[must_use]
    pub fn block_side(&self, vertices: usize) -> usize {
        self.block.unwrap_or_else(|| floyd::default_side(vertices)).clamp(1, vertices.max(1))
    }

    /// The same with what nodes, which do not see the file, need to know of it.
    #[must_use]
    pub fn completed(mut self) -> Self {
        self.announced = self.graph.as_ref().and_then(|path| read::announced(path).ok());
        let is_real = |path: &PathBuf| {
            Format::of(path).is_ok_and(|format| format == Format::Market)
                && market::is_whole(path).is_ok_and(|is_whole| !is_whole)
        };
        if self.graph.as_ref().is_some_and(is_real) {
            self.weights.get_or_insert(WeightKind::Float);
        }
        self
    }

    /// What the kernel's work is counted in: searches from a source, or the sums and comparisons of products of blocks.
    pub(super) fn kernel_unit(&self) -> &'static str {
        match self.algorithm {
            Algorithm::FloydWarshall => "operations",
            Algorithm::Dijkstra => "sources",
        }
    }

    /// What a PE's speed depends on: speeds measured with one graph hold for all others of this key.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        let kind = format!("{:?}", self.likely_type()).to_lowercase();
        match self.algorithm {
            Algorithm::FloydWarshall => format!("floyd-warshall {kind}"),
            Algorithm::Dijkstra => {
                let Recipe { family, vertices, degree, seed, is_whole } = self.recipe();
                format!(
                    "dijkstra {kind}, {family:?} {vertices} {degree} {seed} {is_whole}, {}",
                    self.predecessors.is_some()
                )
            }
        }
    }

    /// Options that say nothing beside the others.
    #[must_use]
    pub fn unused(&self) -> Vec<(&'static str, String)> {
        let family = self.recipe().family;
        let has_degree = self.announced.is_some() || family == Family::Random;
        let name = format!("{family:?}").to_lowercase();
        let why =
            format!("only graphs of the family random have a degree to be chosen, and this is of {name}");
        if has_degree { Vec::new() } else { vec![("degree", why)] }
    }

    /// The files that may be written, with their options.
    fn outputs(&self) -> [(&'static str, &Option<PathBuf>); 3] {
        [("--out", &self.out), ("--predecessors", &self.predecessors), ("--statistics", &self.statistics)]
    }

    /// The files that are read and written.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        read([("--graph", &self.graph)]).chain(written(self.outputs())).collect()
    }

    /// Units of the kernel's work in all: sources, or sums.
    #[must_use]
    pub fn work(&self) -> f64 {
        match self.algorithm {
            Algorithm::Dijkstra => self.source_count() as f64,
            Algorithm::FloydWarshall => floyd::work(self.recipe().vertices),
        }
    }
}

/// Checks arguments before any node is started.
pub(super) fn check(apsp: &Apsp) -> Result<(), RunError> {
    let wrong = |sentence: String| Err(RunError::Input(sentence));
    if let Some(graph) = &apsp.graph {
        Format::of(graph).map_err(|e| RunError::Input(e.to_string()))?;
        std::fs::File::open(graph)
            .map_err(|e| RunError::Input(format!("cannot read {}: {e}", graph.display())))?;
    } else {
        let recipe = apsp.recipe();
        if !(1..=VERTICES_MAX).contains(&recipe.vertices) {
            return wrong(format!("--n {}: give 1 to {VERTICES_MAX} vertices", recipe.vertices));
        }
        // Blocks that make their arcs themselves need no list of them, but a check does.
        let is_listed = apsp.verify || !floyd::makes_its_own(apsp);
        if is_listed && recipe.arcs() > EDGES_MAX / 2 {
            return wrong(format!(
                "{} arcs are more than the {} that fit: take fewer vertices",
                recipe.arcs(),
                EDGES_MAX / 2
            ));
        }
    }
    if apsp.algorithm == Algorithm::FloydWarshall {
        if apsp.sources.is_some() {
            return wrong(
                "--sources: floyd-warshall finds paths from all vertices at once; take --algorithm dijkstra"
                    .into(),
            );
        }
    } else if apsp.block.is_some() {
        return wrong("--block: only floyd-warshall works on blocks".into());
    }
    if apsp.block.is_some_and(|side| !(1..=floyd::SIDE_MAX).contains(&side)) {
        return wrong(format!("--block: give 1 to {} vertices", floyd::SIDE_MAX));
    }
    if apsp.weights == Some(WeightKind::Float) && apsp.dtype.is_some_and(DistanceType::is_whole) {
        return wrong(
            "--weights float: distances of such weights are not whole; take --dtype f32 or f64".into(),
        );
    }
    for (option, file) in apsp.outputs() {
        let Some(file) = file else { continue };
        let is_text = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mtx"));
        if is_text && option != "--statistics" {
            let file = file.display();
            return wrong(format!("{option} {file}: it is written as .npy: let its name end so"));
        }
        check_option(option, file)?;
    }
    Ok(())
}
