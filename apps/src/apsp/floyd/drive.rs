//! The driver's part: cuts the graph into blocks, gives them to the PEs by speed, collects what they have found.

use super::{AHEAD, Block, BlockFound, BlockInit, CollectBlock, GROUPS_MAX, GoBlock, LoadBlock, Outcome};
use crate::apsp::arguments::{Algorithm, Apsp};
use crate::apsp::check::{Check, circle};
use crate::apsp::cycle::negative_cycle;
use crate::apsp::dijkstra::{NO_VERTEX, Summary};
use crate::apsp::distance::Distance;
use crate::apsp::drive::{Job, Sample, verify};
use crate::apsp::generate::Family;
use crate::apsp::graph::{Edges, Graph, graph_bytes};
use crate::apsp::memory::Plan;
use crate::apsp::output::Files;
use crate::apsp::sources::Wanted;
use crate::kernels::measured;
use crate::kernels::min_plus::min_plus;
use crate::matrix::generate::hash;
use chares::{Array, Bulk, Callback, Cx, Driver, KernelCall, Placement, RunError};

/// Bytes of the blocks by which a speed is measured: more than the nearest caches hold.
const OPERAND_BYTES: usize = 16 << 20;
/// Sums of one call of the kernel, at least.
const KERNEL_SUMS: f64 = (1u32 << 27) as f64;

/// Whether blocks make their arcs themselves.
pub(in crate::apsp) fn makes_its_own(apsp: &Apsp) -> bool {
    let is_plain = apsp.recipe().family == Family::Dense && !apsp.undirected;
    apsp.algorithm == Algorithm::FloydWarshall && is_plain
}

/// Sums and comparisons of a graph of so many vertices.
#[must_use]
pub(in crate::apsp) fn work(vertices: usize) -> f64 {
    2.0 * (vertices as f64).powi(3)
}

/// Products of blocks as big as the work's.
pub(in crate::apsp) fn kernel<D: Distance>(apsp: &Apsp) -> KernelCall {
    let side = apsp.block_side(apsp.recipe().vertices);
    let block = |seed| -> Vec<D> {
        (0..side * side).map(|at| D::of_whole((hash(seed, 0, at as u64) % 1000) as i64)).collect()
    };
    let sets = (OPERAND_BYTES / (3 * side * side * size_of::<D>())).clamp(1, 64);
    let blocks: Vec<_> =
        (0..sets as u64).map(|set| (block(3 * set), block(3 * set + 1), block(3 * set + 2))).collect();
    let sums = 2.0 * (side as f64).powi(3);
    Box::new(measured(blocks, sums, KERNEL_SUMS, move |(a, b, c)| min_plus(side, side, a, b, c)))
}

/// Finds all paths of a graph, where `owners` has the PE of each block; of one that blocks make themselves if there are no edges.
pub(in crate::apsp) fn drive<D: Distance>(
    main: &mut Driver,
    apsp: &Apsp,
    edges: Option<Edges>,
    job: Job,
    owners: Vec<u32>,
) -> Result<(), RunError> {
    let (to, told) = main.pending::<Outcome>();
    let setup = setup::<D>(apsp, edges.as_ref(), &job, to);
    let arcs = edges.as_ref().map_or(apsp.recipe().arcs(), Edges::len);
    let groups = setup.groups();
    let outcome = main.outcome();
    outcome.work(work(job.vertices));
    outcome.fact("algorithm", "floyd-warshall");
    outcome.fact("vertices", job.vertices);
    outcome.fact("arcs", arcs);
    outcome.fact("block", setup.side);
    outcome.fact("dtype", serde_json::to_value(job.kind).unwrap_or_default());
    main.parts(u64::from(groups).pow(2), "blocks", |good| {
        let side = (job.vertices as f64 / (good as f64).sqrt()) as usize;
        (side > 0 && side < setup.side).then(|| format!("--block {side}"))
    });

    let blocks: Array<Block<D>> =
        main.array_placed([groups, groups], setup.clone(), Placement::on_pes(owners));
    if let Some(edges) = &edges {
        load(main, &blocks, &setup, edges);
    }
    let files = job.create_files(apsp)?;
    main.init_over()?;
    main.expect_progress("block", u64::from(groups).pow(3))?;
    blocks.broadcast(main, GoBlock);
    if let Outcome::NegativeCycle(vertex) = told.wait(main)? {
        return Err(RunError::Input(described(edges.as_ref(), vertex, setup.tolerance)));
    }
    main.timed_over()?;
    let checked = if apsp.verify { job.checked(arcs) } else { Vec::new() };
    let is_looked_at = apsp.verify || setup.with_last;
    let graph = edges.as_ref().filter(|_| is_looked_at).map(Graph::new);
    let (summaries, sample) = collect(main, apsp, &blocks, &setup, (files, &checked, graph.as_ref()))?;
    let names = edges.as_ref().and_then(|edges| edges.names.as_ref());
    job.conclude(main, apsp, names, &summaries)?;
    if !apsp.verify {
        return Ok(());
    }
    main.outcome().collected();
    let graph = graph.unwrap_or_else(|| Graph::new(&apsp.recipe().edges()));
    verify(main, &graph, &sample, job.kind.is_whole())
}

