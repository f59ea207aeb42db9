//! Products on a grid of q x q blocks, the block being the chare: Cannon's algorithm (L. E. Cannon, 1969)
//! and that of Fox, Hey and Otto ("Matrix algorithms on a hypercube", 1987).
//!
//! Cannon: A moves left and B up by one block a step, after a skewed start. Fox–Hey–Otto: one block of A per
//! grid row is broadcast along the row and B moves up. Both send blocks on *before* they compute with them,
//! so that the wire works while the processor does. The order in which a block of C takes up its products
//! follows from q alone, never from the machines.

use super::problem::{Piece, Problem, Real, part};
use crate::kernels::gemm::gemm;
use chares::{Array, Barrier, Bulk, Callback, Chare, Ctx, Cx, Entry, Inbox, Section};
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
pub struct Setup {
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
    setup: Setup,
    at: [u32; 2],
    step: u32,
    /// The block of A to multiply with in this step; Cannon's moves on.
    a: Bulk<T>,
    /// Fox–Hey–Otto: the block of A that this tile broadcasts when it is its turn.
    own_a: Bulk<T>,
    b: Bulk<T>,
    c: Bulk<T>,
    go: Option<Go<T>>,
    arrived: Inbox<u32, Move<T>>,
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

/// Send the result.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct CollectTile<T: Real>(pub Callback<Piece<T>>);

/// One on every PE; makes the tiles that belong there (the second step of a two-step creation).
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Office<T> {
    tiles: Option<Array<Tile<T>>>,
}

/// Make your tiles.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Make<T> {
    /// The array to fill.
    pub tiles: Array<Tile<T>>,
    /// What each tile is made with.
    pub setup: Setup,
}

macro_rules! tiles_of {
    ($($real:ty, $tile:literal, $office:literal;)*) => { $(
        chares::entries!(Tile<$real> as $tile:
            LoadTile<$real> as "Load", Go<$real> as "Go", Move<$real> as "Move", CollectTile<$real> as "Collect";
            reduces Barrier);
        chares::entries!(Office<$real> as $office: Make<$real> as "Make");

        impl Chare for Tile<$real> {
            type Index = [u32; 2];
            type Init = Setup;
            fn new(setup: Setup, ctx: &mut Ctx<'_, Self>) -> Self {
                Self::made(setup, ctx.index())
            }
        }
        impl Entry<LoadTile<$real>> for Tile<$real> {
            fn receive(&mut self, load: LoadTile<$real>, _: &mut Ctx<'_, Self>) {
                self.load(load.a, load.b);
            }
        }
        impl Entry<Go<$real>> for Tile<$real> {
            fn receive(&mut self, go: Go<$real>, ctx: &mut Ctx<'_, Self>) {
                let [i, j] = self.at;
                if self.setup.scheme == Scheme::FoxHeyOtto && i == j {
                    go.rows[i as usize].send(ctx, Move { step: 0, is_a: true, block: self.own_a.clone() });
                }
                self.go = Some(go);
                self.advance(ctx);
            }
        }
        impl Entry<Move<$real>> for Tile<$real> {
            fn receive(&mut self, block: Move<$real>, ctx: &mut Ctx<'_, Self>) {
                self.arrived.hold(block.step, block);
                self.advance(ctx);
            }
        }
        impl Entry<CollectTile<$real>> for Tile<$real> {
            fn receive(&mut self, CollectTile(to): CollectTile<$real>, ctx: &mut Ctx<'_, Self>) {
                let (rows, cols) = (self.rows(), self.cols());
                to.send(ctx, Piece { rows, cols, values: self.c.clone() });
            }
        }
        impl Chare for Office<$real> {
            type Index = u32;
            type Init = ();
            fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
                Self { tiles: None }
            }
        }
        impl Entry<Make<$real>> for Office<$real> {
            fn receive(&mut self, make: Make<$real>, ctx: &mut Ctx<'_, Self>) {
                for index in ctx.indices_here(&make.tiles) {
                    ctx.insert(&make.tiles, index, make.setup.clone());
                }
                self.tiles = Some(make.tiles);
            }
        }
        impl Tile<$real> {
            /// Takes as many steps as the blocks that are here permit.
            fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
                let Some(go) = self.go.clone() else { return };
                let Setup { q, scheme, .. } = self.setup;
                while self.step < q {
                    if !self.has_blocks() {
                        return;
                    }
                    let ([i, j], step, tiles) = (self.at, self.step, ctx.array());
                    let next = step + 1;
                    if next < q {
                        let up = tiles.at([(i + q - 1) % q, j]);
                        up.send(ctx, Move { step: next, is_a: false, block: self.b.clone() });
                    }
                    if next < q && scheme == Scheme::Cannon {
                        let left = tiles.at([i, (j + q - 1) % q]);
                        left.send(ctx, Move { step: next, is_a: true, block: self.a.clone() });
                    }
                    if next < q && scheme == Scheme::FoxHeyOtto && (i + next) % q == j {
                        let block = Move { step: next, is_a: true, block: self.own_a.clone() };
                        go.rows[i as usize].send(ctx, block);
                    }
                    self.multiply();
                    self.step = next;
                    if [i, j] == [0, 0] {
                        ctx.phase("multiplying", u64::from(self.step), u64::from(q));
                    }
                }
                self.go = None;
                ctx.contribute(Barrier, go.done);
            }
        }
    )* };
}
tiles_of! {
    f32, "Tile32", "Office32";
    f64, "Tile64", "Office64";
}

