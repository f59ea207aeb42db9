//! The driver: reads or generates the graph, states what it needs, has paths found, writes and checks them.

use super::arguments::{Algorithm, Apsp, Sources};
use super::check::Check;
use super::dijkstra::{Summary, scratch_bytes};
use super::distance::{Distance, DistanceType};
use super::graph::{Edges, Graph, Weights, graph_bytes};
use super::memory::{self, Plan};
use super::output::{self, Asked, Files};
use super::sources::{self, GROUP_BYTES, Searcher, SearcherInit, Wanted};
use super::{floyd, read};
use crate::division::Division;
use chares::{Bulk, Cx, Driver, Group, RunError};
use std::collections::BTreeMap;
use std::ops::Range;

/// Arcs that a check looks at: more rows than these are not checked.
const CHECKED_ARCS: u64 = 1_000_000_000;
/// Bytes of rows that are kept to be checked.
const CHECKED_BYTES: u64 = 256 << 20;
/// So many of them are compared with another algorithm's.
const COMPARED: usize = 3;

/// Finds paths as the command line asks.
pub(super) fn drive(main: &mut Driver, apsp: Apsp) -> Result<(), RunError> {
    let mut divided = None;
    if apsp.graph.is_none() {
        // Before it is made: a few words may ask for a graph of any size.
        let recipe = apsp.recipe();
        let sources = of_sources(&apsp, recipe.vertices)?;
        let job = Job { vertices: recipe.vertices, sources, kind: apsp.likely_type() };
        if floyd::makes_its_own(&apsp) {
            let division = memory::divide(main, &floyd::plan(&apsp, &job, 0)?)?;
            return find(main, &apsp, None, job, division);
        }
        let both_ways = if apsp.undirected { 2 } else { 1 };
        let plan = plan(&apsp, &job, recipe.arcs().saturating_mul(both_ways))?;
        divided = Some(memory::divide(main, &plan)?);
    }
    let edges = edges(main, &apsp)?;
    let kind = kind(&apsp, &edges)?;
    let job = Job { vertices: edges.vertices, sources: of_sources(&apsp, edges.vertices)?, kind };
    let division = match divided {
        Some(division) => division,
        None => memory::divide(main, &plan(&apsp, &job, edges.len())?)?,
    };
    if edges.names.is_some() {
        let sentence =
            "the file's names of vertices have gaps: row and column i are of the i-th smallest name";
        main.outcome().remark(sentence);
    }
    find(main, &apsp, Some(edges), job, division)
}

/// Finds the paths of a graph, with distances of the type that the job names; of one that blocks make themselves if
/// there are no edges.
fn find(
    main: &mut Driver,
    apsp: &Apsp,
    edges: Option<Edges>,
    job: Job,
    division: Division<Vec<u32>>,
) -> Result<(), RunError> {
    match job.kind {
        DistanceType::I32 => find_as::<i32>(main, apsp, edges, job, division),
        DistanceType::I64 => find_as::<i64>(main, apsp, edges, job, division),
        DistanceType::F32 => find_as::<f32>(main, apsp, edges, job, division),
        DistanceType::F64 => find_as::<f64>(main, apsp, edges, job, division),
    }
}

fn find_as<D: Distance>(
    main: &mut Driver,
    apsp: &Apsp,
    edges: Option<Edges>,
    job: Job,
    division: Division<Vec<u32>>,
) -> Result<(), RunError> {
    match (apsp.algorithm, edges) {
        (Algorithm::Dijkstra, Some(edges)) => dijkstra::<D>(main, apsp, edges, job, &division.weights),
        (_, edges) => floyd::drive::<D>(main, apsp, edges, job, division.owners),
    }
}

/// What is to be found.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) vertices: usize,
    pub(super) sources: Range<u32>,
    pub(super) kind: DistanceType,
}

impl Job {
    /// Rows of the results by their sources.
    pub(super) fn row(&self, source: u32) -> usize {
        (source - self.sources.start) as usize
    }

    fn row_bytes(&self) -> u64 {
        self.vertices as u64 * self.kind.size_bytes() as u64
    }

    /// The sources whose rows are checked: all if that is quick, else some, spread evenly.
    pub(super) fn checked(&self, arcs: usize) -> Vec<u32> {
        let sources = self.sources.len();
        let most = (CHECKED_ARCS / (arcs + self.vertices).max(1) as u64)
            .min(CHECKED_BYTES / self.row_bytes().max(1));
        let rows = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, sources.max(1));
        (0..rows).map(|at| self.sources.start + count(at * sources / rows)).collect()
    }

    /// Files, and their bytes.
    pub(super) fn files(&self, apsp: &Apsp) -> Vec<(std::path::PathBuf, u64)> {
        let numbers = self.sources.len() as u64 * self.vertices as u64;
        let distances = apsp.out.iter().map(|path| (path.clone(), numbers * self.kind.size_bytes() as u64));
        distances.chain(apsp.predecessors.iter().map(|path| (path.clone(), numbers * 4))).collect()
    }

    pub(super) fn create_files<D: Distance>(&self, apsp: &Apsp) -> Result<Files<D>, RunError> {
        let asked = Asked { distances: apsp.out.as_ref(), predecessors: apsp.predecessors.as_ref() };
        Files::create(asked, self.sources.len(), self.vertices)
    }

    /// States what was found, and writes the table of statistics.
    pub(super) fn conclude(
        &self,
        main: &mut Driver,
        apsp: &Apsp,
        names: Option<&Vec<u64>>,
        summaries: &[Summary],
    ) -> Result<(), RunError> {
        output::state(main.outcome(), summaries, self.vertices);
        let Some(path) = &apsp.statistics else { return Ok(()) };
        let name = |vertex: u32| names.map_or(vertex.into(), |names| names[vertex as usize]);
        output::write_statistics(path, (self.sources.start, &name), summaries, self.vertices)
    }
}

