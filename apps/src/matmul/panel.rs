//! The product that the 1995 report calls Fox's: one factor lies still, by columns as wide as each PE is
//! fast; the other is broadcast by groups of rows, one after the other, the next when the last is finished.
//!
//! In the report's letters the still factor is A and the broadcast one B. Here, where C = A B, the still
//! factor is B (columns of B and C on each PE) and groups of rows of A are broadcast. A group of rows is
//! asked for while an earlier one is still being multiplied, so that the wire is never waited for. The owners
//! of the groups take turns, so that all links are used alike, and a panel multiplies groups as they come: each
//! gives other rows of C.
//!
//! The columns of a PE are cut into some panels, chares that can move. Where a panel turns out to be slower than was
//! measured, others take columns of B from it (`turns` plans that, `stripes` are a panel's columns). Each element of C is
//! still computed by one panel at once, so it does not change.

mod rebalance;
mod stripes;
mod turns;

use super::cost::ROWS_MIN;
use super::problem::{Problem, pes_here};
use crate::matrix::{Piece, Real};
use chares::{Bulk, Callback, Chare, Ctx, Cx, Entry, Reduce};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;
use stripes::Stripes;
use turns::Turns;

/// Groups of rows that are under way at once.
pub(super) const AHEAD: usize = 4;
/// Groups of rows that are broadcast: fine enough to keep all busy at the end, and few of them hold little of A.
const GROUPS: usize = 48;
/// Inside a node they take no memory. There are fewer where their rows would be too few for the kernel to run at its full
/// speed, as it brings B in order for each; but so many that some wait while others are multiplied.
const GROUPS_INSIDE: usize = 2 * AHEAD;
/// Panels for each PE, so that some can move; fewer where their columns would be too few for the kernel to run at its full
/// speed.
const PANELS: usize = 8;
const COLUMNS_MIN: usize = 256;
/// Groups of rows wait on a PE for those before them; what makes others go on does not wait with them.
const URGENT: i32 = -2;
const ROWS: i32 = -1;

/// Rows of a group, of `rows` in all, if the user does not say how many.
pub(super) fn default_grain(rows: usize) -> usize {
    rows.div_ceil(GROUPS).max(32)
}

/// The same where there is only one node.
pub(super) fn grain_inside(rows: usize) -> usize {
    default_grain(rows).max(ROWS_MIN.min(rows.div_ceil(GROUPS_INSIDE)))
}

/// Panels for each of so many PEs of a product with so many columns.
pub(super) fn panels_per_pe(columns: usize, pes: usize) -> u32 {
    (columns / pes.max(1) / COLUMNS_MIN).clamp(1, PANELS) as u32
}

/// About how many columns a panel of a product with so many has, on a few PEs.
pub(super) fn typical_columns(columns: usize) -> usize {
    columns / 4 / panels_per_pe(columns, 4) as usize
}

/// The bounds of panels, where those of PEs are known: the share of each PE in so many like parts.
pub(super) fn cut(bounds: &[u64], per_pe: u32) -> Vec<u64> {
    let part = |ends: &[u64], at: u32| ends[0] + (ends[1] - ends[0]) * u64::from(at) / u64::from(per_pe);
    let of_pe = |ends: &[u64]| (0..per_pe).map(|at| part(ends, at)).collect::<Vec<_>>();
    bounds.windows(2).flat_map(of_pe).chain(bounds.last().copied()).collect()
}

/// What every panel is made with. They are numbered in the order of the PEs where they begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PanelInit {
    /// The product.
    pub problem: Problem,
    /// Rows of A per broadcast; the last may have fewer.
    pub grain: usize,
    /// Panels for each PE.
    pub per_pe: u32,
    /// Panel `p` begins with the columns `columns[p]..columns[p + 1]`.
    pub columns: Vec<u64>,
    /// Panel `p` broadcasts the groups `groups[p]..groups[p + 1]`.
    pub groups: Vec<u64>,
    /// Columns more that each panel has memory for.
    pub room: Vec<u64>,
}

/// Some columns.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Panel<T> {
    setup: PanelInit,
    panel: u32,
    stripes: Stripes<T>,
    /// Groups of rows of A that this panel broadcasts.
    a: BTreeMap<u32, Bulk<T>>,
    /// Groups that have come before the word to begin, or before their plan's columns, and count of those multiplied.
    early: Vec<RowsOfA<T>>,
    multiplied: u32,
    done: Option<Callback<PanelTotals>>,
    /// Of the first panel.
    turns: Option<Turns>,
}

/// Columns of B, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadColumns<T>(pub Bulk<T>);

/// A group of rows of A for its owner, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadGroup<T> {
    /// Which group.
    pub group: u32,
    /// Its rows.
    pub rows: Bulk<T>,
}

