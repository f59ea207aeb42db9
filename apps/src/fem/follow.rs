//! The driver of a body that swells: hears of each step, writes what is wanted, and says what came of it.

use super::amdahl;
use super::arguments::Fem;
use super::check::Measured;
use super::marching::{Block, Verdict};
use super::problem::Problem;
use super::stages::{March, Told};
use super::subdomain::{Account, Figures, Subdomains, spent};
use super::swelling::Swelling;
use super::vtu::{self, Field, Whole};
use crate::matrix::{self, Matrix};
use chares::{Driver, Inbox, RunError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Follows the body, whose blocks are there, to the end.
pub(super) fn follow(
    main: &mut Driver,
    fem: &Fem,
    (problem, swelling): (&Problem, &Swelling),
    array: &Subdomains,
) -> Result<(), RunError> {
    let (told, steps) = main.pending::<Told>();
    let (to, blocks) = main.pending::<Block>();
    let (begun, mut writing) = (spent(), 0.0);
    array.broadcast(main, March { told, blocks: to });
    let (mut course, mut known) = (Vec::new(), Inbox::<u32, Block>::default());
    for step in 1..=swelling.steps {
        let Told { verdict, .. } = steps.wait(main)?;
        course.push(verdict);
        let is_last = step == swelling.steps;
        if is_last {
            main.timed_over()?;
        }
        let is_wanted = |every: u32| step.is_multiple_of(every) || is_last;
        if !swelling.every.is_some_and(is_wanted) {
            continue;
        }
        // What is written here others do not wait for: they have gone on.
        let from = spent();
        let of_step = loop {
            if let Some(of_step) = known.take(&(step - 1), problem.parts as usize) {
                break of_step;
            }
            let block = blocks.wait(main)?;
            known.hold(block.step, block);
        };
        write(fem, (problem, swelling), of_step, (step, is_last))?;
        writing += spent() - from;
    }
    let driver_s = spent() - begun - writing;
    let (to, figures) = main.pending::<Figures>();
    array.broadcast(main, Account(to));
    let figures = figures.wait(main)?;
    say(main, swelling, &course);
    let outcome = main.outcome();
    outcome.fact("matrix_entries", figures.entries);
    outcome.fact("subdomain_bytes", figures.bytes);
    amdahl::state(main, &figures, of_iterations((problem, swelling), &course), driver_s);
    if fem.verify { verify(main, (problem, swelling), &course) } else { Ok(()) }
}

/// By which part of all that was there or put in the content differs from what it has to be after any step; nothing if some may
/// have left where values are fixed.
#[must_use]
pub(super) fn lost(swelling: &Swelling, course: &[Verdict]) -> Option<f64> {
    if !swelling.is_closed() {
        return None;
    }
    let first: f64 = (0..)
        .zip(&swelling.levels)
        .map(|(block, &level)| {
            let along = swelling.forest.along(level);
            let factor = swelling.capacity * swelling.area(level);
            super::patch::integrals(&swelling.beginning(block, level), along, factor).iter().sum::<f64>()
        })
        .sum();
    let (mut expected, mut all, mut most) = (first, first.abs(), 0.0f64);
    for verdict in course {
        expected += verdict.put;
        all += verdict.put.abs();
        let away = (verdict.content - expected).abs();
        let part = if all == 0.0 { 0.0 } else { away / all };
        // What is no number counts as the most.
        if part > most || part.is_nan() {
            most = part;
        }
    }
    Some(most)
}

/// What all iterations took, floating-point operations.
fn of_iterations((problem, swelling): (&Problem, &Swelling), course: &[Verdict]) -> f64 {
    let of_each =
        [swelling.diffusion(problem, 0), swelling.body(problem, 0)].map(|of| of.work_of_iteration());
    let work = |verdict: &Verdict| {
        let part = verdict.elements as f64 / problem.elements() as f64;
        (0..2).map(|k| f64::from(verdict.iterations[k].max(1)) * of_each[k] * part).sum::<f64>()
    };
    course.iter().map(work).sum()
}

/// States how it went.
fn say(main: &mut Driver, swelling: &Swelling, course: &[Verdict]) {
    let Some(last) = course.last() else { return };
    let iterations = |k: usize| course.iter().map(|verdict| u64::from(verdict.iterations[k])).sum::<u64>();
    let all = [iterations(0), iterations(1)];
    let elements = course.iter().map(|verdict| verdict.elements);
    let (least, most) = (elements.clone().min().unwrap_or(0), elements.clone().max().unwrap_or(0));
    let forest = &swelling.forest;
    let finest = forest.elements(&vec![forest.finest; forest.blocks() as usize]);
    let estimated = (last.error / last.square.max(f64::MIN_POSITIVE)).sqrt();
    let outcome = main.outcome();
    outcome.fact("steps", swelling.steps);
    outcome.fact("iterations", all[0] + all[1]);
    outcome.fact("iterations_of_values", all[0]);
    outcome.fact("iterations_of_displacements", all[1]);
    outcome.fact("elements_least", least);
    outcome.fact("elements_most", most);
    outcome.fact("elements_last", last.elements);
    outcome.fact("elements_if_all_were_finest", finest);
    outcome.fact("estimated_error", estimated);
    outcome.fact("content", last.content);
    outcome.remark(&format!(
        "{} steps, {least} to {most} elements of {finest} if all were the finest; {:.1} and {:.1} iterations a step",
        swelling.steps,
        all[0] as f64 / course.len() as f64,
        all[1] as f64 / course.len() as f64
    ));
    let lost = lost(swelling, course);
    if let Some(lost) = lost {
        outcome.fact("conservation_error", lost);
    }
    outcome.remark(&format!(
        "the error of the last values is {estimated:.1e} of them by the estimate; their content is {:.6e}{}",
        last.content,
        lost.map_or(String::new(), |lost| format!(", and {lost:.1e} of it was lost"))
    ));
    if swelling.is_known {
        let [values, displacements] = [last.diffusion, last.body].map(|of| of.relative_error());
        outcome.fact("relative_l2_error", values);
        outcome.fact("relative_l2_error_of_displacements", displacements);
        outcome.remark(&format!(
            "distance from the known solution {values:.2e} of the values, {displacements:.2e} of the displacements (L2)"
        ));
    }
}

/// By which part of the content it may differ from what it has to be: all iterations may leave their tolerance in each node.
pub(super) fn allowed(problem: &Problem, course: &[Verdict]) -> f64 {
    let nodes = course.iter().map(|verdict| verdict.elements).max().unwrap_or(0) as f64;
    problem.solver.tolerance * course.len() as f64 * nodes.sqrt()
}

fn verify(
    main: &mut Driver,
    (problem, swelling): (&Problem, &Swelling),
    course: &[Verdict],
) -> Result<(), RunError> {
    let tolerance = problem.solver.tolerance;
    let wrong = course
        .iter()
        .position(|verdict| !(verdict.diffusion.solves(tolerance) && verdict.body.solves(tolerance)));
    let residual = course.iter().flat_map(|verdict| [verdict.diffusion, verdict.body]);
    let residual = residual.map(|measured: Measured| measured.relative_residual()).fold(0.0, f64::max);
    let (lost, allowed) = (lost(swelling, course), allowed(problem, course));
    let is_kept = lost.is_none_or(|lost| lost <= allowed);
    let outcome = main.outcome();
    outcome.fact("residual_of_elements", residual);
    let said = lost.map_or(String::new(), |lost| format!(", content kept to {lost:.1e}"));
    outcome.verified_by(wrong.is_none() && is_kept, format!("residual {residual:.2e} in all steps{said}"));
    if let Some(step) = wrong {
        return Err(RunError::Wrong(format!(
            "step {} is wrong: element by element a residual is {residual:.2e} of the first, and --tolerance is {tolerance:.1e}",
            step + 1
        )));
    }
    if !is_kept {
        return Err(RunError::Wrong(format!(
            "{:.1e} of the content is lost, and {allowed:.1e} may be by the --tolerance",
            lost.unwrap_or(f64::NAN)
        )));
    }
    Ok(())
}

/// Writes what is asked for after a step.
fn write(
    fem: &Fem,
    (problem, swelling): (&Problem, &Swelling),
    mut blocks: Vec<Block>,
    (step, is_last): (u32, bool),
) -> Result<(), RunError> {
    blocks.sort_unstable_by_key(|block| block.number);
    if let Some(path) = &fem.vtu {
        let path = if is_last { path.clone() } else { numbered(path, step) };
        write_vtu(&path, (problem, swelling), &blocks)?;
    }
    if let Some(path) = fem.out.as_ref().filter(|_| is_last) {
        write_rows(path, swelling, &blocks)?;
    }
    Ok(())
}

/// A file's name with the number of a step.
fn numbered(path: &Path, step: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{step:05}.vtu"))
}

fn write_vtu(
    path: &Path,
    (problem, swelling): (&Problem, &Swelling),
    blocks: &[Block],
) -> Result<(), RunError> {
    let forest = &swelling.forest;
    let (mut points, mut elements, mut levels) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        let (along, first) = (forest.along(block.level), points.len());
        points.extend(each_node(swelling, block).map(|(_, point)| point));
        let corner = |x: usize, y: usize| (first + y * (along + 1) + x) as u32;
        let cells = (0..along).flat_map(|y| (0..along).map(move |x| (x, y)));
        elements.extend(
            cells.flat_map(|(x, y)| [corner(x, y), corner(x + 1, y), corner(x, y + 1), corner(x + 1, y + 1)]),
        );
        levels.resize(elements.len() / 4, f64::from(block.level));
    }
    let values: Vec<f64> = blocks.iter().flat_map(|block| block.values.iter().copied()).collect();
    let displacements: Vec<f64> =
        blocks.iter().flat_map(|block| block.displacements.iter().copied()).collect();
    let whole = Whole { shape: forest.lattice.shape, points, elements };
    // An even stress is none of shape: what swells has no part in it.
    let stress = vtu::von_mises(problem, &whole, &displacements);
    let nodes = [
        Field { name: "u", width: 1, values: &values },
        Field { name: "displacement", width: 2, values: &displacements },
    ];
    let cells = [
        Field { name: "von_mises", width: 1, values: &stress },
        Field { name: "level", width: 1, values: &levels },
    ];
    vtu::write(path, &whole, &nodes, &cells)
}