/// Which block of A and of B a tile begins with: (i, ka) and (kb, j).
#[must_use]
pub fn first_blocks(scheme: Scheme, q: u32, [i, j]: [u32; 2]) -> (u32, u32) {
    match scheme {
        Scheme::Cannon => ((i + j) % q, (i + j) % q),
        Scheme::FoxHeyOtto => (j, i),
    }
}

impl<T: Real> Tile<T> {
    fn made(setup: Setup, at: [u32; 2]) -> Self {
        let mut tile = Self {
            at,
            step: 0,
            a: Bulk::default(),
            own_a: Bulk::default(),
            b: Bulk::default(),
            c: Bulk::default(),
            go: None,
            arrived: Inbox::default(),
            setup,
        };
        tile.c = Bulk::zeros(tile.rows().len() * tile.cols().len());
        if tile.setup.problem.seeds.is_some() {
            let Setup { problem, q, scheme } = tile.setup.clone();
            let (ka, kb) = first_blocks(scheme, q, at);
            let a = problem.block_a(tile.rows(), part(problem.k, q, ka));
            let b = problem.block_b(part(problem.k, q, kb), tile.cols());
            tile.load(a, b);
        }
        tile
    }

    fn load(&mut self, a: Bulk<T>, b: Bulk<T>) {
        self.b = b;
        match self.setup.scheme {
            Scheme::Cannon => self.a = a,
            Scheme::FoxHeyOtto => self.own_a = a,
        }
    }

    /// Whether the blocks of this step are here; takes them over if they have just become complete.
    fn has_blocks(&mut self) -> bool {
        let count = match (self.step, self.setup.scheme) {
            (0, Scheme::Cannon) => return true,
            (0, Scheme::FoxHeyOtto) => 1,
            _ => 2,
        };
        let Some(blocks) = self.arrived.take(&self.step, count) else { return false };
        for block in blocks {
            if block.is_a { self.a = block.block } else { self.b = block.block }
        }
        true
    }

    fn multiply(&mut self) {
        let ([i, j], Setup { problem, q, scheme }) = (self.at, &self.setup);
        let inner = match scheme {
            Scheme::Cannon => (i + j + self.step) % q,
            Scheme::FoxHeyOtto => (i + self.step) % q,
        };
        let (m, k, n) = (self.rows().len(), part(problem.k, *q, inner).len(), self.cols().len());
        gemm(problem.kernel, m, k, n, &self.a, &self.b, self.c.as_mut_slice());
    }

    fn rows(&self) -> Range<usize> {
        part(self.setup.problem.m, self.setup.q, self.at[0])
    }

    fn cols(&self) -> Range<usize> {
        part(self.setup.problem.n, self.setup.q, self.at[1])
    }
}
