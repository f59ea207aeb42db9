//! What one part does of a blocked factorisation: which task is next, and the tasks. Knows no messages.
//!
//! Each block of columns takes up the panels before it in their order, however far other blocks are; then it is
//! factored, and is the next panel. While few panels wait, the block whose turn is next goes before all others, so that its
//! panel is on its way while they are still worked on: that is the look-ahead.

use super::super::factors::Factors;
use super::super::plan::Plan;
use crate::kernels::gemm::{View, subtract_product};
use crate::kernels::lu::{self, NoPivot};
use crate::matrix::{Piece, Real, generated, zeros};
use crate::system::{exponent, times_power_of_two};
use chares::{Bulk, Scratch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Columns that are worked on at once, at most: so many that the kernel seldom brings the panel in its order anew, and so few
/// that what is urgent comes soon.
pub(in super::super) const COLUMNS_AT_ONCE: usize = 1024;
/// Rows from one pivot to the next in an example: a prime.
const PIVOTS_APART: usize = 7919;
/// Blocks so far before their turn go before others, while few panels wait here.
const AHEAD: u32 = 2;

/// A factored block of columns, from its diagonal down.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Factored<T> {
    /// Which block.
    pub index: u32,
    /// Row `first + j` was exchanged with row `pivots[j]`, where `first` is the first row of the panel.
    pub pivots: Vec<u32>,
    /// Its columns, from the row of the first diagonal element on.
    pub values: Bulk<T>,
}

impl<T: Real> Factored<T> {
    /// A first panel of so many rows and columns, to measure with: its numbers are so small that what takes it up stays as
    /// large as it was, and rows are exchanged with any below them.
    pub(in super::super) fn example(rows: usize, width: usize) -> Self {
        let small = T::from_f64(0.5_f64.powi(20));
        let mut values = generated::<T>(1, 0..width, 0..rows);
        values.as_mut_slice().iter_mut().for_each(|value| *value = *value * small);
        // Far apart, as those of any matrix.
        let pivot = |row: usize| u32::try_from(row + row * PIVOTS_APART % (rows - row));
        let pivots = (0..width).map(|row| pivot(row).expect("sides are below 2^32")).collect();
        Self { index: 0, pivots, values }
    }
}

/// Right-hand sides on their way through the blocks from the last to the first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Unsolved<T> {
    /// Which block of B, from 0.
    pub right: u32,
    /// The block of A that is next.
    pub block: u32,
    /// Its columns, with the rows up to the end of that block.
    pub values: Bulk<T>,
}

/// A system without a solution that could be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Singular {
    /// Nothing but zeros in a row.
    #[error("the matrix is singular: row {0}, counted from 0, has nothing but zeros")]
    Row(usize),
    /// No pivot left.
    #[error(
        "the matrix is singular, or so near to it that rounding decides: no pivot is left in column {0}, counted from 0, \
         which up to rounding is a sum of multiples of the columns before it"
    )]
    Column(usize),
}

/// What a part can do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Factor the block at this place.
    Factor(usize),
    /// Let the blocks at these places take up this panel.
    Update(u32, Range<usize>),
}

/// A block of columns of this part.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Held {
    index: u32,
    /// Its columns of those that this part has.
    columns: Range<usize>,
    /// Panels that it has taken up; one more than there are before it once it is factored.
    applied: u32,
}

/// The columns of one part.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Share<T> {
    plan: Plan,
    held: Vec<Held>,
    /// All columns, one after the other.
    values: Bulk<T>,
    /// What the pivot of each column must be larger than.
    least: Vec<T>,
    /// Panels that are still needed here.
    panels: BTreeMap<u32, Factored<T>>,
    /// All panels before this one are or were here.
    known: u32,
    /// While no more panels than these are needed here, what makes the next one goes before what takes these up.
    look_ahead: usize,
    /// What the rows were divided by, as powers of two; in all.
    scaled_by: i64,
    factors: Factors,
    pieces: Vec<Piece<T>>,
    /// Memory that updates use: the allocator would clear it anew for each.
    beside: Scratch<Vec<T>>,
}

