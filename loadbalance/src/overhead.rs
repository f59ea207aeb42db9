//! Shares of the work where it is not only the work that takes time.
//!
//! Shares in proportion to speed end together if nothing else is to be done. Blocks that come and go cost the
//! processors of a node time too, and not in proportion to its share: a slow node may need as many blocks as a
//! fast one. Its share has to be smaller than its speed says, so that it is not the one that all wait for.
//!
//! Speeds are measured for a moment only, and all wait for the part that ends last. So there is a second correction,
//! [`allowance`]: it makes small shares a few percent smaller than predicted, which costs the big ones little.

/// Rounds after which no better weights are looked for.
const ROUNDS: usize = 20;
/// How far a weight follows its error in one round: shares are whole blocks, and steps that are too long swing.
const DAMPING: f64 = 0.7;
/// How far a speed that was measured for a moment is from the one that the work meets: the standard deviation, as a
/// part of the speed. Nodes that have their cores to themselves were measured to stay within that, a container with a
/// quota of CPU time drifts by 0.1 and more.
const SPREAD: f64 = 0.02;

/// Weights by which all parts take like long, as far as `seconds` knows; the `speeds` themselves if nothing better
/// is found.
///
/// `seconds` predicts how long each part will take if the work is divided by these weights: one positive number for
/// each part, in any unit. It is asked twenty times. Each weight follows the inverse of its part's time, damped; of
/// all weights tried those count whose slowest part is the fastest.
///
/// # Errors
///
/// What `seconds` returns.
///
/// # Examples
///
/// Two parts, the second half as fast, and each has to spend 1 s of a fast processor's time on messages:
///
/// ```
/// let speeds = [1.0, 0.5];
/// let seconds = |weights: &[f64]| {
///     let total: f64 = weights.iter().sum();
///     Ok::<_, ()>(weights.iter().zip(speeds).map(|(w, speed)| (12.0 * w / total + 1.0) / speed).collect())
/// };
/// let weights = loadbalance::overhead::balanced(&speeds, seconds)?;
/// // (8.33 + 1) / 1 s and (3.67 + 1) / 0.5 s.
/// assert!((weights[1] / weights[0] - 3.67 / 8.33).abs() < 0.01);
/// # Ok::<(), ()>(())
/// ```
pub fn balanced<E>(
    speeds: &[f64],
    mut seconds: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Vec<f64>, E> {
    let mut weights = speeds.to_vec();
    let mut best = (f64::INFINITY, weights.clone());
    for _ in 0..ROUNDS {
        let times = seconds(&weights)?;
        let longest = times.iter().copied().fold(0.0, f64::max);
        // Not equal by a hair only: otherwise the speeds stay as they were measured.
        if longest < best.0 * 0.999 {
            best = (longest, weights.clone());
        }
        let total: f64 = weights.iter().sum();
        let mean = weights.iter().zip(&times).map(|(weight, time)| weight * time).sum::<f64>() / total;
        for (weight, time) in weights.iter_mut().zip(&times) {
            let factor = (mean / time).powf(DAMPING);
            if factor.is_finite() && factor > 0.0 {
                *weight *= factor;
            }
        }
    }
    Ok(best.1)
}

/// How much longer than predicted a part of the work, of this share, is to be reckoned with: a factor near 1, as
/// predictions rest on speeds that are measured for a moment only.
///
/// All wait for the part that ends last. Room for an error costs as much time as the part is big, an overrun costs
/// the whole time; the best room is where a part overruns with a probability of its share (the critical fractile of
/// the newsvendor: Arrow, Harris and Marschak, "Optimal inventory policy", 1951). So a slow node is given somewhat
/// less, and a fast one takes it over at little cost. Parts of one size all have the same room, which changes
/// nothing. Errors are taken for logistic, with a standard deviation of 2 %.
///
/// # Examples
///
/// ```
/// use loadbalance::overhead::allowance;
/// assert_eq!(allowance(0.5), 1.0);
/// assert!((allowance(0.1) - 1.024).abs() < 0.001 && (allowance(0.9) - 0.976).abs() < 0.001);
/// ```
#[must_use]
pub fn allowance(share: f64) -> f64 {
    let share = share.clamp(0.01, 0.99);
    let scale = SPREAD * 3.0_f64.sqrt() / std::f64::consts::PI;
    1.0 + scale * ((1.0 - share) / share).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    proptest! {
        #[test]
        fn no_part_takes_longer_than_by_speeds_alone_and_all_end_together(
            parts in prop::collection::vec((0.1f64..1.0, 0.0f64..0.05), 1..9),
        ) {
            let speeds: Vec<f64> = parts.iter().map(|(speed, _)| *speed).collect();
            let seconds = |weights: &[f64]| {
                let total: f64 = weights.iter().sum();
                let times = weights.iter().zip(&parts).map(|(w, (speed, extra))| (w / total + extra) / speed);
                Ok::<Vec<f64>, Infallible>(times.collect())
            };
            let longest = |weights: &[f64]| seconds(weights).unwrap().into_iter().fold(0.0, f64::max);
            let weights = balanced(&speeds, seconds).unwrap();
            prop_assert!(longest(&weights) <= longest(&speeds));
            let all = 1.0 + parts.iter().map(|(_, extra)| extra).sum::<f64>();
            let least = all / speeds.iter().sum::<f64>();
            // A part whose messages alone take longer than that cannot be helped.
            let is_possible = parts.iter().all(|(speed, extra)| extra / speed < 0.8 * least);
            prop_assert!(!is_possible || longest(&weights) <= 1.05 * least, "{} {}", longest(&weights), least);
        }
    }

    #[test]
    fn without_overhead_the_speeds_stay_what_they_are() {
        let speeds = [1.0, 0.5, 0.25];
        let seconds = |weights: &[f64]| {
            let total: f64 = weights.iter().sum();
            Ok::<Vec<f64>, Infallible>(
                weights.iter().zip(speeds).map(|(w, speed)| w / total / speed).collect(),
            )
        };
        assert_eq!(balanced(&speeds, seconds).unwrap(), speeds);
    }

    #[test]
    fn an_error_is_passed_on() {
        assert_eq!(balanced(&[1.0], |_| Err::<Vec<f64>, _>("no")), Err("no"));
    }
}
