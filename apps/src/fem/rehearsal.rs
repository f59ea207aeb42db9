//! What nobody can count beforehand: how many iterations there will be, and how long computing the elements takes beside one. A
//! small problem of the same kind is solved for it in one thread, or the first step of many is taken.

use super::arguments::NODES_EACH;
use super::cholesky::Cholesky;
use super::course::Why;
use super::lattice::Lattice;
use super::machine::{Machine, Need};
use super::marching::{Block, Marching, Rim, Verdict};
use super::operands;
use super::problem::{Domain, Preconditioner, Problem, Solver};
use super::subdomain::{coarsest, joined, spent};
use super::swelling::Swelling;
use chares::Bulk;

/// Runs of the kernel, of which the quickest counts.
const RUNS: usize = 20;
/// Its coarsest mesh has this part of its unknowns at most, so that there are several meshes.
const COARSEST_PART: usize = 64;

/// What a small problem, or the first step of one that changes in the course of time, says of all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rehearsal {
    /// How often elements are computed.
    pub steps: f64,
    /// Iterations each time, about.
    pub iterations: f64,
    /// Computing the elements once, of all meshes, as much as the kernel does here in that time.
    pub elements_work: f64,
    /// The same of an iteration.
    pub iteration_work: f64,
}

/// Solves a small problem of the same kind, or takes the first step; nothing if this one is of a mesh that was read, or the small
/// one does not converge.
#[must_use]
pub fn rehearse(problem: &Problem) -> Option<Rehearsal> {
    match (&problem.swelling, &problem.domain) {
        (Some(swelling), _) => first_step(problem, swelling, rate(problem)),
        (None, Domain::Lattice(lattice)) => small_box(problem, smaller(lattice), rate(problem)),
        (None, Domain::Read { .. }) => None,
    }
}

/// Units of work that the kernel does here in a second, on a mesh as small.
fn rate(problem: &Problem) -> f64 {
    let Some((finest, x, mut y)) = operands(problem, NODES_EACH) else { return 1.0 };
    let mut best_s = f64::INFINITY;
    for _ in 0..RUNS {
        let begun = spent();
        finest.rows.multiply(&x, &mut y);
        std::hint::black_box(&y);
        best_s = best_s.min(spent() - begun);
    }
    2.0 * finest.rows.entries() as f64 / best_s.max(f64::MIN_POSITIVE)
}

fn small_box(problem: &Problem, lattice: Lattice, rate: f64) -> Option<Rehearsal> {
    let unknowns = lattice.nodes() * problem.each();
    let coarsest = problem.solver.coarsest.min(unknowns / COARSEST_PART).max(1);
    let small = Problem {
        domain: Domain::Lattice(lattice),
        parts: 1,
        solver: Solver { coarsest, ..problem.solver },
        ..problem.clone()
    };
    let begun = spent();
    let mut machines = [Machine::new(&small, 0, None)];
    let larger = problem.nodes() as f64 / small.nodes() as f64;
    let prepared = spent();
    let factor = coarsest_if_any(&small);
    let factored = spent();
    if !iterate_with(&small, &mut machines, factor.as_ref()) || machines[0].course.why != Some(Why::Converged)
    {
        return None;
    }
    // Without coarser meshes an iteration carries what is known a node further.
    let times = match problem.solver.preconditioner {
        Preconditioner::Multigrid => 1.0,
        _ => larger.powf(1.0 / problem.dim() as f64),
    };
    let iterated = f64::from(machines[0].course.iterations.max(1));
    let iteration_s = (spent() - factored) / iterated;
    Some(Rehearsal {
        steps: 1.0,
        iterations: (iterated * times).clamp(1.0, f64::from(problem.solver.max_iterations)),
        elements_work: (prepared - begun) * larger * rate,
        // In small meshes numbers stay in the caches, in which products may not be the least of it.
        iteration_work: (iteration_s * larger * rate).max(problem.work_of_iteration()),
    })
}

fn first_step(problem: &Problem, swelling: &Swelling, rate: f64) -> Option<Rehearsal> {
    let begun = spent();
    let mut blocks: Vec<Marching> =
        (0..problem.parts).map(|number| Marching::new(swelling, number)).collect();
    let Step { closed, iterating_s } = step(problem, swelling, &mut blocks, &swelling.levels)?;
    let elements_s = spent() - begun - iterating_s;
    let (verdict, _) = closed.first()?;
    let iterations = verdict.iterations.iter().map(|count| f64::from(*count)).sum::<f64>().max(1.0);
    Some(Rehearsal {
        steps: swelling.steps.into(),
        iterations,
        elements_work: elements_s * rate,
        iteration_work: iterating_s / iterations * rate,
    })
}

