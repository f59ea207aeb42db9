//! The product of two blocks where sums take the place of products and the least that of sums: what shortest paths
//! by way of a set of vertices are made of.
//!
//! As in [`super::gemm`] for ordinary products, a tile of C stays in registers while the inner side runs, and a panel
//! of B is copied so that it streams. Plain loops over fixed-size arrays become vector instructions; `pulp` picks the
//! widest set that this machine has. The least of some numbers is the same in whatever order they are looked at, so
//! tiles of any size give the same bits.

use pulp::{Arch, Simd, WithSimd};

/// Depth of a panel of B.
const DEPTH: usize = 256;

/// A number that has sums and can be compared.
pub trait MinPlus: Copy + PartialOrd + Send + Sync {
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

macro_rules! min_plus {
    ($($number:ty: |$a:ident, $b:ident| $plus:expr;)*) => { $(
        impl MinPlus for $number {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $plus
            }
        }
    )* };
}
min_plus! {
    i32: |a, b| a.wrapping_add(b);
    i64: |a, b| a.wrapping_add(b);
    f32: |a, b| a + b;
    f64: |a, b| a + b;
}

/// `c[i][j]` becomes the least of itself and all `a[i][p] + b[p][j]`; the blocks are row-major, A with `k` columns,
/// B and C with `n`.
///
/// # Panics
/// If the lengths of the blocks are not those of such rows and columns.
pub fn min_plus<T: MinPlus>(k: usize, n: usize, a: &[T], b: &[T], c: &mut [T]) {
    if k == 0 || n == 0 || c.is_empty() {
        return;
    }
    assert!(
        c.len().is_multiple_of(n) && a.len() == c.len() / n * k && b.len() == k * n,
        "blocks of other sides"
    );
    Arch::new().dispatch(Product { k, n, a, b, c });
}

/// The same, and `last[i][j]` becomes `last_b[p][j]` where the first least sum by way of `p` is less than what was
/// there: the last vertex before `j`.
///
/// # Panics
/// If the lengths of the blocks are not those of such rows and columns.
pub fn min_plus_with_last<T: MinPlus>(
    [k, n]: [usize; 2],
    a: &[T],
    (b, last_b): (&[T], &[i32]),
    (c, last): (&mut [T], &mut [i32]),
) {
    if k == 0 || n == 0 {
        return;
    }
    assert!(b.len() == k * n && last_b.len() == b.len() && last.len() == c.len(), "blocks of other sides");
    Arch::new().dispatch(WithLast { n, a, b, last_b, c, last, k });
}

struct Product<'a, T> {
    k: usize,
    n: usize,
    a: &'a [T],
    b: &'a [T],
    c: &'a mut [T],
}

impl<T: MinPlus> WithSimd for Product<'_, T> {
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

impl<T: MinPlus> Product<'_, T> {
    /// Panels of B outside, tiles of C inside: a panel is copied once and used for all rows of A.
    #[inline(always)]
    fn run<const MR: usize, const NR: usize>(self) {
        let Self { k, n, a, b, c } = self;
        let rows = c.len() / n;
        let mut panel = vec![[b[0]; NR]; DEPTH.min(k)];
        for p in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - p);
            for j in (0..n).step_by(NR) {
                let width = NR.min(n - j);
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

/// MR rows of `width` numbers of C take up the sums of `panel.len()` steps.
#[inline(always)]
fn tile<T: MinPlus, const MR: usize, const NR: usize>(
    a: &[T],
    a_stride: usize,
    panel: &[[T; NR]],
    c: &mut [T],
    c_stride: usize,
    width: usize,
) {
    let rows: [&[T]; MR] = std::array::from_fn(|r| &a[r * a_stride..][..panel.len()]);
    let mut least = [[c[0]; NR]; MR];
    for (r, line) in least.iter_mut().enumerate() {
        line[..width].copy_from_slice(&c[r * c_stride..][..width]);
    }
    for (q, line) in panel.iter().enumerate() {
        for r in 0..MR {
            let x = rows[r][q];
            for s in 0..NR {
                let sum = x.plus(line[s]);
                least[r][s] = if sum < least[r][s] { sum } else { least[r][s] };
            }
        }
    }
    for (r, line) in least.iter().enumerate() {
        c[r * c_stride..][..width].copy_from_slice(&line[..width]);
    }
}

struct WithLast<'a, T> {
    k: usize,
    n: usize,
    a: &'a [T],
    b: &'a [T],
    last_b: &'a [i32],
    c: &'a mut [T],
    last: &'a mut [i32],
}

impl<T: MinPlus> WithSimd for WithLast<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { k, n, a, b, last_b, c, last } = self;
        for ((a, c), last) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)).zip(last.chunks_exact_mut(n)) {
            for ((x, b), last_b) in a.iter().zip(b.chunks_exact(n)).zip(last_b.chunks_exact(n)) {
                for (((c, last), y), last_b) in c.iter_mut().zip(last.iter_mut()).zip(b).zip(last_b) {
                    let sum = x.plus(*y);
                    let is_less = sum < *c;
                    *c = if is_less { sum } else { *c };
                    *last = if is_less { *last_b } else { *last };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::generate;

    fn plain(k: usize, n: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
        for (a, c) in a.chunks(k).zip(c.chunks_mut(n)) {
            for (j, c) in c.iter_mut().enumerate() {
                *c = (0..k).map(|p| a[p] + b[p * n + j]).fold(*c, f64::min);
            }
        }
    }

    /// The tiles of machines that the tests do not run on, compiled for this one.
    #[test]
    fn every_tile_gives_the_same_bits() {
        for (m, k, n) in [(1, 1, 1), (3, 300, 7), (9, 513, 33), (17, 64, 65), (12, 5, 31)] {
            let (a, b) = (generate::block::<f64>(1, 0..m, 0..k), generate::block::<f64>(2, 0..k, 0..n));
            let first = generate::block::<f64>(3, 0..m, 0..n);
            let mut expected = first.clone();
            plain(k, n, &a, &b, &mut expected);
            let assert = |run: fn(Product<'_, f64>), what: &str| {
                let mut c = first.clone();
                run(Product { k, n, a: &a, b: &b, c: &mut c });
                assert!(c == expected, "{m}x{k}x{n}, {what}");
            };
            assert(|p| p.run::<8, 16>(), "8 x 16");
            assert(|p| p.run::<4, 8>(), "4 x 8");
            assert(|p| p.run::<4, 4>(), "4 x 4");
            assert(|p| min_plus(p.k, p.n, p.a, p.b, p.c), "this machine's");
            let (mut c, mut last) = (first.clone(), vec![-1; m * n]);
            let last_b: Vec<i32> = (0..(k * n) as i32).map(|at| at / n as i32).collect();
            min_plus_with_last([k, n], &a, (&b, &last_b), (&mut c, &mut last));
            assert!(c == expected);
            for (at, &p) in last.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let sum = (p >= 0).then(|| a[i * k + p as usize] + b[p as usize * n + j]);
                assert_eq!(sum.unwrap_or(first[at]), expected[at]);
            }
        }
    }

    #[test]
    fn whole_numbers_are_taken_too() {
        let mut c = [9, 9, 9, 1];
        min_plus(2, 2, &[1, 2, 3, 4], &[5, -6, 7, 8], &mut c);
        assert_eq!(c, [6, -5, 8, -3]);
        let mut wide = [9i64; 4];
        min_plus(2, 2, &[1, 2, 3, 4], &[5, -6, 7, 8], &mut wide);
        assert_eq!(wide, [6, -5, 8, -3]);
    }
}