impl<T: Real> Share<T> {
    pub(super) fn new(plan: Plan, part: u32, look_ahead: usize) -> Self {
        let mut end = 0;
        let held = |index: u32| {
            let first = end;
            end += plan.columns_of(index).len();
            Held { index, columns: first..end, applied: 0 }
        };
        let held: Vec<Held> = plan.blocks_of(part).map(held).collect();
        let mut values = zeros::<T>(end * plan.n);
        if let Some(generated) = &plan.generated {
            for block in &held {
                let part = block.columns.start * plan.n..block.columns.end * plan.n;
                plan.fill(generated, block.index, &mut values.as_mut_slice()[part]);
            }
        }
        let (least, panels, pieces, beside) = (Vec::new(), BTreeMap::new(), Vec::new(), Scratch::default());
        let factors = Factors::default();
        let (known, scaled_by) = (0, 0);
        Self { plan, held, values, least, panels, known, look_ahead, scaled_by, factors, pieces, beside }
    }

    /// Takes a block's columns from the driver.
    pub(super) fn load(&mut self, index: u32, columns: &[T]) {
        let n = self.plan.n;
        if let Some(block) = self.held.iter().find(|block| block.index == index) {
            let part = block.columns.start * n..block.columns.end * n;
            self.values.as_mut_slice()[part].copy_from_slice(columns);
        }
    }

    /// Columns of A come first.
    fn columns_of_a(&self) -> usize {
        let of_a = self.held.iter().take_while(|block| block.index < self.plan.panels());
        of_a.last().map_or(0, |block| block.columns.end)
    }

    /// The largest magnitude of each row of A in the columns that are here.
    pub(super) fn row_magnitudes(&self) -> Vec<f64> {
        let n = self.plan.n;
        let mut largest = vec![T::zeroed(); n];
        for column in self.values[..self.columns_of_a() * n].chunks_exact(n) {
            lu::keep_larger(&mut largest, column);
        }
        largest.into_iter().map(T::to_f64).collect()
    }

    /// Divides each row by the power of two that brings its largest magnitude, of all parts, below 1. So no row is chosen
    /// as a pivot only because it is written in a small unit.
    pub(super) fn scale(&mut self, row_magnitudes: &[f64]) -> Result<(), Singular> {
        if let Some(row) = row_magnitudes.iter().position(|most| *most == 0.0) {
            return Err(Singular::Row(row));
        }
        let n = self.plan.n;
        let exponents: Vec<i32> = row_magnitudes.iter().map(|most| exponent(*most)).collect();
        self.scaled_by = exponents.iter().map(|e| i64::from(*e)).sum();
        let of_a = self.columns_of_a();
        let values = self.values.as_mut_slice();
        if exponents.iter().any(|e| *e != 0) {
            // In two steps, for neither the number nor the power may leave the range in between.
            let power = |e: i32| T::from_f64(times_power_of_two(1.0, e));
            let steps: Vec<[T; 2]> = exponents.iter().map(|e| [power(-e / 2), power(-e - -e / 2)]).collect();
            for column in values.chunks_exact_mut(n) {
                column.iter_mut().zip(&steps).for_each(|(x, [one, other])| *x = *x * *one * *other);
            }
        }
        let unit = T::from_f64(n as f64 * T::UNIT_ROUNDOFF);
        let columns = values[..of_a * n].chunks_exact(n);
        let largest: Vec<T> = columns.map(lu::largest_magnitude).collect();
        self.factors.largest_of_a = lu::largest_magnitude(&largest).to_f64();
        self.least = largest.into_iter().map(|most| most * unit).collect();
        Ok(())
    }

    /// Takes a panel, its own as well as others'.
    pub(super) fn take(&mut self, panel: Factored<T>) {
        if panel.index >= self.known {
            self.panels.insert(panel.index, panel);
            while self.panels.contains_key(&self.known) {
                self.known += 1;
            }
            self.forget();
        }
    }

    /// Panels that a block takes up before its turn.
    fn before(&self, block: &Held) -> u32 {
        block.index.min(self.plan.panels())
    }

    /// Panels that no block here needs any more.
    fn forget(&mut self) {
        let needed = self.held.iter().filter(|block| block.applied < self.before(block));
        let least = needed.map(|block| block.applied).min().unwrap_or(u32::MAX);
        self.panels.retain(|index, _| *index >= least);
    }

