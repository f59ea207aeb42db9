//! What nobody can count beforehand: how many iterations there will be, and how long computing the elements takes beside one. A
//! small problem of the same kind is solved for it in one thread, or the first step of many is taken.

use super::alone::{Step, iterate, prepared, step};
use super::arguments::NODES_EACH;
use super::cholesky::Band;
use super::course::Why;
use super::kernel::{COARSEST_PART, Sample};
use super::lattice::Lattice;
use super::level::coarsest_lattice;
use super::marching::{Block, Marching};
use super::problem::{Domain, Preconditioner, Problem, Solver};
use super::stages::{March, Told};
use super::subdomain::{Subdomain, Subdomains, coarsest, spent};
use super::swelling::Swelling;
use crate::remembered::Remembered;
use chares::{Bulk, Cx as _, Driver, InProcess, Placement, Program, Stopwatch};

/// Iterations by which its rate is found.
const RUNS: u32 = 10;
/// A small problem has so many subdomains, whose surfaces take time, or one if with so many it takes more seconds than this.
const PARTS: usize = 8;
const SECONDS_MAX: f64 = 1.0;
/// A small problem that takes more iterations says nothing, and neither does a first step with more elements: it would take longer
/// than anybody who plans wants to wait.
const ITERATIONS_MAX: u32 = 3000;
const ELEMENTS_MAX: u64 = 12_000;
/// Unknowns of a coarsest mesh that is solved to see how long it takes.
const COARSEST_TRIED: usize = 2500;

/// What a small problem, or the first step of one that changes in the course of time, says of all of it. Work is counted as what
/// the kernel does here in the same time, on a mesh that fits into the caches as the small one does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rehearsal {
    /// How often elements are computed.
    pub steps: f64,
    /// Iterations each time, about.
    pub iterations: f64,
    /// The work of computing the elements once, of all meshes.
    pub elements: f64,
    /// The work of an iteration.
    pub iteration: f64,
    /// The work of factoring the coarsest mesh, and of solving it: at one place, while all others wait.
    pub coarsest: [f64; 2],
}

impl Rehearsal {
    fn is_possible(&self) -> bool {
        let Self { steps, iterations, elements, iteration, coarsest } = *self;
        [steps, iterations, elements, iteration].iter().all(|number| number.is_finite() && *number > 0.0)
            && coarsest.iter().all(|work| work.is_finite() && *work >= 0.0)
    }
}

/// Solves a small problem of the same kind, or takes the first step; nothing if this one is of a mesh that was read, or the small
/// one does not converge soon. Who plans asks for the same one for each mix, and hears the same.
#[must_use]
pub fn rehearse(problem: &Problem) -> Option<Rehearsal> {
    static LAST: Remembered<Problem, Option<Rehearsal>> = Remembered::nothing();
    LAST.answer(problem, || {
        let rate = rate(problem)?;
        let begun = spent();
        let of_one = rehearse_on(problem, NODES_EACH, rate)?;
        let is_quick = (spent() - begun) * (PARTS as f64) < SECONDS_MAX;
        // A first step, and a problem that is as small, have been taken as a whole.
        let is_part = problem.swelling.is_none() && problem.nodes() > NODES_EACH;
        let of_more = if is_quick && is_part { rehearse_on(problem, PARTS * NODES_EACH, rate) } else { None };
        Some(of_more.unwrap_or(of_one))
    })
}

/// The same by a small problem with about so many nodes, where the kernel does so many units of work in a second.
pub(super) fn rehearse_on(problem: &Problem, nodes: usize, rate: f64) -> Option<Rehearsal> {
    let found = match (&problem.swelling, &problem.domain) {
        (Some(swelling), _) => first_step(problem, swelling, rate)?,
        (None, Domain::Lattice(lattice)) => small_box(problem, smaller(lattice, nodes), rate)?,
        (None, Domain::Read { .. }) => return None,
    };
    found.is_possible().then_some(found)
}

/// Units of work that the kernel does here in a second; nothing if the clock is too coarse for that.
fn rate(problem: &Problem) -> Option<f64> {
    let mut sample = Sample::of_kernel(problem)?;
    sample.iterate();
    let begun = spent();
    (0..RUNS).for_each(|_| sample.iterate());
    let seconds = spent() - begun;
    (seconds > 0.0).then(|| f64::from(RUNS) * sample.work() / seconds)
}

