//! What theory says of the watched wave, and what the run says: rates by which its amplitude grows.

use super::field::Wave;
use super::problem::Problem;
use std::f64::consts::PI;

/// Terms of the series for the plasma dispersion function.
const TERMS: usize = 32;

/// Rates by which an amplitude grows, in ω_p; negative ones are damping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Of the fastest of the waves of cold streams.
    Cold(f64),
    /// Of the least damped wave of a plasma without streams (L. D. Landau).
    Landau(f64),
}

impl Rate {
    /// The number.
    #[must_use]
    pub const fn value(self) -> f64 {
        match self {
            Self::Cold(rate) | Self::Landau(rate) => rate,
        }
    }

    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold(_) => "theory of cold streams",
            Self::Landau(_) => "Landau's theory",
        }
    }
}

/// What theory says of a problem's watched wave.
#[must_use]
pub fn expected(problem: &Problem) -> Rate {
    let all = problem.particles() as f64;
    let k = problem.wave_number();
    let streams: Vec<(f64, f64)> =
        problem.species.iter().map(|kind| (kind.particles as f64 / all, k * kind.drift)).collect();
    match (&streams[..], &problem.species[..]) {
        ([one, other], _) => Rate::Cold(cold(*one, *other)),
        (_, [only, ..]) if only.thermal > 0.0 => Rate::Landau(landau(k * only.thermal)),
        _ => Rate::Cold(0.0),
    }
}

/// The largest growth rate of two cold streams, each given by its part of the density and its wave number times velocity: of
/// the roots of 1 = f/(ω-a)² + g/(ω-b)² the largest imaginary part, all four found together (E. Durand and I. Kerner).
#[must_use]
pub fn cold((f, a): (f64, f64), (g, b): (f64, f64)) -> f64 {
    let polynomial = |w: Wave| {
        let (from_a, from_b) = ((w - a) * (w - a), (w - b) * (w - b));
        from_a * from_b - from_b * f - from_a * g
    };
    let size = 1.0 + a.abs().max(b.abs());
    let mut roots: Vec<Wave> = (0..4).map(|n| Wave::new(0.4, 0.9).powi(n) * size).collect();
    for _ in 0..200 {
        for at in 0..4 {
            let others = (0..4).filter(|other| *other != at);
            let product =
                others.fold(Wave::new(1.0, 0.0), |product, other| product * (roots[at] - roots[other]));
            let step = polynomial(roots[at]) / product;
            roots[at] -= step;
        }
    }
    roots.iter().map(|root| root.im).fold(0.0, f64::max)
}

/// The rate of the least damped wave of Maxwell's distribution, at this wave number times Debye length.
#[must_use]
pub fn landau(k: f64) -> f64 {
    // 1 + (1 + ζ Z(ζ))/k² = 0 with ζ = ω/(k √2), by secants from the frequency of Bohm and Gross.
    let dispersion = |w: Wave| {
        let zeta = w / (k * 2f64.sqrt());
        (zeta * plasma(zeta) + 1.0) / (k * k) + 1.0
    };
    let frequency = (1.0 + 3.0 * k * k).sqrt();
    let (mut before, mut root) = (Wave::new(frequency, -0.01), Wave::new(frequency, -0.1 * k));
    let mut of_before = dispersion(before);
    for _ in 0..100 {
        let here = dispersion(root);
        let step = here * (root - before) / (here - of_before);
        if step.is_nan() || step.norm() <= 1e-14 {
            break;
        }
        (before, of_before) = (root, here);
        root -= step;
    }
    root.im
}

/// The plasma dispersion function of Fried and Conte, continued from the upper half of the plane.
fn plasma(zeta: Wave) -> Wave {
    Wave::new(0.0, PI.sqrt()) * faddeeva(zeta)
}

/// exp(-z²) erfc(-iz), by a rational series (J. A. C. Weideman, SIAM Journal on Numerical Analysis 31, 1994).
fn faddeeva(z: Wave) -> Wave {
    if z.im < 0.0 {
        return (-z * z).exp() * 2.0 - faddeeva(-z);
    }
    let length = (TERMS as f64 / 2f64.sqrt()).sqrt();
    let iz = Wave::new(-z.im, z.re);
    let (below, above) = (Wave::new(length, 0.0) - iz, Wave::new(length, 0.0) + iz);
    let ratio = above / below;
    let points = 2 * TERMS;
    let coefficient = |n: usize| {
        let term = |m: i32| {
            let angle = PI * f64::from(m) / points as f64;
            let t = length * (angle / 2.0).tan();
            (-t * t).exp() * (length * length + t * t) * (n as f64 * angle).cos()
        };
        (1 - points as i32..points as i32).map(term).sum::<f64>() / (2 * points) as f64
    };
    let sum = (1..=TERMS).rev().fold(Wave::default(), |sum, n| sum * ratio + coefficient(n));
    sum * 2.0 / (below * below) + 1.0 / (PI.sqrt() * below)
}

