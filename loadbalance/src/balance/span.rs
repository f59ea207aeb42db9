//! Over how long chares are followed: what they did longer ago counts less and less.

/// A stretch of time that ends now. It is long enough for most chares to have done something in it: where one entry method
/// takes longer than the time between two measurements, what happened between these says little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    rounds: f64,
    seconds_max: f64,
    seconds: f64,
    /// The part of those chares that do anything at all that does something between two measurements.
    heard_part: f64,
}

impl Default for Span {
    /// Of three rounds, but not of more than ten seconds: what was before is no longer so.
    fn default() -> Self {
        Self::of(3.0, 10.0)
    }
}

impl Span {
    /// Chares are followed for so many *rounds*, each as long as it takes until most of them have done something, but for no
    /// more than so many seconds.
    #[must_use]
    pub const fn of(rounds: f64, seconds_max: f64) -> Self {
        Self { rounds, seconds_max, seconds: 0.0, heard_part: 1.0 }
    }

    /// So many seconds pass, in which `heard` of the `doing` chares did something: the part of what was measured before that
    /// still counts.
    pub fn passes(&mut self, since_s: f64, heard: usize, doing: usize) -> f64 {
        if doing > 0 {
            self.heard_part += 0.25 * (heard as f64 / doing as f64 - self.heard_part);
        }
        let length_s = (self.rounds * since_s / self.heard_part.max(f64::MIN_POSITIVE)).min(self.seconds_max);
        let kept = if length_s > 0.0 { (-since_s / length_s).exp() } else { 1.0 };
        self.seconds = self.seconds * kept + since_s;
        kept
    }

    /// Its length.
    #[must_use]
    pub const fn seconds(&self) -> f64 {
        self.seconds
    }
}
