//! Loops over the tiles of a block product, for any two operations that take the places of product and sum.
//!
//! A tile of C stays in registers while k runs, and a panel of B is copied so that it streams. One element of C takes
//! up its terms one by one in the order of ascending k. Whatever is left free, which elements are worked on side by
//! side, is chosen for speed: plain loops over fixed-size arrays become vector instructions; `pulp` picks the widest
//! set that this machine has and compiles the same loops for each.

use pulp::{Arch, Simd, WithSimd};
use std::marker::PhantomData;
use std::ops::Range;

/// Depth of a panel of B: with the widest tile, 32 KiB, which is what a first-level cache holds.
const DEPTH: usize = 256;

/// What an element of C becomes by a term of its sum.
pub(super) trait Accumulate<T: Copy> {
    /// By the term of `x` from A and `y` from B. Has to be inlined always, to be compiled for each set.
    fn step(c: T, x: T, y: T) -> T;

    /// What a line of C becomes by `x` and a line of B, which have a whole number of vectors; overridden where the
    /// compiler does not make vector instructions of the loop.
    #[inline(always)]
    fn line<W: Simd, const NR: usize>(_: W, c: &mut [T; NR], x: T, line: &[T; NR]) {
        for (c, y) in c.iter_mut().zip(line) {
            *c = Self::step(*c, x, *y);
        }
    }
}

/// Takes up all terms in these columns of C, row-major, with `k` columns in A and `n` in C; neither is 0.
pub(super) fn run<T: Copy, S: Accumulate<T>>(
    [k, n]: [usize; 2],
    columns: &Range<usize>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    Arch::new().dispatch(Product::<T, S> { k, n, columns, a, b, c, step: PhantomData });
}

struct Product<'a, T, S> {
    k: usize,
    n: usize,
    columns: &'a Range<usize>,
    a: &'a [T],
    b: &'a [T],
    c: &'a mut [T],
    step: PhantomData<S>,
}

impl<T: Copy, S: Accumulate<T>> WithSimd for Product<'_, T, S> {
    type Output = ();

    /// Tiles as big as the registers: 16 vectors of C with 32 registers of 64 bytes, else 8 of 16.
    #[inline(always)]
    fn with_simd<W: Simd>(self, simd: W) {
        match (size_of::<W::f64s>(), size_of::<T>()) {
            (64, 8) => self.run::<W, 8, 16>(simd),
            (64, _) => self.run::<W, 8, 32>(simd),
            (32, 8) => self.run::<W, 4, 8>(simd),
            (32, _) => self.run::<W, 4, 16>(simd),
            (_, 8) => self.run::<W, 4, 4>(simd),
            (_, _) => self.run::<W, 4, 8>(simd),
        }
    }
}

impl<T: Copy, S: Accumulate<T>> Product<'_, T, S> {
    /// Panels of B outside, tiles of C inside: a panel is copied once and used for all rows of A.
    #[inline(always)]
    fn run<W: Simd, const MR: usize, const NR: usize>(self, simd: W) {
        let Self { k, n, columns, a, b, c, .. } = self;
        let rows = c.len() / n;
        let mut panel = vec![[b[0]; NR]; DEPTH.min(k)];
        for p in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - p);
            for j in columns.clone().step_by(NR) {
                let width = NR.min(columns.end - j);
                for (q, line) in panel[..depth].iter_mut().enumerate() {
                    line[..width].copy_from_slice(&b[(p + q) * n + j..][..width]);
                }
                let (mut i, panel) = (0, &panel[..depth]);
                while i + MR <= rows {
                    tile::<T, S, W, MR, NR>(simd, &a[i * k + p..], k, panel, &mut c[i * n + j..], n, width);
                    i += MR;
                }
                while i < rows {
                    tile::<T, S, W, 1, NR>(simd, &a[i * k + p..], k, panel, &mut c[i * n + j..], n, width);
                    i += 1;
                }
            }
        }
    }
}

/// MR rows of `width` elements of C take up the terms of `panel.len()` steps.
#[inline(always)]
fn tile<T: Copy, S: Accumulate<T>, W: Simd, const MR: usize, const NR: usize>(
    simd: W,
    a: &[T],
    a_stride: usize,
    panel: &[[T; NR]],
    c: &mut [T],
    c_stride: usize,
    width: usize,
) {
    let rows: [&[T]; MR] = std::array::from_fn(|r| &a[r * a_stride..][..panel.len()]);
    let mut sums = [[c[0]; NR]; MR];
    for (r, line) in sums.iter_mut().enumerate() {
        line[..width].copy_from_slice(&c[r * c_stride..][..width]);
    }
    for (q, line) in panel.iter().enumerate() {
        for r in 0..MR {
            S::line(simd, &mut sums[r], rows[r][q], line);
        }
    }
    for (r, line) in sums.iter().enumerate() {
        c[r * c_stride..][..width].copy_from_slice(&line[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::deterministic::Rounded;
    use crate::kernels::gemm::{self, Kernel};
    use crate::kernels::min_plus::Least;
    use crate::matrix::{Element, generate};

    fn assert_tile<T: Element, S: Accumulate<T>, const MR: usize, const NR: usize>(
        expect: fn(usize, usize, &[T], &[T], &mut [T]),
    ) {
        for (m, k, n) in [(1, 1, 1), (3, 300, 7), (9, 513, 33), (17, 64, 65), (12, 5, 31)] {
            let (a, b) = (generate::block::<T>(1, 0..m, 0..k), generate::block::<T>(2, 0..k, 0..n));
            let mut c = generate::block::<T>(3, 0..m, 0..n);
            let mut expected = c.clone();
            expect(k, n, &a, &b, &mut expected);
            let product: Product<'_, T, S> =
                Product { k, n, columns: &(0..n), a: &a, b: &b, c: &mut c, step: PhantomData };
            product.run::<pulp::Scalar, MR, NR>(pulp::Scalar);
            assert!(c == expected, "{m}x{k}x{n} in tiles of {MR}x{NR}");
        }
    }

    fn plain<T: Element>(k: usize, n: usize, a: &[T], b: &[T], c: &mut [T]) {
        gemm::gemm(Kernel::Plain, c.len() / n, k, n, a, b, c);
    }

    fn plain_least<T: Element>(k: usize, n: usize, a: &[T], b: &[T], c: &mut [T]) {
        for (at, c) in c.iter_mut().enumerate() {
            let sums = (0..k).map(|p| a[at / n * k + p] + b[p * n + at % n]);
            *c = sums.fold(*c, |least, sum| if sum < least { sum } else { least });
        }
    }

    /// The tiles of machines that the tests do not run on, compiled for this one.
    #[test]
    fn every_tile_gives_the_same_bits() {
        assert_tile::<f64, Rounded, 8, 16>(plain);
        assert_tile::<f32, Rounded, 8, 32>(plain);
        assert_tile::<f64, Rounded, 4, 8>(plain);
        assert_tile::<f32, Rounded, 4, 16>(plain);
        assert_tile::<f64, Rounded, 4, 4>(plain);
        assert_tile::<f32, Rounded, 4, 8>(plain);
        assert_tile::<f64, Least, 8, 16>(plain_least);
        assert_tile::<f32, Least, 4, 16>(plain_least);
        assert_tile::<f64, Least, 4, 4>(plain_least);
    }
}
