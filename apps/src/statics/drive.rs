//! The driver: reads what is to be relaxed, puts blocks where they belong, watches, and says what came of it.

use super::arguments::{Mode, Statics};
use super::block::Block;
use super::cblocks::account::{self, Figures, Tables};
use super::cblocks::element::{Account, Blocks, CBlock, Check, Collect, shape_of};
use super::cblocks::{distribution, memory};
use super::course::{Begin, Watch};
use super::problem::Problem;
use super::progress::{Forecast, Shown};
use super::relax::Stop;
use super::replicated::{CheckReplica, Replica, Setup};
use super::result::{Digest, Piece};
use super::written::Written;
use chares::loadbalance::placement;
use chares::{Cx, Driver, Gather, Group, Pending, Placement, RunError};
use std::time::{Duration, Instant};

/// Relaxes as the command line asks.
pub(super) fn drive(main: &mut Driver, statics: Statics) -> Result<(), RunError> {
    let input = statics.merged()?;
    if let Some(study) = statics.study {
        return super::study::drive(main, study, &input);
    }
    let problem = statics.problem()?;
    state(main, &problem);
    let written = Written { output: input.output, problem: problem.clone() };
    let outcome = match statics.mode {
        Mode::Serial => serial(main, &problem, &written),
        Mode::Replicated => replicated(main, problem, &written),
        Mode::CBlocks => cblocks(main, problem, &written),
    }?;
    written.trace(&outcome.watched)?;
    say(main, &written.problem, &outcome)
}

fn state(main: &mut Driver, problem: &Problem) {
    let outcome = main.outcome();
    outcome.fact("atoms", problem.atoms());
    outcome.fact("blocks", problem.partition.len());
    outcome.fact("grid", problem.partition.grid().to_vec());
    outcome.fact("cutoff", problem.potential.cutoff());
    for (axis, what, thickness) in problem.crystal.thin_shells(problem.potential.cutoff()) {
        outcome.remark(&format!(
            "axis {axis}: the {what} of {thickness} A is thinner than the cutoff, {} A: atoms at its border feel less \
             than they should",
            problem.potential.cutoff()
        ));
    }
}

/// What a relaxation came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// The last that was told of it.
    pub last: Watch,
    /// All that was told, with the number of the step, from 0.
    pub watched: Vec<(usize, Watch)>,
    /// Checksum over all places and forces.
    pub digest: Digest,
    /// What it took; none in one thread.
    pub tables: Option<Tables>,
}

impl Outcome {
    fn new(watched: Vec<(usize, Watch)>, digest: Digest, tables: Option<Tables>) -> Result<Self, RunError> {
        let Some((_, last)) = watched.last().cloned() else {
            return Err(RunError::Failed("there was no step".into()));
        };
        Ok(Self { last, watched, digest, tables })
    }
}

/// All blocks in the launcher's one thread.
///
/// # Errors
/// A place or an energy that is no number, a file that cannot be written, or what ends a run.
pub(super) fn serial(main: &mut Driver, problem: &Problem, written: &Written) -> Result<Outcome, RunError> {
    let mut system = problem.serial();
    main.init_over()?;
    let mut watched = Vec::new();
    let mut bytes = 0;
    for (number, step) in problem.steps.iter().enumerate() {
        problem.disturb_all(number, &mut system);
        let mut display = Display::new(step.limits.max_force, Turn(number, problem.steps.len()));
        let relaxed = system.relax(problem.method, step.limits, |machine, measured, order| {
            let watch = Watch::of(machine, measured, order);
            display.show(main, &watch);
            watched.push((number, watch));
        });
        bytes = relaxed.bytes;
        if let Stop::NotFinite(_) = relaxed.stop {
            return Err(RunError::Wrong(format!("step {}: {}", step.name, relaxed.stop)));
        }
    }
    main.timed_over()?;
    let digest = Digest::of_all(system.blocks());
    main.outcome().fact("bytes_per_atom", bytes as f64 / problem.crystal.atoms() as f64);
    if written.wants_atoms() {
        let piece = |(number, block): (usize, &Block)| Piece::of(number as u32, block, problem);
        written.atoms(system.blocks().iter().enumerate().map(piece).collect())?;
    }
    Outcome::new(watched, digest, None)
}

