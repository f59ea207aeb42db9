//! The conventional product: B readonly on every node, chares with some rows of A each; results only.
//!
//! As in the 1995 report (section on matrix multiplication); the rows per chare are its grain.

use super::problem::{Piece, Problem, Real};
use crate::kernels::gemm::gemm;
use chares::{Bulk, Callback, Chare, Ctx, Entry, Readonly};
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
    /// Rows per chare; the last may have fewer.
    pub grain: usize,
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

impl<T: Real> Rows<T> {
    fn made(setup: Setup<T>, at: u32) -> Self {
        let Problem { m, k, n, .. } = setup.problem;
        let first = at as usize * setup.grain;
        let rows = first..(first + setup.grain).min(m);
        let a = setup.problem.block_a(rows.clone(), 0..k);
        let c = Bulk::zeros(rows.len() * n);
        Self { setup, rows, a, c }
    }

    fn multiply(&mut self, b: &[T]) {
        let Problem { k, n, kernel, .. } = self.setup.problem;
        gemm(kernel, self.rows.len(), k, n, &self.a, b, self.c.as_mut_slice());
    }
}
