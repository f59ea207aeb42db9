//! All-pairs shortest paths: how far it is from every vertex of a graph to every other.
//!
//! Two algorithms. [`sources`]: Dijkstra's from one source after the other, for sparse graphs of any size.
//! [`floyd`]: Floyd and Warshall's in blocks, for dense graphs and negative weights. Source: the report on the CHARM
//! metacomputer (1995), its section on all-pairs shortest paths, for the first.
//!
//! # What is promised of the results
//!
//! They do not depend on nodes and PEs. Whole numbers are exact. With floating-point weights Dijkstra's distances are
//! the least sums taken from the source on, the same bits on any mix; those of Floyd and Warshall's algorithm are
//! sums of sums, whose bits follow from the graph, the type and the side of the blocks. Of several shortest paths the
//! predecessors tell the same one on any mix.
//!
//! Where there is no path stands infinity, or the greatest number of a whole type (2147483647, 9223372036854775807);
//! in predecessors -1, which stands at the source itself too. Loops count only if they are negative, of parallel edges
//! the shortest.
#![doc = include_str!("README.md")]

pub mod arguments;
pub mod buckets;
mod check;
mod cost;
mod cycle;
pub mod dijkstra;
pub mod distance;
mod drive;
pub mod floyd;
pub mod generate;
pub mod graph;
pub mod heap;
mod memory;
mod output;
pub mod read;
pub mod sources;

pub use arguments::{Algorithm, Apsp};

use chares::KernelCall;
use command::{App, CommandLine};
use dijkstra::Search;
use distance::{Distance, DistanceType};
use generate::{Family, Recipe};
use graph::Graph;

/// Sources that one call of the kernel searches from take about so many arcs in all: some milliseconds.
const KERNEL_ARCS: usize = 400_000;
/// Most vertices and arcs of the graph that is searched then. Every PE has one of its own, before anybody has looked
/// whether the work fits; no cache holds so many.
const KERNEL_SIZE: usize = 1 << 22;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program
        .chare::<sources::Searcher<i32>>()
        .chare::<sources::Searcher<i64>>()
        .chare::<sources::Searcher<f32>>()
        .chare::<sources::Searcher<f64>>()
        .chare::<floyd::Block<i32>>()
        .chare::<floyd::Block<i64>>()
        .chare::<floyd::Block<f32>>()
        .chare::<floyd::Block<f64>>()
        .app(
            App::new("apsp", "Find shortest paths between all vertices of a graph", drive::drive)
                .kernel(kernel)
                .kernel_key(Apsp::kernel_key)
                .kernel_unit(Apsp::kernel_unit)
                .work(Apsp::work)
                .check(arguments::check)
                .complete(|arguments: Apsp| Ok(arguments.completed()))
                .files(Apsp::files)
                .unused(Apsp::unused)
                .aside(&["verify"])
                .cost(cost::MODEL, cost::cost),
        )
}

/// What the application spends its time in: searches in the graph, or in one like it where that is in a file; or
/// products of blocks.
fn kernel(apsp: &Apsp) -> KernelCall {
    match apsp.likely_type() {
        DistanceType::I32 => kernel_of::<i32>(apsp),
        DistanceType::I64 => kernel_of::<i64>(apsp),
        DistanceType::F32 => kernel_of::<f32>(apsp),
        DistanceType::F64 => kernel_of::<f64>(apsp),
    }
}

fn kernel_of<D: Distance>(apsp: &Apsp) -> KernelCall {
    if apsp.algorithm == Algorithm::FloydWarshall {
        return floyd::kernel::<D>(apsp);
    }
    let (sample, part) = sample(apsp.recipe());
    let graph = Graph::<D>::new(&sample.edges());
    let mut search = Search::new(apsp.predecessors.is_some());
    let sources = (KERNEL_ARCS / (graph.arcs() + graph.len()).max(1)).max(1);
    // Spread over the graph by a step that meets every vertex.
    let step = (0.618 * graph.len() as f64) as usize | 1;
    let mut source = 0;
    Box::new(move || {
        for _ in 0..sources {
            source = (source + step) % graph.len();
            search.run(&graph, u32::try_from(source).unwrap_or(0));
            std::hint::black_box(search.summary(&graph));
        }
        sources as f64 * part
    })
}

/// A graph of the same family that is not bigger than [`KERNEL_SIZE`], and what part of the work of one source it takes.
fn sample(whole: Recipe) -> (Recipe, f64) {
    let degree = whole.degree.min(KERNEL_SIZE);
    let most = match whole.family {
        Family::Grid | Family::Road => KERNEL_SIZE / 5,
        Family::Random => KERNEL_SIZE / (degree + 1),
        Family::Dense => KERNEL_SIZE.isqrt(),
    };
    let sample = Recipe { vertices: whole.vertices.clamp(1, most.max(1)), degree, ..whole };
    let size = |recipe: Recipe| recipe.vertices.saturating_add(recipe.arcs()).max(1) as f64;
    (sample, size(sample) / size(whole))
}

#[cfg(test)]
mod tests;