/// The nodes of a block in the finest lattice, and where they are.
fn each_node<'a>(swelling: &'a Swelling, block: &'a Block) -> impl Iterator<Item = (u64, [f64; 3])> + 'a {
    let forest = &swelling.forest;
    let (along, place, fine) = (forest.along(block.level), forest.place(block.number), forest.fine());
    (0..=along).flat_map(move |y| (0..=along).map(move |x| [x, y])).map(move |at| {
        let node = forest.node(place, block.level, at);
        (fine.id(node), fine.point(node))
    })
}

/// Writes place, value and displacement of each node, x running fastest.
fn write_rows(path: &Path, swelling: &Swelling, blocks: &[Block]) -> Result<(), RunError> {
    let mut rows: BTreeMap<u64, [f64; 5]> = BTreeMap::new();
    for block in blocks {
        let numbers = block.values.iter().zip(block.displacements.chunks_exact(2));
        for ((id, [x, y, _]), (value, moved)) in each_node(swelling, block).zip(numbers) {
            rows.insert(id, [x, y, *value, moved[0], moved[1]]);
        }
    }
    let count = rows.len();
    let all: Vec<f64> = rows.into_values().flatten().collect();
    let rows = Matrix::from_vec(count, 5, all).map_err(|e| RunError::Failed(e.to_string()))?;
    matrix::write(path, &rows).map_err(|e| RunError::Output(e.to_string()))
}