    pub(super) fn next(&self) -> Option<Task> {
        let can_take = |block: &Held| block.applied < self.before(block) && block.applied < self.known;
        let panels = self.plan.panels();
        let is_of_b = |block: &Held| block.index >= panels;
        let due = self.held.iter().position(|block| block.index < panels && block.applied <= block.index);
        if let Some(at) = due {
            let block = &self.held[at];
            if block.applied == block.index {
                return Some(Task::Factor(at));
            }
            if self.is_due(block) && can_take(block) {
                return Some(Task::Update(block.applied, at..at + 1));
            }
        }
        let open = self.held.iter().enumerate().filter(|(_, block)| can_take(block));
        let (first, block) = open.min_by_key(|(_, block)| block.applied)?;
        let mut end = first + 1;
        while self.held.get(end).is_some_and(|next| {
            let columns = next.columns.end - block.columns.start;
            // Blocks of B go by themselves: beside others, the same sums come out with other roundings.
            next.applied == block.applied && is_of_b(next) == is_of_b(block) && columns <= COLUMNS_AT_ONCE
        }) {
            end += 1;
        }
        Some(Task::Update(block.applied, first..end))
    }

    /// How urgent a task is among those of all parts of a PE, the smallest number first: what others wait for, then panels in
    /// their order, so that they are not needed for long.
    pub(super) fn priority(&self, task: &Task) -> i32 {
        match task {
            Task::Factor(_) => 0,
            Task::Update(_, blocks) if self.is_due(&self.held[blocks.start]) => 0,
            Task::Update(panel, _) => i32::try_from(*panel).map_or(i32::MAX, |panel| panel.saturating_add(1)),
        }
    }

    /// Whether the turn of a block comes soon, and what waits here can wait on. If the next panels always went first, all of
    /// them would be made long before others have taken them up, and none of their memory could be used again.
    fn is_due(&self, block: &Held) -> bool {
        let is_soon = block.index < self.plan.panels() && block.index < self.known + AHEAD;
        is_soon && self.panels.len() <= self.look_ahead
    }

    /// Lets blocks take up a panel.
    pub(super) fn update(&mut self, panel: u32, blocks: Range<usize>) {
        let Some(factored) = self.panels.get(&panel) else { return };
        let columns = self.held[blocks.start].columns.start..self.held[blocks.end - 1].columns.end;
        let of_a = self.columns_of_a().saturating_sub(columns.start).min(columns.len());
        let n = self.plan.n;
        let first = self.plan.columns_of(panel).start;
        let values = &mut self.values.as_mut_slice()[columns.start * n..columns.end * n];
        take_up(factored, (n, first), values, &mut self.beside);
        let of_u = &self.beside[..of_a * factored.pivots.len()];
        self.factors.reach(lu::largest_magnitude(of_u).to_f64());
        self.held[blocks].iter_mut().for_each(|block| block.applied += 1);
        self.forget();
    }

    /// Factors a block that has taken up all panels before it.
    pub(super) fn factor(&mut self, at: usize) -> Result<Factored<T>, Singular> {
        let Held { index, columns, .. } = self.held[at].clone();
        let (n, first) = (self.plan.n, self.plan.columns_of(index).start);
        let (rows, width) = (n - first, columns.len());
        let mut panel = Bulk::reused(rows * width);
        let values = &mut self.values.as_mut_slice()[columns.start * n..columns.end * n];
        for (to, column) in panel.as_mut_slice().chunks_exact_mut(rows).zip(values.chunks_exact(n)) {
            to.copy_from_slice(&column[first..]);
        }
        let pivots = lu::factor(panel.as_mut_slice(), rows, &self.least[columns])
            .map_err(|NoPivot { column }| Singular::Column(first + column))?;
        for (j, (from, column)) in panel.chunks_exact(rows).zip(values.chunks_exact_mut(n)).enumerate() {
            column[first..first + width].copy_from_slice(&from[..width]);
            self.factors.reach(lu::largest_magnitude(&from[..=j]).to_f64());
            self.factors.multiply(from[j].to_f64());
        }
        let exchanged = (0u32..).zip(&pivots).filter(|(row, pivot)| row != *pivot);
        exchanged.for_each(|_| self.factors.exchange());
        self.held[at].applied += 1;
        let below = u32::try_from(first).expect("sides are below 2^32");
        Ok(Factored { index, pivots: pivots.into_iter().map(|pivot| pivot + below).collect(), values: panel })
    }

