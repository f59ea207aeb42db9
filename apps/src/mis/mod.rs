//! Maximum independent sets: as many vertices of a graph as possible, no two of which are neighbours.
//!
//! The search is branch and bound on rows of bits ([`bound`], [`search`]); its parts are chares ([`subproblem`]). Of a graph
//! that no node has as a whole rows are in blocks ([`block`]), which are asked for the top of the tree ([`walk`]). The beam
//! (`--lim`) is that of the adaptive parallel thesis (M. V. Nibhanupudi, Rensselaer Polytechnic Institute, 1998), section 3.3,
//! where the numbers come from a database of earlier runs.
#![doc = include_str!("README.md")]

mod arguments;
pub mod block;
pub mod bound;
mod cost;
mod division;
mod drive;
pub mod graph;
pub mod neighbours;
pub mod read;
mod result;
pub mod search;
pub mod subproblem;
pub mod walk;

pub use arguments::Mis;

use chares::KernelCall;
use command::{App, CommandLine};
use search::{Known, Search, Workspace};

/// Work of one call by which a speed is measured: some milliseconds.
const CALL_WORK: f64 = 8e6;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program
        .chare::<subproblem::Subproblem>()
        .chare::<subproblem::Placer>()
        .chare::<block::Block>()
        .chare::<walk::Walk>()
        .app(
            App::new("mis", "Find a maximum independent set of a graph", drive::drive)
                .kernel(kernel)
                .kernel_key(Mis::kernel_key)
                .kernel_unit(|_| "words")
                .check(arguments::check)
                .complete(Mis::completed)
                .files(Mis::files)
                .aside(&["out", "verify"])
                .cost(cost::MODEL, cost::cost),
        )
}

/// The search itself, in the same graph or one like it; from the beginning when it is over.
fn kernel(mis: &Mis) -> KernelCall {
    let choice = mis.choice();
    let graph = choice.complement(&mis.sample());
    let known = Known { beaten: drive::beginning(&graph, &choice).len(), before: None };
    let (mut search, mut work) = (Search::default(), Workspace::default());
    Box::new(move || {
        let begun = work.bound.rows;
        let end = begun + (CALL_WORK / graph.work(1)) as u64;
        while work.bound.rows < end {
            if search.is_over() {
                search = Search::new(&graph, &choice, known.beaten, graph::all(graph.len()), &mut work);
            }
            // Of a graph of one vertex a search reads no row.
            work.bound.rows += 1;
            let rows = end.saturating_sub(work.bound.rows);
            std::hint::black_box(search.run(&graph, &choice, &known, rows, &mut work));
        }
        graph.work(work.bound.rows - begun)
    })
}

#[cfg(test)]
mod tests;
