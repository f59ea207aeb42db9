//! The driver: reads what is to be relaxed, puts blocks where they belong, watches, and says what came of it.

use super::arguments::{Mode, Statics};
use super::block::Block;
use super::cblocks::account::{self, Figures, Tables};
use super::cblocks::distribution::Distribution;
use super::cblocks::element::{Account, Blocks, CBlock, Check, Collect, shape_of};
use super::cblocks::memory;
use super::course::{Begin, Leg, Watch};
use super::problem::{Problem, Step};
use super::relax::Stop;
use super::replicated::{CheckReplica, Replica, ReplicaInit};
use super::result::{Digest, Piece};
use super::serial::System;
use super::steps::{self, Holder, StepResult, Taken};
use super::written::Written;
use crate::division::{DivisionError, shares_of};
use chares::loadbalance::{Items, Part, placement};
use chares::{Cx as _, Driver, Gather, Group, Placement, RunError};
use std::ops::Range;

/// Relaxes as the command line asks.
pub(super) fn drive(main: &mut Driver, statics: Statics) -> Result<(), RunError> {
    let input = statics.input()?;
    if let Some(study) = statics.study {
        return super::study::drive(main, study, &input);
    }
    let problem = statics.problem()?;
    state(main, &problem);
    let written = Written { output: input.output, problem: &problem };
    let outcome = match statics.mode {
        Mode::Serial => serial(main, &problem, &written),
        Mode::Replicated => replicated(main, &problem, &written),
        Mode::CBlocks => cblocks(main, &problem, &written),
    }?;
    say(main, &problem, &outcome);
    let mut ended = problem.steps.iter().zip(&outcome.taken.steps);
    ended.try_for_each(|(step, ended)| at_rest(step, ended)).map_err(RunError::Wrong)
}

/// Whether a step that looks for a minimum has found one before its caps.
///
/// # Errors
/// A sentence that says how far it is from one.
fn at_rest(step: &Step, ended: &StepResult) -> Result<(), String> {
    let (took, raise) = match ended.stop {
        Stop::Iterations => (format!("{} iterations", ended.last.iterations), "iterations"),
        Stop::Evaluations => (format!("{} evaluations", ended.last.evaluations), "evaluations"),
        _ => return Ok(()),
    };
    if !step.limits.has_tolerance() {
        return Ok(());
    }
    Err(format!(
        "step {}: no minimum after {took}: the largest force is {:.1e} eV/A, and --max-force is {:.1e}: raise --{raise} or \
         --max-force (0 takes them all, and looks for no minimum)",
        step.name, ended.last.max_force, step.limits.max_force
    ))
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
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    /// All steps, at least one.
    pub taken: Taken,
    /// Checksum over all places and forces.
    pub digest: Digest,
    /// What it took; none in one thread.
    pub tables: Option<Tables>,
}

/// All blocks in the launcher's one thread.
struct OneThread<'a> {
    problem: &'a Problem,
    system: System,
    bytes: usize,
}

impl Holder for OneThread<'_> {
    fn relax(
        &mut self,
        main: &mut Driver,
        leg: Leg,
        tell: &mut dyn FnMut(&mut Driver, Watch),
    ) -> Result<(), RunError> {
        self.problem.prepare_all(&leg, &mut self.system);
        let with_virial = self.problem.steps[leg.step as usize].stretches();
        let machine = self.problem.machine(&leg);
        let relaxed = self.system.follow(machine, with_virial, |machine, measured, order| {
            tell(main, Watch::of(machine, measured, order));
        });
        self.bytes = relaxed.bytes;
        Ok(())
    }

    fn pieces(&mut self, _: &mut Driver) -> Result<Vec<Piece>, RunError> {
        let piece = |(number, block): (usize, &Block)| Piece::of(number as u32, block, self.problem);
        Ok(self.system.blocks().iter().enumerate().map(piece).collect())
    }
}

