//! The driver: makes the graph known everywhere, has the tree searched, once or twice, and says what was found.

use super::arguments::{Adjacency, Mis};
use super::block::{Answers, Blocks};
use super::bound::{Bound, Choice, descent};
use super::division::Plan;
use super::graph::{Complement, Graph, all};
use super::neighbours::{Neighbours, complete};
use super::result::IndependentSet;
use super::subproblem::{Placer, Problem, Searched, Subproblem, SubproblemInit, TREE, Tally};
use super::walk::{Walk, WalkInit};
use crate::output;
use chares::{Cx, Driver, Group, On, Reduce as _, RunError, Stopwatch, WriteOnce};

/// A graph that is ready to be searched.
struct Ready {
    /// What is told of it.
    graph: Box<dyn Neighbours>,
    edges: u64,
    root: Root,
    /// The set that the search begins with.
    known: Vec<u32>,
    /// No set has more vertices.
    bound: usize,
    /// Candidates of each step of the first descent, if they are known.
    descent: Vec<u32>,
}

/// Where the graph is, and so who begins.
enum Root {
    Whole(WriteOnce<Complement>),
    InBlocks(Blocks),
}

/// Finds a set as the command line asks.
pub(super) fn drive(main: &mut Driver, mis: Mis) -> Result<(), RunError> {
    let choice = mis.choice();
    let Ready { graph, edges, root, known, bound, descent } = match mis.adjacency {
        Adjacency::Basic => whole(main, &mis, &choice)?,
        Adjacency::Partitioned => in_blocks(main, &mis)?,
    };
    let placers: Group<Placer> = main.group(());
    main.init_over()?;

    let problem = Problem {
        choice: choice.clone(),
        beaten: known.len(),
        is_first: false,
        best: main.monotonic(),
        tally: main.accumulator(),
        placers,
        begun: Stopwatch::start(),
    };
    let mut all = search(main, "searching", problem.clone(), &root)?;
    let found = all.best.take();
    let after = found.as_ref().map(|found| found.after.as_secs_f64());
    let mut set = found.map_or(known, |found| found.set);
    if mis.deterministic && !set.is_empty() {
        let (best, tally) = (main.monotonic(), main.accumulator());
        let beaten = set.len() - 1;
        let again = Problem { beaten, is_first: true, best, tally, ..problem };
        let mut second = search(main, "finding the first of the largest sets", again, &root)?;
        set = second.best.take().map_or(set, |found| found.set);
        all.combine(second);
    }
    main.timed_over()?;
    if choice != Choice::Bound {
        complete(&*graph, &mut set);
    }
    set.sort_unstable();
    let result = IndependentSet { set, bound, is_proven: choice == Choice::Bound, after };
    let descent = if descent.is_empty() { std::mem::take(&mut all.descent) } else { descent };
    result.state(main, &mis, (&*graph, edges), (&all, &descent));
    if let Some(path) = &mis.out {
        output::write(path, &result.text((&*graph, edges)))?;
    }
    if mis.verify { result.verify(main, &*graph) } else { Ok(()) }
}

/// States what a run needs of memory; the bounds of the rows of each node if none has all.
fn divide(main: &mut Driver, mis: &Mis, vertices: usize, density: f64) -> Result<Vec<u64>, RunError> {
    let plan = Plan { vertices, density, adjacency: mis.adjacency, is_read: mis.graph.is_some() };
    let division = plan.divide(main.machines())?;
    division.state(main);
    main.outcome().fact("adjacency_bytes", plan.adjacency(&division));
    Ok(division.owners)
}

/// Makes the whole graph known everywhere.
fn whole(main: &mut Driver, mis: &Mis, choice: &Choice) -> Result<Ready, RunError> {
    if let Some(random) = mis.random() {
        // Before it is made: a few words may ask for a large one.
        divide(main, mis, random.vertices, mis.density())?;
    }
    let graph = make(main, mis)?;
    if mis.graph.is_some() {
        divide(main, mis, graph.vertices, graph.density())?;
    }
    main.phase("ordering the vertices", 0, 0);
    let complement = choice.complement(&graph);
    let (ready, placed) = main.pending();
    main.write_once(complement.clone(), ready);
    let root = Root::Whole(placed.wait(main)?);
    let places = beginning(&complement, choice);
    let known = places.iter().map(|&place| complement.vertices[place as usize]).collect();
    let everything = all(complement.len());
    let bound = Bound::default().colours(&complement, &everything);
    let is_beam = *choice != Choice::Bound;
    let descent = if is_beam { descent(&complement, everything).1 } else { Vec::new() };
    Ok(Ready { edges: graph.edges(), graph: Box::new(graph), root, known, bound, descent })
}

