//! Loads that change while a program runs, from a seed: what balancers are tried with, here and by whoever makes the same
//! work in a run.

use super::random::Random;

/// How the loads of a list of chares are shaped, and how they change from step to step. The mean of all is about 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The load grows along the list, from 0 to 2.
    Linear,
    /// One tenth of the list, somewhere, is ten times as heavy as the rest.
    HotSpot,
    /// A hill of a quarter of the list moves along it, once around in [`WAVE_STEPS`] steps.
    Wave,
    /// Each load goes its own way, up and down by up to a twentieth a step, between 0.25 and 4.
    Walk,
}

impl Pattern {
    /// All, by the names that users write.
    pub const ALL: [(&'static str, Self); 4] =
        [("linear", Self::Linear), ("hot-spot", Self::HotSpot), ("wave", Self::Wave), ("walk", Self::Walk)];

    /// The loads of chare `index` of `count`, one for each step, without end. Whoever knows these numbers can go on at any
    /// step (`nth`).
    #[must_use]
    pub fn course(self, index: u32, count: u32, seed: u64) -> Course {
        let count = count.max(1);
        let begin = Random::of(seed, u64::MAX).below(u64::from(count)) as u32;
        let place = (index % count + begin) % count;
        let place = if self == Self::Linear { index % count } else { place };
        let random = Random::of(seed, u64::from(index));
        Course { pattern: self, place, count, step: 0, load: 1.0, random }
    }
}

/// Steps in which a wave comes back to where it was.
pub const WAVE_STEPS: u64 = 400;

/// The loads of one chare from step to step.
#[derive(Clone, Debug)]
pub struct Course {
    pattern: Pattern,
    place: u32,
    count: u32,
    step: u64,
    load: f64,
    random: Random,
}

impl Iterator for Course {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let at = (f64::from(self.place) + 0.5) / f64::from(self.count);
        let load = match self.pattern {
            Pattern::Linear => 2.0 * at,
            Pattern::HotSpot => {
                if at < 0.1 {
                    10.0 / 1.9
                } else {
                    1.0 / 1.9
                }
            }
            Pattern::Wave => {
                let moved = (self.step % WAVE_STEPS) as f64 / WAVE_STEPS as f64;
                let away = (at + 1.0 - moved) % 1.0;
                // A parabola between 0 and a quarter, of mean 2/3 of its height.
                let hill = if away < 0.25 { 1.0 - (8.0 * away - 1.0) * (8.0 * away - 1.0) } else { 0.0 };
                0.5 + 3.0 * hill
            }
            Pattern::Walk => {
                let now = self.load;
                let factor = 1.0 + 0.05 * (2.0 * self.random.part() - 1.0);
                self.load = (now * factor).clamp(0.25, 4.0);
                now
            }
        };
        self.step += 1;
        Some(load)
    }
}

/// The load of a node of a grid whose work lies around the centre: 100 at the rim and up to 2,000 in the middle, after the
/// tasks of a cluster of water molecules in CP2K.
#[must_use]
pub fn clustered(sides: &[u32]) -> Vec<u64> {
    let count: u32 = sides.iter().product();
    let load = |node: u32| {
        let (mut left, mut far) = (node, 0.0);
        for side in sides.iter().rev() {
            let (at, side) = (f64::from(left % side), f64::from(*side));
            left /= side as u32;
            let away = (at - (side - 1.0) / 2.0) / (side / 4.0);
            far += away * away;
        }
        (100.0 + 1900.0 * f64::exp(-far)).round() as u64
    };
    (0..count).map(load).collect()
}

/// A load as chares of `grain` each, the last one smaller.
pub fn grains(load: u64, grain: u64) -> impl Iterator<Item = u64> {
    let grain = grain.max(1);
    (0..load.div_ceil(grain)).map(move |at| grain.min(load - at * grain))
}
