//! The block product that has the same bits everywhere, at a good part of the machine's speed.
//!
//! What fixes the bits is the order of operations on one element of C: products added one by one in the order
//! of ascending k, every product and every sum rounded (no fused multiply-add). Whatever is left free, which
//! elements are worked on side by side, is chosen for speed: a tile of C stays in registers while k runs, and
//! a panel of B is copied so that it streams. Plain loops over fixed-size arrays become vector instructions;
//! `pulp` picks the widest set that this machine has, compiles the same loops for each, and the Rust compiler
//! never fuses or reorders floating-point operations by itself.

use crate::matrix::Element;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Depth of a panel of B: with the widest tile, 32 KiB, which is what a first-level cache holds.
const DEPTH: usize = 256;

/// C += A B for these columns of C, row-major, with `k` columns in A and `n` in C; neither is 0.
pub(super) fn gemm<T: Element>([k, n]: [usize; 2], columns: &Range<usize>, a: &[T], b: &[T], c: &mut [T]) {
    Arch::new().dispatch(Product { k, n, columns, a, b, c });
}

struct Product<'a, T> {
    k: usize,
    n: usize,
    columns: &'a Range<usize>,
    a: &'a [T],
    b: &'a [T],
    c: &'a mut [T],
}

impl<T: Element> WithSimd for Product<'_, T> {
    type Output = ();

    /// Tiles as big as the registers: 16 vectors of C with 32 registers of 64 bytes, else 8 of 16.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match (size_of::<S::f64s>(), size_of::<T>()) {
            (64, 8) => self.run::<8, 16>(),
            (64, _) => self.run::<8, 32>(),
            (32, 8) => self.run::<4, 8>(),
            (32, _) => self.run::<4, 16>(),
            (_, 8) => self.run::<4, 4>(),
            (_, _) => self.run::<4, 8>(),
        }
    }
}

impl<T: Element> Product<'_, T> {
    /// Panels of B outside, tiles of C inside: a panel is copied once and used for all rows of A.
    #[inline(always)]
    fn run<const MR: usize, const NR: usize>(self) {
        let Self { k, n, columns, a, b, c } = self;
        let rows = c.len() / n;
        let mut panel = vec![[T::zeroed(); NR]; DEPTH.min(k)];
        for p in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - p);
            for j in columns.clone().step_by(NR) {
                let width = NR.min(columns.end - j);
                for (q, line) in panel[..depth].iter_mut().enumerate() {
                    line[..width].copy_from_slice(&b[(p + q) * n + j..][..width]);
                }
                let mut i = 0;
                while i + MR <= rows {
                    tile::<T, MR, NR>(&a[i * k + p..], k, &panel[..depth], &mut c[i * n + j..], n, width);
                    i += MR;
                }
                while i < rows {
                    tile::<T, 1, NR>(&a[i * k + p..], k, &panel[..depth], &mut c[i * n + j..], n, width);
                    i += 1;
                }
            }
        }
    }
}

/// MR rows of `width` elements of C take up the products of `panel.len()` steps.
#[inline(always)]
fn tile<T: Element, const MR: usize, const NR: usize>(
    a: &[T],
    a_stride: usize,
    panel: &[[T; NR]],
    c: &mut [T],
    c_stride: usize,
    width: usize,
) {
    let rows: [&[T]; MR] = std::array::from_fn(|r| &a[r * a_stride..][..panel.len()]);
    let mut sums = [[T::zeroed(); NR]; MR];
    for (r, line) in sums.iter_mut().enumerate() {
        line[..width].copy_from_slice(&c[r * c_stride..][..width]);
    }
    for (q, line) in panel.iter().enumerate() {
        for r in 0..MR {
            let x = rows[r][q];
            for s in 0..NR {
                sums[r][s] += x * line[s];
            }
        }
    }
    for (r, line) in sums.iter().enumerate() {
        c[r * c_stride..][..width].copy_from_slice(&line[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gemm::{self, Kernel};
    use crate::matrix::generate;

    fn assert_tile<T: Element, const MR: usize, const NR: usize>() {
        for (m, k, n) in [(1, 1, 1), (3, 300, 7), (9, 513, 33), (17, 64, 65), (12, 5, 31)] {
            let (a, b) = (generate::block::<T>(1, 0..m, 0..k), generate::block::<T>(2, 0..k, 0..n));
            let mut c = generate::block::<T>(3, 0..m, 0..n);
            let mut expected = c.clone();
            gemm::gemm(Kernel::Plain, m, k, n, &a, &b, &mut expected);
            Product { k, n, columns: &(0..n), a: &a, b: &b, c: &mut c }.run::<MR, NR>();
            assert!(c == expected, "{m}x{k}x{n} in tiles of {MR}x{NR}");
        }
    }

    /// The tiles of machines that the tests do not run on, compiled for this one.
    #[test]
    fn every_tile_gives_the_same_bits() {
        assert_tile::<f64, 8, 16>();
        assert_tile::<f32, 8, 32>();
        assert_tile::<f64, 4, 8>();
        assert_tile::<f32, 4, 16>();
        assert_tile::<f64, 4, 4>();
        assert_tile::<f32, 4, 8>();
    }
}
