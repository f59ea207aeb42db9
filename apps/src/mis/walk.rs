//! The top of the tree of a graph whose rows are in blocks: one chare goes through it depth first as a [`Search`] does, and asks
//! the blocks for all that it needs to know of the graph. Where few candidates are left it fetches the graph that they make
//! and has it searched by a subproblem, which asks for nothing more. So the tree is that of a graph in one place.
//!
//! Source: M. V. Nibhanupudi's thesis, section 3.4, where every process walks the top by itself.

use super::block::{Blocks, Row};
use super::bound::descent;
use super::graph::{Complement, all, count, holds, members, remove, words_of, work};
use super::search::{Found, Known, Search, Start, Workspace};
use super::subproblem::{Over, Problem, Progress, Searched, Subproblem, SubproblemInit, Tally};
use crate::matrix::generate::hash;
use chares::{Bulk, Callback, Chare, Ctx, Cx, Entry, Gather, On};
use serde::{Deserialize, Serialize};

/// A PE has at most so many subproblems of the walk, so that one waits when the other is over, and few are anywhere.
pub(super) const AHEAD: u32 = 2;

/// Of so many vertices or fewer a graph is searched in one place: of a 256th of the bits of the whole, and 32 KiB at most.
pub(super) fn local_vertices(vertices: usize) -> usize {
    (vertices / 16).clamp(16, 512)
}

/// A node of the tree, some branches of which are still to be tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Level {
    /// Vertices that may join the set: those to be tried, and those that need not be.
    candidates: Vec<u64>,
    /// How many of those that are still to be tried may be in a set with each of them.
    degrees: Vec<(u16, u32)>,
    /// Count of branches that have been tried.
    tried: u32,
    /// Count of branches of the node.
    total: u32,
    /// What part of the tree each of them counts as.
    part: f64,
}

impl Level {
    /// The place in `degrees` of the vertex to be tried next, of which a larger set than that may come.
    fn next(&self, beaten: usize) -> Option<usize> {
        let is_left = self.tried < self.total;
        let best = |at: &usize| (self.degrees[*at].0, std::cmp::Reverse(self.degrees[*at].1));
        let most = (0..self.degrees.len()).filter(|_| is_left).max_by_key(best)?;
        (usize::from(self.degrees[most].0) + 1 > beaten).then_some(most)
    }

    /// The part of the tree that its other branches count as.
    fn left(&self) -> f64 {
        self.part * f64::from(self.total - self.tried)
    }
}

/// Walks through the top of the tree.
#[derive(Serialize, Deserialize)]
pub struct Walk {
    problem: Problem,
    blocks: Blocks,
    key: u64,
    chosen: Vec<u32>,
    path: Vec<u32>,
    levels: Vec<Level>,
    /// The candidates of the node that the blocks are asked about.
    candidates: Vec<u64>,
    /// The vertex whose row they are asked for.
    vertex: u32,
    /// Subproblems that each PE has.
    out: Vec<u32>,
    /// Whether it waits until one of them is over.
    is_waiting: bool,
    /// Subproblems that it has made.
    made: u64,
    /// Candidates at each step of the first descent, until it is known.
    descent: Option<Vec<u32>>,
    progress: Progress,
}

/// What the walk is made with.
#[derive(Clone, Serialize, Deserialize)]
pub struct WalkInit {
    /// What it is part of.
    pub problem: Problem,
    /// Where the graph is.
    pub blocks: Blocks,
    /// Tells its subproblems from others.
    pub key: u64,
}

chares::entries!(Walk: Gather<u16> as "Counted", Gather<Bulk<u64>> as "HaveCut", Row, Over);

impl Chare for Walk {
    type Index = u32;
    type Init = WalkInit;

