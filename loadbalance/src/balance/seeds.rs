//! Seed balancers: where a chare goes that is made without a place of its own.
//!
//! Of the three of CHARM two are here: at random, and by tokens of PEs that have nothing to do (A. Sinha and L. Kalé, "A load
//! balancing strategy for prioritized execution of tasks", IPPS 1993). The third, within the neighbourhood (ACWN), needs to
//! know the loads of others at every moment; tokens need to know only who is idle.

use super::random::Random;
use std::collections::VecDeque;

/// How many PEs one that is idle asks at a time. Where there are more, those that are asked in vain keep its token.
pub const ASKED_MAX: usize = 8;

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

/// The PEs that `me`, which is idle, asks for chares: at most [`ASKED_MAX`] others, chosen anew each time.
#[must_use]
pub fn asked_by(me: u32, pe_count: u32, random: &mut Random) -> Vec<u32> {
    let mut others: Vec<u32> = (0..pe_count).filter(|pe| *pe != me).collect();
    let count = others.len().min(ASKED_MAX);
    for at in 0..count {
        let left = others.len() - at;
        let chosen = at + ((random.part() * left as f64) as usize).min(left - 1);
        others.swap(at, chosen);
    }
    others.truncate(count);
    others
}

/// PEs that have nothing to do and have asked this one for chares, in the order in which they did.
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

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Divides `count` chares, numbered in the order of their turns on PE `me`, between it and those that wait: who has
    /// waited longest is the first to get as many as its speed earns beside that of `me`. Gives the number of each chare that goes
    /// and the PE where it goes; who gets none goes on waiting.
    ///
    /// Those that go are taken from all parts of the list, so that what is urgent begins on every PE; the first stays.
    pub fn divide(&mut self, me: u32, count: usize, speeds: &[f64]) -> Vec<(usize, u32)> {
        let speed = |pe: u32| {
            speeds.get(pe as usize).copied().filter(|speed| speed.is_finite()).unwrap_or(0.0).max(0.0)
        };
        let mut here: Vec<usize> = (0..count).collect();
        let mut gone = Vec::new();
        self.waiting.retain(|&pe| {
            let both = speed(pe) + speed(me);
            let part = if both > 0.0 { speed(pe) / both } else { 0.5 };
            let goes = ((here.len() as f64 * part) as usize).min(here.len().saturating_sub(1));
            if goes == 0 {
                return true;
            }
            let all = std::mem::take(&mut here);
            for (at, chare) in all.iter().enumerate() {
                // Of `goes` chares so many have gone before this one, and with it.
                let (before, after) = (at * goes / all.len(), (at + 1) * goes / all.len());
                if after > before { gone.push((*chare, pe)) } else { here.push(*chare) }
            }
            false
        });
        gone
    }
}

/// Whether a PE gains time when it gives chares away: not if it would have done their work sooner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worth {
    /// Seconds that it needs for a message to such a chare, as it was lately.
    run_s: Option<f64>,
    /// Seconds that it needs to give one away.
    give_s: Option<f64>,
}

impl Worth {
    /// It has run so many entry methods in that time.
    pub fn ran(&mut self, seconds: f64, entries: u64) {
        if entries >= ENTRIES_MIN {
            self.run_s = Some(seconds / entries as f64);
        }
    }

    /// It has given so many chares away in that time.
    pub fn gave(&mut self, seconds: f64, chares: usize) {
        if chares > 0 {
            let now = seconds / chares as f64;
            self.give_s = Some(self.give_s.map_or(now, |before| (before + now) / 2.0));
        }
    }

    /// How many chares it should give at most: few as long as it is not known what that costs.
    #[must_use]
    pub fn most(&self) -> usize {
        match (self.run_s, self.give_s) {
            (_, None) => GIVEN_FIRST,
            // Whoever gets it needs about as long as it to take it in.
            (Some(run), Some(give)) if run < 2.0 * give => 0,
            _ => usize::MAX,
        }
    }
}

