//! The driver: puts subdomains where speeds want them, has them iterate, and says what came of it.

use super::amdahl;
use super::arguments::{Fem, most_parts};
use super::check::Measured;
use super::course::{Course, Why, not_converged};
use super::follow::follow;
use super::mesh::Mesh;
use super::msh;
use super::problem::{Domain, Problem};
use super::subdomain::{
    Account, Check, Collect, Figures, Go, Load, Part, Prepare, Subdomain, Subdomains, spent,
};
use super::vtu;
use crate::matrix::{self, Matrix};
use chares::{Cx as _, Driver, Placement, RunError, Stopwatch};
use std::ops::RangeInclusive;

/// The largest number of a right-hand side that is not 0 is between these, so that squares of all that matters can be added.
const LOADS: RangeInclusive<f64> = 1e-120..=1e120;

/// Solves as the command line asks.
pub(super) fn drive(main: &mut Driver, fem: Fem) -> Result<(), RunError> {
    let problem = fem.problem()?;
    let division = problem.divide(main.machines())?;
    division.state(main);
    state(main, &problem);
    advise_on_subdomains(main, &problem);
    let file = fem.mesh_file();
    let read = |file: &std::path::PathBuf| msh::read(file).map_err(|e| RunError::Input(e.to_string()));
    if file.is_some() {
        main.phase("reading the mesh", 0, 0);
    }
    let mesh = file.as_ref().map(read).transpose()?;
    if let Some(mesh) = &mesh
        && (mesh.points.len(), mesh.shape) != (problem.nodes(), problem.shape())
    {
        return Err(RunError::Input("the mesh has changed since it was looked at: run again".into()));
    }
    let known = main.readonly(problem.clone())?;
    let array: Subdomains =
        main.array_placed::<Subdomain>(problem.parts, known, Placement::on_pes(division.owners));
    if let Some(mesh) = &mesh {
        main.phase("cutting the mesh", 0, 0);
        for (part, submesh) in (0..).zip(mesh.submeshes(problem.parts)) {
            array.at(part).send(main, Load(submesh));
        }
        main.quiescence()?;
    }
    main.init_over()?;
    if let Some(swelling) = &problem.swelling {
        return follow(main, &fem, (&problem, swelling), &array);
    }
    let begun = spent();
    let (course, figures) = solve(main, &array)?;
    main.timed_over()?;
    say(main, &problem, &course, (&figures, spent() - begun));
    let measured = if fem.verify || problem.exact.is_some() {
        let (to, measured) = main.pending::<Measured>();
        array.broadcast(main, Check(to));
        Some(measured.wait(main)?)
    } else {
        None
    };
    if let Some(measured) = &measured {
        say_measured(main, &problem, measured);
    }
    if fem.out.is_some() || fem.vtu.is_some() {
        write(main, &fem, &problem, &array, mesh)?;
    }
    ended(&problem, &course)?;
    match measured.filter(|_| fem.verify) {
        Some(measured) => verify(main, &problem, &measured),
        None => Ok(()),
    }
}

/// Has the equations computed and solved.
fn solve(main: &mut Driver, array: &Subdomains) -> Result<(Course, Figures), RunError> {
    main.phase("computing the elements", 0, 0);
    let (to, prepared) = main.pending::<Figures>();
    array.broadcast(main, Prepare(to));
    let prepared = prepared.wait(main)?;
    if prepared.is_free {
        return Err(RunError::Input(
            "the problem has no single solution: some part may move or turn freely, or something overflows; fix more of the \
             boundary"
                .into(),
        ));
    }
    let largest = prepared.largest_load;
    if largest != 0.0 && !LOADS.contains(&largest) {
        return Err(RunError::Input(format!(
            "the equations have numbers as large as {largest:.0e}, whose squares cannot be computed with: choose units in which \
             sources, loads, fixed values and lengths are nearer to 1"
        )));
    }
    // Who has copies of whose nodes must be known before anybody tells numbers.
    main.quiescence()?;
    let (to, ended) = main.pending::<Course>();
    let begun = Stopwatch::start();
    array.broadcast(main, Go(to));
    let course = ended.wait(main)?;
    // What is left of the iterations of a run that goes on from a checkpoint would pass for all of them.
    if main.outcome().from_checkpoint.is_none() {
        main.outcome().fact("iterating_s", begun.elapsed().as_secs_f64());
    }
    let (to, figures) = main.pending::<Figures>();
    array.broadcast(main, Account(to));
    let figures = figures.wait(main)?;
    Ok((course, figures))
}

/// States the problem in the report.
fn state(main: &mut Driver, problem: &Problem) {
    let outcome = main.outcome();
    // Where elements are refined on the way nobody knows yet how many there will be.
    if problem.swelling.is_none() {
        outcome.fact("unknowns", problem.unknowns());
        outcome.fact("nodes_of_mesh", problem.nodes());
        outcome.fact("elements", problem.elements());
    }
    outcome.fact("subdomains", problem.parts);
    outcome.fact("preconditioner", serde_json::to_value(problem.solver.preconditioner).unwrap_or_default());
}

