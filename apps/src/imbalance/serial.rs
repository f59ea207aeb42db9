//! The same by one thread, which jumps to the ends of the chains: what runs are compared with.

use super::chain;
use super::problem::{Numbers, Problem};
use chares::loadbalance::balance::patterns::Course;

/// What a run has to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The sum of all numbers, each time that they are added up.
    pub sums: Vec<u64>,
    /// The number that each chare ends with.
    pub ends: Vec<u64>,
}

/// Computes it. Of states only the words that steps have changed are held.
#[must_use]
pub fn expected(problem: &Problem) -> Expected {
    let mut numbers: Vec<u64> = (0..problem.chares).map(|chare| problem.first(chare)).collect();
    let mut courses: Vec<Course> = (0..problem.chares).map(|chare| problem.course(chare, 0)).collect();
    let changed = problem.words.min(problem.steps as usize);
    let words = |chare: u32| (0..changed).map(move |word| problem.word(chare, word)).collect();
    let mut states: Vec<Vec<u64>> = (0..problem.chares).map(words).collect();
    let mut sums = Vec::new();
    for step in 0..problem.steps {
        if problem.adds_before(step) {
            sums.push(numbers.iter().fold(0, |sum, number| add(sum, *number)));
        }
        let before = std::mem::take(&mut numbers);
        for (chare, (course, state)) in (0..).zip(courses.iter_mut().zip(&mut states)) {
            let [left, right] = problem.neighbours(chare).map(|at| before[at as usize]);
            let known = Numbers { own: before[chare as usize], before: left, after: right };
            let word = problem.word_of_step(step).map(|at| &mut state[at]);
            let begin = Problem::begin(step, known, word.as_deref().copied().unwrap_or_default());
            let end = chain::jump(begin, problem.units(course));
            numbers.push(end);
            if let Some(word) = word {
                *word = end;
            }
        }
    }
    let ends = (0..).zip(numbers.iter().zip(&states)).map(|(chare, (last, state))| {
        let untouched = (changed..problem.words).map(|word| problem.word(chare, word));
        Problem::end(*last, state.iter().copied().chain(untouched))
    });
    Expected { sums, ends: ends.collect() }
}

/// A sum modulo the prime, so that it does not depend on the order.
#[must_use]
pub const fn add(one: u64, other: u64) -> u64 {
    (one + other) % chain::PRIME
}
