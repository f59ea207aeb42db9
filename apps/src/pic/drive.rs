//! The driver: divides the plasma, follows it step by step, and says what came of it.

use super::arguments::Pic;
use super::charge::Charge;
use super::choices::Setup;
use super::division::Plan;
use super::figures::Figures;
use super::look;
use super::particles::Particles;
use super::picture::{self, Map};
use super::poisson::{Poisson, PoissonInit, Regions};
use super::problem::{Problem, Scheme};
use super::region::{Go, Region, RegionInit, ToPoisson};
use super::requests::{Collect, Counts, Density, Digest, DigestOf, Fastest, PhaseSpace};
use super::scheme::{self, Costs};
use super::serial::Serial;
use super::theory;
use crate::matrix::npy::{NpyWriteError, NpyWriter};
use crate::output;
use chares::{Array, Callback, Cx as _, Driver, Max, Pending, Placement, RunError};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two lines in the window.
const REFRESH: Duration = Duration::from_millis(100);
/// Columns of places and rows of velocities of a picture of phase space.
const BINS: [usize; 2] = [256, 128];
/// Particles times steps that a check computes again in one thread.
const CHECKED: u64 = 50_000_000;
/// By which part of itself the sum of all charge may differ from what it has to be.
const CHARGE_ERROR: f64 = 1e-12;
/// By which part of itself the energy may drift in 200 steps.
const DRIFT: f64 = 0.01;

/// Follows a plasma as the command line asks.
pub(super) fn drive(main: &mut Driver, pic: Pic) -> Result<(), RunError> {
    let mut problem = pic.problem()?;
    if pic.is_auto() {
        let costs = scheme::measured(main, &problem)?;
        problem.scheme = costs.cheaper();
        say_costs(main, &costs);
    }
    let division = Plan::of(&pic, &problem).divide(main.machines())?;
    division.state(main);
    let owners = division.owners;
    problem.bounds = owners.bounds;
    main.phase("making the particles", 0, 0);
    let known = main.readonly(problem.clone())?;
    let (told, figures) = main.pending();
    let poisson = (problem.scheme != Scheme::Distributed).then(|| {
        let placed = Placement::on_pes([owners.solver]);
        main.array_placed::<Poisson>(1, PoissonInit { problem: known, told }, placed)
    });
    let to = |poisson: Array<Poisson>| {
        let only = poisson.at(0);
        ToPoisson { columns: Callback::element(&only), all: Callback::element(&only) }
    };
    let init = RegionInit { problem: known, poisson: poisson.map(to), told };
    let count = problem.regions() as u32;
    let regions: Array<Region> = main.array_placed(count, init, Placement::on_pes(owners.pes));
    if let Some(poisson) = poisson {
        poisson.broadcast(main, Regions(regions));
    }
    main.init_over()?;
    regions.broadcast(main, Go);
    let course = follow(main, &problem, &figures, &regions)?;
    // Particles may still be on their way to where they are now.
    main.quiescence()?;
    main.timed_over()?;
    main.show_last(|main| look::maps(main, &problem, &regions))?;
    let (to, digest) = main.pending();
    regions.broadcast(main, DigestOf(to));
    let Digest(digest) = digest.wait(main)?;
    state(main, &pic, &problem, &course, digest);
    write(main, &pic, &problem, &course, &regions)?;
    if pic.verify { verify(main, &problem, &course, digest) } else { Ok(()) }
}

fn say_costs(main: &mut Driver, costs: &Costs) {
    let outcome = main.outcome();
    outcome.fact("measured_costs", serde_json::to_value(costs).unwrap_or_default());
    if costs.processors > 1.0 {
        let (regions, fixed) = (1e3 * costs.regions(), 1e3 * costs.fixed());
        outcome.remark(&format!(
            "by the cost model a step takes {regions:.3} ms if particles go to their regions and {fixed:.3} ms if they stay"
        ));
    }
}

/// Waits for all steps, and shows in the window how far they are.
fn follow(
    main: &mut Driver,
    problem: &Problem,
    figures: &Pending<Figures>,
    regions: &Array<Region>,
) -> Result<Vec<Figures>, RunError> {
    let mut course: Vec<Figures> = Vec::new();
    let mut shown: Option<Instant> = None;
    for step in 0..problem.steps {
        let figures = figures.wait(main)?;
        course.push(figures);
        if shown.is_none_or(|shown| shown.elapsed() >= REFRESH) {
            shown = Some(Instant::now());
            let detail = format!(
                "field {:.2e} of {:.3e}, density {}",
                figures.potential,
                figures.total(),
                figures.bars()
            );
            main.forecast("step", u64::from(step) + 1, Some(problem.steps.into()), &detail);
            main.show(|main| look::maps(main, problem, regions))?;
        }
    }
    course.sort_by_key(|figures| figures.step);
    Ok(course)
}

