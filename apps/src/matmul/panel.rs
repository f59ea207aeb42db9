//! The product that the 1995 report calls Fox's: one factor lies still, by columns as wide as each PE is
//! fast; the other is broadcast by groups of rows, one after the other, the next when the last is finished.
//!
//! In the report's letters the still factor is A and the broadcast one B. Here, where C = A B, the still
//! factor is B (columns of B and C on each PE) and groups of rows of A are broadcast. A group of rows is
//! asked for while an earlier one is still being multiplied, so that the wire is never waited for. The owners
//! of the groups take turns, so that all links are used alike, and a PE multiplies groups as they come: each
//! gives other rows of C.

use super::problem::{Piece, Problem, Real, pes_here, zeros};
use crate::kernels::gemm::gemm;
use chares::{Barrier, Bulk, Callback, Chare, Ctx, Cx, Entry, Group};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Groups of rows that are under way at once.
pub(super) const AHEAD: usize = 4;
/// Groups of rows that are broadcast: fine enough to keep all busy at the end, and each big enough for the kernel to
/// run at its full speed.
const GROUPS: usize = 48;

/// Rows of a group, of `rows` in all, if the user does not say how many.
pub(super) fn default_grain(rows: usize) -> usize {
    rows.div_ceil(GROUPS).max(32)
}

/// What every panel is made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// The product.
    pub problem: Problem,
    /// Rows of A per broadcast; the last may have fewer.
    pub grain: usize,
    /// PE `p` has the columns `columns[p]..columns[p + 1]`.
    pub columns: Vec<u64>,
    /// PE `p` broadcasts the groups `groups[p]..groups[p + 1]`.
    pub groups: Vec<u64>,
}

/// The columns of one PE.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Panel<T> {
    setup: Setup,
    pe: u32,
    b: Bulk<T>,
    c: Bulk<T>,
    /// Groups of rows of A that this PE broadcasts.
    a: BTreeMap<u32, Bulk<T>>,
    /// Groups that have come before the word to begin, and count of those multiplied.
    early: Vec<RowsOfA<T>>,
    multiplied: u32,
    go: Option<GoPanel<T>>,
    /// On PE 0: how many PEs have finished each group, and the groups in the order of their turns.
    finished: Vec<u32>,
    turns: VecDeque<u32>,
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

/// Begin; `done` is told when all have finished.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct GoPanel<T> {
    /// All panels.
    pub panels: Group<Panel<T>>,
    /// Who waits for the end.
    pub done: Callback<Barrier>,
}

/// Broadcast that group of rows.
#[derive(Serialize, Deserialize)]
pub struct Request(u32);

/// A PE has finished that group of rows.
#[derive(Serialize, Deserialize)]
pub struct Finished(u32);

/// A group of rows of A.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct RowsOfA<T> {
    group: u32,
    rows: Bulk<T>,
}

/// Send the result.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct CollectPanel<T: Real>(pub Callback<Piece<T>>);

macro_rules! panels_of {
    ($($real:ty, $panel:literal;)*) => { $(
        chares::entries!(Panel<$real> as $panel:
            LoadColumns<$real> as "LoadColumns", LoadGroup<$real> as "LoadGroup", GoPanel<$real> as "Go",
            Request, Finished, RowsOfA<$real> as "RowsOfA", CollectPanel<$real> as "Collect";
            reduces Barrier);

        impl Chare for Panel<$real> {
            type Index = u32;
            type Init = Setup;
            fn new(setup: Setup, ctx: &mut Ctx<'_, Self>) -> Self {
                if ctx.node_count() > 1 {
                    let pes = pes_here(ctx);
                    Bulk::<$real>::reserve(setup.grain * setup.problem.k, AHEAD.div_ceil(pes));
                }
                Self::made(setup, ctx.index())
            }
        }
        impl Entry<LoadColumns<$real>> for Panel<$real> {
            fn receive(&mut self, LoadColumns(b): LoadColumns<$real>, _: &mut Ctx<'_, Self>) {
                self.b = b;
            }
        }
        impl Entry<LoadGroup<$real>> for Panel<$real> {
            fn receive(&mut self, load: LoadGroup<$real>, _: &mut Ctx<'_, Self>) {
                self.a.insert(load.group, load.rows);
            }
        }
        impl Entry<GoPanel<$real>> for Panel<$real> {
            fn receive(&mut self, go: GoPanel<$real>, ctx: &mut Ctx<'_, Self>) {
                for group in self.turns.drain(..AHEAD.min(self.turns.len())) {
                    go.panels.on(self.setup.owner(group)).send_with(ctx, -1, Request(group));
                }
                self.go = Some(go);
                if self.setup.group_count() == 0 {
                    return self.rest(ctx);
                }
                for rows in std::mem::take(&mut self.early) {
                    self.take_up(&rows, ctx);
                }
            }
        }
        impl Entry<Request> for Panel<$real> {
            fn receive(&mut self, Request(group): Request, ctx: &mut Ctx<'_, Self>) {
                let rows = self.a.get(&group).cloned().unwrap_or_default();
                ctx.array().broadcast_with(ctx, -1, RowsOfA { group, rows });
            }
        }
        impl Entry<Finished> for Panel<$real> {
            fn receive(&mut self, Finished(group): Finished, ctx: &mut Ctx<'_, Self>) {
                self.finished[group as usize] += 1;
                if self.finished[group as usize] < ctx.pe_count() {
                    return;
                }
                if let Some(next) = self.turns.pop_front() {
                    let owner = self.setup.owner(next);
                    ctx.array().at(owner).send_with(ctx, -1, Request(next));
                }
            }
        }
        impl Entry<RowsOfA<$real>> for Panel<$real> {
            fn receive(&mut self, rows: RowsOfA<$real>, ctx: &mut Ctx<'_, Self>) {
                if self.go.is_some() {
                    self.take_up(&rows, ctx);
                } else {
                    self.early.push(rows);
                }
            }
        }
        impl Entry<CollectPanel<$real>> for Panel<$real> {
            fn receive(&mut self, CollectPanel(to): CollectPanel<$real>, ctx: &mut Ctx<'_, Self>) {
                let (rows, cols) = (0..self.setup.problem.m, self.setup.columns_of(self.pe));
                to.send(ctx, Piece { rows, cols, values: self.c.clone() });
            }
        }
        impl Panel<$real> {
            fn take_up(&mut self, rows: &RowsOfA<$real>, ctx: &mut Ctx<'_, Self>) {
                self.multiply(rows);
                self.multiplied += 1;
                let count = self.setup.group_count();
                ctx.array().at(0).send_with(ctx, -1, Finished(rows.group));
                ctx.progress(1);
                if self.multiplied == count {
                    self.rest(ctx);
                }
            }

            fn rest(&mut self, ctx: &mut Ctx<'_, Self>) {
                if let Some(go) = self.go.take() {
                    ctx.contribute(Barrier, go.done);
                }
            }
        }
    )* };
}
panels_of! {
    f32, "Panel32";
    f64, "Panel64";
}

