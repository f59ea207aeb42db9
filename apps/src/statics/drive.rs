//! The driver: reads what is to be relaxed, puts blocks where they belong, watches, and says what came of it.

use super::arguments::{Mode, Statics};
use super::cblocks::account::{self, Figures, Tables};
use super::cblocks::element::{Account, Begin, Blocks, CBlock, Check, Watch, shape_of};
use super::cblocks::{distribution, memory};
use super::problem::Problem;
use super::progress::{Forecast, Shown};
use super::relax::Stop;
use super::replicated::{CheckReplica, Replica, Setup};
use super::result::Digest;
use chares::loadbalance::placement;
use chares::{Cx, Driver, Gather, Group, Pending, Placement, RunError};
use std::time::{Duration, Instant};

/// Relaxes as the command line asks.
pub(super) fn drive(main: &mut Driver, statics: Statics) -> Result<(), RunError> {
    let problem = statics.problem()?;
    state(main, &problem);
    let outcome = match statics.mode {
        Mode::Serial => serial(main, &problem),
        Mode::Replicated => replicated(main, problem),
        Mode::CBlocks => cblocks(main, problem),
    }?;
    say(main, &outcome)
}

fn state(main: &mut Driver, problem: &Problem) {
    let outcome = main.outcome();
    outcome.fact("atoms", problem.crystal.atoms() - problem.removed.len() as u64);
    outcome.fact("blocks", problem.partition.len());
    outcome.fact("grid", problem.partition.grid().to_vec());
    outcome.fact("cutoff", problem.potential.cutoff());
}

/// What a relaxation came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// The last that was told of it.
    pub last: Watch,
    /// Checksum over all places and forces.
    pub digest: Digest,
    /// What it took; none in one thread.
    pub tables: Option<Tables>,
}

/// All blocks in the launcher's one thread.
pub(super) fn serial(main: &mut Driver, problem: &Problem) -> Result<Outcome, RunError> {
    let mut system = problem.serial();
    main.init_over()?;
    let mut display = Display::new(problem.limits.max_force);
    let relaxed = system.relax(problem.method, problem.limits, |evaluations, measured| {
        let (energy, max_force) = (measured.energy, measured.max_f);
        let watch = Watch { evaluations, iterations: evaluations, energy, max_force, stop: None };
        display.show(main, &watch);
    });
    main.timed_over()?;
    let last = Watch {
        evaluations: relaxed.evaluations,
        iterations: relaxed.iterations,
        energy: relaxed.energy,
        max_force: relaxed.max_force,
        stop: Some(relaxed.stop),
    };
    let digest = Digest::of_all(system.blocks());
    main.outcome().fact("bytes_per_atom", relaxed.bytes as f64 / problem.crystal.atoms() as f64);
    Ok(Outcome { last, digest, tables: None })
}

/// Blocks as chares on all nodes.
///
/// # Errors
/// Too little memory, an energy or place that is no number, or what ends a run.
pub(super) fn cblocks(main: &mut Driver, problem: Problem) -> Result<Outcome, RunError> {
    let blocks = spread(main, &problem)?;
    let (limit, computed) = (problem.limits.max_force, computed_atoms(&problem));
    let grid = problem.partition.grid();
    let problem = main.readonly(problem)?;
    let array: Blocks = main.array_placed::<CBlock>(shape_of(grid), problem, Placement::on_pes(blocks));
    main.init_over()?;
    let (watcher, watched) = main.pending();
    array.broadcast(main, Begin { watcher });
    let last = follow(main, limit, &watched)?;
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
    main.outcome().work(computed * last.evaluations as f64);
    Ok(Outcome { last, digest, tables: Some(tables) })
}

