//! Medians and other quantiles.

/// The value below which the part `at` (0 to 1) of the ascending values lies, interpolated between neighbours; `None` of
/// nothing.
#[must_use]
pub fn quantile(sorted: &[f64], at: f64) -> Option<f64> {
    let place = at.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// The middle of ascending values; `None` of nothing.
#[must_use]
pub fn median(sorted: &[f64]) -> Option<f64> {
    quantile(sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(
            (median(&[1.0, 2.0, 9.0]), median(&[1.0, 3.0]), median(&[])),
            (Some(2.0), Some(2.0), None)
        );
    }
}