    fn new(WalkInit { problem, blocks, key }: WalkInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let candidates = all(blocks.vertices());
        let out = vec![0; ctx.pe_count() as usize];
        let mut walk = Self {
            problem,
            blocks,
            key,
            chosen: Vec::new(),
            path: Vec::new(),
            levels: Vec::new(),
            candidates: Vec::new(),
            vertex: 0,
            out,
            is_waiting: false,
            made: 0,
            descent: Some(Vec::new()),
            progress: Progress::default(),
        };
        walk.visit(ctx, candidates);
        walk
    }
}

/// The degrees at the node that is visited.
impl Entry<Gather<u16>> for Walk {
    fn receive(&mut self, Gather(degrees): Gather<u16>, ctx: &mut Ctx<'_, Self>) {
        let candidates = std::mem::take(&mut self.candidates);
        if degrees.len() != count(&candidates) {
            return ctx.fail("blocks have told the degrees of other vertices than they were asked for");
        }
        let vertices = members(&candidates).map(|vertex| vertex as u32);
        let degrees: Vec<(u16, u32)> = degrees.into_iter().zip(vertices).collect();
        let rows = degrees.len() as u64;
        let total = self.problem.choice.limit(self.chosen.len()).min(u32::try_from(rows).unwrap_or(u32::MAX));
        let part = self.part() / f64::from(total.max(1));
        self.levels.push(Level { candidates, degrees, tried: 0, total, part });
        self.tally(ctx, Tally { rows, ..Tally::default() });
        self.go_on(ctx);
    }
}

/// The row of the vertex that is tried.
impl Entry<Row> for Walk {
    fn receive(&mut self, Row(row): Row, ctx: &mut Ctx<'_, Self>) {
        let (vertex, size) = (self.vertex, self.chosen.len());
        let Some(level) = self.levels.last_mut().filter(|level| level.candidates.len() == row.len()) else {
            return ctx.fail("a block has told a row of another graph");
        };
        remove(&mut level.candidates, vertex as usize);
        for (degree, other) in &mut level.degrees {
            *degree = degree.saturating_sub(u16::from(holds(&row, *other as usize)));
        }
        let candidates: Vec<u64> = level.candidates.iter().zip(&*row).map(|(all, row)| all & row).collect();
        let (ordinal, part) = (level.tried, level.part);
        level.tried += 1;
        let mut tally = Tally { nodes: 1, rows: 1, ..Tally::default() };
        let (known, left) = (self.problem.known(ctx), count(&candidates));
        self.chosen.push(vertex);
        self.path.push(ordinal);
        if size + 1 + left > known.beaten && left > 0 {
            self.tally(ctx, tally);
            return self.visit(ctx, candidates);
        }
        if left == 0 && size + 1 > known.beaten {
            let after = self.problem.begun.elapsed();
            let found = Found { set: self.chosen.clone(), path: self.path.clone(), after };
            self.problem.best.propose(ctx, found.clone());
            tally.best = Some(found);
        }
        self.tally(ctx, tally);
        self.progress.add(ctx, part);
        self.leave();
        self.go_on(ctx);
    }
}

/// The graph that is left.
impl Entry<Gather<Bulk<u64>>> for Walk {
    fn receive(&mut self, Gather(rows): Gather<Bulk<u64>>, ctx: &mut Ctx<'_, Self>) {
        let candidates = std::mem::take(&mut self.candidates);
        let vertices = members(&candidates).map(|vertex| vertex as u32).collect();
        let rows = rows.iter().flat_map(|rows| rows.iter().copied()).collect();
        let Some(graph) = Complement::of_part(vertices, rows) else {
            return ctx.fail("blocks have told rows of another number of vertices than they were asked for");
        };
        self.subproblem(ctx, graph);
        self.leave();
        self.go_on(ctx);
    }
}

/// A PE can have another subproblem.
impl Entry<Over> for Walk {
    fn receive(&mut self, Over(pe): Over, ctx: &mut Ctx<'_, Self>) {
        if let Some(out) = self.out.get_mut(pe as usize) {
            *out = out.saturating_sub(1);
        }
        if std::mem::take(&mut self.is_waiting) {
            self.go_on(ctx);
        }
    }
}

