//! What runs beside each other and what others wait for, by Amdahl's law (G. M. Amdahl, AFIPS Conference Proceedings 30, 1967),
//! from processor time that was measured in the run itself.

use super::subdomain::Figures;
use chares::Driver;

/// States it in the report: what subdomains took is parallel; serial is what one place took while all others waited for it, which
/// is the coarsest mesh or the choice of levels, and `driver_s` of the driver. All of it is the work by which the run is judged, in
/// the unit of iterations, which took `of_iterations`: what took as much of the processors' time counts as much.
pub(super) fn state(main: &mut Driver, figures: &Figures, of_iterations: f64, driver_s: f64) {
    let seconds =
        main.outcome().all_timed().map(|timed| timed.as_secs_f64()).filter(|seconds| *seconds > 0.0);
    let pes = main.machines().rates().len() as f64;
    let outcome = main.outcome();
    outcome.fact("assembling_s", figures.assembling_s);
    outcome.fact("subdomains_s", figures.iterating_s);
    outcome.fact("coarsest_s", figures.coarsest_s);
    let parallel = figures.assembling_s + figures.iterating_s;
    let serial = figures.coarsest_s + driver_s;
    let whole = parallel + serial;
    let times = if figures.iterating_s > 0.0 { whole / figures.iterating_s } else { 1.0 };
    outcome.work(of_iterations * times);
    if whole <= 0.0 {
        return;
    }
    let (part, speedup) = (serial / whole, seconds.map(|seconds| whole / seconds));
    let bound = bound(part, pes);
    outcome.fact("serial_s", serial);
    outcome.fact("serial_fraction", part);
    outcome.fact("parallel_fraction", 1.0 - part);
    outcome.fact("speedup", speedup);
    outcome.fact("amdahl_speedup", bound);
    outcome.fact("amdahl_limit", 1.0 / part);
    let clock = "times the time by the clock";
    let times = match speedup {
        Some(speedup) => format!("it is {speedup:.2} {clock}, by Amdahl's law {bound:.2} at most"),
        None => format!("by Amdahl's law it is {bound:.2} {clock} at most"),
    };
    outcome.remark(&format!(
        "{:.3} % of the processor time is serial, {:.1} % in element loops; {times} on {pes} PEs{}",
        100.0 * part,
        100.0 * figures.assembling_s / whole,
        if part > 0.0 { format!(" and {:.0} on any number", 1.0 / part) } else { String::new() }
    ));
}

/// How many times faster at most so many PEs are than one, where this part of the work is serial.
fn bound(serial: f64, pes: f64) -> f64 {
    1.0 / (serial + (1.0 - serial) / pes)
}

#[cfg(test)]
mod tests {
    use super::bound;

    /// 70 % parallel, as the thesis states it: 1.875 on 3 processors.
    #[test]
    fn the_bound_is_that_of_the_thesis() {
        assert!((bound(0.3, 3.0) - 1.875).abs() < 1e-12);
        assert!((bound(0.3, 1e12) - 1.0 / 0.3).abs() < 1e-9);
        assert!((bound(0.0, 8.0) - 8.0).abs() < 1e-12);
    }
}
