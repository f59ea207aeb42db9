//! All paths at once, by the algorithm of Floyd and Warshall (R. W. Floyd, "Algorithm 97: shortest path", 1962) on a
//! two-dimensional array of blocks.
//!
//! The vertices are cut into groups, one after the other of which becomes the *pivot* of a round: paths by way of its
//! vertices are taken up. First the block of the pivot itself is closed ([`closure`]), then the blocks of its row and
//! column follow from that one, then every other from one of the row and one of the column (G. Venkataraman, S. Sahni,
//! S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", 2003). A finished block of the pivot's row or
//! column is sent along its grid column or row at once. Blocks that the next pivot waits for go before all others, so
//! that rounds overlap and nobody waits for a pivot; how far they may is limited, because blocks that have come and
//! are not needed yet take memory.

pub mod closure;
mod drive;

pub(super) use drive::{drive, kernel, makes_its_own, plan, work};

use super::dijkstra::{NO_VERTEX, Summary};
use super::distance::Distance;
use super::generate::Recipe;
use super::sources::Wanted;
use crate::kernels::min_plus::{min_plus, min_plus_with_last};
use chares::{Array, Barrier, Bulk, Callback, Chare, Ctx, Entry};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Most blocks along a side of the array.
const GROUPS_MAX: usize = 2048;
/// Largest side of a block that may be asked for.
pub const SIDE_MAX: usize = 4096;
/// Rounds that may be under way at a time.
pub(super) const AHEAD: u32 = 4;
/// Blocks on their way go before anything that computes, what the next pivot waits for before the rest.
const URGENT: i32 = -2_000_000;
const CRITICAL: i32 = -1_000_000;

/// Side of the blocks, if the user does not say: small ones let shares follow unlike speeds, big ones need fewer
/// messages. From the graph alone, so that results do not depend on the nodes.
#[must_use]
pub fn default_side(vertices: usize) -> usize {
    match vertices {
        0..=1024 => 64,
        1025..=2048 => 128,
        _ => vertices.div_ceil(GROUPS_MAX).max(256),
    }
}

/// Distances from a group of vertices to another.
#[derive(Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct Block<D> {
    setup: BlockInit,
    at: [u32; 2],
    /// The round that it is in.
    round: u32,
    numbers: Bulk<D>,
    /// The last vertex before each, if that is wanted.
    last: Option<Bulk<i32>>,
    held: BTreeMap<(u32, Role), Pivot<D>>,
    has_begun: bool,
    is_computing: bool,
    /// Of the block that closes a round: whether it may begin.
    may_begin: bool,
}

/// What every block is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockInit {
    /// Vertices of the graph.
    pub vertices: usize,
    /// Of each group but the last.
    pub side: usize,
    /// The graph, where blocks make their part of it themselves.
    pub recipe: Option<Recipe>,
    /// Whether the last vertex before each is wanted.
    pub with_last: bool,
    /// A cycle is negative if its sum is less than this below 0.
    pub tolerance: f64,
    /// Who is told of the end.
    pub told: Callback<Outcome>,
}

impl BlockInit {
    /// Groups of vertices.
    #[must_use]
    pub fn groups(&self) -> u32 {
        u32::try_from(self.vertices.div_ceil(self.side)).unwrap_or(u32::MAX)
    }

    /// The vertices of a group.
    #[must_use]
    pub fn group(&self, at: u32) -> Range<usize> {
        let first = at as usize * self.side;
        first..(first + self.side).min(self.vertices)
    }
}

/// What the driver is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// All rounds are over.
    Done,
    /// The vertex is on a negative cycle.
    NegativeCycle(u32),
}

/// Which block of a round this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// The pivot itself.
    Closed,
    /// In its row.
    Row,
    /// In its column.
    Column,
}

/// The numbers to begin with, where they are not made here.
#[derive(Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct LoadBlock<D> {
    /// The shortest arcs.
    pub numbers: Bulk<D>,
    /// Where they begin.
    pub last: Option<Bulk<i32>>,
}

/// Begin.
#[derive(Clone, Serialize, Deserialize)]
pub struct GoBlock;

/// A block that a round needs.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct Pivot<D> {
    round: u32,
    role: Role,
    numbers: Bulk<D>,
    last: Option<Bulk<i32>>,
}

/// Take up the paths of this round.
#[derive(Serialize, Deserialize)]
pub struct Relax;

/// Send the result.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct CollectBlock<D: Distance> {
    /// To whom.
    pub to: Callback<BlockFound<D>>,
    /// What of it.
    pub wanted: Wanted,
}

/// A block of the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "D: Distance")]
pub struct BlockFound<D> {
    /// Which.
    pub at: [u32; 2],
    /// What each row adds up to.
    pub summaries: Vec<Summary>,
    /// The distances, if they are wanted.
    pub distances: Option<Bulk<D>>,
    /// The vertices before each, if they are wanted.
    pub predecessors: Option<Bulk<i32>>,
}