/// Results that are kept to be checked, by source.
pub(super) type Sample<D> = BTreeMap<u32, (Bulk<D>, Option<Bulk<i32>>)>;

fn count(vertices: usize) -> u32 {
    u32::try_from(vertices).expect("graphs have at most VERTICES_MAX vertices")
}

fn edges(main: &mut Driver, apsp: &Apsp) -> Result<Edges, RunError> {
    main.phase(if apsp.graph.is_some() { "reading the graph" } else { "generating the graph" }, 0, 0);
    let mut edges = match &apsp.graph {
        Some(path) => read::read(path, apsp.wanted()).map_err(|e| RunError::Input(e.to_string()))?,
        None => apsp.recipe().edges(),
    };
    if let (Some(negative), Algorithm::Dijkstra, Some(path)) = (&edges.negative, apsp.algorithm, &apsp.graph)
    {
        return Err(RunError::Input(format!(
            "{}:{}: the weight {} is negative, which Dijkstra's algorithm cannot take: use --algorithm floyd-warshall",
            path.display(),
            negative.line,
            negative.weight
        )));
    }
    if apsp.undirected {
        edges.make_undirected();
    }
    Ok(edges)
}

/// The type that distances of these edges have.
fn kind(apsp: &Apsp, edges: &Edges) -> Result<DistanceType, RunError> {
    let kind = apsp.dtype.unwrap_or_else(|| edges.natural_type());
    let longest = edges.longest();
    if kind.is_whole() && matches!(edges.weights, Weights::Real(_)) {
        return Err(RunError::Input(
            "--dtype: the graph has weights that are not written as whole numbers; take f32 or f64".into(),
        ));
    }
    if longest <= kind.longest() {
        return Ok(kind);
    }
    let mend = match kind {
        DistanceType::I32 => "take --dtype i64",
        DistanceType::I64 | DistanceType::F32 => "take --dtype f64",
        DistanceType::F64 => "write the weights in a larger unit",
    };
    Err(RunError::Input(format!(
        "a path may be {longest:e} long, and distances of this type at most {:.1e}: {mend}",
        kind.longest()
    )))
}

fn of_sources(apsp: &Apsp, vertices: usize) -> Result<Range<u32>, RunError> {
    match &apsp.sources {
        Some(Sources(range)) if range.end as usize <= vertices => Ok(range.clone()),
        Some(Sources(range)) => Err(RunError::Input(format!(
            "--sources {}..{}: the graph has the vertices 0 to {}",
            range.start,
            range.end,
            vertices - 1
        ))),
        None => Ok(0..count(vertices)),
    }
}

/// Bytes of what is wanted of a source, besides its summary.
fn wanted_row_bytes(apsp: &Apsp, job: &Job) -> u64 {
    let distances = if apsp.out.is_some() { job.row_bytes() } else { 0 };
    distances + if apsp.predecessors.is_some() { 4 * job.vertices as u64 } else { 0 }
}

/// What a run with so many arcs takes.
///
/// # Errors
/// If that makes too many blocks.
fn plan(apsp: &Apsp, job: &Job, arcs: usize) -> Result<Plan, RunError> {
    if apsp.algorithm == Algorithm::FloydWarshall {
        return floyd::plan(apsp, job, arcs);
    }
    let &Job { vertices, kind, ref sources } = job;
    let graph_bytes = graph_bytes(vertices, arcs, kind);
    let row_bytes = wanted_row_bytes(apsp, job);
    let held = if row_bytes > 0 { 2 * sources::AHEAD as u64 * GROUP_BYTES.max(row_bytes) } else { 0 };
    let sample = CHECKED_BYTES.min(job.row_bytes().saturating_mul(sources.len() as u64));
    Ok(Plan {
        what: format!("{} of {vertices} sources, {arcs} arcs", sources.len()),
        on_node: graph_bytes,
        on_pe: scratch_bytes(vertices, arcs, kind) + held,
        shared: 0,
        launcher: 24 * arcs as u64 + graph_bytes + sample,
        files: job.files(apsp),
        blocks: (0, 0),
    })
}

