//! Which colours a terminal has, and what each meaning looks like in them.

use ratatui::style::Color;

/// How many colours the window uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// None: all meaning is in the characters too.
    None,
    /// The sixteen that have names and that users choose for their terminals.
    Named,
    /// The 256 that most terminals have.
    Indexed,
    /// Any: 24 bits.
    Full,
}

/// What a colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Compute,
    Idle,
    Init,
    Overhead,
    CoreWait,
    Throttled,
    /// Names, keys and amounts that are to stand out.
    Accent,
    /// What is only looked at on purpose.
    Faint,
}

impl Meaning {
    /// Its colour; `None` where there are none.
    pub(crate) fn color(self, colors: Colors) -> Option<Color> {
        let (red, green, blue) = self.rgb();
        match colors {
            Colors::None => None,
            Colors::Named => Some(self.named()),
            Colors::Indexed => Some(Color::Indexed(nearest(red, green, blue))),
            Colors::Full => Some(Color::Rgb(red, green, blue)),
        }
    }

    fn named(self) -> Color {
        match self {
            Self::Compute => Color::Green,
            Self::Idle => Color::Yellow,
            Self::Init => Color::Blue,
            Self::Overhead => Color::Magenta,
            Self::CoreWait => Color::Red,
            Self::Throttled => Color::LightRed,
            Self::Accent => Color::Cyan,
            Self::Faint => Color::DarkGray,
        }
    }

    /// Neither dark nor bright, so that it can be read on both kinds of terminals.
    fn rgb(self) -> (u8, u8, u8) {
        match self {
            Self::Compute => (0x2e, 0xa0, 0x5f),
            Self::Idle => (0xb8, 0x8a, 0x1e),
            Self::Init => (0x4a, 0x86, 0xd8),
            Self::Overhead => (0xb0, 0x5c, 0xc0),
            Self::CoreWait => (0xd4, 0x45, 0x3c),
            Self::Throttled => (0xe0, 0x7c, 0x34),
            Self::Accent => (0x2a, 0x9d, 0xb4),
            Self::Faint => (0x80, 0x80, 0x80),
        }
    }
}

/// From the least to the greatest of a map, between which other colours lie: dark to light, also for eyes that see no colours.
const HEAT: [[u8; 3]; 5] = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/// The colour of a step of a map, 0 to 255; `None` where there are too few colours for it.
pub(crate) fn heat(step: u8, colors: Colors) -> Option<Color> {
    let (below, from) = (usize::from(step) / 64, usize::from(step) % 64);
    let mixed = |channel: usize| {
        let of = |place: usize| usize::from(HEAT[place][channel]);
        // Between two colours.
        ((of(below) * (63 - from) + of(below + 1) * from) / 63) as u8
    };
    let [red, green, blue] = [0, 1, 2].map(mixed);
    match colors {
        Colors::None | Colors::Named => None,
        Colors::Indexed => Some(Color::Indexed(nearest(red, green, blue))),
        Colors::Full => Some(Color::Rgb(red, green, blue)),
    }
}

/// The red, green and blue of the colours that a picture of the window needs; `None` for what the terminal itself chooses.
pub(crate) fn rgb(color: Color) -> Option<(u8, u8, u8)> {
    match color {
        Color::Rgb(red, green, blue) => Some((red, green, blue)),
        Color::White => Some((0xff, 0xff, 0xff)),
        Color::Red => Some((0xb4, 0x2a, 0x22)),
        _ => None,
    }
}

/// The nearest of the 6 x 6 x 6 colours that begin at 16: their levels are 0, 95, 135, 175, 215 and 255.
fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    let level = |value: u8| match value {
        0..48 => 0,
        48..115 => 1,
        _ => (value - 35) / 40,
    };
    16 + 36 * level(red) + 6 * level(green) + level(blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_256_colours_is_taken() {
        const LEVELS: [i32; 6] = [0, 95, 135, 175, 215, 255];
        for value in 0..=255u8 {
            let place = usize::from((nearest(value, 0, 0) - 16) / 36);
            let distance = |level: i32| (level - i32::from(value)).abs();
            let least = LEVELS.into_iter().map(distance).min();
            assert_eq!(Some(distance(LEVELS[place])), least, "{value}");
        }
        assert_eq!((nearest(255, 255, 255), nearest(0, 0, 0)), (231, 16));
    }

    #[test]
    fn the_colours_of_a_map_go_from_dark_to_light_where_there_are_enough() {
        assert_eq!(heat(0, Colors::Full), Some(Color::Rgb(68, 1, 84)));
        assert_eq!(heat(255, Colors::Full), Some(Color::Rgb(253, 231, 37)));
        let light = |step| match heat(step, Colors::Full) {
            Some(Color::Rgb(red, green, blue)) => 2 * u32::from(red) + 7 * u32::from(green) + u32::from(blue),
            other => panic!("{other:?}"),
        };
        // Of neighbours what is rounded may be more than they differ.
        assert!((0..31).all(|step| light(8 * step) < light(8 * step + 8)));
        assert_eq!((heat(9, Colors::Named), heat(9, Colors::None)), (None, None));
        let shown: std::collections::HashSet<_> = (0..=255).map(|step| heat(step, Colors::Indexed)).collect();
        assert!(shown.len() >= 8, "{}", shown.len());
    }

    #[test]
    fn meanings_differ_in_every_number_of_colours_and_none_has_none() {
        use Meaning::{Accent, Compute, CoreWait, Faint, Idle, Init, Overhead, Throttled};
        let all = [Compute, Idle, Init, Overhead, CoreWait, Throttled, Accent, Faint];
        for colors in [Colors::Named, Colors::Indexed, Colors::Full] {
            let shown: std::collections::HashSet<_> =
                all.iter().map(|meaning| meaning.color(colors)).collect();
            assert_eq!(shown.len(), all.len(), "{colors:?}");
        }
        assert!(all.iter().all(|meaning| meaning.color(Colors::None).is_none()));
    }
}
