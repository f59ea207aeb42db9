//! Numbers that beginnings are made of: the same bits on any machine, because only rounded sums, products, quotients and
//! roots are used. The sines and logarithms of system libraries differ between processors.

use std::f64::consts::{LN_2, PI, SQRT_2};

/// The sine of so many turns.
#[must_use]
pub fn sine(turns: f64) -> f64 {
    let turn = turns - turns.round();
    let folded = if turn.abs() > 0.25 { turn.signum() * 0.5 - turn } else { turn };
    let x = 2.0 * PI * folded;
    let square = x * x;
    // The last term of the series is below a unit in the last place at a quarter of a turn.
    (1..=11).rev().fold(1.0, |sum, k| 1.0 - square / f64::from(2 * k * (2 * k + 1)) * sum) * x
}

/// The cosine of so many turns.
#[must_use]
pub fn cosine(turns: f64) -> f64 {
    sine(turns + 0.25)
}

/// The natural logarithm of a positive normal number.
#[must_use]
pub fn logarithm(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let (mantissa, exponent) =
        if mantissa > SQRT_2 { (mantissa / 2.0, exponent + 1) } else { (mantissa, exponent) };
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..14).rev().fold(0.0, |sum, k| sum * z * z + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * LN_2 + 2.0 * z * series
}

/// The part of a standard normal distribution below the result is `p`, between 0 and 1; to nine digits (P. J. Acklam's
/// rational approximation).
#[must_use]
pub fn normal(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    /// Below this, and as near to 1, is the tail.
    const TAIL: f64 = 0.02425;
    let polynomial = |of: &[f64], x: f64| of.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |p: f64| {
        let q = (-2.0 * logarithm(p)).sqrt();
        polynomial(&C, q) / polynomial(&D, q)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        q * polynomial(&A, q * q) / polynomial(&B, q * q)
    }
}

/// The digits of `number` in this base, mirrored at the point: numbers from 0 to 1 of which each begin of the sequence fills
/// the range evenly (J. G. van der Corput).
#[must_use]
pub fn mirrored(mut number: u64, base: u64) -> f64 {
    let (mut digits, mut scale) = (0u64, 1u64);
    // A u64 has fewer digits than would fill a significand twice.
    while number > 0 && scale < 1 << 53 {
        digits = digits * base + number % base;
        number /= base;
        scale *= base;
    }
    digits as f64 / scale as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_system_to_the_last_places() {
        for at in -700..700 {
            let turns = f64::from(at) / 311.0;
            assert!((sine(turns) - (2.0 * PI * turns).sin()).abs() < 4e-15, "{turns}");
            assert!((cosine(turns) - (2.0 * PI * turns).cos()).abs() < 4e-15, "{turns}");
            let x = (f64::from(at) / 9.0).exp();
            assert!((logarithm(x) - x.ln()).abs() < 1e-14 * x.ln().abs().max(1.0), "{x}");
        }
        assert_eq!((sine(0.0), sine(0.5), sine(3.0), cosine(0.25)), (0.0, 0.0, 0.0, 0.0));
        assert!((sine(0.25) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_the_known_ones() {
        let known = [(0.5, 0.0), (0.975, 1.959_963_985), (0.001, -3.090_232_306), (0.84134474607, 1.0)];
        for (p, expected) in known {
            assert!((normal(p) - expected).abs() < 2e-8, "{p}: {}", normal(p));
        }
    }

    #[test]
    fn mirrored_numbers_fill_the_range_evenly() {
        let first: Vec<f64> = (0..8).map(|number| mirrored(number, 2)).collect();
        assert_eq!(first, [0.0, 0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875]);
        assert!((mirrored(5, 3) - 7.0 / 9.0).abs() < 1e-15);
        assert!((0.0..1.0).contains(&mirrored(u64::MAX, 5)));
    }
}
