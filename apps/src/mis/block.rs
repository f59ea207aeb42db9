//! The rows of a graph that no node has as a whole: on each node a block of them, which answers what is asked about its rows.
//! They are those of the complement, as in [`Complement`](super::graph::Complement), each vertex at its own place.

use super::graph::{Graph, all, holds, insert, members, remove, words_of};
use super::neighbours::{Neighbours, Random};
use chares::loadbalance::machines::Machines;
use chares::{Array, Bulk, Callback, Chare, Ctx, Cx, Driver, Entry, Message, Placement, RunError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows of consecutive vertices.
#[derive(Serialize, Deserialize)]
pub struct Block {
    own: Range<usize>,
    /// Count of all blocks.
    of: u32,
    /// Words of a row.
    words: usize,
    rows: Bulk<u64>,
}

/// What all blocks are made with.
#[derive(Clone, Serialize, Deserialize)]
pub struct BlockInit {
    /// Block `b` has the rows of the vertices `bounds[b]..bounds[b + 1]`.
    pub bounds: Vec<u64>,
    /// What it makes its rows of; `None` if [`Take`] brings them.
    pub random: Option<Random>,
}

/// These are the rows, which have been read.
#[derive(Serialize, Deserialize)]
pub struct Take(Bulk<u64>);

/// How many of these vertices may be in a set with each of them?
#[derive(Serialize, Deserialize)]
pub struct Count(Bulk<u64>, Callback<Answer<Counts>>);

/// Which of these vertices may be in a set with each of them? The rows of the graph that has no others.
#[derive(Serialize, Deserialize)]
pub struct Cut(Bulk<u64>, Callback<Answer<Rows>>);

/// Which vertices may be in a set with this one?
#[derive(Serialize, Deserialize)]
pub struct Tell(u32, Callback<Row>);

/// What a block says of its own vertices. Not a part of a reduction, because many ask, and their questions come to blocks in
/// different orders.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer<T> {
    block: u32,
    /// How many blocks answer.
    of: u32,
    value: T,
}

/// Answers to one question, until all are there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answers<T>(BTreeMap<u32, T>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Answers<T> {
    /// With another one: all, in the order of the vertices, if it was the last.
    pub(super) fn with(&mut self, answer: Answer<T>) -> Option<Vec<T>> {
        self.0.insert(answer.block, answer.value);
        (self.0.len() >= answer.of as usize).then(|| std::mem::take(&mut self.0).into_values().collect())
    }
}

/// How many vertices of a set may be in a set with each of those that a block has.
pub type Counts = Vec<u16>;

/// Rows of vertices that a block has, by places in a set.
pub type Rows = Bulk<u64>;

/// The row of a vertex.
#[derive(Serialize, Deserialize)]
pub struct Row(pub Bulk<u64>);

chares::entries!(Block: Take, Count, Cut, Tell);

impl Chare for Block {
    type Index = u32;
    type Init = BlockInit;

    fn new(BlockInit { bounds, random }: BlockInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let bound = |at: u32| bounds.get(at as usize).map_or(0, |&bound| bound as usize);
        let own = bound(ctx.index())..bound(ctx.index() + 1);
        let words = words_of(bounds.last().map_or(0, |&vertices| vertices as usize));
        let rows = random.map_or_else(Bulk::default, |random| rows_of(&random, own.clone()));
        let of = u32::try_from(bounds.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Self { own, of, words, rows }
    }
}

impl Entry<Take> for Block {
    fn receive(&mut self, Take(rows): Take, ctx: &mut Ctx<'_, Self>) {
        if rows.len() != self.own.len() * self.words {
            return ctx.fail("a block was given another number of rows than it has vertices");
        }
        self.rows = rows;
    }
}

impl Entry<Count> for Block {
    fn receive(&mut self, Count(set, to): Count, ctx: &mut Ctx<'_, Self>) {
        let Some(rows) = self.rows_in(&set, ctx) else { return };
        let both =
            |row: &[u64]| row.iter().zip(&*set).map(|(row, set)| (row & set).count_ones()).sum::<u32>();
        // A row has at most one vertex less than the largest graph, and that fits.
        let counts = rows.map(|row| u16::try_from(both(row)).unwrap_or(u16::MAX)).collect();
        self.answer(ctx, to, counts);
    }
}

impl Entry<Cut> for Block {
    fn receive(&mut self, Cut(set, to): Cut, ctx: &mut Ctx<'_, Self>) {
        let Some(rows) = self.rows_in(&set, ctx) else { return };
        let places: Vec<usize> = members(&set).collect();
        let narrow = |row: &[u64]| {
            let mut narrow = vec![0; words_of(places.len())];
            let there = places.iter().enumerate().filter(|(_, vertex)| holds(row, **vertex));
            there.for_each(|(place, _)| insert(&mut narrow, place));
            narrow
        };
        let cut: Vec<u64> = rows.flat_map(narrow).collect();
        self.answer(ctx, to, cut.into());
    }
}

impl Entry<Tell> for Block {
    fn receive(&mut self, Tell(vertex, to): Tell, ctx: &mut Ctx<'_, Self>) {
        match self.row(vertex as usize) {
            Some(row) => to.send(ctx, Row(Bulk::from_slice(row))),
            None => ctx.fail("a block was asked for a row that it does not have"),
        }
    }
}

impl Block {
    fn answer<T: Message>(&self, ctx: &mut Ctx<'_, Self>, to: Callback<Answer<T>>, value: T) {
        to.send(ctx, Answer { block: ctx.index(), of: self.of, value });
    }