impl Setup {
    /// Count of groups of rows.
    #[must_use]
    pub fn group_count(&self) -> u32 {
        u32::try_from(self.problem.m.div_ceil(self.grain)).expect("the grain is chosen for fewer groups")
    }

    /// The PE that broadcasts a group.
    #[must_use]
    pub fn owner(&self, group: u32) -> u32 {
        let after = self.groups.partition_point(|&first| first <= u64::from(group));
        u32::try_from(after - 1).expect("there are fewer than 2^32 PEs")
    }

    /// All groups, their owners taking turns: at any point each has broadcast about the same part of its own.
    fn turns(&self) -> Vec<u32> {
        let mut turns: Vec<(f64, u32)> = Vec::new();
        for groups in self.groups.windows(2) {
            let count = (groups[1] - groups[0]) as f64;
            let own = (groups[0]..groups[1]).filter_map(|group| u32::try_from(group).ok());
            turns.extend(own.zip(0u32..).map(|(group, nth)| ((f64::from(nth) + 0.5) / count, group)));
        }
        turns.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        turns.into_iter().map(|(_, group)| group).collect()
    }

    /// Rows of a group.
    #[must_use]
    pub fn rows_of(&self, group: u32) -> Range<usize> {
        let first = group as usize * self.grain;
        first..(first + self.grain).min(self.problem.m)
    }

    /// Columns of a PE.
    #[must_use]
    pub fn columns_of(&self, pe: u32) -> Range<usize> {
        let at = |pe: usize| usize::try_from(self.columns[pe]).expect("a column of a matrix in memory");
        at(pe as usize)..at(pe as usize + 1)
    }
}

impl<T: Real> Panel<T> {
    fn made(setup: Setup, pe: u32) -> Self {
        let (cols, problem) = (setup.columns_of(pe), &setup.problem);
        let b = problem.block_b(0..problem.k, cols.clone());
        let c = zeros(problem.m * cols.len());
        let groups = (0..setup.group_count()).filter(|group| setup.owner(*group) == pe);
        let a = match problem.seeds {
            Some(_) => groups.map(|g| (g, problem.block_a(setup.rows_of(g), 0..problem.k))).collect(),
            None => BTreeMap::new(),
        };
        let mut panel = Self {
            pe,
            b,
            c,
            a,
            early: Vec::new(),
            multiplied: 0,
            go: None,
            finished: Vec::new(),
            turns: VecDeque::new(),
            setup,
        };
        if pe == 0 {
            panel.finished = vec![0; panel.setup.group_count() as usize];
            panel.turns = panel.setup.turns().into();
        }
        panel
    }

    fn multiply(&mut self, rows: &RowsOfA<T>) {
        let (range, cols) = (self.setup.rows_of(rows.group), self.setup.columns_of(self.pe).len());
        let Problem { k, kernel, .. } = self.setup.problem;
        let c = &mut self.c.as_mut_slice()[range.start * cols..range.end * cols];
        gemm(kernel, range.len(), k, cols, &rows.rows, &self.b, c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gemm::Kernel;

    #[test]
    fn owners_take_turns_in_proportion_to_what_they_have() {
        let problem = Problem { m: 8, k: 1, n: 1, kernel: Kernel::Fast, seeds: None };
        let setup = Setup { problem, grain: 1, columns: vec![0, 1, 1, 1], groups: vec![0, 4, 6, 8] };
        assert_eq!(setup.turns(), [0, 4, 6, 1, 2, 5, 7, 3]);
        assert_eq!(setup.owner(5), 1);
    }
}