    /// Multiplications until all blocks here have taken up the panels before them, and have been factored.
    pub(super) fn remaining(&self) -> f64 {
        let (n, panels) = (self.plan.n, self.plan.panels());
        let first = |panel: u32| if panel < panels { self.plan.columns_of(panel).start } else { n };
        let below = |panel: u32| (n - first(panel)) as f64;
        let of_block = |block: &Held| {
            let (width, last) = (block.columns.len() as f64, self.before(block));
            let factoring = if block.applied > last { 0.0 } else { width * below(last) };
            let from = below(block.applied.min(last));
            // A column takes a panel up as often as that has columns, each with as many rows as are below its diagonal.
            width * ((from * from - below(last) * below(last)) / 2.0 + factoring)
        };
        self.held.iter().map(of_block).sum()
    }

    /// Blocks of A that are here.
    pub(super) fn panel_count(&self) -> usize {
        self.held.iter().filter(|block| block.index < self.plan.panels()).count()
    }

    /// Blocks of B that have taken up all panels since the last time, ready for the way back.
    pub(super) fn ready(&mut self) -> Vec<Unsolved<T>> {
        let (n, panels) = (self.plan.n, self.plan.panels());
        let mut ready = Vec::new();
        for block in &mut self.held {
            if block.index >= panels && block.applied == panels {
                block.applied += 1;
                let values = Bulk::from_slice(&self.values[block.columns.start * n..block.columns.end * n]);
                ready.push(Unsolved { right: block.index - panels, block: panels - 1, values });
            }
        }
        ready
    }

    /// Solves the rows of a block for some right-hand sides; what is left for the blocks before it.
    pub(super) fn solve(&mut self, unsolved: Unsolved<T>) -> Option<Unsolved<T>> {
        let Unsolved { right, block, mut values } = unsolved;
        let rows = self.plan.columns_of(block);
        let cols = self.plan.columns_of(self.plan.panels() + right);
        let held = self.held.iter().find(|held| held.index == block)?;
        let (n, above, length) = (self.plan.n, rows.start, rows.end);
        let own = &self.values[held.columns.start * n..held.columns.end * n];
        lu::solve_upper(own, n, above, rows.len(), values.as_mut_slice());
        let solved = |i: usize| values.iter().skip(above + i).step_by(length).copied();
        let piece: Vec<T> = (0..rows.len()).flat_map(solved).collect();
        self.pieces.push(Piece { rows, cols, values: piece.into() });
        let block = block.checked_sub(1)?;
        let left: Vec<T> = values.chunks_exact(length).flat_map(|column| &column[..above]).copied().collect();
        Some(Unsolved { right, block, values: left.into() })
    }

    /// What the factors that are here tell; with what the rows were divided by, which one of all parts says.
    pub(super) fn factors(&self, with_scaling: bool) -> Factors {
        let mut factors = self.factors;
        if with_scaling {
            factors.scale_back(self.scaled_by);
        }
        factors
    }

    /// How many pieces of the solution are here.
    pub(super) fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// The pieces of the solution that are here.
    pub(super) fn hand_out(&mut self) -> impl Iterator<Item = Piece<T>> {
        std::mem::take(&mut self.pieces).into_iter()
    }
}

