//! Parts of a chare's state that do not travel as they are.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// Working memory of a chare: what is in it counts while one entry method runs, and may be gone when the next begins. It
/// stays behind, and is `T`'s default on arrival, when the chare moves.
///
/// ```
/// let scratch = chares::Scratch(vec![1.0; 1000]);
/// let packed = chares::pup::pack(&scratch);
/// assert!(packed.body.is_empty());
/// assert!(chares::pup::unpack::<chares::Scratch<Vec<f64>>>(&packed)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Scratch<T>(pub T);

impl<T> Deref for Scratch<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Serialize for Scratch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de, T: Default> Deserialize<'de> for Scratch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self::default())
    }
}

/// When something began, for a chare that measures how long it takes. Clocks of hosts differ, so what travels is how long
/// ago that was; the time under way does not count.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Of what begins now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long ago that was.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Serialize for Stopwatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.elapsed().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stopwatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let elapsed = Duration::deserialize(deserializer)?;
        // A clock that began to run after that knows no earlier moment than its first.
        Ok(Self(Instant::now().checked_sub(elapsed).unwrap_or_else(Instant::now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pup::{pack, unpack};

    #[test]
    fn a_stopwatch_goes_on_where_it_was() {
        let begun = Stopwatch(Instant::now().checked_sub(Duration::from_secs(7)).unwrap());
        let arrived = unpack::<Stopwatch>(&pack(&begun)).unwrap();
        assert!((7.0..8.0).contains(&arrived.elapsed().as_secs_f64()), "{arrived:?}");
        let ages = pack(&Duration::MAX);
        assert!(unpack::<Stopwatch>(&ages).unwrap().elapsed() < Duration::from_secs(60));
    }
}