fn small_box(problem: &Problem, lattice: Lattice, rate: f64) -> Option<Rehearsal> {
    let larger = problem.nodes() as f64 / lattice.nodes() as f64;
    let is_same = lattice.nodes() == problem.nodes();
    let most = if is_same { usize::MAX } else { lattice.nodes() * problem.each() / COARSEST_PART };
    let solver = Solver {
        coarsest: problem.solver.coarsest.min(most).max(1),
        max_iterations: problem.solver.max_iterations.min(ITERATIONS_MAX),
        ..problem.solver
    };
    // Subdomains are as large as those of the large one, since of small ones more is copied from others.
    let parts = (f64::from(problem.parts) / larger).round().max(1.0) as u32;
    let small = Problem { domain: Domain::Lattice(lattice), parts, solver, ..problem.clone() };
    let begun = spent();
    let mut machines = prepared(&small, || None)?;
    let elements_s = spent() - begun;
    let factor = coarsest(&small);
    let begun = spent();
    let is_understood = iterate(&small, &mut machines, factor.as_ref());
    let iterating_s = spent() - begun;
    let course = machines.first()?.course;
    if !is_understood || course.why != Some(Why::Converged) {
        return None;
    }
    // Without coarser meshes an iteration carries what is known a node further.
    let times = match problem.solver.preconditioner {
        Preconditioner::Multigrid => 1.0,
        _ => larger.powf(1.0 / problem.dim() as f64),
    };
    let iterated = f64::from(course.iterations.max(1));
    Some(Rehearsal {
        steps: 1.0,
        iterations: (iterated * times).clamp(1.0, f64::from(problem.solver.max_iterations)),
        elements: elements_s * larger * rate,
        // What stays in no cache may take longer than all of it does here.
        iteration: (iterating_s / iterated * larger * rate).max(problem.work_of_iteration()),
        coarsest: coarsest_s(problem).map(|seconds| seconds * rate),
    })
}

fn first_step(problem: &Problem, swelling: &Swelling, rate: f64) -> Option<Rehearsal> {
    if swelling.elements().iter().sum::<u64>() > ELEMENTS_MAX {
        return None;
    }
    let begun = spent();
    let mut blocks: Vec<Marching> =
        (0..problem.parts).map(|number| Marching::new(swelling, number)).collect();
    let Step { closed, iterating_s } = step(problem, swelling, &mut blocks, &swelling.levels)?;
    let elements_s = spent() - begun - iterating_s;
    let (verdict, _) = closed.first()?;
    let iterations = verdict.iterations.iter().map(|count| f64::from(*count)).sum::<f64>().max(1.0);
    // Blocks are small, and most of the time goes into their messages.
    let with_messages_s = first_step_of_chares(problem).map_or(iterating_s, |all| all - elements_s);
    Some(Rehearsal {
        steps: swelling.steps.into(),
        iterations,
        elements: elements_s * rate,
        iteration: with_messages_s.max(iterating_s) / iterations * rate,
        coarsest: [0.0; 2],
    })
}

/// Seconds of the first step of a body that swells by chares on one PE here.
pub(super) fn first_step_of_chares(problem: &Problem) -> Option<f64> {
    let program = Program::new("rehearsal", "1").chare::<Subdomain>();
    let step = |main: &mut Driver| {
        let known = main.readonly(problem.clone())?;
        let owners = Placement::on_pes(vec![0; problem.parts as usize]);
        let array: Subdomains = main.array_placed::<Subdomain>(problem.parts, known, owners);
        main.init_over()?;
        let (told, steps) = main.pending::<Told>();
        let (blocks, _) = main.pending::<Block>();
        let begun = Stopwatch::start();
        array.broadcast(main, March { told, blocks });
        steps.wait(main)?;
        Ok(begun.elapsed().as_secs_f64())
    };
    program.run_in_process(&InProcess::new(&[1]), step).ok()
}

/// Seconds in which the coarsest mesh is factored here, and in which it is solved; of a large one reckoned from a smaller one.
fn coarsest_s(problem: &Problem) -> [f64; 2] {
    let Some(lattice) = coarsest_lattice(problem) else { return [0.0; 2] };
    let tried = smaller(&lattice, COARSEST_TRIED / problem.each());
    let solver = Solver { coarsest: usize::MAX, ..problem.solver };
    let alone = Problem { domain: Domain::Lattice(tried), solver, ..problem.clone() };
    let begun = spent();
    let Some(factor) = coarsest(&alone) else { return [0.0; 2] };
    let factored = spent();
    let mut x = Bulk::zeros(tried.nodes() * problem.each());
    factor.solve(x.as_mut_slice());
    let seconds = [factored - begun, spent() - factored];
    let [all, some] = [lattice, tried].map(|lattice| Band::of(&lattice, problem.each()).operations());
    std::array::from_fn(|at| seconds[at] * all[at] / some[at])
}

/// A box of elements of the same shape with about so many nodes, if this one has more.
fn smaller(lattice: &Lattice, nodes: usize) -> Lattice {
    let nodes_along = |count: usize| (count * lattice.shape.order + 1) as f64;
    let mut elements = lattice.elements;
    // An axis that has few elements keeps one of them, and then the others have to become shorter by more.
    for _ in 0..lattice.shape.dim {
        let now: f64 = elements.map(nodes_along).iter().product();
        let long = elements.iter().filter(|count| **count > 1).count().max(1);
        let part = (nodes as f64 / now).powf(1.0 / long as f64).min(1.0);
        elements = elements.map(|count| match count {
            0 | 1 => count,
            _ => ((count as f64 * part).round() as usize).max(1),
        });
    }
    let part = |k: usize| elements[k].max(1) as f64 / lattice.elements[k].max(1) as f64;
    let longest = (0..3).map(part).fold(0.0, f64::max);
    let lengths = std::array::from_fn(|k| lattice.lengths[k] * part(k) / longest);
    Lattice { elements, lengths, ..*lattice }
}
