//! The conventional product: B readonly on every node, chares with some rows of A each; results only.
//!
//! As in the 1995 report (section on matrix multiplication); the rows per chare are its grain. Each chare takes B
//! stripe by stripe, and a stripe is also what near the end a late PE hands to one that would be idle: the
//! chare's rows of A travel, the columns of B are everywhere, and the numbers of C come back.
//!
//! Shares follow what was measured before the run, and little has to move to correct them near its end. Every sum is
//! still made by one call of the kernel, wherever that runs, so lending changes no bits.

mod lending;

use super::cost::ROWS_MIN;
use super::problem::Problem;
use crate::kernels::gemm::gemm;
use crate::matrix::{Piece, Real, part, zeros};
use chares::loadbalance::machines::Machine;
use chares::{Array, Bulk, Callback, Chare, Ctx, Cx, Driver, Entry, Pending, Readonly, RunError};
use lending::{Lending, Loan};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Chares of rows for each PE: enough that the slowest of very unlike PEs still gets a few.
const CHARES_PER_PE: usize = 16;
/// Inside a node, where rows that are lent take no memory, there are fewer where their rows would be too few for B, which
/// each of them brings in order anew; but so many that, with the stripes, there is something to lend.
const CHARES_PER_PE_INSIDE: usize = 2;
/// Stripes of B: fine enough that PEs can end within a percent, and each wide enough for the kernel.
const STRIPES: usize = 8;
/// Lent and returned stripes go before rows that wait.
const URGENT: i32 = -1;
/// What is reckoned with when rows are lent between hosts, and inside one, bytes a second.
const WIRE_RATE: f64 = 50e6;
const WIRE_RATE_INSIDE: f64 = 500e6;

/// Rows of a chare, of `rows` in all on `pes` PEs, if the user does not say how many.
pub(super) fn default_grain(rows: usize, pes: usize) -> usize {
    rows.div_ceil(pes * CHARES_PER_PE).max(1)
}

/// The same where there is only one node.
pub(super) fn grain_inside(rows: usize, pes: usize) -> usize {
    default_grain(rows, pes).max(ROWS_MIN.min(rows.div_ceil(pes * CHARES_PER_PE_INSIDE)))
}

/// Into how many stripes B with so many columns is cut.
pub(super) fn stripe_count(columns: usize) -> u32 {
    u32::try_from(columns.clamp(1, STRIPES)).expect("a small number")
}

/// Some rows of A and of C.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Rows<T> {
    setup: RowsInit<T>,
    rows: Range<usize>,
    a: Bulk<T>,
    /// Stripe by stripe.
    c: Vec<Bulk<T>>,
    /// Stripes that are still to be multiplied here; others are done or lent.
    left: Range<u32>,
    told: Option<Callback<RowsEvent>>,
}

/// What every chare of rows is made with.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct RowsInit<T> {
    /// The product.
    pub problem: Problem,
    /// The chare `i` has the rows `bounds[i]..bounds[i + 1]`.
    pub bounds: Arc<Vec<usize>>,
    /// B, stripe by stripe, each row by row.
    pub b: Readonly<Vec<Bulk<T>>>,
}

/// The rows of A, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadRows<T>(pub Bulk<T>);

/// Multiply, and say how it goes.
#[derive(Clone, Serialize, Deserialize)]
pub struct Multiply(pub Callback<RowsEvent>);

/// Multiply the next stripe.
#[derive(Serialize, Deserialize)]
pub struct MultiplyNext;

/// Give some stripes that have not been begun to the chare `to`, on another PE.
#[derive(Serialize, Deserialize)]
pub struct Lend {
    to: u32,
    /// The PEs that give and take.
    between: [u32; 2],
    count: u32,
    /// This may come before [`Multiply`].
    told: Callback<RowsEvent>,
}

/// Multiply these rows with those stripes for their owner.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Borrow<T> {
    owner: u32,
    a: Bulk<T>,
    stripes: Range<u32>,
}

/// A stripe of C for its owner, and the chare that multiplied it.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Return<T> {
    by: u32,
    stripe: u32,
    c: Bulk<T>,
}