/// Relaxes in the launcher's one thread.
///
/// # Errors
/// As [`steps::take_all`].
pub(super) fn serial(
    main: &mut Driver,
    problem: &Problem,
    written: &Written<'_>,
) -> Result<Outcome, RunError> {
    let mut holder = OneThread { problem, system: problem.serial(), bytes: 0 };
    main.init_over()?;
    let taken = steps::take_all(main, problem, written, &mut holder)?;
    main.timed_over()?;
    let digest = Digest::of_all(holder.system.blocks());
    main.outcome().fact("bytes_per_atom", holder.bytes as f64 / problem.crystal.atoms() as f64);
    steps::write_end(main, written, &taken, &mut holder)?;
    Ok(Outcome { taken, digest, tables: None })
}

/// Blocks as chares on all PEs.
struct Chares<B, C> {
    blocks: usize,
    begin: B,
    collect: C,
}

impl<B: Fn(&mut Driver, Begin), C: Fn(&mut Driver, Collect)> Holder for Chares<B, C> {
    fn relax(
        &mut self,
        main: &mut Driver,
        leg: Leg,
        tell: &mut dyn FnMut(&mut Driver, Watch),
    ) -> Result<(), RunError> {
        let (watcher, watched) = main.pending();
        (self.begin)(main, Begin { leg, watcher });
        loop {
            let watch = watched.wait(main)?;
            let is_last = watch.stop.is_some();
            tell(main, watch);
            if is_last {
                return Ok(());
            }
        }
    }

    fn pieces(&mut self, main: &mut Driver) -> Result<Vec<Piece>, RunError> {
        let (to, pieces) = main.pending::<Piece>();
        (self.collect)(main, Collect(to));
        (0..self.blocks).map(|_| pieces.wait(main)).collect()
    }
}

/// Relaxes on all nodes, each of which holds some blocks.
///
/// # Errors
/// Too little memory, or as [`steps::take_all`].
pub(super) fn cblocks(
    main: &mut Driver,
    problem: &Problem,
    written: &Written<'_>,
) -> Result<Outcome, RunError> {
    let needed = memory::Needed::of(problem);
    let division = needed.divide(main.machines())?;
    division.state(main);
    let Distribution { owners, shape, .. } = division.owners;
    state_blocks(main, &needed, &owners);
    main.outcome().fact("distribution", shape);
    advise_on_blocks(main, problem);
    let (computed, blocks) = (needed.computed_atoms(), owners.len());
    let grid = problem.partition.grid();
    let known = main.readonly(problem.clone())?;
    let array: Blocks = main.array_placed::<CBlock>(shape_of(grid), known, Placement::on_pes(owners));
    let mut holder = Chares {
        blocks,
        begin: |main: &mut Driver, begin| array.broadcast(main, begin),
        collect: |main: &mut Driver, collect| array.broadcast(main, collect),
    };
    main.init_over()?;
    let taken = steps::take_all(main, problem, written, &mut holder)?;
    main.timed_over()?;
    let elapsed = main.outcome().all_timed().map(|timed| timed.as_secs_f64());
    let (to, figures) = main.pending::<Gather<Figures>>();
    array.broadcast(main, Account(to));
    let Gather(figures) = figures.wait(main)?;
    let machines = main.machines();
    let names = machines.nodes.iter().map(|node| node.name.clone());
    let nodes: Vec<_> = names.zip(machines.pes()).collect();
    let tables = account::tables(&figures, &nodes, elapsed);
    let (to, digest) = main.pending::<Digest>();
    array.broadcast(main, Check(to));
    let digest = digest.wait(main)?;
    steps::write_end(main, written, &taken, &mut holder)?;
    main.outcome().work(computed * taken.evaluations() as f64);
    Ok(Outcome { taken, digest, tables: Some(tables) })
}

