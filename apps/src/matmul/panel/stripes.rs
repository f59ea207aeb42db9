//! The columns that one panel multiplies: those that it begins with, less what it has given away, and what it has taken.
//!
//! Which columns are whose is a *plan*, numbered from 0. Groups of rows of the old plan come after word of the new one
//! has, so a panel knows its columns of both: a stripe is of some plans.

use crate::kernels::gemm::gemm_columns;
use crate::matmul::problem::Problem;
use crate::matrix::{Piece, Real, zeros};
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Longest part of B in one message: well below what a message may have.
const MESSAGE_BYTES: usize = 1 << 30;

/// Adjoining columns, and B for them.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
struct Stripe<T> {
    /// It is multiplied with the groups of these plans.
    plans: Range<u32>,
    cols: Range<usize>,
    /// Columns that `b` has; those of the stripe are the first of them.
    width: usize,
    b: Bulk<T>,
    /// Memory for its part of C has been taken in advance.
    is_own: bool,
}

/// The columns of a panel, and what has been computed of C.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub(super) struct Stripes<T> {
    stripes: Vec<Stripe<T>>,
    /// The newest plan whose columns are all here.
    plan: u32,
    /// Columns that the next plan brings, once that is known, and those that have come. Only one plan is on its way at
    /// any time.
    due: Option<usize>,
    come: usize,
    /// Columns that were taken in all.
    taken: u64,
    /// Blocks of C for the first columns, by group.
    ready: BTreeMap<u32, Bulk<T>>,
    /// Of C; rows may be longer than their columns.
    pieces: Vec<Piece<T>>,
}

impl<T: Real> Stripes<T> {
    /// These columns of B; `groups` are the groups of rows with how many rows each has.
    pub(super) fn new(cols: Range<usize>, b: Bulk<T>, groups: impl Iterator<Item = (u32, usize)>) -> Self {
        let width = cols.len();
        let ready = match width {
            0 => BTreeMap::new(),
            _ => groups.map(|(group, rows)| (group, zeros(rows * width))).collect(),
        };
        let own = Stripe { plans: 0..u32::MAX, cols, width, b, is_own: true };
        Self { stripes: vec![own], plan: 0, due: None, come: 0, taken: 0, ready, pieces: Vec::new() }
    }

    /// B for the first columns, where it comes after them.
    pub(super) fn load(&mut self, b: Bulk<T>) {
        self.stripes[0].b = b;
    }

    /// Whether all columns of a plan are here.
    pub(super) fn has(&self, plan: u32) -> bool {
        plan <= self.plan
    }

    /// Pieces of C so far.
    pub(super) fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// Columns that were taken from others in all.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Word of the next plan: so many columns will come.
    pub(super) fn expect(&mut self, count: usize) {
        self.due = Some(count);
        self.complete();
    }

    /// Columns that another panel has had, from that plan on.
    pub(super) fn take(&mut self, plan: u32, cols: Range<usize>, b: Bulk<T>) {
        let width = cols.len();
        self.come += width;
        self.taken += width as u64;
        self.stripes.push(Stripe { plans: plan..u32::MAX, cols, width, b, is_own: false });
        self.complete();
    }

    fn complete(&mut self) {
        if self.due == Some(self.come) {
            (self.plan, self.due, self.come) = (self.plan + 1, None, 0);
        }
    }