chares::entries!(impl<D: Distance> Block<D>:
    LoadBlock<D>, GoBlock, Pivot<D>, Relax, Barrier, CollectBlock<D>; reduces Barrier);

impl<D: Distance> Chare for Block<D> {
    type Index = [u32; 2];
    type Init = BlockInit;
    fn new(setup: BlockInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let at = ctx.index();
        let (numbers, last) = made(&setup, at);
        Self {
            setup,
            at,
            round: 0,
            numbers,
            last,
            held: BTreeMap::new(),
            has_begun: false,
            is_computing: false,
            may_begin: at[0] < AHEAD,
        }
    }
}

impl<D: Distance> Entry<LoadBlock<D>> for Block<D> {
    fn receive(&mut self, load: LoadBlock<D>, _: &mut Ctx<'_, Self>) {
        self.numbers = load.numbers;
        self.last = load.last;
    }
}

impl<D: Distance> Entry<GoBlock> for Block<D> {
    fn receive(&mut self, _: GoBlock, ctx: &mut Ctx<'_, Self>) {
        self.has_begun = true;
        self.go_on(ctx);
    }
}

impl<D: Distance> Entry<Pivot<D>> for Block<D> {
    fn receive(&mut self, pivot: Pivot<D>, ctx: &mut Ctx<'_, Self>) {
        self.held.insert((pivot.round, pivot.role), pivot);
        self.go_on(ctx);
    }
}

/// A round is over: at the block that closes a later one, that this may begin; at the first block, that it was the
/// last round.
impl<D: Distance> Entry<Barrier> for Block<D> {
    fn receive(&mut self, _: Barrier, ctx: &mut Ctx<'_, Self>) {
        if self.at == [0, 0] {
            self.setup.told.send(ctx, Outcome::Done);
        }
        self.may_begin = true;
        self.go_on(ctx);
    }
}

impl<D: Distance> Entry<Relax> for Block<D> {
    fn receive(&mut self, _: Relax, ctx: &mut Ctx<'_, Self>) {
        self.is_computing = false;
        if let Err(vertex) = self.relax() {
            return self.setup.told.send(ctx, Outcome::NegativeCycle(vertex));
        }
        self.hand_on(ctx);
        let (round, groups) = (self.round, self.setup.groups());
        self.round += 1;
        ctx.progress(1);
        ctx.work_remains(f64::from(groups - self.round) * self.numbers.len() as f64);
        let blocks = ctx.array();
        let over = match round + AHEAD {
            later if later < groups => Callback::element(&blocks.at([later, later])),
            _ if round + 1 == groups => Callback::element(&blocks.at([0, 0])),
            _ => Callback::ignore(),
        };
        ctx.contribute(Barrier, over);
        self.go_on(ctx);
    }
}

impl<D: Distance> Entry<CollectBlock<D>> for Block<D> {
    fn receive(&mut self, CollectBlock { to, wanted }: CollectBlock<D>, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, self.found(wanted));
    }
}

impl<D: Distance> Block<D> {
    fn role(&self) -> Option<Role> {
        match self.at.map(|group| group == self.round) {
            [true, true] => Some(Role::Closed),
            [true, false] => Some(Role::Row),
            [false, true] => Some(Role::Column),
            [false, false] => None,
        }
    }