/// Relaxes on all PEs, each of which holds all atoms.
///
/// # Errors
/// As [`steps::take_all`].
pub(super) fn replicated(
    main: &mut Driver,
    problem: &Problem,
    written: &Written<'_>,
) -> Result<Outcome, RunError> {
    let blocks = problem.partition.len();
    let speeds = main.machines().speeds();
    let bounds = placement::contiguous(&Items::alike(blocks as u64), &Part::each(&speeds));
    let bounds = bounds.map_err(DivisionError::from)?;
    main.outcome().shares(shares_of(&bounds));
    advise_on_blocks(main, problem);
    let computed = memory::Needed::of(problem).computed_atoms();
    let known = main.readonly(problem.clone())?;
    let group: Group<Replica> = main.group(ReplicaInit { problem: known, bounds });
    let mut holder = Chares {
        blocks,
        begin: |main: &mut Driver, begin| group.broadcast(main, begin),
        collect: |main: &mut Driver, collect| group.broadcast(main, collect),
    };
    main.init_over()?;
    let taken = steps::take_all(main, problem, written, &mut holder)?;
    main.timed_over()?;
    let (to, digests) = main.pending::<Gather<Digest>>();
    group.broadcast(main, CheckReplica(to));
    let digest = Digest::joined(digests.wait(main)?.0);
    steps::write_end(main, written, &taken, &mut holder)?;
    main.outcome().work(computed * taken.evaluations() as f64);
    Ok(Outcome { taken, digest, tables: None })
}

/// Says if there are fewer blocks than PEs.
fn advise_on_blocks(main: &mut Driver, problem: &Problem) {
    let (partition, crystal) = (&problem.partition, &problem.crystal);
    let mend = |good| partition.finer(crystal, good).map(|atoms| format!("--block {atoms}"));
    main.parts(partition.len() as u64, "blocks", mend);
}

/// States which PE has which block, and what each node holds.
fn state_blocks(main: &mut Driver, needed: &memory::Needed<'_>, owners: &[u32]) {
    let holds = |pes: Range<u32>| {
        let of_node = |of: fn(&memory::Expected) -> u64| -> u64 {
            let blocks = needed.blocks.iter().zip(owners);
            blocks.filter(|(_, owner)| pes.contains(owner)).map(|(block, _)| of(block)).sum()
        };
        format!("{} blocks, {} atoms", short(of_node(|_| 1)), short(of_node(|block| block.atoms)))
    };
    let holdings = main.machines().pes().into_iter().map(holds).collect();
    main.outcome().holdings(holdings);
    main.outcome().fact("owners", owners);
}

/// A count in at most five characters.
fn short(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// States the result, in the report and for people.
fn say(main: &mut Driver, problem: &Problem, found: &Outcome) {
    let outcome = main.outcome();
    let mut steps = Vec::new();
    for (step, StepResult { last, stop, bounds, pressure }) in problem.steps.iter().zip(&found.taken.steps) {
        let of_step = if problem.steps.len() > 1 { format!("step {}: ", step.name) } else { String::new() };
        outcome.remark(&format!(
            "{of_step}energy {:.10} eV, largest force {:.3e} eV/A after {} iterations and {} evaluations: {stop}",
            last.energy, last.max_force, last.iterations, last.evaluations
        ));
        let mut facts = serde_json::json!({
            "energy_ev": last.energy, "max_force_ev_per_a": last.max_force,
            "iterations": last.iterations, "evaluations": last.evaluations, "stop": stop.to_string(),
        });
        if let Some(pressure) = pressure {
            let ([x, y, z], [xx, yy, zz, ..]) = (bounds.lengths, *pressure);
            outcome.remark(&format!(
                "{of_step}box {x:.6} x {y:.6} x {z:.6} A, pressure {xx:.1e}, {yy:.1e}, {zz:.1e} GPa along x, y, z"
            ));
            facts["box_a"] = bounds.lengths.to_vec().into();
            facts["pressure_gpa"] = pressure.to_vec().into();
        }
        // Facts of the last step are those of the run.
        for (key, fact) in facts.as_object().into_iter().flatten() {
            outcome.fact(key, fact.clone());
        }
        facts["name"] = step.name.clone().into();
        steps.push(facts);
    }
    outcome.fact("digest", format!("{:016x}", found.digest.0));
    outcome.fact("steps", steps);
    if let Some(tables) = &found.tables {
        say_tables(main, tables);
    }
}

fn say_tables(main: &mut Driver, tables: &Tables) {
    let outcome = main.outcome();
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
        "delay {:.1} %, symmetry loss {:.1} %, {}{:.0} bytes per atom, lists built {} times",
        tables.delay_percent,
        tables.symmetry_loss_percent,
        tables.communication_percent.map_or_else(String::new, |part| format!("communication {part:.1} %, ")),
        tables.bytes_per_atom,
        tables.rebuilds
    ));
}
