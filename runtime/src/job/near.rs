//! Which cores of this machine are near each other. A message between threads takes several times as long where their
//! cores share no cache, and virtual machines do not tell which do, so it is measured, at most every ten seconds
//! for all runs of a user: hosts of virtual machines move their cores about.
//!
//! On the machine where this was measured a cache line takes 60 ns between cores that share a cache and 260 between
//! others, and a message between two PEs 170 and 650 ns (`metachare bench --only pes/`). Threads that talk with each
//! other get cores that are near. The measurement takes 2 ms.

use crate::pe::scheduler::pin;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Machines with more cores keep the system's order: it would take seconds to measure all pairs.
const CORES_MAX: usize = 16;
/// What differs by less than this factor counts as equal, and the system's order decides.
const ALIKE: f64 = 1.5;
/// Of so many stretches, each of so many exchanges, the best one counts.
const STRETCHES: u32 = 12;
const EXCHANGES: u32 = 50;
/// A pair of idle cores needs less than this.
const LIMIT: Duration = Duration::from_millis(4);
const FRESH: Duration = Duration::from_secs(10);
const FILE: &str = "cores.near";

/// What was found, as it is kept. It is worth nothing after a restart, or where other cores may be used.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    boot: String,
    at_s: u64,
    cores: Vec<usize>,
    order: Vec<usize>,
}

/// The cores `allowed` in such an order that neighbours in it are near each other; their own order where all are alike,
/// or it cannot be known. Not to be called by two processes at once, which would measure each other.
pub(super) fn order(directory: &Path, allowed: &[usize]) -> Vec<usize> {
    if !(3..=CORES_MAX).contains(&allowed.len()) {
        return allowed.to_vec();
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let at_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let path = directory.join(FILE);
    let kept = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Found>(&text).ok());
    if let Some(kept) = kept.filter(|kept| kept.holds(&boot, at_s, allowed)) {
        return kept.order;
    }
    // Busy cores cannot be measured. That is kept too, or on a busy machine every node would lose time by trying.
    let chain = measure(allowed).map_or_else(|| (0..allowed.len()).collect(), |costs| chain(&costs));
    let order: Vec<usize> = chain.into_iter().map(|at| allowed[at]).collect();
    let found = Found { boot, at_s, cores: allowed.to_vec(), order: order.clone() };
    // Where it cannot be kept it is measured again next time.
    if let Ok(text) = serde_json::to_vec(&found) {
        let _ = fs::write(&path, text);
    }
    order
}

impl Found {
    fn holds(&self, boot: &str, now_s: u64, allowed: &[usize]) -> bool {
        let sorted = |cores: &[usize]| {
            let mut cores = cores.to_vec();
            cores.sort_unstable();
            cores
        };
        self.boot == boot
            && self.cores == allowed
            && sorted(&self.order) == sorted(allowed)
            && (self.at_s..self.at_s.saturating_add(FRESH.as_secs())).contains(&now_s)
    }
}

/// Starts with the first core and always takes the nearest of those that are left.
fn chain(costs: &[Vec<f64>]) -> Vec<usize> {
    let mut left: Vec<usize> = (1..costs.len()).collect();
    let mut chain = vec![0];
    while let Some(&last) = chain.last() {
        let cost = |at: &usize| costs[last][*at];
        let Some(least) = left.iter().map(cost).min_by(f64::total_cmp) else { break };
        let next = left.iter().position(|at| cost(at) <= ALIKE * least).unwrap_or_default();
        chain.push(left.remove(next));
    }
    chain
}

/// Nanoseconds from one core to the other, for all pairs; `None` if some core is busy or cannot be used.
fn measure(cores: &[usize]) -> Option<Vec<Vec<f64>>> {
    let mut costs = vec![vec![0.0; cores.len()]; cores.len()];
    for one in 0..cores.len() {
        for other in 0..one {
            let cost = exchange_ns(cores[one], cores[other])?;
            (costs[one][other], costs[other][one]) = (cost, cost);
        }
    }
    Some(costs)
}

/// A word that has cache lines to itself.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

#[derive(Default)]
struct Table {
    there: Word,
    back: Word,
    has_failed: AtomicBool,
}

