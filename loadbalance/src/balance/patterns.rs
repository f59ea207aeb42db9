//! Loads that change while a program runs, from a seed: what balancers are tried with, here and by whoever makes the same
//! work in a run.

use super::random::Random;
use super::view::Mobility;

/// How the loads of a list of chares are shaped, and how they change from step to step. The mean of all is about 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// All have the same, always.
    Even,
    /// The load grows along the list, from 0 to 2.
    Linear,
    /// One tenth of the list, somewhere, is ten times as heavy as the rest.
    HotSpot,
    /// A hill of a quarter of the list moves along it, once around in [`WAVE_STEPS`] steps.
    Wave,
    /// Each load goes its own way, up and down by up to a twentieth a step, between 0.25 and 4.
    Walk,
    /// Most of the load is in the middle of the list, where it is 23 times that of the ends, and most chares may go to few PEs
    /// ([`Task`]): like the tasks of a cluster of molecules in CP2K.
    Slots,
}

impl Pattern {
    /// All, by the names that users write.
    pub const ALL: [(&'static str, Self); 6] = [
        ("even", Self::Even),
        ("linear", Self::Linear),
        ("hot-spot", Self::HotSpot),
        ("wave", Self::Wave),
        ("walk", Self::Walk),
        ("slots", Self::Slots),
    ];

    /// The loads of chare `index` of `count`, one for each step, without end. Whoever knows these numbers can go on at any
    /// step (`nth`).
    #[must_use]
    pub fn course(self, index: u32, count: u32, seed: u64) -> Course {
        let count = count.max(1);
        let begin = Random::of(seed, u64::MAX).below(u64::from(count)) as u32;
        let place = (index % count + begin) % count;
        let is_fixed = matches!(self, Self::Linear | Self::Slots);
        let place = if is_fixed { index % count } else { place };
        let random = Random::of(seed, u64::from(index));
        Course { pattern: self, place, count, step: 0, load: 1.0, random }
    }
}

/// What a task of CP2K is of, from which follows where it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Of a grid that everybody has: it may run anywhere.
    Replicated,
    /// Of points that few have: where it is by default, and at neighbours whose part of the grid, with its rim, holds them.
    Local,
    /// A piece of one that is split over several PEs: it stays.
    Split,
}

impl Task {
    /// What the task of that number is: of eight, about one is replicated and one split.
    #[must_use]
    pub fn of(index: u32, seed: u64) -> Self {
        match Random::of(!seed, u64::from(index)).below(8) {
            0 => Self::Replicated,
            1 => Self::Split,
            _ => Self::Local,
        }
    }

    /// Where it may go: `near` are the PEs whose part of the grid, with its rim, holds its points.
    #[must_use]
    pub fn mobility(self, near: impl IntoIterator<Item = u32>) -> Mobility {
        match self {
            Self::Replicated => Mobility::Anywhere,
            Self::Local => Mobility::one_of(near),
            Self::Split => Mobility::Pinned,
        }
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
            Pattern::Even => 1.0,
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
            Pattern::Slots => {
                // A power of a parabola is the same on every machine, as an exponential is not. Its mean is 128/315.
                let away = 2.0 * at - 1.0;
                let hill = (1.0 - away * away) * (1.0 - away * away);
                0.1 + 0.9 * 315.0 / 128.0 * hill * hill
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_pattern_that_does_not_change_is_one() {
        for pattern in [Pattern::Even, Pattern::Linear, Pattern::HotSpot, Pattern::Slots] {
            let loads: Vec<f64> = (0..1000).filter_map(|at| pattern.course(at, 1000, 7).next()).collect();
            let mean = loads.iter().sum::<f64>() / 1000.0;
            assert!(loads.len() == 1000 && (mean - 1.0).abs() < 1e-3, "{pattern:?}: {mean}");
        }
    }

    #[test]
    fn most_load_of_slots_is_in_the_middle_and_most_tasks_go_to_few() {
        let load = |at| Pattern::Slots.course(at, 1000, 7).next().unwrap();
        assert!(load(500) / load(0) > 20.0 && load(0) == load(999));
        let of = |task| (0..8000).filter(|at| Task::of(*at, 3) == task).count();
        for few in [of(Task::Replicated), of(Task::Split)] {
            assert!((900..1100).contains(&few), "{few}");
        }
        assert_eq!(Task::Local.mobility([4, 3, 4]), Mobility::OneOf([3, 4].into()));
    }
}