/// What came of a step of a body that swells.
pub(super) struct Step {
    /// Of each block.
    pub closed: Vec<(Verdict, Block)>,
    /// Seconds of processor time that the iterations took.
    pub iterating_s: f64,
}

/// Takes a step of all blocks in one thread; nothing if it does not converge.
pub(super) fn step(
    problem: &Problem,
    swelling: &Swelling,
    blocks: &mut [Marching],
    levels: &[u8],
) -> Option<Step> {
    let mut rims: Vec<Vec<Rim>> = vec![Vec::new(); blocks.len()];
    for block in &mut *blocks {
        for (to, rim) in block.open(swelling, levels.to_vec()) {
            rims.get_mut(to as usize)?.push(rim);
        }
    }
    let mut iterating_s = 0.0;
    let mut iterate = |machines: &mut [Machine]| {
        let begun = spent();
        let is_understood = iterate(problem, machines);
        iterating_s += spent() - begun;
        let is_over = machines.first().is_some_and(|first| first.course.why == Some(Why::Converged));
        (is_understood && is_over).then_some(())
    };
    let machines = blocks.iter_mut().zip(rims).map(|(block, rims)| block.diffuse(swelling, problem, rims));
    let mut machines: Vec<Machine> = machines.collect::<Option<_>>()?;
    iterate(&mut machines)?;
    let machines = blocks.iter_mut().zip(machines).map(|(block, of)| block.strain(swelling, problem, of));
    let mut machines: Vec<Machine> = machines.collect::<Option<_>>()?;
    iterate(&mut machines)?;
    let closed = blocks.iter_mut().zip(&machines).map(|(block, of)| block.close(swelling, problem, of));
    Some(Step { closed: closed.collect(), iterating_s })
}

/// A box of the same shape with as many nodes as a subdomain has, if this one has more.
fn smaller(lattice: &Lattice) -> Lattice {
    let part = (NODES_EACH as f64 / lattice.nodes() as f64).powf(1.0 / lattice.shape.dim as f64).min(1.0);
    let fewer = |count: usize| if count == 0 { 0 } else { ((count as f64 * part).round() as usize).max(1) };
    Lattice { elements: lattice.elements.map(fewer), ..*lattice }
}

/// Takes the steps of all subdomains until the iteration is over; whether all understood each other.
pub(super) fn iterate(problem: &Problem, machines: &mut [Machine]) -> bool {
    iterate_with(problem, machines, coarsest_if_any(problem).as_ref())
}

fn coarsest_if_any(problem: &Problem) -> Option<Cholesky> {
    let is_cycle = problem.solver.preconditioner == Preconditioner::Multigrid;
    if is_cycle { coarsest(problem) } else { None }
}

fn iterate_with(problem: &Problem, machines: &mut [Machine], factor: Option<&Cholesky>) -> bool {
    let mut told: Vec<Vec<(u32, Bulk<f64>)>> = vec![Vec::new(); machines.len()];
    loop {
        let needs: Vec<Need> = machines.iter_mut().map(Machine::step).collect();
        let (mut sums, mut coarse) = (None, Vec::new());
        for (by, need) in needs.into_iter().enumerate() {
            match need {
                Need::Nothing => {}
                Need::Tell(parts) => {
                    parts.into_iter().for_each(|(to, numbers)| told[to as usize].push((by as u32, numbers)));
                }
                Need::Halo(count) => {
                    let numbers = std::mem::take(&mut told[by]);
                    if numbers.len() != count
                        || !numbers.iter().all(|(from, numbers)| machines[by].take(*from, numbers))
                    {
                        return false;
                    }
                    machines[by].have_taken();
                }
                Need::Sums(part) => {
                    let all = sums.get_or_insert_with(|| vec![0.0; part.len()]);
                    all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
                }
                Need::Coarse(part) => coarse.push(part),
                Need::Over => return true,
            }
        }
        if let Some(sums) = sums {
            machines.iter_mut().for_each(|machine| machine.take_sums(&sums));
        }
        if !coarse.is_empty() {
            let (Some((_, cut)), Some(factor)) = (problem.lattice(), factor) else { return false };
            let mut solution = joined(problem, &cut, &coarse);
            factor.solve(solution.as_mut_slice());
            machines.iter_mut().for_each(|machine| machine.take_coarse(&solution));
        }
    }
}
