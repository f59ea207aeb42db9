//! The blocked elimination: columns in blocks, dealt out by speed; a block is factored where it is held, and goes to all
//! others as a panel; every PE lets its own blocks take it up, by products of blocks. What a PE holds is dealt out to a few
//! parts, each of which can move; among them, too, the most urgent task goes first.
//!
//! Whole columns belong to one part, so that pivots are looked for without a message and rows are exchanged where they
//! lie: the only thing that travels is each panel, once to each node, n^2 / 2 numbers in all. The next panel is
//! factored and sent while the rest of the matrix still takes up the last (`share` says in which order). A panel goes
//! from node to node, first to the one that makes the next ([`Plan::onward`]): if its owner sent it to all, the
//! copies would share one link, and the next panel would wait for the last of them. Right-hand sides are further
//! columns behind those of A. The way back goes through the owners of the blocks from the last to the first, each
//! block of right-hand sides as one message that gets shorter.
//!
//! A grid of 2 x 2 blocks would send a third less between four hosts. But then rows would be exchanged between PEs
//! and all PEs of a column of the grid would agree on a pivot for every column, over links on which each agreement
//! takes 0.2 ms or more.

mod share;

use super::factors::Factors;
use super::plan::{Plan, look_ahead};
use crate::matrix::{Piece, Real};
use chares::{Bulk, Callback, Chare, Ctx, Cx, Entry, Reduce};
use serde::{Deserialize, Serialize};
pub(super) use share::{COLUMNS_AT_ONCE, take_up};
pub use share::{Factored, Singular, Unsolved};
use share::{Share, Task};
use std::sync::Arc;

/// What others wait for goes before what waits.
const URGENT: i32 = -1;

/// What every part is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlocksInit {
    /// The system in blocks, and the part that holds each.
    pub plan: Plan,
    /// The PE where each part is at home; those of a PE follow one another.
    pub homes: Arc<Vec<u32>>,
}

/// Blocks of columns: a part of those that a PE holds.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Blocks<T> {
    plan: Plan,
    /// The node where each part is at home.
    nodes: Vec<u32>,
    share: Share<T>,
    go: Option<GoBlocks>,
    /// The rows have been scaled.
    is_scaled: bool,
    /// The number of the last [`Work`], and its priority while it is on its way.
    last_work: u32,
    on_its_way: Option<i32>,
    /// Blocks that right-hand sides have still to come through.
    unsolved: usize,
}

/// The columns of a block, one after the other, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadBlock<T> {
    /// Which block.
    pub block: u32,
    /// Its numbers.
    pub columns: Bulk<T>,
}

/// Begin; `done` is told the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GoBlocks {
    /// Who waits for the end.
    pub done: Callback<EliminationResult>,
}

/// How it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EliminationResult {
    /// Pieces of X to collect.
    pub pieces: usize,
    /// Why there are none.
    pub singular: Option<Singular>,
    /// What the factors tell; nothing if it is singular.
    pub factors: Factors,
}

impl EliminationResult {
    pub(super) fn singular(singular: Singular) -> Self {
        Self { pieces: 0, singular: Some(singular), factors: Factors::default() }
    }
}

impl Reduce for EliminationResult {
    fn combine(&mut self, other: Self) {
        self.pieces += other.pieces;
        self.singular = self.singular.or(other.singular);
        self.factors.combine(other.factors);
    }
}

/// The largest magnitude in each row of A.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowMagnitudes(Vec<f64>);

impl Reduce for RowMagnitudes {
    fn combine(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(one, other)| *one = one.max(other));
    }
}

/// Do the next task, if this is the last one of them that was sent: what has become more urgent is asked for again.
#[derive(Debug, Serialize, Deserialize)]
pub struct Work(u32);

/// Send the solution.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct CollectBlocks<T: Real>(pub Callback<Piece<T>>);

chares::entries!(impl<T: Real> Blocks<T> as "GaussBlocks":
    LoadBlock<T>, GoBlocks, RowMagnitudes, Factored<T>, Work, Unsolved<T>, CollectBlocks<T>;
    reduces RowMagnitudes, EliminationResult);

impl<T: Real> Chare for Blocks<T> {
    type Index = u32;
    type Init = BlocksInit;
    fn new(BlocksInit { plan, homes }: BlocksInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let nodes_of_pes: Vec<u32> = (0..ctx.pe_count()).map(|pe| ctx.node_of_pe(pe)).collect();
        let (part, home) = (ctx.index(), |part: u32| homes[part as usize]);
        let look_ahead = look_ahead(ctx.node_count() as usize);
        if part == 0 || home(part - 1) != home(part) {
            plan.of_pes(&homes).reserve_panels::<T>(home(part), &nodes_of_pes, look_ahead);
        }
        let nodes = homes.iter().map(|pe| nodes_of_pes[*pe as usize]).collect();
        Self::made(plan, part, nodes, look_ahead)
    }
}

