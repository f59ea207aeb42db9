//! The side of a product that takes about so long on this machine, for a first look at it.

use crate::trial;

/// A matrix of the product takes no more than this, however fast the machine is.
const MATRIX_BYTES_MAX: usize = 1 << 30;
/// Sides are a multiple of this, so that all blocks of a usual grid are alike.
const SIDE_UNIT: usize = 192;

/// The side of a product of square matrices that all cores of this machine together compute in `seconds`: a multiple of
/// 192, with at most 1 GiB for each matrix. `make_kernel` makes what each core runs; a call gives the floating-point
/// operations that it did.
pub(super) fn side_for<K: FnMut() -> f64>(
    seconds: f64,
    number_bytes: usize,
    make_kernel: impl Fn() -> K + Sync,
) -> usize {
    let most = ((MATRIX_BYTES_MAX / number_bytes) as f64).sqrt();
    let side = (seconds * trial::rate(make_kernel) / 2.0).cbrt().min(most) as usize;
    (side / SIDE_UNIT).max(1) * SIDE_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_makes_larger_products_up_to_a_gibibyte() {
        let kernel = || || 1e9;
        let sides: Vec<_> = [1e-9, 1e12].iter().map(|&seconds| side_for(seconds, 4, kernel)).collect();
        assert!(sides[0] < sides[1], "{sides:?}");
        assert_eq!(sides[1], 16_384 / SIDE_UNIT * SIDE_UNIT);
        assert_eq!(side_for(0.0, 8, kernel), SIDE_UNIT);
    }
}