impl Walk {
    /// What part of the tree is below the node that is visited.
    fn part(&self) -> f64 {
        self.levels.last().map_or(1.0, |level| level.part)
    }

    /// Asks about a node: the one whose vertices are chosen.
    fn visit(&mut self, ctx: &mut Ctx<'_, Self>, candidates: Vec<u64>) {
        let left = count(&candidates);
        let to = ctx.this();
        if left <= local_vertices(self.blocks.vertices()) {
            self.blocks.cut(ctx, &candidates, Callback::element(&to));
        } else {
            if let Some(descent) = &mut self.descent {
                descent.push(u32::try_from(left).unwrap_or(u32::MAX));
            }
            self.blocks.count(ctx, &candidates, Callback::element(&to));
        }
        self.candidates = candidates;
    }

    /// Goes back to the node above, unless there is none.
    fn leave(&mut self) {
        self.chosen.pop();
        self.path.pop();
    }

    /// Tries the next branch, when a PE can have what comes of it.
    fn go_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.out.iter().all(|&out| out >= AHEAD) {
            self.is_waiting = true;
            return;
        }
        let Known { beaten, before } = self.problem.known(ctx);
        while let Some(level) = self.levels.last_mut() {
            let is_behind =
                before.as_ref().is_some_and(|before| self.path.iter().chain([&level.tried]).gt(before));
            let size = self.chosen.len();
            let next = level.next(beaten.saturating_sub(size)).filter(|_| !is_behind);
            if let Some(next) = next {
                self.vertex = level.degrees.swap_remove(next).1;
                let to = Callback::element(&ctx.this());
                return self.blocks.tell(ctx, self.vertex, to);
            }
            let left = level.left();
            self.progress.add(ctx, left);
            self.levels.pop();
            self.leave();
        }
        ctx.destroy();
    }

    /// Has what is left below this node searched in one place.
    fn subproblem(&mut self, ctx: &mut Ctx<'_, Self>, graph: Complement) {
        let everything = all(graph.len());
        if let Some(mut sizes) = self.descent.take() {
            sizes.extend(descent(&graph, everything.clone()).1);
            self.problem.tally.add(ctx, Tally { descent: sizes, ..Tally::default() });
        }
        let start = Start {
            chosen: self.chosen.clone(),
            path: self.path.clone(),
            begun: self.path.iter().zip(&self.levels).map(|(&branch, level)| (branch, level.total)).collect(),
            part: self.part(),
        };
        let beaten = self.problem.known(ctx).beaten;
        let mut work = Workspace::default();
        let search = Search::below(start, &graph, &self.problem.choice, (beaten, everything), &mut work);
        let rows = work.bound.rows;
        self.problem.tally.add(ctx, Tally { rows, work: graph.work(rows), ..Tally::default() });
        let speeds = ctx.speeds();
        let ahead = |pe: &usize| f64::from(self.out[*pe] + 1) / speeds.get(*pe).copied().unwrap_or(1.0);
        let free = (0..self.out.len()).filter(|&pe| self.out[pe] < AHEAD);
        let pe = free.min_by(|one, other| ahead(one).total_cmp(&ahead(other))).unwrap_or(0);
        self.out[pe] += 1;
        self.made += 1;
        let init = SubproblemInit {
            problem: self.problem.clone(),
            graph: Searched::Part(graph),
            search: Some(search),
            key: hash(self.key, self.made, 1),
            over: Some(Callback::element(&ctx.this())),
        };
        ctx.chare::<Subproblem>(init, On::Pe(u32::try_from(pe).unwrap_or(u32::MAX)));
    }

    /// Adds to the counts; rows are those of the whole graph.
    fn tally(&self, ctx: &mut Ctx<'_, Self>, tally: Tally) {
        let words = words_of(self.blocks.vertices());
        let work = work(words, tally.rows);
        self.problem.tally.add(ctx, Tally { work, ..tally });
    }
}
