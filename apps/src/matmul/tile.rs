//! Products on a grid of q x q blocks, the block being the chare: Cannon's algorithm (L. E. Cannon, 1969)
//! and that of Fox, Hey and Otto ("Matrix algorithms on a hypercube", 1987).
//!
//! Cannon: A moves left and B up by one block a step, after a skewed start. Fox–Hey–Otto: one block of A per
//! grid row is broadcast along the row and B moves up.
//!
//! Blocks travel ahead of the computation: a tile hands a block on when it comes, up to four steps before
//! it multiplies with it itself, so that the wire works while the processor does and a node that is late for a
//! moment does not stop the others. A block comes to each node once (see [`chares::loadbalance::grid::hops`]). The
//! order in which a block of C takes up its products follows from q alone, never from the machines.
//!
//! Memory for the blocks that will come from other nodes is taken before the work begins ([`Bulk::reserve`]): on a
//! slow node, clearing fresh pages while blocks arrived was measured to take a quarter of the network thread's time.

use super::problem::{Problem, pes_here};
use crate::kernels::gemm::gemm;
use crate::matrix::{Piece, Real, part, zeros};
use chares::loadbalance::grid;
use chares::{Array, Barrier, Bulk, Callback, Chare, Ctx, Cx, Entry, Section};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Steps that blocks may be ahead of the computation.
pub(super) const AHEAD: u32 = 4;
/// Blocks of a grid row or column that travel through a node at once: twice as many as tiles send ahead, because
/// nodes need not be at the same step.
const TRAVELLING: u32 = 2 * AHEAD;
/// Blocks on their way go before anything that computes.
const URGENT: i32 = -1;

/// How blocks of A travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// Shifted left.
    Cannon,
    /// Broadcast along the grid row.
    FoxHeyOtto,
}

/// What every tile is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TileInit {
    /// The product.
    pub problem: Problem,
    /// Blocks along each side of the grid.
    pub q: u32,
    /// How blocks of A travel.
    pub scheme: Scheme,
}

/// Block (i, j) of C with the blocks of A and B that are here now.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Tile<T> {
    setup: TileInit,
    at: [u32; 2],
    step: u32,
    is_computing: bool,
    /// By the step that they are for.
    a: BTreeMap<u32, Held<T>>,
    b: BTreeMap<u32, Held<T>>,
    /// Fox–Hey–Otto: the block of A that this tile broadcasts when it is its turn.
    own_a: Option<Bulk<T>>,
    c: Bulk<T>,
    go: Option<Go<T>>,
    /// The nodes of the places of this grid row and column.
    row: Vec<u32>,
    column: Vec<u32>,
}

/// A block that is here for a step.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
struct Held<T> {
    block: Bulk<T>,
    is_handed_on: bool,
}

impl<T> Held<T> {
    const fn new(block: Bulk<T>) -> Self {
        Self { block, is_handed_on: false }
    }
}

/// Blocks of A and B to begin with, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadTile<T> {
    /// Block of A.
    pub a: Bulk<T>,
    /// Block of B.
    pub b: Bulk<T>,
}

/// Begin; `done` is told when all tiles have finished.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Go<T> {
    /// Who waits for the end.
    pub done: Callback<Barrier>,
    /// The tiles of each grid row; empty for Cannon.
    pub rows: Vec<Section<Tile<T>>>,
}

/// A block that moves, for use in a step.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Move<T> {
    step: u32,
    is_a: bool,
    block: Bulk<T>,
}

/// Multiply the blocks of this step.
#[derive(Serialize, Deserialize)]
pub struct MultiplyBlocks;

/// Send the result.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct CollectTile<T: Real>(pub Callback<Piece<T>>);

/// One on every PE; makes the tiles that belong there (the second step of a two-step creation).
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct TileMaker<T> {
    tiles: Option<Array<Tile<T>>>,
}

/// Make your tiles.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Make<T> {
    /// The array to fill.
    pub tiles: Array<Tile<T>>,
    /// What each tile is made with.
    pub setup: TileInit,
}

chares::entries!(impl<T: Real> Tile<T>: LoadTile<T>, Go<T>, Move<T>, MultiplyBlocks, CollectTile<T>; reduces Barrier);
chares::entries!(impl<T: Real> TileMaker<T>: Make<T>);

impl<T: Real> Chare for Tile<T> {
    type Index = [u32; 2];
    type Init = TileInit;
    fn new(setup: TileInit, ctx: &mut Ctx<'_, Self>) -> Self {
        Self::made(setup, ctx.index())
    }
}

impl<T: Real> Entry<LoadTile<T>> for Tile<T> {
    fn receive(&mut self, load: LoadTile<T>, _: &mut Ctx<'_, Self>) {
        self.load(load.a, load.b);
    }
}