/// By which part of itself the energy has changed at most.
fn drift(course: &[Figures]) -> f64 {
    let Some(first) = course.first() else { return 0.0 };
    let differs = |figures: &Figures| (figures.total() - first.total()).abs() / first.total();
    // What is no number counts as the most.
    course
        .iter()
        .map(differs)
        .fold(0.0, |most: f64, next| if most.is_nan() || next <= most { most } else { next })
}

/// States work and result in the report.
fn state(main: &mut Driver, pic: &Pic, problem: &Problem, course: &[Figures], digest: u64) {
    let (particles, steps) = (problem.particles(), problem.steps);
    let energies: Vec<f64> = course.iter().map(|figures| figures.mode).collect();
    let is_damped = pic.begins() == Setup::Landau;
    let fit = if is_damped { theory::damping } else { theory::growth };
    let (rate, expected) = (fit(&energies, problem.dt), theory::expected(problem));
    let charge_error = course.iter().map(|figures| figures.charge_error).fold(0.0, f64::max);
    let outcome = main.outcome();
    outcome.work(problem.work_of_step() * f64::from(steps));
    let nanoseconds =
        outcome.all_timed().map(|timed| timed.as_secs_f64() * 1e9 / (particles as f64 * f64::from(steps)));
    outcome.fact("particles", particles);
    outcome.fact("cells", problem.cells.to_vec());
    outcome.fact("length", problem.length.to_vec());
    outcome.fact("steps", steps);
    outcome.fact("scheme", serde_json::to_value(problem.scheme).unwrap_or_default());
    outcome.fact("regions", problem.regions());
    outcome.fact("ns_per_particle_and_step", nanoseconds);
    outcome.fact("rate", rate);
    outcome.fact("rate_by_theory", expected.value());
    outcome.fact("charge_error", charge_error);
    outcome.fact("energy_drift", drift(course));
    outcome.fact("digest", format!("{digest:016x}"));
    if let Some(last) = course.last() {
        outcome.fact("kinetic", last.kinetic);
        outcome.fact("potential", last.potential);
        outcome.remark(&format!(
            "energy of an electron: {:.6e} of its motion, {:.6e} of the field; the sum has drifted by {:.2e} at most",
            last.kinetic,
            last.potential,
            drift(course)
        ));
    }
    let how = if is_damped { "is damped" } else { "grows" };
    let said = rate.map_or_else(
        || "too little to fit a rate".into(),
        |rate| format!("by {:.4} of the plasma frequency", rate.abs()),
    );
    outcome.remark(&format!(
        "wave {} {how} {said}; {}: {:.4}",
        problem.mode,
        expected.name(),
        expected.value().abs()
    ));
    outcome.remark(&format!(
        "{} chares{}, {:.2} ns for each particle and step",
        problem.regions(),
        match problem.scheme {
            Scheme::Fixed => " whose particles stay",
            Scheme::Regions => " to which particles go from everywhere",
            Scheme::Distributed => " that pass particles on and solve for the field together",
        },
        nanoseconds.unwrap_or_default()
    ));
}

/// Writes what is asked for.
fn write(
    main: &mut Driver,
    pic: &Pic,
    problem: &Problem,
    course: &[Figures],
    regions: &Array<Region>,
) -> Result<(), RunError> {
    if let Some(path) = &pic.trace {
        output::write(path, &trace(problem, course))?;
    }
    let [dx, dy] = problem.cell();
    if let Some(path) = &pic.density {
        let (to, charge) = main.pending();
        regions.broadcast(main, Density(to));
        let Charge(all) = charge.wait(main)?;
        let unit = problem.grid() as f64 / problem.charge() as f64;
        let map = Map {
            title: "Density of electrons, relative to the mean".into(),
            columns: problem.cells[0],
            values: picture::transposed(&all.charge, problem.cells).map(|sum| sum as f64 * unit).collect(),
            x: ("x".into(), [0.0, problem.length[0]]),
            y: ("y".into(), [0.0, problem.length[1]]),
            power: 1.0,
        };
        map.write(path)?;
    }
    if let Some(path) = &pic.phase_space {
        let (to, fastest) = main.pending();
        regions.broadcast(main, Fastest(to));
        let Max(fastest) = fastest.wait(main)?;
        let top = (1.05 * fastest).max(f64::MIN_POSITIVE);
        let (to, counts) = main.pending();
        regions.broadcast(main, PhaseSpace { bins: BINS, top, to });
        let Counts(counts) = counts.wait(main)?;
        let velocity = top * dx / problem.dt;
        let map = Map {
            title: "Particles by place and velocity along x".into(),
            columns: BINS[0],
            values: counts.iter().map(|count| *count as f64).collect(),
            x: ("x".into(), [0.0, problem.length[0]]),
            y: ("velocity along x".into(), [-velocity, velocity]),
            power: 0.25,
        };
        map.write(path)?;
    }
    if let Some(path) = &pic.out {
        let (to, pieces) = main.pending::<Particles>();
        regions.broadcast(main, Collect(to));
        let pieces = (0..problem.regions()).map(|_| pieces.wait(main)).collect::<Result<Vec<_>, _>>()?;
        let units = [dx, dy, dx / problem.dt, dy / problem.dt];
        write_particles(path, pieces.iter().flat_map(Particles::each), units)?;
    }
    Ok(())
}