impl<T: Real> Entry<LoadBlock<T>> for Blocks<T> {
    fn receive(&mut self, load: LoadBlock<T>, _: &mut Ctx<'_, Self>) {
        self.share.load(load.block, &load.columns);
    }
}

impl<T: Real> Entry<GoBlocks> for Blocks<T> {
    fn receive(&mut self, go: GoBlocks, ctx: &mut Ctx<'_, Self>) {
        self.go = Some(go);
        let magnitudes = RowMagnitudes(self.share.row_magnitudes());
        let all = Callback::broadcast(&ctx.array());
        ctx.contribute(magnitudes, all);
    }
}

impl<T: Real> Entry<RowMagnitudes> for Blocks<T> {
    fn receive(&mut self, RowMagnitudes(magnitudes): RowMagnitudes, ctx: &mut Ctx<'_, Self>) {
        if let Err(singular) = self.share.scale(&magnitudes) {
            // All find the same; one says it.
            return if ctx.index() == 0 {
                self.give_up(singular, ctx)
            };
        }
        self.is_scaled = true;
        ctx.work_remains(self.share.remaining());
        self.work_on(ctx);
        self.rest(ctx);
    }
}

impl<T: Real> Entry<Factored<T>> for Blocks<T> {
    fn receive(&mut self, panel: Factored<T>, ctx: &mut Ctx<'_, Self>) {
        self.hand_on(&panel, ctx);
        self.share.take(panel);
        self.work_on(ctx);
    }
}

impl<T: Real> Entry<Work> for Blocks<T> {
    fn receive(&mut self, Work(number): Work, ctx: &mut Ctx<'_, Self>) {
        if number != self.last_work {
            return;
        }
        self.on_its_way = None;
        match self.share.next() {
            Some(Task::Factor(at)) => match self.share.factor(at) {
                Ok(panel) => {
                    self.hand_on(&panel, ctx);
                    self.share.take(panel);
                    ctx.progress(1);
                }
                Err(singular) => return self.give_up(singular, ctx),
            },
            Some(Task::Update(panel, blocks)) => self.share.update(panel, blocks),
            None => {}
        }
        for unsolved in self.share.ready() {
            self.pass_on(unsolved, ctx);
        }
        ctx.work_remains(self.share.remaining());
        self.work_on(ctx);
    }
}

impl<T: Real> Entry<Unsolved<T>> for Blocks<T> {
    fn receive(&mut self, unsolved: Unsolved<T>, ctx: &mut Ctx<'_, Self>) {
        if let Some(left) = self.share.solve(unsolved) {
            self.pass_on(left, ctx);
        }
        self.unsolved -= 1;
        self.rest(ctx);
    }
}

impl<T: Real> Entry<CollectBlocks<T>> for Blocks<T> {
    fn receive(&mut self, CollectBlocks(to): CollectBlocks<T>, ctx: &mut Ctx<'_, Self>) {
        self.share.hand_out().for_each(|piece| to.send(ctx, piece));
    }
}

impl<T: Real> Blocks<T> {
    /// Sees to it that the next task is done, after what is more urgent.
    fn work_on(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(task) = self.share.next().filter(|_| self.is_scaled) else { return };
        let priority = self.share.priority(&task);
        if self.on_its_way.is_none_or(|sent| priority < sent) {
            self.on_its_way = Some(priority);
            self.last_work = self.last_work.wrapping_add(1);
            ctx.this().send_with(ctx, priority, Work(self.last_work));
        }
    }

    fn hand_on(&mut self, panel: &Factored<T>, ctx: &mut Ctx<'_, Self>) {
        for part in self.plan.onward(panel.index, ctx.index(), &self.nodes) {
            ctx.array().at(part).send_with(ctx, URGENT, panel.clone());
        }
    }

    fn pass_on(&mut self, unsolved: Unsolved<T>, ctx: &mut Ctx<'_, Self>) {
        let owner = self.plan.owners[unsolved.block as usize];
        ctx.array().at(owner).send_with(ctx, URGENT, unsolved);
    }

    fn give_up(&mut self, singular: Singular, ctx: &mut Ctx<'_, Self>) {
        self.is_scaled = false;
        if let Some(go) = &self.go {
            go.done.send(ctx, EliminationResult::singular(singular));
        }
    }

    fn rest(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.unsolved == 0
            && let Some(go) = self.go.take()
        {
            let (pieces, factors) = (self.share.piece_count(), self.share.factors(ctx.index() == 0));
            ctx.contribute(EliminationResult { pieces, singular: None, factors }, go.done);
        }
    }
}

impl<T: Real> Blocks<T> {
    fn made(plan: Plan, part: u32, nodes: Vec<u32>, look_ahead: usize) -> Self {
        let share = Share::new(plan.clone(), part, look_ahead);
        let unsolved = share.panel_count() * plan.right_blocks() as usize;
        let (go, is_scaled, last_work, on_its_way) = (None, false, 0, None);
        Self { plan, nodes, share, go, is_scaled, last_work, on_its_way, unsolved }
    }
}