impl<T: Real> Entry<Go<T>> for Tile<T> {
    fn receive(&mut self, go: Go<T>, ctx: &mut Ctx<'_, Self>) {
        let ([i, j], q, tiles) = (self.at, self.setup.q, ctx.array());
        let mut nodes = |places: Vec<[u32; 2]>| -> Vec<u32> {
            let pes: Vec<u32> = places.iter().map(|&at| ctx.home_of(&tiles, at).unwrap_or(0)).collect();
            pes.into_iter().map(|pe| ctx.node_of_pe(pe)).collect()
        };
        self.row = nodes((0..q).map(|j| [i, j]).collect());
        self.column = nodes((0..q).map(|i| [i, j]).collect());
        self.go = Some(go);
        ctx.work_remains(self.remaining());
        self.advance(ctx);
    }
}

impl<T: Real> Entry<Move<T>> for Tile<T> {
    fn receive(&mut self, Move { step, is_a, block }: Move<T>, ctx: &mut Ctx<'_, Self>) {
        let held = Held::new(block);
        if is_a {
            self.a.insert(step, held)
        } else {
            self.b.insert(step, held)
        };
        self.advance(ctx);
    }
}

impl<T: Real> Entry<MultiplyBlocks> for Tile<T> {
    fn receive(&mut self, _: MultiplyBlocks, ctx: &mut Ctx<'_, Self>) {
        self.is_computing = false;
        self.multiply();
        self.step += 1;
        ctx.progress(1);
        ctx.work_remains(self.remaining());
        self.advance(ctx);
        if let Some(go) = self.go.take_if(|_| self.step == self.setup.q) {
            ctx.contribute(Barrier, go.done);
        }
    }
}

impl<T: Real> Entry<CollectTile<T>> for Tile<T> {
    fn receive(&mut self, CollectTile(to): CollectTile<T>, ctx: &mut Ctx<'_, Self>) {
        let (rows, cols) = (self.rows(), self.cols());
        to.send(ctx, Piece { rows, cols, values: self.c.clone() });
    }
}

impl<T: Real> Chare for TileMaker<T> {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { tiles: None }
    }
}

impl<T: Real> Entry<Make<T>> for TileMaker<T> {
    fn receive(&mut self, make: Make<T>, ctx: &mut Ctx<'_, Self>) {
        self.reserve(&make, ctx);
        for index in ctx.indices_here(&make.tiles) {
            ctx.insert(&make.tiles, index, make.setup.clone());
        }
        self.tiles = Some(make.tiles);
    }
}

impl<T: Real> TileMaker<T> {
    /// Takes this PE's part of the memory for the blocks that will come to the node from others.
    fn reserve(&self, Make { tiles, setup }: &Make<T>, ctx: &mut Ctx<'_, Self>) {
        let (q, node, pes) = (setup.q, ctx.node_id(), pes_here(ctx));
        let mut held = [vec![0; q as usize], vec![0; q as usize]];
        for [i, j] in (0..q).flat_map(|i| (0..q).map(move |j| [i, j])) {
            let home = ctx.home_of(tiles, [i, j]);
            if home.is_some_and(|pe| ctx.node_of_pe(pe) == node) {
                held[0][i as usize] += 1;
                held[1][j as usize] += 1;
            }
        }
        let Problem { m, k, n, .. } = setup.problem;
        let longest = |side: usize| side.div_ceil(q as usize);
        for (places, side) in held.iter().zip([m, n]) {
            let blocks: u32 = places.iter().map(|&places| coming(setup, places)).sum();
            Bulk::<T>::reserve(longest(side) * longest(k), (blocks as usize).div_ceil(pes));
        }
    }
}

impl<T: Real> Tile<T> {
    /// Hands on what may travel, and asks for the step to be computed if its blocks are here.
    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.go.is_none() {
            return;
        }
        let tiles = ctx.array();
        if let Some((step, block)) = self.broadcast_due()
            && let Some(go) = &self.go
        {
            go.rows[self.at[0] as usize].send_with(ctx, URGENT, Move { step, is_a: true, block });
        }
        for (at, message) in self.moves_due() {
            tiles.at(at).send_with(ctx, URGENT, message);
        }
        let is_ready = self.a.contains_key(&self.step) && self.b.contains_key(&self.step);
        if is_ready && !self.is_computing {
            self.is_computing = true;
            let priority = i32::try_from(self.step).unwrap_or(i32::MAX);
            ctx.this().send_with(ctx, priority, MultiplyBlocks);
        }
    }
}

