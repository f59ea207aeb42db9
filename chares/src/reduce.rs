//! Values that reductions combine, and the ready-made ones.

use crate::chare::Message;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// A value that can be combined with others of its kind into one.
///
/// In an ordinary reduction the order of combining follows the machines; `combine` should then be
/// commutative and associative. Floating-point sums are so only up to rounding: where runs must agree to
/// the last bit, use [`contribute_ordered`](crate::Ctx::contribute_ordered).
pub trait Reduce: Message {
    /// Takes `other` in.
    fn combine(&mut self, other: Self);
}

/// That one value is better than another, for [`Monotonic`](crate::Monotonic) variables.
pub trait Better {
    /// Whether `self` improves on `other`.
    fn better_than(&self, other: &Self) -> bool;
}

/// The sum of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Sum<T>(pub T);

impl<T: AddAssign + Message> Reduce for Sum<T> {
    fn combine(&mut self, other: Self) {
        self.0 += other.0;
    }
}

/// Sums place by place: of histograms, for example. Where one has more places than another, they count as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums<T>(pub Vec<T>);

impl<T: AddAssign + Message> Reduce for Sums<T> {
    fn combine(&mut self, other: Self) {
        let common = self.0.len();
        let mut others = other.0.into_iter();
        self.0.iter_mut().zip(others.by_ref().take(common)).for_each(|(sum, value)| *sum += value);
        self.0.extend(others);
    }
}

/// The smallest of all.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Min<T>(pub T);

impl<T: PartialOrd + Message> Reduce for Min<T> {
    fn combine(&mut self, other: Self) {
        if other.0 < self.0 {
            *self = other;
        }
    }
}

impl<T: PartialOrd> Better for Min<T> {
    fn better_than(&self, other: &Self) -> bool {
        self.0 < other.0
    }
}

/// The largest of all.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Max<T>(pub T);

impl<T: PartialOrd + Message> Reduce for Max<T> {
    fn combine(&mut self, other: Self) {
        if other.0 > self.0 {
            *self = other;
        }
    }
}

impl<T: PartialOrd> Better for Max<T> {
    fn better_than(&self, other: &Self) -> bool {
        self.0 > other.0
    }
}

/// All values one behind the other; in index order if the contributions are ordered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gather<T>(pub Vec<T>);

impl<T: Message> Reduce for Gather<T> {
    fn combine(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

/// Nothing but that all have contributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier;

impl Reduce for Barrier {
    fn combine(&mut self, _: Self) {}
}
