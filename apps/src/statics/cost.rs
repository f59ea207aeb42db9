//! What a relaxation takes, reckoned beforehand.

use super::arguments::Statics;
use super::cblocks::memory;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "evaluations of blocks that live where their cost and the speeds of the PEs put them, ghosts \
                                hidden behind the work, and sums of all blocks that each evaluation waits for; as many \
                                evaluations as were made, or as there must be, or 50";
/// Messages of an evaluation that follow one another: places, slopes, sums, and their way back.
const ROUNDS: f64 = 4.0;

/// The evaluations, each a phase of work and exchanges.
///
/// # Errors
/// The arguments make no sense, or the blocks cannot be divided by these speeds.
pub(super) fn cost(
    statics: &Statics,
    machines: &Machines,
    known: Option<f64>,
) -> Result<Vec<Phase>, RunError> {
    let problem = statics.problem()?;
    let needed = memory::Needed::of(&problem);
    let division = needed.divide(machines)?;
    let mut work = vec![0.0; division.shares.len()];
    for (block, &pe) in needed.blocks.iter().zip(&division.owners.owners) {
        work[pe as usize] += block.computed as f64;
    }
    let of_each = work.iter().sum::<f64>().max(1.0);
    let times = known.unwrap_or_else(|| statics.work()) / of_each;
    let bytes = division.bytes;
    // Nobody knows how soon atoms are at rest that may come to rest.
    let is_guess = known.is_none() && !problem.steps.iter().all(|step| step.limits.takes_all());
    Ok(vec![Phase { times, work, bytes, rounds: ROUNDS, is_overlapped: true, is_guess, ..Phase::default() }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::Link;
    use clap::{Args as _, Command, FromArgMatches as _};

    fn seconds(words: &[&str], rates: &[&[f64]], link: Link) -> f64 {
        let command = Statics::augment_args(Command::new("statics"));
        let matches = command.get_matches_from([&["statics", "--a", "3.61"], words].concat());
        let statics = Statics::from_arg_matches(&matches).unwrap().completed().unwrap();
        // As reports have them, and as `plan` gives them to the model.
        let statics: Statics = serde_json::from_value(serde_json::to_value(&statics).unwrap()).unwrap();
        let machines = Machines::on_one_host(rates, link);
        machines.reckon(&cost(&statics, &machines, None).unwrap()).seconds
    }

    #[test]
    fn a_large_crystal_takes_as_long_as_its_work_and_a_small_one_waits_for_sums() {
        let lan = Link { latency_s: 2e-4, bytes_per_s: 1e8 };
        let rates: [&[f64]; 3] = [&[1e6], &[5.5e5], &[2.5e5]];
        let ideal = 50.0 * 256_000.0 / 1.8e6;
        let large = seconds(&["--size", "40"], &rates, lan);
        assert!((ideal..1.1 * ideal).contains(&large), "{large} and {ideal}");
        let ideal = 50.0 * 500.0 / 1.8e6;
        let no_rest = ["--size", "40", "--max-force", "0", "--evaluations", "400"];
        let all = seconds(&no_rest, &rates, lan);
        assert!((7.9 * large..8.1 * large).contains(&all), "{all} and {large}");
        let small = seconds(&["--size", "5", "--block", "50"], &rates, lan);
        assert!(small > 2.0 * ideal, "{small} and {ideal}");
    }
}
