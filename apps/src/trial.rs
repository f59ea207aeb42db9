//! How fast this machine is, by a moment's trial: for runs that are to take about so long.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// How long each core works, after a call that warms it.
const TRIAL: Duration = Duration::from_millis(150);

/// Units of work per second of all cores at once. `make_kernel` makes what each core runs; a call gives the units that it
/// did.
pub(crate) fn rate<K: FnMut() -> f64>(make_kernel: impl Fn() -> K + Sync) -> f64 {
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