/// Blocks as chares on all nodes.
///
/// # Errors
/// Too little memory, an energy or place that is no number, a file that cannot be written, or what ends a run.
pub(super) fn cblocks(main: &mut Driver, problem: Problem, written: &Written) -> Result<Outcome, RunError> {
    let needed = memory::Needed::of(&problem);
    let owners = spread(main, &needed)?;
    let (computed, blocks) = (needed.computed_atoms(), owners.len());
    let grid = problem.partition.grid();
    let known = main.readonly(problem.clone())?;
    let array: Blocks = main.array_placed::<CBlock>(shape_of(grid), known, Placement::on_pes(owners));
    main.init_over()?;
    let watched = follow_all(main, &problem, |main, begin| array.broadcast(main, begin))?;
    main.timed_over()?;
    let elapsed = main.outcome().timed().map_or(0.0, |timed| timed.as_secs_f64());
    let (to, figures) = main.pending::<Gather<Figures>>();
    array.broadcast(main, Account(to));
    let Gather(figures) = figures.wait(main)?;
    let nodes: Vec<_> = main.nodes().iter().map(|node| (node.name.clone(), node.pes.clone())).collect();
    let tables = account::tables(&figures, &nodes, elapsed);
    let (to, digest) = main.pending::<Digest>();
    array.broadcast(main, Check(to));
    let digest = digest.wait(main)?;
    if written.wants_atoms() {
        let (to, pieces) = main.pending::<Piece>();
        array.broadcast(main, Collect(to));
        written.atoms(collected(main, &pieces, blocks)?)?;
    }
    main.outcome().work(computed * evaluations(&watched) as f64);
    Outcome::new(watched, digest, Some(tables))
}

/// All atoms on every PE.
///
/// # Errors
/// A place or an energy that is no number, a file that cannot be written, or what ends a run.
pub(super) fn replicated(
    main: &mut Driver,
    problem: Problem,
    written: &Written,
) -> Result<Outcome, RunError> {
    let (speeds, blocks) = (main.speeds(), problem.partition.len());
    let bounds = placement::weighted_bounds(blocks as u64, &speeds);
    let bounds =
        bounds.map_err(|e| RunError::Failed(format!("the blocks cannot be divided by speed: {e}")))?;
    let share = |part: &[u64]| (part[1] - part[0]) as f64 / blocks as f64;
    main.outcome().shares(bounds.windows(2).map(share).collect());
    let computed = memory::Needed::of(&problem).computed_atoms();
    let known = main.readonly(problem.clone())?;
    let group: Group<Replica> = main.group(Setup { problem: known, bounds });
    main.init_over()?;
    let watched = follow_all(main, &problem, |main, begin| group.broadcast(main, begin))?;
    main.timed_over()?;
    let (to, digests) = main.pending::<Gather<Digest>>();
    group.broadcast(main, CheckReplica(to));
    let digest = Digest::joined(digests.wait(main)?.0);
    if written.wants_atoms() {
        let (to, pieces) = main.pending::<Piece>();
        group.broadcast(main, Collect(to));
        written.atoms(collected(main, &pieces, blocks)?)?;
    }
    main.outcome().work(computed * evaluations(&watched) as f64);
    Outcome::new(watched, digest, None)
}

fn collected(main: &mut Driver, pieces: &Pending<Piece>, blocks: usize) -> Result<Vec<Piece>, RunError> {
    (0..blocks).map(|_| pieces.wait(main)).collect()
}

/// Evaluations of all steps.
fn evaluations(watched: &[(usize, Watch)]) -> u64 {
    watched.iter().filter(|(_, watch)| watch.stop.is_some()).map(|(_, watch)| watch.evaluations).sum()
}

/// The PE of each block, by measured speed and by what fits.
fn spread(main: &mut Driver, needed: &memory::Needed<'_>) -> Result<Vec<u32>, RunError> {
    crate::memory::check(main, needed)?;
    let (load, speeds) = (&needed.load, main.speeds());
    let found = distribution::distribute(load, &memory::of_nodes(main.nodes(), &speeds));
    let found = found.map_err(|e| RunError::Failed(format!("the blocks cannot be divided by speed: {e}")))?;
    let mut shares = vec![0.0; speeds.len()];
    let cost: f64 = load.cost.iter().sum();
    found.owners.iter().zip(&load.cost).for_each(|(&pe, block)| shares[pe as usize] += block / cost);
    main.outcome().shares(shares);
    main.outcome().fact("distribution", found.shape);
    main.outcome().fact("owners", found.owners.clone());
    Ok(found.owners)
}

