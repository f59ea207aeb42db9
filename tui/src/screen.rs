//! The screens of the window: one for each question.

/// What the window shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// Where the time of PEs and nodes goes.
    #[default]
    Load,
    /// What each PE waits for.
    Why,
    /// What entry methods cost, and which run now.
    Entries,
    /// Who sends how much to whom.
    Traffic,
    /// Where chares are, and what was moved.
    Work,
    /// Warnings and remarks, with their times.
    Log,
    /// What the program shows of itself; only where there is such a thing.
    Maps,
}

impl Screen {
    /// All of them, in the order of their number keys.
    pub const ALL: [Self; 7] =
        [Self::Load, Self::Why, Self::Entries, Self::Traffic, Self::Work, Self::Log, Self::Maps];

    /// What it is called on the help line and the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Why => "why",
            Self::Entries => "entries",
            Self::Traffic => "traffic",
            Self::Work => "work",
            Self::Log => "log",
            Self::Maps => "maps",
        }
    }

    /// The screen of a number key.
    pub(crate) fn of_key(key: char) -> Option<Self> {
        let place = key.to_digit(10)?.checked_sub(1)?;
        Self::ALL.get(place as usize).copied()
    }

    /// Its number key.
    pub(crate) fn key(self) -> usize {
        Self::ALL.iter().position(|screen| *screen == self).unwrap_or_default() + 1
    }
}