    /// Parts with so many columns, which are not this panel's any more from that plan on: what came last goes first.
    pub(super) fn give(&mut self, plan: u32, count: usize, k: usize) -> Vec<(Range<usize>, Bulk<T>)> {
        let most = (MESSAGE_BYTES / (k * size_of::<T>()).max(1)).max(1);
        let (mut left, mut given) = (count, Vec::new());
        let lasts = |stripe: &Stripe<T>| stripe.plans.end == u32::MAX && !stripe.cols.is_empty();
        while left > 0
            && let Some(at) = self.stripes.iter().rposition(lasts)
        {
            let stripe = &mut self.stripes[at];
            let Stripe { ref cols, width, ref b, is_own, .. } = *stripe;
            let cut = cols.end - left.min(most).min(cols.len());
            let within = cut - cols.start..cols.end - cols.start;
            given.push((cut..cols.end, columns(b, k, width, within)));
            left -= cols.end - cut;
            let rest = Stripe { plans: plan..u32::MAX, cols: cols.start..cut, width, b: b.clone(), is_own };
            stripe.plans.end = plan;
            self.stripes.insert(at + 1, rest);
        }
        // A stripe that is cut twice is, between the cuts, of no plan.
        self.stripes.retain(|stripe| !stripe.plans.is_empty() && !stripe.cols.is_empty());
        given
    }

    /// The products of a group of rows, by the columns of that plan. How many elements of C they gave.
    pub(super) fn multiply(
        &mut self,
        problem: &Problem,
        (group, rows): (u32, Range<usize>),
        plan: u32,
        a: &[T],
    ) -> u64 {
        let mut area = 0;
        let due = |stripe: &&Stripe<T>| stripe.plans.contains(&plan) && !stripe.cols.is_empty();
        for Stripe { cols, width, b, is_own, .. } in self.stripes.iter().filter(due) {
            let ready = if *is_own { self.ready.remove(&group) } else { None };
            let mut values = ready.unwrap_or_else(|| zeros(rows.len() * width));
            let sides = [rows.len(), problem.k, *width];
            gemm_columns(problem.kernel, sides, 0..cols.len(), a, b, values.as_mut_slice());
            self.pieces.push(Piece { rows: rows.clone(), cols: cols.clone(), values });
            area += rows.len() as u64 * cols.len() as u64;
        }
        area
    }

    /// All that has been computed of C, to keep no longer.
    pub(super) fn hand_out(&mut self) -> impl Iterator<Item = Piece<T>> + use<T> {
        std::mem::take(&mut self.pieces).into_iter().map(|mut piece| {
            let (rows, cols) = (piece.rows.len(), piece.cols.len());
            if piece.values.len() > rows * cols {
                piece.values = columns(&piece.values, rows, piece.values.len() / rows, 0..cols);
            }
            piece
        })
    }
}