/// Says if there are fewer subdomains than PEs; bodies that swell have blocks, of which there are as many as asked for.
fn advise_on_subdomains(main: &mut Driver, problem: &Problem) {
    if problem.swelling.is_none() {
        let (parts, most) = (u64::from(problem.parts), most_parts(problem.nodes()) as u64);
        let mend = |good: u64| (good.min(most) > parts).then(|| format!("--subdomains {}", good.min(most)));
        main.parts(parts, "subdomains", mend);
    }
}

/// States how the iteration went.
fn say(main: &mut Driver, problem: &Problem, course: &Course, (figures, driver_s): (&Figures, f64)) {
    let outcome = main.outcome();
    outcome.fact("iterations", course.iterations);
    outcome.fact("residual", course.residual());
    outcome.fact("matrix_entries", figures.entries);
    outcome.fact("subdomain_bytes", figures.bytes);
    outcome.remark(&format!(
        "{} unknowns, {} iterations, residual {:.2e} of the first",
        problem.unknowns(),
        course.iterations,
        course.residual()
    ));
    let of_iterations = problem.work_of_iteration() * f64::from(course.iterations.max(1));
    amdahl::state(main, figures, of_iterations, driver_s);
}

fn say_measured(main: &mut Driver, problem: &Problem, measured: &Measured) {
    let outcome = main.outcome();
    outcome.fact("residual_of_elements", measured.relative_residual());
    if problem.exact.is_some() {
        outcome.fact("l2_error", measured.error.sqrt());
        outcome.fact("relative_l2_error", measured.relative_error());
        outcome.fact("interpolation_error", measured.interpolated.sqrt());
        outcome.remark(&format!(
            "distance from the known solution {:.3e} (L2), {:.2e} of it; interpolation is {:.3e} away",
            measured.error.sqrt(),
            measured.relative_error(),
            measured.interpolated.sqrt()
        ));
    }
}

/// The error of an iteration that did not converge.
fn ended(problem: &Problem, course: &Course) -> Result<(), RunError> {
    if course.why == Some(Why::Converged) {
        return Ok(());
    }
    Err(RunError::App(not_converged(problem, course).into()))
}

fn verify(main: &mut Driver, problem: &Problem, measured: &Measured) -> Result<(), RunError> {
    let (tolerance, outcome) = (problem.solver.tolerance, main.outcome());
    let (solves, is_near) =
        (measured.solves(tolerance), problem.exact.is_none() || measured.is_near(tolerance));
    outcome.verified_by(solves && is_near, format!("residual {:.2e}", measured.relative_residual()));
    if !solves {
        return Err(RunError::Wrong(format!(
            "the solution is wrong: element by element its residual is {:.2e} of the first, and --tolerance is {tolerance:.1e}",
            measured.relative_residual()
        )));
    }
    if !is_near {
        return Err(RunError::Wrong(format!(
            "the solution is wrong: it is {:.2e} away from the known one, and interpolation {:.2e}",
            measured.error.sqrt(),
            measured.interpolated.sqrt()
        )));
    }
    Ok(())
}

/// Writes the solution, and the mesh with it.
fn write(
    main: &mut Driver,
    fem: &Fem,
    problem: &Problem,
    array: &Subdomains,
    mesh: Option<Mesh>,
) -> Result<(), RunError> {
    let (nodes, each) = (problem.nodes(), problem.each());
    let (to, parts) = main.pending::<Part>();
    array.broadcast(main, Collect(to));
    let mut solution = vec![0.0; nodes * each];
    for done in 1..=u64::from(problem.parts) {
        let Part { ids, values } = parts.wait(main)?;
        for (&id, values) in ids.iter().zip(values.chunks_exact(each)) {
            let Some(to) = solution.chunks_exact_mut(each).nth(id as usize) else {
                return Err(RunError::Failed("a subdomain sent a node that there is none of".into()));
            };
            to.copy_from_slice(values);
        }
        main.phase("collecting", done, problem.parts.into());
    }
    main.phase("writing", 0, 0);
    if let Some(path) = &fem.vtu {
        let whole = match (mesh, &problem.domain) {
            (Some(mesh), _) => mesh.into(),
            (None, Domain::Lattice(lattice)) => (*lattice).into(),
            (None, Domain::Read { .. }) => return Ok(()),
        };
        vtu::write_solution(path, problem, &whole, &solution)?;
    }
    if let Some(path) = &fem.out {
        let rows = Matrix::from_vec(nodes, each, solution).map_err(|e| RunError::Failed(e.to_string()))?;
        matrix::write(path, &rows).map_err(|e| RunError::Output(e.to_string()))?;
    }
    Ok(())
}
