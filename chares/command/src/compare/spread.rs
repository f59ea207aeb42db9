//! How far another measurement may be from this one.

use std::f64::consts::PI;

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (any table of statistics).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The spread of a predicted time. Of 29 times that a node was added to a mix of hosts or of local nodes, with six
/// algorithms, 26 changed the time by what was predicted within 10 %, which is the spread of a ratio of two such times.
pub(super) const OF_PREDICTION: f64 = 0.07;

/// Repeated seconds of each mix in, the spread of each mix's median out, as a part of it: another comparison of as
/// many repeats is expected to find a median that is no farther off, with a probability of 95 %. `None` where nothing
/// was repeated.
///
/// A few repeats say little about their own deviation, so it is estimated from the repeats of all mixes together
/// (pooled variance of the relative deviations), and where a mix deviates more than that, its own counts. Two
/// medians, the one here and the other, differ with sqrt(2) times the deviation of one, which is at most
/// sqrt(pi / 2n) of that of a single run (its value for many runs).
pub(super) fn of_medians(repeats: &[&[f64]]) -> Vec<Option<f64>> {
    let freedom: usize = repeats.iter().map(|seconds| seconds.len().saturating_sub(1)).sum();
    if freedom == 0 {
        return vec![None; repeats.len()];
    }
    let squares: Vec<f64> = repeats.iter().map(|seconds| squares(seconds)).collect();
    let pooled = (squares.iter().sum::<f64>() / freedom as f64).sqrt();
    let spread = |(seconds, squares): (&&[f64], &f64)| {
        let count = seconds.len() as f64;
        let own = if seconds.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        student(freedom) * own.max(pooled) * (PI / count).sqrt()
    };
    repeats.iter().zip(&squares).map(|pair| Some(spread(pair))).collect()
}

/// The spread of a ratio, of the spreads of its two parts.
pub(super) fn of_ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a?.hypot(b?))
}

/// The sum of the squared relative deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value / mean - 1.0).powi(2)).sum()
}

/// The 97.5 % quantile for so many degrees of freedom, 1 or more.
fn student(freedom: usize) -> f64 {
    // Beyond the table within 0.1 %.
    STUDENT.get(freedom.saturating_sub(1)).copied().unwrap_or(1.96 + 2.46 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_has_no_spread_and_equal_runs_have_none_either() {
        assert_eq!(of_medians(&[&[1.0], &[2.0]]), [None, None]);
        assert_eq!(of_medians(&[&[3.0, 3.0], &[2.0]]), [Some(0.0), Some(0.0)]);
        assert_eq!(of_ratio(Some(3.0), Some(4.0)), Some(5.0));
        assert_eq!(of_ratio(None, Some(4.0)), None);
    }

    #[test]
    fn a_quiet_mix_is_not_believed_to_be_quieter_than_all_and_a_noisy_one_speaks_for_itself() {
        let spread = of_medians(&[&[1.0, 1.0, 1.0], &[1.0, 1.1, 0.9], &[10.0, 10.0, 10.0]]);
        let [quiet, noisy, other] = spread.as_slice() else { panic!("{spread:?}") };
        assert!(quiet > &Some(0.0) && noisy > quiet && other == quiet, "{spread:?}");
        // t(6) = 2.447, s = 0.1, sqrt(pi / 3) = 1.0233.
        assert!((noisy.unwrap() - 0.2504).abs() < 1e-3, "{noisy:?}");
    }

    #[test]
    fn the_next_median_lies_within_the_spread_about_as_often_as_stated() {
        let mut random = runtime::proto::sim::Random::new(7);
        // The sum of twelve uniform numbers is nearly normal, with a deviation of 1.
        let mut normal = || (0..12).map(|_| random.bits() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
        let mut comparison =
            || -> Vec<Vec<f64>> { (0..3).map(|_| (0..3).map(|_| 10.0 + 0.2 * normal()).collect()).collect() };
        let middle = |runs: &[f64]| {
            let mut sorted = runs.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        let (mut inside, mut all) = (0, 0);
        for _ in 0..2000 {
            let (first, second) = (comparison(), comparison());
            let spreads = of_medians(&first.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for ((first, second), spread) in first.iter().zip(&second).zip(spreads) {
                let (first, second) = (middle(first), middle(second));
                inside += usize::from((second / first - 1.0).abs() <= spread.unwrap());
                all += 1;
            }
        }
        let share = inside as f64 / all as f64;
        assert!((0.94..0.995).contains(&share), "{share}");
    }

    #[test]
    fn the_quantile_falls_towards_that_of_the_normal_distribution() {
        let all: Vec<f64> = (1..400).map(student).collect();
        assert!(all.windows(2).all(|pair| pair[0] >= pair[1]), "{all:?}");
        assert!((student(120) - 1.980).abs() < 0.002 && (student(10_000) - 1.960).abs() < 0.001);
    }
}
