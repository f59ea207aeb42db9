//! Dijkstra's algorithm from every source: the graph readonly on every node, on each PE a chare that searches from one
//! group of sources after the other; results only.
//!
//! As in the 1995 report (section on all-pairs shortest paths). There the groups were dealt out once, by speed; here a
//! chare is given the next one when it has done one (`SelfScheduling`), so that nothing depends on how well speeds
//! were known. It always has a second group waiting, and so never waits for a message.

mod self_scheduling;

use super::dijkstra::{Search, Summary};
use super::distance::Distance;
use super::graph::Graph;
use chares::{Bulk, Callback, Chare, Ctx, Cx, Driver, Entry, Group, Readonly, RunError, Scratch};
use self_scheduling::SelfScheduling;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Groups that a PE has at a time.
pub(super) const AHEAD: usize = 2;
/// Rows of a group together have about so many bytes, where rows are wanted.
pub(super) const GROUP_BYTES: u64 = 4 << 20;

/// What each search gives besides its summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The distances.
    pub distances: bool,
    /// The vertices before each.
    pub predecessors: bool,
}

/// Searches from the sources that it is given.
#[derive(Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct Searcher<D: Distance> {
    setup: SearcherInit<D>,
    waiting: VecDeque<SearchFrom<D>>,
    found: Vec<SourcePaths<D>>,
    search: Scratch<Option<Search<D>>>,
}

/// What every searcher is made with.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct SearcherInit<D> {
    /// The graph.
    pub graph: Readonly<Graph<D>>,
    /// What is wanted of it.
    pub wanted: Wanted,
}

/// Search from these sources too.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct SearchFrom<D: Distance> {
    /// Vertices.
    pub sources: Range<u32>,
    /// Who is told what was found.
    pub to: Callback<FoundFrom<D>>,
}

/// Search from the next source.
#[derive(Serialize, Deserialize)]
pub struct SearchNext;

/// What was found from a group of sources.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct FoundFrom<D> {
    /// Who searched.
    pub pe: u32,
    /// The first of the sources.
    pub first: u32,
    /// What was found, source by source.
    pub found: Vec<SourcePaths<D>>,
}

/// What was found from a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct SourcePaths<D> {
    /// What the distances add up to.
    pub summary: Summary,
    /// The distances, if they are wanted.
    pub distances: Option<Bulk<D>>,
    /// The vertices before each, if they are wanted.
    pub predecessors: Option<Bulk<i32>>,
}

chares::entries!(impl<D: Distance> Searcher<D>: SearchFrom<D>, SearchNext);

impl<D: Distance> Chare for Searcher<D> {
    type Index = u32;
    type Init = SearcherInit<D>;
    fn new(setup: SearcherInit<D>, _: &mut Ctx<'_, Self>) -> Self {
        Self { setup, waiting: VecDeque::new(), found: Vec::new(), search: Scratch(None) }
    }
}

impl<D: Distance> Entry<SearchFrom<D>> for Searcher<D> {
    fn receive(&mut self, from: SearchFrom<D>, ctx: &mut Ctx<'_, Self>) {
        self.waiting.push_back(from);
        if self.waiting.len() == 1 {
            ctx.this().send(ctx, SearchNext);
        }
    }
}

/// One source at a time, so that the PE can do other things in between.
impl<D: Distance> Entry<SearchNext> for Searcher<D> {
    fn receive(&mut self, _: SearchNext, ctx: &mut Ctx<'_, Self>) {
        let Some(SearchFrom { sources, to }) = self.waiting.front_mut() else { return };
        let (graph, wanted, first) = (self.setup.graph.read(ctx), self.setup.wanted, sources.start);
        let source = first + u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        let search = self.search.get_or_insert_with(|| Search::new(wanted.predecessors));
        search.run(&graph, source);
        self.found.push(SourcePaths {
            summary: search.summary(&graph),
            distances: wanted.distances.then(|| search.distances(&graph)),
            predecessors: wanted.predecessors.then(|| search.predecessors(&graph)),
        });
        ctx.progress(1);
        if source + 1 >= sources.end {
            let found = std::mem::take(&mut self.found);
            to.send(ctx, FoundFrom { pe: ctx.pe_id(), first, found });
            self.waiting.pop_front();
        }
        if !self.waiting.is_empty() {
            ctx.this().send(ctx, SearchNext);
        }
    }
}

/// Has these sources searched from, by PEs of these weights; `take` is given what was found, group by group in any order. How many sources
/// each PE has done.
///
/// # Errors
/// If the run ends before, or `take` fails.
pub(super) fn follow<D: Distance>(
    main: &mut Driver,
    searchers: &Group<Searcher<D>>,
    (sources, weights): (Range<u32>, &[f64]),
    row_bytes: u64,
    mut take: impl FnMut(FoundFrom<D>) -> Result<(), RunError>,
) -> Result<Vec<u64>, RunError> {
    let most = GROUP_BYTES.checked_div(row_bytes).unwrap_or(u64::MAX);
    let mut left = SelfScheduling::new(sources.start.into()..sources.end.into(), weights, most);
    let (to, found) = main.pending();
    let mut give = |main: &mut Driver, pe: u32| {
        if let Some(group) = left.next(pe as usize) {
            let vertex = |at: u64| u32::try_from(at).expect("part of a range of u32");
            let sources = vertex(group.start)..vertex(group.end);
            searchers.on(pe).send(main, SearchFrom { sources, to });
        }
    };
    let pes = main.pe_count();
    for pe in (0..AHEAD).flat_map(|_| 0..pes) {
        give(main, pe);
    }
    let mut done = vec![0; main.pe_count() as usize];
    let mut waiting = sources.len();
    while waiting > 0 {
        let group = found.wait(main)?;
        give(main, group.pe);
        waiting = waiting.saturating_sub(group.found.len());
        done[group.pe as usize] += group.found.len() as u64;
        take(group)?;
    }
    Ok(done)
}
