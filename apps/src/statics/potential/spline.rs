//! Piecewise cubics through tabulated values, with the slopes that LAMMPS takes, so that both give the same digits.
//!
//! Slopes inside come from the five-point formula, at the ends from neighbouring differences; between two values
//! runs the cubic Hermite polynomial. The recipe is that of `pair_style eam` (LAMMPS, `PairEAM::interpolate`).

/// Coefficients of one interval, lowest power first, in the fraction `p` from 0 to 1 of the interval.
pub type Cubic = [f64; 4];

/// The cubics of all intervals between `values`, of which there are at least five.
pub fn cubics(values: &[f64]) -> Vec<Cubic> {
    let slopes = slopes(values);
    let piece = |m: usize| {
        let (rise, s0, s1) = (values[m + 1] - values[m], slopes[m], slopes[m + 1]);
        [values[m], s0, 3.0 * rise - 2.0 * s0 - s1, s0 + s1 - 2.0 * rise]
    };
    (0..values.len() - 1).map(piece).collect()
}

/// Slope at each value, per interval.
fn slopes(f: &[f64]) -> Vec<f64> {
    let last = f.len() - 1;
    let slope = |m: usize| match m {
        0 => f[1] - f[0],
        1 => 0.5 * (f[2] - f[0]),
        m if m == last => f[last] - f[last - 1],
        m if m == last - 1 => 0.5 * (f[last] - f[last - 2]),
        m => ((f[m - 2] - f[m + 2]) + 8.0 * (f[m + 1] - f[m - 1])) / 12.0,
    };
    (0..f.len()).map(slope).collect()
}

/// Value of a cubic at `p`.
#[inline(always)]
pub fn value(c: &Cubic, p: f64) -> f64 {
    ((c[3] * p + c[2]) * p + c[1]) * p + c[0]
}

/// Slope of a cubic at `p`, per interval.
#[inline(always)]
pub fn slope(c: &Cubic, p: f64) -> f64 {
    (3.0 * c[3] * p + 2.0 * c[2]) * p + c[1]
}

/// The interval of `t`, which counts intervals from the first value, and the fraction inside; clamped to the
/// last of `intervals`, as LAMMPS does.
#[inline(always)]
pub fn locate(t: f64, intervals: usize) -> (usize, f64) {
    let m = (t as usize).min(intervals - 1);
    (m, (t - m as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cubic_polynomial_is_met_exactly_inside() {
        let f = |x: f64| 1.0 + x * (2.0 + x * (-0.5 + 0.25 * x));
        let values: Vec<f64> = (0..12).map(|m| f(m as f64)).collect();
        let pieces = cubics(&values);
        for (m, piece) in pieces.iter().enumerate().take(9).skip(2) {
            for p in [0.0, 0.3, 0.75, 1.0] {
                let x = m as f64 + p;
                assert!((value(piece, p) - f(x)).abs() < 1e-12, "at {x}");
                assert!((slope(piece, p) - (2.0 - x + 0.75 * x * x)).abs() < 1e-12, "slope at {x}");
            }
        }
    }

    #[test]
    fn beyond_the_ends_the_last_value_stays() {
        let pieces = cubics(&[0.0, 1.0, 2.0, 3.0, 7.0]);
        let (m, p) = locate(9.5, pieces.len());
        assert_eq!((m, p), (3, 1.0));
        assert_eq!(value(&pieces[m], p), 7.0);
    }
}
