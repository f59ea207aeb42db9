//! The block product that has the same bits everywhere, at a good part of the machine's speed.
//!
//! What fixes the bits is the order of operations on one element of C: products added one by one in the order
//! of ascending k, every product and every sum rounded (no fused multiply-add). The loops are those of [`tiles`]; the
//! Rust compiler never fuses or reorders floating-point operations by itself.

use super::tiles::{self, Accumulate};
use crate::matrix::Element;
use std::ops::Range;

/// C += A B for these columns of C, row-major, with `k` columns in A and `n` in C; neither is 0.
pub(super) fn gemm<T: Element>(sides: [usize; 2], columns: &Range<usize>, a: &[T], b: &[T], c: &mut [T]) {
    tiles::run::<T, Rounded>(sides, columns, a, b, c);
}

/// A product and a sum, each rounded.
pub(super) struct Rounded;

impl<T: Element> Accumulate<T> for Rounded {
    #[inline(always)]
    fn step(mut c: T, x: T, y: T) -> T {
        c += x * y;
        c
    }
}