/// Which block of A and of B a tile begins with: (i, ka) and (kb, j).
#[must_use]
pub fn first_blocks(scheme: Scheme, q: u32, [i, j]: [u32; 2]) -> (u32, u32) {
    match scheme {
        Scheme::Cannon => ((i + j) % q, (i + j) % q),
        Scheme::FoxHeyOtto => (j, i),
    }
}

/// The most blocks of a grid row or column that a node holds at once, where it has so many of its q places: those
/// that it begins with, which it keeps or gets back from itself, and those that pass through it.
#[must_use]
pub(super) fn held_at_most(q: u32, places: u32) -> u32 {
    if places == 0 { 0 } else { (2 * places + TRAVELLING).min(q) }
}

/// How many of them come from elsewhere.
fn coming(setup: &TileInit, places: u32) -> u32 {
    let own = if setup.problem.seeds.is_some() { places } else { 0 };
    held_at_most(setup.q, places) - own
}

impl<T: Real> Tile<T> {
    fn made(setup: TileInit, at: [u32; 2]) -> Self {
        let mut tile = Self {
            at,
            step: 0,
            is_computing: false,
            a: BTreeMap::new(),
            b: BTreeMap::new(),
            own_a: None,
            c: Bulk::default(),
            go: None,
            row: Vec::new(),
            column: Vec::new(),
            setup,
        };
        tile.c = zeros(tile.rows().len() * tile.cols().len());
        if tile.setup.problem.seeds.is_some() {
            let TileInit { problem, q, scheme } = tile.setup.clone();
            let (ka, kb) = first_blocks(scheme, q, at);
            let a = problem.block_a(tile.rows(), part(problem.k, q, ka));
            let b = problem.block_b(part(problem.k, q, kb), tile.cols());
            tile.load(a, b);
        }
        tile
    }

    fn load(&mut self, a: Bulk<T>, b: Bulk<T>) {
        self.b.insert(0, Held::new(b));
        match self.setup.scheme {
            Scheme::Cannon => {
                self.a.insert(0, Held::new(a));
            }
            Scheme::FoxHeyOtto => self.own_a = Some(a),
        }
    }

    /// This tile's block of A with its step, once, when the step is near.
    fn broadcast_due(&mut self) -> Option<(u32, Bulk<T>)> {
        let ([i, j], q) = (self.at, self.setup.q);
        let turn = (j + q - i) % q;
        let block = self.own_a.take_if(|_| turn < self.step + AHEAD)?;
        Some((turn, block))
    }

    /// The blocks that may travel on now, and where to.
    fn moves_due(&mut self) -> Vec<([u32; 2], Move<T>)> {
        let ([i, j], q, until) = (self.at, self.setup.q, self.step + AHEAD);
        let mut due = Vec::new();
        let streams = [(false, &mut self.b, &self.column), (true, &mut self.a, &self.row)];
        for (is_a, held, ring) in streams {
            if is_a && self.setup.scheme == Scheme::FoxHeyOtto {
                continue;
            }
            let here = if is_a { j } else { i };
            for (&step, held) in held.range_mut(..until).filter(|(_, held)| !held.is_handed_on) {
                held.is_handed_on = true;
                for distance in grid::hops(ring, here as usize, step as usize) {
                    let distance = u32::try_from(distance).expect("shorter than the ring of q places");
                    let there = (here + q - distance) % q;
                    let at = if is_a { [i, there] } else { [there, j] };
                    due.push((at, Move { step: step + distance, is_a, block: held.block.clone() }));
                }
            }
        }
        due
    }

    fn multiply(&mut self) {
        let ([i, j], TileInit { problem, q, scheme }) = (self.at, &self.setup);
        let inner = match scheme {
            Scheme::Cannon => (i + j + self.step) % q,
            Scheme::FoxHeyOtto => (i + self.step) % q,
        };
        let (m, k, n) = (self.rows().len(), part(problem.k, *q, inner).len(), self.cols().len());
        let (Some(a), Some(b)) = (self.a.remove(&self.step), self.b.remove(&self.step)) else { return };
        gemm(problem.kernel, m, k, n, &a.block, &b.block, self.c.as_mut_slice());
    }

    /// Multiplications that it has to do until its block of C is complete, about: blocks differ by a row or column.
    fn remaining(&self) -> f64 {
        let TileInit { problem, q, .. } = &self.setup;
        let steps = f64::from(q - self.step) / f64::from(*q);
        steps * (self.rows().len() * self.cols().len() * problem.k) as f64
    }

    fn rows(&self) -> Range<usize> {
        part(self.setup.problem.m, self.setup.q, self.at[0])
    }

    fn cols(&self) -> Range<usize> {
        part(self.setup.problem.n, self.setup.q, self.at[1])
    }
}