fn dijkstra<D: Distance>(
    main: &mut Driver,
    apsp: &Apsp,
    edges: Edges,
    job: Job,
    weights: &[f64],
) -> Result<(), RunError> {
    let Job { vertices, kind, ref sources } = job;
    let (arcs, row_bytes) = (edges.len(), wanted_row_bytes(apsp, &job));
    let graph = Graph::<D>::new(&edges);
    let Edges { names, .. } = edges;
    let outcome = main.outcome();
    outcome.work(sources.len() as f64);
    outcome.fact("algorithm", "dijkstra");
    outcome.fact("vertices", vertices);
    outcome.fact("arcs", graph.arcs());
    outcome.fact("sources", sources.len());
    outcome.fact("dtype", serde_json::to_value(kind).unwrap_or_default());

    let everywhere = main.readonly(graph.clone())?;
    let wanted = Wanted { distances: apsp.out.is_some(), predecessors: apsp.predecessors.is_some() };
    let searchers: Group<Searcher<D>> = main.group(SearcherInit { graph: everywhere, wanted });
    let mut files = job.create_files(apsp)?;
    let checked = if apsp.verify { job.checked(arcs) } else { Vec::new() };
    let mut sample = Sample::new();
    let mut summaries = vec![Summary::default(); sources.len()];
    main.init_over()?;
    main.expect_progress("source", sources.len() as u64)?;
    let done = sources::follow(main, &searchers, (sources.clone(), weights), row_bytes, |group| {
        for (source, found) in (group.first..).zip(group.found) {
            let row = job.row(source);
            summaries[row] = found.summary;
            files.put(
                (row..row + 1, 0..vertices),
                found.distances.as_deref(),
                found.predecessors.as_deref(),
            )?;
            if let (Some(distances), Ok(_)) = (found.distances, checked.binary_search(&source)) {
                sample.insert(source, (distances, found.predecessors));
            }
        }
        Ok(())
    })?;
    main.timed_over()?;
    let total = done.iter().sum::<u64>().max(1) as f64;
    main.outcome().shares(done.iter().map(|&sources| sources as f64 / total).collect());
    main.outcome().fact("sources_done", done);
    files.finish()?;
    job.conclude(main, apsp, names.as_ref(), &summaries)?;
    if !apsp.verify {
        return Ok(());
    }
    main.outcome().collected();
    if !wanted.distances {
        let setup = SearcherInit { graph: everywhere, wanted: Wanted { distances: true, ..wanted } };
        sample = again(main, &job, setup, weights, (&checked, &summaries))?;
    }
    verify(main, &graph, &sample, true)
}

/// Searches from some sources once more, this time for their rows too; these must add up to the same.
fn again<D: Distance>(
    main: &mut Driver,
    job: &Job,
    setup: SearcherInit<D>,
    weights: &[f64],
    (checked, summaries): (&[u32], &[Summary]),
) -> Result<Sample<D>, RunError> {
    let searchers = main.group::<Searcher<D>>(setup);
    let mut sample = Sample::new();
    let mut differing = None;
    for &source in checked {
        sources::follow(main, &searchers, (source..source + 1, weights), 0, |group| {
            for found in group.found {
                differing = differing.or((found.summary != summaries[job.row(source)]).then_some(source));
                sample.extend(found.distances.map(|distances| (source, (distances, found.predecessors))));
            }
            Ok(())
        })?;
    }
    match differing {
        None => Ok(sample),
        Some(source) => {
            Err(RunError::Wrong(format!("a second search from vertex {source} found other distances")))
        }
    }
}

/// Checks rows of results.
pub(super) fn verify<D: Distance>(
    main: &mut Driver,
    graph: &Graph<D>,
    sample: &Sample<D>,
    is_in_order: bool,
) -> Result<(), RunError> {
    let worst = worst_error(main, graph, sample, is_in_order);
    let outcome = main.outcome();
    outcome.fact("verified_rows", sample.len());
    match worst {
        Ok(worst) => {
            outcome.verified(true, worst);
            Ok(())
        }
        Err(sentence) => {
            outcome.verified(false, f64::INFINITY);
            Err(RunError::Wrong(format!("the distances are wrong: {sentence}")))
        }
    }
}

/// The largest relative error of these rows; or what is wrong with them, in one sentence.
fn worst_error<D: Distance>(
    main: &mut Driver,
    graph: &Graph<D>,
    sample: &Sample<D>,
    is_in_order: bool,
) -> Result<f64, String> {
    if sample.is_empty() {
        return Err("no row of them came to be checked".into());
    }
    let check = Check::new(graph, is_in_order);
    let (mut worst, every) = (0.0f64, sample.len().div_ceil(COMPARED).max(1));
    for (at, (&source, (row, predecessors))) in sample.iter().enumerate() {
        main.phase("verifying", at as u64, sample.len() as u64);
        worst = worst.max(check.row(source, row)?);
        if let Some(before) = predecessors {
            check.predecessors(source, row, before)?;
        }
        if at % every == 0 {
            check.bellman_ford(source, row)?;
        }
    }
    Ok(worst)
}
