//! The driver: makes the graph known everywhere, has the tree searched, once or twice, and says what was found.

use super::arguments::Mis;
use super::bound::{Bound, Choice};
use super::division::Plan;
use super::graph::{Complement, Graph, all};
use super::result::IndependentSet;
use super::subproblem::{Placer, Problem, Subproblem, SubproblemInit, TREE, Tally};
use crate::output;
use chares::{Cx, Driver, Group, On, RunError, Stopwatch, WriteOnce};

/// Finds a set as the command line asks.
pub(super) fn drive(main: &mut Driver, mis: Mis) -> Result<(), RunError> {
    let state = |main: &mut Driver, vertices: usize, density: f64| {
        let division = Plan { vertices, density }.divide(main.machines())?;
        division.state(main);
        Ok::<_, RunError>(())
    };
    if mis.graph.is_none() {
        // Before it is made: a few words may ask for a large one.
        let density = if mis.complement { 1.0 - mis.density } else { mis.density };
        state(main, mis.vertices, density)?;
    }
    main.phase(if mis.graph.is_some() { "reading the graph" } else { "generating the graph" }, 0, 0);
    let graph = mis.graph()?;
    if mis.graph.is_some() {
        state(main, graph.vertices, graph.density())?;
    }
    main.phase("ordering the vertices", 0, 0);
    let complement = Complement::of(&graph);
    let (ready, placed) = main.pending();
    main.write_once(complement.clone(), ready);
    let everywhere: WriteOnce<Complement> = placed.wait(main)?;
    let placers: Group<Placer> = main.group(());
    let choice = mis.choice();
    let known = beginning(&complement, &choice);
    let bound = Bound::default().colours(&complement, &all(complement.len()));
    main.init_over()?;

    let problem = Problem {
        graph: everywhere,
        choice: choice.clone(),
        beaten: known.len(),
        is_first: false,
        best: main.monotonic(),
        tally: main.accumulator(),
        placers,
        begun: Stopwatch::start(),
    };
    let mut all = search(main, "searching", problem.clone())?;
    let found = all.best.take();
    let after = found.as_ref().map(|found| found.after.as_secs_f64());
    let mut set = found.map_or(known, |found| found.set);
    if mis.deterministic && !set.is_empty() {
        let (best, tally) = (main.monotonic(), main.accumulator());
        let beaten = set.len() - 1;
        let again = Problem { beaten, is_first: true, best, tally, ..problem };
        let second = search(main, "finding the first of the largest sets", again)?;
        all.nodes += second.nodes;
        all.rows += second.rows;
        all.subproblems += second.subproblems;
        set = second.best.map_or(set, |found| found.set);
    }
    main.timed_over()?;
    let mut set: Vec<u32> = set.iter().map(|&place| complement.vertices[place as usize]).collect();
    if choice != Choice::Bound {
        complete(&graph, &mut set);
    }
    set.sort_unstable();
    let result = IndependentSet { set, bound, is_proven: choice == Choice::Bound, after };
    result.state(main, &mis, &graph, (&complement, &all));
    if let Some(path) = &mis.out {
        output::write(path, &result.text(&graph))?;
    }
    if mis.verify { result.verify(main, &graph) } else { Ok(()) }
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
fn search(main: &mut Driver, name: &str, problem: Problem) -> Result<Tally, RunError> {
    main.expect_progress(name, TREE)?;
    let tally = problem.tally;
    let key = u64::from(problem.is_first);
    main.chare::<Subproblem>(SubproblemInit { problem, search: None, key }, On::BySpeed);
    main.quiescence()?;
    Ok(main.collect(&tally)?.unwrap_or_default())
}

/// Adds vertices as long as one can be added.
fn complete(graph: &Graph, set: &mut Vec<u32>) {
    while let Ok(free) = graph.addable(set)
        && let Some(&vertex) = free.first()
    {
        set.push(vertex as u32);
    }
}