fn setup<D: Distance>(apsp: &Apsp, edges: Option<&Edges>, job: &Job, told: Callback<Outcome>) -> BlockInit {
    let vertices = job.vertices;
    let heaviest = edges.map_or(0.0, Edges::heaviest);
    BlockInit {
        vertices,
        side: apsp.block_side(vertices),
        recipe: edges.is_none().then(|| apsp.recipe()),
        with_last: apsp.predecessors.is_some(),
        tolerance: vertices as f64 * D::ROUNDOFF * heaviest,
        told,
    }
}

/// What a run takes with so many edges; without any, blocks make theirs.
///
/// # Errors
/// If blocks of the side that is asked for are too many.
pub(in crate::apsp) fn plan(apsp: &Apsp, job: &Job, edges: usize) -> Result<Plan, RunError> {
    let (n, side) = (job.vertices as u64, apsp.block_side(job.vertices) as u64);
    let groups = u32::try_from(n.div_ceil(side)).ok().filter(|groups| *groups as usize <= GROUPS_MAX);
    let groups = groups.ok_or_else(|| {
        let least = job.vertices.div_ceil(GROUPS_MAX);
        let sentence =
            format!("--block {side}: that makes too many blocks of {n} vertices; give at least {least}");
        RunError::Input(sentence)
    })?;
    let number = job.kind.size_bytes() as u64 + if apsp.predecessors.is_some() { 4 } else { 0 };
    let all = (n * n).saturating_mul(number);
    // A share of the blocks; of the rounds that are under way, at most all of the pivots' rows and columns.
    let travelling = 2 * u64::from(AHEAD) * n * side * number;
    let shown = match apsp.verify {
        true if edges == 0 => (n * n).saturating_mul(24 + 4 + number),
        true => graph_bytes(job.vertices, edges, job.kind),
        false => 0,
    };
    let loaded = if edges > 0 { all } else { 2 * n * side * number };
    Ok(Plan {
        what: format!("{n} vertices in {groups} x {groups} blocks"),
        on_node: (side * side * number).saturating_add(travelling),
        on_pe: 0,
        shared: all,
        launcher: (24 * edges as u64).saturating_add(loaded).saturating_add(shown),
        files: job.files(apsp),
        blocks: (groups, side * side * job.kind.size_bytes() as u64),
    })
}

/// Sends each block its arcs.
fn load<D: Distance>(main: &mut Driver, blocks: &Array<Block<D>>, setup: &BlockInit, edges: &Edges) {
    let groups = setup.groups();
    let mut of_group: Vec<Vec<u32>> = vec![Vec::new(); groups as usize];
    for (at, &from) in (0u32..).zip(&edges.from) {
        of_group[from as usize / setup.side].push(at);
    }
    for (i, of_group) in (0..groups).zip(of_group) {
        let rows = setup.group(i);
        let mut parts: Vec<(Bulk<D>, Option<Bulk<i32>>)> = Vec::new();
        for j in 0..groups {
            let count = rows.len() * setup.group(j).len();
            let mut numbers = Bulk::zeros(count);
            numbers.as_mut_slice().fill(D::FAR);
            let last = setup.with_last.then(|| Bulk::from(vec![NO_VERTEX; count]));
            parts.push((numbers, last));
        }
        for at in rows.clone() {
            let width = rows.len();
            parts[i as usize].0.as_mut_slice()[(at - rows.start) * (width + 1)] = D::ZERO;
        }
        for edge in of_group.into_iter().map(|edge| edge as usize) {
            let (from, to) = (edges.from[edge] as usize, edges.to[edge] as usize);
            let cols = setup.group((to / setup.side) as u32);
            let (numbers, last) = &mut parts[to / setup.side];
            let at = (from - rows.start) * cols.len() + to - cols.start;
            let (number, weight) = (&mut numbers.as_mut_slice()[at], edges.weight(edge));
            if weight < *number {
                *number = weight;
                if let Some(last) = last {
                    last.as_mut_slice()[at] = from as i32;
                }
            }
        }
        for (j, (numbers, last)) in (0..).zip(parts) {
            blocks.at([i, j]).send(main, LoadBlock { numbers, last });
        }
    }
}

