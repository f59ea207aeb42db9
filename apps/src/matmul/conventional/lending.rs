//! Units of work that move while they are worked on: who should hand how many to whom, so that all end together.
//!
//! Shares by speed rest on what was measured for a moment. What the parts really reach shows while they work, and
//! near the end those that are late can hand over what they have not begun. Parts are asked one thing at a time.
//!
//! The rule is the last step of guided self-scheduling (Polychronopoulos and Kuck, 1987) turned around: work is
//! given out beforehand, where its data lie, and only the difference moves. Balancers, which move whole chares, do not make up
//! for it: measured in `bench/MEASURED.md`, as is `fox`'s way.

/// Work moves to a part when it has left at most this part of the time that has passed: by then rates are known
/// well, and what has to be sent still comes in time.
const LEAD: f64 = 0.1;

/// How far each part has come.
#[derive(Clone, Debug)]
pub(super) struct Lending {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    left: u64,
    done: u64,
    /// Units that came from others and are not done. No more come while this is more than one: they need memory.
    borrowed: u64,
    is_asked: bool,
    /// It has nothing more that it could give.
    is_closed: bool,
    /// Nothing moves from or to it.
    is_apart: bool,
}

impl Part {
    fn rate(&self, elapsed: f64) -> f64 {
        // The unit that is being done counts half.
        (self.done as f64).max(0.5) / elapsed
    }

    /// When it will have done what it has, seconds from now.
    fn end(&self, elapsed: f64) -> f64 {
        (self.left as f64 - 0.5).max(0.0) / self.rate(elapsed)
    }
}

/// A part is to give units to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Loan {
    /// Who gives.
    pub(super) from: usize,
    /// Who takes.
    pub(super) to: usize,
    /// How many units, at least one.
    pub(super) units: u64,
}

impl Lending {
    /// Parts with so many units each, none done.
    pub(super) fn new(units: &[u64]) -> Self {
        Self { parts: units.iter().map(|&left| Part { left, ..Part::default() }).collect() }
    }

    /// A part neither takes nor gives anything, for instance because it has no memory for what is on its way.
    pub(super) fn set_apart(&mut self, part: usize) {
        self.parts[part].is_apart = true;
    }

    /// A part has done a unit, of its own or a borrowed one.
    pub(super) fn done(&mut self, part: usize, is_borrowed: bool) {
        let part = &mut self.parts[part];
        part.left = part.left.saturating_sub(1);
        part.done += 1;
        part.borrowed = part.borrowed.saturating_sub(u64::from(is_borrowed));
    }

    /// A part that was asked to has given so many units. One that had none left is not asked again.
    pub(super) fn given(&mut self, Loan { from, to, units }: Loan) {
        let giver = &mut self.parts[from];
        giver.is_asked = false;
        giver.is_closed |= units == 0;
        giver.left = giver.left.saturating_sub(units);
        let taker = &mut self.parts[to];
        taker.is_asked = false;
        taker.left += units;
        taker.borrowed += units;
    }

