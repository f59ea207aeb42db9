//! How long speeds are measured, and when those of an earlier run are taken instead.

use std::time::Duration;

/// How long the kernel runs on every PE where nothing limits it: long enough that a quota of CPU time, which is given out
/// every 10 to 100 ms, looks like a slower CPU in each of the stretches that this is measured in.
pub(super) const USUAL: Duration = Duration::from_millis(1800);
/// How long it is run to see how long the work will take, and whether speeds of an earlier run still hold.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// Measuring takes this part of a run: clocks and other users' load drift by several percent from second to second, so
/// that for long runs it is worth more.
const PART: f64 = 0.05;
const LONGEST: Duration = Duration::from_secs(6);
/// What is measured for less time, says little where PEs take turns on a core.
const SHORTEST: Duration = Duration::from_millis(100);
/// Speeds of an earlier run hold if no part of the machines is faster or slower by more.
const DRIFT_MAX: f64 = 0.2;

/// Less of the cores is always taken, by the system and by the network's threads.
pub(crate) const TAKEN_MIN: f64 = 0.05;

/// How long a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// Before its work.
    pub(super) before: Duration,
    /// And again after it.
    pub(super) after: Option<Duration>,
}

impl Budget {
    /// What a run is worth whose work takes so many seconds: a twentieth of them.
    pub(super) fn for_run_of(expected_s: Option<f64>) -> Self {
        let Some(expected_s) = expected_s else { return Self { before: USUAL, after: None } };
        let all_s = (expected_s * PART).min(2.0 * LONGEST.as_secs_f64());
        match longer(all_s / 2.0) {
            Some(half) => Self { before: half, after: Some(half) },
            None => Self { before: Duration::from_secs_f64(all_s).clamp(SHORTEST, LONGEST), after: None },
        }
    }

    /// Whether speeds are taken that an earlier run has measured for so long, and that have drifted so far since: not
    /// for a long run, which can afford to measure its own.
    pub(super) fn takes(self, measured: Duration, drift: f64) -> bool {
        // The same run expects a little more or less time by the speeds that it has measured itself.
        let is_enough = measured.mul_f64(1.0 + DRIFT_MAX) >= self.before;
        self.after.is_none() && self.before <= USUAL && is_enough && drift <= DRIFT_MAX
    }
}

/// How long the nodes are measured once more for a run of so many seconds that asks for measured speeds, if it is worth it.
pub(super) fn once_more(expected_s: Option<f64>) -> Option<Duration> {
    longer(expected_s? * PART)
}

fn longer(seconds: f64) -> Option<Duration> {
    (seconds >= USUAL.as_secs_f64()).then(|| Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())))
}

/// How much faster or slower the machines are than they were: that of their parts that has changed most, as a fraction. A
/// part is a set of PEs that share cores: what one of them reaches in a short time depends on whose turn it is.
pub(super) fn drift(then: &[f64], now: &[f64], parts: &[Vec<usize>]) -> f64 {
    let sum = |rates: &[f64], part: &[usize]| part.iter().filter_map(|&pe| rates.get(pe)).sum::<f64>();
    let changes = parts.iter().map(|part| (sum(now, part) / sum(then, part) - 1.0).abs());
    changes.fold(0.0, |most, change| if change > most || change.is_nan() { change } else { most })
}

/// The PEs of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Host {
    /// How many cores they may use.
    pub(super) cores: f64,
    /// Their numbers, and the share of a core that each may use.
    pub(super) pes: Vec<(usize, f64)>,
}

impl Host {
    /// Whether PEs take turns on a core.
    pub(super) fn is_crowded(&self) -> bool {
        self.pes.len() as f64 > self.cores
    }
}

/// The part of the cores' time that others had on the host where they had most of it, while PEs reached `rates` by the wall
/// and `cpu_rates` by processor time; `None` if that is not known.
pub(super) fn taken(rates: &[f64], cpu_rates: &[f64], hosts: &[Host]) -> Option<f64> {
    let had = |pe: usize| Some(rates.get(pe)? / cpu_rates.get(pe)?);
    let of_host = |host: &Host| {
        let had: f64 = host.pes.iter().map(|(pe, _)| had(*pe)).sum::<Option<f64>>()?;
        let could = host.pes.iter().map(|(_, share)| share).sum::<f64>().min(host.cores);
        Some(1.0 - had / could).filter(|taken| taken.is_finite())
    };
    hosts.iter().map(of_host).try_fold(0.0, |most: f64, taken| Some(most.max(taken?)))
}

/// Rates by the wall, where those of PEs that take turns on cores are what each reaches in the long run: PEs of a host that may
/// use as much of a core get it equally often, though in the short time of a measurement the system may have left one of them alone
/// on a core and two others together. `cpu_rates` are by processor time; what is not known by these stays as it was measured.
pub(super) fn in_turns(rates: &[f64], cpu_rates: &[f64], hosts: &[Host]) -> Vec<f64> {
    let mut all = rates.to_vec();
    let had = |pe: usize| Some(rates.get(pe)? / cpu_rates.get(pe)?).filter(|had| had.is_finite());
    for host in hosts.iter().filter(|host| host.is_crowded()) {
        for (pe, share) in &host.pes {
            let alike = host.pes.iter().filter(|(_, other)| other == share);
            let had: Option<Vec<f64>> = alike.map(|(pe, _)| had(*pe)).collect();
            if let (Some(had), Some(rate)) = (had, all.get_mut(*pe)) {
                *rate = cpu_rates[*pe] * had.iter().sum::<f64>() / had.len() as f64;
            }
        }
    }
    all
}

