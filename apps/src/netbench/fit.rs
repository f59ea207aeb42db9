//! A link in two numbers (R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20, 1994): a message of
//! s bytes takes latency + s / bandwidth.

use crate::statistics::median;
use serde::Serialize;

/// The two numbers, and how well they say what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Fit {
    /// Of every message, seconds.
    pub(super) latency_s: f64,
    /// `None` where longer messages take no longer: inside a process they are not copied.
    pub(super) bytes_per_s: Option<f64>,
    /// Mean of how far a measured time is from the line, in parts of it.
    pub(super) fit_error: f64,
}

/// Where bytes make the longest message slower by less than this part, they count for nothing.
const GROWTH_MIN: f64 = 0.1;

/// The line through times in seconds by lengths in bytes whose deviations, each in parts of its time, have the least squares:
/// so that short messages, of microseconds, count as much as long ones. `None` of nothing.
pub(super) fn hockney(times: &[(f64, f64)]) -> Option<Fit> {
    let (mut one, mut s, mut ss, mut t, mut st) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(bytes, time) in times.iter().filter(|(_, time)| *time > 0.0) {
        let weight = 1.0 / (time * time);
        (one, s, ss) = (one + weight, s + weight * bytes, ss + weight * bytes * bytes);
        (t, st) = (t + weight * time, st + weight * bytes * time);
    }
    if one == 0.0 {
        return None;
    }
    let longest = times.iter().map(|(bytes, _)| *bytes).fold(0.0, f64::max);
    let least = times.iter().map(|(_, time)| *time).filter(|time| *time > 0.0).fold(f64::INFINITY, f64::min);
    let slope = (one * st - s * t) / (one * ss - s * s);
    let mut fit = ((t - slope * s) / one, slope);
    if fit.0 <= 0.0 {
        // Long messages are slower than in proportion: the line that begins at the least time.
        fit = (least, (st - least * s) / ss);
    }
    let grows = fit.1.is_finite() && fit.1 * longest > GROWTH_MIN * fit.0;
    if grows { Some(judged(times, fit)) } else { flat(times) }
}

/// Times that do not depend on the length: their median. `None` of nothing.
pub(super) fn flat(times: &[(f64, f64)]) -> Option<Fit> {
    let mut sorted: Vec<f64> = times.iter().map(|(_, time)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    Some(judged(times, (median(&sorted)?, 0.0)))
}

/// A line with how far the times are from it.
fn judged(times: &[(f64, f64)], (latency_s, per_byte_s): (f64, f64)) -> Fit {
    let deviation = |&(bytes, time): &(f64, f64)| ((latency_s + per_byte_s * bytes) / time - 1.0).abs();
    let fit_error = times.iter().map(deviation).sum::<f64>() / times.len() as f64;
    Fit { latency_s, bytes_per_s: (per_byte_s > 0.0).then(|| 1.0 / per_byte_s), fit_error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [f64; 6] = [1.0, 64.0, 1024.0, 16384.0, 262_144.0, 4_194_304.0];

    fn times(latency: f64, rate: f64, noise: f64) -> Vec<(f64, f64)> {
        let wave = |n: usize| 1.0 + if n.is_multiple_of(2) { noise } else { -noise };
        SIZES.iter().enumerate().map(|(n, &s)| (s, (latency + s / rate) * wave(n))).collect()
    }

    #[test]
    fn times_that_do_not_grow_have_no_bandwidth() {
        let fit = hockney(&SIZES.map(|bytes| (bytes, 2e-7))).unwrap();
        assert!(fit.bytes_per_s.is_none() && (fit.latency_s - 2e-7).abs() < 1e-15 && fit.fit_error < 1e-9);
        assert_eq!(hockney(&[]), None);
        let one = hockney(&[(64.0, 1e-5)]).unwrap();
        assert!(one.bytes_per_s.is_none() && (one.latency_s - 1e-5).abs() < 1e-15, "{one:?}");
    }

    #[test]
    fn a_latency_is_never_negative() {
        let steep: Vec<(f64, f64)> = SIZES.iter().map(|&bytes| (bytes, 1e-9 * bytes * bytes)).collect();
        let fit = hockney(&steep).unwrap();
        assert!(fit.latency_s > 0.0 && fit.bytes_per_s.unwrap() > 0.0, "{fit:?}");
    }

    proptest! {
        #[test]
        fn a_link_is_found_again(latency in 1e-6..1e-2f64, rate in 1e6..1e10f64) {
            let fit = hockney(&times(latency, rate, 0.0)).unwrap();
            if let Some(found) = fit.bytes_per_s {
                prop_assert!((fit.latency_s / latency - 1.0).abs() < 1e-6 && (found / rate - 1.0).abs() < 1e-6);
            } else {
                prop_assert!(SIZES[5] / rate <= 0.1001 * latency);
            }
            let noisy = hockney(&times(latency, rate, 0.02)).unwrap();
            prop_assert!((noisy.latency_s / latency - 1.0).abs() < 0.15 && noisy.fit_error < 0.1, "{noisy:?}");
        }
    }
}