    /// How many units each part has done.
    pub(super) fn units_done(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.done).collect()
    }

    /// What should move now, `elapsed` seconds after the start, if moving it from one part to another takes
    /// `transfer` seconds; the parts are busy with it until [`given`](Self::given) says what came of it.
    pub(super) fn next(&mut self, elapsed: f64, transfer: impl Fn(usize, usize) -> f64) -> Option<Loan> {
        let ends: Vec<f64> = self.parts.iter().map(|part| part.end(elapsed)).collect();
        let is_free = |at: &usize| !self.parts[*at].is_asked && !self.parts[*at].is_apart;
        let gives = |at: &usize| self.parts[*at].left >= 2 && !self.parts[*at].is_closed;
        let takes = |at: &usize| {
            let part = &self.parts[*at];
            part.done > 0 && part.borrowed <= 1 && ends[*at] <= LEAD * elapsed
        };
        let by_end = |one: &usize, other: &usize| ends[*one].total_cmp(&ends[*other]);
        let all = || (0..ends.len()).filter(is_free);
        let from = all().filter(gives).max_by(by_end)?;
        let to = all().filter(|at| *at != from && takes(at)).min_by(by_end)?;
        let gap = ends[from] - ends[to] - transfer(from, to);
        let of_a_unit = 1.0 / self.parts[from].rate(elapsed) + 1.0 / self.parts[to].rate(elapsed);
        // Negative or not a number: 0.
        let units = ((gap / of_a_unit) as u64).min(self.parts[from].left - 1);
        if units == 0 {
            return None;
        }
        self.parts[from].is_asked = true;
        self.parts[to].is_asked = true;
        Some(Loan { from, to, units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_part_that_is_late_hands_over_so_many_that_both_end_together() {
        let mut lending = Lending::new(&[100, 100]);
        (0..95).for_each(|_| lending.done(0, false));
        (0..47).for_each(|_| lending.done(1, false));
        let loan = lending.next(95.0, |_, _| 0.5);
        // 5 and 53 units are left, at 1 and 0.5 a second.
        assert_eq!(loan, Some(Loan { from: 1, to: 0, units: 33 }));
    }

    const TRANSFER: f64 = 0.3;

    /// Parts that work in virtual time: what they have, and when they will have done the unit that they are at.
    struct Bench {
        rates: Vec<f64>,
        /// Own units, borrowed units.
        queues: Vec<[u64; 2]>,
        done_at: Vec<Option<f64>>,
        arriving: Vec<(f64, usize, u64)>,
        lending: Lending,
        now: f64,
    }

    impl Bench {
        fn new(units: &[u64], rates: &[f64]) -> Self {
            let mut bench = Self {
                rates: rates.to_vec(),
                queues: units.iter().map(|&own| [own, 0]).collect(),
                done_at: vec![None; units.len()],
                arriving: Vec::new(),
                lending: Lending::new(units),
                now: 0.0,
            };
            (0..units.len()).for_each(|part| bench.begin(part));
            bench
        }

        fn begin(&mut self, part: usize) {
            let has_any = self.queues[part] != [0, 0];
            self.done_at[part] = has_any.then(|| self.now + 1.0 / self.rates[part]);
        }

        /// Up to the next event; false when there is none.
        fn step(&mut self, lends: bool) -> bool {
            let units = self.done_at.iter().enumerate().filter_map(|(part, at)| Some(((*at)?, part)));
            let unit = units.min_by(|one, other| one.0.total_cmp(&other.0));
            self.arriving.sort_by(|one, other| other.0.total_cmp(&one.0));
            let arrival = self.arriving.last().copied();
            match (unit, arrival) {
                (None, None) => return false,
                (unit, Some((at, to, units))) if unit.is_none_or(|unit| at <= unit.0) => {
                    self.arriving.pop();
                    self.now = at;
                    self.queues[to][1] += units;
                    if self.done_at[to].is_none() {
                        self.begin(to);
                    }
                }
                (Some((at, part)), _) => {
                    self.now = at;
                    let is_borrowed = self.queues[part][1] > 0;
                    self.queues[part][usize::from(is_borrowed)] -= 1;
                    self.lending.done(part, is_borrowed);
                    self.begin(part);
                }
                (None, Some(_)) => unreachable!("an arrival alone is taken above"),
            }
            while lends && let Some(loan) = self.lending.next(self.now, |_, _| TRANSFER) {
                // The unit that is being done stays.
                let units = loan.units.min(self.queues[loan.from][0].saturating_sub(1));
                self.queues[loan.from][0] -= units;
                self.arriving.push((self.now + TRANSFER, loan.to, units));
                self.lending.given(Loan { units, ..loan });
            }
            true
        }

        fn run(mut self, lends: bool) -> (f64, Vec<u64>) {
            while self.step(lends) {}
            (self.now, self.lending.units_done())
        }
    }

    #[test]
    fn parts_that_were_measured_wrong_end_together() {
        // Speeds 1, 0.55 and 0.25 were thought to be 1.06, 0.5 and 0.28.
        let (units, rates) = ([221, 104, 59], [2.0, 1.1, 0.5]);
        let least = 384.0 / 3.6;
        let (alone, _) = Bench::new(&units, &rates).run(false);
        let (lent, done) = Bench::new(&units, &rates).run(true);
        assert!(alone > 1.1 * least && lent < 1.02 * least, "{alone} {lent} {least}");
        assert_eq!(done.iter().sum::<u64>(), 384);
    }

    #[test]
    fn nobody_lends_what_comes_too_late_or_is_the_last() {
        let mut lending = Lending::new(&[10, 10]);
        (0..10).for_each(|_| lending.done(0, false));
        (0..8).for_each(|_| lending.done(1, false));
        assert_eq!(lending.clone().next(10.0, |_, _| 1.0), None);
        lending.done(1, false);
        assert_eq!(lending.next(10.0, |_, _| 0.0), None, "it is at its last one");
    }

    #[test]
    fn one_that_has_nothing_to_give_is_asked_once_and_one_that_has_done_nothing_takes_nothing() {
        let mut lending = Lending::new(&[10, 40, 0]);
        (0..10).for_each(|_| lending.done(0, false));
        lending.done(1, false);
        let loan = lending.next(10.0, |_, _| 0.0).unwrap();
        assert_eq!((loan.from, loan.to), (1, 0));
        assert_eq!(lending.next(10.0, |_, _| 0.0), None, "both are busy with it");
        lending.given(Loan { units: 0, ..loan });
        assert_eq!(lending.next(10.0, |_, _| 0.0), None);
    }

    #[test]
    fn one_that_is_apart_takes_and_gives_nothing() {
        let mut lending = Lending::new(&[10, 40]);
        (0..10).for_each(|_| lending.done(0, false));
        lending.done(1, false);
        for apart in 0..2 {
            let mut lending = lending.clone();
            lending.set_apart(apart);
            assert_eq!(lending.next(10.0, |_, _| 0.0), None);
        }
        assert!(lending.next(10.0, |_, _| 0.0).is_some());
    }

    proptest! {
        #[test]
        fn all_units_are_done_and_lending_never_costs_much(
            parts in prop::collection::vec((0u64..60, 0.2f64..3.0), 1..8),
        ) {
            let (units, rates): (Vec<u64>, Vec<f64>) = parts.into_iter().unzip();
            let (alone, _) = Bench::new(&units, &rates).run(false);
            let (lent, done) = Bench::new(&units, &rates).run(true);
            prop_assert_eq!(done.iter().sum::<u64>(), units.iter().sum::<u64>());
            // A unit of the slowest may be begun just before the end.
            let unit = rates.iter().map(|rate| 1.0 / rate).fold(0.0, f64::max);
            prop_assert!(lent <= alone + unit + TRANSFER, "{} {}", lent, alone);
        }
    }
}