/// The rate by which the amplitude of a wave grows whose energies follow one another in steps of `dt`, by a straight line
/// through their logarithms: those from a third of the way up to four fifths, before the highest. `None` where it hardly
/// grows.
#[must_use]
pub fn growth(energies: &[f64], dt: f64) -> Option<f64> {
    let logarithms: Vec<f64> = energies.iter().map(|energy| energy.max(f64::MIN_POSITIVE).ln()).collect();
    let top = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let at_top = logarithms.iter().position(|&at| at >= top)?;
    let rising = &logarithms[..=at_top];
    let bottom = rising.iter().copied().fold(f64::INFINITY, f64::min);
    let span = top - bottom;
    if span < 3.0 {
        return None;
    }
    let from = rising.iter().rposition(|&at| at < bottom + span / 3.0)?;
    let to = from + rising[from..].iter().position(|&at| at > bottom + 0.8 * span)?;
    let points: Vec<(f64, f64)> = (from..=to).map(|at| (at as f64 * dt, logarithms[at])).collect();
    (points.len() > 4).then(|| slope(&points) / 2.0)
}

/// The same of a wave that decays while it oscillates: a line through the first peaks, without that of the beginning.
#[must_use]
pub fn damping(energies: &[f64], dt: f64) -> Option<f64> {
    let peaks = energies.windows(3).enumerate().filter(|(_, of)| of[1] > of[0] && of[1] >= of[2]);
    let peaks: Vec<(f64, f64)> = peaks
        .map(|(at, of)| {
            let [before, here, after] =
                [of[0], of[1], of[2]].map(|energy| energy.max(f64::MIN_POSITIVE).ln());
            let shift = 0.5 * (before - after) / (before - 2.0 * here + after);
            ((at as f64 + 1.0 + shift) * dt, here - 0.25 * (before - after) * shift)
        })
        .collect();
    // Once a peak is not lower than the one before, noise or the recurrence of the beginning has taken over.
    let falling = 1 + peaks.windows(2).take_while(|pair| pair[1].1 < pair[0].1).count();
    let used = &peaks[..falling.min(peaks.len()).min(5)];
    (used.len() > 2).then(|| slope(used) / 2.0)
}

/// The slope of the straight line nearest to these points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let (rise, run) = points.iter().fold((0.0, 0.0), |(rise, run), point| {
        (rise + (point.0 - x) * (point.1 - y), run + (point.0 - x).powi(2))
    });
    rise / run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_books() {
        // Of two equal streams the fastest wave grows by 1/√8 at k v = √(3/8).
        let k = 0.375f64.sqrt();
        assert!((cold((0.5, k), (0.5, -k)) - 0.125f64.sqrt()).abs() < 1e-12);
        // Of a weak beam by √3/2 (ε/2)^(1/3), to the next order.
        let weak = cold((1.0 - 1e-6, 0.0), (1e-6, 1.0));
        assert!((weak / (0.75f64.sqrt() * 0.5e-6f64.cbrt()) - 1.0).abs() < 0.01, "{weak}");
        assert!(cold((0.5, 2.0), (0.5, -2.0)).abs() < 1e-9, "short waves are stable");
        for (k, expected) in [(0.5, -0.153_359), (0.4, -0.066_128), (0.3, -0.012_620)] {
            assert!((landau(k) / expected - 1.0).abs() < 1e-3, "{k}: {}", landau(k));
        }
    }

    #[test]
    fn fits_find_the_rates_that_energies_were_made_with() {
        let wave = |rate: f64, at: usize| (2.0 * rate * 0.1 * at as f64).exp();
        let grown: Vec<f64> = (0..400).map(|at| 1e-7 * wave(0.2, at).min(wave(0.2, 300))).collect();
        assert!((growth(&grown, 0.1).unwrap() - 0.2).abs() < 1e-9);
        assert_eq!((growth(&[1.0; 50], 0.1), damping(&[1.0; 50], 0.1), growth(&[], 0.1)), (None, None, None));
        let damped: Vec<f64> =
            (0..200).map(|at| wave(-0.15, at) * (1.4 * 0.1 * at as f64).cos().powi(2)).collect();
        assert!((damping(&damped, 0.1).unwrap() + 0.15).abs() < 2e-3, "{:?}", damping(&damped, 0.1));
    }
}