    /// Asks for the round to be computed if what it needs is here.
    fn go_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (round, has) = (self.round, |role| self.held.contains_key(&(self.round, role)));
        let is_ready = match self.role() {
            Some(Role::Closed) => self.may_begin,
            Some(_) => has(Role::Closed),
            None => has(Role::Row) && has(Role::Column),
        };
        if !is_ready || !self.has_begun || self.is_computing || round >= self.setup.groups() {
            return;
        }
        self.is_computing = true;
        let is_next = |group: u32| group == round || group == round + 1;
        let order = i32::try_from(round).unwrap_or(i32::MAX);
        let priority = match self.at.map(is_next) {
            [true, true] => CRITICAL - 1,
            [false, false] => order,
            _ => CRITICAL + order,
        };
        ctx.this().send_with(ctx, priority, Relax);
    }

    /// Sends this block to those that need it in this round.
    fn hand_on(&self, ctx: &mut Ctx<'_, Self>) {
        let Some(role) = self.role() else { return };
        let ([i, j], groups, blocks) = (self.at, self.setup.groups(), ctx.array());
        let row = (0..groups).filter(|&other| other != j).map(|other| [i, other]);
        let column = (0..groups).filter(|&other| other != i).map(|other| [other, j]);
        // Of a column only the lengths are needed: the last vertex before the end is that of the row's block.
        let last = if role == Role::Column { None } else { self.last.clone() };
        let pivot = Pivot { round: self.round, role, numbers: self.numbers.clone(), last };
        let mut send = |blocks: Array<Self>, members: Vec<[u32; 2]>| {
            let section = blocks.section(ctx, members);
            section.send_with(ctx, URGENT, pivot.clone());
        };
        match role {
            Role::Closed => send(blocks, row.chain(column).collect()),
            Role::Row => send(blocks, column.collect()),
            Role::Column => send(blocks, row.collect()),
        }
    }

    /// Takes up the paths of a round.
    ///
    /// # Errors
    /// A vertex on a negative cycle.
    fn relax(&mut self) -> Result<(), u32> {
        let (round, role) = (self.round, self.role());
        let cols = self.setup.group(self.at[1]).len();
        let pivot = self.setup.group(round).len();
        let mut take = |role| self.held.remove(&(round, role));
        let (closed, row, column) = (take(Role::Closed), take(Role::Row), take(Role::Column));
        let old_last = self.last.clone().filter(|_| role == Some(Role::Row));
        let mut last = self.last.as_mut().map(Bulk::as_mut_slice);
        let mut product = |a: &[D], b: &[D], last_b: Option<&[i32]>, c: &mut [D]| match (&mut last, last_b) {
            (Some(last), Some(last_b)) => min_plus_with_last([pivot, cols], a, (b, last_b), (c, last)),
            _ => min_plus(pivot, cols, a, b, c),
        };
        match role {
            Some(Role::Closed) => {
                let first = self.setup.group(round).start;
                let closed = closure::close(cols, self.numbers.as_mut_slice(), last, self.setup.tolerance);
                return closed.map_err(|at| u32::try_from(first + at).unwrap_or(u32::MAX));
            }
            // The closed pivot takes up all paths inside it, so that what was there before is all that is needed.
            Some(Role::Row) => {
                let old = self.numbers.to_vec();
                if let Some(a) = closed {
                    product(&a.numbers, &old, old_last.as_deref(), self.numbers.as_mut_slice());
                }
            }
            Some(Role::Column) => {
                let old = self.numbers.to_vec();
                if let Some(b) = closed {
                    product(&old, &b.numbers, b.last.as_deref(), self.numbers.as_mut_slice());
                }
            }
            None => {
                if let (Some(a), Some(b)) = (column, row) {
                    product(&a.numbers, &b.numbers, b.last.as_deref(), self.numbers.as_mut_slice());
                }
            }
        }
        Ok(())
    }

    /// The result of a block: what has no path gets the mark of that.
    fn found(&self, wanted: Wanted) -> BlockFound<D> {
        let (at, cols) = (self.at, self.setup.group(self.at[1]).len());
        let mut numbers = self.numbers.clone();
        let mut predecessors = self.last.clone().filter(|_| wanted.predecessors);
        if at[0] == at[1] {
            // Where rounding made a cycle a little shorter than nothing.
            for own in (0..numbers.len()).step_by(cols + 1) {
                if numbers[own] < D::ZERO {
                    numbers.as_mut_slice()[own] = D::ZERO;
                }
                predecessors.iter_mut().for_each(|before| before.as_mut_slice()[own] = NO_VERTEX);
            }
        }
        let mut summaries = Vec::new();
        for row in numbers.chunks_exact(cols) {
            let mut summary = Summary::default();
            row.iter().for_each(|&distance| summary.add(distance));
            summaries.push(summary);
        }
        if let Some(predecessors) = &mut predecessors {
            let far =
                numbers.iter().zip(predecessors.as_mut_slice()).filter(|(distance, _)| distance.is_far());
            far.for_each(|(_, before)| *before = NO_VERTEX);
        }
        if wanted.distances && numbers.iter().any(|distance| distance.is_far()) {
            let far = numbers.as_mut_slice().iter_mut().filter(|distance| distance.is_far());
            far.for_each(|distance| *distance = D::UNREACHABLE);
        }
        let distances = wanted.distances.then_some(numbers);
        BlockFound { at, summaries, distances, predecessors }
    }
}

/// A block of the arcs as the recipe has them, or without any.
fn made<D: Distance>(setup: &BlockInit, [i, j]: [u32; 2]) -> (Bulk<D>, Option<Bulk<i32>>) {
    let (rows, cols) = (setup.group(i), setup.group(j));
    let mut numbers = Bulk::<D>::zeros(rows.len() * cols.len());
    let mut last = setup.with_last.then(|| Bulk::<i32>::zeros(numbers.len()));
    if let Some(recipe) = setup.recipe {
        let places = rows.flat_map(|from| cols.clone().map(move |to| (from, to)));
        for (number, (from, to)) in numbers.as_mut_slice().iter_mut().zip(places.clone()) {
            *number = if from == to { D::ZERO } else { D::of_real(recipe.weight(from, to)) };
        }
        for (last, (from, to)) in last.iter_mut().flat_map(|last| last.as_mut_slice()).zip(places) {
            *last = if from == to { NO_VERTEX } else { from as i32 };
        }
    }
    (numbers, last)
}
