//! What a run takes, reckoned beforehand.

use super::arguments::Fem;
use crate::division::Division;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "iterations of subdomains that live where the speeds of the PEs put them, exchanges along \
                                their surfaces that follow one another, and a sum of all; as many iterations as were made, \
                                or a guess by the mesh, of the first step where it changes";

/// The iterations, each a phase of work and exchanges.
///
/// # Errors
/// If the arguments make no sense, or the subdomains cannot be divided by these speeds.
pub(super) fn cost(fem: &Fem, machines: &Machines, known: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let problem = fem.problem()?;
    let of_each = problem.work_of_iteration();
    let times = known.map_or_else(|| problem.iterations_guess(), |known| known / of_each);
    let Division { shares, bytes, .. } = problem.divide(machines)?;
    let work = shares.iter().map(|share| share * of_each).collect();
    Ok(vec![Phase { times, work, bytes, rounds: problem.rounds(), ..Phase::default() }])
}
