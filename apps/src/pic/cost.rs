//! What a run takes, reckoned beforehand.

use super::arguments::Pic;
use super::division::Plan;
use super::problem::{Problem, Scheme};
use super::scheme::Costs;
use crate::division::Division;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "particles where their region or their number puts them at the beginning, one PE that solves for \
                                the field of each step while others wait, charges and fields on their way; particles that \
                                gather in one place are not reckoned with";
/// What a point of the grid costs for the field, relative to a step of a particle.
const POINT_WORK: f64 = 1.5;

/// The steps, each a phase.
///
/// # Errors
/// The arguments make no sense, or the work cannot be divided by these speeds.
pub(super) fn cost(pic: &Pic, machines: &Machines, known: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let mut problem = pic.problem()?;
    if pic.is_auto() {
        problem.scheme = chosen(&problem, machines);
    }
    let Division { owners, shares, bytes, .. } =
        Plan { problem: &problem, regions: pic.regions }.divide(machines)?;
    let particles = problem.particles() as f64;
    let times = known.map_or(f64::from(problem.steps), |work| work / particles);
    let mut work: Vec<f64> = shares.iter().map(|share| share * particles).collect();
    let field = POINT_WORK * problem.grid() as f64;
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
