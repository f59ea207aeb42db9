//! What a run takes, reckoned beforehand.

use super::arguments::Imbalance;
use super::division::divide;
use super::problem::Problem;
use crate::division::Division;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::{Bytes, Machines};

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "the loads of the chares that each PE begins with, over as many steps as one PE can be ahead \
                                of another; what balancers gain is not reckoned with";
/// Most phases of a reckoning.
const PHASES_MAX: u32 = 1000;

/// Stretches of steps, each a phase that waits for the PE with the most to do in it.
///
/// # Errors
/// If the chares cannot be divided by these speeds.
pub(super) fn cost(
    imbalance: &Imbalance,
    machines: &Machines,
    known: Option<f64>,
) -> Result<Vec<Phase>, RunError> {
    let Division { owners, bytes, .. } = divide(imbalance, machines)?;
    let (problem, pes) = (Problem::of(imbalance), owners.len() - 1);
    let stretch = stretch(imbalance, pes);
    let mut work = vec![vec![0.0; pes]; problem.steps.div_ceil(stretch) as usize];
    for (pe, chares) in owners.windows(2).enumerate() {
        for chare in chares[0]..chares[1] {
            let mut course = problem.course(u32::try_from(chare).unwrap_or(u32::MAX), 0);
            for step in 0..problem.steps {
                work[(step / stretch) as usize][pe] += problem.units(&mut course) as f64;
            }
        }
    }
    let all: f64 = work.iter().flatten().sum();
    let scale = known.unwrap_or(all) / all.max(1.0);
    let phase = |(at, work): (usize, Vec<f64>)| {
        let steps = f64::from(stretch.min(problem.steps - at as u32 * stretch));
        let of_all = |b: &Bytes| Bytes { sent: steps * b.sent, received: steps * b.received };
        Phase {
            times: 1.0,
            work: work.iter().map(|work| work * scale).collect(),
            bytes: bytes.iter().map(of_all).collect(),
            rounds: steps,
            is_overlapped: true,
            ..Phase::default()
        }
    };
    Ok(work.into_iter().enumerate().map(phase).collect())
}

/// Steps by which a PE can be ahead of another. A chare is one ahead of its neighbour at most, so of a PE's chares those in
/// the middle are ahead by half their count, and all by a quarter; with barriers by the steps between them.
fn stretch(imbalance: &Imbalance, pes: usize) -> u32 {
    let free = imbalance.chares / (4 * pes.max(1) as u32);
    let most = if imbalance.barrier { imbalance.reduce_every.min(free) } else { free };
    most.max(imbalance.steps.div_ceil(PHASES_MAX)).clamp(1, imbalance.steps)
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;
    use chares::loadbalance::machines::Link;

    const LINK: Link = Link { latency_s: 2e-5, bytes_per_s: 2e9 };

    fn seconds(words: &[&str], rates: &[&[f64]]) -> f64 {
        let machines = Machines::on_one_host(rates, LINK);
        machines.reckon(&cost(&of(words), &machines, None).unwrap()).seconds
    }

    #[test]
    fn the_pe_with_the_heaviest_chares_is_waited_for() {
        let all = 256.0 * 400.0 * 1e6;
        // The second half of a line of loads has three quarters of them.
        let linear = seconds(&["--pattern", "linear", "--work", "1000000"], &[&[1e9], &[1e9]]);
        assert!((linear / (0.75 * all / 1e9) - 1.0).abs() < 0.02, "{linear}");
        let alone = seconds(&["--pattern", "linear", "--work", "1000000"], &[&[1e9]]);
        assert!((alone / (all / 1e9) - 1.0).abs() < 1e-6, "{alone}");
    }

    #[test]
    fn barriers_keep_pes_from_being_ahead_of_a_wave() {
        let rates: [&[f64]; 2] = [&[1e9, 1e9], &[1e9, 1e9]];
        let free = seconds(&["--work", "1000000"], &rates);
        let held = seconds(&["--work", "1000000", "--barrier", "--reduce-every", "1"], &rates);
        assert!(held > 1.001 * free, "{held} {free}");
    }

    #[test]
    fn runs_that_are_known_say_how_much_work_there_is() {
        let machines = Machines::on_one_host(&[&[1e9], &[5e8]], LINK);
        let phases = cost(&of(&["--work", "1000"]), &machines, Some(7e12)).unwrap();
        let all: f64 = phases.iter().flat_map(|phase| &phase.work).sum();
        assert!((all / 7e12 - 1.0).abs() < 1e-9);
        assert!(phases.iter().map(|phase| phase.rounds).sum::<f64>() == 400.0);
        assert!(phases.iter().all(|phase| phase.bytes.iter().all(|b| b.sent == b.received && b.sent > 0.0)));
    }
}
