//! Over how long chares are followed: what they did longer ago counts less and less.

/// A stretch of time that ends now. It is long enough for most chares to have done something in it: where one entry method
/// takes longer than the time between two measurements, what happened between these says little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    seconds: f64,
    /// The part of those chares that do anything at all that does something between two measurements.
    heard_part: f64,
}

/// Chares are followed for so many times as long as it takes until most of them have done something.
const ROUNDS: f64 = 3.0;
/// But not longer than this, seconds: what was before is no longer so.
const SECONDS_MAX: f64 = 10.0;

impl Default for Span {
    fn default() -> Self {
        Self { seconds: 0.0, heard_part: 1.0 }
    }
}

impl Span {
    /// So many seconds pass, in which `heard` of the `doing` chares did something: the part of what was measured before that
    /// still counts.
    pub fn passes(&mut self, since_s: f64, heard: usize, doing: usize) -> f64 {
        if doing > 0 {
            self.heard_part += 0.25 * (heard as f64 / doing as f64 - self.heard_part);
        }
        let length_s = (ROUNDS * since_s / self.heard_part.max(f64::MIN_POSITIVE)).min(SECONDS_MAX);
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
