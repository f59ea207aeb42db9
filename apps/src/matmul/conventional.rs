//! The conventional product: B readonly on every node, chares with some rows of A each; results only.
//!
//! As in the 1995 report (section on matrix multiplication); the rows per chare are its grain.

use super::problem::{Piece, Problem, Real, zeros};
use crate::kernels::gemm::gemm;
use chares::{Bulk, Callback, Chare, Ctx, Entry, Readonly};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Chares of rows for each PE: enough that the slowest of very unlike PEs still gets a few.
const CHARES_PER_PE: usize = 16;

/// Rows of a chare, of `rows` in all on `pes` PEs, if the user does not say how many.
pub(super) fn default_grain(rows: usize, pes: usize) -> usize {
    rows.div_ceil(pes * CHARES_PER_PE).max(1)
}

/// Some rows of A and of C.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Rows<T> {
    setup: Setup<T>,
    rows: Range<usize>,
    a: Bulk<T>,
    c: Bulk<T>,
}

/// What every chare of rows is made with.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Setup<T> {
    /// The product.
    pub problem: Problem,
    /// The chare `i` has the rows `bounds[i]..bounds[i + 1]`.
    pub bounds: Arc<Vec<usize>>,
    /// B, row by row.
    pub b: Readonly<Bulk<T>>,
}

/// The rows of A, where they are not generated.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct LoadRows<T>(pub Bulk<T>);

/// Multiply, and say so when done.
#[derive(Clone, Serialize, Deserialize)]
pub struct Multiply(pub Callback<u32>);

/// Send the result.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Real", deserialize = "T: Real"))]
pub struct Collect<T: Real>(pub Callback<Piece<T>>);

chares::entries!(Rows<f32> as "Rows32": LoadRows<f32> as "Load", Multiply, Collect<f32> as "Collect");
chares::entries!(Rows<f64> as "Rows64": LoadRows<f64> as "Load", Multiply, Collect<f64> as "Collect");

macro_rules! rows_of {
    ($($real:ty)*) => { $(
        impl Chare for Rows<$real> {
            type Index = u32;
            type Init = Setup<$real>;
            fn new(setup: Self::Init, ctx: &mut Ctx<'_, Self>) -> Self {
                Self::made(setup, ctx.index())
            }
        }
        impl Entry<LoadRows<$real>> for Rows<$real> {
            fn receive(&mut self, LoadRows(a): LoadRows<$real>, _: &mut Ctx<'_, Self>) {
                self.a = a;
            }
        }
        impl Entry<Multiply> for Rows<$real> {
            fn receive(&mut self, Multiply(done): Multiply, ctx: &mut Ctx<'_, Self>) {
                let b = self.setup.b.read(ctx);
                self.multiply(&b);
                ctx.progress(1);
                let index = ctx.index();
                done.send(ctx, index);
            }
        }
        impl Entry<Collect<$real>> for Rows<$real> {
            fn receive(&mut self, Collect(to): Collect<$real>, ctx: &mut Ctx<'_, Self>) {
                let (rows, cols) = (self.rows.clone(), 0..self.setup.problem.n);
                to.send(ctx, Piece { rows, cols, values: self.c.clone() });
            }
        }
    )* };
}
rows_of!(f32 f64);

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
    fn made(setup: Setup<T>, at: u32) -> Self {
        let Problem { k, n, .. } = setup.problem;
        let at = at as usize;
        let rows = setup.bounds[at]..setup.bounds[at + 1];
        let a = setup.problem.block_a(rows.clone(), 0..k);
        let c = zeros(rows.len() * n);
        Self { setup, rows, a, c }
    }

    fn multiply(&mut self, b: &[T]) {
        let Problem { k, n, kernel, .. } = self.setup.problem;
        gemm(kernel, self.rows.len(), k, n, &self.a, b, self.c.as_mut_slice());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_the_share_of_each_pe_to_the_row() {
        assert_eq!(pieces(&[0, 5, 5, 11], 2), (vec![0, 1, 3, 5, 7, 9, 11], vec![0, 0, 0, 2, 2, 2]));
        assert_eq!(pieces(&[0, 3], 100), (vec![0, 3], vec![0]));
        assert_eq!(pieces(&[0, 0], 4), (vec![0], vec![]));
    }
}