    fn row(&self, vertex: usize) -> Option<&[u64]> {
        let at = vertex.checked_sub(self.own.start)? * self.words;
        self.rows.get(at..at + self.words)
    }

    /// The rows of its vertices that are in a set of the graph's.
    fn rows_in<'a>(
        &'a self,
        set: &'a [u64],
        ctx: &mut Ctx<'_, Self>,
    ) -> Option<impl Iterator<Item = &'a [u64]>> {
        if set.len() != self.words {
            ctx.fail("a block was asked about a set of another graph");
            return None;
        }
        Some(self.own.clone().filter(|&vertex| holds(set, vertex)).filter_map(|vertex| self.row(vertex)))
    }
}

/// All blocks, for whoever asks them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Blocks {
    array: Array<Block>,
    bounds: Vec<u64>,
}

impl Blocks {
    /// One on each node, between these bounds.
    pub(super) fn new(main: &mut Driver, bounds: Vec<u64>, random: Option<Random>) -> Self {
        let nodes = first_pes(main.machines());
        let shape = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let init = BlockInit { bounds: bounds.clone(), random };
        Self { array: main.array_placed(shape, init, Placement::on_pes(nodes)), bounds }
    }

    /// Gives each its rows of a graph that has been read.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub(super) fn fill(&self, main: &mut Driver, graph: &Graph) -> Result<(), RunError> {
        for (block, bounds) in (0..).zip(self.bounds.windows(2)) {
            let rows = rows_of(graph, bounds[0] as usize..bounds[1] as usize);
            self.array.at(block).send(main, Take(rows));
        }
        main.quiescence()
    }

    /// Count of vertices of the graph.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.bounds.last().map_or(0, |&vertices| vertices as usize)
    }

    /// Asks how many vertices of a set may be in a set with each of them.
    pub(super) fn count(&self, cx: &mut impl Cx, set: &[u64], to: Callback<Answer<Counts>>) {
        self.array.broadcast(cx, Count(Bulk::from_slice(set), to));
    }

    /// Asks for the rows of the graph that has these vertices alone.
    pub(super) fn cut(&self, cx: &mut impl Cx, set: &[u64], to: Callback<Answer<Rows>>) {
        self.array.broadcast(cx, Cut(Bulk::from_slice(set), to));
    }

    /// Asks for the row of a vertex.
    pub(super) fn tell(&self, cx: &mut impl Cx, vertex: u32, to: Callback<Row>) {
        let block = self.bounds.partition_point(|&bound| bound <= vertex.into()).saturating_sub(1);
        self.array.at(u32::try_from(block).unwrap_or(u32::MAX)).send(cx, Tell(vertex, to));
    }
}

/// The first PE of each node.
fn first_pes(machines: &Machines) -> Vec<u32> {
    machines.pes().into_iter().map(|pes| pes.start).collect()
}

/// What may be in a set with each of these vertices.
fn rows_of(graph: &dyn Neighbours, vertices: Range<usize>) -> Bulk<u64> {
    let all = all(graph.vertices());
    let mut rows = Bulk::zeros(vertices.len() * all.len());
    for (vertex, row) in vertices.zip(rows.as_mut_slice().chunks_exact_mut(all.len().max(1))) {
        let neighbours = graph.neighbours(vertex);
        row.iter_mut().zip(&all).zip(neighbours.iter()).for_each(|((row, all), no)| *row = all & !no);
        remove(row, vertex);
    }
    rows
}
