//! Kernels run for the sake of their speed.
//!
//! They work on more data than the caches hold, because the work does, and run on all PEs of all nodes at once, as
//! the work will.

/// Runs of the smallest kernels in a call: reading the clock takes as long as one of them.
const REPEATS_MAX: f64 = 1000.0;

/// What a speed is measured by: each call runs `kernel` on one set of operands after the other, as the work meets other
/// blocks each time and not those that stay in the caches, until it has done at least `least` units of work or run a
/// thousand times, so that reading the clock is not what is measured. A run of the kernel is `each` units; a call gives the
/// units that it did.
pub(crate) fn measured<S>(
    mut sets: Vec<S>,
    each: f64,
    least: f64,
    mut kernel: impl FnMut(&mut S),
) -> impl FnMut() -> f64 {
    let repeats = (least / each).ceil().clamp(1.0, REPEATS_MAX) as usize;
    let mut next = 0;
    move || {
        for _ in 0..repeats {
            kernel(&mut sets[next]);
            next = (next + 1) % sets.len();
        }
        each * repeats as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_take_turns_over_calls_and_the_work_is_all_that_was_done() {
        let mut runs = Vec::new();
        let mut call = measured(vec![0, 1, 2], 10.0, 35.0, |set: &mut i32| runs.push(*set));
        assert_eq!((call(), call()), (40.0, 40.0));
        drop(call);
        assert_eq!(runs, [0, 1, 2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_tiny_kernel_does_not_keep_its_caller_for_ever() {
        assert_eq!(measured(vec![()], 2.0, 1e9, |()| ())(), 2000.0);
    }

    #[test]
    fn a_large_kernel_is_run_once() {
        let mut runs = 0;
        let work = measured(vec![()], 1e9, 1.0, |()| runs += 1)();
        assert_eq!((work, runs), (1e9, 1));
    }
}