/// Particles have no numbers where they go from chare to chare: in the file they are in the order of their places.
fn write_particles(
    path: &Path,
    particles: impl Iterator<Item = [f64; 4]>,
    units: [f64; 4],
) -> Result<(), RunError> {
    let mut rows: Vec<[f64; 4]> = particles.collect();
    let order = |one: &[f64; 4], other: &[f64; 4]| {
        let differ = one.iter().zip(other).map(|(one, other)| one.total_cmp(other));
        differ.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    };
    rows.sort_unstable_by(order);
    for row in &mut rows {
        row.iter_mut().zip(units).for_each(|(value, unit)| *value *= unit);
    }
    let unwritten = |error: NpyWriteError| RunError::Output(error.to_string());
    let mut file = NpyWriter::create(path, rows.len(), 4).map_err(unwritten)?;
    file.write_rows(0, rows.as_flattened()).map_err(unwritten)?;
    file.finish().map_err(unwritten)
}

/// Energies of each step, with all their digits.
fn trace(problem: &Problem, course: &[Figures]) -> String {
    let mut text = String::from("step,time,kinetic,potential,total,wave,charge_error\n");
    for (step, figures) in course.iter().enumerate() {
        let Figures { kinetic, potential, mode, charge_error, .. } = figures;
        let time = step as f64 * problem.dt;
        text += &format!(
            "{step},{time},{kinetic:e},{potential:e},{:e},{mode:e},{charge_error:e}\n",
            figures.total()
        );
    }
    text
}

/// Checks the run.
///
/// # Errors
/// What is wrong.
fn verify(main: &mut Driver, problem: &Problem, course: &[Figures], digest: u64) -> Result<(), RunError> {
    main.phase("verifying", 0, 0);
    main.outcome().collected();
    let again = problem.steps.min((CHECKED / problem.particles()).max(1) as u32);
    let wrong = first_wrong(problem, course, digest, again);
    let measured = format!(
        "charge kept to {CHARGE_ERROR:e}, energy to {:.1e}, and the first {again} of {} steps the same bits as one thread's",
        drift(course),
        problem.steps
    );
    main.outcome().verified_by(wrong.is_none(), measured);
    wrong.map_or(Ok(()), |sentence| Err(RunError::Wrong(sentence)))
}

/// What is wrong with a run, if anything is; so many of its steps are computed again.
pub(super) fn first_wrong(problem: &Problem, course: &[Figures], digest: u64, again: u32) -> Option<String> {
    let is_kept = |figures: &Figures| figures.charge_error <= CHARGE_ERROR;
    if let Some(step) = course.iter().position(|figures| !is_kept(figures)) {
        return Some(format!(
            "charge is lost before step {step}: a part of {:.1e}",
            course[step].charge_error
        ));
    }
    let (drift, allowed) = (drift(course), DRIFT * (f64::from(problem.steps) / 200.0).max(1.0));
    if drift.is_nan() || drift > allowed {
        return Some(format!(
            "the energy drifts by {drift:.1e} of itself, and may by {allowed:.1e}: take a smaller --dt, more --cells, or more \
             --particles"
        ));
    }
    let mut serial = Serial::new(problem);
    for (step, figures) in course.iter().enumerate().take(again as usize) {
        if serial.step().as_ref() != Some(figures) {
            return Some(format!("step {step} differs from that of one thread"));
        }
    }
    (again == problem.steps && serial.particles.digest() != digest)
        .then(|| "particles at the end differ from those of one thread".into())
}
