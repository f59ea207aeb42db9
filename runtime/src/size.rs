//! Numbers of bytes as people write and read them.

use std::fmt;

/// The units in which sizes are shown, from the largest on.
const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
/// Others that are understood.
const OTHER_UNITS: [(&str, u64); 6] = [
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];
/// Below this a float holds whole bytes exactly.
const BYTES_MAX: f64 = 9e15;

/// A number of bytes. Shown with one decimal, such as `1.5 GiB`; in the alternate form (`{:#}`) exactly, such as `1536 MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// Understands `8GiB`, `1.5 MB` or `64`, which are bytes; `None` if that is no size.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let units = UNITS.iter().chain(&OTHER_UNITS);
        // `B` alone is the last, because all others end with it.
        let mut in_units =
            units.filter_map(|(name, unit)| Some((text.strip_suffix(name)?.trim_end(), *unit)));
        let (number, unit) = in_units.next().unwrap_or((text, 1));
        let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let bytes = number.parse::<f64>().ok().filter(|_| is_number)? * unit as f64;
        // Parts of a byte come from units, but nobody asks for them.
        let is_whole = unit > 1 || bytes.fract() == 0.0;
        (is_whole && bytes < BYTES_MAX).then_some(Self(bytes as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: u64| !f.alternate() || self.0.is_multiple_of(unit);
        match UNITS.iter().find(|(_, unit)| self.0 >= *unit && fits(*unit)) {
            Some((name, unit)) => {
                let tenths = (self.0 as f64 / *unit as f64 * 10.0).round();
                write!(f, "{} {name}", tenths / 10.0)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let read = |text: &str| Size::parse(text).map(|size| size.0);
        let good =
            [("64", 64), (" 7B", 7), ("4KiB", 4096), ("1 MiB", 1 << 20), ("8GiB", 8 << 30), ("1.5kB", 1500)];
        good.into_iter().for_each(|(text, bytes)| assert_eq!(read(text), Some(bytes), "{text}"));
        assert_eq!((read("2 TB"), read("0.5TiB")), (Some(2_000_000_000_000), Some(1 << 39)));
        for text in
            ["", "KiB", "-1", "1.5", "1.5 B", "8 gib", "1e3", "inf", "nan GiB", "1..5MB", "9999TiB", "5 MiBB"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit_or_exactly() {
        let shown = |bytes: u64| (Size(bytes).to_string(), format!("{:#}", Size(bytes)));
        let both = |text: &str| (text.to_string(), text.to_string());
        assert_eq!(shown(0), both("0 B"));
        assert_eq!(shown(1023), both("1023 B"));
        assert_eq!(shown(64 << 20), both("64 MiB"));
        assert_eq!(shown(3 << 29), ("1.5 GiB".into(), "1536 MiB".into()));
        assert_eq!(shown(1500), ("1.5 KiB".into(), "1500 B".into()));
        assert_eq!(shown(3 << 40), both("3 TiB"));
    }

    proptest! {
        #[test]
        fn what_is_shown_exactly_is_read_as_it_was(bytes in 0u64..9_000_000_000_000_000) {
            prop_assert_eq!(Size::parse(&format!("{:#}", Size(bytes))), Some(Size(bytes)));
        }
    }
}
