//! What is lost by not moving.

/// What has been lost since an imbalance was seen first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lost {
    /// In seconds.
    pub seconds: f64,
    /// As parts of what moving would have cost at the time; 1 is all of it.
    pub parts: f64,
}

impl Lost {
    /// So many seconds more, while moving would have cost so many.
    pub(super) fn add(&mut self, seconds: f64, cost_s: f64) {
        self.seconds += seconds;
        self.parts += seconds / cost_s.max(f64::MIN_POSITIVE);
    }

    /// Whether it has reached what moving costs. A slow node gets rid of its chares slowly: of seconds alone, those that were
    /// lost while that would have cost much would be enough as soon as the node recovers, just when nothing need move any more.
    pub(super) fn is_enough(&self, cost_s: f64) -> bool {
        self.seconds >= cost_s && self.parts >= 1.0 - ROUNDING
    }
}

/// Parts that are added up to 1 may be a little less, because each has been rounded.
const ROUNDING: f64 = 1e-9;