/// Begin; who is told when all have finished.
#[derive(Clone, Serialize, Deserialize)]
pub struct GoPanel(pub Callback<PanelTotals>);

/// What all panels have at the end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PanelTotals {
    /// Pieces of C to collect.
    pub pieces: usize,
    /// Columns that have gone from one panel to another.
    pub moved_columns: u64,
}

impl Reduce for PanelTotals {
    fn combine(&mut self, other: Self) {
        self.pieces += other.pieces;
        self.moved_columns += other.moved_columns;
    }
}

/// Broadcast that group of rows, to be multiplied by the columns of that plan.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    group: u32,
    plan: u32,
}

/// A panel has finished that group of rows on that PE: so many elements of C, in so many seconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Finished {
    group: u32,
    panel: u32,
    pe: u32,
    area: u64,
    seconds: f64,
}

/// From that plan on these panels have fewer columns, and those more: giver, taker and how many.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replan {
    plan: u32,
    moves: Vec<(u32, u32, u64)>,
}

/// Columns of B for who has them from that plan on.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Columns<T> {
    plan: u32,
    cols: Range<usize>,
    b: Bulk<T>,
}

/// A group of rows of A.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct RowsOfA<T> {
    group: u32,
    plan: u32,
    rows: Bulk<T>,
}

/// Send the result.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct CollectPanel<T: Real>(pub Callback<Piece<T>>);

chares::entries!(impl<T: Real> Panel<T>:
    LoadColumns<T>, LoadGroup<T>, GoPanel, Request, Finished, Replan, Columns<T>, RowsOfA<T>, CollectPanel<T>;
    reduces PanelTotals);

impl<T: Real> Chare for Panel<T> {
    type Index = u32;
    type Init = PanelInit;
    fn new(setup: PanelInit, ctx: &mut Ctx<'_, Self>) -> Self {
        if ctx.node_count() > 1 && ctx.index().is_multiple_of(setup.per_pe) {
            let pes = pes_here(ctx);
            Bulk::<T>::reserve(setup.grain * setup.problem.k, AHEAD.div_ceil(pes));
        }
        Self::made(setup, ctx.index())
    }
}

impl<T: Real> Entry<LoadColumns<T>> for Panel<T> {
    fn receive(&mut self, LoadColumns(b): LoadColumns<T>, _: &mut Ctx<'_, Self>) {
        self.stripes.load(b);
    }
}

impl<T: Real> Entry<LoadGroup<T>> for Panel<T> {
    fn receive(&mut self, load: LoadGroup<T>, _: &mut Ctx<'_, Self>) {
        self.a.insert(load.group, load.rows);
    }
}

impl<T: Real> Entry<GoPanel> for Panel<T> {
    fn receive(&mut self, GoPanel(done): GoPanel, ctx: &mut Ctx<'_, Self>) {
        let requests = self.turns.as_mut().map(|turns| turns.begin(&self.setup));
        for request in requests.into_iter().flatten() {
            let owner = self.setup.owner(request.group);
            ctx.array().at(owner).send_with(ctx, URGENT, request);
        }
        self.done = Some(done);
        if self.setup.group_count() == 0 {
            return self.rest(ctx);
        }
        self.take_up_early(ctx);
    }
}

impl<T: Real> Entry<Request> for Panel<T> {
    fn receive(&mut self, Request { group, plan }: Request, ctx: &mut Ctx<'_, Self>) {
        let rows = self.a.get(&group).cloned().unwrap_or_default();
        ctx.array().broadcast_with(ctx, ROWS, RowsOfA { group, plan, rows });
    }
}

impl<T: Real> Entry<Finished> for Panel<T> {
    fn receive(&mut self, report: Finished, ctx: &mut Ctx<'_, Self>) {
        let Some(turns) = &mut self.turns else { return };
        let column_bytes = self.setup.problem.k * size_of::<T>();
        let (request, plan) = turns.finished(&self.setup, &report, column_bytes);
        if let Some(request) = request {
            let owner = self.setup.owner(request.group);
            ctx.array().at(owner).send_with(ctx, URGENT, request);
        }
        if let Some(plan) = plan {
            ctx.array().broadcast_with(ctx, URGENT, plan);
        }
    }
}

impl<T: Real> Entry<Replan> for Panel<T> {
    fn receive(&mut self, Replan { plan, moves }: Replan, ctx: &mut Ctx<'_, Self>) {
        let mut due = 0;
        for (from, to, count) in moves {
            let count = usize::try_from(count).expect("columns of a matrix in memory");
            if to == self.panel {
                due += count;
            }
            if from == self.panel {
                for (cols, b) in self.stripes.give(plan, count, self.setup.problem.k) {
                    ctx.array().at(to).send_with(ctx, URGENT, Columns { plan, cols, b });
                }
            }
        }
        self.stripes.expect(due);
        self.take_up_early(ctx);
    }
}

