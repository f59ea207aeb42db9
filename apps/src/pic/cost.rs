//! What a run takes, reckoned beforehand.

use super::arguments::Pic;
use super::division::Plan;
use super::problem::{POINT_WORK, Problem, Scheme};
use super::scheme::Costs;
use crate::division::Division;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "particles where their region or their number puts them at the beginning, one PE that solves for \
                                the field of each step while others wait, charges and fields on their way; particles that \
                                gather in one place are not reckoned with";

/// The steps, each a phase.
///
/// # Errors
/// The arguments make no sense, or the work cannot be divided by these speeds.
pub(super) fn cost(pic: &Pic, machines: &Machines, known: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let mut problem = pic.problem()?;
    if pic.is_auto() {
        problem.scheme = chosen(&problem, machines);
    }
    let Division { owners, shares, bytes, .. } = Plan::of(pic, &problem).divide(machines)?;
    let particles = problem.particles() as f64;
    let times = known.map_or(f64::from(problem.steps), |work| work / problem.work_of_step());
    let mut work: Vec<f64> = shares.iter().map(|share| share * particles).collect();
    let field = problem.work_of_step() - particles;
    if problem.scheme == Scheme::Distributed {
        work.iter_mut().zip(&shares).for_each(|(work, share)| *work += share * field);
    } else if let Some(work) = work.get_mut(owners.solver as usize) {
        *work += field;
    }
    let rounds = match problem.scheme {
        Scheme::Fixed => 2.0,
        Scheme::Regions => 3.0,
        // Particles, guard columns, spectra there and back.
        Scheme::Distributed => 4.0,
    };
    Ok(vec![Phase { times, work, bytes, rounds, ..Phase::default() }])
}

/// The scheme that costs less by what is known of machines and network.
fn chosen(problem: &Problem, machines: &Machines) -> Scheme {
    let rates = machines.rates();
    let costs = Costs::of(problem, rates.len());
    if rates.len() < 2 {
        return costs.cheaper();
    }
    let particle = rates.len() as f64 / rates.iter().sum::<f64>();
    let slowest = machines.links.iter().map(|link| link.bytes_per_s).fold(f64::INFINITY, f64::min);
    let solve = POINT_WORK * particle / costs.points.log2();
    let word = 8.0 / slowest;
    Costs { particle, solve, addition: particle / 20.0, latency: machines.latency_s(), word, ..costs }
        .cheaper()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::Link;
    use clap::{Args as _, Command, FromArgMatches as _};

    const LAN: Link = Link { latency_s: 2e-4, bytes_per_s: 1e8 };

    fn of(words: &[&str]) -> Pic {
        let command = Pic::augment_args(Command::new("pic"));
        let pic = Pic::from_arg_matches(&command.get_matches_from([&["pic"], words].concat())).unwrap();
        // As reports have them, and as `plan` gives them to the model.
        serde_json::from_value(serde_json::to_value(pic.completed().unwrap()).unwrap()).unwrap()
    }

    fn seconds(words: &[&str], machines: &Machines) -> f64 {
        machines.reckon(&cost(&of(words), machines, None).unwrap()).seconds
    }

    #[test]
    fn many_particles_take_as_long_as_their_work_and_few_wait_for_the_network() {
        let machines = Machines::on_one_host(&[&[1e8], &[5.5e7], &[2.5e7]], LAN);
        let ideal = |particles: f64| 10.0 * particles / 1.8e8;
        for scheme in [&["--scheme", "fixed"][..], &["--scheme", "regions"], &["--grid", "distributed"]] {
            let words = |particles| [&["--steps", "10", "--particles", particles], scheme].concat();
            let large = seconds(&words("100000000"), &machines);
            assert!((1.0..1.1).contains(&(large / ideal(1e8))), "{scheme:?}: {large}");
            let small = seconds(&words("10000"), &machines);
            assert!(small > 5.0 * ideal(1e4), "{scheme:?}: {small}");
        }
    }

    #[test]
    fn particles_stay_where_there_are_many_for_each_cell() {
        let machines = Machines::on_one_host(&[&[1e8][..]; 16], LAN);
        let scheme = |particles| {
            let problem = of(&["--particles", particles, "--cells", "256x256"]).problem().unwrap();
            chosen(&problem, &machines)
        };
        assert_eq!((scheme("1000000"), scheme("1000000000")), (Scheme::Regions, Scheme::Fixed));
    }

    #[test]
    fn what_fits_nowhere_is_refused_before_the_start() {
        let mut machines = Machines::on_one_host(&[&[1e8], &[1e8]], LAN);
        machines.nodes[1].memory.limit_bytes = Some(64 << 20);
        let shares = |particles| {
            let pic = of(&["--particles", particles, "--cells", "64x16"]);
            Plan::of(&pic, &pic.problem().unwrap()).divide(&machines).map(|division| division.shares)
        };
        assert_eq!(shares("100000").unwrap(), [0.5, 0.5]);
        let less = shares("2000000").unwrap();
        assert!(less[1] < 0.35, "{less:?}");
        machines.nodes[0].memory.limit_bytes = Some(64 << 20);
        let pic = of(&["--particles", "2000000"]);
        let refused = Plan::of(&pic, &pic.problem().unwrap()).divide(&machines).unwrap_err().to_string();
        assert!(refused.starts_with("a plasma of 2000000 particles on 128 x 32 cells needs "), "{refused}");
    }
}