/// Some columns of a block.
fn columns<T: Real>(block: &[T], rows: usize, width: usize, cols: Range<usize>) -> Bulk<T> {
    let mut part = Bulk::zeros(rows * cols.len());
    // Not even a row of nothing can be cut off.
    if !part.is_empty() {
        let lines = part.as_mut_slice().chunks_exact_mut(cols.len());
        lines.zip(block.chunks_exact(width)).for_each(|(line, row)| line.copy_from_slice(&row[cols.clone()]));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gemm::Kernel;
    use crate::matrix::Matrix;
    use proptest::prelude::*;

    const GROUPS: u32 = 8;

    fn problem(m: usize, k: usize, n: usize) -> Problem {
        Problem { m, k, n, kernel: Kernel::Deterministic, seeds: Some((1, 2)) }
    }

    fn group(m: usize, group: u32) -> (u32, Range<usize>) {
        (group, crate::matrix::part(m, GROUPS, group))
    }

    /// C of several PEs, where a plan comes into force after every second group, and each group is multiplied after
    /// the word of a plan or before it.
    fn with_moves(problem: &Problem, moves: &[(usize, usize, usize)], lags: bool) -> Matrix<f64> {
        let (m, k, n) = (problem.m, problem.k, problem.n);
        let mut pes: Vec<Stripes<f64>> = (0..4)
            .map(|pe| {
                let cols = crate::matrix::part(n, 4, pe);
                let groups = (0..GROUPS).map(|at| (at, group(m, at).1.len()));
                Stripes::new(cols.clone(), problem.block_b(0..k, cols), groups)
            })
            .collect();
        let multiply = |pes: &mut [Stripes<f64>], at: u32| {
            let (plan, rows) = (at / 2, group(m, at));
            let a = problem.block_a(rows.1.clone(), 0..k);
            let area: u64 = pes.iter_mut().map(|pe| pe.multiply(problem, rows.clone(), plan, &a)).sum();
            assert_eq!(area, (rows.1.len() * n) as u64);
        };
        for (plan, &(from, to, count)) in (1..).zip(moves) {
            (0..2 * u32::from(!lags)).for_each(|at| multiply(&mut pes, 2 * plan - 2 + at));
            let given = pes[from].give(plan, count, k);
            let count = given.iter().map(|(cols, _)| cols.len()).sum();
            // The taker hears of the plan in the middle of it.
            let last = given.len();
            for (at, (cols, b)) in given.into_iter().enumerate() {
                if at + 1 == last {
                    assert!(!pes[to].has(plan));
                    pes[to].expect(count);
                }
                pes[to].take(plan, cols, b);
            }
            for (pe, stripes) in pes.iter_mut().enumerate() {
                if pe != to || count == 0 {
                    stripes.expect(0);
                }
                assert!(stripes.has(plan) && !stripes.has(plan + 1));
            }
            (0..2 * u32::from(lags)).for_each(|at| multiply(&mut pes, 2 * plan - 2 + at));
        }
        (2 * u32::try_from(moves.len()).unwrap()..GROUPS).for_each(|at| multiply(&mut pes, at.min(GROUPS)));
        let mut c = Matrix::zeros(m, n).unwrap();
        let pieces = pes.iter_mut().flat_map(|pe| {
            let count = pe.piece_count();
            let pieces: Vec<_> = pe.hand_out().collect();
            assert_eq!(pieces.len(), count);
            pieces
        });
        pieces.for_each(|piece| c.set_block(piece.rows, piece.cols, &piece.values));
        c
    }

    proptest! {
        #[test]
        fn wherever_columns_go_the_product_has_the_same_bits(
            sides in (1usize..40, 0usize..20, 1usize..60),
            moves in prop::collection::vec((0usize..4, 1usize..4, 1usize..20), 3),
            lags: bool,
        ) {
            let (m, k, n) = sides;
            let problem = problem(m, k, n);
            let moves: Vec<_> = moves.into_iter().map(|(from, by, count)| (from, (from + by) % 4, count)).collect();
            let mut expected = Matrix::zeros(m, n).unwrap();
            let (a, b) = (problem.block_a::<f64>(0..m, 0..k), problem.block_b::<f64>(0..k, 0..n));
            let mut whole = zeros::<f64>(m * n);
            gemm_columns(problem.kernel, [m, k, n], 0..n, &a, &b, whole.as_mut_slice());
            expected.set_block(0..m, 0..n, &whole);
            prop_assert!(with_moves(&problem, &moves, lags) == expected);
        }
    }

    #[test]
    fn what_came_last_goes_first() {
        let problem = problem(4, 3, 12);
        let b = |cols: Range<usize>| problem.block_b::<f32>(0..3, cols);
        let mut stripes = Stripes::new(0..6, b(0..6), std::iter::empty());
        stripes.take(1, 10..12, b(10..12));
        stripes.expect(2);
        let given = stripes.give(2, 3, 3);
        assert_eq!(given, [(10..12, b(10..12)), (5..6, b(5..6))]);
        let of = |plan| -> Vec<(usize, usize)> {
            let due = stripes.stripes.iter().filter(|stripe| stripe.plans.contains(&plan));
            due.map(|stripe| (stripe.cols.start, stripe.cols.end)).collect()
        };
        assert_eq!(of(0), [(0, 6)]);
        assert_eq!(of(1), [(0, 6), (10, 12)]);
        assert_eq!(of(2), [(0, 5)]);
        assert_eq!(stripes.taken(), 2);
    }
}
