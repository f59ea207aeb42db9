//! The fastest product of two blocks for the processor at hand.
//!
//! It is that of the `gemm` crate, of the pure-Rust kernels measured the fastest on every block size from 64 to 1024 in both number
//! types, but on x86-64 processors with AVX2 and without AVX-512: there tiles of our own reach 0.90 to 1.02 of OpenBLAS, and the crate
//! 0.63 to 0.88 where the caches are slow ("Products" in apps/src/bench/MEASURED.md).

#[cfg(target_arch = "x86_64")]
mod avx2;

use gemm_common::Parallelism;

/// A matrix in memory: where its first element is, and how far it is from one row, or column, to the next.
#[derive(Clone, Copy, Debug)]
pub struct Operand<T> {
    /// The element in the first row and column.
    pub first: *const T,
    /// From one row to the next, in elements.
    pub rows_apart: isize,
    /// From one column to the next, in elements.
    pub columns_apart: isize,
}

/// C += factor A B: the sides m, k and n; A, m x k; B, k x n; the first element of C, m x n, whose columns are contiguous, and how
/// far it is from one of them to the next; and the factor.
///
/// # Safety
/// All elements of the three can be read, and those of C written, which are none of A's or B's.
pub type Product<T> = unsafe fn([usize; 3], Operand<T>, Operand<T>, (*mut T, isize), T);

macro_rules! product {
    ($name:ident, $number:ty, $by_crate:ident, $kernel:expr) => {
        /// The one for numbers of this type.
        #[must_use]
        pub fn $name() -> Product<$number> {
            #[cfg(target_arch = "x86_64")]
            if avx2::is_best() {
                return avx2::product::<$number>;
            }
            $by_crate
        }

        #[expect(unsafe_code, reason = "the kernel crate takes raw pointers")]
        unsafe fn $by_crate(
            [m, k, n]: [usize; 3],
            a: Operand<$number>,
            b: Operand<$number>,
            (c, apart): (*mut $number, isize),
            factor: $number,
        ) {
            // SAFETY: the caller answers for the elements; the kernel touches no others.
            unsafe {
                $kernel(
                    m,
                    n,
                    k,
                    c,
                    apart,
                    1,
                    true,
                    a.first,
                    a.columns_apart,
                    a.rows_apart,
                    b.first,
                    b.columns_apart,
                    b.rows_apart,
                    1.0,
                    factor,
                    false,
                    false,
                    false,
                    Parallelism::None,
                );
            }
        }
    };
}

product!(product_f32, f32, by_crate_f32, gemm_f32::gemm::f32::get_gemm_fn());
product!(product_f64, f64, by_crate_f64, gemm_f64::gemm::f64::get_gemm_fn());
