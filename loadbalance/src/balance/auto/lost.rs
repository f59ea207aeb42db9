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

    /// Whether it has reached what moving costs, or need not, because so many seconds are likely to be gained. A slow node gets
    /// rid of its chares slowly: of seconds alone, those that were lost while that would have cost much would be enough as soon
    /// as the node recovers, just when nothing need move any more.
    pub(super) fn is_enough(&self, likely_s: f64, cost_s: f64) -> bool {
        likely_s >= MUCH * cost_s || self.seconds >= cost_s && self.parts >= 1.0 - ROUNDING
    }
}

/// What brings so many times its cost is made at once: chares will have to go back, and what is likely is not sure.
const MUCH: f64 = 6.0;
/// Parts that are added up to 1 may be a little less, because each has been rounded.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_likely_to_bring_much_need_not_be_lost_first() {
        let mut lost = Lost::default();
        assert!(!lost.is_enough(5.9, 1.0) && lost.is_enough(6.0, 1.0));
        lost.add(0.6, 1.0);
        assert!(!lost.is_enough(0.0, 1.0));
        lost.add(0.6, 1.0);
        assert!(lost.is_enough(0.0, 1.0));
        assert!(!lost.is_enough(0.0, 1.5), "moving costs more than was lost");
        let mut dear = Lost::default();
        dear.add(8.0, 100.0);
        assert!(!dear.is_enough(0.0, 1.0), "it was lost while moving would have cost more");
    }
}