impl Table {
    /// Waits until `word` says `what`; false if it is too late for that.
    fn await_word(&self, word: &Word, what: u32, end: Instant) -> bool {
        let mut looks = 0u32;
        while word.0.load(Ordering::Acquire) != what {
            looks += 1;
            if looks.is_multiple_of(256) && (Instant::now() > end || self.has_failed.load(Ordering::Relaxed))
            {
                self.has_failed.store(true, Ordering::Relaxed);
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }
}

fn exchange_ns(one: usize, other: usize) -> Option<f64> {
    let (table, end) = (Arc::new(Table::default()), Instant::now() + LIMIT);
    let count = STRETCHES * EXCHANGES;
    let echo = {
        let table = Arc::clone(&table);
        std::thread::Builder::new().name("near".into()).spawn(move || {
            let is_there = pin(&[other]);
            for n in 1..=count {
                if !is_there || !table.await_word(&table.there, n, end) {
                    return;
                }
                table.back.0.store(n, Ordering::Release);
            }
        })
    };
    let call = std::thread::Builder::new().name("near".into()).spawn(move || {
        let (mut best, mut begin) = (f64::INFINITY, Instant::now());
        let is_there = pin(&[one]);
        for n in 1..=count {
            table.there.0.store(n, Ordering::Release);
            if !is_there || !table.await_word(&table.back, n, end) {
                return None;
            }
            if n % EXCHANGES == 0 {
                best = best.min(begin.elapsed().as_nanos() as f64 / f64::from(2 * EXCHANGES));
                begin = Instant::now();
            }
        }
        Some(best)
    });
    let found = call.ok()?.join().ok()?;
    echo.ok()?.join().ok()?;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(pairs: &[(usize, usize, f64)], count: usize) -> Vec<Vec<f64>> {
        let mut costs = vec![vec![280.0; count]; count];
        for &(one, other, cost) in pairs {
            (costs[one][other], costs[other][one]) = (cost, cost);
        }
        costs
    }

    #[test]
    fn neighbours_in_the_chain_are_near_and_like_cores_keep_their_order() {
        assert_eq!(chain(&costs(&[(0, 3, 70.0), (1, 2, 67.0)], 4)), [0, 3, 1, 2]);
        assert_eq!(chain(&costs(&[(0, 3, 70.0), (1, 2, 67.0), (3, 2, 275.0)], 4)), [0, 3, 1, 2]);
        assert_eq!(chain(&costs(&[(0, 2, 200.0), (1, 3, 220.0)], 4)), [0, 1, 2, 3]);
        assert_eq!(chain(&costs(&[], 1)), [0]);
    }

    #[test]
    fn what_was_found_holds_for_a_moment_these_cores_and_this_start_of_the_machine() {
        let found = Found { boot: "a".into(), at_s: 1000, cores: vec![0, 1, 2], order: vec![0, 2, 1] };
        assert!(found.holds("a", 1000, &[0, 1, 2]) && found.holds("a", 1000 + 9, &[0, 1, 2]));
        assert!(!found.holds("b", 1000, &[0, 1, 2]), "another start");
        assert!(!found.holds("a", 999, &[0, 1, 2]) && !found.holds("a", 1000 + 10, &[0, 1, 2]));
        assert!(!found.holds("a", 1000, &[0, 1]) && !found.holds("a", 1000, &[0, 1, 3]));
        for order in [vec![0, 1], vec![0, 1, 1], vec![0, 1, 9]] {
            let wrong = Found { boot: "a".into(), at_s: 1000, cores: vec![0, 1, 2], order };
            assert!(!wrong.holds("a", 1000, &[0, 1, 2]), "{wrong:?}");
        }
    }

    #[test]
    fn an_order_has_all_cores_and_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let allowed: Vec<usize> = crate::node::processors::allowed_cores();
        let path = directory.path().join(FILE);
        fs::write(&path, "no order at all").unwrap();
        let mut order = order(directory.path(), &allowed);
        if (3..=CORES_MAX).contains(&allowed.len()) {
            let kept: Found = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!((kept.cores, &kept.order), (allowed.clone(), &order));
        }
        order.sort_unstable();
        assert_eq!(order, allowed);
    }

    #[test]
    fn a_core_that_does_not_exist_is_given_up_at_once() {
        let begin = Instant::now();
        assert_eq!(exchange_ns(0, 1_000_000), None);
        assert!(begin.elapsed() < Duration::from_secs(5), "it waits for a bounded time");
    }
}
