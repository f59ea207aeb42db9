//! Exponents of numbers, and magnitudes beyond the range of f64: sums over rows of 1e-150 and of 1e150 are compared.

use std::cmp::Ordering;

/// The e for which |x| is in [2^(e-1), 2^e); 0 for 0, infinities and NaN.
#[must_use]
pub fn exponent(x: f64) -> i32 {
    const SHIFT: i32 = 64;
    let biased = |x: f64| ((x.to_bits() >> 52) & 0x7ff) as i32;
    match biased(x) {
        0x7ff => 0,
        0 if x == 0.0 => 0,
        // Subnormal.
        0 => biased(x * power_of_two(SHIFT)) - SHIFT - 1022,
        normal => normal - 1022,
    }
}

/// x 2^e; exact unless the result is beyond the range of normal numbers.
#[must_use]
pub fn times_power_of_two(mut x: f64, mut e: i32) -> f64 {
    // A factor that is itself beyond the range would make more of it than is.
    while e.abs() > 1000 {
        let step = e.clamp(-1000, 1000);
        x *= power_of_two(step);
        e -= step;
        if x == 0.0 || !x.is_finite() {
            return x;
        }
    }
    x * power_of_two(e)
}

/// 2^e for |e| up to 1,000.
fn power_of_two(e: i32) -> f64 {
    f64::from_bits(u64::from((e + 1023).unsigned_abs()) << 52)
}

/// A magnitude, `value` 2^`exponent`: as large or small as products of any two f64 are, and more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wide {
    value: f64,
    exponent: i32,
}

impl Wide {
    /// |value| 2^exponent. NaN is taken as infinite.
    #[must_use]
    pub fn new(value: f64, exponent_of_two: i32) -> Self {
        if !value.is_finite() {
            return Self { value: f64::INFINITY, exponent: 0 };
        }
        let own = exponent(value);
        Self { value: times_power_of_two(value.abs(), -own), exponent: own + exponent_of_two }
    }

    /// The larger of two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if self.compare(other) == Ordering::Less { other } else { self }
    }

    /// The product of two.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self::new(self.value * other.value, self.exponent + other.exponent)
    }

    /// The ratio of two, 0 if both are 0; beyond the range of f64, 0 or infinite.
    #[must_use]
    pub fn over(self, other: Self) -> f64 {
        if self.value == 0.0 {
            return 0.0;
        }
        let ratio = self.value / other.value;
        if ratio.is_finite() {
            times_power_of_two(ratio, self.exponent - other.exponent)
        } else {
            f64::INFINITY
        }
    }

    fn compare(self, other: Self) -> Ordering {
        let key = |wide: Self| (wide.value.is_infinite(), wide.value > 0.0);
        let by_size = || self.exponent.cmp(&other.exponent).then(self.value.total_cmp(&other.value));
        key(self).cmp(&key(other)).then_with(by_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn magnitudes_beyond_the_range_are_ordered_and_divided() {
        let big = Wide::new(1e300, 3000);
        let small = Wide::new(-3.0, -3000);
        assert_eq!(big.max(small).over(big), 1.0);
        assert_eq!(Wide::new(6.0, 5000).over(Wide::new(3.0, 4999)), 4.0);
        assert_eq!(Wide::default().over(Wide::default()), 0.0);
        assert_eq!(small.over(Wide::default()), f64::INFINITY);
        assert_eq!(Wide::default().max(small).over(small), 1.0);
        assert_eq!(Wide::new(f64::NAN, 0).max(big).over(big), f64::INFINITY);
        assert_eq!(small.over(big), 0.0);
    }

    proptest! {
        #[test]
        fn exponents_are_those_of_the_numbers(x in any::<f64>()) {
            prop_assume!(x.is_finite() && x != 0.0);
            let scaled = times_power_of_two(x, -exponent(x)).abs();
            prop_assert!((0.5..1.0).contains(&scaled), "{x:e}: {scaled}");
            prop_assert_eq!(times_power_of_two(scaled, exponent(x)), x.abs());
        }
    }
}