/// Of fewer entry methods the mean says nothing.
const ENTRIES_MIN: u64 = 16;
/// Chares that may be given away to find out what that costs.
const GIVEN_FIRST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chance_follows_speed() {
        let mut random = Random::new(1);
        let mut counts = [0; 3];
        (0..8000).for_each(|_| counts[at_random(&[2.0, 0.0, 6.0], &mut random) as usize] += 1);
        assert!(counts[1] == 0 && (1800..2200).contains(&counts[0]), "{counts:?}");
        assert_eq!([at_random(&[], &mut random), at_random(&[f64::NAN, -1.0], &mut random)], [0, 0]);
    }

    #[test]
    fn an_idle_pe_asks_a_few_others_and_in_time_all() {
        let mut random = Random::new(3);
        let mut asked = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let now = asked_by(7, 20, &mut random);
            assert_eq!(now.iter().collect::<std::collections::BTreeSet<_>>().len(), ASKED_MAX);
            asked.extend(now);
        }
        assert!(asked.len() == 19 && !asked.contains(&7));
        assert_eq!(asked_by(0, 1, &mut random), []);
        assert_eq!(asked_by(0, 2, &mut random), [1]);
    }

    #[test]
    fn who_has_waited_longest_is_served_once() {
        let mut tokens = tokens(&[3, 1, 3, 2]);
        tokens.busy(1);
        assert_eq!([(); 3].map(|()| tokens.place(9)), [3, 2, 9]);
    }

    fn tokens(pes: &[u32]) -> Tokens {
        let mut tokens = Tokens::default();
        pes.iter().for_each(|pe| tokens.idle(*pe));
        tokens
    }

    #[test]
    fn who_asks_gets_what_its_speed_earns_and_the_first_stays() {
        let mut equal = tokens(&[1, 1]);
        assert_eq!(equal.divide(0, 4, &[1.0, 1.0]), [(1, 1), (3, 1)]);
        assert!(equal.is_empty(), "served once, however often it asked");
        let mut slow = tokens(&[1]);
        assert_eq!(slow.divide(0, 3, &[1.0, 0.3]), [], "it would end after the other three");
        assert_eq!(slow.divide(0, 5, &[1.0, 0.3]), [(4, 1)]);
        let mut two = tokens(&[2, 1]);
        assert_eq!(two.divide(0, 2, &[1.0; 3]), [(1, 2)]);
        assert_eq!((two.divide(0, 1, &[1.0; 3]), two.is_empty()), (vec![], false));
        assert_eq!(two.divide(0, 2, &[0.0, f64::NAN, 0.0]), [(1, 1)], "speeds that are none are equal");
    }

    #[test]
    fn nobody_gives_away_what_it_would_have_done_sooner() {
        let mut worth = Worth::default();
        assert_eq!(worth.most(), GIVEN_FIRST);
        worth.gave(80e-6, 8);
        assert_eq!(worth.most(), usize::MAX, "nobody knows how long they run");
        worth.ran(1e-6, 1);
        worth.ran(32e-6, 16);
        assert_eq!(worth.most(), 0, "2 us against 20");
        worth.ran(400e-6, 16);
        assert_eq!(worth.most(), usize::MAX, "25 us against 20");
        worth.gave(20e-6, 1);
        worth.gave(1.0, 0);
        assert_eq!(worth.most(), 0, "25 us against 30");
    }

    proptest! {
        #[test]
        fn none_is_lost_and_none_goes_twice(
            me in 0u32..6, asked in prop::collection::vec(0u32..6, 0..6), count in 0usize..50,
            speeds in prop::collection::vec(0.0f64..2.0, 6),
        ) {
            let mut tokens = tokens(&asked);
            let gone = tokens.divide(me, count, &speeds);
            let chares: std::collections::BTreeSet<_> = gone.iter().map(|(chare, _)| *chare).collect();
            prop_assert_eq!(chares.len(), gone.len());
            prop_assert!(!chares.contains(&0) && chares.iter().all(|chare| *chare < count));
            prop_assert!(gone.iter().all(|(_, pe)| asked.contains(pe)));
        }
    }
}
