//! What a run takes, reckoned beforehand.

use super::arguments::Fem;
use super::lattice::Lattice;
use super::level::lattices;
use super::problem::{Preconditioner, Problem};
use super::rehearsal::{Rehearsal, rehearse};
use super::subdomain::{coarsest, spent};
use crate::division::Division;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;
use chares::{Bulk, RunError};

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "the elements, and iterations of subdomains that live where the speeds of the PEs put them, \
                                exchanges along their surfaces that follow one another, and a sum of all; as many iterations \
                                as were made; where nobody has run it, as a small box or the first step takes, solved here";

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
    let Division { shares, bytes, .. } = problem.divide(machines)?;
    let of_all = |units: f64| shares.iter().map(|share| share * units).collect();
    let rounds = problem.rounds();
    let rehearsal = if known.is_some() { None } else { rehearse(&problem) };
    let Some(Rehearsal { steps, iterations, elements_work, iteration_work }) = rehearsal else {
        let times = known.map_or_else(|| problem.iterations_guess(), |known| known / of_each);
        return Ok(vec![Phase { times, work: of_all(of_each), bytes, rounds, ..Phase::default() }]);
    };
    let (times, of_elements, of_iteration) =
        (steps * iterations, of_all(elements_work), of_all(iteration_work));
    let (factor_s, solve_s) = coarsest_s(&problem);
    let alone = |times: f64, chain_s: f64| Phase { times, chain_s, ..Phase::default() };
    Ok(vec![
        Phase { times: steps, work: of_elements, rounds: SETUP_ROUNDS, ..Phase::default() },
        alone(1.0, factor_s),
        Phase { times, work: of_iteration, bytes, rounds, ..Phase::default() },
        alone(times, solve_s),
    ])
}

/// Seconds in which the coarsest mesh is factored here, and in which it is solved.
fn coarsest_s(problem: &Problem) -> (f64, f64) {
    if problem.solver.preconditioner != Preconditioner::Multigrid {
        return (0.0, 0.0);
    }
    let begun = spent();
    let Some(factor) = coarsest(problem) else { return (0.0, 0.0) };
    let factored = spent();
    let unknowns = lattices(problem).last().map_or(0, Lattice::nodes) * problem.each();
    let mut x = Bulk::zeros(unknowns);
    factor.solve(x.as_mut_slice());
    (factored - begun, spent() - factored)
}