/// Says that others worked on the cores too.
pub(crate) fn beside(taken: f64) -> String {
    format!("while others had {:.0}% of the cores", 100.0 * taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(expected_s: f64) -> Budget {
        Budget::for_run_of(Some(expected_s))
    }

    #[test]
    fn measuring_takes_a_twentieth_of_a_run_but_never_less_than_says_something() {
        let seconds = |expected_s| {
            let Budget { before, after } = budget(expected_s);
            (before.as_secs_f64(), after.map(|after| after.as_secs_f64()))
        };
        for short in [0.0, 0.02, 2.0] {
            assert_eq!(seconds(short), (0.1, None), "{short}");
        }
        assert_eq!(seconds(10.0), (0.5, None));
        assert_eq!(seconds(60.0), (3.0, None));
        assert_eq!(seconds(80.0), (2.0, Some(2.0)));
        for long in [1e4, 1e300, f64::INFINITY] {
            assert_eq!(seconds(long), (6.0, Some(6.0)), "{long}");
        }
        assert_eq!(Budget::for_run_of(None), Budget { before: USUAL, after: None });
    }

    #[test]
    fn earlier_speeds_are_taken_for_short_runs_if_measured_for_as_long_and_not_drifted() {
        let (tenth, second) = (Duration::from_millis(100), Duration::from_secs(1));
        assert!(budget(0.02).takes(tenth, 0.1));
        assert!(!budget(0.02).takes(tenth, 0.3), "drifted");
        assert!(!budget(0.02).takes(tenth, f64::NAN), "no speed at all");
        assert!(!budget(10.0).takes(tenth, 0.0), "not measured for as long");
        assert!(budget(10.0).takes(second, 0.0));
        assert!(budget(22.0).takes(second, 0.0), "nearly as long");
        for long in [60.0, 80.0, 1e6] {
            assert!(!budget(long).takes(LONGEST, 0.0), "{long} can afford to measure");
        }
        assert!(Budget::for_run_of(None).takes(USUAL, 0.0));
    }

    #[test]
    fn pes_that_take_turns_on_cores_are_as_fast_as_they_are_in_the_long_run() {
        let host = |cores, pes: &[(usize, f64)]| Host { cores, pes: pes.to_vec() };
        // Two had a core together and one had most of the other, which it left to one with a share now and then.
        let (rates, cpu_rates) = ([5.0, 5.0, 8.0, 2.0, 7.0], [10.0, 10.0, 10.0, 10.0, 9.0]);
        let hosts = [host(2.0, &[(0, 1.0), (1, 1.0), (2, 1.0), (3, 0.5)]), host(1.0, &[(4, 1.0)])];
        let found = in_turns(&rates, &cpu_rates, &hosts);
        let expected = [6.0, 6.0, 6.0, 2.0, 7.0];
        assert!(
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12),
            "{found:?}"
        );
        // What is slower by processor time, too, stays so.
        let found = in_turns(&[2.0, 6.0], &[5.0, 10.0], &[host(1.0, &[(0, 1.0), (1, 1.0)])]);
        assert!((found[0] - 2.5).abs() < 1e-12 && (found[1] - 5.0).abs() < 1e-12, "{found:?}");
        for unknown in [&[][..], &[0.0; 5]] {
            assert_eq!(in_turns(&rates, unknown, &hosts), rates);
        }
    }

    #[test]
    fn pes_that_share_cores_drift_together_and_others_each_by_itself() {
        let apart = [vec![0], vec![1], vec![2]];
        let (then, now) = ([4.0, 4.0, 2.0], [4.0, 3.0, 3.0]);
        assert_eq!(drift(&then, &now, &apart), 0.5);
        assert_eq!(drift(&then, &now, &[vec![0], vec![1, 2]]), 0.0);
        assert_eq!(drift(&then, &[2.0, 4.0, 2.0], &apart), 0.5);
        assert!(drift(&[0.0], &[0.0], &[vec![0]]).is_nan());
    }

    #[test]
    fn others_have_what_pes_do_not_get_of_the_cores_that_they_may_use() {
        let host = |cores, pes: &[(usize, f64)]| Host { cores, pes: pes.to_vec() };
        let near = |taken: Option<f64>, expected: f64| (taken.unwrap() - expected).abs() < 1e-12;
        let two = [host(2.0, &[(0, 1.0), (1, 1.0)])];
        assert_eq!(taken(&[4.0, 4.0], &[4.0, 4.0], &two), Some(0.0));
        assert!(near(taken(&[4.0, 2.0], &[4.0, 4.0], &two), 0.25));
        // Four PEs get both cores between them, and one that may use half of a core gets that.
        let crowded = [host(2.0, &[(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)])];
        assert!(near(taken(&[2.0; 4], &[4.0; 4], &crowded), 0.0));
        assert!(near(taken(&[1.0; 4], &[4.0; 4], &crowded), 0.5));
        let half = [host(8.0, &[(0, 0.5)])];
        assert!(near(taken(&[2.0], &[4.0], &half), 0.0));
        // The host that gave least counts.
        let hosts = [two[0].clone(), host(1.0, &[(2, 1.0)])];
        assert!(near(taken(&[4.0, 4.0, 1.0], &[4.0; 3], &hosts), 0.75));
        assert_eq!(taken(&[4.0, 4.0], &[4.0], &two), None, "not measured");
        assert_eq!(taken(&[0.0, 0.0], &[0.0, 0.0], &two), None, "no speed at all");
    }

    #[test]
    fn long_runs_are_measured_longer_but_not_for_ever() {
        for nothing in [None, Some(1.0), Some(35.0), Some(f64::NAN)] {
            assert_eq!(once_more(nothing), None, "{nothing:?}");
        }
        assert_eq!(once_more(Some(60.0)), Some(Duration::from_secs(3)));
        for long in [1e9, f64::INFINITY] {
            assert_eq!(once_more(Some(long)), Some(LONGEST));
        }
    }
}
