//! The figures by which a run on unlike machines is judged, as formulae.
//!
//! The measure is that of the metacomputer of 1995 (T. Neff's report): a mix of machines is worth so many
//! *equivalents* of one reference machine, and its efficiency is the share of that worth which the run realised.
//! Where an input makes a figure meaningless (no parts, no time, not a number) the answer is `None`: a report
//! then shows a gap, not a nonsense number.

/// How many of the fastest part all parts together are worth: the sum of the speeds over the largest one.
#[must_use]
pub fn equivalents(speeds: &[f64]) -> f64 {
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    if fastest > 0.0 { speeds.iter().sum::<f64>() / fastest } else { 0.0 }
}

/// Seconds that `work` takes if all parts work at their full rates (work per second) to the end.
#[must_use]
pub fn ideal_seconds(work: f64, rates: &[f64]) -> Option<f64> {
    let rate = positive(rates.iter().sum())?;
    (work.is_finite() && work >= 0.0).then(|| work / rate)
}

/// (time of the reference machine alone / time of the mix) / equivalents of the mix; 1.0 is perfect.
#[must_use]
pub fn mixed_node_efficiency(seconds_of_one: f64, seconds_of_mix: f64, equivalents: f64) -> Option<f64> {
    Some(positive(seconds_of_one)? / positive(seconds_of_mix)? / positive(equivalents)?)
}

/// How fast the parts were while they worked, relative to their `rates`: the `work` that they did over what these explain.
/// `busy_s` are the seconds in which each worked, or may have.
///
/// Above 1 the rates were measured too low, as they are where others used the machine in that moment, and what divides by
/// them finds a run better than perfect. Below 1 the work was slower than the kernel that was measured, or than the machine
/// was then.
#[must_use]
pub fn pace(work: f64, rates: &[f64], busy_s: &[f64]) -> Option<f64> {
    let explained: f64 = rates.iter().zip(busy_s).map(|(rate, busy_s)| rate * busy_s).sum();
    positive(positive(work)? / positive(explained)?).filter(|_| rates.len() == busy_s.len())
}

/// The efficiency that a division of the work can reach at best, before any communication: all parts start
/// together, and the run ends with the part that takes longest for its share.
///
/// `shares` (in any unit) and `speeds` belong together by position.
#[must_use]
pub fn best_efficiency(shares: &[f64], speeds: &[f64]) -> Option<f64> {
    if shares.len() != speeds.len() || shares.iter().any(|share| share.is_nan() || *share < 0.0) {
        return None;
    }
    let longest = shares.iter().zip(speeds).map(|(share, speed)| share / speed).fold(0.0, f64::max);
    let ideal = ideal_seconds(shares.iter().sum(), speeds)?;
    Some(positive(ideal)? / positive(longest)?)
}

/// How much longer the run takes than if the load were even: largest load / mean − 1; 0.0 is perfect.
///
/// A load is seconds of work of one PE. A run without any load is even.
#[must_use]
pub fn imbalance(loads: &[f64]) -> Option<f64> {
    if loads.is_empty() || loads.iter().any(|load| !load.is_finite() || *load < 0.0) {
        return None;
    }
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let largest = loads.iter().copied().fold(0.0, f64::max);
    Some(if mean > 0.0 { largest / mean - 1.0 } else { 0.0 })
}

/// The share of the work that behaves as if it were serial, seen from outside: (1/s − 1/p) / (1 − 1/p) for a
/// speedup `s` over the reference machine on `p` equivalents, `p` above 1.
///
/// A share that grows with the machine points at overhead; a constant one at work that is really serial.
/// Source: A. H. Karp and H. P. Flatt, "Measuring parallel processor performance", CACM 33 (1990).
#[must_use]
pub fn karp_flatt(speedup: f64, equivalents: f64) -> Option<f64> {
    let (speedup, equivalents) = (positive(speedup)?, positive(equivalents)?);
    (equivalents > 1.0).then(|| (1.0 / speedup - 1.0 / equivalents) / (1.0 - 1.0 / equivalents))
}

fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNLIKE: [f64; 3] = [1.0, 0.55, 0.25];

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * (1.0 + a.abs().max(b.abs()))
    }

    /// Seconds of one machine; rows of (equivalents, seconds of the mix, efficiency in per cent).
    type Table = (&'static str, f64, &'static [(f64, f64, f64)]);

    const TABLES_OF_1995: [Table; 6] = [
        ("APSP", 398.0, &[(2.1, 199.0, 95.0), (2.1, 192.0, 99.0), (3.2, 142.0, 88.0), (5.15, 84.0, 92.0)]),
        (
            "conventional",
            168.0,
            &[
                (1.75, 113.0, 85.0),
                (1.8, 148.0, 63.0),
                (2.6, 106.0, 61.0),
                (4.0, 74.0, 57.0),
                (4.0, 57.0, 74.0),
                (8.2, 52.0, 39.0),
                (10.5, 56.0, 29.0),
            ],
        ),
        (
            "Cannon",
            130.0,
            &[
                (1.5, 135.0, 64.0),
                (1.75, 134.0, 55.0),
                (2.25, 124.0, 47.0),
                (4.15, 108.0, 29.0),
                (6.05, 99.0, 22.0),
                (6.05, 91.0, 24.0),
                (8.1, 83.0, 19.0),
            ],
        ),
        (
            "Fox",
            181.0,
            &[
                (1.35, 180.0, 74.0),
                (1.55, 128.0, 91.0),
                (1.9, 124.0, 77.0),
                (3.0, 139.0, 43.0),
                (3.15, 99.0, 58.0),
                (5.45, 162.0, 20.0),
            ],
        ),
        (
            "Gauss",
            97.0,
            &[(2.1, 95.0, 49.0), (2.3, 85.0, 50.0), (3.4, 79.0, 36.0), (4.0, 80.0, 30.0), (5.25, 95.0, 19.0)],
        ),
        ("Jacobi", 92.0, &[(1.9, 65.0, 74.0), (2.0, 54.0, 85.0), (2.9, 67.0, 47.0)]),
    ];

    #[test]
    fn the_tables_of_1995_follow_from_the_formula() {
        for (app, one, rows) in TABLES_OF_1995 {
            for &(equivalents, mix, per_cent) in rows {
                let efficiency = 100.0 * mixed_node_efficiency(one, mix, equivalents).unwrap();
                // Half a per cent is what printing whole per cents loses.
                assert!(
                    (efficiency - per_cent).abs() <= 0.55,
                    "{app} on {equivalents}: {efficiency:.2} %, printed {per_cent} %"
                );
            }
        }
    }

    #[test]
    fn equal_shares_on_unlike_machines_reach_little() {
        let equal = best_efficiency(&[1.0; 3], &UNLIKE).unwrap();
        assert!((equal - 0.4167).abs() < 1e-4, "{equal}");
        assert!(near(best_efficiency(&[100.0, 55.0, 25.0], &UNLIKE).unwrap(), 1.0));
    }

    #[test]
    fn equivalents_count_the_fastest_as_one() {
        assert!(near(equivalents(&UNLIKE), 1.8));
        assert!(near(equivalents(&[3.0, 3.0]), 2.0));
        assert!(near(equivalents(&[]), 0.0));
    }

    #[test]
    fn an_ideal_run_has_efficiency_one() {
        let (work, rates) = (900.0, [10.0, 5.5, 2.5]);
        let ideal = ideal_seconds(work, &rates).unwrap();
        assert!(near(ideal, 50.0));
        assert!(near(mixed_node_efficiency(work / rates[0], ideal, equivalents(&rates)).unwrap(), 1.0));
    }

    #[test]
    fn parts_are_as_fast_as_what_they_did_while_they_worked() {
        let rates = [10.0, 5.0];
        assert!(near(pace(150.0, &rates, &[10.0, 10.0]).unwrap(), 1.0), "the rates explain it");
        assert!(near(pace(180.0, &rates, &[10.0, 10.0]).unwrap(), 1.2));
        assert!(near(pace(120.0, &rates, &[10.0, 10.0]).unwrap(), 0.8));
        // Perfect by its rates, but one was idle for half of the time.
        assert!(near(pace(150.0, &rates, &[10.0, 5.0]).unwrap(), 1.2));
        for (work, busy_s) in
            [(f64::NAN, [1.0; 2]), (1.0, [0.0; 2]), (1.0, [f64::NAN; 2]), (1e300, [1e-300; 2])]
        {
            assert_eq!(pace(work, &rates, &busy_s), None, "{work} {busy_s:?}");
        }
        assert_eq!(pace(1e9, &rates, &[1.0]), None);
    }

    #[test]
    fn imbalance_is_the_excess_of_the_busiest() {
        assert!(near(imbalance(&[1.0, 1.0, 4.0]).unwrap(), 1.0));
        assert!(near(imbalance(&[2.0; 5]).unwrap(), 0.0));
        assert!(near(imbalance(&[0.0; 5]).unwrap(), 0.0));
    }

    #[test]
    fn karp_flatt_finds_the_serial_share_of_amdahl() {
        let (serial, p) = (0.05, 16.0);
        let speedup = 1.0 / (serial + (1.0 - serial) / p);
        assert!(near(karp_flatt(speedup, p).unwrap(), serial));
        assert!(near(karp_flatt(1.8, 1.8).unwrap(), 0.0));
    }

    #[test]
    fn meaningless_inputs_give_no_figure() {
        assert_eq!(ideal_seconds(1.0, &[]), None);
        assert_eq!(ideal_seconds(f64::NAN, &[1.0]), None);
        assert_eq!(mixed_node_efficiency(1.0, 0.0, 1.0), None);
        assert_eq!(mixed_node_efficiency(f64::INFINITY, 1.0, 1.0), None);
        assert_eq!(best_efficiency(&[1.0], &UNLIKE), None);
        assert_eq!(best_efficiency(&[-1.0, 1.0, 1.0], &UNLIKE), None);
        assert_eq!(best_efficiency(&[0.0; 3], &UNLIKE), None);
        assert_eq!(imbalance(&[]), None);
        assert_eq!(imbalance(&[1.0, f64::NAN]), None);
        assert_eq!(karp_flatt(1.0, 1.0), None);
    }

    proptest! {
        #[test]
        fn no_division_is_better_than_perfect(
            pairs in prop::collection::vec((0.0f64..1e6, 0.01f64..10.0), 1..20)
        ) {
            let (shares, speeds): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            if let Some(best) = best_efficiency(&shares, &speeds) {
                prop_assert!(0.0 < best && best <= 1.0 + 1e-12);
            }
        }

        #[test]
        fn no_run_is_better_than_perfect_by_the_rates_that_it_has_shown(
            work in 1e-3f64..1e9,
            timed_s in 1e-3f64..1e3,
            parts in prop::collection::vec((1e-3f64..1e6, 0.0f64..=1.0), 1..20)
        ) {
            let (rates, busy): (Vec<f64>, Vec<f64>) = parts.into_iter().unzip();
            let busy_s: Vec<f64> = busy.into_iter().map(|part| part * timed_s).collect();
            prop_assume!(busy_s.iter().sum::<f64>() > 0.0);
            let factor = pace(work, &rates, &busy_s).unwrap_or(1.0).max(1.0);
            let shown: Vec<f64> = rates.iter().map(|rate| rate * factor).collect();
            prop_assert!(ideal_seconds(work, &shown).unwrap() <= timed_s * (1.0 + 1e-9));
        }

        #[test]
        fn equivalents_lie_between_one_and_the_count(speeds in prop::collection::vec(0.01f64..10.0, 1..50)) {
            let worth = equivalents(&speeds);
            prop_assert!((1.0 - 1e-12..=speeds.len() as f64 + 1e-9).contains(&worth));
        }
    }
}