/// Columns of `n` numbers take up a panel whose first row is `first`: their rows are exchanged as its were, the rows beside
/// its triangle become those of U, and the rows below lose L U. `u` is memory for that part of U, which it holds
/// afterwards, one column after the other.
pub(in super::super) fn take_up<T: Real>(
    panel: &Factored<T>,
    (n, first): (usize, usize),
    columns: &mut [T],
    u: &mut Vec<T>,
) {
    let (rows, width, count) = (n - first, panel.pivots.len(), columns.len() / n);
    u.resize(width * count, T::zeroed());
    for (column, of_u) in columns.chunks_exact_mut(n).zip(u.chunks_exact_mut(width)) {
        lu::exchange_rows(column, n, first, &panel.pivots);
        of_u.copy_from_slice(&column[first..first + width]);
    }
    lu::solve_lower(&panel.values, rows, u);
    for (column, of_u) in columns.chunks_exact_mut(n).zip(u.chunks_exact(width)) {
        column[first..first + width].copy_from_slice(of_u);
    }
    if rows > width {
        let below = View::by_columns(&panel.values[width..], rows);
        let sides = [rows - width, width, count];
        subtract_product(sides, below, View::by_columns(u, width), (&mut columns[first + width..], n));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::plan::longest_wait;
    use super::*;
    use crate::matrix::Matrix;
    use crate::system::{Coefficients, Generated, LinearSystem, Residual, residual};
    use chares::loadbalance::{Items, Part, cyclic};
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn what_is_due_goes_first_and_the_rest_in_groups() {
        let owners: Vec<u32> = (0..17).map(|block| block % 2).collect();
        let plan = Plan { n: 3200, rhs: 3, width: 200, owners: owners.into(), generated: None };
        // The blocks 0, 2, ... 14 of A and that of B.
        let mut share = Share::<f32>::new(plan, 0, 2);
        let mut after = |known: u32, applied: [u32; 9]| {
            share.known = known;
            share.held.iter_mut().zip(applied).for_each(|(block, applied)| block.applied = applied);
            share.next()
        };
        assert_eq!(after(0, [0; 9]), Some(Task::Factor(0)));
        assert_eq!(after(1, [1, 0, 0, 0, 0, 0, 0, 0, 0]), Some(Task::Update(0, 1..2)));
        assert_eq!(
            after(1, [1, 1, 0, 0, 0, 0, 0, 0, 0]),
            Some(Task::Update(0, 2..7)),
            "1,024 columns at most"
        );
        assert_eq!(after(2, [1, 1, 1, 1, 1, 1, 1, 0, 0]), Some(Task::Update(1, 1..2)));
        assert_eq!(after(2, [1, 2, 1, 1, 1, 1, 1, 0, 0]), Some(Task::Factor(1)));
        assert_eq!(after(2, [1, 3, 1, 1, 1, 1, 1, 0, 0]), Some(Task::Update(0, 7..8)), "4 is not due yet");
        assert_eq!(after(2, [1, 3, 1, 1, 1, 1, 1, 1, 0]), Some(Task::Update(0, 8..9)), "B by itself");
        assert_eq!(after(3, [1, 3, 1, 1, 1, 1, 1, 1, 1]), Some(Task::Update(1, 2..3)), "now it is");
        assert_eq!(after(1, [1, 1, 1, 1, 1, 1, 1, 1, 1]), None, "panels have to come first");
        assert_eq!(after(16, [1, 3, 5, 7, 9, 11, 13, 15, 16]), None, "all is done");
    }

    #[test]
    fn the_next_panel_goes_first_only_while_few_wait() {
        let owners: Vec<u32> = (0..17).map(|block| block % 2).collect();
        let plan = Plan { n: 1600, rhs: 3, width: 100, owners: owners.into(), generated: None };
        let mut share = Share::<f32>::new(plan, 0, 2);
        // Block 4, the third here, is to be made ahead; those behind it have still to take up panel 1.
        share.known = 4;
        let applied = [1, 3, 2, 1, 1, 1, 1, 1, 1];
        share.held.iter_mut().zip(applied).for_each(|(block, applied)| block.applied = applied);
        let mut with = |waiting: std::ops::Range<u32>| {
            share.panels =
                waiting.map(|index| (index, Factored { index, ..Factored::example(8, 4) })).collect();
            let next = share.next().unwrap();
            (share.priority(&next), next)
        };
        assert_eq!(with(2..4), (0, Task::Update(2, 2..3)));
        assert_eq!(with(1..4), (2, Task::Update(1, 3..8)));
    }

    #[test]
    fn what_remains_of_all_parts_is_a_factorisation_and_in_the_end_nothing() {
        let owners: Vec<u32> = (0..17).map(|block| block % 2).collect();
        let plan = Plan { n: 1600, rhs: 3, width: 100, owners: owners.into(), generated: None };
        let mut shares = [0, 1].map(|part| Share::<f32>::new(plan.clone(), part, 2));
        let remaining = |shares: &[Share<f32>; 2]| shares.iter().map(Share::remaining).sum::<f64>();
        // A third of a cube, and what the blocks' width adds to it; of B half a square for each column.
        let (n, w) = (1600.0, 100.0);
        let all = n * n * n / 3.0 + n * n * w / 4.0 + 5.0 * n * w * w / 12.0 + 3.0 * n * n / 2.0;
        assert!((remaining(&shares) / all - 1.0).abs() < 1e-12, "{} of {all}", remaining(&shares));
        shares[0].held[1].applied = 1;
        let one_less = all - w * (n * n - (n - w) * (n - w)) / 2.0;
        assert!((remaining(&shares) / one_less - 1.0).abs() < 1e-12);
        for block in shares.iter_mut().flat_map(|share| &mut share.held) {
            block.applied = block.index + 1;
        }
        assert_eq!(remaining(&shares), 0.0);
    }

    /// Parts in one place, which take turns as `picks` says, as do the panels that are on their way to them.
    fn solved(plan: &Plan, pes: u32, look_ahead: usize, picks: &[usize]) -> Matrix<f64> {
        let mut shares: Vec<_> = (0..pes).map(|pe| Share::<f64>::new(plan.clone(), pe, look_ahead)).collect();
        let mut magnitudes = vec![0.0; plan.n];
        shares.iter().for_each(|share| lu::keep_larger(&mut magnitudes, &share.row_magnitudes()));
        shares.iter_mut().for_each(|share| share.scale(&magnitudes).unwrap());
        let (mut on_the_way, mut unsolved) = (Vec::new(), Vec::new());
        for pick in picks.iter().cycle() {
            let can: Vec<usize> = (0..shares.len()).filter(|pe| shares[*pe].next().is_some()).collect();
            if can.is_empty() && on_the_way.is_empty() {
                break;
            }
            let at = pick % (can.len() + on_the_way.len());
            let Some(&pe) = can.get(at) else {
                let (to, panel): (usize, Factored<f64>) = on_the_way.swap_remove(at - can.len());
                shares[to].take(panel);
                continue;
            };
            let share = &mut shares[pe];
            match share.next().unwrap() {
                Task::Factor(at) => {
                    let panel = share.factor(at).unwrap();
                    on_the_way.extend((0..shares.len()).filter(|to| *to != pe).map(|to| (to, panel.clone())));
                    shares[pe].take(panel);
                }
                Task::Update(panel, blocks) => {
                    assert!(share.held[blocks.clone()].iter().all(|block| block.applied == panel));
                    share.update(panel, blocks.clone());
                    assert!(share.held[blocks].iter().all(|block| block.applied == panel + 1));
                }
            }
            unsolved.extend(shares[pe].ready());
            assert!(shares[pe].ready().is_empty(), "right-hand sides set out once");
            let is_needed = |panel: &u32| {
                shares[pe].held.iter().any(|held| held.applied <= *panel && *panel < shares[pe].before(held))
            };
            assert!(shares[pe].panels.keys().all(is_needed), "panels that nobody needs take memory");
            let (panels, most) =
                (shares[pe].panels.len(), longest_wait(&plan.owners, pe as u32) + look_ahead);
            assert!(panels <= most, "{panels} panels wait, not {most}");
        }
        assert!(shares.iter().all(|share| share.panels.is_empty()));
        while let Some(next) = unsolved.pop() {
            unsolved.extend(shares[plan.owners[next.block as usize] as usize].solve(next));
        }
        let mut x = vec![f64::NAN; plan.n * plan.rhs];
        for piece in shares.iter_mut().flat_map(Share::hand_out) {
            for (row, values) in piece.rows.clone().zip(piece.values.chunks_exact(piece.cols.len())) {
                x[row * plan.rhs..][piece.cols.clone()].copy_from_slice(values);
            }
        }
        Matrix::from_vec(plan.n, plan.rhs, x).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn panels_in_any_order_solve_the_system_and_are_kept_no_longer_than_needed(
            n in 1usize..60, rhs in 1usize..9, width in 1usize..12, seed in 0u64..1000,
            speeds in prop::collection::vec(0.1f64..1.0, 1..5), picks in prop::collection::vec(0usize..99, 1..40),
            look_ahead in 1usize..5,
        ) {
            let generated = Generated { seed, diagonal: 0.0 };
            let blocks = Plan::counts(n, rhs, width).iter().sum::<usize>() as u64;
            let owners = Arc::new(cyclic::dealt(&Items::alike(blocks), &Part::each(&speeds)).unwrap());
            let plan = Plan { n, rhs, width, owners, generated: Some(generated) };
            let x = solved(&plan, speeds.len() as u32, look_ahead, &picks);
            let b = Matrix::from_vec(n, rhs, generated.block_b(0..n, 0..rhs).to_vec()).unwrap();
            let system = LinearSystem { n, rhs, a: Coefficients::Generated(generated), b };
            prop_assert!(residual(&system, &x).by_row < Residual::ACCEPTED);
        }
    }
}