/// What the driver is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RowsEvent {
    /// A stripe of some rows is in its place.
    Done {
        /// The chare that multiplied it.
        by: u32,
        /// For another chare.
        is_borrowed: bool,
    },
    /// A chare has given as much as it could of what it was asked for.
    Given {
        /// Which.
        chare: u32,
        /// The PEs that give and take.
        between: [u32; 2],
        /// Stripes.
        count: u32,
    },
}

/// Send the result.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Collect<T: Real>(pub Callback<Piece<T>>);

chares::entries!(impl<T: Real> Rows<T>:
    LoadRows<T>, Multiply, MultiplyNext, Lend, Borrow<T>, Return<T>, Collect<T>);

impl<T: Real> Chare for Rows<T> {
    type Index = u32;
    type Init = RowsInit<T>;
    fn new(setup: Self::Init, ctx: &mut Ctx<'_, Self>) -> Self {
        Self::made(setup, ctx.index())
    }
}

impl<T: Real> Entry<LoadRows<T>> for Rows<T> {
    fn receive(&mut self, LoadRows(a): LoadRows<T>, _: &mut Ctx<'_, Self>) {
        self.a = a;
    }
}

impl<T: Real> Entry<Multiply> for Rows<T> {
    fn receive(&mut self, Multiply(told): Multiply, ctx: &mut Ctx<'_, Self>) {
        self.told = Some(told);
        self.go_on(ctx);
    }
}

impl<T: Real> Entry<MultiplyNext> for Rows<T> {
    fn receive(&mut self, _: MultiplyNext, ctx: &mut Ctx<'_, Self>) {
        let Some(stripe) = self.left.next() else { return };
        let (b, at) = (self.setup.b.read(ctx), stripe as usize);
        self.setup.problem.multiply(self.rows.len(), &self.a, &b[at], &mut self.c[at]);
        self.tell_done(ctx.index(), false, ctx);
        self.go_on(ctx);
    }
}

impl<T: Real> Entry<Lend> for Rows<T> {
    fn receive(&mut self, Lend { to, between, count, told }: Lend, ctx: &mut Ctx<'_, Self>) {
        self.told = Some(told);
        let count = count.min(self.left.end - self.left.start);
        let stripes = self.left.end - count..self.left.end;
        self.left.end = stripes.start;
        let owner = ctx.index();
        if count > 0 {
            let borrow = Borrow { owner, a: self.a.clone(), stripes };
            ctx.array().at(to).send_with(ctx, URGENT, borrow);
        }
        self.tell(RowsEvent::Given { chare: owner, between, count }, ctx);
    }
}

impl<T: Real> Entry<Borrow<T>> for Rows<T> {
    fn receive(&mut self, borrow: Borrow<T>, ctx: &mut Ctx<'_, Self>) {
        let (b, by) = (self.setup.b.read(ctx), ctx.index());
        let Problem { k, n, .. } = self.setup.problem;
        let rows = borrow.a.len().checked_div(k).unwrap_or(0);
        for stripe in borrow.stripes {
            let mut c = zeros(rows * part(n, stripe_count(n), stripe).len());
            self.setup.problem.multiply(rows, &borrow.a, &b[stripe as usize], &mut c);
            ctx.array().at(borrow.owner).send_with(ctx, URGENT, Return { by, stripe, c });
        }
    }
}

impl<T: Real> Entry<Return<T>> for Rows<T> {
    fn receive(&mut self, Return { by, stripe, c }: Return<T>, ctx: &mut Ctx<'_, Self>) {
        self.c[stripe as usize] = c;
        self.tell_done(by, true, ctx);
    }
}

impl<T: Real> Entry<Collect<T>> for Rows<T> {
    fn receive(&mut self, Collect(to): Collect<T>, ctx: &mut Ctx<'_, Self>) {
        let n = self.setup.problem.n;
        for (stripe, c) in (0..).zip(&self.c) {
            let (rows, cols) = (self.rows.clone(), part(n, stripe_count(n), stripe));
            to.send(ctx, Piece { rows, cols, values: c.clone() });
        }
    }
}