/// Gives each node its rows.
fn in_blocks(main: &mut Driver, mis: &Mis) -> Result<Ready, RunError> {
    let (graph, blocks): (Box<dyn Neighbours>, _) = match mis.random() {
        Some(random) => {
            let bounds = divide(main, mis, random.vertices, mis.density())?;
            main.phase("generating the graph", 0, 0);
            (Box::new(random.clone()), Blocks::new(main, bounds, Some(random)))
        }
        None => {
            let graph = make(main, mis)?;
            let bounds = divide(main, mis, graph.vertices, graph.density())?;
            let blocks = Blocks::new(main, bounds, None);
            blocks.fill(main, &graph)?;
            (Box::new(graph), blocks)
        }
    };
    let (to, counted) = main.pending();
    blocks.count(main, &all(graph.vertices()), to);
    let mut answers = Answers::default();
    let mut degrees = loop {
        if let Some(counts) = answers.with(counted.wait(main)?) {
            break counts.concat();
        }
    };
    let pairs = graph.vertices() * graph.vertices().saturating_sub(1) / 2;
    let absent: u64 = degrees.iter().map(|&degree| u64::from(degree)).sum();
    // So many vertices have the degree that all of a set of that size have in the complement.
    degrees.sort_unstable_by_key(|&degree| std::cmp::Reverse(degree));
    let bound = (1..).zip(&degrees).take_while(|&(size, &degree)| size <= usize::from(degree) + 1).count();
    let (edges, root) = (pairs as u64 - absent / 2, Root::InBlocks(blocks));
    Ok(Ready { graph, edges, root, known: Vec::new(), bound, descent: Vec::new() })
}

fn make(main: &mut Driver, mis: &Mis) -> Result<Graph, RunError> {
    main.phase(if mis.graph.is_some() { "reading the graph" } else { "generating the graph" }, 0, 0);
    mis.graph()
}

/// The set that a search begins with: of those that begin with each vertex and go on with the first candidate the largest. A
/// beam begins with nothing, so that what it finds follows from its numbers alone.
#[must_use]
pub(super) fn beginning(graph: &Complement, choice: &Choice) -> Vec<u32> {
    let from = |first: usize| {
        let (mut set, mut candidates) = (vec![first as u32], graph.row(first).to_vec());
        while let Some(at) = candidates.iter().position(|word| *word != 0) {
            let next = at * 64 + candidates[at].trailing_zeros() as usize;
            set.push(next as u32);
            candidates.iter_mut().zip(graph.row(next)).for_each(|(all, row)| *all &= row);
        }
        set
    };
    let starts = if *choice == Choice::Bound { graph.len() } else { 0 };
    let longest = |best: Vec<u32>, set: Vec<u32>| if set.len() > best.len() { set } else { best };
    (0..starts).map(from).fold(Vec::new(), longest)
}

/// Has the whole tree searched.
fn search(main: &mut Driver, name: &str, problem: Problem, root: &Root) -> Result<Tally, RunError> {
    main.expect_progress(name, TREE)?;
    let tally = problem.tally;
    let key = u64::from(problem.is_first);
    match root {
        Root::Whole(graph) => {
            let init =
                SubproblemInit { problem, graph: Searched::Whole(*graph), search: None, key, over: None };
            main.chare::<Subproblem>(init, On::BySpeed);
        }
        Root::InBlocks(blocks) => {
            let init = WalkInit::whole(problem, blocks.clone(), key, main.pe_count());
            main.chare::<Walk>(init, On::BySpeed);
        }
    }
    main.quiescence()?;
    Ok(main.collect(&tally)?.unwrap_or_default())
}