impl<T: Real> Entry<Columns<T>> for Panel<T> {
    fn receive(&mut self, Columns { plan, cols, b }: Columns<T>, ctx: &mut Ctx<'_, Self>) {
        self.stripes.take(plan, cols, b);
        self.take_up_early(ctx);
    }
}

impl<T: Real> Entry<RowsOfA<T>> for Panel<T> {
    fn receive(&mut self, rows: RowsOfA<T>, ctx: &mut Ctx<'_, Self>) {
        if self.done.is_some() && self.stripes.has(rows.plan) {
            self.take_up(&rows, ctx);
        } else {
            self.early.push(rows);
        }
    }
}

impl<T: Real> Entry<CollectPanel<T>> for Panel<T> {
    fn receive(&mut self, CollectPanel(to): CollectPanel<T>, ctx: &mut Ctx<'_, Self>) {
        self.stripes.hand_out().for_each(|piece| to.send(ctx, piece));
    }
}

impl<T: Real> Panel<T> {
    /// What was held comes once more, one by one: whoever asks for a group of rows need not wait for all.
    fn take_up_early(&mut self, ctx: &mut Ctx<'_, Self>) {
        for rows in std::mem::take(&mut self.early) {
            if self.done.is_some() && self.stripes.has(rows.plan) {
                ctx.this().send_with(ctx, ROWS, rows);
            } else {
                self.early.push(rows);
            }
        }
    }

    fn take_up(&mut self, rows: &RowsOfA<T>, ctx: &mut Ctx<'_, Self>) {
        let report = self.multiply(rows, ctx.pe_id(), ctx.cpu_share());
        self.multiplied += 1;
        let count = self.setup.group_count();
        ctx.array().at(0).send_with(ctx, URGENT, report);
        ctx.progress(1);
        if self.multiplied == count {
            self.rest(ctx);
        }
    }

    fn rest(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (pieces, moved_columns) = (self.stripes.piece_count(), self.stripes.taken());
        if let Some(done) = self.done.take() {
            ctx.contribute(PanelTotals { pieces, moved_columns }, done);
        }
    }
}

impl PanelInit {
    /// Count of groups of rows.
    #[must_use]
    pub fn group_count(&self) -> u32 {
        u32::try_from(self.problem.m.div_ceil(self.grain)).expect("the grain is chosen for fewer groups")
    }

    /// The panel that broadcasts a group.
    #[must_use]
    pub fn owner(&self, group: u32) -> u32 {
        let after = self.groups.partition_point(|&first| first <= u64::from(group));
        u32::try_from(after - 1).expect("there are fewer than 2^32 panels")
    }

    /// Rows of a group.
    #[must_use]
    pub fn rows_of(&self, group: u32) -> Range<usize> {
        let first = group as usize * self.grain;
        first..(first + self.grain).min(self.problem.m)
    }

    /// Columns that a panel begins with.
    #[must_use]
    pub fn columns_of(&self, panel: u32) -> Range<usize> {
        let at = |panel: usize| usize::try_from(self.columns[panel]).expect("a column of a matrix in memory");
        at(panel as usize)..at(panel as usize + 1)
    }

    /// How many panels there are.
    #[must_use]
    pub fn panels(&self) -> u32 {
        u32::try_from(self.room.len()).expect("there are fewer than 2^32 panels")
    }
}

impl<T: Real> Panel<T> {
    fn made(setup: PanelInit, panel: u32) -> Self {
        let (cols, problem) = (setup.columns_of(panel), &setup.problem);
        let b = problem.block_b(0..problem.k, cols.clone());
        let groups = || (0..setup.group_count()).map(|group| (group, setup.rows_of(group)));
        let stripes = Stripes::new(cols, b, groups().map(|(group, rows)| (group, rows.len())));
        let own = groups().filter(|(group, _)| setup.owner(*group) == panel);
        let a = match problem.seeds {
            Some(_) => own.map(|(group, rows)| (group, problem.block_a(rows, 0..problem.k))).collect(),
            None => BTreeMap::new(),
        };
        let turns = (panel == 0).then(|| Turns::new(&setup));
        Self { setup, panel, stripes, a, early: Vec::new(), multiplied: 0, done: None, turns }
    }

    /// Multiplies a group of rows on a PE that may use that part of its core.
    fn multiply(&mut self, RowsOfA { group, plan, rows }: &RowsOfA<T>, pe: u32, cpu_share: f64) -> Finished {
        let (group, started) = (*group, Instant::now());
        let range = (group, self.setup.rows_of(group));
        let area = self.stripes.multiply(&self.setup.problem, range, *plan, rows);
        Finished { group, panel: self.panel, pe, area, seconds: started.elapsed().as_secs_f64() / cpu_share }
    }
}

#[cfg(test)]
mod tests;