/// All atoms on every PE.
///
/// # Errors
/// A place or an energy that is no number, or what ends a run.
pub(super) fn replicated(main: &mut Driver, problem: Problem) -> Result<Outcome, RunError> {
    let (speeds, blocks) = (main.speeds(), problem.partition.len() as u64);
    let bounds = placement::weighted_bounds(blocks, &speeds);
    let bounds =
        bounds.map_err(|e| RunError::Failed(format!("the blocks cannot be divided by speed: {e}")))?;
    let share = |part: &[u64]| (part[1] - part[0]) as f64 / blocks as f64;
    main.outcome().shares(bounds.windows(2).map(share).collect());
    let (limit, computed) = (problem.limits.max_force, computed_atoms(&problem));
    let problem = main.readonly(problem)?;
    let group: Group<Replica> = main.group(Setup { problem, bounds });
    main.init_over()?;
    let (watcher, watched) = main.pending();
    group.broadcast(main, Begin { watcher });
    let last = follow(main, limit, &watched)?;
    main.timed_over()?;
    let (to, digests) = main.pending::<Gather<Digest>>();
    group.broadcast(main, CheckReplica(to));
    let digest = Digest::joined(digests.wait(main)?.0);
    main.outcome().work(computed * last.evaluations as f64);
    Ok(Outcome { last, digest, tables: None })
}

fn computed_atoms(problem: &Problem) -> f64 {
    memory::expected(problem).iter().map(|block| block.computed as f64).sum()
}

/// The PE of each block, by measured speed and by what fits.
fn spread(main: &mut Driver, problem: &Problem) -> Result<Vec<u32>, RunError> {
    crate::memory::check(main, &memory::Needed(problem))?;
    let (load, speeds) = (memory::load(problem), main.speeds());
    let found = distribution::distribute(&load, &memory::of_nodes(main.nodes(), &speeds));
    let found = found.map_err(|e| RunError::Failed(format!("the blocks cannot be divided by speed: {e}")))?;
    let mut shares = vec![0.0; speeds.len()];
    let cost: f64 = load.cost.iter().sum();
    found.owners.iter().zip(&load.cost).for_each(|(&pe, block)| shares[pe as usize] += block / cost);
    main.outcome().shares(shares);
    main.outcome().fact("distribution", found.shape);
    main.outcome().fact("owners", found.owners.clone());
    Ok(found.owners)
}

/// Shows how far the relaxation is, until it ends.
fn follow(main: &mut Driver, max_force: f64, watched: &Pending<Watch>) -> Result<Watch, RunError> {
    let mut display = Display::new(max_force);
    loop {
        let watch = watched.wait(main)?;
        display.show(main, &watch);
        match watch.stop {
            Some(stop @ Stop::NotFinite(_)) => return Err(RunError::Wrong(stop.to_string())),
            Some(_) => return Ok(watch),
            None => {}
        }
    }
}

/// Time between two lines in the window.
const REFRESH: Duration = Duration::from_millis(100);

/// Shows in the window how far a relaxation is.
struct Display {
    forecast: Forecast,
    begun: Instant,
    shown: Option<Instant>,
}

impl Display {
    fn new(max_force: f64) -> Self {
        Self { forecast: Forecast::new(max_force), begun: Instant::now(), shown: None }
    }

    fn show(&mut self, main: &mut Driver, watch: &Watch) {
        let Shown { name, done, total } = self.forecast.watch(watch, self.begun.elapsed());
        if self.shown.is_none_or(|shown| shown.elapsed() >= REFRESH) {
            self.shown = Some(Instant::now());
            main.phase(&name, done, total);
        }
    }
}

/// States the result, in the report and for people.
fn say(main: &mut Driver, Outcome { last, digest, tables }: &Outcome) -> Result<(), RunError> {
    let Some(stop) = last.stop else { return Err(RunError::Failed("the relaxation has not ended".into())) };
    let outcome = main.outcome();
    outcome.fact("energy_ev", last.energy);
    outcome.fact("max_force_ev_per_a", last.max_force);
    outcome.fact("iterations", last.iterations);
    outcome.fact("evaluations", last.evaluations);
    outcome.fact("stop", stop.to_string());
    outcome.fact("digest", format!("{:016x}", digest.0));
    outcome.remark(&format!(
        "energy {:.10} eV, largest force {:.3e} eV/A after {} iterations and {} evaluations: {stop}",
        last.energy, last.max_force, last.iterations, last.evaluations
    ));
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