impl<T: Real> Rows<T> {
    /// The chares of a PE work one after the other, so that late ones have most to give.
    fn go_on(&self, ctx: &mut Ctx<'_, Self>) {
        if !self.left.is_empty() {
            let priority = i32::try_from(ctx.index()).unwrap_or(i32::MAX);
            ctx.this().send_with(ctx, priority, MultiplyNext);
        }
    }

    fn tell(&self, what: RowsEvent, ctx: &mut Ctx<'_, Self>) {
        self.told.iter().for_each(|told| told.send(ctx, what.clone()));
    }

    fn tell_done(&self, by: u32, is_borrowed: bool, ctx: &mut Ctx<'_, Self>) {
        ctx.progress(1);
        self.tell(RowsEvent::Done { by, is_borrowed }, ctx);
    }
}

/// Follows the chares of rows, `owners[i]` being the PE of chare `i`, until all stripes are in their places; lets
/// late PEs lend to early ones. The units that the chares of each PE have done.
///
/// A PE is here the chares that were made on it, wherever they have moved since.
///
/// # Errors
/// If the run ends before.
pub(super) fn follow<T: Real>(
    main: &mut Driver,
    rows: &Array<Rows<T>>,
    owners: &[u32],
    problem: &Problem,
    (to, told): (Callback<RowsEvent>, &Pending<RowsEvent>),
) -> Result<Vec<u64>, RunError> {
    let stripes = stripe_count(problem.n);
    let mut kept = vec![stripes; owners.len()];
    let mut units = vec![0; main.pe_count() as usize];
    owners.iter().for_each(|&pe| units[pe as usize] += u64::from(stripes));
    let hosts = hosts(&main.machines().nodes);
    let grain_bytes = problem.m.div_ceil(owners.len().max(1)) * problem.k * size_of::<T>();
    let transfer = |from: usize, to: usize| {
        let rate = if hosts[from] == hosts[to] { WIRE_RATE_INSIDE } else { WIRE_RATE };
        grain_bytes as f64 / rate
    };
    let (mut lending, mut left) = (Lending::new(&units), units.iter().sum::<u64>());
    let (mut elapsed, mut looked) = (0.0, Instant::now());
    // What a node with a limit may hold is all planned, what is on its way included.
    let limited =
        main.machines().nodes.iter().flat_map(|node| node.rates.iter().map(|_| node.memory.limit_bytes));
    let limited = limited.enumerate().filter(|(_, limit)| limit.is_some());
    limited.for_each(|(pe, _)| lending.set_apart(pe));
    while left > 0 {
        match told.wait(main)? {
            RowsEvent::Done { by, is_borrowed } => {
                lending.done(owners[by as usize] as usize, is_borrowed);
                left -= 1;
            }
            RowsEvent::Given { chare, between: [from, to], count } => {
                lending.given(Loan { from: from as usize, to: to as usize, units: count.into() });
                kept[chare as usize] -= count;
            }
        }
        // A run that goes on from a checkpoint lends what it lent then.
        elapsed += main.once("how long it has taken since", |_| Ok(looked.elapsed().as_secs_f64()))?;
        looked = Instant::now();
        while let Some(loan) = lending.next(elapsed, transfer) {
            let of = |pe: usize| (0u32..).zip(owners).filter(move |(_, owner)| **owner as usize == pe);
            let giver = of(loan.from).filter(|(chare, _)| kept[*chare as usize] > 0).last();
            let (Some((giver, giver_pe)), Some((taker, taker_pe))) = (giver, of(loan.to).next()) else {
                lending.given(Loan { units: 0, ..loan });
                continue;
            };
            let count = u32::try_from(loan.units).unwrap_or(u32::MAX);
            let lend = Lend { to: taker, between: [*giver_pe, *taker_pe], count, told: to };
            rows.at(giver).send(main, lend);
        }
    }
    Ok(lending.units_done())
}

/// The host of each PE.
fn hosts(nodes: &[Machine]) -> Vec<String> {
    nodes.iter().flat_map(|node| node.rates.iter().map(|_| node.host.clone())).collect()
}

