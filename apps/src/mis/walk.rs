//! The top of the tree of a graph whose rows are in blocks: a walk goes through it depth first as a [`Search`] does, and asks
//! the blocks for all that it needs to know of the graph. Where few candidates are left it fetches the graph that they make
//! and has it searched by a subproblem, which asks for nothing more. The first walk gives what is below it to others, so that
//! many questions are under way. So the tree is that of a graph in one place.
//!
//! Source: M. V. Nibhanupudi's thesis, section 3.4, where every process walks the top by itself.

use super::block::{Answer, Answers, Blocks, Counts, Row, Rows};
use super::bound::descent;
use super::graph::{Complement, all, count, holds, members, remove, words_of, work};
use super::search::{Found, Known, Search, Start, Workspace};
use super::subproblem::{Over, Problem, Progress, Searched, Subproblem, SubproblemInit, Tally};
use crate::matrix::generate::hash;
use chares::{Callback, Chare, Ctx, Cx, Entry, On};
use serde::{Deserialize, Serialize};

/// A PE has at most so many walks, each with so many subproblems: one waits when the other is over, and few are anywhere.
pub(super) const AHEAD: u32 = 2;

/// Parts are given to other walks at this depth at the most.
const GIVEN_DEPTH_MAX: usize = 64;

/// Of so many vertices or fewer a graph is searched in one place: it has a 256th of the bits of the whole.
pub(super) fn local_vertices(vertices: usize) -> usize {
    (vertices / 16).max(16)
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

/// Walks through the top of the tree, or of a part of it.
#[derive(Serialize, Deserialize)]
pub struct Walk {
    init: WalkInit,
    chosen: Vec<u32>,
    path: Vec<u32>,
    levels: Vec<Level>,
    /// The candidates of the node that the blocks are asked about.
    candidates: Vec<u64>,
    counted: Answers<Counts>,
    cut: Answers<Rows>,
    /// The vertex whose row they are asked for.
    vertex: u32,
    /// The PEs that it makes chares on, and how many of them are there.
    out: Vec<(u32, u32)>,
    /// Whether it waits until one of them is over.
    is_waiting: bool,
    /// Chares that it has made.
    made: u64,
    progress: Progress,
}

/// What a walk is made with.
#[derive(Clone, Serialize, Deserialize)]
pub struct WalkInit {
    /// What it is part of.
    pub problem: Problem,
    /// Where the graph is.
    pub blocks: Blocks,
    /// Where it begins.
    pub start: Start,
    /// The candidates there.
    pub candidates: Vec<u64>,
    /// What is below vertices of so many is for other walks.
    pub given_depth: Option<usize>,
    /// Tells it and what it makes from others.
    pub key: u64,
    /// Candidates at each step of the first descent, if that comes here.
    pub descent: Option<Vec<u32>>,
    /// Who wants to know when it is over.
    pub over: Option<Callback<Over>>,
}

impl WalkInit {
    /// Through the whole tree, on so many PEs.
    pub(super) fn whole(problem: Problem, blocks: Blocks, key: u64, pe_count: u32) -> Self {
        let candidates = all(blocks.vertices());
        // As many walks as the PEs can have.
        let (mut nodes, wanted) = (1, u64::from(AHEAD * pe_count));
        let enough = |&depth: &usize| {
            nodes *= u64::from(problem.choice.limit(depth));
            nodes >= wanted
        };
        let given_depth = (0..GIVEN_DEPTH_MAX).find(enough).map(|depth| depth + 1);
        let start = Start { part: 1.0, ..Start::default() };
        Self { problem, blocks, start, candidates, given_depth, key, descent: Some(Vec::new()), over: None }
    }
}

chares::entries!(Walk: Answer<Counts> as "Counted", Answer<Rows> as "HaveCut", Row, Over);

impl Chare for Walk {
    type Index = u32;
    type Init = WalkInit;

    fn new(mut init: WalkInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let candidates = std::mem::take(&mut init.candidates);
        let here = ctx.group_pe();
        // Who was given a part has it searched where it is.
        let pes = if init.over.is_some() { here..here + 1 } else { 0..ctx.pe_count() };
        let mut walk = Self {
            chosen: init.start.chosen.clone(),
            path: init.start.path.clone(),
            levels: Vec::new(),
            candidates: Vec::new(),
            counted: Answers::default(),
            cut: Answers::default(),
            vertex: 0,
            out: pes.map(|pe| (pe, 0)).collect(),
            is_waiting: false,
            made: 0,
            progress: Progress::default(),
            init,
        };
        walk.visit(ctx, candidates);
        walk
    }
}

/// The degrees at the node that is visited.
impl Entry<Answer<Counts>> for Walk {
    fn receive(&mut self, counted: Answer<Counts>, ctx: &mut Ctx<'_, Self>) {
        let Some(degrees) = self.counted.with(counted).map(|counted| counted.concat()) else { return };
        let candidates = std::mem::take(&mut self.candidates);
        if degrees.len() != count(&candidates) {
            return ctx.fail("blocks have told the degrees of other vertices than they were asked for");
        }
        let vertices = members(&candidates).map(|vertex| vertex as u32);
        let degrees: Vec<(u16, u32)> = degrees.into_iter().zip(vertices).collect();
        let rows = degrees.len() as u64;
        let total =
            self.init.problem.choice.limit(self.chosen.len()).min(u32::try_from(rows).unwrap_or(u32::MAX));
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
        let (known, left) = (self.init.problem.known(ctx), count(&candidates));
        self.chosen.push(vertex);
        self.path.push(ordinal);
        if size + 1 + left > known.beaten && left > 0 {
            self.tally(ctx, tally);
            if self.init.given_depth != Some(size + 1) {
                return self.visit(ctx, candidates);
            }
            self.give(ctx, candidates);
            self.leave();
            return self.go_on(ctx);
        }
        if left == 0 && size + 1 > known.beaten {
            let after = self.init.problem.begun.elapsed();
            let found = Found { set: self.chosen.clone(), path: self.path.clone(), after };
            self.init.problem.best.propose(ctx, found.clone());
            tally.best = Some(found);
        }
        if left == 0 {
            tally.descent = self.init.descent.take().unwrap_or_default();
        }
        self.tally(ctx, tally);
        self.progress.add(ctx, part);
        self.leave();
        self.go_on(ctx);
    }
}

/// The graph that is left.
impl Entry<Answer<Rows>> for Walk {
    fn receive(&mut self, cut: Answer<Rows>, ctx: &mut Ctx<'_, Self>) {
        let Some(rows) = self.cut.with(cut) else { return };
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

/// A PE can have another chare.
impl Entry<Over> for Walk {
    fn receive(&mut self, Over(pe): Over, ctx: &mut Ctx<'_, Self>) {
        if let Some((_, count)) = self.out.iter_mut().find(|(known, _)| *known == pe) {
            *count = count.saturating_sub(1);
        }
        if std::mem::take(&mut self.is_waiting) {
            self.go_on(ctx);
        }
    }
}

impl Walk {
    /// What part of the tree is below the node that is visited.
    fn part(&self) -> f64 {
        self.levels.last().map_or(self.init.start.part, |level| level.part)
    }

    /// The node that is visited, for whoever goes on from there.
    fn start(&self) -> Start {
        let begun = self.path[self.init.start.path.len()..].iter().zip(&self.levels);
        let begun = begun.map(|(&branch, level)| (branch, level.total));
        Start {
            chosen: self.chosen.clone(),
            path: self.path.clone(),
            begun: self.init.start.begun.iter().copied().chain(begun).collect(),
            part: self.part(),
        }
    }

    /// Asks about a node: the one whose vertices are chosen.
    fn visit(&mut self, ctx: &mut Ctx<'_, Self>, candidates: Vec<u64>) {
        let left = count(&candidates);
        let to = ctx.this();
        if left <= local_vertices(self.init.blocks.vertices()) {
            self.init.blocks.cut(ctx, &candidates, Callback::element(&to));
        } else {
            if let Some(descent) = &mut self.init.descent {
                descent.push(u32::try_from(left).unwrap_or(u32::MAX));
            }
            self.init.blocks.count(ctx, &candidates, Callback::element(&to));
        }
        self.candidates = candidates;
    }

    /// Goes back to the last node that has branches.
    fn leave(&mut self) {
        let depth = self.init.start.chosen.len() + self.levels.len().saturating_sub(1);
        self.chosen.truncate(depth);
        self.path.truncate(depth);
    }

    /// Tries the next branch, when a PE can have what comes of it.
    fn go_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Known { beaten, before } = self.init.problem.known(ctx);
        while self.out.iter().any(|(_, count)| *count < AHEAD)
            && let Some(level) = self.levels.last_mut()
        {
            let is_behind =
                before.as_ref().is_some_and(|before| self.path.iter().chain([&level.tried]).gt(before));
            let size = self.chosen.len();
            let next = level.next(beaten.saturating_sub(size)).filter(|_| !is_behind);
            if let Some(next) = next {
                self.vertex = level.degrees.swap_remove(next).1;
                let to = Callback::element(&ctx.this());
                return self.init.blocks.tell(ctx, self.vertex, to);
            }
            let left = level.left();
            self.progress.add(ctx, left);
            self.levels.pop();
            self.leave();
        }
        self.is_waiting = self.out.iter().any(|(_, count)| *count > 0);
        if !self.is_waiting {
            // Where it was made, though it may have moved.
            if let (Some(over), Some(&(pe, _))) = (self.init.over, self.out.first()) {
                over.send(ctx, Over(pe));
            }
            ctx.destroy();
        }
    }

    /// The PE that shall have what is made next, a key for it, and who is to be told when it is over.
    fn place(&mut self, ctx: &mut Ctx<'_, Self>) -> (On, u64, Option<Callback<Over>>) {
        let speeds = ctx.speeds();
        let ahead =
            |(pe, count): (u32, u32)| f64::from(count + 1) / speeds.get(pe as usize).copied().unwrap_or(1.0);
        let free = self.out.iter_mut().filter(|(_, count)| *count < AHEAD);
        let (pe, count) = free
            .min_by(|one, other| ahead(**one).total_cmp(&ahead(**other)))
            .expect("nothing is asked for while all PEs have enough");
        *count += 1;
        self.made += 1;
        (On::Pe(*pe), hash(self.init.key, self.made, 1), Some(Callback::element(&ctx.this())))
    }

    /// Has another walk go through what is below this node.
    fn give(&mut self, ctx: &mut Ctx<'_, Self>, candidates: Vec<u64>) {
        let (on, key, over) = self.place(ctx);
        let start = self.start();
        let descent = self.init.descent.take();
        let (problem, blocks) = (self.init.problem.clone(), self.init.blocks.clone());
        let init = WalkInit { problem, blocks, start, candidates, given_depth: None, key, descent, over };
        ctx.chare::<Self>(init, on);
    }

    /// Has what is left below this node searched in one place.
    fn subproblem(&mut self, ctx: &mut Ctx<'_, Self>, graph: Complement) {
        let everything = all(graph.len());
        if let Some(mut sizes) = self.init.descent.take() {
            sizes.extend(descent(&graph, everything.clone()).1);
            self.init.problem.tally.add(ctx, Tally { descent: sizes, ..Tally::default() });
        }
        let beaten = self.init.problem.known(ctx).beaten;
        let mut work = Workspace::default();
        let search =
            Search::below(self.start(), &graph, &self.init.problem.choice, (beaten, everything), &mut work);
        let rows = work.bound.rows;
        self.init.problem.tally.add(ctx, Tally { rows, work: graph.work(rows), ..Tally::default() });
        let (on, key, over) = self.place(ctx);
        let (problem, graph) = (self.init.problem.clone(), Searched::Part(graph));
        ctx.chare::<Subproblem>(SubproblemInit { problem, graph, search: Some(search), key, over }, on);
    }

    /// Adds to the counts; rows are those of the whole graph.
    fn tally(&self, ctx: &mut Ctx<'_, Self>, tally: Tally) {
        let words = words_of(self.init.blocks.vertices());
        let work = work(words, tally.rows);
        self.init.problem.tally.add(ctx, Tally { work, ..tally });
    }
}