/// Takes all steps, one after the other, and shows how far they are.
fn follow_all(
    main: &mut Driver,
    problem: &Problem,
    begin: impl Fn(&mut Driver, Begin),
) -> Result<Vec<(usize, Watch)>, RunError> {
    let mut all = Vec::new();
    for (number, step) in problem.steps.iter().enumerate() {
        let (watcher, watched) = main.pending();
        begin(main, Begin { step: number as u32, watcher });
        let mut display = Display::new(step.limits.max_force, Turn(number, problem.steps.len()));
        loop {
            let watch = watched.wait(main)?;
            display.show(main, &watch);
            let stop = watch.stop;
            all.push((number, watch));
            match stop {
                Some(stop @ Stop::NotFinite(_)) => {
                    return Err(RunError::Wrong(format!("step {}: {stop}", step.name)));
                }
                Some(_) => break,
                None => {}
            }
        }
    }
    Ok(all)
}

/// Time between two lines in the window.
const REFRESH: Duration = Duration::from_millis(100);

/// A step, from 0, and how many there are.
struct Turn(usize, usize);

/// Shows in the window how far a relaxation is.
struct Display {
    turn: Turn,
    forecast: Forecast,
    begun: Instant,
    shown: Option<Instant>,
}

impl Display {
    fn new(max_force: f64, turn: Turn) -> Self {
        Self { turn, forecast: Forecast::new(max_force), begun: Instant::now(), shown: None }
    }

    fn show(&mut self, main: &mut Driver, watch: &Watch) {
        let Shown { name, done, total } = self.forecast.watch(watch, self.begun.elapsed());
        if self.shown.is_none_or(|shown| shown.elapsed() >= REFRESH) {
            self.shown = Some(Instant::now());
            let name = match self.turn {
                Turn(_, 1) => name,
                Turn(step, of) => format!("step {} of {of}, {name}", step + 1),
            };
            main.phase(&name, done, total);
        }
    }
}

/// States the result, in the report and for people.
fn say(main: &mut Driver, problem: &Problem, found: &Outcome) -> Result<(), RunError> {
    let Outcome { last, watched, digest, tables } = found;
    let Some(stop) = last.stop else { return Err(RunError::Failed("the relaxation has not ended".into())) };
    let outcome = main.outcome();
    outcome.fact("energy_ev", last.energy);
    outcome.fact("max_force_ev_per_a", last.max_force);
    outcome.fact("iterations", last.iterations);
    outcome.fact("evaluations", last.evaluations);
    outcome.fact("stop", stop.to_string());
    outcome.fact("digest", format!("{:016x}", digest.0));
    let mut steps = Vec::new();
    for (number, watch) in watched {
        let Some(stop) = watch.stop else { continue };
        let name = &problem.steps[*number].name;
        let step = if problem.steps.len() > 1 { format!("step {name}: ") } else { String::new() };
        outcome.remark(&format!(
            "{step}energy {:.10} eV, largest force {:.3e} eV/A after {} iterations and {} evaluations: {stop}",
            watch.energy, watch.max_force, watch.iterations, watch.evaluations
        ));
        steps.push(serde_json::json!({
            "name": name, "energy_ev": watch.energy, "max_force_ev_per_a": watch.max_force,
            "iterations": watch.iterations, "evaluations": watch.evaluations, "stop": stop.to_string(),
        }));
    }
    outcome.fact("steps", steps);
    let Some(tables) = tables else { return Ok(()) };
    outcome.fact("tables", serde_json::to_value(tables).unwrap_or_default());
    for node in &tables.nodes {
        outcome.remark(&format!(
            "node {}: {} blocks, {} atoms owned, {} needed, {} in all; {:.1} MB",
            node.node,
            node.blocks,
            node.owned,
            node.needed,
            node.total,
            node.bytes as f64 / 1e6
        ));
    }
    outcome.remark(&format!(
        "delay {:.1} %, symmetry loss {:.1} %, communication {:.1} %, {:.0} bytes per atom, lists built {} times",
        tables.delay_percent,
        tables.symmetry_loss_percent,
        tables.communication_percent,
        tables.bytes_per_atom,
        tables.rebuilds
    ));
    Ok(())
}
