//! What a run takes, reckoned beforehand.

use super::arguments::Fem;
use super::rehearsal::{Rehearsal, rehearse};
use crate::division::Division;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "the elements, and iterations of subdomains that live where the speeds of the PEs put them, \
                                exchanges along their surfaces that follow one another, and a sum of all; as many iterations \
                                as were made; where nobody has run it, as a small box or the first step takes, solved here, or a \
                                guess without elements where that cannot be";

/// Messages that follow one another until all elements are computed: all are told, all say so, and nothing is on its way.
const SETUP_ROUNDS: f64 = 4.0;

/// The elements, the iterations, each a phase of work and exchanges, and what all wait for at the coarsest mesh. Where runs are
/// known, what they took beside iterations is in the work that is known of them.
///
/// # Errors
/// If the arguments make no sense, or the subdomains cannot be divided by these speeds.
pub(super) fn cost(fem: &Fem, machines: &Machines, known: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let problem = fem.problem()?;
    let of_each = problem.work_of_iteration();
    let Division { owners, shares, bytes, .. } = problem.divide(machines)?;
    let of_all = |units: f64| shares.iter().map(|share| share * units).collect();
    let rounds = problem.rounds();
    let rehearsal = if known.is_some() { None } else { rehearse(&problem) };
    let Some(Rehearsal { steps, iterations, elements, iteration, coarsest: [factor, solve] }) = rehearsal
    else {
        let times = known.map_or_else(|| problem.iterations_guess(), |known| known / of_each);
        let (work, is_guess) = (of_all(of_each), known.is_none());
        return Ok(vec![Phase { times, work, bytes, rounds, is_guess, ..Phase::default() }]);
    };
    let times = steps * iterations;
    // The first subdomain has the coarsest mesh, and all others wait.
    let first = owners.first().map_or(0, |pe| *pe as usize);
    let of_first = |times: f64, units: f64| {
        let work = (0..shares.len()).map(|pe| if pe == first { units } else { 0.0 }).collect();
        Phase { times, work, ..Phase::default() }
    };
    Ok(vec![
        Phase { times: steps, work: of_all(elements), rounds: SETUP_ROUNDS, ..Phase::default() },
        of_first(1.0, factor),
        Phase { times, work: of_all(iteration), bytes, rounds, ..Phase::default() },
        of_first(times, solve),
    ])
}
