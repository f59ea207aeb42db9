//! The product of two blocks where sums take the place of products and the least that of sums: what shortest paths
//! by way of a set of vertices are made of.
//!
//! The least of some numbers is the same in whatever order they are looked at, so that tiles of any size give the same
//! bits (see `kernels::tiles`).

use super::tiles::{self, Accumulate};
use pulp::{Arch, Simd, WithSimd};

/// A number that has sums and can be compared.
pub trait MinPlus: Copy + PartialOrd + Send + Sync {
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// Each of `c` becomes the lesser of itself and the sum of `x` and one of the line, which have a whole number of
    /// vectors.
    #[inline(always)]
    fn lesser<W: Simd, const NR: usize>(_: W, c: &mut [Self; NR], x: Self, line: &[Self; NR]) {
        for (c, y) in c.iter_mut().zip(line) {
            *c = Least::step(*c, x, *y);
        }
    }
}

macro_rules! whole {
    ($($number:ty)*) => { $(
        impl MinPlus for $number {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )* };
}
whole!(i32 i64);

/// Of loops over these the compiler makes one instruction a number (f64) or seldom more.
macro_rules! real {
    ($($number:ty, $vectors:ident, $vectors_mut:ident, $splat:ident, $add:ident, $min:ident;)*) => { $(
        impl MinPlus for $number {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn lesser<W: Simd, const NR: usize>(simd: W, c: &mut [Self; NR], x: Self, line: &[Self; NR]) {
                let x = simd.$splat(x);
                let ((c, _), (line, _)) = (W::$vectors_mut(c), W::$vectors(line));
                for (c, y) in c.iter_mut().zip(line) {
                    *c = simd.$min(simd.$add(x, *y), *c);
                }
            }
        }
    )* };
}
real! {
    f32, as_simd_f32s, as_mut_simd_f32s, splat_f32s, add_f32s, min_f32s;
    f64, as_simd_f64s, as_mut_simd_f64s, splat_f64s, add_f64s, min_f64s;
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
    tiles::run::<T, Least>([k, n], &(0..n), a, b, c);
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

/// The lesser of what is there and a sum.
pub(super) struct Least;

impl<T: MinPlus> Accumulate<T> for Least {
    #[inline(always)]
    fn step(c: T, x: T, y: T) -> T {
        let sum = x.plus(y);
        if sum < c { sum } else { c }
    }

    #[inline(always)]
    fn line<W: Simd, const NR: usize>(simd: W, c: &mut [T; NR], x: T, line: &[T; NR]) {
        T::lesser(simd, c, x, line);
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

    #[test]
    fn the_last_vertex_is_that_of_the_first_least_sum() {
        let (m, k, n) = (9, 70, 33);
        let (a, b) = (generate::block::<f64>(1, 0..m, 0..k), generate::block::<f64>(2, 0..k, 0..n));
        let mut first = generate::block::<f64>(3, 0..m, 0..n);
        first[7] = -3.0;
        let (mut c, mut expected, mut last) = (first.clone(), first.clone(), vec![-1; m * n]);
        min_plus(k, n, &a, &b, &mut expected);
        let last_b: Vec<i32> = (0..(k * n) as i32).map(|at| at / n as i32).collect();
        min_plus_with_last([k, n], &a, (&b, &last_b), (&mut c, &mut last));
        assert!(c == expected && last.contains(&-1));
        for (at, &p) in last.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let sum = |p: i32| a[i * k + p as usize] + b[p as usize * n + j];
            assert_eq!(if p >= 0 { sum(p) } else { first[at] }, expected[at]);
            assert!((0..p).all(|before| sum(before) > expected[at]));
        }
    }

    #[test]
    fn empty_sides_leave_c_as_it_was() {
        let (mut c, mut last) = ([3, 4], [7, 8]);
        min_plus(0, 2, &[], &[], &mut c);
        min_plus_with_last([0, 2], &[], (&[], &[]), (&mut c, &mut last));
        assert_eq!((c, last), ([3, 4], [7, 8]));
        min_plus::<i32>(2, 0, &[1, 2], &[], &mut []);
        min_plus_with_last::<i32>([2, 0], &[1, 2], (&[], &[]), (&mut [], &mut []));
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
