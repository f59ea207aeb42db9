//! The side of a product that takes about so long on this machine, for a first look at it.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// How long each core multiplies, after a call that warms it.
const TRIAL: Duration = Duration::from_millis(150);
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
    let side = (seconds * rate(make_kernel) / 2.0).cbrt().min(most) as usize;
    (side / SIDE_UNIT).max(1) * SIDE_UNIT
}

/// Operations per second of all cores at once.
fn rate<K: FnMut() -> f64>(make_kernel: impl Fn() -> K + Sync) -> f64 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let all_ready = Barrier::new(cores);
    let trial = || {
        let mut kernel = make_kernel();
        kernel();
        all_ready.wait();
        let begun = Instant::now();
        let mut work = 0.0;
        while begun.elapsed() < TRIAL {
            work += kernel();
        }
        work / begun.elapsed().as_secs_f64()
    };
    thread::scope(|scope| {
        let trials: Vec<_> = (0..cores).map(|_| scope.spawn(trial)).collect();
        // A core whose kernel panicked adds nothing; the run itself will say why.
        trials.into_iter().map(|trial| trial.join().unwrap_or(0.0)).sum()
    })
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
