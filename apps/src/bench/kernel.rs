//! The block product on one core, against what the core can do at most: fused multiply-adds on registers alone.

use super::measure::Figures;
use crate::kernels::gemm::{Kernel, gemm};
use crate::matrix::{Element, generate};
use pulp::{Arch, Simd, WithSimd};
use std::hint::black_box;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// Sides of the blocks.
const SIDE: usize = 1024;
/// The same for going through it once.
const BRIEF_SIDE: usize = 64;
/// How long a stretch is to take.
const STRETCH: Duration = Duration::from_millis(100);
/// Sums that are independent of each other: units that take a pair of operands each half-cycle and give the result
/// after four cycles need eight; with the two factors twelve still fit into 16 registers.
const SUMS: usize = 12;
/// Additions to each sum between two looks at the clock.
const ROUNDS: u64 = 100_000;

/// Figures of all six operations: peak, product and ratio are of the same moment.
pub(super) fn measure(repeats: usize, is_brief: bool) -> Figures {
    let mut figures = of_type::<f64>("f64", repeats, is_brief);
    figures.extend(of_type::<f32>("f32", repeats, is_brief));
    figures
}

fn of_type<T: Element + Lanes>(dtype: &str, repeats: usize, is_brief: bool) -> Figures {
    let (n, stretch) = if is_brief { (BRIEF_SIDE, Duration::ZERO) } else { (SIDE, STRETCH) };
    let [a, b, mut c] = [1, 2, 3].map(|seed| generate::block::<T>(seed, 0..n, 0..n));
    let product_flops = 2.0 * (n as f64).powi(3);
    let mut product = || {
        gemm(Kernel::Fast, n, n, n, &a, &b, &mut c);
        product_flops
    };
    let arch = Arch::new();
    let mut peak = || arch.dispatch(Peak::<T>(PhantomData));
    // The clock has to get used to wide vectors first.
    rate(stretch, &mut peak);
    rate(stretch, &mut product);
    let (mut peaks, mut products, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repeats {
        let (most, reached) = (rate(stretch, &mut peak), rate(stretch, &mut product));
        peaks.push(most);
        products.push(reached);
        parts.push(100.0 * reached / most);
    }
    [("peak", peaks), ("gemm", products), ("gemm-of-peak", parts)]
        .map(|(what, figures)| (format!("kernel/{dtype}/{what}"), figures))
        .into()
}

/// 10^9 operations in a second of `work`, which is repeated for so long and tells how many operations it did.
fn rate(stretch: Duration, work: &mut dyn FnMut() -> f64) -> f64 {
    let (start, mut flops) = (Instant::now(), 0.0);
    loop {
        flops += work();
        let elapsed = start.elapsed();
        if elapsed >= stretch {
            return flops / elapsed.as_nanos() as f64;
        }
    }
}

/// Number types of which a vector unit takes several at once.
trait Lanes {
    /// Adds products to independent sums; how many operations these were.
    fn multiply_and_add<S: Simd>(simd: S) -> f64;
}

/// The same for a type and its functions.
macro_rules! lanes {
    ($type:ty, $vector:ident, $splat:ident, $mul_add:ident) => {
        impl Lanes for $type {
            #[inline(always)]
            fn multiply_and_add<S: Simd>(simd: S) -> f64 {
                // Near one, so that sums neither vanish nor overflow.
                let factor = simd.$splat(black_box(0.999_9));
                let term = simd.$splat(black_box(0.000_1));
                let mut sums = [simd.$splat(black_box(0.5)); SUMS];
                for _ in 0..ROUNDS {
                    for sum in &mut sums {
                        *sum = simd.$mul_add(*sum, factor, term);
                    }
                }
                black_box(sums);
                let lanes = size_of::<S::$vector>() / size_of::<$type>();
                (2 * SUMS * lanes) as f64 * ROUNDS as f64
            }
        }
    };
}
lanes!(f64, f64s, splat_f64s, mul_add_f64s);
lanes!(f32, f32s, splat_f32s, mul_add_f32s);

struct Peak<T>(PhantomData<T>);

impl<T: Lanes> WithSimd for Peak<T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        T::multiply_and_add(simd)
    }
}