/// What is wrong with a graph that has a negative cycle by way of this vertex.
fn described(edges: Option<&Edges>, vertex: u32, tolerance: f64) -> String {
    let names = edges.and_then(|edges| edges.names.as_ref());
    let name = |vertex: u32| names.map_or(vertex.into(), |names| names[vertex as usize]);
    let Some((cycle, sum)) = edges.and_then(|edges| negative_cycle(edges, tolerance)) else {
        let vertex = name(vertex);
        return format!(
            "the graph has a negative cycle by way of vertex {vertex}: paths have no least length"
        );
    };
    let mut vertices: Vec<String> = cycle.iter().take(20).map(|vertex| name(*vertex).to_string()).collect();
    if cycle.len() > 20 {
        vertices.push(format!("… ({} more)", cycle.len() - 20));
    }
    vertices.extend(cycle.first().map(|vertex| name(*vertex).to_string()));
    let counted = if names.is_some() { "vertices by their names" } else { "vertices counted from 0" };
    format!(
        "the graph has a negative cycle, so that paths have no least length: {} ({counted}), {sum} in all",
        vertices.join(" -> ")
    )
}

/// Collects the result, one row of blocks after the other: what each source's distances add up to, and the rows that
/// are to be checked.
fn collect<D: Distance>(
    main: &mut Driver,
    apsp: &Apsp,
    blocks: &Array<Block<D>>,
    setup: &BlockInit,
    (mut files, checked, graph): (Files<D>, &[u32], Option<&Graph<D>>),
) -> Result<(Vec<Summary>, Sample<D>), RunError> {
    let groups = setup.groups();
    let (to, found): (Callback<BlockFound<D>>, _) = main.pending();
    let predecessors = apsp.predecessors.is_some();
    // Predecessors are mended by them.
    let distances = apsp.out.is_some() || apsp.verify || predecessors;
    let wanted = Wanted { distances, predecessors };
    let mut summaries = vec![Summary::default(); setup.vertices];
    let mut sample = Sample::new();
    for i in 0..groups {
        (0..groups).for_each(|j| blocks.at([i, j]).send(main, CollectBlock { to, wanted }));
        let mut row = Vec::new();
        for _ in 0..groups {
            let block = found.wait(main)?;
            let place = (setup.group(i), setup.group(block.at[1]));
            files.put(place, block.distances.as_deref(), None)?;
            row.push(block);
        }
        row.sort_by_key(|block| block.at);
        for block in &row {
            for (vertex, summary) in setup.group(i).zip(&block.summaries) {
                summaries[vertex].join(summary);
            }
        }
        let rows = setup.group(i);
        for at in rows.clone() {
            let source = u32::try_from(at).unwrap_or(u32::MAX);
            let is_checked = checked.binary_search(&source).is_ok();
            if !is_checked && !wanted.predecessors {
                continue;
            }
            let (distances, mut before) = joined(&row, setup, at - rows.start);
            if let Some(before) = &mut before {
                without_circle(source, &distances, before, graph);
                files.put((at..at + 1, 0..setup.vertices), None, Some(before))?;
            }
            if is_checked {
                sample.insert(source, (distances, before));
            }
        }
        main.phase("collecting", u64::from(i) + 1, u64::from(groups));
    }
    files.finish()?;
    Ok((summaries, sample))
}

/// Where arcs of weight 0 form a circle, blocks may have chosen the last vertices of several equal paths so that they go
/// round it; they are chosen anew then, from the distances. Graphs that blocks make themselves have no such arcs.
fn without_circle<D: Distance>(source: u32, row: &[D], before: &mut Bulk<i32>, graph: Option<&Graph<D>>) {
    if circle(source, before).is_none() {
        return;
    }
    if let Some(graph) = graph {
        *before = Check::new(graph, false).tree(source, row).into();
    }
}

/// A row of the result, of the blocks that have its parts.
fn joined<D: Distance>(row: &[BlockFound<D>], setup: &BlockInit, at: usize) -> (Bulk<D>, Option<Bulk<i32>>) {
    let (mut numbers, mut before): (Vec<D>, Vec<i32>) = (Vec::new(), Vec::new());
    for block in row {
        let cols = setup.group(block.at[1]).len();
        let part = at * cols..(at + 1) * cols;
        numbers.extend(block.distances.as_ref().map_or(&[][..], |of| &of[part.clone()]));
        before.extend(block.predecessors.as_ref().map_or(&[][..], |of| &of[part]));
    }
    (numbers.into(), setup.with_last.then(|| before.into()))
}
