//! Seed balancers: where a chare is created, chosen by the PE that creates it from what it knows of others.
//!
//! The three of CHARM: at random; within the neighbourhood (ACWN: W. Shu and L. Kalé, "A dynamic scheduling strategy for the
//! chare-kernel system", Supercomputing 1989), where a chare goes on from PE to PE until it meets none that is better off;
//! and by tokens of PEs that have nothing to do.

use super::random::Random;
use super::view::key;
use std::collections::VecDeque;

/// What a PE knows of one, itself or another: it may be out of date.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// The PE.
    pub pe: u32,
    /// Work that waits there.
    pub work: f64,
    /// Its speed.
    pub speed: f64,
}

impl Queue {
    /// Seconds until it would have done this load too.
    #[must_use]
    pub fn seconds_with(&self, load: f64) -> f64 {
        (self.work + load) / self.speed
    }
}

/// A PE at random, the more often the faster it is; 0 if there are none or no speed is positive.
#[must_use]
pub fn at_random(speeds: &[f64], random: &mut Random) -> u32 {
    let amount = |speed: &f64| if speed.is_finite() { speed.max(0.0) } else { 0.0 };
    let mut left = random.part() * speeds.iter().map(amount).sum::<f64>();
    let is_met = |speed: &f64| {
        left -= amount(speed);
        left < 0.0
    };
    speeds.iter().position(is_met).unwrap_or(0) as u32
}

/// Where a chare goes next that came over so many `hops`: to the neighbour that would have done it soonest, or `here` if
/// none is better off or the hops are used up; of equals here, then the lowest number.
#[must_use]
pub fn within_neighbourhood(here: Queue, neighbours: &[Queue], load: f64, hops: u32, hops_max: u32) -> u32 {
    if hops >= hops_max {
        return here.pe;
    }
    let best = neighbours.iter().min_by_key(|other| (key(other.seconds_with(load)), other.pe));
    best.filter(|best| best.seconds_with(load) < here.seconds_with(load)).map_or(here.pe, |best| best.pe)
}

/// PEs that have nothing to do and ask for chares, in the order in which they asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    waiting: VecDeque<u32>,
}

impl Tokens {
    /// A PE has nothing to do. It waits once, however often it asks.
    pub fn idle(&mut self, pe: u32) {
        if !self.waiting.contains(&pe) {
            self.waiting.push_back(pe);
        }
    }

    /// A PE has found something to do by itself.
    pub fn busy(&mut self, pe: u32) {
        self.waiting.retain(|waiting| *waiting != pe);
    }

    /// Where a new chare goes: to the PE that has waited longest, whose token it takes, else `here`.
    pub fn place(&mut self, here: u32) -> u32 {
        self.waiting.pop_front().unwrap_or(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_follows_speed() {
        let mut random = Random::new(1);
        let mut counts = [0; 3];
        (0..8000).for_each(|_| counts[at_random(&[2.0, 0.0, 6.0], &mut random) as usize] += 1);
        assert!(counts[1] == 0 && (1800..2200).contains(&counts[0]), "{counts:?}");
        assert_eq!([at_random(&[], &mut random), at_random(&[f64::NAN, -1.0], &mut random)], [0, 0]);
    }

    #[test]
    fn a_chare_goes_on_until_nobody_is_better_off() {
        let queue = |pe, work, speed| Queue { pe, work, speed };
        let here = queue(5, 4.0, 1.0);
        let go = |neighbours: &[Queue], hops| within_neighbourhood(here, neighbours, 1.0, hops, 3);
        assert_eq!(go(&[queue(1, 3.0, 1.0), queue(2, 4.0, 2.0)], 0), 2, "as fast as it is");
        assert_eq!(go(&[queue(1, 4.0, 1.0)], 0), 5, "no better off");
        assert_eq!(go(&[queue(7, 0.0, 1.0), queue(3, 0.0, 1.0)], 2), 3);
        assert_eq!((go(&[queue(1, 0.0, 1.0)], 3), go(&[], 0)), (5, 5));
    }

    #[test]
    fn who_has_waited_longest_is_served_once() {
        let mut tokens = Tokens::default();
        [3, 1, 3, 2].into_iter().for_each(|pe| tokens.idle(pe));
        tokens.busy(1);
        assert_eq!([(); 3].map(|()| tokens.place(9)), [3, 2, 9]);
    }

    #[test]
    fn each_spreads_chares_that_one_pe_makes() {
        // 1,000 chares on PE 0 of a circle of ten, one of them twice as fast; the tokens of all that are idle.
        let speeds = [1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        let mut random = Random::new(2);
        let mut by_chance = [0.0; 10];
        let mut by_neighbours = [0.0; 10];
        for _ in 0..1000 {
            by_chance[at_random(&speeds, &mut random) as usize] += 1.0;
            let (mut pe, mut hops) = (0, 0);
            loop {
                let queue =
                    |pe: u32| Queue { pe, work: by_neighbours[pe as usize], speed: speeds[pe as usize] };
                let next = within_neighbourhood(
                    queue(pe),
                    &[queue((pe + 1) % 10), queue((pe + 9) % 10)],
                    1.0,
                    hops,
                    10,
                );
                if next == pe {
                    break;
                }
                (pe, hops) = (next, hops + 1);
            }
            by_neighbours[pe as usize] += 1.0;
        }
        for counts in [by_chance, by_neighbours] {
            let most = counts.iter().zip(speeds).map(|(count, speed)| count / speed).fold(0.0, f64::max);
            assert!(most < 1.4 * 1000.0 / 11.0, "{counts:?}");
        }
    }
}