/// Cuts the rows of each PE, `pes[p]..pes[p + 1]`, into like pieces of `grain` rows at most: the bounds of all
/// pieces, and the PE of each.
#[must_use]
pub fn pieces(pes: &[u64], grain: usize) -> (Vec<usize>, Vec<u32>) {
    let (mut bounds, mut owners) = (vec![0], Vec::new());
    for (pe, rows) in (0u32..).zip(pes.windows(2)) {
        let at = |bound: u64| usize::try_from(bound).expect("a row of a matrix in memory");
        let (first, len) = (at(rows[0]), at(rows[1] - rows[0]));
        let count = len.div_ceil(grain.max(1));
        bounds.extend((1..=count).map(|piece| first + len * piece / count));
        owners.extend(std::iter::repeat_n(pe, count));
    }
    (bounds, owners)
}

impl<T: Real> Rows<T> {
    fn made(setup: RowsInit<T>, at: u32) -> Self {
        let Problem { k, n, .. } = setup.problem;
        let (at, stripes) = (at as usize, stripe_count(n));
        let rows = setup.bounds[at]..setup.bounds[at + 1];
        let a = setup.problem.block_a(rows.clone(), 0..k);
        let c = (0..stripes).map(|stripe| zeros(rows.len() * part(n, stripes, stripe).len())).collect();
        Self { setup, rows, a, c, left: 0..stripes, told: None }
    }
}

impl Problem {
    /// C += A B for some rows of A and a stripe of B.
    fn multiply<T: Real>(&self, rows: usize, a: &[T], b: &[T], c: &mut Bulk<T>) {
        let columns = b.len().checked_div(self.k).unwrap_or(0);
        gemm(self.kernel, rows, self.k, columns, a, b, c.as_mut_slice());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gemm::Kernel;
    use chares::{InProcess, Placement, Program};

    #[test]
    fn rows_that_are_to_lend_before_they_may_begin_lose_nothing() {
        let drive = |main: &mut Driver| {
            let problem = Problem { m: 6, k: 4, n: 5, kernel: Kernel::Plain, seeds: Some((1, 2)) };
            let b = (0..5).map(|at| problem.block_b(0..4, part(5, 5, at))).collect();
            let b = main.readonly::<Vec<Bulk<f64>>>(b)?;
            let setup = RowsInit { problem, bounds: Arc::new(vec![0, 3, 6]), b };
            let rows = main.array_placed::<Rows<f64>>(2, setup, Placement::on_pes([0, 1]));
            main.init_over()?;
            let (to, told) = main.pending();
            rows.at(0).send(main, Lend { to: 1, between: [0, 1], count: 2, told: to });
            main.quiescence()?;
            rows.broadcast(main, Multiply(to));
            let mut done = [[0; 2]; 2];
            let mut given = 0;
            for _ in 0..11 {
                match told.wait(main)? {
                    RowsEvent::Done { by, is_borrowed } => done[by as usize][usize::from(is_borrowed)] += 1,
                    RowsEvent::Given { count, .. } => given += count,
                }
            }
            assert_eq!((done, given), ([[3, 0], [5, 2]], 2));
            Ok::<(), RunError>(())
        };
        let program = Program::new("rows", "1").chare::<Rows<f64>>();
        program.run_in_process(&InProcess::new(&[1, 1]), drive).unwrap();
    }

    #[test]
    fn inside_a_node_chares_have_many_rows_unless_that_leaves_a_pe_too_few_of_them() {
        let grains =
            |of: &[(usize, usize)]| of.iter().map(|&(m, pes)| grain_inside(m, pes)).collect::<Vec<_>>();
        assert_eq!(grains(&[(40_000, 2), (8192, 2), (2048, 1)]), [1250, 500, 500]);
        assert_eq!(grains(&[(1024, 2), (2048, 16), (3, 4), (0, 1)]), [256, 64, 1, 1]);
    }

    #[test]
    fn pieces_keep_the_share_of_each_pe_to_the_row() {
        assert_eq!(pieces(&[0, 5, 5, 11], 2), (vec![0, 1, 3, 5, 7, 9, 11], vec![0, 0, 0, 2, 2, 2]));
        assert_eq!(pieces(&[0, 3], 100), (vec![0, 3], vec![0]));
        assert_eq!(pieces(&[0, 0], 4), (vec![0], vec![]));
    }
}
