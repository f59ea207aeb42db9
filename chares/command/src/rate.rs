//! Rates for people: with the unit of what is done, and prefixes as everybody writes them.

/// The prefixes of ascending powers of a thousand.
const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// So many units in a second, to three digits: `27.3 GFLOP/s`, `74.0 M atoms/s`. A unit in capitals is a symbol, and its
/// prefix stands right before it.
pub(crate) fn rate(per_second: f64, unit: &str) -> String {
    let (mut number, mut prefix) = (per_second, 0);
    // As it is rounded: 999.96 would be written as 1000.
    while number >= 999.5 && prefix + 1 < PREFIXES.len() {
        number /= 1e3;
        prefix += 1;
    }
    // Of the number as it is rounded: 9.996 is written as 10.0.
    let size = (number * 1.0005).log10().floor() as i32;
    let digits = if number > 0.0 { (2 - size).clamp(0, 6) } else { 0 };
    let digits = usize::try_from(digits).unwrap_or(0);
    let number = format!("{number:.digits$}");
    let is_symbol = unit.chars().all(char::is_uppercase);
    match PREFIXES[prefix] {
        "" => format!("{number} {unit}/s"),
        prefix if is_symbol => format!("{number} {prefix}{unit}/s"),
        prefix => format!("{number} {prefix} {unit}/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_the_prefix_that_fits() {
        for (per_second, text) in [
            (7.4002e7, "74.0 M rows/s"),
            (999.4, "999 rows/s"),
            (999.6, "1.00 k rows/s"),
            (2.5, "2.50 rows/s"),
            (9.996, "10.0 rows/s"),
            (0.021_34, "0.0213 rows/s"),
            (0.0, "0 rows/s"),
            (4.2e23, "420000 E rows/s"),
        ] {
            assert_eq!(rate(per_second, "rows"), text);
        }
        assert_eq!(
            (rate(2.728e10, "FLOP"), rate(12.0, "FLOP")),
            ("27.3 GFLOP/s".into(), "12.0 FLOP/s".into())
        );
    }
}
