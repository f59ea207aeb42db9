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
    fn pes_that_share_cores_drift_together_and_others_each_by_itself() {
        let apart = [vec![0], vec![1], vec![2]];
        let (then, now) = ([4.0, 4.0, 2.0], [4.0, 3.0, 3.0]);
        assert_eq!(drift(&then, &now, &apart), 0.5);
        assert_eq!(drift(&then, &now, &[vec![0], vec![1, 2]]), 0.0);
        assert_eq!(drift(&then, &[2.0, 4.0, 2.0], &apart), 0.5);
        assert!(drift(&[0.0], &[0.0], &[vec![0]]).is_nan());
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
