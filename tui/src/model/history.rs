//! What a PE did over time: a ring of time buckets filled from counter differences. Two resolutions keep both the
//! last minutes in detail and the last hours in outline within a fixed amount of memory (under 100 kB a PE).

use std::collections::VecDeque;

/// Nanoseconds per second.
pub(crate) const SECOND: i64 = 1_000_000_000;
/// Buckets that one ring keeps.
const KEPT: usize = 2048;
/// Width of a bucket of the fine ring.
pub(crate) const FINE: i64 = SECOND / 4;
/// Width of a bucket of the coarse ring.
const COARSE: i64 = 4 * SECOND;

/// Time spent in each state, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) compute: u64,
    pub(crate) idle: u64,
    pub(crate) init: u64,
    pub(crate) overhead: u64,
    /// Having something to do and no core.
    pub(crate) core_wait: u64,
    /// Stopped by its own share of a core, or by a quota.
    pub(crate) throttled: u64,
}

/// How many states there are.
const STATES: usize = 6;

impl Times {
    pub(crate) fn total(self) -> u64 {
        self.to_array().into_iter().fold(0, u64::saturating_add)
    }

    /// Time in entry methods, before the program said that its initialisation is over and after that.
    pub(crate) fn working(self) -> u64 {
        self.compute.saturating_add(self.init)
    }

    /// Part of all time that `part` is, 0 to 1.
    pub(crate) fn share(self, part: u64) -> f64 {
        match self.total() {
            0 => 0.0,
            total => part as f64 / total as f64,
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let (one, other) = (self.to_array(), other.to_array());
        Self::from_array(std::array::from_fn(|i| one[i].saturating_add(other[i])))
    }

    /// What was added since `earlier`; a counter that went backwards counts as standing still.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let (now, then) = (self.to_array(), earlier.to_array());
        Self::from_array(std::array::from_fn(|i| now[i].saturating_sub(then[i])))
    }

    fn scaled(self, part: i64, whole: i64) -> Self {
        let factor = part as f64 / whole.max(1) as f64;
        // A share of a u64 is a u64: the factor lies between 0 and 1, and float to integer saturates.
        Self::from_array(self.to_array().map(|time| (time as f64 * factor).round() as u64))
    }

    fn to_array(self) -> [u64; STATES] {
        [self.compute, self.idle, self.init, self.overhead, self.core_wait, self.throttled]
    }

    fn from_array([compute, idle, init, overhead, core_wait, throttled]: [u64; STATES]) -> Self {
        Self { compute, idle, init, overhead, core_wait, throttled }
    }
}

/// The past of one PE, on the viewer's time axis (nanoseconds, may be negative for what was before the viewer).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct History {
    fine: Ring,
    coarse: Ring,
}

impl Default for History {
    fn default() -> Self {
        Self { fine: Ring::new(FINE), coarse: Ring::new(COARSE) }
    }
}

impl History {
    /// Spreads `spent` evenly over the time from `from` to `to`.
    pub(crate) fn add(&mut self, from: i64, to: i64, spent: Times) {
        self.fine.add(from, to, spent);
        self.coarse.add(from, to, spent);
    }

    /// What was done in the time from `from` to `to`, as far as it is remembered; both are best multiples of a
    /// quarter of a second, since buckets are counted whole.
    pub(crate) fn between(&self, from: i64, to: i64) -> Times {
        if to.saturating_sub(from) >= COARSE && from.rem_euclid(COARSE) == 0 {
            self.coarse.between(from, to)
        } else {
            self.fine.between(from, to)
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Ring {
    width: i64,
    /// Number of the bucket at the front; the bucket `n` holds the time from `n * width`.
    first: i64,
    buckets: VecDeque<[u32; STATES]>,
}

impl Ring {
    fn new(width: i64) -> Self {
        Self { width, first: 0, buckets: VecDeque::new() }
    }

    fn add(&mut self, from: i64, to: i64, spent: Times) {
        if to <= from || spent.total() == 0 {
            return;
        }
        let last = (to - 1).div_euclid(self.width);
        let kept = i64::try_from(KEPT).expect("the ring is small");
        let oldest = from.div_euclid(self.width).max(last - kept + 1);
        for number in oldest..=last {
            let start = (number * self.width).max(from);
            let end = ((number + 1) * self.width).min(to);
            if let Some(bucket) = self.bucket(number) {
                let part = spent.scaled(end - start, to - from);
                for (sum, time) in bucket.iter_mut().zip(part.to_array()) {
                    *sum = sum.saturating_add(u32::try_from(time).unwrap_or(u32::MAX));
                }
            }
        }
    }

    /// The bucket with that number, made if it is new; `None` if it is forgotten already.
    fn bucket(&mut self, number: i64) -> Option<&mut [u32; STATES]> {
        let kept = i64::try_from(KEPT).expect("the ring is small");
        if self.buckets.is_empty() || number - self.first >= 2 * kept {
            self.buckets.clear();
            self.first = number;
        }
        let place = usize::try_from(number - self.first).ok()?;
        while self.buckets.len() <= place {
            self.buckets.push_back([0; STATES]);
        }
        let mut place = place;
        while self.buckets.len() > KEPT {
            self.buckets.pop_front();
            self.first += 1;
            place -= 1;
        }
        self.buckets.get_mut(place)
    }

    fn between(&self, from: i64, to: i64) -> Times {
        let mut sum = Times::default();
        let begin = from.div_euclid(self.width).max(self.first);
        let newest = self.first + i64::try_from(self.buckets.len()).unwrap_or(0);
        let end = (to + self.width - 1).div_euclid(self.width).min(newest);
        for number in begin..end {
            let place = usize::try_from(number - self.first).ok();
            if let Some(bucket) = place.and_then(|place| self.buckets.get(place)) {
                sum = sum.plus(Times::from_array(bucket.map(u64::from)));
            }
        }
        sum
    }
}
